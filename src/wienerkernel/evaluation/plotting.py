"""Plotting: Display classes in the style of scikit-learn (needs matplotlib)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..palette import CAUSES, LIGHT
from ..posterior import Uncertainty
from .diagnostics import BAND, ScoreReport, pit_band

__all__ = ["ScoreDisplay", "TubeDisplay"]


@dataclass
class TubeDisplay:
    """Mean and three nested tubes over one input: noise in the data, unexplored inputs, noise of the observation.

    Parameters
    ----------
    x : ndarray of shape (m,)
    mean : ndarray of shape (m,)
    uncertainty : Uncertainty
        Variances at ``x``.
    width : float, default=1.0
        Half-width of the tubes in standard deviations.

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
            One with a ``transform`` is shown on the transformed scale.
        x : array-like of shape (m,)
        width : float, default=1.0
        ax : matplotlib Axes, default=None

        Returns
        -------
        TubeDisplay
        """
        if estimator.n_features_in_ != 1:
            raise ValueError(
                f"a TubeDisplay needs a model of one input, got {estimator.n_features_in_} inputs"
            )
        grid = np.sort(np.asarray(x, dtype=float), axis=None)
        posterior, column = estimator.posterior_, grid[:, None]
        display = cls(grid, posterior.mean(column), posterior.uncertainty(column), width).plot(ax=ax)
        if hasattr(estimator, "feature_names_in_"):
            display.ax_.set_xlabel(estimator.feature_names_in_[0])
        return display

    def plot(self, ax: Any = None) -> TubeDisplay:
        """Draw on the given axes, or on new ones."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        tubes = [
            ("estimate", self.uncertainty.estimate, CAUSES["noise"]),
            ("function", self.uncertainty.epistemic, f"+ {CAUSES['model']}"),
            ("observation", self.uncertainty.total, f"+ {CAUSES['aleatoric']}"),
        ]
        for k, (law, variance, label) in enumerate(tubes):
            half = self.width * np.sqrt(variance)
            style = {"color": LIGHT[law], "lw": 0, "zorder": 1 - k / 10}  # wider tubes behind
            ax.fill_between(self.x, self.mean - half, self.mean + half, label=label, **style)
        ax.plot(self.x, self.mean, color=LIGHT["mean"], label="mean")
        self.ax_ = ax
        return self


@dataclass
class ScoreDisplay:
    """Is the model well calibrated? PIT histogram, calibration curve, and residuals against the noise law.

    Bands hold 95 % of the values if the predicted laws are right.

    Parameters
    ----------
    report : ScoreReport
    bins : int, default=10
        Bins of the histogram.

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
        """Score a fitted model on its own samples, each left out in turn, or on new data, and plot.

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
        """Draw on the given axes, or on new ones."""
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
        for ax, draw in zip(axes, (self._histogram, self._calibration, self._residuals), strict=True):
            draw(ax)
        self.axes_ = axes
        return self

    def _histogram(self, ax: Any) -> None:
        pit = self.report.pit.ravel()
        low, high = pit_band(pit.size, 1 / self.bins)
        ax.hist(pit, bins=self.bins, range=(0.0, 1.0), rwidth=0.95, color=LIGHT["function-line"], alpha=0.75)
        ax.axhspan(
            low, high, color=LIGHT["observation-line"], alpha=0.3, lw=0, label=f"{100 * BAND:.0f} % if right"
        )
        ax.axhline(pit.size / self.bins, color=LIGHT["text"], lw=1, ls="--")
        ax.set_ylim(0, 1.25 * max(high, ax.get_ylim()[1]))  # room for the legend
        ax.set(title="PIT", xlabel="probability integral transform", ylabel="samples", xlim=(0, 1))
        ax.legend(frameon=False)

    def _calibration(self, ax: Any) -> None:
        levels = np.linspace(0.0, 1.0, 101)
        n = self.report.pit.size
        low, high = pit_band(n, levels)
        ax.fill_between(levels, low / n, high / n, color=LIGHT["observation"], lw=0)
        ax.plot(levels, levels, color=LIGHT["text"], lw=1, ls="--")
        ax.plot(levels, self.report.calibration(levels), color=LIGHT["function-line"])
        ax.set(title="calibration", xlabel="predicted probability", ylabel="fraction of samples")
        ax.set(xlim=(0, 1), ylim=(0, 1))

    def _residuals(self, ax: Any) -> None:
        of_noise, of_residuals = self.report.quantile_pairs()
        ends = [min(of_noise[0], of_residuals[0]), max(of_noise[-1], of_residuals[-1])]
        ax.plot(ends, ends, color=LIGHT["text"], lw=1, ls="--")
        ax.plot(of_noise, of_residuals, ".", color=LIGHT["function-line"])
        ax.set(title="residuals", xlabel="quantile of the noise", ylabel="standardized residual")
