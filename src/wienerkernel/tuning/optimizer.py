"""Maximization of an objective plus a log prior in a box: L-BFGS-B far from a maximum, quasi-Newton steps near it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.optimize import lsq_linear, minimize

from .._typing import FloatArray
from ..backend.linalg import NotPositiveDefiniteError
from .data import Data
from .progress import report
from .search_box import SearchBox

__all__ = ["FAILURES", "Objective", "Optimizer"]

MAX_ITERATIONS = 300
RESTART_RANGE = np.log(20.0)
OPTIONS: Any = {"maxiter": MAX_ITERATIONS, "ftol": 1e-9, "gtol": 1e-6, "maxls": 40}
"""Tolerances of L-BFGS-B, per sample."""
ROUGH: Any = {**OPTIONS, "ftol": 1e-4, "gtol": 1e-4}  # the same for a search that is refined afterwards
TOLERANCE = 3e-4
"""A refinement ends when it expects to gain less than this: 0.02 standard errors of any parameter."""
RADIUS, MIN_RADIUS = 1.0, 1e-7
"""Largest first step of a refinement, a factor of e for logarithms, and the step at which rounding has taken over."""
DIFFERENCE = 1e-3  # step of the differences of gradients that give the curvature
STATIONARY = 1e-4
"""Projected gradient per sample at which a search that ended early has nevertheless found a maximum."""

FAILURES = (NotPositiveDefiniteError, ValueError, ArithmeticError)
"""Exceptions of objectives at extreme parameters, some of them from scipy.stats."""


class Objective(Protocol):
    """A function of the parameters to be maximized, a sum over the samples of ``data``."""

    @property
    def data(self) -> Data:
        """The samples."""

    def value(self, values: FloatArray, /) -> float:
        """Value alone, which is cheaper."""

    def __call__(self, values: FloatArray, /) -> tuple[float, FloatArray]:
        """Value and gradient of shape (p,)."""


class Optimizer:
    """Searches for the maximum of an objective plus the log prior of its box, which return the objective without the prior.

    ``evaluations`` counts those of all objectives, ``steepest`` (p,) holds the largest derivatives per sample of any of
    them, and ``message`` says why the last search ended early, or is empty.
    """

    def __init__(self, n_samples: int, n_restarts: int, generator: Any) -> None:
        self.n_samples, self.n_restarts, self.generator = n_samples, n_restarts, generator
        self.evaluations = 0
        self.steepest: FloatArray = np.zeros(0)
        self.message = ""

    def best_of(self, objective: Objective, starts: list[FloatArray], box: SearchBox) -> FloatArray:
        """The best of some points, by values alone; if none can be evaluated, raises the failure of the last."""
        if len(starts) == 1:
            return np.clip(starts[0], box.low, box.high)
        best, found, loss = -np.inf, None, _Loss(self, objective, box)
        error: Exception = NotPositiveDefiniteError("the objective is not finite at any starting point")
        points = (np.clip(start, box.low, box.high) for start in starts)
        for point in {point.tobytes(): point for point in points}.values():  # some coincide
            self.evaluations += 1
            try:
                value = objective.value(point) + loss.log_prior(point)[0]
            except FAILURES as failure:
                error = failure
                continue
            if value > best:
                best, found = value, point
        if found is None:
            raise error
        return found

    def maximize(
        self,
        objective: Objective,
        starts: list[FloatArray],
        box: SearchBox,
        *,
        rough: bool = False,
    ) -> tuple[FloatArray, float]:
        """Search from the starts and from random points."""
        loss, worst, first = _Loss(self, objective, box), -np.inf, np.nan
        if not loss.free.any():
            return box.low, objective(box.low)[0]

        def walled(point: FloatArray) -> tuple[float, FloatArray]:
            nonlocal worst, first
            result, gradient = loss(point)
            if not np.isfinite(result):  # a barrier above all values so far
                return worst + 10.0 if np.isfinite(worst) else 1e6, gradient
            # Relative to where the search began: its end must not depend on the units of y, which shift all values.
            first = result if np.isnan(first) else first
            worst = max(worst, result - first)
            return result - first, gradient

        bounds = loss.bounds
        begins = [np.clip(other, box.low, box.high)[loss.free] for other in starts]
        for _ in range(self.n_restarts):
            step = self.generator.uniform(-RESTART_RANGE, RESTART_RANGE, len(begins[0]))
            begins.append(np.clip(begins[0] + step, *bounds))
        options = ROUGH if rough else OPTIONS
        results: list[Any] = [
            minimize(walled, begin, jac=True, method="L-BFGS-B", bounds=bounds.T.tolist(), options=options)
            for begin in begins
        ]
        best = min(results, key=lambda result: float(result.fun))
        self.message = "" if best.success or _stationary(best.x, best.jac, bounds) else str(best.message)
        return loss.end(best.x, best.fun + np.nan_to_num(first))

    def curvature(self, objective: Objective, values: FloatArray, box: SearchBox) -> FloatArray:
        """Hessian per sample of minus the objective, from differences of gradients, with its eigenvalues made positive."""
        loss = _Loss(self, objective, box)
        point = values[loss.free]
        gradient, hessian = loss(point)[1], np.zeros((len(point), len(point)))
        for k, room in enumerate(loss.bounds[1] - point):
            step = DIFFERENCE if room > DIFFERENCE else -DIFFERENCE
            value, other = loss(point + step * (np.arange(len(point)) == k))
            hessian[k] = (other - gradient) / step if np.isfinite(value) else 0.0
        eigenvalues, vectors = np.linalg.eigh(hessian + hessian.T)
        sizes = 0.5 * np.abs(eigenvalues)
        least = 1e-8 * sizes.max(initial=0.0) + TOLERANCE / loss.n
        return np.asarray((vectors * np.maximum(sizes, least)) @ vectors.T)

    def refine(
        self, objective: Objective, start: FloatArray, box: SearchBox, curvature: FloatArray
    ) -> tuple[FloatArray, float, FloatArray]:
        """Refine a maximum, given the curvature per sample there; also returns the updated curvature.

        Quasi-Newton steps within bounds and a trust region: few evaluations of the objective.
        """
        loss = _Loss(self, objective, box)
        if not loss.free.any():
            return start, objective(start)[0], curvature
        (low, high), x = loss.bounds, start[loss.free]
        value, gradient = loss(x)
        radius, self.message, tolerance = RADIUS, "", TOLERANCE / objective.data.size
        for _ in range(MAX_ITERATIONS):
            step = _box_step(gradient, curvature, low - x, high - x)
            if -gradient @ step - 0.5 * step @ curvature @ step < tolerance:
                break
            if radius < MIN_RADIUS or not np.isfinite(value):
                if not _stationary(x, gradient, loss.bounds):
                    self.message = "the objective could not be improved"
                break
            if np.max(np.abs(step)) > radius:
                near = np.maximum(low - x, -radius), np.minimum(high - x, radius)
                step = _box_step(gradient, curvature, *near)
            length = np.max(np.abs(step))
            expected = -gradient @ step - 0.5 * step @ curvature @ step
            new, slope = loss(np.clip(x + step, low, high))
            if not new < value + expected:  # too far off for the new slope to inform the curvature here
                radius = length / 4
                continue
            curvature = _updated(curvature, step, slope - gradient)
            if value - new < 0.1 * expected:
                radius = length / 4
            elif value - new > 0.7 * expected:
                radius = max(radius, 2 * length)
            if new < value:
                x, value, gradient = np.clip(x + step, low, high), new, slope
        else:
            self.message = f"no convergence after {MAX_ITERATIONS} steps"
        return *loss.end(x, value), curvature


class _Loss:
    """Minus objective and log prior per sample by the free parameters, with its gradient; NaN and 0 at failures."""

    def __init__(self, optimizer: Optimizer, objective: Objective, box: SearchBox) -> None:
        self.optimizer, self.objective, self.box = optimizer, objective, box
        self.n, self.free = objective.data.size, box.low < box.high
        self.bounds = np.stack([box.low, box.high])[:, self.free]
        if len(optimizer.steepest) != len(self.free):
            optimizer.steepest = np.zeros(len(self.free))

    def values(self, point: FloatArray) -> FloatArray:
        """All parameters."""
        values = self.box.low.copy()
        values[self.free] = point
        return values

    def log_prior(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Log prior and its gradient; a subset of the samples has its share, so that its maximum is that of all samples."""
        share = self.n / self.optimizer.n_samples
        value, gradient = self.box.log_prior(values)
        return share * value, share * gradient

    def end(self, point: FloatArray, loss: float) -> tuple[FloatArray, float]:
        """All parameters, and the objective without the prior."""
        values = self.values(point)
        return values, float(-self.n * loss) - self.log_prior(values)[0]

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray]:
        values, optimizer = self.values(point), self.optimizer
        optimizer.evaluations += 1
        try:
            value, gradient = self.objective(values)
        except FAILURES:
            return np.nan, np.zeros(len(point))
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return np.nan, np.zeros(len(point))
        report(value / self.n)
        steepness = np.where(self.free, np.abs(gradient), 0.0) / self.n
        optimizer.steepest = np.maximum(optimizer.steepest, steepness)
        prior, slope = self.log_prior(values)
        return -(value + prior) / self.n, -(gradient + slope)[self.free] / self.n


def _box_step(gradient: FloatArray, curvature: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Minimize g's + s'Bs/2 over low <= s <= high: least squares, with B = R'R."""
    root = np.linalg.cholesky(curvature).T
    target = -np.linalg.solve(root.T, gradient)
    return np.asarray(lsq_linear(root, target, bounds=(low, high), method="bvls").x)


def _updated(curvature: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """BFGS update by a step and the change of the gradient, damped (Powell) to stay positive definite."""
    product = curvature @ step
    along, seen = step @ product, step @ change
    if seen < 0.2 * along:
        change = product + 0.8 * along / (along - seen) * (change - product)
    return np.asarray(
        curvature - np.outer(product, product) / along + np.outer(change, change) / (step @ change)
    )


def _stationary(point: FloatArray, gradient: FloatArray, bounds: FloatArray) -> bool:
    """Whether the projected gradient per sample is practically zero."""
    step = np.clip(point - gradient, *bounds) - point
    return bool(np.max(np.abs(step), initial=0.0) < STATIONARY)
