"""Noise laws as JSON: a name from a table, numbers, and arrays.

The constructors of our own laws would change numbers in the last bit (weights are normalized again) or take long
(moments and recurrence coefficients of whatever law a file claims). A law that is loaded gets the saved numbers instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...chaos import Expansion, OrthogonalBasis
from ...noise import Mixture, Noise, Residuals, ScipyNoise, SmoothedResiduals
from ...noise.characteristic.quadrature import MAX_ATOMS
from ...noise.family import Family
from ...noise.identity import family_name
from ...validation import SMALLEST, largest
from .archive import FormatError
from .nodes import FLAG, Array, Record, check_shape, each, number

__all__ = ["CLOSE", "RECORDS", "moments_at_hand"]

MOST = 1024
"""Components of a mixture or terms of an expansion."""

CLOSE = 1e-6
"""Relative difference of numbers that are equal up to rounding, on whatever machine they were computed."""

SHAPES = 1e-4, 1e6
"""Magnitudes of the shapes for which integrals over a density can be expected to converge."""

EPS = float(np.finfo(np.float64).eps)

INTEGRALS = ("kappa4", "studentized_range", "zipfian")
"""Laws of scipy.stats whose moments take seconds although they look like formulas."""


def moments_at_hand(law: Noise) -> tuple[float, float] | None:
    """Mean and variance of a law where they are formulas; None where they are integrals, which may take long."""
    if isinstance(law, Mixture):
        parts = [moments_at_hand(component) for component in law.components]
        means, variances = np.array([part for part in parts if part is not None]).reshape(-1, 2).T
        if len(means) < len(parts):
            return None
        mean = float(law.weights @ means)
        return mean, float(law.weights @ (variances + (means - mean) ** 2))
    if isinstance(law, ScipyNoise) and not _has_formulas(law):
        return None
    return law.mean(), law.var()


def _has_formulas(law: ScipyNoise) -> bool:
    from scipy import stats

    kind: Any = type(law.frozen.dist)
    base = stats.rv_discrete if law.discrete else stats.rv_continuous
    # scipy.stats integrates where a law defines neither of these
    overridden = any(getattr(kind, name) is not getattr(base, name) for name in ("_stats", "_munp"))
    return overridden and law.name not in INTEGRALS


def _check_moments(law: Noise) -> None:
    """The variance is positive and finite, as far as a formula gives it."""
    moments = moments_at_hand(law)
    if moments is not None and not (
        abs(moments[0]) <= largest() and SMALLEST <= moments[1] ** 0.5 <= largest()
    ):
        mean, variance = moments
        raise FormatError(f"the mean {mean:g} or the variance {variance:g} of the noise is out of range")


def _named_law(dist: Any) -> str:
    """Name of a law of scipy.stats."""
    name = family_name(dist)
    if not name:
        raise TypeError(
            f"noise {dist.name!r} cannot be saved: it is code, and not one of the laws in scipy.stats. Use one of those, "
            "or draw from it and pass the draws as residuals"
        )
    return name


def _law(name: str) -> Any:
    """A continuous or discrete law of scipy.stats by its name; nothing else can be named."""
    from scipy import stats

    law = vars(stats).get(name)
    if not isinstance(law, stats.rv_continuous | stats.rv_discrete):
        raise FormatError(f"{name[:80]!r} is not a law of scipy.stats")
    return law


def _parts_of_scipy(noise: ScipyNoise) -> dict[str, Any]:
    frozen = noise.frozen
    return {
        "law": _named_law(frozen.dist),
        "args": [np.asarray(value).item() for value in frozen.args],
        "kwds": {name: np.asarray(value).item() for name, value in frozen.kwds.items()},
    }


def _scipy(law: str, args: tuple[float, ...], kwds: dict[str, float]) -> ScipyNoise:
    frozen = _law(law)(*args, **kwds)
    if np.isnan(frozen.support()).any():
        raise FormatError(f"the parameters of {law} are outside its domain")
    noise = ScipyNoise(frozen)
    moments = moments_at_hand(noise)
    if moments is None and not all(SHAPES[0] <= abs(shape) <= SHAPES[1] for shape in noise.shapes if shape):
        raise FormatError(f"the shapes of {law} are too extreme to compute its moments")
    if moments is not None and EPS * abs(moments[0] - noise.loc) > moments[1] ** 0.5:
        raise FormatError(f"{law} is narrower than the rounding of its own values")
    if noise.discrete and moments is not None and moments[1] > MAX_ATOMS**2:
        raise FormatError(f"{law} has too many values")
    return noise


def _residuals(mean: float, values: FloatArray, **probabilities: Any) -> Residuals:
    law = Residuals(values, probabilities["weights"])
    made = [law.weights, law._cumulative, law._survival]
    # The constructor would have sorted and merged them, which must have happened already.
    if not np.array_equal(law.values, values) or not all(map(_close, probabilities.values(), made)):
        raise FormatError("the residuals or their probabilities are not in order")
    law.weights, law._cumulative, law._survival = probabilities.values()
    law._mean = _checked_mean(mean, law._mean, float(np.ptp(values)))
    return law


def _smoothed_residuals(bandwidth: float, residuals: Residuals) -> SmoothedResiduals:
    law = SmoothedResiduals(residuals.values, bandwidth)
    law.residuals = residuals
    return law


def _mixture(mean: float, components: tuple[Noise, ...], weights: FloatArray) -> Mixture:
    check_shape("weights", weights, len(components))
    law = Mixture.__new__(Mixture)
    law.components, law.weights = components, weights
    if np.any(law.weights < 0) or not _close(law.weights.sum(), 1.0):
        raise FormatError("the weights of a mixture must be non-negative and sum to 1")
    law.discrete = all(component.discrete for component in law.components)
    law.costly = any(component.costly for component in law.components)
    law._mean = mean
    if (moments := moments_at_hand(law)) is not None:
        law._mean = _checked_mean(mean, moments[0], moments[1] ** 0.5)
    return law


def _basis(law: Noise, normalized: bool, size: int, alpha: FloatArray, beta: FloatArray) -> OrthogonalBasis:
    check_shape("alpha", alpha, size - 1)
    check_shape("beta", beta, size)
    if np.any(beta <= 0):
        raise FormatError("the recurrence coefficients of an expansion do not define a basis")
    basis = OrthogonalBasis.__new__(OrthogonalBasis)
    basis.law, basis.normalized, basis.alpha, basis.beta = law, normalized, alpha, beta
    basis.norms = np.asarray(np.ones(size) if normalized else np.cumprod(beta), dtype=np.float64)
    if (moments := moments_at_hand(law)) is not None:
        _checked_mean(float(alpha[0]), moments[0], moments[1] ** 0.5)
        if not _close(beta[1], moments[1]):
            raise FormatError("the basis of an expansion does not belong to its germ")
    return basis


def _close(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=CLOSE, atol=0.0))


def _checked_mean(saved: float, mean: float, width: float) -> float:
    """The saved mean, which may differ from the one computed here in its last digits."""
    if not abs(saved - mean) <= CLOSE * (width + abs(mean)):
        raise FormatError(f"the mean of the noise is {mean:g}, not {saved:g}")
    return saved


def _law_record(type_: type[Noise], entries: dict[str, Any], **options: Any) -> Record:
    return Record(type_, entries, check=_check_moments, law=True, **options)


RECORDS = [
    _law_record(
        ScipyNoise,
        {"law": str, "args": each(number()), "kwds": each(number(), kind=dict)},
        take=_parts_of_scipy,
        make=_scipy,
    ),
    _law_record(
        Residuals,
        {"mean": number(), "values": "k", "weights": "k", "cumulative": "k", "survival": "k"},
        take=lambda law: {"mean": law._mean, "cumulative": law._cumulative, "survival": law._survival},
        make=_residuals,
    ),
    _law_record(
        SmoothedResiduals,
        {"bandwidth": number(SMALLEST, largest()), "residuals": Residuals},
        make=_smoothed_residuals,
    ),
    _law_record(
        Mixture,
        {"mean": number(), "components": each(Noise, 1, MOST), "weights": "_"},
        take=lambda law: {"mean": law._mean},
        make=_mixture,
    ),
    _law_record(
        Expansion,
        {
            "basis": OrthogonalBasis,
            "coefficients": Array("_", bounded=False),
            "truncation_error": number(0.0, np.inf),
        },
    ),
    Record(
        OrthogonalBasis,
        {
            "law": Noise,
            "normalized": FLAG,
            "size": number(2, MOST, int),
            "alpha": Array("_", bounded=False),
            "beta": Array("_", bounded=False),
        },
        make=_basis,
    ),
    Record(
        Family,
        {"law": str, "loc": number(optional=True), "bounds": each(tuple, kind=dict)},
        take=lambda family: {
            "law": _named_law(family.dist),
            "bounds": {name: tuple(pair) for name, pair in family.bounds.items()},
        },
        make=lambda law, loc, bounds: Family(_law(law), loc=loc, bounds=bounds or None),
    ),
]
