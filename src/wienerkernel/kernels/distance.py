"""Squared distances between scaled points, tile by tile, and the pullbacks through them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray
from .blas import cross_products, inner, times, weighted_sums
from .parameters import Scale

__all__ = ["Points", "points", "pull_differences", "pull_squares", "squared_distances"]

FEW_COLUMNS = 3
"""Up to so many columns explicit differences cost no more than a matrix product, and they are exact."""


@dataclass(frozen=True, slots=True)
class Points:
    """A block of n points x, centred and divided by the length scales.

    ``left`` and ``right`` are (n, d + 2) arrays of [x, -|x|^2/2, 1] and [x, 1, -|x|^2/2], so that the product of the
    one with the transpose of the other is -|x - z|^2/2.
    """

    left: FloatArray
    right: FloatArray
    by_product: bool
    """Whether distances may come from the matrix product."""
    near: bool
    """Whether sums of squares are small enough for a matrix product to be accurate."""
    far: bool
    """Whether squared distances may overflow."""

    @property
    def x(self) -> FloatArray:
        """The points, of shape (n, d)."""
        return self.left[:, :-2]


def points(X: FloatArray, centre: FloatArray, length_scale: Scale, exact: bool = False) -> Points:
    """Return the block X of shape (n, d) as points of unit length scale around ``centre``.

    ``exact`` asks for explicit differences whatever the number of columns.
    """
    n, d = X.shape
    if isinstance(length_scale, tuple) and len(length_scale) != d:
        raise ValueError(f"length_scale has {len(length_scale)} entries, but X has {d} columns")
    limits = np.finfo(X.dtype)
    with np.errstate(over="ignore"):
        # Centred before it is scaled: the subtraction is then harmless however far away the data are.
        x = (X - centre) / np.asarray(length_scale, dtype=X.dtype)
        half_norms = np.einsum("ij,ij->i", x, x)[:, None] / 2
    largest = 2 * float(half_norms.max())
    # The product is wrong by about eps |x|^2, hence by 2e-10 at most (1e-4 in single precision).
    near = largest <= (1e3 if X.dtype == np.float32 else 1e6)
    one = np.ones((n, 1), dtype=X.dtype)
    return Points(
        left=np.hstack([x, -half_norms, one]),
        right=np.hstack([x, one, -half_norms]),
        by_product=near and not exact and d > FEW_COLUMNS,
        near=near,
        far=not largest <= 1e-6 * float(limits.max),
    )


def squared_distances(P: Points, Q: Points, factor: float) -> FloatArray:
    """Return factor |x - z|^2 for every x of P and z of Q, with the sign of ``factor`` whatever the rounding."""
    if P.by_product and Q.by_product:
        q = cross_products(-2 * factor, P.left, Q.right)
        return np.maximum(q, 0, out=q) if factor > 0 else np.minimum(q, 0, out=q)
    if P.x.shape[1] <= FEW_COLUMNS:
        q = np.zeros((P.x.shape[0], Q.x.shape[0]), dtype=P.x.dtype)
        for k in range(P.x.shape[1]):
            q += _squared_differences(P, Q, k)
    else:
        from scipy.spatial.distance import cdist

        with np.errstate(over="ignore"):
            q = _finite(P, Q, cdist(P.x, Q.x, "sqeuclidean").astype(P.x.dtype, copy=False))
    q *= factor
    return q


def pull_squares(P: Points, Q: Points, G: FloatArray, exact: bool = False) -> FloatArray:
    """Return, for each column, the sum of G_ij (x_i - z_j)^2; shape (d,)."""
    d = P.x.shape[1]
    if exact or not (P.near and Q.near):
        return np.array([inner(G, _squared_differences(P, Q, k)) for k in range(d)])
    # sum_ij G_ij (x_i^2 - 2 x_i z_j + z_j^2), of which one product with [z, 1] gives two parts
    GZ = times(G, Q.right)
    xGz: FloatArray = np.einsum("ij,ij->j", P.x, GZ[:, :d])
    return GZ[:, d] @ P.x**2 - 2 * xGz + weighted_sums(G, np.ones(len(G))) @ Q.x**2


def pull_differences(P: Points, Q: Points, G: FloatArray, exact: bool = False) -> FloatArray:
    """Return sum_j G_ij (x_i - z_j) for every x_i of P; shape (n, d)."""
    d = P.x.shape[1]
    if exact or not (P.near and Q.near):
        z = np.ascontiguousarray(Q.x.T)
        return np.stack(
            [np.einsum("ij,ij->i", G, np.subtract.outer(P.x[:, k], z[k])) for k in range(d)], axis=1
        )
    GZ = times(G, Q.right)
    return GZ[:, d, None] * P.x - GZ[:, :d]


def _squared_differences(P: Points, Q: Points, column: int) -> FloatArray:
    with np.errstate(over="ignore"):
        squares = np.subtract.outer(P.x[:, column], np.ascontiguousarray(Q.x[:, column]))
        squares *= squares
    return _finite(P, Q, squares)


def _finite(P: Points, Q: Points, squares: FloatArray) -> FloatArray:
    """Return squares that did not overflow, so that they times an exponential that vanished are 0; in place."""
    if P.far or Q.far:
        np.minimum(squares, 1e-7 * np.finfo(squares.dtype).max, out=squares)
    return squares
