"""Characteristic functions of densities that continue to complex x: integrals along rotated half-lines."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray
from scipy import special

from ..._typing import ComplexArray, FloatArray
from ..base import cumulants_from_moments
from .characteristic_function import (
    HALF_PI,
    INF,
    ORDERS,
    CharacteristicFunction,
    LogCF,
    by_chunks,
    expm1,
    log1p,
    piecewise,
)
from .tabulated import tabulated

__all__ = ["Contour", "student", "symmetric"]

LARGEST = 1e5
"""Largest log E exp(sM): a larger mean would take too many nodes to resolve."""

SMALL, MOMENTS = 0.125, 12
"""Moments that stand for all nodes with |tx| < 1/8: 8^-12 / 12! is below rounding."""
HIGHEST_MOMENT = 16
"""Order of the moments in use."""
LEFTMOST = -700.0
"""Logarithm of the smallest x: a pole x^(p-1) with p < 0.05 has more mass below it than rounding errors."""


class Contour:
    """Characteristic function of a density on (0, inf) that continues to complex x.

    The integral of f(x) exp(itx) is taken along x = exp(v + i alpha), where exp(itx) decays; the trapezoidal rule in v
    converges exponentially. ``log_xf`` is log(x f(x)) of complex v = log x, up to a constant; f is analytic and does not
    grow in abs(arg x) < ``opening``; moments of order below ``tail`` exist; ``upper`` is the upper end of the strip.
    """

    LEVELS = 8

    def __init__(self, log_xf: LogCF, opening: float, tail: float = INF, upper: float = 0.0) -> None:
        self.log_xf = log_xf
        self.tail = tail
        self.upper = upper
        self.opening, self.reach = self._affordable(min(opening, np.pi))
        self.sector = min(HALF_PI, 0.75 * self.opening)
        self.rule = cache(self._rule)
        self.mean = self.rule(0).mean

    def _affordable(self, opening: float) -> tuple[float, float]:
        """Angles up to which the integral of abs(f) grows by exp(4.5) and by exp(0.75): digits lost by cancellation."""
        left, right = self._window(0.0)
        v = np.linspace(left, right, 1000)
        angle = opening * np.linspace(0.0, 0.999, 100)
        height = self.log_xf(v + 1j * angle[:, None]).real
        highest = height.max(axis=1)
        growth = highest + np.log(np.sum(np.exp(height - highest[:, None]), axis=1))
        growth -= growth[0]
        return (
            opening if growth[-1] < 4.5 else float(angle[np.argmax(growth > 4.5)]),
            HALF_PI if growth[-1] < 0.75 else float(angle[np.argmax(growth > 0.75)]),
        )

    def _window(self, angle: float) -> tuple[float, float]:
        """Interval of v = log abs(x) outside which the density is negligible."""
        v = np.arange(LEFTMOST, 400.0, 0.05)
        with np.errstate(over="ignore"):
            height = self.log_xf(np.asarray(v + 1j * angle)).real
        # Left: negligible next to x = 1e-12, which matters up to t = 1e12. Right: negligible for the variance.
        left = height > max(np.interp(-27.6, v, height), height.max() - 300) - 42
        right = height + 2 * v > np.max(height + 2 * v) - 42
        return v[np.argmax(left)] - 0.05, v[len(v) - 1 - np.argmax(right[::-1])] + 0.05

    def _rule(self, level: int) -> _Rule:
        """Nodes for arg t about level / LEVELS of pi/2 (above) or of the sector (below)."""
        # The contour stays between 0 < arg t + arg x < pi and arg x < opening.
        lowest = max(0, -level) * self.sector / self.LEVELS
        highest = min(self.opening, np.pi - max(0, level) * HALF_PI / self.LEVELS)
        room = min((highest - lowest) / 2, self.reach)
        angle = lowest + room
        return self._nodes(angle, 0.85 * 2 * np.pi * room / 42, *self._window(angle))

    def _nodes(self, angle: float, step: float, left: float, right: float) -> _Rule:
        v = np.arange(left, right + step, step) + 1j * angle
        log_w = self.log_xf(np.asarray(v))
        largest = log_w.real.max()
        return _Rule(np.exp(v), log_w - largest - np.log(np.sum(np.exp(log_w - largest))))

    def moments(self, order: int, center: float) -> FloatArray:
        """E (M - center)^k for k = 2, ..., order; NaN where the moment does not exist."""
        out = np.full(order - 1, np.nan)
        existing = [k for k in range(2, order + 1) if k < self.tail]
        rule = self._tilted(0.0, order=existing[-1] if existing else 0)
        for k in existing:
            out[k - 2] = np.sum(((rule.x.real - center) * np.exp(rule.log_w.real / k)) ** k)
        return out

    def direct(self, t: ComplexArray) -> ComplexArray:
        """Log characteristic function at ``t`` of shape (n,) with Re t >= 0."""
        angle = np.angle(t) * self.LEVELS
        level = np.where(angle > 0, np.floor(angle / HALF_PI), np.floor(angle / self.sector + 1e-9)).astype(
            int
        )
        out = np.empty(t.shape, dtype=complex)
        # The rotated rules end with the sector. Below it x is real, and the mean of exp(itx) may be huge.
        level = np.maximum(level, -self.LEVELS - 1)
        overflow = (level < -self.LEVELS) & (-t.imag > self._heights[2])
        out[overflow] = INF
        for k in np.unique(level[~overflow]):
            where = (level == k) & ~overflow
            if k >= -self.LEVELS:
                rule = self.rule(int(k))
            else:
                rule = self._tilted(-float(t[where].imag.min()), float(np.max(t[where].real)))
            out[where] = rule.log_phi(t[where])
        return out

    @cached_property
    def _heights(self) -> tuple[FloatArray, FloatArray, float]:
        """Real v = log x and log(x f(x)), as far as any tilt needs them, and the largest s at which E exp(sM) is computed."""
        v = np.arange(LEFTMOST, 400.0, 0.01)
        with np.errstate(over="ignore", invalid="ignore"):
            height = np.nan_to_num(self.log_xf(np.asarray(v + 0j)).real, nan=-INF)
            # s x + height <= LARGEST above its maximum, at all x
            steepest = float(np.min((LARGEST + height.max() - height) / np.exp(v)))
            last = height + steepest * np.exp(v) + HIGHEST_MOMENT * np.maximum(v, 0.0) > height.max() - 45
        part = slice(
            max(int(np.argmax(height > height.max() - 42)) - 1, 0), len(v) - int(np.argmax(last[::-1])) + 1
        )
        return v[part], height[part], steepest

    def _tilted(self, s: float, frequency: float = 0.0, order: int = 0) -> _Rule:
        """Real nodes that resolve x^order exp(sx + i frequency x) f(x)."""
        v, height, _ = self._heights
        with np.errstate(over="ignore"):
            tilted = height + s * np.exp(v) + order * v
        peak = int(np.argmax(tilted))
        curvature = -np.diff(tilted[peak - 1 : peak + 2], 2)[0] / 1e-4 if s else 0.0
        left = v[np.argmax(height > height.max() - 42)]
        right = v[len(v) - 1 - np.argmax((tilted > tilted[peak] - 45)[::-1])]
        # ten times the width of the peak beside the frequency, in v
        step = 2 * np.pi / (10.5 * np.sqrt(curvature + 1) + frequency * np.exp(right))
        return self._nodes(0.0, min(0.08 * self.opening, step), left, right)

    def characteristic(self) -> CharacteristicFunction:
        """Tabulated along rays."""
        cumulants = cumulants_from_moments(self.mean, self.moments(len(ORDERS), self.mean))
        with np.errstate(all="ignore"):
            leftmost = np.nan_to_num(self.log_xf(np.array([LEFTMOST + 0j])).real[0], nan=-INF)
        # A law that is nearly a point leaves no room to rotate, and float64 has no numbers for all mass of a strong pole.
        accurate = self.opening > 0.04 and bool(leftmost < self._heights[1].max() - 34)
        logcf = tabulated(self.direct, self.mean)
        return CharacteristicFunction(logcf, (-INF, self.upper), self.sector, cumulants, accurate=accurate)


class _Rule:
    """The characteristic function as a sum over nodes x with log weights, both of shape (n,)."""

    def __init__(self, x: ComplexArray, log_w: ComplexArray) -> None:
        self.x, self.log_w, self.weights, self.size = x, log_w, np.exp(log_w), np.abs(x)
        self.reach = float(self.size.max())
        self.mean = float((self.weights @ x).real)
        self.near = cache(self._near)

    def _near(self, octave: float) -> tuple[NDArray[np.bool_], complex, float, ComplexArray]:
        """Nodes with small |tx| at all t of an octave, of which a pole has thousands: their mass, reach and moments over k!."""
        near = self.size * 2.0 ** (octave + 1) < SMALL
        reach, total = float(np.max(self.size, initial=0.0, where=near)) or 1.0, self.weights[near].sum()
        x, weights = self.x[near] / reach, self.weights[near] / (total or 1.0)
        first = np.abs(weights * x)
        seen = first > 1e-18 * first.max(initial=0.0)
        powers = np.cumprod(np.tile(x[seen], (MOMENTS, 1)), axis=0)
        moments = powers @ weights[seen] / np.cumprod(np.arange(1.0, MOMENTS + 1))
        return near, total, reach, np.concatenate([[0.0], moments])

    def log_phi(self, t: ComplexArray) -> ComplexArray:
        """Log characteristic function at ``t`` of shape (n,)."""
        out, octave = np.empty(t.shape, dtype=complex), np.full(t.shape, -INF)
        far = np.abs(t) * self.reach > SMALL
        octave[far] = np.floor(np.log2(np.abs(t[far])))
        for k in np.unique(octave):
            where = octave == k
            k = k if np.isfinite(k) else np.log2(SMALL / self.reach) - 1.001
            out[where] = by_chunks(self._on_octave(float(k), t[where]), len(self.x), t[where])
        return out

    def _on_octave(self, octave: float, t: ComplexArray) -> LogCF:
        """The function at any of the points ``t`` of an octave."""
        near, mass, reach, series = self.near(octave)

        x, weights, log_w = self.x[~near], self.weights[~near], self.log_w[~near]

        def small(t: ComplexArray) -> ComplexArray:
            return log1p(mass * polyval(1j * t * reach, series) + expm1(1j * t[:, None] * x) @ weights)

        if 2.0**octave * self.mean < 1:
            return small
        # terms below rounding error are left out
        corners = np.multiply.outer(
            [np.abs(t).min(), np.abs(t).max()], np.exp(1j * np.array([np.angle(t).min(), np.angle(t).max()]))
        ).ravel()
        size = log_w.real - (corners[:, None] * x).imag
        kept = np.any(size > size.max(axis=1, keepdims=True) - 45, axis=0)
        if not kept.any():  # so far out that even the largest term is not a number
            return lambda t: np.full(t.shape, np.nan + 0j)
        x, log_w = x[kept], log_w[kept]

        def large(t: ComplexArray) -> ComplexArray:
            with np.errstate(divide="ignore"):
                rest = np.log(np.complex128(mass)) + log1p(
                    np.asarray(polyval(1j * t * reach, series), dtype=complex)
                )
            terms = np.column_stack([1j * t[:, None] * x + log_w, rest])
            largest = terms.real.max(axis=1)
            return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)))

        return large


def symmetric(half: Contour) -> CharacteristicFunction:
    """Characteristic function of a random sign times the variable of ``half``, which must have a light tail."""
    raw = half.moments(16, 0.0)[::2]
    unit = float(np.sqrt(raw[0]))
    even = np.arange(2, 17, 2)
    series = np.concatenate([[0.0], (-1.0) ** (even / 2) * raw / np.cumprod(even * (even - 1.0))])
    # Up to here the last term is below 1e-16 of the first.
    near = abs(1e-16 * series[1] / series[8]) ** (1 / 14)

    def large(t: ComplexArray) -> ComplexArray:
        plus, minus = half.direct(t), half.direct(t.conj()).conj()
        return minus + log1p(expm1(plus - minus) / 2)

    def small(t: ComplexArray) -> ComplexArray:
        return log1p(polyval(t * t, series))

    table = tabulated(piecewise(near, small, large), unit, power=2, even=True)
    moments = np.where(ORDERS[1:] % 2, 0.0, np.repeat(raw, 2)[: len(ORDERS) - 1])
    cumulants = cumulants_from_moments(0.0, moments)
    return CharacteristicFunction(table, (-half.upper or 0.0, half.upper), half.sector, cumulants)


def student(df: float) -> CharacteristicFunction:
    """Characteristic function of Student's law: x^m K_m(x) 2^(1-m) / Gamma(m), m = df/2, x = sqrt(df) t.

    For small x the Bessel function loses the digits of log phi, and the mixture of normal laws is integrated instead:
    phi - 1 = integral of g^(m-1) exp(-g) (exp(-x^2/4g) - 1) dg / Gamma(m).
    """
    m = df / 2
    width = 1 / np.sqrt(m)
    step = min(0.1, width / 4)
    left = max(-42 / (m - 1), -105.0) - 12 * width
    v = np.log(m) + np.arange(left, min(5.0, 12 * width) + step, step)
    height = m * np.log(m) - m
    total = np.sum(np.exp(m * v - np.exp(v) - height))

    def mixture(x: NDArray[Any]) -> ComplexArray:
        # Where g is far below x^2/4, the integrand is g^(m-1), which is soon negligible.
        first = np.log(min(np.abs(x).min() ** 2 / 4, m)) - 42 / m - 12 * width
        u = v[np.searchsorted(v, first) :]
        if not x.imag.any():
            x, turn, turned = x.real, np.zeros(1), np.ones(1)
        else:
            # g turns toward arg x where exp(-x^2/4g) is small, and stays real where the mass is.
            ratio = (8 * np.exp(u) / np.abs(x * x)[:, None]) ** 2
            turn = 1j * np.angle(x)[:, None] / (1 + ratio)
            turned = 1 - 2 * turn * ratio / (1 + ratio)
        g = np.exp(u + turn)
        weights = np.exp(m * (u + turn) - g - height) * turned
        change = np.sum(weights * expm1(-(x * x)[:, None] / (4 * g)), axis=1) / total
        return log1p(np.asarray(change, dtype=complex))  # rounding errors may take phi below 0

    def debye(x: ComplexArray) -> ComplexArray:
        root = np.sqrt(m * m + x * x)
        correction = (3 - 5 * (m / root) ** 2) / (24 * root)
        log_k = np.log(np.pi / (2 * root)) / 2 - root - m * np.log(x / (m + root)) + log1p(-correction)
        return np.asarray(m * np.log(x) + log_k + constant)

    def bessel(x: ComplexArray) -> ComplexArray:
        return np.asarray(m * np.log(x) + np.log(special.kve(m, x)) - x + constant)

    constant = (1 - m) * np.log(2) - special.gammaln(m)
    # K overflows for large m, but then phi is below 1e-21 where Debye's expansion takes over.
    many = m > 200
    near = 14 * np.sqrt(m) if many else max(1.0, 2 * np.sqrt(m))
    direct = piecewise(
        near, lambda x: by_chunks(mixture, len(v), x), debye if many else piecewise(1e6, bessel, debye)
    )
    # E T^(2h) = df^h prod_(i <= h) (2i - 1) / (df - 2i)
    i = np.arange(1, 5)
    even = np.cumprod(np.where(2 * i < df, df * (2 * i - 1) / (df - 2 * i), np.nan))
    moments = np.where(df > ORDERS, np.where(ORDERS % 2, 0.0, np.repeat(even, 2)), np.nan)[1:]
    return CharacteristicFunction(
        tabulated(lambda t: direct(np.sqrt(df) * t), power=2, even=True),
        (0.0, 0.0),
        0.0 if many else HALF_PI,
        cumulants_from_moments(0.0, moments),
    )
