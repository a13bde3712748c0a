"""The law of every leave-one-out residual, from one inverse, and derivatives pulled back through it.

With Q = A - AH (H'AH)^-1 H'A of all samples (Q = A without a trend), the residual r_i = (Q y0)_i / Q_ii is, under the
model, a normal variable of variance P2_i plus sum_j (Q_ij / Q_ii) M_j: the fresh noise M_i has the weight 1.
"""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray
from ..backend.linalg import matmul
from .leave_one_out import check_determined, projected_inverse, weighted_residual
from .smoother import Smoother

__all__ = ["LeaveOneOutLaws"]

BLOCK = 512


class LeaveOneOutLaws:
    """Residuals, model variances and noise weights of all samples, each left out in turn.

    Samples at one place with one noise scale have one law, so that laws are numbered by such groups.

    Parameters
    ----------
    smoother : Smoother
        With independent noise.

    Attributes
    ----------
    residual : ndarray of shape (D, n_y)
    group : ndarray of shape (D,)
        Group of each sample.
    model : ndarray of shape (G,)
        P2.
    weights : ndarray of shape (G, J)
        Weights of the noise variables, the fresh one included.
    counts : ndarray of shape (J,)
        How many variables share each weight.
    """

    def __init__(self, smoother: Smoother) -> None:
        samples = smoother.samples
        if samples.scale.ndim == 2:
            msg = "leave-one-out laws need independent noise: noise_scale must be of shape (n,)"
            raise ValueError(msg)
        self.smoother = smoother
        self.projected = projected_inverse(smoother)
        pairs = np.stack([samples.index, samples.share * samples.scale, samples.scale], axis=1)
        _, first, group = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        self.group = group.ravel()
        self.place, self.share = samples.index[first], samples.share[first]
        self.scale, self.ridge = samples.scale[first], samples.row_regularizer[first]
        self.repeated = np.flatnonzero(np.bincount(self.group) > 1)
        self.counts = np.concatenate([np.ones(len(first)), np.bincount(self.group)[self.repeated] - 1.0])

        # Woodbury: Q_ii = 1/r_i + share_i^2 (Q_uu - 1/R_u), Q_ij = share_i share_j (Q_uv - [u = v]/R_u)
        reduced = self.projected.copy()
        reduced.flat[:: len(reduced) + 1] -= 1 / samples.regularizer
        self.reduced = reduced
        own = np.diagonal(reduced)[self.place]
        self.diagonal = 1 / self.ridge + self.share**2 * own
        check_determined(smoother, self.diagonal[self.group])
        self.residual = weighted_residual(smoother) / self.diagonal[self.group, None]
        # sum of a_j^2 R_j over the other samples
        self.spread = reduced**2 @ samples.regularizer
        others = self.spread[self.place] - own**2 * self.share**2 * self.ridge
        self.others = (self.share / self.diagonal) ** 2 * others
        self.model = np.maximum(1 / self.diagonal - self.ridge - self.others, 0.0)
        self.first = first
        self.between = self._between(self.scale)
        self.weights = self._with_own(self.between, self.scale)

    def weights_of(self, scale: FloatArray) -> FloatArray:
        """Weights (G, J) of other noise of the samples, of these scales (D,), equal at one place."""
        own = scale[self.first]
        return self._with_own(self._between(own), own)

    def _between(self, scale: FloatArray) -> FloatArray:
        """Weights (Q_ij / Q_ii) of the noise of these scales (G,)."""
        between = self.reduced[np.ix_(self.place, self.place)]
        between *= np.outer(self.share / self.diagonal, self.share * scale)
        return np.asarray(between)

    def _with_own(self, between: FloatArray, scale: FloatArray) -> FloatArray:
        """Columns for the noise of each group, on the diagonal the fresh one, and for the repeats in a group."""
        weights = np.concatenate([between, between[:, self.repeated]], axis=1)
        weights[np.arange(len(scale)), np.arange(len(scale))] = scale
        return weights

    def without_noise(self, ridge: FloatArray) -> FloatArray:
        """Variance of the residuals less that of noise whose part of the regularizer is ``ridge`` (G,): (G,)."""
        return np.asarray(np.maximum(1 / self.diagonal - self.weights**2 @ self._ridges(ridge), 0.0))

    def _ridges(self, ridge: FloatArray) -> FloatArray:
        """Ridge over the squared scale of the noise, times the counts, (J,)."""
        ratio = ridge / self.scale**2
        return np.asarray(np.concatenate([ratio, ratio[self.repeated]]) * self.counts)

    def pullback_without_noise(
        self, ridge: FloatArray, residual: FloatArray, variance: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, float]:
        """As :meth:`pullback`, with derivatives by :meth:`without_noise` in place of those by the model part."""
        variance = np.where(self.without_noise(ridge) > 0, variance, 0.0)
        weights = weights - 2 * variance[:, None] * self.weights * self._ridges(ridge)
        return self.pullback(residual, np.zeros(len(variance)), weights, -variance / self.diagonal**2)

    def pullback(
        self,
        residual: FloatArray,
        model: FloatArray,
        weights: FloatArray,
        diagonal: FloatArray | float = 0.0,
    ) -> tuple[FloatArray, float]:
        """Pull derivatives by residual, model and weights back.

        Parameters
        ----------
        residual : ndarray of shape (D, n_y)
        model : ndarray of shape (G,)
        weights : ndarray of shape (G, J)
        diagonal : ndarray of shape (G,), default=0
            By Q_ii.

        Returns
        -------
        by_kernel : ndarray of shape (U, U)
            Derivative by K, symmetric; only the lower triangle is computed.
        by_log_ridge : float
            Derivative by the logarithm of a factor of all regularizers.
        """
        samples, dual = self.smoother.samples, self.smoother.dual
        n = len(self.place)
        model = np.where(self.model > 0, model, 0.0)
        by_between = weights[:, :n].copy()
        by_between[np.arange(n), np.arange(n)] = 0.0
        by_between[:, self.repeated] += weights[:, n:]

        by_diagonal = (
            diagonal
            - np.bincount(self.group, weights=np.sum(residual * self.residual, axis=1)) / self.diagonal
        )
        by_diagonal -= np.einsum("gh,gh->g", by_between, self.between) / self.diagonal
        by_diagonal += model * (2 * self.others - 1 / self.diagonal) / self.diagonal
        by_quotient = residual / self.diagonal[self.group, None]  # by (Q y0)_i

        factor = model * (self.share / self.diagonal) ** 2
        by_spread = -np.bincount(self.place, weights=factor, minlength=samples.n_places)
        own = np.diagonal(self.reduced)[self.place]
        by_own = 2 * factor * own * self.share**2 * self.ridge + by_diagonal * self.share**2
        by_between *= np.outer(self.share / self.diagonal, self.share * self.scale)
        by_reduced = _sum_blocks(by_between, self.place, samples.n_places)
        by_reduced += 2 * by_spread[:, None] * self.reduced * samples.regularizer
        by_reduced.flat[:: len(by_reduced) + 1] += np.bincount(
            self.place, weights=by_own, minlength=samples.n_places
        )
        # dual = Q ybar and dQ = -Q dK Q: the dual's part is an outer product
        of_dual = np.stack(
            [
                np.bincount(samples.index, weights=samples.share * column, minlength=samples.n_places)
                for column in by_quotient.T
            ],
            axis=1,
        )
        # Q (B + B') Q, of which the kernel reads the lower triangle
        by_kernel = _lower_product(matmul(self.projected, by_reduced + by_reduced.T), self.projected)
        of_dual = matmul(self.projected, of_dual)
        by_kernel += matmul(of_dual, dual, transpose_b=True)
        by_kernel += matmul(dual, of_dual, transpose_b=True)
        by_kernel *= -0.5

        by_ridge = (
            -self.ridge * model - by_diagonal / self.ridge + factor * own**2 * self.share**2 * self.ridge
        )
        within = self.smoother.within / samples.row_regularizer[:, None]
        by_place = (
            np.diagonal(by_kernel) * samples.regularizer + by_spread @ self.reduced**2 * samples.regularizer
        )
        by_place = by_place + np.diagonal(by_reduced) / samples.regularizer
        total = float(by_ridge.sum() + by_place.sum() - np.sum(by_quotient * within))
        return by_kernel, total


def _lower_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Lower triangle of a product of square matrices, by blocks of rows."""
    n = len(left)
    result = np.zeros((n, n))
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        result[start:stop, :stop] = matmul(left[start:stop], np.ascontiguousarray(right[:, :stop]))
    return result


def _sum_blocks(matrix: FloatArray, place: IntArray, n_places: int) -> FloatArray:
    """Sum the rows and columns of the groups that belong to one place, (U, U)."""
    if len(place) == n_places:
        result = np.empty_like(matrix)
        result[np.ix_(place, place)] = matrix
        return result
    result = np.zeros((n_places, n_places))
    np.add.at(result, (place[:, None], place[None, :]), matrix)
    return result
