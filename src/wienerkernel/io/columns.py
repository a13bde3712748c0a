"""How columns of a table become inputs of a model: numbers as they are, texts one-hot, dates as elapsed time.

A column has numbers if any of its first cells is one, and likewise dates, so that a mistake in a cell is reported and not
taken for a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import compress
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..text import number
from .tables.base import Chunk, shortened
from .tables.csv_file import WITH_UNIT

__all__ = ["KINDS", "UNITS", "Column", "ColumnReader", "Finding", "columns_of", "encoded", "found_in"]

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
        values = chunk.converted(self.name, self.values)
        return np.array(values).reshape(len(values), len(self.features))

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


def encoded(columns: Iterable[Column], rows: Chunk, largest: float) -> FloatArray:
    """The inputs (n, d) of some rows of a table."""
    return np.concatenate([column.encode(rows, largest) for column in columns], axis=1)


@dataclass(frozen=True)
class Finding:
    """What is known about a column after some rows, in bounded memory; findings in two parts of the rows add up.

    Parameters
    ----------
    name : str
    kind : {"number", "category", "date"}
        A number if it is one in any of the parts, otherwise a date if it is one in any.
    rows : int
    levels : frozenset of str
        Texts of a category; once there are too many, no more are collected.
    dates : tuple of datetime
        The first and the last one.
    """

    name: str
    kind: str
    rows: int
    levels: frozenset[str] = frozenset()
    dates: tuple[datetime, ...] = ()

    @classmethod
    def of(cls, rows: Chunk, name: str, kind: str) -> Finding:
        """What some rows tell about a column of this kind."""
        if kind == "number":
            return cls(name, kind, len(rows))
        if kind == "category":
            return cls(name, kind, len(rows), frozenset(rows.texts(name)))
        return cls(name, kind, len(rows), dates=_ends(set(rows.converted(name, _date))))

    def __add__(self, other: Finding) -> Finding:
        kind = next(kind for kind in ("number", "date", "category") if kind in (self.kind, other.kind))
        levels = self.levels if len(self.levels) > MOST_LEVELS else self.levels | other.levels
        return Finding(self.name, kind, self.rows + other.rows, levels, _ends([*self.dates, *other.dates]))

    def column(self) -> Column:
        """How the column becomes inputs; ValueError if it cannot."""
        if self.kind == "number":
            return Column(self.name)
        if self.kind == "date":
            seconds, unit = _elapsed(self.dates[1], self.dates[0]), "seconds"
            if seconds > 2 * UNITS["hours"]:
                unit = "days" if seconds > 2 * UNITS["days"] else "hours"
            return Column(self.name, self.kind, origin=self.dates[0].isoformat(), unit=unit)
        levels = sorted(self.levels)
        if DATE_LIKE.fullmatch(levels[0]):
            raise ValueError(f"column {self.name!r} has {levels[0]!r}: write dates as 2024-12-31")
        if len(levels) > min(MOST_LEVELS, max(2, self.rows // 2)):
            number = f"more than {MOST_LEVELS}" if len(levels) > MOST_LEVELS else len(levels)
            unit = "; write numbers without a unit" if WITH_UNIT.fullmatch(levels[0]) else ""
            raise ValueError(
                f"column {self.name!r} has {number} different texts in {self.rows} rows, such as {levels[0][:60]!r}: too "
                f"many for one input each{unit}"
            )
        if len(levels) == 1:
            raise ValueError(f"column {self.name!r} has the text {levels[0][:60]!r} in all rows")
        return Column(self.name, self.kind, tuple(levels))


def found_in(rows: Chunk, names: Sequence[str], before: Sequence[Finding] = ()) -> list[Finding]:
    """What is known about columns after some more rows; the first ones decide what a column is."""
    if not before:
        return [Finding.of(rows, name, _kind(rows, name)) for name in names]
    return [finding + Finding.of(rows, finding.name, finding.kind) for finding in before]


class ColumnReader:
    """Collects columns of a table, chunk by chunk, and decides from the first one what they are."""

    def __init__(self, names: Sequence[str], largest: float) -> None:
        self.names, self.largest = list(names), largest
        self.found: list[Finding] = []
        self._parts: list[list[Any]] = [[] for _ in names]

    def add(self, chunk: Chunk) -> None:
        """Read some rows."""
        before, self.found = self.found, []
        # column by column, so that the first column with a mistake is reported
        for k, (name, parts) in enumerate(zip(self.names, self._parts, strict=True)):
            (finding,) = found_in(chunk, [name], before[k : k + 1])
            self.found.append(finding)
            if finding.kind == "number":
                parts.append(chunk.numbers([finding.name], self.largest))
            else:
                parts += chunk.texts(finding.name)

    def useless(self) -> dict[str, str]:
        """Columns that tell nothing about other rows, and why: constants and identifiers."""
        reasons = {}
        for finding, parts in zip(self.found, self._parts, strict=True):
            if finding.kind == "number":
                numbers = np.concatenate(parts)
                values = {numbers.min(), numbers.max()}
            else:
                values = set(parts)
            if len(values) == 1:
                reasons[finding.name] = "it is the same in all rows"
            elif (
                finding.kind == "category"
                and len(values) > max(2, finding.rows // 2)
                and not any(map(_is_mistaken, values))
            ):
                reasons[finding.name] = "its texts are mostly different"
        return reasons

    def result(self, names: Sequence[str] | None = None) -> tuple[list[Column], FloatArray]:
        """The columns, all or some of them, and the inputs (n, d) of all rows."""
        wanted = set(self.names if names is None else names)
        kept = [name in wanted for name in self.names]
        columns, values = [finding.column() for finding in compress(self.found, kept)], []
        for column, parts in zip(columns, compress(self._parts, kept), strict=True):
            if column.kind == "number":
                values.append(np.concatenate(parts))
            else:
                known = {text: column.values(text) for text in dict.fromkeys(parts)}
                values.append(np.array([known[text] for text in parts]))
        return columns, np.concatenate(values, axis=1)


def _kind(chunk: Chunk, name: str) -> str:
    """What a column is: a number or a date if any cell is one."""
    if chunk.is_numeric(name):
        return "number"
    return "date" if any(map(_is_date, chunk.present(name))) else "category"


def _is_mistaken(text: str) -> bool:
    """Whether a text was meant to be a number or a date."""
    return bool(DATE_LIKE.fullmatch(text) or WITH_UNIT.fullmatch(text))


def _is_date(text: str) -> bool:
    try:
        _date(text)
    except ValueError:
        return False
    return True


def _ends(dates: Iterable[datetime]) -> tuple[datetime, ...]:
    """The first and the last of some dates, if there are any."""
    order = sorted(dates, key=lambda date: date.replace(tzinfo=None))
    return (order[0], order[-1]) if order else ()


def _date(text: str) -> datetime:
    """A date or time in ISO format, in UTC if it has an offset."""
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:60]!r} is not a date such as 2024-12-31 or 2024-12-31 23:59:59") from None
    return date if date.tzinfo is None else date.astimezone(UTC)


def _elapsed(date: datetime, origin: datetime) -> float:
    """Seconds from the origin to a date."""
    if (date.tzinfo is None) != (origin.tzinfo is None):
        raise ValueError("dates must all have a time zone, or none of them")
    return (date - origin).total_seconds()


def _plain(date: str) -> str:
    """A date in ISO format without a time at midnight."""
    return date.replace("T", " ").removesuffix("+00:00").removesuffix(" 00:00:00")
