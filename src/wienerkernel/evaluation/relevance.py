"""The inputs as the user knows them, numbers and categories, and how much the prediction depends on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import BoolArray, FloatArray
from ..backend import arrays

__all__ = ["Variable", "exclusive", "relevance", "variables"]

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


@dataclass(frozen=True)
class Variable:
    """A number, which is one input, or a category, which is one input for each of its ``values``."""

    name: str
    columns: list[int]
    values: tuple[str, ...] = ()

    def coordinate(self, points: FloatArray) -> FloatArray:
        """Value of the number, or index of the value of the category, at points (n, d)."""
        chosen = points[:, self.columns]
        return np.argmax(chosen, axis=1).astype(float) if self.values else chosen[:, 0]

    def at(self, point: FloatArray) -> float | str:
        """Value at one point (d,)."""
        place = self.coordinate(point[None])[0]
        return self.values[int(place)] if self.values else float(place)


def variables(names: Sequence[str], points: FloatArray, together: BoolArray) -> list[Variable]:
    """Variables of samples (n, d), in the order of their first inputs; ``together`` is `exclusive` of the samples.

    Inputs are a category if exactly one of them is 1 in each sample. Names such as "site=A" and "site=B", or "site_A" and
    "site_B", have the name of the category in common.
    """
    found: dict[tuple[int, ...], Variable] = {}
    for j, row in enumerate(together | np.eye(len(names), dtype=bool)):
        columns = np.flatnonzero(row).tolist()
        if len(columns) == 1 or not np.all(points[:, columns].sum(axis=1) == 1):
            found[j,] = Variable(names[j], [j])
        elif tuple(columns) not in found:
            parts = [names[k] for k in columns]
            # the first letters that are not the same in all names end what is common
            differ = (i for i, letters in enumerate(zip(*parts, strict=False)) if len(set(letters)) > 1)
            common = parts[0][: next(differ, min(map(len, parts)))]
            end = common.find("=") + 1 or common.rfind("_") + 1
            values = tuple(part[end:] for part in parts)
            found[tuple(columns)] = Variable(common[: max(end - 1, 0)] or "category", columns, values)
    return list(found.values())
