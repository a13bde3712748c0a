"""A Cholesky factor that grows, shrinks and changes by O(n^2) work a row, where factorising anew costs O(n^3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._typing import FloatArray
from .linalg import cholesky, matmul, solve_lower

__all__ = ["Growing", "deleted", "rank_one"]


@dataclass
class Growing:
    """Memory for a factor with room to grow: rows are written behind those in use, so that older views stay valid.

    Parameters
    ----------
    memory : ndarray of shape (capacity, capacity)
    used : int
        Rows that some factor uses.

    Examples
    --------
    >>> factor = np.array([[2.0]])
    >>> grown, store = Growing(factor, 1).append(factor, np.array([[2.0]]), np.array([[2.0]]))
    >>> np.tril(grown).tolist()   # the factor of [[4, 2], [2, 2]]
    [[2.0, 0.0], [1.0, 1.0]]
    """

    memory: FloatArray
    used: int

    def append(self, factor: FloatArray, cross: FloatArray, corner: FloatArray) -> tuple[FloatArray, Growing]:
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
        store : Growing
            The memory that it lives in.
        """
        k, n = cross.shape
        cross = solve_lower(factor, cross)
        corner -= matmul(cross, cross, transpose_b=True)
        corner = cholesky(corner)
        store = self
        if self.used != n or len(self.memory) < n + k:  # someone else has grown from here, or it is full
            store = Growing(np.empty((n + max(k, n // 2, 64),) * 2, dtype=factor.dtype), n)
            store.memory[:n, :n] = factor
        store.memory[n : n + k, :n] = cross
        store.memory[n : n + k, n : n + k] = corner
        store.used = n + k
        return store.memory[: n + k, : n + k], store


def rank_one(factor: FloatArray, vector: FloatArray, sign: float) -> FloatArray:
    """Factor of L L' + sign v v', by cumulative sums instead of a loop over columns.

    With p = L^-1 v, I + sign p p' has a Cholesky factor in closed form (Gill, Golub, Murray and Saunders, 1974).

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        L; kept.
    vector : ndarray of shape (n,)
    sign : float
        1 or -1; with -1 the result must be positive definite.

    Returns
    -------
    ndarray of shape (n, n)

    Examples
    --------
    >>> rank_one(np.array([[2.0]]), np.array([3.0]), -1.0 / 3.0).round(12).tolist()   # sqrt(4 - 3)
    [[1.0]]
    """
    lower = np.tril(factor)
    p = solve_lower(lower, np.array(vector, dtype=lower.dtype, ndmin=2))[0].astype(np.float64)
    before = 1 / sign + np.concatenate([[0.0], np.cumsum(p**2)])  # 1 / a_j
    diagonal = np.sqrt(before[1:] / before[:-1])
    weighted = lower * p  # in double precision from here on
    after = np.cumsum(weighted[:, ::-1], axis=1)[:, ::-1] - weighted  # sum over the columns i > j of L_i p_i
    changed = lower * diagonal + after * (p / (before[:-1] * diagonal))
    return np.asarray(changed, dtype=factor.dtype)


def deleted(factor: FloatArray, row: int) -> FloatArray:
    """Factor of the matrix without one row and column.

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        Kept.
    row : int

    Returns
    -------
    ndarray of shape (n - 1, n - 1)

    Examples
    --------
    >>> deleted(np.array([[2.0, 0.0], [1.0, 1.0]]), 0).round(12).tolist()   # [[4, 2], [2, 2]] without its first row
    [[1.414213562373]]
    """
    smaller = np.delete(np.delete(factor, row, axis=0), row, axis=1)
    tail = np.ascontiguousarray(factor[row + 1 :, row + 1 :])
    if len(tail):
        smaller[row:, row:] = rank_one(tail, factor[row + 1 :, row], 1.0)
    return smaller
