"""Characteristic functions of bounded laws in closed form."""

from __future__ import annotations

import numpy as np
from scipy import special
from scipy.linalg import eigh_tridiagonal

from ..._typing import ComplexArray, FloatArray
from ..base import cumulants_from_moments
from .characteristic_function import (
    HALF_PI,
    INF,
    ORDERS,
    CharacteristicFunction,
    LogCF,
    expm1,
    log1p,
    log_phi1,
    log_sinhc,
    piecewise,
)
from .quadrature import atoms, tanh_sinh

__all__ = ["beta", "cosine", "trapezoid", "truncexpon", "truncnorm"]

LINE = (-INF, INF)
PEAKED = 60.0


def cosine() -> CharacteristicFunction:
    """Characteristic function of the raised cosine on [-pi, pi]."""

    # sin(pi t) / (pi t (1 - t^2)), written around its removable singularities at 1 and -1
    def far(t: ComplexArray) -> ComplexArray:
        t = np.where(t.real < 0, -t, t)
        return log_sinhc(1j * np.pi * (t - 1)) - np.log(t) - np.log(1 + t)

    return CharacteristicFunction(
        piecewise(0.5, lambda t: log_sinhc(1j * np.pi * t) - log1p(-t * t), far), LINE, HALF_PI
    )


def _upper_half_plane(logcf: LogCF, mirrored: LogCF, length: float) -> LogCF:
    """Extend ``logcf`` from Im t >= 0 by that of length - M, so that no exponential grows."""

    def extended(t: ComplexArray) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        below = t.imag < 0
        if not below.any():
            return logcf(t)
        out = np.empty(t.shape, dtype=complex)
        out[~below] = logcf(t[~below])
        out[below] = 1j * length * t[below] + mirrored(-t[below])
        return out

    return extended


def _cumulants(x: FloatArray, p: FloatArray) -> FloatArray:
    """Cumulants of the law that puts the masses p on the points x."""
    p = p / p.sum()
    mean = float(p @ x)
    return cumulants_from_moments(mean, ((x - mean) ** ORDERS[1:, None]) @ p)


def trapezoid(c: float, d: float) -> CharacteristicFunction:
    """Characteristic function of the trapezoidal law on [0, 1], flat on [c, d]."""
    height = 2 / (1 + d - c)
    x, p = np.polynomial.legendre.leggauss(28)
    knots = np.array([0.0, c, d, 1.0])
    width = np.diff(knots)[:, None]
    x = knots[:-1, None] + width * (1 + x) / 2
    density = np.minimum(x / c if c else 1.0, np.minimum(1.0, (1 - x) / (1 - d) if d < 1 else 1.0))
    x, p = x.ravel(), (density * width * p).ravel()

    def large(c: float, d: float) -> LogCF:
        def logcf(t: ComplexArray) -> ComplexArray:
            # Two partial integrations: jumps of the density at its ends, and of its slope at the knots.
            w = 1j * t
            rise = -expm1(w * c) / (c * w) if c else -1.0
            fall = (np.exp(w) - np.exp(w * d)) / ((1 - d) * w) if d < 1 else np.exp(w)
            with np.errstate(divide="ignore"):
                return np.log(height * (rise + fall)) - np.log(w)

        return logcf

    return CharacteristicFunction(
        piecewise(24.0, atoms(x, p), _upper_half_plane(large(c, d), large(1 - d, 1 - c), 1.0)),
        LINE,
        HALF_PI,
        _cumulants(x, p),
    )


def beta(a: float, b: float, lower: float = 0.0, upper: float = 1.0) -> CharacteristicFunction:
    """Kummer's function 1F1(a; a + b; it): tanh-sinh nodes, and Gauss-Laguerre from both ends for large t."""
    bound = 30 + 2 * (a + b)
    width = upper - lower
    x, log_p = tanh_sinh(min(0.055, 0.2 / np.sqrt(a + b)), a, b, 45 + bound)
    nodes = (lower * (1 - x) + upper * (1 + x)) / 2
    p, mean = np.exp(log_p - log_p.max()), (b * lower + a * upper) / (a + b)
    cumulants = _cumulants(x, p) * (width / 2) ** ORDERS
    cumulants[0] = mean

    def large(a: float, b: float) -> LogCF:
        s_lower, p_lower = _laguerre(a)
        s_upper, p_upper = _laguerre(b)
        ratio_lower, ratio_upper = special.gammaln([a, b]) - special.betaln(a, b)

        def logcf(t: ComplexArray) -> ComplexArray:
            left = t.real < 0
            t = np.where(left, -t.conj(), t)
            w = 1j * width * t
            # exp(wx) decays along x = -s/w from the lower end and x = 1 - s/w from the upper end.
            from_lower = (1 + s_lower / w[..., None]) ** (b - 1) @ p_lower
            from_upper = (1 - s_upper / w[..., None]) ** (a - 1) @ p_upper
            out = 1j * lower * t + np.log(
                np.exp(ratio_lower - a * np.log(-w)) * from_lower
                + np.exp(w) * np.exp(ratio_upper - b * np.log(w)) * from_upper
            )
            return np.asarray(np.where(left, out.conj(), out))

        return logcf

    extended = _upper_half_plane(large(a, b), large(b, a), lower + upper)
    logcf = piecewise(bound / width, atoms(nodes, p, mean), extended)
    # neither is accurate for a narrow peak at medium t
    peaked = a + b > PEAKED and min(a, b) >= 1
    return CharacteristicFunction(logcf, LINE, HALF_PI, cumulants, accurate=not peaked)


def _laguerre(a: float) -> tuple[FloatArray, FloatArray]:
    """Gauss rule of the gamma law with shape a; the weights sum to 1."""
    k = np.arange(32.0)
    nodes, vectors = eigh_tridiagonal(2 * k + a, np.sqrt(k[1:] * (k[1:] + a - 1)))
    return nodes, vectors[0] ** 2


def truncexpon(b: float) -> CharacteristicFunction:
    """Characteristic function of the exponential law on [0, b]."""
    total = log_phi1(np.array(-b + 0j))

    def near(t: ComplexArray) -> ComplexArray:
        return log1p(expm1(1j * b * t) * np.exp(-b) / np.expm1(-b)) - log1p(-1j * t)

    def far(t: ComplexArray) -> ComplexArray:
        return log_phi1(b * (1j * t - 1)) - total

    x, p = np.polynomial.legendre.leggauss(24)
    short = atoms(b * (1 + x) / 2, p * np.exp(-b * (1 + x) / 2))
    return CharacteristicFunction(piecewise(1 / b, short if b < 1 else near, far), LINE, HALF_PI)


def truncnorm(a: float, b: float) -> CharacteristicFunction:
    """Characteristic function of the standard normal law on [a, b]."""
    mode = np.clip(0.0, a, b)
    reach = np.sqrt(mode**2 + 180)
    lower, upper = max(a, -reach), min(b, reach)
    x, log_p = tanh_sinh(0.04, 1.0, 1.0, 45.0)
    x = (lower * (1 - x) + upper * (1 + x)) / 2
    p = np.exp(log_p + (mode - x) * (mode + x) / 2)
    # Integral of exp((mode^2 - x^2) / 2) over [a, b]
    log_total = np.log(p.sum() * (upper - lower))

    def far(t: ComplexArray) -> ComplexArray:
        """Integral from a less integral from b, each exp(ite - e^2/2) sqrt(pi/2) w((t + ie)/sqrt 2)."""
        side = np.array([1.0, -1.0]).reshape(2, *[1] * t.ndim)
        ends = np.array([a, b]).reshape(side.shape)
        finite = np.isfinite(ends)
        ends = np.where(finite, ends, 0.0)
        z = (t + 1j * ends) / np.sqrt(2)
        below = np.where(finite, z.imag < 0, side > 0)
        terms = 1j * t * ends - ends * ends / 2 + np.log(special.wofz(np.where(below, -z, z)))
        signs = np.where(below, -side, side) * finite
        # w(z) = 2 exp(-z^2) - w(-z); the first part drops out unless just one end is below
        terms = np.concatenate([terms, -t[None] * t / 2])
        signs = np.concatenate([signs, 2.0 * (below[:1] != below[1:])])
        largest = np.where(signs == 0, -INF, terms.real).max(axis=0)
        total = np.sum(signs * np.exp(np.where(signs == 0, 0.0, terms - largest)), axis=0)
        return np.asarray(largest + np.log(total) + constant)

    constant = mode * mode / 2 + np.log(np.pi / 2) / 2 - log_total
    return CharacteristicFunction(piecewise(40 / (upper - lower), atoms(x, p), far), LINE, HALF_PI)
