"""The samples as places and repeats: replicates collapse exactly, and a place with one sample is the common case.

D samples at U different places, with regularizer R = diag(r): the mean of the samples at place u, each with the share
``share_i = (1/r_i) / sum_u (1/r)``, carries all that the data say about f there, with regularizer ``1 / sum_u (1/r)``.
The weights of the samples follow from those of the places, ``a_i = share_i b_u``. The cost is U^3, not D^3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._typing import FloatArray, IntArray
from ..backend import arrays
from ..backend.linalg import matmul

__all__ = ["Samples"]


@dataclass(frozen=True)
class Samples:
    """Places, and how the samples and their noise M = L xi belong to them.

    Parameters
    ----------
    places : ndarray of shape (U, d)
        The different rows of X. Their order is that of the rows and columns of every matrix of the places: the order of
        first appearance at first, which updates keep (see :meth:`extended` and :meth:`without`).
    index : ndarray of shape (D,)
        Place of each sample: any order, even where every place has one sample.
    share : ndarray of shape (D,)
        Part of each sample in the mean of its place.
    row_regularizer : ndarray of shape (D,) or (D, D)
        R, as its diagonal where it is diagonal.
    scale : ndarray of shape (D,) or (D, D)
        L, as its diagonal where it is diagonal.
    """

    places: FloatArray
    index: IntArray
    share: FloatArray
    row_regularizer: FloatArray
    scale: FloatArray

    @classmethod
    def collapse(cls, X: FloatArray, regularizer: FloatArray, scale: FloatArray) -> Samples:
        """Find the places among the rows of X.

        Parameters
        ----------
        X : ndarray of shape (D, d)
        regularizer : ndarray of shape (D,) or (D, D)
        scale : ndarray of shape (D,) or (D, D)
            Correlated noise is not collapsed: a full ``scale`` makes every sample a place.

        Returns
        -------
        Samples
        """
        n = X.shape[0]
        if regularizer.ndim == 2 or scale.ndim == 2:
            return cls(X, np.arange(n), np.ones(n), regularizer, scale)
        first, index = _distinct_rows(arrays.as_numpy(X))
        return cls(arrays.take(X, first), index, _shares(index, regularizer), regularizer, scale)

    def extended(self, X: FloatArray, regularizer: FloatArray, scale: FloatArray) -> Samples:
        """The samples, followed by more of them: known places keep their numbers, new ones are numbered after them.

        Parameters
        ----------
        X : ndarray of shape (k, d)
        regularizer, scale : ndarray of shape (k,)

        Returns
        -------
        Samples
        """
        X = arrays.like(X, self.places)
        place, new = self.find(X)
        places = arrays.namespace(X).concat([self.places, arrays.take(X, new)]) if len(new) else self.places
        index = np.concatenate([self.index, place])
        regularizer = np.concatenate([self.row_regularizer, regularizer])
        scale = np.concatenate([self.scale, scale])
        return Samples(places, index, _shares(index, regularizer), regularizer, scale)

    def without(self, rows: IntArray) -> tuple[Samples, IntArray]:
        """The samples that remain when some are dropped; the places that remain keep their order.

        Parameters
        ----------
        rows : ndarray of int
            Indices of the samples to drop.

        Returns
        -------
        samples : Samples
        left : ndarray of int
            Numbers that the places had before, ascending.
        """
        keep = np.ones(len(self.index), dtype=bool)
        keep[rows] = False
        left, index = np.unique(self.index[keep], return_inverse=True)
        regularizer = self.row_regularizer[keep]
        places = arrays.take(self.places, left)
        return Samples(places, index, _shares(index, regularizer), regularizer, self.scale[keep]), left

    def find(self, X: FloatArray) -> tuple[IntArray, IntArray]:
        """Look the rows of X up among the places, which must differ: the noise is not correlated.

        Parameters
        ----------
        X : ndarray of shape (k, d)

        Returns
        -------
        place : ndarray of int of shape (k,)
            Number of the place of each row; from :attr:`n_places` on for places that are new, in order of appearance.
        new : ndarray of int
            The rows of X at which new places first appear.
        """
        places, X = arrays.as_numpy(self.places), arrays.as_numpy(X)
        if len(X) == 1:  # sorting all places would take longer than appending a row to the factor
            known = np.flatnonzero(places[:, 0] == X[0, 0])
            known = known[np.all(places[known] == X, axis=1)]
            return (known, known[:0]) if len(known) else (np.array([len(places)]), np.array([0]))
        first, place = _distinct_rows(np.concatenate([places, X]))
        return place[len(places) :], first[len(places) :] - len(places)

    @property
    def n_places(self) -> int:
        """Number U of places."""
        return int(self.places.shape[0])

    @cached_property
    def regularizer(self) -> FloatArray:
        """R of the places: (U,) or (U, U)."""
        if self.row_regularizer.ndim == 2:
            return self.row_regularizer
        return 1 / np.bincount(self.index, weights=1 / self.row_regularizer)

    @cached_property
    def gain(self) -> FloatArray:
        """Covariance of the places' means for noise of variance 1, L L' collapsed: (U,) or (U, U)."""
        if self.scale.ndim == 2:
            return np.asarray(matmul(self.scale, self.scale, transpose_b=True))
        return np.asarray(np.bincount(self.index, weights=(self.share * self.scale) ** 2), dtype=np.float64)

    def means(self, values: FloatArray) -> FloatArray:
        """Mean of the samples (D, n_y) at each place, (U, n_y)."""
        if np.array_equal(self.index, np.arange(self.n_places)):
            return values
        columns = [np.bincount(self.index, weights=self.share * column) for column in values.T]
        return np.stack(columns, axis=1)

    def per_sample(self, weights: FloatArray) -> FloatArray:
        """Weights a (m, D) of the samples from the weights b (m, U) of the places."""
        return weights[:, self.index] * self.share

    @cached_property
    def _noise_columns(self) -> tuple[IntArray, FloatArray, IntArray]:
        """Place, factor and count of the groups of samples whose noise enters with one and the same weight."""
        pairs = np.stack([self.index, self.share * self.scale], axis=1)
        first, group = _distinct_rows(pairs)
        return self.index[first], pairs[first, 1], np.bincount(group)

    def per_noise(self, weights: FloatArray) -> tuple[FloatArray, IntArray]:
        """Weights L'a of the independent noise variables, and how many variables share each.

        Parameters
        ----------
        weights : ndarray of shape (m, U)
            Weights b of the places.

        Returns
        -------
        weights : ndarray of shape (m, J)
        counts : ndarray of shape (J,)
        """
        if self.scale.ndim == 2:
            return matmul(weights, self.scale), np.ones(weights.shape[1], dtype=np.intp)
        place, factor, counts = self._noise_columns
        return weights[:, place] * factor, counts


def _shares(index: IntArray, regularizer: FloatArray) -> FloatArray:
    """Part of each sample in the mean of its place."""
    precision = 1 / regularizer
    return np.asarray(precision / np.bincount(index, weights=precision)[index])


def _distinct_rows(X: FloatArray) -> tuple[IntArray, IntArray]:
    """First position of each different row, in order of appearance, and for every row the number of its like."""
    n = len(X)
    # Most data have no repeated first column: one sort shows it.
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
