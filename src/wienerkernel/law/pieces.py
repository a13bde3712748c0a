"""Laws as tables: pieces between the points where the density is not smooth, each seen from both of its ends.

On a piece [a, b], x is replaced by tau with log((x - a) / (b - x)) = pi sinh(tau), on a half-line by the
same formula with a constant for the infinite distance. In tau, a density with a pole, a kink or a zero at an end of
the piece is smooth, so that polynomials on cells of tau represent it to machine precision.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray
from ..noise.characteristic.quadrature import chebyshev
from .ray import EPS, between

__all__ = ["CdfValues", "Pieces", "tabulate"]

NODES = 16
"""Chebyshev nodes of a cell."""
LEVELS = 6
"""Bisections of a cell at most."""
MISSED, NOISE = 4e-15, 3e-14
"""Mass that the polynomial of a cell may miss: absolute, or relative where the density itself has rounding errors."""
ROUGH = 1e-9
"""Relative error that a cell of little mass may have, too: next to it, the other term of a sum may have a pole."""
TINY = 1e-300
NO_MASS = 1e-30
"""Mass beyond which a tail ends."""
SHALLOW = 3.25
"""Least depth of a quadrature: it reaches from 1e-17 to 1 - 1e-17 of a piece."""
_X, _TO_SERIES, _TO_POWERS = chebyshev(NODES)


Density = Callable[[IntArray, FloatArray, FloatArray], FloatArray]


class CdfValues(NamedTuple):
    """Density, distribution function and survival function at points."""

    pdf: FloatArray
    cdf: FloatArray
    sf: FloatArray


class Pieces:
    """Laws of several rows, tabulated from tau = -depth to depth.

    The pieces lie between increasing ``cuts`` of shape (rows, S), and beyond the outer ones where there is a ``lower``
    or ``upper`` tail, of the scale ``tail`` of shape (rows,). Next to a cut, x is rounded relative to ``grain``, of shape
    (rows, S). A quadrature over the law needs the depth ``need``; ``error`` is the mass that a table misses, and ``row``
    the index of the table of each row.
    """

    def __init__(
        self,
        cuts: FloatArray,
        tail: FloatArray,
        lower: bool,
        upper: bool,
        grain: FloatArray,
        depth: float,
    ) -> None:
        self.cuts, self.tail, self.lower, self.upper, self.depth = cuts, tail, lower, upper, depth
        self.grain = grain
        self.pieces = cuts.shape[1] - 1 + lower + upper
        infinite = np.full((len(cuts), 1), np.inf)
        self.ends = np.concatenate([-infinite] * lower + [cuts] + [infinite] * upper, axis=1)
        self.need = depth
        self.row = np.arange(len(cuts))
        self.fine = int(2 * depth * 2**LEVELS)

    def scaled(self, factor: FloatArray) -> Pieces:
        """The law of factor times the variable of row 0, for positive factors of shape (rows,)."""
        other, column = copy(self), factor[:, None]
        other.cuts, other.ends = self.cuts[0] * column, self.ends[0] * column
        other.tail, other.grain = self.tail[0] * factor, self.grain[0] * column
        other.row = np.zeros(len(factor), dtype=np.intp)
        return other

    def store(
        self, where: tuple[IntArray, IntArray, IntArray, IntArray], powers: FloatArray, error: FloatArray
    ) -> None:
        """Store cells: (row, piece, level, number) of each, and the powers of the density in the cell's variable."""
        row, piece, level, number = where
        width = 2.0**-level
        start = -self.depth + number * width
        order = np.lexsort((start, piece, row))
        row, piece, level, number = (part[order] for part in (row, piece, level, number))
        width, start = width[order], start[order]
        powers = powers[order] * (0.5 * width)[:, None]
        integral = np.concatenate([np.zeros((len(row), 1)), powers / np.arange(1, NODES + 1)], axis=1)
        integral[:, 0] = -integral @ (-1.0) ** np.arange(NODES + 1)  # 0 at the left end
        mass = np.maximum(integral.sum(axis=1), 0.0)
        # cumulative masses from either side, row by row
        count = np.bincount(row, minlength=len(self.cuts))
        column = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        table = np.zeros((len(count), int(count.max()) + 1))
        table[row, column] = mass
        total = table.sum(axis=1)
        below = np.cumsum(table, axis=1) - table
        above = np.cumsum(table[:, ::-1], axis=1)[:, ::-1] - table
        self.error = np.asarray(error + np.abs(total - 1))
        share = total[row]
        self._below, self._above, self._mass = (
            part / share for part in (below[row, column], above[row, column], mass)
        )
        self._density = np.ascontiguousarray((powers / (0.5 * width * share)[:, None]).T)
        self._integral = np.ascontiguousarray((integral / share[:, None]).T)
        self._center, self._slope = start + 0.5 * width, 2 / width
        first = number * 2 ** (LEVELS - level)
        length = 2 ** (LEVELS - level)
        base = (row * self.pieces + piece) * self.fine + first
        self._cell = np.zeros(len(count) * self.pieces * self.fine, dtype=np.intp)
        inner = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        self._cell[np.repeat(base, length) + inner] = np.repeat(np.arange(len(row)), length)

    def at(
        self,
        row: IntArray,
        piece: IntArray | np.intp,
        left: FloatArray,
        right: FloatArray,
        tails: bool = True,
    ) -> CdfValues:
        """Values at the distances ``left`` and ``right`` from the ends of a piece, all arguments broadcast.

        ``tails`` says whether to evaluate the distribution functions, too.
        """
        first, last = self.lower & (piece == 0), self.upper & (piece == self.pieces - 1)
        with np.errstate(all="ignore"):
            # dx/dtau = reach dlog(left/right)/dtau; the distance to an infinite end is the scale of the tail
            reach = left * right / (left + right)
            if np.any(first) or np.any(last):
                reach = np.where(first, right, np.where(last, left, reach))
                left, right = np.where(first, self.tail[row], left), np.where(last, self.tail[row], right)
            steep = np.log(left / right)
            steep *= 1 / np.pi
            tau = np.arcsinh(steep)
            stretch = np.sqrt(1 + steep * steep) * reach
            inside = np.abs(tau) < self.depth
            tau = np.clip(tau, -self.depth, self.depth)
            fine = np.minimum((tau + self.depth) * 2**LEVELS, self.fine - 1).astype(np.intp)
            fine += (self.row[row] * self.pieces + piece) * self.fine
            cell = self._cell[fine]
            y = (tau - self._center[cell]) * self._slope[cell]
            density = np.where(inside, _horner(self._density, cell, y) / (np.pi * stretch), 0.0)
        if not tails:
            return CdfValues(density, density, density)
        part = np.clip(_horner(self._integral, cell, y), 0.0, self._mass[cell])
        return CdfValues(density, self._below[cell] + part, self._above[cell] + (self._mass[cell] - part))

    def __call__(self, row: IntArray, x: FloatArray) -> CdfValues:
        """Values at (n,) points x of (n,) rows."""
        cuts = self.cuts[row]
        piece = (x[:, None] >= cuts).sum(axis=1) - 1 + self.lower
        below, above = piece < 0, piece >= self.pieces
        piece = np.clip(piece, 0, self.pieces - 1)
        left, right = x - self.ends[row, piece], self.ends[row, piece + 1] - x
        place = self.at(row, piece, np.maximum(left, 0.0), np.maximum(right, 0.0))
        return CdfValues(*between(below, above, *place))

    def reach(self, upper: bool) -> FloatArray:
        """Distance from the outermost cut at which a tail ends, shape (rows,)."""
        distance = np.exp(np.minimum(np.pi * np.sinh(np.linspace(0, self.depth, 200)), 600.0))
        row, first = np.unique(self.row, return_index=True)
        x = distance * self.tail[first, None]
        at = self.at(np.repeat(first[:, None], 200, axis=1), np.intp(self.pieces - 1 if upper else 0), x, x)
        gone = (at.sf if upper else at.cdf) < NO_MASS
        gone[:, -1] = True
        return np.asarray(distance[np.argmax(gone, axis=1)][np.searchsorted(row, self.row)] * self.tail)

    def depth_for(self, mass: float) -> float:
        """The smallest depth, in quarters, beyond which each end of a piece of row 0 has at most this mass."""
        depths = np.arange(SHALLOW, self.depth + 0.25, 0.25)
        row, enough = np.zeros(len(depths), dtype=np.intp), SHALLOW
        for piece, width in enumerate(np.diff(self.ends[0])):
            size = width if np.isfinite(width) else self.tail[0]
            near = size / (1 + np.exp(np.pi * np.sinh(depths)))
            if size > 0 and np.isfinite(self.ends[0, piece]):
                low = self.at(row, np.intp(piece), near, size - near).cdf
                enough = max(enough, float(depths[np.argmax(low - low.min() <= mass)]))
            if size > 0 and np.isfinite(self.ends[0, piece + 1]):
                high = self.at(row, np.intp(piece), size - near, near).sf
                enough = max(enough, float(depths[np.argmax(high - high.min() <= mass)]))
        return enough


def _horner(powers: FloatArray, cell: IntArray, y: FloatArray) -> FloatArray:
    result = powers[-1][cell]
    buffer = np.empty_like(result)
    for row in powers[-2::-1]:
        result *= y
        np.take(row, cell, out=buffer, mode="clip")
        result += buffer
    return np.asarray(result)


def tabulate(pieces: Pieces, density: Density) -> None:
    """Fill an empty table from a density, bisecting the cells until their polynomials have converged.

    The density is a function of (n,) rows, (n,) ends of pieces and (n,) signed distances from them.
    """
    rows, n = len(pieces.cuts), int(4 * pieces.depth)
    row, piece, number = (part.ravel() for part in np.indices((rows, pieces.pieces, n)))
    level = np.ones(len(row), dtype=np.intp)
    done: list[tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]] = []
    error = np.zeros(rows)
    while len(row):
        width = 2.0**-level
        start = -pieces.depth + number * width
        tau = start[:, None] + 0.5 * width[:, None] * (1 + _X)
        values, noise = _density_in_tau(pieces, density, row, piece, tau)
        series = values @ _TO_SERIES
        size = np.abs(series).max(axis=1)
        tail = np.abs(series[:, -3:]).max(axis=1)
        fine = (tail * width <= MISSED) & (tail <= np.maximum(ROUGH * size, TINY))
        fine |= tail <= np.maximum(NOISE * size, np.max(values * noise, axis=1))
        fine |= level == LEVELS
        np.add.at(error, row[fine], np.where(tail * width > 2 * MISSED, tail * width, 0.0)[fine])
        done.append((row[fine], piece[fine], level[fine], number[fine], series[fine] @ _TO_POWERS))
        row, piece, level, number = (np.repeat(part[~fine], 2) for part in (row, piece, level, number))
        level, number = level + 1, 2 * number + np.arange(len(number)) % 2
    parts = [np.concatenate(part) for part in zip(*done, strict=True)]
    pieces.store((parts[0], parts[1], parts[2], parts[3]), parts[4], error)


def _density_in_tau(
    pieces: Pieces, density: Density, row: IntArray, piece: IntArray, tau: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Density in tau, and its relative error from the rounding of x, at tau of shape (cells, k)."""
    left, right = pieces.ends[row, piece][:, None], pieces.ends[row, piece + 1][:, None]
    bounded = np.isfinite(left), np.isfinite(right)
    steep = np.pi * np.sinh(tau)
    tail = pieces.tail[row][:, None]
    width = np.where(bounded[0] & bounded[1], right - left, 0.0)
    with np.errstate(all="ignore"):
        from_left = np.where(bounded[1], width / (1 + np.exp(-steep)), tail * np.exp(steep))
        from_right = np.where(bounded[0], width / (1 + np.exp(steep)), tail * np.exp(-steep))
        reach = np.where(
            bounded[0], np.where(bounded[1], from_left * (from_right / width), from_left), from_right
        )
        slope = np.pi * np.cosh(tau) * reach
    nearer = bounded[0] & ((steep < 0) | ~bounded[1])
    end, offset = np.where(nearer, left, right), np.where(nearer, from_left, -from_right)
    real = np.broadcast_to(right > left, tau.shape) & np.isfinite(offset) & np.isfinite(slope)
    values = np.zeros(tau.shape)
    with np.errstate(all="ignore"):
        rows = np.broadcast_to(row[:, None], tau.shape)
        grain = 8 * EPS * pieces.grain[rows, piece[:, None] + np.where(nearer, 0, 1) - pieces.lower]
        noise = grain / np.abs(offset)
        # never on the end itself, where the density may be infinite
        offset = np.where(noise > 1, np.sign(offset) * grain, offset)
        values[real] = density(rows[real], end[real], offset[real]) * slope[real]
    return np.where(np.isfinite(values), values, 0.0), np.minimum(noise, 1.0)
