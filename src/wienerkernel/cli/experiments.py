"""The commands ``paper`` and ``safe-optimization``: published experiments, as figures and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.progress import MofNCompleteColumn

from .console import Folder, notes, numeric, option, progress, show

__all__ = ["paper", "safe_optimization"]


def paper(
    out: Folder = Path("out"),
    seed: Annotated[int, option("Seed of the noise and of the sampled functions.", **numeric(int, 0))] = 0,
) -> None:
    """Reproduce the figures and numbers of the paper.

    Figures are written as PNG and SVG and their numbers as CSV, with a check of the calibration of 90 % intervals.
    """
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
    runs: Annotated[int, option("Number of runs per bound.", **numeric(int, 1))] = 100,
    steps: Annotated[int, option("Number of evaluations per run.", **numeric(int, 1))] = 100,
    seed: Annotated[int, option("Seed of the noise.", **numeric(int, 0))] = 0,
) -> None:
    """Compare four error bounds in safe optimization.

    Regret and violations are written as CSV and as a figure.
    """
    with notes(), progress(MofNCompleteColumn()) as bar:
        task = bar.add_task("steps", total=3 * 4 * steps)
        from ..experiments.safe_optimization import reproduce

        done = reproduce(out, runs=runs, steps=steps, seed=seed, progress=lambda: bar.advance(task))
        _show_written(list(done))


def _show_written(written: list[tuple[str, Path]]) -> None:
    for what, path in written:
        show(f"wrote {path}  {what}")
