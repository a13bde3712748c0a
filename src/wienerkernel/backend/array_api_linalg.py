"""Linear algebra in torch, CuPy, JAX and any other library that follows the array API standard.

The standard has no triangular solve and no operations in place. torch works in place and in blocks, so that any matrix
that fits into memory can be factorized.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .._typing import Array
from . import arrays

__all__ = ["add_outer", "cholesky", "inverse_from_cholesky", "solve_triangular"]


def cholesky(matrix: Array) -> tuple[Any, int | None]:
    """Lower Cholesky factor, and the row of the first bad pivot: -1 if there is none, None if the library hides it."""
    if arrays.library(matrix) == "torch":
        import torch

        factor, info = torch.linalg.cholesky_ex(matrix)
        return factor, int(info) - 1
    xp = arrays.namespace(matrix)
    whole = xp.tril(matrix)
    whole = whole + xp.tril(matrix, k=-1).T
    try:
        factor = xp.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        return matrix, None
    return factor, -1 if bool(xp.all(xp.isfinite(factor))) else None


def solve_triangular(factor: Array, rows: Array, *, transposed: bool) -> Array:
    """Rows v with L v = b, or L'v = b if ``transposed``, for each row b; in place in torch."""
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


def inverse_from_cholesky(factor: Array) -> Array:
    """(L L')^-1 for immutable arrays, by a solve with the identity."""
    inverse = solve_triangular(factor, arrays.eye(factor), transposed=False).T
    return inverse.T @ inverse


def add_outer(matrix: Array, rows: Array, alpha: float, beta: float) -> Array:
    """beta M + alpha R'R, in place where possible."""
    if arrays.library(matrix) == "torch":
        return matrix.addmm_(rows.T, rows, alpha=alpha, beta=beta)
    return beta * matrix + alpha * (rows.T @ rows)
