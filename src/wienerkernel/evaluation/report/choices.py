"""What was learned about noise, level and transform, what was compared, and how certain the choice is."""

from __future__ import annotations

from typing import Any

from ..._typing import FloatArray
from ...noise.level import LEVELS, Level
from ...text import rounded
from ...transform import Transform
from ...tuning.learn import GAIN, MANY

__all__ = ["choices", "signed", "strength", "transform_name"]

STRENGTH = ((1.0, "hardly any difference"), (3.0, "weak"), (5.0, "strong"))
"""Upper ends of differences of log evidence, after Kass and Raftery; more than the last one is very strong."""


def transform_name(transform: Transform | None) -> str:
    """A transform in words, such as "box-cox, exponent 0.24"; empty for None."""
    if transform is None or not transform.free:
        return "" if transform is None else transform.name
    # estimates at an end of the interval are off by rounding errors
    special = {"1": ": linear"} | ({"0": ": the logarithm"} if transform.name == "box-cox" else {})
    exponent = f"{round(transform.lam, 3):g}"
    return f"{transform.name}, exponent {exponent}{special.get(exponent, '')}"


def strength(gain: float) -> str:
    """A difference of log evidence in words."""
    size = abs(gain)
    return next((word for end, word in STRENGTH if size < end), "very strong")


def signed(gain: float) -> str:
    """A difference with its sign."""
    return f"{gain:+.1f}".replace("-", "−")


def choices(model: Any, points: FloatArray) -> list[dict[str, str]]:
    """Rows ``choice``, ``found``, ``compared`` and ``sure`` of what was learned from the data; empty if nothing was."""
    tuned, posterior = model.tuning_result_, model.posterior_
    if tuned is None:
        return []
    auto = isinstance(model.noise, str) and model.noise == "auto"
    rows = []
    if auto and tuned.shape_gain is not None:
        shapes = "normal, Student, Gamma" + ", smoothed residuals" * (len(points) >= MANY)
        compared, sure = f"no other shape improves the log score by {GAIN:g}", "normal by default"
        if tuned.shape_gain:
            compared = f"leave-one-out log score {signed(tuned.shape_gain)} compared with normal noise"
            sure = strength(tuned.shape_gain)
        rows.append(("shape of the noise", f"{rounded(repr(model.noise_))}; tried: {shapes}", compared, sure))
    if auto or model.noise_level in LEVELS:
        gain = tuned.level_evidence
        found = "constant"
        if isinstance(posterior.level, Level) and posterior.level.varies:
            level = posterior.level(points)
            by = "the mean" if model.noise_level == "mean" else "the inputs"
            found = f"varies with {by}, from {level.min():.3g} to {level.max():.3g} times the noise"
        compared, sure = "too few samples to compare", "not tried"
        if gain is not None:
            compared = f"log evidence of a varying level {signed(gain)} compared with a constant one"
            sure = f"{strength(gain)}, for a {'constant' if gain < 0 else 'varying'} level"
        rows.append(("noise level", found, compared, sure))
    if tuned.transform_gain is not None:
        compared = f"log posterior {signed(tuned.transform_gain)} compared with none"
        name, sure = transform_name(posterior.transform), strength(tuned.transform_gain)
        rows.append(("transform", name, compared, sure))
    elif auto:
        rows.append(("transform", "none", "only positive observations are transformed", "not tried"))
    return [dict(zip(("choice", "found", "compared", "sure"), row, strict=True)) for row in rows]
