"""Fourier inversion on Gauss-Legendre panels that crowd at t = 0, where phi is not smooth if the tails are heavy.

An equidistant series would need a period as long as the tail; panels need only resolve e^{-itx} at the requested points
x. They end where phi has decayed, or where the corners of the density take over (corner_tail.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._typing import FloatArray, IntArray
from .atoms import nearest
from .corner_tail import SAME, CornerSum, CornerTail
from .corners import components
from .ray import EPS, RaySum, Values, by_key
from .rows import Rows

__all__ = ["MAX_NODES", "NEAR", "NODES", "PHASE", "Graded"]

NODES, PHASE = 16, 12.0
"""Gauss-Legendre nodes of a panel, and the largest phase of e^{-itx} over it that they resolve to 1e-15."""
LEVELS, SMOOTH = (3, 12), 4e-15
"""Panels next to t = 0, each a quarter of the next: few where they show no larger error, else down to 1e-7 of the first."""
SAMPLE = 8
"""Of the wide panels, one in so many is checked."""
NEAR, FACTOR = 36.0, 4.0
"""The nodes serve points up to 36 standard deviations from the mean, or 4, 16, ... times as far."""
ROUNDED, SHARP = 1e-12, 1e-12
"""Distance from an end other than 0 below which it is rounded, relative to it, and relative error of the tail there."""
MAX_NODES = 2**16
"""Nodes at most; farther out, the tails of single terms are added."""
_X, _W = np.polynomial.legendre.leggauss(NODES)


def _panels(decay: float, width: float, levels: int) -> FloatArray:
    """Edges of panels on (0, decay) that are not wider than ``width``."""
    edges = np.linspace(0, decay, int(np.ceil(decay / width)) + 1)
    return np.concatenate([[0.0], edges[1] * FACTOR ** -np.arange(levels, 0.0, -1.0), edges[1:]])


def _nodes(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on panels."""
    middle, half = (left + right)[:, None] / 2, (right - left)[:, None] / 2
    return np.ravel(middle + half * _X), np.ravel(half * _W)


class Graded:
    """Inversion on graded nodes up to the frequency ``decay``, inside a window with ends of shape (rows,).

    Where phi has not decayed there, ``corners`` of each row give the rest.
    """

    def __init__(
        self,
        rows: Rows,
        window: tuple[FloatArray, FloatArray],
        decay: float,
        corners: Sequence[CornerSum] = (),
    ) -> None:
        self.rows, self.decay = rows, decay
        self.low, self.high = window
        self.near = min(NEAR, float(np.max(np.maximum(self.high - rows.mean, rows.mean - self.low))))
        self.last = int(np.log(PHASE * MAX_NODES / (NODES * decay * self.near)) / np.log(FACTOR))
        self.beyond = [
            CornerTail(row, decay, length) for row, length in zip(corners, self.high - self.low, strict=False)
        ]
        self.relative = bool(corners)  # where phi decays slowly, the saddle point is of no use
        self.jumps = rows.atomic & (rows.normal_var == 0)
        self.atoms = [
            row.atoms if jumps else np.empty(0) for row, jumps in zip(corners, self.jumps, strict=False)
        ]
        self._sums: dict[int, RaySum] = {}

    def _sum(self, level: int) -> RaySum:
        if level not in self._sums:
            reach = self.near * FACTOR**level
            for levels in LEVELS:
                edges = _panels(self.decay, PHASE / reach, levels)
                error = self._error(edges, levels, reach)
                if np.all(error < SMOOTH):
                    break
            self._sums[level] = self._ray(*_nodes(edges[:-1], edges[1:]))
            self._sums[level].alias = error
        return self._sums[level]

    def _error(self, edges: FloatArray, levels: int, reach: float) -> FloatArray:
        """How far panels half as wide are from these, shape (rows,): all of the narrow ones, and some of the others."""
        number = np.arange(len(edges) - 1)
        some = (number <= levels) | (number % SAMPLE == 0)
        times = np.where(number <= levels, 1.0, SAMPLE)[some]
        left, right = edges[:-1][some], edges[1:][some]
        middle = 0.5 * (left + right)
        halves = np.ravel([left, middle], order="F"), np.ravel([middle, right], order="F")
        x = self.rows.mean[:, None] + reach * np.array([-1.0, -0.6, 0.0, 0.6, 1.0])
        cdf = []
        for (r, weights), share in ((_nodes(left, right), times), (_nodes(*halves), np.repeat(times, 2))):
            ray = self._ray(r, weights * np.repeat(share, NODES))
            cdf.append(ray(x, np.arange(len(self.rows))).cdf)
        return np.asarray(np.max(np.abs(cdf[0] - cdf[1]), axis=1))

    def _ray(self, r: FloatArray, weights: FloatArray) -> RaySum:
        log_phi = np.stack([tail.row.log_phi(r) for tail in self.beyond]) if self.beyond else None
        return RaySum(self.rows, r, weights, 0.0, np.zeros(len(self.rows)), complete=True, log_phi=log_phi)

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        # an atom is reached, whatever a standardized x rounds to
        shift = np.where(self.jumps[index, None], 2 * SAME * (1 + np.abs(x)), 0.0)
        x = self.snap(x, index) + shift
        low, high = self.low[index, None], self.high[index, None]
        with np.errstate(divide="ignore"):
            distance = np.abs(x - self.rows.mean[index, None])
            level = np.maximum(0, np.ceil(np.log(distance / self.near) / np.log(FACTOR)))
        level = np.where((x < low) | (x > high), -1, np.minimum(level, self.last + 1)).astype(int)
        result = by_key(level, x, index, self._at_level)
        for i, row in enumerate(index if self.beyond else ()):
            inside = np.flatnonzero((level[i] >= 0) & (level[i] <= self.last))
            for out, value in zip(result, self.beyond[row](x[i, inside]), strict=True):
                out[i, inside] += value
            self._at_ends(x[i], int(row), Values(*(out[i] for out in result)))
        result.cdf[x > high], result.sf[x < low] = 1.0, 1.0
        result.error[:] += shift * result.pdf
        return result

    def _at_level(self, level: int, x: FloatArray, index: IntArray) -> Values:
        if level < 0:
            return Values(*np.zeros((5, *x.shape)))
        return self._far(x, index) if level > self.last else self._sum(level)(x, index)

    def snap(self, x: FloatArray, index: IntArray) -> FloatArray:
        """The points ``x``, moved to the atoms that they are next to."""
        if not self.jumps.any():
            return x
        return np.stack([nearest(row, self.atoms[i]) for row, i in zip(x, index, strict=True)])

    def _at_ends(self, x: FloatArray, row: int, values: Values) -> None:
        """Replace values of a row next to the ends of its support by those of the corner there."""
        for end, upper in zip(self.rows.support, (False, True), strict=True):
            distance, terms = np.abs(x - end[row]), self.beyond[row].row
            close = np.flatnonzero(
                (distance > ROUNDED * np.abs(end[row])) & (distance < terms.near_end(upper))
            )
            if len(close):
                pdf, tail = terms.beside(distance[close], upper)
                values.pdf[close], values.pdf_error[close] = pdf, SHARP * pdf
                values.cdf[close], values.sf[close] = (1 - tail, tail) if upper else (tail, 1 - tail)
                # the distance is rounded, too
                values.error[close] = SHARP * tail + pdf * 4 * EPS * (np.abs(x[close]) + np.abs(end[row]))

    def _far(self, x: FloatArray, index: IntArray) -> Values:
        """Where one large term makes the sum large: the tails of the terms, added."""
        upper = x > self.rows.mean[index, None]
        distance = np.abs(x - self.rows.mean[index, None])
        tail, pdf = np.zeros(x.shape), np.zeros(x.shape)
        columns = zip(self.rows.weights[index].T, self.rows.counts, self.rows.laws, strict=True)
        for weight, count, noise in columns:
            v = np.where(weight == 0, 1.0, weight)[:, None]
            rest = self.rows.mean[index, None] - v * noise.mean()
            m = (x - rest) / v
            with np.errstate(all="ignore"):
                beyond = np.where(upper == (v > 0), noise.sf(m), noise.cdf(m))
            tail += np.where(weight == 0, 0.0, count)[:, None] * beyond
            density = np.sum([p * part.pdf(m) for p, part in components(noise) if not part.discrete], axis=0)
            pdf += np.where(weight == 0, 0.0, count)[:, None] * density / np.abs(v)
        # The others deviate by 1 or so: over this length a power bends by 1/x^2, and a tail of rate h by h^2 / 2.
        with np.errstate(all="ignore"):
            rate = np.nan_to_num(pdf / tail)
        share = tail + 10 / distance**2 + np.expm1(np.minimum(2 * rate**2, 700.0))
        error, pdf_error = tail * share, pdf * share
        return Values(pdf, np.where(upper, 1 - tail, tail), np.where(upper, tail, 1 - tail), error, pdf_error)
