"""The linear smoother: factorize once, then everything is a function of the weights a(x).

For regularizer R (rho^2 I in the paper) and weights a = (K + R)^-1 k(x), the mean is a'y0 (eq. 13a), the noise part
of the variance is s2 |L'a|^2 (13b) and the model part is P2 = k(x,x) - 2 a'k + a'Ka. With a trend of basis functions
h, the weights are those of universal kriging, a = A k + A H (H'AH)^-1 (h - H'A k): still linear in y, so the rest
holds unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import numpy as np

from .._typing import Array
from ..backend import arrays
from ..backend.growable_cholesky import GrowableCholesky
from ..backend.linalg import (
    add_outer,
    cholesky,
    inverse_from_cholesky,
    matmul,
    solve_lower,
    solve_lower_transposed,
)
from ..kernels import Kernel, gram
from ..kernels.tiles import CrossKernel, mirrored
from .samples import Samples
from .trend import Trend, check_determined

__all__ = ["CANCELLED", "Smoother", "quadratic_form", "times_covariance"]

CHUNK = 2**20  # kernel values per chunk of queries, 8 MiB: memory of this size is not returned to the system
CHUNK_ROWS = 512  # queries per chunk, at least: with fewer, reading the factor from memory limits the solves
T = TypeVar("T", bound=tuple[Array, ...])
CANCELLED = 1e-6  # a posterior variance below this fraction of k(x,x) has lost six digits as a difference


class Smoother:
    """A linear smoother, conditioned on data.

    ``targets`` (D, n_y) are the samples without the mean of their noise; ``trend`` is None, "constant" or "linear". Known
    parts can be given: the Cholesky ``factor`` of K + R with its ``growable`` memory, and ``whitened_trend`` L^-1 H as rows
    (q, U). The precision of the samples is that of all computations.
    """

    def __init__(
        self,
        kernel: Kernel,
        samples: Samples,
        targets: Array,
        trend: str | None = None,
        factor: Array | None = None,
        growable: GrowableCholesky | None = None,
        whitened_trend: Array | None = None,
    ) -> None:
        self.kernel = kernel
        self.samples = samples
        self.targets = targets
        self.places = samples.places
        self.trend = Trend(trend, self.places)
        if factor is None:
            matrix = gram(kernel, self.places)
            factor = cholesky(arrays.add_covariance(matrix, arrays.like(samples.regularizer, matrix)))
        self.factor = factor
        self.growable = growable
        # L^-1 H, as rows, and H'AH
        if whitened_trend is None:
            whitened_trend = solve_lower(factor, arrays.contiguous(self.trend(self.places).T))
        self.whitened_trend = whitened_trend
        self.trend_information = self.whitened_trend @ self.whitened_trend.T
        check_determined(self.trend_information, samples.n_places)

    def with_targets(self, targets: Array) -> Smoother:
        """The same smoother for other targets."""
        return Smoother(self.kernel, self.samples, targets, self.trend.kind, self.factor)

    @cached_property
    def _whitened(self) -> tuple[Array, Array]:
        """L^-1 (ybar - H beta) as rows (n_y, U), and the coefficients beta of the trend (n_y, q)."""
        means = arrays.like(np.array(self.samples.means(self.targets).T, order="C"), self.places)
        return self._without_trend(means)

    @property
    def trend_coefficients(self) -> Array:
        """Coefficients beta of the trend, (q, n_y)."""
        return self._whitened[1].T

    @cached_property
    def dual(self) -> Array:
        """Coefficients of the mean in terms of k(x), (U, n_y)."""
        return arrays.contiguous(self._solved(arrays.copy(self._whitened[0])).T)

    @cached_property
    def regularizer(self) -> Array:
        """R of the places, in their library and precision: (U,) or (U, U)."""
        return arrays.like(self.samples.regularizer, self.places)

    @cached_property
    def gain(self) -> Array:
        """L L' of the places, in their library and precision: (U,) or (U, U)."""
        return arrays.like(self.samples.gain, self.places)

    @cached_property
    def cross(self) -> CrossKernel:
        """k(x) of query points, with the places prepared."""
        return CrossKernel(self.kernel, self.places)

    def by_chunks(self, function: Callable[[Array], T], X: Array) -> T:
        """Apply a function to the queries in chunks, so that memory stays bounded."""
        X = arrays.like(X, self.places)
        step = max(CHUNK_ROWS, arrays.chunk(X, CHUNK) // self.samples.n_places)
        if X.shape[0] <= step:
            return function(X)
        parts = [function(X[part, :]) for part in arrays.slices(X.shape[0], step)]
        xp = arrays.namespace(X)
        return tuple(xp.concat(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]

    def _mean(self, X: Array, cross: Array) -> Array:
        mean = matmul(cross, self.dual)
        return mean + self.trend(X) @ self.trend_coefficients if self.trend.kind else mean

    def whiten(self, rows: Array, basis: Array) -> tuple[Array, Array, Array]:
        """v = L^-1 k as rows (m, U), the trend's mismatch d = h - H'A k (m, q), and (H'AH)^-1 d, for rows k and h."""
        v = solve_lower(self.factor, rows)
        if not self.trend.kind:
            return v, basis, basis
        mismatch = basis - v @ self.whitened_trend.T
        return v, mismatch, arrays.namespace(v).linalg.solve(self.trend_information, mismatch.T).T

    def unwhiten(self, v: Array, solved: Array) -> Array:
        """Weights A k + AH (H'AH)^-1 d, (m, U), in place of v."""
        if self.trend.kind:
            v += solved @ self.whitened_trend
        return self._solved(v)

    def _solved(self, v: Array) -> Array:
        """A c for rows v = L^-1 c, in their place."""
        return solve_lower_transposed(self.factor, v)

    def _without_trend(self, rows: Array) -> tuple[Array, Array]:
        """L^-1 (c - H beta) for each row c, in its place, and the coefficients beta of the trend, (m, q)."""
        v, _, solved = self.whiten(
            rows, arrays.filled((rows.shape[0], self.whitened_trend.shape[0]), 0.0, rows)
        )
        if self.trend.kind:
            v += solved @ self.whitened_trend
        return v, -solved

    def project(self, rows: Array) -> tuple[Array, Array]:
        """Q c and T'c, coefficients of k(x) (m, U) and h(x) (m, q), for rows c of values at the places; overwrites c."""
        v, coefficients = self._without_trend(rows)
        return self._solved(v), coefficients

    def _variance(self, prior: Array, v: Array, mismatch: Array, solved: Array) -> Array:
        """k(x,x) - k'Ak + d'(H'AH)^-1 d."""
        variance = prior - arrays.row_dots(v, v)
        return variance + arrays.row_dots(mismatch, solved) if self.trend.kind else variance

    def weigh(self, X: Array, cross: Array) -> tuple[Array, Array, Array]:
        """Weights b of the places (m, U), which overwrite k(x), the posterior variance (m,), and (H'AH)^-1 d (m, q)."""
        v, mismatch, solved = self.whiten(cross, self.trend(X))
        prior = self.kernel.diag(X)
        variance = self._variance(prior, v, mismatch, solved)
        weights = self.unwhiten(v, solved)
        return weights, self.sharpened(variance, prior, X, weights), solved

    def _variance_at(self, X: Array, cross: Array) -> Array:
        """The posterior variance (m,) alone, which needs no weights; overwrites k(x)."""
        return self._variance(self.kernel.diag(X), *self.whiten(cross, self.trend(X)))

    def _evaluate(self, X: Array) -> tuple[Array, Array, Array]:
        """Mean (m, n_y), weights b of the places (m, U) and posterior variance (m,)."""
        cross = self.cross(X)
        mean = self._mean(X, cross)  # before the weights overwrite k(x)
        weights, variance, _ = self.weigh(X, cross)
        return mean, weights, variance

    def sharpened(self, variance: Array, prior: Array, X: Array, weights: Array) -> Array:
        """Posterior variance (m,), taken from the weights where that is more accurate; the argument is overwritten.

        At a place u it is r_u b_u, trend or not. Where most of k(x,x) cancels, this keeps more digits than the
        difference: its error is about eps (k(x,x) |e_u - b| |b| + r_u) instead of eps k(x,x).
        """
        if not arrays.is_numpy(variance) or self.regularizer.ndim == 2:
            return variance
        small = np.flatnonzero(variance < CANCELLED * prior)
        if len(small):
            place = self.samples.find(X[small])[0]
            known = place < self.samples.n_places
            small, place = small[known], place[known]
            variance[small] = self.regularizer[place] * weights[small, place]
        return variance

    def mean(self, X: Array) -> Array:
        """Mean a(x)'y0 at the rows of X, (m, n_y) (eq. 13a)."""
        return self.by_chunks(lambda part: (self._mean(part, self.cross(part)),), X)[0]

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Mean (m, n_y) and variance k(x,x) - k'Ak (m,) of a Gaussian process whose noise covariance is R (eq. 2)."""

        def both(part: Array) -> tuple[Array, Array]:
            cross = self.cross(part)
            mean = self._mean(part, cross)  # before L^-1 k(x) overwrites k(x)
            return mean, arrays.positive_part(self._variance_at(part, cross))

        return self.by_chunks(both, X)

    def mean_and_parts(self, X: Array, *covariances: Array) -> tuple[Array, ...]:
        """Mean (m, n_y), P2, noise gain |L'a|^2, and a'Ca for further covariances C (U,) of the places; (m,) each."""

        def all_parts(part: Array) -> tuple[Array, ...]:
            mean, weights, variance = self._evaluate(part)
            ridge, *forms = _quadratic_forms(weights, self.regularizer, self.gain, *covariances)
            return mean, arrays.positive_part(variance - ridge), *forms

        return self.by_chunks(all_parts, X)

    def evaluate(self, X: Array) -> tuple[Array, Array, Array]:
        """Mean (m, n_y), weights b of the places (m, U) and model part P2 (m,), from one evaluation of the kernel."""

        def all_parts(part: Array) -> tuple[Array, Array, Array]:
            mean, weights, variance = self._evaluate(part)
            return mean, weights, arrays.positive_part(variance - quadratic_form(weights, self.regularizer))

        return self.by_chunks(all_parts, X)

    def evaluate_jointly(self, X: Array) -> tuple[Array, Array, Array]:
        """Mean (m, n_y), weights b (m, U) and the covariance of f(x) - a(x)'f(X), (m, m), whose diagonal is P2."""
        X = arrays.like(X, self.places)
        cross = self.cross(X)
        mean = self._mean(X, cross)  # before L^-1 k(x) overwrites k(x)
        v, mismatch, solved = self.whiten(cross, self.trend(X))
        covariance = self.kernel(X, X) - matmul(v, v, transpose_b=True) + mismatch @ solved.T
        weights = self.unwhiten(v, solved)
        return mean, weights, covariance - times_covariance(weights, self.regularizer) @ weights.T

    def log_likelihood(self) -> float:
        """Log density of the targets under a Gaussian process with noise covariance R at the trend's best coefficients."""
        n, n_outputs = self.samples.n, self.targets.shape[1]
        pivots = arrays.as_numpy(arrays.diagonal(self.factor))
        log_determinant = 2 * float(np.sum(np.log(pivots, dtype=np.float64)))
        quadratic = self._data_fit()
        regularizer = self.samples.row_regularizer
        if regularizer.ndim == 1:
            logs = self.samples.times_count(np.log(regularizer))
            log_determinant += float(np.sum(logs) - np.sum(np.log(self.samples.regularizer)))
            quadratic += float(np.sum(self.samples.times_count(self.within**2 / regularizer[:, None])))
        return float(-0.5 * (quadratic + n_outputs * (log_determinant + n * np.log(2 * np.pi))))

    def _data_fit(self) -> float:
        """ybar'Q ybar, summed over outputs."""
        return float(np.sum(np.square(arrays.as_numpy(self._whitened[0]), dtype=np.float64)))

    def log_likelihood_gradient(self) -> Array:
        """Gradient of :meth:`log_likelihood` with respect to the kernel's ``theta``, (p,)."""
        return self.kernel.pullback(self.places, self.log_likelihood_sensitivity(), symmetric=True)

    def log_likelihood_sensitivity(self, *, overwrite_factor: bool = False) -> Array:
        """Derivative (alpha alpha' - n_y A) / 2 of :meth:`log_likelihood` by K, (U, U): its lower triangle.

        With ``overwrite_factor`` it takes the memory of the factor, and the smoother can no longer predict.
        """
        rows = arrays.contiguous(self.dual.T)
        inverse = inverse_from_cholesky(self.factor, overwrite=overwrite_factor)
        return add_outer(inverse, rows, 0.5, -0.5 * rows.shape[0])

    @cached_property
    def within(self) -> Array:
        """Targets minus the mean of their place, (D, n_y)."""
        return np.asarray(self.targets - self.samples.means(self.targets)[self.samples.index])

    @cached_property
    def inverse(self) -> Array:
        """A = (K + R)^-1 of the places, (U, U)."""
        return mirrored(inverse_from_cholesky(self.factor))


def times_covariance(weights: Array, covariance: Array) -> Array:
    """C b for each row b, (m, n), with C given as a matrix (n, n) or by its diagonal (n,)."""
    return matmul(weights, covariance) if covariance.ndim == 2 else weights * covariance


def _quadratic_forms(weights: Array, *covariances: Array) -> tuple[Array, ...]:
    """:func:`quadratic_form` for several C; the weights are overwritten."""
    if any(covariance.ndim == 2 for covariance in covariances):
        return tuple(quadratic_form(weights, covariance) for covariance in covariances)
    weights *= weights
    forms = matmul(weights, arrays.namespace(weights).stack(covariances, axis=1))
    return tuple(forms[:, i] for i in range(len(covariances)))


def quadratic_form(weights: Array, covariance: Array) -> Array:
    """b'Cb for each row b, (m,), with C given as a matrix (n, n) or by its diagonal (n,)."""
    return arrays.row_dots(times_covariance(weights, covariance), weights)
