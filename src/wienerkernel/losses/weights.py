"""Laws of the weights w of the coordinates, and of f(x) = phi(x)'w + rest and new observations under them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from .._typing import FloatArray
from ..law import LinearCombination
from ..law.mixed import MixedLaw
from ..noise import Noise, Residuals, as_noise
from ..noise.level import Nodes

__all__ = ["DrawnWeights", "InfluenceWeights", "NormalWeights", "Weights", "normal_mixture"]

EDGES = np.array(
    [0, 0.0025, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.14, 0.18, 0.22, 0.26, 0.3, 0.35, 0.4, 0.45]
)
EDGES = np.concatenate([EDGES, [0.5], 1 - EDGES[::-1]])
"""Levels between which draws at a query point are replaced by a normal law with their mean and variance."""

Parts = tuple[FloatArray, FloatArray, FloatArray]
"""Means and standard deviations of normal laws at m points, (k, m) each, and their probabilities, (k,)."""


class Weights(ABC):
    """The law of the weights w of the coordinates, whose ``mean`` has shape (r,)."""

    mean: FloatArray

    @abstractmethod
    def root(self, phi: FloatArray) -> FloatArray:
        """R with R'R the covariance of phi'w at the rows of phi, (k, m)."""

    def covariance(self, phi: FloatArray) -> FloatArray:
        """Covariance of phi'w at the rows of phi, (m, m)."""
        root = self.root(phi)
        return np.asarray(root.T @ root)

    def variance(self, phi: FloatArray) -> FloatArray:
        """Variance of phi'w at the rows of phi, (m,)."""
        return np.asarray(np.sum(self.root(phi) ** 2, axis=0))

    def parts(self, phi: FloatArray) -> Parts:
        """The law of phi'w at the rows of phi as a mixture of normal laws."""
        return (phi @ self.mean)[None], np.sqrt(self.variance(phi))[None], np.ones(1)

    def law(
        self, phi: FloatArray, normal_std: FloatArray, noise: Noise | None, scale: Nodes, verbose: bool
    ) -> LinearCombination | MixedLaw:
        """The law of phi'w + N(0, normal_std^2) + scale M at the rows of phi, (m,); without M if noise is None."""
        return normal_mixture(self.parts(phi), normal_std, noise, scale, verbose)

    @abstractmethod
    def rvs(self, size: int, generator: Any) -> FloatArray:
        """Draws of w, (size, r)."""


@dataclass(frozen=True)
class NormalWeights(Weights):
    """Normal with covariance (CC')^-1."""

    factor: FloatArray
    mean: FloatArray

    def root(self, phi: FloatArray) -> FloatArray:
        """C^-1 phi."""
        return np.asarray(solve_triangular(self.factor, phi.T, lower=True))

    def spread(self, normal: FloatArray) -> FloatArray:
        """Standard normal numbers, (N, r), with the covariance of w."""
        return np.asarray(solve_triangular(self.factor, normal.T, lower=True, trans=1).T)

    def rvs(self, size: int, generator: Any) -> FloatArray:
        """Draws of w, (size, r)."""
        return self.mean + self.spread(generator.standard_normal((len(self.mean), size)).T)


class DrawnWeights(Weights):
    """Draws of the weights, (N, r), equally likely."""

    def __init__(self, draws: FloatArray) -> None:
        self.draws = np.ascontiguousarray(draws)  # as it is after loading
        self.mean: FloatArray = self.draws.mean(axis=0)

    def root(self, phi: FloatArray) -> FloatArray:
        """Deviations of the draws."""
        return np.asarray((self.draws - self.mean) @ phi.T / np.sqrt(len(self.draws)))

    def parts(self, phi: FloatArray) -> Parts:
        """Draws between neighboring quantiles, each group as a normal law with its mean and variance."""
        values = np.sort(self.draws @ phi.T, axis=0)
        n = len(values)
        first = np.unique(np.round(EDGES * n).astype(int))
        sizes = np.diff(first)[:, None]
        means = np.add.reduceat(values, first[:-1], axis=0) / sizes
        away = values - np.repeat(means, sizes[:, 0], axis=0)
        variances = np.add.reduceat(away**2, first[:-1], axis=0) / sizes
        return means, np.sqrt(variances), sizes[:, 0] / n

    def rvs(self, size: int, generator: Any) -> FloatArray:
        """Some of the draws, without repetition as far as possible, (size, r)."""
        rounds = -(-size // len(self.draws))
        order = np.concatenate([generator.permutation(len(self.draws)) for _ in range(rounds)])
        return np.asarray(self.draws[order[:size]])


@dataclass(frozen=True)
class InfluenceWeights(Weights):
    """The estimate minus sum_i z_i psi(M_i - c) / h, its law to first order, where ``psi`` is that of psi(M - c) / h.

    The ``slopes`` z_i, (r, n), are the derivatives of the estimate by the samples.
    """

    mean: FloatArray
    slopes: FloatArray
    psi: Residuals

    def root(self, phi: FloatArray) -> FloatArray:
        """Weights of the psi, which have mean 0, in units of their standard deviation."""
        return np.asarray(self.psi.std() * (phi @ self.slopes).T)

    def law(
        self, phi: FloatArray, normal_std: FloatArray, noise: Noise | None, scale: Nodes, verbose: bool
    ) -> LinearCombination | MixedLaw:
        """Exact linear combinations."""
        loc, a = phi @ self.mean, -phi @ self.slopes
        if noise is None:
            return LinearCombination(self.psi, a, loc=loc, normal_std=normal_std, verbose=verbose)
        scales, chances = scale
        weights = [np.broadcast_to(a, (len(scales), *a.shape)), scales[..., None]]
        law = LinearCombination([self.psi, noise], weights, loc=loc, normal_std=normal_std, verbose=verbose)
        return MixedLaw(law, chances)

    def rvs(self, size: int, generator: Any) -> FloatArray:
        """Draws of w, (size, r)."""
        psi = self.psi.rvs((size, self.slopes.shape[1]), random_state=generator)
        return np.asarray(self.mean - psi @ self.slopes.T)


def normal_mixture(
    parts: Parts, normal_std: FloatArray, noise: Noise | None, scale: Nodes, verbose: bool
) -> MixedLaw:
    """The mixture of the parts, each with the normal part, and with noise of each of the scales."""
    means, stds, probabilities = parts
    std = np.sqrt(stds**2 + normal_std**2)
    if noise is None:
        law = LinearCombination(as_noise("norm()"), std[..., None], loc=means, verbose=verbose)
        return MixedLaw(law, probabilities)
    scales, chances = scale
    probabilities = np.outer(chances, probabilities).ravel()
    shape = (len(probabilities), means.shape[1])
    weights = np.broadcast_to(scales[:, None], (len(scales), *means.shape)).reshape(shape)[..., None]
    means, std = (np.broadcast_to(part, (len(scales), *part.shape)).reshape(shape) for part in (means, std))
    law = LinearCombination(noise, weights, loc=means, normal_std=std, verbose=verbose)
    return MixedLaw(law, probabilities)
