"""The command ``forecast``: simulate a series or trajectories beyond their end, with quantiles by cause."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from .console import notes, say_written, searching, working
from .fit import checked_noise, parsed_kernel
from .options import (
    Force,
    OutputTable,
    argument,
    check_figure,
    check_interval,
    integers,
    listed,
    may_write,
    numeric,
    option,
)

__all__ = ["forecast"]


def forecast(
    data: Annotated[
        Path, argument("Table with one row for each point in time, in order; CSV or Parquet.", "DATA")
    ],
    target: Annotated[
        list[str],
        option(
            "Columns with the states, comma-separated or with a -t each.", "NAMES", False, "--target", "-t"
        ),
    ],
    horizon: Annotated[int, option("Number of steps to forecast.", **numeric(int, 1))] = 10,
    lags: Annotated[
        str,
        option(
            "Past rows that the next one depends on. Of several numbers, such as `1,2,4`, the one with the smallest "
            "simulation error is taken.",
            "LAGS",
        ),
    ] = "1",
    time: Annotated[
        str | None,
        option(
            "Column with the time: numbers or dates in equal steps, which may be months.",
            "NAME",
            "row numbers",
        ),
    ] = None,
    trajectory: Annotated[
        str | None, option("Column that names the trajectory of each row.", "NAME", "one trajectory")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        option(
            "Columns with inputs that act from their row to the next, comma-separated or in several --inputs.",
            "NAMES",
            "none",
        ),
    ] = None,
    future: Annotated[
        Path | None,
        option(
            "Table with the inputs of the following rows, one less than the horizon.",
            "FILE",
            "the last inputs",
        ),
    ] = None,
    season: Annotated[
        float | None,
        option("Rows per period of a season, such as 12 for months.", default="none", **numeric(float, 2)),
    ] = None,
    learns: Annotated[
        Literal["state", "increment"],
        option("Whether the next state is learned, or its difference from this one."),
    ] = "state",
    noise: Annotated[
        str | None, option("Noise law, as for `wienerkernel fit`.", "LAW", "normal with unknown variance")
    ] = None,
    kernel: Annotated[
        str | None, option("Kernel formula, as for `wienerkernel fit`.", "FORMULA", "rbf")
    ] = None,
    interval: Annotated[
        float, option("Probability of the interval from lower to upper.", **numeric(float))
    ] = 0.9,
    paths: Annotated[int, option("Number of simulated paths.", **numeric(int, 2))] = 1000,
    seed: Annotated[int, option("Seed of the simulation.", **numeric(int, 0))] = 0,
    output: OutputTable = Path("-"),
    figure: Annotated[
        Path | None, option("Figure of the tube by cause, PNG, PDF or SVG.", "FILE", "none")
    ] = None,
    save: Annotated[
        Path | None, option("Save the fitted system, for `wienerkernel report`.", "FILE", "none")
    ] = None,
    force: Force = False,
) -> None:
    """Forecast time series: learn how each row follows from the ones before, and simulate.

    The table has a row for each step and state: mean, lower, median, upper, and standard deviations by cause, std_noise
    (noise in the data), std_model (unexplored inputs) and std_process (noise of the observation); effects of several
    causes together are divided among them. Where `--noise auto` transforms a state, these are on the transformed scale.
    """
    check_interval(interval)
    candidates = integers(lags, 1, "--lags must be positive integers")
    law = checked_noise(noise, "likelihood")
    parsed_kernel(kernel)  # reports errors before the data are read
    for path in (output, save):
        if path is not None and str(path) != "-":
            may_write(path, force)
    if figure is not None:
        check_figure(figure, force)
    states, drivers = listed(target), listed(inputs or [])
    with notes():
        from .series import forecast_table, read_future, read_series, starts, summarize_forecast

        X, U, times, clock = read_series(data, states, drivers, time, trajectory)
        ahead = read_future(future, drivers, horizon, U[-1])
        with searching("fitting"):
            import numpy as np

            from ..dynamics import Dynamics, seasonal_inputs
            from ..regressor import WienerKernelRegressor

            U[-1] = np.concatenate([U[-1], ahead])
            waves = []
            if season is not None:
                phases = [
                    seasonal_inputs(len(u), season, start=k) for u, k in zip(U, starts(times), strict=True)
                ]
                U = [np.hstack(pair) for pair in zip(U, phases, strict=True)]
                orders = range(1, 1 + phases[0].shape[1] // 2)
                waves = [f"season, {wave} {k}" for k in orders for wave in ("cosine", "sine")]
            # earlier waves follow from the current ones
            pairs = [(k, k if drivers else 1) for k in candidates]
            system = Dynamics.from_trajectories(
                X,
                U if drivers or waves else None,
                lags=pairs if len(pairs) > 1 else pairs[0],
                model=WienerKernelRegressor(kernel, noise=law),
                learns=learns,
                horizon=horizon,
                state_names=states,
                input_names=drivers + waves,
            )
        with working("simulating"):
            rollout = system.forecast(n_paths=paths, random_state=seed)
        from ..io.tables import table_writer

        with table_writer(output, overwrite=force) as writer:
            writer.write(forecast_table(rollout, interval, times[-1], clock))
    if str(output) != "-":
        say_written(output, f"{horizon} steps")
        summarize_forecast(system, rollout)
    if figure is not None:
        from .figure import draw_forecast

        draw_forecast(rollout, X[-1], interval, figure, force)
    if save is not None:
        from ..io.store import save as write

        write(system, save, overwrite=force)
        say_written(save)
