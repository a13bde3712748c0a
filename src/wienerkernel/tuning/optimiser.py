"""Maximising an objective with its gradient: L-BFGS-B in a box, with walls instead of crashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from ..linalg import NotPositiveDefiniteError
from .search_box import SearchBox

__all__ = ["Objective", "Optimiser"]

MAX_ITERATIONS = 300
RESTART_RANGE = np.log(20.0)
OPTIONS: Any = {"maxiter": MAX_ITERATIONS, "ftol": 1e-9, "gtol": 1e-6, "maxls": 40}

FAILURES = (NotPositiveDefiniteError, ValueError, ArithmeticError)
"""What an objective may raise at extreme parameters, scipy.stats among others."""

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
"""Value and gradient at a vector of parameters; a sum over samples, to be maximised."""


class Optimiser:
    """Searches for a maximum, and remembers what is to be told about them.

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
        Largest derivative by each parameter that was met.
    message : str
        Why the last search stopped early, or "".

    Examples
    --------
    >>> box = SearchBox(np.zeros(1), np.array([-1.0]), np.array([3.0]), np.zeros(1, dtype=bool))
    >>> optimiser = Optimiser(1, 0, np.random.default_rng(0))
    >>> point, value = optimiser.maximise(lambda x: (-float((x[0] - 2) ** 2), 4 - 2 * x), np.zeros(1), box, np.ones(1, bool))
    >>> round(float(point[0]), 6)
    2.0
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
            The objective without its gradient.
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
                value = value_at(point)
            except FAILURES as failure:
                error = failure
                continue
            if value > best:
                best, found = value, point
        if found is None:
            raise error
        return found

    def maximise(
        self, objective: Objective, start: FloatArray, box: SearchBox, free: NDArray[np.bool_]
    ) -> tuple[FloatArray, float]:
        """Search from ``start`` and from random points around it, over the free parameters.

        Parameters
        ----------
        objective : Objective
        start : ndarray of shape (p,)
        box : SearchBox
        free : ndarray of bool of shape (p,)

        Returns
        -------
        point : ndarray of shape (p,)
        value : float
        """
        from scipy.optimize import minimize

        start = np.clip(start, box.low, box.high)
        if not free.any():
            return start, objective(start)[0]
        if len(self.steepest) != len(start):
            self.steepest = np.zeros(len(start))
        worst = -np.inf

        def loss(point: FloatArray) -> tuple[float, FloatArray]:
            nonlocal worst
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
            worst = max(worst, -value / self.n_samples)
            self.steepest = np.maximum(self.steepest, np.where(free, np.abs(gradient), 0.0))
            return -value / self.n_samples, -gradient[free] / self.n_samples

        bounds = np.stack([box.low, box.high], axis=1)[free]
        begins = [start[free]]
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
        return values, float(-best.fun * self.n_samples)


def _stationary(result: Any, bounds: FloatArray) -> bool:
    """Whether the projected gradient is as good as zero."""
    step = np.clip(result.x - result.jac, bounds[:, 0], bounds[:, 1]) - result.x
    return bool(np.max(np.abs(step), initial=0.0) < 1e-4)
