"""Log densities of linear combinations with a normal part, one point a row or a few, and all their derivatives.

x = sum_j w_j Z_j + N(0, normal_var) with standardized noise Z has the density
    p(x) = Re int_0^inf e^{-itx} phi(t) dt / pi,   log phi(t) = -t^2 normal_var / 2 + sum_j n_j L(w_j t).
A derivative of log p is the same integral with the derivative of the exponent inside, so that the nodes that give the
value give the whole gradient. The contour is a ray that turns to where e^{-itx} decays (laws that are analytic in a
sector), the real axis (bounded laws), or a line through the saddle point (light tails, where p is small).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from .ray_sums import DirectSum, RaySum, WeightSum
from .rows import Rows, saddle_point
from .standard_law import StandardLaw

__all__ = ["LogDensity"]

THETA = 0.28
"""Angle of the ray: well below pi/4, from where on the normal part grows."""
RAY_STEPS = ((0.055, False), (0.0275, True))
"""Steps, and whether weights are summed term by term where a table is not enough: seldom does it matter."""
TAIL = 28.0
"""Terms below e^-28 = 7e-13 are left out."""
CANCELLATION = 1e-5
"""A sum that is smaller than this part of its terms is done again through the saddle point, if there is one,"""
FLOOR = 1e-10
"""and one that is smaller than this part of its terms is noise."""
ALTERNATION = 3e-4
"""Error of every second node alone, relative to the sum; that of all nodes is about its square."""
MAX_NODES = 2**14
MAX_SADDLE_NODES = 2**10
HYPERBOLA_NODES = (96, 288)
CHUNK = 2**21


@dataclass(frozen=True)
class _Batch:
    """Points and the nodes that they are evaluated with.

    Row k of ``rows`` is ``factor[k]`` times row ``row[k]`` of the caller, and point ``index[i]`` belongs to row
    ``of_point[i]``. ``share``, once known, is each node's part of a point's density: complex, its real parts sum to 1.
    """

    index: IntArray
    row: IntArray
    of_point: IntArray
    factor: FloatArray
    rows: Rows
    t: ComplexArray
    weight: ComplexArray
    sum: WeightSum
    alternation: float = np.inf
    share: ComplexArray = field(default_factory=lambda: np.empty((0, 0), dtype=complex))

    def share_of_rows(self) -> ComplexArray:
        """Shares summed over the points of each row, (rows, K)."""
        if len(self.of_point) == len(self.row) and np.all(np.diff(self.of_point) == 1):
            return self.share
        result = np.zeros((len(self.row), self.share.shape[1]), dtype=complex)
        np.add.at(result, self.of_point, self.share)
        return result


class LogDensity:
    """Log density of points under their rows.

    Parameters
    ----------
    law : StandardLaw
    rows : Rows
    x : ndarray of shape (m,)
    row : ndarray of shape (m,)
        Row that each point belongs to.

    Attributes
    ----------
    value : ndarray of shape (m,)
        Where a density is too small to be told from 0 it is bounded from below, with derivatives 0.
    """

    def __init__(self, law: StandardLaw, rows: Rows, x: FloatArray, row: IntArray) -> None:
        self.law, self.rows, self.x, self.row = law, rows, x, row
        self.value = np.full(len(x), np.nan)
        self._batches: list[_Batch] = []
        self._std = np.sqrt(rows.var)
        if law.gaussian:
            self.value = -0.5 * (x / self._std[row]) ** 2 - np.log(np.sqrt(2 * np.pi) * self._std[row])
            return
        bulk = self._on_rays if law.sector > 0 else self._on_real_axis
        self._cancellation = CANCELLATION
        poor = self._through_saddle(bulk(np.arange(len(x))))
        self._cancellation = FLOOR
        poor = bulk(poor) if len(poor) else poor
        self.value[poor] = np.log(FLOOR / self._std[row[poor]]) - np.log1p(np.abs(x / self._std[row])[poor])

    def gradient(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Derivatives of the sum of the log densities.

        Returns
        -------
        by_x : ndarray of shape (m,)
        by_normal_var : ndarray of shape (rows,)
        by_weights : ndarray of shape (rows, J)
        """
        by_x, by_normal = np.zeros(len(self.x)), np.zeros(len(self._std))
        weights = self.rows.weights
        if self.law.gaussian:
            z = self.x / self._std[self.row]
            by_x[:] = -z / self._std[self.row]
            np.add.at(by_normal, self.row, 0.5 * (z**2 - 1) / self._std[self.row] ** 2)
            return by_x, by_normal, 2 * by_normal[:, None] * weights * self.rows.counts
        by_log_weights = np.zeros(weights.shape)
        for batch in self._batches:
            share = batch.share_of_rows()
            slope = (
                batch.factor[batch.of_point]
                * _at_nodes(batch.t[batch.of_point % len(batch.t)], batch.share).imag
            )
            np.add.at(by_x, batch.index, slope)
            curvature = -0.5 * batch.factor**2 * _at_nodes(batch.t**2, share).real
            np.add.at(by_normal, batch.row, curvature)
            np.add.at(by_log_weights, batch.row, batch.sum.slope(self.law, share))
        return by_x, by_normal, by_log_weights / np.where(weights == 0, 1.0, weights)

    def by_law(self, law: StandardLaw) -> float:
        """Derivative of the sum of the log densities along a change of the log characteristic function.

        Parameters
        ----------
        law : StandardLaw
            The change.

        Returns
        -------
        float
        """
        total = 0.0
        for batch in self._batches:
            total += float(np.sum(batch.share_of_rows() * batch.sum.value(law)).real)
        return total

    def _on_rays(self, index: IntArray) -> IntArray:
        """Evaluate points on rays; return those that were not accurate."""
        law, theta = self.law, min(THETA, 0.45 * self.law.sector)
        x = self.x[index] / self._std[self.row[index]]
        # The ray turns to the side of the point, seen from where the density of the fresh noise is singular.
        side = np.where(x < law.edge * (self.rows.own / self._std)[self.row[index]], -1.0, 1.0)
        poor = []
        for sign in (1.0, -1.0):
            some = index[side == sign]
            for step, careful in RAY_STEPS:
                some = self._on_ray(some, sign, theta, step, careful)
            poor.append(some)
        return np.concatenate(poor)

    def _on_ray(self, index: IntArray, sign: float, theta: float, step: float, careful: bool) -> IntArray:
        if not len(index):
            return index
        row, of_point = np.unique(self.row[index], return_inverse=True)
        factor = sign / self._std[row]
        rows = self.rows.take(row).scaled(factor)
        # Rounded, so that other parameters find the tables of these nodes.
        start = -np.ceil(2 * np.log1p(float(np.max(np.abs(self.x[index] * factor[of_point]))) / 5)) / 2
        normal = max(float(rows.normal_var.min()), 1e-12)
        decay = np.ceil(np.log(2 * TAIL / (np.cos(2 * theta) * normal))) / 2
        u = np.arange(-3.3, max(decay, 1.0) - start + step, step)
        r = np.exp(u - np.exp(-u) + start)
        weight = np.exp(-1j * theta) * step * r * (1 + np.exp(-u)) / np.pi
        total = RaySum(rows.weights, rows.counts, r, theta, self.law, careful)
        return self._integrate(
            _Batch(index, row, of_point, factor, rows, total.t[None], weight[None], total, ALTERNATION)
        )

    def _on_real_axis(self, index: IntArray) -> IntArray:
        """Evaluate points by Fourier series; return those that were not accurate."""
        rows, law = self.rows, self.law
        # Unit: the width of all but the fresh noise, which makes the characteristic function decay.
        rest = np.maximum(rows.var - rows.own**2, rows.normal_var)
        unit = np.sqrt(np.maximum(rest, 1e-12 * rows.own**2))
        low, high = law.window
        # Hoeffding: bounded variables have tails like normal ones of half their range.
        reach = 7.5 * np.sqrt(rows.normal_var + (rest - rows.normal_var) * max(1.0, (high - low) ** 2 / 4))
        period = (np.abs(rows.own) * (high - low) + 2 * reach) / unit
        octave = np.ceil(2 * np.log2(period))[self.row[index]]
        # The series ends where the fresh noise or the normal part ends it.
        with np.errstate(divide="ignore"):
            end = unit * np.fmin(law.decay / np.abs(rows.own), np.sqrt(2 * TAIL / rows.normal_var))
        poor = []
        for level in np.unique(octave):
            some, h = index[octave == level], 2 * np.pi / 2 ** (level / 2)
            nodes = int(np.ceil(min(8.0, float(end[self.row[some]].max())) / h))
            while len(some) and nodes <= MAX_NODES:
                step = max(1, CHUNK // nodes)
                left = [self._series(some[i : i + step], unit, h, nodes) for i in range(0, len(some), step)]
                some = np.concatenate(left)
                ended = h * nodes > end[self.row[some]]
                poor.append(some[ended])
                some, nodes = some[~ended], 2 * nodes
            poor.append(some)
        return np.concatenate(poor)

    def _series(self, index: IntArray, unit: FloatArray, h: float, nodes: int) -> IntArray:
        row, of_point = np.unique(self.row[index], return_inverse=True)
        rows = self.rows.take(row).scaled(1 / unit[row])
        total = RaySum(rows.weights, rows.counts, (np.arange(nodes) + 0.5) * h, 0.0, self.law)
        weight = np.full((1, nodes), h / np.pi, dtype=complex)
        return self._integrate(
            _Batch(index, row, of_point, 1 / unit[row], rows, total.t[None], weight, total)
        )

    def _through_saddle(self, index: IntArray) -> IntArray:
        """Evaluate points on contours through z = it = c, where c tilts the law until x is its mean.

        Return what has no such c, or needs too many nodes.
        """
        factor = 1 / self._std[self.row[index]]
        tilted = self.rows.take(self.row[index]).scaled(factor)
        tilt, curvature = saddle_point(self.law, tilted, self.x[index] * factor)
        light = np.isfinite(tilt)
        poor, index, tilt, width = index[~light], index[light], tilt[light], 1 / np.sqrt(curvature[light])
        for nodes in HYPERBOLA_NODES if self.law.sector > 0 else ():
            left = self._contour(index, *self._hyperbola(index, tilt, width, nodes))
            again = np.isin(index, left)
            index, tilt, width = index[again], tilt[again], width[again]
        n, h = 64, 2 * np.pi / 24 * width
        while len(index) and n <= MAX_SADDLE_NODES:
            weight = np.repeat(h[:, None] / np.pi, n, axis=1).astype(complex)
            weight[:, 0] /= 2
            left = self._contour(index, h[:, None] * np.arange(n) - 1j * tilt[:, None], weight)
            again = np.isin(index, left)
            index, tilt, h, n = index[again], tilt[again], h[again] / 2, 4 * n
        return np.concatenate([poor, index])

    def _hyperbola(
        self, index: IntArray, tilt: FloatArray, width: FloatArray, nodes: int
    ) -> tuple[ComplexArray, ComplexArray]:
        """Nodes and weights on z = c + b (+-sin theta (cosh u - 1) + i cos theta sinh u), which turns away from x."""
        theta, std = min(THETA, 0.45 * self.law.sector), self._std[self.row[index]]
        x, own = self.x[index] / std, self.rows.own[self.row[index]] / std
        normal = np.maximum(self.rows.normal_var[self.row[index]] / std**2, 1e-12)
        turn, b = np.sign(tilt), 2 * width
        rate = np.maximum(turn * (x - self.law.edge * own), 1e-3)
        # Far out e^{-zx} decays, or the normal part.
        reach = np.minimum(
            np.arccosh(1 + TAIL / (rate * b * np.sin(theta))),
            np.arcsinh(np.sqrt(2 * TAIL / (np.cos(2 * theta) * normal)) / b),
        )
        h = (np.maximum(reach, 3.0) / (nodes - 1))[:, None]
        u = h * np.arange(nodes)
        sin, cos = turn[:, None] * np.sin(theta), np.cos(theta)
        z = tilt[:, None] + b[:, None] * (sin * (np.cosh(u) - 1) + 1j * cos * np.sinh(u))
        dz = b[:, None] * h * (sin * np.sinh(u) + 1j * cos * np.cosh(u))
        dz[:, 0] /= 2  # the other half of the contour has its other half
        return -1j * z, -1j * dz / np.pi

    def _contour(self, index: IntArray, t: ComplexArray, weight: ComplexArray) -> IntArray:
        """Evaluate each point at its own nodes."""
        factor = 1 / self._std[self.row[index]]
        rows = self.rows.take(self.row[index]).scaled(factor)
        total, points = DirectSum(rows.weights, rows.counts, t, self.law), np.arange(len(index))
        return self._integrate(
            _Batch(index, self.row[index], points, factor, rows, t, weight, total, ALTERNATION)
        )

    def _integrate(self, batch: _Batch) -> IntArray:
        """Sum over the nodes; keep the points that are accurate, return the others."""
        index, of_point = batch.index, batch.of_point
        t, weight = batch.t[of_point % len(batch.t)], batch.weight[of_point % len(batch.weight)]
        exponent = (batch.sum.value(self.law) - 0.5 * batch.rows.normal_var[:, None] * batch.t**2)[of_point]
        exponent -= 1j * t * (self.x[index] * batch.factor[of_point])[:, None]
        # On a line through the saddle the first node is the highest; elsewhere it is at t = 0.
        height = exponent.real[:, 0]
        with np.errstate(all="ignore"):
            terms = np.exp(exponent - height[:, None]) * weight
        terms = np.where(np.isfinite(terms), terms, 0.0)
        size = np.abs(terms)
        density, total = terms.real.sum(axis=1), size.sum(axis=1)
        # Every second node alone has an error d, which halving the step squares.
        alternate = terms.real @ np.where(np.arange(t.shape[1]) % 2, -1.0, 1.0)
        last = size[:, -3:].max(axis=1) * np.abs(t[:, -1]) / np.abs(weight[:, -1])
        good = (density > self._cancellation * total) & (last < 1e-9 * density)
        good &= np.abs(alternate) < batch.alternation * density
        doubtful = np.abs(t) > batch.sum.reliable[of_point, None]
        good &= np.max(size, axis=1, where=doubtful, initial=0.0) < 1e-11 * density
        good &= np.isnan(self.value[index])
        scale = np.abs(batch.factor[of_point])
        self.value[index[good]] = np.log(density[good]) + np.log(scale[good]) + height[good]
        share = np.zeros_like(terms)
        share[good] = terms[good] / density[good, None]
        self._batches.append(replace(batch, share=share))
        return np.asarray(index[~good])


def _at_nodes(values: ComplexArray, share: ComplexArray) -> ComplexArray:
    """Sum over the nodes of values times shares, (rows,)."""
    return np.asarray(np.sum(values * share, axis=1))
