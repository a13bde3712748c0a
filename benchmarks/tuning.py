"""Tuning under five noise laws: scikit-learn, and this package by likelihood and by leave-one-out.

Functions are drawn from a Gaussian process with a squared-exponential kernel (variance 4, length scale 1) on [-5, 5].
The noise has mean 0 and standard deviation 1. All methods use the same data. Each case shows medians over the
repetitions and their bootstrap standard errors for

    rmse      root mean squared error of the estimate of the function
    nlpd      mean negative log predictive density of held-out observations
    crps      mean continuous ranked probability score of held-out observations
    cover     fraction of held-out observations inside their 90 % intervals
    length    |log of the tuned length scale|, whose true value is 0
    seconds   processor time

    python benchmarks/tuning.py                    100 repetitions, n = 20, 40, 150
    python benchmarks/tuning.py --quick            5 repetitions, n = 20, 40
    python benchmarks/tuning.py --repetitions 20 --laws gamma t --n 40 --jobs 2
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as theirs

from wienerkernel import RBF, WienerKernelRegressor, crps

LAWS = {
    "gamma": stats.gamma(0.25, loc=-0.5, scale=2.0),
    "lognorm": stats.lognorm(1.0),
    "t": stats.t(3.0),
    "uniform": stats.uniform(),
    "norm": stats.norm(),
}
METHODS = {
    "a  scikit-learn": None,
    "b0 likelihood, normal noise": (None, "likelihood"),
    "b  likelihood, noise known": ("known", "likelihood"),
    "c  loo, noise known": ("known", "loo"),
    "d  loo, family fitted": ("family", "loo"),
    "e  loo, residuals": ("residuals", "loo"),
}
SCORES = ("rmse", "nlpd", "crps", "cover", "length", "seconds")
TEST_POINTS = 60


def standardized(name):
    """The law, standardized to mean 0 and standard deviation 1."""
    law = LAWS[name]
    shapes = law.args
    mean, variance = law.dist.stats(*shapes, moments="mv")
    scale = 1 / np.sqrt(variance)
    return law.dist(*shapes, loc=float(-mean * scale), scale=float(scale))


def draw(name, n, seed):
    """Training data, test data and the true function at the test points."""
    rng = np.random.default_rng([seed, n, list(LAWS).index(name)])
    X = rng.uniform(-5, 5, (n + TEST_POINTS, 1))
    f = np.linalg.cholesky(4 * RBF(1.0)(X) + 1e-8 * np.eye(len(X))) @ rng.normal(size=len(X))
    y = f + standardized(name).rvs(len(X), random_state=rng)
    return X[:n], y[:n], X[n:], y[n:], f[n:]


def predict(method, name, X, y, X_test):
    """Mean, law of an observation, and length scale."""
    if METHODS[method] is None:
        kernel = theirs.ConstantKernel() * theirs.RBF() + theirs.WhiteKernel()
        model = GaussianProcessRegressor(kernel, n_restarts_optimizer=1, random_state=0).fit(X, y)
        mean, std = model.predict(X_test, return_std=True)
        return mean, stats.norm(mean, std), model.kernel_.k1.k2.length_scale
    noise, objective = METHODS[method]
    noise = {"known": standardized(name), "family": name}.get(noise, noise)
    model = WienerKernelRegressor(1.0 * RBF(1.0), noise=noise, trend=None, tuning=objective).fit(X, y)
    law = model.predict_distribution(X_test, of="observation")
    return model.predict(X_test), law, model.kernel_.k2.length_scale


def scores(task):
    name, n, seed = task
    X, y, X_test, y_test, f_test = draw(name, n, seed)
    table = {}
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            mean, law, length = predict(method, name, X, y, X_test)
            seconds = time.process_time() - start
            density = np.maximum(law.logpdf(y_test), -100.0)
            inside = np.abs(law.cdf(y_test) - 0.5) < 0.45
            table[method] = (
                np.sqrt(np.mean((mean - f_test) ** 2)),
                -np.mean(density),
                np.mean(crps(law, y_test)),
                np.mean(inside),
                abs(np.log(length)),
                seconds,
            )
    return table


def median_and_error(values):
    rng = np.random.default_rng(0)
    resampled = np.median(rng.choice(values, (400, len(values))), axis=1)
    return np.median(values), resampled.std()


def report(name, n, tables):
    print(f"\n{name} noise, n = {n}, {len(tables)} repetitions: median (standard error)")
    print(f"{'':<30}" + "".join(f"{score:>16}" for score in SCORES))
    for method in METHODS:
        columns = np.array([table[method] for table in tables]).T
        cells = [
            f"{middle:9.3f} ({error:.3f})"
            for middle, error in (median_and_error(column) for column in columns)
        ]
        print(f"{method:<30}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--n", type=int, nargs="+", default=[20, 40, 150])
    parser.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="5 repetitions, n = 20 and 40")
    options = parser.parse_args()
    if options.quick:
        options.repetitions, options.n = 5, [20, 40]
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, n in itertools.product(options.laws, options.n):
            tables = []
            for table in pool.map(scores, [(name, n, seed) for seed in range(options.repetitions)]):
                tables.append(table)
                print(f"\r{name}, n = {n}: {len(tables)} of {options.repetitions}", end="", flush=True)
            report(name, n, tables)


if __name__ == "__main__":
    main()
