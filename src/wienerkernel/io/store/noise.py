"""Noise laws as JSON: a name from a table, numbers, and arrays.

The constructors of our own laws would change numbers in the last bit (weights are normalized again) or take long
(moments and recurrence coefficients of whatever law a file claims). A law that is loaded gets the saved numbers instead.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ...chaos import Expansion, OrthogonalBasis
from ...noise import Mixture, Noise, Residuals, ScipyNoise, SmoothedResiduals
from ...noise.characteristic.quadrature import MAX_ATOMS
from ...noise.family import Family
from ...noise.identity import family_name
from ...validation import SMALLEST, check_size, largest
from .archive import FormatError
from .nodes import Node, Reader, Writer, as_plain, choice, entries, from_plain, items, number, of_kind

__all__ = ["family_from", "family_node", "moments_at_hand", "noise_from", "noise_node"]

DEEPEST, MOST = 16, 1024
"""Levels of laws made of laws, and components of a mixture or terms of an expansion."""

CLOSE = 1e-6
"""Relative difference of numbers that are equal up to rounding, on whatever machine they were computed."""

SHAPES = 1e-4, 1e6
"""Magnitudes of the shapes for which integrals over a density can be expected to converge."""

EPS = float(np.finfo(np.float64).eps)

INTEGRALS = ("kappa4", "studentized_range", "zipfian")
"""Laws of scipy.stats whose moments take seconds although they look like formulas."""


def noise_node(noise: Noise, writer: Writer, name: str, level: int = 0) -> Node:
    """Describe a law inside of ``level`` others; the names of its arrays begin with ``name``.

    TypeError for a law that is code: a class of another library, a distribution that is not in scipy.stats.
    """
    if level > DEEPEST:
        raise ValueError(f"the noise cannot be saved: it is nested more than {DEEPEST} deep")
    kind = next((kind for kind, law in LAWS.items() if law.type is type(noise)), None)
    if kind is None:
        raise TypeError(
            f"noise {noise!r} cannot be saved: {type(noise).__name__} is code, and a saved model holds numbers only. Use "
            "a frozen law of scipy.stats, residuals, a Mixture or an Expansion"
        )
    if isinstance(noise, Expansion) and noise.basis.size > MOST:
        raise ValueError(f"the noise cannot be saved: its expansion has more than {MOST} terms")
    values = {key: attrgetter(attribute)(noise) for key, attribute in LAWS[kind].attributes.items()}
    return {
        "kind": kind,
        **{key: _node(value, writer, f"{name}.{key}", level) for key, value in values.items()},
    }


def _node(value: Any, writer: Writer, name: str, level: int) -> Node:
    """Describe what a law is made of: laws, arrays, numbers, and distributions of scipy.stats."""
    if isinstance(value, Noise):
        return noise_node(value, writer, name, level + 1)
    if isinstance(value, np.ndarray):
        return writer.array(name, value)
    if hasattr(value, "freeze"):
        return _named_law(value)
    if isinstance(value, dict):
        return {key: as_plain(part, f"{name}.{key}") for key, part in value.items()}
    if isinstance(value, tuple):
        if len(value) > MOST:
            raise ValueError(f"the noise cannot be saved: it has more than {MOST} components")
        return [_node(part, writer, f"{name}.{k}", level) for k, part in enumerate(value)]
    return as_plain(value, name)


def noise_from(node: Node, reader: Reader, level: int = 0) -> Noise:
    """The law that a node describes; its variance is positive and finite, as far as a formula gives it."""
    kind = of_kind(node, LAWS, "noise law")
    if level > DEEPEST:
        raise FormatError(f"the noise is nested more than {DEEPEST} deep")
    _, *values = entries(node, "kind", *kind.attributes)
    law = kind.read(reader, level, *values)
    moments = moments_at_hand(law)
    if moments is not None and not (
        abs(moments[0]) <= largest() and SMALLEST <= moments[1] ** 0.5 <= largest()
    ):
        mean, variance = moments
        raise FormatError(f"the mean {mean:g} or the variance {variance:g} of the noise is out of range")
    return law


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


def _scipy(_reader: Reader, _level: int, law: Node, args: Node, kwds: Node) -> ScipyNoise:
    if not isinstance(args, list):
        raise FormatError(f"the parameters of {str(law)[:80]} must be a list")
    frozen = _law(law)(*map(number, args), **{key: number(value) for key, value in items(kwds)})
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


def _residuals(reader: Reader, _level: int, mean: Node, array: Node, *probabilities: Node) -> Residuals:
    values = reader.array(array, (None,))
    check_size("values", values)
    saved = [reader.array(node, values.shape) for node in probabilities]
    law = Residuals(values, saved[0])
    made = [law.weights, law._cumulative, law._survival]
    # The constructor would have sorted and merged them, which must have happened already.
    if not np.array_equal(law.values, values) or not all(map(_close, saved, made)):
        raise FormatError("the residuals or their probabilities are not in order")
    law.weights, law._cumulative, law._survival = saved
    law._mean = _checked_mean(mean, law._mean, float(np.ptp(values)))
    return law


def _smoothed_residuals(reader: Reader, level: int, bandwidth: Node, inner: Node) -> SmoothedResiduals:
    residuals = noise_from(inner, reader, level + 1)
    if not isinstance(residuals, Residuals):
        raise FormatError("only residuals can be smoothed")
    law = SmoothedResiduals(residuals.values, number(bandwidth, SMALLEST, largest()))
    law.residuals = residuals
    return law


def _mixture(reader: Reader, level: int, mean: Node, parts: Node, weights: Node) -> Mixture:
    if not isinstance(parts, list) or not 0 < len(parts) <= MOST:
        raise FormatError(f"a mixture needs a list of components, at most {MOST}")
    law = Mixture.__new__(Mixture)
    law.components = tuple(noise_from(part, reader, level + 1) for part in parts)
    law.weights = reader.array(weights, (len(parts),))
    if np.any(law.weights < 0) or not _close(law.weights.sum(), 1.0):
        raise FormatError("the weights of a mixture must be non-negative and sum to 1")
    law.discrete = all(component.discrete for component in law.components)
    law.costly = any(component.costly for component in law.components)
    law._mean = number(mean)
    if (moments := moments_at_hand(law)) is not None:
        law._mean = _checked_mean(mean, moments[0], moments[1] ** 0.5)
    return law


def _expansion(reader: Reader, level: int, germ: Node, *basis_and_terms: Node) -> Expansion:
    normalized, alphas, betas, terms, error = basis_and_terms
    coefficients = reader.array(terms, (None,))
    size = len(coefficients)
    alpha, beta = reader.array(alphas, (size - 1,)), reader.array(betas, (size,))
    basis = OrthogonalBasis.__new__(OrthogonalBasis)
    basis.law, basis.normalized = noise_from(germ, reader, level + 1), choice(normalized, True, False)
    basis.norms = np.asarray(np.ones(size) if normalized else np.cumprod(beta), dtype=np.float64)
    basis.alpha, basis.beta = alpha, beta
    if np.any(beta <= 0) or not 1 < size <= MOST:
        raise FormatError("the recurrence coefficients of an expansion do not define a basis")
    if (moments := moments_at_hand(basis.law)) is not None:
        _checked_mean(float(alpha[0]), moments[0], moments[1] ** 0.5)
        if not _close(beta[1], moments[1]):
            raise FormatError("the basis of an expansion does not belong to its germ")
    return Expansion(basis, coefficients, number(error, 0.0, np.inf))


def _close(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=CLOSE, atol=0.0))


def _checked_mean(node: Node, mean: float, width: float) -> float:
    """The saved mean, which may differ from the one computed here in its last digits."""
    saved = number(node)
    if not abs(saved - mean) <= CLOSE * (width + abs(mean)):
        raise FormatError(f"the mean of the noise is {mean:g}, not {saved:g}")
    return saved


class _Stored(NamedTuple):
    """How a law is stored: the attribute of each entry, and the function that makes the law of the entries."""

    type: type[Noise]
    read: Callable[..., Noise]
    attributes: dict[str, str]


PROBABILITIES = {"weights": "weights", "cumulative": "_cumulative", "survival": "_survival"}
BASIS = {"normalized": "basis.normalized", "alpha": "basis.alpha", "beta": "basis.beta"}
TERMS = {"coefficients": "coefficients", "truncation_error": "truncation_error"}
FROZEN = {"law": "frozen.dist", "args": "frozen.args", "kwds": "frozen.kwds"}
SMOOTHED = {"bandwidth": "bandwidth", "residuals": "residuals"}
MIXED = {"mean": "_mean", "components": "components", "weights": "weights"}
LAWS = {
    "scipy": _Stored(ScipyNoise, _scipy, FROZEN),
    "residuals": _Stored(Residuals, _residuals, {"mean": "_mean", "values": "values", **PROBABILITIES}),
    "smoothed_residuals": _Stored(SmoothedResiduals, _smoothed_residuals, SMOOTHED),
    "mixture": _Stored(Mixture, _mixture, MIXED),
    "expansion": _Stored(Expansion, _expansion, {"germ": "germ", **BASIS, **TERMS}),
}


def family_node(family: Family) -> Node:
    """Describe a family whose scale and shapes are free."""
    bounds = {name: as_plain(list(pair), f"bounds of {name}") for name, pair in family.bounds.items()}
    return {"kind": "family", "law": _named_law(family.dist), "loc": family.loc, "bounds": bounds}


def family_from(node: Node) -> Family:
    """The family that a node describes."""
    _, law, loc, bounds = entries(node, "kind", "law", "loc", "bounds")
    pairs = {name: from_plain(pair) for name, pair in items(bounds)}
    return Family(_law(law), loc=None if loc is None else number(loc), bounds=pairs or None)


def _law(name: Node) -> Any:
    """A continuous or discrete law of scipy.stats by its name; nothing else can be named."""
    from scipy import stats

    law = vars(stats).get(name) if isinstance(name, str) else None
    if not isinstance(law, stats.rv_continuous | stats.rv_discrete):
        raise FormatError(f"{str(name)[:80]!r} is not a law of scipy.stats")
    return law


def _named_law(dist: Any) -> str:
    """Name of a law of scipy.stats."""
    name = family_name(dist)
    if not name:
        raise TypeError(
            f"noise {dist.name!r} cannot be saved: it is code, and not one of the laws in scipy.stats. Use one of those, "
            "or draw from it and pass the draws as residuals"
        )
    return name
