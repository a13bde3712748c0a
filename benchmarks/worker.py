"""One measurement of one library, in a process of its own: python worker.py LIBRARY TASK N. Prints a line of JSON.

The time is the median of the repeats; the memory is the peak of the resident set above what it was before the work.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time

import numpy as np

INPUTS, QUERIES = 8, 1000
LENGTH, AMPLITUDE, NOISE = 2.0, 2.0, 0.5


def data(n, d=INPUTS):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.7 * rng.normal(size=n), rng.normal(size=(QUERIES, d))


def ours(task, n):
    from wienerkernel import RBF, WienerKernelRegressor
    from wienerkernel.samples import Samples
    from wienerkernel.smoother import Smoother

    X, y, Z = data(n)
    kernel = AMPLITUDE * RBF(np.full(INPUTS, LENGTH))
    if task == "likelihood":

        def run():
            samples = Samples.collapse(X, np.full(n, NOISE), np.ones(n))
            smoother = Smoother(kernel, samples, y[:, None])
            return smoother.log_likelihood(), smoother.log_likelihood_gradient()

        return run
    model = WienerKernelRegressor(kernel, noise=f"norm(0, {NOISE**0.5})", tuning=None)
    if task == "parts":
        return lambda: (model.fit(X, y).predict(Z), model.uncertainty(Z))
    if task == "std":
        return lambda: model.fit(X, y).predict(Z, return_std=True)
    if task == "point":
        model.fit(X, y)
        return lambda: model.predict(Z[:1], return_std=True)
    if task == "replicates":
        places = np.random.default_rng(1).normal(size=(400, INPUTS))
        index = np.random.default_rng(2).integers(0, 400, n)
        return lambda: model.fit(places[index], y).predict(Z, return_std=True)
    raise SystemExit(f"no task {task}")


def sklearn(task, n):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    X, y, Z = data(n)
    kernel = ConstantKernel(AMPLITUDE) * RBF(np.full(INPUTS, LENGTH))
    model = GaussianProcessRegressor(kernel, alpha=NOISE, optimizer=None)
    if task == "likelihood":
        model.X_train_, model.y_train_, model.kernel_ = X, y, kernel
        return lambda: model.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    if task in ("parts", "std"):
        return lambda: model.fit(X, y).predict(Z, return_std=True)
    if task == "point":
        model.fit(X, y)
        return lambda: model.predict(Z[:1], return_std=True)
    if task == "replicates":
        places = np.random.default_rng(1).normal(size=(400, INPUTS))
        index = np.random.default_rng(2).integers(0, 400, n)
        return lambda: model.fit(places[index], y).predict(Z, return_std=True)
    raise SystemExit(f"no task {task}")


def gpytorch(task, n):
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

    exact = g.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)
    cholesky = g.settings.max_cholesky_size(10**9)
    if task == "likelihood":
        model = Exact().train()
        objective = g.mlls.ExactMarginalLogLikelihood(model.likelihood, model)

        def run():
            model.zero_grad()
            with exact, cholesky:
                value = objective(model(X), y) * n
                value.backward()
            return float(value)

        return run

    def run():
        model = Exact().eval()
        with torch.no_grad(), exact, cholesky, g.settings.skip_posterior_variances(False):
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

    rng = np.random.default_rng(1)
    places = rng.normal(size=(400, INPUTS))
    index = np.random.default_rng(2).integers(0, 400, n)
    _, y, Z = data(n)
    known = {"theta": np.full(INPUTS, 2 * LENGTH**2), "g": NOISE / AMPLITUDE, "beta0": 0.0}

    def run():
        model = homGP()
        model.mle(X=places[index], Z=y, covtype="Gaussian", known=known)
        return model.predict(Z)

    return run


def limit(_task, n):
    """potrf and two trsm of the same size, the work that no exact method can avoid."""
    from scipy.linalg import blas, lapack

    rng = np.random.default_rng(0)
    a = np.asfortranarray(np.eye(n) * n + rng.uniform(size=(n, 1)) @ np.ones((1, n)) * 0)
    b = np.asfortranarray(rng.normal(size=(n, QUERIES)))

    def run():
        factor, _ = lapack.dpotrf(a, lower=1, overwrite_a=0, clean=0)
        v = blas.dtrsm(1.0, factor, b, lower=1)
        return blas.dtrsm(1.0, factor, v, lower=1, trans_a=1, overwrite_b=1)

    return run


def main():
    library, task, n, _threads, repeats = (
        sys.argv[1],
        sys.argv[2],
        int(sys.argv[3]),
        sys.argv[4],
        int(sys.argv[5]),
    )
    run = globals()[library](task, n)
    if library == "jax" or n <= 4000:
        run()  # compiles, or warms the memory
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if n > 4000 else None
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": statistics.median(times), "peak_kib": peak, "before_kib": before}))


if __name__ == "__main__":
    main()
