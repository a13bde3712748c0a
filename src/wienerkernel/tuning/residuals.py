"""The shape of the noise from residuals, and whether a family is consistent with them.

The shape is that of all residuals, but each sample is scored with a shape estimated without its fold (cross-fitting).
"""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray, IntArray
from ..noise import SmoothedResiduals
from ..noise.family import ScaledShape
from ..smoother import Smoother
from ..smoother.leave_one_out import LeaveOneOutLaws, leave_one_out
from .data import Data, Parameters
from .loo_score import LeaveOneOutScore

__all__ = ["ends_are_known", "outside_support", "residual_shape", "shape_of", "shape_of_subset"]

MIN_REPEATS, MIN_REPLICATES = 5, 20
"""Samples per distinct input, and such samples in total, from which replicates show the shape of the noise."""
FOLDS = 5  # groups of samples, each scored with the shape of the residuals of the others
END = 0.5
"""Least bandwidth, in distances between the first and the third residual from either end, for which the ends are known."""


def residual_shape(data: Data, parameters: Parameters, values: FloatArray) -> ScaledShape | None:
    """The law of the residuals within replicates if there are enough, else of the leave-one-out residuals."""
    residuals = _replicate_residuals(data)
    if residuals is None:
        residuals = _standardized_residuals(LeaveOneOutScore(data, parameters).smoother(values))
    return shape_of(residuals)


def shape_of(residuals: FloatArray) -> ScaledShape | None:
    """The smoothed law of residuals, (m,), NaN where unknown, with those of the folds; None if all are equal."""
    # at random: neighbors, replicates and outputs are spread over the folds
    fold = np.random.default_rng(0).permutation(residuals.size) % FOLDS
    known, folds = np.isfinite(residuals), []
    for k in range(min(FOLDS, residuals.size)):
        others = residuals[known & (fold != k)]
        if len(np.unique(others)) < 2 or np.ptp(others) <= 1e-12 * np.max(np.abs(others)):
            return None
        folds.append((np.flatnonzero(fold == k), SmoothedResiduals(others - others.mean())))
    return ScaledShape(SmoothedResiduals(residuals[known] - residuals[known].mean()), folds)


def ends_are_known(law: SmoothedResiduals) -> bool:
    """Whether smoothing bridges the distances between the outermost residuals on both sides.

    Beyond the largest residual the density falls like that of the Gaussian kernel. If the next sample may lie many bandwidths
    farther out, as under heavy tails, only a family continues the tail.
    """
    x = law.residuals.values
    return len(x) > 2 and law.bandwidth >= END * float(max(x[2] - x[0], x[-1] - x[-3]))


def shape_of_subset(shape: ScaledShape, rows: IntArray, outputs: tuple[int, int]) -> ScaledShape:
    """The same shape for some rows of targets of shape ``outputs``: every sample is still scored by the same others."""
    position = np.full(outputs, -1)
    position[rows] = np.arange(len(rows) * outputs[1]).reshape(-1, outputs[1])
    folds = [(position.ravel()[index], law) for index, law in shape.folds]
    return ScaledShape(shape.shape, [(index[index >= 0], law) for index, law in folds])


def _replicate_residuals(data: Data) -> FloatArray | None:
    """Residuals within replicates, scaled to the variance of the noise; NaN where there are too few."""
    if data.noise_scale.ndim == 2 or np.ptp(data.noise_scale) > 0:
        return None
    index = data.samples.index
    counts = np.bincount(index)
    chosen = counts[index] >= MIN_REPEATS
    if chosen.sum() < MIN_REPLICATES:
        return None
    within = data.y - data.samples.means(data.y)[index]
    correction = np.sqrt(counts[index] / np.maximum(counts[index] - 1.0, 1.0))
    return np.where(chosen[:, None], within * correction[:, None], np.nan).ravel()


def _standardized_residuals(smoother: Smoother) -> FloatArray:
    """Leave-one-out residuals over their standard deviations, one-dimensional; the regularizer is the noise covariance."""
    residual, model, gain = leave_one_out(smoother)
    own, scale = smoother.samples.row_regularizer, smoother.samples.scale
    own = own if own.ndim == 1 else np.diagonal(own)
    noise = own / (scale**2 if scale.ndim == 1 else np.sum(scale**2, axis=1))
    return np.asarray((residual / np.sqrt(model + noise * gain + own)[:, None]).ravel())


def outside_support(data: Data, parameters: Parameters, values: FloatArray) -> int:
    """Number of residuals that exceed the support of their own noise by four standard deviations of the rest."""
    noise = parameters.noise_at(values)
    lower, upper = (end - noise.mean() for end in noise.support())
    if (
        data.input_noise is not None
        or data.count is not None
        or data.noise_scale.ndim == 2
        or not (np.isfinite(lower) or np.isfinite(upper))
    ):
        return 0
    try:
        loo = LeaveOneOutLaws(LeaveOneOutScore(data, parameters).smoother(values))
    except ValueError:  # too few rows for the trend without one of them
        return 0
    scale = loo.scale[loo.group]
    variance = noise.var() * (loo.weights**2 @ loo.counts - loo.scale**2) + loo.model
    margin = 4 * np.sqrt(variance)[loo.group, None]
    outside = (loo.residual < scale[:, None] * lower - margin) | (
        loo.residual > scale[:, None] * upper + margin
    )
    return int(outside.sum())
