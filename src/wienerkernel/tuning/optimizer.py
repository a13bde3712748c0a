"""Maximizing an objective plus a log prior with its gradient: L-BFGS-B in a box, with walls instead of crashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from ..backend.linalg import NotPositiveDefiniteError
from .search_box import SearchBox

__all__ = ["FAILURES", "Objective", "Optimizer"]

MAX_ITERATIONS = 300
RESTART_RANGE = np.log(20.0)
OPTIONS: Any = {"maxiter": MAX_ITERATIONS, "ftol": 1e-9, "gtol": 1e-6, "maxls": 40}

FAILURES = (NotPositiveDefiniteError, ValueError, ArithmeticError)
"""What an objective may raise at extreme parameters, scipy.stats among others."""

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
"""Value and gradient at a vector of parameters; a sum over samples, to be maximized."""


class Optimizer:
    """Searches for a maximum of an objective plus the log prior of its box, and remembers what is to be told about them.

    Parameters
    ----------
    n_samples : int
        Number of terms in the objectives, which sets the scale of their gradients.
    n_restarts : int
        Searches from random points, in addition to the first.
    generator : numpy Generator or RandomState

    Attributes
    ----------
    evaluations : int
    steepest : ndarray of shape (p,)
        Largest derivative of an objective, without the prior, by each parameter that was met.
    message : str
        Why the last search stopped early, or "".

    Examples
    --------
    >>> zero, one, free = np.zeros(1), np.ones(1), np.ones(1, dtype=bool)
    >>> box = SearchBox(zero, -one, 3 * one, center=zero, spread=5 * one, lengths=~free)
    >>> optimizer = Optimizer(1, 0, np.random.default_rng(0))
    >>> point, value = optimizer.maximize(lambda x: (-float((x[0] - 2) ** 2), 4 - 2 * x), [zero], box, free)
    >>> round(float(point[0]), 6)   # the prior pulls a little
    1.960784
    """

    def __init__(self, n_samples: int, n_restarts: int, generator: Any) -> None:
        self.n_samples, self.n_restarts, self.generator = n_samples, n_restarts, generator
        self.evaluations = 0
        self.steepest: FloatArray = np.zeros(0)
        self.message = ""

    def best_of(
        self, value_at: Callable[[FloatArray], float], starts: list[FloatArray], box: SearchBox
    ) -> FloatArray:
        """The best of some points.

        Parameters
        ----------
        value_at : callable
            The objective without its gradient; the prior is added to it.
        starts : list of ndarray of shape (p,)
        box : SearchBox

        Returns
        -------
        ndarray of shape (p,)

        Raises
        ------
        NotPositiveDefiniteError, ValueError or ArithmeticError
            That of the last point, if none can be evaluated.
        """
        best, found = -np.inf, None
        error: Exception = NotPositiveDefiniteError("the objective is not finite at any starting point")
        for start in starts:
            point = np.clip(start, box.low, box.high)
            self.evaluations += 1
            try:
                value = value_at(point) + box.log_prior(point)[0]
            except FAILURES as failure:
                error = failure
                continue
            if value > best:
                best, found = value, point
        if found is None:
            raise error
        return found

    def maximize(
        self, objective: Objective, starts: list[FloatArray], box: SearchBox, free: NDArray[np.bool_]
    ) -> tuple[FloatArray, float]:
        """Search from ``starts`` and from random points around the first, over the free parameters.

        Parameters
        ----------
        objective : Objective
        starts : list of ndarray of shape (p,)
            They differ in free parameters only.
        box : SearchBox
        free : ndarray of bool of shape (p,)

        Returns
        -------
        point : ndarray of shape (p,)
        value : float
            Of the objective there, without the prior.
        """
        from scipy.optimize import minimize

        start = np.clip(starts[0], box.low, box.high)
        if not free.any():
            return start, objective(start)[0]
        if len(self.steepest) != len(start):
            self.steepest = np.zeros(len(start))
        worst, first = -np.inf, np.nan

        def loss(point: FloatArray) -> tuple[float, FloatArray]:
            nonlocal worst, first
            values = start.copy()
            values[free] = point
            self.evaluations += 1
            try:
                value, gradient = objective(values)
            except FAILURES:
                value, gradient = np.nan, np.zeros(len(start))
            if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
                # A wall, higher than all that was seen.
                return worst + 10.0 if np.isfinite(worst) else 1e6, np.zeros(int(free.sum()))
            self.steepest = np.maximum(self.steepest, np.where(free, np.abs(gradient), 0.0))
            prior, slope = box.log_prior(values)
            result = -(value + prior) / self.n_samples
            # Relative to where the search began: its end must not depend on the unit of y, which shifts all values.
            first = result if np.isnan(first) else first
            result -= first
            worst = max(worst, result)
            return result, -(gradient + slope)[free] / self.n_samples

        bounds = np.stack([box.low, box.high], axis=1)[free]
        begins = [np.clip(other, box.low, box.high)[free] for other in starts]
        for _ in range(self.n_restarts):
            step = self.generator.uniform(-RESTART_RANGE, RESTART_RANGE, len(bounds))
            begins.append(np.clip(begins[0] + step, bounds[:, 0], bounds[:, 1]))
        results: list[Any] = [
            minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds.tolist(), options=OPTIONS)
            for begin in begins
        ]
        best = min(results, key=lambda result: float(result.fun))
        self.message = "" if best.success or _stationary(best, bounds) else str(best.message)
        values = start.copy()
        values[free] = best.x
        return values, float(-(best.fun + np.nan_to_num(first)) * self.n_samples) - box.log_prior(values)[0]


def _stationary(result: Any, bounds: FloatArray) -> bool:
    """Whether the projected gradient is as good as zero."""
    step = np.clip(result.x - result.jac, bounds[:, 0], bounds[:, 1]) - result.x
    return bool(np.max(np.abs(step), initial=0.0) < 1e-4)
