"""Gradients of the mean and of both parts of the variance with respect to the query point x.

The weights of the places are b = Q k(x) + T h(x) with Q = A - AH S^-1 H'A, T = AH S^-1 and S = H'AH (Q = A without a
trend), so each gradient is a row of weights against dk(x, x_u)/dx, one against dh/dx, and dk(x, x)/dx.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ._typing import FloatArray
from .linalg import matmul, solve_lower, solve_lower_transposed
from .samples import Samples
from .smoother import Smoother
from .trend import Trend

__all__ = ["gain_ratio", "mean_gradient", "trend_gradient", "variance_gradients"]

CHUNK = 2**21  # kernel values of a chunk of queries: 16 MiB, of which a few such arrays are alive


def mean_gradient(smoother: Smoother, X: FloatArray) -> FloatArray:
    """Gradient of the mean a(x)'y0.

    Parameters
    ----------
    smoother : Smoother
    X : ndarray of shape (m, d)

    Returns
    -------
    ndarray of shape (m, n_y, d)

    Raises
    ------
    TypeError
        If the kernel has no analytic gradient with respect to x.

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> samples = Samples.collapse(np.array([[0.0]]), np.ones(1), np.ones(1))
    >>> smoother = Smoother(RBF(1.0), samples, np.array([[2.0]]))   # the mean is exp(-x^2 / 2)
    >>> mean_gradient(smoother, np.array([[1.0]])).round(4).tolist()
    [[[-0.6065]]]
    """
    of_trend = smoother.trend_coefficients.T @ trend_gradient(smoother.trend)  # (n_y, d)
    n_outputs, n_places = smoother.dual.shape[1], smoother.samples.n_places
    gradient = np.empty((len(X), *of_trend.shape))
    for part in _chunks(X, smoother):
        weights = np.broadcast_to(smoother.dual.T[:, None, :], (n_outputs, len(X[part]), n_places))
        of_kernel = smoother.kernel.input_pullback(X[part], smoother.places, weights)
        gradient[part] = of_kernel.transpose(1, 0, 2) + of_trend
    return gradient


def variance_gradients(smoother: Smoother, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradients of the model part P2 and of the noise gain |L'a|^2; the noise part is V = s2 |L'a|^2.

    Parameters
    ----------
    smoother : Smoother
    X : ndarray of shape (m, d)

    Returns
    -------
    model : ndarray of shape (m, d)
    gain : ndarray of shape (m, d)

    Raises
    ------
    TypeError
        If the kernel has no analytic gradient with respect to x.

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> samples = Samples.collapse(np.array([[0.0]]), np.ones(1), np.ones(1))
    >>> smoother = Smoother(RBF(1.0), samples, np.array([[2.0]]))   # the gain is exp(-x^2) / 4
    >>> model, gain = variance_gradients(smoother, np.array([[1.0]]))
    >>> model.round(4).tolist(), gain.round(4).tolist()
    ([[0.5518]], [[-0.1839]])
    """
    samples, slope = smoother.samples, trend_gradient(smoother.trend)
    ratio = gain_ratio(samples)
    model, gain = smoother.kernel.diag_gradient(X), np.empty(X.shape)
    for part in _chunks(X, smoother):
        v = solve_lower(smoother.factor, smoother.kernel(X[part], smoother.places))
        mismatch = smoother.trend(X[part]) - v @ smoother.whitened_trend.T
        solved = np.linalg.solve(smoother.information, mismatch.T).T
        b = solve_lower_transposed(smoother.factor, v + solved @ smoother.whitened_trend)
        # Against dk and dh: 2 Q G b and 2 T'G b for b'Gb, and the same with R for b'Rb
        of_gain = _projected(smoother, 2 * _times(b, samples.gain))
        if ratio is None:
            of_ridge = _projected(smoother, 2 * _times(b, samples.regulariser))
        else:
            of_ridge = ratio * of_gain[0], ratio * of_gain[1]
        # P2 = sigma^2 - b'Rb with d sigma^2 = d k(x,x) - 2 b'dk + 2 (S^-1 (h - H'A k))'dh
        weights = np.stack([-2 * b - of_ridge[0], of_gain[0]])
        of_kernel = smoother.kernel.input_pullback(X[part], smoother.places, weights)
        model[part] += of_kernel[0] + (2 * solved - of_ridge[1]) @ slope
        gain[part] = of_kernel[1] + of_gain[1] @ slope
    return model, gain


def trend_gradient(trend: Trend) -> FloatArray:
    """Gradient dh/dx of the trend's basis functions, which are affine.

    Parameters
    ----------
    trend : Trend

    Returns
    -------
    ndarray of shape (q, d)

    Examples
    --------
    >>> trend_gradient(Trend("linear", np.array([[0.0], [4.0]]))).tolist()
    [[0.0], [0.5]]
    """
    d = trend.places.shape[1]
    if trend.kind != "linear":
        return np.zeros((int(trend.kind == "constant"), d))
    spread = trend.places.std(axis=0)
    return np.vstack([np.zeros(d), np.diag(1 / np.where(spread == 0, 1.0, spread))])


def gain_ratio(samples: Samples) -> float | None:
    """The number c with R = c L L' at all places, or None if there is none.

    Parameters
    ----------
    samples : Samples

    Returns
    -------
    float or None
        The noise variance, when that is the ridge. Correlated noise is not looked at.

    Examples
    --------
    >>> gain_ratio(Samples.collapse(np.array([[0.0], [0.0], [1.0]]), np.full(3, 0.5), np.ones(3)))
    0.5
    """
    regulariser, gain = samples.regulariser, samples.gain
    if regulariser.ndim == 2 or gain.ndim == 2:
        return None
    ratio = float(regulariser[0] / gain[0])
    return ratio if np.allclose(regulariser, ratio * gain, rtol=1e-14, atol=0.0) else None


def _chunks(X: FloatArray, smoother: Smoother) -> Iterator[slice]:
    step = max(1, CHUNK // smoother.samples.n_places)
    return (slice(start, start + step) for start in range(0, len(X), step))


def _projected(smoother: Smoother, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Q c and T'c for each row c: (m, U) and (m, q); the rows are overwritten."""
    v = solve_lower(smoother.factor, rows)
    solved = np.linalg.solve(smoother.information, smoother.whitened_trend @ v.T).T
    v -= solved @ smoother.whitened_trend
    return solve_lower_transposed(smoother.factor, v), solved


def _times(weights: FloatArray, covariance: FloatArray) -> FloatArray:
    return matmul(weights, covariance) if covariance.ndim == 2 else weights * covariance
