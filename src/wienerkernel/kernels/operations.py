"""Operations on tiles: products by BLAS, functions of every entry, and the threads that share the tiles.

NumPy and SciPy each bring a BLAS with its own pool of threads, and two pools compete. The factorization uses SciPy's,
so the products do too. Where many tiles are shared by threads, both pools are limited to one thread and the products
are NumPy's, because SciPy's hold the interpreter lock. Results with one entry per hyperparameter are NumPy arrays,
whatever the library of the tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
from scipy.linalg.blas import ddot, dgemm, sgemm

from .._typing import Array, FloatArray
from ..backend import arrays
from ..backend.arrays import is_numpy

__all__ = ["clip", "column_dots", "cross_products", "for_each", "in_place", "inner", "times"]

FEW_TILES, MANY_TILES = 4, 100
"""Up to FEW_TILES, limiting the pools costs more than it saves; from MANY_TILES on, threads are faster."""

MAX_THREADS = 4
"""More would wait for the interpreter lock and for the threads of BLAS, which stay busy after a factorization."""

S = TypeVar("S")
T = TypeVar("T")

_in_a_thread: ContextVar[bool] = ContextVar("in_a_thread", default=False)


@lru_cache(maxsize=1)
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController  # a dependency of scikit-learn

    return ThreadpoolController().select(user_api="blas")


def _threads() -> int:
    return min(MAX_THREADS, max((pool["num_threads"] for pool in _pools().info()), default=1))


def for_each(function: Callable[[S], T], items: Iterable[S], x: Array, tiles: int) -> list[T]:
    """Return function(item) for all items, which have ``tiles`` tiles of the rows x in total.

    On tiles, the threads of BLAS would mostly wait for each other: it is limited to one, and a few threads of our own
    take the items in turn.
    """
    if tiles <= FEW_TILES or not is_numpy(x):
        return [function(item) for item in items]
    threads = _threads()
    with _pools().limit(limits=1):
        if threads == 1 or tiles < MANY_TILES:
            return [function(item) for item in items]

        def run(item: S) -> T:
            _in_a_thread.set(True)
            return function(item)

        with ThreadPoolExecutor(threads) as executor:
            # each in a copy of the context, which holds NumPy's error state
            futures = [executor.submit(copy_context().run, run, item) for item in items]
            return [future.result() for future in futures]


def cross_products(alpha: float, A: Array, B: Array) -> Array:
    """Return alpha A B', a new C-ordered array of shape (n, m), for C-ordered A (n, q) and B (m, q)."""
    if not is_numpy(A) or _in_a_thread.get() or A.shape[1] == 0:
        return (alpha * A) @ B.T
    gemm = sgemm if A.dtype == np.float32 else dgemm
    product: FloatArray = gemm(alpha, B.T, A.T, trans_a=True)
    return product.T


def times(G: Array, B: Array) -> Array:
    """Return G B of shape (n, q) in double precision, for C-ordered G (n, m) and B (m, q)."""
    if not is_numpy(G) or _in_a_thread.get():
        return G @ B
    product: FloatArray = dgemm(1.0, B.T, G.T)
    return product.T


def column_dots(A: Array, B: Array) -> FloatArray:
    """Return the sum of each column of A * B, of shape (q,), for arrays of one shape (n, q)."""
    if not is_numpy(A):
        return arrays.as_numpy(arrays.namespace(A).sum(A * B, axis=0))
    dots: FloatArray = np.einsum("ij,ij->j", A, B)
    return dots


def inner(A: Array, B: Array) -> float:
    """Return the sum of A * B in double precision, for C-ordered arrays of one shape."""
    if not is_numpy(A):
        return float(arrays.namespace(A).sum(A * B))
    return float(np.vdot(A, B) if _in_a_thread.get() else ddot(A.ravel(), B.ravel()))


def in_place(function: Literal["exp", "log1p", "sqrt"], x: Array) -> Array:
    """Return function(x), which overwrites x where the library can; x itself must not be used afterwards."""
    apply = getattr(arrays.namespace(x), function)
    return apply(x, out=x) if is_numpy(x) or arrays.library(x) in ("torch", "cupy") else apply(x)


def clip(x: Array, low: float | None = None, high: float | None = None) -> Array:
    """Return x limited to [low, high], which overwrites x where the library can."""
    if is_numpy(x):
        return np.clip(x, low, high, out=x)
    return x.clamp_(low, high) if arrays.library(x) == "torch" else arrays.namespace(x).clip(x, low, high)
