"""Where a density is not smooth."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import FloatArray
from .panels import POINTS, density_panels

__all__ = ["singular_points"]

SHARP = 1e-3
"""A panel narrower than this, relative to the quartiles and to its distance from the ends, marks a singular point."""
JUMP = 1e-6
"""So do neighboring panels whose densities or slopes differ by this fraction of the density."""
MAX_STEPS = 4


def singular_points(law: Any) -> FloatArray:
    """Points where a density is not smooth, increasing: finite ends of its support, and where panels crowd or disagree.

    The law is any object with ``pdf``, ``cdf``, ``sf``, ``ppf``, ``isf`` and ``support``.
    """
    left, right, series = density_panels(law)
    lower, upper = (float(end) for end in law.support())
    width = right - left
    quartiles = float(law.ppf(0.75) - law.ppf(0.25))
    room = np.minimum(np.minimum(left - lower, upper - right), quartiles)
    narrow = (width < SHARP * room) & (width > 0)
    sharp = np.flatnonzero(narrow)
    inner = []
    for cluster in np.split(sharp, np.flatnonzero(np.diff(sharp) > 1) + 1) if len(sharp) else []:
        narrowest = cluster[np.argmin(width[cluster])]
        if width[narrowest] > 1e-10 * quartiles:
            inner.append(_locate(law, float(left[cluster[0]]), float(right[cluster[-1]])))
        else:
            inner.append(float(left[narrowest] if narrow[narrowest - 1] else right[narrowest]))
    k = np.arange(POINTS)
    ends = [series @ sign**k for sign in (1.0, -1.0)]
    with np.errstate(over="ignore", invalid="ignore"):  # next to a pole
        slopes = [series @ (sign ** (k + 1) * k * (k + 1)) / width for sign in (1.0, -1.0)]
    size = JUMP * np.abs(series).max(axis=1)
    off = np.abs(ends[0][:-1] - ends[1][1:]) > np.maximum(size[:-1], size[1:])
    reach = np.minimum(width[:-1], width[1:])
    with np.errstate(over="ignore", invalid="ignore"):
        off |= np.abs(slopes[0][:-1] - slopes[1][1:]) * reach > np.maximum(size[:-1], size[1:])
    # panels without mass need not match
    sure = ~narrow & (room > SHARP * quartiles) & (size * width > 1e-8 * JUMP)
    off &= sure[:-1] & sure[1:]
    # a noisy density has meaningless steps everywhere
    inner += right[:-1][off].tolist() if off.sum() <= MAX_STEPS else []
    return np.unique([end for end in (lower, *inner, upper) if np.isfinite(end)])


def _locate(law: Any, left: float, right: float) -> float:
    """The point between left and right where the continuation of the density from one side gives way to the other."""
    reach = 8 * (right - left)
    nodes = np.cos((np.arange(8) + 0.5) * np.pi / 8)
    with np.errstate(all="ignore"):
        sides = [
            np.polynomial.Chebyshev.fit(x, law.pdf(x), 7, domain=[x.min(), x.max()])
            for x in (left - reach * (1 + nodes) / 2, right + reach * (1 + nodes) / 2)
        ]
    low, high = left, right
    rising = sides[0](low) < sides[1](low)
    crosses = rising != (sides[0](high) < sides[1](high))
    for _ in range(60):
        middle = 0.5 * (low + high)
        before, after = sides[0](middle), sides[1](middle)
        if crosses:  # a kink: the continuations meet
            stays = (before < after) == rising
        else:  # a jump: the density follows one of them
            stays = abs(law.pdf(middle) - before) < abs(law.pdf(middle) - after)
        low, high = (middle, high) if stays else (low, middle)
    return 0.5 * (low + high)
