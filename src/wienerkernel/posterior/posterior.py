"""A fitted model at x: the uncertainty by cause, the three random variables, the chaos form.

The prediction is Yhat(x) = mu(x) - sum_i a_i(x) (M_i - m0) (eq. 12), linear in the noise. Adding the model part
N(0, P2) gives the function value, adding a fresh M to that gives a new observation: the paper's three tubes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..chaos import ChaosForm, Expansion, lift, two_term
from ..kernels import FeatureMap
from ..noise.base import Noise
from ..noise.level import NoiseLevel, observation_scale
from ..smoother import Smoother
from ..smoother.gradient import mean_gradient, variance_gradients
from ..smoother.leave_one_out import leave_one_out, projected_inverse
from ..transform import Transform
from .distribution import OF, PredictiveDistribution
from .input_noise import Linearization, NoiseTerm
from .parts import LeaveOneOut, PredictionGradient, Uncertainty
from .transformed import TransformedDistribution

__all__ = ["Posterior", "PosteriorMethods"]


class PosteriorMethods:
    """Methods of a posterior that follow from others."""

    transform: Transform | None
    mean_and_uncertainty: Callable[..., tuple[Array, Uncertainty]]
    _law: Callable[..., PredictiveDistribution]
    """The random variable ``of`` on the scale of the model, as in ``distribution``."""

    def uncertainty(self, X: Array, noise_scale: FloatArray | None = None) -> Uncertainty:
        """Variances by cause at the rows of X, (m,) or (m, n_y)."""
        return self.mean_and_uncertainty(X, noise_scale)[1]

    def mean_and_epistemic(self, X: Array) -> tuple[Array, Array]:
        """Estimate of f and its variance V + P2 at the rows of X."""
        mean, parts = self.mean_and_uncertainty(X)
        return mean, parts.epistemic

    def distribution(
        self, X: Array, of: str = "estimate", verbose: bool = False, noise_scale: FloatArray | None = None
    ) -> PredictiveDistribution:
        """The random variable ``of`` at the rows of X, on the scale of y."""
        law = self._law(X, of, verbose, noise_scale)
        return law if self.transform is None else TransformedDistribution(law, self.transform)


@dataclass(frozen=True)
class Posterior(PosteriorMethods):
    """A smoother and the law of its noise: the one immutable object behind a fitted model.

    Output k is c_k times what the smoother estimates, with the ``output_scale`` c_k (by default 1): it has the kernel
    c_k^2 k and the noise c_k M. If y was a vector (``single_output``), results have shape (m,), not (m, n_y). If the
    regularizer is the noise covariance, V + P2 is the variance of a Gaussian process. All of this holds on the scale of the
    ``transform``, with the ``level`` s(x) of new observations, and with noise on the inputs (of a single output).
    """

    further_parts: ClassVar[tuple[str, ...]] = ("input",)
    """Names of the parts of the variance that the smoother may return beside the model part and the gain."""
    laws: ClassVar[tuple[str, ...]] = OF
    """The random variables at x that the model describes."""

    smoother: Smoother
    noise: Noise
    single_output: bool
    ridge_is_noise_variance: bool
    output_scale: FloatArray = field(default_factory=lambda: np.empty(0))
    level: NoiseLevel | None = None
    transform: Transform | None = None
    input_noise: Linearization | None = None

    def __post_init__(self) -> None:
        if not len(self.output_scale):
            object.__setattr__(self, "output_scale", np.ones(self.smoother.targets.shape[1]))

    def outputs(self, values: Array) -> Array:
        """Values that are linear in y, (m, n_y), in the units and the shape of y."""
        return values[:, 0] if self.single_output else values * arrays.like(self.output_scale, values)

    def _variances(self, values: Array) -> Array:
        """Variances (...) common to all outputs, in the units of each: (...) or (..., n_y)."""
        return values if self.single_output else values[..., None] * arrays.like(self.output_scale**2, values)

    @property
    def terms(self) -> tuple[NoiseTerm, ...]:
        """The independent noise of the samples: s(x) M, whose scales may be a matrix, and that of their inputs."""
        own = NoiseTerm(self.noise, self.smoother.samples.scale)
        return (own, *(() if self.input_noise is None else self.input_noise.terms))

    def noise_terms(self, weights: FloatArray) -> list[tuple[Noise, FloatArray, IntArray]]:
        """Laws, w (m, J) and counts (J,) in Yhat - mu = sum_j w_j (M_j - E M_j), from the places' weights (m, U)."""
        per_noise = self.smoother.samples.per_noise
        own, *others = self.terms
        found = [
            (own.law, *per_noise(weights)),
            *((law, *per_noise(weights, scale)) for law, scale in others),
        ]
        return [(law, -w, counts) for law, w, counts in found]

    def input_covariance(self) -> tuple[Array, ...]:
        """Variance of the places' means that the noise on the inputs causes, (U,); empty without it."""
        if self.input_noise is None:
            return ()
        collapsed = self.smoother.samples.collapsed(self.input_noise.variance)
        return (arrays.like(collapsed, self.smoother.places),)

    def observed(self) -> FloatArray:
        """The samples on the scale of the model, (D, n_y), with the mean of their noise."""
        scale = self.smoother.samples.scale
        offset = self.noise.mean() * (scale if scale.ndim == 1 else scale.sum(axis=1))
        if self.input_noise is not None:
            offset = offset + self.input_noise.curvature
        return np.asarray(self.output_scale * (self.smoother.targets + offset[:, None]))

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.smoother.samples.n

    def mean(self, X: Array) -> Array:
        """Estimate mu(x) of f, (m,) or (m, n_y)."""
        return self.outputs(self.smoother.mean(X))

    def _parts(self, X: Array, noise_scale: FloatArray | None = None) -> tuple[Array, dict[str, Array]]:
        """Mean of the smoother (m, n_y), and the variances by cause without the scales of the outputs (m,)."""
        mean, model, gain, *further = self.smoother.mean_and_parts(X, *self.input_covariance())
        s2 = float(self.noise.var())
        aleatoric = s2 + 0 * gain
        if self.level is not None or noise_scale is not None:
            scale, probabilities = observation_scale(self.level, X, noise_scale)
            aleatoric = arrays.like(s2 * (probabilities @ scale**2), gain)
        parts = {"noise": s2 * gain, "model": model, "aleatoric": aleatoric}
        return mean, parts | dict(zip(self.further_parts, further, strict=False))

    def mean_and_uncertainty(
        self, X: Array, noise_scale: FloatArray | None = None
    ) -> tuple[Array, Uncertainty]:
        """Estimate of f and its variances by cause at the rows of X, from one evaluation of the kernel."""
        mean, parts = self._parts(X, noise_scale)
        return self.outputs(mean), Uncertainty(
            **{name: self._variances(part) for name, part in parts.items()}
        )

    def common_uncertainty(self, X: Array) -> Uncertainty:
        """Variances by cause at the rows of X, (m,), without the factors c_k^2 of the outputs."""
        return Uncertainty(**self._parts(X)[1])

    def mean_and_epistemic(self, X: Array) -> tuple[Array, Array]:
        """Estimate of f and its variance V + P2 at the rows of X, by one triangular solve where that is enough."""
        if not self.ridge_is_noise_variance:
            return super().mean_and_epistemic(X)
        mean, variance = self.smoother.mean_and_variance(X)
        return self.outputs(mean), self._variances(variance)

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        """Estimate of f, and the covariance of the function values at the rows of X, (m, m) or (m, m, n_y)."""
        mean, weights, model = self.smoother.evaluate_jointly(X)
        return self.outputs(mean), self._variances(model + arrays.like(self.noise_covariance(weights), model))

    def noise_covariance(self, weights: Array) -> FloatArray:
        """Covariance of the estimate, (m, m), from the weights of the places (m, U); NumPy."""
        weights = arrays.as_numpy(weights)
        columns, counts = self.smoother.samples.per_noise(weights)
        covariance = self.noise.var() * (columns * counts) @ columns.T
        return np.asarray(sum((weights * c @ weights.T for c in self.input_covariance()), covariance))

    def gradient(self, X: Array) -> PredictionGradient:
        """Gradients of the mean and of both parts of the variance with respect to x."""
        mean = mean_gradient(self.smoother, X)
        model, gain = variance_gradients(self.smoother, X)
        noise = float(self.noise.var()) * gain
        for covariance in self.input_covariance():
            noise = noise + variance_gradients(self.smoother, X, covariance)[1]
        if self.single_output:
            return PredictionGradient(mean[:, 0, :], noise, model)
        scale = arrays.like(self.output_scale[:, None], mean)
        return PredictionGradient(scale * mean, scale**2 * noise[:, None, :], scale**2 * model[:, None, :])

    def _law(
        self, X: FloatArray, of: str, verbose: bool, noise_scale: FloatArray | None
    ) -> PredictiveDistribution:
        return PredictiveDistribution(self, X, of, verbose, noise_scale)

    def leave_one_out(self) -> LeaveOneOut:
        """Predict each sample from all others."""
        further = () if self.input_noise is None else (self.input_noise.variance,)
        residual, model, gain, *of_input = leave_one_out(self.smoother, *further)
        s2, scale = self.noise.var(), self.smoother.samples.scale
        own = s2 * (scale**2 if scale.ndim == 1 else np.sum(scale**2, axis=1))
        variances = {"noise": s2 * gain, "model": model, "aleatoric": sum(further, own)}
        variances |= dict(zip(["input"], of_input, strict=False))
        parts = {name: self._variances(part) for name, part in variances.items()}
        parts |= {"mean": self.outputs(self.smoother.targets - residual), "residual": self.outputs(residual)}
        return LeaveOneOut(**{name: arrays.like(part, self.smoother.factor) for name, part in parts.items()})

    def chaos(self, X: FloatArray) -> ChaosForm:
        """Chaos form (12) of the estimate, (m, 1 + D(L-1)) or (m, n_y, ...), where each output has its own germs."""
        mean, weights, _ = self.smoother.evaluate(X)
        return self._lift(arrays.as_numpy(weights), arrays.as_numpy(self.outputs(mean)))

    def feature_weights(self) -> ChaosForm:
        """Chaos form of the weights W in f = W'phi + trend (Lemma 1), (n_phi, 1 + D(L-1)); TypeError without a FeatureMap."""
        kernel, smoother = self.smoother.kernel, self.smoother
        if not isinstance(kernel, FeatureMap):
            raise TypeError("the weights W of Lemma 1 need kernel=FeatureMap(phi, scale)")
        phi = kernel.scale**2 * kernel.features(smoother.places).T  # (n_phi, U)
        weights, mean = phi @ projected_inverse(smoother), self.outputs(phi @ smoother.dual)
        return self._lift(arrays.as_numpy(weights), arrays.as_numpy(mean))

    def _lift(self, weights: FloatArray, mean: FloatArray) -> ChaosForm:
        """Chaos form from the weights of the places: -a_i m_j on phi_j(xi_i), one germ per sample."""
        if self.input_noise is not None:
            msg = "with input_noise there is no chaos form (12), which has germs of one law: use cumulants, quantiles or rvs"
            raise ValueError(msg)
        expansion = self.noise if isinstance(self.noise, Expansion) else two_term(self.noise)
        scale = self.smoother.samples.scale
        weights = self.smoother.samples.per_sample(weights)
        weights = weights @ scale if scale.ndim == 2 else weights * scale
        if not self.single_output:
            weights = weights[:, None, :] * self.output_scale[:, None]
        return lift(expansion, weights, mean)
