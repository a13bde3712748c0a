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
        rows = _pivots(kernel(X), number)
    matrix = np.zeros((n, len(rows)))
    matrix[rows, np.arange(len(rows))] = 1.0
    return matrix


def _pivots(K: FloatArray, number: int) -> IntArray:
    """Rows of a partial Cholesky factorization, each of the largest variance given the previous ones, then the others."""
    rest, columns, pivots = np.diagonal(K).copy(), np.zeros((len(K), number)), []
    smallest = 1e-12 * rest.max()
    for j in range(number):
        pivot = int(np.argmax(rest))
        if rest[pivot] <= smallest:
            break
        columns[:, j] = (K[:, pivot] - columns[:, :j] @ columns[pivot, :j]) / np.sqrt(rest[pivot])
        pivots.append(pivot)
        rest = np.maximum(rest - columns[:, j] ** 2, 0.0)
        rest[pivots] = 0.0
    # the function is known at the others, but their noise is not averaged
    others = np.setdiff1d(np.arange(len(K)), pivots)
    return np.concatenate([np.array(pivots, dtype=np.intp), others])[:number]


@dataclass(frozen=True)
class ActionSmoother(SampleSmoother):
    """A linear smoother whose weights are in the span of actions.

    Parameters
    ----------
    actions : ndarray of shape (n, m)
    """

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
        total = np.asarray(self.kernel.diag(X)) - np.einsum("ij,ij->i", v, v)
        if self.trend:
            trend = solve_lower(factor, np.ascontiguousarray(self._basis(self.X).T @ S))
            mismatch = self._basis(X) - v @ trend.T
            information = trend @ trend.T
            check_determined(information, S.shape[1], "actions")
            solved = np.linalg.solve(information, mismatch.T).T
            v = v + solved @ trend
            total = total + np.einsum("ij,ij->i", mismatch, solved)
        return solve_lower_transposed(factor, np.ascontiguousarray(v)) @ S.T, total

    def predict(self, X: FloatArray) -> Evaluation:
        """Predict at the rows of X (m, d)."""
        weights, total = self.weights(X)
        columns = weights * self.scale
        model = np.maximum(total - weights**2 @ self.regularizer, 0.0)
        excess = total - self._exact.mean_and_variance(X)[1]
        return Evaluation(
            weights @ self.targets,
            columns,
            np.einsum("ij,ij->i", columns, columns),
            model,
            np.clip(excess, 0.0, model),
            np.zeros(len(X)),
        )

    def left_out(self, rows: IntArray) -> LeftOut:  # noqa: ARG002
        """Residuals of some samples, each predicted without itself: not available."""
        raise TypeError(
            "leave-one-out scores of a model with given actions are not available: score held-out data"
        )

    def evaluate_jointly(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean (m, n_y), weights (m, n) and the covariance of f(x) - a(x)'f(X), (m, m), whose diagonal is P2."""
        weights, _ = self.weights(X)
        cross = weights @ self.kernel(self.X, X)
        quadratic = weights @ self.kernel(self.X) @ weights.T
        return weights @ self.targets, weights * self.scale, self.kernel(X) - cross - cross.T + quadratic
