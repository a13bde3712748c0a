"""Cumulants of the laws in ``scipy.stats``, where they are known to machine precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from .._typing import FloatArray
from .base import cumulants_from_moments
from .characteristic.bounded_forms import trapezoid_nodes
from .characteristic.closed_forms import CONTOURS
from .characteristic.quadrature import tanh_sinh

__all__ = ["standard_cumulants"]


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
    return _from_nodes(*trapezoid_nodes(c, d, order // 2 + 2), order)


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


def standard_cumulants(name: str, shapes: tuple[float, ...], order: int) -> FloatArray | None:
    """Cumulants for loc 0 and scale 1, NaN where they do not exist; None if not known to machine precision."""
    if name in _CUMULANTS:
        return _CUMULANTS[name](*shapes, order)
    known = CONTOURS[name](*shapes) if name in CONTOURS else None
    if known is not None:
        contour, scale, loc = known
        kappa = cumulants_from_moments(contour.mean, contour.moments(order, contour.mean))
        kappa = kappa * scale ** np.arange(1, order + 1)
        kappa[0] += loc
        return kappa
    return None
