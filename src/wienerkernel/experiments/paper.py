"""The numerical section of the paper: its experiments as data, its two figures, its numbers as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from .._typing import FloatArray
from ..evaluation.plotting import TubeDisplay
from ..noise import as_noise
from ..palette import LIGHT
from ..regressor import WienerKernelRegressor
from .calibration import Calibration, calibrate
from .output import new_figure, save_figure, table_rows, write_csv
from .system import GAMMA, NORMAL, kernel, truth

__all__ = ["Experiment", "reproduce"]

N_PLACES, N_REPEATS = (2, 3, 5), (1, 5, 25)
N_FUNCTIONS = 5000
GRID = np.linspace(-6.0, 6.0, 241)


@dataclass(frozen=True)
class Experiment:
    """One fit of the paper: N_x = ``n_places`` evenly spaced inputs in [-5, 5] with N_sam = ``n_repeats`` samples each."""

    n_places: int
    n_repeats: int
    noise: str
    seed: int

    def data(self) -> tuple[FloatArray, FloatArray]:
        """Samples x (n,) and y (n,)."""
        x = np.repeat(np.linspace(-5.0, 5.0, self.n_places), self.n_repeats)
        generator = np.random.default_rng([self.seed, self.n_places, self.n_repeats])
        return x, truth(x) + as_noise(self.noise).rvs(len(x), random_state=generator)

    def fit(self) -> WienerKernelRegressor:
        """Regression on the data with the true noise law."""
        x, y = self.data()
        return WienerKernelRegressor(kernel(), noise=self.noise, trend=None, tuning=None).fit(x[:, None], y)


def reproduce(out: Path, seed: int = 0) -> Iterator[tuple[str, Path]]:
    """Write the figures and the numbers to a folder, and yield a description and the path of each file."""
    out.mkdir(parents=True, exist_ok=True)
    panels = [Experiment(n_x, n_sam, NORMAL, seed) for n_sam in N_REPEATS for n_x in N_PLACES]
    models = [(panel, panel.fit()) for panel in panels]
    yield "numbers of Figure 1", write_csv(out / "figure1.csv", _tube_rows(models))
    yield from save_figure("Figure 1, the three tubes", _figure_tubes(models), out / "figure1")

    experiment = Experiment(5, 1, GAMMA, seed)
    model = experiment.fit()
    yield "numbers of Figure 2", write_csv(out / "figure2.csv", _density_rows(experiment, model))
    yield from save_figure("Figure 2, Gamma noise", _figure_densities(experiment, model), out / "figure2")

    result = calibrate(kernel(), GAMMA, np.linspace(-5.0, 5.0, 5), np.linspace(-5.0, 5.0, 81), seed=seed)
    yield result.summary(), write_csv(out / "calibration.csv", result.rows())
    yield from save_figure("miss rates of 90 % intervals", _figure_calibration(result), out / "calibration")


def _tube_rows(models: list[tuple[Experiment, WienerKernelRegressor]]) -> Iterator[dict[str, Any]]:
    for panel, model in models:
        mean, parts = model.predict(GRID[:, None]), model.uncertainty(GRID[:, None])
        columns = {
            "x": GRID,
            "f": truth(GRID),
            "mean": mean,
            "sigma_WK": np.sqrt(parts.noise),
            "P": np.sqrt(parts.model),
            "sigma_GP": np.sqrt(parts.epistemic),
            "sigma_GP_tilde": np.sqrt(parts.total),
        }
        yield from table_rows(columns, N_x=panel.n_places, N_sam=panel.n_repeats)


def _density_rows(experiment: Experiment, model: WienerKernelRegressor) -> Iterator[dict[str, Any]]:
    x, y = experiment.data()
    estimate = model.predict_distribution(x[:, None])
    columns = {
        "x": x,
        "y": y,
        "f": truth(x),
        "mean": estimate.mean(),
        "std": estimate.std(),
        "skewness": estimate.skewness(),
        "excess_kurtosis": estimate.kurtosis(),
        **{f"quantile_{q}": estimate.ppf(q) for q in (0.05, 0.5, 0.95)},
    }
    return table_rows(columns)


def _figure_tubes(models: list[tuple[Experiment, WienerKernelRegressor]]) -> Any:
    figure = new_figure(figsize=(11, 9))
    axes = figure.subplots(len(N_REPEATS), len(N_PLACES), sharex=True, sharey=True)
    for (panel, model), ax, letter in zip(models, axes.flat, "ABCDEFGHI", strict=True):
        TubeDisplay.from_estimator(model, GRID, ax=ax)
        ax.get_legend().remove()  # the panels share one, and the labels
        ax.set(xlabel="", ylabel="")
        ax.plot(GRID, truth(GRID), color=LIGHT["truth"], label="true function")
        ax.plot(*panel.data(), "x", color="black", ms=5, label="data")
        ax.set_title(
            f"{letter})  $N_x = {panel.n_places}$,  $N_{{sam}} = {panel.n_repeats}$", loc="left", fontsize=10
        )
        ax.margins(x=0)
    for ax in axes[-1]:
        ax.set_xlabel("$x_k$")
    for ax in axes[:, 0]:
        ax.set_ylabel("$x_{k+1}$")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _figure_densities(experiment: Experiment, model: WienerKernelRegressor) -> Any:
    figure = new_figure(figsize=(12, 5.2))
    left = figure.add_subplot(1, 2, 1, projection="3d", computed_zorder=False)
    right = figure.add_subplot(1, 2, 2)
    _draw_functions(left, experiment, model)
    _draw_density_at_zero(right, experiment, model)
    return figure


def _draw_functions(ax: Any, experiment: Experiment, model: WienerKernelRegressor) -> None:
    """Sampled functions in the plane, and the density of the estimate above it at each input of the data."""
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    x, y = experiment.data()
    grid = np.linspace(-5.0, 5.0, 101)
    estimate = model.predict_distribution(x[:, None])
    heights = estimate.ppf(np.linspace(0.01, 0.9999, 300)[:, None])
    draws = model.predict_distribution(grid[:, None]).rvs(N_FUNCTIONS, random_state=experiment.seed)
    draws[draws < heights.min()] = np.nan  # outside the axes
    flat = np.zeros_like(draws)
    curves = np.stack([np.broadcast_to(grid, draws.shape), draws, flat], axis=-1)
    thin = {"lw": 0.3, "alpha": 0.15, "rasterized": True}
    ax.add_collection3d(Line3DCollection(curves, colors=LIGHT["estimate"], zorder=1, **thin))
    ax.plot(grid, truth(grid), 0, color=LIGHT["truth"], zorder=3, label="true function")
    ax.plot(grid, model.predict(grid[:, None]), 0, color=LIGHT["mean"], ls="--", zorder=4, label="mean")
    ax.plot(x, y, 0, "x", color="black", zorder=5, label="data")
    density = estimate.pdf(heights)
    line = {"color": LIGHT["estimate-line"], "lw": 1.2}
    for k, place in enumerate(x):
        ax.plot(np.full(len(heights), place), heights[:, k], density[:, k], zorder=6 - k / 10, **line)
    ax.set(xlabel="$x_k$", ylabel="$x_{k+1}$", zlabel="density", ylim=(heights.min(), heights.max() + 0.5))
    ax.set_title(f"{N_FUNCTIONS} functions, and the density of the estimate", fontsize=10)
    ax.view_init(elev=38, azim=-62)
    ax.plot([], [], color=LIGHT["estimate"], label="sampled functions")
    ax.legend(loc="upper left", fontsize=8, frameon=False)


def _draw_density_at_zero(ax: Any, experiment: Experiment, model: WienerKernelRegressor) -> None:
    """Histogram at x = 0, the exact density, and the Gaussians with the variances of the three tubes."""
    zero = np.zeros((1, 1))
    estimate = model.predict_distribution(zero)
    draws = estimate.rvs(N_FUNCTIONS, random_state=experiment.seed)[:, 0]
    mean, parts = float(model.predict(zero)[0]), model.uncertainty(zero)
    heights = np.linspace(mean - 4.5, mean + 3.5, 801)
    bars = {"bins": 80, "range": (heights[0], heights[-1]), "color": LIGHT["estimate"], "alpha": 0.5}
    ax.hist(draws, density=True, label="histogram", **bars)
    exact = {"color": LIGHT["estimate-line"], "lw": 2}
    ax.plot(heights, estimate.pdf(heights), label="exact density of the estimate", **exact)
    for name, variance, law in [
        (r"$\mathcal{N}(\mu, \sigma_{WK}^2)$", parts.noise, "estimate"),
        (r"$\mathcal{N}(\mu, \sigma_{GP}^2)$", parts.epistemic, "function"),
        (r"$\mathcal{N}(\mu, \tilde\sigma_{GP}^2)$", parts.total, "observation"),
    ]:
        gaussian = stats.norm.pdf(heights, mean, np.sqrt(variance[0]))
        ax.plot(heights, gaussian, color=LIGHT[f"{law}-line"], ls="--", label=name)
    ax.axvline(float(truth(zero)[0, 0]), color=LIGHT["truth"], lw=1, label="true value")
    ax.set(xlabel="$x_{k+1}$ at $x_k = 0$", ylabel="density")
    ax.set_title("The same at $x_k = 0$", fontsize=10)
    ax.margins(x=0)
    ax.legend(fontsize=8, frameon=False, loc="upper left")


def _figure_calibration(result: Calibration) -> Any:
    """Miss rates below and above a 90 % interval: 5 % each is calibrated."""
    figure = new_figure(figsize=(9, 3.6))
    axes = figure.subplots(1, 2, sharey=True)
    for ax, rates, title in (
        (axes[0], result.exact, "exact law"),
        (axes[1], result.gaussian, "Gaussian with the same variance"),
    ):
        ax.axhline(5.0, color="black", lw=0.8, ls=":")
        ax.plot(result.x, 100 * rates[:, 0], color=LIGHT["mean"], label="true value below")
        ax.plot(result.x, 100 * rates[:, 1], color=LIGHT["function-line"], label="true value above")
        ax.set_title(title, fontsize=10)
        ax.margins(x=0)
        ax.set(xlabel="$x$", ylim=(0, 10))
    axes[0].set_ylabel("misses in %")
    axes[0].legend(fontsize=8, frameon=False)
    return figure
