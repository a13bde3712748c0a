"""Quantiles of many linear combinations: this package, OpenTURNS, and Monte Carlo.

Run with ``python benchmarks/law.py``. OpenTURNS (``pip install openturns``) is optional. It needs one object per row,
so it is measured on a few rows and extrapolated. Monte Carlo is measured with few draws and extrapolated to the
25,000,000 draws needed for a standard error of 1e-4 in the cdf; an accuracy of 1e-12 would take 1e16 times as long.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from wienerkernel import Expansion, OrthogonalBasis
from wienerkernel.law import LinearCombination
from wienerkernel.noise import Mixture

try:
    import openturns as ot
except ImportError:
    ot = None

LEVELS = np.array([0.05, 0.5, 0.95])
ROWS = 1000
OT_ROWS = {5: 3, 50: 5, 500: 5}
FEW_ROWS = 50
MC_ERROR = 1e-4
MAX_ERROR = 1e-12
MAX_GIB = 2.0


def smoother_rows(n: int, d: int) -> np.ndarray:
    """Weights of kernel ridge regression at n points, as in a prediction."""
    x, X = np.linspace(-5, 5, n), np.linspace(-5, 5, d)

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return 4.21**2 * np.exp(-((a[:, None] - b) ** 2) / (2 * 3.59**2))

    return -np.linalg.solve(kernel(X, X) + np.eye(d), kernel(X, x)).T


def best_time(function: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def openturns_seconds(noise: str, weights: np.ndarray) -> tuple[float, float, int]:
    """Seconds for all rows, extrapolated from a few, the largest error of the cdf, and how many rows were measured."""
    law = {"gamma": lambda: ot.Gamma(0.25, 0.5), "lognorm": lambda: ot.LogNormal(0.0, 0.5)}[noise]
    few = OT_ROWS[weights.shape[1]]
    chosen = weights[np.linspace(0, len(weights) - 1, few + 2).astype(int)[1:-1]]
    frozen = {"gamma": stats.gamma(0.25, scale=2), "lognorm": stats.lognorm(0.5)}[noise]
    start = time.perf_counter()
    quantiles = []
    for row in chosen:
        combination = ot.LinearCombinationDistribution([law()] * len(row), row.tolist())
        quantiles.append([combination.computeQuantile(float(q))[0] for q in LEVELS])
    seconds = (time.perf_counter() - start) / few * len(weights)
    error = np.abs(LinearCombination(frozen, chosen).cdf(np.array(quantiles).T) - LEVELS[:, None]).max()
    return seconds, float(error), few


def monte_carlo_seconds(noise: object, weights: np.ndarray) -> float:
    """Estimated seconds for a standard error of 1e-4 in the cdf."""
    law = LinearCombination(noise, weights)
    draws = max(20, 2_000_000 // weights.size)
    seconds = best_time(lambda: np.quantile(law.rvs(draws, random_state=0), LEVELS, axis=0), 1)
    return seconds / draws * 0.25 / MC_ERROR**2


def verdict(wanted: list[tuple[str, str, bool]]) -> str:
    """Describe the targets and whether they are met."""
    return ", ".join(f"{name} {target}: {'met' if met else 'MISSED'}" for name, target, met in wanted)


def few_terms() -> None:
    """Sums of few terms with slowly decaying characteristic functions, computed by convolution."""
    square = Expansion(OrthogonalBasis("norm(0, 1)", 3), [0.0, 1.0, 0.5])
    shifted = Mixture([stats.gamma(2.0), stats.expon(1.0), stats.uniform(-1.0, 1.0)], [0.4, 0.3, 0.3])
    print(f"\n{FEW_ROWS} rows of few terms without a smooth part, quantiles at {LEVELS.tolist()}, seconds")
    for name, noise in (
        ("arcsine", stats.arcsine()),
        ("beta(2.3, 0.63)", stats.beta(2.3, 0.63)),
        ("chaos, L = 3", square),
        ("mixture", shifted),
    ):
        for d in (2, 3):
            weights = np.random.default_rng(0).normal(size=(FEW_ROWS, d))
            start = time.perf_counter()
            _, error = LinearCombination(noise, weights).ppf(LEVELS[:, None], return_error=True)
            line = f"{name:15s} {d:4d} {time.perf_counter() - start:8.2f} {error.max():8.0e}"
            print(
                f"{line}   {verdict([('error', f'<= {MAX_ERROR:.0e}', bool(error.max() <= MAX_ERROR))])}",
                flush=True,
            )


def main() -> None:
    cases = [
        ("gamma(0.25)", "gamma", stats.gamma(0.25, scale=2), 5, 300),
        ("gamma(0.25)", "gamma", stats.gamma(0.25, scale=2), 50, 50),
        ("gamma(0.25)", "gamma", stats.gamma(0.25, scale=2), 500, 20),
        ("lognormal(0.5)", "lognorm", stats.lognorm(0.5), 50, 200),
    ]
    print(f"{ROWS} rows, quantiles at {LEVELS.tolist()}, seconds")
    print(
        f"{'noise':15s} {'D':>4s} {'here':>8s} {'error':>8s} {'OpenTURNS':>10s} {'(rows)':>6s} {'error':>8s} "
        f"{'ratio':>7s} {'MC to 1e-4':>12s}   verdict"
    )
    for name, key, noise, d, target in cases:
        weights = smoother_rows(ROWS, d)
        here = best_time(lambda w=weights, n=noise: LinearCombination(n, w).ppf(LEVELS[:, None]), 3)
        law = LinearCombination(noise, weights)
        _, error = law.ppf(LEVELS[:, None], return_error=True)
        line = f"{name:15s} {d:4d} {here:8.3f} {error.max():8.0e}"
        wanted = [("error", f"<= {MAX_ERROR:.0e}", error.max() <= MAX_ERROR)]
        if ot is None:
            line += f" {'-':>10s} {'-':>6s} {'-':>8s} {'-':>7s}"
        else:
            theirs, their_error, few = openturns_seconds(key, weights)
            line += f" {theirs:10.1f} {few:6d} {their_error:8.0e} {theirs / here:7.0f}"
            wanted.append(("ratio", f">= {target}", theirs / here >= target))
        print(line + f" {monte_carlo_seconds(noise, weights):12.0f}   {verdict(wanted)}", flush=True)

    law = LinearCombination(stats.gamma(0.25, scale=2), smoother_rows(10_000, 1000))
    start = time.perf_counter()
    law.ppf(LEVELS[:, None])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
    print(
        f"10,000 rows, D = 1000: {time.perf_counter() - start:.1f} s, peak memory of the process {peak:.2f} GiB   "
        + verdict([("memory", f"<= {MAX_GIB:.0f} GiB", peak <= MAX_GIB)])
    )
    few_terms()


if __name__ == "__main__":
    main()
