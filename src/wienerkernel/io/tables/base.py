"""What tables have in common: column names, chunks of rows, cells as numbers, and error messages with row and column."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray

__all__ = ["CHUNK", "NAMELESS", "SHOWN", "Chunk", "MissingValueError", "check_names", "distinct", "shortened"]

T = TypeVar("T")
CHUNK = 2048
"""Rows per chunk."""

SHOWN = 20
"""Column names that a message lists at most."""

NAMELESS = re.compile(r"(Unnamed: \d+|__index_level_\d+__|__null_dask_index__)?")
"""Names of a column of row numbers that pandas, Dask or R wrote without a name, also when it was read and written again."""

NOT_FINITE = "is not a finite number; every row needs one here"
EMPTY = "the cell is empty; every row needs a value here"


class MissingValueError(ValueError):
    """A cell has no value."""


class Chunk(ABC):
    """Some rows of a table: the cells as they are in the file, by column name.

    The name of the ``file`` and the ``rows`` as users count them are for messages.
    """

    def __init__(self, file: str, columns: Mapping[str, Any], rows: Sequence[int]) -> None:
        self.file, self.columns, self._rows = file, columns, rows

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def numbers(self, names: Sequence[str], largest: float = np.inf) -> FloatArray:
        """Some columns as finite numbers (n, k) of at most this magnitude."""
        check_names(self.file, names, list(self.columns))
        numbers = np.empty((len(self), len(names)))
        for k, name in enumerate(names):
            numbers[:, k] = self._column(name)
            good = np.isfinite(numbers[:, k]) & (np.abs(numbers[:, k]) <= largest)
            if not good.all():
                index = int(np.argmin(good))
                finite = np.isfinite(numbers[index, k])
                what = "is too large to be squared; rescale the column" if finite else NOT_FINITE
                kind = MissingValueError if np.isnan(numbers[index, k]) else ValueError
                raise self.error(index, name, f"{str(self.columns[name][index])[:60]} {what}", kind)
        return numbers

    def positive(self, name: str, largest: float = np.inf) -> FloatArray:
        """One column as positive numbers, (n,)."""
        values = self.numbers([name], largest)[:, 0]
        if not np.all(values > 0):
            index = int(np.argmin(values))
            raise self.error(index, name, f"{values[index]:g} is not positive")
        return values

    def texts(self, name: str) -> list[str]:
        """One column as texts, dates in ISO format."""
        cells = self._texts(name)
        if None in cells:
            raise self.error(cells.index(None), name, EMPTY, MissingValueError)
        return [cell for cell in cells if cell is not None]

    def converted(self, name: str, function: Callable[[str], T]) -> list[T]:
        """A function of the texts of one column, whose ValueError gets the place of the text."""
        texts, known = self.texts(name), {}
        for text in dict.fromkeys(texts):
            try:
                known[text] = function(text)
            except ValueError as error:
                raise self.error(texts.index(text), name, str(error)) from None
        return [known[text] for text in texts]

    def present(self, name: str) -> list[str]:
        """The values that one column has, as texts."""
        return [cell for cell in self._texts(name) if cell is not None]

    def complete(self, names: Sequence[str]) -> Self:
        """The rows that have a value in all of these columns."""
        kept = np.ones(len(self), dtype=bool)
        for name in names:
            kept &= ~self._missing(name)
        if kept.all():
            return self
        columns = {name: self._kept(values, kept) for name, values in self.columns.items()}
        return type(self)(self.file, columns, list(compress(self._rows, kept)))

    @abstractmethod
    def is_numeric(self, name: str) -> bool:
        """Whether a column is one of numbers, perhaps with mistakes: it has a number, or no value at all."""

    @abstractmethod
    def _column(self, name: str) -> FloatArray:
        """One column as numbers."""

    @abstractmethod
    def _texts(self, name: str) -> list[str | None]:
        """One column as texts; None where there is no value."""

    @abstractmethod
    def _missing(self, name: str) -> NDArray[np.bool_]:
        """Rows without a value in a column, (n,)."""

    @abstractmethod
    def _kept(self, values: Any, kept: NDArray[np.bool_]) -> Any:
        """The cells of a column in some of the rows."""

    def error(self, index: int, name: str, what: str, kind: type[ValueError] = ValueError) -> ValueError:
        """An error that names file, row and column."""
        return kind(f"{self.file}, row {self._rows[index]}, column {name!r}: {what}")


def check_names(file: str, names: Sequence[str], known: list[str]) -> None:
    """Raise ValueError for a name that no column has."""
    for name in names:
        if name not in known:
            hint = "; columns are separated by commas, semicolons or tabs" if len(known) == 1 else ""
            raise ValueError(f"{file}: there is no column {name!r}; the columns are {shortened(known)}{hint}")


def distinct(file: str, names: list[str]) -> list[str]:
    """The column names, if they are distinct; ``file`` is for the message."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{file}: two columns are named {twice[0]!r}")
    return names


def shortened(names: list[str]) -> str:
    """Column names for a message, the first ones if there are many; those with commas in quotes, as in options."""
    names = ['"{}"'.format(name.replace('"', '""')) if "," in name else name for name in names if name]
    return ", ".join(names[:SHOWN]) + f", ... ({len(names)} in all)" * (len(names) > SHOWN)
