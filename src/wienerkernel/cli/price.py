"""The command ``price``: what the linear estimate costs, compared with the efficient loss and the full posterior."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.progress import MofNCompleteColumn

from .console import Folder, UsageError, listed, notes, numeric, option, progress, say_written, show

__all__ = ["price"]


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
    try:
        numbers = [int(size) for size in listed(sizes)]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 2:
        raise UsageError(f"--sizes needs integers of at least 2, comma-separated, got {sizes!r}")
    with notes(), progress(MofNCompleteColumn()) as bar:
        from ..experiments.price import LAWS, reproduce

        task = bar.add_task("data sets", total=len(LAWS) * len(numbers) * repeats)
        rows, written = reproduce(out, numbers, repeats, seed, lambda: bar.advance(task))
        files = list(written)
    show(f"{'noise':<10} {'n':>5} {'method':<10} {'CRPS':>8} {'RMSE':>8} {'coverage':>8} {'seconds':>8}")
    for row in rows:
        show(
            f"{row['noise']:<10} {row['n']:>5} {row['method']:<10} {row['crps']:>8.4f} {row['rmse']:>8.4f} "
            f"{row['coverage']:>8.3f} {row['seconds']:>8.3f}"
        )
    for what, path in files:
        say_written(path, what)
