"""The command ``demo``: the whole workflow on a small data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .console import say, say_written
from .fit import fit
from .options import Folder, Force, numeric, option
from .plan import plan
from .predict import predict
from .show import report

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
    again = " --force" if force else ""
    say(f"\n$ wienerkernel fit {data} --target y --noise gamma -o {model}{again}", style="bold")
    fit(data, target=["y"], noise="gamma", output=model, force=force)
    say(f"\n$ wienerkernel predict {model} {new} -o {predictions}{again}", style="bold")
    predict(model, new, output=predictions, force=force)
    say(f"\n$ wienerkernel plan {model} --at x=4 --std 0.1", style="bold")
    plan(model, at=["x=4"], std=0.1)
    say(f"\n$ wienerkernel report {model} -o {page}{again}", style="bold")
    report(model, output=page, force=force)


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
