"""The application and its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from .compare import compare
from .demo import demo
from .experiments import paper, price, safe_optimization
from .fit import fit
from .forecast import forecast
from .plan import plan
from .predict import predict
from .show import explore, report

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown")


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"wienerkernel {__version__}")
        raise typer.Exit


@app.callback(epilog="To get started: wienerkernel demo --out demo")
def _commands(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Kernel regression under non-Gaussian noise: exact predictive distributions, and uncertainty by cause."""


for _command, _example in (
    (fit, "wienerkernel fit data.csv --target y --inputs a,b --noise gamma -o model.wk"),
    (predict, "wienerkernel predict model.wk new.csv --interval 0.95 -o predictions.csv"),
    (compare, "wienerkernel compare a.wk b.wk"),
    (report, "wienerkernel report model.wk -o report.html"),
    (
        forecast,
        "wienerkernel forecast series.csv --target y --time t --lags 1,2,3 --horizon 10 -o forecast.csv",
    ),
    (plan, "wienerkernel plan model.wk --at x=1.3 --std 0.1"),
    (explore, "wienerkernel explore model.wk"),
    (demo, "wienerkernel demo --out demo"),
    (paper, "wienerkernel paper --out out"),
    (safe_optimization, "wienerkernel safe-optimization --out out --runs 20"),
    (price, "wienerkernel price --out out --sizes 20,100 --repeats 10"),
):
    app.command(_command.__name__.replace("_", "-"), epilog=f"Example: {_example}")(_command)
