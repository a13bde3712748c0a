"""The shortest interval that holds a given probability."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import FloatArray

__all__ = ["shortest"]

GRID = 17
GOLDEN = (np.sqrt(5.0) - 1) / 2


def shortest(
    ppf: Callable[[FloatArray], FloatArray],
    isf: Callable[[FloatArray], FloatArray],
    confidence: FloatArray,
    shape: tuple[int, ...],
) -> tuple[FloatArray, FloatArray]:
    """Ends of the shortest interval [ppf(p), isf(1 - confidence - p)] over p.

    A coarse grid finds the valley, golden sections its floor.

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
    best = np.argmin(width(grid), axis=0)
    left, right = np.maximum(best - 1, 0) / (GRID - 1), np.minimum(best + 1, GRID - 1) / (GRID - 1)
    inner, outer = right - GOLDEN * (right - left), left + GOLDEN * (right - left)
    at_inner, at_outer = width(inner), width(outer)
    for _ in range(36):
        smaller = at_inner < at_outer
        left, right = np.where(smaller, left, inner), np.where(smaller, outer, right)
        probe = np.where(smaller, right - GOLDEN * (right - left), left + GOLDEN * (right - left))
        at_probe = width(probe)
        inner, outer = np.where(smaller, probe, outer), np.where(smaller, inner, probe)
        at_inner, at_outer = np.where(smaller, at_probe, at_outer), np.where(smaller, at_inner, at_probe)
    part = 0.5 * (left + right)
    for end in (0.0, 1.0):  # a monotone density has its shortest interval at an end of the support
        at_end = np.full(outside.shape, end)
        part = np.where(width(at_end) <= width(part), end, part)
    return ppf(part * outside), isf((1 - part) * outside)
