"""The command ``predict``: a table with predictions beside its rows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import (
    Force,
    Model,
    UsageError,
    input_names,
    listed,
    load_model,
    may_write,
    notes,
    numeric,
    progress,
    say_written,
)

if TYPE_CHECKING:
    from .._typing import FloatArray
    from ..io.tables import Table
    from ..regressor import WienerKernelRegressor

__all__ = ["predict"]


class Of(StrEnum):
    """The three random variables that can be predicted."""

    estimate = "estimate"
    function = "function"
    observation = "observation"


def predict(
    model: Model,
    data: Annotated[
        Path,
        typer.Argument(
            help="Table with the inputs: CSV or Parquet; - is standard input.", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Table for the predictions, CSV or Parquet; - is standard output."
        ),
    ] = Path("-"),
    interval: Annotated[
        float,
        typer.Option(
            help="Probability of the interval from lower to upper, both tails alike.", **numeric(float)
        ),
    ] = 0.95,
    of: Annotated[
        Of,
        typer.Option(
            help="Of what: a new observation, the function without noise, or its estimate under the noise of the data."
        ),
    ] = Of.observation,
    inputs: Annotated[
        str | None,
        typer.Option(
            help="Columns with the inputs, in the order of the model's.",
            show_default="those the model was fitted to",
        ),
    ] = None,
    prefix: Annotated[str, typer.Option(help="Put before the names of the new columns.")] = "",
    force: Force = False,
) -> None:
    """Predict every row of a table.

    All columns of the table are kept, and these are appended: mean, lower and upper (the ends of the interval), and the
    standard deviations by cause, std_noise (noise in the data of the fit), std_model (places not looked at) and
    std_aleatoric (noise of a new observation). Tables of any length stream through in chunks.
    """
    if not 0 < interval < 1:
        hint = f": did you mean {interval / 100:g}?" if 1 < interval < 100 else ""
        raise UsageError(f"--interval must lie strictly between 0 and 1, got {interval:g}{hint}")
    to_file = str(output) != "-"
    if to_file:
        may_write(output, force)
    fitted = load_model(model)
    with notes(), progress() as bar:
        from ..io.tables import open_table, table_writer
        from ..validation import largest

        with open_table(data) as table, table_writer(output, overwrite=force) as writer:
            names = _columns(fitted, table, inputs)
            task, rows = bar.add_task("predicting", total=1.0 if table.fraction is not None else None), 0
            for chunk in table.chunks():
                new = _predictions(fitted, chunk.numbers(names, largest(fitted.dtype)), interval, of.value)
                writer.write({**chunk.columns, **_renamed(new, prefix, table)})
                rows += len(chunk)
                bar.update(task, completed=table.fraction, description=f"predicted {rows} rows")
            if not rows:
                raise ValueError(f"{table.file}: there are no rows below the names of the columns")
            bar.update(task, completed=1.0)
    if to_file:
        say_written(output, f"{rows} rows")


def _columns(model: WienerKernelRegressor, table: Table, inputs: str | None) -> list[str]:
    """The columns of a table that hold the model's inputs."""
    from ..io.tables import shortened

    names = list(input_names(model)) if inputs is None else listed(inputs)
    if len(names) != model.n_features_in_:
        raise ValueError(
            f"the model has {model.n_features_in_} inputs ({shortened(list(input_names(model)))}), got --inputs {inputs}"
        )
    for name in names:
        if name not in table.names:
            raise ValueError(
                f"{table.file}: there is no column {name!r}, which the model has as input; the columns are "
                f"{shortened(table.names)}; --inputs says which to use"
            )
    return names


def _predictions(
    model: WienerKernelRegressor, X: FloatArray, interval: float, of: str
) -> dict[str, FloatArray]:
    """New columns, which have the number of the output in their name if there are several."""
    import numpy as np

    law, parts = model.predict_distribution(X, of), model.uncertainty(X)
    ends = np.array([(1 - interval) / 2, (1 + interval) / 2])
    lower, upper = law.ppf(ends.reshape(-1, *[1] * len(law.shape)))
    stds = {f"std_{name}": np.sqrt(getattr(parts, name)) for name in ("noise", "model", "aleatoric")}
    by_output = {"mean": law.mean(), "lower": lower, "upper": upper, **stds}
    columns: dict[str, FloatArray] = {}
    for name, values in by_output.items():
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {f"{name}_{k}": column for k, column in enumerate(values.T, start=1)}
    return columns


def _renamed(columns: Mapping[str, Any], prefix: str, table: Table) -> dict[str, Any]:
    renamed = {f"{prefix}{name}": values for name, values in columns.items()}
    if taken := [name for name in renamed if name in table.names]:
        raise ValueError(
            f"{table.file} has a column {taken[0]!r} already: --prefix gives the new columns other names"
        )
    return renamed
