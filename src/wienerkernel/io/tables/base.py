"""What tables have in common: names, chunks of rows, cells as numbers, and messages with the place of a mistake."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import FloatArray

__all__ = ["CHUNK", "Chunk", "Table", "TableWriter", "different", "shortened"]

CHUNK = 2048
"""Rows of a chunk, unless told otherwise."""

SHOWN = 20
"""Columns that a message names."""

NOT_FINITE = "is not a finite number; every row needs one here"


class Chunk(ABC):
    """Some rows of a table.

    Parameters
    ----------
    file : str
        Name of the file, for messages.
    columns : mapping of str to sequence
        The cells as the file has them, by name of the column.
    """

    def __init__(self, file: str, columns: Mapping[str, Any]) -> None:
        self.file = file
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def numbers(self, names: Sequence[str], largest: float = np.inf) -> FloatArray:
        """Some columns as finite numbers, (n, k).

        Parameters
        ----------
        names : sequence of str
        largest : float, default=inf
            Numbers of greater magnitude are refused.

        Returns
        -------
        ndarray of shape (n, k)
        """
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
        """Number of a row, as a person counts."""

    def _error(self, index: int, name: str, what: str) -> ValueError:
        return ValueError(f"{self.file}, row {self._row(index)}, column {name!r}: {what}")


class Table(ABC):
    """A file of columns with names.

    Attributes
    ----------
    file : str
        Its name, for messages.
    names : list of str
    """

    file: str
    names: list[str]

    @abstractmethod
    def chunks(self, size: int = CHUNK) -> Iterator[Chunk]:
        """The rows, at most ``size`` at a time."""

    @property
    @abstractmethod
    def fraction(self) -> float | None:
        """How much has been read, from 0 to 1; None if that is not known."""


class TableWriter(ABC):
    """A table that is being written, chunk by chunk."""

    @abstractmethod
    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows, given by columns: the same ones each time."""


def different(file: str, names: list[str]) -> list[str]:
    """Names of columns, if no two are the same.

    Parameters
    ----------
    file : str
        For the message.
    names : list of str

    Returns
    -------
    list of str
    """
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{file}: two columns have the name {twice[0]!r}")
    return names


def shortened(names: list[str]) -> str:
    """Names of columns for a message, the first of very many.

    Parameters
    ----------
    names : list of str

    Returns
    -------
    str
    """
    return ", ".join(names[:SHOWN]) + f", ... ({len(names)} in all)" * (len(names) > SHOWN)
