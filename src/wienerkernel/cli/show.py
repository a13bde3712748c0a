"""The commands ``report`` and ``explore``: visualize models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .console import notes, say_written, working
from .options import Force, Model, argument, may_write, numeric, option

__all__ = ["explore", "report"]


def report(
    model: Model,
    output: Annotated[Path, option("Output file.", "FILE", True, "--output", "-o")] = Path("report.html"),
    title: Annotated[str | None, option("Heading of the report.", "TEXT", "name of the model file")] = None,
    force: Force = False,
) -> None:
    """Write an interactive report of a model.

    It shows predictions, densities, causes of uncertainty and diagnostics in one HTML file that works offline, and the
    forecast of a system that `wienerkernel forecast` has saved.
    """
    may_write(output, force)
    with working(f"loading {model}"):
        from ..io.store import load_any

        fitted = load_any(model)
    with notes(), working("writing the report"):
        from ..evaluation.report import write_report

        names = getattr(fitted, "target_names_in_", None)
        write_report(fitted, output, title=title or model.stem, target_name=names, source=model.name)
    say_written(output)


def explore(
    model: Annotated[Path | None, argument("Saved model.", "MODEL", "the paper's example")] = None,
    port: Annotated[int, option("Local port; 0 picks a free one.", **numeric(int, 0, 65535))] = 0,
    browser: Annotated[bool, option("Open the page in the default browser.", "")] = True,
) -> None:
    """Explore a model in the browser.

    Change the noise law and the length scale, add, drag and remove samples, and see the predictions change. The page is
    served on this machine only.
    """
    from .model import load_model

    fitted = None if model is None else load_model(model, "explore")
    from ..evaluation.explore import serve

    with notes():
        serve(fitted, port=port, open_browser=browser)
