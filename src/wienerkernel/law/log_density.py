"""Log densities of linear combinations with a normal part at single points, and all their derivatives.

X = sum_j w_j (M_j - m) + N(0, normal_var) has the density
    p(x) = Re int_0^inf e^{-itx} phi(t) dt / pi,   log phi(t) = -t^2 normal_var / 2 + sum_j log phi_{M-m}(w_j t).
A derivative of log p is the same integral with the derivative of the exponent inside, so that the nodes that give the
value give the whole gradient. The contour is a ray that turns to where e^{-itx} decays (laws that are analytic in a
sector), the real axis (bounded laws), or runs through the saddle point (light tails, where p is small).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise, ScipyNoise
from .ray_table import SMOOTH, Law
from .rows import Rows, split
from .saddle import hyperbola, saddle_point
from .terms import SumAtNodes, SumOnRay, Terms, WeightSum

__all__ = ["Centered", "LogDensity", "centered"]

THETA = 0.28
"""Angle of the ray: well below pi/4, beyond which the normal part grows."""
RAY_STEPS = ((0.08, False), (0.04, True))
"""Steps, with errors below e^(-2 pi THETA / step) = 3e-10, and whether weights near zeros of phi are summed one by one."""
TAIL = 28.0
"""Terms below e^-28 = 7e-13 are left out."""
CANCELLATION = 1e-5
"""A sum that is smaller than this fraction of its terms is evaluated again through the saddle point, if there is one,"""
FLOOR = 1e-10
"""and one that is smaller than this fraction of its terms is rounding error."""
ALTERNATION = 3e-4
"""Error of every second node alone, relative to the sum; that of all nodes is about its square."""
ENDED, DOUBTFUL = 1e-9, 1e-11
"""Size of the last terms, and of terms that are not reliable, relative to the sum, that is negligible."""
MAX_NODES = 2**14
MAX_SADDLE_NODES = 2**10
HYPERBOLA_NODES = (96, 288)
CHUNK = 2**21
"""Terms that are held at once."""


class Centered(NamedTuple):
    """Noise without its mean, M - m = shift + Z + N(0, normal_var): the density of Z is singular at 0, if anywhere."""

    law: Law
    shift: float
    normal_var: float


def centered(noise: Noise) -> Centered:
    """Split noise into these parts."""
    if noise.gaussian:
        return Centered(noise, 0.0, noise.var())  # all of it is the normal part
    law, origin, _, normal_std = split(noise)
    if isinstance(noise, ScipyNoise):  # the only one whose scale is split off
        law = noise.moved(noise.loc - origin)
    return Centered(law, origin - noise.mean(), normal_std**2)


@dataclass
class _Batch:
    """Points and the nodes at which they are evaluated.

    Point ``index[i]`` belongs to row ``of_point[i]`` of the batch, which is ``factor`` times row ``row`` of the caller.
    Nodes ``t`` and their weights ``step`` have shape (1, K) or one row per point. ``share``, once known, is each node's
    part of a point's density: complex, its real parts sum to 1.
    """

    index: IntArray
    row: IntArray
    of_point: IntArray
    factor: FloatArray
    t: ComplexArray
    step: ComplexArray
    sum: WeightSum
    alternation: float = ALTERNATION
    share: ComplexArray = field(init=False)

    def share_of_rows(self) -> ComplexArray:
        """Shares summed over the points of each row, (rows, K)."""
        if len(self.of_point) == len(self.row) and np.all(np.diff(self.of_point) == 1):
            return self.share
        result = np.zeros((len(self.row), self.share.shape[1]), dtype=complex)
        np.add.at(result, self.of_point, self.share)
        return result


class LogDensity:
    """Log density ``value`` of points x, (m,), under their rows of weights, (rows, D), with counts (D,) and normal_var (rows,).

    ``row``, of shape (m,), is the row that each point belongs to. A density that cannot be distinguished from 0 is bounded
    from below, with derivatives 0.
    """

    def __init__(
        self,
        noise: Centered,
        weights: FloatArray,
        counts: FloatArray,
        normal_var: FloatArray,
        x: FloatArray,
        row: IntArray,
    ) -> None:
        law = noise.law
        self.noise, self.law, self.weights, self.counts, self.row = noise, law, weights, counts, row
        self._total = weights @ counts
        # x and the normal part of sum_j w_j Z_j
        self.x = x - noise.shift * self._total[row]
        self.normal_var = normal_var
        if noise.normal_var:
            self.normal_var = normal_var + noise.normal_var * (weights**2 @ counts)
        self.value, self._ended = np.full(len(x), np.nan), np.zeros(len(x), dtype=bool)
        self._batches: list[_Batch] = []
        if law.gaussian:
            self._std, self._mean = np.sqrt(self.normal_var), np.zeros(len(weights))
            self.value = -0.5 * self._standard**2 - np.log(np.sqrt(2 * np.pi) * self._std[row])
            return
        self._std = np.sqrt(law.var() * (weights**2 @ counts) + self.normal_var)
        self._mean = law.mean() * self._total
        self._own = weights[np.arange(len(weights)), np.argmax(np.abs(weights), axis=1)]
        # Where the density is singular but for the smaller terms; the contour turns to the side of x.
        self._pole = self._mean - law.mean() * self._own
        bounded = bool(np.all(np.isfinite(law.support())))
        self._theta = 0.0 if bounded or law.atomic else min(THETA, 0.45 * law.sector())
        bulk = self._on_rays if self._theta > 0 else self._on_real_axis
        self._cancellation = CANCELLATION
        poor = self._through_saddle(bulk(np.arange(len(x))))
        self._cancellation = FLOOR
        poor = bulk(poor) if len(poor) else poor
        self.value[poor] = np.log(FLOOR / self._std[row[poor]]) - np.log1p(np.abs(self._standard[poor]))

    @property
    def _standard(self) -> FloatArray:
        """Points relative to mean and standard deviation."""
        return np.asarray((self.x - self._mean[self.row]) / self._std[self.row])

    @cached_property
    def gradient(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Derivatives of the sum of the log densities by x (m,), normal_var (rows,) and weights (rows, D)."""
        by_x, by_normal, by_weights = self._gradient_gaussian() if self.law.gaussian else self._gradient()
        by_total = -self.noise.shift * np.bincount(self.row, by_x, minlength=len(by_normal))
        by_weights += by_total[:, None] * self.counts
        if self.noise.normal_var:
            by_weights += 2 * self.noise.normal_var * by_normal[:, None] * self.weights * self.counts
        return by_x, by_normal, by_weights

    def _gradient_gaussian(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        z, std = self._standard, self._std[self.row]
        by_normal = np.bincount(self.row, 0.5 * (z**2 - 1) / std**2, minlength=len(self._std))
        return -z / std, by_normal.astype(float), np.zeros(self.weights.shape)

    def _gradient(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        by_x, by_normal = np.zeros(len(self.x)), np.zeros(len(self._std))
        by_weights = np.zeros(self.weights.shape)  # times the weights, first
        for batch in self._batches:
            share = batch.share_of_rows()
            t = batch.t[batch.of_point % len(batch.t)]
            by_x[batch.index] += batch.factor[batch.of_point] * np.sum(t * batch.share, axis=1).imag
            curvature = -0.5 * batch.factor**2 * np.sum(batch.t**2 * share, axis=1).real
            np.add.at(by_normal, batch.row, curvature)
            slopes = batch.sum.pullback(self.law, share)
            if len(np.unique(batch.row)) == len(batch.row):
                by_weights[batch.row] += slopes
            else:
                np.add.at(by_weights, batch.row, slopes)
        by_weights /= np.where(self.weights == 0, 1.0, self.weights)
        return by_x, by_normal, by_weights

    def by_law(self, change: Centered) -> float:
        """Derivative of the sum of the log densities along a ``change`` of shift and log characteristic function."""
        parts = (np.sum(batch.share_of_rows() * batch.sum.value(change.law)).real for batch in self._batches)
        return float(sum(parts)) - change.shift * float(self.gradient[0] @ self._total[self.row])

    def _rows(self, row: IntArray, factor: FloatArray) -> Rows:
        """Rows times a factor each, which may be negative."""
        terms = Terms(cast("Noise", self.law), self.weights[row] * factor[:, None], self.counts, SMOOTH)
        return Rows((terms,), self.normal_var[row] * factor**2)

    def _on_rays(self, index: IntArray) -> IntArray:
        """Evaluate points on rays; return those that were not accurate."""
        left = self.x[index] < self._pole[self.row[index]]
        poor = []
        for sign, some in ((1.0, index[~left]), (-1.0, index[left])):
            for step, careful in RAY_STEPS:
                some = self._on_ray(some, sign, step, careful) if len(some) else some
            poor.append(some)
        return np.concatenate(poor)

    def _on_ray(self, index: IntArray, sign: float, step: float, careful: bool) -> IntArray:
        row, of_point = np.unique(self.row[index], return_inverse=True)
        factor = sign / self._std[row]
        rows = self._rows(row, factor)
        # Rounded, so that other parameters find the tables of these nodes.
        start = -np.ceil(2 * np.log1p(float(np.max(np.abs(self._standard[index]))) / 5)) / 2
        normal = max(float(rows.normal_var.min()), 1e-12)
        decay = np.ceil(np.log(2 * TAIL / (np.cos(2 * self._theta) * normal))) / 2
        u = np.arange(-3.3, max(decay, 1.0) - start + step, step)
        r = np.exp(u - np.exp(-u) + start)
        direction = np.exp(-1j * self._theta)
        weight = direction * step * r * (1 + np.exp(-u)) / np.pi
        total = SumOnRay(rows.terms[0], r, self._theta, SMOOTH, careful)
        return self._integrate(
            _Batch(index, row, of_point, factor, (r * direction)[None], weight[None], total)
        )

    def _on_real_axis(self, index: IntArray) -> IntArray:
        """Evaluate points by Fourier series; return those that were not accurate."""
        low, high = self.law.support()
        if not (np.isfinite(low) and np.isfinite(high)):
            low, high = (float(end) for end in cast("Noise", self.law).ppf([1e-13, 1 - 1e-13]))
        own = np.abs(self._own)
        # Unit: the width of all but the largest term; that makes the characteristic function decay.
        rest = np.maximum(self._std**2 - self.law.var() * own**2, self.normal_var)
        unit = np.sqrt(np.maximum(rest, 1e-12 * self._std**2))
        # Hoeffding: bounded variables have tails like normal ones of half their range.
        factor = max(1.0, (high - low) ** 2 / (4 * self.law.var()))
        reach = 7.5 * np.sqrt(self.normal_var + (rest - self.normal_var) * factor)
        period = (own * (high - low) + 2 * reach) / unit
        octave = np.ceil(2 * np.log2(period))[self.row[index]]
        poor = []
        for level in np.unique(octave):
            some, h = index[octave == level], 2 * np.pi / 2 ** (level / 2)
            nodes = int(np.ceil(8.0 / h))
            while len(some) and nodes <= MAX_NODES:
                step = max(1, CHUNK // nodes)
                left = [self._series(some[i : i + step], unit, h, nodes) for i in range(0, len(some), step)]
                some, nodes = np.concatenate(left), 2 * nodes
                ended = self._ended[some]
                poor.append(some[ended])
                some = some[~ended]
            poor.append(some)
        return np.concatenate(poor)

    def _series(self, index: IntArray, unit: FloatArray, h: float, nodes: int) -> IntArray:
        row, of_point = np.unique(self.row[index], return_inverse=True)
        r = (np.arange(nodes) + 0.5) * h
        total = SumOnRay(self._rows(row, 1 / unit[row]).terms[0], r, 0.0, SMOOTH)
        weight = np.full((1, nodes), h / np.pi, dtype=complex)
        return self._integrate(
            _Batch(index, row, of_point, 1 / unit[row], r.astype(complex)[None], weight, total, np.inf)
        )

    def _through_saddle(self, index: IntArray) -> IntArray:
        """Evaluate points on contours through z = it = c, where c tilts the law until x is its mean.

        Return what has no such c, or needs too many nodes.
        """
        factor = 1 / self._std[self.row[index]]
        rows, x = self._rows(self.row[index], factor), self.x[index] * factor
        light = np.where(x > rows.mean, rows.strip[1] > 0, rows.strip[0] < 0)
        light &= (x > rows.support[0]) & (x < rows.support[1])
        poor, index, x = index[~light], index[light], x[light]
        if not len(index):
            return poor
        c, curvature = saddle_point(rows.take(np.flatnonzero(light)), x)
        width = 1 / np.sqrt(curvature)
        for nodes in HYPERBOLA_NODES if self._theta > 0 else ():
            again = np.isin(index, self._contour(index, *self._hyperbola(index, c, width, nodes)))
            index, c, width = index[again], c[again], width[again]
        n, h = 64, 2 * np.pi / 24 * width
        while len(index) and n <= MAX_SADDLE_NODES:
            weight = np.repeat(h[:, None] / np.pi, n, axis=1).astype(complex)
            weight[:, 0] /= 2  # the mirror image of the contour has the other half
            again = np.isin(index, self._contour(index, h[:, None] * np.arange(n) - 1j * c[:, None], weight))
            index, c, h, n = index[again], c[again], h[again] / 2, 4 * n
        return np.concatenate([poor, index])

    def _hyperbola(
        self, index: IntArray, c: FloatArray, width: FloatArray, nodes: int
    ) -> tuple[ComplexArray, ComplexArray]:
        """Nodes and weights on a hyperbola that turns away from x, up to where e^{-zx} or the normal part has decayed."""
        row, b = self.row[index], 2 * width
        rate = np.maximum(np.sign(c) * (self.x[index] - self._pole[row]) / self._std[row], 1e-3)
        normal = np.maximum(self.normal_var[row] / self._std[row] ** 2, 1e-12)
        reach = np.minimum(
            np.arccosh(1 + TAIL / (rate * b * np.sin(self._theta))),
            np.arcsinh(np.sqrt(2 * TAIL / (np.cos(2 * self._theta) * normal)) / b),
        )
        h = np.maximum(reach, 3.0) / (nodes - 1)
        z, dz = hyperbola(c, b, np.sign(c) * self._theta, h[:, None] * np.arange(nodes))
        dz[:, 0] /= 2
        return -1j * z, -1j * dz * h[:, None] / np.pi

    def _contour(self, index: IntArray, t: ComplexArray, weight: ComplexArray) -> IntArray:
        """Evaluate each point at its own nodes."""
        row = self.row[index]
        factor = 1 / self._std[row]
        total = SumAtNodes(self._rows(row, factor).terms[0], t)
        return self._integrate(_Batch(index, row, np.arange(len(index)), factor, t, weight, total))

    def _integrate(self, batch: _Batch) -> IntArray:
        """Sum over the nodes; keep the points that are accurate, return the others."""
        index, of_point = batch.index, batch.of_point
        t, step = batch.t[of_point % len(batch.t)], batch.step[of_point % len(batch.step)]
        normal = self.normal_var[batch.row] * batch.factor**2
        exponent = (batch.sum.value(self.law) - 0.5 * normal[:, None] * batch.t**2)[of_point]
        exponent -= 1j * t * (self.x[index] * batch.factor[of_point])[:, None]
        # On a contour through the saddle the first node is the highest; elsewhere it is at t = 0.
        height = exponent.real[:, 0]
        with np.errstate(all="ignore"):
            terms = np.exp(exponent - height[:, None]) * step
        terms = np.where(np.isfinite(terms), terms, 0.0)
        size = np.abs(terms)
        density, total = terms.real.sum(axis=1), size.sum(axis=1)
        # Every second node alone has an error d, and halving the step squares it.
        alternate = terms.real @ np.where(np.arange(t.shape[1]) % 2, -1.0, 1.0)
        last = size[:, -3:].max(axis=1) * np.abs(t[:, -1]) / np.abs(step[:, -1])
        self._ended[index] = last < self._cancellation * ENDED * total
        good = (density > self._cancellation * total) & (last < ENDED * density)
        good &= np.abs(alternate) < batch.alternation * density
        doubtful = np.abs(t) > batch.sum.reliable[of_point, None]
        good &= np.max(size, axis=1, where=doubtful, initial=0.0) < DOUBTFUL * density
        good &= np.isnan(self.value[index])
        scale = np.abs(batch.factor[of_point])
        self.value[index[good]] = np.log(density[good]) + np.log(scale[good]) + height[good]
        if good.any():
            batch.share = np.zeros_like(terms)
            batch.share[good] = terms[good] / density[good, None]
            self._batches.append(batch)
        return np.asarray(index[~good])
