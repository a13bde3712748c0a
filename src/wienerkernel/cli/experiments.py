"""The commands ``paper`` and ``safe-optimization``: published experiments, as figures and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn

from .console import notes, numeric, progress, show

__all__ = ["paper", "safe_optimization"]

Folder = Annotated[Path, typer.Option(help="Folder for the files; made if need be.")]


def paper(
    out: Folder = Path("out"),
    seed: Annotated[
        int,
        typer.Option(help="Seed of the noise in the data and of the drawn functions.", **numeric(int, 0)),
    ] = 0,
) -> None:
    """Reproduce the paper's numerical section: figures as PNG and SVG, the numbers as CSV, and a calibration check."""
    written: list[tuple[str, Path]] = []
    with notes(), progress(MofNCompleteColumn()) as bar:
        task = bar.add_task("fitting", total=9)
        from ..experiments.paper import reproduce

        for what, path in reproduce(out, seed):
            written.append((what, path))
            bar.update(task, description=what[:28], advance=1)
    _show_written(written)


def safe_optimization(
    out: Folder = Path("out"),
    runs: Annotated[int, typer.Option(help="Runs of each bound.", **numeric(int, 1))] = 100,
    steps: Annotated[int, typer.Option(help="Evaluations of each run.", **numeric(int, 1))] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the noise.", **numeric(int, 0))] = 0,
) -> None:
    """Optimize without leaving the safe set, under four bounds: regret and violations, as a table and a figure."""
    with notes(), progress(MofNCompleteColumn()) as bar:
        task = bar.add_task("steps", total=3 * 4 * steps)
        from ..experiments.safe_optimization import reproduce

        done = reproduce(out, runs=runs, steps=steps, seed=seed, progress=lambda: bar.advance(task))
        written = list(done)
    _show_written(written)


def _show_written(written: list[tuple[str, Path]]) -> None:
    for what, path in written:
        show(f"wrote {path}  {what}")
