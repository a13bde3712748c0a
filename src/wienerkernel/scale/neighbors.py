"""Weights from the nearest samples of each query point: local kriging with exact variances.

P2 = k - 2 a'k + a'Ka holds for any weights that do not depend on y. For weights that solve the equations of N samples,
V + P2 = k - k_N'(K_N + R_N)^-1 k_N is the mean squared error under the prior: it exceeds that of all samples, and the
excess is the cost of the approximation. Its estimate is the last halving, from N/2 to N samples. All this holds for any
choice of the samples: where the nearest do not determine the trend, some that do take the places of the farthest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import KDTree

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..backend.linalg import cholesky, solve_lower, solve_lower_transposed
from ..kernels import Kernel
from ..kernels.base import elementary
from ..smoother.trend import Trend, check_determined, determining_rows, is_determined
from . import device

__all__ = ["Evaluation", "NeighborSmoother", "SampleSmoother", "Shared", "in_units", "metric"]

FAR = 1e100
"""Distance, in units of the size of the data, beyond which rounding decides which samples are nearest."""
JOINT = 6000
"""Neighbors, of all query points together, up to which function values are drawn jointly."""


class Evaluation(NamedTuple):
    """A linear prediction at m query points: the mean (m, n_y), and weights L'a of J noise variables, the ``columns`` (m, J).

    All others are (m,): ``gain`` |L'a|^2; ``model``, P2 of these weights, from unexplored inputs and the approximation
    together, with its ``standard_error`` (0 where it is exact); ``computational`` is an estimate of what the approximation
    adds to V + P2, at most ``model``.
    """

    mean: FloatArray
    columns: FloatArray
    gain: FloatArray
    model: FloatArray
    computational: FloatArray
    standard_error: FloatArray


class LeftOut(NamedTuple):
    """Samples predicted without themselves: residuals (m, n_y), and the law of these as a combination of noise variables.

    ``weights`` (m, J + 1) and ``counts`` (J + 1,) are those of the noise variables, that of the sample itself last.
    """

    residual: FloatArray
    weights: FloatArray
    counts: IntArray
    model: FloatArray

    @classmethod
    def of(
        cls, residual: FloatArray, columns: FloatArray, count: int, scale: FloatArray, model: FloatArray
    ) -> LeftOut:
        """Samples of noise scales (m,), predicted with the weights ``columns`` of ``count`` noise variables each."""
        # y0_i - mean = scale_i (M_i - m0) - sum_j a_j (M_j - m0) + N(0, P2)
        weights = np.concatenate([-columns, scale[:, None]], axis=1)
        return cls(residual, weights, np.append(np.full(columns.shape[1], count), 1), model)

    @property
    def group(self) -> IntArray:
        """Row of ``weights`` of each sample, (m,)."""
        return np.arange(len(self.model))


class WithoutFactor:
    """Raises an error for what needs a factorization of all data."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        msg = "this needs the factorization of all data, which an approximation does not have: fit with approximation=None"
        raise TypeError(msg)


class Shared(WithoutFactor):
    """The interface of approximate smoothers: mean and variances from one evaluation of ``predict``."""

    def predict(self, X: FloatArray) -> Evaluation:
        """Predict at the rows of X (m, d)."""
        raise NotImplementedError

    def mean(self, X: FloatArray) -> FloatArray:
        """Mean at the rows of X, (m, n_y)."""
        return self.predict(X).mean

    def mean_and_parts(self, X: FloatArray) -> tuple[FloatArray, ...]:
        """Mean (m, n_y), model part, noise gain, computational part and standard error of these, (m,)."""
        found = self.predict(X)
        return (
            found.mean,
            found.model - found.computational,
            found.gain,
            found.computational,
            found.standard_error,
        )

    def evaluate(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean (m, n_y), weights of the noise variables (m, J) and P2 (m,)."""
        found = self.predict(X)
        return found.mean, found.columns, found.model


@dataclass(frozen=True)
class NoiseColumns(WithoutFactor):
    """The samples as a posterior needs them, where the weights are already those of the noise variables.

    ``places`` are the inputs of some of the n samples, repeats included, and each of these stands for as many samples.
    """

    places: FloatArray
    scale: FloatArray
    n: int

    @property
    def count(self) -> int:
        """Noise variables that share each weight."""
        return max(1, round(self.n / len(self.places)))

    @property
    def index(self) -> IntArray:
        """Place of each sample, (n,)."""
        return np.arange(len(self.places))

    def per_noise(self, columns: FloatArray) -> tuple[FloatArray, IntArray]:
        """The weights (m, J), and how many noise variables share each."""
        return columns, np.full(columns.shape[1], self.count)


@dataclass(frozen=True)
class SampleSmoother(Shared):
    """A linear smoother with weights of the samples themselves, which it keeps: X (n, d) and targets (n, n_y).

    ``regularizer`` and ``scale`` (n,) are the diagonals of R and L.
    """

    kernel: Kernel
    X: FloatArray
    targets: FloatArray
    regularizer: FloatArray
    scale: FloatArray
    trend: str | None

    @property
    def samples(self) -> NoiseColumns:
        """The noise of the samples."""
        return NoiseColumns(self.X, self.scale, len(self.X))

    def _evaluation(
        self, rows: IntArray | slice, weights: FloatArray, total: FloatArray, excess: FloatArray
    ) -> Evaluation:
        """From the weights a (m, N) of ``rows``, (m, N) or all of them, V + P2 (m,), and an estimate of its excess (m,)."""
        columns = weights * self.scale[rows]
        model = np.maximum(total - np.sum(weights**2 * self.regularizer[rows], axis=1), 0.0)
        mean = (weights[:, None] @ self.targets[rows])[:, 0]
        computational = np.clip(excess, 0.0, model)
        return Evaluation(
            mean, columns, arrays.row_dots(columns, columns), model, computational, np.zeros(len(mean))
        )

    def _evaluate_jointly(
        self, X: FloatArray, rows: IntArray | slice, weights: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Mean (m, n_y) and covariance of f(x) - a(x)'f(X), (m, m), from the weights (m, U) of ``rows``."""
        near = self.X[rows]
        cross = weights @ self.kernel(near, X)
        quadratic = weights @ (weights @ self.kernel(near)).T
        return weights @ self.targets[rows], self.kernel(X) - cross - cross.T + quadratic


@dataclass(frozen=True)
class NeighborSmoother(SampleSmoother):
    """A linear smoother whose weights, and its trend, come from the nearest samples.

    The search and the solves are those of torch, where X ``on_device`` is one of its arrays.
    """

    n_neighbors: int
    on_device: Array | None = None

    @cached_property
    def _units(self) -> FloatArray:
        return metric(self.kernel, self.X)

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(in_units(self.X, self._units))

    @cached_property
    def _basis(self) -> Trend:
        return Trend(self.trend, self.X[: 2**16])

    @cached_property
    def _determining(self) -> IntArray:
        basis = self._basis(self.X)
        rows = determining_rows(basis, self.n_neighbors // 4)[: self.n_neighbors]
        check_determined(basis[rows].T @ basis[rows], min(self.n_neighbors, len(self.X)), "neighbors")
        return rows

    def check_trend(self) -> None:
        """Raise NotPositiveDefiniteError if so many samples do not determine the trend, wherever they lie."""
        if self.trend == "linear":
            self._determining  # noqa: B018  # or NotPositiveDefiniteError

    def nearest(self, X: FloatArray, number: int) -> IntArray:
        """Indices of the samples nearest to the rows of X, nearest first: (m, number)."""
        if self.on_device is not None:
            return device.nearest(X, self.on_device, self._units, number)
        found = self._tree.query(in_units(X, self._units), min(number, len(self.X)), workers=-1)[1]
        return np.asarray(found).reshape(len(X), -1)

    def neighbors(self, X: FloatArray) -> IntArray:
        """Indices of the samples that predict at the rows of X, (m, N)."""
        return self._with_trend(X, self.nearest(X, self.n_neighbors))

    def _with_trend(self, X: FloatArray, near: IntArray, own: IntArray | None = None) -> IntArray:
        """Replace the farthest neighbors by samples, never the row's ``own``, that determine the trend, if need be."""
        if self.trend != "linear":
            return near
        near = near.copy()
        for part in arrays.slices(len(X), 1024):
            for i in part.start + np.flatnonzero(
                ~is_determined(self._basis(X[part]), self._basis_of(near[part]))
            ):
                added = self._determining if own is None else self._determining[self._determining != own[i]]
                near[i] = np.append(added, np.setdiff1d(near[i], added, assume_unique=True))[: near.shape[1]]
        return near

    def _basis_of(self, rows: IntArray) -> FloatArray:
        """H of the samples ``rows`` (m, N), (m, N, q)."""
        return np.asarray(self._basis(self.X[rows.ravel()]).reshape(*rows.shape, -1))

    def predict(self, X: FloatArray) -> Evaluation:
        """Predict at the rows of X (m, d)."""
        return self.predict_from(X, self.neighbors(X))

    def joint_weights(self, X: FloatArray) -> tuple[IntArray, csr_array]:
        """All samples that are neighbors of a row of X, (U,), and the weights a of these, a sparse array (m, U)."""
        near = self.neighbors(X)
        weights = self.predict_from(X, near).columns / self.scale[near]
        rows, index = np.unique(near, return_inverse=True)
        starts = np.arange(0, near.size + 1, near.shape[1])
        return rows, csr_array((weights.ravel(), index.ravel(), starts), shape=(len(X), len(rows)))

    def evaluate_jointly(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean (m, n_y), weights of the noise (m, U) and the covariance of f(x) - a(x)'f(X), (m, m), whose diagonal is P2."""
        rows, weights = self.joint_weights(X)
        if len(rows) > JOINT:
            msg = (
                f"the {len(X)} points have {len(rows)} neighbors, which are too many for a joint distribution: pass "
                "fewer points at a time, or use quantiles and intervals, which need none"
            )
            raise ValueError(msg)
        mean, covariance = self._evaluate_jointly(X, rows, weights)
        return mean, (weights * self.scale[rows]).toarray(), covariance

    def leave_out(self, rows: IntArray) -> Evaluation:
        """Predict at the samples ``rows``, each from the others."""
        return self.predict_from(self.X[rows], self.others(rows))

    def left_out(self, rows: IntArray) -> LeftOut:
        """Residuals of the samples ``rows``, each predicted from the others, and the law of these."""
        found = self.leave_out(rows)
        return LeftOut.of(self.targets[rows] - found.mean, found.columns, 1, self.scale[rows], found.model)

    def others(self, rows: IntArray) -> IntArray:
        """Indices of the samples nearest to the samples ``rows``, without these themselves: (m, N)."""
        found = self.nearest(self.X[rows], self.n_neighbors + 1)
        own = found == rows[:, None]
        own[~own.any(axis=1), -1] = True  # a repeat of the sample is nearer than itself
        return self._with_trend(self.X[rows], found[~own].reshape(len(rows), -1), rows)

    def predict_from(self, X: FloatArray, neighbors: IntArray) -> Evaluation:
        """Predict at the rows of X (m, d) from given samples (m, N)."""
        if self.on_device is None:
            weights, total, half = self._weigh_each(X, neighbors)
        else:
            near, regularizer = self.X[neighbors], self.regularizer[neighbors]
            basis = self._basis(X), self._basis_of(neighbors)
            weights, total, half = device.weigh(self.kernel, X, near, regularizer, *basis, self.on_device)
        return self._evaluation(neighbors, weights, total, half - total)

    def _weigh_each(self, X: FloatArray, neighbors: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights (m, N), V + P2 (m,), and V + P2 of the nearer half of the neighbors (m,)."""
        m, n = neighbors.shape
        prior, basis = np.asarray(self.kernel.diag(X)), self._basis(X)
        weights, total, half = np.empty((m, n)), np.empty(m), np.empty(m)
        for i, rows in enumerate(neighbors):
            near = self.X[rows]
            matrix = self.kernel(near)
            matrix.flat[:: n + 1] += self.regularizer[rows]
            factor = cholesky(matrix)
            sides = np.concatenate([self.kernel(X[i : i + 1], near), self._basis(near).T])
            sides = solve_lower(factor, np.ascontiguousarray(sides))
            white, total[i : i + 1] = device.krige(sides[None], prior[i : i + 1], basis[i : i + 1])
            half[i] = device.krige(sides[None, :, : max(n // 2, 1)], prior[i : i + 1], basis[i : i + 1])[1][0]
            weights[i] = solve_lower_transposed(factor, white)[0]
        return weights, total, half


def metric(kernel: Kernel, X: FloatArray) -> FloatArray:
    """Units of the inputs (d,) in which nearness is measured: length scales, or standard deviations without any.

    They are enlarged by a power of 2 so that distances in the data can be squared.
    """
    found = (getattr(part, "length_scale", None) for part in elementary(kernel))
    scales = [np.asarray(scale, dtype=float) for scale in found if scale is not None]
    if scales:
        units = np.min([np.broadcast_to(s, X.shape[1]) for s in scales], axis=0)
    else:
        width = X.std(axis=0)
        units = np.where(width > 0, width, 1.0)
    with np.errstate(over="ignore"):
        return np.asarray(units * 2.0 ** np.ceil(np.log2(1.0 + np.max(np.abs(X) / units))))


def in_units(X: FloatArray, units: FloatArray) -> FloatArray:
    """The rows of X in these units, and no farther than `FAR`, so that distances can be squared."""
    with np.errstate(over="ignore"):
        return np.clip(X / units, -FAR, FAR)
