"""The smoother as arrays: the samples, and the factor as a packed triangle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._typing import Array, FloatArray
from ...backend import arrays
from ...backend.growable_cholesky import GrowableCholesky
from ...kernels import Kernel
from ...smoother import Smoother
from ...smoother.samples import Samples
from ...smoother.trend import TRENDS
from ...validation import SMALLEST, check_size
from .archive import FormatError
from .nodes import Node, Reader, Writer, choice, entries, integer

__all__ = [
    "check_factor",
    "check_finite",
    "packed",
    "per_sample",
    "probes",
    "smoother_from",
    "smoother_node",
    "unpacked",
]

CLOSE = {"float64": 1e-6, "float32": 1e-2}
"""Relative difference of numbers that are equal up to rounding, also after many updates of a factor."""

CORNER = 8
"""Inputs at which the kernel is evaluated as a check."""

LARGEST_COUNT = 2**53

SAMPLES = ("places", "index", "row_regularizer", "scale")


def probes(places: FloatArray) -> FloatArray:
    """Inputs at which predictions are tried: some of the data, their center, and such of ordinary size."""
    ordinary = np.tile([[-1.0], [0.0], [1.0]], places.shape[1])
    return np.concatenate([places[:CORNER], places.mean(axis=0, keepdims=True), ordinary])


def check_finite(*predictions: FloatArray) -> None:
    """Raise FormatError unless all predictions are finite."""
    if not all(np.all(np.isfinite(part)) for part in predictions):
        raise FormatError("the predictions are not finite")


def smoother_node(smoother: Smoother, writer: Writer) -> Node:
    """Describe a smoother, and hand its arrays to the writer."""
    if type(smoother) is not Smoother:
        raise TypeError("this model cannot be saved: fit it with dtype='float64' or 'float32'")
    factor = arrays.as_numpy(smoother.factor)
    parts = {
        **{name: getattr(smoother.samples, name) for name in SAMPLES},
        "targets": smoother.targets,
        "factor": packed(factor),
    }
    nodes = {name: writer.array(name, values) for name, values in parts.items()}
    count = smoother.samples.count
    nodes["count"] = None if count is None else writer.array("count", count)
    # A factor that has grown is a view of wider rows: the room to grow is kept.
    grown = smoother.growable is not None and not factor.flags.c_contiguous
    width = factor.strides[0] // factor.itemsize if grown else len(factor)
    # So is L^-1 H, whose last bits depend on the way in which it has grown.
    extended = smoother.growable is not None and smoother.trend.kind == "constant"
    whitened = writer.array("whitened_trend", smoother.whitened_trend) if extended else None
    return {"trend": smoother.trend.kind, "width": width, "whitened_trend": whitened, **nodes}


def smoother_from(node: Node, kernel: Kernel, reader: Reader) -> Smoother:
    """The smoother that a node describes, after its parts have been compared with each other."""
    trend, width, whitened, *parts, targets, factor, count = entries(
        node, "trend", "width", "whitened_trend", *SAMPLES, "targets", "factor", "count"
    )
    samples = _counted(_samples_from(parts, reader), count, reader)
    n, d = samples.places.shape
    targets = reader.array(targets, (len(samples.index), None))
    check_size("targets", targets)
    # Said before the trend's matrix, of any size, is made.
    n_trend = {None: 0, "constant": 1, "linear": 1 + d}[choice(trend, *TRENDS)]
    if targets.shape[1] == 0 or n_trend > n:
        raise FormatError("model.json: the samples do not determine the trend, or there is no output")
    width = integer(width, n, 2 * n + 128)
    memory = unpacked(reader.array(factor, (n * (n + 1) // 2,)), n, width)
    regularizer = samples.regularizer if samples.regularizer.ndim == 1 else np.diagonal(samples.regularizer)
    check_factor(memory[:n, :n], kernel, samples.places, regularizer)
    growable = None if width == n else GrowableCholesky(memory, n)
    smoother = Smoother(kernel, samples, targets, trend, memory[:n, :n], growable)
    if whitened is not None:
        rows = reader.array(whitened, (n_trend, n))
        if not np.allclose(
            rows, smoother.whitened_trend, rtol=0, atol=CLOSE[rows.dtype.name] * np.max(np.abs(rows))
        ):
            raise FormatError("whitened_trend does not belong to the factor")
        smoother = Smoother(kernel, samples, targets, trend, memory[:n, :n], growable, whitened_trend=rows)
    if not np.all(np.isfinite(smoother.dual)) or not np.all(np.isfinite(smoother.trend_coefficients)):
        raise FormatError("the coefficients of the mean are not finite")
    return smoother


def check_factor(
    factor: FloatArray, kernel: Kernel, places: FloatArray, regularizer: FloatArray | float
) -> None:
    """The rows of L have the squared lengths K_ii + R_ii, and pivots far above the rounding of those."""
    lengths = np.einsum("ij,ij->i", factor, factor)
    expected = kernel.diag(places) + regularizer
    corner = kernel(places[:CORNER])  # fails for a kernel of another number of inputs
    close = np.allclose(lengths, expected, rtol=CLOSE[factor.dtype.name], atol=0)
    if not np.all(np.isfinite(corner)) or not close:
        raise FormatError("the factor does not belong to the kernel and the regularizer")
    if np.any(np.diagonal(factor) <= np.finfo(factor.dtype).eps ** 2 * np.sqrt(lengths)):
        raise FormatError("the diagonal of the factor must be positive")


def _samples_from(nodes: list[Node], reader: Reader) -> Samples:
    places = reader.array(nodes[0], (None, None))
    index = reader.array(nodes[1], (None,), kind="i").astype(np.intp, copy=False)
    n, n_samples = len(places), len(index)
    within = 0 not in places.shape and n_samples >= n and index.min() >= 0 and index.max() < n
    if not within or np.bincount(index, minlength=n).min() == 0:
        raise FormatError("index must assign every sample to a place, and every place a sample")
    check_size("places", places, places.dtype.name)
    regularizer, scale = (
        per_sample(node, n_samples, reader, smallest)
        for node, smallest in zip(nodes[2:], (SMALLEST**2, SMALLEST), strict=True)
    )
    if regularizer.ndim != scale.ndim:
        raise FormatError("regularizer and scale must both be vectors or both be matrices")
    if scale.ndim == 2 and not np.array_equal(index, np.arange(n)):
        raise FormatError("samples with correlated noise must not be merged")
    return Samples(places, index, regularizer, scale)


def _counted(samples: Samples, node: Node, reader: Reader) -> Samples:
    """The samples, each standing for several if the node holds their numbers."""
    if node is None:
        return samples
    count = reader.array(node, (len(samples.index),), kind="i").astype(np.intp, copy=False)
    if samples.scale.ndim == 2 or count.min() < 1 or count.max() > LARGEST_COUNT:
        raise FormatError("count must be positive integers, of samples with independent noise")
    return replace(samples, count=count)


def per_sample(node: Node, n: int, reader: Reader, smallest: float) -> FloatArray:
    """One positive number per sample, or a matrix."""
    values = reader.array(node, None)
    sizes = values if values.ndim == 1 else np.max(np.abs(values), axis=1, initial=0.0)
    if values.shape not in ((n,), (n, n)) or not np.all((sizes >= smallest) & (sizes <= 1 / smallest)):
        raise FormatError(
            f"regularizer and scale must be {n} positive numbers or a matrix, got {values.shape}"
        )
    return np.asarray(values)


def packed(factor: Array) -> FloatArray:
    """Lower triangle of a matrix (n, n), row by row, (n (n + 1) / 2,)."""
    # row by row: a mask of the triangle takes longer
    return np.concatenate([row[: k + 1] for k, row in enumerate(factor)])


def unpacked(triangle: FloatArray, n: int, width: int) -> FloatArray:
    """The matrix of a packed lower triangle, zero elsewhere, in a square of ``width`` rows."""
    memory = np.zeros((width, width), dtype=triangle.dtype)
    for row in range(n):
        start = row * (row + 1) // 2
        memory[row, : row + 1] = triangle[start : start + row + 1]
    return memory
