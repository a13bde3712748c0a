"""The command ``forecast``: simulate a series or trajectories beyond their end, with quantiles by cause."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from .console import notes, say_written, searching, show, working
from .figure import check_figure, draw_forecast
from .fit import checked_noise, parsed_kernel
from .model import NO_ROWS
from .options import (
    Force,
    OutputTable,
    UsageError,
    argument,
    check_interval,
    integers,
    listed,
    may_write,
    numeric,
    option,
)

if TYPE_CHECKING:
    from .._typing import FloatArray
    from ..dynamics import Dynamics, Rollout
    from ..io.columns import Column

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
            "Past rows that the next one depends on. From several numbers, as `1,2,4`, simulation error chooses.",
            "LAGS",
        ),
    ] = "1",
    time: Annotated[
        str | None,
        option("Column with the time: numbers, dates or months in equal steps.", "NAME", "row numbers"),
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
        str | None, option("Noise law, as of `wienerkernel fit`.", "LAW", "normal with unknown variance")
    ] = None,
    kernel: Annotated[
        str | None, option("Kernel formula, as of `wienerkernel fit`.", "FORMULA", "rbf")
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
        X, U, times, clock = _read(data, states, drivers, time, trajectory)
        ahead = _future(future, drivers, horizon, U[-1])
        with searching("fitting"):
            import numpy as np

            from ..dynamics import Dynamics, seasonal_inputs
            from ..regressor import WienerKernelRegressor

            U[-1] = np.concatenate([U[-1], ahead])
            waves = []
            if season is not None:
                phases = [
                    seasonal_inputs(len(u), season, start=k) for u, k in zip(U, _starts(times), strict=True)
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
            writer.write(_columns(rollout, interval, times[-1], clock))
    if str(output) != "-":
        say_written(output, f"{horizon} steps")
        _summarize(system, rollout)
    if figure is not None:
        draw_forecast(rollout, X[-1], interval, figure, force)
    if save is not None:
        from ..io.store import save as write

        write(system, save, overwrite=force)
        say_written(save)


@dataclass(frozen=True)
class _Times:
    """Times of a trajectory in equal steps; if these are months, ``month`` writes a number of months as a date."""

    values: FloatArray
    month: Callable[[float], str] | None = None


def _read(
    data: Path, states: list[str], inputs: list[str], time: str | None, trajectory: str | None
) -> tuple[list[FloatArray], list[FloatArray], list[_Times], Column | None]:
    """States, inputs and times of each trajectory, and the column of the time."""
    import numpy as np

    from ..io.columns import ColumnReader
    from ..io.tables import check_names, open_table
    from ..validation import largest

    if not states:
        raise UsageError("--target must name at least one column")
    names, clocks = [*states, *inputs], [time] if time else []
    if len({*names, *clocks}) < len(names) + len(clocks):
        named = ", ".join([*names, *clocks])
        raise UsageError(f"a column is named twice among --target, --inputs and --time: {named}")
    with working(f"reading {data}"), open_table(data) as table:
        check_names(table.file, [*names, *clocks, *([trajectory] if trajectory else [])], table.names)
        rows, labels, reader = [], [], ColumnReader(clocks, largest() ** 0.5)
        for chunk in table.chunks():
            rows.append(chunk.numbers(names, largest() ** 0.5))
            reader.add(chunk)
            labels += [str(label) for label in chunk.columns[trajectory]] if trajectory else [""] * len(chunk)
        if not rows:
            raise ValueError(f"{table.file}: {NO_ROWS}")
    clock = None
    values, label = np.concatenate(rows), np.array(labels)
    if time:
        (clock,), elapsed = reader.result()
        if clock.kind == "category":
            raise ValueError(
                f"{data}: column {time!r} has texts, but --time needs numbers, or dates as 2024-12-31"
            )
        values = np.hstack([values, elapsed])
    cuts = np.flatnonzero(label[1:] != label[:-1]) + 1
    if len(set(labels)) < len(cuts) + 1:
        raise ValueError(f"{data}: the rows of each trajectory must follow one another")
    parts, n = np.split(values, cuts), len(states)
    if clock is None:
        times = [_Times(np.arange(1.0, len(part) + 1)) for part in parts]
    else:
        times = [_equal_steps(part[:, -1], clock, data) for part in parts]
    step = [np.median(np.diff(t.values)) for t in times if len(t.values) > 1]
    if step and max(step) > 1.01 * min(step):
        raise ValueError(
            f"{data}: the steps of column {time!r} must be the same in all trajectories, but are from {min(step):g} "
            f"to {max(step):g}"
        )
    return [part[:, :n] for part in parts], [part[:, n : n + len(inputs)] for part in parts], times, clock


def _equal_steps(values: FloatArray, clock: Column, data: Path) -> _Times:
    """Times of one trajectory, after a check that their steps are equal."""
    import numpy as np

    times = _in_months(values, clock) or _Times(values)
    steps = np.diff(times.values)
    if len(steps) and (steps.min() <= 0 or steps.max() > 1.01 * steps.min()):
        row = int(np.argmax(np.abs(steps - np.median(steps))))
        start, end = (clock.text([at]) for at in values[row : row + 2])
        usual = f"{np.median(steps):g}"
        if clock.kind == "date":
            unit = "months" if times.month else clock.unit
            usual += f" {unit.removesuffix('s') if usual == '1' else unit}"
        raise ValueError(
            f"{data}: column {clock.name!r} must increase in equal steps, but goes from {start} to {end} where the usual "
            f"step is {usual}; without --time, each row is a step"
        )
    return times


def _in_months(values: FloatArray, clock: Column) -> _Times | None:
    """Dates that fall on one day of the month, or on its last, as numbers of months; None for others."""
    if clock.kind != "date" or len(values) < 2:
        return None
    import numpy as np

    dates = [datetime.fromisoformat(clock.text([at])) for at in values]
    first, next_days = dates[0], {(date + timedelta(days=1)).day for date in dates}
    at_end = next_days == {1}
    if len({date.time() for date in dates}) > 1 or (len({date.day for date in dates}) > 1 and not at_end):
        return None
    day = 31 if at_end else first.day

    def text(month: float) -> str:
        year, rest = divmod(round(month), 12)
        date = first.replace(year=year, month=rest + 1, day=min(day, monthrange(year, rest + 1)[1]))
        return str(date).removesuffix(" 00:00:00")

    return _Times(np.array([12.0 * date.year + date.month - 1 for date in dates]), text)


def _starts(times: list[_Times]) -> list[int]:
    """Steps from the start of the first trajectory to that of each, for seasons to have one phase; 0 without times."""
    known = [t.values for t in times]
    return [round((t[0] - known[0][0]) / (t[1] - t[0])) if len(t) > 1 else 0 for t in known]


def _times_ahead(times: _Times, clock: Column, horizon: int) -> list[Any]:
    """The times of the forecast, as in the column."""
    import numpy as np

    known = times.values
    ahead = known[-1] + np.arange(1, horizon + 1) * (known[-1] - known[-2] if len(known) > 1 else 1.0)
    if clock.kind == "date":
        return [times.month(at) if times.month else clock.text([at]) for at in ahead]
    rounded = [float(f"{at:.12g}") for at in ahead]
    return [int(at) for at in rounded] if all(at.is_integer() for at in rounded) else rounded


def _future(file: Path | None, inputs: list[str], horizon: int, U: FloatArray) -> FloatArray:
    """Inputs after the last row, (horizon - 1, n_u)."""
    import numpy as np

    if file is None:
        return np.tile(U[-1], (horizon - 1, 1))
    if not inputs:
        raise UsageError("--future needs --inputs")
    from ..io.tables import open_table, read_numbers
    from ..validation import largest

    with open_table(file) as table:
        values = read_numbers(table, inputs, largest() ** 0.5)
    if len(values) < horizon - 1:
        raise ValueError(
            f"{file}: a horizon of {horizon} steps needs {horizon - 1} rows of inputs, got {len(values)}"
        )
    return values[: horizon - 1]


def _columns(rollout: Rollout, interval: float, times: _Times, clock: Column | None) -> dict[str, Any]:
    """The table: rows ordered by step and state."""
    import numpy as np

    n_x, steps = len(rollout.names), np.arange(1, rollout.steps + 1)
    lower, median, upper = np.moveaxis(
        rollout.quantiles([(1 - interval) / 2, 0.5, (1 + interval) / 2])[1:], -1, 0
    )
    columns: dict[str, Any] = {"step": np.repeat(steps, n_x)}
    if clock is not None:
        columns[clock.name] = [at for at in _times_ahead(times, clock, len(steps)) for _ in range(n_x)]
    columns["state"] = list(rollout.names) * rollout.steps
    curves = {"mean": rollout.mean()[1:], "lower": lower, "median": median, "upper": upper}
    columns |= {name: values.ravel() for name, values in curves.items()}
    for name, share in _shares(rollout).items():
        columns[f"std_{name}"] = np.sqrt(np.maximum(share[1:], 0.0)).ravel()
    return columns


def _shares(rollout: Rollout) -> dict[str, FloatArray]:
    """Variances by cause, in the order in which figures show them; none of a rollout without causes."""
    from ..dynamics.rollout import SHOWN

    known = rollout.causes.shares if rollout.causes is not None else {}
    return {cause: known[cause] for cause in SHOWN if cause in known}


def _summarize(system: Dynamics, rollout: Rollout) -> None:
    """Show the lags, and the variance of the last step by cause."""
    from ..dynamics.rollout import SHOWN

    show(f"lags {system.lags[0]}, {len(rollout.states)} paths, {int(rollout.diverged.sum())} diverged")
    if rollout.causes is None:
        return
    for i, name in enumerate(rollout.names):
        total = rollout.causes.total[-1, i]
        shares = [
            f"{SHOWN[cause][0]} {share[-1, i] / total:.0%}" for cause, share in _shares(rollout).items()
        ]
        together = rollout.causes.interaction[-1, i] / total
        show(
            f"variance of {name} at step {rollout.steps}: {', '.join(shares)}; of this, interaction {together:.0%}"
        )
