"""The nearest rows of a stream: those of each part, merged in a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from .._typing import FloatArray, IntArray
from ..kernels import Kernel
from ..tuning.data import Data
from .neighbors import in_units, metric
from .stream import Stream
from .sums import Chunk, keys

__all__ = ["Neighborhood"]


class _Nearest(NamedTuple):
    """The N nearest rows of b points, nearest first: X (b, N, d), y (b, N, n_y), all others (b, N)."""

    distance: FloatArray
    keys: FloatArray
    X: FloatArray
    y: FloatArray
    scale: FloatArray


@dataclass(frozen=True)
class Neighborhood:
    """Some rows of a stream, and the search for their neighbors among all rows.

    ``data`` are a random sample of the stream; ``keys`` (n,) are those of its rows, with the given seed.
    """

    stream: Stream
    data: Data
    keys: FloatArray
    seed: int

    def __call__(self, kernel: Kernel, rows: IntArray, number: int) -> Data:
        """The given rows (b,) of the sample, and after them those that are among the nearest to one of them."""
        own, units, seed = self.data.subset(rows), metric(kernel, self.data.X), self.seed
        points, most = in_units(own.X, units), number + 1  # a row is the nearest to itself

        def of_chunk(chunk: Chunk) -> _Nearest:
            first, X, y, scale = chunk
            ranks = np.arange(1, min(most, len(X)) + 1)
            distance, index = KDTree(in_units(X, units)).query(points, ranks)
            key = keys(first, len(X), seed)
            return _Nearest(np.asarray(distance), key[index], X[index], y[index], scale[index])

        def joined(a: _Nearest, b: _Nearest) -> _Nearest:
            both = _Nearest(*(np.concatenate(pair, axis=1) for pair in zip(a, b, strict=True)))
            order = np.lexsort((both.keys, both.distance), axis=1)[:, :most]
            return _Nearest(*(values[np.arange(len(order))[:, None], order] for values in both))

        def of_part(chunks: Iterator[Chunk]) -> _Nearest:
            return reduce(joined, map(of_chunk, chunks))

        found = self.stream.fold(of_part, joined)
        unique, first = np.unique(found.keys.ravel(), return_index=True)
        first = first[~np.isin(unique, self.keys[rows])]
        X, y, scale = (
            np.concatenate([known, values.reshape(-1, *values.shape[2:])[first]])
            for known, values in ((own.X, found.X), (own.y, found.y), (own.noise_scale, found.scale))
        )
        return replace(own, X=X, y=y, noise_scale=scale)
