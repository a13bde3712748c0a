"""The shortest interval with a given probability."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import elementwise

from .._typing import FloatArray, IntArray

__all__ = ["shortest"]

GRID = 49
"""Values of the part of the outer probability that lies below, on which the width is searched for local minima."""
VALLEYS, NEARLY = 3, 1.1
"""Local minima that are refined, and how much wider than the narrowest they may be on the grid."""
PRECISION = 1e-9
"""Of the part that lies below; the width, near its minimum, is then exact to rounding."""
INFINITE = 1e100
"""Width of an interval with an infinite end; the search needs finite values."""


def shortest(
    ppf: Callable[[FloatArray], FloatArray],
    isf: Callable[[FloatArray], FloatArray],
    confidence: FloatArray,
    shape: tuple[int, ...],
) -> tuple[FloatArray, FloatArray]:
    """Ends of the shortest interval [ppf(p), isf(1 - confidence - p)] over p, of shape broadcast(confidence, shape).

    A law with several peaks has several local minima of the width: a grid finds them, Chandrupatla's method refines them.
    ``ppf`` and ``isf`` broadcast against ``shape``.
    """
    outside = 1 - np.broadcast_to(confidence, np.broadcast_shapes(confidence.shape, shape))

    def ends(part: FloatArray) -> tuple[FloatArray, FloatArray]:
        return ppf(part * outside), isf((1 - part) * outside)

    def width(part: FloatArray) -> FloatArray:
        inside = np.clip(part, 0.0, 1.0)
        low, high = ends(inside)
        with np.errstate(invalid="ignore"):
            result = np.nan_to_num(high - low, nan=INFINITE, posinf=INFINITE)
        return np.asarray(
            result * (1 + np.abs(part - inside))
        )  # grows beyond 0 and 1, where there may be a minimum

    grid = np.linspace(0, 1, GRID).reshape(-1, *(1,) * outside.ndim)
    best = _valleys(width(grid))
    floor = best / (GRID - 1)

    def width_of_some(part: FloatArray, index: IntArray) -> FloatArray:
        every = floor.copy()
        every.flat[index] = part
        return np.asarray(width(every).flat[index])

    bracket = (best - 1) / (GRID - 1), floor, (best + 1) / (GRID - 1)
    index = np.arange(best.size).reshape(best.shape)
    found = elementwise.find_minimum(
        width_of_some,
        bracket,
        args=(index,),
        tolerances={"xatol": PRECISION, "xrtol": PRECISION, "fatol": 0.0, "frtol": 0.0},
    )
    floor = np.clip(np.where(found.success, found.x, floor), 0.0, 1.0)
    part = np.take_along_axis(floor, np.argmin(width(floor), axis=0)[None], axis=0)[0]
    for end in (0.0, 1.0):  # a monotone density has its shortest interval at an end of the support
        part = np.where(width(np.full(part.shape, end)) <= width(part), end, part)
    return ends(part)


def _valleys(widths: FloatArray) -> IntArray:
    """Grid points of the lowest local minima, shape (minima, ...); the lowest one again where there is no other."""
    around = np.pad(widths, [(1, 1)] + [(0, 0)] * (widths.ndim - 1), constant_values=np.inf)
    lowest = np.min(widths, axis=0)
    valley = (widths <= around[:-2]) & (widths <= around[2:]) & (widths <= NEARLY * lowest)
    floors = np.where(valley, widths, np.inf)
    order = np.argsort(floors, axis=0, kind="stable")[:VALLEYS]
    real = np.isfinite(np.take_along_axis(floors, order, axis=0))
    used = max(1, int(real.reshape(len(real), -1).any(axis=1).sum()))
    return np.where(real, order, np.argmin(widths, axis=0))[:used]
