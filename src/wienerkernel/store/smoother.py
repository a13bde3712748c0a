"""The smoother as arrays: samples, the factor as a packed triangle, and what was solved with it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import arrays
from .._typing import Array, FloatArray
from ..growing import Growing
from ..kernels import Kernel
from ..samples import Samples
from ..smoother import Smoother
from .archive import FormatError
from .nodes import Node, Reader, Writer, entries

__all__ = ["packed", "smoother_from", "smoother_node", "unpacked"]

SAMPLES = ("points", "index", "share", "row_regulariser", "scale")
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

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> samples = Samples.collapse(np.zeros((2, 1)), np.ones(2), np.ones(2))
    >>> writer = Writer()
    >>> smoother_node(Smoother(RBF(), samples, np.ones((2, 1))), writer)["width"]
    1
    >>> writer.arrays["index"].tolist()
    [0, 0]
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
    grown = smoother.store is not None and not factor.flags.c_contiguous
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

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from wienerkernel import RBF
    >>> samples = Samples.collapse(np.zeros((2, 1)), np.ones(2), np.ones(2))
    >>> writer = Writer()
    >>> node = smoother_node(Smoother(RBF(), samples, np.ones((2, 1))), writer)
    >>> smoother_from(node, RBF(), Reader(SimpleNamespace(array=writer.arrays.pop))).dual.round(9).tolist()
    [[0.666666667]]
    """
    trend, width, *parts = entries(node, "trend", "width", *SAMPLES, *SOLVED)
    samples = _samples_from(dict(zip(SAMPLES, parts, strict=False)), reader)
    n, d = samples.points.shape
    solved = dict(zip(SOLVED, parts[len(SAMPLES) :], strict=True))
    targets = reader.array(solved["targets"], (len(samples.index), None))
    n_outputs, n_trend = targets.shape[1], {None: 0, "constant": 1, "linear": 1 + d}.get(trend, n + 1)
    if n_outputs == 0 or n_trend > n:
        raise FormatError("model.json: the samples do not determine the trend, or there is no output")
    if not isinstance(width, int) or not n <= width <= 2 * n + 128:
        raise FormatError(f"model.json: a factor of {n} rows cannot live in rows of {str(width)[:20]}")
    kernel(samples.points[:1])  # a kernel for another number of inputs says so
    dual = reader.array(solved["dual"], (n, n_outputs))
    whitened = reader.array(solved["whitened"], (n_outputs, n))
    coefficients = reader.array(solved["coefficients"], (n_trend, n_outputs))
    memory = unpacked(reader.array(solved["factor"], (n * (n + 1) // 2,)), n, width)
    factor = memory[:n, :n]
    if np.any(np.diagonal(factor) <= 0):
        raise FormatError("the diagonal of the factor must be positive")
    store = None if width == n else Growing(memory, n)
    smoother = Smoother(kernel, samples, targets, trend, factor, store)
    smoother.__dict__.update(_whitened=(whitened, coefficients), dual=dual)  # cached properties
    return smoother


def _samples_from(nodes: dict[str, Node], reader: Reader) -> Samples:
    points = reader.array(nodes["points"], (None, None))
    index = reader.array(nodes["index"], (None,), kind="i").astype(np.intp, copy=False)
    n, n_samples = len(points), len(index)
    within = 0 not in points.shape and n_samples >= n and index.min() >= 0 and index.max() < n
    if not within or np.bincount(index, minlength=n).min() == 0:
        raise FormatError("index does not give every sample a place, and every place a sample")
    share = reader.array(nodes["share"], (n_samples,))
    regulariser, scale = (
        _per_sample(nodes[name], n_samples, reader) for name in ("row_regulariser", "scale")
    )
    if np.any(share <= 0) or regulariser.ndim != scale.ndim:
        raise FormatError("shares of the samples must be positive, and regulariser and scale of one kind")
    if scale.ndim == 2 and not np.array_equal(index, np.arange(n)):
        raise FormatError("samples with correlated noise must have a place each")
    return Samples(points, index, share, regulariser, scale)


def _per_sample(node: Node, n: int, reader: Reader) -> FloatArray:
    """One positive number per sample, or a matrix; the node does not say which, the array does."""
    values = reader.array(node, None)
    if values.shape not in ((n,), (n, n)) or (values.ndim == 1 and np.any(values <= 0)):
        raise FormatError(
            f"regulariser and scale must be {n} positive numbers or a matrix, got {values.shape}"
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

    Examples
    --------
    >>> packed(np.array([[1.0, 9.0], [2.0, 3.0]])).tolist()
    [1.0, 2.0, 3.0]
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

    Examples
    --------
    >>> unpacked(np.array([1.0, 2.0, 3.0]), 2, 3).tolist()
    [[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 0.0]]
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
