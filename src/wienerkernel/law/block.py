"""A block of standardized rows: bulk, tails and ends of the support together."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .._typing import FloatArray, IntArray
from .closed import SAME, ClosedForm, SingleTerm
from .dispatch import parts
from .fourier import grid
from .quantile import solve, wilson_hilferty
from .ray import Inversion, Values, between, empty, put
from .rows import Rows
from .saddle import SaddleTails

__all__ = ["Block"]

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


class Block:
    """The law of standardized rows, each evaluated by the method that :func:`~.dispatch.parts` chooses."""

    def __init__(self, rows: Rows, method: str) -> None:
        self.rows = rows
        self.parts = list(parts(rows, method))
        self.tails = SaddleTails(rows)
        self._latest: tuple[FloatArray, bool, Values] | None = None

    @cached_property
    def skewness(self) -> FloatArray:
        """Skewness of each row, to start the search for a quantile; 0 where it is unknown or costly."""
        if self.rows.costly:
            return np.zeros(len(self.rows))
        with np.errstate(all="ignore"):  # scales whose third power overflows
            skewness = sum(
                terms.noise.cumulants(3)[2] * (terms.weights**3 @ terms.counts) for terms in self.rows.terms
            )
        return np.asarray(np.nan_to_num(skewness, posinf=0.0, neginf=0.0))

    def __call__(self, x: FloatArray, tails: bool = True) -> Values:
        """Values at points (rows, k); small tails have relative accuracy only on request, because it is costly."""
        latest = self._latest  # density, cdf and sf at the same points are computed together
        if latest is not None and latest[1] == tails and np.array_equal(latest[0], x):
            return latest[2]
        result = empty(x.shape)
        for index, inversion in self.parts:
            put(result, index, self._values(inversion, index, tails, x[index], np.arange(len(index))))
        values = Values(
            np.maximum(result.pdf, 0.0),
            np.clip(result.cdf, 0.0, 1.0),
            np.clip(result.sf, 0.0, 1.0),
            np.fmin(result.error, 1.0),
            result.pdf_error,
        )
        self._latest = x, tails, values
        return values

    def _values(
        self, inversion: Inversion, index: IntArray, tails: bool, x: FloatArray, some: IntArray
    ) -> Values:
        """Values of the rows ``index[some]`` at ``x``, ends of the support and, if asked for, tails included."""
        if isinstance(inversion, ClosedForm):
            return inversion(x, some)
        row = index[some]
        lower, upper = (end[row, None] for end in self.rows.support)
        values = inversion(np.clip(x, lower, upper), some)
        small = (np.minimum(values.cdf, values.sf) < TAIL) | (values.error > POOR)
        if (
            tails
            and not (inversion.relative or self.rows.costly)
            and np.any(small := small & self.tails.covers(x, row))
        ):
            i, k = np.nonzero(small)
            tail = self.tails(x[small], row[i])
            better = tail.error < values.error[small]
            put(values, (i[better], k[better]), tail, better)
        # an atom at the end belongs to the law, whatever a standardized x rounds to
        below, above = x <= lower, x >= upper
        if self.rows.atomic.any():
            below = np.where(self.rows.atomic[row, None], x < lower - SAME * (1 + np.abs(lower)), below)
        outside = below | above
        if not outside.any():
            return values
        pdf, cdf, sf = between(below, above, *values[:3])
        for at, end, inwards in ((x == lower, lower, 1.0), (x == upper, upper, -1.0)):
            i = np.flatnonzero(at.any(axis=1))
            if len(i):
                pdf[i] = np.where(at[i], self._density_at_end(inversion, end[i], inwards, some[i]), pdf[i])
        error, pdf_error = (np.where(outside, 0.0, error) for error in values[3:])
        return Values(pdf, cdf, sf, error, pdf_error)

    def _density_at_end(
        self, inversion: Inversion, end: FloatArray, inwards: float, some: IntArray
    ) -> FloatArray:
        """Limit of the density at an end of the support: 0, inf or between, from two points close by."""
        near, nearer = inversion(end + inwards * NEAR_END, some).pdf.T
        with np.errstate(all="ignore"):
            ratio = nearer / near
        limit = np.where(ratio > 1.1, np.inf, np.where(ratio > 0.9, nearer, 0.0))
        return np.asarray(limit[:, None])

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """Smallest x with F(x) >= p, or with sf(x) <= p where ``upper``, and the error of the probability there."""
        x, error = np.empty(p.shape), np.zeros(p.shape)
        for index, inversion in self.parts:
            if isinstance(inversion, ClosedForm):
                x[index] = inversion.quantile(p[index], upper[index], np.arange(len(index)))
                if isinstance(inversion, SingleTerm):
                    error[index] = inversion.quantile_error(
                        x[index], p[index], upper[index], np.arange(len(index))
                    )
            else:
                # the ends of the support, p = 0, need no search
                level = np.where(p[index] > 0, p[index], 0.5)
                found, error[index] = self._search(inversion, index, level, upper[index])
                lower, higher = (end[index, None] for end in self.rows.support)
                x[index] = np.where(p[index] > 0, found, np.where(upper[index], higher, lower))
        return x, error

    def _search(
        self, inversion: Inversion, index: IntArray, p: FloatArray, upper: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray]:
        lower, higher = (end[index, None] for end in self.rows.support)
        mean = self.rows.mean[index, None]
        start = mean + wilson_hilferty(np.where(upper, -1.0, 1.0) * ndtri(p), self.skewness[index, None])
        # First without the tails, which cost more, then with them where they matter.
        bulk = p if inversion.relative else np.maximum(p, BULK)
        values = partial(self._values, inversion, index, False)
        atomic = (self.rows.atomic & (self.rows.normal_var == 0))[index, None]
        x, error = solve(values, bulk, upper, start, (lower, higher), mean, atomic)
        again = np.flatnonzero(np.any((p < 2 * TAIL) | (error > POOR), axis=1))
        if len(again) and not inversion.relative:

            def with_tails(at: FloatArray, some: IntArray) -> Values:
                return self._values(inversion, index, True, at, again[some])

            x[again], error[again] = solve(
                with_tails,
                p[again],
                upper[again],
                x[again],
                (lower[again], higher[again]),
                mean[again],
                atomic[again],
            )
        snap = getattr(inversion, "snap", None)
        if snap:
            x = snap(x, np.arange(len(index)))
        elif atomic.any():
            x, error = self._at_atoms(inversion, index, x, error, p, upper, atomic)
        return x, np.fmin(error, 1.0)

    def _at_atoms(
        self,
        inversion: Inversion,
        index: IntArray,
        x: FloatArray,
        error: FloatArray,
        p: FloatArray,
        upper: NDArray[np.bool_],
        atomic: NDArray[np.bool_],
    ) -> tuple[FloatArray, FloatArray]:
        """Quantiles of laws with atoms moved to the grid that the atoms lie on; without one, the error says how far F is."""
        origin, step = (part[index, None] for part in grid(self.rows))
        on_grid = atomic & (step > 0)
        steps = np.where(on_grid, step, 1.0)
        near = origin + steps * np.rint((x - origin) / steps)
        moved = on_grid & (np.abs(near - x) < NEAR * steps)
        x = np.where(moved, near, x)
        values = self._values(inversion, index, False, x, np.arange(len(index)))
        off = np.abs(np.where(upper, values.sf, values.cdf) - p)
        return x, np.where(atomic & ~moved, np.maximum(error, off), error)
