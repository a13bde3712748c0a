"""The commands ``report`` and ``explore``: models to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .console import Force, Model, input_names, load_model, may_write, notes, numeric, say_written, working

__all__ = ["explore", "report"]


def report(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the report.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="Heading of the report.", show_default=False)] = None,
    force: Force = False,
) -> None:
    """Write a report to look at in a browser: one file that needs no network, with tubes, densities and diagnostics."""
    may_write(output, force)
    fitted = load_model(model)
    with notes(), working("writing the report"):
        from ..evaluation.report import write_report

        names = getattr(fitted, "target_names_in_", None)
        write_report(
            fitted,
            output,
            title=title or model.stem,
            input_names=input_names(fitted),
            target_name=None if names is None else [str(name) for name in names],
        )
    say_written(output)


def explore(
    model: Annotated[
        Path | None,
        typer.Argument(help="A saved model; without one, the paper's example.", show_default=False),
    ] = None,
    port: Annotated[
        int,
        typer.Option(help="Port on this machine; 0 takes a free one.", **numeric(int, 0, 65535)),
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a page on this machine to play with a model: move data, noise and length scale, watch the tubes move."""
    fitted = None if model is None else load_model(model)
    from ..evaluation.explore import serve

    with notes():
        serve(fitted, port=port, open_browser=browser)
