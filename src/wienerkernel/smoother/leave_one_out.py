"""Predictions of each sample i by the smoother without it, for all i, from one inverse.

With Q = A - AH (H'AH)^-1 H'A (Q = A without a trend), the residual is (Q y0)_i / Q_ii and the weights are -Q_ij / Q_ii.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array, FloatArray
from ..backend import arrays
from ..backend.linalg import matmul, solve_lower_transposed
from .smoother import Smoother, quadratic_form

__all__ = ["check_determined", "leave_one_out", "projected_inverse", "weighted_residual"]

LOST = 1e-10  # Q_ii relative to A_ii, where sample i alone determines a coefficient of the trend
BLOCK = 256  # rows of the inverse that are squared at a time


def leave_one_out(smoother: Smoother, *variances: FloatArray) -> tuple[FloatArray, ...]:
    """Residuals y0_i - mean (D, n_y), model part P2 and noise gain |L'a|^2 (D,), each sample left out in turn.

    Further independent noise of the samples, given by its variances (D,), adds its part of the variance (D,).
    """
    projected = projected_inverse(smoother)
    if smoother.samples.row_regularizer.ndim == 2:
        return _correlated(smoother, arrays.as_numpy(projected), *variances)
    return _collapsed(smoother, projected, *variances)


def check_determined(smoother: Smoother, diagonal: FloatArray) -> None:
    """Refuse to leave out a sample without which the trend is not determined; ``diagonal`` is Q_ii of the samples."""
    if not smoother.trend.kind:
        return
    samples, own = smoother.samples, arrays.as_numpy(arrays.diagonal(smoother.inverse))
    if samples.row_regularizer.ndim == 1:
        own = (1 - samples.share) / samples.row_regularizer + samples.share**2 * own[samples.index]
    lost = np.flatnonzero(~(diagonal > LOST * own))
    if lost.size:
        msg = f"sample {lost[0]} cannot be left out: the others do not determine the trend {smoother.trend.kind!r}"
        raise ValueError(msg)


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


def _collapsed(smoother: Smoother, projected: FloatArray, *variances: FloatArray) -> tuple[FloatArray, ...]:
    """Q of the samples from Q of the places, by the Woodbury identity.

    Q_ii = (1 - share_i) / r_i + share_i^2 Q_uu; off the diagonal share_i share_j Q_uv between places and
    share_i share_j (Q_uu - 1/R_u) within one.
    """
    samples = smoother.samples
    index, share, row_r, place_r = samples.index, samples.share, samples.row_regularizer, samples.regularizer
    place_q = arrays.as_numpy(arrays.diagonal(projected))
    diagonal = (1 - share) / row_r + share**2 * place_q[index]
    check_determined(smoother, diagonal)
    residual = weighted_residual(smoother) / diagonal[:, None]

    both = np.stack([place_r, samples.gain, *map(samples.collapsed, variances)], axis=1)
    # sums over all places v of Q_uv^2 c_v, where (Q_uu - 1/R_u)^2 replaces Q_uu^2
    weights, xp = arrays.like(both, projected), arrays.namespace(projected)
    blocks = arrays.slices(samples.n_places, arrays.block(projected, BLOCK))
    total = arrays.as_numpy(xp.concat([matmul(projected[a, :] ** 2, weights) for a in blocks]))
    within = (place_q - 1 / place_r) ** 2
    total = total + (within - place_q**2)[:, None] * both

    def spread(column: int, row: FloatArray) -> FloatArray:
        """Sum over j != i of a_j^2 c_j, for c of the samples, collapsed and row by row."""
        others = total[index, column] - within[index] * share**2 * row
        return np.asarray(np.maximum(others, 0.0) * share**2 / diagonal**2)

    model = 1 / diagonal - row_r - spread(0, row_r)
    parts = [spread(k, row) for k, row in enumerate([samples.scale**2, *variances], start=1)]
    return residual, np.maximum(model, 0.0), *parts


def _correlated(smoother: Smoother, projected: FloatArray, *variances: FloatArray) -> tuple[FloatArray, ...]:
    """Correlated noise carries information about the noise of the other samples, which f(x_i) does not share.

    So the cross-covariance between f(x_i) and the others is K, not K + R: a = -Q_i/Q_ii - (Q without i) R_i.
    """
    regularizer = smoother.samples.row_regularizer
    diagonal = np.diagonal(projected)
    check_determined(smoother, diagonal)
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
