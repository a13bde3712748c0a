"""Expected improvement on the best value so far."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from .._typing import FloatArray
from ..law import LinearCombination
from ..law.quantile import wilson_hilferty
from ..posterior import PredictiveDistribution

__all__ = ["expected_improvement", "normal_improvement"]

NODES = 32


def expected_improvement(
    distribution: PredictiveDistribution, best: float, objective: str = "max"
) -> FloatArray:
    """Expected improvement E max(F - best, 0), or E max(best - F, 0) for a minimum, from the exact law of F, (m,).

    In closed form where F is normal, otherwise by integrating its tail, which is extrapolated exponentially beyond about
    the quantile 1e-4: the error is at most about 1e-4 standard deviations.
    """
    sign = 1.0 if objective == "max" else -1.0
    mean, std = distribution.mean(), distribution.std()
    law = distribution.law
    if isinstance(law, LinearCombination) and all(noise.gaussian for noise, _, _ in law.terms):
        return normal_improvement(sign * (mean - best), std)
    # E max(F - b, 0) - E max(b - F, 0) = mean - b: the shorter of the two tails is integrated
    up = best >= mean
    side = np.where(up, 1.0, -1.0)
    stop = mean + side * _reach(distribution, side)
    stop = np.where(up, np.maximum(stop, best), np.minimum(stop, best))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    # where the stop is at the best value, the nodes have weight 0; the mean is the cheapest point to evaluate
    y = np.where(stop == best, mean, best + (nodes[:, None] + 1) / 2 * (stop - best))
    tail = weights @ np.where(up, distribution.sf(y), distribution.cdf(y)) * np.abs(stop - best) / 2
    rest, density = np.where(up, distribution.sf(stop), distribution.cdf(stop)), distribution.pdf(stop)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail += np.where(density > 0, rest**2 / density, 0.0)
    return np.asarray(tail + np.where(up == (sign > 0), 0.0, sign * (mean - best)))


def _reach(distribution: PredictiveDistribution, side: FloatArray) -> FloatArray:
    """Approximate distance from the mean to the outermost 1e-4 of the law."""
    law, z = distribution.law, 3.72
    normal = law.normal_std**2 if isinstance(law, LinearCombination) else 0.0
    noise = np.maximum(law.var() - normal, np.finfo(float).tiny)
    skewness = side * np.nan_to_num(law.cumulant(3)) / noise**1.5
    reach = np.clip(wilson_hilferty(np.asarray(z), skewness), 0.5, 12.0)
    return np.asarray(np.sqrt(z**2 * normal + reach**2 * noise))


def normal_improvement(excess: FloatArray, std: FloatArray) -> FloatArray:
    """Expected improvement of normal variables of mean ``excess``: std (z Phi(z) + phi(z))."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = excess / std
        improvement = excess * ndtr(z) + std * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(np.where(std > 0, improvement, np.maximum(excess, 0.0)))
