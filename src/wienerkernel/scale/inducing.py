"""Features of a kernel at inducing points: phi(x) = L^-1 k_Z(x) with K_ZZ = LL', so that phi'phi approximates k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from .._typing import FloatArray, IntArray
from ..backend.linalg import solve_lower
from ..kernels import Kernel
from ..smoother.trend import Trend

__all__ = ["Inducing", "choose_inducing"]

CANDIDATES = 4
"""Rows among which the inducing points are chosen, in numbers of points."""
BLOCK = 64
"""Candidates that are considered at a time."""
ENOUGH = 0.5
"""A candidate of a block is taken if its variance, given the others, is this fraction of the largest one."""
SMALLEST = 1e-10
"""Points of smaller conditional variance, relative to k(x, x), would make the factor ill-conditioned."""


@dataclass(frozen=True)
class Inducing:
    """Inducing points, with the trend's basis functions as further features.

    Parameters
    ----------
    kernel : Kernel
    points : ndarray of shape (p, d)
    factor : ndarray of shape (p, p)
        Cholesky factor of the kernel at the points, C-ordered.
    trend : Trend
    """

    kernel: Kernel
    points: FloatArray
    factor: FloatArray
    trend: Trend

    @property
    def number(self) -> int:
        """Number p of features without those of the trend."""
        return len(self.points)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Features [phi(x), h(x)] at the rows of X, (m, p + q)."""
        phi = solve_lower(self.factor, np.ascontiguousarray(self.kernel(X, self.points)))
        return np.concatenate([phi, self.trend(X)], axis=1) if self.trend.kind else phi


def choose_inducing(
    kernel: Kernel, X: FloatArray, number: int, trend: Trend, generator: np.random.Generator
) -> Inducing:
    """Choose up to ``number`` inducing points among the rows of X, by a blocked pivoted Cholesky factorization."""
    rows = generator.permutation(len(X))[: CANDIDATES * number]
    candidates = X[np.sort(rows)]
    rest = np.array(kernel.diag(candidates), dtype=float)
    smallest = SMALLEST * rest.max()
    factor = np.zeros((len(candidates), min(number, len(candidates))))
    pivots: list[int] = []
    while len(pivots) < factor.shape[1] and rest.max() > smallest:
        done = len(pivots)
        block = np.argsort(-rest, kind="stable")[: min(BLOCK, len(rest))]
        known = factor[:, :done]
        columns = kernel(candidates, candidates[block]) - known @ known[block].T
        chosen = _greedy(columns[block], max(ENOUGH * rest.max(), smallest))[: factor.shape[1] - done]
        corner = np.linalg.cholesky(columns[block[chosen]][:, chosen])
        new = solve_triangular(corner, columns[:, chosen].T, lower=True).T
        factor[:, done : done + len(chosen)] = new
        pivots.extend(block[chosen].tolist())
        rest = np.maximum(rest - np.einsum("ij,ij->i", new, new), 0.0)
        rest[pivots] = 0.0
    points = candidates[pivots]
    return Inducing(kernel, points, np.ascontiguousarray(np.tril(factor[pivots][:, : len(pivots)])), trend)


def _greedy(covariance: FloatArray, least: float) -> IntArray:
    """Indices chosen one by one, each of the largest variance given the previous ones, while that is ``least``."""
    rest, chosen = np.diagonal(covariance).copy(), []
    columns: list[FloatArray] = []
    while rest.max() >= least:
        pivot = int(np.argmax(rest))
        column = covariance[:, pivot] - sum(other * other[pivot] for other in columns)
        columns.append(column / np.sqrt(rest[pivot]))
        chosen.append(pivot)
        rest = rest - columns[-1] ** 2
        rest[chosen] = 0.0
    return np.array(chosen, dtype=np.intp)
