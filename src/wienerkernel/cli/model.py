"""What the commands need of a saved model: its columns, its transform, and its inputs in the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .console import working

if TYPE_CHECKING:
    from .._typing import FloatArray
    from ..io.columns import Column
    from ..io.tables import Chunk
    from ..regressor import WienerKernelRegressor

__all__ = ["NO_ROWS", "load_model", "model_columns", "query", "read_all", "scale_name"]

NO_ROWS = "there are no rows below the column names"


def load_model(path: Path, exact_for: str = "") -> WienerKernelRegressor:
    """A saved model, which must be exact for the command ``exact_for``."""
    with working(f"loading {path}"):
        from ..io.store import load
        from ..posterior.separate import causes

        model = load(path)
    if exact_for and "computational" in causes(model.posterior_):
        raise ValueError(
            f"{path}: {exact_for} needs an exact model, this one is approximate: fit with --approximation none"
        )
    return model


def model_columns(model: WienerKernelRegressor) -> list[Column]:
    """The columns that a model was fitted to; by default numbers named x, or x1, x2, ..."""
    from ..evaluation.report.numbers import default_names
    from ..io.columns import columns_of

    return columns_of(model, default_names(model))


def query(model: WienerKernelRegressor, columns: Sequence[Column], rows: Chunk) -> FloatArray:
    """Inputs (n, d) of a model in some rows of a table."""
    from ..io.columns import encoded
    from ..validation import largest, precision

    return encoded(columns, rows, largest(precision(model)))


def read_all(
    model: WienerKernelRegressor, file: Path, targets: Sequence[str] = ()
) -> tuple[FloatArray, FloatArray]:
    """Inputs (n, d) of a model, and observations (n, n_y), in all rows of a table."""
    import numpy as np

    from ..io.tables import check_names, open_table
    from ..validation import largest

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
    from ..evaluation.report.numbers import single_models, transform_name

    names = (transform_name(one.posterior_.transform) for one in single_models(model))
    return "; ".join(dict.fromkeys(filter(None, names)))
