"""The figure that ``fit --plot`` writes: curves along the most relevant inputs, and diagnostics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .console import UsageError, may_write

if TYPE_CHECKING:
    from ..regressor import WienerKernelRegressor
    from .read import SampleTable

__all__ = ["check_figure", "draw_fit"]

KINDS = (".png", ".pdf", ".svg")
SHOWN = 3
"""Inputs whose curves are shown."""


def check_figure(path: Path, force: bool) -> None:
    """Raise early if a figure cannot be written."""
    if path.suffix.lower() not in KINDS:
        raise UsageError(f"{path}: figures are written as PNG, PDF or SVG")
    may_write(path, force)


def draw_fit(
    model: WienerKernelRegressor, samples: SampleTable, summary: dict[str, Any], path: Path, force: bool
) -> None:
    """Write a row of curves for each target, and a row of diagnostics."""
    from ..evaluation.plotting import ScoreDisplay, TubeDisplay
    from ..evaluation.report.scores import sampled_scores
    from ..experiments.output import new_figure
    from ..io.files import atomic_write

    features, at = {}, 0
    for column in samples.columns:
        if column.kind != "category":
            features[column.name] = at
        at += len(column.features)
    n = len(samples.targets)
    figure = new_figure(figsize=(11, 3.6 * (n + 1)))
    rows = figure.subfigures(n + 1, 1)
    for k, found in enumerate(summary["targets"]):
        shown = [name for name in found["relevance"] if name in features][:SHOWN]
        axes = rows[k].subplots(1, max(1, len(shown)), squeeze=False)[0]
        for ax, name in zip(axes, shown, strict=False):
            TubeDisplay.from_estimator(model, feature=features[name], output=k, ax=ax)
        for ax in axes[1:]:
            ax.get_legend().remove()
            ax.set_ylabel("")
        if not shown:
            axes[0].set_axis_off()
    approximate = summary["approximation"] is not None
    report = sampled_scores(model.posterior_) if approximate else model.score_report()
    ScoreDisplay(report).plot(ax=rows[n].subplots(1, 3))
    with atomic_write(path, overwrite=force) as stream:
        figure.savefig(stream, format=path.suffix[1:].lower(), dpi=150)
