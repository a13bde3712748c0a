"""Pictures of predictions, in the manner of scikit-learn's Display classes. Needs matplotlib."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..posterior import Uncertainty
from .diagnostics import ScoreReport

__all__ = ["COLORS", "ScoreDisplay", "TubeDisplay"]

COLORS = {
    "truth": "#1f4fd8",
    "mean": "#d62728",
    "estimate": "#3fae49",
    "function": "#8c8c8c",
    "observation": "#d9d9d9",
    "draws": "#f7a8c4",
}
"""The paper's colors: the three tubes are green, dark gray and light gray."""


@dataclass
class TubeDisplay:
    """Mean and the three uncertainty tubes over one input: data noise, unexplored places, irreducible noise.

    Parameters
    ----------
    x : ndarray of shape (m,)
    mean : ndarray of shape (m,)
    uncertainty : Uncertainty
        Variances at ``x``.
    width : float
        Half width of the tubes in standard deviations.

    Attributes
    ----------
    ax_ : matplotlib Axes

    Examples
    --------
    >>> from wienerkernel import RBF, TubeDisplay, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> display = TubeDisplay.from_estimator(model, np.linspace(0, 1, 50))
    >>> len(display.ax_.collections)   # the tubes
    3
    """

    x: FloatArray
    mean: FloatArray
    uncertainty: Uncertainty
    width: float = 1.0
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, x: ArrayLike, *, width: float = 1.0, ax: Any = None
    ) -> TubeDisplay:
        """Predict at ``x`` with a fitted :class:`~wienerkernel.WienerKernelRegressor` of one input, and plot.

        Parameters
        ----------
        estimator : WienerKernelRegressor
        x : array-like of shape (m,)
        width : float, default=1.0
        ax : matplotlib Axes, default=None

        Returns
        -------
        TubeDisplay
        """
        grid = np.asarray(x, dtype=float).ravel()
        column = grid[:, None]
        return cls(grid, estimator.predict(column), estimator.uncertainty(column), width).plot(ax=ax)

    def plot(self, ax: Any = None) -> TubeDisplay:
        """Draw on the given axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        TubeDisplay
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        tubes = [
            ("observation", self.uncertainty.total, "new observation"),
            ("function", self.uncertainty.epistemic, "function value"),
            ("estimate", self.uncertainty.noise, "noise in the data"),
        ]
        for key, variance, label in tubes:
            half = self.width * np.sqrt(variance)
            ax.fill_between(self.x, self.mean - half, self.mean + half, color=COLORS[key], lw=0, label=label)
        ax.plot(self.x, self.mean, color=COLORS["mean"], label="mean")
        self.ax_ = ax
        return self


@dataclass
class ScoreDisplay:
    """Is the model right about its own errors? PIT histogram, calibration curve, residuals against the noise law.

    Parameters
    ----------
    report : ScoreReport
    bins : int
        Of the histogram.

    Attributes
    ----------
    axes_ : ndarray of shape (3,) of matplotlib Axes

    Examples
    --------
    >>> from wienerkernel import RBF, ScoreDisplay, WienerKernelRegressor
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, np.sin(X[:, 0]))
    >>> [ax.get_title() for ax in ScoreDisplay.from_estimator(model).axes_]
    ['PIT', 'calibration', 'residuals']
    """

    report: ScoreReport
    bins: int = 10
    axes_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        bins: int = 10,
        axes: Any = None,
    ) -> ScoreDisplay:
        """Score a fitted model on its own samples, each left out in turn, or on new ones, and plot.

        Parameters
        ----------
        estimator : WienerKernelRegressor
        X : array-like of shape (m, d), default=None
        y : array-like of shape (m,) or (m, n_y), default=None
        bins : int, default=10
        axes : three matplotlib Axes, default=None

        Returns
        -------
        ScoreDisplay
        """
        return cls(estimator.score_report(X, y), bins).plot(axes=axes)

    def plot(self, axes: Any = None) -> ScoreDisplay:
        """Draw on the given axes, or on new ones.

        Parameters
        ----------
        axes : three matplotlib Axes, default=None

        Returns
        -------
        ScoreDisplay
        """
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
        histogram, curve, residuals = axes
        self._histogram(histogram)
        self._calibration(curve)
        self._residuals(residuals)
        self.axes_ = axes
        return self

    def _histogram(self, ax: Any) -> None:
        from scipy.stats import binom

        pit = self.report.pit.ravel()
        expected = pit.size / self.bins
        low, high = np.asarray(binom.ppf([0.025, 0.975], pit.size, 1 / self.bins))
        ax.axhspan(low, high, color=COLORS["observation"], lw=0, label="95 % if right")
        ax.hist(pit, bins=self.bins, range=(0.0, 1.0), color=COLORS["estimate"], alpha=0.75)
        ax.axhline(expected, color=COLORS["mean"], lw=1)
        ax.set_ylim(0, 1.25 * max(high, ax.get_ylim()[1]))  # room for the legend
        ax.set(title="PIT", xlabel="probability integral transform", ylabel="samples", xlim=(0, 1))
        ax.legend(frameon=False)

    def _calibration(self, ax: Any) -> None:
        levels = np.linspace(0.0, 1.0, 101)
        n = self.report.pit.size
        band = 1.96 * np.sqrt(levels * (1 - levels) / n)
        ax.fill_between(levels, levels - band, levels + band, color=COLORS["observation"], lw=0)
        ax.plot(levels, levels, color=COLORS["function"], lw=1)
        ax.plot(levels, self.report.calibration(levels), color=COLORS["mean"])
        ax.set(
            title="calibration",
            xlabel="predicted probability",
            ylabel="observed frequency",
            xlim=(0, 1),
            ylim=(0, 1),
        )

    def _residuals(self, ax: Any) -> None:
        of_noise, of_residuals = self.report.quantile_pairs()
        ends = [min(of_noise[0], of_residuals[0]), max(of_noise[-1], of_residuals[-1])]
        ax.plot(ends, ends, color=COLORS["function"], lw=1)
        ax.plot(of_noise, of_residuals, ".", color=COLORS["mean"])
        ax.set(title="residuals", xlabel="quantile of the noise", ylabel="standardized residual")
