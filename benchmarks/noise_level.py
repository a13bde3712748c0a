"""Does noise="auto" find a noise level s(x) that varies? Synthetic data, against hetgpy on the same samples.

Run with ``python benchmarks/noise_level.py``; ``--repeats`` sets the number of data sets of each kind. y = f(x) + s(x) M
with f(x) = 2 sin(x) on [0, 6] and M of mean 0 and variance 1. The tables have

- the integrated squared error of log s, the mean over a grid of (log s_hat - log s)^2, for auto and hetgpy;
- the coverage of 90 % intervals by thirds of x, and the negative log density (nlpd), for noise of Gamma shape;
- the nlpd that a learned level costs where the level is constant and the noise normal, over a model that knows so;
- the coverage of 90 % intervals with few samples of five inputs, and the nlpd, for auto and our default.

Standard errors are those of the mean over the data sets.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wienerkernel import WienerKernelRegressor

RESULTS = Path(__file__).parent / "results" / "noise_level.txt"
GRID = np.linspace(0, 6, 121)[:, None]
LEVELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "growing": lambda x: 0.1 * np.exp(x / 3),
    "bump": lambda x: 0.15 + 0.6 * np.exp(-((x - 3) ** 2)),
    "step": lambda x: np.where(x < 3, 0.1, 0.6),
}
SHAPES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "gamma(1)": lambda rng, n: rng.gamma(1.0, 1.0, n) - 1.0,
}
NEW = 300
"""New observations that score a fit."""


def sample(
    rng: np.random.Generator, n: int, level: Callable[[np.ndarray], np.ndarray], shape: str
) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(0, 6, n)
    return x[:, None], 2 * np.sin(x) + level(x) * SHAPES[shape](rng, n)


def hetgpy_level(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    from hetgpy import hetGP

    model = hetGP()
    model.mle(X, (y - y.mean()) / y.std())
    return y.std() * np.sqrt(model.predict(new)["nugs"])


def own_level(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    model = WienerKernelRegressor(noise="auto").fit(X, y)
    return model.noise_.std() * model.predict_noise_scale(new)


def told(values: list[float]) -> str:
    return f"{np.mean(values):.3f} +- {np.std(values) / np.sqrt(len(values)):.3f}".rjust(17)


def recovered(n: int, repeats: int) -> list[str]:
    """Integrated squared errors of log s."""
    lines = [f"integrated squared error of log s, n = {n}", " " * 12 + "auto".rjust(17) + "hetgpy".rjust(17)]
    for name, level in LEVELS.items():
        errors: dict[str, list[float]] = {"auto": [], "hetgpy": []}
        for seed in range(repeats):
            data = sample(np.random.default_rng(seed), n, level, "normal")
            for method, found in (("auto", own_level), ("hetgpy", hetgpy_level)):
                difference = np.log(found(*data, GRID)) - np.log(level(GRID[:, 0]))
                errors[method].append(float(np.mean(difference**2)))
        lines.append(name.ljust(12) + told(errors["auto"]) + told(errors["hetgpy"]))
    return lines


def covered(n: int, repeats: int) -> list[str]:
    """Coverage by thirds of x, and scores, for skewed noise whose level grows."""
    thirds: list[list[float]] = [[], [], []]
    gains: list[float] = []
    for seed in range(repeats):
        rng = np.random.default_rng(1000 + seed)
        X, y = sample(rng, n, LEVELS["growing"], "gamma(1)")
        new, at = sample(rng, NEW, LEVELS["growing"], "gamma(1)")
        report = WienerKernelRegressor(noise="auto").fit(X, y).score_report(new, at)
        normal = WienerKernelRegressor(noise_level="input").fit(X, y).score_report(new, at)
        gains.append(float((report.log_score - normal.log_score).mean()))
        inside = np.abs(report.pit - 0.5) <= 0.45
        for k, part in enumerate(thirds):
            part.append(float(inside[np.digitize(new[:, 0], [2.0, 4.0]) == k].mean()))
    means = [float(np.mean(part)) for part in thirds]
    met = all(0.87 <= value <= 0.93 for value in means)
    return [
        f"Gamma(1) noise, growing level, n = {n}: coverage of 90 % intervals by thirds of x"
        + "".join(told(part) for part in thirds)
        + f"   {'met' if met else 'MISSED'} (.87 to .93)",
        "gain of its shape over normal noise with a learned level, nats" + told(gains),
    ]


def gated(n: int, repeats: int) -> list[str]:
    """What auto loses where the noise is normal and of constant level."""
    losses, kept = [], 0
    for seed in range(repeats):
        rng = np.random.default_rng(2000 + seed)
        X, y = sample(rng, n, lambda x: np.full(len(x), 0.3), "normal")
        new, at = sample(rng, NEW, lambda x: np.full(len(x), 0.3), "normal")
        model = WienerKernelRegressor(noise="auto").fit(X, y)
        plain = WienerKernelRegressor().fit(X, y).score_report(new, at).log_score
        losses.append(float((plain - model.score_report(new, at).log_score).mean()))
        kept += model.posterior_.level is not None and model.posterior_.level.varies
    return [
        f"constant level, n = {n}: loss against normal noise, nats {told(losses)}, varying level kept in {kept} of {repeats}"
    ]


def few(n: int, repeats: int) -> list[str]:
    """Coverage and nlpd with few samples of five inputs, for normal noise of constant level."""
    found: dict[str, list[tuple[float, float]]] = {"auto": [], "default": []}
    for seed in range(repeats):
        rng = np.random.default_rng(3000 + seed)
        X = rng.normal(size=(n + NEW, 5))
        y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * X[:, 0] * X[:, 2] + 0.5 * rng.normal(size=n + NEW)
        for name, options in (("auto", {"noise": "auto"}), ("default", {})):
            report = WienerKernelRegressor(**options).fit(X[:n], y[:n]).score_report(X[n:], y[n:])
            found[name].append((float(report.coverage(0.9)), -float(report.log_score.mean())))
    return [
        f"five inputs, n = {n}:".ljust(24)
        + "".join(
            f"{name} coverage{told([c for c, _ in values])}, nlpd{told([s for _, s in values])}   "
            for name, values in found.items()
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[str] = []
    for n in (100, 200):
        lines += [*recovered(n, options.repeats), ""]
    for n in (100, 200):
        lines += covered(n, options.repeats)
    lines.append("")
    for n in (25, 50, 100):
        lines += gated(n, options.repeats)
    lines.append("")
    for n in (25, 47, 66, 100):
        lines += few(n, 2 * options.repeats)
    text = "\n".join(lines)
    print(text)
    if options.repeats >= parser.get_default("repeats"):
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
