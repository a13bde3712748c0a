"""Hyperparameters by what the likelihood of the linear model cannot see: the density of the noise, or another loss."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize
from sklearn.exceptions import ConvergenceWarning

from .._typing import FloatArray
from ..noise import Noise
from ..noise.family import Family, KnownLaw, NoiseModel, noise_model
from ..tuning import Data, TuningResult
from ..tuning.data import Parameters
from ..tuning.progress import report
from ..tuning.search_box import search_box
from ..tuning.starts import shape_starts
from .convex import Curve
from .coordinates import Coordinates, Observed
from .density import NoiseDensity
from .estimate import spectrum
from .propagation import Propagation, propagate
from .score import Score, as_loss
from .solver import loss_of_residuals, minimize_loss

__all__ = ["finds_shapes", "leave_one_out_loss", "tuned"]

STEP = 1e-4
ITERATIONS = 40
TOLERANCE, GAIN = 3e-3, 1e-2
"""Residual of expectation propagation in the search, and the gain in log evidence of a step that ends it."""
SHORTER, SAME = 1.4, 0.2
"""Difference of log length scales of the two starting points; the second search ends this close to the end of the first."""
OFF, WORSE = 1.0, 1e3
"""Residual above which the evidence means nothing, and how much less than the best value stands for it."""
MOST = 100
"""Samples that are left out, at most."""


def tuned(
    data: Data,
    result: TuningResult,
    tuning: str | None,
    noise: Any,
    loss: Any,
    inference: str | None,
    ridge: float | None,
) -> TuningResult:
    """Improve on the result of the linear model: by the evidence, or by the leave-one-out error of the loss."""
    if inference is not None and tuning == "likelihood":
        return _maximize_evidence(data, noise, result)
    if inference is None and tuning == "loo":
        return _minimize_leave_one_out_loss(data, loss, ridge, result)
    return result


def _model(noise: Any) -> NoiseModel | None:
    """The model of the noise as the user gave it; None if it was learned from residuals."""
    if isinstance(noise, str) and noise == "auto":
        return None
    model = noise_model(noise)
    return None if isinstance(model, str) else model


def finds_shapes(noise: Any) -> bool:
    """Whether the evidence determines the shapes of a family: not where a member's density has a pole."""
    model = _model(noise)
    if not isinstance(model, Family) or not model.shape_names:
        return False
    corners = itertools.product(*model.shape_bounds)
    return not any(NoiseDensity.of(model.law(1.0, corner)).pole for corner in corners)


def _maximize_evidence(data: Data, given: Any, result: TuningResult) -> TuningResult:
    """Maximize the evidence from a result of the Gaussian quasi-likelihood, with the same bounds and priors.

    The data are on the scale of the transform, with the level of the noise in their scales; the noise is as the user has
    ``given`` it. Its shapes are kept where its density has a pole: there, the evidence does not compare laws well.
    """
    parameters = Parameters(result.kernel, _model(given) or KnownLaw(result.noise))
    start = _values(parameters, result)
    if not len(start):
        return result
    box = search_box(data, parameters)
    low, high = np.minimum(box.low, start), np.maximum(box.high, start)
    evidence = _Evidence(data, parameters)
    free_shapes = finds_shapes(given)
    if free_shapes:
        start = max(itertools.chain(*shape_starts(box, parameters, start)), key=evidence.value)
    elif NoiseDensity.of(result.noise).pole:
        low[parameters.shapes] = high[parameters.shapes] = start[parameters.shapes]

    def loss(values: FloatArray) -> tuple[float, FloatArray]:
        """Per sample, so that the first step of the search is not too long."""
        value, gradient = evidence(values)
        report(value / data.y.size)
        prior, prior_gradient = box.log_prior(values)
        return -(value + prior) / data.y.size, -(gradient + prior_gradient) / data.y.size

    gain = GAIN / max(abs(result.value), data.y.size)
    # under skewed noise the quasi-likelihood can end far from the maximum: a second search begins at shorter length scales
    searches: list[Any] = []

    def stop_if_known(xk: FloatArray) -> None:
        if any(np.max(np.abs(xk - search.x)) < SAME for search in searches):
            raise StopIteration

    for first in (start, np.clip(start - SHORTER * box.lengths, low, high)):
        evidence.forget()
        search = minimize(
            loss,
            first,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(low, high),
            callback=stop_if_known,
            options={"maxiter": ITERATIONS, "ftol": gain},
        )
        searches.append(search)
    best = min(searches, key=lambda search: float(search.fun))
    values, noise = best.x, parameters.noise_at(best.x)
    names = np.array(data.by_column(parameters.names))
    for side, ended in zip(("lower", "upper"), box.at_bound(values), strict=True):
        shapes = names[parameters.shapes][ended[parameters.shapes] & free_shapes]
        if len(shapes):
            message = f"tuning: {', '.join(shapes)} ended at its {side} bound"
            warnings.warn(message, ConvergenceWarning, stacklevel=6)
    return replace(
        result,
        kernel=parameters.kernel_at(values),
        noise=noise,
        ridge=noise.var(),
        value=-best.fun * data.y.size - box.log_prior(values)[0],
        parameters=result.parameters | parameters.by_name(data, values),
        n_evaluations=result.n_evaluations + evidence.evaluations,
    )


def _values(parameters: Parameters, result: TuningResult) -> FloatArray:
    """The vector of parameters that a result stands for."""
    noise = slice(parameters.n_kernel, None)
    shown = np.array([result.parameters[name] for name in parameters.names[noise]])
    log = parameters.is_log[noise]
    return np.append(parameters.kernel.theta, np.where(log, np.log(np.where(log, shown, 1.0)), shown))


class _Evidence:
    """Log evidence and its gradient as a function of the parameters."""

    def __init__(self, data: Data, parameters: Parameters) -> None:
        self.data, self.parameters = data, parameters
        self.observed = Observed.of(np.asarray(data.X), data.y[:, 0], data.noise_scale)
        self.best = -np.inf
        self.evaluations = 0
        self._last: Propagation | None = None

    def forget(self) -> None:
        """Start the next run from normal noise."""
        self._last = None

    def _run(self, values: FloatArray, noise: Noise) -> Propagation:
        """Expectation propagation, from the sites of the last evaluation where they are of use."""
        coordinates = Coordinates.at(self.parameters.kernel_at(values), self.observed.places, self.data.trend)
        if self._last is not None:
            try:
                found = propagate(coordinates, self.observed, noise, self._last, TOLERANCE)
                if found.converged:
                    return found
            except ValueError:  # sites that are improper for this kernel
                pass
        return propagate(coordinates, self.observed, noise, tolerance=TOLERANCE)

    def value(self, values: FloatArray) -> float:
        """Value alone, far below the best one where propagation did not converge."""
        found = self._run(values, self.parameters.noise_at(values))
        self.evaluations += 1
        if not (np.isfinite(found.log_evidence) and found.residual <= OFF):
            return (self.best if np.isfinite(self.best) else 0.0) - WORSE
        self._last = found
        self.best = max(self.best, found.log_evidence)
        return found.log_evidence

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient, (p,)."""
        parameters, last = self.parameters, self._last
        value, gradient = self.value(values), np.zeros(len(values))
        found = self._last
        if found is None or found is last:  # the value means nothing
            return value, gradient
        gradient[: parameters.n_kernel] = found.kernel_gradient()
        for k in range(parameters.n_kernel, len(values)):
            step = np.where(np.arange(len(values)) == k, STEP, 0.0)
            up, down = (
                found.noise_derivative(parameters.noise_at(values + sign * step)) for sign in (1.0, -1.0)
            )
            gradient[k] = (up - down) / (2 * STEP)
        return value, gradient


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


def _minimize_leave_one_out_loss(
    data: Data, loss: Any, ridge: float | None, result: TuningResult
) -> TuningResult:
    """Tune the kernel by the leave-one-out loss, from a result of the likelihood, with the same bounds and priors.

    The efficient loss is that of the starting point: errors under different losses cannot be compared.
    """
    noise = result.noise
    parameters = Parameters(result.kernel, KnownLaw(noise))
    start = np.asarray(parameters.kernel.theta, dtype=float)
    if not len(start):
        return result
    observed = Observed.of(np.asarray(data.X), data.y[:, 0], data.noise_scale)
    box = search_box(data, parameters)
    low, high = np.minimum(box.low, start), np.maximum(box.high, start)
    first = spectrum(Coordinates.at(result.kernel, observed.places, data.trend), observed)
    curve = as_loss(loss, noise, first).curve(noise)
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
