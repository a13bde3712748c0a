"""Noise on the inputs, to first order in it: observed x_i = true x_i + E_i with a known law of E.

At the inputs x_i minus the mean of E, the sample has the mean f(x_i) + tr(H_i Sigma)/2, with the Hessian H of f and the
covariance Sigma of E, and the further noise -g_i'(E_i - E E) with the gradient g. Both follow from the estimate of f: the
estimate is then still a linear combination of independent variables, of several laws. McHutchon and Rasmussen,
Gaussian process training with input noise (2011).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray
from ..kernels import Kernel, Matern
from ..kernels.base import elementary
from ..noise import Noise, as_noise
from ..smoother import Smoother
from ..smoother.gradient import mean_gradient

__all__ = ["InputNoise", "Linearization", "NoiseTerm", "as_input_noise", "warn_if_large"]

STEP = 0.01
"""Step of the differences for the curvature, in standard deviations of E; their relative error is about its square."""
LARGE = 0.15  # standard deviation of E, in length scales, up to which the first order is accurate


class NoiseTerm(NamedTuple):
    """Independent noise of the samples: of one law, times the scales (D,)."""

    law: Noise
    scale: FloatArray


@dataclass(frozen=True)
class InputNoise:
    """The law of E = sum_k e_k directions[k], with independent variables e_k of these laws and directions (k, d)."""

    laws: tuple[Noise, ...]
    directions: FloatArray

    @property
    def variances(self) -> FloatArray:
        """Variances of e_k, (k,)."""
        return np.array([law.var() for law in self.laws])

    @property
    def mean(self) -> FloatArray:
        """E E, (d,)."""
        return np.array([law.mean() for law in self.laws]) @ self.directions

    @property
    def std(self) -> FloatArray:
        """Standard deviations of the entries of E, (d,)."""
        return np.sqrt(self.variances @ self.directions**2)

    def linearize(self, smoother: Smoother) -> Linearization:
        """Gradient and curvature of the estimate at the samples."""
        if any(isinstance(leaf, Matern) and leaf.nu < 1 for leaf in elementary(smoother.kernel)):
            raise ValueError(
                "input_noise needs a differentiable kernel: use RBF, or Matern with nu of 1.5 or 2.5"
            )
        places, index = smoother.places, smoother.samples.index
        slopes = self._slopes(smoother, places)
        curvature = np.zeros(len(places))
        for direction, variance in zip(self.directions, self.variances, strict=True):
            step = STEP * np.sqrt(variance) * direction
            ends = [mean_gradient(smoother, places + sign * step)[:, 0, :] @ direction for sign in (1, -1)]
            curvature += 0.25 * np.sqrt(variance) / STEP * (ends[0] - ends[1])
        return Linearization(self, slopes[index], curvature[index])

    def _slopes(self, smoother: Smoother, X: FloatArray) -> FloatArray:
        """Derivatives of the estimate along the directions, (m, k)."""
        return np.asarray(mean_gradient(smoother, X)[:, 0, :] @ self.directions.T)

    def variance_at(self, smoother: Smoother, X: FloatArray) -> FloatArray:
        """Variance of the further noise of a new sample at the rows of X, (m,)."""
        return np.asarray(self._slopes(smoother, X) ** 2 @ self.variances)

    def without_slope(self, n: int) -> Linearization:
        """The linearization at n samples of a constant."""
        return Linearization(self, np.zeros((n, len(self.laws))), np.zeros(n))


@dataclass(frozen=True)
class Linearization:
    """The effect of noise on the inputs, for the slopes g_i (D, k) of f along its directions and tr(H_i Sigma)/2, (D,)."""

    noise: InputNoise
    slopes: FloatArray
    curvature: FloatArray

    @property
    def terms(self) -> tuple[NoiseTerm, ...]:
        """The noise -g_i'E_i of the samples, one term for each direction."""
        return tuple(
            NoiseTerm(law, -column) for law, column in zip(self.noise.laws, self.slopes.T, strict=True)
        )

    @property
    def variance(self) -> FloatArray:
        """g_i' Sigma g_i, (D,)."""
        return np.asarray(self.slopes**2 @ self.noise.variances)

    def subset(self, rows: Any) -> Linearization:
        """For some of the samples."""
        return Linearization(self.noise, self.slopes[rows], self.curvature[rows])

    def added_to(self, covariance: FloatArray) -> FloatArray:
        """A covariance of the noise of the samples, (D,) or (D, D), plus that of the noise on their inputs."""
        return covariance + (self.variance if covariance.ndim == 1 else np.diag(self.variance))


def as_input_noise(law: Any, n_features: int) -> InputNoise | None:
    """The noise on the inputs from one law for all columns, one for each (None where exact), or a covariance."""
    if law is None or isinstance(law, InputNoise):
        return law
    if isinstance(law, np.ndarray) and law.ndim == 2:
        return _jointly_normal(law, n_features)
    if isinstance(law, list | tuple) and not all(isinstance(value, Real) for value in law):
        if len(law) != n_features:
            raise ValueError(
                f"input_noise must have one law for each of the {n_features} columns of X, got {len(law)}"
            )
        columns = list(law)
    else:
        columns = [law] * n_features
    noisy = [column for column, given in enumerate(columns) if given is not None]
    if not noisy:
        return None
    return InputNoise(tuple(_law(columns[column], column) for column in noisy), np.eye(n_features)[noisy])


def _law(law: Any, column: int) -> Noise:
    try:
        return as_noise(law)
    except (TypeError, ValueError) as error:
        raise type(error)(f"input_noise of column {column}: {error}") from None


def _jointly_normal(covariance: FloatArray, n_features: int) -> InputNoise:
    finite = covariance.shape == (n_features, n_features) and bool(np.all(np.isfinite(covariance)))
    symmetric = finite and np.allclose(covariance, covariance.T, rtol=1e-10, atol=0)
    values, vectors = np.linalg.eigh(covariance) if symmetric else (np.array([-1.0]), np.eye(1))
    kept = values > 1e-14 * values[-1]
    if values[-1] <= 0 or np.any(values < -1e-10 * values[-1]):
        raise ValueError(
            f"input_noise as a matrix must be the covariance of the {n_features} columns of X: symmetric, positive "
            f"semi-definite and not 0; got {covariance.tolist()!r}"
        )
    law = as_noise("norm(0, 1)")
    return InputNoise((law,) * int(kept.sum()), (vectors[:, kept] * np.sqrt(values[kept])).T)


def warn_if_large(noise: InputNoise, kernel: Kernel, names: list[str]) -> None:
    """Warn about columns whose noise is not small compared with the length scales of the kernel."""
    scales = np.full(len(names), np.inf)
    for leaf in elementary(kernel):
        scales = np.minimum(scales, np.asarray(getattr(leaf, "length_scale", np.inf), dtype=float))
    ratio = noise.std / scales
    for column in np.flatnonzero(ratio > LARGE):
        warnings.warn(
            f"the noise on {names[column]} has a standard deviation of {ratio[column]:.2g} length scales: above {LARGE} its "
            "first order is not accurate, and intervals are too narrow",
            UserWarning,
            stacklevel=3,
        )
