"""Arrays of torch, CuPy, JAX and any other library that follows the array API standard.

Operations that the standard lacks, or that some libraries can do in place, are dispatched only here and, for linear
algebra, in ``linalg.py``. NumPy arrays do not need the optional package ``array-api-compat``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array, FloatArray

__all__ = [
    "add_covariance",
    "as_float64",
    "as_numpy",
    "block",
    "chunk",
    "contiguous",
    "copy",
    "diagonal",
    "eye",
    "filled",
    "in_precision",
    "is_array_api",
    "is_numpy",
    "library",
    "like",
    "namespace",
    "positive_part",
    "row_dots",
    "set_diagonal",
    "slices",
    "take",
]

TORCH_BLOCK = 4096  # rows per block: enough to keep a GPU busy; a square block has 128 MiB of doubles

TORCH_CHUNK = 2**27
"""Kernel values per chunk of queries, 1 GiB of doubles; every chunk reads the whole factor."""


def is_numpy(x: Array) -> bool:
    """Whether x is a NumPy array."""
    return isinstance(x, np.ndarray)


def is_array_api(x: Array) -> bool:
    """Whether x is an array of another library that follows the array API standard."""
    # torch and CuPy follow the standard through array-api-compat
    return not is_numpy(x) and (library(x) in ("torch", "cupy") or hasattr(x, "__array_namespace__"))


def as_float64(x: Array) -> Array:
    """An array of any library in double precision, detached from torch's graph."""
    return in_precision(x, "float64")


def in_precision(x: Array, dtype: str) -> Array:
    """An array of any library in the precision "float64" or "float32", detached from torch's graph."""
    if is_numpy(x):
        return x.astype(dtype, copy=False)
    xp = namespace(x)
    return xp.astype(x.detach() if library(x) == "torch" else x, getattr(xp, dtype), copy=False)


def library(x: Array) -> str:
    """Name of the package that an array belongs to."""
    name = type(x).__module__.split(".")[0]
    return "jax" if name == "jaxlib" else name


def namespace(x: Array) -> Any:
    """Functions of the array API standard for the library of x."""
    if is_numpy(x):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(x)


def like(values: Any, x: Array) -> Array:
    """Values, in NumPy or in the library of x, as an array of the library, device and dtype of x."""
    if is_numpy(x):
        return np.asarray(values, dtype=x.dtype)
    xp = namespace(x)
    if library(values) == library(x):
        return xp.astype(values, x.dtype, copy=False)
    return xp.asarray(np.asarray(values), dtype=x.dtype, device=_device(x))


def filled(shape: tuple[int, ...], value: float, x: Array) -> Array:
    """An array of one value, of the library, device and dtype of x."""
    if is_numpy(x):
        # Memory of zeros is only allocated when it is written to.
        return np.full(shape, value, dtype=x.dtype) if value else np.zeros(shape, dtype=x.dtype)
    return namespace(x).full(shape, value, dtype=x.dtype, device=_device(x))


def _device(x: Array) -> Any:
    if is_numpy(x):
        return None
    import array_api_compat

    return array_api_compat.device(x)


def eye(matrix: Array) -> Array:
    """The identity of the size, library, device and dtype of a square matrix."""
    return namespace(matrix).eye(matrix.shape[0], dtype=matrix.dtype, device=_device(matrix))


def as_numpy(x: Array) -> FloatArray:
    """An array of any library as a NumPy array, copied from its device if necessary."""
    if is_numpy(x):
        return np.asarray(x)
    if library(x) == "torch":
        return np.asarray(x.detach().cpu().numpy())
    return np.asarray(x.get() if library(x) == "cupy" else x)


def contiguous(x: Array) -> Array:
    """x in C order."""
    if is_numpy(x):
        return np.ascontiguousarray(x)
    return x.contiguous() if library(x) == "torch" else x


def take(x: Array, rows: Array) -> Array:
    """Rows of x with the given indices, as a new array."""
    if is_numpy(x):
        return x[rows]
    xp = namespace(x)
    return xp.take(x, xp.asarray(np.asarray(rows), device=_device(x)), axis=0)


def row_dots(a: Array, b: Array) -> Array:
    """a_i . b_i for each row, (m,)."""
    return np.einsum("ij,ij->i", a, b) if is_numpy(a) else namespace(a).sum(a * b, axis=-1)


def diagonal(matrix: Array) -> Array:
    """Diagonal of a matrix, (n,)."""
    return namespace(matrix).linalg.diagonal(matrix)


def set_diagonal(matrix: Array, values: Array) -> Array:
    """matrix with another diagonal, in place where possible."""
    if is_numpy(matrix):
        matrix.flat[:: matrix.shape[0] + 1] = values
        return matrix
    if library(matrix) == "torch":
        matrix.diagonal().copy_(values)
        return matrix
    return namespace(matrix).where(eye(matrix) == 1, values, matrix)


def positive_part(x: Array) -> Array:
    """max(x, 0), for values that rounding made negative."""
    return np.maximum(x, 0.0) if is_numpy(x) else namespace(x).clip(x, min=0.0)


def copy(x: Array) -> Array:
    """A copy."""
    return x.clone() if library(x) == "torch" else (x.copy() if is_numpy(x) else x + 0)


def add_covariance(matrix: Array, covariance: Array) -> Array:
    """matrix + covariance, given as a matrix or by its diagonal; in place where possible."""
    if covariance.ndim == 1:
        return set_diagonal(matrix, diagonal(matrix) + covariance)
    matrix += covariance
    return matrix


def block(x: Array, numpy_block: int) -> int:
    """Rows per block of a large matrix: all for immutable arrays."""
    if is_numpy(x):
        return numpy_block
    return TORCH_BLOCK if library(x) in ("torch", "cupy") else max(1, x.shape[0])


def slices(n: int, step: int) -> list[slice]:
    """n rows in blocks of ``step``; in the standard, slices must not end beyond the last row."""
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def chunk(x: Array, numpy_chunk: int) -> int:
    """Kernel values per chunk of queries."""
    return numpy_chunk if is_numpy(x) else TORCH_CHUNK
