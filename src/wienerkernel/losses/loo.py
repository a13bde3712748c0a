"""Hyperparameters of the kernel by the leave-one-out error of a loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from .._typing import FloatArray
from ..noise import Noise
from ..noise.family import KnownLaw
from ..tuning import Data, TuningResult
from ..tuning.data import Parameters
from ..tuning.progress import report
from ..tuning.search_box import search_box
from .convex import Curve, Loss
from .coordinates import Coordinates, Observed
from .estimate import spectrum
from .score import Score, efficient_loss
from .solver import loss_of_residuals, minimize_loss

__all__ = ["leave_one_out_loss", "minimize_leave_one_out_loss"]

MOST = 100
"""Samples that are left out, at most."""


def leave_one_out_loss(
    coordinates: Coordinates, observed: Observed, curve: Curve, score: Score, lam: float
) -> float:
    """Mean loss of samples under the fits without them: of all, or of 100 that are chosen once."""
    phi = coordinates.phi[observed.index] / observed.scale[:, None]
    y, n = observed.y / observed.scale - score.center, len(observed.y)
    rows = np.arange(n) if n <= MOST else np.random.default_rng(0).permutation(n)[:MOST]
    used = np.ones((n, len(rows)))
    used[rows, np.arange(len(rows))] = 0.0
    targets = np.repeat(y[:, None], len(rows), axis=1)
    w = minimize_loss(phi, coordinates.precision, targets, curve, lam, used=used).w
    return float(np.mean(loss_of_residuals(curve, y[rows] - np.einsum("ij,ji->i", phi[rows], w))))


def minimize_leave_one_out_loss(
    data: Data, noise: Noise, loss: Loss | str, ridge: float | None, result: TuningResult
) -> TuningResult:
    """Tune the kernel by the leave-one-out loss, from a result of the likelihood, with the same bounds and priors.

    The efficient loss is that of the starting point: errors under different losses cannot be compared.
    """
    parameters = Parameters(result.kernel, KnownLaw(noise))
    start = np.asarray(parameters.kernel.theta, dtype=float)
    if not len(start):
        return result
    observed = Observed.of(np.asarray(data.X), data.y[:, 0], data.noise_scale)
    box = search_box(data, parameters)
    low, high = np.minimum(box.low, start), np.maximum(box.high, start)
    first = spectrum(Coordinates.at(result.kernel, observed.places, data.trend), observed)
    curve = (efficient_loss(noise, first) if isinstance(loss, str) else loss).curve(noise)
    evaluations = 0

    def objective(values: FloatArray) -> float:
        nonlocal evaluations
        evaluations += 1
        inside = np.clip(values, low, high)
        coordinates = Coordinates.at(parameters.kernel_at(inside), observed.places, data.trend)
        score = Score.of(curve, noise, spectrum(coordinates, observed))
        lam = score.lam if ridge is None else ridge
        mean = leave_one_out_loss(coordinates, observed, curve, score, lam)
        value = -float(np.log(max(mean, 1e-300)))
        report(value)
        return -len(observed.y) * value - float(box.log_prior(inside)[0])

    found = minimize(
        objective,
        start,
        method="Nelder-Mead",
        options={"maxfev": 60 * len(start), "xatol": 0.01, "fatol": 0.01},
    )
    values = np.clip(found.x, low, high)
    return replace(
        result,
        kernel=parameters.kernel_at(values),
        method="loo",
        value=-float(found.fun),
        parameters=result.parameters | parameters.by_name(data, values),
        n_evaluations=result.n_evaluations + evaluations,
    )
