"""Weights in the span of given actions S, a = S (S'Khat S)^-1 S'k: the cost of an approximation, exactly, for few data.

With Khat = K + R, V + P2 of these weights is k - k'S (S'Khat S)^-1 S'k, and it decreases with every further action to that
of the exact weights (Wenger et al. 2022). The difference is the computational part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._typing import FloatArray, IntArray
from ..backend.linalg import cholesky, solve_lower, solve_lower_transposed
from ..kernels import Kernel
from ..smoother import Smoother
from ..smoother.samples import Samples
from ..smoother.trend import Trend, check_determined
from .approximation import Actions
from .device import krige
from .inducing import greedy
from .neighbors import Evaluation, LeftOut, SampleSmoother

__all__ = ["ActionSmoother", "action_matrix"]


def action_matrix(actions: Actions, kernel: Kernel, X: FloatArray) -> FloatArray:
    """The actions as columns (n, m)."""
    n = len(X)
    if not isinstance(actions.kind, str):
        matrix = np.asarray(actions.kind, dtype=np.float64)
        if len(matrix) != n:
            raise ValueError(
                f"the matrix of actions must have {n} rows, one for each sample, got {len(matrix)}"
            )
        matrix = np.ascontiguousarray(matrix[:, : actions.number])
        if not np.all(np.isfinite(matrix)) or np.linalg.matrix_rank(matrix) < matrix.shape[1]:
            raise ValueError("the columns of the matrix of actions must be finite and linearly independent")
        return matrix
    number = min(n, n if actions.number is None else actions.number)
    if actions.kind == "subset":
        rows = np.random.default_rng(actions.random_state).permutation(n)[:number]
    else:
        K = kernel(X)
        pivots = greedy(K, number, 1e-12 * float(np.max(np.diagonal(K))))
        # the function is known at the others, but their noise is not averaged
        rows = np.append(pivots, np.setdiff1d(np.arange(n), pivots))[:number]
    matrix = np.zeros((n, len(rows)))
    matrix[rows, np.arange(len(rows))] = 1.0
    return matrix


@dataclass(frozen=True)
class ActionSmoother(SampleSmoother):
    """A linear smoother whose weights are in the span of actions (n, m)."""

    actions: FloatArray

    @cached_property
    def _exact(self) -> Smoother:
        samples = Samples.collapse(self.X, self.regularizer, self.scale)
        return Smoother(self.kernel, samples, self.targets, self.trend)

    @cached_property
    def _basis(self) -> Trend:
        return Trend(self.trend, self.X)

    @cached_property
    def _factor(self) -> FloatArray:
        """Cholesky factor of S'Khat S."""
        K = self.kernel(self.X)
        K.flat[:: len(K) + 1] += self.regularizer
        return np.asarray(cholesky(np.ascontiguousarray(self.actions.T @ K @ self.actions)))

    def weights(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights a (m, n), and V + P2 under noise of covariance R, (m,)."""
        factor, S = self._factor, self.actions
        v = solve_lower(factor, np.ascontiguousarray(self.kernel(X, self.X) @ S))
        trend = solve_lower(factor, np.ascontiguousarray(self._basis(self.X).T @ S))
        check_determined(trend @ trend.T, S.shape[1], "actions")
        sides = np.concatenate([v[:, None], np.broadcast_to(trend, (len(X), *trend.shape))], axis=1)
        white, total = krige(sides, np.asarray(self.kernel.diag(X)), self._basis(X))
        return solve_lower_transposed(factor, np.ascontiguousarray(white)) @ S.T, total

    def predict(self, X: FloatArray) -> Evaluation:
        """Predict at the rows of X (m, d)."""
        weights, total = self.weights(X)
        return self._evaluation(slice(None), weights, total, total - self._exact.mean_and_variance(X)[1])

    def left_out(self, rows: IntArray) -> LeftOut:  # noqa: ARG002
        """Residuals of some samples, each predicted without itself: not available."""
        raise TypeError(
            "leave-one-out scores of a model with given actions are not available: score held-out data"
        )

    def evaluate_jointly(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean (m, n_y), weights of the noise (m, n) and the covariance of f(x) - a(x)'f(X), (m, m); its diagonal is P2."""
        weights = self.weights(X)[0]
        mean, covariance = self._evaluate_jointly(X, slice(None), weights)
        return mean, weights * self.scale, covariance
