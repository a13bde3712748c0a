"""A Cholesky factor that grows, shrinks and changes by O(n^2) work a row, where factorizing anew costs O(n^3)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._typing import FloatArray, IntArray
from .linalg import NotPositiveDefiniteError, cholesky, matmul, solve_lower

__all__ = ["GrowableCholesky", "deleted", "rank_one", "squared_row_norms"]

BLOCK = 64  # rows that are rotated at a time: what is computed of them stays in the cache


@dataclass
class GrowableCholesky:
    """Memory for a factor with room to grow: rows are written behind those in use, so that older views stay valid.

    Parameters
    ----------
    memory : ndarray of shape (capacity, capacity)
    used : int
        Rows that some factor uses.
    """

    memory: FloatArray
    used: int

    def append(
        self, factor: FloatArray, cross: FloatArray, corner: FloatArray
    ) -> tuple[FloatArray, GrowableCholesky]:
        """Factor of a matrix with k more rows.

        Parameters
        ----------
        factor : ndarray of shape (n, n)
            The leading rows of ``memory``.
        cross : ndarray of shape (k, n)
            New rows of the matrix, left of the corner; overwritten.
        corner : ndarray of shape (k, k)
            The new corner; overwritten.

        Returns
        -------
        factor : ndarray of shape (n + k, n + k)
        store : GrowableCholesky
            The memory that it lives in.
        """
        k, n = cross.shape
        cross = solve_lower(factor, cross)
        corner -= matmul(cross, cross, transpose_b=True)
        corner = cholesky(corner)
        store = self
        if self.used != n or len(self.memory) < n + k:  # someone else has grown from here, or it is full
            store = GrowableCholesky(np.empty((n + max(k, n // 2, 64),) * 2, dtype=factor.dtype), n)
            store.memory[:n, :n] = factor
        store.memory[n : n + k, :n] = cross
        store.memory[n : n + k, n : n + k] = corner
        store.used = n + k
        return store.memory[: n + k, : n + k], store


def rank_one(factor: FloatArray, vector: FloatArray, sign: float) -> FloatArray:
    """Overwrite a factor L by that of L L' + sign v v', by rotations that are applied to all columns at once.

    With L p = v, the rotations that take (1, -p) to a multiple of the first unit vector, coordinate by coordinate, take
    [v, L] to [0, new L]. For sign = -1, those that take (p, sqrt(1 - p'p)) to the last unit vector, from the last
    coordinate on, take [L, 0] to [new L, v] (Gill, Golub, Murray and Saunders, Math. Comp. 28, 1974). The column that
    runs along is v - sum_{i<j} L_i p_i, or sum_{i>j} L_i p_i, up to a factor: a cumulative sum. So the rounding errors
    are those of each row times an orthogonal matrix, however ill-conditioned L is.

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        L; overwritten.
    vector : ndarray of shape (n,)
    sign : {1.0, -1.0}

    Returns
    -------
    ndarray of shape (n, n)
        The same array; its strict upper triangle is arbitrary.

    Raises
    ------
    NotPositiveDefiniteError
        If L L' - v v' is not positive definite in floating point.
    """
    nonzero = np.flatnonzero(vector)
    if not len(nonzero):
        return factor
    n, start = len(factor), int(nonzero[0])  # rows and columns before it stay what they are
    p = solve_lower(factor, np.array(vector, dtype=factor.dtype, ndmin=2))[0, start:].astype(np.float64)
    if sign > 0:
        norms = np.sqrt(1 + np.concatenate([[0.0], np.cumsum(p**2)]))
        cosine = norms[:-1] / norms[1:]
    else:
        rest = 1 - float(p @ p)
        if rest <= 0:
            raise NotPositiveDefiniteError("the factor of a smaller matrix is not real: factorize it anew")
        norms = np.sqrt(rest + np.concatenate([np.cumsum(p[::-1] ** 2)[::-1], [0.0]]))
        cosine = norms[1:] / norms[:-1]
    sine = sign * p / (norms[:-1] * norms[1:])
    for a in range(start, n, BLOCK):
        b = min(a + BLOCK, n)
        width = b - start
        rows = np.tril(factor[a:b, start:b], a - start).astype(np.float64, copy=False)
        met = np.empty_like(rows)
        if sign > 0:
            met[:, 0] = vector[a:b]
            np.multiply(rows[:, :-1], -p[: width - 1], out=met[:, 1:])
            np.cumsum(met, axis=1, out=met)
        else:
            met[:, -1] = 0.0
            np.multiply(rows[:, 1:], p[1:width], out=met[:, :-1])
            np.cumsum(met[:, ::-1], axis=1, out=met[:, ::-1])
        rows *= cosine[:width]
        met *= sine[:width]
        rows += met
        factor[a:b, start:b] = rows
    return factor


def deleted(factor: FloatArray, gone: IntArray) -> FloatArray:
    """Factor of the matrix without some rows and columns.

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        Kept.
    gone : ndarray of int of shape (k,)
        Ascending.

    Returns
    -------
    ndarray of shape (n - k, n - k)
        A new array.
    """
    left = np.delete(np.arange(len(factor)), gone)
    runs = [slice(a + 1, b) for a, b in pairwise([-1, *gone, len(factor)])]
    smaller: FloatArray = np.block([[factor[rows, columns] for columns in runs] for rows in runs])
    for column in gone:
        rank_one(smaller, np.where(left > column, factor[left, column], 0.0), 1.0)
    return smaller


def squared_row_norms(factor: FloatArray) -> FloatArray:
    """Diagonal of L L', (n,), in double precision.

    Parameters
    ----------
    factor : ndarray of shape (n, n)

    Returns
    -------
    ndarray of shape (n,)
    """
    norms = np.empty(len(factor))
    for a in range(0, len(factor), BLOCK):
        rows = np.tril(factor[a : a + BLOCK, : a + BLOCK], a).astype(np.float64, copy=False)
        norms[a : a + BLOCK] = np.einsum("ij,ij->i", rows, rows)
    return norms
