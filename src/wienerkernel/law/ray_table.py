"""Sums over weights of log phi(w t) along a ray, at a cost that does not depend on the number of weights.

Along a ray, log phi(w t) depends on log|w| + log|t| alone. Local interpolation in log|w| turns the sum over the
weights into a product of two matrices: one histogram of log|w| a row, times one table of log phi for all rows.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from threading import RLock

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise

__all__ = ["POINTS", "STEPS", "RayTable", "ray_table", "spread", "stencil"]

POINTS = 16
STEPS = (1 / 20, 1 / 40, 1 / 80)
"""Steps of log r that a table may have; the nearer the singularities of log phi, the finer."""
_BARYCENTRIC = np.array([(-1.0) ** p * comb(POINTS - 1, p) for p in range(POINTS)])


def stencil(position: FloatArray) -> tuple[IntArray, FloatArray]:
    """First grid point and the weights (POINTS, ...) of local Lagrange interpolation at ``position``."""
    first = np.floor(position).astype(np.intp) - (POINTS // 2 - 1)
    offset = position - first
    # A point on the grid would divide 0 by 0; a shift by 1e-13 cells changes nothing that float64 can see.
    offset = np.where(offset == np.rint(offset), offset + 1e-13, offset)
    weights = np.empty((POINTS, *position.shape))
    for p in range(POINTS):
        np.divide(_BARYCENTRIC[p], offset - p, out=weights[p])
    weights /= weights.sum(axis=0)
    return first, weights


def spread(position: FloatArray, mass: FloatArray, rows: IntArray, shape: tuple[int, int]) -> FloatArray:
    """Histogram that integrates a smooth function as the point masses do.

    Parameters
    ----------
    position : ndarray of shape (n,)
        In units of the grid.
    mass : ndarray of shape (n,)
    rows : ndarray of shape (n,)
        The row of the histogram that each mass belongs to.
    shape : tuple of int
        Shape of the histogram, (rows, cells).

    Returns
    -------
    ndarray of shape ``shape``
    """
    first, weights = stencil(position)
    first += rows * shape[1]
    histogram = np.zeros(shape[0] * shape[1])
    for p in range(POINTS):
        histogram += np.bincount(first + p, weights=weights[p] * mass, minlength=len(histogram))
    return histogram.reshape(shape)


class RayTable:
    """log phi(+-r e^{-i theta}) of one noise law on an equidistant grid of log r, grown on demand.

    Parameters
    ----------
    noise : Noise
    theta : float
    tolerance : float
        Error of phi that interpolation may make; beyond ``smooth_until`` = log r it makes a larger one.
    """

    def __init__(self, noise: Noise, theta: float, tolerance: float) -> None:
        self.noise, self.tolerance = noise, tolerance
        self._lock = RLock()  # threads share the table of a law
        self.direction = np.exp(-1j * theta)
        unit = -np.log(noise.std())
        for self.step in STEPS:
            self.start = self.stop = 0
            self.values: ComplexArray = np.empty((2, 0), dtype=complex)
            self.smooth_until = np.inf
            self.cover(unit - 2, unit + 0.5)
            if np.isinf(self.smooth_until):
                break

    def _evaluate(self, log_r: FloatArray) -> ComplexArray:
        t = np.exp(log_r) * self.direction
        with np.errstate(all="ignore"):
            return np.stack([self.noise.logcf(t), self.noise.logcf(-t)])

    def cover(self, low: float, high: float) -> None:
        """Make the table reach from log r = ``low`` to ``high``."""
        first, stop = int(np.floor(low / self.step)) - POINTS, int(np.ceil(high / self.step)) + POINTS + 1
        with self._lock:
            self._grow(first, stop)

    def _grow(self, first: int, stop: int) -> None:
        if not self.values.size:
            self.start = self.stop = first
        first, stop = min(first, self.start), max(stop, self.stop)
        if first == self.start and stop == self.stop:
            return
        new = [np.arange(first, self.start), np.arange(self.stop, stop)]
        self.values = np.concatenate(
            [self._evaluate(new[0] * self.step), self.values, self._evaluate(new[1] * self.step)], axis=1
        )
        self.values.imag = np.unwrap(self.values.imag, axis=1)
        self.start, self.stop = first, stop
        # Zeros of phi and noise in its tail spoil interpolation; what lies beyond is summed term by term.
        for part in new:
            inside = part[(part >= first + POINTS) & (part < stop - POINTS)]
            probe = (inside[::5] + 0.5) * self.step
            truth, guess = self._evaluate(probe), self(probe)
            with np.errstate(all="ignore"):
                error = np.abs(np.exp(truth) - np.exp(guess)) / np.maximum(1, np.abs(np.exp(truth)))
                rough = ~np.all(error < self.tolerance * np.maximum(1, np.abs(truth)), axis=0)
            if rough.any():
                self.smooth_until = min(
                    self.smooth_until, float(probe[np.argmax(rough)]) - POINTS * self.step
                )

    def matrix(self, first_cell: int, cells: int, log_r: FloatArray) -> FloatArray:
        """Table for all weights e^{(first_cell + i) step} and nodes r.

        Parameters
        ----------
        first_cell, cells : int
        log_r : ndarray of shape (K,)

        Returns
        -------
        ndarray of shape (2, 2, K, cells)
            For positive and negative weights, real and imaginary part.
        """
        start, values = self._snapshot()
        first, weights = stencil(log_r / self.step + first_cell - start)
        parts = np.stack([values.real, values.imag], axis=1)
        windows = np.lib.stride_tricks.sliding_window_view(parts, POINTS, axis=2)
        result = np.empty((2, 2, len(log_r), cells))
        for k, low in enumerate(first):  # a node shifts the whole row of cells
            result[:, :, k] = windows[:, :, low : low + cells] @ weights[:, k]
        return result

    def __call__(self, log_r: FloatArray) -> ComplexArray:
        """Interpolated log phi(r e^{-i theta}) and log phi(-r e^{-i theta}), shape (2, ...)."""
        start, values = self._snapshot()
        first, weights = stencil(log_r / self.step - start)
        result = np.zeros((2, *log_r.shape), dtype=complex)
        for p in range(POINTS):
            result += weights[p] * values[:, first + p]
        return result

    def _snapshot(self) -> tuple[int, ComplexArray]:
        with self._lock:
            return self.start, self.values


@lru_cache(maxsize=32)
def ray_table(noise: Noise, theta: float, tolerance: float) -> RayTable:
    """The table of a law along a ray, built once."""
    return RayTable(noise, theta, tolerance)
