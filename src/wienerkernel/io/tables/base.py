"""What tables have in common: column names, chunks of rows, cells as numbers, and error messages with row and column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import FloatArray

__all__ = ["CHUNK", "Chunk", "distinct", "shortened"]

CHUNK = 2048
"""Rows per chunk."""

SHOWN = 20
"""Column names that a message lists at most."""

NOT_FINITE = "is not a finite number; every row needs one here"


class Chunk(ABC):
    """Some rows of a table: the cells as they are in the file, by column name; ``file`` is for messages."""

    def __init__(self, file: str, columns: Mapping[str, Any]) -> None:
        self.file = file
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def numbers(self, names: Sequence[str], largest: float = np.inf) -> FloatArray:
        """Some columns as finite numbers (n, k) of at most this magnitude."""
        for name in names:
            if name not in self.columns:
                known = shortened(list(self.columns))
                raise ValueError(f"{self.file}: there is no column {name!r}; the columns are {known}")
        numbers = np.empty((len(self), len(names)))
        for k, name in enumerate(names):
            numbers[:, k] = self._column(name)
            good = np.isfinite(numbers[:, k]) & (np.abs(numbers[:, k]) <= largest)
            if not good.all():
                index = int(np.argmin(good))
                finite = np.isfinite(numbers[index, k])
                what = "is too large to be squared; rescale the column" if finite else NOT_FINITE
                raise self._error(index, name, f"{str(self.columns[name][index])[:60]} {what}")
        return numbers

    @abstractmethod
    def _column(self, name: str) -> FloatArray:
        """One column as numbers."""

    @abstractmethod
    def _row(self, index: int) -> int:
        """Number of a row as users count."""

    def _error(self, index: int, name: str, what: str) -> ValueError:
        return ValueError(f"{self.file}, row {self._row(index)}, column {name!r}: {what}")


def distinct(file: str, names: list[str]) -> list[str]:
    """The column names, if they are distinct; ``file`` is for the message."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{file}: two columns are named {twice[0]!r}")
    return names


def shortened(names: list[str]) -> str:
    """Column names for a message, the first ones if there are many."""
    return ", ".join(names[:SHOWN]) + f", ... ({len(names)} in all)" * (len(names) > SHOWN)
