"""Everything that a report shows, as one dictionary of plain numbers, lists and strings.

The mean is given for each output. The laws of all outputs are the same up to the mean and a scale, so tubes, variances
and densities are given once, as deviations from the mean and without the scales.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...backend import arrays
from ...losses.posterior import CoordinatePosterior, FullPosterior
from ...palette import CAUSES
from ...posterior import Uncertainty
from ...posterior.separate import SeparateOutputs, causes
from ...text import rounded
from ..relevance import Variable, exclusive, relevance, variables
from .choices import choices, transform_name
from .scores import score_contents, thinned
from .slices import COVERAGE, AnyPosterior, observations, slices, surface

__all__ = ["contents", "default_names", "single_models", "target_names", "transform_name", "unit_of"]

MAX_DATA = 1000
MAX_SLICES = 8
NEGLIGIBLE = 1e-12
UNIT = re.compile(r"(?:\s\(|\s?\[)([^()\[\]]{1,20})[)\]]\s*$")
PER_INPUT = re.compile(r"(?<=length_scale)\[(\d+)\]$")
ADVICE = {
    "noise": f"comes from the {CAUSES['noise']}: more samples reduce it, also at the same inputs",
    "input": f"comes from the {CAUSES['input']}: more samples reduce it, and more accurate inputs",
    "model": f"comes from {CAUSES['model']}: samples at new inputs reduce it",
    "computational": f"comes from the {CAUSES['computational']} of the equations: more neighbors or features reduce it",
    "aleatoric": f"comes from the {CAUSES['aleatoric']}, which is noise or the effect of inputs that were not measured: "
    "more samples do not reduce it",
}


def contents(
    model: Any, *, input_names: Sequence[str] | None = None, target_name: str | Sequence[str] | None = None
) -> dict[str, Any]:
    """Compute what a report of a fitted model shows, ready for JSON; the arguments are those of `write_report`."""
    posterior: AnyPosterior = model.posterior_
    approximation = str(getattr(model, "approximation_", ""))
    points, outputs = observations(posterior)
    # without rounding errors of zero, such as those of cos(pi/2)
    points = np.where(np.abs(points) < NEGLIGIBLE * np.abs(points).max(axis=0), 0.0, points)
    places, setting = None, ""
    if isinstance(posterior, CoordinatePosterior):
        places, setting = len(posterior.observed.places), posterior.setting
    elif not approximation:
        places = posterior.smoother.samples.n_places
    n, d = points.shape
    inputs = default_names(model) if input_names is None else _names("input_names", input_names, d, "x")
    targets = target_names(target_name, outputs.shape[1])

    shown = thinned(n, MAX_DATA)
    shares = _shares(posterior.common_uncertainty(points[shown]), causes(posterior))
    together = exclusive(points)
    every = variables(inputs, points, together)
    changes = relevance(posterior, points, together)[[variable.columns[0] for variable in every]]
    spread = np.where(np.ptp(outputs, axis=0) > 0, outputs.std(axis=0), 1.0)
    first = np.argsort(-np.max(changes / spread, axis=1), kind="stable")[:MAX_SLICES]
    relevant = [every[k] for k in sorted(first.tolist())]
    report: dict[str, Any] = {
        "inputs": [variable.name for variable in every],
        "targets": targets,
        "scales": posterior.output_scale,
        "coverage": COVERAGE,
        "summary": {
            "samples": posterior.n_samples,
            "places": places,
            "approximation": approximation,
            "nonlinear": setting,
            "kernel": rounded(repr(model.kernel_)),
            "noise": rounded(repr(posterior.noise)),
            "trend": model.trend or "none",
            "transform": transform_name(posterior.transform),
        },
        "columns": _columns(model, points, outputs, every, targets, changes),
        "one_hot": any(not v.values and together[v.columns[0]].any() for v in every),
        "shares": shares,
        "advice": _advice(shares),
        "choices": choices(model, points),
        "data": {"shown": len(shown), "x": points[shown].T if d == 2 else []},
        "surface": surface(posterior, points) if len(every) == d else None,
        "slices": slices(posterior, points, outputs, shown, relevant, every),
        "scores": score_contents(posterior, relevant),
        "hyperparameters": _hyperparameters(model, inputs, targets),
    }
    return _plain(report)  # type: ignore[no-any-return]


def default_names(model: Any) -> list[str]:
    """Names of the columns that a model was fitted to; by default x, or x1, x2, ..."""
    return _names("input_names", getattr(model, "feature_names_in_", None), model.n_features_in_, "x")


def single_models(model: Any) -> list[Any]:
    """Models of outputs that have one kernel and one noise law: the model itself, or one for each output."""
    posterior = model.posterior_
    if not isinstance(posterior, SeparateOutputs):
        return [model]
    parts = []
    for k, one in enumerate(posterior.outputs):
        parts.append(part := copy(model))
        part.posterior_ = one
        for name in ("kernel_", "noise_", "ridge_", "tuning_result_"):
            whole = getattr(model, name)
            setattr(part, name, None if whole is None else whole[k])
    return parts


def target_names(given: str | Sequence[str] | None, n: int) -> list[str]:
    """Names of n outputs; by default y, or y1, y2, ..."""
    return _names("target_name", given, n, "y")


def unit_of(name: str) -> str:
    """The unit at the end of a column name, as in "time [ms]" or "speed (m/s)"; empty if there is none."""
    found = UNIT.search(name)
    return found[1].strip() if found else ""


def _columns(
    model: Any,
    points: FloatArray,
    outputs: FloatArray,
    every: list[Variable],
    targets: list[str],
    changes: FloatArray,
) -> list[dict[str, Any]]:
    """Name, unit and range of each column; inputs have a relevance, an entry for each output, and most relevant first.

    Categories have their number of values instead of a range.
    """
    transform = model.posterior_.transform
    observed = outputs if transform is None else transform.inverse(outputs)
    order = np.argsort(-changes.max(axis=1), kind="stable")
    columns = [(Variable(name, [k]), observed, None) for k, name in enumerate(targets)]
    columns += [(every[j], points, changes[j]) for j in order]
    return [
        {
            "name": variable.name,
            "unit": unit_of(variable.name),
            "values": len(variable.values),
            "range": _range(variable.coordinate(table)) if not variable.values else [],
            "relevance": change,
        }
        for variable, table, change in columns
    ]


def _range(column: FloatArray) -> FloatArray:
    low, median, high = column.min(), float(np.median(column)), column.max()
    return np.array([low, median if abs(median) > NEGLIGIBLE * max(-low, high) else 0.0, high])


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
    text = f"{part} of the variance of a new observation ({100 * shares[first]:.0f}\u00a0%) {ADVICE[first]}."
    epistemic = 1 - shares["aleatoric"]
    if first == "aleatoric" and epistemic > 0.005:
        second = max((cause for cause in shares if cause != "aleatoric"), key=shares.__getitem__)
        text += f" Of the variance of the function, {100 * shares[second] / epistemic:.0f}\u00a0% {ADVICE[second]}."
    return text


def _hyperparameters(model: Any, inputs: list[str], targets: list[str]) -> list[dict[str, Any]]:
    """Name, value and meaning of all parameters that were set or tuned."""

    def named(parameter: str) -> str:
        """The input instead of its number, for parameters that have a value for each."""
        return PER_INPUT.sub(lambda found: f", {inputs[int(found[1])]}", parameter)

    kernel, noise, posterior = model.kernel_, model.noise_, model.posterior_
    kappa = noise.cumulants(4)
    rows = [
        (named(name), value, "kernel") for name, value in zip(kernel.names, np.exp(kernel.theta), strict=True)
    ]
    if not isinstance(posterior, FullPosterior):
        rows += [("ridge", model.ridge_, "regularization; by default the noise variance")]
    rows += [
        ("mean", kappa[0] if abs(kappa[0]) > NEGLIGIBLE * noise.std() else 0.0, "noise"),
        ("standard deviation", np.sqrt(kappa[1]), "noise"),
        ("skewness", kappa[2] / kappa[1] ** 1.5, "noise"),
        ("excess kurtosis", kappa[3] / kappa[1] ** 2, "noise"),
    ]
    if not (hasattr(model, "approximation_") or isinstance(posterior, CoordinatePosterior)):
        rows += [("log likelihood", model.log_likelihood(), "data, under a Gaussian process")]
    if len(targets) > 1:
        meaning = "factor of the function and the noise of this output"
        scales = zip(targets, model.output_scale_, strict=True)
        rows += [(f"scale of {name}", scale, meaning) for name, scale in scales]
    return [{"name": name, "value": value, "meaning": meaning} for name, value, meaning in rows]


def _plain(value: Any, digits: int = 6) -> Any:
    """Lists for arrays, floats with six digits, more if values differ little, and None for what is not finite."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, digits) for item in value]
    if isinstance(value, str | int | None):
        return value
    array = arrays.as_numpy(value) if arrays.is_array_api(value) else np.asarray(value)
    if array.ndim:
        finite = array[np.isfinite(array)] if array.dtype.kind == "f" else np.zeros(0)
        spread = np.ptp(finite) if finite.size else 0.0
        digits = int(np.clip(6 + np.log10(np.abs(finite).max() / spread), 6, 15)) if spread else 6
        return _plain(array.tolist(), digits)
    number = array.item()
    if isinstance(number, int):
        return number
    return float(f"{number:.{digits}g}") if np.isfinite(number) else None
