"""The smoother as arrays: samples, the factor as a packed triangle, and what was solved with it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._typing import Array, FloatArray
from ...backend import arrays
from ...backend.growable_cholesky import GrowableCholesky
from ...kernels import Kernel
from ...smoother import Smoother
from ...smoother.samples import Samples
from ...validation import SMALLEST, check_size
from .archive import FormatError
from .nodes import Node, Reader, Writer, entries, integer

__all__ = ["packed", "smoother_from", "smoother_node", "unpacked"]

CLOSE = {"float64": 1e-6, "float32": 1e-2}
"""Relative difference of numbers that are the same up to rounding, after many updates of a factor, too."""

CORNER = 8
"""Places at which the kernel is looked at."""

SAMPLES = ("places", "index", "row_regularizer", "scale")
SOLVED = ("targets", "dual", "whitened", "coefficients", "factor")


def smoother_node(smoother: Smoother, writer: Writer) -> Node:
    """Describe a smoother, and hand its arrays to the writer.

    Parameters
    ----------
    smoother : Smoother
    writer : Writer

    Returns
    -------
    Node
    """
    factor = arrays.as_numpy(smoother.factor)
    whitened, coefficients = smoother._whitened
    parts = {
        **{name: getattr(smoother.samples, name) for name in SAMPLES},
        "targets": smoother.targets,
        "dual": smoother.dual,
        "whitened": whitened,
        "coefficients": coefficients,
        "factor": packed(factor),
    }
    nodes = {name: writer.array(name, values) for name, values in parts.items()}
    # A factor that has grown is a view of wider rows: the room to grow is kept.
    grown = smoother.growable is not None and not factor.flags.c_contiguous
    width = factor.strides[0] // factor.itemsize if grown else len(factor)
    return {"trend": smoother.trend.kind, "width": width, **nodes}


def smoother_from(node: Node, kernel: Kernel, reader: Reader) -> Smoother:
    """The smoother that a node describes; its parts are compared with each other.

    Parameters
    ----------
    node : Node
    kernel : Kernel
    reader : Reader

    Returns
    -------
    Smoother
    """
    trend, width, *parts = entries(node, "trend", "width", *SAMPLES, *SOLVED)
    samples = _samples_from(dict(zip(SAMPLES, parts, strict=False)), reader)
    n, d = samples.places.shape
    solved = dict(zip(SOLVED, parts[len(SAMPLES) :], strict=True))
    targets = reader.array(solved["targets"], (len(samples.index), None))
    n_outputs, n_trend = targets.shape[1], {None: 0, "constant": 1, "linear": 1 + d}.get(trend, n + 1)
    if n_outputs == 0 or n_trend > n:
        raise FormatError("model.json: the samples do not determine the trend, or there is no output")
    width = integer(width, n, 2 * n + 128)
    dual = reader.array(solved["dual"], (n, n_outputs))
    whitened = reader.array(solved["whitened"], (n_outputs, n))
    coefficients = reader.array(solved["coefficients"], (n_trend, n_outputs))
    memory = unpacked(reader.array(solved["factor"], (n * (n + 1) // 2,)), n, width)
    factor = memory[:n, :n]
    _check_factor(factor, kernel, samples)
    growable = None if width == n else GrowableCholesky(memory, n)
    smoother = Smoother(kernel, samples, targets, trend, factor, growable)
    smoother.__dict__.update(_whitened=(whitened, coefficients), dual=dual)  # cached properties
    _check_solutions(smoother)
    return smoother


def _check_factor(factor: FloatArray, kernel: Kernel, samples: Samples) -> None:
    """The rows of L have the squared lengths K_ii + R_ii, and pivots far above the rounding of those."""
    regularizer = samples.regularizer if samples.regularizer.ndim == 1 else np.diagonal(samples.regularizer)
    lengths = np.einsum("ij,ij->i", factor, factor)
    expected = kernel.diag(samples.places) + regularizer
    corner = kernel(samples.places[:CORNER])  # a kernel for another number of inputs says so
    if not np.all(np.isfinite(corner)) or not np.allclose(
        lengths, expected, rtol=CLOSE[factor.dtype.name], atol=0
    ):
        raise FormatError("the factor does not belong to the kernel and the regularizer")
    if np.any(np.diagonal(factor) <= np.finfo(factor.dtype).eps ** 2 * np.sqrt(lengths)):
        raise FormatError("the diagonal of the factor must be positive")


def _check_solutions(smoother: Smoother) -> None:
    """L w = ybar - H beta and L'alpha = w, up to rounding."""
    factor, (whitened, coefficients) = smoother.factor, smoother._whitened
    size = float(np.linalg.norm(factor))
    sides = smoother.samples.means(smoother.targets) - smoother.trend(smoother.places) @ coefficients
    taken = np.linalg.norm(
        coefficients.T @ smoother.whitened_trend
    )  # off L^-1 ybar, which left its rounding errors
    for matrix, solution, side, terms in (
        (factor, whitened.T, sides, np.linalg.norm(whitened) + taken),
        (factor.T, smoother.dual, whitened.T, np.linalg.norm(smoother.dual)),
    ):
        off = np.linalg.norm(matrix @ solution - side)
        if not off <= CLOSE[factor.dtype.name] * (size * terms + np.linalg.norm(side)):
            raise FormatError("the coefficients do not solve the equations of the factor")


def _samples_from(nodes: dict[str, Node], reader: Reader) -> Samples:
    places = reader.array(nodes["places"], (None, None))
    index = reader.array(nodes["index"], (None,), kind="i").astype(np.intp, copy=False)
    n, n_samples = len(places), len(index)
    within = 0 not in places.shape and n_samples >= n and index.min() >= 0 and index.max() < n
    if not within or np.bincount(index, minlength=n).min() == 0:
        raise FormatError("index does not give every sample a place, and every place a sample")
    check_size("places", places, places.dtype.name)
    regularizer = _per_sample(nodes["row_regularizer"], n_samples, reader, SMALLEST**2)
    scale = _per_sample(nodes["scale"], n_samples, reader, SMALLEST)
    if regularizer.ndim != scale.ndim:
        raise FormatError("regularizer and scale must both be vectors or both be matrices")
    if scale.ndim == 2 and not np.array_equal(index, np.arange(n)):
        raise FormatError("samples with correlated noise must have a place each")
    return Samples(places, index, regularizer, scale)


def _per_sample(node: Node, n: int, reader: Reader, smallest: float) -> FloatArray:
    """One positive number per sample, or a matrix; the node does not say which, the array does."""
    values = reader.array(node, None)
    sizes = values if values.ndim == 1 else np.max(np.abs(values), axis=1, initial=0.0)
    if values.shape not in ((n,), (n, n)) or not np.all((sizes >= smallest) & (sizes <= 1 / smallest)):
        raise FormatError(
            f"regularizer and scale must be {n} positive numbers or a matrix, got {values.shape}"
        )
    return np.asarray(values)


def packed(factor: Array) -> FloatArray:
    """Lower triangle of a matrix, row by row, (n (n + 1) / 2,).

    Parameters
    ----------
    factor : ndarray of shape (n, n)

    Returns
    -------
    ndarray
    """
    n = len(factor)
    triangle = np.empty(n * (n + 1) // 2, dtype=factor.dtype)
    for row, part in enumerate(_rows(triangle, n)):  # a mask of the triangle takes longer
        part[:] = factor[row, : row + 1]
    return triangle


def unpacked(triangle: FloatArray, n: int, width: int) -> FloatArray:
    """The matrix of a packed lower triangle, zero elsewhere, in a square of ``width`` rows.

    Parameters
    ----------
    triangle : ndarray of shape (n (n + 1) / 2,)
    n, width : int

    Returns
    -------
    ndarray of shape (width, width)
    """
    memory = np.zeros((width, width), dtype=triangle.dtype)
    for row, part in enumerate(_rows(triangle, n)):
        memory[row, : row + 1] = part
    return memory


def _rows(triangle: FloatArray, n: int) -> Iterator[FloatArray]:
    """The rows of a packed triangle, as views."""
    for row in range(n):
        start = row * (row + 1) // 2
        yield triangle[start : start + row + 1]
