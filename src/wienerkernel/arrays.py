"""Arrays of other libraries: torch, CuPy, JAX and whatever follows the array API standard.

The standard has no triangular solve, no inverse from a factor and nothing in place; these are dispatched here, and
nowhere else. A NumPy array never needs the optional package ``array-api-compat``.
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
    "contiguous",
    "copy",
    "diagonal",
    "inverse_from_cholesky",
    "is_foreign",
    "is_numpy",
    "like",
    "namespace",
    "positive_part",
    "row_dots",
    "solve_triangular",
    "subtract_product",
    "take",
    "trace",
]

TORCH_BLOCK = 4096


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
    """An array of any library in double precision.

    Examples
    --------
    >>> as_float64(np.zeros(1, dtype=np.float32)).dtype
    dtype('float64')
    """
    xp = namespace(x)
    return x.astype(np.float64, copy=False) if is_numpy(x) else xp.astype(x, xp.float64, copy=False)


def library(x: Array) -> str:
    """Name of the package that an array belongs to.

    Examples
    --------
    >>> library(np.zeros(2))
    'numpy'
    """
    return type(x).__module__.split(".")[0]


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


def like(values: Array, x: Any) -> Array:
    """NumPy values as an array of the library, device and dtype of x.

    Examples
    --------
    >>> like([1, 2], np.zeros(3)).tolist()
    [1.0, 2.0]
    """
    if is_numpy(x):
        return np.asarray(values, dtype=x.dtype)
    import array_api_compat

    xp = namespace(x)
    return xp.asarray(np.asarray(values), dtype=x.dtype, device=array_api_compat.device(x))


def as_numpy(x: Array) -> FloatArray:
    """An array of any library as a NumPy array, copied from its device if need be.

    Examples
    --------
    >>> as_numpy(np.ones(1)).tolist()
    [1.0]
    """
    if is_numpy(x):
        return x
    if library(x) == "torch":
        x = x.detach().cpu().numpy()
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
    import array_api_compat

    xp = namespace(x)
    return xp.take(x, xp.asarray(np.asarray(rows), device=array_api_compat.device(x)), axis=0)


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
    xp = namespace(matrix)
    return matrix + xp.eye(matrix.shape[0], dtype=matrix.dtype) * covariance


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


def block(matrix: Array, numpy_block: int) -> int:
    """Size of the blocks of a large factorisation.

    Examples
    --------
    >>> block(np.eye(2), 2048)
    2048
    """
    return numpy_block if is_numpy(matrix) else TORCH_BLOCK


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
    """Rows v with L v = b, or L'v = b if ``transposed``, for each row b.

    Examples
    --------
    >>> solve_triangular(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 3.0]]), transposed=False).tolist()
    [[1.0, 2.0]]
    """
    name = library(factor)
    if name == "torch":
        import torch

        triangle = factor if transposed else factor.T
        return torch.linalg.solve_triangular(triangle, rows, upper=not transposed, left=False)
    if name in ("jax", "jaxlib"):
        from jax.scipy.linalg import solve_triangular as solve

        return solve(factor, rows.T, lower=True, trans=int(transposed)).T
    if name == "cupy":
        from cupyx.scipy.linalg import solve_triangular as solve

        return solve(factor, rows.T, lower=True, trans=int(transposed)).T
    xp = namespace(factor)
    lower = xp.tril(factor)
    return xp.linalg.solve(lower.T if transposed else lower, rows.T).T


def inverse_from_cholesky(factor: Array) -> Array:
    """(L L')^-1, whole.

    Examples
    --------
    >>> inverse_from_cholesky(np.array([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.5, -0.5], [-0.5, 1.0]]
    """
    if library(factor) == "torch":
        return _gram_of_inverse(factor)
    xp = namespace(factor)
    inverse = solve_triangular(factor, xp.eye(factor.shape[0], dtype=factor.dtype), transposed=False).T
    return inverse.T @ inverse


def _gram_of_inverse(factor: Array) -> Array:
    """By recursion to products of matrices, which run at a GPU's full speed where its own routine does not."""
    import torch

    inverse = factor.tril()
    _invert_lower(inverse)
    return torch.mm(inverse.T, inverse)


def _invert_lower(lower: Array) -> None:
    """Replace a lower triangular torch matrix by its inverse: L21 becomes -L22^-1 L21 L11^-1."""
    import torch

    n = lower.shape[0]
    if n <= 1024:
        eye = torch.eye(n, dtype=lower.dtype, device=lower.device)
        lower.copy_(torch.linalg.solve_triangular(lower, eye, upper=False))
        return
    half = n // 2
    _invert_lower(lower[:half, :half])
    _invert_lower(lower[half:, half:])
    corner = lower[half:, half:] @ lower[half:, :half]
    lower[half:, :half].addmm_(corner, lower[:half, :half], beta=0, alpha=-1)


def add_outer(matrix: Array, rows: Array, alpha: float, beta: float) -> Array:
    """beta M + alpha R'R, in place where the library can.

    Examples
    --------
    >>> add_outer(np.eye(1), np.array([[2.0]]), 1.0, -1.0).tolist()
    [[3.0]]
    """
    if library(matrix) == "torch":
        return matrix.mul_(beta).addmm_(rows.T, rows, alpha=alpha)
    return beta * matrix + alpha * (rows.T @ rows)
