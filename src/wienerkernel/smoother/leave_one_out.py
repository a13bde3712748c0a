"""Predictions of each sample i by the smoother without it, for all i, from one inverse.

With Q = A - AH (H'AH)^-1 H'A of the samples (Q = A without a trend), the residual is (Q y0)_i / Q_ii and the weights are
-Q_ij / Q_ii. Under the model the residual is a normal variable of variance P2_i plus sum_j (Q_ij / Q_ii) M_j: the fresh
noise M_i has the weight 1. Q of the samples follows from Q of the places by the Woodbury identity.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..backend.linalg import matmul, solve_lower_transposed
from .smoother import Smoother, quadratic_form
from .trend import check_others_determine

__all__ = ["LeaveOneOutLaws", "leave_one_out", "projected_inverse", "weighted_residual"]

BLOCK = 256  # rows of the inverse that are squared at a time
WIDE_BLOCKS = (128, 512)  # fewest and most rows of a product of which only the lower triangle is needed


def leave_one_out(smoother: Smoother, *variances: FloatArray) -> tuple[FloatArray, ...]:
    """Residuals y0_i - mean (D, n_y), model part P2 and noise gain |L'a|^2 (D,), each sample left out in turn.

    Further independent noise of the samples, given by its variances (D,), adds its part of the variance (D,).
    """
    if smoother.samples.row_regularizer.ndim == 2:
        return _correlated(smoother, arrays.as_numpy(projected_inverse(smoother)), *variances)
    laws = LeaveOneOutLaws(smoother)
    parts = [laws.spread(variance) for variance in (smoother.samples.scale**2, *variances)]
    return laws.residual, laws.model[laws.group], *parts


def projected_inverse(smoother: Smoother) -> Array:
    """Q = A - AH (H'AH)^-1 H'A of the places, (U, U); A without a trend."""
    inverse = smoother.inverse
    if not smoother.trend.kind:
        return inverse
    ah = solve_lower_transposed(smoother.factor, arrays.copy(smoother.whitened_trend))
    return inverse - ah.T @ arrays.namespace(inverse).linalg.solve(smoother.trend_information, ah)


def weighted_residual(smoother: Smoother) -> FloatArray:
    """Q y0 of the samples, (D, n_y)."""
    samples = smoother.samples
    of_place = samples.share[:, None] * arrays.as_numpy(smoother.dual)[samples.index]
    if samples.row_regularizer.ndim == 2:
        return np.asarray(of_place)
    return np.asarray(smoother.within / samples.row_regularizer[:, None] + of_place)


class LeaveOneOutLaws:
    """Residuals, variances and noise weights of all samples, each left out in turn, for independent noise.

    Samples at one place with one noise scale have one law: ``group`` (D,) numbers these, ``first`` (G,) has a sample of
    each, ``diagonal`` and ``model`` (G,) are Q_ii and P2, ``counts`` (J,) how many variables share each weight.
    """

    def __init__(self, smoother: Smoother) -> None:
        samples = smoother.samples
        samples.check_single()
        if samples.scale.ndim == 2:
            raise ValueError("leave-one-out laws need independent noise: noise_scale must be of shape (n,)")
        self.smoother = smoother
        self.projected = projected_inverse(smoother)
        pairs = np.stack([samples.index, samples.share * samples.scale, samples.scale], axis=1)
        _, first, group = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        self.first, self.group = first, group.ravel()
        self.place, self.share = samples.index[first], samples.share[first]
        self.scale, self.ridge = samples.scale[first], samples.row_regularizer[first]
        self.repeated = np.flatnonzero(np.bincount(self.group) > 1)
        self.counts = np.concatenate([np.ones(len(first)), np.bincount(self.group)[self.repeated] - 1.0])
        # Woodbury: Q_ij = [i = j]/r_i + share_i share_j (Q_uv - [u = v]/R_u)
        self._at_places = arrays.as_numpy(arrays.diagonal(self.projected))
        self._reduced_diagonal = self._at_places - 1 / samples.regularizer
        self.own = self._reduced_diagonal[self.place]
        of_samples, inverse = (
            samples.inverse_diagonal(arrays.as_numpy(arrays.diagonal(matrix)))
            for matrix in (self.projected, smoother.inverse)
        )
        check_others_determine(smoother.trend, of_samples, inverse)
        self.diagonal = of_samples[first]
        self.residual = weighted_residual(smoother) / self.diagonal[self.group, None]
        self.others = self.spread(samples.row_regularizer)[first]
        self.model = np.maximum(1 / self.diagonal - self.ridge - self.others, 0.0)

    def spread(self, variance: FloatArray) -> FloatArray:
        """Sum of a_j^2 c_j over the other samples, (D,), for independent noise of variances c (D,)."""
        samples, xp, Q = self.smoother.samples, arrays.namespace(self.projected), self.projected
        collapsed = samples.collapsed(variance)
        column = arrays.like(collapsed[:, None], Q)
        blocks = arrays.slices(samples.n_places, arrays.block(Q, BLOCK))
        total = arrays.as_numpy(xp.concat([matmul(Q[a, :] ** 2, column) for a in blocks]))[:, 0]
        total = total + (self._reduced_diagonal**2 - self._at_places**2) * collapsed
        others = total[samples.index] - (self.own * self.share)[self.group] ** 2 * variance
        return np.asarray(np.maximum(others, 0.0) * ((self.share / self.diagonal) ** 2)[self.group])

    @cached_property
    def _reduced(self) -> FloatArray:
        """Q of the places with Q_uu - 1/R_u on the diagonal, in NumPy."""
        reduced = np.array(arrays.as_numpy(self.projected))
        reduced.flat[:: len(reduced) + 1] = self._reduced_diagonal
        return reduced

    @cached_property
    def weights(self) -> FloatArray:
        """Weights Q_ij / Q_ii of the noise variables, including the fresh one, (G, J)."""
        return self.weights_of(self.smoother.samples.scale)

    def weights_of(self, scale: FloatArray) -> FloatArray:
        """Weights (G, J) of other noise of the samples, of these scales (D,), equal at one place."""
        scale, one_to_one = scale[self.first], np.array_equal(self.place, np.arange(len(self._reduced)))
        weights = self._reduced.copy() if one_to_one else self._reduced[np.ix_(self.place, self.place)]
        self._multiply(weights, scale)
        repeats = weights[:, self.repeated]
        weights.flat[:: len(weights) + 1] = scale
        return np.concatenate([weights, repeats], axis=1) if len(self.repeated) else weights

    def _multiply(self, matrix: FloatArray, scale: FloatArray) -> None:
        """Multiply (G, G) by the factors between Q of the places and weights, in place."""
        matrix *= (self.share / self.diagonal)[:, None]
        matrix *= self.share * scale

    def by_weight(self, variance: FloatArray) -> FloatArray:
        """Variance (D,) of further noise over the squared scale of the noise, times the counts, (J,)."""
        ratio = variance[self.first] / self.scale**2
        return np.asarray(np.concatenate([ratio, ratio[self.repeated]]) * self.counts)

    def pullback(
        self, residual: FloatArray, model: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, float]:
        """Pull back derivatives with respect to residual (D, n_y), P2 (G,) and weights (G, J; overwritten).

        To K, (U, U), of which only the lower triangle is computed, and to the logarithm of a factor of all regularizers.
        """
        samples, dual, reduced = self.smoother.samples, self.smoother.dual, self._reduced
        n, n_places = len(self.place), samples.n_places
        model = np.where(self.model > 0, model, 0.0)
        weights.flat[:: weights.shape[1] + 1] = 0.0
        by_diagonal = -np.einsum("gh,gh->g", weights, self.weights) / self.diagonal
        by_diagonal -= np.bincount(self.group, np.sum(residual * self.residual, axis=1)) / self.diagonal
        by_diagonal += model * (2 * self.others - 1 / self.diagonal) / self.diagonal
        by_quotient = residual / self.diagonal[self.group, None]  # by (Q y0)_i

        factor = model * (self.share / self.diagonal) ** 2
        by_spread = -np.bincount(self.place, factor, minlength=n_places)
        by_own = 2 * factor * self.own * self.share**2 * self.ridge + by_diagonal * self.share**2
        by_between = weights[:, :n]
        by_between[:, self.repeated] += weights[:, n:]
        self._multiply(by_between, self.scale)
        by_reduced = _sum_blocks(by_between, self.place, n_places)
        of_spread = reduced * (2 * by_spread)[:, None]
        of_spread *= samples.regularizer
        by_reduced += of_spread
        by_reduced.flat[:: n_places + 1] += np.bincount(self.place, by_own, minlength=n_places)
        # dual = Q ybar and dQ = -Q dK Q: the dual's part is an outer product
        of_dual = np.stack(
            [np.bincount(samples.index, samples.share * column, n_places) for column in by_quotient.T], axis=1
        )
        # Q (B + B') Q, of which the kernel reads the lower triangle
        by_kernel = _lower_product(matmul(self.projected, by_reduced + by_reduced.T), self.projected)
        left, right = np.hstack([matmul(self.projected, of_dual), dual]), np.hstack([dual, dual])
        right[:, dual.shape[1] :] = left[:, : dual.shape[1]]
        by_kernel += matmul(left, right, transpose_b=True)
        by_kernel *= -0.5

        by_ridge = (
            -self.ridge * model
            - by_diagonal / self.ridge
            + factor * (self.own * self.share) ** 2 * self.ridge
        )
        squares = np.einsum("u,uv,uv->v", by_spread, reduced, reduced)
        by_place = (np.diagonal(by_kernel) + squares) * samples.regularizer
        by_place += np.diagonal(by_reduced) / samples.regularizer
        within = self.smoother.within / samples.row_regularizer[:, None]
        return by_kernel, float(by_ridge.sum() + by_place.sum() - np.sum(by_quotient * within))


def _correlated(smoother: Smoother, projected: FloatArray, *variances: FloatArray) -> tuple[FloatArray, ...]:
    """Correlated noise carries information about the noise of the other samples, which f(x_i) does not share.

    So the cross-covariance between f(x_i) and the others is K, not K + R: a = -Q_i/Q_ii - (Q without i) R_i.
    """
    regularizer = smoother.samples.row_regularizer
    diagonal = np.diagonal(projected)
    check_others_determine(smoother.trend, diagonal, arrays.as_numpy(arrays.diagonal(smoother.inverse)))
    off = regularizer - np.diag(np.diagonal(regularizer))
    leaked = matmul(projected, off)
    weights = projected * ((np.diagonal(leaked) - 1) / diagonal) - leaked  # column i: sample i left out
    np.fill_diagonal(weights, 0.0)
    weights = np.ascontiguousarray(weights.T)
    kernel = arrays.as_numpy(smoother.kernel(smoother.places, smoother.places))
    model = np.diagonal(kernel) - 2 * np.einsum("ij,ij->i", weights, kernel) + quadratic_form(weights, kernel)
    residual = smoother.targets - weights @ smoother.targets
    parts = [quadratic_form(weights, covariance) for covariance in (smoother.samples.gain, *variances)]
    return residual, np.maximum(model, 0.0), *parts


def _lower_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Lower triangle of a product of square matrices, by blocks of rows."""
    result = np.zeros_like(left)
    for a in arrays.slices(len(left), int(np.clip(len(left) // 4, *WIDE_BLOCKS))):
        result[a, : a.stop] = matmul(left[a], np.ascontiguousarray(right[:, : a.stop]))
    return result


def _sum_blocks(matrix: FloatArray, place: IntArray, n_places: int) -> FloatArray:
    """Sum the rows and columns of the groups that belong to one place, (U, U)."""
    if np.array_equal(place, np.arange(n_places)):
        return np.ascontiguousarray(matrix)
    result = np.zeros((n_places, n_places))
    np.add.at(result, (place[:, None], place[None, :]), matrix)
    return result
