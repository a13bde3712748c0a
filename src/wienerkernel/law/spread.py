"""Sums over weights of log phi(w t) along a ray, at a cost that does not depend on the number of weights.

Along a ray, log phi(w t) depends on log|w| + log|t| alone. Local interpolation in log|w| turns the sum over the
weights into a product of two matrices: one histogram of log|w| a row, times one table of log phi for all rows.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise

__all__ = ["RayTable", "ray_table", "spread"]

POINTS = 12
STEP = 1 / 40
_BARYCENTRIC = np.array([(-1.0) ** p * comb(POINTS - 1, p) for p in range(POINTS)])


def _stencil(position: FloatArray) -> tuple[IntArray, FloatArray]:
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

    Examples
    --------
    >>> h = spread(np.array([7.25]), np.array([2.0]), np.array([0]), (1, 16))
    >>> round(float(h.sum()), 12), round(float(h[0] @ np.arange(16.0) ** 3), 9) == 2 * 7.25**3
    (2.0, True)
    """
    first, weights = _stencil(position)
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
    """

    def __init__(self, noise: Noise, theta: float) -> None:
        self.noise = noise
        self.direction = np.exp(-1j * theta)
        self.start = 0
        self.values: ComplexArray = np.empty((2, 0), dtype=complex)
        self.smooth_until = np.inf

    def _evaluate(self, log_r: FloatArray) -> ComplexArray:
        t = np.exp(log_r) * self.direction
        with np.errstate(all="ignore"):
            return np.stack([self.noise.logcf(t), self.noise.logcf(-t)])

    def cover(self, low: float, high: float) -> None:
        """Make the table reach from log r = ``low`` to ``high``."""
        first, last = int(np.floor(low / STEP)) - POINTS, int(np.ceil(high / STEP)) + POINTS
        if self.values.shape[1]:
            end = self.start + self.values.shape[1] - 1
            if self.start <= first and last <= end:
                return
            first, last = min(first, self.start), max(last, end)
        self.start = first
        grid = np.arange(first, last + 1) * STEP
        values = self._evaluate(grid)
        values.imag = np.unwrap(values.imag, axis=1)
        self.values = values
        self.smooth_until = np.inf
        # Zeros of phi and noise in its tail spoil interpolation; what lies beyond is summed term by term.
        probe = grid[POINTS : -POINTS - 1 : 5] + STEP / 2
        with np.errstate(invalid="ignore"):
            error = np.abs(1 - np.exp(self(probe) - self._evaluate(probe)))
            rough = ~np.all(error < 1e-12 * np.maximum(1, np.abs(self(probe))), axis=0)
        if rough.any():
            self.smooth_until = float(probe[np.argmax(rough)]) - POINTS * STEP

    def matrix(self, first_cell: int, cells: int, log_r: FloatArray) -> FloatArray:
        """Table for all weights e^{(first_cell + i) STEP} and nodes r.

        Parameters
        ----------
        first_cell, cells : int
        log_r : ndarray of shape (K,)

        Returns
        -------
        ndarray of shape (2, 2, K, cells)
            For positive and negative weights, real and imaginary part.
        """
        first, weights = _stencil(log_r / STEP + first_cell - self.start)
        parts = np.stack([self.values.real, self.values.imag], axis=1)
        windows = np.lib.stride_tricks.sliding_window_view(parts, POINTS, axis=2)
        result = np.empty((2, 2, len(log_r), cells))
        for k, low in enumerate(first):  # a node shifts the whole row of cells
            result[:, :, k] = windows[:, :, low : low + cells] @ weights[:, k]
        return result

    def __call__(self, log_r: FloatArray) -> ComplexArray:
        """Interpolated log phi(r e^{-i theta}) and log phi(-r e^{-i theta}), shape (2, ...)."""
        first, weights = _stencil(log_r / STEP - self.start)
        result = np.zeros((2, *log_r.shape), dtype=complex)
        for p in range(POINTS):
            result += weights[p] * self.values[:, first + p]
        return result


@lru_cache(maxsize=32)
def ray_table(noise: Noise, theta: float) -> RayTable:
    """The table of a law along a ray, built once."""
    return RayTable(noise, theta)
