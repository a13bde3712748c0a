"""The nearest rows of a stream: those of each part, merged in a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import reduce

import numpy as np
from scipy.spatial import KDTree

from .._typing import FloatArray, IntArray
from ..kernels import Kernel
from ..tuning.data import Data
from .neighbors import in_units, metric
from .stream import Stream
from .sums import Chunk, keys

__all__ = ["Nearest", "Neighborhood"]


@dataclass(frozen=True)
class Nearest:
    """The N nearest rows of b points, nearest first.

    Attributes
    ----------
    distance, keys, scale : ndarray of shape (b, N)
    X : ndarray of shape (b, N, d)
    y : ndarray of shape (b, N, n_y)
    """

    distance: FloatArray
    keys: FloatArray
    X: FloatArray
    y: FloatArray
    scale: FloatArray

    def merged(self, other: Nearest, number: int) -> Nearest:
        """The nearest rows among both."""
        pairs = [
            np.concatenate([getattr(self, f.name), getattr(other, f.name)], axis=1) for f in fields(self)
        ]
        order = np.lexsort((pairs[1], pairs[0]), axis=1)[:, :number]
        rows = np.arange(len(order))[:, None]
        return Nearest(*(values[rows, order] for values in pairs))


@dataclass(frozen=True)
class _Search:
    """Nearest rows of points (b, d) that have been divided by ``units``."""

    points: FloatArray
    units: FloatArray
    number: int
    seed: int

    def __call__(self, chunks: Iterator[Chunk]) -> Nearest:
        return reduce(self.joined, map(self._of_chunk, chunks))

    def _of_chunk(self, chunk: Chunk) -> Nearest:
        first, X, y, scale = chunk
        number = min(self.number, len(X))
        distance, index = KDTree(in_units(X, self.units)).query(self.points, np.arange(1, number + 1))
        return Nearest(
            np.asarray(distance), keys(first, len(X), self.seed)[index], X[index], y[index], scale[index]
        )

    def joined(self, a: Nearest, b: Nearest) -> Nearest:
        return a.merged(b, self.number)


@dataclass(frozen=True)
class Neighborhood:
    """Some rows of a stream, and the search for their neighbors among all rows.

    Parameters
    ----------
    stream : Stream
    data : Data
        A random sample of the stream.
    keys : ndarray of shape (n,)
        Of the rows of the sample, with this seed.
    seed : int
    """

    stream: Stream
    data: Data
    keys: FloatArray
    seed: int

    def __call__(self, kernel: Kernel, rows: IntArray, number: int) -> Data:
        """The given rows (b,) of the sample, and after them those that are among the nearest to one of them."""
        own = self.data.subset(rows)
        units = metric(kernel, self.data.X)
        # a row is the nearest to itself
        search = _Search(in_units(own.X, units), units, number + 1, self.seed)
        found = self.stream.fold(search, search.joined)
        unique, first = np.unique(found.keys.ravel(), return_index=True)
        first = first[~np.isin(unique, self.keys[rows])]
        X, y, scale = (
            values.reshape(-1, *values.shape[2:])[first] for values in (found.X, found.y, found.scale)
        )
        return replace(
            own,
            X=np.concatenate([own.X, X]),
            y=np.concatenate([own.y, y]),
            noise_scale=np.concatenate([own.noise_scale, scale]),
        )
