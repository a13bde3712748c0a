"""Optimize an expensive, noisy function, optionally evaluating only inputs that are certified to be safe.

An :class:`Optimizer` proposes inputs (``ask``) and takes measurements (``tell``); :func:`minimize` does both in a loop.
The acquisition uses the exact law of f, which is skewed if the noise is, and both parts of its uncertainty: an input is
sampled again where the noise in the data dominates, and unexplored inputs are sampled where the model part does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import OptimizeResult
from scipy.special import ndtri

from .._typing import FloatArray, RandomState
from ..noise.base import as_generator
from ..posterior import SamplePaths
from ..regressor import WienerKernelRegressor
from ..text import check_choice, check_probability
from .acquisition import expected_improvement, normal_improvement
from .bounds import METHODS, bound
from .design import space_filling

__all__ = ["NoSafePointError", "Optimizer", "SafetyConstraint", "minimize"]

ACQUISITIONS = ("ei", "ucb", "thompson")
N_CANDIDATES = 1024
SHORTLIST = 32
"""Candidates for which the exact law is used: the best ones under a normal law of the same mean and variance."""
NEIGHBORS = 16


class NoSafePointError(ValueError):
    """No point is certified to be safe."""


@dataclass(frozen=True)
class SafetyConstraint:
    """f must stay above a threshold when it is maximized, below it when it is minimized.

    Points are safe if the interval of :func:`~wienerkernel.decisions.bounds.bound` certifies it, or if they are seeds.

    Parameters
    ----------
    threshold : float
    norm : float
        Bound B on the RKHS norm of f.
    confidence : float, default=0.95
    bound : str, default="abbasi-yadkori"
        How the noise is bounded. The default holds for points that are chosen adaptively, at all points and steps at
        once, and needs sub-Gaussian noise. The pointwise bounds, such as "exact", are tighter and "exact" allows any
        noise, but they are proven only for points that do not depend on the noise.
    subgaussian_constant : float, optional
        Sub-Gaussian constant of the noise, if it does not follow from its law.
    seeds : array-like of shape (k, d), optional
        Points that are known to be safe.

    Examples
    --------
    >>> SafetyConstraint(-1.0, norm=2.0, seeds=[[0.5]]).confidence
    0.95
    """

    threshold: float
    norm: float
    confidence: float = 0.95
    bound: str = "abbasi-yadkori"
    subgaussian_constant: float | None = None
    seeds: ArrayLike | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.threshold):
            raise ValueError(f"threshold must be a finite number, got {self.threshold!r}")
        if not 0 <= self.norm < np.inf:
            raise ValueError(f"norm must be a finite number of at least 0, got {self.norm!r}")
        check_probability("confidence", self.confidence)
        check_choice("bound", self.bound, METHODS)

    def interval(self, model: WienerKernelRegressor, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper end, each of shape (m,), of the interval that decides whether the rows of X are safe."""
        options: dict[str, Any] = {"norm": self.norm, "confidence": self.confidence, "method": self.bound}
        return bound(model.posterior_, X, **options, subgaussian_constant=self.subgaussian_constant)


class Optimizer:
    """Propose where to evaluate a noisy function next, to find its maximum or minimum in few evaluations.

    Parameters
    ----------
    space : sequence of (low, high)
        Bounds of each of the d inputs.
    kernel, noise : optional
        As those of :class:`~wienerkernel.WienerKernelRegressor`.
    objective : {"max", "min"}, default="max"
    acquisition : {"ei", "ucb", "thompson"}, default="ei"
        Expected improvement over the best estimate at a sampled input, the optimistic quantile of f(x), or Thompson
        sampling: the best value of a function drawn from the model. Under a safety constraint, "ucb" takes the
        optimistic end of the constraint's interval.
    confidence : float, default=0.95
        Level of the optimistic quantile.
    safety : SafetyConstraint, optional
        Only certified points and seeds are proposed.
    candidates : int or array-like of shape (c, d), default=1024
        Points to choose from, in addition to those that have samples: a number of them, placed on a regular grid for
        one input and as a Sobol set for several, or the points themselves.
    refine : int, default=0
        Rounds of search around the best candidate, each with half the radius of the previous one.
    random_state : int, numpy Generator or RandomState, or None

    Attributes
    ----------
    model : WienerKernelRegressor
        Fitted once there are samples, and updated with each new one.
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    repeat : bool or None
        Whether the last proposed point acts as a repeat: the noise part V there is at least the model part P2.
        Otherwise it explores.

    Notes
    -----
    An optimizer can be pickled at any time and resumes where it was.

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> optimizer = Optimizer([(0.0, 4.0)], RBF(1.0), "norm(0, 0.1)", objective="max", candidates=41)
    >>> for _ in range(8):
    ...     x = optimizer.ask()
    ...     optimizer.tell(x, -(x[0] - 3.0) ** 2)
    >>> abs(float(optimizer.result().x[0]) - 3.0) <= 0.1
    True
    """

    def __init__(
        self,
        space: Sequence[tuple[float, float]],
        kernel: Any = None,
        noise: Any = None,
        *,
        objective: str = "max",
        acquisition: str = "ei",
        confidence: float = 0.95,
        safety: SafetyConstraint | None = None,
        candidates: int | ArrayLike = N_CANDIDATES,
        refine: int = 0,
        random_state: RandomState = None,
    ) -> None:
        check_choice("objective", objective, ("max", "min"))
        check_choice("acquisition", acquisition, ACQUISITIONS)
        check_probability("confidence", confidence)
        self.space = np.asarray(space, dtype=float)
        if self.space.ndim != 2 or self.space.shape[1] != 2 or not np.all(np.diff(self.space, axis=1) > 0):
            raise ValueError(f"space must be a sequence of pairs (low, high) with low < high, got {space!r}")
        self.objective, self.acquisition, self.confidence = objective, acquisition, confidence
        self.safety, self.refine = safety, refine
        self.generator = as_generator(random_state)
        self.model = WienerKernelRegressor(kernel, noise=noise, trend=None, tuning=None)
        if isinstance(candidates, int):
            if candidates < 2:
                raise ValueError(f"candidates must be at least 2, got {candidates}")
            self.candidates = space_filling(self.space[:, 0], self.space[:, 1], candidates, self.generator)
        else:
            self.candidates = self._points(candidates)
        seeds = None if safety is None else safety.seeds
        self.seeds = np.empty((0, len(self.space))) if seeds is None else self._points(seeds)
        self.X, self.y = np.empty((0, len(self.space))), np.empty(0)
        self.repeat: bool | None = None

    def _points(self, points: ArrayLike) -> FloatArray:
        array = np.asarray(points, dtype=float)
        if array.ndim != 2 or not len(array) or array.shape[1] != len(self.space):
            raise ValueError(
                f"points must have shape (n, {len(self.space)}) with at least one row, got {array.shape}"
            )
        return array

    def tell(self, x: ArrayLike, y: ArrayLike) -> None:
        """Add measurements.

        Parameters
        ----------
        x : array-like of shape (d,) or (k, d)
        y : float, or array-like of shape (k,)
        """
        X = self._points(np.atleast_2d(np.asarray(x, dtype=float)))
        values = np.atleast_1d(np.asarray(y, dtype=float))
        if values.shape != (len(X),):
            raise ValueError(f"y must have one value per point, got shape {values.shape} for {len(X)} points")
        self.model.partial_fit(X, values)
        self.X, self.y = np.concatenate([self.X, X]), np.concatenate([self.y, values])

    def ask(self) -> FloatArray:
        """Propose where to measure next.

        Returns
        -------
        ndarray of shape (d,)

        Raises
        ------
        NoSafePointError
            If there is a safety constraint and no point is certified.
        """
        if not len(self.y):
            return self._first()
        pool = np.concatenate([self.candidates, self.model.posterior_.smoother.places])
        drawn = self.acquisition == "thompson"
        path = self.model.sample_paths(1, random_state=self.generator) if drawn else None
        x, value = self._best(pool, path)
        per_input = max(len(self.candidates) - 1, 1) ** (1 / len(self.space))
        radius = (self.space[:, 1] - self.space[:, 0]) / per_input
        for _ in range(self.refine):
            steps = self.generator.uniform(-1.0, 1.0, size=(NEIGHBORS, len(x))) * radius
            near, near_value = self._best(np.clip(np.vstack([x, x + steps]), *self.space.T), path)
            if near_value > value:
                x, value = near, near_value
            radius = radius / 2
        parts = self.model.uncertainty(x[None])
        self.repeat = bool(parts.noise[0] >= parts.model[0])
        return x

    def _first(self) -> FloatArray:
        if self.safety is None:
            center = self.space.mean(axis=1)
            nearest = np.argmin(np.sum((self.candidates - center) ** 2, axis=1))
            return np.array(self.candidates[nearest])
        if len(self.seeds):
            return np.array(self.seeds[0])
        raise NoSafePointError(
            "no point is certified to be safe without samples: give the constraint seeds, or tell() samples first"
        )

    def _best(self, pool: FloatArray, path: SamplePaths | None = None) -> tuple[FloatArray, float]:
        """The point of the pool with the largest acquisition, or value of a path, among those that are safe."""
        sign = 1.0 if self.objective == "max" else -1.0
        if self.safety is None:
            optimistic = None
        else:
            pool = np.concatenate([pool, self.seeds])
            ends = np.array(self.safety.interval(self.model, pool)) * sign
            lower, optimistic = ends if sign > 0 else ends[::-1]
            seeds = np.any(np.all(pool[:, None, :] == self.seeds, axis=2), axis=1)
            safe = seeds | (lower >= sign * self.safety.threshold)
            if not safe.any():
                raise NoSafePointError(
                    f"no point is certified to be safe: the best certificate is {sign * lower.max():.4g}, the threshold "
                    f"{self.safety.threshold:.4g}; tell() more samples at inputs known to be safe, or give the "
                    "constraint seeds"
                )
            pool, optimistic = pool[safe], optimistic[safe]
        if path is not None:
            value, index = sign * path(pool)[0], np.arange(len(pool))
        elif self.acquisition == "ucb" and optimistic is not None:
            value, index = optimistic, np.arange(len(pool))
        else:
            value, index = self._from_law(pool, sign)
        best = int(np.argmax(value))
        return pool[index[best]].copy(), float(value[best])

    def _from_law(self, pool: FloatArray, sign: float) -> tuple[FloatArray, NDArray[np.intp]]:
        """Acquisition from the exact law of f(x) at the most promising points of the pool, and their indices."""
        mean, variance = self.model.posterior_.mean_and_epistemic(pool)
        std, best = np.sqrt(variance), self.incumbent()[1]
        quantile = sign * mean - ndtri(1 - self.confidence) * std
        if self.acquisition == "ei":
            first = np.lexsort((-quantile, -normal_improvement(sign * (mean - best), std)))[:SHORTLIST]
        else:
            first = np.argsort(-quantile, kind="stable")[:SHORTLIST]
        distribution = self.model.predict_distribution(pool[first], of="function")
        if self.acquisition == "ei":
            return expected_improvement(distribution, best, self.objective), first
        level = distribution.isf(1 - self.confidence) if sign > 0 else distribution.ppf(1 - self.confidence)
        return np.asarray(sign * level), first

    def incumbent(self) -> tuple[FloatArray, float]:
        """The sampled input with the best estimate.

        Returns
        -------
        x : ndarray of shape (d,)
        estimate : float
            Of f(x).
        """
        if not len(self.y):
            raise ValueError("there are no samples yet: tell() some first")
        places = self.model.posterior_.smoother.places
        mean = self.model.predict(places)
        row = int(np.argmax(mean) if self.objective == "max" else np.argmin(mean))
        return places[row].copy(), float(mean[row])

    def result(self) -> OptimizeResult:
        """The best input so far.

        Returns
        -------
        OptimizeResult
            ``x``, ``fun`` (estimate of f(x)), ``std`` (its standard deviation, from V and P2), ``X`` and ``y`` (all
            samples), ``nfev``, ``model``.
        """
        x, estimate = self.incumbent()
        std = float(self.model.predict(x[None], return_std=True)[1][0])
        result = OptimizeResult()
        result.update(x=x, fun=estimate, std=std, X=self.X, y=self.y, nfev=len(self.y), model=self.model)
        return result


def minimize(
    fun: Callable[[FloatArray], float],
    bounds: Sequence[tuple[float, float]],
    *,
    kernel: Any = None,
    noise: Any = None,
    x0: ArrayLike | None = None,
    n_calls: int = 50,
    callback: Callable[[OptimizeResult], Any] | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimize a noisy function, with an interface like that of ``scipy.optimize``.

    Parameters
    ----------
    fun : callable
        Takes an array of shape (d,) and returns f(x) plus noise.
    bounds : sequence of (low, high)
    kernel, noise : optional
        As those of :class:`~wienerkernel.WienerKernelRegressor`.
    x0 : array-like of shape (d,) or (k, d), optional
        Initial points.
    n_calls : int, default=50
        Calls of ``fun``.
    callback : callable, optional
        Called with the result so far after each call of ``fun``; returning True stops the loop.
    **options
        The other parameters of :class:`Optimizer`: ``acquisition``, ``confidence``, ``safety``, ``candidates``,
        ``refine`` and ``random_state``.

    Returns
    -------
    OptimizeResult
        As from :meth:`Optimizer.result`, with ``nit``, ``success`` and ``message``.

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> rng = np.random.default_rng(0)
    >>> result = minimize(
    ...     lambda x: float(np.sin(3 * x[0]) + 0.1 * rng.normal()),
    ...     [(0.0, 2.5)], kernel=RBF(0.7), noise="norm(0, 0.1)", n_calls=15, candidates=101,
    ... )
    >>> abs(float(result.x[0]) - np.pi / 2) < 0.15
    True
    """
    if n_calls < 1:
        raise ValueError(f"n_calls must be at least 1, got {n_calls!r}")
    optimizer = Optimizer(bounds, kernel, noise, objective="min", **options)
    first = [] if x0 is None else list(np.atleast_2d(np.asarray(x0, dtype=float)))
    message = f"all {n_calls} calls were made"
    for _ in range(n_calls):
        x = first.pop(0) if first else optimizer.ask()
        optimizer.tell(x, fun(x.copy()))
        if callback is not None and callback(optimizer.result()):
            message = "stopped by the callback"
            break
    result = optimizer.result()
    result.update(nit=result.nfev, success=True, message=message)
    return result
