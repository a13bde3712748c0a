"""What a model with features stores of the data: sums over the rows, and a random sample of rows.

The sums of two parts of the data add up, in any order, so they can be computed in chunks and by several processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import reduce

import numpy as np

from .._typing import FloatArray
from .inducing import Inducing

__all__ = ["Audit", "Rows", "Sums", "chunks"]

CHUNK = 8192

Chunk = tuple[int, FloatArray, FloatArray, FloatArray]
"""Number of the first row, X (c, d), targets y0 (c, n_y) and noise scales (c,)."""


@dataclass(frozen=True)
class Audit:
    """Frequencies w of the kernel, with importance weights: functions psi_w = sqrt(k0) (cos w'x, sin w'x).

    Parameters
    ----------
    frequencies : ndarray of shape (M, d)
    weights : ndarray of shape (M,)
        An average over the spectral density is the mean of the values times the weights.
    variance : float
        k0.
    """

    frequencies: FloatArray
    weights: FloatArray
    variance: float

    def __call__(self, X: FloatArray) -> FloatArray:
        """psi at the rows of X, (m, 2M)."""
        angle = X @ self.frequencies.T
        return np.asarray(np.sqrt(self.variance) * np.concatenate([np.cos(angle), np.sin(angle)], axis=1))


@dataclass(frozen=True)
class Rows:
    """A uniform sample of the rows: those with the smallest keys, which are hashes of the row numbers.

    Which rows are taken does not depend on the order or the size of the chunks.
    """

    keys: FloatArray
    X: FloatArray
    y: FloatArray
    scale: FloatArray

    def smallest(self, number: int) -> Rows:
        """The ``number`` rows with the smallest keys, in the order of the keys."""
        order = np.argsort(self.keys, kind="stable")[:number]
        return Rows(*(getattr(self, field.name)[order] for field in fields(self)))

    def __add__(self, other: Rows) -> Rows:
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Rows(*map(np.concatenate, pairs))


@dataclass(frozen=True)
class Sums:
    """Sums over n rows of features f, targets y and audit functions psi, each over the noise scale of its row.

    Attributes
    ----------
    n : int
    gram : ndarray of shape (p, p)
        F'F.
    targets : ndarray of shape (p, n_y)
        F'y.
    squares : ndarray of shape (n_y,)
        Sums of y^2.
    audit : ndarray of shape (p, 2M)
        F'psi.
    log_scale : float
        Sum of the logarithms of the noise scales.
    rows : Rows
        At most ``reservoir`` rows at random.
    reservoir : int
    """

    n: int
    gram: FloatArray
    targets: FloatArray
    squares: FloatArray
    audit: FloatArray
    log_scale: float
    rows: Rows
    reservoir: int

    @classmethod
    def of(cls, chunk: Chunk, inducing: Inducing, audit: Audit, reservoir: int) -> Sums:
        """Sums of one chunk."""
        first, X, y, scale = chunk
        F, y_scaled = inducing(X) / scale[:, None], y / scale[:, None]
        rows = Rows(_keys(first, len(X)), X, y, scale).smallest(reservoir)
        return cls(
            len(X),
            F.T @ F,
            F.T @ y_scaled,
            np.sum(y_scaled**2, axis=0),
            F.T @ (audit(X) / scale[:, None]),
            float(np.sum(np.log(scale))),
            rows,
            reservoir,
        )

    @classmethod
    def over(cls, data: Iterable[Chunk], inducing: Inducing, audit: Audit, reservoir: int) -> Sums:
        """Sums of all chunks, one after the other."""
        return reduce(cls.__add__, (cls.of(chunk, inducing, audit, reservoir) for chunk in data))

    def __add__(self, other: Sums) -> Sums:
        rows = (self.rows + other.rows).smallest(self.reservoir)
        return Sums(
            self.n + other.n,
            self.gram + other.gram,
            self.targets + other.targets,
            self.squares + other.squares,
            self.audit + other.audit,
            self.log_scale + other.log_scale,
            rows,
            self.reservoir,
        )


def chunks(X: FloatArray, y: FloatArray, scale: FloatArray, first: int = 0) -> Iterator[Chunk]:
    """Chunks of rows of arrays in memory."""
    for start in range(0, len(X), CHUNK):
        part = slice(start, start + CHUNK)
        yield first + start, X[part], y[part], scale[part]


def _keys(first: int, number: int) -> FloatArray:
    """Hashes of the row numbers, uniform in [0, 1) (the finalizer of splitmix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        z = (np.arange(first, first + number, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)) * 2.0**-53)
