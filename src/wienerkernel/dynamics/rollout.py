"""Simulated trajectories of a learned system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..palette import CAUSES, LIGHT, pyplot
from ..text import check_probability
from .causes import Causes
from .checks import step_number
from .state_law import StateDistribution

if TYPE_CHECKING:
    from ..noise import Noise
    from ..transform import Transform

__all__ = ["SHOWN", "Rollout"]

SHOWN = {
    "noise": (CAUSES["noise"], LIGHT["estimate"]),
    "model": (CAUSES["model"], LIGHT["function"]),
    "process": (CAUSES["aleatoric"], LIGHT["observation"]),
    "initial": ("initial state", LIGHT["initial"]),
}
"""Names and colors of the causes, from the inner tube outward."""


@dataclass(frozen=True)
class Rollout:
    """Simulated trajectories of a learned system.

    Attributes
    ----------
    states : ndarray of shape (n_paths, steps + 1, n_x)
        NaN from the step at which a path diverges.
    diverged : ndarray of bool of shape (n_paths,)
    causes : Causes or None
        Variances by cause.
    names : tuple of str
        Of the states.

    Examples
    --------
    >>> from wienerkernel import Dynamics, RBF, WienerKernelRegressor
    >>> X = np.linspace(-2, 2, 9)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, 0.8 * np.sin(X[:, 0]))
    >>> r = Dynamics(model).rollout([1.0], steps=3, n_paths=200, random_state=0)
    >>> r.states.shape, r.distribution(3).ppf([[0.05], [0.95]]).shape
    ((200, 4, 1), (2, 1))
    """

    states: FloatArray
    diverged: FloatArray
    causes: Causes | None
    names: tuple[str, ...]
    _laws: tuple[Noise | None, ...]
    _transforms: tuple[Transform | None, ...]
    _last: FloatArray  # base, location and scale of the law of each state, (3, n_paths, steps + 1, n_x)

    def __repr__(self) -> str:
        n, steps, n_x = self.states.shape
        return f"<Rollout: {n} paths, {steps - 1} steps, {n_x} states, {int(self.diverged.sum())} diverged>"

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.states.shape[1]) - 1

    @property
    def transformed(self) -> tuple[bool, ...]:
        """Whether each state has a transform, on whose scale its causes are."""
        return tuple(transform is not None for transform in self._transforms)

    def distribution(self, step: int) -> StateDistribution:
        """The law of the states after ``step`` steps, of the paths that have not diverged.

        Parameters
        ----------
        step : int
            From 0 to ``steps``; -1 is the last.

        Returns
        -------
        StateDistribution
            Of shape (n_x,).
        """
        k = step_number(step, self.steps)
        laws = self._laws if k else (None,) * len(self.names)  # the initial states are what they are
        base, location, scale = self._last[:, :, k]
        return StateDistribution(self.states[:, k], laws, base, location, scale, self._transforms)

    def quantiles(self, levels: ArrayLike) -> FloatArray:
        """Quantiles of every state at every step.

        Parameters
        ----------
        levels : array-like of shape (q,)

        Returns
        -------
        ndarray of shape (steps + 1, n_x, q)
        """
        q = np.atleast_1d(np.asarray(levels, dtype=float))
        return np.stack([self.distribution(k).ppf(q[:, None]).T for k in range(self.steps + 1)])

    def mean(self) -> FloatArray:
        """Mean of every state at every step, (steps + 1, n_x)."""
        return np.stack([self.distribution(k).mean() for k in range(self.steps + 1)])

    def var(self) -> FloatArray:
        """Variance of every state at every step, (steps + 1, n_x)."""
        return np.stack([self.distribution(k).var() for k in range(self.steps + 1)])

    def plot(self, coverage: float = 0.9, ax: Any = None) -> Any:
        """Draw the tube of each state over the steps, divided by cause.

        Parameters
        ----------
        coverage : float, default=0.9
            Of the whole tube. Inner tubes have its width times the root of the share of the variance.
        ax : array of n_x matplotlib Axes, default=None

        Returns
        -------
        ndarray of n_x matplotlib Axes
        """
        n_x = len(self.names)
        check_probability("coverage", coverage)
        if ax is None:
            ax = pyplot().subplots(
                n_x, 1, figsize=(7, 0.8 + 2.4 * n_x), sharex=True, squeeze=False, layout="constrained"
            )[1]
        axes = np.ravel(ax)
        if len(axes) != n_x:
            raise ValueError(f"ax must be {n_x} axes, one for each state, got {len(axes)}")
        steps = np.arange(self.steps + 1)
        low, middle, high = np.moveaxis(self.quantiles([(1 - coverage) / 2, 0.5, (1 + coverage) / 2]), -1, 0)
        for i, axis in enumerate(axes):
            for name, share in reversed(self._cumulative(i).items()):
                label, color = SHOWN.get(name, (f"{coverage:.0%} of the paths", LIGHT["observation"]))
                lower, upper = (middle[:, i] + share * (end[:, i] - middle[:, i]) for end in (low, high))
                axis.fill_between(steps, lower, upper, color=color, lw=0, label=label)
            axis.plot(steps, middle[:, i], color=LIGHT["mean"], label="median")
            axis.set_ylabel(self.names[i])
            axis.margins(x=0)
        axes[-1].set_xlabel("step")
        handles, labels = axes[0].get_legend_handles_labels()
        axes[0].legend(handles[::-1], labels[::-1], frameon=False, fontsize=8)
        return axes

    def _cumulative(self, state: int) -> dict[str, Any]:
        """Width of the tube up to each cause, relative to the whole: roots of the cumulative Shapley shares."""
        if self.causes is None:
            return {"all": np.ones(self.steps + 1)}
        known = self.causes.shares
        shares = {name: np.maximum(known[name][:, state], 0.0) for name in SHOWN if name in known}
        total = np.maximum(sum(shares.values()), np.finfo(float).tiny)
        sums = np.cumsum(list(shares.values()), axis=0)
        return dict(zip(shares, np.sqrt(sums / total), strict=True))
