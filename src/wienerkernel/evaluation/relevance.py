"""How much the prediction depends on each input."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import BoolArray, FloatArray
from ..backend import arrays

__all__ = ["exclusive", "relevance"]

MAX_ROWS = 300
SHIFTS = (1, 2, 3, 5, 8)


def exclusive(points: FloatArray) -> BoolArray:
    """Which inputs are indicators of which at most one is 1 in each sample (n, d), as one-hot columns are: (d, d)."""
    binary = np.all((points == 0) | (points == 1), axis=0)
    overlap = points[:, binary].T @ points[:, binary] > 0
    found = np.zeros((points.shape[1],) * 2, dtype=bool)
    found[np.ix_(binary, binary)] = ~overlap
    return found


def relevance(posterior: Any, points: FloatArray, together: BoolArray | None = None) -> FloatArray:
    """Typical change of the mean if one input is replaced by that of another sample: (d, n_y), in units of y.

    It is the root mean square over the samples ``points`` (n, d), or `MAX_ROWS` of them, divided by the square root of 2:
    for a function that is a sum of functions of one input each, the standard deviation of each term. ``together`` (d, d)
    tells which inputs are replaced together, apart from each input itself.
    """
    order = np.random.default_rng(0).permutation(len(points))[:MAX_ROWS]
    rows = points[order]
    n, d = rows.shape
    replaced = np.eye(d, dtype=bool) if together is None else together | np.eye(d, dtype=bool)
    others = [np.roll(rows, -shift, axis=0) for shift in SHIFTS[: max(1, n - 1)]]
    moved = np.tile(rows, (1 + d * len(others), 1))
    blocks = moved[n:].reshape(d, len(others), n, d)
    for j in range(d):
        for k, other in enumerate(others):
            blocks[j, k][:, replaced[j]] = other[:, replaced[j]]
    mean = arrays.as_numpy(posterior.mean(moved)).reshape(len(moved), -1)
    change = mean[n:].reshape(d, len(others) * n, -1) - np.tile(mean[:n], (len(others), 1))
    return np.asarray(np.sqrt(np.mean(change**2, axis=1) / 2))
