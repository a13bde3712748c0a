"""Samples grouped by place: repeats collapse exactly.

D samples at U different places, with regularizer R = diag(r): the mean of the samples at place u, each with the share
``share_i = (1/r_i) / sum_u (1/r)``, is sufficient for f there, with regularizer ``1 / sum_u (1/r)``.
The weights of the samples follow from those of the places, ``a_i = share_i b_u``. The cost is U^3, not D^3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._typing import FloatArray, IntArray
from ..backend import arrays
from ..backend.linalg import matmul

__all__ = ["Samples", "distinct_rows"]


@dataclass(frozen=True)
class Samples:
    """Places, and how the samples and their noise M = L xi belong to them.

    ``places`` (U, d) are the distinct rows of X, in the order of first appearance, which updates keep and all matrices
    have; ``index`` (D,) is the place of each sample. R and L are given by their diagonals (D,) where they are diagonal.
    ``count`` (D,) is the number of equal samples that each entry stands for, if they were collapsed while they were read.
    """

    places: FloatArray
    index: IntArray
    row_regularizer: FloatArray
    scale: FloatArray
    count: IntArray | None = None

    @classmethod
    def collapse(
        cls, X: FloatArray, regularizer: FloatArray, scale: FloatArray, count: IntArray | None = None
    ) -> Samples:
        """Find the places among the rows of X (D, d); with a matrix, each sample has its own place."""
        n = X.shape[0]
        if regularizer.ndim == 2 or scale.ndim == 2:
            return cls(X, np.arange(n), regularizer, scale)
        first, index = distinct_rows(arrays.as_numpy(X))
        return cls(arrays.take(X, first), index, regularizer, scale, count)

    def extended(self, X: FloatArray, regularizer: FloatArray, scale: FloatArray) -> Samples:
        """Append samples X (k, d): known places keep their indices, new ones follow."""
        X = arrays.like(X, self.places)
        place, new = self.find(X)
        places = arrays.namespace(X).concat([self.places, arrays.take(X, new)]) if len(new) else self.places
        index = np.concatenate([self.index, place])
        regularizer = np.concatenate([self.row_regularizer, regularizer])
        scale = np.concatenate([self.scale, scale])
        count = None if self.count is None else np.append(self.count, np.ones(len(place), dtype=np.intp))
        return Samples(places, index, regularizer, scale, count)

    def without(self, rows: IntArray) -> tuple[Samples, IntArray]:
        """Drop the samples with the given indices; also return the previous indices of the places left, ascending."""
        self.check_single()
        keep = np.ones(len(self.index), dtype=bool)
        keep[rows] = False
        left, index = np.unique(self.index[keep], return_inverse=True)
        regularizer = self.row_regularizer[keep]
        places = arrays.take(self.places, left)
        return Samples(places, index, regularizer, self.scale[keep]), left

    def find(self, X: FloatArray) -> tuple[IntArray, IntArray]:
        """Place of each row of X (k, d), from ``n_places`` on for new places, and the rows at which these appear."""
        places, X = arrays.as_numpy(self.places), arrays.as_numpy(X)
        if len(X) == 1:  # sorting all places would take longer than appending a row to the factor
            known = np.flatnonzero(places[:, 0] == X[0, 0])
            known = known[np.all(places[known] == X, axis=1)]
            return (known, known[:0]) if len(known) else (np.array([len(places)]), np.array([0]))
        first, place = distinct_rows(np.concatenate([places, X]))
        return place[len(places) :], first[len(places) :] - len(places)

    @property
    def n_places(self) -> int:
        """Number U of places."""
        return int(self.places.shape[0])

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.index) if self.count is None else int(self.count.sum())

    def check_single(self) -> None:
        """Raise TypeError where each sample is needed, but only their mean and variance at each place are known."""
        if self.count is not None:
            msg = "this needs every sample, but a model fitted to a stream keeps mean and variance at each input only"
            raise TypeError(msg)

    def times_count(self, values: FloatArray) -> FloatArray:
        """Values of the entries, (D,) or (D, k), times the number of samples that each stands for."""
        return values if self.count is None else (values.T * self.count).T

    @cached_property
    def _precision(self) -> FloatArray:
        """Sum of 1/r at each place, (U,); of independent noise."""
        weights = self.times_count(1 / self.row_regularizer)
        return np.bincount(self.index, weights=weights).astype(np.float64, copy=False)

    @cached_property
    def share(self) -> FloatArray:
        """Share of each single sample in the mean of its place, (D,)."""
        if self.row_regularizer.ndim == 2:
            return np.ones(len(self.index))
        return np.asarray(1 / self.row_regularizer / self._precision[self.index])

    @cached_property
    def regularizer(self) -> FloatArray:
        """R of the places: (U,) or (U, U)."""
        if self.row_regularizer.ndim == 2:
            return self.row_regularizer
        return 1 / self._precision

    @cached_property
    def gain(self) -> FloatArray:
        """Covariance of the places' means for noise of variance 1, L L' collapsed: (U,) or (U, U)."""
        if self.scale.ndim == 2:
            return np.asarray(matmul(self.scale, self.scale, transpose_b=True))
        return self.collapsed(self.scale**2)

    def collapsed(self, variance: FloatArray) -> FloatArray:
        """Variance of the places' means, (U,), from that of independent noise of the samples, (D,)."""
        return np.asarray(
            np.bincount(self.index, weights=self.times_count(self.share**2 * variance)), dtype=np.float64
        )

    def inverse_diagonal(self, of_places: FloatArray) -> FloatArray:
        """Diagonal of A or Q of the samples, (D,), from that of the places, (U,), for independent noise (Woodbury)."""
        rest = (1 - self.share) / self.row_regularizer
        return np.asarray(rest + self.share**2 * of_places[self.index])

    def means(self, values: FloatArray) -> FloatArray:
        """Mean of the samples (D, n_y) at each place, (U, n_y)."""
        if np.array_equal(self.index, np.arange(self.n_places)):
            return values
        shares = self.times_count(self.share)
        columns = [np.bincount(self.index, weights=shares * column) for column in values.T]
        return np.stack(columns, axis=1)

    def per_sample(self, weights: FloatArray) -> FloatArray:
        """Weights a (m, D) of the samples from the weights b (m, U) of the places."""
        self.check_single()
        return weights[:, self.index] * self.share

    def _groups(self, scale: FloatArray) -> tuple[IntArray, FloatArray, IntArray]:
        """Place, factor and count of the groups of samples whose noise, of these scales (D,), has the same weight."""
        pairs = np.stack([self.index, self.share * scale], axis=1)
        first, group = distinct_rows(pairs)
        counts = np.bincount(group) if self.count is None else np.bincount(group, self.count).astype(np.intp)
        return self.index[first], pairs[first, 1], counts

    @cached_property
    def _noise_columns(self) -> tuple[IntArray, FloatArray, IntArray]:
        return self._groups(self.scale)

    def per_noise(self, weights: FloatArray, scale: FloatArray | None = None) -> tuple[FloatArray, IntArray]:
        """Weights L'a (m, J) of the noise variables, or of others of these scales (D,), and how many share each."""
        if scale is None and self.scale.ndim == 2:
            return matmul(weights, self.scale), np.ones(weights.shape[1], dtype=np.intp)
        place, factor, counts = self._noise_columns if scale is None else self._groups(scale)
        return weights[:, place] * factor, counts


def distinct_rows(X: FloatArray) -> tuple[IntArray, IntArray]:
    """First position of each distinct row, in order of appearance, and the index of every row among these."""
    n = len(X)
    # Usually no value of the first column is repeated, which one sort shows.
    order = np.argsort(X[:, 0], kind="stable")
    same = np.diff(X[order, 0]) == 0
    if X.shape[1] > 1 and same.any():
        order = np.lexsort(X.T[::-1])
        same = np.all(X[order[1:]] == X[order[:-1]], axis=1)
    if not same.any():
        return np.arange(n), np.arange(n)
    group = np.concatenate([[0], np.cumsum(~same)])
    sorted_index = np.empty(n, dtype=np.intp)
    sorted_index[order] = group
    first = order[np.flatnonzero(np.concatenate([[True], ~same]))]  # both sorts are stable
    appearance = np.argsort(first)
    rank = np.empty_like(appearance)
    rank[appearance] = np.arange(len(first))
    return first[appearance], rank[sorted_index]
