"""The commands ``paper``, ``safe-optimization`` and ``price``: experiments, as figures and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .console import notes, progress, say_written, show
from .options import Folder, integers, numeric, option

__all__ = ["paper", "price", "safe_optimization"]


def paper(
    out: Folder = Path("out"),
    seed: Annotated[int, option("Seed of the noise and of the sampled functions.", **numeric(int, 0))] = 0,
) -> None:
    """Reproduce the figures and numbers of the paper.

    Figures are written as PNG and SVG and their numbers as CSV, with a check of the calibration of 90 % intervals.
    """
    written: list[tuple[str, Path]] = []
    with notes(), progress("fitting", 9) as update:
        from ..experiments.paper import reproduce

        for what, path in reproduce(out, seed):
            written.append((what, path))
            update(description=what[:28], advance=1)
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
    with notes(), progress("steps", 3 * 4 * steps) as update:
        from ..experiments.safe_optimization import reproduce

        found = reproduce(out, runs=runs, steps=steps, seed=seed, progress=lambda: update(advance=1))
        written = list(found)
    _show_written(written)


def _show_written(written: list[tuple[str, Path]]) -> None:
    for what, path in written:
        show(f"wrote {path}  {what}")


def price(
    out: Folder = Path("out"),
    sizes: Annotated[str, option("Numbers of samples, comma-separated.", "NUMBERS")] = "20",
    repeats: Annotated[int, option("Number of data sets for each noise and size.", **numeric(int, 1))] = 5,
    seed: Annotated[int, option("Seed of functions, noise and sampling.", **numeric(int, 0))] = 0,
) -> None:
    """Compare the linear estimate with the efficient loss and the full posterior.

    For functions drawn from the prior and six noise laws, the table shows the continuous ranked probability score and the
    error of f, the coverage of 90 % intervals and the processor time of a fit. It is also written as CSV, with a figure.
    """
    numbers = integers(sizes, 2, "--sizes needs integers of at least 2")
    with notes():
        from ..experiments.price import LAWS, reproduce

        with progress("data sets", len(LAWS) * len(numbers) * repeats) as update:
            rows, written = reproduce(out, numbers, repeats, seed, lambda: update(advance=1))
    show(f"{'noise':<10} {'n':>5} {'method':<10} {'CRPS':>8} {'RMSE':>8} {'coverage':>8} {'seconds':>8}")
    for row in rows:
        show(
            f"{row['noise']:<10} {row['n']:>5} {row['method']:<10} {row['crps']:>8.4f} {row['rmse']:>8.4f} "
            f"{row['coverage']:>8.3f} {row['seconds']:>8.3f}"
        )
    for what, path in written:
        say_written(path, what)
