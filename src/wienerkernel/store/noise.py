"""Laws of the noise as JSON: a name from a table, numbers, and arrays.

Our own laws hold numbers that their constructors would change in the last bit (weights are normalised again) or take
long to find (moments and recurrence coefficients of whatever law a file claims). They get the saved numbers instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..chaos import Expansion, OrthogonalBasis
from ..noise import Mixture, Noise, Residuals, ScipyNoise, SmoothedResiduals
from ..noise.family import Family
from ..noise.identity import family_name
from .archive import FormatError
from .nodes import Node, Reader, Writer, as_plain, entries, from_plain

__all__ = ["family_from", "family_node", "noise_from", "noise_node"]


def noise_node(noise: Noise, writer: Writer, name: str) -> Node:
    """Describe a law of the noise.

    Parameters
    ----------
    noise : Noise
    writer : Writer
        Receives its arrays.
    name : str
        How their names begin.

    Returns
    -------
    Node

    Raises
    ------
    TypeError
        For a law that is code: a class that is not of this library, a distribution that is not in scipy.stats.

    Examples
    --------
    >>> from wienerkernel import as_noise
    >>> noise_node(as_noise("gamma(0.25, scale=2)"), Writer(), "noise")
    {'kind': 'scipy', 'law': 'gamma', 'args': [0.25], 'kwds': {'scale': 2.0}}
    """
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
        components = [noise_node(part, writer, f"{name}.{k}") for k, part in enumerate(noise.components)]
        weights = writer.array(f"{name}.weights", noise.weights)
        return {"kind": "mixture", "mean": noise._mean, "components": components, "weights": weights}
    if type(noise) is Expansion:
        basis = noise.basis
        return {
            "kind": "expansion",
            "germ": noise_node(noise.germ, writer, f"{name}.germ"),
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


def noise_from(node: Node, reader: Reader) -> Noise:
    """The law that a node describes.

    Parameters
    ----------
    node : Node
    reader : Reader

    Returns
    -------
    Noise

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> writer = Writer()
    >>> node = noise_node(Residuals([-1.0, 0.0, 2.0]), writer, "noise")
    >>> noise_from(node, Reader(SimpleNamespace(array=writer.arrays.pop))).support()
    (-1.0, 2.0)
    """
    kind = str(node.get("kind")) if isinstance(node, dict) else str(node)
    if kind not in READERS:
        raise FormatError(f"model.json: {kind[:80]!r} is not a law of the noise that can be saved")
    return READERS[kind](node, reader)


def _scipy(node: Node, _reader: Reader) -> Noise:
    _, law, args, kwds = entries(node, "kind", "law", "args", "kwds")
    numbers, named = from_plain(args), {key: from_plain(value) for key, value in entries_of(kwds)}
    if not isinstance(numbers, tuple) or not all(map(_is_number, (*numbers, *named.values()))):
        raise FormatError(f"model.json: the parameters of {str(law)[:80]} must be numbers")
    frozen = _law(law)(*numbers, **named)
    if np.isnan(frozen.support()).any():
        raise FormatError(f"model.json: the parameters of {law} are outside its domain")
    return ScipyNoise(frozen)


def _residuals(node: Node, reader: Reader) -> Residuals:
    _, mean, *parts = entries(node, "kind", "mean", "values", "weights", "cumulative", "survival")
    values = reader.array(parts[0], (None,))
    weights, cumulative, survival = (reader.array(part, values.shape) for part in parts[1:])
    law = Residuals(values, weights)
    steps = np.diff(np.stack([values, cumulative, -survival]), axis=1)
    if np.any(steps[0] <= 0) or np.any(steps[1:] < 0) or cumulative[-1] != 1 or survival[-1] != 0:
        raise FormatError("the residuals or their probabilities are not in order")
    law.weights, law._mean, law._cumulative, law._survival = weights, _number(mean), cumulative, survival
    return law


def _smoothed_residuals(node: Node, reader: Reader) -> SmoothedResiduals:
    _, bandwidth, inner = entries(node, "kind", "bandwidth", "residuals")
    residuals = _residuals(inner, reader)
    law = SmoothedResiduals(residuals.values, _number(bandwidth))
    law.residuals = residuals
    return law


def _mixture(node: Node, reader: Reader) -> Mixture:
    _, mean, parts, weights = entries(node, "kind", "mean", "components", "weights")
    if not isinstance(parts, list) or not parts:
        raise FormatError("model.json: a mixture needs a list of components")
    law = Mixture.__new__(Mixture)
    law.components = tuple(noise_from(part, reader) for part in parts)
    law.weights = reader.array(weights, (len(parts),))
    if np.any(law.weights < 0) or not abs(float(law.weights.sum()) - 1) < 1e-9:
        raise FormatError("the weights of a mixture must not be negative, and their sum must be 1")
    law.discrete = all(component.discrete for component in law.components)
    law.costly = any(component.costly for component in law.components)
    law._mean = _number(mean)
    return law


def _expansion(node: Node, reader: Reader) -> Expansion:
    _, germ, normalized, *parts, error = entries(
        node, "kind", "germ", "normalized", "alpha", "beta", "coefficients", "truncation_error"
    )
    coefficients = reader.array(parts[2], (None,))
    size = len(coefficients)
    alpha, beta = reader.array(parts[0], (size - 1,)), reader.array(parts[1], (size,))
    if not isinstance(normalized, bool) or not _is_number(from_plain(error)) or np.any(beta <= 0):
        raise FormatError("model.json: the basis of an expansion is not one")
    basis = OrthogonalBasis.__new__(OrthogonalBasis)
    basis._law, basis._normalized = noise_from(germ, reader), normalized
    basis._norms = np.asarray(np.ones(size) if normalized else np.cumprod(beta), dtype=np.float64)
    basis._alpha, basis._beta = alpha, beta
    return Expansion(basis, coefficients, from_plain(error))


READERS: dict[str, Callable[[Node, Reader], Noise]] = {
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

    Examples
    --------
    >>> family_node(Family("gamma", bounds={"a": (0.1, 9.0)}))
    {'kind': 'family', 'law': 'gamma', 'loc': None, 'bounds': {'a': [0.1, 9.0]}}
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

    Examples
    --------
    >>> family_from(family_node(Family("gamma", loc=0.0)))
    Family('gamma', loc=0.0)
    """
    _, law, loc, bounds = entries(node, "kind", "law", "loc", "bounds")
    pairs = {name: from_plain(pair) for name, pair in entries_of(bounds)}
    return Family(_law(law), loc=None if loc is None else _number(loc), bounds=pairs or None)


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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(node: Node) -> float:
    if not _is_number(from_plain(node)) or not np.isfinite(from_plain(node)):
        raise FormatError(f"model.json: expected a finite number, got {str(node)[:80]!r}")
    return float(node)
