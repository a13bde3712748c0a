"""The Gaussian quasi-likelihood with the variance of the noise, and its gradient.

The gradient is the derivative with respect to K, pulled back through the kernel: one inverse, no (n, n, p) array.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray
from ..backend import arrays
from ..smoother import Smoother
from ..smoother.leave_one_out import weighted_residual
from .data import Data, Parameters

__all__ = ["Likelihood", "by_regularizer", "relative_scales"]

NOTHING = 1e-24  # an output whose square is a smaller fraction of the largest is rounding error


@dataclass(frozen=True)
class Likelihood:
    """Gaussian quasi-log-likelihood with the variance of the noise, as a function of the parameters.

    It depends on the mean and the variance of the noise only; its gradient with respect to the shapes is left at 0.
    The trend's coefficients are at their best values. A given ridge does not enter: it belongs to the smoother, not to
    the data. With ``own_scales``, each output has its best scale; they multiply to 1 and make the quadratic forms y_k'A y_k
    equal, so that the density of y needs no factors, and the gradient is that at fixed scales.
    """

    data: Data
    parameters: Parameters
    own_scales: bool = False

    def _unscaled(self, values: FloatArray) -> Smoother:
        """Smoother for these parameters."""
        noise = self.parameters.noise_at(values)
        regularizer = self.data.covariance(noise.var())
        return self.data.smoother(self.parameters.kernel_at(values), noise, regularizer)

    def _smoother(self, values: FloatArray) -> Smoother:
        """The same for outputs divided by their scales."""
        smoother = self._unscaled(values)
        if not self.own_scales:
            return smoother
        return smoother.with_targets(smoother.targets / _output_scale(smoother))

    def output_scale(self, values: FloatArray) -> FloatArray:
        """The best scales of the outputs, (n_y,)."""
        return _output_scale(self._unscaled(values))

    def value(self, values: FloatArray) -> float:
        """Value alone, which needs no inverse."""
        return self._smoother(values).log_likelihood()

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient of shape (p,)."""
        data, parameters, smoother = self.data, self.parameters, self._smoother(values)
        kernel, noise = smoother.kernel, parameters.noise_at(values)
        value = smoother.log_likelihood()
        sensitivity = smoother.log_likelihood_sensitivity(overwrite_factor=True)  # its last use
        gradient = np.zeros(len(values))
        by_theta = kernel.pullback(smoother.places, sensitivity, symmetric=True)
        gradient[: parameters.n_kernel] = arrays.as_numpy(by_theta)
        if parameters.noise.free_std:
            covariance = data.noise_covariance(noise.var())
            diagonal = arrays.as_numpy(arrays.diagonal(sensitivity))
            if covariance.ndim == 1:
                by_variance = float(by_regularizer(smoother, diagonal) @ covariance)
            else:
                by_variance = 2 * float(np.sum(np.tril(arrays.as_numpy(sensitivity), -1) * covariance))
                by_variance += float(diagonal @ np.diagonal(covariance))
            gradient[parameters.n_kernel] = 2 * by_variance
            if noise.mean():
                residual = smoother.samples.times_count(weighted_residual(smoother))
                by_mean = float(np.sum(residual * data.mean_scale[:, None]))
                gradient[parameters.n_kernel] += by_mean * parameters.mean_slope(values, parameters.n_kernel)
        return value, gradient


def by_regularizer(smoother: Smoother, diagonal: FloatArray) -> FloatArray:
    """Derivative of the log-likelihood by the regularizer of each entry of the samples, (D,), for independent noise.

    From the diagonal (U,) of its derivative (alpha alpha' - n_y A)/2 by K.
    """
    samples, n_outputs = smoother.samples, smoother.targets.shape[1]
    inverse = (np.sum(arrays.as_numpy(smoother.dual) ** 2, axis=1) - 2 * diagonal) / n_outputs
    squares = np.sum(weighted_residual(smoother) ** 2, axis=1)
    return samples.times_count(0.5 * (squares - n_outputs * samples.inverse_diagonal(inverse)))


def _output_scale(smoother: Smoother) -> FloatArray:
    """Scales of the outputs that make their quadratic forms y_k'A y_k equal."""
    squares = smoother.targets * weighted_residual(smoother)
    return relative_scales(np.sum(smoother.samples.times_count(squares), axis=0))


def relative_scales(squares: FloatArray) -> FloatArray:
    """Square roots divided by their geometric mean, (n_y,); outputs of size 0 have scale 1."""
    known = squares > NOTHING * squares.max()
    logs = 0.5 * np.log(np.where(known, squares, 1.0))
    mean = logs[known].mean() if known.any() else 0.0
    return np.exp(np.where(known, logs - mean, 0.0))
