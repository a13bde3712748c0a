"""The command ``predict``: append predictions to a table."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from .console import note, notes, say_written
from .options import Force, Missing, Model, OutputTable, Scheduler, argument, check_interval, numeric, option

__all__ = ["predict"]


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
    from ..io.streams import mapped, workers
    from ..posterior.separate import causes
    from .model import load_model, scale_name
    from .streaming import outputs, predict_file, reading, seen_by_workers

    source, result = seen_by_workers(data, scheduler), seen_by_workers(output, scheduler)
    with notes(), workers(scheduler):
        pairs, fitted, read, rows = outputs(source, result, force), load_model(model), 0, 0
        predicted = partial(
            predict_file,
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
            for more_read, more, problem in mapped(predicted, pairs, fitted):
                read, rows = read + more_read, rows + more
                update(description=f"predicted {rows} rows")
                if problem and len(pairs) > 1:
                    note(f"{problem}; no predictions are written")
        if not rows:
            raise ValueError(problem)
    if read > rows:
        note(f"{read - rows} of {read} rows are left out: a value is missing")
    if transform := scale_name(fitted):
        stds = ", ".join(f"{prefix}std_{cause}" for cause in causes(fitted.posterior_))
        note(f"{stds} are on the transformed scale ({transform})")
    if str(output) != "-":
        say_written(output, f"{rows} rows")
