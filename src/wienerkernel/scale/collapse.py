"""Exact collapse of a stream: mean and variance of the samples at each input are all that the exact model needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from .._typing import FloatArray, IntArray
from ..smoother.samples import distinct_rows
from . import approximation
from .stream import Stream
from .sums import Chunk

__all__ = ["Collapsed", "collapse"]

SCALES = 4
"""Noise scales at an input, on average, up to which data are collapsed."""


@dataclass(frozen=True)
class Collapsed:
    """Samples by input X (G, d) and noise ``scale`` (G,), in order of appearance.

    ``count`` (G,), and means of y with the sums of the ``squares`` of the deviations from these, (G, n_y).
    """

    X: FloatArray
    scale: FloatArray
    count: IntArray
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, chunk: Chunk) -> Collapsed:
        """Collapse one chunk."""
        _, X, y, scale = chunk
        return cls(X, scale, np.ones(len(X), dtype=np.intp), y, np.zeros_like(y))._grouped()

    def __add__(self, other: Collapsed) -> Collapsed:
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Collapsed(*map(np.concatenate, pairs))._grouped()

    def _grouped(self) -> Collapsed:
        first, index = distinct_rows(np.concatenate([self.X, self.scale[:, None]], axis=1))
        if len(first) == len(index):
            return self
        count = np.bincount(index, self.count)
        mean = _sums(index, self.count[:, None] * self.mean) / count[:, None]
        # Chan, Golub and LeVeque 1983: sums of y^2 would lose the digits of the variance
        squares = _sums(index, self.squares + self.count[:, None] * (self.mean - mean[index]) ** 2)
        return Collapsed(self.X[first], self.scale[first], count.astype(np.intp), mean, squares)

    def rows(self) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """X (D, d), y (D, n_y), scales (D,) and counts (D,) of data with equal samples that have the same means and variances.

        A group of c >= 2 samples becomes c // 2 equal ones above the mean, and the others below it.
        """
        parts = np.stack([self.count - self.count // 2, self.count // 2], axis=1)
        group, above = np.nonzero(parts)
        count, others = parts[group, above], parts[group, 1 - above]
        shift = (2 * above - 1) * np.sqrt(others / (count * self.count[group]))
        y = self.mean[group] + shift[:, None] * np.sqrt(self.squares[group])
        return self.X[group], y, self.scale[group], count


def collapse(stream: Stream) -> Collapsed | None:
    """Samples by input; None if there are too many distinct inputs, or noise scales, for an exact model."""
    places = approximation.EXACT_PLACES

    def bounded(found: Collapsed) -> Collapsed | Literal[False]:
        groups = len(found.count)
        few = groups <= places or (groups <= SCALES * places and len(distinct_rows(found.X)[0]) <= places)
        return few and found

    def joined(a: Collapsed | Literal[False], b: Collapsed | Literal[False]) -> Collapsed | Literal[False]:
        return bounded(a + b) if a and b else False

    def of_part(chunks: Iterator[Chunk]) -> Collapsed | Literal[False]:
        found = bounded(Collapsed.of(next(chunks)))
        while found and (chunk := next(chunks, None)):
            found = joined(found, Collapsed.of(chunk))
        return found

    return stream.fold(of_part, joined) or None


def _sums(index: IntArray, columns: FloatArray) -> FloatArray:
    """Sums (G, k) of the rows (n, k) of each group."""
    return np.stack([np.bincount(index, column) for column in columns.T], axis=1)
