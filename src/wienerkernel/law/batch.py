"""A batch of linear combinations: rows Y = start + scale X with X of unit variance, worked on block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .._typing import FloatArray, IntArray
from ..noise import Noise
from .closed import NORMAL, SAME, ClosedForm
from .dispatch import parts
from .divisible import with_whole_counts
from .fourier import grid
from .progress import shown
from .quantile import solve, wilson_hilferty
from .ray import EPS, Inversion, Values, between, empty, put
from .rows import Rows, split
from .saddle import SaddleTails
from .terms import Terms

__all__ = ["Batch", "Term"]

CHUNK, MAX_ROWS = 2**20, 4096
"""Weights and rows of one block: 8 MB of weights, and tables of a moderate number of rows."""
INVISIBLE = 1e-17
"""Standard deviation of terms that float64 cannot see beside the others; they would only stretch the tables."""
NEAR = 1e-3
"""Fraction of the step of the grid of atoms by which a search may miss an atom."""
TAIL = 1e-7
"""Probability below which relative accuracy needs the saddle point."""
POOR = 5e-13
"""Error above which the saddle point may help."""
BULK = 1e-9
"""Smallest probability that is searched for without the saddle point, from where the search continues with it."""
NEAR_END = np.array([1e-9, 1e-11])
"""Distances from an end of the support at which the limit of the density there is read off, in standard deviations."""

Pair = tuple[FloatArray, FloatArray]
Term = tuple[Noise, FloatArray, FloatArray]
"""A law, weights of shape (..., D) and counts of shape (D,)."""


class Batch:
    """Linear combinations of shape S, from weights of shape S + (D,), evaluated as Y = start + scale X, row by row.

    The scale is the standard deviation, or 1 for a point mass. ``moved`` is the size of the numbers that add up to the
    start, to which its rounding is relative; 0 where it is ``loc``.
    """

    def __init__(
        self, terms: list[Term], loc: FloatArray, normal_std: FloatArray, method: str, verbose: bool
    ) -> None:
        self.shape, self.method, self.verbose = loc.shape, method, verbose
        self.loc, self.normal_std = loc, normal_std.ravel()
        self.terms = [(law, w.reshape(loc.size, w.shape[-1]), counts) for law, w, counts in terms]
        self._block: Block | None = None
        self._standardize()

    def _standardize(self) -> None:
        start, moved = self.loc.ravel(), np.zeros(len(self))
        columns: dict[Noise, list[Pair]] = {}
        for law, w, counts in self.terms:
            standard, origin, scale, normal = split(law)
            start = start + origin * (w @ counts)
            moved = moved + abs(origin) * (np.abs(w) @ counts)
            columns.setdefault(standard, []).append((scale * w, counts))
            if normal:
                columns.setdefault(NORMAL, []).append((normal * w, counts))
        self.start, self.moved = start, np.where(moved > 0, moved + np.abs(start), 0.0)
        # in units of the largest part, so that no square overflows
        parts = [(np.max(np.abs(w), axis=1) * law.std()) for law, w, _ in self.terms]
        largest = np.max([self.normal_std, *parts], axis=0)
        unit = np.where(largest > 0, largest, 1.0)
        variance = (self.normal_std / unit) ** 2
        for law, w, counts in self.terms:
            variance = variance + (w / unit[:, None] * law.std()) ** 2 @ counts
        self.scale = unit * np.where(largest > 0, np.sqrt(variance), 1.0)
        # normal terms are part of the normal part
        self._normal = columns.pop(NORMAL, [])
        self._columns = {
            law: (np.concatenate([w for w, _ in pairs], axis=1), np.concatenate([n for _, n in pairs]))
            for law, pairs in columns.items()
        }

    def __len__(self) -> int:
        return len(self.normal_std)

    @cached_property
    def _rows(self) -> Rows:
        """The rows as they are, neither moved nor scaled."""
        return Rows(tuple(Terms(*term) for term in self.terms), self.normal_std)  # whose square may underflow

    @cached_property
    def support(self) -> Pair:
        """Ends of the support, each of shape S."""
        low, high = self._rows.support
        return self.loc + low.reshape(self.shape), self.loc + high.reshape(self.shape)

    @cached_property
    def atomic(self) -> NDArray[np.bool_]:
        """Whether a law has atoms, because it has terms and all of them have, shape S."""
        rows = self._rows
        return np.reshape(rows.atomic & (rows.copies > 0) & (self.normal_std == 0), self.shape)

    def values(self, name: str, y: FloatArray, tails: bool = True) -> Pair:
        """``name`` ("pdf", "cdf" or "sf") at y and its error, each of shape broadcast(y.shape, S)."""

        def standardized(block: Block, part: slice, y: FloatArray) -> Pair:
            scale = self.scale[part, None]
            x = (y - self.start[part, None]) / scale
            known = np.isfinite(x)
            # x is known up to rounding, which must not move it below an atom
            shift = EPS * (np.abs(x) + self.moved[part, None] / scale)
            atomic = self.atomic.reshape(-1, 1)[part]
            at = block(np.where(known, x, 0.0) + np.where(known & atomic, 4 * shift, 0.0), tails)
            rounding = np.nan_to_num(at.pdf, nan=0.0, posinf=0.0) * np.where(known, shift, 0.0)
            error = at.pdf_error if name == "pdf" else np.fmin(at.error + rounding, 1.0)
            value, error = np.where(np.isnan(x), np.nan, getattr(at, name)), np.where(known, error, 0.0)
            return (value / scale, error / scale) if name == "pdf" else (value, error)

        value, error = self._by_rows(standardized, y)
        # Outside the support all is exact, whatever a standardized y rounds to.
        low, high = self.support
        below, above = y < low, y > high
        if name != "pdf":
            inside = (low < high) & ~self.atomic
            below, above = below | ((y == low) & inside), above | ((y == high) & inside)
        at_low, at_high = {"pdf": (0.0, 0.0), "cdf": (0.0, 1.0), "sf": (1.0, 0.0)}[name]
        value = np.where(below, at_low, np.where(above, at_high, value))
        return value, np.where(below | above, 0.0, error)

    def log_density(self, y: FloatArray) -> FloatArray:
        """Logarithm of the density where it underflows, by the saddle point; -inf at NaN and where there is none."""

        def standardized(block: Block, part: slice, y: FloatArray) -> Pair:
            scale = self.scale[part, None]
            x, value = (y - self.start[part, None]) / scale, np.full(y.shape, -np.inf)
            far = np.isfinite(x) & block.tails.covers(x, np.arange(len(x)))
            if far.any():
                value[far] = block.tails.log_density(x[far], np.nonzero(far)[0])
            return value - np.log(scale), np.zeros(y.shape)

        return self._by_rows(standardized, y)[0]

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_]) -> Pair:
        """Smallest y with F(y) >= p, or with sf(y) <= p where ``upper``, and the error of the probability there."""

        def standardized(block: Block, part: slice, p: FloatArray, upper: FloatArray) -> Pair:
            x, error = block.quantile(p, upper.astype(bool))
            return self.start[part, None] + self.scale[part, None] * x, error

        value, error = self._by_rows(standardized, p, upper)
        low, high = self.support
        return np.where(p > 0, value, np.where(upper, high, low)), error

    def _by_rows(self, function: Callable[..., Pair], *arguments: NDArray[np.generic]) -> Pair:
        """Hand each block its rows of the broadcast arguments as (rows, k) arrays, and put the results in shape."""
        shape = np.broadcast_shapes(arguments[0].shape, self.shape)
        row = np.broadcast_to(np.arange(len(self)).reshape(self.shape), shape)
        order = np.argsort(row, axis=None, kind="stable").reshape(len(self), -1 if row.size else 0)
        tables = [np.broadcast_to(argument, shape).ravel()[order] for argument in arguments]
        result = np.empty((2, row.size))
        if row.size:
            for part, block in shown(self._blocks(), len(self), self.verbose):
                result[:, order[part]] = function(block, part, *(table[part] for table in tables))
        return result[0].reshape(shape), result[1].reshape(shape)

    def _blocks(self) -> Iterator[tuple[slice, Block]]:
        if self._block is not None:
            yield slice(None), self._block
            return
        width = sum(w.shape[1] for w, _ in self._columns.values())
        step = max(1, min(MAX_ROWS, CHUNK // max(1, width)))
        for start in range(0, len(self), step):
            part = slice(start, start + step)
            block = Block(self._standard_rows(part), self.method)
            if step >= len(self):  # kept for the next call
                self._block = block
            yield part, block

    def _standard_rows(self, part: slice) -> Rows:
        scale = self.scale[part]
        tau2 = (self.normal_std[part] / scale) ** 2
        for w, counts in self._normal:
            tau2 = tau2 + (w[part] / scale[:, None]) ** 2 @ counts
        total = sum(float(counts.sum()) for _, counts in self._columns.values())
        terms = []
        for law, (w, counts) in self._columns.items():
            v = w[part] / scale[:, None]
            v = np.where(np.abs(v) * law.std() * np.sqrt(total) < INVISIBLE, 0.0, v)
            terms += [Terms(*some) for some in with_whole_counts(law, *_merged(v, counts))]
        # rows without terms still need a law
        terms = terms or [Terms(NORMAL, np.zeros((len(scale), 1)), np.ones(1))]
        return Rows(tuple(terms), np.where(tau2 < INVISIBLE**2, 0.0, tau2))


def _merged(weights: FloatArray, counts: FloatArray) -> Pair:
    """Weights and counts without columns that are equal in all rows."""
    if len(np.unique(weights[0])) == weights.shape[1]:
        return weights, counts
    columns, inverse = np.unique(weights, axis=1, return_inverse=True)
    return columns, np.bincount(inverse.ravel(), weights=counts).astype(np.float64)


class Block:
    """The law of standardized rows, each evaluated by the method that :func:`~.dispatch.parts` chooses."""

    def __init__(self, rows: Rows, method: str) -> None:
        self.tails = SaddleTails(rows)
        self.parts = [(index, _Part(rows.take(index), inversion)) for index, inversion in parts(rows, method)]
        self._latest: tuple[FloatArray, bool, Values] | None = None

    def __call__(self, x: FloatArray, tails: bool = True) -> Values:
        """Values at points (rows, k); small tails have relative accuracy only on request, because it is costly."""
        latest = self._latest  # density, cdf and sf at the same points are computed together
        if latest is not None and latest[1] == tails and np.array_equal(latest[0], x):
            return latest[2]
        result = empty(x.shape)
        for index, part in self.parts:
            put(result, index, part.values(x[index], np.arange(len(index)), tails))
        values = Values(
            np.maximum(result.pdf, 0.0),
            np.clip(result.cdf, 0.0, 1.0),
            np.clip(result.sf, 0.0, 1.0),
            np.fmin(result.error, 1.0),
            result.pdf_error,
        )
        self._latest = x, tails, values
        return values

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_]) -> Pair:
        """Smallest x with F(x) >= p, or with sf(x) <= p where ``upper``, and the error of the probability there.

        Any x where p is 0.
        """
        x, error = np.empty(p.shape), np.empty(p.shape)
        for index, part in self.parts:
            x[index], error[index] = part.quantile(p[index], upper[index])
        return x, error


class _Part:
    """Rows that one inversion serves, with their tails, the ends of the support and quantiles."""

    def __init__(self, rows: Rows, inversion: Inversion) -> None:
        self.rows, self.inversion, self.tails = rows, inversion, SaddleTails(rows)
        self.lower, self.upper = (end[:, None] for end in rows.support)

    def values(self, x: FloatArray, index: IntArray, tails: bool) -> Values:
        """Values at ``x`` of shape (n, k) for the rows ``index``, with relative accuracy of the tails if asked for."""
        inversion, lower, upper = self.inversion, self.lower[index], self.upper[index]
        if isinstance(inversion, ClosedForm):
            return inversion(x, index)
        values = inversion(np.clip(x, lower, upper), index)
        if tails and not (inversion.relative or self.rows.costly):
            small = (np.minimum(values.cdf, values.sf) < TAIL) | (values.error > POOR)
            small &= self.tails.covers(x, index)
            if small.any():
                i, k = np.nonzero(small)
                tail = self.tails(x[small], index[i])
                better = tail.error < values.error[small]
                put(values, (i[better], k[better]), tail, better)
        # an atom at the end belongs to the law, whatever a standardized x rounds to
        below, above = x <= lower, x >= upper
        if self.rows.atomic.any():
            below = np.where(self.rows.atomic[index, None], x < lower - SAME * (1 + np.abs(lower)), below)
        outside = below | above
        if not outside.any():
            return values
        pdf, cdf, sf = between(below, above, *values[:3])
        for at, end, inwards in ((x == lower, lower, 1.0), (x == upper, upper, -1.0)):
            i = np.flatnonzero(at.any(axis=1))
            if len(i):
                pdf[i] = np.where(at[i], self._density_at_end(end[i], inwards, index[i]), pdf[i])
        error, pdf_error = (np.where(outside, 0.0, error) for error in values[3:])
        return Values(pdf, cdf, sf, error, pdf_error)

    def _density_at_end(self, end: FloatArray, inwards: float, index: IntArray) -> FloatArray:
        """Limit of the density at an end of the support: 0, inf or between, from two points close by."""
        near, nearer = self.inversion(end + inwards * NEAR_END, index).pdf.T
        with np.errstate(all="ignore"):
            ratio = nearer / near
        limit = np.where(ratio > 1.1, np.inf, np.where(ratio > 0.9, nearer, 0.0))
        return np.asarray(limit[:, None])

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_]) -> Pair:
        """As :meth:`Block.quantile`."""
        inversion, every = self.inversion, np.arange(len(p))
        if isinstance(inversion, ClosedForm):
            x = inversion.quantile(p, upper, every)
            if not inversion.rounded:
                return x, np.zeros(p.shape)
            at = inversion(x, every)
            return x, np.where(p > 0, np.abs(np.where(upper, at.sf, at.cdf) - p) + at.error, 0.0)
        p = np.where(p > 0, p, 0.5)
        mean = self.rows.mean[:, None]
        atomic = (self.rows.atomic & (self.rows.normal_var == 0))[:, None]

        def search(some: IntArray, tails: bool, p: FloatArray, start: FloatArray) -> Pair:
            def values(x: FloatArray, row: IntArray) -> Values:
                return self.values(x, some[row], tails)

            support = self.lower[some], self.upper[some]
            return solve(values, p[some], upper[some], start[some], support, mean[some], atomic[some])

        # First without the tails, which cost more, then with them where they matter.
        start = mean + wilson_hilferty(np.where(upper, -1.0, 1.0) * ndtri(p), self._skewness()[:, None])
        x, error = search(every, False, p if inversion.relative else np.maximum(p, BULK), start)
        again = np.flatnonzero(np.any((p < 2 * TAIL) | (error > POOR), axis=1))
        if len(again) and not inversion.relative:
            x[again], error[again] = search(again, True, p, x)
        snap = getattr(inversion, "snap", None)
        if snap:
            x = snap(x, every)
        elif atomic.any():
            x, error = self._at_atoms(x, error, p, upper, atomic)
        return x, np.fmin(error, 1.0)

    def _skewness(self) -> FloatArray:
        """Skewness of each row, to start the search for a quantile; 0 where it is unknown or costly."""
        if self.rows.costly:
            return np.zeros(len(self.rows))
        with np.errstate(all="ignore"):  # scales whose third power overflows
            skewness = sum(
                terms.noise.cumulants(3)[2] * (terms.weights**3 @ terms.counts) for terms in self.rows.terms
            )
        return np.asarray(np.nan_to_num(skewness, posinf=0.0, neginf=0.0))

    def _at_atoms(
        self,
        x: FloatArray,
        error: FloatArray,
        p: FloatArray,
        upper: NDArray[np.bool_],
        atomic: NDArray[np.bool_],
    ) -> Pair:
        """Quantiles of laws with atoms moved to the grid that the atoms lie on; without one, the error says how far F is."""
        origin, step = (part[:, None] for part in grid(self.rows))
        on_grid = atomic & (step > 0)
        steps = np.where(on_grid, step, 1.0)
        near = origin + steps * np.rint((x - origin) / steps)
        moved = on_grid & (np.abs(near - x) < NEAR * steps)
        x = np.where(moved, near, x)
        values = self.values(x, np.arange(len(x)), False)
        off = np.abs(np.where(upper, values.sf, values.cdf) - p)
        return x, np.where(atomic & ~moved, np.maximum(error, off), error)
