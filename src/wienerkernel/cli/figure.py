"""The figures that ``fit --plot`` and ``forecast --figure`` write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..dynamics import Rollout
from ..evaluation.plotting import ScoreDisplay, TubeDisplay
from ..evaluation.report.scores import sampled_scores
from ..experiments.output import new_figure
from ..io.files import atomic_write
from ..regressor import WienerKernelRegressor
from .console import say_written
from .read import SampleTable, spans

__all__ = ["draw_fit", "draw_forecast"]

SHOWN = 3
"""Inputs whose curves are shown."""


def draw_fit(
    model: WienerKernelRegressor, samples: SampleTable, summary: dict[str, Any], path: Path, force: bool
) -> None:
    """Write a row of curves along the most relevant inputs for each target, and a row of diagnostics."""
    starts = {column.name: span.start for column, span in spans(samples.columns) if column.kind != "category"}
    n = len(samples.targets)
    figure = new_figure(figsize=(11, 3.6 * (n + 1)))
    rows = figure.subfigures(n + 1, 1)
    for k, found in enumerate(summary["targets"]):
        shown = [name for name in found["relevance"] if name in starts][:SHOWN]
        axes = rows[k].subplots(1, max(1, len(shown)), squeeze=False)[0]
        for ax, name in zip(axes, shown, strict=False):
            TubeDisplay.from_estimator(model, feature=starts[name], output=k, ax=ax)
        for ax in axes[1:]:
            ax.get_legend().remove()
            ax.set_ylabel("")
        if not shown:
            axes[0].set_axis_off()
    approximate = summary["approximation"] is not None
    report = sampled_scores(model.posterior_) if approximate else model.score_report()
    ScoreDisplay(report).plot(ax=rows[n].subplots(1, 3))
    _write(figure, path, force)


def draw_forecast(rollout: Rollout, history: FloatArray, interval: float, path: Path, force: bool) -> None:
    """Write the end of the data, and the tube."""
    n_x = len(rollout.names)
    figure = new_figure(figsize=(7, 0.8 + 2.4 * n_x))
    axes = np.ravel(figure.subplots(n_x, 1, sharex=True, squeeze=False))
    rollout.plot(interval, axes)
    shown = history[-max(3 * rollout.steps, 20) :]
    for ax, column in zip(axes, shown.T, strict=True):
        ax.plot(np.arange(1 - len(shown), 1), column, "k.-", ms=3, lw=0.6, label="data")
    axes[0].get_legend().remove()
    handles, labels = axes[0].get_legend_handles_labels()
    style: dict[str, Any] = {"frameon": False, "fontsize": 8, "columnspacing": 1, "handlelength": 1.2}
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=len(labels), **style)
    _write(figure, path, force)


def _write(figure: Any, path: Path, force: bool) -> None:
    with atomic_write(path, overwrite=force) as stream:
        figure.savefig(stream, format=path.suffix[1:].lower(), dpi=150)
    say_written(path)
