"""Mean, noise part and model part at one point in a few microseconds, for control loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg.blas import ddot, dgemv, dtrsv

from .._typing import FloatArray
from ..backend import arrays
from .gradient import gain_ratio
from .smoother import CANCELLED, Smoother

__all__ = ["FastPredictor"]


class FastPredictor:
    """Mean, V and P2 at one point or at a few, without checks.

    It uses two triangular solves with the factor of the smoother, so it is as accurate as the smoother and needs no
    memory of its own (except for a copy of a model in single precision). It is immutable, can be pickled, and may be
    shared between threads.

    Parameters
    ----------
    smoother : Smoother
    s2 : float
        Variance of the noise.
    output_scale : ndarray of shape (n_y,), default=None
        Scales of the outputs; with None all have the same variances, returned without an axis for outputs.
    further : ndarray of shape (U,), default=None
        Variances of further noise at the places, which is then part of V.

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> from wienerkernel.smoother.samples import Samples
    >>> samples = Samples.collapse(np.array([[0.0]]), np.ones(1), np.ones(1))
    >>> predictor = FastPredictor(Smoother(RBF(1.0), samples, np.array([[2.0]])), 1.0)
    >>> [round(part, 4) for part in predictor(np.array([0.0]))]
    [1.0, 0.25, 0.25]
    >>> mean, noise, model = predictor(np.array([[0.0], [1.0]]))
    >>> mean.round(4).tolist()
    [1.0, 0.6065]
    """

    def __init__(
        self,
        smoother: Smoother,
        s2: float,
        output_scale: FloatArray | None = None,
        further: FloatArray | None = None,
    ) -> None:
        if not arrays.is_numpy(smoother.places):
            raise TypeError(
                f"the fast predictor works on NumPy arrays; the model was fitted with {arrays.library(smoother.places)}: "
                "use predict and uncertainty, or fit NumPy arrays"
            )
        if smoother.places.dtype != np.float64:
            samples = replace(smoother.samples, places=smoother.places.astype(np.float64))
            factor = smoother.factor.astype(np.float64)
            smoother = Smoother(smoother.kernel, samples, smoother.targets, smoother.trend.kind, factor)
        self._smoother, self._s2 = smoother, float(s2)
        self._kernel = kernel = smoother.kernel
        self._point, self._prior = kernel._point(np.ascontiguousarray(smoother.places)), kernel._prior
        self._factor = _columns(smoother.factor.T)  # its upper triangle is L'
        self._single = smoother.dual.shape[1] == 1
        self._dual = _columns(smoother.dual[:, 0] if self._single else smoother.dual.T)
        self._scale = None if self._single else output_scale
        self._trend = _FastTrend(smoother) if smoother.trend.kind else None
        samples, self._covariances = smoother.samples, () if further is None else (further,)
        gain, self._ratio = samples.gain, gain_ratio(samples)
        if further is not None:
            gain, self._ratio = gain + (further if gain.ndim == 1 else np.diag(further)) / self._s2, None
        self._gain = None if np.all(gain == 1) else _columns(gain)
        self._regularizer = _columns(samples.regularizer)

    def __reduce__(self) -> tuple[Any, ...]:
        return FastPredictor, (self._smoother, self._s2, self._scale, *self._covariances)

    def __call__(self, x: FloatArray) -> tuple[Any, Any, Any]:
        """Mean, noise part V = s2 |L'a|^2 and model part P2 at x of shape (d,) or (m, d).

        The mean is a float or (n_y,), for several points (m,) or (m, n_y). So are the variances if outputs have scales;
        otherwise they have no axis for outputs.
        """
        if x.ndim == 2:
            mean, model, gain, *parts = self._smoother.mean_and_parts(x, *self._covariances)
            return self._in_units(mean[:, 0] if self._single else mean, sum(parts, self._s2 * gain), model)
        k = self._point(x)
        mean = ddot(self._dual, k) if self._single else dgemv(1.0, self._dual, k)
        v: FloatArray = dtrsv(self._factor, k, 1, 0, 0, 1)  # L v = k
        prior = self._prior
        if prior is None:
            prior = float(self._kernel.diag(np.asarray(x, dtype=np.float64)[None])[0])
        variance = prior - ddot(v, v)
        if self._trend is not None:
            v, of_mean, of_variance = self._trend(x, v)
            mean += float(of_mean[0]) if self._single else of_mean
            variance += of_variance
        b = dtrsv(self._factor, v)  # L'b = v
        if variance < CANCELLED * prior:
            variance = float(self._smoother.sharpened(np.array([variance]), prior, x[None], b[None])[0])
        gain = ddot(b, b) if self._gain is None else _form(self._gain, b)
        model = variance - (_form(self._regularizer, b) if self._ratio is None else self._ratio * gain)
        return self._in_units(mean, self._s2 * gain, max(model, 0.0))

    def _in_units(self, mean: Any, noise: Any, model: Any) -> tuple[Any, Any, Any]:
        """Means (..., n_y) and common variances (...) in the units of the outputs."""
        if self._scale is None:
            return mean, noise, model
        squares = self._scale**2
        return mean * self._scale, np.multiply.outer(noise, squares), np.multiply.outer(model, squares)


class _FastTrend:
    """Contribution of a trend, from h(x) = h(c) + (dh/dx)(x - c) at the center c of the places."""

    def __init__(self, smoother: Smoother) -> None:
        self._center = _columns(smoother.places.mean(axis=0))
        self._at_center = _columns(smoother.trend(self._center[None])[0])
        self._slope = _columns(smoother.trend.gradient)
        self._coefficients = _columns(smoother.trend_coefficients.T)
        self._whitened = _columns(smoother.whitened_trend)
        self._root = _columns(np.linalg.cholesky(smoother.trend_information))  # C C' = H'AH

    def __call__(self, x: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """L^-1 k + L^-1 H s, beta'h and d's, with d = h - H'A k and s = (H'AH)^-1 d."""
        h = dgemv(1.0, self._slope, x - self._center, 1.0, self._at_center)
        e = dtrsv(self._root, dgemv(-1.0, self._whitened, v, 1.0, h), 1, 0, 1)
        s = dtrsv(self._root, e, 1, 0, 1, 1)
        return (
            dgemv(1.0, self._whitened, s, 1.0, v, 0, 1, 0, 1, 1),
            dgemv(1.0, self._coefficients, h),
            ddot(e, e),
        )


def _columns(array: FloatArray) -> FloatArray:
    """Fortran-ordered, in double precision, for BLAS."""
    return np.asfortranarray(array, dtype=np.float64)


def _form(covariance: FloatArray, b: FloatArray) -> float:
    """b'Cb, with C given as a matrix or by its diagonal."""
    return float(ddot(covariance * b if covariance.ndim == 1 else dgemv(1.0, covariance, b), b))
