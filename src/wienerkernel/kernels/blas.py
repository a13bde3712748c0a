"""Products and sums over tiles, of NumPy arrays by BLAS, and the threads that share out the tiles.

NumPy and SciPy each bring a BLAS with a pool of threads, and two pools fight. The factorization belongs to SciPy, so
the products do, too. Where many tiles are shared out to threads, both libraries are kept to one thread each, and the
products are NumPy's, because SciPy's do not let other threads go on meanwhile.
Results that have one entry per hyperparameter are NumPy arrays, whatever the library of the tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from scipy.linalg.blas import ddot, dgemm, dgemv, sgemm

from .._typing import Array, FloatArray
from ..backend import arrays
from ..backend.arrays import is_numpy

__all__ = ["column_dots", "column_sums", "cross_products", "for_each", "inner", "times"]

FEW_TILES, MANY_TILES = 4, 100
MAX_THREADS = 4
"""More wait for the interpreter and for those of BLAS, which linger on after each factorization."""

S = TypeVar("S")
T = TypeVar("T")

_beside_others: ContextVar[bool] = ContextVar("beside_others", default=False)


@lru_cache(maxsize=1)
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController().select(user_api="blas")


def _threads() -> int:
    return min(MAX_THREADS, max((pool["num_threads"] for pool in _pools().info()), default=1))


def for_each(function: Callable[[S], T], items: Iterable[S], x: Array, tiles: int) -> list[T]:
    """Return function(item) for all items, which have so many tiles of the rows x in all.

    Products of tiles are so small that the threads of BLAS would wait longer than they work; on a machine that has
    other work to do a hundred times as long. So BLAS is kept to one thread, and where there are many tiles, threads, as
    many as BLAS would have but few, take items in turn.
    """
    if tiles <= FEW_TILES or not is_numpy(x):
        return [function(item) for item in items]
    threads = _threads()
    with _pools().limit(limits=1):
        if threads == 1 or tiles < MANY_TILES:
            return [function(item) for item in items]
        with ThreadPoolExecutor(threads) as executor:
            # each in a copy of the context, which has NumPy's error state
            futures = [executor.submit(copy_context().run, _beside, function, item) for item in items]
            return [future.result() for future in futures]


def _beside(function: Callable[[S], T], item: S) -> T:
    _beside_others.set(True)
    return function(item)


def cross_products(alpha: float, A: Array, B: Array) -> Array:
    """Return alpha A B', a new C-ordered array of shape (n, m), for C-ordered A (n, q) and B (m, q)."""
    if not is_numpy(A):
        return (alpha * A) @ B.T
    if A.shape[1] == 0:
        return np.zeros((A.shape[0], B.shape[0]), dtype=A.dtype)
    if _beside_others.get():
        return np.matmul(alpha * A, B.T)
    gemm = sgemm if A.dtype == np.float32 else dgemm
    product: FloatArray = gemm(alpha, B.T, A.T, trans_a=True)
    return product.T


def times(G: Array, B: Array) -> Array:
    """Return G B of shape (n, q) in double precision, for C-ordered G (n, m) and B (m, q)."""
    if not is_numpy(G):
        return G @ B
    if _beside_others.get():
        return np.matmul(G, B)
    product: FloatArray = dgemm(1.0, B.T, G.T)
    return product.T


def column_sums(G: Array) -> Array:
    """Return the sum of each column, of shape (m,), in double precision, for C-ordered G (n, m)."""
    if not is_numpy(G):
        return arrays.namespace(G).sum(G, axis=0)
    if _beside_others.get():
        return np.matmul(np.ones(G.shape[0]), G)
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
    if _beside_others.get():
        return float(np.vdot(A, B))
    return float(ddot(A.ravel(), B.ravel()))
