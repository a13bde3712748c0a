"""The price of linearity: the linear estimate, the efficient loss and the full posterior on the paper's example."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from .._typing import FloatArray
from ..noise import Mixture, Noise, as_noise
from ..palette import LIGHT
from ..regressor import WienerKernelRegressor
from .output import new_figure, save_figure, write_csv
from .system import kernel

__all__ = ["LAWS", "METHODS", "Price", "data_set", "measure", "reproduce", "summarize"]

KERNEL = kernel()
LAWS: dict[str, Any] = {
    "gamma": stats.gamma(0.25, scale=2),
    "lognormal": stats.lognorm(1.0),
    "student": stats.t(3),
    "laplace": stats.laplace(scale=0.5**0.5),
    "uniform": stats.uniform(-(3**0.5), 2 * 3**0.5),
    "mixture": Mixture(["norm(0, 0.22)", "norm(0, 2.2)"], [0.8, 0.2]),
}
"""Laws of the noise; of variance 1, except those of lognormal and Student noise."""
METHODS: dict[str, dict[str, Any]] = {
    "linear": {},
    "efficient": {"loss": "efficient"},
    "ep": {"inference": "ep"},
    "bayes": {"inference": "bayes"},
}
DRAWS = 2048


class Price(NamedTuple):
    """Scores of f by one method on one data set, averaged over the query points, and the processor time of the fit."""

    noise: str
    n: int
    method: str
    crps: float
    rmse: float
    coverage: float
    seconds: float
    r_hat: float


def data_set(law: Noise, n: int, generator: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Equidistant inputs (n, 1), samples (n,), query points (50, 1) in [-6, 6], and f there, drawn from the prior."""
    X = np.linspace(-5, 5, n)[:, None]
    query = np.linspace(-6, 6, 50)[:, None]
    values, vectors = np.linalg.eigh(KERNEL(np.concatenate([X, query])))
    f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * generator.standard_normal(len(values)))
    return X, f[:n] + law.rvs(n, random_state=generator), query, f[n:]


def _fitted(method: str, law: Noise, X: FloatArray, y: FloatArray, seed: int) -> WienerKernelRegressor:
    model = WienerKernelRegressor(
        KERNEL, noise=law, trend=None, tuning=None, random_state=seed, **METHODS[method]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # R-hat is part of the result
        return model.fit(X, y)


def measure(name: str, n: int, seed: int, methods: Sequence[str] = tuple(METHODS)) -> list[Price]:
    """Scores of the methods on one data set."""
    law, generator = as_noise(LAWS[name]), np.random.default_rng(seed)
    X, y, query, f = data_set(law, n, generator)
    results = []
    for method in methods:
        start = time.process_time()
        model = _fitted(method, law, X, y, seed)
        seconds = time.process_time() - start
        function = model.predict_distribution(query, of="function")
        draws = np.sort(function.rvs(DRAWS, random_state=seed), axis=0)
        rank = (2 * np.arange(1, DRAWS + 1) - DRAWS - 1)[:, None]
        crps = np.mean(np.abs(draws - f), axis=0) - np.sum(rank * draws, axis=0) / DRAWS**2
        rmse = float(np.sqrt(np.mean((model.predict(query) - f) ** 2)))
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        covered = float(np.mean((f >= low) & (f <= high)))
        found = getattr(model.posterior_, "draws", None) if method == "bayes" else None
        r_hat = 1.0 if found is None else found.r_hat
        results.append(Price(name, n, method, float(crps.mean()), rmse, covered, seconds, r_hat))
    return results


def summarize(results: Sequence[Price]) -> list[dict[str, Any]]:
    """Means over data sets, one row for each noise, size and method, in the order of first appearance."""
    rows = []
    for noise, n, method in dict.fromkeys(price[:3] for price in results):
        group = [price for price in results if price[:3] == (noise, n, method)]
        means = {
            name: float(np.mean([getattr(price, name) for price in group]))
            for name in ("crps", "rmse", "coverage", "seconds")
        }
        counts = {"certified": float(np.mean([p.r_hat <= 1.05 for p in group])), "data_sets": len(group)}
        rows.append({"noise": noise, "n": n, "method": method, **means, **counts})
    return rows


def reproduce(
    out: Path, sizes: Sequence[int], repeats: int, seed: int = 0, progress: Callable[[], None] = lambda: None
) -> tuple[list[dict[str, Any]], list[tuple[str, Path]]]:
    """The table, and what is written with each path: the table as CSV, and a figure."""
    out.mkdir(parents=True, exist_ok=True)
    results = []
    for n in sizes:
        for name in LAWS:
            for repeat in range(repeats):
                results += measure(name, n, seed + repeat)
                progress()
    rows = summarize(results)
    table = "scores of the four methods", write_csv(out / "price.csv", rows)
    return rows, [table, *save_figure("an example, and the scores", _figure(rows, seed), out / "price")]


def _figure(rows: list[dict[str, Any]], seed: int) -> Any:
    """90 % intervals of f under Gamma noise, and the CRPS of each method relative to that of the linear estimate."""
    figure = new_figure(figsize=(11, 4.2))
    left, right = figure.subplots(1, 2)
    law = as_noise(LAWS["gamma"])
    X, y, query, f = data_set(law, 20, np.random.default_rng(seed))
    for method, color in (("linear", LIGHT["observation"]), ("bayes", LIGHT["estimate"])):
        low, high = _fitted(method, law, X, y, seed).predict_interval(query, 0.9, of="function").T
        left.fill_between(query[:, 0], low, high, color=color, label=f"{method}, 90 %")
    left.plot(query[:, 0], f, color=LIGHT["truth"], label="f")
    left.plot(X[:, 0], y, ".", color=LIGHT["text"], label="samples")
    left.set(title="20 samples with Gamma noise", xlabel="x", ylabel="y")
    left.legend(frameon=False)
    n = rows[0]["n"]
    scores = {(row["noise"], row["method"]): row["crps"] for row in rows if row["n"] == n}
    names = list(dict.fromkeys(row["noise"] for row in rows))
    markers = {
        "efficient": ("s", LIGHT["mean"]),
        "ep": ("o", LIGHT["function-line"]),
        "bayes": ("D", LIGHT["estimate-line"]),
    }
    for method, (marker, color) in markers.items():
        ratio = [scores[name, method] / scores[name, "linear"] for name in names]
        right.plot(ratio, range(len(names)), marker, color=color, label=method)
    right.axvline(1.0, color=LIGHT["text"], lw=0.8)
    right.set(title=f"CRPS of f relative to the linear estimate, n = {n}", xlabel="ratio", xscale="log")
    right.set_xticks([0.1, 0.2, 0.5, 1.0], ["0.1", "0.2", "0.5", "1"])
    right.minorticks_off()
    right.set_yticks(range(len(names)), names)
    right.invert_yaxis()
    right.legend(frameon=False)
    return figure
