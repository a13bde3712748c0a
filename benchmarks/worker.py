"""One measurement of one library, in its own process: python worker.py LIBRARY TASK N THREADS REPEATS.

It prints a line of JSON: the median time of the repeats, the peak of the resident set, and the answer (means at the
query points, or the log-likelihood), so that answers can be compared. Up to 4000 rows, a first run is not counted.
"""

from __future__ import annotations

import contextlib
import json
import resource
import statistics
import sys
import time

import numpy as np

INPUTS, QUERIES, PLACES = 8, 1000, 400
LENGTH, AMPLITUDE, NOISE = 2.0, 2.0, 0.5
FIT_BOUNDS = (1e-4, 1e6)


def data(n, d=INPUTS):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.7 * rng.normal(size=n), rng.normal(size=(QUERIES, d))


def friedman(n, law="t(4, scale=0.7071)"):
    """Friedman's function of five inputs with noise of some law, for fits."""
    from wienerkernel import as_noise

    rng = np.random.default_rng(1)
    X = rng.uniform(size=(n, 5))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + as_noise(law).rvs(n, random_state=rng)


def our_fit(method, n):
    """A fit by likelihood, or by leave-one-out with a family.

    The bounds are given, so that there are no priors, and wide, as those of scikit-learn are made, too.
    """
    from wienerkernel import RBF, Constant, Family
    from wienerkernel.tuning import Data, tune

    X, y = friedman(n)
    kernel = Constant(1.0, FIT_BOUNDS) * RBF(np.ones(5), FIT_BOUNDS)
    family = Family({"likelihood": "norm", "loo": "t"}[method], bounds={"std": FIT_BOUNDS})

    def run():
        tuned = tune(Data(X, y[:, None], np.ones(n)), kernel, family, method=method)
        return tuned.value, tuned.n_evaluations

    return run


def evaluations(task, n, repeats=8):
    """CPU time of an evaluation of the leave-one-out score and its gradient over that of the likelihood, both the least.

    ``task`` is a law, of which the data have the noise; with the word family before it, its parameters are free.
    """
    from wienerkernel import RBF, as_noise
    from wienerkernel.noise.family import Family, KnownLaw
    from wienerkernel.tuning.data import Data, Parameters
    from wienerkernel.tuning.likelihood import Likelihood
    from wienerkernel.tuning.loo_score import LeaveOneOutScore

    law = task.removeprefix("family ")
    (X, y), kernel = friedman(n, law), 4000.0 * RBF([1.2, 1.2, 2.5, 10.0, 20.0])
    (name, _, shape), noise = law[:-1].partition("("), as_noise(law)
    model = KnownLaw(noise) if law == task else Family(name)
    start = np.append(kernel.theta, [] if law == task else np.log([noise.std(), float(shape)]))
    data, least = Data(X, y[:, None], np.ones(n)), {}
    objectives = [kind(data, Parameters(kernel, model)) for kind in (Likelihood, LeaveOneOutScore)]
    for k in range(1 + repeats):
        for objective in objectives:
            begin = time.process_time()
            objective(start + 1e-3 * k)
            if k:  # the first evaluation makes tables
                least[type(objective)] = min(least.get(type(objective), np.inf), time.process_time() - begin)
    return least[LeaveOneOutScore] / least[Likelihood]


def places():
    return np.random.default_rng(1).normal(size=(PLACES, INPUTS))


def ours(task, n):
    kind, _, detail = task.partition(" ")
    if kind == "fit":
        return our_fit(detail, n)
    if kind == "evaluations":
        return lambda: evaluations(detail, n)
    from wienerkernel import RBF, Family, WienerKernelRegressor
    from wienerkernel.tuning.data import Data, Parameters
    from wienerkernel.tuning.likelihood import Likelihood

    X, y, Z = data(n)
    kernel = AMPLITUDE * RBF(np.full(INPUTS, LENGTH))
    if task == "likelihood":
        parameters = Parameters(kernel, Family("norm"))
        likelihood = Likelihood(Data(X, y[:, None], np.ones(n)), parameters)
        values = np.append(kernel.theta, 0.5 * np.log(NOISE))
        return lambda: likelihood(values)
    model = WienerKernelRegressor(kernel, noise=f"norm(0, {NOISE**0.5})", trend=None, tuning=None)
    if task == "parts":

        def run():
            return model.fit(X, y).posterior_.mean_and_uncertainty(Z)

        def residual():
            """Of (K + R) alpha = y, in some of its rows, relative to the largest y."""
            rows, alpha = slice(0, n, max(1, n // 200)), model.posterior_.smoother.dual[:, 0]
            return float(
                np.max(np.abs(kernel(X[rows], X) @ alpha + NOISE * alpha[rows] - y[rows])) / np.max(np.abs(y))
            )

        run.check = residual
        return run
    return estimator_task(model, task, X, y, Z)


def estimator_task(model, task, X, y, Z):
    """What this package and scikit-learn do through the same methods."""
    if task in ("parts", "std"):
        return lambda: model.fit(X, y).predict(Z, return_std=True)
    if task == "point":
        model.fit(X, y)
        return lambda: model.predict(Z[:1], return_std=True)
    if task == "replicates":
        repeated = places()[np.random.default_rng(2).integers(0, PLACES, len(X))]
        return lambda: model.fit(repeated, y).predict(Z, return_std=True)
    raise SystemExit(f"no task {task}")


def sklearn(task, n):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    if task.startswith("fit"):
        X, y = friedman(n)
        kernel = ConstantKernel(1.0, FIT_BOUNDS) * RBF(np.ones(5), FIT_BOUNDS) + WhiteKernel(1.0, FIT_BOUNDS)
        return lambda: GaussianProcessRegressor(kernel).fit(X, y).log_marginal_likelihood_value_
    X, y, Z = data(n)
    kernel = ConstantKernel(AMPLITUDE) * RBF(np.full(INPUTS, LENGTH))
    model = GaussianProcessRegressor(kernel, alpha=NOISE, optimizer=None)
    if task == "likelihood":
        model.X_train_, model.y_train_, model.kernel_ = X, y, kernel
        return lambda: model.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    return estimator_task(model, task, X, y, Z)


def gpytorch_default(task, n):
    """GPyTorch in its default mode: conjugate gradients above 800 rows."""
    return gpytorch(task, n, exact=False)


def gpytorch(task, n, exact=True):
    import gpytorch as g
    import torch

    torch.set_num_threads(int(sys.argv[4]))
    X, y, Z = (torch.as_tensor(a, dtype=torch.float64) for a in data(n))

    class Exact(g.models.ExactGP):
        def __init__(self):
            likelihood = g.likelihoods.GaussianLikelihood().double()
            super().__init__(X, y, likelihood)
            self.mean_module = g.means.ZeroMean()
            self.covar_module = g.kernels.ScaleKernel(g.kernels.RBFKernel(ard_num_dims=INPUTS)).double()
            self.covar_module.outputscale = AMPLITUDE
            self.covar_module.base_kernel.lengthscale = LENGTH
            likelihood.noise = NOISE

        def forward(self, x):
            return g.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    @contextlib.contextmanager
    def mode():
        if not exact:
            yield
            return
        direct = g.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)
        with direct, g.settings.max_cholesky_size(10**9):
            yield

    if task == "likelihood":
        model = Exact().train()
        objective = g.mlls.ExactMarginalLogLikelihood(model.likelihood, model)

        def run():
            model.zero_grad()
            with mode():
                value = objective(model(X), y) * n
                value.backward()
            return value.item()

        return run

    def run():
        model = Exact().eval()
        with torch.no_grad(), mode():
            prediction = model(Z)
            return prediction.mean, prediction.variance

    return run


def jax(task, n):
    import jax as j
    import jax.numpy as jnp
    from jax.scipy.linalg import solve_triangular

    j.config.update("jax_enable_x64", True)
    X, y, Z = (jnp.asarray(a) for a in data(n))

    def gram(theta, a, b):
        a, b = a / jnp.exp(theta[1:]), b / jnp.exp(theta[1:])
        r2 = jnp.sum(a**2, 1)[:, None] + jnp.sum(b**2, 1) - 2 * a @ b.T
        return jnp.exp(theta[0] - 0.5 * jnp.maximum(r2, 0))

    theta = jnp.log(jnp.array([AMPLITUDE, *[LENGTH] * INPUTS]))
    if task == "likelihood":

        def value(theta):
            L = jnp.linalg.cholesky(gram(theta, X, X) + NOISE * jnp.eye(n))
            v = solve_triangular(L, y, lower=True)
            return -0.5 * v @ v - jnp.log(jnp.diag(L)).sum() - 0.5 * n * jnp.log(2 * jnp.pi)

        compiled = j.jit(j.value_and_grad(value))
        return lambda: j.block_until_ready(compiled(theta))

    def predict(X, y, Z):
        L = jnp.linalg.cholesky(gram(theta, X, X) + NOISE * jnp.eye(n))
        v = solve_triangular(L, gram(theta, X, Z), lower=True)
        a = solve_triangular(L.T, v, lower=False)
        return a.T @ y, NOISE * jnp.sum(a**2, 0), AMPLITUDE - jnp.sum(v**2, 0)

    compiled = j.jit(predict)
    return lambda: j.block_until_ready(compiled(X, y, Z))


def hetgpy(_task, n):
    from hetgpy import homGP

    repeated = places()[np.random.default_rng(2).integers(0, PLACES, n)]
    _, y, Z = data(n)
    known = {"theta": np.full(INPUTS, 2 * LENGTH**2), "g": NOISE / AMPLITUDE, "beta0": 0.0}

    def run():
        model = homGP()
        model.mle(X=repeated, Z=y, covtype="Gaussian", known=known)
        prediction = model.predict(Z)
        return prediction["mean"], prediction["sd2"]

    return run


def scipy(_task, n):
    """Cholesky factorization by scipy.linalg."""
    from scipy.linalg import cholesky

    matrix = np.ones((n, n))
    matrix.flat[:: n + 1] += n
    return lambda: float(cholesky(matrix, lower=True)[0, 0])


def limit(_task, n):
    """potrf and two trsm of the same size, the work that no exact method can avoid; in place, nothing else timed."""
    from scipy.linalg import blas, lapack

    def run():
        a, b = np.eye(n) * n, np.random.default_rng(0).normal(size=(QUERIES, n))
        start = time.perf_counter()
        factor, _ = lapack.dpotrf(a.T, lower=0, overwrite_a=1, clean=0)
        v = blas.dtrsm(1.0, factor, b.T, lower=0, trans_a=1, overwrite_b=1)
        blas.dtrsm(1.0, factor, v, lower=0, overwrite_b=1)
        run.seconds = time.perf_counter() - start
        return 0.0

    return run


def main():
    library, task, n, _threads, repeats = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    run = globals()[library](task, n)
    once = library == "gpytorch_default" or task.startswith(("fit ", "evaluations "))
    if library == "jax" or (n <= 4000 and not once):
        run()  # compiles, or warms the memory
    times, cpu_times, result = [], [], None
    for _ in range(repeats):
        result = None  # two results at a time may be more than the memory holds
        start, cpu_start = time.perf_counter(), time.process_time()
        result = run()
        seconds = time.perf_counter() - start
        cpu_times.append(time.process_time() - cpu_start)
        times.append(getattr(run, "seconds", seconds))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = np.asarray(result[0] if isinstance(result, tuple | list) else result, dtype=float)
    report = {"seconds": statistics.median(times), "cpu_seconds": min(cpu_times), "peak_kib": peak}
    report["answer"] = answer.ravel().tolist()
    if hasattr(run, "check"):
        report["residual"] = run.check()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
