"""Minimize sum_i rho(y_i - phi_i'w) + (lam / 2) w'Dw for many right-hand sides y at once.

Pinball losses are minimized by an interior-point method. For other losses, and where that does not reach the solution,
the method of multipliers smooths steps of psi = rho', and Newton steps in the few coordinates w solve the smooth problems
(a semismooth Newton augmented Lagrangian method, Li, Sun and Toh 2018). The multipliers u = psi(y - phi'w) are the dual
variables, so that the optimality conditions can be checked without tolerance for the smoothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray
from .convex import Curve
from .interior import FEW, Problems, quantile_regressions, weighted_grams

__all__ = ["Solution", "loss_of_residuals", "minimize_loss"]

OPTIMAL = 1e-10
OUTER, INNER = 60, 60
NARROW = 1e-3
RANK, ROUNDED = 1e-14, 1e-13
"""Singular values of a trend, and what a trend leaves of y, relative to the whole, that may be rounding errors."""


@dataclass(frozen=True)
class Solution:
    """Minimizers of b problems.

    Attributes
    ----------
    w : ndarray of shape (r, b)
    u : ndarray of shape (n, b)
        Dual variables psi(y - phi'w).
    kkt : ndarray of shape (b,)
        Violation of the optimality conditions: distance of residuals from the curve of psi, relative to the size of y, and
        of the gradient from 0, relative to that of its terms.
    """

    w: FloatArray
    u: FloatArray
    kkt: FloatArray


class _Smooth:
    """psi with steps smoothed: the polyline through (r + gamma u, u), its slope and its integral."""

    def __init__(self, curve: Curve, gamma: float) -> None:
        self.v, self.u = curve.r + gamma * curve.u, curve.u
        width, rise = np.diff(self.v), np.diff(self.u)
        self.slope = np.concatenate([[0.0], np.divide(rise, width, where=width > 0, out=0 * rise), [0.0]])
        areas = width * (self.u[1:] + self.u[:-1]) / 2
        self.area = np.concatenate([[0.0], np.cumsum(areas)])

    def all(self, v: FloatArray, used: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Integral, value and slope, each 0 where a sample is not used."""
        piece = np.searchsorted(self.v, v)
        left = np.maximum(piece - 1, 0)
        slope, away = self.slope[piece], v - self.v[left]
        value = self.u[left] + slope * away
        return used * (self.area[left] + away * (self.u[left] + value) / 2), used * value, used * slope


def loss_of_residuals(curve: Curve, residuals: FloatArray) -> FloatArray:
    """rho, with rho(0) = 0."""
    values = _Smooth(curve, 0.0).all(np.append(residuals, 0.0), np.ones(1))[0]
    return np.asarray(values[:-1] - values[-1])


def minimize_loss(
    phi: FloatArray,
    precision: FloatArray,
    y: FloatArray,
    curve: Curve,
    lam: float,
    used: FloatArray | None = None,
) -> Solution:
    """Solve the problems of all columns of y, (n, b).

    Parameters
    ----------
    phi : ndarray of shape (n, r)
    precision : ndarray of shape (r,)
        The diagonal of D.
    y : ndarray of shape (n, b)
    curve : Curve
    lam : float
    used : ndarray of shape (n, b), optional
        1 for the samples that a problem uses, 0 for others; by default all.

    Returns
    -------
    Solution
    """
    # in units of y and phi; a trend has no ridge, so that its columns can be any basis, and y what it leaves
    free = precision == 0
    size = np.sqrt(np.sum(phi[:, ~free] ** 2, axis=0).max(initial=0.0)) or 1.0
    basis, values, vectors = np.linalg.svd(phi[:, free], full_matrices=False)
    kept = values > RANK * values.max(initial=0.0)
    basis, inverse = basis[:, kept], vectors[kept].T / values[kept]
    explained = basis.T @ y
    rest = y - basis @ explained
    rest[:, np.abs(rest).max(axis=0) < ROUNDED * np.abs(y).max(axis=0)] = 0.0
    unit = float(np.median(np.abs(rest).max(axis=0))) or 1.0
    columns = np.hstack([phi[:, ~free] / size, basis])
    ridge = np.append(lam * precision[~free] * unit / size**2, np.zeros(basis.shape[1]))
    found = _minimize(columns, ridge, rest / unit, Curve(curve.r / unit, curve.u), used)
    w = np.empty((phi.shape[1], y.shape[1]))
    w[~free] = found.w[: np.sum(~free)] * (unit / size)
    w[free] = inverse @ (unit * found.w[np.sum(~free) :] + explained)
    return Solution(w, found.u, found.kkt)


def _minimize(
    phi: FloatArray, ridge: FloatArray, y: FloatArray, curve: Curve, used: FloatArray | None
) -> Solution:
    """Solve problems in which the columns of phi are of similar size."""
    n, b = y.shape
    used = np.ones((1, b)) if used is None else used
    size = np.max(np.abs(y), axis=0)
    size[size == 0] = 1.0
    # a curve that is much narrower than the residuals is nearly a step
    steps = bool(np.any(np.diff(curve.r) == 0) or np.ptp(curve.r) < NARROW * np.mean(size))
    # begin with a squared loss of about the same slope
    start = np.ptp(curve.u) / (np.mean(size) if steps else np.ptp(curve.r))
    # the second term is for y so small that rounding errors of phi'phi exceed the ridge
    held = ridge / start + 1e-10 * np.sum(phi**2)
    w: FloatArray = np.linalg.solve(phi.T @ phi + np.diag(held), phi.T @ y)
    u: FloatArray = np.zeros((n, b))
    kkt: FloatArray = np.full(b, np.inf)
    open_ = np.arange(b)
    if curve.is_step:
        problems = Problems(float(curve.u[0]), float(curve.u[1]), phi, ridge, y - curve.r[0], used)
        w, u = quantile_regressions(problems, w)
        kkt = _violation(problems, w, u, size)
        open_ = open_[kkt > OPTIMAL]
        if not len(open_):
            return Solution(w, u, kkt)
        u[:, open_] = 0.0
    typical = float(np.median(np.std(y - phi @ w, axis=0))) or float(size.min())
    gamma = first = 0.1 * typical / float(np.ptp(curve.u)) if steps else 0.0
    for _ in range(OUTER):
        smooth = _Smooth(curve, gamma)
        shifted = y[:, open_] + gamma * u[:, open_]
        w[:, open_] = _newton(phi, ridge, shifted, smooth, w[:, open_], size[open_], used[:, open_])
        _, new, slope = smooth.all(shifted - phi @ w[:, open_], used[:, open_])
        gradient = np.abs(phi.T @ new - ridge[:, None] * w[:, open_]).max(axis=0)
        scale = _gradient_scale(phi, new, slope, size[open_])
        primal = gamma * np.abs(new - u[:, open_]).max(axis=0) / size[open_]
        u[:, open_], kkt[open_] = new, np.maximum(primal, gradient / scale)
        open_ = open_[kkt[open_] > OPTIMAL]
        if not len(open_) or not steps:
            break
        gamma = max(0.3 * gamma, 1e-6 * first)
    return Solution(w, u, kkt)


def _violation(problems: Problems, w: FloatArray, u: FloatArray, size: FloatArray) -> FloatArray:
    """Violation of the optimality conditions for a single step at 0, (b,)."""
    low, high, phi, ridge, y, used = problems
    residual = used * (y - phi @ w)
    wrong = np.maximum(np.where(u < high, residual, 0.0), np.where(u > low, -residual, 0.0))
    gradient = np.abs(phi.T @ u - ridge[:, None] * w).max(axis=0)
    scale = (np.abs(phi).T @ np.abs(u)).max(axis=0) + 1e-300
    return np.asarray(np.maximum(wrong.max(axis=0) / size, gradient / scale))


def _newton(
    phi: FloatArray,
    ridge: FloatArray,
    y: FloatArray,
    smooth: _Smooth,
    w: FloatArray,
    size: FloatArray,
    used: FloatArray,
) -> FloatArray:
    """Damped Newton steps for smooth problems, (r, b)."""
    w = w.copy()
    open_ = np.arange(w.shape[1])
    # where no residual is on a slope, only this term determines the trend; the Hessian is never singular in double precision
    terms = np.sum(phi**2, axis=0) * smooth.slope.max()
    held = np.maximum(np.where(ridge == 0, 1e-9 * terms, ridge), 1e-15 * terms.max())
    area, value, slope = smooth.all(y - phi @ w, used)
    objective = area.sum(axis=0) + 0.5 * ridge @ w**2
    for _ in range(INNER):
        gradient = ridge[:, None] * w[:, open_] - phi.T @ value
        going = np.abs(gradient).max(axis=0) > 1e-13 * _gradient_scale(phi, value, slope, size[open_])
        if not going.any():
            break
        open_, gradient, slope = open_[going], gradient[:, going], slope[:, going]
        step = _solve(phi, held, slope, gradient)
        along = np.einsum("ij,ij->j", gradient, step)
        base, length = objective[open_], np.ones(len(open_))
        current, residual, jump = w[:, open_], y[:, open_] - phi @ w[:, open_], phi @ step
        for _ in range(60):
            area, value, slope = smooth.all(residual + length * jump, used[:, open_])
            trial = area.sum(axis=0) + 0.5 * ridge @ (current - length * step) ** 2
            bad = trial > base - 1e-4 * length * along + 1e-14 * np.abs(base)
            if not bad.any():
                break
            length[bad] /= 2
        w[:, open_], objective[open_] = current - length * step, np.minimum(trial, base)
        stuck = length * np.abs(jump).max(axis=0) < 1e-15 * size[open_]
        open_, value, slope = open_[~stuck], value[:, ~stuck], slope[:, ~stuck]
        if not len(open_):
            break
    return w


def _gradient_scale(phi: FloatArray, u: FloatArray, slope: FloatArray, size: FloatArray) -> FloatArray:
    """Size of the terms of the gradient, (b,), counting what rounding errors of y make of u."""
    return np.asarray((np.abs(phi).T @ (np.abs(u) + 1e-5 * size * slope)).max(axis=0) + 1e-300)


def _solve(phi: FloatArray, ridge: FloatArray, slope: FloatArray, gradient: FloatArray) -> FloatArray:
    """(Phi' diag(slope) Phi + diag(ridge))^-1 gradient for each column, (r, b)."""
    r, b = gradient.shape
    if r <= FEW:
        hessian = weighted_grams(phi, slope) + np.diag(ridge)
        return np.asarray(np.linalg.solve(hessian, gradient.T[..., None])[..., 0].T)
    columns = []
    for k in range(b):
        active = slope[:, k] > 0
        part = phi[active] * np.sqrt(slope[active, k])[:, None]
        columns.append(np.linalg.solve(part.T @ part + np.diag(ridge), gradient[:, k]))
    return np.stack(columns, axis=1)
