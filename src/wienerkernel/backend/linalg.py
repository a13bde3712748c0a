"""Linear algebra: factorizations, triangular solves and products, in place where the library allows it.

Matrices are C-ordered and only their lower triangle is read; right-hand sides are rows, so that ``(m, n)`` arrays of
query points are solved in place. NumPy arrays go to SciPy's BLAS and LAPACK (NumPy's ``@`` would start a second pool
of threads that competes with the first); arrays of other libraries stay on their device, see ``arrays.py``. torch works
in place and in blocks, so that any matrix that fits into memory can be factorized.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from scipy.linalg import eigh as scipy_eigh
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from .._typing import Array
from . import arrays

__all__ = [
    "NotPositiveDefiniteError",
    "add_outer",
    "cholesky",
    "eigh",
    "factorized",
    "inverse_from_cholesky",
    "matmul",
    "solve_lower",
    "solve_lower_transposed",
]

BLOCK = 2048
BLOCKED_ABOVE = 12_000  # threaded potrf and syrk of OpenBLAS crash from about 15,600 rows


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """The matrix K + R is not positive definite in floating point.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> WienerKernelRegressor(RBF(1.0), ridge=1e-30, tuning=None).fit([[0.0], [1e-9]], [0.0, 1.0])
    Traceback (most recent call last):
    wienerkernel.backend.linalg.NotPositiveDefiniteError: ...
    """


def cholesky(matrix: Array) -> Array:
    """Cholesky factor of a symmetric matrix (n, n), in its lower triangle, which is overwritten where possible.

    The strict upper triangle is arbitrary. NotPositiveDefiniteError, with remedies, if a pivot is not positive.
    """
    if not np.isfinite(float(arrays.namespace(matrix).linalg.trace(matrix))):
        msg = "the kernel matrix has NaN or infinite entries on its diagonal; check the kernel's hyperparameters"
        raise NotPositiveDefiniteError(msg)
    n = matrix.shape[0]
    # torch's routine would copy a larger matrix
    limits = {"numpy": BLOCKED_ABOVE, "torch": arrays.TORCH_BLOCK}
    if n <= limits.get(arrays.library(matrix), n):
        return factorized(matrix)
    step = arrays.block(matrix, BLOCK)
    for a in arrays.slices(n, step):
        corner = factorized(arrays.contiguous(matrix[a, a]), a.start)
        matrix[a, a] = corner
        panel = solve_lower(corner, arrays.contiguous(matrix[a.stop :, a]))
        matrix[a.stop :, a] = panel
        # In strips narrower than the blocks: half of the work on the diagonal is wasted.
        for b in arrays.slices(n - a.stop, max(1, step // 4)):
            rest = matrix[a.stop :, a.stop :]
            _subtract_product(rest[b.start :, b], panel[b.start :], panel[b])
    return matrix


def factorized(matrix: Array, offset: int = 0) -> Array:
    """The same in one call, for a matrix whose rows are numbered from ``offset``, or for several (b, n, n) in torch."""
    if arrays.is_numpy(matrix):
        potrf: Any = get_lapack_funcs("potrf", (matrix,))
        # The transpose of a C-ordered array is Fortran-ordered without a copy: its upper triangle is our lower one.
        factor, info = potrf(matrix.T, lower=0, overwrite_a=1, clean=0)
        factor = factor.T
        row: int | None = int(info) - 1
    else:
        factor, row = _array_api_factor(matrix)
    if row != -1:
        where = "" if row is None else f" at row {offset + row}"
        raise NotPositiveDefiniteError(
            f"K + R is not positive definite{where}: raise the ridge (or the noise variance), "
            "shorten the kernel's length scale, or check that the kernel is positive semi-definite "
            "and that nearly identical rows of X are intended"
        )
    return factor


def _array_api_factor(matrix: Array) -> tuple[Any, int | None]:
    """The factor, and the row of the first bad pivot: -1 if there is none, None if the library hides it."""
    if arrays.library(matrix) == "torch":
        import torch

        factor, info = torch.linalg.cholesky_ex(matrix)
        return factor, int(info.max()) - 1
    xp = arrays.namespace(matrix)
    whole = xp.tril(matrix)
    whole = whole + xp.tril(matrix, k=-1).T
    try:
        factor = xp.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        return matrix, None
    return factor, -1 if bool(xp.all(xp.isfinite(factor))) else None


def _subtract_product(target: Array, a: Array, b: Array) -> None:
    """target -= A B', in torch without a temporary."""
    if arrays.library(target) == "torch":
        target.addmm_(a, b.T, alpha=-1)
    else:
        target -= matmul(a, b, transpose_b=True)


def _trsm(factor: Array, rows: Array, transposed: int) -> Array:
    if 0 in rows.shape:
        return rows
    if not arrays.is_numpy(factor):
        return _array_api_solve(factor, rows, transposed=not transposed)
    if not factor.flags.c_contiguous:
        # A view of a larger array with room to grow; trtrs takes its leading dimension.
        n, width = len(factor), factor.strides[0] // factor.itemsize
        factor = np.lib.stride_tricks.as_strided(factor, (n, width), factor.strides, writeable=False)
    trtrs: Any = get_lapack_funcs("trtrs", (factor, rows))
    solution, _ = trtrs(factor.T, rows.T, lower=0, trans=transposed, overwrite_b=1)
    return np.asarray(solution.T)


def _array_api_solve(factor: Array, rows: Array, transposed: bool) -> Array:
    """Rows v with L v = b, or L'v = b if ``transposed``, for each row b; the standard has no triangular solve."""
    name = arrays.library(factor)
    if name == "torch":
        return _solve_in_blocks(factor, rows, transposed)
    if name in ("jax", "cupy"):
        room = import_module("jax.scipy.linalg" if name == "jax" else "cupyx.scipy.linalg")
        return room.solve_triangular(factor, rows.T, lower=True, trans=int(transposed)).T
    xp = arrays.namespace(factor)
    lower = xp.tril(factor)
    return xp.linalg.solve(lower.T if transposed else lower, rows.T).T


def _solve_in_blocks(factor: Array, rows: Array, transposed: bool) -> Array:
    """The solve in torch, mostly by matrix products, without a copy of the factor, which may fill the device."""
    import torch

    blocks = arrays.slices(factor.shape[0], arrays.TORCH_BLOCK)
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


def solve_lower(factor: Array, rows: Array) -> Array:
    """Solve L v = b for each row b of (m, n), in place where possible."""
    return _trsm(factor, rows, 1)


def solve_lower_transposed(factor: Array, rows: Array) -> Array:
    """Solve L'b = v for each row v of (m, n), in place where possible."""
    return _trsm(factor, rows, 0)


def inverse_from_cholesky(factor: Array, *, overwrite: bool = False) -> Array:
    """Lower triangle of (L L')^-1, C-ordered; with ``overwrite``, the memory of the factor is reused."""
    if arrays.is_numpy(factor) and len(factor) <= BLOCKED_ABOVE:
        potri: Any = get_lapack_funcs("potri", (factor,))
        c = factor if overwrite and factor.flags.c_contiguous else np.array(factor, order="C")
        inverse, _ = potri(c.T, lower=0, overwrite_c=1)
        return np.asarray(inverse.T)
    if arrays.is_numpy(factor) or arrays.library(factor) == "torch":
        return _inverse_in_blocks(factor if overwrite else arrays.copy(factor))
    inverse = solve_lower(factor, arrays.eye(factor)).T
    return inverse.T @ inverse


def _inverse_in_blocks(inverse: Array) -> Array:
    """The inverse by products of matrices, in place of the factor."""
    # Smaller blocks than elsewhere: half of the work on the diagonal is wasted.
    blocks = arrays.slices(inverse.shape[0], max(1, arrays.block(inverse, 2 * BLOCK) // 2))
    # First M = L^-1, downwards by rows of blocks: M_ab = -M_aa sum_{b <= c < a} L_ac M_cb.
    for i, a in enumerate(blocks):
        corner = arrays.contiguous(inverse[a, a])
        corner = solve_lower_transposed(corner, arrays.eye(corner))
        inverse[a, a] = corner
        for b in blocks[:i]:
            between = slice(b.start, a.start)
            inverse[a, b] = matmul(inverse[a, between], inverse[between, b])
        inverse[a, : a.start] = matmul(-corner, inverse[a, : a.start])
    # Then M'M: its rows a need only the rows of M from a on, so that those above may be overwritten.
    for a in blocks:
        inverse[a, : a.stop] = matmul(inverse[a.start :, a].T, inverse[a.start :, : a.stop])
    return inverse


def eigh(matrix: Array) -> tuple[Array, Array]:
    """Ascending eigenvalues (n,) and eigenvectors, as rows, of a symmetric matrix (n, n), which may be overwritten."""
    if arrays.is_numpy(matrix):
        values, vectors = scipy_eigh(matrix.T, lower=False, overwrite_a=True, driver="evd")
        return values, vectors.T
    xp = arrays.namespace(matrix)
    values, vectors = xp.linalg.eigh(xp.tril(matrix) + xp.tril(matrix, k=-1).T)
    return values, arrays.contiguous(vectors.T)


def add_outer(matrix: Array, rows: Array, alpha: float, beta: float) -> Array:
    """Lower triangle of beta M + alpha R'R, in place of M (n, n) where possible, for rows R (k, n)."""
    if arrays.library(matrix) == "torch":
        return matrix.addmm_(rows.T, rows, alpha=alpha, beta=beta)
    if not arrays.is_numpy(matrix):
        return beta * matrix + alpha * (rows.T @ rows)
    n = len(matrix)
    if n <= BLOCKED_ABOVE:
        syrk: Any = get_blas_funcs("syrk", (matrix, rows))
        return np.asarray(syrk(alpha, rows.T, beta=beta, c=matrix.T, trans=0, lower=0, overwrite_c=1).T)
    for start in range(0, n, BLOCK):
        block = matrix[start:, start : start + BLOCK]
        block *= beta
        columns = np.ascontiguousarray(rows[:, start : start + BLOCK])
        block += matmul(np.ascontiguousarray(alpha * rows[:, start:].T), columns)
    return matrix


def matmul(a: Array, b: Array, *, transpose_b: bool = False) -> Array:
    """Product A B, or A B', of C-ordered matrices."""
    if not arrays.is_numpy(a):
        return a @ (b.T if transpose_b else b)
    if b.shape[1 - int(transpose_b)] == 1:
        gemv: Any = get_blas_funcs("gemv", (a, b))
        return np.asarray(gemv(1.0, a.T, b.ravel(), trans=1)[:, None])
    gemm: Any = get_blas_funcs("gemm", (a, b))
    return np.asarray(gemm(1.0, b.T, a.T, trans_a=int(transpose_b)).T)
