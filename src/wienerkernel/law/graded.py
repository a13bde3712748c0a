"""Fourier inversion of heavy tails: nodes that crowd at t = 0, the only place where phi is not smooth.

An equidistant series would need a period as long as the tail. Gauss-Legendre panels need only resolve e^{-itx} at the
requested points x.
"""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray
from .ray import RaySum, Values
from .rows import Rows
from .values import put

__all__ = ["Graded"]

NODES, PHASE = 16, 12.0
"""Gauss-Legendre nodes of a panel, and the largest phase of e^{-itx} over it that they resolve to 1e-15."""
LEVELS = 20
"""Panels next to t = 0, each a quarter of the next: down to 1e-12 of the first."""
NEAR, FACTOR = 30.0, 4.0
"""The nodes serve points up to 30 standard deviations from the mean, or 4, 16, ... times as far."""
MAX_NODES = 2**16
"""Nodes at most; farther out, the tails of single terms are added."""
_X, _W = np.polynomial.legendre.leggauss(NODES)


def _nodes(decay: float, width: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on (0, decay), on panels that are not wider than ``width``."""
    count = int(np.ceil(decay / width))
    edges = np.linspace(0, decay, count + 1)
    edges = np.concatenate([[0.0], edges[1] * FACTOR ** -np.arange(LEVELS, 0.0, -1.0), edges[1:]])
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return np.ravel(middle[:, None] + half[:, None] * _X), np.ravel(half[:, None] * _W)


class Graded:
    """Inversion on graded nodes up to the frequency ``decay``, inside a window with ends of shape (rows,)."""

    relative = False

    def __init__(self, rows: Rows, window: tuple[FloatArray, FloatArray], decay: float) -> None:
        self.rows, self.decay = rows, decay
        self.low, self.high = window
        self.last = int(np.log(PHASE * MAX_NODES / (NODES * decay * NEAR)) / np.log(FACTOR))
        self._sums: dict[int, RaySum] = {}

    def _sum(self, level: int) -> RaySum:
        if level not in self._sums:
            reach = NEAR * FACTOR**level
            none = np.zeros(len(self.rows))
            r, weights = _nodes(self.decay, PHASE / reach)
            chosen = RaySum(self.rows, r, weights, 0.0, none, complete=True)
            # panels half as wide show the error
            check = RaySum(self.rows, *_nodes(self.decay, 0.5 * PHASE / reach), 0.0, none, complete=True)
            x = self.rows.mean[:, None] + reach * np.array([-1.0, -0.6, 0.0, 0.6, 1.0])
            index = np.arange(len(self.rows))
            chosen.alias = np.max(np.abs(chosen(x, index).cdf - check(x, index).cdf), axis=1)
            self._sums[level] = chosen
        return self._sums[level]

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
        low, high = self.low[index, None], self.high[index, None]
        result = Values(*np.zeros((5, *x.shape)))
        with np.errstate(divide="ignore"):
            distance = np.abs(x - self.rows.mean[index, None])
            level = np.maximum(0, np.ceil(np.log(distance / NEAR) / np.log(FACTOR)))
        level = np.where((x < low) | (x > high), -1, np.minimum(level, self.last + 1)).astype(int)
        for number in np.unique(level[level >= 0]):
            chosen = level == number
            some = np.flatnonzero(chosen.any(axis=1))
            # points of other levels are replaced by one of this level
            lent = np.take_along_axis(x, np.argmax(chosen, axis=1)[:, None], axis=1)
            points = np.where(chosen, x, lent)[some]
            far = number > self.last
            values = self._far(points, index[some]) if far else self._sum(int(number))(points, index[some])
            put(result, chosen, values, chosen[some])
        result.cdf[x > high], result.sf[x < low] = 1.0, 1.0
        return result

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
            pdf += np.where(weight == 0, 0.0, count)[:, None] * noise.pdf(m) / np.abs(v)
        # the others deviate by 1 or so, and the tail bends over lengths of x
        error = tail * (tail + 10 / distance**2)
        pdf_error = pdf * (tail + 10 / distance**2)
        return Values(pdf, np.where(upper, 1 - tail, tail), np.where(upper, tail, 1 - tail), error, pdf_error)
