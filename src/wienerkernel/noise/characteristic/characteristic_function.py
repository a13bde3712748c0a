"""The type of a characteristic function, and the functions that all of them are built from.

The logarithms keep their relative accuracy near 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy import special

from ..._typing import ComplexArray, FloatArray

__all__ = [
    "CHUNK",
    "HALF_PI",
    "INF",
    "ORDERS",
    "CharacteristicFunction",
    "LogCF",
    "affine",
    "by_chunks",
    "expm1",
    "log1p",
    "log_cos",
    "log_gamma_ratio",
    "log_phi1",
    "log_sinhc",
    "piecewise",
]

INF = np.inf
HALF_PI = np.pi / 2
LogCF = Callable[[ComplexArray], ComplexArray]
Array = TypeVar("Array", FloatArray, ComplexArray)

# complex, with relative accuracy near 0, which numpy's log1p lacks
log1p: LogCF = special.log1p
expm1: LogCF = np.expm1

CHUNK = 1 << 18
"""Maximum number of elements of a (points, nodes) array in memory."""
ORDERS = np.arange(1.0, 9.0)
"""Orders of the cumulants."""


@dataclass(frozen=True)
class CharacteristicFunction:
    """Log characteristic function of a standard law, and where it is available.

    ``logcf`` is log E exp(i t M) for complex t of any shape, up to multiples of 2 pi i; off the real axis the error of
    exp(logcf) is relative to E exp(-Im(t) M). It holds for t = -i s with s in the open interval ``strip``, and for
    abs(arg t) and abs(arg -t) below ``sector``, where 0 means real t only. The law is that of ``loc`` + M: where its end
    moves to 0, i t loc must not be added and subtracted again. ``cumulants`` of loc + M are NaN where they do not exist,
    and None where they are not known to machine precision. ``accurate`` says whether ``logcf`` is.
    """

    logcf: LogCF
    strip: tuple[float, float]
    sector: float
    cumulants: FloatArray | None = None
    loc: float = 0.0
    accurate: bool = True


def piecewise(near: float, small: LogCF, large: LogCF) -> LogCF:
    """Function that is ``small`` where abs(t) < ``near`` and ``large`` elsewhere."""

    def logcf(t: ComplexArray) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        inside = np.abs(t) < near
        if inside.all():
            return small(t)
        if not inside.any():
            return large(t)
        out = np.empty(t.shape, dtype=complex)
        out[inside] = small(t[inside])
        out[~inside] = large(t[~inside])
        return out

    return logcf


def by_chunks(function: Callable[[Any], Any], nodes: int, x: Array) -> Array:
    """Evaluate ``function`` of a flat array in pieces, so that (points, nodes) arrays stay small."""
    step = max(1, CHUNK // nodes)
    flat = x.ravel()
    out = np.empty_like(flat)
    for start in range(0, flat.size, step):
        out[start : start + step] = function(flat[start : start + step])
    return out.reshape(x.shape)


def affine(law: CharacteristicFunction, scale: float, loc: float = 0.0) -> CharacteristicFunction:
    """Characteristic function of loc + scale M; a negative scale reflects the law."""
    strip = sorted((law.strip[0] / scale, law.strip[1] / scale))
    cumulants = None if law.cumulants is None else law.cumulants * scale**ORDERS + loc * (ORDERS == 1)
    return CharacteristicFunction(
        lambda t: law.logcf(scale * t),
        (strip[0] or 0.0, strip[1] or 0.0),
        law.sector,
        cumulants,
        loc,
        law.accurate,
    )


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
