"""Laplace's method for the joint model: how much its noise level varies, and how uncertain the level is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp, softmax

from .._typing import FloatArray
from ..backend.linalg import NotPositiveDefiniteError
from ..noise.level import log_slope
from ..smoother.leave_one_out import projected_inverse
from ..transform import EXPONENT_STD

if TYPE_CHECKING:
    from .joint import JointLikelihood

__all__ = ["SHARES", "averaged_level", "fisher_information", "level_covariance"]

SHARES = np.array([0.25, 0.5, 1.0])
"""Standard deviations that the prior of a varying level may have, in units of `PRIOR_STD`; as likely as a constant one."""
STEP = 1e-3


def fisher_information(objective: JointLikelihood, values: FloatArray) -> FloatArray:
    """Fisher's information on the noise's log standard deviation and on the weights of its level, (1 + p, 1 + p)."""
    smoother = objective.smoother(values)
    samples = smoother.samples
    own = samples.collapsed(objective.parameters.noise_at(values).var() * samples.scale**2)
    information = 2 * np.outer(own, own) * projected_inverse(smoother) ** 2
    share = own / samples.regularizer  # of the noise that has this level
    information.flat[:: len(information) + 1] += 2 * (np.bincount(samples.index) - 1) * share**2
    slope = log_slope(objective.phi, values[objective.level])
    return np.asarray(smoother.targets.shape[1] * (slope.T @ information @ slope))


def averaged_level(
    information: FloatArray, weights: FloatArray, evidence: float
) -> tuple[float, float, FloatArray]:
    """Gain in log evidence of a varying level, the posterior mean of its prior's standard deviation, and its weights with it.

    ``evidence`` is the gain for a prior of standard deviation 1. About the maximum the likelihood is a normal density in the
    weights, with this ``information``, which can be integrated with any normal prior.
    """
    curvature, vectors = np.linalg.eigh(information)
    slope = vectors.T @ (information @ weights + weights)

    def shrunk(share: float) -> FloatArray:
        return np.asarray(slope * share**2 / (1 + share**2 * curvature))

    heights = np.array([slope @ shrunk(s) - np.sum(np.log1p(s**2 * curvature)) for s in SHARES]) / 2
    heights += evidence - heights[-1]
    share = float(softmax([0.0, *heights])[1:] @ SHARES)
    return float(logsumexp(heights) - np.log(len(SHARES))), share, vectors @ shrunk(share)


def level_covariance(
    objective: JointLikelihood, values: FloatArray, bounds: list[tuple[float, float]]
) -> FloatArray:
    """Posterior covariance of the noise's log standard deviation and of the weights of its level, (1 + p, 1 + p).

    The other parameters, as far as they are not at their bounds, are integrated out: with few samples, a kernel of
    shorter length scales explains what is noise to a smoother one. Their second derivatives are differences of the
    gradient. In no direction is the posterior wider than the prior.
    """
    n_noise = objective.parameters.n_kernel
    own = np.r_[n_noise, np.arange(len(values))[objective.level]]
    low, high = np.array(bounds).T
    inside = (values > low + STEP) & (values < high - STEP)
    inside[own] = False
    prior = _prior_precision(objective, values, high - low)
    precision, others = np.zeros_like(prior), []
    for k in np.flatnonzero(inside):
        step = STEP * (np.arange(len(values)) == k)
        try:
            row = (objective(values - step)[1] - objective(values + step)[1]) / (2 * STEP)
        except NotPositiveDefiniteError:  # too close to a singular kernel matrix: the parameter is kept
            continue
        precision[k, :] = precision[:, k] = row
        others.append(int(k))
    precision[np.ix_(own, own)] = prior[np.ix_(own, own)] + fisher_information(objective, values)
    chosen = np.r_[np.array(others, dtype=int), own]
    root = np.linalg.cholesky(prior[np.ix_(chosen, chosen)])
    relative = np.linalg.solve(root, np.linalg.solve(root, precision[np.ix_(chosen, chosen)]).T)
    sizes, vectors = np.linalg.eigh(0.5 * (relative + relative.T))
    half = np.linalg.solve(root.T, vectors / np.sqrt(np.maximum(sizes, 1.0)))[len(others) :]
    return np.asarray(half @ half.T)


def _prior_precision(objective: JointLikelihood, values: FloatArray, width: FloatArray) -> FloatArray:
    """Precision of the normal prior of all parameters, (p, p); that of a uniform law between the bounds if there is none."""
    precision = np.zeros((len(values), len(values)))
    shared = slice(0, objective.level.start)
    for k in range(shared.stop):
        step = STEP * (np.arange(shared.stop) == k)
        change = objective.prior(values[shared] - step)[1] - objective.prior(values[shared] + step)[1]
        precision[shared, k] = change / (2 * STEP)
    diagonal = precision.diagonal().copy()
    diagonal[objective.level] = objective.precision
    diagonal[objective.level.stop :] = EXPONENT_STD**-2
    with np.errstate(divide="ignore"):
        np.fill_diagonal(precision, np.where(diagonal > 0, diagonal, 12 / width**2))
    return precision
