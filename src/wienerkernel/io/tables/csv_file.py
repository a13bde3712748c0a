"""CSV, by the standard library."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import compress, islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...text import number
from .base import CHUNK, EMPTY, Chunk, MissingValueError, distinct

__all__ = ["CsvTable", "CsvWriter"]

MISSING = ("", "na", "n/a", "nan", "null", "none")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
GROUPING = re.compile(r"[\s_'’,]")
WITH_UNIT = re.compile(r"[+-]?\d+([.,]\d+)? ?[^\d\W]\S{0,5}")


class _CsvChunk(Chunk):
    def _column(self, name: str) -> FloatArray:
        cells: Sequence[str] = self.columns[name]
        text = "".join(cells)
        # In ASCII without underscores, `float` accepts the same numbers as `number`, and is much faster.
        if text.isascii() and "_" not in text:
            with suppress(ValueError):
                return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        numbers = np.empty(len(cells))
        for index, cell in enumerate(cells):
            try:
                numbers[index] = number(cell, special=True)
            except ValueError as error:
                kind = MissingValueError if _is_missing(cell) else ValueError
                raise self.error(index, name, _without_number(cell), kind) from error
        return numbers

    def is_numeric(self, name: str) -> bool:
        """Whether a cell is a number, or was meant to be one, or none has a value."""
        cells = [cell for cell in self.columns[name] if not _is_missing(cell)]
        return not cells or any(_is_number(cell) or _hint(cell.strip().removesuffix("%")) for cell in cells)

    def _texts(self, name: str) -> list[str | None]:
        return [None if _is_missing(cell) else cell.strip() for cell in self.columns[name]]

    def _missing(self, name: str) -> NDArray[np.bool_]:
        return np.fromiter(map(_is_missing, self.columns[name]), dtype=bool, count=len(self))

    def _kept(self, values: Any, kept: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(compress(values, kept))


class CsvTable:
    """A CSV file with a header row; ``name`` is for messages, ``size`` in bytes if it is known."""

    def __init__(self, name: str, file: IO[str], size: int | None = None) -> None:
        self.file, self._lines, self._size = name, file, size
        try:
            header = file.readline()
            self._reader = csv.reader(_after(header, file), delimiter=_delimiter(header))
            first = next(self._reader, [])
        except (UnicodeDecodeError, csv.Error) as error:
            raise self._unreadable(error) from None
        self.names = [cell.strip().removeprefix("\ufeff") for cell in first]
        if not any(self.names):
            raise ValueError(f"{name} is empty; the first row must hold the column names")
        if odd := next(filter(CONTROL.search, self.names), None):
            raise ValueError(
                f"{name} has control characters in a column name, {odd[:60]!r}; is it a CSV file?"
            )
        nameless = [k for k, name in enumerate(self.names) if not name]
        for k in nameless[1:]:  # as pandas calls them; spreadsheets leave empty columns at the end
            self.names[k] = f"Unnamed: {k}"
        if all(map(_is_number, self.names)):
            raise ValueError(
                f"{name}: the first row must hold the column names, got {', '.join(self.names[:5])}"
            )
        distinct(name, self.names)

    def chunks(self, size: int = CHUNK, names: Sequence[str] | None = None) -> Iterator[Chunk]:  # noqa: ARG002
        """The rows, at most ``size`` at a time; columns other than ``names`` may be missing."""
        while rows := self._rows(size):
            cells, numbers = zip(*rows, strict=True)
            columns = dict(zip(self.names, zip(*cells, strict=True), strict=True))
            yield _CsvChunk(self.file, columns, numbers)

    def _rows(self, size: int) -> list[tuple[list[str], int]]:
        """The next rows that are not blank, with their numbers."""
        try:
            rows = list(islice(((row, self._reader.line_num) for row in self._reader if row), size))
        except (UnicodeDecodeError, csv.Error) as error:
            raise self._unreadable(error) from None
        for row, line in rows:
            if len(row) != len(self.names):
                raise ValueError(
                    f"{self.file}, row {line}: {len(row)} cells, but there are {len(self.names)} columns"
                )
        return rows

    def _unreadable(self, error: Exception) -> ValueError:
        if isinstance(error, UnicodeDecodeError):
            return ValueError(
                f"{self.file} is not UTF-8 text; if it is a CSV file, save it in that encoding (in Excel, as CSV UTF-8)"
            )
        return ValueError(f"{self.file} is not a CSV file: {error}")

    @property
    def fraction(self) -> float | None:
        """Fraction that has been read; None if unknown."""
        if not self._size or not isinstance(self._lines, io.TextIOWrapper):
            return None
        return min(1.0, float(self._lines.buffer.tell()) / self._size)


class CsvWriter:
    """Writes CSV to a text file."""

    def __init__(self, file: IO[str]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._started = False

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows, given by the same columns each time."""
        if not self._started:
            self._writer.writerow(columns)
            self._started = True
        # as Python floats, float64 prints the shortest digits that are exact
        cells = [values.tolist() if hasattr(values, "tolist") else values for values in columns.values()]
        self._writer.writerows(zip(*cells, strict=True))


def _is_number(cell: str) -> bool:
    try:
        number(cell, special=True)
    except ValueError:
        return False
    return True


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _without_number(cell: str) -> str:
    """What is wrong with a cell, and how to fix it."""
    plain = cell.strip()
    if not plain:
        return EMPTY
    what = f"{cell[:60]!r} is not a number"
    if plain.lower() in MISSING:
        return f"{what}; every row needs a value here"
    return what + (
        _hint(plain.removesuffix("%")) or "; write numbers without a unit" * bool(WITH_UNIT.fullmatch(plain))
    )


def _hint(plain: str) -> str:
    """How to write what was meant to be a number; empty if it was not."""
    if _is_number(plain):
        return "; leave out the percent sign"
    if THOUSANDS.fullmatch(plain):
        return f"; write {plain.replace(',', '')} or {plain.replace(',', '.')}, whichever is meant"
    if _is_number(plain.replace(",", ".")):
        return "; use a decimal point"
    with suppress(ValueError):
        float(GROUPING.sub("", plain))
        return "; use the digits 0 to 9 without separators"
    return ""


def _delimiter(header: str) -> str:
    """The most frequent separator of the header; by default a comma."""
    return max(",;\t", key=header.count)


def _after(header: str, lines: IO[str]) -> Iterator[str]:
    yield header
    yield from lines
