"""Output of the commands: results, messages, warnings as notes, and progress."""

from __future__ import annotations

import json
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["note", "notes", "progress", "say", "say_written", "searching", "show", "show_json", "working"]

PIPED = 5.0
"""Seconds between lines on progress where the output is not a terminal."""
RESULTS, MESSAGES = Console(soft_wrap=True), Console(stderr=True, soft_wrap=True)


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


def note(text: str) -> None:
    """Print a note, a message in one line."""
    say(f"note: {' '.join(text.split())}", style="yellow")


@contextmanager
def notes() -> Iterator[None]:
    """Show each distinct warning as a note."""
    shown: set[str] = set()

    def once(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            note(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # The commands select columns by name and pass arrays.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.showwarning = once
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
    with MESSAGES.status(what) as status, observed(Reporter(lambda s: status.update(f"{what}: {s}"), 0.2)):
        yield


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show a progress bar, if there is a terminal; yields a function that updates it, like that of ``rich``."""
    count = [] if total is None else [MofNCompleteColumn()]
    shown = (TextColumn("{task.description:<28}"), BarColumn(), *count, TimeElapsedColumn())
    with Progress(*shown, console=MESSAGES, disable=not MESSAGES.is_terminal) as bar:
        yield partial(bar.update, bar.add_task(what, total=total))
