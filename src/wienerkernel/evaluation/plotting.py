"""Plotting: Display classes in the style of scikit-learn (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..palette import CAUSES, LIGHT, pyplot
from ..posterior import SeparateOutputs, Uncertainty
from .diagnostics import BAND, ScoreReport, pit_band
from .pipelines import unwrapped
from .report.numbers import target_names
from .report.slices import Path, means, middle, observations, shift

__all__ = ["ScoreDisplay", "TubeDisplay"]

GRID = 200
"""Points of a curve along one of several inputs."""
MOST = 2000
"""Samples that are shown."""


@dataclass
class TubeDisplay:
    """Mean and three nested tubes over one input: noise in the data, unexplored inputs, noise of the observation.

    Parameters
    ----------
    x : ndarray of shape (m,)
    mean : ndarray of shape (m,)
    uncertainty : Uncertainty
        Variances at ``x``, each of shape (m,).
    width : float, default=1.0
        Half-width of the tubes in standard deviations.
    data : pair of ndarray of shape (n,), default=None
        Samples to show: values of the input and observations.
    several : bool, default=False
        Whether there are further inputs, so that observations are shown as partial residuals: the curve at their value of
        this input, plus their residuals.
    x_name, y_name : str, default=""
        Names of the axes.
    inverse : callable, default=None
        Of the transform of a model: curves and data, which are on the transformed scale, are drawn in units of y.

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
    data: tuple[FloatArray, FloatArray] | None = None
    several: bool = False
    x_name: str = ""
    y_name: str = ""
    inverse: Callable[[FloatArray], FloatArray] | None = None
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        feature: int | str = 0,
        at: ArrayLike | None = None,
        output: int = 0,
        width: float = 1.0,
        ax: Any = None,
    ) -> TubeDisplay:
        """Predict along one input with a fitted model, and plot.

        Parameters
        ----------
        estimator : WienerKernelRegressor or Pipeline
            Of a model with a ``transform``, mean and tubes of the transformed scale are transformed back. A pipeline, whose
            steps before the model are applied to the curve, needs ``X``.
        X : array-like of shape (m,) or (m, d), default=None
            Of one input, the points of the curve, in any order. Of several, samples: the curve extends over their range.
            By default, the samples that the model was fitted to.
        y : array-like of shape (m,) or (m, n_y), default=None
            Observations at ``X``, to be shown, at most 2000; without ``X``, those of the fit are shown. With several
            inputs, residuals are shown around the curve.
        feature : int or str, default=0
            The input along which the curve runs: its index or its name.
        at : array-like of shape (d,), default=None
            Where the other inputs are; by default at the sample nearest the median.
        output : int, default=0
            Which of several outputs.
        width : float, default=1.0
        ax : matplotlib Axes, default=None

        Returns
        -------
        TubeDisplay
        """
        model, _ = unwrapped(estimator)
        n_outputs = len(model.output_scale_)
        if not 0 <= output < n_outputs:
            raise ValueError(f"output must be an index from 0 to {n_outputs - 1}, got {output!r}")
        posterior, column = model.posterior_, output
        if isinstance(posterior, SeparateOutputs):
            posterior, column = posterior.outputs[output], 0
        own = X is None
        if own:
            if estimator is not model:
                raise ValueError("a display of a pipeline needs X, the data before the first step")
            X, y = observations(posterior)
        names = [str(name) for name in getattr(X, "columns", getattr(model, "feature_names_in_", []))]
        points = np.asarray(X, dtype=float)
        points = points[:, None] if points.ndim == 1 else points
        if estimator is model and points.shape[1] != model.n_features_in_:
            raise ValueError(
                f"X must have the {model.n_features_in_} inputs of the model, got {points.shape[1]}"
            )
        several = points.shape[1] > 1
        j = _index(feature, names, points.shape[1])
        curve = _curve(points, j, at, given=not own)

        def seen(rows: FloatArray) -> FloatArray:
            """Rows as the model sees them."""
            if estimator is model:
                return rows
            table = type(X)(rows, columns=X.columns) if hasattr(X, "columns") else rows
            return np.asarray(unwrapped(estimator, table)[1], dtype=float)

        along, transform, data = seen(curve), posterior.transform, None
        parts, scale = posterior.common_uncertainty(along), posterior.output_scale[column] ** 2
        parts = replace(parts, **{part.name: scale * getattr(parts, part.name) for part in fields(parts)})
        if y is not None:
            some = np.sort(np.random.default_rng(0).permutation(len(points))[:MOST])
            rows, values = points[some], np.asarray(y, dtype=float).reshape(len(points), -1)[some]
            observed = values[:, column if own else output]
            observed = observed if transform is None or own else transform(observed)
            if several:  # onto the curve, so that other inputs do not scatter them
                onto = Path([j], curve[0]).onto(rows)
                observed = observed + shift(posterior, seen(rows), seen(onto))[:, column]
            data = rows[:, j], observed
        targets = target_names(getattr(model, "target_names_in_", None), n_outputs)
        display = cls(
            curve[:, j],
            means(posterior, along)[:, column],
            parts,
            width,
            data,
            several,
            names[j] if names else f"x{j + 1}" if several else "x",
            str(getattr(y, "name", None) or targets[output]),
            None if transform is None else transform.inverse,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> TubeDisplay:
        """Draw on the given axes, or on new ones."""
        if ax is None:
            _, ax = pyplot().subplots()
        tubes = [
            ("estimate", self.uncertainty.estimate, CAUSES["noise"]),
            ("function", self.uncertainty.epistemic, f"+ {CAUSES['model']}"),
            ("observation", self.uncertainty.total, f"+ {CAUSES['aleatoric']}"),
        ]

        def drawn(values: FloatArray) -> FloatArray:
            """Values on the scale of the axis."""
            if self.inverse is None:
                return values
            y = self.inverse(values)
            return np.where(np.isfinite(y), y, np.nan)

        for k, (law, variance, label) in enumerate(tubes):
            half = self.width * np.sqrt(variance)
            style = {"color": LIGHT[law], "lw": 0, "zorder": 1 - k / 10}  # wider tubes behind
            ax.fill_between(self.x, drawn(self.mean - half), drawn(self.mean + half), label=label, **style)
        center = "mean" if self.inverse is None else "mean, transformed back"
        ax.plot(self.x, drawn(self.mean), color=LIGHT["mean"], label=center)
        if self.data is not None:
            label = "partial residuals" if self.several else "data"
            x, y = self.data
            ax.plot(x, drawn(y), ".", color=LIGHT["text"], ms=4, alpha=0.6, label=label)
        ax.set(xlabel=self.x_name, ylabel=self.y_name)
        ax.margins(x=0)
        title = f"± {self.width:g} standard deviation{'s' * (self.width != 1)}"
        ax.legend(frameon=False, fontsize="small", title=title, title_fontsize="small")
        self.ax_ = ax
        return self


def _index(feature: int | str, names: list[str], d: int) -> int:
    """The index of an input that is given by name or index."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature must be one of {', '.join(names) or 'no names'}, got {feature!r}")
        return names.index(feature)
    if not 0 <= feature < d:
        raise ValueError(f"feature must be an index from 0 to {d - 1}, got {feature!r}")
    return feature


def _curve(points: FloatArray, j: int, at: ArrayLike | None, given: bool) -> FloatArray:
    """Points along input j: those given, sorted, if that is the only input, else over the range of the samples."""
    d = points.shape[1]
    if d == 1 and given:
        return np.sort(points, axis=0)
    base = middle(points) if at is None else np.asarray(at, dtype=float)
    if base.shape != (d,):
        raise ValueError(f"at must have shape ({d},), one value for each input, got {base.shape}")
    return Path([j], base)(np.linspace(points[:, j].min(), points[:, j].max(), GRID))


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
    ['PIT: flat if right', 'calibration: diagonal if right', 'residuals: diagonal if right']
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
        ax: Any = None,
    ) -> ScoreDisplay:
        """Score a fitted model on its own samples, each left out in turn, or on new data, and plot.

        Parameters
        ----------
        estimator : WienerKernelRegressor or Pipeline
        X : array-like of shape (m, d), default=None
        y : array-like of shape (m,) or (m, n_y), default=None
        bins : int, default=10
        ax : three matplotlib Axes, default=None

        Returns
        -------
        ScoreDisplay
        """
        model, X = unwrapped(estimator, X)
        return cls(model.score_report(X, y), bins).plot(ax=ax)

    def plot(self, ax: Any = None) -> ScoreDisplay:
        """Draw on three given axes, or on new ones."""
        if ax is None:
            _, ax = pyplot().subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
        if np.size(ax) != 3:
            raise ValueError(f"ax must be three Axes, got {np.size(ax)}")
        for each, draw in zip(ax, (self._histogram, self._calibration, self._residuals), strict=True):
            draw(each)
        self.axes_ = ax
        return self

    def _histogram(self, ax: Any) -> None:
        pit = self.report.pit.ravel()
        low, high = pit_band(pit.size, 1 / self.bins)
        ax.hist(pit, bins=self.bins, range=(0.0, 1.0), rwidth=0.95, color=LIGHT["function-line"], alpha=0.75)
        band = {"color": LIGHT["observation-line"], "alpha": 0.3, "lw": 0, "zorder": 0}
        ax.axhspan(low, high, label=f"{100 * BAND:.0f} % if right", **band)
        ax.axhline(pit.size / self.bins, color=LIGHT["text"], lw=1, ls="--")
        ax.set_ylim(0, 1.25 * max(high, ax.get_ylim()[1]))  # room for the legend
        ax.set(title="PIT: flat if right", xlabel="probability integral transform", ylabel="samples")
        ax.set_xlim(0, 1)
        ax.legend(frameon=False)

    def _calibration(self, ax: Any) -> None:
        levels = np.linspace(0.0, 1.0, 101)
        n = self.report.pit.size
        low, high = pit_band(n, levels)
        ax.fill_between(levels, low / n, high / n, color=LIGHT["observation"], lw=0)
        ax.plot(levels, levels, color=LIGHT["text"], lw=1, ls="--")
        ax.plot(levels, self.report.calibration(levels), color=LIGHT["function-line"])
        ax.set(xlabel="predicted probability", ylabel="fraction of samples", xlim=(0, 1), ylim=(0, 1))
        ax.set_title("calibration: diagonal if right")

    def _residuals(self, ax: Any) -> None:
        of_noise, of_residuals = self.report.quantile_pairs()
        ends = [min(of_noise[0], of_residuals[0]), max(of_noise[-1], of_residuals[-1])]
        ax.plot(ends, ends, color=LIGHT["text"], lw=1, ls="--")
        ax.plot(of_noise, of_residuals, ".", color=LIGHT["function-line"])
        ax.set(xlabel="quantile of the noise", ylabel="standardized residual")
        ax.set_title("residuals: diagonal if right")
