"""Standardised rows: X = sum_j v_j (M_j - o) + N(0, tau^2) with unit variance, and their characteristic functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise, Residuals, ScipyNoise, SmoothedResiduals
from .band import band_table
from .spread import POINTS, STEPS, ray_table, spread

__all__ = ["COARSE", "Rows", "split"]

MANY = 2**12
"""Arguments of phi for which a table pays."""
COARSE = 1e-3
"""Tolerance of what only chooses a method."""
CHUNK = 2**19
"""Complex numbers held at once in a sum over weights."""
PROBE = 0.1
"""Step in log r of the points at which the decay of phi is looked at; its oscillations are wider apart or shorter,"""
NEIGHBORS = 2
"""so that the largest of a few neighboring values stands for its envelope."""
GONE = -80.0
"""Logarithm of |phi| below which nothing is left to bound,"""
FARTHEST = 1e25
"""and frequency beyond which nobody looks: a pole weaker than |x|^-0.9 has decayed there."""


def split(noise: Noise) -> tuple[Noise, float, float]:
    """The noise as M = M0 + o + N(0, tau^2), where the end or the singular point of the law of M0 is 0.

    Contours turn about o; and a law that sits far from 0 would lose digits in the phase exp(i t o).

    Returns
    -------
    noise : Noise
        Law of M0.
    origin, normal_std : float
        o and tau.
    """
    if isinstance(noise, SmoothedResiduals):
        residuals, origin, _ = split(noise.residuals)
        return residuals, origin, noise.bandwidth
    if isinstance(noise, Residuals):
        centre = noise.mean()
        return Residuals(noise.values - centre, noise.weights), centre, 0.0
    if isinstance(noise, ScipyNoise):
        ends = [end for end in noise.support() if np.isfinite(end)]
        origin = ends[0] if len(ends) == 1 else noise.loc
        if origin == 0.0:
            return noise, 0.0, 0.0
        return noise.moved(noise.loc - origin), origin, 0.0
    return noise, 0.0, 0.0


class Rows:
    """Rows of weights, scaled to unit variance.

    Parameters
    ----------
    noise : Noise
        Law of M - o.
    weights : ndarray of shape (rows, D)
    counts : ndarray of shape (D,)
        Number of independent copies with the same weight.
    normal_var : ndarray of shape (rows,)
        Variance tau^2 of the normal part.
    """

    def __init__(self, noise: Noise, weights: FloatArray, counts: FloatArray, normal_var: FloatArray) -> None:
        self.noise = noise
        self.weights = weights
        self.counts = counts
        self.normal_var = normal_var
        self._cache: dict[float, tuple[int, FloatArray]] = {}

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, index: IntArray) -> Rows:
        """The rows with these indices."""
        if len(index) == len(self) and np.array_equal(index, np.arange(len(self))):
            return self
        rows = Rows(self.noise, self.weights[index], self.counts, self.normal_var[index])
        rows._cache = {step: (first, table[:, index]) for step, (first, table) in self._cache.items()}
        return rows

    @cached_property
    def mean(self) -> FloatArray:
        """Means, shape (rows,)."""
        return np.asarray(self.noise.mean() * (self.weights @ self.counts))

    @cached_property
    def largest(self) -> tuple[FloatArray, FloatArray]:
        """Largest negative and positive weight in modulus, each of shape (rows,)."""
        return np.maximum(-self.weights.min(axis=1), 0.0), np.maximum(self.weights.max(axis=1), 0.0)

    @cached_property
    def support(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the support, each of shape (rows,)."""
        lower, upper = self.noise.support()
        positive = np.maximum(self.weights, 0.0) @ self.counts
        negative = np.maximum(-self.weights, 0.0) @ self.counts
        infinite = self.normal_var > 0
        with np.errstate(invalid="ignore"):  # 0 * inf: a side without weights
            low = np.where(positive > 0, positive * lower, 0.0) - np.where(
                negative > 0, negative * upper, 0.0
            )
            high = np.where(positive > 0, positive * upper, 0.0) - np.where(
                negative > 0, negative * lower, 0.0
            )
        return np.where(infinite, -np.inf, low), np.where(infinite, np.inf, high)

    @cached_property
    def strip(self) -> tuple[FloatArray, FloatArray]:
        """Open interval of real s with E exp(s X) finite, each end of shape (rows,)."""
        lower, upper = self.noise.strip()
        negative, positive = self.largest
        with np.errstate(divide="ignore", invalid="ignore"):
            low = -np.fmin(
                np.where(positive > 0, -lower / positive, np.inf),
                np.where(negative > 0, upper / negative, np.inf),
            )
            high = np.fmin(
                np.where(positive > 0, upper / positive, np.inf),
                np.where(negative > 0, -lower / negative, np.inf),
            )
        return low, high

    @cached_property
    def _cells(self) -> float:
        magnitude = np.abs(self.weights[self.weights != 0])
        return (
            float(np.log(magnitude.max() / magnitude.min()) / STEPS[0] + 2 * POINTS)
            if magnitude.size
            else 0.0
        )

    def logcf_on_ray(self, r: FloatArray, theta: float, tolerance: float = 1e-13) -> ComplexArray:
        """Log characteristic function at t = r e^{-i theta}.

        Parameters
        ----------
        r : ndarray of shape (K,)
        theta : float
            Turns clockwise; negative turns counter-clockwise.
        tolerance : float
            Error that is allowed a weight.

        Returns
        -------
        ndarray of shape (rows, K)
        """
        t = r * np.exp(-1j * theta)
        result = -0.5 * self.normal_var[:, None] * t**2
        if not self._cells:  # all weights are 0
            return np.asarray(result)
        # The table pays when each of its cells serves several weights.
        if self.weights.size * len(r) > CHUNK // 8 and self.weights.size > 2 * self._cells:
            return np.asarray(result + self._spread(r, theta, tolerance))
        return np.asarray(result + self._direct(np.broadcast_to(t, (len(self), len(r)))))

    def beyond(self, r: float, theta: float) -> tuple[FloatArray, FloatArray]:
        """Integrals of |phi| dr/r and of |phi| dr over the ray beyond r: what a sum that ends there leaves out.

        Parameters
        ----------
        r : float
        theta : float
            As in :meth:`logcf_on_ray`.

        Returns
        -------
        over_r, plain : ndarray of shape (rows,)
            Upper bounds, as far as the values of |phi| at points near each other show its envelope.
        """
        over_r, plain = np.zeros(len(self)), np.zeros(len(self))
        open_rows, start, width = np.arange(len(self)), np.log(r), 4.0
        while len(open_rows) and start < np.log(FARTHEST):
            log_r = np.arange(start - NEIGHBORS * PROBE, start + width + NEIGHBORS * PROBE, PROBE)
            level = self.take(open_rows).logcf_on_ray(np.exp(log_r), theta, COARSE).real
            level = np.nan_to_num(level, nan=0.0, neginf=-745.0, posinf=300.0)
            envelope = np.lib.stride_tricks.sliding_window_view(level, 2 * NEIGHBORS + 1, axis=1).max(axis=-1)
            inner = log_r[NEIGHBORS : NEIGHBORS + envelope.shape[1]]
            over_r[open_rows] += PROBE * np.exp(np.minimum(envelope, 300.0)).sum(axis=1)
            plain[open_rows] += PROBE * np.exp(np.minimum(envelope + inner, 300.0)).sum(axis=1)
            open_rows = open_rows[envelope[:, -1] > GONE]
            start += width
        if len(open_rows):  # a decay of r^-0.01, or none at all
            over_r[open_rows] += 100 * np.exp(np.minimum(envelope[envelope[:, -1] > GONE, -1], 300.0))
            plain[open_rows] = np.inf
        return over_r, plain

    def logcf(self, t: ComplexArray) -> ComplexArray:
        """Log characteristic function of each row at its own nodes ``t`` of shape (rows, K), same shape."""
        return -0.5 * self.normal_var[:, None] * t**2 + self._direct(t)

    def cgf(self, s: FloatArray) -> FloatArray:
        """Log E exp(s X) for real s inside the strip, shape (rows, k)."""
        return self.logcf(-1j * s.astype(complex)).real

    def _direct(self, t: ComplexArray) -> ComplexArray:
        result = np.zeros(t.shape, dtype=complex)
        n, width = self.weights.shape
        step = max(1, CHUNK // max(1, n * t.shape[1]))
        for start in range(0, width, step):
            part = slice(start, start + step)
            terms = self._log_terms(self.weights[:, part, None] * t[:, None, :])
            result += np.einsum("rdk,d->rk", terms, self.counts[part])
        return result

    def _log_terms(self, t: ComplexArray) -> ComplexArray:
        """Log phi of the noise, from a table where each value costs a sum over many atoms."""
        if isinstance(self.noise, Residuals) and t.size > MANY and not np.any(t.imag):
            table = band_table(self.noise)
            if table.covers(float(np.max(np.abs(t)))):
                return table.logcf(t.real)
        with np.errstate(all="ignore"):
            return self.noise.logcf(t)

    def _histograms(self, step: float) -> tuple[int, FloatArray]:
        """First cell and (2, rows, cells) histograms of log|w| for positive and negative weights, made once."""
        if step not in self._cache:
            row, column = np.nonzero(self.weights)
            weight = self.weights[row, column]
            position = np.log(np.abs(weight)) / step
            first = int(np.floor(position.min())) - POINTS
            cells = int(np.ceil(position.max())) + POINTS - first + 1
            histograms = np.zeros((2, len(self), cells))
            for histogram, chosen in zip(histograms, (weight > 0, weight < 0), strict=True):
                mass = self.counts[column[chosen]]
                histogram += spread(position[chosen] - first, mass, row[chosen], histogram.shape)
            self._cache[step] = first, histograms
        return self._cache[step]

    def _spread(self, r: FloatArray, theta: float, tolerance: float) -> ComplexArray:
        log_r = np.log(r)
        table = ray_table(self.noise, theta, tolerance)
        first, histograms = self._histograms(table.step)
        cells = histograms.shape[2]
        table.cover(first * table.step + log_r.min(), (first + cells) * table.step + log_r.max())
        rough = np.exp(table.smooth_until - log_r.max())
        if np.any(np.maximum(*self.largest) >= rough):
            # beyond a zero of phi there is no interpolation: the few largest weights go one by one
            small = Rows(
                self.noise,
                np.where(np.abs(self.weights) < rough, self.weights, 0.0),
                self.counts,
                0.0 * self.normal_var,
            )
            result = small.logcf_on_ray(r, theta, tolerance)
            row, column = np.nonzero(np.abs(self.weights) >= rough)
            t = r * np.exp(-1j * theta)
            for some in _chunks(np.arange(len(row)), max(1, CHUNK // len(r))):
                terms = self._log_terms(self.weights[row[some], column[some], None] * t)
                np.add.at(result, row[some], terms * self.counts[column[some], None])
            return result
        result = np.empty((len(self), len(r)), dtype=complex)
        for start in range(0, len(r), step := max(1, 2 * CHUNK // cells)):
            part = slice(start, start + step)
            plus, minus = table.matrix(first, cells, log_r[part])
            result.real[:, part] = histograms[0] @ plus[0].T + histograms[1] @ minus[0].T
            result.imag[:, part] = histograms[0] @ plus[1].T + histograms[1] @ minus[1].T
        return result


def _chunks(index: IntArray, size: int) -> Iterator[IntArray]:
    for start in range(0, len(index), size):
        yield index[start : start + size]
