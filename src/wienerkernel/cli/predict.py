"""The command ``predict``: append predictions to a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from .console import (
    Force,
    Model,
    OutputTable,
    argument,
    check_interval,
    check_positive,
    input_names,
    listed,
    load_model,
    may_write,
    notes,
    numeric,
    option,
    progress,
    say,
    say_written,
    scale_name,
)

if TYPE_CHECKING:
    from .._typing import FloatArray
    from ..io.tables import Table
    from ..regressor import WienerKernelRegressor

__all__ = ["predict"]


def predict(
    model: Model,
    data: Annotated[Path, argument("Table with the inputs, CSV or Parquet; - reads standard input.", "DATA")],
    output: OutputTable = Path("-"),
    interval: Annotated[
        float, option("Probability of the equal-tailed interval from lower to upper.", **numeric(float))
    ] = 0.95,
    of: Annotated[
        Literal["estimate", "function", "observation"],
        option(
            "What to predict: a new observation, the function without noise, or the estimate under noisy data."
        ),
    ] = "observation",
    inputs: Annotated[
        str | None,
        option(
            "Input columns, comma-separated, in the order of the model's inputs.", "NAMES", "those of the fit"
        ),
    ] = None,
    noise_scale: Annotated[
        str | None,
        option(
            "Column with a positive factor of the noise of each new observation.", "COLUMN", "1 for all rows"
        ),
    ] = None,
    prefix: Annotated[str, option("Prefix of the new column names.", "TEXT")] = "",
    force: Force = False,
) -> None:
    """Predict each row of a table.

    All columns are kept. Appended are mean, lower and upper (the ends of the interval), and the standard deviations by
    cause: std_noise (noise in the data), std_model (unexplored inputs) and std_aleatoric (noise of the observation), and
    std_input if the model was fitted with noise on the inputs. Of a
    model with a transform, these standard deviations are on the transformed scale.
    Tables are processed in chunks, so they can be of any length.
    """
    check_interval(interval)
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
                X, scale = chunk.numbers(names, largest(fitted.dtype)), None
                if noise_scale is not None:
                    scale = chunk.numbers([noise_scale], largest())[:, 0]
                    check_positive(scale, noise_scale, "--noise-scale", table.file)
                new = _predictions(fitted, X, scale, interval, of)
                writer.write({**chunk.columns, **_renamed(new, prefix, table)})
                rows += len(chunk)
                bar.update(task, completed=table.fraction, description=f"predicted {rows} rows")
            if not rows:
                raise ValueError(f"{table.file}: there are no rows below the column names")
            bar.update(task, completed=1.0)
    if transform := scale_name(fitted):
        from ..posterior.separate import causes

        stds = ", ".join(f"{prefix}std_{cause}" for cause in causes(fitted.posterior_))
        say(f"note: {stds} are on the transformed scale ({transform})", style="yellow")
    if to_file:
        say_written(output, f"{rows} rows")


def _columns(model: WienerKernelRegressor, table: Table, inputs: str | None) -> list[str]:
    """The columns of a table that hold the model's inputs."""
    from ..io.tables import shortened

    names = list(input_names(model)) if inputs is None else listed(inputs)
    if len(names) != model.n_features_in_:
        raise ValueError(
            f"--inputs must name {model.n_features_in_} columns ({shortened(list(input_names(model)))}), got {inputs}"
        )
    for name in names:
        if name not in table.names:
            raise ValueError(
                f"{table.file}: there is no column {name!r}, an input of the model; the columns are "
                f"{shortened(table.names)}; choose others with --inputs"
            )
    return names


def _predictions(
    model: WienerKernelRegressor, X: FloatArray, scale: FloatArray | None, interval: float, of: str
) -> dict[str, FloatArray]:
    """New columns; their names end in the number of the output if there are several."""
    import numpy as np

    from ..posterior.separate import causes

    law = model.predict_distribution(X, of, noise_scale=scale)
    parts = model.uncertainty(X, scale)
    ends = np.array([(1 - interval) / 2, (1 + interval) / 2])
    lower, upper = law.ppf(ends.reshape(-1, *[1] * len(law.shape)))
    stds = {f"std_{name}": np.sqrt(getattr(parts, name)) for name in causes(model.posterior_)}
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
        raise ValueError(f"{table.file} already has a column {taken[0]!r}: choose another name with --prefix")
    return renamed
