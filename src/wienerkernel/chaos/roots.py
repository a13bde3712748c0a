"""Roots of monotone functions, many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray

__all__ = ["increasing_root", "inverse"]


def increasing_root(
    func: Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]],
    lo: FloatArray,
    hi: FloatArray,
    active: NDArray[np.bool_],
) -> FloatArray:
    """Roots of an increasing function by Newton's method, kept in brackets by bisection.

    ``func`` gives value, slope and the rounding error of the value, at which the iteration ends.
    """
    x = lo + (hi - lo) / 2
    for step in range(200):
        value, slope, noise = func(x)
        hi, lo = np.where(active & (value >= 0), x, hi), np.where(active & (value <= 0), x, lo)
        with np.errstate(all="ignore"):
            newton = x - value / slope
            usable = (lo <= newton) & (newton <= hi) & (step % 8 < 7)
            target = np.where(usable, newton, lo + (hi - lo) / 2)
            open_ = ~(np.abs(value) <= noise + 4e-16 * np.abs(x) * slope) & (hi - lo > 4e-16 * np.abs(x))
        active = active & open_
        x = np.where(active, target, x)
        if not active.any():
            break
    return x


def inverse(q: FloatArray, u: FloatArray, near: FloatArray, far: FloatArray) -> FloatArray:
    """delta between near and far with q(delta) = u, by bisection and Newton's method; q is monotone there."""
    slope = np.polynomial.polynomial.polyder(q)
    up = np.polynomial.polynomial.polyval(far, q) > np.polynomial.polynomial.polyval(near, q)
    lo, hi = np.broadcast_to(near, u.shape), np.broadcast_to(far, u.shape)
    delta = (lo + hi) / 2
    for step in range(60):
        value = np.polynomial.polynomial.polyval(delta, q) - u
        beyond = (value > 0) == up
        lo, hi = np.where(beyond, lo, delta), np.where(beyond, delta, hi)
        with np.errstate(all="ignore"):
            newton = delta - value / np.polynomial.polynomial.polyval(delta, slope)
        inside = (np.minimum(lo, hi) <= newton) & (newton <= np.maximum(lo, hi)) & (step % 6 < 5)
        moved = np.where(inside, newton, (lo + hi) / 2)
        settled = np.abs(moved - delta) <= 1e-15 * np.abs(delta)
        delta = moved
        if settled.all():
            break
    return delta
