"""The command ``demo``: the whole workflow on a small data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .console import say, say_written
from .options import Folder, Force, numeric, option

__all__ = ["demo"]


def demo(
    out: Folder = Path("demo"),
    seed: Annotated[int, option("Seed of the simulated data.", **numeric(int, 0))] = 0,
    force: Force = False,
) -> None:
    """Run the whole workflow on simulated data.

    Simulate a small data set with skewed noise, then fit, predict, plan and report, printing each command.
    """
    out.mkdir(parents=True, exist_ok=True)
    data, new, model = out / "data.csv", out / "new.csv", out / "model.wk"
    predictions, page = out / "predictions.csv", out / "report.html"
    _write_data(data, new, seed, force)
    from .app import app

    again = ["--force"] if force else []
    for command in (
        ["fit", data, "--target", "y", "--noise", "gamma", "-o", model, *again],
        ["predict", model, new, "-o", predictions, *again],
        ["plan", model, "--at", "x=4", "--std", "0.1"],
        ["report", model, "-o", page, *again],
    ):
        words = [str(word) for word in command]
        say(f"\n$ wienerkernel {' '.join(words)}", style="bold")
        app(words, standalone_mode=False)


def _write_data(data: Path, new: Path, seed: int, force: bool) -> None:
    """Samples y of a smooth function of x with Gamma noise and a gap, and a grid of x to predict at."""
    import numpy as np

    from ..experiments.system import truth
    from ..io.tables import table_writer

    generator = np.random.default_rng(seed)
    x = np.repeat(np.concatenate([np.linspace(-5, 1.5, 24), np.linspace(3.5, 5, 6)]), 2)
    y = truth(x) + generator.gamma(1.5, 0.6, size=len(x))
    for path, columns in ((data, {"x": x, "y": y}), (new, {"x": np.linspace(-6, 6, 121)})):
        with table_writer(path, overwrite=force) as writer:
            writer.write({name: values.round(4) for name, values in columns.items()})
        say_written(path)
