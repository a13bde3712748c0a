"""Characteristic functions and cumulants of the families of ``scipy.stats``: in closed form, else by quadrature.

Each belongs to the standard law (loc 0, scale 1) and is a function of complex t. All logarithms keep their relative
accuracy as t -> 0, because thousands of such small terms are summed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval
from scipy import special

from ..._typing import ComplexArray, FloatArray
from .bounded_forms import beta, cosine, trapezoid, truncexpon, truncnorm
from .characteristic_function import (
    HALF_PI,
    INF,
    ORDERS,
    CharacteristicFunction,
    LogCF,
    affine,
    expm1,
    log1p,
    log_cos,
    log_gamma_ratio,
    log_phi1,
    log_sinhc,
    piecewise,
)
from .contours import Contour, student, symmetric
from .panels import numerical
from .quadrature import summed

if TYPE_CHECKING:
    from ..scipy_law import ScipyNoise

__all__ = ["CLOSED_FORMS", "CONTOURS", "characteristic", "is_formula", "known"]

LINE = (-INF, INF)
VARIANCE = np.where(ORDERS == 2, 1.0, 0.0)
SIGNS = (-1.0) ** ORDERS
FACTORIALS = special.factorial(ORDERS - 1)
EVEN_ZETA = np.where(SIGNS > 0, 2 * FACTORIALS * special.zeta(np.maximum(ORDERS, 2)), 0.0)
"""2 (r - 1)! zeta(r) for even r, else 0."""


def _normal() -> CharacteristicFunction:
    return CharacteristicFunction(lambda t: -t * t / 2, LINE, HALF_PI, VARIANCE)


def _gamma(a: float, scale: float = 1.0) -> CharacteristicFunction:
    return CharacteristicFunction(
        lambda t: -a * log1p(-1j * scale * t), (-INF, 1 / scale), HALF_PI, a * FACTORIALS * scale**ORDERS
    )


def _pearson3(skew: float) -> CharacteristicFunction:
    """(G - a) / sqrt(a) with G a gamma variable, reflected if the skewness is negative."""
    if skew == 0:
        return _normal()
    b = skew / 2
    k = np.arange(2, 24)
    series = np.concatenate([[0.0, 0.0], -((-1.0) ** k) / k])
    # log(1 + z) - z
    remainder = piecewise(0.2, lambda z: polyval(z, series), lambda z: log1p(z) - z)
    strip = (-INF, 1 / b) if b > 0 else (1 / b, INF)
    cumulants = np.where(ORDERS > 1, FACTORIALS * b ** np.maximum(ORDERS - 2, 0.0), 0.0)
    return CharacteristicFunction(lambda t: -remainder(-1j * b * t) / b**2, strip, HALF_PI, cumulants)


def _laplace() -> CharacteristicFunction:
    cumulants = FACTORIALS * (1 + SIGNS)
    return CharacteristicFunction(lambda t: -log1p(t * t), (-1.0, 1.0), HALF_PI, cumulants)


def _dgamma(a: float) -> CharacteristicFunction:
    # (1 + t^2)^(-a/2) cos(a arctan t)
    return CharacteristicFunction(
        lambda t: -a / 2 * log1p(t * t) + log_cos(np.asarray(a * np.arctan(t), dtype=complex)),
        (-1.0, 1.0),
        HALF_PI,
    )


def _laplace_asymmetric(kappa: float) -> CharacteristicFunction:
    return CharacteristicFunction(
        lambda t: -log1p(-1j * t / kappa) - log1p(1j * t * kappa),
        (-1 / kappa, kappa),
        HALF_PI,
        FACTORIALS * ((1 / kappa) ** ORDERS + (-kappa) ** ORDERS),
    )


def _exponnorm(k: float) -> CharacteristicFunction:
    cumulants = VARIANCE + FACTORIALS * k**ORDERS
    return CharacteristicFunction(
        lambda t: -t * t / 2 - log1p(-1j * k * t), (-INF, 1 / k), HALF_PI, cumulants
    )


def _invgauss(mu: float) -> CharacteristicFunction:
    def logcf(t: ComplexArray) -> ComplexArray:
        return np.asarray(2j * mu * t / (1 + np.sqrt(1 - 2j * mu * mu * t)))

    cumulants = np.cumprod(np.maximum(2 * ORDERS - 3, 1)) * mu ** (2 * ORDERS - 1)
    return CharacteristicFunction(logcf, (-INF, 0.5 / mu**2), HALF_PI, cumulants)


def _norminvgauss(a: float, b: float) -> CharacteristicFunction:
    gamma = np.sqrt((a - b) * (a + b))

    def logcf(t: ComplexArray) -> ComplexArray:
        numerator = 2j * b * t - t * t
        return np.asarray(numerator / (gamma + np.sqrt(gamma**2 - numerator)))

    return CharacteristicFunction(logcf, (-a - b, a - b), HALF_PI)


def _logistic() -> CharacteristicFunction:
    return CharacteristicFunction(lambda t: -log_sinhc(np.pi * t), (-1.0, 1.0), HALF_PI, EVEN_ZETA)


def _hypsecant() -> CharacteristicFunction:
    cumulants = EVEN_ZETA * (1 - 0.5**ORDERS)
    return CharacteristicFunction(lambda t: -log_cos(0.5j * np.pi * t), (-1.0, 1.0), HALF_PI, cumulants)


def _polygammas(a: float) -> FloatArray:
    """Derivatives of log Gamma at a."""
    return np.asarray(special.polygamma(np.arange(len(ORDERS)), a))


def _loggamma(c: float) -> CharacteristicFunction:
    ratio = log_gamma_ratio(c)
    return CharacteristicFunction(lambda t: ratio(1j * t), (-c, INF), HALF_PI, _polygammas(c))


def _genlogistic(c: float) -> CharacteristicFunction:
    left, right = log_gamma_ratio(c), log_gamma_ratio(1.0)
    cumulants = _polygammas(c) + SIGNS * _polygammas(1.0)
    return CharacteristicFunction(lambda t: left(1j * t) + right(-1j * t), (-c, 1.0), HALF_PI, cumulants)


def _moyal() -> CharacteristicFunction:
    ratio = log_gamma_ratio(0.5)
    cumulants = SIGNS * _polygammas(0.5) - np.log(2) * (ORDERS == 1)
    return CharacteristicFunction(
        lambda t: ratio(-1j * t) - 1j * np.log(2) * t, (-INF, 0.5), HALF_PI, cumulants
    )


def _uniform() -> CharacteristicFunction:
    # B_r / r, with the Bernoulli numbers through zeta
    cumulants = 0.5 * (ORDERS == 1) - EVEN_ZETA * np.where(ORDERS % 4 == 2, -1.0, 1.0) / (2 * np.pi) ** ORDERS
    return CharacteristicFunction(lambda t: log_phi1(1j * t), LINE, HALF_PI, cumulants)


def _skewnorm(a: float) -> CharacteristicFunction:
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

    return CharacteristicFunction(piecewise(0.7, near, far), LINE, HALF_PI)


def _lattice(
    logcf: LogCF, upper: float, first: float, slope: float, n: float = 1.0
) -> CharacteristicFunction:
    """Law on 0, 1, 2, ...; periodic in t, so that leaving the real axis gains nothing.

    The cumulants are n times those with kappa_1 = y and kappa_(r+1) = y (1 + slope y) d kappa_r / dy at y = ``first``.
    """
    polynomial, cumulants = Polynomial([0.0, 1.0]), []
    for _ in ORDERS:
        cumulants.append(n * polynomial(first))
        polynomial = Polynomial([0.0, 1.0, slope]) * polynomial.deriv()
    return CharacteristicFunction(logcf, (-INF, upper), 0.0, np.array(cumulants))


def _binom(n: float, p: float) -> CharacteristicFunction:
    def logcf(t: ComplexArray) -> ComplexArray:
        # n log(1 - p + p e^w), or n (w + log(p + (1 - p) e^-w)) where e^w is large
        w = 1j * t
        grows = w.real > 0
        inside = np.where(grows, (1 - p) * expm1(np.where(grows, -w, 0)), p * expm1(np.where(grows, 0, w)))
        return n * (np.where(grows, w, 0) + log1p(inside))

    return _lattice(logcf, INF, p, -1.0, n)


def _nbinom(n: float, p: float) -> CharacteristicFunction:
    odds = (1 - p) / p
    return _lattice(lambda t: -n * log1p(-odds * expm1(1j * t)), -np.log1p(-p), odds, 1.0, n)


def _geom(p: float) -> CharacteristicFunction:
    trials = affine(_nbinom(1.0, p), 1.0, 1.0)
    return replace(trials, logcf=lambda t: 1j * t + trials.logcf(t), loc=0.0)


def _poisson(mu: float) -> CharacteristicFunction:
    return _lattice(lambda t: mu * expm1(1j * t), INF, mu, 0.0)


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


def _genextreme(c: float) -> tuple[Contour, float, float] | None:
    """The law of (1 - E^c) / c with an exponential variable E: Weibull's or Frechet's; near c = 0 Gumbel's."""
    return (_generalized_gamma(1.0, 1 / c), -1 / c, 1 / c) if abs(c) > 0.03 else None


def _genpareto(c: float) -> CharacteristicFunction:
    if c == 0:
        return _gamma(1.0)
    if c < 0:
        return beta(1.0, -1 / c, 0.0, -1 / c)
    return affine(_generalized_beta_prime(1.0, 1.0, 1 / c + 1).characteristic(), 1 / c)


CLOSED_FORMS: dict[str, Callable[..., CharacteristicFunction]] = {
    "norm": _normal,
    "gamma": _gamma,
    "erlang": _gamma,
    "expon": lambda: _gamma(1.0),
    "chi2": lambda df: _gamma(df / 2, 2.0),
    "pearson3": _pearson3,
    "laplace": _laplace,
    "laplace_asymmetric": _laplace_asymmetric,
    "dgamma": _dgamma,
    "exponnorm": _exponnorm,
    "invgauss": _invgauss,
    "wald": lambda: _invgauss(1.0),
    "norminvgauss": _norminvgauss,
    "logistic": _logistic,
    "hypsecant": _hypsecant,
    "genlogistic": _genlogistic,
    "loggamma": _loggamma,
    "gumbel_r": lambda: affine(_loggamma(1.0), -1.0),
    "gumbel_l": lambda: _loggamma(1.0),
    "moyal": _moyal,
    "skewnorm": _skewnorm,
    "halfnorm": lambda: _skewnorm(INF),
    "truncnorm": truncnorm,
    "truncexpon": truncexpon,
    "uniform": _uniform,
    "triang": lambda c: trapezoid(c, c),
    "trapezoid": trapezoid,
    "beta": beta,
    "powerlaw": lambda a: beta(a, 1.0),
    "arcsine": lambda: beta(0.5, 0.5),
    "semicircular": lambda: beta(1.5, 1.5, -1.0, 1.0),
    "rdist": lambda c: beta(c / 2, c / 2, -1.0, 1.0),
    "cosine": cosine,
    "t": student,
    "genpareto": _genpareto,
    "gennorm": lambda beta: symmetric(_generalized_gamma(1 / beta, beta)),
    "dweibull": lambda c: symmetric(_generalized_gamma(1.0, c)),
    "bernoulli": lambda p: _binom(1.0, p),
    "binom": _binom,
    "poisson": _poisson,
    "geom": _geom,
    "nbinom": _nbinom,
}
"""Name in ``scipy.stats`` -> characteristic function for the shape parameters."""

CONTOURS: dict[str, Callable[..., tuple[Contour, float, float] | None]] = {
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
    "genextreme": _genextreme,
}
"""Name -> contour of M, scale and loc, where the law is that of loc + scale M; None if M is nearly constant."""


@lru_cache(maxsize=256)
def known(name: str, shapes: tuple[float, ...]) -> CharacteristicFunction | None:
    """What is known about a family of ``scipy.stats`` with loc 0 and scale 1."""
    with np.errstate(all="ignore"):  # some cumulants overflow, or do not exist
        relative = CONTOURS[name](*shapes) if name in CONTOURS else None
        if relative is not None:
            contour, scale, loc = relative
            return affine(contour.characteristic(), scale, loc)
        return CLOSED_FORMS[name](*shapes) if name in CLOSED_FORMS else None


def is_formula(name: str) -> bool:
    """Whether the characteristic function of a family of ``scipy.stats`` is a formula or a smooth contour integral."""
    return name in CLOSED_FORMS or name in CONTOURS


@lru_cache(maxsize=256)  # not in the laws, which stay small and picklable
def characteristic(law: ScipyNoise) -> CharacteristicFunction:
    """Characteristic function of a standard law: closed form, rotated contour, or quadrature of its density."""
    formula = known(law.name, law.shapes)
    if formula is not None and formula.accurate:
        return formula
    return summed(law) if law.discrete else numerical(law)
