"""An interior-point method for the pinball loss, for many right-hand sides at once.

The problems are quantile regressions with a ridge in few coordinates (Portnoy and Koenker 1997, with Mehrotra's
corrector). An iterate near the solution tells which residuals are 0; the solution then follows from linear equations, so
that the optimality conditions hold up to rounding errors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray

__all__ = ["quantile_regressions"]

BLOCK = 256
"""Problems that are solved together: their residuals should fit into the cache."""
ITERATIONS = 40
NEAR, LAST = 1e-6, 1e-13
"""Complementarity, relative to the residuals, from which on the zero residuals are guessed, and at which to give up."""
SHORTER = 0.9995
"""Fraction of the way to the boundary that a step may go."""


def quantile_regressions(
    phi: FloatArray, ridge: FloatArray, y: FloatArray, bounds: tuple[float, float], w: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Minimize sum_i rho(y_i - phi_i'w) + w' diag(ridge) w / 2 for the columns of y, where rho' is a step at 0.

    Parameters
    ----------
    phi : ndarray of shape (n, r)
    ridge : ndarray of shape (r,)
    y : ndarray of shape (n, b)
    bounds : tuple of float
        Values of rho' below and above 0.
    w : ndarray of shape (r, b)
        Where to start.

    Returns
    -------
    w : ndarray of shape (r, b)
    u : ndarray of shape (n, b)
        Dual variables rho'(y - phi'w), between the bounds where a residual is 0.
    """
    rows, columns = np.tril_indices(phi.shape[1])
    products = phi[:, rows] * phi[:, columns]
    w, u = w.copy(), np.empty_like(y)
    for first in range(0, y.shape[1], BLOCK):
        part = slice(first, first + BLOCK)
        path = _Path(phi, products, ridge, y[:, part], bounds, w[:, part])
        open_ = np.arange(first, first + path.y.shape[1])
        for _ in range(ITERATIONS):
            near = path.gap <= NEAR * path.size
            if near.any():
                w[:, open_[near]], u[:, open_[near]], exact = path.solution(near)
                going = ~near
                going[near] = ~exact & (path.gap[near] > LAST * path.size[near])
                open_ = open_[going]
                path.keep(going)
                if not len(open_):
                    break
            try:
                path.step()
            except np.linalg.LinAlgError:  # rounding errors: the points are as near as they get
                break
        w[:, open_], u[:, open_] = path.w, path.s + bounds[0]
    return w, u


class _Path:
    """Points near the central path of b problems.

    Residuals are p - m with p, m > 0, and belong to t = high - u > 0 and s = u - low > 0: p t and m s fall to 0. At the
    start they are all equal. ``gap`` is their mean for each problem, ``dual`` the gradient phi'u - ridge w.
    """

    def __init__(
        self,
        phi: FloatArray,
        products: FloatArray,
        ridge: FloatArray,
        y: FloatArray,
        bounds: tuple[float, float],
        w: FloatArray,
    ) -> None:
        self.phi, self.products, self.ridge, self.bounds = phi, products, ridge, bounds
        self.y, self.w = y, w
        width = bounds[1] - bounds[0]
        self.residual = y - phi @ w
        self.size = np.mean(np.abs(self.residual), axis=0)
        self.size[self.size == 0] = 1.0
        center = 0.5 * self.size
        both = 2 * center + np.sqrt(4 * center**2 + self.residual**2)
        self.p, self.m = (both + self.residual) / 2, (both - self.residual) / 2
        self.s = width * self.p / both
        self.t = width - self.s
        self.gap = width * center
        self.dual = phi.T @ (self.s + bounds[0]) - ridge[:, None] * w

    def keep(self, columns: NDArray[np.bool_]) -> None:
        """Go on with some of the problems."""
        for name in ("y", "w", "residual", "p", "m", "s", "t", "dual"):
            setattr(self, name, getattr(self, name)[:, columns])
        self.gap, self.size = self.gap[columns], self.size[columns]

    def step(self) -> None:
        """One step with a predictor, which aims at complementarity 0, and a corrector."""
        phi, p, m, s, t = self.phi, self.p, self.m, self.s, self.t
        (n, b), r = p.shape, len(self.ridge)
        over_t, over_s = 1 / t, 1 / s
        slope_p, slope_m = p * over_t, m * over_s
        weight = 1 / (slope_p + slope_m)
        hessian, (rows, columns) = np.empty((b, r, r)), np.tril_indices(r)
        hessian[:, rows, columns] = hessian[:, columns, rows] = weight.T @ self.products
        hessian[:, np.arange(r), np.arange(r)] += self.ridge

        def direction(g: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            """Changes of w, phi w and u for residuals g of y - phi'w = p - m after p and m are eliminated."""
            dw = np.linalg.solve(hessian, (self.dual + phi.T @ (weight * g)).T[..., None])[..., 0].T
            moved = phi @ dw
            return dw, moved, weight * (g - moved)

        _, moved, du = direction(self.residual)
        up, down = du * over_t, du * over_s
        # dp / p = up - 1, dm / m = -down - 1 and dp - dm = -moved
        length = _shortest(1 - up.min(axis=0), 1 + down.max(axis=0), up.max(axis=0), -down.min(axis=0))
        ahead = (1 - length) * self.gap + length**2 * np.einsum("ij,ij->j", du, moved) / (2 * n)
        mu = (ahead / self.gap) ** 3 * self.gap
        up *= (up - 1) * p
        down *= (down + 1) * m
        up += mu * over_t
        down += mu * over_s
        dw, moved, du = direction(self.residual - up + down)
        dp, dm = slope_p * du, slope_m * du
        dp += up - p
        dm = down - m - dm
        length = _shortest(
            -(dp / p).min(axis=0),
            -(dm / m).min(axis=0),
            (du * over_t).max(axis=0),
            -(du * over_s).min(axis=0),
        )
        self.w = self.w + length * dw
        self.residual = self.residual - length * moved
        self.dual = (1 - length) * self.dual
        for change in (dp, dm, du):
            change *= length
        self.p, self.m, self.s, self.t = p + dp, m + dm, s + du, t - du
        pairs = np.einsum("ij,ij->j", self.p, self.t) + np.einsum("ij,ij->j", self.m, self.s)
        self.gap = pairs / (2 * n)

    def solution(self, columns: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Solutions with the zero residuals and signs of the current points, and whether they are those of the problems."""
        (low, high), phi, r = self.bounds, self.phi, len(self.ridge)
        y, w, u, residual = (a[:, columns] for a in (self.y, self.w, self.s + low, self.residual))
        inside = np.minimum(u - low, high - u) / (high - low)
        depth = inside * self.size[columns] - np.abs(residual)
        zero = np.argpartition(-depth, min(r, len(y) - 1), axis=0)[:r]  # no more than there are coordinates
        is_zero = np.take_along_axis(depth, zero, axis=0) > 0
        bound = np.where(residual > 0, high, low)
        np.put_along_axis(
            bound, zero, np.where(is_zero, 0.0, np.take_along_axis(bound, zero, axis=0)), axis=0
        )
        # ridge w - phi_0'u_0 = phi'bound and phi_0 w = y_0; what is left of the square is the identity
        k, at = len(zero), np.arange(r)
        matrix = np.zeros((y.shape[1], r + k, r + k))
        matrix[:, at, at] = self.ridge
        rows = np.where(is_zero[..., None], phi[zero], 0.0)
        matrix[:, :r, r:], matrix[:, r:, :r] = -rows.transpose(1, 2, 0), rows.transpose(1, 0, 2)
        free = np.arange(r, r + k)
        matrix[:, free, free] = ~is_zero.T
        right = np.concatenate([phi.T @ bound, np.where(is_zero, np.take_along_axis(y, zero, axis=0), 0.0)])
        try:
            found = np.linalg.solve(matrix, right.T[..., None])[..., 0].T
        except np.linalg.LinAlgError:  # the same sample twice
            return w, u, np.zeros(y.shape[1], dtype=bool)
        inner = np.where(is_zero, found[r:], 0.0)
        exact_u = bound.copy()
        np.put_along_axis(
            exact_u, zero, np.where(is_zero, inner, np.take_along_axis(bound, zero, axis=0)), axis=0
        )
        signs = (y - phi @ found[:r]) * bound >= -1e-12 * np.max(np.abs(y), axis=0)
        exact = np.all(signs, axis=0) & np.all((inner >= low) & (inner <= high), axis=0)
        return np.where(exact, found[:r], w), np.where(exact, exact_u, u), exact


def _shortest(*rates: FloatArray) -> FloatArray:
    """The longest step, at most 1, with which no variable falls to 0 at its rate, (b,)."""
    return np.asarray(SHORTER / np.maximum(np.max(rates, axis=0), SHORTER))
