"""Benchmark on a GPU with torch tensors in double precision.

Run with ``python benchmarks/gpu.py [--sizes 10000 30000] [--device cuda]``. Measures fitting and predicting (the mean
and all parts of the variance), and the log-likelihood with its gradient. If GPyTorch is installed, the same run
measures it with Cholesky factors and in its default mode. Times are medians of the repeats after a warm-up, and memory
is the peak allocated by torch, including the data. The targets are for an H200.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import torch

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.backend import arrays
from wienerkernel.backend.linalg import cholesky, inverse_from_cholesky, solve_lower, solve_lower_transposed
from wienerkernel.kernels import gram
from wienerkernel.scale.features import choose_audit
from wienerkernel.scale.inducing import choose_inducing
from wienerkernel.scale.neighbors import NeighborSmoother
from wienerkernel.scale.sums import Sums, chunks

INPUTS, LENGTH, AMPLITUDE, NOISE = 8, 2.0, 2.0, 0.5
SECONDS = {30_000: 0.33, 60_000: 2.1, 100_000: 12.0}
GIGABYTES = {30_000: 15.0}
GRADIENT_SECONDS = {30_000: 0.9}
LIBRARIES = {"torch": "torch", "cupy": "CuPy", "jax": "JAX"}
MATRICES = {"torch": 1.1, "cupy": 6.0, "jax": 6.0}  # D x D matrices held at once; torch works in place
CHUNKS = 5.0  # GB for a chunk of queries and its intermediate results
DEFAULT_MODE_UP_TO = 30_000  # rows; GPyTorch's default mode is an approximation


def data(n, queries, device):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(n, INPUTS)), rng.normal(size=(queries, INPUTS))
    y = np.sin(X[:, 0]) + NOISE**0.5 * rng.normal(size=n)
    return tuple(torch.as_tensor(a, device=device) for a in (X, y, Z))


def kernel():
    return AMPLITUDE * RBF(np.full(INPUTS, LENGTH))


def model(dtype="float64"):
    return WienerKernelRegressor(
        kernel(), noise=f"norm(0, {NOISE**0.5})", tuning=None, trend=None, dtype=dtype
    )


def parts(X, y, Z):
    """Fit and predict: mean, V and P2."""
    mean, split = model().fit(X, y).posterior_.mean_and_uncertainty(Z)
    return mean, split.noise, split.model


def mixed_precision(n, options):
    """The same with a factor in single precision and refined solves, and the residual of the mean's equations."""
    print(f"\nsingle-precision factor, refined, mean and all parts at {options.queries} points, D = {n:,}")
    X, y, Z = data(n, options.queries, options.device)
    start = time.perf_counter()
    fitted = model("mixed").fit(X, y)
    mean = fitted.posterior_.mean(Z)
    first = time.perf_counter() - start
    split = fitted.posterior_.uncertainty(Z)
    total, smoother = float(split.total.sum()), fitted.posterior_.smoother
    seconds = time.perf_counter() - start
    targets = smoother.samples.means(smoother.targets).T
    rows = arrays.like(np.ascontiguousarray(targets), smoother.places)
    rest = rows - smoother._times(arrays.contiguous(smoother.dual.T))
    residual = float((rest**2).sum() ** 0.5 / (rows**2).sum() ** 0.5)
    peak = torch.cuda.max_memory_allocated() / 1e9 if X.is_cuda else float("nan")
    print(
        f"   fit and mean {first:.1f} s, with all parts {seconds:.1f} s, {peak:.1f} GB, residual {residual:.1e}  "
        f"target 1e-10: {'met' if residual < 1e-10 else 'MISSED'} (mean {float(mean.mean()):.6f}, total {total:.4f})",
        flush=True,
    )


def likelihood(X, y, _):
    return model().fit(X, y).log_likelihood(eval_gradient=True)


def gpytorch_task(task, default):
    """The same task in GPyTorch, whose default mode uses conjugate gradients above 800 rows."""
    import contextlib

    import gpytorch as g

    class Exact(g.models.ExactGP):
        def __init__(self, X, y):
            super().__init__(X, y, g.likelihoods.GaussianLikelihood())
            self.mean_module = g.means.ZeroMean()
            self.covar_module = g.kernels.ScaleKernel(g.kernels.RBFKernel(ard_num_dims=INPUTS))
            self.double().to(X.device)
            self.covar_module.outputscale = AMPLITUDE
            self.covar_module.base_kernel.lengthscale = LENGTH
            self.likelihood.noise = NOISE

        def forward(self, x):
            return g.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    @contextlib.contextmanager
    def mode():
        if default:
            yield
            return
        exact = g.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)
        with exact, g.settings.max_cholesky_size(10**9):
            yield

    def run(X, y, Z):
        if task is likelihood:
            peer = Exact(X, y).train()
            with mode():
                value = g.mlls.ExactMarginalLogLikelihood(peer.likelihood, peer)(peer(X), y) * len(X)
                value.backward()
            return (value.item(),)
        peer = Exact(X, y).eval()
        with torch.no_grad(), mode():
            prediction = peer(Z)
            return prediction.mean, prediction.variance

    return run


def values(results):
    return [arrays.as_numpy(r) if arrays.is_array_api(r) else np.asarray(r) for r in results]


def measure(run, tensors, repeats):
    """Median seconds, peak memory of torch on a GPU in GB (or None) and the results, or the reason for failure."""
    on_gpu, times = isinstance(tensors[0], torch.Tensor) and tensors[0].is_cuda, []
    try:
        for _ in range(1 + repeats):
            gc.collect()
            if on_gpu:
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                torch.cuda.synchronize()
            start = time.perf_counter()
            results = run(*tensors)
            if on_gpu:
                torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
    except (RuntimeError, MemoryError) as error:  # usually out of memory, which CuPy reports as MemoryError
        return str(error).split(".")[0] or type(error).__name__
    peak = torch.cuda.max_memory_allocated() / 1e9 if on_gpu else None
    return statistics.median(times[1:]), peak, values(results)


def line(name, measured, flops, first=None, targets=()):
    """Print one row of the table, compared with the row ``first``."""
    if isinstance(measured, str):
        print(f"   {name:22s} {measured}", flush=True)
        return
    seconds, gigabytes, results = measured
    text = f"   {name:22s} {seconds:9.3f} s {flops / seconds / 1e12:7.1f} TFLOP/s"
    if gigabytes is not None:
        text += f" {gigabytes:7.1f} GB"
    if first is not None:
        off = np.max(np.abs(results[0] - first[2][0])) / np.max(np.abs(first[2][0]))
        text += f"  {seconds / first[0]:6.2f} x the time; differs by {off:.0e}"
    for value, limit, unit in targets:
        if limit is not None:
            text += f"  target {limit:g} {unit}: {'met' if value <= limit else 'MISSED'}"
    print(text, flush=True)


def compare(title, task, n, options, flops, targets):
    print(f"\n{title}, D = {n:,}")
    tensors = data(n, options.queries, options.device)
    own = measure(task, tensors, options.repeats)
    limits = [] if isinstance(own, str) else [(own[i], *target) for i, target in enumerate(targets)]
    line("wienerkernel", own, flops, targets=limits)
    if isinstance(own, str) or importlib.util.find_spec("gpytorch") is None:
        return
    for name, default in (("GPyTorch (Cholesky)", False), ("GPyTorch (default)", True)):
        if not default or n <= DEFAULT_MODE_UP_TO:
            line(name, measure(gpytorch_task(task, default), tensors, options.repeats), flops, own)


def phases(n, options, inverse):
    """Time each phase separately."""
    X, _, Z = data(n, options.queries, options.device)
    k, seconds = kernel(), {}

    def timed(name, function, *arguments):
        if X.is_cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        result = function(*arguments)
        if X.is_cuda:
            torch.cuda.synchronize()
        seconds[name] = time.perf_counter() - start
        return result

    matrix = timed("Gram matrix", gram, k, X)
    matrix.diagonal().add_(NOISE)
    factor = timed("Cholesky", cholesky, matrix)
    cross = timed("cross-covariances", k, Z, X)
    cross = timed("L^-1", solve_lower, factor, cross)
    timed("L'^-1", solve_lower_transposed, factor, cross)
    if inverse:
        sensitivity = timed("inverse", inverse_from_cholesky, factor)
        timed("pullback", lambda: k.pullback(X, sensitivity, symmetric=True))
    shown = ", ".join(f"{name} {value:.3f} s" for name, value in seconds.items())
    print(f"   of which: {shown}; Cholesky at {n**3 / 3e12 / seconds['Cholesky']:.1f} TFLOP/s", flush=True)


def check(n, options):
    """Print the largest difference from the NumPy results, relative to the largest value."""
    tensors = data(n, options.queries, options.device)
    reference = tuple(a.cpu().numpy() for a in tensors)
    print(f"\nlargest difference from NumPy, D = {n:,}")
    for task, names in (
        (parts, ("mean", "noise part", "model part")),
        (likelihood, ("log-likelihood", "gradient")),
    ):
        for name, one, other in zip(names, values(task(*tensors)), values(task(*reference)), strict=True):
            off = np.max(np.abs(one - other)) / np.max(np.abs(other))
            print(f"   {name:22s} {off:.1e}  target 1e-9: {'met' if off <= 1e-9 else 'MISSED'}", flush=True)


def other_libraries(n, options):
    """Run the same task with CuPy and JAX arrays, which are not modified in place.

    Each library runs in its own process: JAX preallocates three quarters of the memory, and CuPy and torch cache freed
    memory, which is only released when the process ends.
    """
    print(f"\nfit, mean and all parts at {options.queries} points by array library, D = {n:,}", flush=True)
    gc.collect()
    torch.cuda.empty_cache()
    first = None
    for library, name in LIBRARIES.items():
        needed, free = memory_needed(library, n), memory_free(options.device)
        if needed > free:
            print(
                f"   {name:22s} skipped: it needs about {needed:.0f} GB, {free:.0f} GB are free", flush=True
            )
            continue
        measured = in_a_process(library, n, options)
        line(name, measured, n**3 / 3 + 2 * n**2 * options.queries, first)
        first = measured if first is None and not isinstance(measured, str) else first


def memory_needed(library, n):
    """Estimated peak memory in GB: the matrices held at the same time, and a chunk of queries."""
    return MATRICES[library] * 8 * n**2 / 1e9 + CHUNKS


def memory_free(device):
    """Free memory of a GPU in GB; infinite for a CPU."""
    return torch.cuda.mem_get_info(device)[0] / 1e9 if device.startswith("cuda") else float("inf")


def in_a_process(library, n, options):
    """Return the result of `measure`, run in a separate process."""
    numbers = {
        "--rows": n,
        "--queries": options.queries,
        "--repeats": options.repeats,
        "--block": options.block,
    }
    command = [sys.executable, __file__, "--library", library, "--device", options.device]
    command += [str(word) for pair in numbers.items() for word in pair]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"exit code {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}"
    measured = json.loads(done.stdout.splitlines()[-1])
    return measured if isinstance(measured, str) else (*measured[:2], [np.array(measured[2])])


def one_library(options):
    """Measure one library and print the result as JSON."""
    if options.library == "torch":
        given = data(options.rows, options.queries, options.device)
    else:
        try:
            asarray = {"cupy": cupy_asarray, "jax": jax_asarray}[options.library](options.device)
        except ImportError as error:
            print(json.dumps(str(error)))
            return
        given = tuple(asarray(t.numpy()) for t in data(options.rows, options.queries, "cpu"))
    # converting to NumPy waits for asynchronous computations
    measured = measure(lambda *a: values(parts(*a)), given, options.repeats)
    result = measured if isinstance(measured, str) else (*measured[:2], measured[2][0].tolist())
    print(json.dumps(result))


def cupy_asarray(_device):
    import cupy

    return cupy.asarray


def jax_asarray(device):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if device == "cpu":
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray


def approximations(n, number, options):
    """Sums of features, and neighbors in batches: where the data are, and with NumPy."""
    rng = np.random.default_rng(0)
    k = kernel()
    small = rng.standard_normal((4 * number, INPUTS))
    inducing = choose_inducing(k, small, number, None, rng)
    audit = choose_audit(inducing, small, 256, rng)

    def timed(task):
        task()
        synchronize(options.device)
        start = time.perf_counter()
        result = task()
        synchronize(options.device)
        return result, time.perf_counter() - start

    def sums(rows, device):
        X = torch.randn((rows, INPUTS), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        X = X.numpy() if device is None else X.to(device)
        y, scale = X[:, :1], X[:, 0] * 0 + 1
        return timed(lambda: Sums.over(chunks(X, y, scale), inducing, audit, 4096))

    print(f"\nsums of {number:,} features and 256 audit frequencies")
    rows = min(n, 20_000)
    (here, seconds), (there, _) = sums(rows, None), sums(rows, options.device)
    worst = float(np.max(np.abs(here.gram - there.gram)) / np.max(np.abs(here.gram)))
    print(f"   NumPy, {rows:,} rows         {seconds:.3f} s; largest difference {worst:.0e}")
    _, seconds = sums(n, options.device)
    rate = 2 * n * number**2 / seconds / 1e12
    print(f"   {options.device}, {n:,} rows      {seconds:.3f} s    {rate:.1f} TFLOP/s", flush=True)

    n = min(n, 1_000_000)
    X, queries = rng.standard_normal((n, INPUTS)), rng.standard_normal((10 * options.queries, INPUTS))
    ones = np.ones(n)
    cpu = NeighborSmoother(k, X, X[:, :1], NOISE**2 * ones, ones, "constant", 256)
    gpu = replace(cpu, on_device=torch.asarray(X, device=options.device))
    print(f"\n256 neighbors among {n:,} rows")
    few = queries[:200]
    here, seconds = timed(lambda: cpu.predict(few))
    there, _ = timed(lambda: gpu.predict(few))
    worst = max(float(np.max(np.abs(a - b))) for a, b in zip(here, there, strict=True))
    print(f"   NumPy, {len(few)} points          {seconds:.3f} s; largest difference {worst:.0e}")
    _, seconds = timed(lambda: gpu.predict(queries))
    print(f"   {options.device}, {len(queries):,} points       {seconds:.3f} s", flush=True)


def synchronize(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 30_000, 60_000, 100_000])
    parser.add_argument("--gradient-sizes", type=int, nargs="*", default=[30_000])
    parser.add_argument("--library-sizes", type=int, nargs="*", default=[10_000, 30_000])
    parser.add_argument("--mixed-sizes", type=int, nargs="*", default=[30_000, 150_000])
    parser.add_argument("--sums", type=int, nargs=2, default=[10_000_000, 4096], metavar=("ROWS", "FEATURES"))
    parser.add_argument(
        "--check", type=int, default=2000, help="number of rows for the comparison with NumPy"
    )
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--block", type=int, default=arrays.TORCH_BLOCK, help="number of rows per block")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--library", choices=LIBRARIES, help="measure only this library and print JSON")
    parser.add_argument("--rows", type=int, default=10_000, help="number of rows for --library")
    options = parser.parse_args()
    arrays.TORCH_BLOCK = options.block
    if options.library:
        one_library(options)
        return
    name = torch.cuda.get_device_name(options.device) if options.device.startswith("cuda") else "CPU"
    print(f"{name}, torch {torch.__version__}, float64, d = {INPUTS}, blocks of {options.block} rows")
    check(options.check, options)
    for n in options.sizes:
        flops = n**3 / 3 + 2 * n**2 * options.queries
        title = f"fit, mean and all parts at {options.queries} points"
        targets = ((SECONDS.get(n), "s"), (GIGABYTES.get(n), "GB"))
        compare(title, parts, n, options, flops, targets)
        phases(n, options, inverse=False)
    for n in options.gradient_sizes:
        compare(
            "log-likelihood and gradient", likelihood, n, options, n**3, ((GRADIENT_SECONDS.get(n), "s"),)
        )
        phases(n, options, inverse=True)
    for n in options.mixed_sizes:
        gc.collect()
        if options.device.startswith("cuda"):
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        mixed_precision(n, options)
    if options.sums[0]:
        approximations(*options.sums, options)
    for n in options.library_sizes:
        other_libraries(n, options)


if __name__ == "__main__":
    main()
