"""Laws of the noise as JSON: a name from a table, numbers, and arrays.

Our own laws hold numbers that their constructors would change in the last bit (weights are normalized again) or take
long to find (moments and recurrence coefficients of whatever law a file claims). They get the saved numbers instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...chaos import Expansion, OrthogonalBasis
from ...noise import Mixture, Noise, Residuals, ScipyNoise, SmoothedResiduals
from ...noise.family import Family
from ...noise.identity import family_name
from ...noise.scipy_law import MAX_ATOMS
from ...validation import SMALLEST, check_size, largest
from .archive import FormatError
from .nodes import Node, Reader, Writer, as_plain, choice, entries, from_plain, number

__all__ = ["family_from", "family_node", "moments_at_hand", "noise_from", "noise_node"]

DEEPEST, MOST = 16, 1024
"""Levels of laws that are made of laws, and components of a mixture or terms of an expansion."""

CLOSE = 1e-6
"""Relative difference of numbers that are the same up to rounding, on whatever machine they were computed."""

SHAPES = 1e-4, 1e6
"""Magnitudes of the shapes for which integrals over a density can be hoped for."""

INTEGRALS = ("kappa4", "studentized_range", "zipfian")
"""Laws of scipy.stats whose moments take seconds although they look like formulas."""


def noise_node(noise: Noise, writer: Writer, name: str, level: int = 0) -> Node:
    """Describe a law of the noise.

    Parameters
    ----------
    noise : Noise
    writer : Writer
        Receives its arrays.
    name : str
        How their names begin.
    level : int, default=0
        How many laws this one is inside of.

    Returns
    -------
    Node

    Raises
    ------
    TypeError
        For a law that is code: a class that is not of this library, a distribution that is not in scipy.stats.
    """
    if level > DEEPEST:
        raise ValueError(f"the noise cannot be saved: it is nested more than {DEEPEST} deep")
    if type(noise) is ScipyNoise:
        law, frozen = _named_law(noise.frozen.dist), noise.frozen
        kwds = {key: as_plain(value, f"noise: {key}") for key, value in frozen.kwds.items()}
        return {
            "kind": "scipy",
            "law": law,
            "args": as_plain(list(frozen.args), f"noise: {law}"),
            "kwds": kwds,
        }
    if type(noise) is Residuals:
        parts = {
            "values": noise.values,
            "weights": noise.weights,
            "cumulative": noise._cumulative,
            "survival": noise._survival,
        }
        node = {key: writer.array(f"{name}.{key}", part) for key, part in parts.items()}
        return {"kind": "residuals", "mean": noise._mean, **node}
    if type(noise) is SmoothedResiduals:
        residuals = noise_node(noise.residuals, writer, f"{name}.residuals")
        return {"kind": "smoothed_residuals", "bandwidth": noise.bandwidth, "residuals": residuals}
    if type(noise) is Mixture:
        if len(noise.components) > MOST:
            raise ValueError(f"the noise cannot be saved: it has more than {MOST} components")
        components = [
            noise_node(part, writer, f"{name}.{k}", level + 1) for k, part in enumerate(noise.components)
        ]
        weights = writer.array(f"{name}.weights", noise.weights)
        return {"kind": "mixture", "mean": noise._mean, "components": components, "weights": weights}
    if type(noise) is Expansion:
        basis = noise.basis
        if basis.size > MOST:
            raise ValueError(f"the noise cannot be saved: its expansion has more than {MOST} terms")
        return {
            "kind": "expansion",
            "germ": noise_node(noise.germ, writer, f"{name}.germ", level + 1),
            "normalized": basis.normalized,
            "alpha": writer.array(f"{name}.alpha", basis.alpha),
            "beta": writer.array(f"{name}.beta", basis.beta),
            "coefficients": writer.array(f"{name}.coefficients", noise.coefficients),
            "truncation_error": as_plain(noise.truncation_error, "truncation_error"),
        }
    raise TypeError(
        f"noise {noise!r} cannot be saved: {type(noise).__name__} is code, and a saved model holds numbers only. Use a "
        "frozen law of scipy.stats, residuals, a Mixture or an Expansion"
    )


def noise_from(node: Node, reader: Reader, level: int = 0) -> Noise:
    """The law that a node describes; its variance is positive and finite, as far as it is at hand.

    Parameters
    ----------
    node : Node
    reader : Reader
    level : int, default=0
        How many laws this one is inside of.

    Returns
    -------
    Noise
    """
    kind = str(node.get("kind")) if isinstance(node, dict) else str(node)
    if kind not in READERS:
        raise FormatError(f"model.json: {kind[:80]!r} is not a law of the noise that can be saved")
    if level > DEEPEST:
        raise FormatError(f"model.json: the noise is nested more than {DEEPEST} deep")
    law = READERS[kind](node, reader, level)
    moments = moments_at_hand(law)
    if moments is not None and not (
        abs(moments[0]) <= largest() and SMALLEST <= moments[1] ** 0.5 <= largest()
    ):
        mean, variance = moments
        raise FormatError(
            f"model.json: the mean {mean:g} or the variance {variance:g} of the noise is out of range"
        )
    return law


def moments_at_hand(law: Noise) -> tuple[float, float] | None:
    """Mean and variance of a law, where they are formulas; integrals are left to the first who asks for them.

    Parameters
    ----------
    law : Noise

    Returns
    -------
    tuple of float, or None
    """
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


def _scipy(node: Node, _reader: Reader, _level: int) -> Noise:
    _, law, args, kwds = entries(node, "kind", "law", "args", "kwds")
    if not isinstance(args, list):
        raise FormatError(f"model.json: the parameters of {str(law)[:80]} must be a list")
    named = {key: number(value) for key, value in entries_of(kwds)}
    frozen = _law(law)(*map(number, args), **named)
    if np.isnan(frozen.support()).any():
        raise FormatError(f"model.json: the parameters of {law} are outside its domain")
    noise = ScipyNoise(frozen)
    moments = moments_at_hand(noise)
    if moments is None and not all(SHAPES[0] <= abs(shape) <= SHAPES[1] for shape in noise.shapes if shape):
        raise FormatError(f"model.json: the shapes of {law} are too extreme for its moments to be found")
    if noise.discrete and moments is not None and moments[1] > MAX_ATOMS**2:
        raise FormatError(f"model.json: {law} has too many values")
    return noise


def _residuals(node: Node, reader: Reader, _level: int) -> Residuals:
    _, mean, *parts = entries(node, "kind", "mean", "values", "weights", "cumulative", "survival")
    values = reader.array(parts[0], (None,))
    check_size("values", values)
    saved = [reader.array(part, values.shape) for part in parts[1:]]
    law = Residuals(values, saved[0])
    made = [law.weights, law._cumulative, law._survival]
    # The constructor would have sorted and merged them, which must have happened already.
    if not np.array_equal(law.values, values) or not all(map(_close, saved, made)):
        raise FormatError("the residuals or their probabilities are not in order")
    law.weights, law._cumulative, law._survival = saved
    law._mean = _checked_mean(mean, law._mean, float(np.ptp(values)))
    return law


def _smoothed_residuals(node: Node, reader: Reader, level: int) -> SmoothedResiduals:
    _, bandwidth, inner = entries(node, "kind", "bandwidth", "residuals")
    residuals = _residuals(inner, reader, level)
    law = SmoothedResiduals(residuals.values, number(bandwidth, SMALLEST, largest()))
    law.residuals = residuals
    return law


def _mixture(node: Node, reader: Reader, level: int) -> Mixture:
    _, mean, parts, weights = entries(node, "kind", "mean", "components", "weights")
    if not isinstance(parts, list) or not 0 < len(parts) <= MOST:
        raise FormatError(f"model.json: a mixture needs a list of components, at most {MOST}")
    law = Mixture.__new__(Mixture)
    law.components = tuple(noise_from(part, reader, level + 1) for part in parts)
    law.weights = reader.array(weights, (len(parts),))
    if np.any(law.weights < 0) or not _close(law.weights.sum(), 1.0):
        raise FormatError("the weights of a mixture must not be negative, and their sum must be 1")
    law.discrete = all(component.discrete for component in law.components)
    law.costly = any(component.costly for component in law.components)
    law._mean = number(mean)
    if (moments := moments_at_hand(law)) is not None:
        law._mean = _checked_mean(mean, moments[0], moments[1] ** 0.5)
    return law


def _expansion(node: Node, reader: Reader, level: int) -> Expansion:
    _, germ, normalized, *parts, error = entries(
        node, "kind", "germ", "normalized", "alpha", "beta", "coefficients", "truncation_error"
    )
    coefficients = reader.array(parts[2], (None,))
    size = len(coefficients)
    alpha, beta = reader.array(parts[0], (size - 1,)), reader.array(parts[1], (size,))
    basis = OrthogonalBasis.__new__(OrthogonalBasis)
    basis._law, basis._normalized = noise_from(germ, reader, level + 1), choice(normalized, True, False)
    basis._norms = np.asarray(np.ones(size) if normalized else np.cumprod(beta), dtype=np.float64)
    basis._alpha, basis._beta = alpha, beta
    if np.any(beta <= 0) or not 1 < size <= MOST:
        raise FormatError("the basis of an expansion is not one")
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
        raise FormatError(f"model.json: the mean of the noise is {mean:g}, not {saved:g}")
    return saved


READERS: dict[str, Callable[[Node, Reader, int], Noise]] = {
    "expansion": _expansion,
    "mixture": _mixture,
    "residuals": _residuals,
    "scipy": _scipy,
    "smoothed_residuals": _smoothed_residuals,
}


def family_node(family: Family) -> Node:
    """Describe a family whose scale and shapes are free.

    Parameters
    ----------
    family : Family

    Returns
    -------
    Node
    """
    bounds = {name: as_plain(list(pair), f"bounds of {name}") for name, pair in family.bounds.items()}
    return {"kind": "family", "law": _named_law(family.dist), "loc": family.loc, "bounds": bounds}


def family_from(node: Node) -> Family:
    """The family that a node describes.

    Parameters
    ----------
    node : Node

    Returns
    -------
    Family
    """
    _, law, loc, bounds = entries(node, "kind", "law", "loc", "bounds")
    pairs = {name: from_plain(pair) for name, pair in entries_of(bounds)}
    return Family(_law(law), loc=None if loc is None else number(loc), bounds=pairs or None)


def entries_of(node: Node) -> list[tuple[str, Node]]:
    """Names and values of a JSON object with any names."""
    if not isinstance(node, dict):
        raise FormatError(f"model.json: expected entries with names, got {type(node).__name__}")
    return list(node.items())


def _laws() -> dict[str, Any]:
    """The continuous and discrete laws of scipy.stats, by name; there is no other way from a name to a law."""
    from scipy import stats

    kinds = (stats.rv_continuous, stats.rv_discrete)
    return {name: law for name, law in vars(stats).items() if isinstance(law, kinds)}


def _law(name: Node) -> Any:
    law = _laws().get(name) if isinstance(name, str) else None
    if law is None:
        raise FormatError(f"model.json: {str(name)[:80]!r} is not a law of scipy.stats")
    return law


def _named_law(dist: Any) -> str:
    """Name of a law of scipy.stats."""
    name = family_name(dist)
    if not name:
        raise TypeError(
            f"noise {dist.name!r} cannot be saved: it is not one of the laws in scipy.stats but code of its own. Use one of "
            "those, or draw from it and pass the draws as residuals"
        )
    return name
