"""Rows of data, cut into blocks so that the tile between two of them stays in the cache, or keeps a GPU busy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array
from ..backend import arrays

__all__ = ["TILE", "as_rows", "as_two_sets", "center_of", "mirrored", "row_blocks"]

TILE = 256
"""Rows of a tile: the few arrays of 256 x 256 doubles, 0.5 MB each, that are alive at a time stay in the cache."""

# glibc gives freed blocks of this size back to the system, so that each new tile pays page faults, until a larger
# block has been freed once. This is that block; it is never written to.
np.empty(1 << 20)


def as_rows(name: str, X: Any) -> Array:
    """Return X as a 2-D array of float32, if it is that already, or float64; in its library, if it has one."""
    x = _foreign(name, X) if arrays.is_array_api(X) else np.asarray(X)
    if arrays.is_numpy(x) and x.dtype != np.float32:
        if x.dtype.kind == "c":
            raise TypeError(f"{name} must hold real numbers; got dtype {x.dtype}")
        x = x.astype(np.float64, copy=False)
    if x.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n, d); got {tuple(x.shape)}. One input is {name}.reshape(-1, 1)"
        )
    return x


def _foreign(name: str, X: Array) -> Array:
    xp = arrays.namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise TypeError(f"{name} must hold real numbers; got dtype {X.dtype}")
    # Gradients come from pullbacks: what is computed in place is no business of torch's.
    x = X.detach() if arrays.library(X) == "torch" else X
    return x if x.dtype == xp.float32 else arrays.as_float64(x)


def as_two_sets(X: Any, Z: Any) -> tuple[Array, Array]:
    """Return X and Z as such arrays of one library and dtype and of the same number of columns."""
    x, z = as_rows("X", X), as_rows("Z", Z)
    if arrays.library(x) != arrays.library(z):
        raise TypeError(
            f"X and Z must be arrays of one library; got {arrays.library(x)} and {arrays.library(z)}"
        )
    if x.shape[1] != z.shape[1]:
        raise ValueError(f"X and Z must have the same number of columns; got {x.shape[1]} and {z.shape[1]}")
    return (x, z) if x.dtype == z.dtype else (arrays.as_float64(x), arrays.as_float64(z))


def center_of(*blocks: Array) -> Array:
    """Return a finite point amid all rows, so that a row that is not finite spoils none but its own values."""
    xp = arrays.namespace(blocks[0])
    with np.errstate(over="ignore", invalid="ignore"):
        center = xp.mean(blocks[0], axis=0)
        for x in blocks[1:]:
            center = center / 2 + xp.mean(x, axis=0) / 2
    return xp.where(xp.isfinite(center), center, xp.zeros_like(center))


def row_blocks(x: Array) -> list[slice]:
    """Return the rows of x as slices of at most `TILE`, larger ones on other devices."""
    return arrays.slices(x.shape[0], arrays.block(x, TILE))


def mirrored(K: Array) -> Array:
    """Copy the lower triangle of K to its upper triangle, in place where the library can."""
    xp, blocks = arrays.namespace(K), row_blocks(K)
    if len(blocks) == 1:
        return xp.tril(K) + xp.tril(K, k=-1).T
    for i, a in enumerate(blocks):
        for b in blocks[:i]:
            K[b, a] = K[a, b].T
        K[a, a] = mirrored(K[a, a])
    return K
