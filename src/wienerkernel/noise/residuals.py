"""Recorded residuals as noise: their empirical law, and a kernel density estimate, which has a density."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log1p, ndtr

from .._typing import ComplexArray, FloatArray, RandomState
from .base import Noise, as_generator, cumulants_from_moments
from .characteristic.characteristic_function import by_chunks
from .identity import digest

__all__ = ["Residuals", "SmoothedResiduals", "log_mixture", "probabilities"]


class Residuals(Noise):
    """The empirical law of recorded residuals, each equally likely unless weighted.

    Parameters
    ----------
    values : array-like of shape (n,)
        At least two different finite numbers.
    weights : array-like of shape (n,), optional
        Non-negative; normalized to sum 1.

    Examples
    --------
    >>> noise = Residuals([-1.0, 0.0, 0.0, 1.0])
    >>> noise.mean(), noise.var()
    (0.0, 0.5)
    """

    discrete = True

    def __init__(self, values: ArrayLike, weights: ArrayLike | None = None) -> None:
        x = np.asarray(values, dtype=float)
        if x.ndim != 1 or not np.all(np.isfinite(x)):
            msg = f"residuals must be a one-dimensional array of finite numbers, got shape {x.shape}"
            raise ValueError(msg)
        p = probabilities(np.ones(len(x)) if weights is None else weights, len(x)) if len(x) else np.ones(0)
        self.values, inverse = np.unique(x, return_inverse=True)
        self.weights = np.bincount(inverse, weights=p).astype(np.float64)
        if np.count_nonzero(self.weights) < 2:
            msg = "residuals must contain at least two different values, or the noise has no variance"
            raise ValueError(msg)
        self._mean = float(self.values @ self.weights)
        self._cumulative = np.minimum(np.cumsum(self.weights), 1.0)
        self._cumulative[-1] = 1.0
        self._survival = np.append(np.cumsum(self.weights[::-1])[::-1][1:], 0.0)
        self.values.flags.writeable = self.weights.flags.writeable = False

    def _made_of(self) -> tuple[Hashable, ...]:
        return (digest(self.values, self.weights),)

    def __repr__(self) -> str:
        return f"<Residuals: {len(self.values)} values, mean {self.mean():.4g}, std {self.std():.4g}>"

    def atoms(self) -> tuple[FloatArray, FloatArray]:
        kept = self.weights > 0
        return self.values[kept], self.weights[kept]

    def cumulants(self, order: int = 8) -> FloatArray:
        centered = self.values - self._mean
        return cumulants_from_moments(self._mean, [centered**r @ self.weights for r in range(2, order + 1)])

    def logcf(self, t: ArrayLike) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        centered = self.values - self._mean
        flat = by_chunks(lambda t: log_mixture(self.weights, 1j * t[:, None] * centered), len(centered), t)
        return flat + 1j * self._mean * t

    def sector(self) -> float:
        return np.pi / 2

    def pdf(self, x: ArrayLike) -> FloatArray:  # noqa: ARG002
        raise TypeError("recorded residuals are discrete and have no density")

    def cdf(self, x: ArrayLike) -> FloatArray:
        position = np.searchsorted(self.values, x, side="right")
        return np.where(position == 0, 0.0, self._cumulative[position - 1])

    def sf(self, x: ArrayLike) -> FloatArray:
        position = np.searchsorted(self.values, x, side="right")
        return np.where(position == 0, 1.0, self._survival[position - 1])

    def ppf(self, q: ArrayLike) -> FloatArray:
        q = np.asarray(q, dtype=float)
        index = np.searchsorted(self._cumulative[:-1], q, side="left")
        return np.where((q >= 0) & (q <= 1), self.values[index], np.nan)

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        uniform = as_generator(random_state).uniform(size=size)
        return np.asarray(self.values[np.searchsorted(self._cumulative, uniform, side="right")])

    def support(self) -> tuple[float, float]:
        return float(self.values[0]), float(self.values[-1])


class SmoothedResiduals(Noise):
    """The empirical law of residuals smoothed by a Gaussian kernel: a kernel density estimate.

    Parameters
    ----------
    values : array-like of shape (n,)
        At least two different finite numbers.
    bandwidth : float, default=None
        Standard deviation of the Gaussian kernel. None is Silverman's rule, 0.9 min(std, iqr / 1.34) n^(-1/5).

    Examples
    --------
    >>> noise = SmoothedResiduals([-1.0, 1.0], bandwidth=0.5)
    >>> noise.var(), round(float(noise.cdf(0.0)), 12)
    (1.25, 0.5)
    """

    def __init__(self, values: ArrayLike, bandwidth: float | None = None) -> None:
        self.residuals = Residuals(values)
        self.bandwidth = (
            _silverman(np.asarray(values, dtype=float)) if bandwidth is None else float(bandwidth)
        )
        if not (np.isfinite(self.bandwidth) and self.bandwidth > 0):
            raise ValueError(f"bandwidth must be positive and finite, got {bandwidth!r}")

    def _made_of(self) -> tuple[Hashable, ...]:
        return self.residuals, self.bandwidth

    def __repr__(self) -> str:
        n = len(self.residuals.values)
        return f"<SmoothedResiduals: {n} values, mean {self.mean():.4g}, std {self.std():.4g}>"

    def standardized(self, std: float) -> SmoothedResiduals:
        """The same shape with mean 0 and this standard deviation."""
        factor = std / self.std()
        scaled = SmoothedResiduals.__new__(SmoothedResiduals)
        scaled.residuals = Residuals((self.residuals.values - self.mean()) * factor, self.residuals.weights)
        scaled.bandwidth = self.bandwidth * factor
        return scaled

    def cumulants(self, order: int = 8) -> FloatArray:
        kappa = self.residuals.cumulants(order)
        if order >= 2:
            kappa[1] += self.bandwidth**2
        return kappa

    def logcf(self, t: ArrayLike) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        return np.asarray(self.residuals.logcf(t) - 0.5 * (self.bandwidth * t) ** 2)

    def strip(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def _average(self, function: Callable[[FloatArray], Any], x: ArrayLike) -> FloatArray:
        """Mean over the residuals of a function of their distances to x, in bandwidths."""
        values, weights = self.residuals.values, self.residuals.weights
        return by_chunks(
            lambda x: function((x[:, None] - values) / self.bandwidth) @ weights,
            len(values),
            np.asarray(x, dtype=float),
        )

    def pdf(self, x: ArrayLike) -> FloatArray:
        density = self._average(lambda z: np.exp(-0.5 * z * z), x)
        return np.asarray(density / (np.sqrt(2 * np.pi) * self.bandwidth))

    def cdf(self, x: ArrayLike) -> FloatArray:
        return self._average(ndtr, x)

    def sf(self, x: ArrayLike) -> FloatArray:
        return self._average(lambda z: ndtr(-z), x)

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        generator = as_generator(random_state)
        draws = self.residuals.rvs(size, random_state=generator)
        return np.asarray(draws + self.bandwidth * generator.standard_normal(draws.shape))

    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf


def log_mixture(probabilities: FloatArray, exponents: ComplexArray) -> ComplexArray:
    """Logarithm of sum_k p_k exp(z_k) over the last axis, with relative accuracy where all z_k are small."""
    small = np.max(np.abs(exponents), axis=-1, initial=0.0) < 0.5
    top = np.max(exponents.real, axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        result = np.asarray(np.log(np.exp(exponents - top) @ probabilities) + top[..., 0])
    result[small] = log1p(np.expm1(exponents[small]) @ probabilities)
    return result


def probabilities(weights: ArrayLike, n: int) -> FloatArray:
    """Weights of shape (n,), checked and normalized to sum 1."""
    p = np.asarray(weights, dtype=float)
    if n == 0 or p.shape != (n,) or not np.all(np.isfinite(p)) or np.any(p < 0) or p.sum() == 0:
        msg = f"weights must be {n} non-negative numbers with a positive sum, got {np.asarray(weights)!r}"
        raise ValueError(msg)
    return np.asarray(p / p.sum())


def _silverman(values: FloatArray) -> float:
    quartiles = np.quantile(values, [0.25, 0.75])
    spread = min(float(values.std()), float(quartiles[1] - quartiles[0]) / 1.34) or float(values.std())
    return float(0.9 * spread * len(values) ** -0.2)
