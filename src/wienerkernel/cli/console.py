"""What the commands share: output, progress, warnings as notes, options, and loading of models."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
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
    "show",
    "working",
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


RESULTS, MESSAGES = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)

Force = Annotated[bool, option("Overwrite existing files.", None, True, "--force")]
Model = Annotated[Path, argument("Model file written by `wienerkernel fit` or `save()`.", "MODEL")]
OutputTable = Annotated[
    Path, option("Output table, CSV or Parquet; - writes standard output.", "FILE", True, "--output", "-o")
]
Folder = Annotated[Path, option("Output folder; created if missing.", "FOLDER")]


def show(text: Any = "", style: str | None = None) -> None:
    """Print a result, on standard output."""
    RESULTS.print(text, style=style, markup=False, highlight=False)


def say(text: str, style: str | None = None) -> None:
    """Print a message, on standard error."""
    MESSAGES.print(text, style=style, markup=False, highlight=False)


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
    """Show a spinner on a terminal."""
    if not MESSAGES.is_terminal:
        yield
        return
    with MESSAGES.status(what):
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


def listed(text: str) -> list[str]:
    """Comma-separated names."""
    return [name.strip() for name in text.split(",") if name.strip()]


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


def load_model(path: Path) -> WienerKernelRegressor:
    """A saved model."""
    with working(f"loading {path}"):
        from ..io.store import load

        return load(path)


def input_names(model: WienerKernelRegressor) -> Sequence[str]:
    """Names of the inputs: those of the columns the model was fitted to, or x, or x1, x2, ..."""
    from ..evaluation.report.numbers import default_names

    return default_names(model)


def scale_name(model: WienerKernelRegressor) -> str:
    """The transform of the response of a model in words, such as "box-cox, exponent 0.24"; empty without one."""
    from ..evaluation.report.numbers import transform_name

    return transform_name(model.posterior_.transform)
