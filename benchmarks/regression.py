"""Comparison with other exact libraries: python benchmarks/regression.py [--threads 2] [--large | --fits].

Every number comes from its own process (worker.py) with a fixed number of BLAS threads; each line compares libraries on
the same data in the same run. Ratios above 1 say how many times faster this package is, and "off by" is the largest
difference from its answers. ``--large`` has 16,000 and 25,000 rows instead, which take minutes each and up to 16 GB.
The output is kept in results/regression.txt and results/regression_large.txt, except for that of ``--fits`` or another
number of threads.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE / "results"
NAMES = {
    "ours": "wienerkernel",
    "sklearn": "scikit-learn",
    "gpytorch": "GPyTorch (Cholesky)",
    "gpytorch_default": "GPyTorch (default)",
    "jax": "JAX (jitted)",
    "scipy": "scipy.linalg.cholesky",
    "limit": "potrf + 2 trsm",
}
NEEDS = {"ours": "wienerkernel", "limit": "scipy", "gpytorch_default": "gpytorch"}
PEERS = ["sklearn", "gpytorch", "jax"]
LAWS = ["family t(4)", "family gamma(2)", "laplace(0, 1)", "uniform(-1, 2)"]
SECONDS = 900  # after which a child is ended

VERDICTS: dict[str, bool] = {}
BASES: dict[str, int] = {}
LINES: list[str] = []


def say(text):
    """Print a line, and keep it for the file of results."""
    print(text, flush=True)
    LINES.append(text)


def verdict(work, target, met):
    VERDICTS[f"{work}: {target}"] = bool(met)
    return f"target {target}: {'met' if met else 'MISSED'}"


def measure(library, task, n, threads, repeats=3):
    """The report of worker.py, or a message that says why there is none."""
    if importlib.util.find_spec(NEEDS.get(library, library)) is None:
        return "not installed"
    pins = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    if library == "jax":
        pins["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
    command = [sys.executable, str(HERE / "worker.py"), library, task, str(n), str(threads), str(repeats)]
    if threads == 1:
        command = ["taskset", "-c", "0", *command]
    try:
        result = subprocess.run(
            command, env={**os.environ, **pins}, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"not done after {SECONDS} s"
    if result.returncode < 0:
        return f"crashed: {signal.Signals(-result.returncode).name}"
    if result.returncode > 0:
        return "failed: " + (result.stderr.strip().splitlines() or ["no message"])[-1][:80]
    return json.loads(result.stdout.splitlines()[-1])


def matrices(library, result, n):
    """Peak memory in matrices of D^2 doubles, above that of a process which does the work on 200 rows."""
    if library not in BASES:
        small = measure(library, "parts", 200, 1, 1)
        BASES[library] = 0 if isinstance(small, str) else small["peak_kib"]
    return (result["peak_kib"] - BASES[library]) * 1024 / (8 * n * n)


def compare(title, task, n, libraries, targets, threads, memory=None, repeats=3):
    """One block of the table; ``targets`` are ratios, ``memory`` is in matrices."""
    work = f"{title}, D = {n:,}"
    say(f"\n{work}, {threads} thread{'s' * (threads > 1)}")
    results = {}
    for library in ["ours", *libraries]:
        # The default mode of GPyTorch is an approximation, shown for comparison.
        often = 1 if library == "gpytorch_default" else repeats
        result = results[library] = measure(library, task, n, threads, often)
        name, own = NAMES.get(library, library), results["ours"]
        if isinstance(result, str):
            say(f"   {name:22s} {result}")
            continue
        text = f"   {name:22s} {1e3 * result['seconds']:10.2f} ms"
        used = matrices(library, result, n) if n >= 2000 and task in ("parts", "likelihood") else None
        text += f" {used:5.1f} D^2 doubles" if used is not None else ""
        if library == "ours":
            text += f", residual {result['residual']:.0e}" if "residual" in result else ""
            text += "  " + verdict(work, f"{memory:g} D^2", used <= memory) if memory else ""
        elif not isinstance(own, str):
            ratio = result["seconds"] / own["seconds"]
            text += f" {ratio:8.2f} x" + difference(result, own)
            if library in targets:
                text += "  " + verdict(work, f"{targets[library]:g} x {name}", ratio >= targets[library])
        say(text)
    return results


def difference(result, own):
    ours, theirs = np.asarray(own["answer"]), np.asarray(result["answer"])
    if ours.shape != theirs.shape:
        return ""
    return f"  off by {np.max(np.abs(theirs - ours)) / np.max(np.abs(ours)):.0e}"


def parts(n, threads, repeats):
    title = "fit, mean and all parts at 1000 points"
    targets = {"sklearn": 1.7, "gpytorch": 3.0, "jax": 1.15}
    peers = [*PEERS, "gpytorch_default"] if n <= 4000 else PEERS
    results = compare(title, "parts", n, peers, targets, threads, memory=1.3, repeats=repeats)
    limit = measure("limit", "parts", n, threads, repeats)
    if not isinstance(limit, str) and not isinstance(results["ours"], str):
        part = limit["seconds"] / results["ours"]["seconds"]
        say(
            f"   {NAMES['limit']:22s} {1e3 * limit['seconds']:10.2f} ms, {part:.0%} of our time  "
            + verdict(f"{title}, D = {n:,}", "90 % in potrf + trsm", part >= 0.9)
        )


def replicates(threads):
    title = "rows at 400 places"
    own = compare(title, "replicates", 20_000, ["hetgpy"], {"hetgpy": 1.0}, threads, repeats=5)["ours"]
    peer = measure("sklearn", "replicates", 4000, threads, 1)
    if not isinstance(peer, str) and not isinstance(own, str):
        scaled = peer["seconds"] * (20_000 / 4000) ** 3
        ratio = scaled / own["seconds"]
        say(
            f"   scikit-learn at 4000 rows {peer['seconds']:.2f} s; by n^3 at 20,000: {scaled:.0f} s, {ratio:.0f} x  "
            + verdict(title, "1000 x scikit-learn", ratio >= 1000)
        )


def small(threads):
    """The overhead of Python: one query point, and one appended row."""
    compare("fit and std at 1000 points", "std", 100, ["sklearn"], {"sklearn": 1.0}, threads, repeats=50)
    compare(
        "predict with std at one point", "point", 50, ["sklearn"], {"sklearn": 1.0}, threads, repeats=2000
    )

    from wienerkernel import RBF, WienerKernelRegressor

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50)
    predictor = WienerKernelRegressor(2.0 * RBF(2.0), trend=None, tuning=None).fit(X, y).predictor()
    x = X[0].copy()
    seconds = min(timed(lambda: predictor(x), 20_000) for _ in range(5))
    work = "fast predictor, one point, D = 50"
    say(f"\n{work}: {1e6 * seconds:.2f} us  " + verdict(work, "8 us", seconds < 8e-6))

    X, y = rng.normal(size=(3000, 8)), rng.normal(size=3000)
    model = WienerKernelRegressor(2.0 * RBF(np.full(8, 2.0)), trend=None, tuning=None).fit(X[:2000], y[:2000])
    start = time.perf_counter()
    for i in range(2000, 3000):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    append = time.perf_counter() - start
    # Simpson's rule over the 1000 fits
    fits = [timed(lambda n=n: model.fit(X[:n], y[:n]), 2) for n in (2000, 2500, 3000)]
    refit = 1000 * (fits[0] + 4 * fits[1] + fits[2]) / 6
    work = "1000 rows appended one by one at D = 2000"
    say(
        f"{work}: {append:.2f} s, refitting {refit:.1f} s: {refit / append:.0f} x  "
        + verdict(work, "50 x refitting", refit >= 50 * append)
    )


def fits(threads, n=2000):
    """Five inputs with a length scale each and Student noise: by likelihood, and by leave-one-out with its law."""
    say(f"\nfits, D = {n:,}, one length scale for each of 5 inputs, {threads} thread{'s' * (threads > 1)}")
    results = {}
    for library, task in (("ours", "fit likelihood"), ("sklearn", "fit likelihood"), ("ours", "fit loo")):
        result = measure(library, task, n, threads, 1)
        if isinstance(result, str):
            say(f"   {NAMES[library]}, {task}: {result}")
            return
        seconds, value = result["cpu_seconds" if threads == 1 else "seconds"], result["answer"][0]
        text = f"   {NAMES[library]:13s} {task:16s} {seconds:8.2f} s, objective {value:.3f}"
        own = results.setdefault(task, (seconds, value))
        if library == "sklearn":
            ratio, gain = seconds / own[0], own[1] - value
            text += f", {ratio:.1f} x, ours ends {gain:+.3f}  "
            text += verdict(task, "10 x scikit-learn", ratio >= 10) + ", "
            text += verdict(task, "objective within 0.1 of scikit-learn", gain >= -0.1)
        elif task == "fit loo":
            ratio = seconds / results["fit likelihood"][0]
            text += f", {ratio:.1f} x likelihood  " + verdict(task, "15 x likelihood", ratio <= 15)
        say(text)


def evaluations():
    """One leave-one-out score with its gradient in likelihoods with theirs, on one thread."""
    say("\none leave-one-out evaluation, in likelihood evaluations, 1 thread")
    for law in LAWS:
        for n in (500, 2000):
            result, work = (
                measure("ours", f"evaluations {law}", n, 1, 1),
                f"leave-one-out of {law}, D = {n:,}",
            )
            if isinstance(result, str):
                say(f"   {work}: {result}")
                continue
            ratio = result["answer"][0]
            say(f"   {law:32s} D = {n:5,}  {ratio:5.1f}  " + verdict(work, "10 likelihoods", ratio <= 10))


def timed(function, repeats):
    function()
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats


def large(threads):
    """Sizes at which OpenBLAS crashes on two threads, up to what fits into 24 GB."""
    compare(
        "fit, mean and all parts at 1000 points", "parts", 16_000, [*PEERS, "scipy"], {}, threads, repeats=1
    )
    compare("log-likelihood and gradient, ARD d = 8", "likelihood", 16_000, [], {}, threads, repeats=1)
    compare("fit, mean and all parts at 1000 points", "parts", 25_000, [], {}, threads, memory=1.3, repeats=1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--large", action="store_true", help="only 16,000 and 25,000 rows")
    parser.add_argument(
        "--fits", action="store_true", help="only the fits and evaluations of their objectives"
    )
    options = parser.parse_args()
    threads = options.threads
    # The measurements that are made in this process, too.
    if os.environ.get("OPENBLAS_NUM_THREADS") != str(threads):
        os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)))
        os.execv(sys.executable, [sys.executable, *sys.argv])
    if options.large:
        large(threads)
    elif options.fits:
        fits(threads)
        evaluations()
    else:
        for n in (2000, 4000):
            targets, title = dict.fromkeys(PEERS, 4.0), "log-likelihood and gradient, ARD d = 8"
            compare(title, "likelihood", n, [*PEERS, "gpytorch_default"], targets, threads, memory=2.3)
        parts(4000, threads, repeats=5)
        parts(10_000, threads, repeats=3)
        replicates(threads)
        small(threads)
        fits(threads)
        evaluations()
    say(f"\n{sum(VERDICTS.values())} of {len(VERDICTS)} targets met")
    for work, met in VERDICTS.items():
        if not met:
            say(f"   MISSED: {work}")
    if not options.fits and threads == parser.get_default("threads"):
        file = RESULTS / ("regression_large.txt" if options.large else "regression.txt")
        file.write_text("\n".join(LINES).strip() + "\n")


if __name__ == "__main__":
    main()
