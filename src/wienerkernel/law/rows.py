"""Standardised rows: X = sum_j v_j (M_j - o) + N(0, tau^2) with unit variance, and their characteristic functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise, Residuals, ScipyNoise
from .spread import POINTS, STEP, ray_table, spread

__all__ = ["Rows", "split_origin"]

CHUNK = 2**19
"""Complex numbers held at once in a sum over weights."""


def split_origin(noise: Noise) -> tuple[Noise, float]:
    """The noise as M = M0 + o, where the end or the singular point of the law of M0 is 0.

    Contours turn about o; and a law that sits far from 0 would lose digits in the phase exp(i t o).
    """
    if isinstance(noise, Residuals):
        centre = noise.mean()
        return Residuals(noise.values - centre, noise.weights), centre
    if isinstance(noise, ScipyNoise):
        if noise.loc == 0.0:
            return noise, 0.0
        scale = {} if noise.discrete else {"scale": noise.scale}
        return ScipyNoise(noise.frozen.dist(*noise.shapes, **scale)), noise.loc
    return noise, 0.0


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

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, index: IntArray) -> Rows:
        """The rows with these indices."""
        return Rows(self.noise, self.weights[index], self.counts, self.normal_var[index])

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
        return float(np.log(magnitude.max() / magnitude.min()) / STEP + 2 * POINTS) if magnitude.size else 0.0

    def logcf_on_ray(self, r: FloatArray, theta: float) -> ComplexArray:
        """Log characteristic function at t = r e^{-i theta}.

        Parameters
        ----------
        r : ndarray of shape (K,)
        theta : float
            Turns clockwise; negative turns counter-clockwise.

        Returns
        -------
        ndarray of shape (rows, K)
        """
        t = r * np.exp(-1j * theta)
        result = -0.5 * self.normal_var[:, None] * t**2
        # The table pays when each of its cells serves several weights.
        if self.weights.size * len(r) > CHUNK // 2 and self.weights.size > 2 * self._cells:
            return np.asarray(result + self._spread(r, theta))
        return np.asarray(result + self._direct(np.broadcast_to(t, (len(self), len(r)))))

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
            with np.errstate(all="ignore"):
                terms = self.noise.logcf(self.weights[:, part, None] * t[:, None, :])
            result += np.einsum("rdk,d->rk", terms, self.counts[part])
        return result

    def _spread(self, r: FloatArray, theta: float) -> ComplexArray:
        log_r = np.log(r)
        row, column = np.nonzero(self.weights)
        weight = self.weights[row, column]
        log_w = np.log(np.abs(weight))
        first, last = int(np.floor(log_w.min() / STEP)) - POINTS, int(np.ceil(log_w.max() / STEP)) + POINTS
        table = ray_table(self.noise, theta)
        table.cover(first * STEP + log_r.min(), last * STEP + log_r.max())
        smooth = log_w + log_r.max() < table.smooth_until
        cells = last - first + 1
        histograms = np.zeros((2, len(self), cells))
        for histogram, sign in zip(histograms, (1.0, -1.0), strict=True):
            chosen = smooth & (sign * weight > 0)
            if chosen.any():
                position = log_w[chosen] / STEP - first
                histogram += spread(position, self.counts[column[chosen]], row[chosen], histogram.shape)
        result = np.empty((len(self), len(r)), dtype=complex)
        for start in range(0, len(r), step := max(1, 2 * CHUNK // cells)):
            part = slice(start, start + step)
            plus, minus = table.matrix(first, cells, log_r[part])
            result.real[:, part] = histograms[0] @ plus[0].T + histograms[1] @ minus[0].T
            result.imag[:, part] = histograms[0] @ plus[1].T + histograms[1] @ minus[1].T
        t = r * np.exp(-1j * theta)
        for some in _chunks(np.flatnonzero(~smooth), max(1, CHUNK // len(r))):
            with np.errstate(all="ignore"):
                terms = self.noise.logcf(weight[some, None] * t) * self.counts[column[some], None]
            np.add.at(result, row[some], terms)
        return result


def _chunks(index: IntArray, size: int) -> Iterator[IntArray]:
    for start in range(0, len(index), size):
        yield index[start : start + size]
