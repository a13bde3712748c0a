"""Quantiles of standardized rows: Newton's method on the logarithm of the tail, inside a bracket."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray, IntArray
from .ray import Values

__all__ = ["solve", "wilson_hilferty"]

ITERATIONS = 200
"""Steps at most: bisection alone takes some 60 to 1e-16, and one step in two may be Newton's that gains nothing."""
SYMMETRIC = 1e-6
"""Skewness below which the formula would cancel."""
RESOLUTION = 4e-16
"""Relative distance of points that are the same."""
CLOSE = 1e-3
"""Relative distance from p at which Newton's steps are trusted, and the largest error of p at an accepted level."""
GAIN = 0.25
"""Factor by which a step has to bring the level closer to p; else the bracket grows or is halved."""


def wilson_hilferty(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """Approximate quantiles of a shifted gamma law of mean 0, variance 1 and this skewness, from normal quantiles z."""
    g = np.where(np.abs(skewness) < SYMMETRIC, SYMMETRIC, skewness)
    return np.asarray(2 / g * (np.maximum(1 + g * z / 6 - g * g / 36, 0.0) ** 3 - 1))


def solve(
    values: Callable[[FloatArray, IntArray], Values],
    p: FloatArray,
    upper: NDArray[np.bool_],
    start: FloatArray,
    support: tuple[FloatArray, FloatArray],
    mean: FloatArray,
    atomic: NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray]:
    """Points x with F(x) = p, or sf(x) = p where ``upper``, and the error of the probability there, shape (rows, k).
    ``values`` takes (n, k) points and (n,) rows; p > 0, ``upper`` and ``start`` have the shape (rows, k), the others
    (rows, 1). The variance is 1, so that Cantelli's inequality encloses the quantiles, whatever ``values`` says. The
    probability of ``atomic`` laws jumps.
    """
    end = np.where(upper, support[1], support[0])
    other = np.broadcast_to(np.where(upper, support[0], support[1]), p.shape)
    sign = np.where(upper, -1.0, 1.0)
    log_scale = np.isfinite(end)
    # xi grows into the law: log of the distance from the end of the support, or the distance from 0
    anchor = np.where(log_scale, end, 0.0)

    def to_x(xi: FloatArray) -> FloatArray:
        distance = np.where(log_scale, np.exp(np.minimum(np.where(log_scale, xi, 0.0), 700.0)), xi)
        return np.asarray(anchor + sign * distance)

    def to_xi(x: FloatArray) -> FloatArray:
        distance = sign * (x - anchor)
        return np.where(log_scale, np.log(np.maximum(distance, 1e-300)), distance)

    with np.errstate(invalid="ignore"):
        reach = np.where(np.isfinite(other - anchor), np.abs(other - anchor), np.inf)
    # Cantelli: toward the tail no farther than sqrt((1-p)/p) from the mean, away from it than sqrt(p/(1-p))
    towards = mean - sign * (1 + 1e-9) * np.sqrt((1 - p) / p)
    away = mean + sign * (1 + 1e-9) * np.sqrt(p / (1 - p))
    start = np.clip(start, np.minimum(towards, away), np.maximum(towards, away))
    inside = sign * (start - anchor)
    inside = np.where(inside > 0, inside, p * np.minimum(1.0, reach))
    inside = np.where(inside < reach, inside, 0.5 * reach)
    xi = np.where(log_scale, np.log(np.maximum(inside, 1e-300)), sign * start)
    low = np.where(log_scale, -745.0, -np.inf)
    with np.errstate(divide="ignore"):
        high = np.where(np.isfinite(reach), to_xi(other), np.inf)
        reachable = ~log_scale | (sign * (towards - anchor) > 0)
        floor, ceiling = np.where(reachable, to_xi(towards), low), np.minimum(to_xi(away), high)
        inner = np.where(floor > low, floor, np.nan), np.where(ceiling < high, ceiling, np.nan)
    x, error = to_x(xi), np.zeros(p.shape)
    active, jumps = np.ones(p.shape, dtype=bool), np.zeros(p.shape, dtype=bool)
    previous = np.full(p.shape, np.inf)
    for _ in range(ITERATIONS):
        row = np.flatnonzero(active.any(axis=1))
        # the levels that are not settled come first; in rows with fewer of them, others repeat their points
        first = np.argsort(~active[row], axis=1, kind="stable")[:, : int(active[row].sum(axis=1).max())]
        points = np.where(active[row], x[row], np.take_along_axis(x[row], first[:, :1], axis=1))
        now = Values(*np.ones((5, *points.shape)))
        for out, value in zip(now, values(np.take_along_axis(points, first, axis=1), row), strict=True):
            np.put_along_axis(out, first, value, axis=1)
        tail = np.where(upper[row], now.sf, now.cdf)
        position = xi[row]
        with np.errstate(all="ignore"):
            miss = np.log(tail) - np.log(p[row])
            distance = np.where(log_scale[row], np.exp(np.where(log_scale[row], position, 0.0)), 1.0)
            newton = position - miss * tail / (now.pdf * distance)
            newton = np.where(log_scale[row], np.minimum(newton, position + 5.0), newton)
        below = ~(miss >= 0)  # a tail that rounds below 0 lies below
        lower = np.where(below, np.maximum(position, low[row]), low[row])
        higher = np.where(below, high[row], np.minimum(position, high[row]))
        bounded = np.isfinite(lower) & np.isfinite(higher)
        with np.errstate(invalid="ignore"):
            middle = np.where(
                bounded,
                0.5 * (lower + higher),
                position + np.where(below, 1.0, -1.0) * (1 + np.abs(position)),
            )
        tolerance = RESOLUTION * np.maximum(np.abs(position), np.where(log_scale[row], 1.0, 1e-3))
        usable = np.isfinite(newton) & (newton > lower) & (newton < higher)
        # far from p, a step of length 0 comes from a density that is too large for its tail
        usable &= (np.abs(miss) < CLOSE) | (np.abs(newton - position) > tolerance)
        # Where the density is infinite or wrong, Newton's steps make little progress; then the bracket grows or is halved.
        gained = np.abs(miss) < GAIN * previous[row]
        following = np.where(usable & gained, newton, middle)
        following = np.clip(following, floor[row], ceiling[row])
        stuck = (following == position) & ((position == inner[0][row]) | (position == inner[1][row]))
        previous[row] = np.where(np.isfinite(miss), np.abs(miss), np.inf)
        met = np.abs(tail - p[row]) <= np.minimum(now.error / 4, CLOSE * p[row])
        settled = (np.abs(following - position) <= tolerance) | met | (higher - lower <= tolerance)
        work = active[row]
        xi[row] = np.where(work & ~settled, following, position)
        low[row], high[row] = np.where(work, lower, low[row]), np.where(work, higher, high[row])
        # values that contradict Cantelli's inequality are wrong by as much as they miss p
        with np.errstate(invalid="ignore"):
            stated = np.where(stuck, np.fmax(now.error, np.abs(tail - p[row])), now.error)
        error[row] = np.where(work, stated, error[row])
        active[row] = work & ~settled
        jumps[row] |= work & settled & (np.abs(tail - p[row]) > 10 * now.error)
        x = to_x(xi)
        if not active.any():
            break
    # Where the probability jumps over p, the quantile is the point at which it has.
    reached = np.where(upper, low, high)
    jumps &= np.isfinite(reached) & (np.abs(reached - xi) <= 1e-9 * (1 + np.abs(xi)))
    row = np.flatnonzero(jumps.any(axis=1))
    if len(row):
        x = np.where(jumps, to_x(np.where(jumps, reached, xi)), x)
        now = values(x[row], row)
        missed = np.where(atomic[row], 0.0, np.abs(np.where(upper[row], now.sf, now.cdf) - p[row]))
        stated = np.maximum(np.maximum(now.error, missed), error[row])
        error[row] = np.where(jumps[row], stated, error[row])
    return x, np.where(active, np.inf, error)
