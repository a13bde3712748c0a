"""The command ``predict``: append predictions to a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from .console import note, notes, say_written
from .model import NO_ROWS, load_model, model_columns, query, scale_name
from .options import (
    Force,
    Missing,
    Model,
    OutputTable,
    Scheduler,
    argument,
    check_interval,
    listed,
    numeric,
    option,
)
from .read import NO_VALUES, check_positive, remedy
from .streaming import outputs, reading, seen_by_workers

if TYPE_CHECKING:
    from .._typing import FloatArray
    from ..io.columns import Column
    from ..io.tables import Chunk, Table
    from ..regressor import WienerKernelRegressor

__all__ = ["predict"]


class _NoRowsError(ValueError):
    """A table has no rows to predict."""


def predict(
    model: Model,
    data: Annotated[
        Path,
        argument(
            "Table with the inputs, CSV or Parquet, or a pattern such as 'new/*.parquet', whose predictions go to files "
            "of the same names in the folder --output; - reads standard input.",
            "DATA",
        ),
    ],
    output: OutputTable = Path("-"),
    interval: Annotated[
        float, option("Probability of the equal-tailed interval from lower to upper.", **numeric(float))
    ] = 0.9,
    of: Annotated[
        Literal["estimate", "function", "observation"],
        option(
            "What to predict: a new observation, the function without noise, or the estimate under noisy data."
        ),
    ] = "observation",
    inputs: Annotated[
        list[str] | None,
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
    missing: Missing = "refuse",
    prefix: Annotated[str, option("Prefix of the new column names.", "TEXT")] = "",
    scheduler: Scheduler = None,
    force: Force = False,
) -> None:
    """Predict each row of a table.

    All columns are kept. Appended are mean, lower and upper (the ends of the interval), and the standard deviations by
    cause: std_noise (noise in the data), std_model (unexplored inputs) and std_aleatoric (noise of the observation), and
    std_input if the model was fitted with noise on the inputs, std_computational if it is approximate. With several
    targets, the names end in theirs. Of a model with a transform, these standard deviations are on the transformed scale.
    Tables are processed in chunks, so they can be of any length.
    """
    check_interval(interval)
    source, result = seen_by_workers(data, scheduler), seen_by_workers(output, scheduler)
    from ..io.streams import mapped, workers

    with notes(), workers(scheduler):
        pairs, fitted, read, rows = outputs(source, result, force), load_model(model), 0, 0
        predict_file = partial(
            _predict_file,
            inputs=inputs,
            noise_scale=noise_scale,
            drop=missing == "drop",
            interval=interval,
            of=of,
            prefix=prefix,
            # the outputs were checked; a task that Dask repeats replaces what it wrote before
            overwrite=force or scheduler is not None,
        )
        with reading("predicting") as update:
            for more_read, more, problem in mapped(predict_file, pairs, fitted):
                read, rows = read + more_read, rows + more
                update(description=f"predicted {rows} rows")
                if problem and len(pairs) > 1:
                    note(f"{problem}; no predictions are written")
        if not rows:
            raise ValueError(problem)
    if read > rows:
        note(f"{read - rows} of {read} rows are left out: a value is missing")
    if transform := scale_name(fitted):
        from ..posterior.separate import causes

        stds = ", ".join(f"{prefix}std_{cause}" for cause in causes(fitted.posterior_))
        note(f"{stds} are on the transformed scale ({transform})")
    if str(output) != "-":
        say_written(output, f"{rows} rows")


def _predict_file(
    pair: tuple[Path, Path],
    model: WienerKernelRegressor,
    *,
    inputs: Sequence[str] | None,
    noise_scale: str | None,
    drop: bool,
    interval: float,
    of: str,
    prefix: str,
    overwrite: bool,
) -> tuple[int, int, str]:
    """Predict one file and write another: rows that were read and written, and why none are."""
    from ..evaluation.pipelines import prediction_table
    from ..io.tables import open_table, table_writer
    from ..scale.stream import PROGRESS

    read, written, report = 0, 0, PROGRESS.get()
    try:
        with open_table(pair[0]) as table, table_writer(pair[1], overwrite=overwrite) as writer:
            columns = _columns(model, table, inputs)
            used = [column.name for column in columns] + ([noise_scale] if noise_scale else [])
            for chunk in table.chunks():
                rows = chunk.complete(used) if drop else chunk
                read, written = read + len(chunk), written + len(rows)
                if len(rows):
                    with remedy():
                        X, scale = query(model, columns, rows), _scale(rows, noise_scale)
                    new = prediction_table(model, X, coverage=interval, of=of, noise_scale=scale)
                    new = {f"{prefix}{name}": values for name, values in new.items()}
                    if taken := [name for name in new if name in table.names]:
                        what = f"{table.file} already has a column {taken[0]!r}"
                        raise ValueError(f"{what}: choose another name with --prefix")
                    writer.write({**rows.columns, **new})
                if report is not None:
                    report(table.fraction)
            if not written:  # leaves no file
                raise _NoRowsError(f"{table.file}: {NO_VALUES if read else NO_ROWS}")
    except _NoRowsError as error:
        return read, 0, str(error)
    return read, written, ""


def _columns(model: WienerKernelRegressor, table: Table, inputs: Sequence[str] | None) -> list[Column]:
    """The columns of a table that hold the model's inputs."""
    from ..io.tables import shortened

    columns = model_columns(model)
    known = [column.name for column in columns]
    names = known if inputs is None else listed(inputs, table.names)
    if len(names) != len(columns):
        raise ValueError(
            f"--inputs must name {len(columns)} columns ({shortened(known)}), got {shortened(names)}"
        )
    for name in names:
        if name not in table.names:
            raise ValueError(
                f"{table.file}: there is no column {name!r}, an input of the model; the columns are "
                f"{shortened(table.names)}; choose others with --inputs"
            )
    return [replace(column, name=name) for column, name in zip(columns, names, strict=True)]


def _scale(rows: Chunk, name: str | None) -> FloatArray | None:
    """Noise scales (n,) of some rows."""
    from ..validation import largest

    if name is None:
        return None
    scale = rows.numbers([name], largest())[:, 0]
    check_positive(scale, name, "--noise-scale", rows.file)
    return scale
