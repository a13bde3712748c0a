"""The matrix K(X, Z) for one Z and many X: what a kernel must know of Z is prepared once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import arrays
from .._typing import Array
from .blas import one_thread
from .tiles import centre_of, row_blocks

if TYPE_CHECKING:
    from .base import Kernel

__all__ = ["Against"]


class Against:
    """The function X -> K(X, Z).

    Parameters
    ----------
    kernel : Kernel
    Z : array of shape (m, d)
        float64 or float32; X must be of the same library and dtype.
    centre : array of shape (d,), optional
        A point amid the rows of X and Z; by default amid those of Z.

    Examples
    --------
    >>> import numpy as np
    >>> from wienerkernel.kernels import RBF
    >>> cross = Against(RBF(), np.array([[0.0], [1.0]]))
    >>> cross(np.array([[0.0]])).round(4).tolist()
    [[1.0, 0.6065]]
    """

    def __init__(self, kernel: Kernel, Z: Array, centre: Array | None = None) -> None:
        self.kernel = kernel
        self.m = int(Z.shape[0])
        self.centre = centre_of(Z) if centre is None else centre
        self.columns = [(b, kernel._prepare(Z[b, :], self.centre)) for b in row_blocks(Z)]

    def __call__(self, X: Array) -> Array:
        """K(X, Z), of shape (n, m), for X of shape (n, d)."""
        rows = row_blocks(X)
        if len(rows) == len(self.columns) == 1:
            return self.kernel._values(self.kernel._prepare(X, self.centre), self.columns[0][1])
        K = arrays.filled((X.shape[0], self.m), 0.0, X)
        with one_thread(X, len(rows) * len(self.columns)):
            for a in rows:
                P = self.kernel._prepare(X[a, :], self.centre)
                for b, Q in self.columns:
                    K[a, b] = self.kernel._values(P, Q)
        return K
