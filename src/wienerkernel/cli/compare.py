"""The command ``compare``: which of several models predicts better."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .console import UsageError, argument, input_names, load_model, notes, option, show, show_json, working
from .read import query

if TYPE_CHECKING:
    from .._typing import FloatArray
    from ..evaluation.diagnostics import Comparison
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
    _check_same_targets(fitted, by_name=data is not None)
    with notes(), working("scoring"):
        from ..evaluation.diagnostics import compared

        if data is None:
            _check_same_samples(fitted)
            reports = {name: model.score_report() for name, model in fitted.items()}
        else:
            reports = {name: model.score_report(*_held_out(model, data)) for name, model in fitted.items()}
        found = compared(reports)
    if as_json:
        show_json(_rows(found))
        return
    n = next(iter(reports.values())).pit.shape[0]
    source = f"{n} samples, each left out in turn" if data is None else f"{n} samples of {data}"
    show(f"{source}: total log score, higher is better, and mean CRPS, lower is better")
    show(str(found))
    show(_verdict(found))


def _rows(found: Comparison) -> list[dict[str, Any]]:
    columns = zip(
        found.names, found.log_score, found.difference, found.standard_error, found.crps, strict=True
    )
    keys = ("model", "log_score", "difference", "standard_error", "crps")
    return [dict(zip(keys, (row[0], *map(float, row[1:])), strict=True)) for row in columns]


def _verdict(found: Comparison) -> str:
    best, second = found.names[:2]
    gain, error = -float(found.difference[1]), float(found.standard_error[1])
    if gain > CLEAR * error:
        return f"{best} predicts better than {second}: the difference is {gain / error:.1f} standard errors."
    return f"No clear difference between {best} and {second}: it is less than {CLEAR:g} standard errors."


def _check_same_targets(models: dict[str, WienerKernelRegressor], by_name: bool) -> None:
    """Raise unless all models have as many targets, and the same names of them if they know any."""
    first, *others = models
    for other in others:
        pair = models[first], models[other]
        counts = {len(model.output_scale_) for model in pair}
        names = {tuple(getattr(model, "target_names_in_", ())) for model in pair} - {()}
        if len(counts) > 1 or (by_name and len(names) > 1):
            raise ValueError(f"{first} and {other} have different targets")


def _check_same_samples(models: dict[str, WienerKernelRegressor]) -> None:
    """Raise unless all models have the same observations."""
    import numpy as np

    first, *others = models
    y = _observations(models[first])
    for other in others:
        found = _observations(models[other])
        if found.shape != y.shape or not np.allclose(found, y, rtol=1e-6, atol=1e-9 * np.ptp(y)):
            raise ValueError(
                f"{first} and {other} were fitted to different samples: name a table to score them on, --data FILE"
            )


def _observations(model: WienerKernelRegressor) -> FloatArray:
    """The observations that a model was fitted to, (n, n_y), on their own scale."""
    import numpy as np

    from ..posterior import SeparateOutputs

    posterior = model.posterior_
    parts = posterior.outputs if isinstance(posterior, SeparateOutputs) else [posterior]
    columns = [
        part.observed() if part.transform is None else part.transform.inverse(part.observed())
        for part in parts
    ]
    return np.concatenate([np.asarray(column) for column in columns], axis=1)


def _held_out(model: WienerKernelRegressor, file: Path) -> tuple[FloatArray, FloatArray]:
    """Inputs and observations of a table."""
    import numpy as np

    from ..io.columns import columns_of
    from ..io.tables import check_names, open_table
    from ..validation import largest

    columns = columns_of(model, input_names(model))
    outputs = len(model.output_scale_)
    targets = [str(name) for name in getattr(model, "target_names_in_", ["y"] if outputs == 1 else [])]
    if len(targets) != outputs:
        raise ValueError("the model has no names of its targets: fit it with `wienerkernel fit`")
    with open_table(file) as table:
        check_names(table.file, [*(column.name for column in columns), *targets], table.names)
        parts = [(query(model, columns, rows), rows.numbers(targets, largest())) for rows in table.chunks()]
    if not parts:
        raise ValueError(f"{file}: there are no rows below the column names")
    X, y = (np.concatenate(values) for values in zip(*parts, strict=True))
    return X, y[:, 0] if model.posterior_.single_output else y
