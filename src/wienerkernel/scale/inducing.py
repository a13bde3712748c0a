"""Features of a kernel at inducing points: phi(x) = L^-1 k_Z(x) with K_ZZ = LL', so that phi'phi approximates k."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..backend.linalg import solve_lower
from ..kernels import Kernel
from ..kernels.tiles import CrossKernel
from ..smoother.trend import Trend

__all__ = ["CANDIDATES", "Inducing", "choose_inducing", "greedy"]

CANDIDATES = 4
"""Rows among which the inducing points are chosen, in numbers of points."""
BLOCK = 64
"""Candidates that are considered at a time."""
ENOUGH = 0.5
"""A candidate of a block is taken if its variance, given the others, is this fraction of the largest one."""
STABLE = 1e-3
"""Smallest pivot, relative to k(x, x), from which sums of kernel values keep their digits when they become sums of features."""
SMALLEST = 1e-10
"""Points of smaller conditional variance, relative to k(x, x), would make the factor ill-conditioned."""


@dataclass(frozen=True)
class Inducing:
    """Inducing ``points`` (p, d), with the trend's basis functions as further features.

    ``factor`` (p, p), in C order, is the Cholesky factor of the kernel at the points.
    """

    kernel: Kernel
    points: FloatArray
    factor: FloatArray
    trend: Trend

    @property
    def number(self) -> int:
        """Number p of features without those of the trend."""
        return len(self.points)

    @cached_property
    def deferred(self) -> bool:
        """Whether the triangular solve can wait until kernel values are summed, which saves half of the work."""
        pivots = np.diagonal(self.factor) ** 2
        return bool(np.min(pivots) > STABLE * np.max(pivots))

    @cached_property
    def _cross(self) -> CrossKernel:
        return CrossKernel(self.kernel, self.points)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Features [phi(x), h(x)] at the rows of X, (m, p + q)."""
        phi = solve_lower(self.factor, np.ascontiguousarray(self._cross(X)))
        return np.asarray(self._with_trend(phi, X))

    def summands(self, X: Array) -> Array:
        """Features at the rows of X, or [k_Z(x), h(x)], whose sums :meth:`finish` turns into those of features.

        X may be an array of another library, on its device.
        """
        values = self._cross(X) if arrays.is_numpy(X) else self.kernel(X, arrays.like(self.points, X))
        if not self.deferred:
            values = solve_lower(arrays.like(self.factor, X), arrays.contiguous(values))
        return self._with_trend(values, X)

    def finish(self, sums: Array) -> Array:
        """L^-1 times the sums (p + q, ...) over rows of what :meth:`summands` returns times something else."""
        if not self.deferred:
            return sums
        columns = arrays.contiguous(sums[: self.number, :].T)
        solved = solve_lower(arrays.like(self.factor, sums), columns).T
        return arrays.namespace(sums).concat([solved, sums[self.number :, :]])

    def _with_trend(self, phi: Array, X: Array) -> Array:
        if not self.trend.kind:
            return phi
        basis = Trend(self.trend.kind, arrays.like(self.trend.places, X))(X)
        return arrays.namespace(X).concat([phi, basis], axis=1)


def choose_inducing(
    kernel: Kernel, X: FloatArray, number: int, trend: str | None, generator: np.random.Generator
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
        among = kernel(candidates[block]) - known[block] @ known[block].T
        chosen = greedy(among, factor.shape[1] - done, max(ENOUGH * rest.max(), smallest))
        taken = block[chosen]
        columns = kernel(candidates, candidates[taken]) - known @ known[taken].T
        corner = np.linalg.cholesky(among[np.ix_(chosen, chosen)])
        new = solve_triangular(corner, columns.T, lower=True).T
        factor[:, done : done + len(chosen)] = new
        pivots.extend(taken.tolist())
        rest = np.maximum(rest - np.einsum("ij,ij->i", new, new), 0.0)
        rest[pivots] = 0.0
    points = candidates[pivots]
    lower = np.ascontiguousarray(np.tril(factor[pivots][:, : len(pivots)]))
    return Inducing(kernel, points, lower, Trend(trend, points))


def greedy(covariance: FloatArray, number: int, least: float) -> IntArray:
    """At most ``number`` indices, each of the largest variance given the previous ones, while that is above ``least``."""
    rest, columns = np.diagonal(covariance).copy(), np.zeros((len(covariance), number))
    chosen: list[int] = []
    while len(chosen) < number and rest.max() > least:
        j, pivot = len(chosen), int(np.argmax(rest))
        columns[:, j] = (covariance[:, pivot] - columns[:, :j] @ columns[pivot, :j]) / np.sqrt(rest[pivot])
        chosen.append(pivot)
        rest -= columns[:, j] ** 2
        rest[chosen] = 0.0
    return np.array(chosen, dtype=np.intp)
