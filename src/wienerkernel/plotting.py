"""Pictures of predictions, in the manner of scikit-learn's Display classes. Needs matplotlib."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._typing import FloatArray
from .prediction import Uncertainty

__all__ = ["COLOURS", "TubeDisplay"]

COLOURS = {
    "truth": "#1f4fd8",
    "mean": "#d62728",
    "estimate": "#3fae49",
    "function": "#8c8c8c",
    "observation": "#d9d9d9",
    "draws": "#f7a8c4",
}
"""The paper's colours: the three tubes are green, dark grey and light grey."""


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
    >>> model = WienerKernelRegressor(RBF(1.0)).fit([[0.0], [1.0]], [0.0, 1.0])
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
            ax.fill_between(self.x, self.mean - half, self.mean + half, color=COLOURS[key], lw=0, label=label)
        ax.plot(self.x, self.mean, color=COLOURS["mean"], label="mean")
        self.ax_ = ax
        return self
