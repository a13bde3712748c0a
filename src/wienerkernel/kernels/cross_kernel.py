"""The matrix K(X, Z) for one Z and many X: what a kernel must know of Z is prepared once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Array
from ..backend import arrays
from .blas import for_each
from .tiles import center_of, row_blocks

if TYPE_CHECKING:
    from .base import Kernel, Point, Rows

__all__ = ["CrossKernel"]


class CrossKernel:
    """The function X -> K(X, Z).

    Parameters
    ----------
    kernel : Kernel
    Z : array of shape (m, d)
        float64 or float32; X must be of the same library and dtype.
    center : array of shape (d,), optional
        A point amid the rows of X and Z; by default amid those of Z.
    """

    def __init__(self, kernel: Kernel, Z: Array, center: Array | None = None) -> None:
        self.kernel, self.Z, self.center = kernel, Z, center

    def __reduce__(self) -> tuple[Any, ...]:
        return CrossKernel, (self.kernel, self.Z, self.center)

    @cached_property
    def _center(self) -> Array:
        return center_of(self.Z) if self.center is None else self.center

    @cached_property
    def _columns(self) -> list[tuple[slice, Rows]]:
        return [(b, self.kernel._prepare(self.Z[b, :], self._center)) for b in row_blocks(self.Z)]

    @cached_property
    def _far(self) -> float:
        """Up to here, squares of differences are far from the largest number, whatever the length scale."""
        limit: float = float(np.finfo(self.Z.dtype).max) ** (1 / 6)
        return limit

    @cached_property
    def _point(self) -> Point | None:
        """The function for one point, without tiles; None where numbers are so large that it is not safe."""
        near = arrays.is_numpy(self.Z) and np.max(np.abs(self.Z), initial=0.0) < self._far
        return self.kernel._point(self.Z) if near else None

    def __call__(self, X: Array) -> Array:
        """K(X, Z), of shape (n, m), for X of shape (n, d)."""
        if X.shape[0] == 1 and self._point is not None and np.max(np.abs(X)) < self._far:
            return np.asarray(self._point(X[0])[None], dtype=X.dtype)
        rows = row_blocks(X)
        if len(rows) == len(self._columns) == 1:
            return self.kernel._values(self.kernel._prepare(X, self._center), self._columns[0][1])
        K = arrays.filled((X.shape[0], self.Z.shape[0]), 0.0, X)
        prepared = [(a, self.kernel._prepare(X[a, :], self._center)) for a in rows]

        def fill(column: tuple[slice, Rows]) -> None:
            b, Q = column
            for a, P in prepared:
                K[a, b] = self.kernel._values(P, Q)

        for_each(fill, self._columns, X, len(rows) * len(self._columns))
        return K
