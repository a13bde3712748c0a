"""The Gaussian process in few coordinates: f(x) = phi(x)'w plus a remainder that is negligible at the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from .._typing import FloatArray, IntArray
from ..kernels import Kernel
from ..smoother.samples import Samples
from ..smoother.trend import Trend

__all__ = ["Coordinates", "Observed"]

DROPPED = 1e-13
"""Fraction of k(x, x) that the features may leave out at a place."""


@dataclass(frozen=True)
class Coordinates:
    """Features phi from a pivoted Cholesky factorization of K, then the functions of the trend.

    The weights of the features are standard normal, those of the trend have a flat prior. The rest f - phi'w is
    independent of w and has variance k(x, x) - |phi(x)|^2, which is 0 at the places.

    The features phi at the U places, (U, r + q), belong to r of them, the pivots; ``factor`` (r, r) is the Cholesky factor
    of the kernel there.
    """

    kernel: Kernel
    places: FloatArray
    trend: Trend
    pivots: IntArray
    factor: FloatArray
    phi: FloatArray

    @classmethod
    def at(cls, kernel: Kernel, places: FloatArray, trend: str | None = None) -> Coordinates:
        """Coordinates for a kernel and the places of the data."""
        gram = np.asarray(kernel(places), dtype=np.float64)
        lower, order, rank, _ = dpstrf(gram, tol=DROPPED * gram.diagonal().max(), lower=1)
        order = order.astype(np.intp) - 1
        phi = np.empty((len(places), rank))
        columns = np.tril(lower[:, :rank])
        phi[order] = columns
        basis = Trend(trend, places)
        factor = np.ascontiguousarray(columns[:rank])  # as it is after loading
        return cls(kernel, places, basis, order[:rank], factor, np.hstack([phi, np.asarray(basis(places))]))

    @property
    def precision(self) -> FloatArray:
        """Prior precisions of the weights, (r + q,): 1, and 0 for the trend."""
        return (np.arange(self.phi.shape[1]) < len(self.pivots)).astype(float)

    def gram(self, weight: FloatArray) -> FloatArray:
        """Phi' diag(weight) Phi with weights of the places, (r + q, r + q)."""
        return np.asarray(self.phi.T @ (weight[:, None] * self.phi))

    def features(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """phi(x) at the rows of X, (m, r + q), and the variances of the rest, (m,)."""
        cross = np.asarray(self.kernel(self.places[self.pivots], X), dtype=np.float64)
        own = solve_triangular(self.factor, cross, lower=True).T
        rest = np.asarray(self.kernel.diag(X)) - np.einsum("ij,ij->i", own, own)
        return np.hstack([own, np.asarray(self.trend(X))]), np.maximum(rest, 0.0)

    def rest_covariance(self, X: FloatArray, phi: FloatArray) -> FloatArray:
        """Covariance of the rest at the rows of X, which have the features phi, (m, m)."""
        own = phi[:, : len(self.pivots)]
        return np.asarray(self.kernel(X) - own @ own.T)


@dataclass(frozen=True)
class Observed:
    """Samples y_i = f(place index_i) + scale_i M_i.

    These and the places' ``index`` have shape (n,); the places are (U, d).
    """

    y: FloatArray
    scale: FloatArray
    index: IntArray
    places: FloatArray

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, scale: FloatArray) -> Observed:
        """Group the samples by their inputs."""
        samples = Samples.collapse(np.asarray(X, dtype=np.float64), scale**2, scale)
        return cls(y, scale, samples.index, np.asarray(samples.places))

    def without(self, i: int) -> Observed:
        """All samples but one, at the same places."""
        others = np.arange(len(self.y)) != i
        return Observed(self.y[others], self.scale[others], self.index[others], self.places)

    def per_place(self, values: FloatArray) -> FloatArray:
        """Sums over the samples of each place, (U,)."""
        return np.bincount(self.index, weights=values, minlength=len(self.places)).astype(float, copy=False)
