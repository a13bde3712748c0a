"""Rotated contours, for characteristic functions that decay slowly but continue into a sector.

On t = r e^{-i theta sign(x)} the factor e^{-itx} decays, however slowly phi does. Nodes r = r0 exp(u - e^{-u}) with
equal steps in u serve every x at once: logarithmic for large r, double exponential toward 0.
"""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray
from .ray import RaySum, Values, by_key
from .rows import Rows
from .terms import COARSE

__all__ = ["Contour", "growth_on_ray"]

FIRST, LAST = -3.6, 70.0
"""Range of u: r from 1e-18 to 2e30, in standard deviations."""
FARTHEST = 1e15
"""Standard deviations beyond which the mass of a law is negligible (Chebyshev: 1e-30)."""


def growth_on_ray(rows: Rows, theta: float) -> FloatArray:
    """Largest log|phi| on the rays to both sides, shape (rows,): the digits that cancel there."""
    # a normal part takes over at 1/tau; a bounded term does far beyond the inverse of its width, and grows
    widths = [np.sqrt(rows.normal_var)] + [
        np.abs(terms.weights) * terms.noise.std() / 30
        for terms in rows.terms
        if np.all(np.isfinite(terms.noise.support()))
    ]
    tau = min(float(np.min(width, initial=1.0, where=width > 0)) for width in widths)
    r = np.exp(np.arange(-3.0, max(12.0, float(np.log(30 / tau))), 0.5))
    growth = np.zeros(len(rows))
    for sign in _sides(rows):
        growth = np.fmax(growth, np.nanmax(rows.logcf_on_ray(r, sign * theta, COARSE).real, axis=1))
    return growth


def _sides(rows: Rows) -> list[float]:
    lower, upper = rows.support
    return [sign for sign, inside in ((1.0, upper > 0), (-1.0, lower < 0)) if np.any(inside)]


class Contour:
    """Inversion on rays that turn with the sign of x.

    Nodes end a little beyond ``decay``, the frequency beyond which phi is practically 0.
    """

    relative = False

    def __init__(self, rows: Rows, theta: float, decay: float) -> None:
        self.rows, self.theta = rows, theta
        self.last = min(LAST, float(np.log(decay)) + 1.0)
        self._rays: dict[tuple[int, int], RaySum] = {}

    def _ray(self, sign: int, decade: int) -> RaySum:
        key = (sign, decade)
        if key not in self._rays:
            shift = -np.log(10.0) * decade
            # an error near 1e-15: the integrand is analytic in a strip of width theta
            h = min(0.08, 0.16 * self.theta)
            u = np.arange(FIRST, self.last - shift + h, h)
            r = np.exp(u - np.exp(-u) + shift)
            self._rays[key] = RaySum(self.rows, r, h * r * (1 + np.exp(-u)), sign * self.theta)
        return self._rays[key]

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        x = np.clip(x, -FARTHEST, FARTHEST)
        # Far out the integrand is concentrated near r = 1/|x|: there the nodes start lower.
        decade = np.maximum(0, np.ceil(np.log10(np.maximum(np.abs(x), 1.0)) - 1.3)).astype(int)
        # one key for both: the decade from 1 on, with the sign of x
        keys = np.where(x < 0, -1, 1) * (decade + 1)
        return by_key(
            keys, x, index, lambda key, *points: self._ray(1 if key > 0 else -1, abs(key) - 1)(*points)
        )
