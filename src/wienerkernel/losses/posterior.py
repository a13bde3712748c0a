"""Models in coordinates, f(x) = phi(x)'w + rest, with a law of w: their estimate is not linear in y."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from .._typing import FloatArray
from ..chaos import ChaosForm
from ..law.mixed import MixedLaw
from ..noise import Noise
from ..noise.level import Level, NoiseLevel, level_nodes, observation_scale
from ..posterior import Posterior, PredictiveDistribution, Uncertainty
from ..posterior.posterior import PosteriorMethods
from ..transform import Transform
from .coordinates import DROPPED, Coordinates, Observed
from .propagation import Propagation
from .sampling import Draws
from .weights import DrawnWeights, Weights, normal_mixture

__all__ = ["CoordinatePosterior", "FullPosterior", "NonlinearDistribution"]


class CoordinatePosterior(PosteriorMethods):
    """A model f(x) = phi(x)'w + rest with a law of w, behind the interface of :class:`Posterior`, for a single output.

    Methods that need an estimate that is linear in y raise an error, which quotes the ``setting``: the arguments of the
    estimator that make it nonlinear. ``estimate`` (r + q,) are the weights of the estimate of f. ``level`` and
    ``transform`` are set after the fit, which is on their scale.
    """

    single_output = True
    output_scale = np.ones(1)
    laws: tuple[str, ...] = ("function", "observation")
    """The random variables at x that the model has."""
    level: NoiseLevel | None = None
    transform: Transform | None = None

    def __init__(
        self,
        setting: str,
        noise: Noise,
        coordinates: Coordinates,
        observed: Observed,
        estimate: FloatArray,
        weights: Weights,
    ) -> None:
        self.setting, self.noise, self.coordinates, self.observed = setting, noise, coordinates, observed
        self.estimate, self.weights = estimate, weights

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and (hasattr(Posterior, name) or name in Posterior.__dataclass_fields__):
            msg = (
                f"this needs an estimate that is linear in y; the model has {self.__dict__['setting']}: use loss='squared' "
                "and inference=None"
            )
            raise ValueError(msg)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def left_out(self, rows: Any) -> tuple[MixedLaw, FloatArray]:  # noqa: ARG002
        """The laws of some samples, each given all others, and the samples on the scale of the model, (m,) each."""
        msg = f"leave-one-out scores are not available with {self.setting}: score held-out data, score_report(X, y)"
        raise ValueError(msg)

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
        scale, probabilities = observation_scale(self.level, X, noise_scale)
        aleatoric = self.noise.var() * (probabilities @ scale**2)
        return phi @ self.estimate, Uncertainty(*self.split(phi, rest), aleatoric)

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
        return np.asarray(self.coordinates.rest_covariance(X, phi) + root @ root.T)

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
    (unexplored inputs), and the rest (noise in the data). ``draws`` are what sampling found; without them, the law of f
    is that of expectation propagation.

    Examples
    --------
    >>> from wienerkernel import WienerKernelRegressor
    >>> model = WienerKernelRegressor(noise="laplace()", inference="ep", trend=None, tuning=None).fit([[0.0]], [1.0])
    >>> parts = model.posterior_.uncertainty(np.array([[0.0], [9.0]]))
    >>> parts.model.round(4).tolist()
    [0.0, 1.0]
    """

    def __init__(self, setting: str, propagation: Propagation, draws: Draws | None = None) -> None:
        found = propagation
        weights: Weights = found.posterior if draws is None else DrawnWeights(draws.weights)
        super().__init__(setting, found.noise, found.coordinates, found.observed, weights.mean, weights)
        self.propagation, self.draws = found, draws

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
        law = normal_mixture(normal, np.zeros(len(mean)), self.noise, (scale, chances), False)
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
    """The law of the estimate, of f(x) or of a new observation, with the methods of :class:`PredictiveDistribution`."""

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
