"""A smoother with a single-precision factor and double-precision results: half the memory, by iterative refinement.

The Cholesky factor of K + R is computed and kept in single precision. A solve with it is corrected until the residual
b - (K + R) x, for which the kernel is evaluated again in double precision, tile by tile, is small (Wilkinson 1963).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._typing import Array
from ..backend import arrays
from ..backend.linalg import NotPositiveDefiniteError, matmul, solve_lower, solve_lower_transposed
from ..kernels import Kernel
from .samples import Samples
from .smoother import Smoother, times_covariance

__all__ = ["RefinedSmoother"]

RESIDUAL = 1e-11  # norm of the residual of a solve, relative to the right-hand side, at which it ends
STEPS = 30
TILE = 2**24  # kernel values at a time, of NumPy arrays


class RefinedSmoother(Smoother):
    """A smoother with a factor in single precision and solves refined to 1e-11; its log-likelihood has about six digits."""

    def __init__(self, kernel: Kernel, samples: Samples, targets: Array, trend: str | None = None) -> None:
        single = replace(samples, places=arrays.in_precision(samples.places, "float32"))
        coarse = Smoother(kernel, single, targets)
        super().__init__(kernel, samples, targets, None, factor=coarse.factor)
        self.trend = type(self.trend)(trend, self.places)
        H = arrays.contiguous(self.trend(self.places).T)
        self.solved_trend = self.solve(H) if trend else H
        self.trend_information = H @ self.solved_trend.T

    def solve(self, rows: Array) -> Array:
        """(K + R)^-1 b for each row b, (m, U)."""
        norms = arrays.row_dots(rows, rows) ** 0.5
        solution, residual, last = 0 * rows, rows, np.inf
        for _ in range(STEPS):
            step = arrays.in_precision(arrays.copy(residual), "float32")
            step = solve_lower_transposed(self.factor, solve_lower(self.factor, step))
            solution = solution + arrays.like(step, rows)
            residual = rows - self._times(solution)
            error = arrays.as_numpy(arrays.row_dots(residual, residual) ** 0.5)
            worst = float(np.max(error / np.maximum(arrays.as_numpy(norms), 1e-300), initial=0.0))
            if worst < RESIDUAL:
                return solution
            if worst > 0.5 * last:
                break
            last = worst
        raise NotPositiveDefiniteError(
            f"iterative refinement stopped at a relative residual of {worst:.1e}: the single-precision factor is too far "
            "from K + R; use dtype='float64', or a larger ridge"
        )

    def _times(self, rows: Array) -> Array:
        """(K + R) x for each row x, with the kernel in double precision."""
        n = self.samples.n_places
        product = times_covariance(rows, self.regularizer)
        for part in arrays.slices(n, max(1, arrays.chunk(rows, TILE) // n)):
            product[:, part] += matmul(rows, self.cross(self.places[part, :]), transpose_b=True)
        return product

    def _without_trend(self, rows: Array) -> tuple[Array, Array]:
        """(K + R)^-1 (c - H beta) for each row c, and the coefficients beta of the trend, (m, q)."""
        coefficients = rows @ self.solved_trend.T
        if self.trend.kind:
            coefficients = arrays.namespace(rows).linalg.solve(self.trend_information, coefficients.T).T
        return self.solve(rows) - coefficients @ self.solved_trend, coefficients

    def _solved(self, v: Array) -> Array:
        return v

    def weigh(self, X: Array, cross: Array) -> tuple[Array, Array, Array]:
        weights = self.solve(cross)
        prior, mismatch = self.kernel.diag(X), self.trend(X)
        variance = prior - arrays.row_dots(cross, weights)
        solved = mismatch
        if self.trend.kind:
            mismatch = mismatch - cross @ self.solved_trend.T
            solved = arrays.namespace(X).linalg.solve(self.trend_information, mismatch.T).T
            weights = weights + solved @ self.solved_trend
            variance = variance + arrays.row_dots(mismatch, solved)
        return weights, self.sharpened(variance, prior, X, weights), solved

    def _variance_at(self, X: Array, cross: Array) -> Array:
        return self.weigh(X, cross)[1]

    def evaluate_jointly(self, X: Array) -> tuple[Array, Array, Array]:
        X = arrays.like(X, self.places)
        cross = self.cross(X)
        mean = self._mean(X, cross)
        weights = self.weigh(X, cross)[0]
        product = matmul(weights, cross, transpose_b=True)
        quadratic = matmul(self._times(weights), weights, transpose_b=True)
        ridge = times_covariance(weights, self.regularizer) @ weights.T
        return mean, weights, self.kernel(X, X) - product - product.T + quadratic - ridge

    def _data_fit(self) -> float:
        means = arrays.as_numpy(self.samples.means(self.targets))
        return float(np.sum(means * arrays.as_numpy(self.dual)))

    @property
    def inverse(self) -> Array:
        """Not available: an inverse would need the memory that this class saves."""
        raise TypeError(
            "leave-one-out predictions and gradients need the inverse: use dtype='float64' or 'float32'"
        )
