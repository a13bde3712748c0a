"""A predictive distribution on the scale of y, where the model holds for T(y)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from ..chaos import ChaosForm
from ..law.derived import shortest
from ..law.mixed import MixedLaw
from ..noise.base import moments_from_cumulants
from ..transform import Transform
from .distribution import PredictiveDistribution

__all__ = ["TransformedDistribution"]

NODES = 4  # nodes of the rule for moments, which needs cumulants up to order 8
NORMAL_NODES = 32  # of the rule for the normal part
ROUNDING = 1e-12  # fraction of the variance below which what is not normal is a rounding error


class TransformedDistribution(PredictiveDistribution):
    """The law of y at m query points, where T(y) has the law ``base``; with the names and broadcasting of ``scipy.stats``.

    Distribution function, quantiles, density and draws are transformed exactly. Mean and variance come from Gauss
    rules, of 32 nodes for the normal part, and of four nodes with the first seven moments for the rest; each part of a
    mixture has rules of its own. The value of f, ``of="function"``, is T^-1(f(x)) here.
    """

    def __init__(self, base: Any, transform: Transform) -> None:
        self.base, self.transform = base, transform
        self.of, self.law, self.scale, self.mu = base.of, base.law, base.scale, base.mu

    def pdf(self, y: ArrayLike, **options: Any) -> Any:
        z, slope = self.transform.forward(y), np.exp(self.transform.log_slope(y))
        result = self.base.pdf(np.where(np.isfinite(z), z, 0.0), **options)
        return tuple(part * slope for part in result) if isinstance(result, tuple) else result * slope

    def logpdf(self, y: ArrayLike, **options: Any) -> Any:
        z = self.transform.forward(y)
        inside = np.isfinite(z)
        value = self.base.logpdf(np.where(inside, z, 0.0), **options)
        return np.where(inside, value, -np.inf) + self.transform.log_slope(y)

    def cdf(self, y: ArrayLike, **options: Any) -> Any:
        return self.base.cdf(self.transform.forward(y), **options)

    def sf(self, y: ArrayLike, **options: Any) -> Any:
        return self.base.sf(self.transform.forward(y), **options)

    def _back(self, result: Any) -> Any:
        if isinstance(result, tuple):
            return self.transform.inverse(result[0]), result[1]
        return self.transform.inverse(result)

    def ppf(self, q: ArrayLike, **options: Any) -> Any:
        return self._back(self.base.ppf(q, **options))

    def isf(self, q: ArrayLike, **options: Any) -> Any:
        return self._back(self.base.isf(q, **options))

    def hdi(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        return shortest(self.ppf, self.isf, np.asarray(confidence, dtype=float), self.shape)

    def rvs(self, size: int = 1, random_state: RandomState = None) -> FloatArray:
        return self.transform.inverse(self.base.rvs(size, random_state))

    @cached_property
    def _rule(self) -> tuple[FloatArray, FloatArray]:
        """Nodes on the scale of T(y) and weights of a Gauss rule for the law, each (*shape, k)."""
        law, mixed = self.base.law, isinstance(self.base.law, MixedLaw)
        nodes, weights = rule_of(law.law if mixed else law)
        if mixed:
            nodes, weights = np.moveaxis(nodes, 0, -1), np.moveaxis(weights, 0, -1) * law.probabilities
            nodes, weights = (values.reshape(*law.shape, -1) for values in (nodes, weights))
        scale = np.broadcast_to(self.base.scale, law.shape)[..., None]
        return self.base.mean()[..., None] + scale * (nodes - law.mean()[..., None]), weights

    def _central(self, order: int) -> FloatArray:
        """Central moment, by a Gauss rule from the exact cumulants."""
        nodes, weights = self._rule
        away = self.transform.inverse(nodes) - self.mean()[..., None]
        return np.asarray(np.sum(weights * away**order, axis=-1))

    def mean(self) -> FloatArray:
        nodes, weights = self._rule
        return np.asarray(np.sum(weights * self.transform.inverse(nodes), axis=-1))

    def var(self) -> FloatArray:
        return self._central(2)

    def skewness(self) -> FloatArray:
        return self._central(3) / self.std() ** 3

    def kurtosis(self) -> FloatArray:
        return self._central(4) / self.var() ** 2 - 3

    def cumulant(self, order: int) -> FloatArray:
        """Cumulant of order 1, 2 or 3."""
        if not 1 <= order <= 3:
            raise ValueError(f"with a transform, cumulants have order 1, 2 or 3, got {order!r}")
        return self.mean() if order == 1 else self._central(order)

    def chaos(self) -> ChaosForm:
        """Raise ValueError: the estimate is linear in the noise on the transformed scale only."""
        raise ValueError(
            "with a transform, the estimate of y is not linear in the noise: use the chaos form of .base"
        )


def rule_of(law: Any) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights (..., k) of a Gauss rule for a batch of laws: of their normal part, and of the rest."""
    mean, std, total = law.mean(), law.normal_std, law.var()
    rest = total - std**2
    rest = np.where(rest > ROUNDING * total, rest, 0.0)
    unit = np.sqrt(np.where(rest > 0, rest, 1.0))
    higher = [np.where(rest > 0, law.cumulant(order) / unit**order, 0.0) for order in range(3, 2 * NODES + 1)]
    if not np.any(higher):
        nodes, weights, std = mean[..., None], np.ones((*law.shape, 1)), np.sqrt(total)
    else:
        moments = moments_from_cumulants([np.zeros(law.shape), np.ones(law.shape), *higher])
        nodes, weights = gauss_rule(mean, np.sqrt(rest), [np.ones(law.shape), *moments])
    if not np.any(std):
        return nodes, weights
    points, chances = np.polynomial.hermite_e.hermegauss(NORMAL_NODES)
    nodes = nodes[..., None] + std[..., None, None] * points
    weights = weights[..., None] * (chances / chances.sum())
    return nodes.reshape(*law.shape, -1), weights.reshape(*law.shape, -1)


def gauss_rule(mean: FloatArray, std: FloatArray, moments: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Gauss rules (..., k) of laws with these means, standard deviations and standardized moments: nodes and weights.

    The number of moments is at least 2k + 1; those that do not exist are left out.
    """
    for k in range((len(moments) - 1) // 2, 1, -1):
        # Golub and Welsch: the Cholesky factor of the Hankel matrix of the moments has the recurrence coefficients
        hankel = np.stack([np.stack(moments[i : i + k + 1], axis=-1) for i in range(k + 1)], axis=-2)
        if not np.all(np.isfinite(hankel)):
            continue
        try:
            upper = np.swapaxes(np.linalg.cholesky(hankel), -1, -2)
        except np.linalg.LinAlgError:
            continue
        diagonal = np.diagonal(upper, axis1=-2, axis2=-1)
        ratio = np.diagonal(upper, 1, axis1=-2, axis2=-1) / diagonal[..., :-1]
        alpha = ratio - np.concatenate([np.zeros_like(ratio[..., :1]), ratio[..., :-1]], axis=-1)
        beta = diagonal[..., 1:-1] / diagonal[..., :-2]
        jacobi = np.zeros((*np.shape(mean), k, k))
        index = np.arange(k)
        jacobi[..., index, index] = alpha
        jacobi[..., index[:-1], index[1:]] = jacobi[..., index[1:], index[:-1]] = beta
        nodes, vectors = np.linalg.eigh(jacobi)
        return mean[..., None] + std[..., None] * nodes, vectors[..., 0, :] ** 2
    both = np.array([-1.0, 1.0])
    return mean[..., None] + std[..., None] * both, np.full((*np.shape(mean), 2), 0.5)
