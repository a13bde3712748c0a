"""The choice of a method for each row.

With ``method="auto"`` a row is evaluated by the first of these methods that applies:

1. closed forms: a point mass, a normal law, one term alone, gamma terms of one scale;
2. atoms, if all terms are discrete and take few values together: sums over all of them;
3. uniform terms, up to seven: the formula of their volume;
4. convolution: of two terms with poles, jumps or atoms, and of few terms with one singular point and a costly phi;
5. a contour, if a Fourier series needs many nodes and phi continues into a sector without growing;
6. corners, if a Fourier series is long and phi at high frequencies is known from the singular points of the density;
7. convolution of few terms, if a Fourier series needs very many nodes;
8. graded panels, for heavy tails whose phi decays fast: a series would need a period as long as the tail;
9. a Fourier series, which always applies, or a bracket on a lattice where it states a large error.

The first three are exact, and convolutions keep their relative accuracy in the tails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray, IntArray
from .atoms import AtomSum, SmoothedAtoms, atom_sum
from .closed import MAX_UNIFORM, NORMAL, GammaSum, Normal, PointMass, SingleTerm, UniformSum, gamma_shape
from .components import MOST_CHOICES, ComponentSum, choices
from .contour import Contour, growth_on_ray
from .convolution import Convolution, is_sharp, scaled_pieces
from .corner_tail import corner_sums
from .corners import components
from .divisible import is_whole
from .fourier import DECAY, TRUNCATION, Fourier, Lattice, affordable, decay_point, revival, window
from .graded import MAX_NODES, NEAR, NODES, PHASE, Graded
from .ray import Inversion
from .rows import Rows

__all__ = ["METHODS", "Part", "parts"]

# closed forms
SAME_WEIGHT = 4e-16
"""Relative difference of weights that are equal up to the rounding of their standardization."""
CANCELLATION = 2e-14
"""Error of a sum over uniform terms, whose signs alternate, up to which it is used."""
# atoms and convolutions
NARROW = 0.02
"""Normal part, beside the whole, below which it hardly smooths atoms or poles."""
FEW_ATOMS = 2**12
"""Atoms that are summed one by one under a wider normal part, which a Fourier series would serve as well."""
FEW_TERMS, SOME_TERMS = 4, 8
"""Terms that are convolved in two halves of two; and at most, where the transform is very long."""
MOST_TERMS = 16
"""Terms whose corners are combined, row by row."""
MAX_CUTS = 32
"""Singular points of half a sum, half as many beyond FEW_TERMS: a convolution costs their square."""
MAX_ROWS = 256
"""Rows that are convolved, or inverted on graded panels, at once; their tables stay below some 100 MB."""
# transforms
FEW_NODES = 600
"""Nodes of a Fourier series that cost less than the choice of a contour."""
MANY_NODES, MOST_NODES = 2**12, 2**15
"""Nodes of a Fourier series above which few terms, or some, are convolved instead."""
ANGLES = (0.6, 0.38, 0.25)
"""Angles of contours, the steepest first: the number of nodes grows as 1/angle."""
GROWTH, GROWTH_BEYOND = 2.0, 6.0
"""Largest log|phi| on a ray, where a digit may cancel, and at twice the angle, up to which the step resolves phi."""
FAST = 300.0
"""Decay that leaves few panels to graded nodes."""
POOR = 1e-9
"""Error of a Fourier series that a bracket on a lattice may improve."""

Part = tuple[IntArray, Inversion]


class _Candidates(Rows):
    """Rows that no method has taken yet, with the length of the Fourier series that they need."""

    def __init__(self, rows: Rows, automatic: bool) -> None:
        super().__init__(rows.terms, rows.normal_var)
        self.automatic = automatic

    def take(self, index: IntArray) -> _Candidates:
        """The candidates with these indices; what is known of them is kept."""
        rows = super().take(index)
        if rows is self:
            return self
        taken = _Candidates(rows, self.automatic)
        if "window" in self.__dict__:
            taken.__dict__["window"] = self.window[0][index], self.window[1][index]
        if "decay" in self.__dict__:
            taken.__dict__["decay"] = self.decay[index]
        return taken

    @cached_property
    def window(self) -> tuple[FloatArray, FloatArray]:
        """Interval that holds the mass, each end of shape (rows,)."""
        return window(self)

    @cached_property
    def decay(self) -> FloatArray:
        """Frequency beyond which phi is practically 0, shape (rows,)."""
        # high frequencies of a costly law are not evaluated where a convolution will do
        if self.automatic and self.costly and np.all(_convolvable(self)):
            low, high = self.window
            return decay_point(self, float(np.max(2 * np.pi * self.affordable / (high - low))))
        return decay_point(self)

    @property
    def nodes(self) -> FloatArray:
        """Nodes of a Fourier series, shape (rows,)."""
        return self.decay * (self.window[1] - self.window[0]) / (2 * np.pi)

    @property
    def affordable(self) -> NDArray[np.int_]:
        """Nodes of a Fourier series that cost less than a convolution, shape (rows,)."""
        return np.where(self.copies <= FEW_TERMS, MANY_NODES, MOST_NODES)


Claim = Callable[[_Candidates], Iterator[Part]]


def parts(rows: Rows, method: str) -> Iterator[Part]:
    """Divide rows among the methods: pairs of row indices and the inversion for them."""
    candidates, number = _Candidates(rows, method == "auto"), np.arange(len(rows))
    for claim in METHODS[method]:
        if not len(number):
            return
        free = np.ones(len(number), dtype=bool)
        for index, inversion in claim(candidates):
            free[index] = False
            yield number[index], inversion
        if not free.all():
            left = np.flatnonzero(free)
            candidates, number = candidates.take(left), number[left]


def _at(chosen: NDArray[np.bool_], rows: _Candidates, claim: Claim) -> Iterator[Part]:
    """What a claim yields for the chosen rows only."""
    index = np.flatnonzero(chosen)
    if len(index):
        for some, inversion in claim(rows.take(index)):
            yield index[some], inversion


def _groups(chosen: NDArray[np.bool_], *keys: FloatArray) -> Iterator[IntArray]:
    """Indices of chosen rows that share all keys."""
    index = np.flatnonzero(chosen)
    if len(index):
        _, inverse = np.unique(np.stack(keys, axis=1)[index], axis=0, return_inverse=True)
        order = np.argsort(inverse.ravel(), kind="stable")
        yield from np.split(index[order], np.flatnonzero(np.diff(inverse.ravel()[order])) + 1)


# closed forms


def _no_terms(rows: _Candidates) -> Iterator[Part]:
    # without the sorting of `_groups`, because every normal prediction comes here
    for point in (True, False):
        index = np.flatnonzero((rows.copies == 0) & ((rows.normal_var == 0) == point))
        if len(index):
            yield index, PointMass() if point else Normal()


def _single_terms(rows: _Candidates) -> Iterator[Part]:
    alone = (np.count_nonzero(rows.weights, axis=1) == 1) & (rows.copies == 1) & (rows.normal_var == 0)
    for terms in rows.terms:
        index = np.flatnonzero(alone & (terms.copies == 1))
        if len(index):
            yield index, SingleTerm(terms.noise, terms.weights[index].sum(axis=1))


def _gammas(rows: _Candidates) -> Iterator[Part]:
    shapes = [gamma_shape(terms.noise) for terms in rows.terms]
    known = [(terms, shape) for terms, shape in zip(rows.terms, shapes, strict=True) if shape is not None]
    if not known:
        return
    # v times the scale of the law, and the shape that each weight adds
    scales = np.concatenate([terms.weights * (terms.noise.mean() / shape) for terms, shape in known], axis=1)
    shape = np.concatenate([shape * terms.counts for terms, shape in known])
    used = scales != 0
    largest = np.take_along_axis(scales, np.argmax(np.abs(scales), axis=1)[:, None], axis=1)
    equal = np.all((np.abs(scales - largest) <= SAME_WEIGHT * np.abs(largest)) | ~used, axis=1)
    alone = np.count_nonzero(rows.weights, axis=1) == np.count_nonzero(scales, axis=1)
    index = np.flatnonzero(alone & equal & (rows.copies > 0) & (rows.normal_var == 0))
    if len(index):
        yield index, GammaSum(used[index] @ shape, largest[index, 0])


def _atoms(rows: _Candidates) -> Iterator[Part]:
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


def _uniforms(rows: _Candidates) -> Iterator[Part]:
    uniform = all(getattr(terms.noise, "name", None) == "uniform" for terms in rows.terms)
    for n in range(2, MAX_UNIFORM + 1) if uniform else ():
        index = np.flatnonzero((rows.copies == n) & (rows.normal_var == 0))
        if len(index):
            stable = UniformSum(rows.take(index)).rounding < CANCELLATION
            if stable.any():
                yield index[stable], UniformSum(rows.take(index[stable]))


# convolutions


def _rough_terms(rows: _Candidates) -> Iterator[Part]:
    """Convolutions where phi hardly decays, because all terms have atoms, or poles and jumps."""
    few = rows.atomic & (rows.copies <= 2) & (rows.normal_var == 0)
    continuous = [terms.noise for terms in rows.terms if not terms.noise.atomic]
    if (rows.costly or rows.bounded) and continuous and all(map(is_sharp, continuous)):
        # between several singular points, the cost grows fast with the number of terms
        simple = rows.costly and all(len(law.singular_points()) == 1 for law in continuous)
        most, tau = (SOME_TERMS, NARROW) if simple else (2, 0.0)
        few = few | ((rows.copies <= most) & (rows.normal_var <= tau**2))
    if few.any():
        yield from _at(few & _convolvable(rows), rows, _convolutions)


def _long_series(rows: _Candidates) -> Iterator[Part]:
    """Convolutions where a Fourier series is very long."""
    few = rows.nodes > rows.affordable
    if few.any():
        yield from _at(few & _convolvable(rows), rows, _convolutions)


def _convolvable(rows: Rows) -> NDArray[np.bool_]:
    """Whether a row is a sum of few terms that can be convolved as they are, or by the components of a mixture."""
    return _by_law(rows) | _by_components(rows)


def _is_whole(rows: Rows) -> NDArray[np.bool_]:
    """Whether all terms of a row have whole counts."""
    return np.asarray(np.all((rows.weights == 0) | is_whole(rows.counts), axis=1))


def _is_few(rows: Rows) -> NDArray[np.bool_]:
    """Whether a row has few terms but for discrete ones, and two in total with the normal part, and whole counts."""
    several = rows.copies + (rows.normal_var > 0) >= 2
    smooth = sum(terms.copies * (not terms.noise.discrete) for terms in rows.terms)
    return np.asarray(several & (smooth <= SOME_TERMS) & _is_whole(rows))


def _by_law(rows: Rows) -> NDArray[np.bool_]:
    """Whether a row is a sum of few terms with a density, and half of them have few singular points."""
    few = _is_few(rows)
    cuts = np.where(rows.normal_var > 0, 2.0, 1.0)  # a normal law is cut in two
    for terms in rows.terms if few.any() else ():
        if terms.noise.atomic:
            few &= terms.copies == 0
        else:
            cuts *= max(1, len(terms.noise.singular_points())) ** np.ceil(terms.copies / 2)
    return np.asarray(few & (cuts <= np.where(rows.copies <= FEW_TERMS, MAX_CUTS, MAX_CUTS // 2)))


def _by_components(rows: Rows) -> NDArray[np.bool_]:
    """Whether a row has few terms, some of them mixtures or discrete, that leave few choices of components."""
    several = any(len(components(terms.noise)) > 1 or terms.noise.discrete for terms in rows.terms)
    few = _is_few(rows) & ~rows.discrete
    if not (several and few.any()):
        return np.zeros(len(rows), dtype=bool)
    number = np.array([choices(rows, row) for row in range(len(rows))])
    return few & (number <= np.where(rows.copies <= FEW_TERMS, MOST_CHOICES, MOST_CHOICES // 4))


def _convolutions(rows: _Candidates) -> Iterator[Part]:
    _need_whole_counts(rows, "convolution")
    by_components = _by_components(rows)
    if not np.all(by_components | _by_law(rows)):
        msg = (
            f"method='convolution' serves sums of 2 to {SOME_TERMS} terms and a normal part, of noise with few "
            f"singular points or of a mixture of few components; use method='auto'"
        )
        raise ValueError(msg)
    if by_components.any():
        index = np.flatnonzero(by_components)
        yield index, ComponentSum(rows.take(index))
    yield from _at(~by_components, rows, _by_pieces)


def _by_pieces(rows: _Candidates) -> Iterator[Part]:
    copies = rows.counts.astype(int)
    weights, law = np.repeat(rows.weights, copies, axis=1), np.repeat(np.arange(len(copies)), copies)
    std = np.array([noise.std() for noise in rows.laws])[law]
    order = np.argsort(-np.abs(weights) * std, axis=1, kind="stable")[:, :SOME_TERMS]
    weights, law = np.take_along_axis(weights, order, axis=1), law[order]
    tau = np.sqrt(rows.normal_var)
    keys = (
        *np.sign(weights).T,
        *np.where(weights != 0, law, -1).T,
        tau > 0,
        np.arange(len(rows)) // MAX_ROWS,
    )
    for group in _groups(np.ones(len(rows), dtype=bool), *(key.astype(float) for key in keys)):
        columns = zip(weights[group].T, law[group[0]], strict=True)
        laws = [scaled_pieces(rows.laws[k], column) for column, k in columns if column[0] != 0]
        if tau[group[0]]:
            laws.append(scaled_pieces(NORMAL, tau[group]))
        yield group, Convolution(laws)


def _need_whole_counts(rows: Rows, method: str) -> None:
    if not np.all(is_whole(rows.counts)):
        msg = (
            f"method={method!r} needs whole counts of {rows.terms[0].noise!r}, got {rows.counts.tolist()}; "
            "use method='auto'"
        )
        raise ValueError(msg)


# transforms


def _contours(rows: _Candidates) -> Iterator[Part]:
    """Contours where a Fourier series is long."""
    angle = _angles(rows, rows.nodes > FEW_NODES)
    yield from _on_contours(rows, angle, np.ceil(np.log(rows.decay)))


def _all_contours(rows: _Candidates) -> Iterator[Part]:
    angle = _angles(rows, np.ones(len(rows), dtype=bool))
    if not np.all(angle):
        msg = f"method='contour' cannot serve {rows.terms[0].noise!r} with these weights; 'auto' can"
        raise ValueError(msg)
    yield from _on_contours(rows, angle)


def _on_contours(rows: _Candidates, angle: FloatArray, *keys: FloatArray) -> Iterator[Part]:
    for index in _groups(angle > 0, angle, *keys):
        decay = float(rows.decay[index].max())
        yield index, Contour(rows.take(index), float(angle[index[0]]), decay)


def _angles(rows: Rows, wanted: NDArray[np.bool_]) -> FloatArray:
    """Angle of the contour of each row, 0 where none is wanted or none keeps its digits."""
    result = np.zeros(len(rows))
    if rows.bounded or rows.atomic.all() or rows.sector <= 0:
        return result
    index = np.flatnonzero(wanted & ~rows.atomic)
    for angle in ANGLES:
        if not len(index):
            break
        theta = min(angle, 0.45 * rows.sector)
        some = rows.take(index)
        fits = (growth_on_ray(some, theta) < GROWTH) & (growth_on_ray(some, 2 * theta) < GROWTH_BEYOND)
        result[index[fits]] = theta
        index = index[~fits]
    return result


def _costly_terms(rows: _Candidates) -> Iterator[Part]:
    """Corners where the frequencies at which phi has decayed would be costly to find."""
    few = (rows.copies <= SOME_TERMS) & (rows.costly | rows.atomic) & (rows.normal_var < NARROW**2)
    yield from _at(few, rows, _cornered)


def _slow_decay(rows: _Candidates) -> Iterator[Part]:
    """Corners where a Fourier series is long."""
    yield from _at(rows.nodes > FEW_NODES, rows, _cornered)


def _cornered(rows: _Candidates) -> Iterator[Part]:
    """Panels up to the frequency from which on phi is known by the corners of the density."""
    low, high = rows.window
    few = (rows.copies <= MOST_TERMS) & _is_whole(rows)
    index = np.flatnonzero(few & ~(rows.discrete & (rows.normal_var == 0)))
    if not len(index):
        return
    reach = np.minimum(NEAR, np.maximum(high - rows.mean, rows.mean - low))
    sums, frequency = corner_sums(rows.take(index)), np.full(len(rows), np.inf)
    known = {i: row for i, row in zip(index, sums, strict=True) if row is not None}
    for i, row in known.items():
        frequency[i] = row.frequency(PHASE * MAX_NODES / (NODES * reach[i]))
    keys = np.ceil(2 * np.log(frequency)), np.arange(float(len(rows))) // MAX_ROWS
    for group in _groups(np.isfinite(frequency), *keys):
        corners = [known[i] for i in group]
        ends = low[group], high[group]
        yield group, Graded(rows.take(group), ends, float(frequency[group].max()), corners)


def _heavy_tails(rows: _Candidates) -> Iterator[Part]:
    decay = rows.decay
    heavy = (rows.nodes > MANY_NODES) & (decay < FAST) & (not rows.bounded) & ~rows.atomic
    low, high = rows.window
    for index in _groups(heavy, np.ceil(2 * np.log(decay)), np.arange(float(len(rows))) // MAX_ROWS):
        yield index, Graded(rows.take(index), (low[index], high[index]), float(decay[index].max()))


def _series(rows: _Candidates) -> Iterator[Part]:
    for index, series in _windows(rows):
        poor = np.zeros(len(rows), dtype=bool)
        poor[index] = series.left_out > POOR
        some = rows.take(np.flatnonzero(poor))
        if poor.any() and affordable(some) and np.all(is_whole(some.counts)):
            fine = np.zeros(len(rows), dtype=bool)
            fine[index] = ~poor[index]
            yield from _at(poor, rows, _lattices)
            yield from _at(fine, rows, _series)
        else:
            yield index, series


def _lattices(rows: _Candidates) -> Iterator[Part]:
    _need_whole_counts(rows, "lattice")
    for index, series in _windows(rows):
        yield index, Lattice(series)


def _windows(rows: _Candidates) -> Iterator[tuple[IntArray, Fourier]]:
    """Fourier series on common windows, for rows that need about as many frequencies."""
    decay, (low, high) = rows.decay, rows.window
    alias = np.full(len(rows), TRUNCATION)
    # a law with atoms comes back unless it is the normal part that has decayed
    back = np.flatnonzero(rows.atomic & (0.5 * rows.normal_var * decay**2 < DECAY))
    if len(back):
        alias[back] += revival(rows.take(back), decay[back])
    every = np.ones(len(rows), dtype=bool)
    for index in _groups(every, np.ceil(2 * np.log(decay)), np.ceil(2 * np.log(high - low))):
        ends = low[index], high[index]
        yield index, Fourier(rows.take(index), ends, float(decay[index].max()), alias[index])


METHODS: dict[str, tuple[Claim, ...]] = {
    "auto": (
        *(_no_terms, _single_terms, _gammas, _atoms, _uniforms),
        *(_rough_terms, _costly_terms, _contours, _slow_decay, _long_series, _heavy_tails, _series),
    ),
    "contour": (_no_terms, _all_contours),
    "convolution": (_no_terms, _convolutions),
    "fourier": (_no_terms, _series),
    "lattice": (_no_terms, _lattices),
}
"""What ``LinearCombination`` accepts as ``method``, and the claims that are asked in turn."""
