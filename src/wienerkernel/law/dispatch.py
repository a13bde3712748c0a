"""Which method for which row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray, IntArray
from ..noise import Noise, as_noise
from .atoms import AtomSum, SmoothedAtoms, atom_sum
from .closed import ClosedForm, GammaSum, Normal, PointMass, SingleTerm, gamma_shape
from .components import MOST_CHOICES, ComponentSum, choices, components
from .contour import Contour, growth_on_ray
from .convolution import Convolution, is_sharp, scaled_pieces
from .fourier import DECAY, TRUNCATION, Fourier, decay_point, revival, window
from .graded import Graded
from .lattice import Lattice, affordable
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
NARROW = 0.02
"""A normal part below it, beside the whole, makes few terms hardly smoother,"""
FEW_ATOMS = 2**12
"""and a wider one leaves so many atoms to be summed one by one."""
POOR = 1e-9
"""Error of a Fourier series that a bracket on a lattice may improve."""

Part = tuple[IntArray, Inversion]


def parts(rows: Rows, method: str) -> Iterator[Part]:
    """Divide rows among the methods: pairs of row numbers and the inversion for them."""
    remaining = np.arange(len(rows))
    for claim in (_closed, _few_atoms, _few_uniforms):
        if len(remaining) and (method == "auto" or claim is _closed):
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
    without_normal = rows.normal_var == 0
    yield (rows.copies == 0) & without_normal, lambda index: PointMass()  # noqa: ARG005
    if method != "auto":
        return
    yield rows.copies == 0, lambda index: Normal(rows.mean[index])
    for terms in rows.terms:
        alone = (rows.copies == terms.copies) & without_normal
        v = terms.weights
        signed = v.sum(axis=1)
        yield alone & (terms.copies == 1), partial(_single, terms.noise, signed)
        shape = gamma_shape(terms.noise)
        if shape is not None:
            largest = np.where(signed < 0, v.min(axis=1), v.max(axis=1))
            near = np.abs(v - largest[:, None]) <= 4e-16 * np.abs(largest[:, None])
            equal = np.all(near | (v == 0), axis=1)
            unit = terms.noise.mean() / shape
            yield alone & equal, partial(_gamma, shape * terms.copies, unit * largest)


def _single(noise: Noise, weight: FloatArray, index: IntArray) -> ClosedForm:
    return SingleTerm(noise, weight[index])


def _gamma(shape: FloatArray, scale: FloatArray, index: IntArray) -> ClosedForm:
    return GammaSum(shape[index], scale[index])


def _few_atoms(rows: Rows, method: str) -> Iterator[Part]:  # noqa: ARG001
    discrete = np.flatnonzero(rows.discrete)
    if not len(discrete):
        return
    index, halves = atom_sum(rows.take(discrete))
    index = discrete[index]
    tau = np.sqrt(rows.normal_var[index])
    number = np.array([len(left.values) * len(right.values) for left, right in halves])
    for chosen, smoothed in ((tau == 0, False), ((tau > 0) & ((tau < NARROW) | (number <= FEW_ATOMS)), True)):
        some = np.flatnonzero(chosen)
        if len(some):
            exact = [halves[i] for i in some]
            yield index[some], SmoothedAtoms(exact, tau[some]) if smoothed else AtomSum(exact)


def _few_uniforms(rows: Rows, method: str) -> Iterator[Part]:  # noqa: ARG001
    for n in range(2, MAX_TERMS + 1) if all(is_uniform(terms.noise) for terms in rows.terms) else ():
        index = np.flatnonzero((rows.copies == n) & (rows.normal_var == 0))
        if len(index):
            stable = UniformSum(rows.take(index)).rounding < CANCELLATION
            if stable.any():
                yield index[stable], UniformSum(rows.take(index[stable]))


def _automatic(rows: Rows) -> Iterator[Part]:
    few = rows.atomic & (rows.normal_var == 0)
    rough = [terms.noise for terms in rows.terms if not terms.noise.atomic]
    if (rows.costly or rows.bounded) and rough and all(map(is_sharp, rough)):
        few = few | ((rows.copies <= FEW_TERMS) & (rows.normal_var < NARROW**2))
    if few.any():
        few &= _convolvable(rows)
    yield from _at(np.flatnonzero(few), rows, _convolutions)
    yield from _at(np.flatnonzero(~few), rows, _transforms)


def _transforms(rows: Rows) -> Iterator[Part]:
    low, high = window(rows)
    affordable = np.where(rows.copies <= FEW_TERMS, MANY_NODES, MOST_NODES)
    # far frequencies of a costly law are not asked for where convolution serves anyway
    if rows.costly and np.all(_convolvable(rows)):
        decay = decay_point(rows, float(np.max(2 * np.pi * affordable / (high - low))))
    else:
        decay = decay_point(rows)
    nodes = decay * (high - low) / (2 * np.pi)
    many = nodes > FEW_NODES
    angle = _angles(rows, np.flatnonzero(many))
    for index in _groups(angle, np.ceil(np.log(decay)) * (angle > 0)):
        if angle[index[0]]:
            yield index, Contour(rows.take(index), float(angle[index[0]]), float(decay[index].max()))
    few = (angle == 0) & (nodes > affordable)
    if few.any():
        few &= _convolvable(rows)
    yield from _at(np.flatnonzero(few), rows, _convolutions)
    rest = (angle == 0) & ~few
    heavy = rest & (nodes > MANY_NODES) & (decay < FAST) & (not rows.bounded) & ~rows.atomic
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
        msg = f"method='contour' cannot serve {rows.terms[0].noise!r} with these weights; 'auto' can"
        raise ValueError(msg)
    decay = decay_point(rows)
    for index in _groups(angle):
        yield index, Contour(rows.take(index), float(angle[index[0]]), float(decay[index].max()))


def _convolvable(rows: Rows) -> NDArray[np.bool_]:
    """Whether a row is a sum of few terms that can be convolved as they are, or by the components of a mixture."""
    return _by_law(rows) | _by_components(rows)


def _is_few(rows: Rows) -> NDArray[np.bool_]:
    """Whether a row has few terms, the normal part included."""
    terms = rows.copies + (rows.normal_var > 0)
    return np.asarray((terms >= 2) & (terms <= SOME_TERMS))


def _by_law(rows: Rows) -> NDArray[np.bool_]:
    """Whether a row is a sum of few terms with a density, and half of them have few singular points."""
    few = _is_few(rows)
    cuts = np.ones(len(rows))
    for terms in rows.terms if few.any() else ():
        if terms.noise.atomic:
            few &= terms.copies == 0
        else:
            cuts *= max(1, len(terms.noise.singular_points())) ** np.ceil(terms.copies / 2)
    return np.asarray(few & (cuts <= MAX_CUTS))


def _by_components(rows: Rows) -> NDArray[np.bool_]:
    """Whether a row has few terms, some of them mixtures or discrete ones, that leave few choices of components."""
    several = any(len(components(terms.noise)) > 1 or terms.noise.discrete for terms in rows.terms)
    few = _is_few(rows) & ~rows.discrete
    if not (several and few.any()):
        return np.zeros(len(rows), dtype=bool)
    number = np.array([choices(rows, row) for row in range(len(rows))])
    return few & (number <= np.where(rows.copies <= FEW_TERMS, MOST_CHOICES, MOST_CHOICES // 4))


def _convolutions(rows: Rows) -> Iterator[Part]:
    by_law = ~_by_components(rows)
    if not np.all(_by_law(rows)[by_law]):
        msg = (
            f"method='convolution' serves sums of 2 to {SOME_TERMS} terms, the normal part included, of noise with few "
            f"singular points or of a mixture of few components; use method='auto'"
        )
        raise ValueError(msg)
    yield from _at(
        np.flatnonzero(~by_law), rows, lambda some: iter([(np.arange(len(some)), ComponentSum(some))])
    )
    index = np.flatnonzero(by_law)
    if not len(index):
        return
    some = rows.take(index)
    copies = some.counts.astype(int)
    weights, law = np.repeat(some.weights, copies, axis=1), np.repeat(np.arange(len(copies)), copies)
    std = np.array([noise.std() for noise in some.laws])[law]
    order = np.argsort(-np.abs(weights) * std, axis=1, kind="stable")[:, :SOME_TERMS]
    weights, law = np.take_along_axis(weights, order, axis=1), law[order]
    tau = np.sqrt(some.normal_var)
    keys = (
        np.sign(weights).T,
        np.where(weights != 0, law, -1).T,
        tau[None] > 0,
        np.arange(len(some))[None] // MAX_ROWS,
    )
    for group in _groups(*np.concatenate(keys).astype(float)):
        columns = zip(weights[group].T, law[group[0]], strict=True)
        laws = [scaled_pieces(some.laws[k], column) for column, k in columns if column[0] != 0]
        if tau[group[0]]:
            laws.append(scaled_pieces(as_noise(None), tau[group]))
        yield index[group], Convolution(laws)


def _series(rows: Rows) -> Iterator[Part]:
    for index, series in _windows(rows):
        poor = series.left_out > POOR
        if poor.any() and affordable(rows.take(index[poor])):
            yield from _at(index[poor], rows, _lattices)
            yield from _at(index[~poor], rows, _series)
        else:
            yield index, series


def _lattices(rows: Rows) -> Iterator[Part]:
    for index, series in _windows(rows):
        yield index, Lattice(series)


def _windows(rows: Rows) -> Iterator[tuple[IntArray, Fourier]]:
    """Fourier series on common windows, for rows that need about as many frequencies."""
    low, high = window(rows)
    decay = decay_point(rows)
    alias = np.full(len(rows), TRUNCATION)
    # a law with atoms comes back unless it is the normal part that has decayed
    back = np.flatnonzero(rows.atomic & (0.5 * rows.normal_var * decay**2 < DECAY))
    if len(back):
        alias[back] += revival(rows.take(back), decay[back])
    for index in _groups(np.ceil(2 * np.log(decay)), np.ceil(2 * np.log(high - low))):
        ends = low[index], high[index]
        yield index, Fourier(rows.take(index), ends, float(decay[index].max()), alias[index])


def _angles(rows: Rows, index: IntArray) -> FloatArray:
    """Angle of the contour a row, 0 where there is none that keeps its digits."""
    result = np.zeros(len(rows))
    if rows.bounded or rows.atomic.all() or rows.sector <= 0:
        return result
    index = index[~rows.atomic[index]]
    for angle in ANGLES:
        if not len(index):
            break
        theta = min(angle, 0.45 * rows.sector)
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
