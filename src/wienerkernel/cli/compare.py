"""The command ``compare``: which of several models predicts better."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .console import notes, show, show_json, working
from .options import UsageError, argument, option

__all__ = ["compare"]

CLEAR = 2.0
"""Standard errors beyond which a difference is clear."""


def compare(
    models: Annotated[list[Path], argument("Model files, two or more.", "MODEL...")],
    data: Annotated[
        Path | None,
        option(
            "Table of held-out samples, CSV or Parquet.",
            "FILE",
            "the samples of the fits, each left out in turn",
        ),
    ] = None,
    as_json: Annotated[bool, option("Print the scores as JSON.", "", True, "--json")] = False,
) -> None:
    """Compare models by log score and CRPS, best first.

    The models must have been fitted to the same samples, perhaps with different inputs, unless --data has others.
    """
    if len(models) < 2 or len({*models}) < len(models):
        raise UsageError("compare needs two or more different model files")
    from ..evaluation.diagnostics import compared
    from .model import check_comparable, held_out_samples, load_model

    fitted = {str(path): load_model(path, "" if data else "compare without --data") for path in models}
    with notes(), working("scoring"):
        check_comparable(fitted, held_out=data is not None)
        samples = {
            name: () if data is None else held_out_samples(model, data) for name, model in fitted.items()
        }
        reports = {name: model.score_report(*samples[name]) for name, model in fitted.items()}
        found = compared(reports)
    if as_json:
        keys = ("log_score", "difference", "standard_error", "crps")
        columns = zip(found.names, *(getattr(found, key).tolist() for key in keys), strict=True)
        show_json([dict(zip(("model", *keys), row, strict=True)) for row in columns])
        return
    n = next(iter(reports.values())).pit.shape[0]
    source = f"{n} samples, each left out in turn" if data is None else f"{n} samples of {data}"
    show(f"{source}: total log score, higher is better, and mean CRPS, lower is better")
    show(str(found))
    best, second = found.names[:2]
    gain, error = -float(found.difference[1]), float(found.standard_error[1])
    if gain > CLEAR * error:
        show(f"{best} predicts better than {second}: the difference is {gain / error:.1f} standard errors.")
    else:
        show(f"No clear difference between {best} and {second}: it is less than {CLEAR:g} standard errors.")
