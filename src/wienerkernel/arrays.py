"""Arrays of other libraries: torch, CuPy, JAX and whatever follows the array API standard.

The standard has no triangular solve, no inverse from a factor and nothing in place; these are dispatched here, and
nowhere else. A NumPy array never needs the optional package ``array-api-compat``. torch works in place and in blocks:
the largest matrix that fits is then the largest that can be factorised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._typing import Array, FloatArray

__all__ = [
    "add_covariance",
    "add_outer",
    "as_float64",
    "as_numpy",
    "block",
    "blocked_above",
    "cholesky",
    "chunk",
    "contiguous",
    "copy",
    "diagonal",
    "filled",
    "inverse_from_cholesky",
    "is_foreign",
    "is_numpy",
    "library",
    "like",
    "namespace",
    "positive_part",
    "row_dots",
    "set_diagonal",
    "slices",
    "solve_triangular",
    "subtract_product",
    "take",
    "trace",
]

TORCH_BLOCK = 4096
"""Rows of a block: large enough to keep a GPU busy, 128 MiB of doubles as a square."""

TORCH_CHUNK = 2**27
"""Kernel values of a chunk of queries, 1 GiB of doubles; every chunk reads the whole factor."""


def is_numpy(x: Array) -> bool:
    """Whether x is a NumPy array.

    Examples
    --------
    >>> is_numpy(np.zeros(2))
    True
    """
    return isinstance(x, np.ndarray)


def is_foreign(x: Array) -> bool:
    """Whether x is an array of another library that follows the array API standard.

    Examples
    --------
    >>> is_foreign(np.zeros(2)), is_foreign([1.0])
    (False, False)
    """
    return not is_numpy(x) and (library(x) == "torch" or hasattr(x, "__array_namespace__"))


def as_float64(x: Array) -> Array:
    """An array of any library in double precision, without torch's record of how it came about.

    Examples
    --------
    >>> as_float64(np.zeros(1, dtype=np.float32)).dtype
    dtype('float64')
    """
    if is_numpy(x):
        return x.astype(np.float64, copy=False)
    xp = namespace(x)
    return xp.astype(x.detach() if library(x) == "torch" else x, xp.float64, copy=False)


def library(x: Array) -> str:
    """Name of the package that an array belongs to.

    Examples
    --------
    >>> library(np.zeros(2))
    'numpy'
    """
    name = type(x).__module__.split(".")[0]
    return "jax" if name == "jaxlib" else name


def namespace(x: Array) -> Any:
    """Functions of the array API standard for the library of x.

    Examples
    --------
    >>> namespace(np.zeros(2)) is np
    True
    """
    if is_numpy(x):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(x)


def like(values: Any, x: Array) -> Array:
    """Values, in NumPy or in the library of x, as an array of the library, device and dtype of x.

    Examples
    --------
    >>> like([1, 2], np.zeros(3)).tolist()
    [1.0, 2.0]
    """
    if is_numpy(x):
        return np.asarray(values, dtype=x.dtype)
    xp = namespace(x)
    if library(values) == library(x):
        return xp.astype(values, x.dtype, copy=False)
    return xp.asarray(np.asarray(values), dtype=x.dtype, device=_device(x))


def filled(shape: tuple[int, ...], value: float, x: Array) -> Array:
    """An array of one value, of the library, device and dtype of x.

    Examples
    --------
    >>> filled((2,), 3.0, np.zeros(1)).tolist()
    [3.0, 3.0]
    """
    if is_numpy(x):
        # Zeros take no memory before they are written.
        return np.full(shape, value, dtype=x.dtype) if value else np.zeros(shape, dtype=x.dtype)
    return namespace(x).full(shape, value, dtype=x.dtype, device=_device(x))


def _device(x: Array) -> Any:
    import array_api_compat

    return array_api_compat.device(x)


def _eye(matrix: Array) -> Array:
    return namespace(matrix).eye(matrix.shape[0], dtype=matrix.dtype, device=_device(matrix))


def as_numpy(x: Array) -> FloatArray:
    """An array of any library as a NumPy array, copied from its device if need be.

    Examples
    --------
    >>> as_numpy(np.ones(1)).tolist()
    [1.0]
    """
    if is_numpy(x):
        return np.asarray(x)
    if library(x) == "torch":
        return np.asarray(x.detach().cpu().numpy())
    return np.asarray(x.get() if library(x) == "cupy" else x)


def contiguous(x: Array) -> Array:
    """x in C order.

    Examples
    --------
    >>> contiguous(np.zeros((2, 3)).T).flags.c_contiguous
    True
    """
    if is_numpy(x):
        return np.ascontiguousarray(x)
    return x.contiguous() if library(x) == "torch" else x


def take(x: Array, rows: Array) -> Array:
    """Rows of x by their numbers, as a new array.

    Examples
    --------
    >>> take(np.array([1.0, 2.0]), [1]).tolist()
    [2.0]
    """
    if is_numpy(x):
        return x[rows]
    xp = namespace(x)
    return xp.take(x, xp.asarray(np.asarray(rows), device=_device(x)), axis=0)


def trace(matrix: Array) -> Array:
    """Sum of the diagonal.

    Examples
    --------
    >>> float(trace(np.eye(3)))
    3.0
    """
    return np.trace(matrix) if is_numpy(matrix) else namespace(matrix).linalg.trace(matrix)


def row_dots(a: Array, b: Array) -> Array:
    """a_i . b_i for each row, (m,).

    Examples
    --------
    >>> row_dots(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])).tolist()
    [11.0]
    """
    return np.einsum("ij,ij->i", a, b) if is_numpy(a) else namespace(a).sum(a * b, axis=-1)


def diagonal(matrix: Array) -> Array:
    """Diagonal of a matrix, (n,).

    Examples
    --------
    >>> diagonal(np.eye(2)).tolist()
    [1.0, 1.0]
    """
    return np.diagonal(matrix) if is_numpy(matrix) else namespace(matrix).linalg.diagonal(matrix)


def set_diagonal(matrix: Array, values: Array) -> Array:
    """matrix with another diagonal, in place where the library can.

    Examples
    --------
    >>> set_diagonal(np.ones((2, 2)), np.array([2.0, 3.0])).tolist()
    [[2.0, 1.0], [1.0, 3.0]]
    """
    if is_numpy(matrix):
        matrix.flat[:: matrix.shape[0] + 1] = values
        return matrix
    if library(matrix) == "torch":
        matrix.diagonal().copy_(values)
        return matrix
    return namespace(matrix).where(_eye(matrix) == 1, values, matrix)


def positive_part(x: Array) -> Array:
    """max(x, 0): what rounding made negative is 0.

    Examples
    --------
    >>> positive_part(np.array([-1e-17, 1.0])).tolist()
    [0.0, 1.0]
    """
    return np.maximum(x, 0.0) if is_numpy(x) else namespace(x).clip(x, min=0.0)


def copy(x: Array) -> Array:
    """A copy, where the library's arrays can change.

    Examples
    --------
    >>> copy(np.ones(1)).tolist()
    [1.0]
    """
    return x.clone() if library(x) == "torch" else (x.copy() if is_numpy(x) else x + 0)


def add_covariance(matrix: Array, covariance: Array) -> Array:
    """matrix + covariance, given whole or by its diagonal; in place where the library can.

    Examples
    --------
    >>> add_covariance(np.ones((2, 2)), np.array([1.0, 2.0])).tolist()
    [[2.0, 1.0], [1.0, 3.0]]
    """
    if covariance.ndim == 2:
        matrix += covariance
        return matrix
    if is_numpy(matrix):
        matrix.flat[:: len(matrix) + 1] += covariance
        return matrix
    if library(matrix) == "torch":
        matrix.diagonal().add_(covariance)
        return matrix
    return set_diagonal(matrix, diagonal(matrix) + covariance)


def blocked_above(matrix: Array, numpy_limit: int) -> float:
    """Largest matrix that is factorised in one call; torch's own routine would copy a large one.

    Examples
    --------
    >>> blocked_above(np.eye(2), 12_000)
    12000
    """
    if is_numpy(matrix):
        return numpy_limit
    return TORCH_BLOCK if library(matrix) == "torch" else np.inf


def block(x: Array, numpy_block: int) -> int:
    """Rows of a block of a large matrix: all, where the library's arrays do not change.

    Examples
    --------
    >>> block(np.eye(2), 2048)
    2048
    """
    if is_numpy(x):
        return numpy_block
    return TORCH_BLOCK if library(x) in ("torch", "cupy") else max(1, x.shape[0])


def slices(n: int, step: int) -> list[slice]:
    """n rows in blocks of ``step`` and a rest; the standard knows no slice that ends behind the last row.

    Examples
    --------
    >>> slices(5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def chunk(x: Array, numpy_chunk: int) -> int:
    """Kernel values that may be alive for a chunk of queries.

    Examples
    --------
    >>> chunk(np.zeros((1, 1)), 1000)
    1000
    """
    return numpy_chunk if is_numpy(x) else TORCH_CHUNK


def subtract_product(target: Array, a: Any, b: Array, matmul: Callable[..., Any]) -> None:
    """target -= A B', in place and, in torch, without a temporary.

    Examples
    --------
    >>> target = np.ones((1, 1))
    >>> subtract_product(target, np.ones((1, 2)), np.ones((1, 2)), lambda a, b, transpose_b: a @ b.T)
    >>> target.tolist()
    [[-1.0]]
    """
    if library(target) == "torch":
        target.addmm_(a, b.T, alpha=-1)
    else:
        target -= matmul(a, b, transpose_b=True)


def cholesky(matrix: Array) -> tuple[Any, int | None]:
    """Lower Cholesky factor from the lower triangle, and the row of the first bad pivot.

    The row is -1 if there is none, and None if the library does not say.

    Examples
    --------
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]]))[0].tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    if library(matrix) == "torch":
        import torch

        factor, info = torch.linalg.cholesky_ex(matrix)
        return factor, int(info) - 1
    xp = namespace(matrix)
    whole = xp.tril(matrix)
    whole = whole + xp.tril(matrix, k=-1).T
    try:
        factor = xp.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        return matrix, None
    return factor, -1 if bool(xp.all(xp.isfinite(factor))) else None


def solve_triangular(factor: Array, rows: Array, *, transposed: bool) -> Array:
    """Rows v with L v = b, or L'v = b if ``transposed``, for each row b; in place in torch.

    Examples
    --------
    >>> solve_triangular(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 3.0]]), transposed=False).tolist()
    [[1.0, 2.0]]
    """
    name = library(factor)
    if name == "torch":
        return _solve_in_blocks(factor, rows, transposed)
    if name == "jax":
        from jax.scipy.linalg import solve_triangular as solve

        return solve(factor, rows.T, lower=True, trans=int(transposed)).T
    if name == "cupy":
        from cupyx.scipy.linalg import solve_triangular as solve

        return solve(factor, rows.T, lower=True, trans=int(transposed)).T
    xp = namespace(factor)
    lower = xp.tril(factor)
    return xp.linalg.solve(lower.T if transposed else lower, rows.T).T


def _solve_in_blocks(factor: Array, rows: Array, transposed: bool) -> Array:
    """The solve in torch: mostly products of matrices, and the factor, which may fill the device, is not copied."""
    import torch

    blocks = slices(factor.shape[0], TORCH_BLOCK)
    for a in reversed(blocks) if transposed else blocks:
        corner = factor[a, a] if transposed else factor[a, a].T
        part = rows[:, a].contiguous()
        torch.linalg.solve_triangular(corner, part, upper=not transposed, left=False, out=part)
        rows[:, a] = part
        if transposed:
            rows[:, : a.start].addmm_(part, factor[a, : a.start], alpha=-1)
        else:
            rows[:, a.stop :].addmm_(part, factor[a.stop :, a].T, alpha=-1)
    return rows


def inverse_from_cholesky(factor: Array) -> Array:
    """Lower triangle of (L L')^-1; what is above it has no meaning.

    Examples
    --------
    >>> inverse_from_cholesky(np.array([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.5, -0.5], [-0.5, 1.0]]
    """
    if library(factor) == "torch":
        return _inverse_in_blocks(factor)
    inverse = solve_triangular(factor, _eye(factor), transposed=False).T
    return inverse.T @ inverse


def _inverse_in_blocks(factor: Array) -> Array:
    """The inverse in torch: products of matrices, for which a GPU is made, in one copy of the factor."""
    import torch

    # Smaller than elsewhere: of the blocks on the diagonal, half is computed in vain.
    inverse, blocks = factor.tril(), slices(factor.shape[0], max(1, TORCH_BLOCK // 2))
    # First M = L^-1, downwards by rows of blocks: M_ab = -M_aa sum_{b <= c < a} L_ac M_cb.
    for i, a in enumerate(blocks):
        corner = torch.linalg.solve_triangular(inverse[a, a], _eye(inverse[a, a]), upper=False)
        for b in blocks[:i]:
            between = slice(b.start, a.start)
            inverse[a, b] = inverse[a, between] @ inverse[between, b]
        inverse[a, : a.start] = -corner @ inverse[a, : a.start]
        inverse[a, a] = corner
    # Then M'M: its rows a need the rows of M from a on, so that those above may be overwritten.
    for a in blocks:
        row = inverse[a, a].T @ inverse[a, : a.stop]
        inverse[a, : a.stop] = row.addmm_(inverse[a.stop :, a].T, inverse[a.stop :, : a.stop])
    return inverse


def add_outer(matrix: Array, rows: Array, alpha: float, beta: float) -> Array:
    """beta M + alpha R'R, in place where the library can.

    Examples
    --------
    >>> add_outer(np.eye(1), np.array([[2.0]]), 1.0, -1.0).tolist()
    [[3.0]]
    """
    if library(matrix) == "torch":
        return matrix.addmm_(rows.T, rows, alpha=alpha, beta=beta)
    return beta * matrix + alpha * (rows.T @ rows)
