"""Characteristic functions of the laws in ``scipy.stats``: in closed form where one exists, else by quadrature.

Each is that of the standard law (loc 0, scale 1), as a function of complex t, with the strip of real s on which
E exp(s M) is finite and the sector around the real axis into which it continues analytically. Every logarithm
keeps its relative accuracy as t -> 0, since thousands of such small terms are summed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from .._typing import ComplexArray, FloatArray
from .base import cumulants_from_moments
from .quadrature import (
    Characteristic,
    Contour,
    LogCF,
    affine,
    atoms,
    breaks,
    expm1,
    log1p,
    numerical,
    piecewise,
    polyval,
    student,
    summed,
    symmetric,
    tanh_sinh,
)

__all__ = [
    "CLOSED_FORMS",
    "CONTOURS",
    "Characteristic",
    "characteristic",
    "standard_breaks",
    "standard_cumulants",
]

INF = np.inf
HALF_PI = np.pi / 2
LINE = (-INF, INF)

# log(sinh z / z) = sum_k (-1)^(k+1) zeta(2k) / k (z / pi)^(2k)
_K = np.arange(1, 14)
_SINHC = np.concatenate([[0.0], -((-1.0) ** _K) * special.zeta(2 * _K, 1) / (_K * np.pi ** (2 * _K))])


def _log_phi1_far(w: ComplexArray) -> ComplexArray:
    grows = w.real > 0
    w = np.where(grows, -w, w)
    with np.errstate(divide="ignore"):
        return np.where(grows, -w, 0.0) + np.log(expm1(w) / w)


# log(sinh z / z), even in z, free of overflow
_log_sinhc: LogCF = piecewise(
    0.7,
    lambda z: polyval(z * z, _SINHC),
    lambda z: np.where(z.real < 0, -z, z) + _log_phi1_far(np.where(z.real < 0, 2 * z, -2 * z)),
)

# log((e^w - 1) / w): the mean of exp(w x) over [0, 1]
_log_phi1: LogCF = piecewise(1.4, lambda w: w / 2 + polyval(w * w / 4, _SINHC), _log_phi1_far)


def _log_cos(z: ComplexArray) -> ComplexArray:
    return _log_sinhc(2j * z) - _log_sinhc(1j * z)


def _log_gamma_ratio(a: float) -> LogCF:
    """Logarithm of Gamma(a + z) / Gamma(a)."""
    k = np.arange(2, 40)
    # zeta(k, a) a^k tends to 1 for large k
    series = np.concatenate([[0.0, special.digamma(a) * a], (-1.0) ** k * special.zeta(k, a) * a**k / k])
    return piecewise(
        0.3 * a,
        lambda z: polyval(z / a, series),
        lambda z: special.loggamma(a + z) - special.gammaln(a),
    )


def _normal() -> Characteristic:
    return Characteristic(lambda t: -t * t / 2, LINE, HALF_PI)


def _gamma(a: float, scale: float = 1.0) -> Characteristic:
    return Characteristic(lambda t: -a * log1p(-1j * scale * t), (-INF, 1 / scale), HALF_PI)


def _pearson3(skew: float) -> Characteristic:
    """(G - a) / sqrt(a) with G a gamma variable, reflected if the skewness is negative."""
    if skew == 0:
        return _normal()
    b = skew / 2
    k = np.arange(2, 24)
    series = np.concatenate([[0.0, 0.0], -((-1.0) ** k) / k])
    # log(1 + z) - z
    remainder = piecewise(0.2, lambda z: polyval(z, series), lambda z: log1p(z) - z)
    strip = (-INF, 1 / b) if b > 0 else (1 / b, INF)
    return Characteristic(lambda t: -remainder(-1j * b * t) / b**2, strip, HALF_PI)


def _dgamma(a: float) -> Characteristic:
    # (1 + t^2)^(-a/2) cos(a arctan t)
    return Characteristic(
        lambda t: -a / 2 * log1p(t * t) + _log_cos(np.asarray(a * np.arctan(t), dtype=complex)),
        (-1.0, 1.0),
        HALF_PI,
    )


def _laplace_asymmetric(kappa: float) -> Characteristic:
    return Characteristic(
        lambda t: -log1p(-1j * t / kappa) - log1p(1j * t * kappa), (-1 / kappa, kappa), HALF_PI
    )


def _exponnorm(k: float) -> Characteristic:
    return Characteristic(lambda t: -t * t / 2 - log1p(-1j * k * t), (-INF, 1 / k), HALF_PI)


def _invgauss(mu: float) -> Characteristic:
    def logcf(t: ComplexArray) -> ComplexArray:
        return np.asarray(2j * mu * t / (1 + np.sqrt(1 - 2j * mu * mu * t)))

    return Characteristic(logcf, (-INF, 0.5 / mu**2), HALF_PI)


def _norminvgauss(a: float, b: float) -> Characteristic:
    gamma = np.sqrt((a - b) * (a + b))

    def logcf(t: ComplexArray) -> ComplexArray:
        numerator = 2j * b * t - t * t
        return np.asarray(numerator / (gamma + np.sqrt(gamma**2 - numerator)))

    return Characteristic(logcf, (-a - b, a - b), HALF_PI)


def _genlogistic(c: float) -> Characteristic:
    left, right = _log_gamma_ratio(c), _log_gamma_ratio(1.0)
    return Characteristic(lambda t: left(1j * t) + right(-1j * t), (-c, 1.0), HALF_PI)


def _loggamma(c: float) -> Characteristic:
    ratio = _log_gamma_ratio(c)
    return Characteristic(lambda t: ratio(1j * t), (-c, INF), HALF_PI)


def _gumbel_r() -> Characteristic:
    ratio = _log_gamma_ratio(1.0)
    return Characteristic(lambda t: ratio(-1j * t), (-INF, 1.0), HALF_PI)


def _moyal() -> Characteristic:
    ratio = _log_gamma_ratio(0.5)
    return Characteristic(lambda t: ratio(-1j * t) - 1j * np.log(2) * t, (-INF, 0.5), HALF_PI)


def _cosine() -> Characteristic:
    # sin(pi t) / (pi t (1 - t^2)), written around its removable singularities at 1 and -1
    def far(t: ComplexArray) -> ComplexArray:
        t = np.where(t.real < 0, -t, t)
        return _log_sinhc(1j * np.pi * (t - 1)) - np.log(t) - np.log(1 + t)

    return Characteristic(
        piecewise(0.5, lambda t: _log_sinhc(1j * np.pi * t) - log1p(-t * t), far), LINE, HALF_PI
    )


def _skewnorm(a: float) -> Characteristic:
    """2 exp(-t^2/2) Phi(i delta t), through the Faddeeva function w(z) = exp(-z^2) erfc(-iz)."""
    delta = 1.0 if np.isinf(a) else a / np.hypot(1.0, a)
    rest = 0.0 if np.isinf(a) else 1 / (1 + a * a)

    def far(t: ComplexArray) -> ComplexArray:
        z = delta * t / np.sqrt(2)
        # Below the diagonals w(z) = 2 exp(-z^2) - w(-z) may overflow.
        below = (z.imag < 0) & ((z * z).real < 0)
        upper = -rest * t * t / 2 + np.log(special.wofz(np.where(below, 0.0, z)))
        z = np.where(below, z, 0.0)
        return np.where(below, -t * t / 2 + np.log(2 - np.exp(z * z) * special.wofz(-z)), upper)

    def near(t: ComplexArray) -> ComplexArray:
        return -t * t / 2 + log1p(1j * special.erfi(delta * t / np.sqrt(2)))

    return Characteristic(piecewise(0.7, near, far), LINE, HALF_PI)


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


def _trapezoid_nodes(c: float, d: float, points: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights for a density linear on [0, c], flat on [c, d], linear on [d, 1]."""
    x, p = np.polynomial.legendre.leggauss(points)
    knots = np.array([0.0, c, d, 1.0])
    width = np.diff(knots)[:, None]
    nodes = knots[:-1, None] + width * (1 + x) / 2
    density = np.minimum(nodes / c if c else 1.0, np.minimum(1.0, (1 - nodes) / (1 - d) if d < 1 else 1.0))
    return nodes.ravel(), (density * width * p).ravel()


def _trapezoid(c: float, d: float) -> Characteristic:
    height = 2 / (1 + d - c)
    small = atoms(*_trapezoid_nodes(c, d, 28))

    def large(c: float, d: float) -> LogCF:
        def logcf(t: ComplexArray) -> ComplexArray:
            # Two partial integrations: jumps of the density at its ends, and of its slope at the knots.
            w = 1j * t
            rise = -expm1(w * c) / (c * w) if c else -1.0
            fall = (np.exp(w) - np.exp(w * d)) / ((1 - d) * w) if d < 1 else np.exp(w)
            with np.errstate(divide="ignore"):
                return np.log(height * (rise + fall)) - np.log(w)

        return logcf

    return Characteristic(
        piecewise(24.0, small, _upper_half_plane(large(c, d), large(1 - d, 1 - c), 1.0)), LINE, HALF_PI
    )


def _beta(a: float, b: float, lower: float = 0.0, upper: float = 1.0) -> Characteristic:
    """Kummer's function 1F1(a; a + b; it): tanh-sinh nodes, and Gauss-Laguerre from both ends for large t."""
    bound = 30 + 2 * (a + b)
    width = upper - lower
    x, log_p = tanh_sinh(min(0.055, 0.2 / np.sqrt(a + b)), a, b, 45 + bound)
    nodes = (lower * (1 - x) + upper * (1 + x)) / 2
    small = atoms(nodes, np.exp(log_p - log_p.max()), (b * lower + a * upper) / (a + b))

    def large(a: float, b: float) -> LogCF:
        s_lower, p_lower = special.roots_genlaguerre(32, a - 1)
        s_upper, p_upper = special.roots_genlaguerre(32, b - 1)
        ratio_lower, ratio_upper = special.gammaln(a + b) - special.gammaln([b, a])

        def logcf(t: ComplexArray) -> ComplexArray:
            left = t.real < 0
            t = np.where(left, -t.conj(), t)
            w = 1j * width * t
            # exp(wx) decays along x = -s/w from the lower end and x = 1 - s/w from the upper end.
            from_lower = (1 + s_lower / w[..., None]) ** (b - 1) @ (p_lower / p_lower.sum())
            from_upper = (1 - s_upper / w[..., None]) ** (a - 1) @ (p_upper / p_upper.sum())
            out = 1j * lower * t + np.log(
                np.exp(ratio_lower - a * np.log(-w)) * from_lower
                + np.exp(ratio_upper + w - b * np.log(w)) * from_upper
            )
            return np.asarray(np.where(left, out.conj(), out))

        return logcf

    extended = _upper_half_plane(large(a, b), large(b, a), lower + upper)
    return Characteristic(piecewise(bound / width, small, extended), LINE, HALF_PI)


def _truncexpon(b: float) -> Characteristic:
    total = _log_phi1(np.array(-b + 0j))

    def near(t: ComplexArray) -> ComplexArray:
        return log1p(expm1(1j * b * t) * np.exp(-b) / np.expm1(-b)) - log1p(-1j * t)

    def far(t: ComplexArray) -> ComplexArray:
        return _log_phi1(b * (1j * t - 1)) - total

    x, p = np.polynomial.legendre.leggauss(24)
    short = atoms(b * (1 + x) / 2, p * np.exp(-b * (1 + x) / 2))
    return Characteristic(piecewise(1 / b, short if b < 1 else near, far), LINE, HALF_PI)


def _truncnorm(a: float, b: float) -> Characteristic:
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
    return Characteristic(piecewise(40 / (upper - lower), atoms(x, p), far), LINE, HALF_PI)


def _lattice(logcf: LogCF, upper: float) -> Characteristic:
    """Law on 0, 1, 2, ...; periodic in t, so that nothing is gained by leaving the real axis."""
    return Characteristic(logcf, (-INF, upper), 0.0)


def _binom(n: float, p: float) -> Characteristic:
    def logcf(t: ComplexArray) -> ComplexArray:
        # n log(1 - p + p e^w), or n (w + log(p + (1 - p) e^-w)) where e^w is large
        w = 1j * t
        grows = w.real > 0
        inside = np.where(grows, (1 - p) * expm1(np.where(grows, -w, 0)), p * expm1(np.where(grows, 0, w)))
        return n * (np.where(grows, w, 0) + log1p(inside))

    return _lattice(logcf, INF)


def _nbinom(n: float, p: float) -> Characteristic:
    return _lattice(lambda t: -n * log1p(-(1 - p) / p * expm1(1j * t)), -np.log1p(-p))


def _geom(p: float) -> Characteristic:
    failures = _nbinom(1.0, p)
    return Characteristic(lambda t: 1j * t + failures.logcf(t), failures.strip, 0.0)


def _poisson(mu: float) -> Characteristic:
    return _lattice(lambda t: mu * expm1(1j * t), INF)


CLOSED_FORMS: dict[str, Callable[..., Characteristic]] = {
    "norm": _normal,
    "gamma": _gamma,
    "erlang": _gamma,
    "expon": lambda: _gamma(1.0),
    "chi2": lambda df: _gamma(df / 2, 2.0),
    "pearson3": _pearson3,
    "laplace": lambda: Characteristic(lambda t: -log1p(t * t), (-1.0, 1.0), HALF_PI),
    "laplace_asymmetric": _laplace_asymmetric,
    "dgamma": _dgamma,
    "exponnorm": _exponnorm,
    "invgauss": _invgauss,
    "wald": lambda: _invgauss(1.0),
    "norminvgauss": _norminvgauss,
    "logistic": lambda: Characteristic(lambda t: -_log_sinhc(np.pi * t), (-1.0, 1.0), HALF_PI),
    "hypsecant": lambda: Characteristic(lambda t: -_log_cos(0.5j * np.pi * t), (-1.0, 1.0), HALF_PI),
    "genlogistic": _genlogistic,
    "loggamma": _loggamma,
    "gumbel_r": _gumbel_r,
    "gumbel_l": lambda: _loggamma(1.0),
    "moyal": _moyal,
    "skewnorm": _skewnorm,
    "halfnorm": lambda: _skewnorm(INF),
    "truncnorm": _truncnorm,
    "truncexpon": _truncexpon,
    "uniform": lambda: Characteristic(lambda t: _log_phi1(1j * t), LINE, HALF_PI),
    "triang": lambda c: _trapezoid(c, c),
    "trapezoid": _trapezoid,
    "beta": _beta,
    "powerlaw": lambda a: _beta(a, 1.0),
    "arcsine": lambda: _beta(0.5, 0.5),
    "semicircular": lambda: _beta(1.5, 1.5, -1.0, 1.0),
    "rdist": lambda c: _beta(c / 2, c / 2, -1.0, 1.0),
    "cosine": _cosine,
    "bernoulli": lambda p: _binom(1.0, p),
    "binom": _binom,
    "poisson": _poisson,
    "geom": _geom,
    "nbinom": _nbinom,
}
"""Name in ``scipy.stats`` -> function of the shape parameters that gives the characteristic function."""


def _generalized_gamma(a: float, c: float) -> Contour:
    """Density proportional to x^(ca-1) exp(-x^c); c < 0 is the law of 1/M."""
    tail = INF if c > 0 else -a * c
    upper = INF if c > 1 else float(c == 1)
    return Contour(lambda v: c * a * v - np.exp(c * v), HALF_PI / abs(c), tail, upper)


def _generalized_beta_prime(p: float, q: float, r: float) -> Contour:
    """Density proportional to x^(p-1) (1 + x^q)^(-r)."""

    def log_xf(v: ComplexArray) -> ComplexArray:
        z = q * v
        grows = z.real > 0
        return p * v - r * (np.where(grows, z, 0) + log1p(np.exp(np.where(grows, -z, z))))

    return Contour(log_xf, np.pi / q, q * r - p)


CONTOURS: dict[str, Callable[..., tuple[Contour, float, float]]] = {
    "lognorm": lambda s: (Contour(lambda v: -((v / s) ** 2) / 2, np.pi), 1.0, 0.0),
    "gibrat": lambda: CONTOURS["lognorm"](1.0),
    "weibull_min": lambda c: (_generalized_gamma(1.0, c), 1.0, 0.0),
    "weibull_max": lambda c: (_generalized_gamma(1.0, c), -1.0, 0.0),
    "gengamma": lambda a, c: (_generalized_gamma(a, c), 1.0, 0.0),
    "halfgennorm": lambda beta: (_generalized_gamma(1 / beta, beta), 1.0, 0.0),
    "chi": lambda df: (_generalized_gamma(df / 2, 2.0), np.sqrt(2), 0.0),
    "rayleigh": lambda: (_generalized_gamma(1.0, 2.0), np.sqrt(2), 0.0),
    "maxwell": lambda: (_generalized_gamma(1.5, 2.0), np.sqrt(2), 0.0),
    "nakagami": lambda nu: (_generalized_gamma(nu, 2.0), 1 / np.sqrt(nu), 0.0),
    "invgamma": lambda a: (_generalized_gamma(a, -1.0), 1.0, 0.0),
    "invweibull": lambda c: (_generalized_gamma(1.0, -c), 1.0, 0.0),
    "lomax": lambda c: (_generalized_beta_prime(1.0, 1.0, c + 1), 1.0, 0.0),
    "pareto": lambda b: (_generalized_beta_prime(1.0, 1.0, b + 1), 1.0, 1.0),
    "betaprime": lambda a, b: (_generalized_beta_prime(a, 1.0, a + b), 1.0, 0.0),
    "f": lambda dfn, dfd: (_generalized_beta_prime(dfn / 2, 1.0, (dfn + dfd) / 2), dfd / dfn, 0.0),
    "burr": lambda c, d: (_generalized_beta_prime(c * d, c, d + 1), 1.0, 0.0),
    "burr12": lambda c, d: (_generalized_beta_prime(c, c, d + 1), 1.0, 0.0),
    "fisk": lambda c: (_generalized_beta_prime(c, c, 2.0), 1.0, 0.0),
    "mielke": lambda k, s: (_generalized_beta_prime(k, s, 1 + k / s), 1.0, 0.0),
}
"""Name -> density that continues to complex x, scale and loc: the law is loc + scale M."""


def _genpareto(c: float) -> Characteristic:
    if c == 0:
        return _gamma(1.0)
    if c < 0:
        return _beta(1.0, -1 / c, 0.0, -1 / c)
    return affine(_generalized_beta_prime(1.0, 1.0, 1 / c + 1).characteristic(), 1 / c)


CLOSED_FORMS |= {
    "t": student,
    "genpareto": _genpareto,
    "gennorm": lambda beta: symmetric(_generalized_gamma(1 / beta, beta)),
    "dweibull": lambda c: symmetric(_generalized_gamma(1.0, c)),
}


_cache: dict[tuple[str, tuple[float, ...]], Characteristic] = {}
_CACHED = 256


def characteristic(name: str, shapes: tuple[float, ...], frozen_standard: Any) -> Characteristic:
    """Characteristic function of a standard law: closed form, rotated contour, or quadrature of its density.

    Parameters
    ----------
    name : str
        Name of the family in ``scipy.stats``.
    shapes : tuple of float
        Shape parameters.
    frozen_standard : frozen scipy.stats law
        The law itself, with loc 0 and scale 1; asked only where nothing better is known.

    Returns
    -------
    Characteristic
        The same object for the same name and shapes.

    Examples
    --------
    >>> from scipy import stats
    >>> law = characteristic("gamma", (0.25,), stats.gamma(0.25))
    >>> law.strip
    (-inf, 1.0)
    """
    key = (name, shapes)
    if key not in _cache:
        while len(_cache) >= _CACHED:
            _cache.pop(next(iter(_cache)))
        _cache[key] = _choose(name, shapes, frozen_standard)
    return _cache[key]


_breaks: dict[tuple[str, tuple[float, ...]], FloatArray] = {}


def standard_breaks(name: str, shapes: tuple[float, ...], frozen_standard: Any) -> FloatArray:
    """Points where the density of a standard law (loc 0, scale 1) is not smooth, looked for once.

    Parameters
    ----------
    name : str
        Name of the family in ``scipy.stats``.
    shapes : tuple of float
        Shape parameters.
    frozen_standard : frozen scipy.stats law

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from scipy import stats
    >>> standard_breaks("arcsine", (), stats.arcsine()).tolist()
    [0.0, 1.0]
    """
    key = (name, shapes)
    if key not in _breaks:
        while len(_breaks) >= _CACHED:
            _breaks.pop(next(iter(_breaks)))
        _breaks[key] = breaks(frozen_standard)
    return _breaks[key]


def _choose(name: str, shapes: tuple[float, ...], frozen: Any) -> Characteristic:
    if name == "beta" and sum(shapes) > 500:
        return numerical(frozen)
    if name in CLOSED_FORMS:
        return CLOSED_FORMS[name](*shapes)
    if name in CONTOURS:
        contour, scale, loc = CONTOURS[name](*shapes)
        # A law that is nearly a point leaves no room to rotate.
        if contour.opening > 0.04:
            return affine(contour.characteristic(), scale, loc)
    return numerical(frozen) if hasattr(frozen, "pdf") else summed(frozen)


def _factorials(order: int) -> FloatArray:
    """0!, 1!, ..., (order - 1)!"""
    return np.cumprod([1.0, *range(1, order)])


def _polygammas(a: float, order: int) -> FloatArray:
    """Derivatives 1 to ``order`` of log Gamma at a."""
    return np.asarray(special.polygamma(np.arange(order), a))


def _signs(order: int) -> FloatArray:
    return (-1.0) ** np.arange(1, order + 1)


def _from_nodes(x: FloatArray, p: FloatArray, order: int) -> FloatArray:
    p = p / p.sum()
    mean = float(p @ x)
    return cumulants_from_moments(mean, ((x - mean) ** np.arange(2, order + 1)[:, None]) @ p)


def _beta_cumulants(a: float, b: float, order: int) -> FloatArray:
    x, log_p = tanh_sinh(min(0.055, 0.2 / np.sqrt(a + b)), a, b, 45.0)
    kappa = _from_nodes(x, np.exp(log_p - log_p.max()), order) / 2.0 ** np.arange(1, order + 1)
    kappa[0] = a / (a + b)
    return kappa


def _trapezoid_cumulants(c: float, d: float, order: int) -> FloatArray:
    return _from_nodes(*_trapezoid_nodes(c, d, order // 2 + 2), order)


def _student_cumulants(df: float, order: int) -> FloatArray:
    k = np.arange(2, order + 1)
    half = k // 2
    # E T^(2h) = df^h prod_(i <= h) (2i - 1) / (df - 2i)
    steps = np.array([df * (2 * i - 1) / (df - 2 * i) for i in range(1, order // 2 + 1) if 2 * i < df])
    even = np.concatenate([[1.0], np.cumprod(steps)])
    moments = np.where(k % 2, 0.0, even[np.minimum(half, len(even) - 1)])
    return cumulants_from_moments(0.0, np.where(k < df, moments, np.nan))


def _lattice_cumulants(first: float, slope: float, order: int) -> FloatArray:
    """kappa_(r+1) = y (1 + slope y) d kappa_r / dy from kappa_1 = y: Bernoulli (-1) and geometric (1)."""
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    values = []
    for _ in range(order):
        values.append(polynomial(first))
        polynomial = np.polynomial.Polynomial([0.0, 1.0, slope]) * polynomial.deriv()
    return np.array(values)


def _pearson3_cumulants(skew: float, order: int) -> FloatArray:
    kappa: FloatArray = _factorials(order) * (skew / 2) ** np.maximum(np.arange(order) - 1.0, 0.0)
    kappa[0] = 0.0
    return kappa


def _even_zeta(order: int) -> FloatArray:
    """2 (r - 1)! zeta(r) for even r, else 0."""
    r = np.arange(1, order + 1)
    return np.where(r % 2, 0.0, 2 * _factorials(order) * special.zeta(np.maximum(r, 2), 1))


def _hypsecant_cumulants(order: int) -> FloatArray:
    r = np.arange(1, order + 1)
    return np.asarray(_even_zeta(order) * (2.0**r - 1) / 2.0**r)


def _uniform_cumulants(order: int) -> FloatArray:
    # B_r / r, with the Bernoulli numbers through zeta
    r = np.arange(1, order + 1)
    kappa: FloatArray = -_even_zeta(order) * np.where(r % 4 == 2, -1.0, 1.0) / (2 * np.pi) ** r
    kappa[0] = 0.5
    return kappa


def _normal_plus(kappa: FloatArray) -> FloatArray:
    kappa[1:2] += 1
    return kappa


def _gumbel_cumulants(order: int) -> FloatArray:
    return _signs(order) * _polygammas(1.0, order)


def _moyal_cumulants(order: int) -> FloatArray:
    kappa = _signs(order) * _polygammas(0.5, order)
    kappa[0] -= np.log(2)
    return kappa


def _invgauss_cumulants(mu: float, order: int) -> FloatArray:
    r = np.arange(1, order + 1)
    return special.factorial2(np.maximum(2 * r - 3, 1)) * mu ** (2 * r - 1.0)


_CUMULANTS: dict[str, Callable[..., FloatArray]] = {
    "norm": lambda order: _normal_plus(np.zeros(order)),
    "gamma": lambda a, order: a * _factorials(order),
    "erlang": lambda a, order: a * _factorials(order),
    "expon": _factorials,
    "chi2": lambda df, order: df * 2.0 ** np.arange(order) * _factorials(order),
    "pearson3": _pearson3_cumulants,
    "laplace": lambda order: _factorials(order) * (1 + _signs(order)),
    "laplace_asymmetric": lambda k, order: (
        _factorials(order) * ((1 / k) ** np.arange(1, order + 1) + (-k) ** np.arange(1, order + 1))
    ),
    "exponnorm": lambda k, order: _normal_plus(_factorials(order) * k ** np.arange(1.0, order + 1)),
    "invgauss": _invgauss_cumulants,
    "wald": lambda order: _invgauss_cumulants(1.0, order),
    "logistic": _even_zeta,
    "hypsecant": _hypsecant_cumulants,
    "genlogistic": lambda c, order: _polygammas(c, order) + _gumbel_cumulants(order),
    "loggamma": lambda c, order: _polygammas(c, order),
    "gumbel_r": _gumbel_cumulants,
    "gumbel_l": lambda order: _polygammas(1.0, order),
    "moyal": _moyal_cumulants,
    "uniform": _uniform_cumulants,
    "triang": lambda c, order: _trapezoid_cumulants(c, c, order),
    "trapezoid": _trapezoid_cumulants,
    "beta": _beta_cumulants,
    "powerlaw": lambda a, order: _beta_cumulants(a, 1.0, order),
    "arcsine": lambda order: _beta_cumulants(0.5, 0.5, order),
    "t": _student_cumulants,
    "bernoulli": lambda p, order: _lattice_cumulants(p, -1.0, order),
    "binom": lambda n, p, order: n * _lattice_cumulants(p, -1.0, order),
    "poisson": lambda mu, order: np.full(order, mu),
    "nbinom": lambda n, p, order: n * _lattice_cumulants((1 - p) / p, 1.0, order),
    "geom": lambda p, order: _lattice_cumulants((1 - p) / p, 1.0, order) + np.eye(1, order)[0],
}


def is_formula(name: str) -> bool:
    """Whether the characteristic function of a family needs no more than a formula or a smooth contour.

    Parameters
    ----------
    name : str
        Name in ``scipy.stats``.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_formula("gamma"), is_formula("johnsonsu")
    (True, False)
    """
    return name in CLOSED_FORMS or name in CONTOURS


def standard_cumulants(name: str, shapes: tuple[float, ...], order: int) -> FloatArray | None:
    """Cumulants of a standard law (loc 0, scale 1), where they are known to machine precision.

    Parameters
    ----------
    name : str
        Name of the family in ``scipy.stats``.
    shapes : tuple of float
    order : int

    Returns
    -------
    ndarray of shape (order,) or None
        NaN where the moment does not exist; None if the family is not known here.

    Examples
    --------
    >>> standard_cumulants("chi2", (3.0,), 4).tolist()
    [3.0, 6.0, 24.0, 144.0]
    >>> standard_cumulants("t", (5.0,), 5).round(3).tolist()
    [0.0, 1.667, 0.0, 16.667, nan]
    """
    if name in _CUMULANTS:
        return _CUMULANTS[name](*shapes, order)
    if name in CONTOURS:
        contour, scale, loc = CONTOURS[name](*shapes)
        kappa = cumulants_from_moments(contour.mean, contour.moments(order, contour.mean))
        kappa = kappa * scale ** np.arange(1, order + 1)
        kappa[0] += loc
        return kappa
    return None
