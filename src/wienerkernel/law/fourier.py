"""Fourier series on a window, for characteristic functions that decay fast and for laws with bounded support.

Nodes t = (k + 1/2) 2 pi / P recover F(x) exactly if |X - x| < P: for a bounded law on its own support there is no error
at all; otherwise the window comes from a Chernoff bound.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise
from .closed import NORMAL
from .corners import components
from .ray import EPS, RaySum, Values, between, joined
from .rows import Rows
from .terms import COARSE

__all__ = [
    "DECAY",
    "TRUNCATION",
    "Fourier",
    "Lattice",
    "affordable",
    "decay_point",
    "grid",
    "revival",
    "window",
]

EXPONENT = 36.0
"""Tails below e^-36 = 2e-16 are left out."""
TRUNCATION = 2 * float(np.exp(-EXPONENT))
"""Error from both of them."""
DECAY, DECAY_LIMIT = 33.5, 1e30
"""Frequencies with |phi| < e^-33.5 = 3e-15 are left out; the search for them ends where no node could lie."""
PROBES, MOST_PROBES = 200, 2**24
"""Frequencies, at least, at which phi may come back, and terms of phi that may be spent on more of them."""
GRID = 1e-10
"""Distance from a grid, relative to their range, at which atoms count as on it."""
MAX_NODES, MAX_COSTLY_NODES = 2**17, 2**14
"""Nodes at most, for phi given by a formula and by quadrature: a second or so for a row."""
MAX_SIZE = 2**21
"""Nodes times rows that are kept between calls, 100 MB."""
SIZES = 2**17, 2**20
"""Points of the lattice for many terms, and for few; the bracket narrows as their inverse."""
FEW, MANY, MANY_DISCRETE = 32, 300, 3000
"""Terms for which the longer lattice is affordable, and any lattice; atoms are transformed faster than densities."""


@lru_cache(maxsize=64)
def _subgamma(noise: Noise) -> tuple[float, float]:
    """Scales c of the lower and upper tail such that log E e^{+-l (M - m)} <= s2 l^2 / (2 (1 - c l)), 0 < l < 1/c.

    inf for a tail without exponential moments.
    """
    mean, var = noise.mean(), noise.var()
    scales = []
    for sign, end in zip((-1.0, 1.0), noise.strip(), strict=True):
        limit = min(abs(end), 40 / np.sqrt(var))  # far beyond what tails of 1e-16 need
        scale = np.inf
        if limit > 0:
            rate = limit * np.geomspace(1e-5, 1 - 1e-9, 400)
            with np.errstate(all="ignore"):
                cgf = noise.logcf(-1j * sign * rate).real - sign * rate * mean
                needed = np.maximum.accumulate(np.where(cgf > 0, (1 - var * rate**2 / (2 * cgf)) / rate, 0.0))
            usable = np.isfinite(cgf[:-1]) & np.isfinite(needed[:-1])
            # The inequality must hold up to one grid point, and 1/c is at most the next.
            candidates = np.maximum(needed[:-1], 1 / rate[1:])[usable]
            scale = float(candidates.min(initial=np.inf))
        scales.append(scale)
    return scales[0], scales[1]


def window(rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Interval outside which a row has less than about 1e-16 of its mass, each end of shape (rows,)."""
    reach = [np.full(len(rows), np.sqrt(2 * EXPONENT)) for _ in range(2)]
    scales = [np.zeros(len(rows)) for _ in range(2)]
    for terms in rows.terms:
        minus, plus = _subgamma(terms.noise)
        negative, positive = terms.largest
        for side, (along, against) in enumerate(((minus, plus), (plus, minus))):
            with np.errstate(invalid="ignore"):
                scale = np.nan_to_num(np.fmax(along * positive, against * negative), nan=0.0, posinf=np.inf)
            # heavy tails: one large term alone makes the sum large
            heavy = np.isinf(scale)
            scales[side] = np.maximum(scales[side], np.where(heavy, 0.0, scale))
            if heavy.any():
                largest = _extent(terms.noise, float(terms.counts.sum())) * np.maximum(negative, positive)
                reach[side] = reach[side] + np.where(heavy, 2 * largest, 0.0)
    reach = [side + EXPONENT * scale for side, scale in zip(reach, scales, strict=True)]
    lower, upper = rows.support
    return np.maximum(rows.mean - reach[0], lower), np.minimum(rows.mean + reach[1], upper)


@lru_cache(maxsize=64)
def _extent(noise: Noise, number: float) -> float:
    """Largest |M| among so many, but for a probability of 1e-15: the farthest quantiles that are finite."""
    ends = []
    for quantile in (noise.ppf, noise.isf):
        for level in 1e-15 / number * 10.0 ** np.arange(12):
            with np.errstate(all="ignore"):
                end = float(quantile(level))
            if np.isfinite(end):
                ends.append(abs(end))
                break
    return max(ends)


def decay_point(rows: Rows, limit: float = DECAY_LIMIT) -> FloatArray:
    """Frequency beyond which |phi| < 3e-15, shape (rows,); 1e30 if it exceeds the limit."""
    result = np.full(len(rows), DECAY_LIMIT)
    open_rows = np.arange(len(rows))
    low, width = np.log(4.0), 2.0
    while len(open_rows) and low < np.log(limit):
        r = np.exp(np.arange(low, low + 2 * width, 0.1))
        level = np.nan_to_num(rows.take(open_rows).logcf_on_ray(r, 0.0, COARSE).real, nan=0.0, neginf=-745.0)
        above = level > -DECAY
        last = above.shape[1] - 1 - np.argmax(above[:, ::-1], axis=1)
        last = np.where(above.any(axis=1), last, -1)
        done = r[np.minimum(last + 2, len(r) - 1)] < np.exp(low + width)
        result[open_rows[done]] = r[last[done] + 2]  # one more than enough: |phi| may oscillate
        open_rows = open_rows[~done]
        low += width
    return result


def revival(rows: Rows, decay: FloatArray) -> FloatArray:
    """Largest |phi| found far beyond its first decay, shape (rows,): a law with atoms may come back.

    Values on a grid come back together wherever the largest term does, and all terms where the weights have a common
    divisor, too; other frequencies are tried at random, up to those where the normal part has decayed in all rows.
    """
    with np.errstate(divide="ignore"):
        reach = np.max(np.sqrt(2 * DECAY / rows.normal_var) / decay)
    probes = np.sort(np.random.default_rng(0).uniform(1.0, 20.0, PROBES))
    t = [decay[:, None] * probes[: max(1, np.searchsorted(probes, reach))]]
    for terms in rows.terms:
        atoms = _atoms(terms.noise)
        step = _grid(atoms)
        if not step:
            continue
        number = int(np.clip(MOST_PROBES / (rows.weights.size * len(atoms)), PROBES, 2**13))
        measures = (
            np.max(np.abs(terms.weights), axis=1),
            np.array([_grid(np.append(w, 0.0)) for w in terms.weights]),
        )
        for measure, returns in zip(measures, (number, 8), strict=True):
            with np.errstate(divide="ignore"):
                period = (2 * np.pi / (step * measure))[:, None]
            later = period * (np.floor(decay[:, None] / period) + np.arange(1.0, returns + 1))
            t.append(np.where(np.isfinite(later), later, decay[:, None]))
    level = rows.logcf(np.concatenate(t, axis=1).astype(complex)).real
    return np.asarray(np.exp(np.max(np.nan_to_num(level, nan=0.0), axis=1)))


def grid(rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Origin and step of the grid that all values of a row lie on, where all terms have atoms; the step is 0 without one."""
    origin, steps = np.zeros(len(rows)), []
    for terms in rows.terms:
        atoms = _atoms(terms.noise)
        step = _grid(atoms)
        origin += terms.weights @ terms.counts * (atoms[0] if len(atoms) else 0.0)
        steps.append([step * _grid(np.append(w, 0.0)) if np.any(w) else 0.0 for w in terms.weights])
    return origin, np.array(
        [_grid(np.append(np.array(row)[np.nonzero(row)], 0.0)) for row in zip(*steps, strict=True)]
    )


def _atoms(noise: Noise) -> FloatArray:
    """Values that have positive probability."""
    return np.concatenate([[]] + [part.atoms()[0] for _, part in components(noise) if part.discrete])


def _grid(values: FloatArray) -> float:
    """Step of the coarsest grid that holds the values and their differences, 0 if there is none, by Euclid."""
    if not len(values):
        return 0.0
    gaps = np.diff(np.unique(values))
    step, tolerance = 0.0, GRID * float(np.ptp(values))
    for gap in gaps:
        rest = float(gap)
        while rest > tolerance:
            step, rest = rest, step % rest if step else 0.0
            rest = 0.0 if step - rest < tolerance else rest
        if step < 100 * tolerance:
            return 0.0
    return step


class Fourier:
    """Inversion by a Fourier series up to the frequency ``decay``, the same nodes for all rows.

    ``window`` is a pair of arrays of shape (rows,); ``alias``, of shape (rows,), is the error of leaving out the mass
    outside of it and the frequencies beyond.
    """

    relative = False

    def __init__(
        self, rows: Rows, window: tuple[FloatArray, FloatArray], decay: float, alias: FloatArray
    ) -> None:
        self.rows, self.alias = rows, alias
        self.low, self.high = window
        self.h = 2 * np.pi / float(np.max(self.high - self.low))
        most = MAX_COSTLY_NODES if rows.costly else MAX_NODES
        needed = int(np.ceil(decay / self.h)) + 1
        self.nodes, self.complete = min(needed, most), needed <= most
        self._sum = self._prepare(np.arange(len(rows))) if self.nodes * len(rows) <= MAX_SIZE else None

    def _prepare(self, index: IntArray) -> RaySum:
        t = (np.arange(self.nodes) + 0.5) * self.h
        return RaySum(
            self.rows.take(index), t, np.full(self.nodes, self.h), 0.0, self.alias[index], self.complete
        )

    @cached_property
    def left_out(self) -> FloatArray:
        """Bound on the error of what lies outside the window and beyond the last frequency, shape (rows,)."""
        if self.complete:
            return self.alias
        return self.alias + self.rows.beyond(self.nodes * self.h, 0.0)[0] / np.pi

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        low, high = self.low[index, None], self.high[index, None]
        inside = np.clip(x, low, high)
        if self._sum is not None:
            values = self._sum(inside, index)
        else:  # too large to keep: a few rows at a time
            step = max(1, MAX_SIZE // self.nodes)
            some = [slice(start, start + step) for start in range(0, len(index), step)]
            values = joined(self._prepare(index[i])(inside[i], np.arange(len(index[i]))) for i in some)
        return Values(*between(x < low, x > high, *values[:3]), *values[3:])


def affordable(rows: Rows) -> bool:
    """Whether the rows have few enough terms."""
    return int(np.count_nonzero(rows.weights)) <= (MANY_DISCRETE if rows.discrete.all() else MANY)


class Lattice:
    """A Fourier series, improved by the bracket where that is narrower than the error of the series."""

    relative = True  # the saddle point does not help where the series is poor

    def __init__(self, series: Fourier) -> None:
        rows = series.rows
        self.series = series
        self.size = SIZES[int(np.count_nonzero(rows.weights)) <= FEW]
        self.terms = rows.copies + (rows.normal_var > 0)
        self.step = (series.high - series.low) / (self.size - self.terms - 8)
        self.first = np.floor(series.low / self.step) - self.terms - 2
        self.below = np.stack([self._below(rows, row) for row in range(len(rows))])

    def _below(self, rows: Rows, row: int) -> FloatArray:
        """Distribution function of the sum rounded down, at the points of the lattice."""
        transform = np.ones(self.size // 2 + 1, dtype=complex)
        for weight, count, noise in zip(rows.weights[row], rows.counts, rows.laws, strict=True):
            if weight:
                transform *= self._transform(row, float(weight), noise) ** count
        if rows.normal_var[row] > 0:
            transform *= self._transform(row, float(np.sqrt(rows.normal_var[row])), NORMAL)
        mass = np.roll(np.fft.irfft(transform, self.size), -int(self.first[row]) % self.size)
        return np.clip(np.cumsum(mass), 0.0, 1.0)

    def _transform(self, row: int, weight: float, noise: Noise) -> ComplexArray:
        """Transform of one term rounded down, wrapped round the lattice."""
        step = self.step[row]
        if noise.discrete:
            values, mass = noise.atoms()
            cell = (np.ceil(weight * values / step).astype(int) - 1) % self.size
            return np.fft.rfft(np.bincount(cell, weights=mass, minlength=self.size))
        # The whole sum fits on the lattice, so as many points around the median hold the mass of one term.
        middle = np.rint(weight * float(noise.ppf(0.5)) / step)
        edges = step * (middle + np.arange(-self.size, self.size + 1))
        with np.errstate(all="ignore"):
            if weight > 0:
                cdf = noise.cdf(edges / weight)
            else:  # P(vM <= x) = P(M >= x / v)
                cdf = 1 - noise.cdf(np.nextafter(edges / weight, -np.inf))
        cdf[0], cdf[-1] = 0.0, 1.0
        cells = np.diff(cdf).reshape(2, self.size).sum(axis=0)
        return np.fft.rfft(np.roll(cells, int(middle) % self.size))

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        values = self.series(x, index)
        step, first, rows = self.step[index, None], self.first[index, None], index[:, None]
        upper = np.floor(x / step - first + 1e-6)
        lower = np.floor(x / step - first - 1e-6) - self.terms[index, None]
        high, low = (
            np.where(cell < 0, 0.0, self.below[rows, np.clip(cell, 0, self.size - 1).astype(int)])
            for cell in (upper, lower)
        )
        rounding = self.size * EPS
        error = 0.5 * (high - low) + rounding
        better = error < values.error
        # the series is clipped to the bracket, as far as that is known
        cdf = np.where(better, 0.5 * (low + high), np.clip(values.cdf, low - rounding, high + rounding))
        sf = np.where(cdf == values.cdf, values.sf, 1 - cdf)
        return values._replace(cdf=cdf, sf=sf, error=np.where(better, error, values.error))
