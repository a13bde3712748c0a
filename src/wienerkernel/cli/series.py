"""Tables of time series: states, inputs and times in equal steps, and the table and the summary of a forecast."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..dynamics import Dynamics, Rollout
from ..dynamics.rollout import SHOWN
from ..io.columns import Column, ColumnReader
from ..io.tables import check_names, open_table, read_numbers
from ..validation import largest
from .console import show, working
from .model import NO_ROWS
from .options import UsageError

__all__ = ["forecast_table", "read_future", "read_series", "starts", "summarize_forecast"]


@dataclass(frozen=True)
class _Times:
    """Times of a trajectory in equal steps; if these are months, ``month`` writes a number of months as a date."""

    values: FloatArray
    month: Callable[[float], str] | None = None


def read_series(
    data: Path, states: list[str], inputs: list[str], time: str | None, trajectory: str | None
) -> tuple[list[FloatArray], list[FloatArray], list[_Times], Column | None]:
    """States, inputs and times of each trajectory, and the column of the time."""
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
        if reader.found[0].kind == "category":
            raise ValueError(
                f"{data}: column {time!r} has texts, but --time needs numbers, or dates such as 2024-12-31"
            )
        (clock,), elapsed = reader.result()
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


def starts(times: list[_Times]) -> list[int]:
    """Steps from the start of the first trajectory to that of each, for seasons to have one phase; 0 without times."""
    known = [t.values for t in times]
    return [round((t[0] - known[0][0]) / (t[1] - t[0])) if len(t) > 1 else 0 for t in known]


def _times_ahead(times: _Times, clock: Column, horizon: int) -> list[Any]:
    """The times of the forecast, as in the column."""
    known = times.values
    ahead = known[-1] + np.arange(1, horizon + 1) * (known[-1] - known[-2] if len(known) > 1 else 1.0)
    if clock.kind == "date":
        return [times.month(at) if times.month else clock.text([at]) for at in ahead]
    rounded = [float(f"{at:.12g}") for at in ahead]
    return [int(at) for at in rounded] if all(at.is_integer() for at in rounded) else rounded


def read_future(file: Path | None, inputs: list[str], horizon: int, U: FloatArray) -> FloatArray:
    """Inputs after the last row, (horizon - 1, n_u)."""
    if file is None:
        return np.tile(U[-1], (horizon - 1, 1))
    if not inputs:
        raise UsageError("--future needs --inputs")
    with open_table(file) as table:
        values = read_numbers(table, inputs, largest() ** 0.5)
    if len(values) < horizon - 1:
        raise ValueError(
            f"{file}: a horizon of {horizon} steps needs {horizon - 1} rows of inputs, got {len(values)}"
        )
    return values[: horizon - 1]


def forecast_table(rollout: Rollout, interval: float, times: _Times, clock: Column | None) -> dict[str, Any]:
    """The table: rows ordered by step and state."""
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
    known = rollout.causes.shares if rollout.causes is not None else {}
    return {cause: known[cause] for cause in SHOWN if cause in known}


def summarize_forecast(system: Dynamics, rollout: Rollout) -> None:
    """Show the lags, and the variance of the last step by cause."""
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
