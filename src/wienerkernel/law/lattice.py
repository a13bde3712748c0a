"""Sums of discrete terms on a lattice, by fast Fourier transform, inside a rigorous bracket.

Rounding every term down to the lattice makes a sum that is smaller, rounding up one that is larger: their distribution
functions enclose the true one.
"""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray
from .atoms import atoms_of
from .ray import EPS, Values
from .rows import Rows

__all__ = ["Lattice"]

SIZE = 2**17


class Lattice:
    """Inversion on a lattice of 2^17 points.

    Parameters
    ----------
    rows : Rows
        Of a discrete law with known atoms, without a normal part.
    window : tuple of ndarray of shape (rows,)
        Where the mass lies.
    """

    relative = False

    def __init__(self, rows: Rows, window: tuple[FloatArray, FloatArray]) -> None:
        atoms = atoms_of(rows.noise)
        if atoms is None:
            msg = f"method='lattice' needs a discrete law with known values, got {rows.noise!r}"
            raise ValueError(msg)
        low, high = window
        terms = float(rows.counts.sum())
        self.step = (high - low) / (SIZE - 4 * terms - 8)
        self.start = low - (2 * terms + 4) * self.step
        self.bracket = [self._distribution(rows, atoms, rounding) for rounding in (np.ceil, np.floor)]

    def _distribution(
        self, rows: Rows, atoms: tuple[FloatArray, FloatArray], rounding: np.ufunc
    ) -> FloatArray:
        values, mass = atoms
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
            shift = int(np.rint(self.start[row] / step))
            result[row] = np.cumsum(np.roll(pmf, -shift))
        return np.clip(result, 0.0, 1.0)

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
        step = self.step[index, None]
        shift = np.rint(self.start[index, None] / step)
        cell = np.clip(np.floor(x / step + 1e-9) - shift, -1, SIZE - 1).astype(int)
        rows = np.broadcast_to(index[:, None], cell.shape)
        low, high = (np.where(cell < 0, 0.0, table[rows, np.maximum(cell, 0)]) for table in self.bracket)
        cdf = 0.5 * (low + high)
        error = 0.5 * np.abs(high - low) + SIZE * EPS
        return Values(np.full(x.shape, np.nan), cdf, 1 - cdf, error, error)
