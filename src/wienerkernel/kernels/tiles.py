"""Matrices and pullbacks of a kernel, tile by tile: between two blocks of rows, so that a tile stays in the cache."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Array, FloatArray
from ..backend import arrays
from .operations import for_each

if TYPE_CHECKING:
    from .base import Block, Kernel, Point

__all__ = [
    "CrossKernel",
    "as_rows",
    "as_two_sets",
    "center_of",
    "gram",
    "input_pullback",
    "mirrored",
    "pullback",
]

TILE = 256
"""Rows of a tile: the few arrays of 256 x 256 doubles, 0.5 MB each, that are alive at a time stay in the cache."""

# glibc returns freed blocks of this size to the system, so that each new tile pays page faults, until a larger block
# has been freed once. This is that block; it is never written to.
np.empty(1 << 20)


def as_rows(name: str, X: Any) -> Array:
    """Return X as a 2-D array of float32, if it is that already, or float64; in its own library, if it has one."""
    if arrays.is_array_api(X):
        x = _array_api_rows(name, X)
    else:
        x = np.asarray(X)
        if x.dtype.kind == "c":
            raise TypeError(f"{name} must hold real numbers; got dtype {x.dtype}")
        if x.dtype != np.float32:
            x = x.astype(np.float64, copy=False)
    if x.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n, d); got {tuple(x.shape)}. A single input column is {name}.reshape(-1, 1)"
        )
    return x


def _array_api_rows(name: str, X: Array) -> Array:
    xp = arrays.namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise TypeError(f"{name} must hold real numbers; got dtype {X.dtype}")
    # Gradients come from pullbacks: torch must not record what is computed in place.
    x = X.detach() if arrays.library(X) == "torch" else X
    return x if x.dtype == xp.float32 else arrays.as_float64(x)


def as_two_sets(X: Any, Z: Any) -> tuple[Array, Array]:
    """Return X and Z as such arrays of one library and dtype, with the same number of columns."""
    x, z = as_rows("X", X), as_rows("Z", Z)
    if arrays.library(x) != arrays.library(z):
        raise TypeError(
            f"X and Z must be arrays of one library; got {arrays.library(x)} and {arrays.library(z)}"
        )
    if x.shape[1] != z.shape[1]:
        raise ValueError(f"X and Z must have the same number of columns; got {x.shape[1]} and {z.shape[1]}")
    return (x, z) if x.dtype == z.dtype else (arrays.as_float64(x), arrays.as_float64(z))


def center_of(*blocks: Array) -> Array:
    """Return the center of all rows, with 0 where it is not finite: a bad row then affects its own values only."""
    xp = arrays.namespace(blocks[0])
    with np.errstate(over="ignore", invalid="ignore"):
        center = xp.mean(blocks[0], axis=0)
        for x in blocks[1:]:
            center = center / 2 + xp.mean(x, axis=0) / 2
    return xp.where(xp.isfinite(center), center, xp.zeros_like(center))


def _row_blocks(x: Array) -> list[slice]:
    return arrays.slices(x.shape[0], arrays.block(x, TILE))


def _prepared(kernel: Kernel, x: Array, center: Array) -> list[tuple[slice, Block]]:
    """Return the blocks of the rows x with what the kernel needs to know of each."""
    return [(a, kernel._prepare(x[a, :], center)) for a in _row_blocks(x)]


def mirrored(K: Array) -> Array:
    """Copy the lower triangle of K to its upper triangle, in place where the library can."""
    xp, blocks = arrays.namespace(K), _row_blocks(K)
    if len(blocks) == 1:
        return xp.tril(K) + xp.tril(K, k=-1).T
    for i, a in enumerate(blocks):
        for b in blocks[:i]:
            K[b, a] = K[a, b].T
        K[a, a] = mirrored(K[a, a])
    return K


def gram(kernel: Kernel, X: Any) -> Array:
    """Lower triangle of K(X, X), (n, n), C-ordered, in the library of X (n, d), with undefined entries above."""
    x = as_rows("X", X)
    n = x.shape[0]
    if n == 0:
        return arrays.filled((0, 0), 0.0, x)
    blocks = _prepared(kernel, x, center_of(x))
    if len(blocks) == 1:
        K = kernel._values(blocks[0][1], blocks[0][1])
    else:
        K = arrays.filled((n, n), 0.0, x)

        def fill(i: int) -> None:
            a, P = blocks[i]
            for b, Q in blocks[: i + 1]:
                K[a, b] = kernel._values(P, Q)

        for_each(fill, range(len(blocks))[::-1], x, len(blocks) * (len(blocks) + 1) // 2)
    return arrays.set_diagonal(K, kernel._diagonal(x))


class CrossKernel:
    """The function X -> K(X, Z) for a fixed Z (m, d), which is prepared once; X has its library and dtype."""

    def __init__(self, kernel: Kernel, Z: Array, center: Array | None = None) -> None:
        self.kernel, self.Z, self.center = kernel, Z, center

    def __reduce__(self) -> tuple[Any, ...]:
        return CrossKernel, (self.kernel, self.Z, self.center)

    @cached_property
    def _center(self) -> Array:
        return center_of(self.Z) if self.center is None else self.center

    @cached_property
    def _columns(self) -> list[tuple[slice, Block]]:
        return _prepared(self.kernel, self.Z, self._center)

    @cached_property
    def _far(self) -> float:
        """Up to here, squared differences stay far from overflow, whatever the length scale."""
        limit: float = float(np.finfo(self.Z.dtype).max) ** (1 / 6)
        return limit

    @cached_property
    def _point(self) -> Point | None:
        """The function of one point, without tiles; None where squares might overflow."""
        near = arrays.is_numpy(self.Z) and np.max(np.abs(self.Z), initial=0.0) < self._far
        return self.kernel._point(self.Z) if near else None

    def __call__(self, X: Array) -> Array:
        """K(X, Z), of shape (n, m), for X of shape (n, d)."""
        if X.shape[0] == 1 and self._point is not None and np.max(np.abs(X)) < self._far:
            return np.asarray(self._point(X[0])[None], dtype=X.dtype)
        rows = _prepared(self.kernel, X, self._center)
        if len(rows) == len(self._columns) == 1:
            return self.kernel._values(rows[0][1], self._columns[0][1])
        K = arrays.filled((X.shape[0], self.Z.shape[0]), 0.0, X)

        def fill(column: tuple[slice, Block]) -> None:
            b, Q = column
            for a, P in rows:
                K[a, b] = self.kernel._values(P, Q)

        for_each(fill, self._columns, X, len(rows) * len(self._columns))
        return K


def pullback(kernel: Kernel, X: Any, W: Any, symmetric: bool) -> FloatArray:
    """See `Kernel.pullback`."""
    x = arrays.as_float64(as_rows("X", X))
    n, w = x.shape[0], _as_weights(W, x)
    if tuple(w.shape) != (n, n):
        raise ValueError(
            f"W must have shape ({n}, {n}), one row and column per row of X; got {tuple(w.shape)}"
        )
    gradient = np.zeros(kernel._n_theta)
    if gradient.size == 0 or n == 0:
        return gradient
    blocks = _prepared(kernel, x, center_of(x))

    def of_rows(i: int) -> FloatArray:
        a, P = blocks[i]
        part = np.zeros(kernel._n_theta)
        for b, Q in blocks[:i] if symmetric else blocks:
            part += kernel._pullback(P, Q, arrays.as_float64(w[a, b]))
        if symmetric:
            # Everything is doubled in the end, so the diagonal is halved. tril also drops NaN above it.
            lower = arrays.as_float64(arrays.namespace(w).tril(w[a, a]))
            part += kernel._pullback(P, P, arrays.set_diagonal(lower, arrays.diagonal(lower) / 2))
        return part

    tiles = len(blocks) ** 2 // (2 if symmetric else 1)
    for part in for_each(of_rows, range(len(blocks))[::-1], x, tiles):
        gradient += part
    return 2 * gradient if symmetric else gradient


def input_pullback(kernel: Kernel, X: Any, Z: Any, W: Any) -> Array:
    """See `Kernel.input_pullback`."""
    x, z = map(arrays.as_float64, as_two_sets(X, Z))
    n, m, w = x.shape[0], z.shape[0], _as_weights(W, x)
    if w.ndim not in (2, 3) or tuple(w.shape[-2:]) != (n, m):
        raise ValueError(
            f"W must have shape ({n}, {m}) or (q, {n}, {m}), a row per row of X and a column per row of Z; "
            f"got {tuple(w.shape)}"
        )
    shape = (*w.shape[:-1], x.shape[1])
    if 0 in (*shape, m):
        return arrays.filled(shape, 0.0, x)
    xp, center = arrays.namespace(x), center_of(x, z)
    layers = [w] if w.ndim == 2 else [w[i, :, :] for i in range(w.shape[0])]
    columns = _prepared(kernel, z, center)
    parts = []
    for a, P in _prepared(kernel, x, center):
        sums: list[Array] = [0.0] * len(layers)
        for b, Q in columns:
            _, pull = kernel._linearize_inputs(P, Q)
            sums = [s + pull(arrays.as_float64(v[a, b])) for s, v in zip(sums, layers, strict=True)]
        parts.append(xp.stack(sums))
    gradient = xp.concat(parts, axis=1)
    return gradient if w.ndim == 3 else gradient[0, :, :]


def _as_weights(W: Any, x: Array) -> Array:
    """Return W as an array, which must be of the library of x."""
    w = np.asarray(W) if arrays.is_numpy(x) and not arrays.is_array_api(W) else W
    if arrays.library(w) != arrays.library(x):
        raise TypeError(
            f"X and W must be arrays of one library; got {arrays.library(x)} and {arrays.library(w)}"
        )
    return w
