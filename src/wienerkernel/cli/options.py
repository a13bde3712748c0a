"""The options and arguments of the commands, and checks of their values."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..text import number

__all__ = [
    "Folder",
    "Force",
    "Missing",
    "Model",
    "OutputTable",
    "Scheduler",
    "UsageError",
    "argument",
    "check_figure",
    "check_interval",
    "integers",
    "listed",
    "may_write",
    "numeric",
    "option",
]


class UsageError(ValueError):
    """Wrong usage: an option has a value that is invalid for any data and model."""


def numeric(kind: type[int | float], low: float = -math.inf, high: float = math.inf) -> dict[str, Any]:
    """Arguments of ``typer.Option`` for a finite number in [low, high].

    It is parsed by the library's rule for numbers, which is stricter than Python's.
    """
    wanted = "an integer" if kind is int else "a finite number"
    if high < math.inf:
        wanted += f" from {low:g} to {high:g}"
    elif low > -math.inf:
        wanted += f" of at least {low:g}"

    def parse(text: Any) -> float:
        try:
            number(str(text))
            value = kind(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and low <= value <= high):
            raise typer.BadParameter(f"{text!r} is not {wanted}")
        return value

    return {"parser": parse, "metavar": "INTEGER" if kind is int else "NUMBER"}


def option(
    text: str, metavar: str | None = None, default: str | bool = True, *names: str, **more: Any
) -> Any:
    """A ``typer.Option`` with its help text, metavar, description of its default value, and names."""
    return typer.Option(*names, help=text, **{"metavar": metavar, "show_default": default, **more})


def argument(text: str, metavar: str, default: str | bool = False) -> Any:
    """A ``typer.Argument`` with its help text, metavar, and description of its default value."""
    return typer.Argument(help=text, metavar=metavar, show_default=default)


Force = Annotated[bool, option("Overwrite existing files.", "", True, "--force")]
Model = Annotated[Path, argument("Model file written by `wienerkernel fit` or `save()`.", "MODEL")]
Missing = Annotated[
    Literal["refuse", "drop"], option("What to do with rows without a value in a column that is used.")
]
OutputTable = Annotated[
    Path, option("Output table, CSV or Parquet; - writes standard output.", "FILE", True, "--output", "-o")
]
Scheduler = Annotated[
    str | None,
    option(
        "Address of a Dask scheduler, such as tcp://127.0.0.1:8786, whose workers process the files.",
        "ADDRESS",
        False,
    ),
]
Folder = Annotated[Path, option("Output folder; created if missing.", "FOLDER")]


def may_write(path: Path, force: bool) -> None:
    """Raise early if a file exists and must not be replaced, or cannot be written."""
    from ..io.files import check_writable

    try:
        check_writable(path, overwrite=force)
    except FileExistsError:
        raise ValueError(
            f"{path} exists already: choose another name, or use --force to overwrite it"
        ) from None


def check_figure(path: Path, force: bool) -> None:
    """Raise early if a figure cannot be written."""
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise UsageError(f"{path}: figures are written as PNG, PDF or SVG")
    may_write(path, force)


def listed(text: str | Sequence[str], known: Sequence[str] = ()) -> list[str]:
    """Comma-separated names, or those of several texts.

    A name with a comma is in double quotes, or is the whole text if such a name is ``known``.
    """
    if not isinstance(text, str):
        return [name for part in text for name in listed(part, known)]
    if text.strip() in known:
        return [text.strip()]
    if text.count('"') % 2:
        raise UsageError(
            f"{text!r}: a double quote is missing; put names that contain commas in double quotes"
        )
    names = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in names if name.strip()]


def integers(text: str, low: int, wanted: str) -> list[int]:
    """Comma-separated integers of at least ``low``; the message of an error begins with what is ``wanted``."""
    try:
        values = [int(part) for part in listed(text)]
    except ValueError:
        values = []
    if not values or min(values) < low:
        raise UsageError(f"{wanted}, comma-separated, got {text!r}")
    return values


def check_interval(probability: float) -> None:
    """Raise if the probability of an interval does not lie between 0 and 1."""
    if not 0 < probability < 1:
        hint = f": did you mean {probability / 100:g}?" if 1 < probability < 100 else ""
        raise UsageError(f"--interval must lie strictly between 0 and 1, got {probability:g}{hint}")
