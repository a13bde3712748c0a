"""Squared distances between scaled points, tile by tile, and the pullbacks through them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Array, FloatArray
from ..backend import arrays
from .operations import clip, column_dots, cross_products, inner, times
from .parameters import Scale, check_columns

__all__ = ["Points", "points", "pull_differences", "pull_squares", "squared_distances"]

FEW_COLUMNS = 3
"""Up to this many columns explicit differences cost no more than a matrix product, and they are exact."""


@dataclass(frozen=True, slots=True)
class Points:
    """A block of n points x, centered and divided by the length scales.

    ``left`` [x, -|x|^2/2, 1] times the transpose of ``right`` [x, 1, -|x|^2/2], (n, d + 2) each, is -|x - z|^2/2.
    """

    left: Array
    right: Array
    near: bool
    """Whether a matrix product is accurate enough."""
    far: bool
    """Whether squared distances may overflow."""
    angles: Array
    """The angles of points on circles, of shape (n, d/2); otherwise None."""

    @property
    def x(self) -> Array:
        """The points, of shape (n, d)."""
        return self.left[:, :-2]


def points(X: Array, center: Array, length_scale: Scale, exact: bool = False, angles: Array = None) -> Points:
    """Points of unit length scale from the rows X (n, d); ``exact`` refuses matrix products."""
    n, d = X.shape
    check_columns("length_scale", length_scale, d)
    xp = arrays.namespace(X)
    limits = xp.finfo(X.dtype)
    with np.errstate(over="ignore"):
        # Centered before it is scaled: no digits are lost, however far the data are from 0.
        x = (X - center) / arrays.like(length_scale, X)
        half_norms = arrays.row_dots(x, x)[:, None] / 2
    largest = 2 * float(xp.max(half_norms))
    one = arrays.filled((n, 1), 1.0, X)
    return Points(
        left=xp.concat([x, -half_norms, one], axis=1),
        right=xp.concat([x, one, -half_norms], axis=1),
        # The product has an error of about eps |x|^2, at most 2e-10 (1e-4 in single precision).
        near=largest <= (1e6 if limits.eps < 1e-10 else 1e3) and not exact,
        far=not largest <= 1e-6 * float(limits.max),
        angles=angles,
    )


def squared_distances(P: Points, Q: Points, factor: float) -> Array:
    """Return factor |x - z|^2 for every x of P and z of Q, with the sign of ``factor`` despite rounding."""
    few = P.x.shape[1] <= FEW_COLUMNS
    if P.near and Q.near and not few:
        q = cross_products(-2 * factor, P.left, Q.right)
        return clip(q, low=0.0) if factor > 0 else clip(q, high=0.0)
    if few or not arrays.is_numpy(P.x):
        q = arrays.filled((P.x.shape[0], Q.x.shape[0]), 0.0, P.x)
        for k in range(P.x.shape[1]):
            q += _squared_differences(P, Q, k)
    else:
        from scipy.spatial.distance import cdist

        with np.errstate(over="ignore"):
            q = _finite(P, Q, cdist(P.x, Q.x, "sqeuclidean").astype(P.x.dtype, copy=False))
    q *= factor
    return q


def pull_squares(P: Points, Q: Points, G: Array) -> FloatArray:
    """Return, for each column, the sum of G_ij (x_i - z_j)^2; shape (d,)."""
    d = P.x.shape[1]
    if not (P.near and Q.near):
        return np.array([inner(G, _squared_differences(P, Q, k)) for k in range(d)])
    # sum_ij G_ij (x_i^2 - 2 x_i z_j + z_j^2), of which one product with [z, 1] gives two parts
    GZ = times(G, Q.right)
    column_sums = arrays.namespace(G).sum(G, axis=0)
    squares = arrays.as_numpy(GZ[:, d] @ P.x**2 + column_sums @ Q.x**2)
    return squares - 2 * column_dots(P.x, GZ[:, :d])


def pull_differences(P: Points, Q: Points, G: Array) -> Array:
    """Return sum_j G_ij (x_i - z_j) for every x_i of P; shape (n, d)."""
    d = P.x.shape[1]
    if not (P.near and Q.near):
        differences = (P.x[:, k, None] - arrays.contiguous(Q.x[:, k]) for k in range(d))
        return arrays.namespace(G).stack([arrays.row_dots(G, column) for column in differences], axis=1)
    GZ = times(G, Q.right)
    return GZ[:, d, None] * P.x - GZ[:, :d]


def _squared_differences(P: Points, Q: Points, column: int) -> Array:
    with np.errstate(over="ignore"):
        squares = P.x[:, column, None] - arrays.contiguous(Q.x[:, column])
        squares *= squares
    return _finite(P, Q, squares)


def _finite(P: Points, Q: Points, squares: Array) -> Array:
    """Limit squares that overflowed, in place, so that their product with an exponential that vanished is 0."""
    if P.far or Q.far:
        return clip(squares, high=1e-7 * float(arrays.namespace(squares).finfo(squares.dtype).max))
    return squares
