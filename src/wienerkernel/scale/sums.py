"""What a model with features stores of the data: sums over the rows, and a random sample of rows.

The sums of two parts of the data add up, in any order, so they can be computed in chunks and by several processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

from .._typing import Array, FloatArray
from ..backend import arrays
from ..kernels.tiles import mirrored
from .inducing import Inducing

__all__ = ["CHUNK", "Audit", "Chunk", "Rows", "Sums", "chunks", "keys"]

CHUNK = 65_536
"""Rows of a chunk of arrays in memory, and of a block on a GPU."""
FINISHED = 2**20
"""Rows after which sums of kernel values become sums of features, before rounding errors add up."""
BLOCK = 2**21
"""Features, or audit functions, that are computed at a time on a CPU."""

Chunk = tuple[int, FloatArray, FloatArray, FloatArray]
"""Number of the first row, X (c, d), targets y0 (c, n_y) and noise scales (c,)."""


@dataclass(frozen=True)
class Audit:
    """Frequencies w of the kernel, (M, d): functions psi_w = sqrt(k0) (cos w'x, sin w'x), where k0 is the ``variance``.

    An average over the spectral density is the mean of the values times the ``weights`` (M,).
    """

    frequencies: FloatArray
    weights: FloatArray
    variance: float

    def single(self, X: Array) -> Array:
        """psi / sqrt(k0) in single precision, whose errors are far below those of a mean over M frequencies, (m, 2M)."""
        xp = arrays.namespace(X)
        turns = X @ arrays.like(self.frequencies.T / (2 * np.pi), X)
        angle = xp.astype((turns - xp.round(turns)) * (2 * np.pi), xp.float32)
        return xp.concat([xp.cos(angle), xp.sin(angle)], axis=1)

    def __call__(self, X: FloatArray) -> FloatArray:
        """psi at the rows of X, (m, 2M)."""
        angle = X @ self.frequencies.T
        return np.asarray(np.sqrt(self.variance) * np.concatenate([np.cos(angle), np.sin(angle)], axis=1))


@dataclass(frozen=True)
class Rows:
    """A uniform sample of at most ``number`` rows: those with the smallest keys, which are hashes of the row numbers.

    Which rows are taken does not depend on the order or the size of the chunks. They are in the order of the keys (R,).
    """

    number: int
    keys: FloatArray
    X: FloatArray
    y: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, chunk: Chunk, number: int, seed: int = 0) -> Rows:
        """Rows of one chunk, of which only these leave their device."""
        first, *values = chunk
        return cls._smallest(number, keys(first, len(values[0]), seed), *values)

    @classmethod
    def _smallest(cls, number: int, key: FloatArray, *values: Array) -> Rows:
        kept = np.argsort(key, kind="stable")[:number]
        return cls(number, key[kept], *(arrays.as_numpy(arrays.take(part, kept)) for part in values))

    def __add__(self, other: Rows) -> Rows:
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("keys", "X", "y", "scale"))
        return Rows._smallest(self.number, *map(np.concatenate, pairs))


@dataclass(frozen=True)
class Sums:
    """Sums over n rows of features f, targets y and audit functions psi, each over the noise scale of its row.

    ``gram`` F'F (p, p), ``targets`` F'y (p, n_y), ``audit`` F'psi (p, 2M), and a random sample of the rows.
    """

    n: int
    rows: Rows
    gram: FloatArray
    targets: FloatArray
    audit: FloatArray

    @classmethod
    def over(cls, data: Iterable[Chunk], inducing: Inducing, audit: Audit, reservoir: int) -> Sums:
        """Sums of all chunks, one after the other; a chunk may have any number of rows."""
        finished: list[Sums] = []
        raw: Sums | None = None
        for chunk in data:
            part = cls(len(chunk[1]), Rows.of(chunk, reservoir), *_products(*chunk[1:], inducing, audit))
            raw = part if raw is None else raw + part
            if raw.n >= FINISHED:
                finished, raw = [reduce(cls.__add__, [*finished, raw._finish(inducing)])], None
        if raw is not None:
            finished.append(raw._finish(inducing))
        return reduce(cls.__add__, finished)

    def _finish(self, inducing: Inducing) -> Sums:
        """Sums of features, from those of their summands, where the data are."""
        gram = mirrored(inducing.finish(inducing.finish(mirrored(self.gram)).T))
        targets, of_audit = inducing.finish(self.targets), inducing.finish(self.audit)
        return Sums(self.n, self.rows, *map(arrays.as_numpy, (gram, targets, of_audit)))

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


def _products(
    X: Array, y: Array, scale: Array, inducing: Inducing, audit: Audit
) -> tuple[Array, Array, Array]:
    """F'F, of which the lower triangle counts, F'y and F'psi, block by block, where the data are.

    A block of features and audit functions is so small that the allocator reuses its memory, without page faults.
    """
    xp: Any = arrays.namespace(X)
    gram: Any = None
    targets: Any = 0.0
    of_audit: Any = 0.0
    weights = 1 / scale[:, None]
    largest, equal = float(xp.max(weights)), bool(xp.all(weights == weights[0]))
    # in single precision without units, in which numbers of 1e-20 would be lost
    units = np.ones(inducing.number + len(inducing.trend.gradient))
    root = float(np.sqrt(audit.variance))
    units[: inducing.number] = audit.variance if inducing.deferred else root
    units = arrays.like(largest * units, X)
    widest = max(inducing.number, 2 * len(audit.frequencies))
    for part in arrays.slices(len(X), max(256, BLOCK // widest) if arrays.is_numpy(X) else CHUNK):
        F, weight = inducing.summands(X[part]), weights[part]
        if not equal or largest != 1:
            F *= weight
        if arrays.is_numpy(F):
            gram = dsyrk(1.0, F.T, beta=1.0, c=gram, lower=1, overwrite_c=1)
        else:
            gram = F.T @ F + (0.0 if gram is None else gram)
        targets += F.T @ (y[part] * weight)
        psi = audit.single(X[part])
        if not equal:
            psi *= xp.astype(weight / largest, xp.float32)
        F *= 1 / units
        of_audit += xp.astype(xp.astype(F, xp.float32).T @ psi, xp.float64)
    return gram, targets, of_audit * (largest * root * units[:, None])


def chunks(X: Array, y: Array, scale: Array, first: int = 0) -> Iterator[Chunk]:
    """Chunks of rows of arrays in memory."""
    for part in arrays.slices(len(X), CHUNK):
        yield first + part.start, X[part], y[part], scale[part]


def keys(first: int, number: int, seed: int = 0) -> FloatArray:
    """Hashes of the row numbers, uniform in [0, 1) (the finalizer of splitmix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        z = (np.arange(first, first + number, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed * 0xD1342543DE82EF95 % 2**64)  # another sample for another seed
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)) * 2.0**-53)
