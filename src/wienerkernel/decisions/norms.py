"""RKHS norms: of the estimate, a lower bound for f from noisy data, and that of an interpolant."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..backend import arrays
from ..backend.linalg import cholesky, solve_lower
from ..kernels import as_kernel, gram
from ..law import LinearCombination
from ..posterior import Posterior
from ..smoother.leave_one_out import projected_inverse
from ..text import check_probability

__all__ = ["NormWarning", "interpolant_norm", "norm_lower_bound", "rkhs_norm"]


class NormWarning(UserWarning):
    """The data contradict the bound on the norm of f.

    Examples
    --------
    >>> import warnings
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", trend=None, tuning=None).fit([[0.0]], [5.0])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", NormWarning)
    ...     model.bound([[0.0]], norm=1.0)
    Traceback (most recent call last):
    wienerkernel.decisions.norms.NormWarning: norm=1 is contradicted by the data: ...
    """


def rkhs_norm(posterior: Posterior) -> Any:
    """RKHS norm of the estimate, sqrt(y0'A K A y0), without its trend.

    Parameters
    ----------
    posterior : Posterior

    Returns
    -------
    float, or ndarray of shape (n_y,)
        In the space of the kernel of each output, ``output_scale_[k]**2`` times the common one.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> round(rkhs_norm(WienerKernelRegressor(RBF(1.0), trend=None, tuning=None).fit([[0.0]], [2.0]).posterior_), 9)
    1.0
    """
    smoother = posterior.smoother
    fitted = smoother.mean(smoother.places) - smoother.trend(smoother.places) @ smoother.trend_coefficients
    squares = np.sum(arrays.as_numpy(smoother.dual * fitted), axis=0)
    norms = np.sqrt(np.maximum(squares, 0.0))
    return float(norms[0]) if posterior.single_output else norms


def norm_lower_bound(posterior: Posterior, confidence: float = 0.95) -> Any:
    """Lower bound, with the given confidence, for the RKHS norm of f (without its trend); fixed design.

    The estimate is S f + S (M - m0) with a linear map S of norm at most 1, so |f| >= |mu| - |S (M - m0)|. The
    quantile of |S (M - m0)|^2, a quadratic form of the noise, is exact for normal noise and otherwise from its mean
    and variance (Cantelli's inequality), or from its mean alone (Markov's) where the fourth moment does not exist.

    Parameters
    ----------
    posterior : Posterior
    confidence : float, default=0.95

    Returns
    -------
    float, or ndarray of shape (n_y,)
        At least 0. For several outputs, each holds with this confidence.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), trend=None, tuning=None).fit([[0.0]], [20.0])
    >>> round(norm_lower_bound(model.posterior_), 3)   # half of 20 minus half of the normal quantile 1.96
    9.02
    """
    error = 1 - check_probability("confidence", confidence)
    smoother, noise = posterior.smoother, posterior.noise
    samples = smoother.samples
    Q = arrays.as_numpy(projected_inverse(smoother))  # the coefficients of the estimate are Q y0
    K = arrays.as_numpy(smoother.kernel(smoother.places, smoother.places))
    form = Q @ K @ Q
    if samples.scale.ndim == 2:
        form, fourth = samples.scale.T @ form @ samples.scale, np.ones(samples.n_places)
    else:
        length = np.sqrt(samples.gain)
        form = length[:, None] * form * length
        powers = samples.times_count((samples.share * samples.scale) ** 4)
        fourth = np.bincount(samples.index, weights=powers) / samples.gain**2
    s2, diagonal = noise.var(), np.diag(form)
    mean = s2 * np.sum(diagonal)
    if noise.gaussian:
        quantile = float(LinearCombination("chi2(1)", s2 * np.linalg.eigvalsh(form)).isf(error))
    else:
        variance = 2 * s2**2 * np.sum(form**2) + noise.cumulants(4)[3] * np.sum(fourth * diagonal**2)
        cantelli = mean + sqrt((1 / error - 1) * variance) if np.isfinite(variance) else np.inf
        quantile = min(cantelli, mean / error)
    lowest = np.maximum(np.asarray(rkhs_norm(posterior)) - sqrt(quantile), 0.0)
    return float(lowest) if posterior.single_output else lowest


def interpolant_norm(kernel: Any, X: ArrayLike, values: ArrayLike) -> Any:
    """Lower bound for the RKHS norm of every f with the given values: that of the interpolant of least norm.

    Parameters
    ----------
    kernel : Kernel, scikit-learn kernel or callable
    X : array-like of shape (n, d)
    values : array-like of shape (n,) or (n, n_y)
        f(X), without noise.

    Returns
    -------
    float, or ndarray of shape (n_y,)
        sqrt(f' (K + e I)^-1 f); adding e, of the size of the rounding errors of K, can only make it smaller.

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> round(interpolant_norm(RBF(1.0), [[0.0], [9.0]], [3.0, 4.0]), 9)
    5.0
    """
    inputs = np.asarray(X, dtype=np.float64)
    f = np.asarray(values, dtype=np.float64)
    if inputs.ndim != 2 or not len(inputs) or f.ndim not in (1, 2) or len(f) != len(inputs):
        raise ValueError(
            f"X must have shape (n, d) and values (n,) or (n, n_y), got shapes {inputs.shape} and {f.shape}"
        )
    matrix = np.asarray(gram(as_kernel(kernel), inputs))
    n = len(matrix)
    matrix.flat[:: n + 1] += 4 * n * np.finfo(float).eps * np.trace(matrix) / n
    rows = solve_lower(cholesky(matrix), np.array(f.reshape(n, -1).T, order="C"))
    norms = np.linalg.norm(rows, axis=1)
    return float(norms[0]) if f.ndim == 1 else norms
