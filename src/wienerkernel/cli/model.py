"""What the commands need of a saved model: its columns, its transform, and its inputs in the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._typing import FloatArray
from ..evaluation.report.numbers import default_names, single_models, transform_name
from ..io.columns import Column, columns_of, encoded
from ..io.store import load
from ..io.tables import Chunk, check_names, open_table
from ..posterior.separate import causes
from ..regressor import WienerKernelRegressor
from ..validation import largest, precision
from .console import working

__all__ = [
    "NO_ROWS",
    "check_comparable",
    "held_out_samples",
    "load_model",
    "model_columns",
    "query",
    "read_all",
    "scale_name",
]

NO_ROWS = "there are no rows below the column names"


def load_model(path: Path, exact_for: str = "") -> WienerKernelRegressor:
    """A saved model, which must be exact for the command ``exact_for``."""
    with working(f"loading {path}"):
        model = load(path)
    if exact_for and "computational" in causes(model.posterior_):
        raise ValueError(
            f"{path}: {exact_for} needs an exact model, this one is approximate: fit with --approximation none"
        )
    return model


def model_columns(model: WienerKernelRegressor) -> list[Column]:
    """The columns that a model was fitted to; by default numbers named x, or x1, x2, ..."""
    return columns_of(model, default_names(model))


def query(model: WienerKernelRegressor, columns: Sequence[Column], rows: Chunk) -> FloatArray:
    """Inputs (n, d) of a model in some rows of a table."""
    return encoded(columns, rows, largest(precision(model)))


def read_all(
    model: WienerKernelRegressor, file: Path, targets: Sequence[str] = ()
) -> tuple[FloatArray, FloatArray]:
    """Inputs (n, d) of a model, and observations (n, n_y), in all rows of a table."""
    columns = model_columns(model)
    with open_table(file) as table:
        check_names(table.file, [*(column.name for column in columns), *targets], table.names)
        parts = [(query(model, columns, rows), rows.numbers(targets, largest())) for rows in table.chunks()]
        if not parts:
            raise ValueError(f"{table.file}: {NO_ROWS}")
    X, y = map(np.concatenate, zip(*parts, strict=True))
    return X, y


def scale_name(model: WienerKernelRegressor) -> str:
    """The transforms of the outputs in words, such as "box-cox, exponent 0.24"; empty without one."""
    names = (transform_name(one.posterior_.transform) for one in single_models(model))
    return "; ".join(dict.fromkeys(filter(None, names)))


def check_comparable(models: dict[str, WienerKernelRegressor], held_out: bool) -> None:
    """Raise unless all models have equal targets; of held-out samples, their names, otherwise the observations."""
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
    parts = [one.posterior_ for one in single_models(model)]
    return np.hstack([p.transform.inverse(p.observed()) if p.transform else p.observed() for p in parts])


def held_out_samples(model: WienerKernelRegressor, file: Path) -> tuple[FloatArray, FloatArray]:
    """Inputs and observations of a table."""
    outputs = len(model.output_scale_)
    targets = [str(name) for name in getattr(model, "target_names_in_", ["y"] if outputs == 1 else [])]
    if len(targets) != outputs:
        raise ValueError("the model has no names for its targets: fit it with `wienerkernel fit`")
    X, y = read_all(model, file, targets)
    return X, y[:, 0] if model.posterior_.single_output else y
