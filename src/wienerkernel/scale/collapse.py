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
    """Samples by input and noise scale.

    Attributes
    ----------
    X : ndarray of shape (G, d)
        In order of appearance.
    scale : ndarray of shape (G,)
    count : ndarray of shape (G,)
    mean, squares : ndarray of shape (G, n_y)
        Means of y, and sums of the squared deviations from these.
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
        upper = self.count // 2
        lower = self.count - upper
        with np.errstate(divide="ignore"):
            shift = np.where(upper > 0, np.sqrt(lower / (upper * self.count)), 0.0)
        shift = shift[:, None] * np.sqrt(self.squares)
        above = np.flatnonzero(upper)
        y = np.concatenate([self.mean - shift * (upper / lower)[:, None], self.mean[above] + shift[above]])
        both = np.concatenate([np.arange(len(upper)), above])
        order = np.argsort(both, kind="stable")
        both = both[order]
        return self.X[both], y[order], self.scale[both], np.concatenate([lower, upper[above]])[order]


def collapse(stream: Stream) -> Collapsed | None:
    """Samples by input; None if there are too many distinct inputs, or noise scales, for an exact model."""
    bounded = _Bounded(approximation.EXACT_PLACES)
    return stream.fold(bounded.of_part, bounded.joined) or None


@dataclass(frozen=True)
class _Bounded:
    """Collapses while there are at most ``places`` distinct inputs; False where there are more."""

    places: int

    def of_part(self, chunks: Iterator[Chunk]) -> Collapsed | Literal[False]:
        found = self._checked(Collapsed.of(next(chunks)))
        for chunk in chunks:
            found = self.joined(found, Collapsed.of(chunk))
            if not found:
                break
        return found

    def joined(
        self, a: Collapsed | Literal[False], b: Collapsed | Literal[False]
    ) -> Collapsed | Literal[False]:
        return self._checked(a + b) if a and b else False

    def _checked(self, found: Collapsed) -> Collapsed | Literal[False]:
        groups = len(found.count)
        few = groups <= self.places or (
            groups <= SCALES * self.places and len(distinct_rows(found.X)[0]) <= self.places
        )
        return few and found


def _sums(index: IntArray, columns: FloatArray) -> FloatArray:
    """Sums (G, k) of the rows (n, k) of each group."""
    return np.stack([np.bincount(index, column) for column in columns.T], axis=1)
