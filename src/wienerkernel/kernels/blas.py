"""Products and sums over tiles; of NumPy arrays by SciPy's BLAS.

NumPy and SciPy each bring a thread pool, and two pools fight. The factorisation belongs to SciPy, so these do, too.
Results that have one entry per hyperparameter are NumPy arrays, whatever the library of the tiles.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg.blas import ddot, dgemm, dgemv, sgemm

from .. import arrays
from .._typing import Array, FloatArray
from ..arrays import is_numpy

__all__ = ["column_dots", "column_sums", "cross_products", "inner", "one_thread", "times"]

FEW_TILES = 4


@lru_cache(maxsize=1)
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()


def one_thread(x: Array, tiles: int) -> AbstractContextManager[Any]:
    """Keep BLAS on one thread for many tiles: their products are so small that threads wait longer than they work.

    On a machine that has other work to do the waiting can take a hundred times as long as the products.
    """
    if tiles <= FEW_TILES or not is_numpy(x):
        return nullcontext()
    limits: AbstractContextManager[Any] = _threads().limit(limits=1, user_api="blas")
    return limits


def cross_products(alpha: float, A: Array, B: Array) -> Array:
    """Return alpha A B', a new C-ordered array of shape (n, m), for C-ordered A (n, q) and B (m, q)."""
    if not is_numpy(A):
        return (alpha * A) @ B.T
    if A.shape[1] == 0:
        return np.zeros((A.shape[0], B.shape[0]), dtype=A.dtype)
    gemm = sgemm if A.dtype == np.float32 else dgemm
    product: FloatArray = gemm(alpha, B.T, A.T, trans_a=True)
    return product.T


def times(G: Array, B: Array) -> Array:
    """Return G B of shape (n, q) in double precision, for C-ordered G (n, m) and B (m, q)."""
    if not is_numpy(G):
        return G @ B
    product: FloatArray = dgemm(1.0, B.T, G.T)
    return product.T


def column_sums(G: Array) -> Array:
    """Return the sum of each column, of shape (m,), in double precision, for C-ordered G (n, m)."""
    if not is_numpy(G):
        return arrays.namespace(G).sum(G, axis=0)
    sums: FloatArray = dgemv(1.0, G.T, np.ones(G.shape[0]))
    return sums


def column_dots(A: Array, B: Array) -> FloatArray:
    """Return the sum of each column of A * B, of shape (q,), for arrays of one shape (n, q)."""
    if not is_numpy(A):
        return arrays.as_numpy(arrays.namespace(A).sum(A * B, axis=0))
    dots: FloatArray = np.einsum("ij,ij->j", A, B)
    return dots


def inner(A: Array, B: Array) -> float:
    """Return the sum of A * B in double precision, for arrays of one shape."""
    if not is_numpy(A):
        return float(arrays.namespace(A).sum(A * B))
    return float(ddot(A.ravel(), B.ravel()))
