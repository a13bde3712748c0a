"""Side by side with other exact libraries: python benchmarks/regression.py [--threads 2] [--quick].

Every number comes from a process of its own (worker.py) with the threads of BLAS pinned; a line compares libraries on
the same data in the same run. Ratios above 1 say how many times faster this package is.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
NAMES = {
    "ours": "wienerkernel",
    "sklearn": "scikit-learn",
    "gpytorch": "GPyTorch (Cholesky)",
    "jax": "JAX (jitted)",
}
NEEDS = {"ours": "wienerkernel", "limit": "scipy"}


def measure(library, task, n, threads, repeats=3):
    if importlib.util.find_spec(NEEDS.get(library, library)) is None:
        return None
    pins = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    if library == "jax":
        pins["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
    command = [sys.executable, str(HERE / "worker.py"), library, task, str(n), str(threads), str(repeats)]
    if threads == 1:
        command = ["taskset", "-c", "0", *command]
    result = subprocess.run(command, env={**os.environ, **pins}, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        reason = (result.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"   {NAMES.get(library, library)}: ended with code {result.returncode}: {reason[:100]}")
        return None
    return json.loads(result.stdout.splitlines()[-1])


def compare(title, task, n, libraries, targets, threads, memory_target=None, repeats=3):
    print(f"\n{title}, D = {n}, {threads} thread{'s' * (threads > 1)}")
    results = {library: measure(library, task, n, threads, repeats) for library in ["ours", *libraries]}
    own = results["ours"]
    for library, result in results.items():
        if result is None:
            if library != "ours":
                print(f"   {NAMES.get(library, library):22s}  not measured")
            continue
        ratio = result["seconds"] / own["seconds"]
        doubles = (
            f"{(result['peak_kib'] - base(library)) * 1024 / (8 * n * n):5.1f} D^2 doubles"
            if n >= 2000
            else ""
        )
        verdict = ""
        if library in targets:
            verdict = f"target {targets[library]:g} x: {'met' if ratio >= targets[library] else 'MISSED'}"
        if library == "ours" and memory_target is not None:
            used = (result["peak_kib"] - base(library)) * 1024 / (8 * n * n)
            verdict = f"target {memory_target:g} D^2: {'met' if used <= memory_target else 'MISSED'}"
        print(
            f"   {NAMES.get(library, library):22s} {1e3 * result['seconds']:10.2f} ms {ratio:8.2f} x  {doubles:18s} {verdict}"
        )
    return results


BASE = {}


def base(library):
    """Resident memory of a process that does the same work on 200 rows: imports and thread pools."""
    if library not in BASE:
        result = measure(library, "parts", 200, 1, 1)
        BASE[library] = result["peak_kib"] if result else 0
    return BASE[library]


def small():
    """What Python costs: one point, and one row more."""
    from wienerkernel import RBF, WienerKernelRegressor

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50)
    model = WienerKernelRegressor(2.0 * RBF(2.0), tuning=None).fit(X, y)
    predictor, x = model.predictor(), X[0].copy()
    seconds = min(timed(lambda: predictor(x), 20_000) for _ in range(5))
    print(
        f"\none point, D = 50, mean and both variances: {1e6 * seconds:.2f} us  "
        f"target 8 us: {'met' if seconds < 8e-6 else 'MISSED'}"
    )

    X, y = rng.normal(size=(3000, 8)), rng.normal(size=3000)
    model = WienerKernelRegressor(2.0 * RBF(np.full(8, 2.0)), tuning=None).fit(X[:2000], y[:2000])
    start = time.perf_counter()
    for i in range(2000, 3000):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    append = time.perf_counter() - start
    refit = 0.0
    for n in (2000, 2500, 3000):  # Simpson's rule over the 1000 fits
        weight = {2000: 1, 2500: 4, 3000: 1}[n] / 6
        refit += (
            weight
            * 1000
            * timed(lambda n=n: WienerKernelRegressor(model.kernel, tuning=None).fit(X[:n], y[:n]), 1)
        )
    print(
        f"1000 rows appended one by one at D = 2000: {append:.2f} s, refitting {refit:.1f} s: "
        f"{refit / append:.0f} x  target 50 x: {'met' if refit >= 50 * append else 'MISSED'}"
    )


def timed(function, repeats):
    function()
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="leave out the largest cases")
    options = parser.parse_args()
    threads = options.threads
    peers = ["sklearn", "gpytorch", "jax"]
    for n in (2000, 4000):
        targets = dict.fromkeys(peers, 4.0)
        compare("log-likelihood and gradient, ARD d = 8", "likelihood", n, peers, targets, threads, 2.3)
    for n in (4000,) if options.quick else (4000, 10_000):
        targets = {"sklearn": 1.7, "gpytorch": 3.0, "jax": 1.15}
        results = compare(
            "fit, mean and all parts at 1000 points", "parts", n, [*peers, "limit"], targets, threads, 1.3
        )
        if results["limit"]:
            part = results["limit"]["seconds"] / results["ours"]["seconds"]
            print(
                f"   part of the potrf + trsm limit: {part:.0%}  target 90 %: {'met' if part >= 0.9 else 'MISSED'}"
            )
    compare(
        "fit and std at 1000 points through the estimator",
        "std",
        100,
        ["sklearn"],
        {"sklearn": 1.0},
        threads,
        repeats=50,
    )
    compare(
        "predict with std at one point", "point", 50, ["sklearn"], {"sklearn": 1.0}, threads, repeats=2000
    )
    results = compare(
        "rows at 400 places", "replicates", 20_000, ["hetgpy"], {"hetgpy": 1.0}, threads, repeats=5
    )
    peer = measure("sklearn", "replicates", 4000, threads, 1)
    if peer:
        scaled = peer["seconds"] * (20_000 / 4000) ** 3
        ratio = scaled / results["ours"]["seconds"]
        print(
            f"   scikit-learn at 4000 rows {peer['seconds']:.2f} s; by n^3 at 20,000: {scaled:.0f} s, {ratio:.0f} x  "
            f"target 1000 x: {'met' if ratio >= 1000 else 'MISSED'}"
        )
    small()


if __name__ == "__main__":
    main()
