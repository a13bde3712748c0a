"""Rows of data, cut into blocks so that the tile between two of them stays in the cache."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray

__all__ = ["TILE", "as_rows", "as_two_sets", "centre_of", "mirrored", "row_blocks"]

TILE = 256
"""Rows of a tile: the few arrays of 256 x 256 doubles, 0.5 MB each, that are alive at a time stay in the cache."""

# glibc gives freed blocks of this size back to the system, so that each new tile pays page faults, until a larger
# block has been freed once. This is that block; it is never written to.
np.empty(1 << 20)


def as_rows(name: str, X: ArrayLike) -> FloatArray:
    """Return X as a 2-D array of float32, if it is that already, or float64."""
    x = np.asarray(X)
    if x.dtype != np.float32:
        if x.dtype.kind == "c":
            raise TypeError(f"{name} must hold real numbers; got dtype {x.dtype}")
        x = x.astype(np.float64, copy=False)
    if x.ndim != 2:
        raise ValueError(f"{name} must have shape (n, d); got {x.shape}. One input is {name}.reshape(-1, 1)")
    return x


def as_two_sets(X: ArrayLike, Z: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return X and Z as such arrays of the same number of columns."""
    x, z = as_rows("X", X), as_rows("Z", Z)
    if x.shape[1] != z.shape[1]:
        raise ValueError(f"X and Z must have the same number of columns; got {x.shape[1]} and {z.shape[1]}")
    return x, z


def centre_of(*blocks: FloatArray) -> FloatArray:
    """Return a finite point amid all rows, so that a row that is not finite spoils none but its own values."""
    with np.errstate(over="ignore", invalid="ignore"):
        centre = sum(x.mean(axis=0) / len(blocks) for x in blocks)
    return np.where(np.isfinite(centre), centre, 0).astype(blocks[0].dtype)


def row_blocks(n: int) -> list[slice]:
    """Return the n rows as slices of at most `TILE`."""
    return [slice(start, min(start + TILE, n)) for start in range(0, n, TILE)]


def mirrored(K: FloatArray) -> FloatArray:
    """Copy the lower triangle of K to its upper triangle, in place."""
    blocks = row_blocks(K.shape[0])
    for i, a in enumerate(blocks):
        for b in blocks[:i]:
            K[b, a] = K[a, b].T
        K[a, a] = np.tril(K[a, a]) + np.tril(K[a, a], -1).T
    return K
