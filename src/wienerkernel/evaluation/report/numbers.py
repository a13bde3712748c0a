"""Everything that a report shows, as one dictionary of plain numbers, lists and strings.

The mean is given for each output. The laws of all outputs are the same up to the mean and a scale, so tubes, variances
and densities are given once, as deviations from the mean and without the scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backend import arrays
from ...palette import CAUSES
from ...posterior import Posterior, Uncertainty
from ...posterior.separate import causes
from ...text import rounded
from ...transform import Transform
from .scores import score_contents, thinned
from .slices import COVERAGE, observations, slices

__all__ = ["contents", "default_names", "transform_name"]

MAX_DATA = 1000
ADVICE = {
    "noise": "comes from the {cause}: more samples reduce it, also at the same inputs",
    "input": "comes from the {cause}: more samples reduce it, and more accurate inputs",
    "model": "comes from {cause}: samples at new inputs reduce it",
    "aleatoric": "comes from the {cause}: more samples do not reduce it, but better measurements or inputs that were not "
    "recorded may",
}


def contents(
    model: Any, *, input_names: Sequence[str] | None = None, target_name: str | Sequence[str] | None = None
) -> dict[str, Any]:
    """Compute what a report of a fitted model shows, ready for JSON; the arguments are those of `write_report`."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    posterior: Posterior = model.posterior_
    samples, noise = posterior.smoother.samples, posterior.noise
    points, outputs = observations(posterior)
    n, d = points.shape
    inputs = default_names(model) if input_names is None else _names("input_names", input_names, d, "x")
    targets = _names("target_name", target_name, outputs.shape[1], "y")

    shown = thinned(n, MAX_DATA)
    shares = _shares(posterior.common_uncertainty(points[shown]), causes(posterior))
    report = {
        "inputs": inputs,
        "targets": targets,
        "scales": posterior.output_scale,
        "coverage": COVERAGE,
        "summary": {
            "samples": n,
            "places": samples.n_places,
            "kernel": rounded(repr(model.kernel_)),
            "noise": rounded(repr(noise)),
            "trend": posterior.smoother.trend.kind or "none",
            "transform": transform_name(posterior.transform),
        },
        "shares": shares,
        "advice": _advice(shares),
        "data": {"shown": len(shown), "y": outputs[shown].T},
        "slices": slices(posterior, points, shown, outputs, inputs),
        "scores": score_contents(posterior),
        "hyperparameters": _hyperparameters(model, targets),
    }
    return _plain(report)  # type: ignore[no-any-return]


def default_names(model: Any) -> list[str]:
    """Names of the columns that a model was fitted to; by default x, or x1, x2, ..."""
    return _names("input_names", getattr(model, "feature_names_in_", None), model.n_features_in_, "x")


def transform_name(transform: Transform | None) -> str:
    """A transform in words, such as "box-cox, exponent 0.24"; empty for None."""
    if transform is None or not transform.free:
        return "" if transform is None else transform.name
    # estimates at an end of the interval are off by rounding errors
    special = {"1": ": linear"} | ({"0": ": the logarithm"} if transform.name == "box-cox" else {})
    exponent = f"{round(transform.lam, 3):g}"
    return f"{transform.name}, exponent {exponent}{special.get(exponent, '')}"


def _names(argument: str, given: str | Sequence[str] | None, n: int, letter: str) -> list[str]:
    """The given names of n columns; by default a letter, numbered if there are several."""
    if given is None:
        return [letter] if n == 1 else [f"{letter}{k + 1}" for k in range(n)]
    names = [given] if isinstance(given, str) else [str(name) for name in given]
    if len(names) != n:
        raise ValueError(f"{argument} must have {n} names, one per column, got {names!r}")
    return names


def _shares(parts: Uncertainty, names: Sequence[str]) -> dict[str, float]:
    """Fraction of each cause in the variance of a new observation, averaged over the data."""
    means = {cause: float(np.mean(arrays.as_numpy(getattr(parts, cause)))) for cause in names}
    total = sum(means.values())
    return {cause: mean / total for cause, mean in means.items()}


def _advice(shares: dict[str, float]) -> str:
    """What the shares mean, in words."""
    first = max(shares, key=shares.__getitem__)
    part = "Most" if shares[first] > 0.5 else "The largest part"
    text = f"{part} of the variance of a new observation ({100 * shares[first]:.0f}\u00a0%) {_advise(first)}."
    epistemic = 1 - shares["aleatoric"]
    if first == "aleatoric" and epistemic > 0.005:
        second = max((cause for cause in shares if cause != "aleatoric"), key=shares.__getitem__)
        text += f" Of the variance of the function, {100 * shares[second] / epistemic:.0f}\u00a0% {_advise(second)}."
    return text


def _advise(cause: str) -> str:
    return ADVICE[cause].format(cause=CAUSES[cause])


def _hyperparameters(model: Any, targets: list[str]) -> list[dict[str, Any]]:
    """Name, value and meaning of all parameters that were set or tuned."""
    kernel, noise = model.kernel_, model.noise_
    kappa = noise.cumulants(4)
    rows = [(name, value, "kernel") for name, value in zip(kernel.names, np.exp(kernel.theta), strict=True)]
    rows += [
        ("ridge", model.ridge_, "regularization; by default the noise variance"),
        ("mean", kappa[0], "noise"),
        ("standard deviation", np.sqrt(kappa[1]), "noise"),
        ("skewness", kappa[2] / kappa[1] ** 1.5, "noise"),
        ("excess kurtosis", kappa[3] / kappa[1] ** 2, "noise"),
        ("log likelihood", model.log_likelihood(), "data, under a Gaussian process"),
    ]
    if len(targets) > 1:
        meaning = "factor of the function and the noise of this output"
        scales = zip(targets, model.output_scale_, strict=True)
        rows += [(f"scale of {name}", scale, meaning) for name, scale in scales]
    return [{"name": name, "value": value, "meaning": meaning} for name, value, meaning in rows]


def _plain(value: Any) -> Any:
    """Lists for arrays, floats with six digits, and None for what is not finite."""
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
