"""What a fitted model says at x: the uncertainty by its causes, the three random variables, the chaos form.

The prediction is Yhat(x) = mu(x) - sum_i a_i(x) (M_i - m0) (eq. 12), linear in the noise. Adding the model part
N(0, P2) gives the function value, adding a fresh M to that gives a new observation: the paper's three tubes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import arrays
from ._typing import Array, FloatArray, IntArray, RandomState
from .chaos import ChaosForm, Expansion, lift, two_term
from .kernels import FeatureMap
from .law import LinearCombination
from .leave_one_out import leave_one_out
from .noise.base import Noise, as_generator
from .smoother import Smoother

__all__ = ["OF", "LeaveOneOut", "Posterior", "PredictiveDistribution", "Uncertainty"]

OF = ("estimate", "function", "observation")
"""The three random variables that can be asked for at x."""


@dataclass(frozen=True)
class Uncertainty:
    """Variances at the query points, by cause.

    Attributes
    ----------
    noise : ndarray of shape (m,)
        V = s2 |a|^2, caused by the noise in the data (sigma_WK^2, eq. 14). More samples at x remove it.
    model : ndarray of shape (m,)
        P2, caused by places not yet looked at. Samples near x remove it.
    aleatoric : ndarray of shape (m,)
        s2, the noise of a new observation. Nothing removes it.

    Examples
    --------
    >>> u = Uncertainty(np.array([0.5]), np.array([0.25]), np.array([1.0]))
    >>> u.epistemic.tolist(), u.total.tolist()
    ([0.75], [1.75])
    """

    noise: FloatArray
    model: FloatArray
    aleatoric: FloatArray

    @property
    def epistemic(self) -> FloatArray:
        """Variance of f(x) given the data, V + P2; sigma_GP^2 (eq. 2b) when the ridge is the noise variance."""
        return self.noise + self.model

    @property
    def total(self) -> FloatArray:
        """Variance of a new observation at x (eq. 3)."""
        return self.noise + self.model + self.aleatoric


@dataclass(frozen=True)
class LeaveOneOut(Uncertainty):
    """What the model fitted without sample i says about sample i, for every i.

    Attributes
    ----------
    mean : ndarray of shape (n,) or (n, n_y)
        Prediction of f(x_i).
    residual : ndarray of shape (n,) or (n, n_y)
        y_i, less the mean of its noise, minus ``mean``.
    noise, model, aleatoric : ndarray of shape (n,)
        Variances, as in :class:`Uncertainty`; ``total`` is the variance of ``residual``.
    """

    mean: FloatArray
    residual: FloatArray


@dataclass(frozen=True)
class Posterior:
    """A smoother and the law of its noise: the one immutable object behind a fitted model.

    Parameters
    ----------
    smoother : Smoother
    noise : Noise
    flat : bool
        Whether there is one output, given as a vector: what depends on y then has shape (m,), not (m, n_y).
    matched : bool
        Whether the regulariser is the noise covariance, so that V + P2 is the variance of a Gaussian process.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0)).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> model.posterior_.uncertainty(np.array([[0.5]])).aleatoric.tolist()
    [1.0]
    """

    smoother: Smoother
    noise: Noise
    flat: bool
    matched: bool

    def _shape(self, values: Array) -> Array:
        """What depends on y, (m, n_y), in the shape that y had."""
        return values[:, 0] if self.flat else values

    def mean(self, X: Array) -> Array:
        """Estimate mu(x) of f, (m,) or (m, n_y)."""
        return self._shape(self.smoother.mean(X))

    def uncertainty(self, X: Array) -> Uncertainty:
        """Variances by cause at the rows of X."""
        model, gain = self.smoother.variances(X)
        s2 = self.noise.var()
        return Uncertainty(noise=s2 * gain, model=model, aleatoric=s2 + 0 * gain)

    def mean_and_epistemic(self, X: Array) -> tuple[Array, Array]:
        """Estimate of f and its variance V + P2 at the rows of X, by the shorter way where there is one."""
        if not self.matched:
            return self.mean(X), self.uncertainty(X).epistemic
        mean, variance = self.smoother.mean_and_variance(X)
        return self._shape(mean), variance

    def covariance(self, X: Array) -> Array:
        """Covariance of the function values at the rows of X, (m, m)."""
        weights, counts = self.noise_weights(X)
        noise = self.noise.var() * (weights * counts) @ weights.T
        return self.smoother.model_covariance(X) + arrays.like(noise, self.smoother.factor)

    def noise_weights(self, X: Array) -> tuple[FloatArray, IntArray]:
        """Weights L'a of the independent noise variables (m, J), and how many variables share each (J,); NumPy."""
        return self.smoother.samples.per_noise(arrays.as_numpy(self.smoother.weights(X)))

    def distribution(self, X: FloatArray, of: str = "estimate") -> PredictiveDistribution:
        """The random variable ``of`` at the rows of X."""
        if of not in OF:
            msg = f"of must be one of {', '.join(map(repr, OF))}, got {of!r}"
            raise ValueError(msg)
        return PredictiveDistribution(self, X, of)

    def leave_one_out(self) -> LeaveOneOut:
        """What the model without sample i says about sample i."""
        residual, model, gain = leave_one_out(self.smoother)
        s2, scale = self.noise.var(), self.smoother.samples.scale
        parts = {
            "noise": s2 * gain,
            "model": model,
            "aleatoric": s2 * (scale**2 if scale.ndim == 1 else np.sum(scale**2, axis=1)),
            "mean": self._shape(self.smoother.targets - residual),
            "residual": self._shape(residual),
        }
        return LeaveOneOut(**{name: arrays.like(part, self.smoother.factor) for name, part in parts.items()})

    def chaos(self, X: FloatArray) -> ChaosForm:
        """Chaos form (12) of the estimate at the rows of X; coefficients (m, 1 + D(L-1)), or (m, n_y, ...).

        Several outputs share the coefficients' layout but not the germs: each output has its own.
        """
        return self._lift(arrays.as_numpy(self.smoother.weights(X)), arrays.as_numpy(self.mean(X)))

    def feature_weights(self) -> ChaosForm:
        """Chaos form of the weights W in f = W'phi (Lemma 1); coefficients (n_phi, 1 + D(L-1)).

        Raises
        ------
        TypeError
            Unless the kernel is a :class:`FeatureMap` and there is no trend: W lives in feature space.
        """
        kernel, smoother = self.smoother.kernel, self.smoother
        if not isinstance(kernel, FeatureMap) or len(smoother.trend_coefficients):
            msg = "the weights W of Lemma 1 need kernel=FeatureMap(phi, scale) and trend=None"
            raise TypeError(msg)
        phi = kernel.scale**2 * kernel.features(smoother.places).T  # (n_phi, U)
        weights, mean = phi @ smoother.inverse, self._shape(phi @ smoother.dual)
        return self._lift(arrays.as_numpy(weights), arrays.as_numpy(mean))

    def _lift(self, weights: FloatArray, mean: FloatArray) -> ChaosForm:
        """Chaos form from the weights of the places: -a_i m_j on phi_j(xi_i), one germ a sample."""
        expansion = self.noise if isinstance(self.noise, Expansion) else two_term(self.noise)
        scale = self.smoother.samples.scale
        weights = self.smoother.samples.per_sample(weights)
        weights = weights @ scale if scale.ndim == 2 else weights * scale
        if not self.flat:
            weights = np.broadcast_to(weights[:, None, :], (*mean.shape, weights.shape[-1]))
        return lift(expansion, weights, mean)


class PredictiveDistribution:
    """The law of a prediction at m query points, with the names and broadcasting of ``scipy.stats``.

    Its shape is (m,), or (m, n_y) for several outputs; arguments broadcast against it. It works on NumPy arrays,
    whatever the library of X.

    Parameters
    ----------
    posterior : Posterior
    X : ndarray of shape (m, d)
    of : {"estimate", "function", "observation"}

    Attributes
    ----------
    law : LinearCombination
        Law of the deviation from ``mu``, of shape (m,).
    mu : ndarray of shape (m,) or (m, n_y)
        Estimate of f.

    Examples
    --------
    >>> from scipy import stats
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> noise = stats.gamma(0.25, scale=2)
    >>> model = WienerKernelRegressor(4.21**2 * RBF(3.59), noise=noise).fit([[-5.0], [0.0], [5.0]], [1.0, 2.0, 3.0])
    >>> Y = model.predict_distribution([[0.0], [1.0]])
    >>> Y.skewness().round(3).tolist()   # the opposite skew of the noise
    [-3.991, -3.7]
    """

    def __init__(self, posterior: Posterior, X: FloatArray, of: str) -> None:
        self.of = of
        self.mu: FloatArray = arrays.as_numpy(posterior.mean(X))
        self._posterior = posterior
        self._X = X
        noise = posterior.noise
        weights, counts = posterior.noise_weights(X)
        loc = noise.mean() * (weights @ counts)  # Yhat - mu = -sum_i a_i (M_i - m0)
        weights = -weights
        model = np.zeros(len(X)) if of == "estimate" else arrays.as_numpy(posterior.smoother.variances(X)[0])
        if of == "observation":
            weights = np.column_stack([weights, np.ones(len(X))])
            counts = np.append(counts, 1)
        self.law = LinearCombination(noise, weights, counts=counts, loc=loc, normal_std=np.sqrt(model))

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,) or (m, n_y)."""
        return self.mu.shape

    def _spread(self, values: FloatArray) -> FloatArray:
        """Repeat what is common to all outputs."""
        return np.broadcast_to(values.reshape(values.shape + (1,) * (self.mu.ndim - 1)), self.shape).copy()

    def mean(self) -> FloatArray:
        """Mean; that of an observation includes the mean of its noise."""
        return self.mu + self._spread(self.law.mean())

    def var(self) -> FloatArray:
        """Variance."""
        return self._spread(self.law.var())

    def std(self) -> FloatArray:
        """Standard deviation."""
        return self._spread(self.law.std())

    def skewness(self) -> FloatArray:
        """Skewness."""
        return self._spread(self.law.skewness())

    def kurtosis(self) -> FloatArray:
        """Excess kurtosis."""
        return self._spread(self.law.kurtosis())

    def cumulant(self, order: int) -> FloatArray:
        """Cumulant of the given order, 1 to 8."""
        return self.mean() if order == 1 else self._spread(self.law.cumulant(order))

    def _evaluate(
        self, function: Callable[..., Any], argument: ArrayLike, shifted: bool, **options: Any
    ) -> Any:
        """Apply a method of the law, whose last axis is the query point, to an argument of the whole shape."""
        x = np.asarray(argument, dtype=float)
        if shifted:
            x = x - self.mu
        if self.mu.ndim == 1:
            return function(x, **options)
        x = np.broadcast_to(x, np.broadcast_shapes(x.shape, self.shape))
        result = function(np.moveaxis(x, -1, 0), **options)
        if isinstance(result, tuple):
            return tuple(np.moveaxis(part, 0, -1) for part in result)
        return np.moveaxis(result, 0, -1)

    def pdf(self, y: ArrayLike, **options: Any) -> Any:
        """Density at y."""
        return self._evaluate(self.law.pdf, y, True, **options)

    def logpdf(self, y: ArrayLike, **options: Any) -> Any:
        """Logarithm of the density at y."""
        return self._evaluate(self.law.logpdf, y, True, **options)

    def cdf(self, y: ArrayLike, **options: Any) -> Any:
        """Probability of at most y."""
        return self._evaluate(self.law.cdf, y, True, **options)

    def sf(self, y: ArrayLike, **options: Any) -> Any:
        """Probability of more than y, accurate where it is small."""
        return self._evaluate(self.law.sf, y, True, **options)

    def _quantile(self, function: Callable[..., Any], q: ArrayLike, **options: Any) -> Any:
        result = self._evaluate(function, q, False, **options)
        return (result[0] + self.mu, result[1]) if isinstance(result, tuple) else result + self.mu

    def ppf(self, q: ArrayLike, **options: Any) -> Any:
        """Quantile: the smallest y with ``cdf(y) >= q``."""
        return self._quantile(self.law.ppf, q, **options)

    def isf(self, q: ArrayLike, **options: Any) -> Any:
        """Upper quantile: the smallest y with ``sf(y) <= q``."""
        return self._quantile(self.law.isf, q, **options)

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed interval."""
        lower, upper = self.law.interval(confidence)
        return self.mu + self._spread(lower), self.mu + self._spread(upper)

    def hdi(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Shortest interval, which is what a skewed law needs."""
        lower, upper = self.law.hdi(confidence)
        return self.mu + self._spread(lower), self.mu + self._spread(upper)

    def rvs(self, size: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draw sample functions: one draw of the noise in the data is one function on all of X.

        Parameters
        ----------
        size : int
            Number of functions.
        random_state : int, numpy Generator or RandomState, or None

        Returns
        -------
        ndarray of shape (size, m) or (size, m, n_y)
        """
        generator = as_generator(random_state)
        outputs = [self._draw(size, generator) for _ in range(self.mu.size // len(self._X))]
        return np.stack(outputs, axis=-1).reshape(size, *self.shape) + self.mu

    def _draw(self, size: int, generator: Any) -> FloatArray:
        noise = self._posterior.noise
        weights, counts = self._posterior.noise_weights(self._X)
        estimate = LinearCombination(noise, -weights, counts=counts, loc=noise.mean() * (weights @ counts))
        draws = np.asarray(estimate.rvs(size, random_state=generator))
        if self.of != "estimate":
            covariance = arrays.as_numpy(self._posterior.smoother.model_covariance(self._X))
            values, vectors = np.linalg.eigh(covariance)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            draws = draws + generator.standard_normal(draws.shape) @ root.T
        if self.of == "observation":
            draws = draws + noise.rvs(draws.shape, random_state=generator)
        return draws

    def chaos(self) -> ChaosForm:
        """Chaos form (12) of the estimate: coefficients and joint basis."""
        if self.of != "estimate":
            msg = f"the chaos form (12) is that of of='estimate'; this is of={self.of!r}"
            raise ValueError(msg)
        return self._posterior.chaos(self._X)
