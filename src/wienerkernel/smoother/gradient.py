"""Gradients of the mean and of both parts of the variance with respect to the query point x.

The weights of the places are b = Q k(x) + T h(x) with Q = A - AH S^-1 H'A, T = AH S^-1 and S = H'AH (Q = A without a
trend), so each gradient is a row of weights against dk(x, x_u)/dx, one against dh/dx, and dk(x, x)/dx.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..backend import arrays
from .samples import Samples
from .smoother import Smoother, times_covariance

__all__ = ["gain_ratio", "mean_gradient", "variance_gradients"]


def mean_gradient(smoother: Smoother, X: Array) -> Array:
    """Gradient of the mean a(x)'y0, (m, n_y, d); TypeError if the kernel has no analytic one."""
    xp, places, dual = arrays.namespace(smoother.places), smoother.places, smoother.dual.T[:, None, :]
    of_trend = smoother.trend_coefficients.T @ smoother.trend.gradient  # (n_y, d)

    def gradient(part: Array) -> tuple[Array]:
        weights = xp.broadcast_to(dual, (dual.shape[0], part.shape[0], dual.shape[2]))
        of_kernel = smoother.kernel.input_pullback(part, places, weights)
        return (xp.permute_dims(arrays.like(of_kernel, places), (1, 0, 2)) + of_trend,)

    return smoother.by_chunks(gradient, X)[0]


def variance_gradients(smoother: Smoother, X: Array, covariance: Array | None = None) -> tuple[Array, Array]:
    """Gradients (m, d) of P2 and of the noise gain |L'a|^2, or of a'Ca for a covariance C (U,) of the places."""
    xp, kernel, places = arrays.namespace(smoother.places), smoother.kernel, smoother.places
    slope = smoother.trend.gradient
    ratio = gain_ratio(smoother.samples) if covariance is None else None
    gain = smoother.gain if covariance is None else covariance

    def gradients(part: Array) -> tuple[Array, Array]:
        b, _, solved = smoother.weigh(part, smoother.cross(part))
        # Against dk and dh: 2 Q G b and 2 T'G b for b'Gb, and the same with R for b'Rb
        of_gain = smoother.project(2 * times_covariance(b, gain))
        if ratio is None:
            of_ridge = smoother.project(2 * times_covariance(b, smoother.regularizer))
        else:
            of_ridge = ratio * of_gain[0], ratio * of_gain[1]
        # P2 = sigma^2 - b'Rb with d sigma^2 = d k(x,x) - 2 b'dk + 2 (S^-1 (h - H'A k))'dh
        weights = xp.stack([-2 * b - of_ridge[0], of_gain[0]])
        of_kernel = arrays.like(kernel.input_pullback(part, places, weights), places)
        model = kernel.diag_gradient(part) + of_kernel[0, :, :] + (2 * solved - of_ridge[1]) @ slope
        return model, of_kernel[1, :, :] + of_gain[1] @ slope

    return smoother.by_chunks(gradients, X)


def gain_ratio(samples: Samples) -> float | None:
    """The number c with R = c L L' at all places (the noise variance if that is the ridge); None if there is none."""
    regularizer, gain = samples.regularizer, samples.gain
    if regularizer.ndim == 2 or gain.ndim == 2:
        return None
    ratio = float(regularizer[0] / gain[0])
    return ratio if np.allclose(regularizer, ratio * gain, rtol=1e-14, atol=0.0) else None
