"""Products of tiles, by SciPy's BLAS.

NumPy and SciPy each bring a thread pool, and two pools fight. The factorisation belongs to SciPy, so these do, too.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import ddot, dgemm, dgemv, sgemm

from .._typing import FloatArray

__all__ = ["cross_products", "inner", "times", "weighted_sums"]


def cross_products(alpha: float, A: FloatArray, B: FloatArray) -> FloatArray:
    """Return alpha A B', a new C-ordered array of shape (n, m), for C-ordered A (n, q) and B (m, q)."""
    if A.shape[1] == 0:
        return np.zeros((A.shape[0], B.shape[0]), dtype=A.dtype)
    gemm = sgemm if A.dtype == np.float32 else dgemm
    product: FloatArray = gemm(alpha, B.T, A.T, trans_a=True)
    return product.T


def times(G: FloatArray, B: FloatArray) -> FloatArray:
    """Return G B of shape (n, q) in double precision, for C-ordered G (n, m) and B (m, q)."""
    product: FloatArray = dgemm(1.0, B.T, G.T)
    return product.T


def weighted_sums(G: FloatArray, x: FloatArray) -> FloatArray:
    """Return G'x of shape (m,) in double precision, for C-ordered G (n, m) and x (n,)."""
    sums: FloatArray = dgemv(1.0, G.T, x)
    return sums


def inner(A: FloatArray, B: FloatArray) -> float:
    """Return the sum of A * B in double precision, for arrays of one shape."""
    return float(ddot(A.ravel(), B.ravel()))
