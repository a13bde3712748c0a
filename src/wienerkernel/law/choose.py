"""Which method for which row."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray, IntArray
from ..noise import Mixture, Noise
from .atoms import atom_sum
from .closed import ClosedForm, GammaSum, Normal, PointMass, SingleTerm, gamma_shape
from .contour import Contour, growth_on_ray
from .convolution import Convolution, is_sharp
from .fourier import TRUNCATION, Fourier, decay_point, revival, window
from .graded import Graded
from .lattice import Lattice
from .ray import Inversion
from .rows import Rows
from .uniform import MAX_TERMS, UniformSum, is_uniform

__all__ = ["METHODS", "Part", "parts"]

METHODS = ("auto", "contour", "convolution", "fourier", "lattice")
"""Names that ``LinearCombination`` accepts as ``method``."""

ANGLES = (0.6, 0.38, 0.25)
GROWTH = 2.0
"""Largest log|phi| on a ray: a digit may cancel."""
GROWTH_BEYOND = 6.0
"""And at twice the angle, since the step resolves what is analytic and moderate on both sides of the ray."""
FEW_NODES = 600
MANY_NODES, MOST_NODES = 2**12, 2**15
"""Nodes of a Fourier series from which few terms, or some, are rather convolved."""
FEW_TERMS, SOME_TERMS = 4, 8
FAST = 300.0
"""Decay that leaves few panels of a quadrature that only resolves the points that are asked for."""
MAX_CUTS = 16
"""Singular points of half a sum, and rows, that are convolved at once."""
MAX_ROWS = 256
CANCELLATION = 2e-14

Part = tuple[IntArray, Inversion]


def parts(rows: Rows, method: str) -> Iterator[Part]:
    """Divide rows among the methods: pairs of row numbers and the inversion for them."""
    remaining = np.arange(len(rows))
    for claim in (_closed, _few_atoms, _few_uniforms):
        if method == "auto" or claim is _closed:
            some = rows.take(remaining)
            left = np.ones(len(remaining), dtype=bool)
            for index, inversion in claim(some, method):
                left[index] = False
                yield remaining[index], inversion
            remaining = remaining[left]
    if len(remaining):
        invert = {
            "auto": _automatic,
            "contour": _contours,
            "convolution": _convolutions,
            "fourier": _series,
            "lattice": _lattices,
        }[method]
        for index, inversion in invert(rows.take(remaining)):
            yield remaining[index], inversion


def _closed(rows: Rows, method: str) -> Iterator[Part]:
    free = np.ones(len(rows), dtype=bool)
    for chosen, closed in _closed_forms(rows, method):
        index = np.flatnonzero(free & chosen)
        if len(index):
            free[index] = False
            yield index, closed(index)


def _closed_forms(
    rows: Rows, method: str
) -> Iterator[tuple[NDArray[np.bool_], Callable[[IntArray], ClosedForm]]]:
    v, tau2 = rows.weights, rows.normal_var
    nonzero = v != 0
    copies = nonzero @ rows.counts
    without_normal = tau2 == 0
    yield (copies == 0) & without_normal, lambda index: PointMass()  # noqa: ARG005
    if method != "auto":
        return
    normal = (copies == 0) | rows.noise.gaussian
    yield normal, lambda index: Normal(rows.mean[index])
    signed = v.sum(axis=1)
    yield (copies == 1) & without_normal, lambda index: SingleTerm(rows.noise, signed[index])
    shape = gamma_shape(rows.noise)
    if shape is not None:
        largest = np.where(signed < 0, v.min(axis=1), v.max(axis=1))
        equal = np.all((np.abs(v - largest[:, None]) <= 4e-16 * np.abs(largest[:, None])) | ~nonzero, axis=1)
        unit = rows.noise.mean() / shape
        yield (
            equal & without_normal & (copies > 0),
            lambda index: GammaSum(shape * copies[index], unit * largest[index]),
        )


def _few_atoms(rows: Rows, method: str) -> Iterator[Part]:  # noqa: ARG001
    index = np.flatnonzero(rows.normal_var == 0)
    if rows.noise.discrete and len(index):
        exact, inversion = atom_sum(rows.take(index))
        if inversion is not None:
            yield index[exact], inversion


def _few_uniforms(rows: Rows, method: str) -> Iterator[Part]:  # noqa: ARG001
    copies = (rows.weights != 0) @ rows.counts
    for n in range(2, MAX_TERMS + 1) if is_uniform(rows.noise) else ():
        index = np.flatnonzero((copies == n) & (rows.normal_var == 0))
        if len(index):
            stable = UniformSum(rows.take(index)).rounding < CANCELLATION
            if stable.any():
                yield index[stable], UniformSum(rows.take(index[stable]))


def _automatic(rows: Rows) -> Iterator[Part]:
    sharp = (rows.noise.costly or _bounded(rows)) and _has_density(rows.noise) and is_sharp(rows.noise)
    few = _convolvable(rows) & (_copies(rows) <= FEW_TERMS) if sharp else np.zeros(len(rows), dtype=bool)
    yield from _at(np.flatnonzero(few), rows, _convolutions)
    yield from _at(np.flatnonzero(~few), rows, _transforms)


def _transforms(rows: Rows) -> Iterator[Part]:
    low, high = window(rows)
    affordable = np.where(_copies(rows) <= FEW_TERMS, MANY_NODES, MOST_NODES)
    # far frequencies of a costly law are not asked for where convolution serves anyway
    if rows.noise.costly and np.all(_convolvable(rows)):
        decay = decay_point(rows, float(np.max(2 * np.pi * affordable / (high - low))))
    else:
        decay = decay_point(rows)
    nodes = decay * (high - low) / (2 * np.pi)
    many = nodes > FEW_NODES
    if rows.noise.discrete:
        back = (rows.normal_var == 0) & (revival(rows, decay) > CANCELLATION)
        if back.any():
            yield from _at(np.flatnonzero(back), rows, _lattices)
            yield from _at(np.flatnonzero(~back), rows, _series)
            return
    angle = _angles(rows, np.flatnonzero(many))
    for index in _groups(angle, np.ceil(np.log(decay)) * (angle > 0)):
        if angle[index[0]]:
            yield index, Contour(rows.take(index), float(angle[index[0]]), float(decay[index].max()))
    few = (angle == 0) & (nodes > affordable)
    if few.any():
        few &= _convolvable(rows)
    yield from _at(np.flatnonzero(few), rows, _convolutions)
    rest = (angle == 0) & ~few
    heavy = rest & (nodes > MANY_NODES) & (decay < FAST) & (not _bounded(rows)) & _has_density(rows.noise)
    for index in _groups(
        np.where(heavy, np.ceil(2 * np.log(decay)), -1.0), np.arange(float(len(rows))) // MAX_ROWS
    ):
        if heavy[index[0]]:
            yield index, Graded(rows.take(index), (low[index], high[index]), float(decay[index].max()))
    yield from _at(np.flatnonzero(rest & ~heavy), rows, _series)


def _at(index: IntArray, rows: Rows, invert: Callable[[Rows], Iterator[Part]]) -> Iterator[Part]:
    if len(index):
        for some, inversion in invert(rows.take(index)):
            yield index[some], inversion


def _contours(rows: Rows) -> Iterator[Part]:
    angle = _angles(rows, np.arange(len(rows)))
    if not np.all(angle):
        msg = f"method='contour' cannot serve {rows.noise!r} with these weights; 'auto' can"
        raise ValueError(msg)
    decay = decay_point(rows)
    for index in _groups(angle):
        yield index, Contour(rows.take(index), float(angle[index[0]]), float(decay[index].max()))


def _copies(rows: Rows) -> FloatArray:
    """Number of terms that are not 0, shape (rows,)."""
    return np.asarray((rows.weights != 0) @ rows.counts)


def _convolvable(rows: Rows) -> NDArray[np.bool_]:
    """Whether a row is a sum of few terms with a density, and a half of them has few singular points."""
    copies = _copies(rows)
    few = (copies >= 2) & (copies <= SOME_TERMS) & (rows.normal_var == 0)
    if not (few.any() and _has_density(rows.noise)):
        return np.zeros(len(rows), dtype=bool)
    return np.asarray(few & (max(1, len(rows.noise.breaks())) ** np.ceil(copies / 2) <= MAX_CUTS))


def _has_density(noise: Noise) -> bool:
    if isinstance(noise, Mixture):
        return all(_has_density(component) for component in noise.components)
    return not noise.discrete


def _convolutions(rows: Rows) -> Iterator[Part]:
    if not np.all(_convolvable(rows)):
        msg = (
            f"method='convolution' serves sums of 2 to {SOME_TERMS} terms of continuous noise with few singular "
            f"points and without a normal part; use method='auto'"
        )
        raise ValueError(msg)
    terms = np.repeat(rows.weights, rows.counts.astype(int), axis=1)
    order = np.argsort(-np.abs(terms), axis=1, kind="stable")[:, :SOME_TERMS]
    terms = np.take_along_axis(terms, order, axis=1)
    for index in _groups(*np.sign(terms).T, np.arange(float(len(terms))) // MAX_ROWS):
        some = terms[index]
        yield index, Convolution(rows.noise, some[:, some[0] != 0])


def _series(rows: Rows) -> Iterator[Part]:
    low, high = window(rows)
    decay = decay_point(rows)
    alias = np.full(len(rows), TRUNCATION)
    if rows.noise.discrete:
        alias = alias + np.where(rows.normal_var == 0, revival(rows, decay), 0.0)
    for index in _groups(np.ceil(2 * np.log(decay)), np.ceil(2 * np.log(high - low))):
        yield (
            index,
            Fourier(rows.take(index), (low[index], high[index]), float(decay[index].max()), alias[index]),
        )


def _lattices(rows: Rows) -> Iterator[Part]:
    if np.any(rows.normal_var > 0) or not rows.noise.discrete:
        msg = "method='lattice' serves discrete noise without a normal part; use method='auto'"
        raise ValueError(msg)
    yield np.arange(len(rows)), Lattice(rows, window(rows))


def _bounded(rows: Rows) -> bool:
    return bool(np.all(np.isfinite(rows.noise.support())))


def _angles(rows: Rows, index: IntArray) -> FloatArray:
    """Angle of the contour a row, 0 where there is none that keeps its digits."""
    result = np.zeros(len(rows))
    if _bounded(rows) or rows.noise.discrete or rows.noise.sector() <= 0:
        return result
    for angle in ANGLES:
        if not len(index):
            break
        theta = min(angle, 0.45 * rows.noise.sector())
        some = rows.take(index)
        fits = (growth_on_ray(some, theta) < GROWTH) & (growth_on_ray(some, 2 * theta) < GROWTH_BEYOND)
        result[index[fits]] = theta
        index = index[~fits]
    return result


def _groups(*keys: FloatArray) -> Iterator[IntArray]:
    """Row numbers that share all keys."""
    table = np.stack(keys, axis=1)
    _, inverse = np.unique(table, axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(inverse.ravel()[order])) + 1)
