"""The command line. Needs the extra ``cli``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

__all__ = ["main"]

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
except ImportError:  # pragma: no cover
    sys.exit("wienerkernel: the command line needs more packages: pip install 'wienerkernel[cli]'")

app = typer.Typer(
    help="Kernel regression under non-Gaussian noise.", no_args_is_help=True, pretty_exceptions_enable=False
)


@app.callback()
def _commands() -> None:
    """Kernel regression under non-Gaussian noise: exact predictive laws, and the uncertainty split by its cause."""


@app.command(epilog="Example: wienerkernel paper --out out")
def paper(
    out: Annotated[Path, typer.Option(help="Folder for the files; made if need be.")] = Path("out"),
    seed: Annotated[
        int, typer.Option(help="Seed of the noise in the data and of the drawn functions.", min=0)
    ] = 0,
) -> None:
    """Reproduce the paper's numerical section: figures as PNG and SVG, the numbers as CSV, and a calibration check."""
    console = Console()
    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    written: list[tuple[str, Path]] = []
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("fitting", total=9)
        from .paper import reproduce

        for what, path in reproduce(out, seed):
            written.append((what, path))
            progress.update(task, description=what[:28], advance=1)
    _say_written(console, written)


@app.command("safe-optimization", epilog="Example: wienerkernel safe-optimization --out out --runs 20")
def safe_optimization(
    out: Annotated[Path, typer.Option(help="Folder for the files; made if need be.")] = Path("out"),
    runs: Annotated[int, typer.Option(help="Runs of each bound.", min=1)] = 100,
    steps: Annotated[int, typer.Option(help="Evaluations of each run.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the noise.", min=0)] = 0,
) -> None:
    """Optimise without leaving the safe set, under four bounds: regret and violations, as a table and a figure."""
    console = Console()
    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    written: list[tuple[str, Path]] = []
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("steps", total=3 * 4 * steps)
        from .safe_optimization import reproduce

        written = list(
            reproduce(out, runs=runs, steps=steps, seed=seed, progress=lambda: progress.advance(task))
        )
    _say_written(console, written)


def _say_written(console: Console, written: list[tuple[str, Path]]) -> None:
    for what, path in written:
        console.print(f"wrote {path}  [dim]{what}[/dim]", highlight=False)


def main() -> None:
    """Run the command line; a mistake of the user's ends in one line, not in a traceback."""
    try:
        app()
    except (OSError, ValueError) as error:
        sys.exit(f"wienerkernel: {error}")
