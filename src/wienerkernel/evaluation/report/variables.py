"""The inputs as the user knows them: numbers, and categories where the model has a column for each value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._typing import BoolArray, FloatArray

__all__ = ["Variable", "variables"]


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
