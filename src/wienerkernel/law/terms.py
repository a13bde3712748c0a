"""Terms of one law: rows of weights, and the sums over them of its log characteristic function."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise, Residuals
from .band import band_table
from .ray_table import POINTS, STEPS, ray_table, spread

__all__ = ["COARSE", "Terms"]

MANY = 2**12
"""Arguments of phi for which a table pays."""
COARSE = 1e-3
"""Tolerance of what only chooses a method."""
CHUNK = 2**19
"""Complex numbers held at once in a sum over weights."""


class Terms:
    """Terms v_j M_j of one law, row by row.

    Parameters
    ----------
    noise : Noise
    weights : ndarray of shape (rows, D)
    counts : ndarray of shape (D,)
        Number of independent copies with the same weight.
    """

    def __init__(self, noise: Noise, weights: FloatArray, counts: FloatArray) -> None:
        self.noise, self.weights, self.counts = noise, weights, counts
        self._cache: dict[float, tuple[int, FloatArray]] = {}

    def take(self, index: IntArray) -> Terms:
        """The rows with these indices."""
        terms = Terms(self.noise, self.weights[index], self.counts)
        terms._cache = {step: (first, table[:, index]) for step, (first, table) in list(self._cache.items())}
        return terms

    @cached_property
    def copies(self) -> FloatArray:
        """Number of terms that are not 0, shape (rows,)."""
        return np.asarray((self.weights != 0) @ self.counts)

    @cached_property
    def largest(self) -> tuple[FloatArray, FloatArray]:
        """Largest negative and positive weight in modulus, each of shape (rows,)."""
        return np.maximum(-self.weights.min(axis=1), 0.0), np.maximum(self.weights.max(axis=1), 0.0)

    @cached_property
    def support(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the support of the sum, each of shape (rows,)."""
        lower, upper = self.noise.support()
        positive = np.maximum(self.weights, 0.0) @ self.counts
        negative = np.maximum(-self.weights, 0.0) @ self.counts
        with np.errstate(invalid="ignore"):  # 0 * inf: a side without weights
            ends = [
                np.where(positive > 0, positive * a, 0.0) - np.where(negative > 0, negative * b, 0.0)
                for a, b in ((lower, upper), (upper, lower))
            ]
        return ends[0], ends[1]

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

    def logcf_on_ray(self, r: FloatArray, theta: float, tolerance: float) -> ComplexArray:
        """Log characteristic function of the sum at t = r e^{-i theta}, as :meth:`Rows.logcf_on_ray`."""
        if not self._cells:  # all weights are 0
            return np.zeros((len(self.weights), len(r)), dtype=complex)
        # The table pays when each of its cells serves several weights.
        if self.weights.size * len(r) > CHUNK // 8 and self.weights.size > 2 * self._cells:
            return self._spread(r, theta, tolerance)
        return self.logcf(np.broadcast_to(r * np.exp(-1j * theta), (len(self.weights), len(r))))

    def logcf(self, t: ComplexArray) -> ComplexArray:
        """Log characteristic function of each row at its own nodes ``t`` of shape (rows, K), same shape."""
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
            histograms = np.zeros((2, len(self.weights), cells))
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
            small = Terms(self.noise, np.where(np.abs(self.weights) < rough, self.weights, 0.0), self.counts)
            result = small.logcf_on_ray(r, theta, tolerance)
            row, column = np.nonzero(np.abs(self.weights) >= rough)
            t = r * np.exp(-1j * theta)
            for some in _chunks(np.arange(len(row)), max(1, CHUNK // len(r))):
                terms = self._log_terms(self.weights[row[some], column[some], None] * t)
                np.add.at(result, row[some], terms * self.counts[column[some], None])
            return result
        result = np.empty((len(self.weights), len(r)), dtype=complex)
        for start in range(0, len(r), step := max(1, 2 * CHUNK // cells)):
            part = slice(start, start + step)
            plus, minus = table.matrix(first, cells, log_r[part])
            result.real[:, part] = histograms[0] @ plus[0].T + histograms[1] @ minus[0].T
            result.imag[:, part] = histograms[0] @ plus[1].T + histograms[1] @ minus[1].T
        return result


def _chunks(index: IntArray, size: int) -> Iterator[IntArray]:
    for start in range(0, len(index), size):
        yield index[start : start + size]
