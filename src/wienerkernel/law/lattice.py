"""Sums of discrete terms on a lattice, by fast Fourier transform, inside a rigorous bracket.

Rounding every term down to the lattice makes a sum that is smaller, rounding up one that is larger: their distribution
functions enclose the true one. Where that is wide, many atoms share a cell; then every term is spread over the
lattice so that its characteristic function is kept up to a cut-off, and what lies beyond is as good as noise.
"""

from __future__ import annotations

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from .ray import EPS, Values
from .rows import Rows
from .spread import POINTS, spread, stencil

__all__ = ["Lattice"]

SIZE = 2**17
NARROW = 1e-12
CUT_OFF = 0.6
"""Largest phase between two points of the lattice at which spread atoms keep their characteristic function."""
PROBES = 4096
DEVIATIONS = 6.0
"""Standard deviations of what is left out that count as its error."""


class Lattice:
    """Inversion on a lattice of 2^17 points.

    Parameters
    ----------
    rows : Rows
        Of a discrete law, without a normal part.
    window : tuple of ndarray of shape (rows,)
        Where the mass lies.
    """

    relative = False

    def __init__(self, rows: Rows, window: tuple[FloatArray, FloatArray]) -> None:
        values, mass = rows.noise.atoms()
        low, high = window
        self.margin = 2 * float(rows.counts.sum()) + 2 * POINTS
        self.step = (high - low) / (SIZE - 2 * self.margin)
        self.shift = np.rint(low / self.step - self.margin)
        self.bracket = [
            self._bracket(rows, values, mass, rounding) for rounding in (np.ceil, np.floor)
        ]  # below and above
        wide = np.max(self.bracket[1] - self.bracket[0], axis=1) > NARROW
        self.between = np.full((len(rows), SIZE), np.nan)
        self.noise = np.full(len(rows), np.inf)
        for row in np.flatnonzero(wide):
            self.between[row], self.noise[row] = self._spread(rows, int(row), values, mass)

    def _bracket(self, rows: Rows, values: FloatArray, mass: FloatArray, rounding: np.ufunc) -> FloatArray:
        result = np.empty((len(rows), SIZE))
        for row, (weights, step) in enumerate(zip(rows.weights, self.step, strict=True)):
            transform = np.ones(SIZE // 2 + 1, dtype=complex)
            for weight, count in zip(weights, rows.counts, strict=True):
                # whole cells within 1e-9 of an atom are that atom: rounding must not split them
                cell = weight * values / step
                near = np.rint(cell)
                cell = np.where(np.abs(cell - near) < 1e-9, near, rounding(cell)).astype(int) % SIZE
                transform *= np.fft.rfft(np.bincount(cell, weights=mass, minlength=SIZE)) ** count
            pmf = np.fft.irfft(transform, SIZE)
            result[row] = np.cumsum(np.roll(pmf, -int(self.shift[row])))
        return np.clip(result, 0.0, 1.0)

    def _spread(self, rows: Rows, row: int, values: FloatArray, mass: FloatArray) -> tuple[FloatArray, float]:
        """Distribution function at the points of the lattice up to the cut-off, and the error of what is beyond."""
        step = self.step[row]
        phase = 2 * np.pi * np.arange(SIZE // 2 + 1) / SIZE
        transform = np.ones(SIZE // 2 + 1, dtype=complex)
        for weight, count in zip(rows.weights[row], rows.counts, strict=True):
            transform *= self._transform(weight * values / step, mass) ** count
        beyond = phase > CUT_OFF
        transform = np.where(beyond, 0.0, transform)
        # F has the transform phi / (i t), and grows by 1 a period
        transform[1:] /= 1j * phase[1:]
        transform[0] = 0.0
        wave = np.roll(np.fft.irfft(transform, SIZE), -int(self.shift[row]))
        result = wave + np.arange(SIZE) / SIZE
        result -= np.mean(result[: int(self.margin) - POINTS])
        # The phases of what is left out are as good as random: variances add, sum_k |phi_k|^2 / (2 pi^2 k^2).
        t = CUT_OFF / step * np.random.default_rng(0).uniform(1.0, 100.0, PROBES)
        size = np.exp(rows.take(np.array([row])).logcf(t[None].astype(complex)).real[0])
        typical = max(float(np.sqrt(np.mean(size**2))), float(np.max(size)) / 5)
        first = CUT_OFF / (2 * np.pi) * SIZE
        return result, DEVIATIONS * typical / (np.pi * np.sqrt(2 * first)) + SIZE * EPS

    def _transform(self, position: FloatArray, mass: FloatArray) -> ComplexArray:
        first = np.floor(position.min()) - POINTS
        cells = int(np.ceil(position.max()) + POINTS - first) + 1
        table = spread(position - first, mass, np.zeros(len(position), dtype=np.intp), (1, cells))[0]
        folded = np.bincount((np.arange(cells) + int(first)) % SIZE, weights=table, minlength=SIZE)
        return np.fft.rfft(folded)

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
        position = x / self.step[index, None] - self.shift[index, None]
        cell = np.clip(np.floor(position + 1e-9), -1, SIZE - 1).astype(int)
        rows = np.broadcast_to(index[:, None], cell.shape)
        low, high = (np.where(cell < 0, 0.0, table[rows, np.maximum(cell, 0)]) for table in self.bracket)
        cdf = 0.5 * (low + high)
        error = 0.5 * np.abs(high - low) + SIZE * EPS
        better = (self.noise[rows] < error) & (position > POINTS) & (position < SIZE - POINTS)
        if better.any():
            first, weights = stencil(position[better])
            points = self.between[rows[better], first + np.arange(POINTS)[:, None]]
            cdf[better] = np.clip(np.sum(weights * points, axis=0), low[better], high[better])
            error[better] = self.noise[rows[better]]
        return Values(np.full(x.shape, np.nan), cdf, 1 - cdf, error, error)
