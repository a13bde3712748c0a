"""The few operations of linear algebra that everything rests on: one place factorises, in place, on one triangle.

Matrices are C-ordered and only their lower triangle is read; right-hand sides are rows, so that ``(m, n)`` arrays of
query points are solved in place. All of it calls SciPy's BLAS and LAPACK: NumPy's ``@`` would start a second pool of
threads that competes with the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from ._typing import FloatArray

__all__ = [
    "NotPositiveDefiniteError",
    "cholesky",
    "inverse_from_cholesky",
    "matmul",
    "solve_lower",
    "solve_lower_transposed",
]

BLOCK = 2048
BLOCKED_ABOVE = 12_000  # threaded potrf and syrk of OpenBLAS end the process from about 15,600 rows


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """The matrix K + R is not positive definite in floating point."""


def cholesky(matrix: FloatArray) -> FloatArray:
    """Overwrite the lower triangle of a symmetric matrix by its Cholesky factor.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        C-ordered; only the lower triangle is read, and it is overwritten.

    Returns
    -------
    ndarray of shape (n, n)
        The same array; its strict upper triangle is arbitrary.

    Raises
    ------
    NotPositiveDefiniteError
        With the remedies, if a pivot is not positive.

    Examples
    --------
    >>> cholesky(np.array([[4.0, 0.0], [2.0, 2.0]]))[1].tolist()
    [1.0, 1.0]
    """
    n = len(matrix)
    if not np.isfinite(np.trace(matrix)):
        msg = "the kernel matrix has NaN or infinite entries on its diagonal; check the kernel's hyperparameters"
        raise NotPositiveDefiniteError(msg)
    if n <= BLOCKED_ABOVE:
        return _factor(matrix, 0)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        corner = _factor(np.ascontiguousarray(matrix[start:stop, start:stop]), start)
        matrix[start:stop, start:stop] = corner
        panel = solve_lower(corner, np.ascontiguousarray(matrix[stop:, start:stop]))
        matrix[stop:, start:stop] = panel
        for left in range(stop, n, BLOCK):
            right = min(left + BLOCK, n)
            rows = panel[left - stop :]
            matrix[left:, left:right] -= matmul(rows, rows[: right - left], transpose_b=True)
    return matrix


def _factor(matrix: FloatArray, offset: int) -> FloatArray:
    potrf = get_lapack_funcs("potrf", (matrix,))
    # The transpose of a C-ordered array is Fortran-ordered without a copy: its upper triangle is our lower one.
    factor, info = potrf(matrix.T, lower=0, overwrite_a=1, clean=0)
    if info != 0:
        raise NotPositiveDefiniteError(
            f"K + R is not positive definite at row {offset + abs(info) - 1}: raise the ridge (or the noise variance), "
            "shorten the kernel's length scale, or check that the kernel is positive semi-definite "
            "and that rows of X which almost coincide are meant to differ"
        )
    return np.asarray(factor.T)


def _trsm(factor: FloatArray, rows: FloatArray, transposed: int) -> FloatArray:
    if rows.size == 0:
        return rows
    trsm = get_blas_funcs("trsm", (factor, rows))
    return np.asarray(trsm(1.0, factor.T, rows.T, lower=0, trans_a=transposed, overwrite_b=1).T)


def solve_lower(factor: FloatArray, rows: FloatArray) -> FloatArray:
    """Replace each row b by v with L v = b.

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        From :func:`cholesky`.
    rows : ndarray of shape (m, n)
        C-ordered; overwritten.

    Returns
    -------
    ndarray of shape (m, n)

    Examples
    --------
    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0, 3.0]])).tolist()
    [[1.0, 2.0]]
    """
    return _trsm(factor, rows, 1)


def solve_lower_transposed(factor: FloatArray, rows: FloatArray) -> FloatArray:
    """Replace each row v by b with L' b = v.

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        From :func:`cholesky`.
    rows : ndarray of shape (m, n)
        C-ordered; overwritten.

    Returns
    -------
    ndarray of shape (m, n)

    Examples
    --------
    >>> solve_lower_transposed(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[4.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """
    return _trsm(factor, rows, 0)


def inverse_from_cholesky(factor: FloatArray) -> FloatArray:
    """Symmetric inverse (L L')^-1, whole, from the Cholesky factor, which is kept.

    Parameters
    ----------
    factor : ndarray of shape (n, n)

    Returns
    -------
    ndarray of shape (n, n)

    Examples
    --------
    >>> inverse_from_cholesky(np.array([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """
    potri = get_lapack_funcs("potri", (factor,))
    inverse, _ = potri(np.array(factor, order="C").T, lower=0, overwrite_c=1)
    lower = np.tril(inverse.T)
    lower += np.tril(lower, -1).T
    return np.asarray(lower)


def matmul(a: FloatArray, b: FloatArray, *, transpose_b: bool = False) -> FloatArray:
    """Product A B, or A B', of C-ordered matrices through SciPy's BLAS.

    Parameters
    ----------
    a : ndarray of shape (m, k)
    b : ndarray of shape (k, n), or (n, k) with ``transpose_b``

    Returns
    -------
    ndarray of shape (m, n)

    Examples
    --------
    >>> matmul(np.eye(2), np.ones((2, 1))).tolist()
    [[1.0], [1.0]]
    """
    gemm: Any = get_blas_funcs("gemm", (a, b))
    return np.asarray(gemm(1.0, b.T, a.T, trans_a=int(transpose_b)).T)
