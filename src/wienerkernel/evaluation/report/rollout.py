"""The forecast section of the report of a dynamic system: the tube of each state over time, divided by cause."""

from __future__ import annotations

import warnings
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._typing import FloatArray
from ...palette import CAUSES
from .layout import _number as number
from .layout import _percent as percent
from .layout import _table as table
from .numbers import UNIT

if TYPE_CHECKING:
    from ...dynamics import Dynamics, Rollout

__all__ = ["forecast_section", "model_names"]

PATHS, COVERAGE, TABLE_ROWS = 1000, 0.9, 13
WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 760.0, 260.0, 10.0, 64.0, 40.0, 10.0
NAMES = {"noise": "noise", "model": "model", "process": "aleatoric"}
"""Causes of a rollout, from the inner tube outward, and what they are called elsewhere."""


def model_names(system: Dynamics) -> tuple[list[str], list[list[str]]]:
    """Names of the inputs of the models, and of the outputs of each."""
    back = [""] + [f", {i} step{'s' * (i > 1)} back" for i in range(1, max(system.lags))]
    scale = ", transformed" if system.lags_transformed else ""
    # units stay at the end of the names
    ends = [found.start() if (found := UNIT.search(name)) else len(name) for name in system.state_names]
    states = list(zip(system.state_names, ends, strict=True))
    inputs = [
        f"{name[:end]}{lag}{name[end:]}{scale}" for lag in back[: system.lags[0]] for name, end in states
    ]
    inputs += [f"{name}{lag}" for lag in back[: system.lags[1]] for name in system.input_names]
    what = "next" if system.learns == "state" else "change of"
    return inputs, [[f"{what} {name}" for name in system.state_names[part.states]] for part in system.parts]


def forecast_section(system: Dynamics) -> str:
    """The section as HTML; empty for a system that was not fitted to trajectories."""
    if system.origin is None:
        return ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        rollout = system.forecast(n_paths=PATHS, random_state=0)
    notes = "".join(f'<p class="notice">{escape(str(one.message))}</p>' for one in caught)
    held = ", with the known inputs" * bool(system.n_inputs)
    if system.n_inputs and len(system.origin[1]) < system.lags[1] - 1 + rollout.steps:
        held += ", the last of which is held"
    lead = (
        f"The {rollout.steps} steps after the data{held}, from {len(rollout.states)} simulated paths with one random function "
        f"each. Tubes contain {percent(COVERAGE)} of the paths; each is divided by the shares of the causes in the variance."
    )
    quantiles = rollout.quantiles([(1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2])
    states = "".join(
        _state(rollout, i, name, quantiles[:, i], system.origin[0][:, i])
        for i, name in enumerate(rollout.names)
    )
    return f'<section class="forecast"><h2>Forecast</h2><p class="hint">{escape(lead)}</p>{notes}{states}</section>'


def _state(rollout: Rollout, i: int, name: str, quantiles: FloatArray, past: FloatArray) -> str:
    """Figure, legend and table of one state; ``quantiles`` are low, median and high at each step."""
    causes = rollout.causes
    if causes is None:
        return "<p>All paths diverge.</p>"
    shares = {name: np.maximum(causes.shares[name][:, i], 0.0) for name in NAMES if name in causes.shares}
    total = np.maximum(sum(shares.values()), np.finfo(float).tiny)
    widths = np.sqrt(np.cumsum(list(shares.values()), axis=0) / total)
    tubes = {NAMES[cause]: width for cause, width in zip(shares, widths, strict=True)}
    legend = "".join(
        f'<li><i class="swatch {NAMES[cause]}"></i>{CAUSES[NAMES[cause]]}: <b>{percent(share[-1] / total[-1])}</b></li>'
        for cause, share in shares.items()
    )
    together = float(causes.interaction[-1, i] / max(causes.total[-1, i], np.finfo(float).tiny))
    caption = f"{name}: data, median and tube. Shares are those of the last step"
    caption += ", on the transformed scale" * rollout.transformed[i]
    if together > 0.005:
        caption += f"; {percent(together)} of the variance comes from several causes together and is divided among them"
    at = np.unique(np.linspace(1, rollout.steps, TABLE_ROWS).round().astype(int))
    rows = [
        [
            str(k),
            number(quantiles[k, 1]),
            f"{number(quantiles[k, 0])} … {number(quantiles[k, 2])}",
            *(number(share[k] ** 0.5) for share in shares.values()),
        ]
        for k in at
    ]
    head = ["step", "median", f"{percent(COVERAGE)} interval"]
    head += [f"std, {CAUSES[NAMES[cause]]}" for cause in shares]
    return (
        f"<figure><figcaption>{escape(caption)}.</figcaption>"
        f'<div class="plot wide">{_figure(name, past, quantiles, tubes)}</div>'
        f'<ul class="legend">{legend}<li><i class="swatch stroke mean"></i>median</li>'
        '<li><i class="swatch point"></i>data</li></ul></figure>'
        f"<details><summary>As a table</summary>{table(f'Forecast of {name}', head, rows)}</details>"
    )


def _figure(name: str, past: FloatArray, quantiles: FloatArray, tubes: dict[str, FloatArray]) -> str:
    """The figure as SVG, which needs no script."""
    steps, low, middle, high = np.arange(len(quantiles)), *quantiles.T
    before = np.arange(1 - len(past), 1)
    bottom, top = (float(end) for end in (min(past.min(), low.min()), max(past.max(), high.max())))
    span = (top - bottom) or 1.0

    def x(t: Any) -> Any:
        return LEFT + (WIDTH - LEFT - RIGHT) * (t - before[0]) / max(steps[-1] - before[0], 1)

    def y(value: Any) -> Any:
        return TOP + (HEIGHT - TOP - BOTTOM) * (top + 0.04 * span - value) / (1.08 * span)

    def points(t: Any, values: Any) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x(t), y(values), strict=True))

    parts, end = [], WIDTH - RIGHT
    for tick in _ticks(bottom, top, 5):  # at the forecast, which narrow pages show first
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{end}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{end + 8}" y="{y(tick) + 4:.1f}">{number(tick)}</text>')
    foot = HEIGHT - BOTTOM
    for tick in _ticks(float(before[0]), float(steps[-1]), 8):
        parts.append(f'<text x="{x(tick):.1f}" y="{foot + 16}" text-anchor="middle">{number(tick)}</text>')
    for cause, width in reversed(tubes.items()):
        around = [middle + width * (end - middle) for end in (low, high)]
        outline = points(np.append(steps, steps[::-1]), np.append(around[0], around[1][::-1]))
        parts.append(f'<polygon class="area {cause}" points="{outline}"/>')
    parts.append(f'<polyline class="line mean" points="{points(steps, middle)}"/>')
    parts.append(f'<polyline class="line soft" style="stroke-width:1" points="{points(before, past)}"/>')
    dots = zip(x(before), y(past), strict=True)
    parts += [f'<circle class="point" cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in dots]
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{end}" y1="{foot}" y2="{foot}"/>')
    parts.append(
        f'<text x="{(LEFT + end) / 2}" y="{HEIGHT - 6}" text-anchor="middle">step after the data</text>'
    )
    label = escape(f"{name} over time, data and forecast", quote=True)
    size = f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" style="max-width:55rem"'  # text as large as in other figures
    return f'<svg {size} role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _ticks(low: float, high: float, most: int) -> FloatArray:
    """Round numbers between low and high."""
    rough = max(high - low, 1e-12 * max(abs(low), abs(high)), 1e-300) / most
    unit = 10.0 ** np.floor(np.log10(rough))
    step = unit * next(factor for factor in (1, 2, 5, 10) if factor * unit >= rough * (1 - 1e-9))
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return np.asarray(step * np.arange(first, last + 1) + 0.0)  # without a negative zero
