"""The prior part r(x) = f0(x) - a(x)'f0(X) of sample paths, point by point."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from .._typing import Array
from ..backend import arrays
from ..backend.linalg import cholesky, matmul, solve_lower, solve_lower_transposed
from ..kernels.paired import paired
from ..smoother import Smoother, times_covariance

__all__ = ["PriorRoot", "VisitedResidual", "swapped"]

SKIPPED = 0.7
"""A variance below this power of the unit of rounding, relative to k(x, x), is that of a point which the visited ones
determine: 1e-11 in double precision, 1e-5 in single."""
WORTH = 4
"""Points per place from which on the root, which takes as long as 4 solves for each place, is worth it."""


def _slopes(smoother: Smoother, X: Array, k: int) -> tuple[Array, Array]:
    """Derivatives by input k of k(x), (m, U), and of the trend functions, (m, q), at X (m, d)."""
    xp = arrays.namespace(X)
    cross = paired(smoother.kernel, X[:, None, :], smoother.places[None, :, :], k, None)
    trend = smoother.trend.gradient[:, k]
    return arrays.contiguous(cross), xp.broadcast_to(trend, (X.shape[0], trend.shape[0]))


class PriorRoot:
    """One triangular solve for the covariance C of r, instead of two: the factor P, and what a trend needs.

    Without a trend it is C(x, x') = k(x, x') - k(x)'(A + A R A) k(x') with A = (K + R)^-1. If K + R = L L', then

        A + A R A = L^-T S L^-1,   S = I + L^-1 R L^-T,

    and with S = T T', T upper triangular, C = k - v'v' where P v = k(x) and P = L T^-T is lower triangular. All
    eigenvalues of S are between 1 and 2, since R <= K + R. A trend adds terms with its mismatch d = h(x) - H'A k(x).
    """

    def __init__(self, smoother: Smoother) -> None:
        factor, R = smoother.factor, smoother.regularizer
        xp = arrays.namespace(factor)
        lower = xp.tril(factor)
        inverse = solve_lower(factor, arrays.eye(lower))  # L^-T
        S = arrays.eye(lower) + matmul(times_covariance(arrays.contiguous(inverse.T), R), inverse)
        flipped = xp.tril(cholesky(arrays.contiguous(xp.flip(S))))
        rows = solve_lower(flipped, arrays.contiguous(xp.flip(lower, axis=1)))
        self.root = arrays.contiguous(xp.flip(rows, axis=1))
        self.trend = bool(smoother.trend.kind)
        if self.trend:
            self.information = smoother.trend_information  # H'AH
            AH = solve_lower_transposed(factor, arrays.copy(smoother.whitened_trend))
            Q = xp.linalg.solve(self.information, AH)  # (H'AH)^-1 H'A as rows
            RQ = times_covariance(Q, R)
            ARQ = solve_lower_transposed(factor, solve_lower(factor, arrays.copy(RQ)))
            self.AH, self.ARQ = AH.T, ARQ.T
            self.between = xp.linalg.inv(self.information) - RQ @ Q.T

    @staticmethod
    def if_worth(smoother: Smoother, points: int) -> PriorRoot | None:
        """The root, or None for few points."""
        return PriorRoot(smoother) if points > WORTH * smoother.samples.n_places else None

    def factors(self, cross: Array, basis: Array, prior: Array) -> tuple[Array, Array, Array]:
        """left, right with C(x, x') = k(x, x') - left(x)'right(x'), and C(x, x); see `VisitedResidual`."""
        if not self.trend:
            v = solve_lower(self.root, cross)
            return v, v, arrays.positive_part(prior - arrays.row_dots(v, v))
        xp = arrays.namespace(cross)
        e, d = cross @ self.ARQ, basis - cross @ self.AH
        v, rest = solve_lower(self.root, cross), e - d @ self.between
        left, right = xp.concat([v, e, d], axis=1), xp.concat([v, d, rest], axis=1)
        return left, right, arrays.positive_part(prior - arrays.row_dots(left, right))


class VisitedResidual:
    """r, drawn point by point given all that was drawn before: values, and derivatives where they were asked for.

    Its covariance is C(x, x') = k(x, x') - b(x)'(k(x') + R b(x')) + s(x)'h(x'), with the weights b of the places, trend
    functions h, and s = (H'AH)^-1 (h - H'A k), since (K + R) b = k + H s and H'b = h. A derivative is one more normal variable,
    with the derivatives of k and h in their place. Points common to all functions share one Cholesky factor of C; after the
    first points of their own, each function has its own further rows.
    """

    def __init__(
        self,
        smoother: Smoother,
        n: int,
        n_y: int,
        generator: Any,
        expected: int = 0,
        root: PriorRoot | None = None,
    ) -> None:
        self.smoother, self.n, self.n_y, self.generator, self._prior_root = smoother, n, n_y, generator, root
        self.expected = expected  # number of points of their own that memory is reserved for
        places = smoother.places
        eps = float(arrays.namespace(places).finfo(places.dtype).eps)
        self.tolerance = eps**SKIPPED
        self.shared = arrays.filled((0, places.shape[1]), 0.0, places)
        self.root = np.empty((0, 0))  # Cholesky factor of C at the shared points
        self.shared_kinds: list[int | None] = []  # the inputs that they are derivatives by, None for values
        self.kinds: list[int | None] = []  # of points of their own
        self.right: Array = None
        self.draws = arrays.filled((n, n_y, 0), 0.0, places)
        self.visited = 0  # number of points of their own
        self._own = _Memory(0, 0, n, n_y, places)

    def _factors(self, cross: Array, basis: Array, prior: Array) -> tuple[Array, Array, Array]:
        """left, right with C(x, x') = k(x, x') - left(x)'right(x'), and C(x, x); cross (m, U) may be overwritten."""
        if self._prior_root is not None:
            return self._prior_root.factors(cross, basis, prior)
        smoother, xp = self.smoother, arrays.namespace(cross)
        k = arrays.copy(cross)
        v, mismatch, solved = smoother.whiten(cross, basis)
        variance = prior - arrays.row_dots(v, v)
        if smoother.trend.kind:
            variance = variance + arrays.row_dots(mismatch, solved)
        b = smoother.unwhiten(v, solved)
        ridge = times_covariance(b, smoother.regularizer)
        variance = arrays.positive_part(variance - arrays.row_dots(ridge, b))
        k += ridge
        if smoother.trend.kind:
            return xp.concat([b, -solved], axis=1), xp.concat([k, basis], axis=1), variance
        return b, k, variance

    def _covariance(self, X: Array, kinds: list[int | None], Z: Array, others: list[int | None]) -> Array:
        """k of points X (..., m, d) and Z (..., h, d), or its derivatives where their kinds say so; (..., m, h)."""
        kernel, xp = self.smoother.kernel, arrays.namespace(X)
        if not others:
            return arrays.filled((*X.shape[:-1], 0), 0.0, X)
        if not any(kind is not None for kind in (*kinds, *others)):
            return kernel(X, Z) if X.ndim == 2 else paired(kernel, X[..., :, None, :], Z[..., None, :, :])
        rows = []
        for a, m in _runs(kinds):
            x = X[..., m, :][..., :, None, :]
            row = [paired(kernel, x, Z[..., h, :][..., None, :, :], a, b) for b, h in _runs(others)]
            rows.append(xp.concat(row, axis=-1))
        return xp.concat(rows, axis=-2)

    def _normal(self, count: int) -> Array:
        return arrays.like(self.generator.standard_normal((self.n, self.n_y, count)), self.smoother.places)

    def _given_shared(self, X: Array, kinds: list[int | None], left: Array) -> Array:
        """t = T^-1 C(shared, x), as rows (m, h)."""
        if not len(self.root):
            return left[:, :0]
        covariance = self._covariance(X, kinds, self.shared, self.shared_kinds) - left @ self.right.T
        solved = solve_triangular(self.root, arrays.as_numpy(covariance).T, lower=True).T
        return arrays.like(solved, left)

    def values(self, X: Array, cross: Array) -> Array:
        """r at X (m, d), or of function i at X[i] for X (n, m, d); (n, n_y, m). Overwrites the rows k(x), (., U)."""
        flat = arrays.contiguous(arrays.namespace(X).reshape(X, (-1, X.shape[-1])))
        prior = self.smoother.kernel.diag(flat)
        return self._drawn(X, [None] * X.shape[-2], cross, self.smoother.trend(flat), prior)

    def gradient(self, X: Array) -> Array:
        """Gradient of r at X (m, d), or (n, m, d) for points of their own; (n, n_y, m, d)."""
        xp, (m, d) = arrays.namespace(X), X.shape[-2:]
        flat = arrays.contiguous(xp.reshape(X, (-1, d)))
        kinds = [k for k in range(d) for _ in range(m)]

        def together(parts: list[Array]) -> Array:
            """Rows of all derivatives, (N d m, ...) with N the number of functions, or 1."""
            n, width = flat.shape[0] // m, parts[0].shape[1:]
            stacked = xp.stack([xp.reshape(part, (n, m, *width)) for part in parts], axis=1)
            return arrays.contiguous(xp.reshape(stacked, (n * d * m, *width)))

        slopes = [_slopes(self.smoother, flat, k) for k in range(d)]
        cross, basis = (together([part[i] for part in slopes]) for i in range(2))
        prior = together([paired(self.smoother.kernel, flat, flat, k, k) for k in range(d)])
        at = xp.concat([X] * d, axis=-2)
        r = self._drawn(at, list(kinds), cross, basis, prior)
        return swapped(xp.reshape(r, (self.n, self.n_y, d, m)))

    def _drawn(self, X: Array, kinds: list[int | None], cross: Array, basis: Array, prior: Array) -> Array:
        """r or its derivatives at X (m, d) or (n, m, d), with the rows that `_factors` needs; (n, n_y, m)."""
        if X.ndim == 3:
            return self._own_points(X, kinds, cross, basis, prior)
        xp = arrays.namespace(X)
        if self.visited:

            def every(rows: Array) -> Array:
                return arrays.copy(xp.concat([rows] * self.n))

            points = xp.reshape(every(X), (self.n, *X.shape))
            return self._own_points(points, kinds, every(cross), every(basis), every(prior))
        left, right, variance = self._factors(cross, basis, prior)
        self.right = right[:0] if self.right is None else self.right
        t = self._given_shared(X, kinds, left)
        rest = self._covariance(X, kinds, X, kinds) - left @ right.T - t @ t.T
        rest = arrays.as_numpy(rest).astype(np.float64)
        rest.flat[:: len(rest) + 1] = arrays.as_numpy(variance - arrays.row_dots(t, t))
        rest = (rest + rest.T) / 2
        # in units in which all variances of the prior are 1, for derivatives have others than values
        units = np.sqrt(np.maximum(arrays.as_numpy(prior).astype(np.float64), np.finfo(float).tiny))
        factor, order, rank, _ = dpstrf(rest / np.outer(units, units), lower=1, tol=self.tolerance)
        if not np.max(rest.diagonal() / units**2) > self.tolerance:
            rank = 0  # dpstrf takes one pivot at least
        order = order - 1
        rows = np.zeros((len(rest), rank))
        rows[order] = np.tril(factor)[:, :rank]
        rows *= units[:, None]
        new = self._normal(rank)
        values = self.draws @ t.T + new @ arrays.like(rows, new).T
        kept = order[:rank]
        lower = [arrays.as_numpy(arrays.take(t, kept)).astype(np.float64), rows[kept]]
        above = np.zeros((len(self.root), rank))
        self.root = np.block([[self.root, above], lower])
        self.shared = xp.concat([self.shared, arrays.take(X, kept)])
        self.shared_kinds += [kinds[i] for i in kept]
        self.right = xp.concat([self.right, arrays.take(right, kept)])
        self.draws = xp.concat([self.draws, new], axis=2)
        return values

    def _own_points(
        self, X: Array, kinds: list[int | None], cross: Array, basis: Array, prior: Array
    ) -> Array:
        """r of function i or its derivatives at X[i], X (n, m, d), with the rows that `_factors` needs; (n, n_y, m)."""
        n, m, d = X.shape
        xp, h = arrays.namespace(X), self.visited
        flat = arrays.contiguous(xp.reshape(X, (n * m, d)))
        left, right, variance = self._factors(cross, basis, prior)
        t = self._given_shared(flat, kinds * n, left)
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
        covariance = self._covariance(X, kinds, self._own.points[:, :h], self.kinds)
        covariance -= left @ swapped(self._own.right[:, :h])
        among = self._covariance(X, kinds, X, kinds) - left @ swapped(right)
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
        self.visited, self.kinds = h + m, self.kinds + kinds
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


def _runs(kinds: list[int | None]) -> list[tuple[int | None, slice]]:
    """Successive points of the same kind."""
    found, start = [], 0
    for kind, run in groupby(kinds):
        stop = start + len(list(run))
        found.append((kind, slice(start, stop)))
        start = stop
    return found


def swapped(x: Array) -> Array:
    """x with its last two axes exchanged."""
    return arrays.namespace(x).moveaxis(x, -1, -2)
