"""Coverage of 90 % intervals of f where the inputs have noise of a skewed law: ignored, to first order, with curvature.

Functions are drawn from a Gaussian process with length scale 1 and variance 1; 60 samples on [0, 10] have normal noise of
standard deviation 0.1, and their inputs have centered Gamma(4) noise of the standard deviations in the first column. The
kernel and the law of the noise are known, except where both are tuned. The last columns are the skewness of the error at
one point of a fixed function, and what the law of the estimate predicts. ``python benchmarks/input_noise.py`` takes a few
minutes.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.interpolate import CubicSpline

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.posterior.input_noise import InputNoise, Linearization, as_input_noise

N, QUERIES, LENGTH, STD = 60, 50, 10.0, 0.1


class FirstOrder(InputNoise):
    """Noise on the inputs without the effect of the curvature on the mean."""

    def linearize(self, smoother: Any) -> Linearization:
        """Gradient alone."""
        found = super().linearize(smoother)
        return replace(found, curvature=0 * found.curvature)


def draw(std: float, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, Callable[[Any], Any]]:
    """Observed inputs and responses, and the function."""
    grid = np.linspace(-2.0, LENGTH + 2.0, 500)
    root = np.linalg.cholesky(RBF(1.0)(grid[:, None]) + 1e-9 * np.eye(len(grid)))
    f = CubicSpline(grid, root @ generator.standard_normal(len(grid)))
    true = generator.uniform(0, LENGTH, N)
    observed = true + std * (generator.gamma(4.0, 0.5, N) - 2.0)
    return observed[:, None], f(true) + STD * generator.standard_normal(N), f


def coverage(model: WienerKernelRegressor, f: Any, queries: np.ndarray) -> float:
    """Share of queries whose 90 % interval contains f(x)."""
    low, high = model.predict_distribution(queries, of="function").interval(0.9)
    truth = f(queries[:, 0])
    return float(np.mean((low <= truth) & (truth <= high)))


def skewness(std: float, draws: int, seed: int = 0) -> tuple[float, float]:
    """Skewness of the error f(x) - mu(x) where f(x) = sin(1.5 x) rises, for fixed observed X, and as predicted."""
    generator = np.random.default_rng(seed)
    X, query = np.linspace(0, LENGTH, N)[:, None], np.array([[4 * np.pi / 3]])
    noise = stats.gamma(4.0, loc=-2 * std, scale=std / 2)
    estimates, predicted = [], []
    for _ in range(draws):
        true = X[:, 0] - noise.rvs(N, random_state=generator)
        y = np.sin(1.5 * true) + STD * generator.standard_normal(N)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = WienerKernelRegressor(RBF(1.0), noise=stats.norm(0, STD), tuning=None, trend=None)
            model.fit(X, y, input_noise=noise)
        estimates.append(model.predict(query)[0])
        predicted.append(model.predict_distribution(query).skewness()[0])
    return -float(stats.skew(estimates)), float(np.mean(predicted))


def run(std: float, data_sets: int, seed: int = 0, tuned: bool = True) -> dict[str, np.ndarray]:
    """Coverage of each method on each data set, (data_sets,)."""
    generator = np.random.default_rng(seed)
    noise = as_input_noise(stats.gamma(4.0, loc=-2 * std, scale=std / 2), 1)
    assert noise is not None
    methods = {
        "ignored": None,
        "first order": FirstOrder(noise.laws, noise.directions),
        "with curvature": noise,
    }
    results: dict[str, list[float]] = {name: [] for name in methods}
    if tuned:
        results["tuned"] = []
    for _ in range(data_sets):
        X, y, f = draw(std, generator)
        queries = generator.uniform(0, LENGTH, (QUERIES, 1))
        for name, rows in results.items():
            known = (
                {"kernel": RBF(1.0), "noise": stats.norm(0, STD), "tuning": None, "trend": None}
                if name != "tuned"
                else {}
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = WienerKernelRegressor(**known).fit(X, y, input_noise=methods.get(name, noise))
            rows.append(coverage(model, f, queries))
    return {name: np.array(values) for name, values in results.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=200)
    count = parser.parse_args().data_sets
    names = ["ignored", "first order", "with curvature", "tuned", "skewness", "predicted"]
    print(f"{'std of E':>8}" + "".join(f"{name:>18}" for name in names))
    for std in (0.1, 0.2, 0.3):
        results = run(std, count)
        row = [f"{100 * r.mean():.1f} +- {100 * r.std() / np.sqrt(count):.1f} %" for r in results.values()]
        row += [f"{value:.2f}" for value in skewness(std, 10 * count)]
        print(f"{std:>8}" + "".join(f"{cell:>18}" for cell in row), flush=True)


if __name__ == "__main__":
    main()
