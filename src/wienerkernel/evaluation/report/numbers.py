"""Everything that a report shows, as one dictionary of plain numbers, lists and strings.

What depends on y, the mean, is given for each output. The laws of all outputs are the same up to that mean and a scale,
so tubes, variances and densities are given once, as deviations from the mean and without the scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backend import arrays
from ...posterior import Posterior, Uncertainty
from ...text import rounded
from .scores import score_contents, thinned
from .slices import CAUSES, COVERAGE, observations, slices

__all__ = ["contents"]

MAX_DATA = 1000
ADVICE = {
    "noise": "comes from the noise in the samples at hand, so more samples would help, at the same places, too",
    "model": "comes from places that the data do not cover, so samples at new places would help",
    "aleatoric": "comes from the noise of that observation itself, which no amount of data removes, so a better "
    "measurement would help and more samples would not",
}


def contents(
    model: Any, *, input_names: Sequence[str] | None = None, target_name: str | Sequence[str] | None = None
) -> dict[str, Any]:
    """Compute what a report of a fitted model shows.

    Parameters
    ----------
    model : WienerKernelRegressor
        Fitted.
    input_names : sequence of str, default=None
        One for each column of X; None takes ``feature_names_in_`` where the model has them.
    target_name : str or sequence of str, default=None
        One for each output.

    Returns
    -------
    dict
        Ready for JSON: ``scales``, ``summary``, ``shares``, ``advice``, ``data``, ``slices``, ``scores``, ``hyperparameters``.
        Numbers have six significant digits.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    posterior: Posterior = model.posterior_
    samples, noise = posterior.smoother.samples, posterior.noise
    points, outputs = observations(posterior)
    n, d = points.shape
    inputs = _input_names(model, input_names, d)
    targets = _target_names(target_name, outputs.shape[1])

    shown = thinned(n, MAX_DATA)
    shares = _shares(posterior.common_uncertainty(points[shown]))
    told = {
        "inputs": inputs,
        "targets": targets,
        "scales": posterior.output_scale,
        "coverage": COVERAGE,
        "summary": {
            "samples": n,
            "places": samples.n_places,
            "kernel": rounded(repr(model.kernel_)),
            "noise": rounded(repr(noise)),
            "trend": model.trend or "none",
        },
        "shares": shares,
        "advice": _advice(shares),
        "data": {"shown": len(shown), "y": outputs[shown].T},
        "slices": slices(posterior, points, shown, outputs, inputs),
        "scores": score_contents(posterior),
        "hyperparameters": _hyperparameters(model, targets),
    }
    return _plain(told)  # type: ignore[no-any-return]


def _input_names(model: Any, names: Sequence[str] | None, d: int) -> list[str]:
    if names is None:
        names = getattr(model, "feature_names_in_", ["x"] if d == 1 else [f"x{j + 1}" for j in range(d)])
    names = [names] if isinstance(names, str) else [str(name) for name in names]
    if len(names) != d:
        msg = f"input_names must have {d} names, one for each column of X, got {names!r}"
        raise ValueError(msg)
    return names


def _target_names(names: str | Sequence[str] | None, n_outputs: int) -> list[str]:
    if names is None:
        names = ["y"] if n_outputs == 1 else [f"y{k + 1}" for k in range(n_outputs)]
    names = [names] if isinstance(names, str) else [str(name) for name in names]
    if len(names) != n_outputs:
        msg = f"target_name must have {n_outputs} names, one for each output, got {names!r}"
        raise ValueError(msg)
    return names


def _shares(parts: Uncertainty) -> dict[str, float]:
    """Part of each cause in the variance of a new observation, on average over the data."""
    means = {cause: float(np.mean(arrays.as_numpy(getattr(parts, cause)))) for cause in CAUSES}
    total = sum(means.values())
    return {cause: mean / total for cause, mean in means.items()}


def _advice(shares: dict[str, float]) -> str:
    """What the shares mean, in words."""
    first = max(CAUSES, key=shares.__getitem__)
    part = "Most" if shares[first] > 0.5 else "The largest part"
    words = f"{part} of the uncertainty about a new observation ({100 * shares[first]:.0f}\u00a0%) {ADVICE[first]}."
    epistemic = shares["noise"] + shares["model"]
    if first == "aleatoric" and epistemic > 0.005:
        second = max(CAUSES[:2], key=shares.__getitem__)
        words += f" Of the uncertainty about the function, {100 * shares[second] / epistemic:.0f}\u00a0% {ADVICE[second]}."
    return words


def _hyperparameters(model: Any, targets: list[str]) -> list[dict[str, Any]]:
    """Name, value and meaning of all that was set or tuned."""
    kernel, noise = model.kernel_, model.noise_
    rows = [
        {"name": name, "value": value, "meaning": "kernel"}
        for name, value in zip(kernel.names, np.exp(kernel.theta), strict=True)
    ]
    kappa = noise.cumulants(4)
    rows += [
        {
            "name": "ridge",
            "value": model.ridge_,
            "meaning": "regularization, the noise variance unless given",
        },
        {"name": "mean", "value": kappa[0], "meaning": "noise"},
        {"name": "standard deviation", "value": np.sqrt(kappa[1]), "meaning": "noise"},
        {"name": "skewness", "value": kappa[2] / kappa[1] ** 1.5, "meaning": "noise"},
        {"name": "excess kurtosis", "value": kappa[3] / kappa[1] ** 2, "meaning": "noise"},
        {"name": "log likelihood", "value": model.log_likelihood(), "meaning": "Gaussian, of the data"},
    ]
    if len(targets) > 1:
        scales = zip(targets, model.output_scale_, strict=True)
        meaning = "factor of function and noise of this output"
        rows += [{"name": f"scale of {name}", "value": scale, "meaning": meaning} for name, scale in scales]
    return rows


def _plain(value: Any) -> Any:
    """The same with lists for arrays, floats of six digits, and None for what is not finite."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str | int | None):
        return value
    array = arrays.as_numpy(value) if arrays.is_array_api(value) else np.asarray(value)
    if array.ndim:
        return [_plain(item) for item in array.tolist()]
    number = array.item()
    if isinstance(number, int):
        return number
    return float(f"{number:.6g}") if np.isfinite(number) else None
