"""The posterior of f under noise of any density, at x: by expectation propagation, or by draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from .._typing import FloatArray, RandomState
from ..chaos import ChaosForm
from ..law import LinearCombination
from ..law.mixed import MixedLaw
from ..noise import Noise, as_noise
from ..noise.base import as_generator
from ..noise.level import NoiseLevel
from ..posterior import PredictiveDistribution, Uncertainty
from ..posterior.posterior import observation_scale
from ..posterior.transformed import TransformedDistribution
from ..transform import Transform
from .base import NonlinearPosterior
from .coordinates import DROPPED, Coordinates
from .propagation import GaussianPosterior, Propagation
from .sampling import Draws

__all__ = ["DrawnWeights", "FullDistribution", "FullPosterior", "NormalWeights", "Weights"]

EDGES = np.array(
    [0, 0.0025, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.14, 0.18, 0.22, 0.26, 0.3, 0.35, 0.4, 0.45]
)
EDGES = np.concatenate([EDGES, [0.5], 1 - EDGES[::-1]])
"""Levels between which draws at a query point are replaced by a normal law with their mean and variance."""

Parts = tuple[FloatArray, FloatArray, FloatArray]
"""Means and standard deviations of normal laws at m points, (k, m) each, and their probabilities, (k,)."""


class Weights(Protocol):
    """The posterior of the weights w of the coordinates."""

    @property
    def mean(self) -> FloatArray:
        """Mean of w, (r,)."""

    def covariance(self, phi: FloatArray) -> FloatArray:
        """Covariance of phi'w at the rows of phi, (m, m)."""

    def variance(self, phi: FloatArray) -> FloatArray:
        """Variance of phi'w at the rows of phi, (m,)."""

    def parts(self, phi: FloatArray) -> Parts:
        """The law of phi'w at the rows of phi, as a mixture of normal laws."""

    def rvs(self, size: int, generator: Any) -> FloatArray:
        """Draws of w, (size, r)."""


@dataclass(frozen=True)
class NormalWeights:
    """The weights of expectation propagation: normal."""

    posterior: GaussianPosterior

    @property
    def mean(self) -> FloatArray:
        """Mean of w."""
        return self.posterior.mean

    def _root(self, phi: FloatArray) -> FloatArray:
        return np.asarray(solve_triangular(self.posterior.factor, phi.T, lower=True))

    def covariance(self, phi: FloatArray) -> FloatArray:
        """Covariance of phi'w, (m, m)."""
        root = self._root(phi)
        return np.asarray(root.T @ root)

    def variance(self, phi: FloatArray) -> FloatArray:
        """Variance of phi'w, (m,)."""
        return np.asarray(np.sum(self._root(phi) ** 2, axis=0))

    def parts(self, phi: FloatArray) -> Parts:
        """One normal law."""
        return (phi @ self.mean)[None], np.sqrt(self.variance(phi))[None], np.ones(1)

    def rvs(self, size: int, generator: Any) -> FloatArray:
        """Draws of w, (size, r)."""
        normal = generator.standard_normal((len(self.mean), size))
        away = solve_triangular(self.posterior.factor, normal, lower=True, trans=1)
        return np.asarray(self.mean + away.T)


@dataclass(frozen=True)
class DrawnWeights:
    """Draws of the weights, (N, r), equally likely."""

    draws: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Mean of w."""
        return np.asarray(self.draws.mean(axis=0))

    def covariance(self, phi: FloatArray) -> FloatArray:
        """Covariance of phi'w, (m, m)."""
        centered = (self.draws - self.mean) @ phi.T
        return np.asarray(centered.T @ centered / len(centered))

    def variance(self, phi: FloatArray) -> FloatArray:
        """Variance of phi'w, (m,)."""
        return np.asarray(np.var(self.draws @ phi.T, axis=0))

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


class FullPosterior(NonlinearPosterior):
    """The posterior of f given y, where the noise has a density.

    The variance of f(x) splits by the law of total variance: what would remain if f were known at the data's inputs
    (unexplored inputs), and the rest (noise in the data).

    Parameters
    ----------
    setting, noise, level, transform
        As in :class:`NonlinearPosterior`.
    propagation : Propagation
    weights : Weights
    draws : Draws or None
        What sampling found, with its diagnostics.

    Examples
    --------
    >>> from wienerkernel import WienerKernelRegressor
    >>> model = WienerKernelRegressor(noise="laplace()", inference="ep", trend=None, tuning=None).fit([[0.0]], [1.0])
    >>> parts = model.posterior_.uncertainty(np.array([[0.0], [9.0]]))
    >>> parts.model.round(4).tolist()
    [0.0, 1.0]
    """

    def __init__(
        self,
        setting: str,
        noise: Noise,
        propagation: Propagation,
        weights: Weights,
        draws: Draws | None = None,
        level: NoiseLevel | None = None,
        transform: Transform | None = None,
    ) -> None:
        super().__init__(setting, noise, level, transform)
        self.propagation, self.weights, self.draws = propagation, weights, draws

    @property
    def coordinates(self) -> Coordinates:
        """Coordinates of f."""
        return self.propagation.coordinates

    def mean(self, X: FloatArray) -> FloatArray:
        """Posterior mean of f, (m,)."""
        return self.coordinates.features(X)[0] @ self.weights.mean

    def mean_and_uncertainty(
        self, X: FloatArray, noise_scale: FloatArray | None = None
    ) -> tuple[FloatArray, Uncertainty]:
        """Posterior mean of f and the variances by cause at the rows of X."""
        phi, rest = self.coordinates.features(X)
        variance, model = self.weights.variance(phi), rest
        if self.coordinates.trend.kind:
            known = np.minimum(
                np.sum(solve_triangular(self._known_places, phi.T, lower=True) ** 2, axis=0), variance
            )
            variance, model = variance - known, rest + known
        return phi @ self.weights.mean, Uncertainty(variance, model, self.aleatoric(X, noise_scale))

    @property
    def _known_places(self) -> FloatArray:
        """Cholesky factor of the precision of w if f were known at the places, up to what the coordinates leave out."""
        phi = self.coordinates.phi
        error = 1e5 * DROPPED * float(np.max(self.coordinates.kernel.diag(self.coordinates.places)))
        return np.linalg.cholesky(np.diag(self.coordinates.precision) + phi.T @ phi / error)

    def uncertainty(self, X: FloatArray, noise_scale: FloatArray | None = None) -> Uncertainty:
        """Variances by cause at the rows of X."""
        return self.mean_and_uncertainty(X, noise_scale)[1]

    def mean_and_epistemic(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance of f at the rows of X."""
        phi, rest = self.coordinates.features(X)
        return phi @ self.weights.mean, self.weights.variance(phi) + rest

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean of f, and its covariance at the rows of X, (m, m)."""
        phi = self.coordinates.features(X)[0]
        return phi @ self.weights.mean, self.weights.covariance(phi) + self.coordinates.rest_covariance(X)

    def distribution(
        self,
        X: FloatArray,
        of: str = "function",
        verbose: bool = False,
        noise_scale: FloatArray | None = None,
    ) -> PredictiveDistribution:
        """The random variable ``of`` at the rows of X, on the scale of y."""
        distribution = FullDistribution(self, X, of, verbose, noise_scale)
        return (
            distribution if self.transform is None else TransformedDistribution(distribution, self.transform)
        )


class FullDistribution(PredictiveDistribution):
    """The posterior law of f(x), or of a new observation, with the methods of :class:`PredictiveDistribution`.

    Parameters
    ----------
    posterior : FullPosterior
    X : ndarray of shape (m, d)
    of : {"function", "observation"}
    verbose : bool
    noise_scale : ndarray of shape (m,), default=None
    """

    def __init__(
        self,
        posterior: FullPosterior,
        X: FloatArray,
        of: str,
        verbose: bool = False,
        noise_scale: FloatArray | None = None,
    ) -> None:
        if of not in ("function", "observation"):
            msg = f"of must be 'function' or 'observation' with {posterior.setting}, whose estimate has no law; got {of!r}"
            raise ValueError(msg)
        self.of, self.scale = of, posterior.output_scale
        self._full, self._X = posterior, X
        phi, rest = posterior.coordinates.features(X)
        self.mu = phi @ posterior.weights.mean
        means, stds, probabilities = posterior.weights.parts(phi)
        loc, std = means - self.mu, np.sqrt(stds**2 + rest)
        if of == "function":
            law = LinearCombination(as_noise("norm()"), std[..., None], loc=loc, verbose=verbose)
        else:
            self._fresh = observation_scale(posterior.level, X, noise_scale)
            scale, chances = self._fresh
            probabilities = np.outer(chances, probabilities).ravel()
            shape = (len(probabilities), len(X))
            weights = np.broadcast_to(scale[:, None], (len(scale), *loc.shape)).reshape(shape)[..., None]
            loc, std = (
                np.broadcast_to(part, (len(scale), *part.shape)).reshape(shape) for part in (loc, std)
            )
            law = LinearCombination(posterior.noise, weights, loc=loc, normal_std=std, verbose=verbose)
        self.law: Any = MixedLaw(law, probabilities)

    def rvs(self, size: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draw functions on all of X, (size, m); of observations, each with fresh noise."""
        generator, posterior = as_generator(random_state), self._full
        phi, _ = posterior.coordinates.features(self._X)
        values, vectors = np.linalg.eigh(posterior.coordinates.rest_covariance(self._X))
        draws = posterior.weights.rvs(size, generator) @ phi.T
        draws += generator.standard_normal(draws.shape) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        if self.of == "observation":
            scale, chances = self._fresh
            part = generator.choice(len(scale), size=draws.shape, p=chances)
            scale = scale[part, np.arange(scale.shape[1])]
            draws += scale * posterior.noise.rvs(draws.shape, random_state=generator)
        return draws

    def chaos(self) -> ChaosForm:
        """Raise an error: the chaos form is that of an estimate that is linear in y."""
        return self._full.chaos(self._X)  # type: ignore[no-any-return]
