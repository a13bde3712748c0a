"""Replicates whose inputs were measured or rounded: rows of the same group get the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray

__all__ = ["Groups"]


@dataclass(frozen=True)
class Groups:
    """Inputs of rows by group; those of two parts of the rows add up.

    Attributes
    ----------
    names : ndarray of str of shape (G,)
        In order.
    count : ndarray of shape (G,)
        Rows.
    total, low, high : ndarray of shape (G, d)
        Sums of the inputs, the smallest and the largest ones.

    Examples
    --------
    >>> groups = Groups.of(["b", "a", "b"], np.array([[1.0], [2.0], [1.5]]))
    >>> groups.inputs(["a", "b"]).tolist()
    [[2.0], [1.25]]
    """

    names: NDArray[np.str_]
    count: FloatArray
    total: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, names: Sequence[str], X: FloatArray) -> Groups:
        """Group rows X (n, d) by name."""
        return cls(np.array(names, dtype=np.str_), np.ones(len(X)), X, X, X)._merged()

    def __add__(self, other: Groups) -> Groups:
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Groups(*map(np.concatenate, pairs))._merged()

    def _merged(self) -> Groups:
        names, index = np.unique(self.names, return_inverse=True)
        shape = len(names), self.total.shape[1]
        total, low, high = np.zeros(shape), np.full(shape, np.inf), np.full(shape, -np.inf)
        np.add.at(total, index, self.total)
        np.minimum.at(low, index, self.low)
        np.maximum.at(high, index, self.high)
        return Groups(names, np.bincount(index, self.count).astype(float), total, low, high)

    @property
    def centers(self) -> FloatArray:
        """Means of the inputs, (G, d); where they are equal, as they are."""
        return np.where(self.low == self.high, self.low, self.total / self.count[:, None])

    @property
    def apart(self) -> FloatArray:
        """Largest distance of an input from the mean of its group, (d,)."""
        centers = self.centers
        return np.asarray(np.maximum(self.high - centers, centers - self.low).max(axis=0))

    def inputs(self, names: Sequence[str]) -> FloatArray:
        """Inputs (n, d) of rows with these names of groups."""
        return self.centers[np.searchsorted(self.names, np.array(names, dtype=np.str_))]
