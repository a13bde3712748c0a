"""Models in coordinates, f(x) = phi(x)'w + rest: the law of w, and what follows from it at x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from .._typing import FloatArray
from ..chaos import ChaosForm
from ..law import LinearCombination
from ..law.mixed import MixedLaw
from ..noise import Noise, as_noise
from ..noise.level import Level, Nodes, level_nodes, observation_scale
from ..posterior import PredictiveDistribution, Uncertainty
from ..posterior.posterior import PosteriorMethods
from .base import NonlinearPosterior
from .coordinates import DROPPED, Coordinates, Observed
from .propagation import GaussianPosterior, Propagation
from .sampling import Draws

__all__ = [
    "CoordinatePosterior",
    "DrawnWeights",
    "FullPosterior",
    "NonlinearDistribution",
    "NormalWeights",
    "Weights",
]

EDGES = np.array(
    [0, 0.0025, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.14, 0.18, 0.22, 0.26, 0.3, 0.35, 0.4, 0.45]
)
EDGES = np.concatenate([EDGES, [0.5], 1 - EDGES[::-1]])
"""Levels between which draws at a query point are replaced by a normal law with their mean and variance."""

AnyLaw = LinearCombination | MixedLaw
Parts = tuple[FloatArray, FloatArray, FloatArray]
"""Means and standard deviations of normal laws at m points, (k, m) each, and their probabilities, (k,)."""


class Weights(Protocol):
    """The law of the weights w of the coordinates."""

    @property
    def mean(self) -> FloatArray:
        """Mean of w, (r,)."""

    def covariance(self, phi: FloatArray) -> FloatArray:
        """Covariance of phi'w at the rows of phi, (m, m)."""

    def variance(self, phi: FloatArray) -> FloatArray:
        """Variance of phi'w at the rows of phi, (m,)."""

    def law(
        self, phi: FloatArray, normal_std: FloatArray, noise: Noise | None, scale: Nodes, verbose: bool
    ) -> AnyLaw:
        """The law of phi'w + N(0, normal_std^2) + scale M at the rows of phi, (m,); without M if noise is None."""

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

    def law(
        self, phi: FloatArray, normal_std: FloatArray, noise: Noise | None, scale: Nodes, verbose: bool
    ) -> AnyLaw:
        """The law of phi'w and independent variables, (m,)."""
        parts = (phi @ self.mean)[None], np.sqrt(self.variance(phi))[None], np.ones(1)
        return _mixture(parts, normal_std, noise, scale, verbose)

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

    def law(
        self, phi: FloatArray, normal_std: FloatArray, noise: Noise | None, scale: Nodes, verbose: bool
    ) -> AnyLaw:
        """The law of phi'w and independent variables, (m,)."""
        return _mixture(self._parts(phi), normal_std, noise, scale, verbose)

    def _parts(self, phi: FloatArray) -> Parts:
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


def _mixture(
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
    return MixedLaw(
        LinearCombination(noise, weights, loc=means, normal_std=std, verbose=verbose), probabilities
    )


class CoordinatePosterior(PosteriorMethods, NonlinearPosterior):
    """A model f(x) = phi(x)'w + rest with a law of w.

    Parameters
    ----------
    setting, noise
        As in :class:`NonlinearPosterior`.
    coordinates : Coordinates
    estimate : ndarray of shape (r + q,)
        The weights of the estimate of f.
    weights : Weights
    """

    laws: tuple[str, ...] = ("function", "observation")
    """The random variables at x that the model has."""
    observed: Observed
    """The samples."""

    def __init__(
        self,
        setting: str,
        noise: Noise,
        coordinates: Coordinates,
        estimate: FloatArray,
        weights: Weights,
    ) -> None:
        super().__init__(setting, noise)
        self.coordinates, self.estimate, self.weights = coordinates, estimate, weights

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.observed.y)

    def normal_root(self, phi: FloatArray) -> FloatArray:
        """Rows whose squared lengths, with the rest, are the variance of f(x) that the law of w leaves out, (m, k)."""
        return np.zeros((len(phi), 0))

    def normal_variance(self, phi: FloatArray, rest: FloatArray) -> FloatArray:
        """Variance of f(x) that the law of w leaves out, (m,)."""
        return np.asarray(rest + np.sum(self.normal_root(phi) ** 2, axis=1))

    def split(self, phi: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variances of f(x) by noise in the data and by unexplored inputs, (m,) each."""
        return self.weights.variance(phi), self.normal_variance(phi, rest)

    def mean(self, X: FloatArray) -> FloatArray:
        """Estimate of f, (m,)."""
        return np.asarray(self.coordinates.features(X)[0] @ self.estimate)

    def mean_and_uncertainty(
        self, X: FloatArray, noise_scale: FloatArray | None = None
    ) -> tuple[FloatArray, Uncertainty]:
        """Estimate of f and the variances by cause at the rows of X."""
        phi, rest = self.coordinates.features(X)
        return phi @ self.estimate, Uncertainty(*self.split(phi, rest), self.aleatoric(X, noise_scale))

    def common_uncertainty(self, X: FloatArray) -> Uncertainty:
        """Variances by cause at the rows of X; there is one output."""
        return self.uncertainty(X)

    def mean_and_epistemic(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Estimate and variance of f at the rows of X."""
        phi, rest = self.coordinates.features(X)
        return phi @ self.estimate, self.weights.variance(phi) + self.normal_variance(phi, rest)

    def normal_covariance(self, X: FloatArray, phi: FloatArray) -> FloatArray:
        """Covariance of the part of f that the law of w leaves out, (m, m)."""
        root = self.normal_root(phi)
        return np.asarray(self.coordinates.rest_covariance(X) + root @ root.T)

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Estimate of f, and the covariance of f at the rows of X, (m, m)."""
        phi = self.coordinates.features(X)[0]
        return phi @ self.estimate, self.weights.covariance(phi) + self.normal_covariance(X, phi)

    def _law(
        self, X: FloatArray, of: str, verbose: bool, noise_scale: FloatArray | None
    ) -> PredictiveDistribution:
        return NonlinearDistribution(self, X, of, verbose, noise_scale)


class FullPosterior(CoordinatePosterior):
    """The posterior of f given y, where the noise has a density.

    The variance of f(x) splits by the law of total variance: what would remain if f were known at the data's inputs
    (unexplored inputs), and the rest (noise in the data).

    Parameters
    ----------
    setting, noise
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
    ) -> None:
        super().__init__(setting, noise, propagation.coordinates, weights.mean, weights)
        self.propagation, self.draws, self.observed = propagation, draws, propagation.observed

    def left_out(self, rows: Any) -> tuple[MixedLaw, FloatArray]:
        """The laws of some samples, each given all others, by expectation propagation; and the samples."""
        observed = self.observed
        mean, variance = self.propagation.left_out(rows)
        scale: FloatArray = observed.scale[rows][None]
        chances: FloatArray = np.ones(1)
        if isinstance(self.level, Level):  # the level at a held-out sample is uncertain, too
            nodes, chances = level_nodes(self.level.log_variance(observed.places[observed.index[rows]]))
            scale = scale * np.exp(nodes)
        normal = mean[None], np.sqrt(variance)[None], np.ones(1)
        law = _mixture(normal, np.zeros(len(mean)), self.noise, (scale, chances), False)
        return law, observed.y[rows]

    def split(self, phi: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variances of f(x) by noise in the data and by unexplored inputs, (m,) each."""
        variance = self.weights.variance(phi)
        if not self.coordinates.trend.kind:
            return variance, rest
        # what is left of w if f were known at the places, up to what the coordinates leave out
        at_places = self.coordinates.phi
        error = 1e5 * DROPPED * float(np.max(self.coordinates.kernel.diag(self.coordinates.places)))
        factor = np.linalg.cholesky(np.diag(self.coordinates.precision) + at_places.T @ at_places / error)
        left = np.minimum(np.sum(solve_triangular(factor, phi.T, lower=True) ** 2, axis=0), variance)
        return variance - left, rest + left


class NonlinearDistribution(PredictiveDistribution):
    """The law of the estimate, of f(x) or of a new observation, with the methods of :class:`PredictiveDistribution`.

    Parameters
    ----------
    posterior : CoordinatePosterior
    X : ndarray of shape (m, d)
    of : {"estimate", "function", "observation"}
    verbose : bool
    noise_scale : ndarray of shape (m,), default=None
    """

    def __init__(
        self,
        posterior: CoordinatePosterior,
        X: FloatArray,
        of: str,
        verbose: bool = False,
        noise_scale: FloatArray | None = None,
    ) -> None:
        if of not in posterior.laws:
            names = " or ".join(map(repr, posterior.laws))
            raise ValueError(f"of must be {names} with {posterior.setting}, got {of!r}")
        self.of, self.scale = of, posterior.output_scale
        self._posterior: Any = posterior
        self._X = X
        phi, rest = posterior.coordinates.features(X)
        self._phi, self.mu = phi, np.zeros(len(X))
        std = np.sqrt(0 * rest if of == "estimate" else posterior.normal_variance(phi, rest))
        self._fresh = observation_scale(posterior.level, X, noise_scale)
        noise = posterior.noise if of == "observation" else None
        self.law: Any = posterior.weights.law(phi, std, noise, self._fresh, verbose)

    def _draw_estimate(self, size: int, generator: Any) -> FloatArray:
        return np.asarray(self._posterior.weights.rvs(size, generator) @ self._phi.T)

    def _model_covariance(self) -> FloatArray:
        return np.asarray(self._posterior.normal_covariance(self._X, self._phi))

    def chaos(self) -> ChaosForm:
        """Raise an error: the chaos form is that of an estimate that is linear in y."""
        return self._posterior.chaos(self._X)  # type: ignore[no-any-return]
