"""A table of phi(t) at real t for bounded laws, whose characteristic function may cost one term per atom.

phi is band-limited, so that its values on a fine grid of t determine it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .._typing import ComplexArray, FloatArray
from ..noise import Noise
from .ray_table import POINTS, stencil

__all__ = ["BandTable", "band_table"]

PHASE = 0.25
"""Largest phase of e^{itx} between two points of the grid."""
MAX_LENGTH = 2**16


class BandTable:
    """phi(t) of a bounded law for |t| up to a bound, on a grid that grows on demand."""

    def __init__(self, noise: Noise) -> None:
        self.noise = noise
        self.step = PHASE / float(np.max(np.abs(noise.support())))
        self.values: ComplexArray = np.empty(0, dtype=complex)

    def covers(self, t: float) -> bool:
        """Whether the table may reach to ``t``."""
        return t / self.step < MAX_LENGTH

    def logcf(self, t: FloatArray) -> ComplexArray:
        """Log phi(t) for real t of any shape."""
        position = np.abs(t) / self.step + POINTS
        length = int(position.max(initial=0.0)) + 2 * POINTS
        values = self.values  # which another thread may replace meanwhile
        if length > len(values):
            grid = (np.arange(len(values), length) - POINTS) * self.step
            self.values = values = np.concatenate([values, np.exp(self.noise.logcf(grid))])
        flat = np.ravel(position)
        result = np.empty(flat.shape, dtype=complex)
        for start in range(0, len(flat), 2**15):
            first, weights = stencil(flat[start : start + 2**15])
            phi = np.einsum("pn,pn->n", weights, values[first + np.arange(POINTS)[:, None]])
            with np.errstate(divide="ignore"):
                result[start : start + 2**15] = np.log(phi)
        table = result.reshape(t.shape)
        return np.where(t < 0, table.conj(), table)


@lru_cache(maxsize=8)
def band_table(noise: Noise) -> BandTable:
    """The table of a law, built once."""
    return BandTable(noise)
