"""The command ``compare``: which of several models predicts better."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .console import notes, show, show_json, working
from .model import load_model, read_all
from .options import UsageError, argument, option

if TYPE_CHECKING:
    from .._typing import FloatArray
    from ..regressor import WienerKernelRegressor

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
    fitted = {str(path): load_model(path, "" if data else "compare without --data") for path in models}
    with notes(), working("scoring"):
        from ..evaluation.diagnostics import compared

        _check_comparable(fitted, held_out=data is not None)
        samples = {name: () if data is None else _held_out(model, data) for name, model in fitted.items()}
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


def _check_comparable(models: dict[str, WienerKernelRegressor], held_out: bool) -> None:
    """Raise unless all models have equal targets; of held-out samples, their names, otherwise the observations."""
    import numpy as np

    (first, one), *others = models.items()
    for other, model in others:
        counts = {len(one.output_scale_), len(model.output_scale_)}
        names = {tuple(getattr(each, "target_names_in_", ())) for each in (one, model)} - {()}
        if len(counts) > 1 or (held_out and len(names) > 1):
            raise ValueError(f"{first} and {other} have different targets")
        if held_out:
            continue
        y, found = _observations(one), _observations(model)
        if found.shape != y.shape or not np.allclose(found, y, rtol=1e-6, atol=1e-9 * np.ptp(y)):
            raise ValueError(
                f"{first} and {other} were fitted to different samples: name a table to score them on, --data FILE"
            )


def _observations(model: WienerKernelRegressor) -> FloatArray:
    """The observations that a model was fitted to, (n, n_y), on their own scale."""
    import numpy as np

    from ..evaluation.report.numbers import single_models

    parts = [one.posterior_ for one in single_models(model)]
    return np.hstack([p.transform.inverse(p.observed()) if p.transform else p.observed() for p in parts])


def _held_out(model: WienerKernelRegressor, file: Path) -> tuple[FloatArray, FloatArray]:
    """Inputs and observations of a table."""
    outputs = len(model.output_scale_)
    targets = [str(name) for name in getattr(model, "target_names_in_", ["y"] if outputs == 1 else [])]
    if len(targets) != outputs:
        raise ValueError("the model has no names of its targets: fit it with `wienerkernel fit`")
    X, y = read_all(model, file, targets)
    return X, y[:, 0] if model.posterior_.single_output else y
