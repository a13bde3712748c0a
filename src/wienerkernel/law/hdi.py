"""The shortest interval that holds a given probability."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import FloatArray, IntArray
from ..backend.golden import golden_sections

__all__ = ["shortest"]

GRID = 49
VALLEYS = 3
NEARLY = 1.1
"""A valley whose floor on the grid is wider than the lowest by more is not searched."""


def shortest(
    ppf: Callable[[FloatArray], FloatArray],
    isf: Callable[[FloatArray], FloatArray],
    confidence: FloatArray,
    shape: tuple[int, ...],
) -> tuple[FloatArray, FloatArray]:
    """Ends of the shortest interval [ppf(p), isf(1 - confidence - p)] over p.

    A grid finds the valleys, of which a law with several peaks has several; golden sections find their floors.

    Parameters
    ----------
    ppf, isf : callable
        Quantiles and upper quantiles, broadcast against ``shape``.
    confidence : ndarray
    shape : tuple of int

    Returns
    -------
    low, high : ndarray of shape broadcast(confidence.shape, shape)
    """
    outside = 1 - np.broadcast_to(confidence, np.broadcast_shapes(confidence.shape, shape))

    def width(part: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            result = isf((1 - part) * outside) - ppf(part * outside)
        return np.where(np.isnan(result), np.inf, result)

    grid = np.linspace(0, 1, GRID).reshape(-1, *(1,) * outside.ndim)
    best = _valleys(width(grid))
    outside = np.broadcast_to(outside, best.shape)
    left, right = np.maximum(best - 1, 0) / (GRID - 1), np.minimum(best + 1, GRID - 1) / (GRID - 1)
    floor, _ = golden_sections(width, left, right, 36)
    lowest = np.argmin(width(floor), axis=0)[None]
    part, outside = np.take_along_axis(floor, lowest, axis=0)[0], outside[0]
    for end in (0.0, 1.0):  # a monotone density has its shortest interval at an end of the support
        at_end = np.full(outside.shape, end)
        part = np.where(width(at_end) <= width(part), end, part)
    return ppf(part * outside), isf((1 - part) * outside)


def _valleys(widths: FloatArray) -> IntArray:
    """Grid points of the lowest valleys, shape (valleys, ...); the lowest one again where there is no other."""
    around = np.pad(widths, [(1, 1)] + [(0, 0)] * (widths.ndim - 1), constant_values=np.inf)
    lowest = np.min(widths, axis=0)
    valley = (widths <= around[:-2]) & (widths <= around[2:]) & (widths <= NEARLY * lowest)
    floors = np.where(valley, widths, np.inf)
    order = np.argsort(floors, axis=0, kind="stable")[:VALLEYS]
    real = np.isfinite(np.take_along_axis(floors, order, axis=0))
    used = max(1, int(real.reshape(len(real), -1).any(axis=1).sum()))
    return np.where(real, order, np.argmin(widths, axis=0))[:used]
