"""The prior part r(x) = f0(x) - a(x)'f0(X) of sample paths, by features or point by point."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from .._typing import Array, FloatArray
from ..backend import arrays
from ..backend.linalg import solve_lower, solve_lower_transposed
from ..kernels.paired import paired
from ..smoother import Smoother

__all__ = ["FeatureResidual", "Residual", "VisitedResidual", "coefficients", "swapped"]

SKIPPED = 5e4
"""A variance below this many units of rounding of k(x, x) is that of a point which the visited ones determine."""


class Residual(Protocol):
    """Draws of r, at points common to all functions or at points of their own."""

    def common(self, X: Array, cross: Array) -> Array:
        """r at X (m, d), with k(x) (m, U), which may be overwritten; (n, n_y, m)."""

    def own(self, X: Array, cross: Array) -> Array:
        """r of function i at X[i], with X (n, m, d) and k(x) (n m, U), which may be overwritten; (n, n_y, m)."""


def coefficients(smoother: Smoother, values: FloatArray) -> tuple[Array, Array]:
    """Coefficients (N, U) of k(x) and (N, q) of h(x), of smoothers of the places' values (N, U)."""
    rows = solve_lower(smoother.factor, arrays.like(np.array(values, order="C"), smoother.factor))
    if not smoother.trend.kind:
        return solve_lower_transposed(smoother.factor, rows), rows[:, :0]
    xp = arrays.namespace(rows)
    trend = xp.linalg.solve(smoother.trend_information, smoother.whitened_trend @ rows.T).T
    rows = rows - trend @ smoother.whitened_trend
    return solve_lower_transposed(smoother.factor, rows), trend


class FeatureResidual:
    """r(x) = phi(x)'w - a(x)'Phi w, with features phi of the kernel and standard normal w."""

    def __init__(self, smoother: Smoother, phi: Any, n: int, n_y: int, generator: Any) -> None:
        self.smoother, self.phi = smoother, phi
        at_places = phi(smoother.places)
        w = generator.standard_normal((n * n_y, at_places.shape[1]))
        coef, trend = coefficients(smoother, -w @ arrays.as_numpy(at_places).T)
        xp = arrays.namespace(coef)
        parts = xp.concat([coef, trend, arrays.like(w, coef)], axis=1)
        self._coef = xp.reshape(parts, (n, n_y, -1))

    def _basis(self, X: Array, cross: Array) -> Array:
        return arrays.namespace(cross).concat([cross, self.smoother.trend(X), self.phi(X)], axis=1)

    def common(self, X: Array, cross: Array) -> Array:
        """See `Residual`."""
        return self._coef @ self._basis(X, cross).T

    def own(self, X: Array, cross: Array) -> Array:
        """See `Residual`."""
        n, m, d = X.shape
        xp = arrays.namespace(X)
        basis = self._basis(xp.reshape(X, (n * m, d)), cross)
        return self._coef @ swapped(xp.reshape(basis, (n, m, -1)))


class VisitedResidual:
    """r, drawn point by point given its values at all points that were visited before.

    Its covariance is C(x, x') = k(x, x') - b(x)'(k(x') + R b(x')) + s(x)'h(x'), with the weights b of the places, trend
    functions h, and s = (H'AH)^-1 (h - H'A k), since (K + R) b = k + H s and H'b = h. Points common to all functions share one
    Cholesky factor of C; after the first points of their own, each function has its own further rows.
    """

    def __init__(self, smoother: Smoother, n: int, n_y: int, generator: Any, expected: int = 0) -> None:
        self.smoother, self.n, self.n_y, self.generator = smoother, n, n_y, generator
        self.expected = expected  # number of points of their own that memory is reserved for
        places = smoother.places
        eps = float(arrays.namespace(places).finfo(places.dtype).eps)
        self.tolerance = SKIPPED * eps
        self.shared = arrays.filled((0, places.shape[1]), 0.0, places)
        self.root = np.empty((0, 0))  # Cholesky factor of C at the shared points
        self.right = arrays.filled(
            (0, smoother.samples.n_places + smoother.trend_information.shape[0]), 0.0, places
        )
        self.draws = arrays.filled((n, n_y, 0), 0.0, places)
        self.visited = 0  # number of points of their own
        self._own = _Memory(0, 0, n, n_y, places)

    def _factors(self, X: Array, cross: Array) -> tuple[Array, Array, Array, Array]:
        """left, right (m, U + q), with C(x, x') = k(x, x') - left(x)'right(x'), k(x, x) and C(x, x), both (m,)."""
        smoother, xp = self.smoother, arrays.namespace(X)
        k = arrays.copy(cross)
        b, variance, solved = smoother.weigh(X, cross)
        ridge = b @ smoother.regularizer if smoother.regularizer.ndim == 2 else b * smoother.regularizer
        variance = arrays.positive_part(variance - arrays.row_dots(ridge, b))
        k += ridge
        if smoother.trend.kind:
            return (
                xp.concat([b, -solved], axis=1),
                xp.concat([k, smoother.trend(X)], axis=1),
                smoother.kernel.diag(X),
                variance,
            )
        return b, k, smoother.kernel.diag(X), variance

    def _normal(self, count: int) -> Array:
        return arrays.like(self.generator.standard_normal((self.n, self.n_y, count)), self.smoother.places)

    def _given_shared(self, X: Array, left: Array) -> Array:
        """t = T^-1 C(shared, x), as rows (m, h)."""
        if not len(self.root):
            return left[:, :0]
        covariance = self.smoother.kernel(X, self.shared) - left @ self.right.T
        solved = solve_triangular(self.root, arrays.as_numpy(covariance).T, lower=True).T
        return arrays.like(solved, left)

    def common(self, X: Array, cross: Array) -> Array:
        """See `Residual`."""
        xp = arrays.namespace(X)
        if self.visited:
            m, d = X.shape
            every = xp.reshape(xp.broadcast_to(X, (self.n, m, d)), (self.n * m, d))
            rows = xp.reshape(xp.broadcast_to(cross, (self.n, *cross.shape)), (self.n * m, -1))
            return self.own(xp.reshape(every, (self.n, m, d)), arrays.copy(rows))
        left, right, prior, variance = self._factors(X, cross)
        t = self._given_shared(X, left)
        rest = arrays.as_numpy(self.smoother.kernel(X, X) - left @ right.T - t @ t.T).astype(np.float64)
        rest.flat[:: len(rest) + 1] = arrays.as_numpy(variance - arrays.row_dots(t, t))
        rest = (rest + rest.T) / 2
        limit = self.tolerance * float(xp.max(prior))
        factor, order, rank, _ = dpstrf(rest, lower=1, tol=limit)
        rank = rank if rest.max() > limit else 0  # the routine takes one pivot at least
        order = order - 1
        rows = np.zeros((len(rest), rank))
        rows[order] = np.tril(factor)[:, :rank]
        new = self._normal(rank)
        values = self.draws @ t.T + new @ arrays.like(rows, new).T
        kept = order[:rank]
        lower = [arrays.as_numpy(arrays.take(t, kept)).astype(np.float64), rows[kept]]
        above = np.zeros((len(self.root), rank))
        self.root = np.block([[self.root, above], lower])
        self.shared = xp.concat([self.shared, arrays.take(X, kept)])
        self.right = xp.concat([self.right, arrays.take(right, kept)])
        self.draws = xp.concat([self.draws, new], axis=2)
        return values

    def own(self, X: Array, cross: Array) -> Array:
        """See `Residual`."""
        n, m, d = X.shape
        xp, kernel, h = arrays.namespace(X), self.smoother.kernel, self.visited
        flat = arrays.contiguous(xp.reshape(X, (n * m, d)))
        left, right, prior, variance = self._factors(flat, cross)
        t = self._given_shared(flat, left)
        from_shared = self.draws[:, :, : len(self.root)] @ swapped(xp.reshape(t, (n, m, -1)))
        if len(self.root):
            left, right = xp.concat([left, t], axis=1), xp.concat([right, t], axis=1)
            variance = arrays.positive_part(variance - arrays.row_dots(t, t))
        left, right = xp.reshape(left, (n, m, -1)), xp.reshape(right, (n, m, -1))
        if h + m > self._own.inverse.shape[1]:
            room = max(h + m, 2 * h, self.expected)
            self._own = _Memory(
                room, right.shape[-1], n, self.n_y, self.smoother.places, self._own if h else None
            )
        covariance = paired(kernel, X[:, :, None, :], self._own.points[:, None, :h, :])
        covariance -= left @ swapped(self._own.right[:, :h])
        among = paired(kernel, X[:, :, None, :], X[:, None, :, :]) - left @ swapped(right)
        rows = arrays.filled((n, m, h + m), 0.0, flat)
        for j in range(h):  # T t = C(visited, x)
            known = xp.einsum("nmj,nj->nm", rows[:, :, :j], self._own.root[:, j, :j])
            rows[:, :, j] = (covariance[:, :, j] - known) * self._own.inverse[:, j, None]
        limit, variance = self.tolerance * xp.reshape(prior, (n, m)), xp.reshape(variance, (n, m))
        for i in range(m):
            for j in range(i):
                known = xp.einsum("nj,nj->n", rows[:, i, : h + j], rows[:, j, : h + j])
                rows[:, i, h + j] = (among[:, i, j] - known) * self._own.inverse[:, h + j]
            pivot = variance[:, i] - xp.einsum("nj,nj->n", rows[:, i, : h + i], rows[:, i, : h + i])
            kept = pivot > limit[:, i]
            root = xp.where(kept, pivot, xp.ones_like(pivot)) ** 0.5
            zero = xp.zeros_like(root)
            rows[:, i, h + i] = xp.where(kept, root, zero)
            self._own.inverse[:, h + i] = xp.where(kept, 1 / root, zero)
        self._own.points[:, h : h + m], self._own.right[:, h : h + m] = X, right
        self._own.root[:, h : h + m, : h + m] = rows
        self._own.draws[:, :, h : h + m] = self._normal(m)
        self.visited = h + m
        return from_shared + self._own.draws[:, :, : h + m] @ swapped(rows)


class _Memory:
    """Arrays for the points that functions visited on their own: Cholesky factors, draws and what C needs."""

    def __init__(
        self, room: int, width: int, n: int, n_y: int, places: Array, old: _Memory | None = None
    ) -> None:
        shapes = (n, room, places.shape[1]), (n, room, width), (n, room, room), (n, room), (n, n_y, room)
        self._all: list[Array] = [arrays.filled(shape, 0.0, places) for shape in shapes]
        if old is not None:
            for new, was in zip(self._all, old._all, strict=True):
                new[tuple(slice(0, size) for size in was.shape)] = was
        self.points, self.right, self.root, self.inverse, self.draws = self._all


def swapped(x: Array) -> Array:
    """x with its last two axes exchanged."""
    return arrays.namespace(x).moveaxis(x, -1, -2)
