"""What the commands share: where they print, warnings as notes, models with the names of their inputs."""

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
    from ..regressor import WienerKernelRegressor

__all__ = [
    "Force",
    "Model",
    "UsageError",
    "input_names",
    "listed",
    "load_model",
    "may_write",
    "notes",
    "numeric",
    "progress",
    "say",
    "say_written",
    "show",
    "working",
]


class UsageError(ValueError):
    """A command is called wrongly: an option has a value that no data and no model could make right."""


def numeric(kind: type[int | float], low: float = -math.inf, high: float = math.inf) -> dict[str, Any]:
    """How the text of an option becomes a finite number: by the rule for all texts, which Python's own is not.

    Parameters
    ----------
    kind : {int, float}
    low, high : float
        Bounds, both included.

    Returns
    -------
    dict
        Arguments of ``typer.Option``.
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


RESULTS, MESSAGES = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)

Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Model = Annotated[
    Path,
    typer.Argument(help="A model that [bold]wienerkernel fit[/bold] or save() wrote.", show_default=False),
]


def show(text: Any = "", style: str | None = None) -> None:
    """Print a result, on standard output."""
    RESULTS.print(text, style=style, markup=False, highlight=False)


def say(text: str, style: str | None = None) -> None:
    """Print a message, on standard error."""
    MESSAGES.print(text, style=style, markup=False, highlight=False)


def say_written(path: Path | str, what: str = "") -> None:
    """Tell that a file was written."""
    say(f"wrote {path}" + f"  {what}" * bool(what))


@contextmanager
def notes() -> Iterator[None]:
    """Show warnings as notes in one line each, once each."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in told:
            told.add(text)
            say(f"note: {text}", style="yellow")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # The commands know the columns by name and hand them over as arrays.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.showwarning = tell
        yield


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that something takes its time, if someone is watching."""
    if not MESSAGES.is_terminal:
        yield
        return
    with MESSAGES.status(what):
        yield


def progress(*columns: Any) -> Progress:
    """A progress bar on standard error, if someone is watching."""
    shown = (TextColumn("{task.description:<28}"), BarColumn(), *columns, TimeElapsedColumn())
    return Progress(*shown, console=MESSAGES, disable=not MESSAGES.is_terminal)


def may_write(path: Path, force: bool) -> None:
    """End with advice if a file exists and must not be replaced, or cannot be written."""
    from ..io.files import check_writable

    try:
        check_writable(path, overwrite=force)
    except FileExistsError:
        raise ValueError(f"{path} exists already: choose another name, or --force to overwrite it") from None


def listed(text: str) -> list[str]:
    """Names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def load_model(path: Path) -> WienerKernelRegressor:
    """A saved model."""
    with working(f"loading {path}"):
        from ..io.store import load

        return load(path)


def input_names(model: WienerKernelRegressor) -> Sequence[str]:
    """Names of the inputs: those of the columns the model was fitted to, or x, or x1, x2, ..."""
    from ..evaluation.report.numbers import default_names

    return default_names(model)
