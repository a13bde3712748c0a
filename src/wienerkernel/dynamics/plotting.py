"""The plot of a rollout: a tube for each state over the steps, divided by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..palette import CAUSES, LIGHT, pyplot
from ..text import check_probability

if TYPE_CHECKING:
    from .rollout import Rollout

__all__ = ["plot_rollout"]

SHOWN = {
    "noise": (CAUSES["noise"], LIGHT["estimate"]),
    "model": (CAUSES["model"], LIGHT["function"]),
    "process": (CAUSES["aleatoric"], LIGHT["observation"]),
    "initial": ("initial state", LIGHT["initial"]),
}
"""Names and colors of the causes, from the inner tube outward."""


def plot_rollout(rollout: Rollout, coverage: float, axes: Any) -> Any:
    """Draw on n_x axes, or on new ones."""
    n_x = len(rollout.names)
    check_probability("coverage", coverage)
    if axes is None:
        axes = pyplot().subplots(
            n_x, 1, figsize=(7, 0.8 + 2.4 * n_x), sharex=True, squeeze=False, layout="constrained"
        )[1]
    axes = np.ravel(axes)
    if len(axes) != n_x:
        raise ValueError(f"ax must be {n_x} axes, one for each state, got {len(axes)}")
    steps = np.arange(rollout.steps + 1)
    low, middle, high = np.moveaxis(rollout.quantiles([(1 - coverage) / 2, 0.5, (1 + coverage) / 2]), -1, 0)
    for i, ax in enumerate(axes):
        for name, share in reversed(_cumulative(rollout, i).items()):
            label, color = SHOWN.get(name, (f"{coverage:.0%} of the paths", LIGHT["observation"]))
            lower, upper = (middle[:, i] + share * (end[:, i] - middle[:, i]) for end in (low, high))
            ax.fill_between(steps, lower, upper, color=color, lw=0, label=label)
        ax.plot(steps, middle[:, i], color=LIGHT["mean"], label="median")
        ax.set_ylabel(rollout.names[i])
        ax.margins(x=0)
    axes[-1].set_xlabel("step")
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].legend(handles[::-1], labels[::-1], frameon=False, fontsize=8)
    return axes


def _cumulative(rollout: Rollout, state: int) -> dict[str, Any]:
    """Width of the tube up to each cause, relative to the whole: roots of the cumulative Shapley shares."""
    if rollout.causes is None:
        return {"all": np.ones(rollout.steps + 1)}
    shares = {
        name: np.maximum(rollout.causes.shares[name][:, state], 0.0)
        for name in SHOWN
        if name in rollout.causes.shares
    }
    total = np.maximum(sum(shares.values()), np.finfo(float).tiny)
    sums = np.cumsum(list(shares.values()), axis=0)
    return dict(zip(shares, np.sqrt(sums / total), strict=True))
