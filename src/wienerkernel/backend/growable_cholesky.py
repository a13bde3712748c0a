"""Updates of a Cholesky factor at a cost of O(n^2) per row, compared with O(n^3) for a new factorization."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._typing import FloatArray, IntArray
from .linalg import NotPositiveDefiniteError, cholesky, matmul, solve_lower

__all__ = ["GrowableCholesky", "deleted", "rank_one", "updated"]

BLOCK = 64  # rows that are rotated at a time: intermediate results stay in the cache

MOST_CHANGES = 1 / 128
"""Fraction of the rows that may change one by one before refactorizing is cheaper: 13 of 2000 on one core."""

MOST_ROUNDING = (16.0, 1 / 32)
"""Relative error that the diagonal of L L' may have, in units of the rounding error: a constant, and one per row.

A new factor has about n/100 of it, and in theory at most n + 1 (Higham, Accuracy and Stability of Numerical Algorithms,
2002, theorem 10.3). In an updated one, the errors of all updates add up, including those of variances that used to be
far larger.
"""


@dataclass
class GrowableCholesky:
    """Memory (capacity, capacity) of a factor: rows are appended after the ``used`` ones, so that older views stay valid."""

    memory: FloatArray
    used: int

    def append(
        self, factor: FloatArray, cross: FloatArray, corner: FloatArray
    ) -> tuple[FloatArray, GrowableCholesky]:
        """Factor of a matrix with k more rows, ``cross`` (k, n) and ``corner`` (k, k), which are overwritten; and its memory.

        The memory is new where this one is full or another factor has been grown in it.
        """
        k, n = cross.shape
        cross = solve_lower(factor, cross)
        corner -= matmul(cross, cross, transpose_b=True)
        corner = cholesky(corner)
        growable = self
        if self.used != n or len(self.memory) < n + k:
            growable = GrowableCholesky(np.empty((n + max(k, n // 2, 64),) * 2, dtype=factor.dtype), n)
            growable.memory[:n, :n] = factor
        growable.memory[n : n + k, :n] = cross
        growable.memory[n : n + k, n : n + k] = corner
        growable.used = n + k
        return growable.memory[: n + k, : n + k], growable


def rank_one(factor: FloatArray, vector: FloatArray, sign: float) -> FloatArray:
    """Overwrite a factor L (n, n) with that of L L' + sign v v', by rotations that are applied to all columns at once.

    With L p = v, the rotations that take (1, -p) to a multiple of the first unit vector, coordinate by coordinate, take
    [v, L] to [0, new L]. For sign = -1, those that take (p, sqrt(1 - p'p)) to the last unit vector, starting with the
    last coordinate, take [L, 0] to [new L, v] (Gill, Golub, Murray and Saunders, Math. Comp. 28, 1974). The extra column
    is v - sum_{i<j} L_i p_i, or sum_{i>j} L_i p_i, up to a factor: a cumulative sum. So the rounding errors are those of
    each row times an orthogonal matrix, however ill-conditioned L is. The strict upper triangle of the result is
    arbitrary; NotPositiveDefiniteError is raised if L L' - v v' is not positive definite in floating point.
    """
    nonzero = np.flatnonzero(vector)
    if not len(nonzero):
        return factor
    n, start = len(factor), int(nonzero[0])  # earlier rows and columns do not change
    p = solve_lower(factor, np.array(vector, dtype=factor.dtype, ndmin=2))[0, start:].astype(np.float64)
    if sign > 0:
        norms = np.sqrt(1 + np.concatenate([[0.0], np.cumsum(p**2)]))
        cosine = norms[:-1] / norms[1:]
    else:
        rest = 1 - float(p @ p)
        if rest <= 0:
            raise NotPositiveDefiniteError("the updated matrix is not positive definite: refactorize it")
        norms = np.sqrt(rest + np.concatenate([np.cumsum(p[::-1] ** 2)[::-1], [0.0]]))
        cosine = norms[1:] / norms[:-1]
    sine = sign * p / (norms[:-1] * norms[1:])
    for a in range(start, n, BLOCK):
        b = min(a + BLOCK, n)
        width = b - start
        rows = np.tril(factor[a:b, start:b], a - start).astype(np.float64, copy=False)
        extra = np.empty_like(rows)
        if sign > 0:
            extra[:, 0] = vector[a:b]
            np.multiply(rows[:, :-1], -p[: width - 1], out=extra[:, 1:])
            np.cumsum(extra, axis=1, out=extra)
        else:
            extra[:, -1] = 0.0
            np.multiply(rows[:, 1:], p[1:width], out=extra[:, :-1])
            np.cumsum(extra[:, ::-1], axis=1, out=extra[:, ::-1])
        rows *= cosine[:width]
        extra *= sine[:width]
        rows += extra
        factor[a:b, start:b] = rows
    return factor


def deleted(factor: FloatArray, gone: IntArray) -> FloatArray:
    """New factor of the matrix without the rows and columns ``gone``, which are ascending."""
    left = np.delete(np.arange(len(factor)), gone)
    runs = [slice(a + 1, b) for a, b in pairwise([-1, *gone, len(factor)])]
    smaller: FloatArray = np.block([[factor[rows, columns] for columns in runs] for rows in runs])
    for column in gone:
        rank_one(smaller, np.where(left > column, factor[left, column], 0.0), 1.0)
    return smaller


def updated(
    factor: FloatArray, left: IntArray, change: FloatArray, diagonal: FloatArray
) -> FloatArray | None:
    """New factor of A[left, left] + diag(change), with the given diagonal (m,), from the factor of A.

    None where many rows change or rounding errors have grown: then the matrix must be factorized again.
    """
    gone, changed = np.delete(np.arange(len(factor)), left), np.flatnonzero(change)
    if len(gone) + len(changed) > MOST_CHANGES * len(factor) + 1:
        return None
    factor = deleted(factor, gone)
    for row in changed:
        vector = np.zeros(len(left))
        vector[row] = np.sqrt(abs(change[row]))
        try:
            rank_one(factor, vector, np.sign(change[row]))
        except NotPositiveDefiniteError:
            return None
    limit = (MOST_ROUNDING[0] + MOST_ROUNDING[1] * len(left)) * np.finfo(factor.dtype).eps
    accurate = np.all(np.abs(_squared_row_norms(factor) - diagonal) <= limit * diagonal)
    return factor if accurate else None


def _squared_row_norms(factor: FloatArray) -> FloatArray:
    """Diagonal of L L', (n,), in double precision."""
    norms = np.empty(len(factor))
    for a in range(0, len(factor), BLOCK):
        rows = np.tril(factor[a : a + BLOCK, : a + BLOCK], a).astype(np.float64, copy=False)
        norms[a : a + BLOCK] = np.einsum("ij,ij->i", rows, rows)
    return norms
