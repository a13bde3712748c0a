"""Exact laws of sums of few discrete terms: all atoms, or two halves that meet in the middle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from .._typing import FloatArray, IntArray
from ..noise import Noise
from .closed import ClosedForm
from .ray import EPS, Values
from .rows import Rows

__all__ = ["AtomSum", "SmoothedAtoms", "atom_sum", "nearest", "relevant_atoms", "sum_of_atoms"]

HALF, ALL = 2**18, 2**23
"""Atoms of each half of one row, and of all rows together: 128 MB."""
LEAST = 64
"""Atoms of a half that are always allowed, however many rows there are."""
SUM = 2**13
"""Atoms of a sum that is not divided into halves."""
PILOT = 64
"""Atoms of a term that show whether sums coincide."""
MOST_PARTS = 16
"""Steps of a lattice between the closest atoms."""
NO_MASS = 1e-18
"""Probability of a value that is left out: no sum of 1000 of them is visible beside 1."""
REACH = 12.0
"""Standard deviations of the normal part beyond which its tail, e^-72, is neglected."""
TOLERANCE = 2e-14
"""Sums that differ by less, in standard deviations, are the same atom; they are rounded in different orders."""


def _merge(values: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, mass = values[mass > 0], mass[mass > 0]  # products may underflow
    order = np.argsort(values, kind="stable")
    values, mass = values[order], mass[order]
    first = np.flatnonzero(np.concatenate([[True], np.diff(values) > TOLERANCE]))
    total = np.add.reduceat(mass, first)
    # the mean of values that are the same up to rounding: the first would drift away over many terms
    offset = values - np.repeat(values[first], np.diff(np.append(first, len(values))))
    return values[first] + np.add.reduceat(offset * mass, first) / total, total


class _Half:
    """Atoms of a part of the terms, grown term by term."""

    def __init__(self, limit: int) -> None:
        self.values: FloatArray = np.zeros(1)
        self.mass: FloatArray = np.ones(1)
        self.limit = limit
        self.copies = 0

    def add(self, values: FloatArray, mass: FloatArray, copies: int = 1) -> bool:
        """Convolve with one more term, or with the sum of some copies, unless that makes too many atoms."""
        if len(self.values) * len(values) > 16 * self.limit:
            return False
        # long runs of increasing values are sorted faster
        merged = _merge(np.add.outer(values, self.values).ravel(), np.multiply.outer(mass, self.mass).ravel())
        if len(merged[0]) > self.limit:
            return False
        self.values, self.mass = merged
        self.copies += copies
        return True


class AtomSum(ClosedForm):
    """Laws of rows as F(x) = sum_a p_a F_B(x - a), over the atoms a of one half of the terms; one pair of halves per row."""

    def __init__(self, halves: list[tuple[_Half, _Half]]) -> None:
        self.halves = halves
        self.below = [np.concatenate([[0.0], np.cumsum(right.mass)]) for _, right in halves]
        self.above = [np.concatenate([np.cumsum(right.mass[::-1])[::-1], [0.0]]) for _, right in halves]
        # products of probabilities that are rounded themselves
        self.rounding = np.array([(16 + 0.5 * (left.copies + right.copies)) * EPS for left, right in halves])

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        cdf, sf = np.empty(x.shape), np.empty(x.shape)
        for i, row in enumerate(index):
            cdf[i], sf[i] = self._row(x[i], row)
        error = np.broadcast_to(self.rounding[index, None], x.shape)
        return Values(np.full(x.shape, np.nan), cdf, sf, error, error)

    def _row(self, x: FloatArray, row: int) -> tuple[FloatArray, FloatArray]:
        left, right = self.halves[row]
        cdf, sf = np.empty(len(x)), np.empty(len(x))
        falling, mass = left.values[::-1], left.mass[::-1]  # increasing arguments are looked up faster
        for k, point in enumerate(x):
            position = np.searchsorted(right.values, point + 4 * TOLERANCE - falling, side="right")
            cdf[k], sf[k] = mass @ self.below[row][position], mass @ self.above[row][position]
        return np.minimum(cdf, 1.0), np.minimum(sf, 1.0)

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_], index: IntArray) -> FloatArray:
        """Smallest x with F(x) >= p, or with sf(x) <= p where ``upper``, by bisection down to one atom."""
        low = np.array([self.halves[i][0].values[0] + self.halves[i][1].values[0] for i in index])[:, None]
        high = np.array([self.halves[i][0].values[-1] + self.halves[i][1].values[-1] for i in index])[:, None]
        low, high = np.broadcast_to(low - 1.0, p.shape), np.broadcast_to(high, p.shape)
        for _ in range(52):
            middle = 0.5 * (low + high)
            at = self(middle, index)
            reached = np.where(upper, at.sf <= p * (1 + 8 * EPS), at.cdf >= p * (1 - 8 * EPS))
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return self._snap(high, index)

    def _snap(self, x: FloatArray, index: IntArray) -> FloatArray:
        """The nearest atom of each row."""
        result = x.copy()
        for i, row in enumerate(index):
            left, right = self.halves[row]
            for k, point in enumerate(x[i]):
                position = np.searchsorted(right.values, point - left.values)
                around = np.clip([position - 1, position], 0, len(right.values) - 1)
                near = np.ravel(left.values + right.values[around])
                result[i, k] = near[np.argmin(np.abs(near - point))]
        return result


class SmoothedAtoms:
    """Laws of rows as sums over atoms of normal laws, F(x) = sum_a p_a sum_b q_b Phi((x - a - b) / tau), tau > 0."""

    relative = False

    def __init__(self, halves: list[tuple[_Half, _Half]], tau: FloatArray) -> None:
        self.steps, self.tau = AtomSum(halves), tau

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        values = np.empty((3, *x.shape))
        for i, row in enumerate(index):
            for k, point in enumerate(x[i]):
                values[:, i, k] = self._at(point, row)
        pdf, cdf, sf = values
        # atoms are known up to their tolerance, and x up to its rounding
        shift = TOLERANCE + 8 * EPS * (1 + np.abs(x))
        return Values(
            pdf,
            cdf,
            sf,
            self.steps.rounding[index, None] + shift * pdf,
            (64 * EPS + 8 * shift / self.tau[index, None]) * pdf,
        )

    def _at(self, point: float, row: int) -> tuple[float, float, float]:
        left, right = self.steps.halves[row]
        tau, z = self.tau[row], point - left.values
        # beyond the last atom, the nearest ones count, however far they are
        outside = np.maximum(z - right.values[-1], right.values[0] - z) + 4 * tau
        reach = np.maximum(REACH * tau, outside)
        first, last = np.searchsorted(right.values, z - reach), np.searchsorted(right.values, z + reach)
        cdf, sf, pdf = left.mass @ self.steps.below[row][first], left.mass @ self.steps.above[row][last], 0.0
        near = last - first
        step = max(1, int(2**20 / max(1.0, float(near.mean()))))
        for start in range(0, len(z), step):
            part = slice(start, start + step)
            a = np.repeat(np.arange(len(z))[part], near[part])
            b = np.arange(len(a)) - np.repeat(np.cumsum(near[part]) - near[part], near[part]) + first[a]
            mass, distance = left.mass[a] * right.mass[b], (z[a] - right.values[b]) / tau
            cdf, sf = cdf + mass @ ndtr(distance), sf + mass @ ndtr(-distance)
            pdf += mass @ np.exp(-0.5 * distance * distance) / (np.sqrt(2 * np.pi) * tau)
        return pdf, min(cdf, 1.0), min(sf, 1.0)


def nearest(x: FloatArray, atoms: FloatArray) -> FloatArray:
    """The points ``x`` of shape (k,), moved to the atoms that they are next to."""
    distance = np.abs(x[:, None] - np.append(atoms, np.inf))
    close = np.min(distance, axis=1) < 40 * TOLERANCE * (1 + np.abs(x))
    return np.where(close, np.append(atoms, np.inf)[np.argmin(distance, axis=1)], x)


def sum_of_atoms(terms: list[tuple[float, Noise]]) -> tuple[FloatArray, FloatArray]:
    """Values and probabilities of a sum of weighted discrete terms, at most SUM of them."""
    total = _Half(SUM)
    for weight, noise in terms:
        values, mass = relevant_atoms(noise)
        total.add(weight * values, mass)
    return total.values, total.mass


def _too_many(weights: FloatArray, counts: IntArray, atoms: tuple[FloatArray, FloatArray]) -> bool:
    """Whether the first of the different weights show that the number of atoms multiplies because none coincide."""
    n, enough = len(atoms[0]), 2 * np.log(HALF)
    if counts.sum() * np.log(n) < enough:
        return False
    terms = weights if len(weights) * np.log(n) >= enough else np.repeat(weights, counts)
    # neighbors, since those of a lattice coincide
    values, mass = (part[max(0, (n - PILOT) // 2) :][:PILOT] for part in atoms)
    n, pilot = len(values), _Half(HALF)
    grown = [pilot.add(w * values, mass) for w in terms[: 2 if n > 30 else 3]]
    return not all(grown) or len(pilot.values) > 0.9 * n ** len(grown)


def relevant_atoms(noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Values and probabilities of a discrete law, without negligible ones."""
    if not noise.discrete:
        return np.zeros(1), np.ones(1)  # of terms whose weights are 0
    values, mass = noise.atoms()
    seen = mass > NO_MASS
    return values[seen], mass[seen]


def _copies_on_lattice(
    values: FloatArray, mass: FloatArray, number: int, limit: int
) -> tuple[FloatArray, FloatArray] | None:
    """Atoms of a sum of copies of a law on a lattice, without the rounding errors of as many sums; None for other laws."""
    if len(values) == 1:
        return number * values, mass
    away, gap = values - values[0], np.min(np.diff(values))
    steps = away[-1] / np.rint(np.arange(1, MOST_PARTS + 1) * away[-1] / gap)
    places = np.rint(away / steps[:, None])
    fits = np.all(np.abs(away - steps[:, None] * places) <= 4 * EPS * np.max(np.abs(values)), axis=1)
    if not fits.any() or places[fits][0, -1] > SUM:
        return None
    step, index = steps[fits][0], places[fits][0].astype(np.intp)
    total: FloatArray = np.ones(1)
    power: FloatArray = np.bincount(index, mass).astype(np.float64)
    first, start = 0, 0
    for bit in reversed(f"{number:b}"):
        if bit == "1":
            total, first = _trimmed(np.convolve(total, power), first + start)
        if max(len(total), len(power)) > limit:
            return None
        power, start = _trimmed(np.convolve(power, power), 2 * start)
    return number * values[0] + step * (first + np.arange(len(total))), total


def _trimmed(mass: FloatArray, start: int) -> tuple[FloatArray, int]:
    """Probabilities at start, start + 1, ..., without those at the ends that underflow."""
    seen = np.flatnonzero(mass)
    return mass[seen[0] : seen[-1] + 1], start + int(seen[0])


def _add_copies(right: _Half, left: _Half, values: FloatArray, mass: FloatArray, number: int) -> bool:
    """Add as many copies of a term to one of two halves: at once, or one by one where that makes too many sums."""
    every = _copies_on_lattice(values, mass, number, right.limit) if number > 2 else None
    if every is None:
        sums = _Half(right.limit)
        every = (sums.values, sums.mass) if all(sums.add(values, mass) for _ in range(number)) else None
    if every is not None and (right.add(*every, number) or left.add(*every, number)):
        return True
    return all(right.add(values, mass) or left.add(values, mass) for _ in range(number))


def _distinct(weights: FloatArray, counts: FloatArray) -> tuple[FloatArray, IntArray]:
    """The different weights other than 0, and how many terms have each: equal weights share their atoms."""
    used = weights != 0
    values, index = np.unique(weights[used], return_inverse=True)
    return values, np.bincount(index, counts[used].astype(int), len(values)).astype(np.intp)


def atom_sum(rows: Rows) -> tuple[IntArray, list[tuple[_Half, _Half]]]:
    """The rows of a discrete law that have few enough atoms, and the atoms of their two halves."""
    atoms = [relevant_atoms(terms.noise) for terms in rows.terms]
    budget = max(LEAST, ALL // len(rows))
    chosen, halves = [], []
    for row in range(len(rows)):
        right, left = _Half(min(HALF, budget)), _Half(min(HALF, budget))
        weights = [_distinct(terms.weights[row], terms.counts) for terms in rows.terms]
        if any(_too_many(*w, law) for w, law in zip(weights, atoms, strict=True)):
            continue
        # about the mean, where rounding errors of many small sums stay small
        copies = [
            (w * (x - x @ p), p, n)
            for some, (x, p) in zip(weights, atoms, strict=True)
            for w, n in zip(*some, strict=True)
        ]
        if all(_add_copies(right, left, *term) for term in copies):
            right.values = right.values + sum(
                (x @ p) * float(w @ n) for (w, n), (x, p) in zip(weights, atoms, strict=True)
            )
            chosen.append(row)
            halves.append((left, right))
    return np.array(chosen, dtype=np.intp), halves
