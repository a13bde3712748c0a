"""How columns of a table become inputs of a model: numbers as they are, texts one-hot, dates as elapsed time.

A column has numbers if any of its first cells is one, and likewise dates, so that a mistake in a cell is reported and not
taken for a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..text import number
from .tables.base import Chunk, shortened

__all__ = ["KINDS", "UNITS", "Column", "ColumnReader", "columns_of"]

KINDS = ("number", "category", "date")
UNITS = {"days": 86400.0, "hours": 3600.0, "seconds": 1.0}
"""Seconds per unit of elapsed time."""
DATE_LIKE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}( .*)?")
MOST_LEVELS = 50
"""Different texts that a one-hot column may have; it also needs two rows for each, on average."""


@dataclass(frozen=True)
class Column:
    """One column of a table as inputs of a model.

    Parameters
    ----------
    name : str
        In the header of the table.
    kind : {"number", "category", "date"}
    levels : tuple of str
        Texts of a category: one input for each, which is 0 or 1; for two of them, one input for the second.
    origin : str
        Date in ISO format from which time is counted.
    unit : {"days", "hours", "seconds", ""}

    Examples
    --------
    >>> Column("color", "category", ("blue", "green", "red")).features
    ['color=blue', 'color=green', 'color=red']
    >>> Column("day", "date", origin="2024-01-01T00:00:00", unit="days").values("2024-02-01")
    [31.0]
    """

    name: str
    kind: str = "number"
    levels: tuple[str, ...] = ()
    origin: str = ""
    unit: str = ""

    @property
    def _shown(self) -> tuple[str, ...]:
        """Levels that have an input."""
        return self.levels[1:] if len(self.levels) == 2 else self.levels

    @property
    def features(self) -> list[str]:
        """Names of the inputs."""
        if self.kind == "category":
            return [f"{self.name}={level}" for level in self._shown]
        return [f"{self.name} ({self.unit} since {_plain(self.origin)})" if self.unit else self.name]

    def values(self, text: str) -> list[float]:
        """The inputs that a text stands for; ValueError if it does not suit the column."""
        if self.kind == "category":
            if text not in self.levels:
                known = shortened(list(self.levels))
                raise ValueError(f"{text[:60]!r} is not among the values that the model knows: {known}")
            return [float(text == level) for level in self._shown]
        if self.kind == "date":
            return [_elapsed(_date(text), _date(self.origin)) / UNITS[self.unit]]
        return [number(text)]

    def encode(self, chunk: Chunk, largest: float) -> FloatArray:
        """The inputs (n, k) for some rows."""
        if self.kind == "number":
            return chunk.numbers([self.name], largest)
        known: dict[str, list[float]] = {}
        cells = chunk.texts(self.name)
        for index, text in enumerate(cells):
            if text not in known:
                try:
                    known[text] = self.values(text)
                except ValueError as error:
                    raise chunk.error(index, self.name, str(error)) from None
        return np.array([known[text] for text in cells]).reshape(len(cells), len(self.features))

    def text(self, values: Sequence[float] | FloatArray, digits: int | None = None) -> str:
        """The cell that inputs (k,) stand for; numbers with some digits after the point."""
        if self.kind == "category":
            if len(self.levels) == 2:
                return self.levels[int(values[0] > 0.5)]
            return self.levels[int(np.argmax(values))]
        if self.kind == "date":
            date = _date(self.origin) + timedelta(seconds=float(values[0]) * UNITS[self.unit])
            return _plain(date.isoformat(timespec="seconds"))
        return f"{values[0]:.5g}" if digits is None else f"{values[0]:.{max(digits, 0)}f}"


def columns_of(model: Any, names: Iterable[str]) -> list[Column]:
    """The columns that a model was fitted to; ``names`` are those of its inputs, all numbers unless it knows better."""
    return list(getattr(model, "columns_", None) or map(Column, names))


class ColumnReader:
    """Collects columns of a table, chunk by chunk, and decides from the first one what they are."""

    def __init__(self, names: Sequence[str], largest: float) -> None:
        self.names, self.largest = list(names), largest
        self._kinds: list[str] = []
        self._parts: list[list[Any]] = [[] for _ in names]

    def add(self, chunk: Chunk) -> None:
        """Read some rows."""
        self._kinds = self._kinds or [_kind(chunk, name) for name in self.names]
        for name, kind, parts in zip(self.names, self._kinds, self._parts, strict=True):
            if kind == "number":
                parts.append(chunk.numbers([name], self.largest))
                continue
            for index, text in enumerate(chunk.texts(name)):
                try:
                    parts.append(_date(text) if kind == "date" else text)
                except ValueError as error:
                    raise chunk.error(index, name, str(error)) from None

    def result(self) -> tuple[list[Column], FloatArray]:
        """The columns, and the inputs (n, d) of all rows."""
        found = map(_column, self.names, self._kinds, self._parts)
        columns, values = zip(*found, strict=True)
        return list(columns), np.concatenate(values, axis=1)


def _kind(chunk: Chunk, name: str) -> str:
    """What a column is: a number or a date if any cell is one."""
    if chunk.is_numeric(name):
        return "number"
    return "date" if any(map(_is_date, chunk.present(name))) else "category"


def _is_date(text: str) -> bool:
    try:
        _date(text)
    except ValueError:
        return False
    return True


def _column(name: str, kind: str, cells: list[Any]) -> tuple[Column, FloatArray]:
    if kind == "number":
        return Column(name), np.concatenate(cells)
    if kind == "date":
        origin = min(cells, key=lambda date: date.replace(tzinfo=None))
        seconds = np.array([_elapsed(date, origin) for date in cells])
        unit = "seconds"
        if seconds.max() > 2 * UNITS["hours"]:
            unit = "days" if seconds.max() > 2 * UNITS["days"] else "hours"
        column = Column(name, kind, origin=origin.isoformat(), unit=unit)
        return column, seconds[:, None] / UNITS[unit]
    levels = sorted(set(cells))
    if DATE_LIKE.fullmatch(levels[0]):
        raise ValueError(f"column {name!r} has {levels[0]!r}: write dates as 2024-12-31")
    if len(levels) > min(MOST_LEVELS, max(2, len(cells) // 2)):
        raise ValueError(
            f"column {name!r} has {len(levels)} different texts in {len(cells)} rows, such as {levels[0][:60]!r}: too "
            "many for one input each"
        )
    if len(levels) == 1:
        raise ValueError(f"column {name!r} has the text {levels[0][:60]!r} in all rows")
    column = Column(name, kind, tuple(levels))
    codes = dict(zip(levels, map(column.values, levels), strict=True))
    return column, np.array([codes[cell] for cell in cells])


def _date(text: str) -> datetime:
    """A date or time in ISO format, in UTC if it has an offset."""
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:60]!r} is not a date as 2024-12-31 or 2024-12-31 23:59:59") from None
    return date if date.tzinfo is None else date.astimezone(UTC)


def _elapsed(date: datetime, origin: datetime) -> float:
    """Seconds from the origin to a date."""
    if (date.tzinfo is None) != (origin.tzinfo is None):
        raise ValueError("dates must all have a time zone, or none of them")
    return (date - origin).total_seconds()


def _plain(date: str) -> str:
    """A date in ISO format without a time at midnight."""
    return date.replace("T", " ").removesuffix("+00:00").removesuffix(" 00:00:00")
