"""An interior-point method for the pinball loss, for many right-hand sides at once.

The problems are quantile regressions with a ridge in few coordinates (Portnoy and Koenker 1997, with Mehrotra's
corrector). An iterate near the solution tells which residuals are 0; the solution then follows from linear equations, so
that the optimality conditions hold up to rounding errors. For most problems such an iterate is found in single precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray

__all__ = ["FEW", "Problems", "quantile_regressions", "weighted_grams"]

BLOCK, ENTRIES = 256, 2**22
"""Problems that are solved together: their residuals should fit into the cache; and at most, entries of their Hessians."""
FEW, MANY = 64, 8
"""Number of coordinates up to which, and of problems from which on, all Hessians come from one product of matrices."""
ITERATIONS = 40
NEAR = 1e-6
"""Complementarity, relative to the residuals, from which on the zero residuals are guessed."""
PRECISIONS: tuple[tuple[Any, float], ...] = ((np.float32, 1e-9), (np.float64, 1e-13))
"""Types of numbers that are tried in turn, and complementarity at which to give up."""
SHORTER = 0.9995
"""Fraction of the way to the boundary that a step may go."""


class Problems(NamedTuple):
    """Minimize sum_i rho(y_i - phi_i'w) + w' diag(ridge) w / 2 for the columns of y, where rho' is a step at 0.

    Attributes
    ----------
    low, high : float
        Values of rho' below and above 0.
    phi : ndarray of shape (n, r)
    ridge : ndarray of shape (r,)
    y : ndarray of shape (n, b)
    used : ndarray of shape (n, b) or (1, b)
        1 for the samples that a problem uses, 0 for others.
    """

    low: float
    high: float
    phi: FloatArray
    ridge: FloatArray
    y: FloatArray
    used: FloatArray

    def take(self, columns: Any) -> Problems:
        """Some of the problems."""
        return self._replace(y=self.y[:, columns], used=self.used[:, columns])

    def astype(self, dtype: Any) -> Problems:
        """The same problems with other numbers."""
        return Problems(self.low, self.high, *(array.astype(dtype) for array in self[2:]))


def weighted_grams(phi: FloatArray, weight: FloatArray) -> FloatArray:
    """phi' diag(weight_k) phi for the columns of ``weight``, (n, b), as (b, r, r)."""
    n, r = phi.shape
    if r <= FEW and weight.shape[1] >= MANY:
        products = (phi[:, :, None] * phi[:, None, :]).reshape(n, r * r)
        return np.asarray((weight.T @ products).reshape(-1, r, r))
    return np.stack([(phi.T * column) @ phi for column in weight.T])


def quantile_regressions(problems: Problems, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solutions w, (r, b), and dual variables rho'(y - phi'w), (n, b), with weights to start from, (r, b)."""
    w, u, exact = start.copy(), np.zeros_like(problems.y), np.zeros(start.shape[1], dtype=bool)
    block = max(1, min(BLOCK, ENTRIES // len(start) ** 2))
    for dtype, last in PRECISIONS:
        left = np.flatnonzero(~exact)
        for first in range(0, len(left), block):
            open_ = left[first : first + block]
            path = _Path(problems.take(open_).astype(dtype), start[:, open_].astype(dtype))
            for _ in range(ITERATIONS):
                near = path.gap <= NEAR * path.size
                going = path.gap > NEAR * path.size  # neither where a number is not finite
                if near.any():
                    at = open_[near]
                    w[:, at], u[:, at], exact[at] = path.solution(near, problems.take(at))
                    going[near] = ~exact[at] & (path.gap[near] > last * path.size[near])
                if not going.all():
                    open_ = open_[going]
                    path.keep(going)
                if not len(open_):
                    break
                try:
                    with np.errstate(all="ignore"):
                        path.step()
                except np.linalg.LinAlgError:  # rounding errors: the points are as near as they get
                    break
            fine = np.isfinite(path.gap)
            w[:, open_[fine]], u[:, open_[fine]] = path.w[:, fine], path.u[:, fine]
    return w, u


class _Path:
    """Points near the central path of b problems.

    Residuals are p - m with p, m > 0, and belong to t = high - u > 0 and s = u - low > 0: p t and m s fall to 0. At the
    start they are all equal. ``gap`` is their mean for each problem, ``dual`` the gradient phi'u - ridge w.
    """

    def __init__(self, problems: Problems, w: FloatArray) -> None:
        low, high, phi, ridge, y, _ = problems
        self.problems, self.w = problems, w
        self.residual = y - phi @ w
        self.size = np.mean(np.abs(self.residual), axis=0)
        self.size[self.size == 0] = 1.0
        center = self.size / 8
        both = 2 * center + np.sqrt(4 * center**2 + self.residual**2)
        self.p, self.m = (both + self.residual) / 2, (both - self.residual) / 2
        self.s = (high - low) * self.p / both
        self.t = high - low - self.s
        self.gap = (high - low) * center
        self.dual = phi.T @ self.u - ridge[:, None] * w

    @property
    def u(self) -> FloatArray:
        """Dual variables, 0 for samples that are not used, (n, b)."""
        return np.asarray(self.problems.used * (self.s + self.problems.low))

    def keep(self, columns: NDArray[np.bool_]) -> None:
        """Go on with some of the problems."""
        self.problems = self.problems.take(columns)
        for name in ("w", "residual", "p", "m", "s", "t", "dual", "gap", "size"):
            setattr(self, name, getattr(self, name)[..., columns])

    def step(self) -> None:
        """One step with a predictor, which aims at complementarity 0, and a corrector."""
        _, _, phi, ridge, _, used = self.problems
        p, m, s, t = self.p, self.m, self.s, self.t
        n = len(p)
        over_t, over_s = 1 / t, 1 / s
        slope_p, slope_m = p * over_t, m * over_s
        weight = used / (slope_p + slope_m)
        hessian = weighted_grams(phi, weight) + np.diag(ridge)

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

    def solution(
        self, columns: NDArray[np.bool_], problems: Problems
    ) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Solutions w and u with the zero residuals and signs of the current points, and whether they solve the problems.

        Where they do not, w and u of the current points. ``problems`` are those of the columns in double precision.
        """
        low, high, phi, ridge, y, used = problems
        r = len(ridge)
        w, u, s, residual = (a[:, columns] for a in (self.w, self.u, self.s, self.residual))
        depth = np.minimum(s, high - low - s) / (high - low) * self.size[columns] - np.abs(residual)
        depth = np.where(used > 0, depth, -1.0)
        zero = np.argpartition(-depth, min(r, len(y) - 1), axis=0)[:r]  # no more than there are coordinates
        is_zero = np.take_along_axis(depth, zero, axis=0) > 0
        bound = used * np.where(residual > 0, high, low)
        np.put_along_axis(
            bound, zero, np.where(is_zero, 0.0, np.take_along_axis(bound, zero, axis=0)), axis=0
        )
        # ridge w - phi_0'u_0 = phi'bound and phi_0 w = y_0; what is left of the square is the identity
        k, at = len(zero), np.arange(r)
        matrix = np.zeros((y.shape[1], r + k, r + k))
        matrix[:, at, at] = ridge
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
