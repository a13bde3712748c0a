"""Recorded residuals as noise with a density: a kernel density estimate."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from .._typing import ComplexArray, FloatArray, RandomState
from .base import Noise, as_generator
from .characteristic.characteristic_function import by_chunks
from .residuals import Residuals

__all__ = ["SmoothedResiduals"]


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


def _silverman(values: FloatArray) -> float:
    quartiles = np.quantile(values, [0.25, 0.75])
    spread = min(float(values.std()), float(quartiles[1] - quartiles[0]) / 1.34) or float(values.std())
    return float(0.9 * spread * len(values) ** -0.2)
