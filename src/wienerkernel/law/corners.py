"""Characteristic functions at high frequencies: what the singular points of the density contribute.

If the density beside a singular point c is f(c + l) = sum_m g_m l^(p - 1 + m d), then for large t

    phi(t) = sum_c e^{itc} A_c(t),    A_c(t) = sum_m g_m Gamma(p + m d) (-it)^-(p + m d),

and each A_c continues analytically to complex t, where the sum as a whole grows (Erdelyi's lemma; see Olver,
Asymptotics and special functions, 1974, section 3.13). The exponents and coefficients come from a fit to log f, and
the sum is held against phi itself before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gamma

from .._typing import ComplexArray, FloatArray
from ..noise import Mixture, Noise
from ..noise.characteristic.quadrature import chebyshev

__all__ = ["Corners", "components", "corners"]

DEGREE, POINTS = 18, 48
"""Degree of the fit to log f - (p - 1) log l, and its points."""
GOOD, USABLE = 1e-13, 2e-12
"""Largest residual of the fit that needs no other interval, and that is accepted at all: relative errors of A_c."""
ROUNDED = 1e-3
"""Distance from a point other than 0, in lengths of the interval, below which l is rounded too coarsely."""
HALVINGS = 12
"""Intervals that are tried, each half as long as the one before: phi follows its corners at frequencies beyond 1/length."""
TOLERANCES = 1e-14, 1e-13, 1e-12, 1e-11
"""Errors of the sum over corners that are tried in turn."""
PROBES, DECADES = 8, 7
"""Frequencies at which it is held against phi: per decade, and decades from 1 on, in standard deviations."""
AGREED = 12
"""Consecutive probes that have to agree."""
MOST = 64
"""Corners of one law at most."""
_V = 0.5 * (1 - np.cos((np.arange(POINTS) + 0.5) * np.pi / POINTS))
_TO_POWERS = chebyshev(2 * DEGREE + 1)[2][::2, ::2]  # on [0, 1], where T_k(2 v - 1) = T_2k(sqrt v)


@dataclass(frozen=True)
class Corners:
    """Singular points of a law, and the terms a t^-e of what each contributes to phi(t).

    ``location``, of shape (K,), may repeat a point for its two sides. The exponents of a side are an arithmetic
    progression that starts with ``exponent`` and has the increment ``step``, each of shape (K,); ``coefficient`` has
    the shape (DEGREE + 1, K). The sum has an absolute error of at most ``error`` from the frequency ``start`` on.
    """

    noise: Noise
    location: FloatArray
    exponent: FloatArray
    step: FloatArray
    coefficient: ComplexArray
    start: float = np.inf
    error: float = np.inf

    def amplitude(self, t: NDArray[Any]) -> tuple[FloatArray, ComplexArray]:
        """Different locations c, and A_c(t) of shape (locations, n), at ``t`` of shape (n,) in the right half-plane."""
        log_t = np.log(t.astype(complex))
        ratio = np.exp(-self.step[:, None] * log_t)
        total = np.zeros(ratio.shape, dtype=complex)
        for coefficient in self.coefficient[::-1]:  # Horner
            total *= ratio
            total += coefficient[:, None]
        total *= np.exp(-self.exponent[:, None] * log_t)
        location, first = np.unique(self.location, return_index=True)
        return location, np.add.reduceat(total, first, axis=0)

    def phi(self, t: FloatArray) -> ComplexArray:
        """The characteristic function at positive ``t`` of shape (n,)."""
        result = np.empty(t.shape, dtype=complex)
        far = t >= self.start
        result[~far] = np.exp(self.noise.logcf(t[~far]))
        location, amplitude = self.amplitude(t[far])
        result[far] = np.sum(np.exp(1j * location[:, None] * t[far]) * amplitude, axis=0)
        return result


def components(noise: Noise) -> list[tuple[float, Noise]]:
    """Probabilities and laws that a law is a mixture of: one, unless it is a mixture."""
    return noise.flattened() if isinstance(noise, Mixture) else [(1.0, noise)]


@lru_cache(maxsize=64)
def corners(noise: Noise) -> Corners | None:
    """The corners of a law; None if their sum does not become phi at any frequency that is probed."""
    sides: list[tuple[float, float, float, NDArray[Any]]] = []
    for probability, law in components(noise):
        if law.discrete:
            values, mass = law.atoms()
            rest = np.zeros(DEGREE)
            sides += [
                (x, 0.0, 1.0, np.append(probability * p, rest)) for x, p in zip(values, mass, strict=True)
            ]
            continue
        points, std, ends = law.singular_points(), law.std(), law.support()
        if len(points) > MOST:
            return None
        for point in points:
            gap = np.abs(points - point)
            room = min(2 * std, float(np.min(gap, initial=np.inf, where=gap > 0)))
            for sign in (-1.0, 1.0):
                if point == ends[int(sign > 0)]:
                    continue
                expansion = _expansion(law, float(point), sign, room)
                if expansion is None:
                    return None
                exponent, step, coefficient = expansion
                phase = np.exp(0.5j * np.pi * sign * (exponent + step * np.arange(DEGREE + 1)))
                sides.append((float(point), exponent, step, probability * phase * coefficient))
    if len(sides) > 2 * MOST:
        return None
    sides = sorted(sides, key=lambda side: side[0]) or [(0.0, 0.0, 1.0, np.zeros(DEGREE + 1))]
    location, first, increment, coefficients = (np.array(part) for part in zip(*sides, strict=True))
    return _checked(Corners(noise, location, first, increment, coefficients.T.astype(complex)))


def _checked(known: Corners) -> Corners | None:
    """The same, with the frequency from which the sum is phi."""
    noise, every = known.noise, replace(known, start=0.0)
    t = 10.0 ** (np.arange(PROBES * DECADES) / PROBES) / noise.std()
    t *= np.random.default_rng(0).uniform(0.9, 1.1, len(t))  # no common period
    error = np.empty(0)
    for last in range(2 * PROBES, len(t) + 1, PROBES):  # no farther than needed: phi may be costly there
        part = t[len(error) : last]
        with np.errstate(all="ignore"):
            error = np.append(error, np.abs(every.phi(part) - np.exp(noise.logcf(part))))
        for tolerance in TOLERANCES[: 1 if last < len(t) else None]:
            agreed = np.convolve(error < tolerance, np.ones(AGREED), "valid") == AGREED
            if agreed.any():
                first = int(np.argmax(agreed))
                largest = float(np.max(error[first : first + AGREED]))
                return replace(known, start=float(t[first]), error=largest)
    return None


def _expansion(law: Noise, point: float, sign: float, room: float) -> tuple[float, float, FloatArray] | None:
    """p, d and g_m Gamma(p + m d) of the density f(point + sign l) = sum_m g_m l^(p - 1 + m d)."""
    lengths = room * 0.5 ** np.arange(1, HALVINGS + 1)
    residual, series, length, step = _best(law, point, sign, product(lengths, (1.0, 0.5)))
    if residual > USABLE and point == 0:
        step = _second_exponent(law, sign, room)
        if not 0.02 < step < 4:
            return None
        trials = ((length, _refined(law, sign, length, step)) for length in lengths)
        residual, series, length, step = _best(law, point, sign, trials)
    if residual > USABLE:
        return None
    power = float(np.rint(series[0])) if abs(series[0] - np.rint(series[0])) < 1e-11 else float(series[0])
    # powers of v = (l / length)^step -> powers of the exponential of the sum
    in_v = series[1:] @ _TO_POWERS
    slope = np.arange(DEGREE + 1) * in_v
    g = np.zeros(DEGREE + 1)
    g[0] = np.exp(in_v[0])
    for m in range(1, DEGREE + 1):
        g[m] = np.dot(slope[1 : m + 1], g[m - 1 :: -1]) / m
    exponent = power + 1 + step * np.arange(DEGREE + 1)
    return power + 1, step, g * gamma(exponent) * length ** (1 - exponent)


def _best(
    law: Noise, point: float, sign: float, trials: Iterable[tuple[float, float]]
) -> tuple[float, FloatArray, float, float]:
    """Residual and series of the best fit, and its length and step; no further than the first good one."""
    fits = []
    for length, step in trials:
        fits.append((*_fit(law, point, sign, length, step), length, step))
        if fits[-1][0] < GOOD:
            break
    return min(fits, key=lambda fit: fit[0])


def _refined(law: Noise, sign: float, length: float, step: float) -> float:
    """The step, close to this one, with the smallest residual at the point 0."""
    found = minimize_scalar(
        lambda step: np.log(_fit(law, 0.0, sign, length, step)[0] + 1e-17),
        bounds=(0.999 * step, 1.001 * step),
        method="bounded",
        options={"xatol": 1e-13},
    )
    return float(found.x)


def _fit(law: Noise, point: float, sign: float, length: float, step: float) -> tuple[float, FloatArray]:
    """Largest residual of log f = q log l + a polynomial in l^step on (0, length), and q with its coefficients."""
    start = ROUNDED**step if point else 0.0
    v = start + (1 - start) * _V
    relative = v ** (1 / step)
    with np.errstate(all="ignore"):
        log_f = np.log(law.pdf_near(point, sign * length * relative))
    if not np.all(np.isfinite(log_f)):
        return np.inf, np.zeros(DEGREE + 2)
    # in units of the length, so that the powers below are those of l / length
    basis = np.column_stack([np.log(relative), np.polynomial.chebyshev.chebvander(2 * v - 1, DEGREE)])
    series = np.linalg.lstsq(basis, log_f, rcond=1e-15)[0]
    return float(np.max(np.abs(basis @ series - log_f))), series


def _second_exponent(law: Noise, sign: float, room: float) -> float:
    """The exponent d in log f = a + q log l + b l^d + ... from densities very close to 0."""
    l = room * 10.0 ** -np.append(np.arange(60.0), [150.0, 200.0])
    with np.errstate(all="ignore"):
        log_f = np.log(law.pdf_near(0.0, sign * l))
        slope = (log_f[-2] - log_f[-1]) / (50 * np.log(10))
        rest = np.abs(log_f[:-3] - log_f[1:-2] - slope * np.log(10))
        small = np.flatnonzero(rest < 1e-6)
        if not len(small) or small[0] < 2:
            return np.nan
        return float(np.log10(rest[small[0] - 2] / rest[small[0] - 1]))
