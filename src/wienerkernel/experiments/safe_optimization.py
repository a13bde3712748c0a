"""Safe optimization with four bounds: the published experiment, the same inside the RKHS, and with Gamma noise.

Molodchyk, Teutsch and Faulwasser, Towards safe Bayesian optimization with Wiener kernel regression (2024): maximize the
cubic of the paper on [-5, 5] by upper confidence bounds, from noisy samples, and evaluate it only where it is certified
to be at least f(-4.5). A tighter bound has a larger safe set and less regret. The cubic is not in the RKHS of the kernel,
so the norm given to the bounds is a guess. In the other two settings the norm of f is known; in the last one the noise is
not sub-Gaussian, so bounds that assume it are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray, IntArray
from ..decisions.bounds import METHODS, Claim
from ..noise import as_noise
from ..palette import LIGHT
from ..text import check_choice
from .output import new_figure, save_figure, write_csv
from .system import GAMMA, NORMAL, kernel, truth

__all__ = [
    "BOUNDS",
    "GRID",
    "GridRuns",
    "Record",
    "Setting",
    "first_miss",
    "reproduce",
    "settings",
    "simulate",
]

GRID = np.linspace(-5.0, 5.0, 201)
SEED, LIMIT = 200, 10
"""Grid indices of x = 5, which is known to be safe, and of x = -4.5, where f is at the threshold."""
BOUNDS = {
    "subgaussian": "sub-Gaussian",
    "exact": "exact quantiles",
    "abbasi-yadkori": "Abbasi-Yadkori",
    "fiedler2021": "Fiedler et al.",
}
"""Methods of :func:`~wienerkernel.decisions.bounds.bound` that are compared, with their names in the figure."""
COLORS = dict(
    zip(BOUNDS, map(LIGHT.get, ("estimate-line", "function-line", "mean", "observation-line")), strict=True)
)
ERROR = 1e-3  # d, the probability with which a bound may fail


@dataclass(frozen=True)
class Setting:
    """A function f (G,) on the grid, its noise law, and the norm that the bounds assume."""

    name: str
    f: FloatArray
    noise: str
    norm: float


def settings() -> list[Setting]:
    """The published setting, and two with a function of known norm: the interpolant of the cubic at five points."""
    k, points = kernel(), np.linspace(-5.0, 5.0, 5)[:, None]
    coefficients = np.linalg.solve(k(points, points), truth(points[:, 0]))
    inside = k(GRID[:, None], points) @ coefficients
    norm = sqrt(coefficients @ truth(points[:, 0]))
    return [
        Setting("cubic, normal noise", truth(GRID), NORMAL, 2.5),
        Setting("RKHS function, normal noise", inside, NORMAL, norm),
        Setting("RKHS function, Gamma noise", inside, GAMMA, norm),
    ]


class GridRuns:
    """Many runs at once on the grid, updated sample by sample: mu and sigma_GP^2 (runs, G), a(x) (runs, G, samples)."""

    def __init__(self, noise: str, runs: int, samples: int) -> None:
        self.noise = as_noise(noise)
        self.s2 = self.noise.var()
        self.mean = np.zeros((runs, len(GRID)))
        self.weights = np.zeros((runs, len(GRID), samples))
        self._gram = np.asarray(kernel()(GRID[:, None], GRID[:, None]))
        self.variance = np.tile(np.diag(self._gram), (runs, 1))
        self._index = np.zeros((runs, samples), dtype=np.intp)
        self._log_determinant = np.zeros(runs)  # of I + K / rho^2
        self._n = 0

    def add(self, index: IntArray, y: FloatArray) -> None:
        """Give each run one more sample y (runs,) at the grid index (runs,)."""
        run, n = np.arange(len(index)), self._n
        a = self.weights[run, index, :n]
        # posterior covariance with the new input
        c = self._gram[index] - (a[:, None, :] @ self._gram[self._index[:, :n]])[:, 0]
        s = c[run, index]
        h = c / (s + self.s2)[:, None]
        self.mean += h * (y - self.noise.mean() - self.mean[run, index])[:, None]
        self.weights[:, :, :n] -= h[:, :, None] * a[:, None, :]
        self.weights[:, :, n] = h
        self.variance -= c * h
        self._log_determinant += np.log1p(s / self.s2)
        self._index[:, n] = index
        self._n = n + 1

    def interval(self, method: str, norm: float, error: float) -> tuple[FloatArray, FloatArray]:
        """Interval (runs, G) for f by a method of `BOUNDS`, with the standard deviation as sub-Gaussian constant."""
        a = self.weights[:, :, : self._n]
        model = self.variance - self.s2 * np.einsum("rgn,rgn->rg", a, a)
        claim = Claim(
            noise=self.noise,
            weights=a,
            counts=np.ones(self._n),
            model=np.maximum(model, 0.0),
            variance=np.maximum(self.variance, 0.0),
            norm=norm,
            error=error,
            tails=2,
            n_samples=self._n,
            log_determinant=self._log_determinant[:, None],
            largest_scale=1 / sqrt(self.s2),
            subgaussian_constant=sqrt(self.s2),
        )
        below, above = METHODS[method](claim)
        return self.mean - below, self.mean + above


@dataclass(frozen=True)
class Record:
    """What happened in the runs of one setting with one bound; all arrays have shape (runs, steps)."""

    setting: Setting
    method: str
    x: FloatArray  # evaluated points, after the first one at x = 5
    regret: FloatArray  # max f - f(x)
    unsafe: NDArray[np.bool_]  # whether f(x) is below the threshold
    missed: FloatArray  # fraction of the grid on which f is outside the interval
    safe: FloatArray  # fraction of the grid that is certified to be safe

    @property
    def runs_with_a_miss(self) -> int:
        """Number of runs in which f was outside the interval somewhere, at some step."""
        return int(np.sum(self.missed.max(axis=1) > 0))

    def summary(self) -> dict[str, Any]:
        """One row of the table."""
        total = self.regret.sum(axis=1)
        return {
            "setting": self.setting.name,
            "bound": self.method,
            "norm": round(self.setting.norm, 4),
            "runs": len(total),
            "steps": self.regret.shape[1],
            "mean_cumulative_regret": round(float(total.mean()), 3),
            "standard_error": round(float(total.std() / sqrt(len(total))), 3),
            "unsafe_evaluations": int(self.unsafe.sum()),
            "runs_with_a_miss": self.runs_with_a_miss,
            "pointwise_miss_rate": float(f"{self.missed.mean():.3g}"),
            "miss_probability_after_first_sample": float(f"{first_miss(self.setting, self.method):.3g}"),
            "certified_fraction_at_the_end": round(float(self.safe[:, -1].mean()), 4),
        }


def first_miss(setting: Setting, method: str) -> float:
    """Largest probability that f(x) is outside its interval after the first sample: at most d for a valid pointwise bound."""
    runs = GridRuns(setting.noise, 1, 1)
    runs.add(np.array([SEED]), setting.f[[SEED]] + runs.noise.mean())
    lower, upper = (end[0] for end in runs.interval(method, setting.norm, ERROR))
    a, m0 = runs.weights[0, :, 0], runs.noise.mean()  # a > 0, and M shifts the interval by a (M - m0)
    below = runs.noise.sf(m0 + (setting.f - lower) / a)
    above = runs.noise.cdf(m0 + (setting.f - upper) / a)
    return float(np.max(below + above))


def simulate(
    setting: Setting,
    method: str,
    *,
    runs: int = 100,
    steps: int = 100,
    seed: int = 0,
    progress: Callable[[], Any] | None = None,
) -> Record:
    """Optimize safely with one bound, a key of ``BOUNDS``, in many runs with the same noise for all bounds.

    Each step takes the point with the largest upper end among x = 5, which is known to be safe, and those whose lower end
    reaches the threshold. ``progress`` is called after each step.
    """
    check_choice("method", method, BOUNDS)
    if runs < 1 or steps < 1:
        raise ValueError(f"runs and steps must be at least 1, got {runs} and {steps}")
    f, threshold = setting.f, setting.f[LIMIT]
    state = GridRuns(setting.noise, runs, steps + 1)
    noise = state.noise.rvs((runs, steps + 1), random_state=np.random.default_rng(seed))
    index = np.full((runs, steps + 1), SEED)
    missed, safe = np.empty((runs, steps)), np.empty((runs, steps))
    for step in range(steps):
        state.add(index[:, step], f[index[:, step]] + noise[:, step])
        lower, upper = state.interval(method, setting.norm, ERROR)
        certified = lower >= threshold
        missed[:, step] = np.mean((f < lower) | (f > upper), axis=1)
        safe[:, step] = np.mean(certified, axis=1)
        certified[:, SEED] = True
        index[:, step + 1] = np.argmax(np.where(certified, upper, -np.inf), axis=1)
        if progress is not None:
            progress()
    asked = index[:, 1:]
    return Record(setting, method, GRID[asked], f.max() - f[asked], f[asked] < threshold, missed, safe)


def reproduce(
    out: Path, *, runs: int = 100, steps: int = 100, seed: int = 0, progress: Callable[[], Any] | None = None
) -> Iterator[tuple[str, Path]]:
    """Run all settings with all bounds; write a table, the regret curves and a figure to a folder, and yield their paths."""
    out.mkdir(parents=True, exist_ok=True)
    records = [
        simulate(setting, method, runs=runs, steps=steps, seed=seed, progress=progress)
        for setting in settings()
        for method in BOUNDS
    ]
    table = [record.summary() for record in records]
    yield "regret and violations", write_csv(out / "safe_optimization.csv", table)
    names = "setting", "bound", "step", "mean_cumulative_regret"
    curves = (
        dict(zip(names, (record.setting.name, record.method, step, float(value)), strict=True))
        for record in records
        for step, value in enumerate(np.cumsum(record.regret.mean(axis=0)), start=1)
    )
    yield "regret by step", write_csv(out / "safe_optimization_regret.csv", curves)
    yield from save_figure("regret, violations", _figure(records), out / "safe_optimization")


def _figure(records: list[Record]) -> Any:
    figure = new_figure(figsize=(12, 6.5))
    names = list(dict.fromkeys(record.setting.name for record in records))
    axes = figure.subplots(2, len(names), sharey="row", height_ratios=(2, 1))
    for top, bottom, name in zip(*axes, names, strict=True):
        own = [record for record in records if record.setting.name == name]
        for record in own:
            total = np.cumsum(record.regret, axis=1)
            mean, error = total.mean(axis=0), 2 * total.std(axis=0) / sqrt(len(total))
            step, color = np.arange(1, len(mean) + 1), COLORS[record.method]
            top.plot(step, mean, color=color, label=BOUNDS[record.method])
            top.fill_between(step, mean - error, mean + error, color=color, alpha=0.2, lw=0)
        top.set(title=name, xlabel="step")
        top.margins(x=0)
        rates = [first_miss(record.setting, record.method) for record in own]
        bottom.bar([BOUNDS[record.method] for record in own], rates, color=[COLORS[r.method] for r in own])
        for position, record in enumerate(own):
            note = f"{record.runs_with_a_miss} missed\n{int(record.unsafe.sum())} unsafe"
            top_of_bar = position, max(rates[position], ERROR)
            bottom.annotate(note, top_of_bar, ha="center", va="bottom", fontsize=8)
        bottom.axhline(ERROR, color="black", lw=1, ls="--", label="allowed, $d$")
        bottom.tick_params(axis="x", labelrotation=20, labelsize=8)
        bottom.margins(y=0.3)
    axes[0, 0].set_ylabel("mean cumulative regret")
    axes[1, 0].set_ylabel("P(miss) after one sample")
    axes[0, 0].legend(frameon=False, fontsize=9)
    axes[1, 0].legend(frameon=False, fontsize=8)
    return figure
