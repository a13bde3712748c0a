"""Tails with relative accuracy: contours through the saddle point of each single x.

With the cumulant generating function K(z) = log E e^{zX} and the real c that solves K'(c) = x, the integrals
    f(x) = 1/(2 pi i) int e^{K(z) - zx} dz,   sf(x) = 1/(2 pi i) int e^{K(z) - zx} dz / z
run through c with an integrand that nowhere exceeds its value e^{K(c) - cx} there, so that nothing cancels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._typing import ComplexArray, FloatArray, IntArray
from .ray import EPS, Values, joined, put
from .rows import Rows

__all__ = ["SaddleTails", "hyperbola", "saddle_point"]

CHUNK = 2**19
NODES = 56
EXPONENT = 40.0
TINY = float(np.finfo(float).tiny)
UNDERFLOW, OVERFLOW = -720.0, 300.0
MOST_NODES = 2**12
NARROW = 0.01
"""Standard deviation above which the characteristic function of a normal part has decayed at the last node."""
SLOWEST = 0.05
"""Slowest decay |z|^-a of |phi| that is assumed beyond the last node."""
SURPRISE = 100.0
"""Factor by which the error of every second node may exceed what every fourth predicts for an analytic integrand."""
GOOD = 1e-10
"""Relative error of a tail below which no second method is tried."""


class SaddleTails:
    """Tails of standardized rows, where they have exponential moments."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.theta = 0.0 if rows.bounded or rows.atomic.any() else min(0.6, rows.sector / 2)

    def covers(self, x: FloatArray, index: IntArray) -> NDArray[np.bool_]:
        """Whether x, of shape (n, k) for the rows ``index``, lies in a light tail."""
        low, high = (end[index, None] for end in self.rows.strip)
        lower, upper = (end[index, None] for end in self.rows.support)
        light = np.where(x > self.rows.mean[index, None], high > 0, low < 0)
        # a law with atoms comes back at frequencies beyond any node, unless a normal part is there to stop it
        smooth = (self.rows.normal_var[index, None] > NARROW**2) | ~self.rows.atomic[index, None]
        return np.asarray(light & smooth & (x > lower) & (x < upper))

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n,), which belong to the rows ``index`` of shape (n,)."""
        step = max(1, CHUNK // (NODES * self.rows.weights.shape[1]))
        return joined(self._part(x[i : i + step], index[i : i + step]) for i in range(0, len(x), step))

    def log_density(self, x: FloatArray, index: IntArray) -> FloatArray:
        """Logarithm of the density by Daniels' approximation, to about 0.1 or a millionth of it."""
        rows = self.rows.take(index)
        c, curvature = saddle_point(rows, x)
        value = rows.cgf(c[:, None])[:, 0] - c * x - 0.5 * np.log(2 * np.pi * curvature)
        return np.where(np.isnan(value), -np.inf, value)

    def _part(self, x: FloatArray, index: IntArray) -> Values:
        rows = self.rows.take(index)
        c, curvature = saddle_point(rows, x)
        depth = rows.cgf(c[:, None])[:, 0] - c * x
        # below e^-720 float64 underflows
        upper = (c > 0).astype(float)
        values = Values(np.zeros(len(x)), upper, 1 - upper, np.zeros(len(x)), np.zeros(len(x)))
        seen = np.flatnonzero(~(depth < UNDERFLOW))
        values.error[seen] = np.inf
        if self.theta:
            _improve(values, seen, _hyperbola(rows.take(seen), x[seen], c[seen], curvature[seen], self.theta))
            # A tail lighter than exponential may grow where the hyperbola turns to; a straight line does not turn.
            seen = _poor(values, seen)
        if len(seen):
            _improve(values, seen, _line(rows.take(seen), x[seen], c[seen], curvature[seen]))
        # K(c) - cx is 0 at c = 0 and lowest at the saddle point: any other point is not one
        lost = ~(depth <= 0)
        values.error[lost], values.pdf_error[lost] = np.inf, np.inf
        return values


def _improve(values: Values, index: IntArray, other: Values) -> None:
    """Replace values at ``index`` by others that have a smaller error."""
    better = other.error < values.error[index]
    put(values, index[better], other, better)


def _poor(values: Values, index: IntArray) -> IntArray:
    """The points of ``index`` at which the tail needs a second method, or more nodes."""
    return index[~(values.error[index] < GOOD * np.minimum(values.cdf, values.sf)[index])]


def hyperbola(
    c: FloatArray, b: FloatArray, theta: FloatArray, u: FloatArray
) -> tuple[ComplexArray, ComplexArray]:
    """Points z = c + b (sin theta (cosh u - 1) + i cos theta sinh u) and dz/du, for u of shape (n, K)."""
    c, b, sin, cos = c[:, None], b[:, None], np.sin(theta)[:, None], np.cos(theta)[:, None]
    z = c + b * (sin * (np.cosh(u) - 1) + 1j * cos * np.sinh(u))
    return z, b * (sin * np.sinh(u) + 1j * cos * np.cosh(u))


def _hyperbola(rows: Rows, x: FloatArray, c: FloatArray, curvature: FloatArray, theta: float) -> Values:
    # the width of the saddle, but not so wide that the steps overlook the pole at 0
    b = np.minimum(2.0 / np.sqrt(curvature), 1.5 * np.abs(c))
    # far out e^{-zx} decays, near a normal law e^{K(z)} does, by u = 3.8
    reach = np.maximum(np.arccosh(1 + EXPONENT / np.maximum(np.abs(x) * b * np.sin(theta), 1e-12)), 3.8)
    h = reach / (NODES - 0.5)
    z, dz = hyperbola(c, b, np.where(x < 0, -theta, theta), h[:, None] * (np.arange(NODES) + 0.5))
    values = _integrate(rows, x, c, z, dz * h[:, None])
    values.error[:] += np.exp(-2 * np.pi * np.abs(c) / (b * h)) * np.minimum(values.cdf, values.sf)
    return values


def _line(rows: Rows, x: FloatArray, c: FloatArray, curvature: FloatArray) -> Values:
    """On the vertical line through c, with more nodes where the integrand decays slowly."""
    period = _tilted_period(rows, x, c, curvature)
    values = Values(*(np.full(len(x), np.inf) for _ in Values._fields))
    seen, n = np.arange(len(x)), 256
    while len(seen) and n <= MOST_NODES:
        h = 2 * np.pi / period[seen, None]
        z = c[seen, None] + 1j * h * (np.arange(n) + 0.5)
        dz = np.broadcast_to(1j * h, z.shape)
        _improve(values, seen, _integrate(rows.take(seen), x[seen], c[seen], z, dz))
        seen = _poor(values, seen)
        n *= 4
    return values


def _integrate(rows: Rows, x: FloatArray, c: FloatArray, z: ComplexArray, dz: ComplexArray) -> Values:
    """Sum over the upper half of a contour that is symmetric about the real axis."""
    exponent = rows.logcf(-1j * z) - z * x[:, None]
    # what overflows has an infinite error; NaN occurs where phi is practically 0
    exponent = np.where(
        np.isfinite(exponent), np.minimum(exponent.real, OVERFLOW) + 1j * exponent.imag, -np.inf
    )
    terms = np.exp(exponent) * dz / np.pi
    over_z = terms / z
    pdf, tail = terms.imag.sum(axis=1), np.sign(c) * over_z.imag.sum(axis=1)
    roundoff = EPS * (1 + np.abs(exponent[:, 0]))
    errors = [
        roundoff * np.abs(term).sum(axis=1) + left_out + _step_error(term)
        for term, left_out in zip((over_z, terms), _left_out(exponent.real, z.imag), strict=True)
    ]
    error, pdf_error = errors
    upper = c > 0
    return Values(pdf, np.where(upper, 1 - tail, tail), np.where(upper, tail, 1 - tail), error, pdf_error)


def _left_out(level: FloatArray, height: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds on the integrals of e^level dz / |z| and of e^level dz behind the last node, over pi, each of shape (n,).

    The integrand falls like |z|^-a or faster, with the decay a between half of the nodes and all of them.
    """
    n = level.shape[1]
    last = np.max(level[:, n - n // 8 :], axis=1)
    before = np.max(level[:, n // 2 - n // 8 : n // 2], axis=1)
    with np.errstate(all="ignore"):
        decay = (before - last) / np.log(height[:, -1] / height[:, n // 2 - 1])
        size = np.exp(np.minimum(last, OVERFLOW)) / np.pi
        over_z = 2 * size * (1 + 1 / np.maximum(np.nan_to_num(decay), SLOWEST))
        plain = np.where(decay > 1 + SLOWEST, 2 * size * height[:, -1] / (decay - 1), np.inf)
    return np.where(size > 0, over_z, 0.0), np.where(size > 0, plain, 0.0)


def _step_error(terms: ComplexArray) -> FloatArray:
    """Error of the trapezoidal rule, shape (n,), from terms of shape (n, K) that are mirrored below the real axis.

    Every second node alone has the error d, every fourth one e. Halving the step squares the error of an analytic
    integrand; where d and e show that it does not, the error falls no faster than from e to d.
    """
    quarter = [terms[:, k::4].sum(axis=1) for k in range(4)]
    total = quarter[0].imag + quarter[1].imag + quarter[2].imag + quarter[3].imag
    d = np.abs(quarter[0].real - quarter[1].real + quarter[2].real - quarter[3].real)
    pairs = (quarter[0], quarter[3]), (quarter[1], quarter[2])
    e = 2 * np.maximum(*(np.hypot(a.real - b.real, a.imag + b.imag - 0.5 * total) for a, b in pairs))
    value = np.abs(total)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        squared, expected = d * (d / np.maximum(value, TINY)), e * (e / np.maximum(value, TINY))
        slow = d * np.minimum(1.0, d / np.maximum(e, TINY))
    return np.asarray(np.where(d > SURPRISE * expected, np.maximum(slow, squared), squared))


def saddle_point(rows: Rows, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Real c with K'(c) = x, to about a thousandth, and K''(c); each of shape (n,), one x per row.

    The contour need not run through the saddle exactly. The search bisects log rho, with c = rho, or
    c = end rho / (1 + rho) where E e^{cX} is finite only up to an end.
    """
    upper = x > rows.mean
    end = np.where(upper, rows.strip[1], rows.strip[0])
    sign = np.where(upper, 1.0, -1.0)

    def at(log_rho: FloatArray) -> FloatArray:
        rho = np.exp(log_rho)
        return np.where(np.isfinite(end), end * (rho / (1 + rho)), sign * rho)

    def slope(c: FloatArray) -> FloatArray:
        room = np.where(np.isfinite(end), np.minimum(np.abs(c), np.abs(end - c)), np.abs(c))
        step, short = 1e-5 * room, 1e-3 / (1 + np.abs(x))
        phase = rows.logcf((step - 1j * c)[:, None])[:, 0].imag
        if np.any(step > short):  # far out the phase is known up to full turns, which a short step resolves
            roughly = rows.logcf((short - 1j * c)[:, None])[:, 0].imag / short
            turns = np.rint((roughly * step - phase) / (2 * np.pi))
            phase += np.where((step > short) & np.isfinite(turns), 2 * np.pi * turns, 0.0)
        return np.asarray(phase / step)

    low, high = np.full(len(x), np.log(1e-4)), np.zeros(len(x))
    top = np.where(np.isfinite(end), np.log(1e12), np.log(1e280))
    with np.errstate(all="ignore"):
        for _ in range(9):  # no farther out than needed: there log phi may be costly or overflow
            below = (sign * (slope(at(high)) - x) < 0) & (high < top)
            if not below.any():
                break
            low, high = np.where(below, high, low), np.where(below, np.minimum(2 * high + 2, top), high)
        for _ in range(18):
            middle = 0.5 * (low + high)
            below = sign * (slope(at(middle)) - x) < 0  # NaN counts as too far
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        left, right = at(low - 1e-3), at(low + 1e-3)
        curvature = (slope(right) - slope(left)) / (right - left)
    return at(low), np.where(curvature > 0, curvature, 1.0)


def _tilted_period(rows: Rows, x: FloatArray, c: FloatArray, curvature: FloatArray) -> FloatArray:
    """Length beyond which the law tilted by e^{cX} has no mass, by Chernoff's bound on either side of x."""
    scale = np.array([0.5, 1.0, 2.0, 4.0, 8.0]) / np.sqrt(curvature)[:, None]
    here = rows.cgf(c[:, None])
    reach = np.zeros(len(x))
    with np.errstate(all="ignore"):
        for sign in (-1.0, 1.0):
            bound = (EXPONENT + rows.cgf(c[:, None] + sign * scale) - here) / scale - sign * x[:, None]
            reach += np.nanmin(np.where(np.isfinite(bound), bound, np.inf), axis=1)
    # the pole at 0 returns as e^{-cP}
    pole = (EXPONENT - (here[:, 0] - c * x)) / np.abs(c)
    period = np.maximum(reach, pole)
    # where the tilted law is too narrow for float64, any period will do: the error estimate of the sum shows it
    return np.where((period > 0) & np.isfinite(period), period, 1 / np.sqrt(curvature))
