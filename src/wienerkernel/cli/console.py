"""What the commands share: output, progress, warnings as notes, options, and loading of models."""

from __future__ import annotations

import csv
import json
import math
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..text import number

if TYPE_CHECKING:
    from .._typing import FloatArray
    from ..regressor import WienerKernelRegressor

__all__ = [
    "Folder",
    "Force",
    "Model",
    "OutputTable",
    "Scheduler",
    "UsageError",
    "argument",
    "check_interval",
    "check_positive",
    "input_names",
    "listed",
    "load_model",
    "may_write",
    "notes",
    "numeric",
    "option",
    "progress",
    "say",
    "say_written",
    "scale_name",
    "searching",
    "show",
    "show_json",
    "working",
]

PIPED = 5.0
"""Seconds between lines on progress where the output is not a terminal."""


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


RESULTS, MESSAGES = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)

Force = Annotated[bool, option("Overwrite existing files.", "", True, "--force")]
Model = Annotated[Path, argument("Model file written by `wienerkernel fit` or `save()`.", "MODEL")]
OutputTable = Annotated[
    Path, option("Output table, CSV or Parquet; - writes standard output.", "FILE", True, "--output", "-o")
]
Scheduler = Annotated[
    str | None,
    option(
        "Address of a Dask scheduler, as tcp://127.0.0.1:8786, whose workers process the files.",
        "ADDRESS",
        False,
    ),
]
Folder = Annotated[Path, option("Output folder; created if missing.", "FOLDER")]


def show(text: str = "", style: str | None = None) -> None:
    """Print a result, on standard output."""
    _print(RESULTS, text, style)


def show_json(values: Any) -> None:
    """Print results as JSON, on standard output."""
    RESULTS.out(json.dumps(values, allow_nan=False, indent=2), highlight=False)


def say(text: str, style: str | None = None) -> None:
    """Print a message, on standard error."""
    _print(MESSAGES, text, style)


def _print(console: Console, text: str, style: str | None) -> None:
    """Print lines; on a terminal, long ones are broken between words and continued below their text."""
    if console.is_terminal:
        text = "\n".join(_broken(line, console.width) for line in text.split("\n"))
    console.print(text, style=style, markup=False, highlight=False)


def _broken(line: str, width: int) -> str:
    label = re.match(r" *(\S+ {2,})?", line)
    indent = " " * (label.end() if label else 0)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def say_written(path: Path | str, what: str = "") -> None:
    """Report that a file was written."""
    say(f"wrote {path}" + f"  {what}" * bool(what))


@contextmanager
def notes() -> Iterator[None]:
    """Show each distinct warning as a one-line note."""
    shown: set[str] = set()

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.add(text)
            say(f"note: {text}", style="yellow")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # The commands select columns by name and pass arrays.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.showwarning = note
        yield


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on a terminal, otherwise one line if it takes more than a few seconds."""
    if not MESSAGES.is_terminal:
        timer = Timer(PIPED, say, (f"{what} ...",))
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        return
    with MESSAGES.status(what):
        yield


@contextmanager
def searching(what: str, verbose: bool = False) -> Iterator[None]:
    """Show how far a search is: on a terminal in place, otherwise every few seconds; if ``verbose``, every evaluation."""
    from ..tuning.progress import Reporter, observed

    if verbose or not MESSAGES.is_terminal:
        with observed(Reporter(lambda line: say(f"{what}: {line}"), 0.0 if verbose else PIPED)):
            yield
        return
    with (
        MESSAGES.status(what) as status,
        observed(Reporter(lambda line: status.update(f"{what}: {line}"), 0.2)),
    ):
        yield


def progress(*columns: Any) -> Progress:
    """A progress bar on standard error, if that is a terminal."""
    shown = (TextColumn("{task.description:<28}"), BarColumn(), *columns, TimeElapsedColumn())
    return Progress(*shown, console=MESSAGES, disable=not MESSAGES.is_terminal)


def may_write(path: Path, force: bool) -> None:
    """Raise early if a file exists and must not be replaced, or cannot be written."""
    from ..io.files import check_writable

    try:
        check_writable(path, overwrite=force)
    except FileExistsError:
        raise ValueError(
            f"{path} exists already: choose another name, or use --force to overwrite it"
        ) from None


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


def check_interval(probability: float) -> None:
    """Raise if the probability of an interval does not lie between 0 and 1."""
    if not 0 < probability < 1:
        hint = f": did you mean {probability / 100:g}?" if 1 < probability < 100 else ""
        raise UsageError(f"--interval must lie strictly between 0 and 1, got {probability:g}{hint}")


def check_positive(values: FloatArray, column: str, option: str, file: Path | str) -> None:
    """Raise if a column has values that are not positive, which an option needs."""
    if not (values > 0).all():
        raise ValueError(
            f"{file}: {option} needs positive numbers, but column {column!r} has {float(values.min()):g}"
        )


def load_model(path: Path, exact_for: str = "") -> WienerKernelRegressor:
    """A saved model, which must be exact for the command ``exact_for``."""
    with working(f"loading {path}"):
        from ..io.store import load
        from ..posterior.separate import causes

        model = load(path)
    if exact_for and "computational" in causes(model.posterior_):
        raise ValueError(
            f"{path}: {exact_for} needs an exact model, this one is approximate: fit with --approximation none"
        )
    return model


def input_names(model: WienerKernelRegressor) -> Sequence[str]:
    """Names of the inputs: those of the columns the model was fitted to, or x, or x1, x2, ..."""
    from ..evaluation.report.numbers import default_names

    return default_names(model)


def scale_name(model: WienerKernelRegressor, output: int | None = None) -> str:
    """The transform of an output in words, such as "box-cox, exponent 0.24"; of all outputs by default, empty for none."""
    from ..evaluation.report.numbers import transform_name

    posterior = model.posterior_
    parts = getattr(posterior, "outputs", None)
    parts = parts if isinstance(parts, tuple) else [posterior]
    if output is not None:
        return transform_name(parts[output if len(parts) > 1 else 0].transform)
    return "; ".join(dict.fromkeys(filter(None, (transform_name(part.transform) for part in parts))))
