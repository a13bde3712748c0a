"""Logarithms of complex functions that keep their relative accuracy near 0."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy import special

from ..._typing import ComplexArray
from .characteristic_function import LogCF, expm1, piecewise

__all__ = ["log_cos", "log_gamma_ratio", "log_phi1", "log_sinhc"]

# log(sinh z / z) = sum_k (-1)^(k+1) zeta(2k) / k (z / pi)^(2k)
_K = np.arange(1, 14)
_SINHC = np.concatenate([[0.0], -((-1.0) ** _K) * special.zeta(2 * _K, 1) / (_K * np.pi ** (2 * _K))])


def _log_phi1_far(w: ComplexArray) -> ComplexArray:
    if not np.any(w.real):  # e^{iv/2} sin(v/2) / (v/2), in real arithmetic
        half, result = w.imag / 2, np.empty(w.shape, dtype=complex)
        sinc = np.sin(half) / half
        with np.errstate(divide="ignore"):
            result.real = np.log(np.abs(sinc))
        phase = half + np.pi * (sinc < 0)
        result.imag = phase - 2 * np.pi * np.rint(phase / (2 * np.pi))
        return result
    grows = w.real > 0
    w = np.where(grows, -w, w)
    with np.errstate(divide="ignore"):
        return np.where(grows, -w, 0.0) + np.log(expm1(w) / w)


# log(sinh z / z), even in z, free of overflow
log_sinhc: LogCF = piecewise(
    0.7,
    lambda z: polyval(z * z, _SINHC),
    lambda z: np.where(z.real < 0, -z, z) + _log_phi1_far(np.where(z.real < 0, 2 * z, -2 * z)),
)
# log((e^w - 1) / w): the mean of exp(w x) over [0, 1]
log_phi1: LogCF = piecewise(1.4, lambda w: w / 2 + polyval(w * w / 4, _SINHC), _log_phi1_far)


def log_cos(z: ComplexArray) -> ComplexArray:
    """Logarithm of cos z."""
    return log_sinhc(2j * z) - log_sinhc(1j * z)


def log_gamma_ratio(a: float) -> LogCF:
    """Logarithm of Gamma(a + z) / Gamma(a)."""
    k = np.arange(2, 40)
    # zeta(k, a) a^k tends to 1 for large k
    series = np.concatenate([[0.0, special.digamma(a) * a], (-1.0) ** k * special.zeta(k, a) * a**k / k])
    return piecewise(
        0.3 * a,
        lambda z: polyval(z / a, series),
        lambda z: special.loggamma(a + z) - special.gammaln(a),
    )
