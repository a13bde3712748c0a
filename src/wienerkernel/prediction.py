"""What a fitted model says at x: the uncertainty by its causes, the three random variables, the chaos form.

The prediction is Yhat(x) = mu(x) - sum_i a_i(x) (M_i - m0) (eq. 12), linear in the noise. Adding the model part
N(0, P2) gives the function value, adding a fresh M to that gives a new observation: the paper's three tubes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import arrays
from ._typing import Array, FloatArray, IntArray
from .chaos import ChaosForm, Expansion, lift, two_term
from .distribution import PredictiveDistribution
from .gradient import mean_gradient, variance_gradients
from .kernels import FeatureMap
from .leave_one_out import leave_one_out
from .noise.base import Noise
from .smoother import Smoother

__all__ = ["LeaveOneOut", "Posterior", "PredictionGradient", "Uncertainty"]


@dataclass(frozen=True)
class Uncertainty:
    """Variances at the query points, by cause.

    Attributes
    ----------
    noise : ndarray of shape (m,)
        V = s2 |a|^2, caused by the noise in the data (sigma_WK^2, eq. 14). More samples at x remove it.
    model : ndarray of shape (m,)
        P2, caused by places not yet looked at. Samples near x remove it. What is left of k(x, x) after cancellation,
        so that its error is about 1e-16 k(x, x), or 6e-8 k(x, x) in single precision.
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

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), tuning=None).fit([[0.0], [0.0]], [0.0, 1.0])
    >>> left_out = model.loo()
    >>> left_out.mean.round(9).tolist(), left_out.residual.round(9).tolist()
    ([0.5, 0.0], [-0.5, 1.0])
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
    >>> model = WienerKernelRegressor(RBF(1.0), tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
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

    def mean_and_uncertainty(self, X: Array) -> tuple[Array, Uncertainty]:
        """Estimate of f and its variances by cause at the rows of X, from one evaluation of the kernel."""
        mean, model, gain = self.smoother.mean_and_parts(X)
        s2 = float(self.noise.var())
        return self._shape(mean), Uncertainty(noise=s2 * gain, model=model, aleatoric=s2 + 0 * gain)

    def uncertainty(self, X: Array) -> Uncertainty:
        """Variances by cause at the rows of X."""
        return self.mean_and_uncertainty(X)[1]

    def mean_and_epistemic(self, X: Array) -> tuple[Array, Array]:
        """Estimate of f and its variance V + P2 at the rows of X, by the shorter way where there is one."""
        if not self.matched:
            mean, parts = self.mean_and_uncertainty(X)
            return mean, parts.epistemic
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

    def gradient(self, X: Array) -> PredictionGradient:
        """Gradients of the mean and of both parts of the variance with respect to x."""
        mean = mean_gradient(self.smoother, X)
        model, gain = variance_gradients(self.smoother, X)
        return PredictionGradient(mean[:, 0, :] if self.flat else mean, float(self.noise.var()) * gain, model)

    def distribution(
        self, X: FloatArray, of: str = "estimate", verbose: bool = False
    ) -> PredictiveDistribution:
        """The random variable ``of`` at the rows of X."""
        return PredictiveDistribution(self, X, of, verbose)

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
        if not isinstance(kernel, FeatureMap) or smoother.trend.kind:
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


@dataclass(frozen=True)
class PredictionGradient:
    """Gradients with respect to the query point.

    Attributes
    ----------
    mean : ndarray of shape (m, d) or (m, n_y, d)
    noise, model : ndarray of shape (m, d)
        Of the variances V and P2.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), tuning=None).fit([[0.0]], [2.0])
    >>> model.predict_gradient([[1.0]]).mean.round(4).tolist()   # -x exp(-x^2 / 2)
    [[-0.6065]]
    """

    mean: FloatArray
    noise: FloatArray
    model: FloatArray
