"""The law of a simulated state, with the last step exact: a mixture over paths of shifted laws of the process noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise

from .._typing import FloatArray
from ..noise import Noise
from ..transform import Transform

__all__ = ["StateDistribution"]

BLOCK = 2**22
"""Values of laws held at once, 32 MB."""


class StateDistribution:
    """The law of the states after some steps, of shape (n_x,), with the names and broadcasting of ``scipy.stats``.

    State i is x = base + T^-1(location + scale M) on each path, with process noise M; its distribution function is the
    mean over the paths of that of M. The last step is therefore exact, and tails are smooth. Without process noise
    it is the empirical law of the paths.

    Parameters
    ----------
    states : ndarray of shape (n, n_x)
        Of the paths; those that diverged are left out.
    laws : sequence of n_x Noise or None
    base, location, scale : ndarray of shape (n, n_x)
    transforms : sequence of n_x Transform or None

    Examples
    --------
    >>> from wienerkernel import Dynamics, RBF, WienerKernelRegressor
    >>> X = np.linspace(-2, 2, 9)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, 0.8 * np.sin(X[:, 0]))
    >>> law = Dynamics(model).rollout([1.0], steps=2, n_paths=200, random_state=0).distribution(2)
    >>> law.shape, law.cdf(law.ppf([[0.05], [0.95]])).round(6).tolist()
    ((1,), [[0.05], [0.95]])
    """

    def __init__(
        self,
        states: FloatArray,
        laws: Sequence[Noise | None],
        base: FloatArray,
        location: FloatArray,
        scale: FloatArray,
        transforms: Sequence[Transform | None],
    ) -> None:
        kept = np.all(np.isfinite(states), axis=1)
        if not np.any(kept):
            raise ValueError("all paths have diverged by this step: only earlier ones have a distribution")
        self.states = states[kept]
        numbers = (values[kept].T for values in (states, base, location, scale))
        self._columns = [_Column(*column) for column in zip(*numbers, laws, transforms, strict=True)]

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_x,)."""
        return (len(self._columns),)

    def __repr__(self) -> str:
        return f"<StateDistribution: {len(self._columns)} states, {len(self.states)} paths>"

    def _each(self, method: str, argument: ArrayLike) -> FloatArray:
        x = np.asarray(argument, dtype=float)
        x = np.broadcast_to(x, np.broadcast_shapes(x.shape, self.shape))
        return np.stack([getattr(c, method)(x[..., i]) for i, c in enumerate(self._columns)], axis=-1)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """Probability of at most x."""
        return self._each("cdf", x)

    def sf(self, x: ArrayLike) -> FloatArray:
        """Probability of more than x, accurate where it is small."""
        return self._each("sf", x)

    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density at x; TypeError without process noise."""
        return self._each("pdf", x)

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantile."""
        level = np.asarray(q, dtype=float)
        if not np.all((level >= 0) & (level <= 1)):
            raise ValueError(f"q must lie between 0 and 1, got {q!r}")
        return self._each("ppf", level)

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed interval, two arrays of shape (n_x,)."""
        return self.ppf((1 - confidence) / 2), self.ppf((1 + confidence) / 2)

    def mean(self) -> FloatArray:
        """Mean."""
        return np.array([c.moments()[0] for c in self._columns])

    def var(self) -> FloatArray:
        """Variance."""
        return np.array([c.moments()[1] for c in self._columns])

    def std(self) -> FloatArray:
        """Standard deviation."""
        return np.sqrt(self.var())


@dataclass(frozen=True)
class _Column:
    """The law of one state."""

    states: FloatArray
    base: FloatArray
    location: FloatArray
    scale: FloatArray
    law: Noise | None
    transform: Transform | None

    def _mean_over_paths(self, function: Callable[[FloatArray], FloatArray], x: FloatArray) -> FloatArray:
        flat, step = x.ravel(), max(1, BLOCK // max(len(self.states), 1))
        parts = [
            np.mean(function(flat[i : i + step, None] - self.base), axis=1) for i in range(0, len(flat), step)
        ]
        return np.concatenate([np.empty(0), *parts]).reshape(x.shape)

    def _standard(self, x: FloatArray) -> FloatArray:
        """The noise M that leads to x - base."""
        if self.transform is not None:
            x = self.transform.forward(x)
        return (x - self.location) / self.scale

    def cdf(self, x: FloatArray) -> FloatArray:
        law = self.law
        if law is None:
            return np.searchsorted(np.sort(self.states), x, side="right") / len(self.states)
        return self._mean_over_paths(lambda y: law.cdf(self._standard(y)), x)

    def sf(self, x: FloatArray) -> FloatArray:
        law = self.law
        if law is None:
            return 1 - self.cdf(x)
        return self._mean_over_paths(lambda y: law.sf(self._standard(y)), x)

    def pdf(self, x: FloatArray) -> FloatArray:
        law = self.law
        if law is None:
            raise TypeError(
                "without process noise there are only samples of the states, which have no density"
            )

        def density(y: FloatArray) -> FloatArray:
            value: FloatArray = law.pdf(self._standard(y)) / self.scale
            return value if self.transform is None else value * np.exp(self.transform.log_slope(y))

        return self._mean_over_paths(density, x)

    def ppf(self, q: FloatArray) -> FloatArray:
        if self.law is None:
            return np.asarray(np.quantile(self.states, q, method="inverted_cdf"))
        values: FloatArray = self.location + self.scale * self.law.ppf(q.ravel())[:, None]
        if self.transform is not None:
            values = self.transform.inverse(values)
        values = values + self.base
        low, high = np.min(values, axis=1), np.max(values, axis=1)
        inside = np.isfinite(low) & np.isfinite(high) & (low < high)
        start, stop = np.where(inside, low, 0.0), np.where(inside, high, 1.0)
        bracket = start - 1e-9 * (stop - start), stop + 1e-9 * (stop - start)

        def excess(x: FloatArray, level: FloatArray) -> FloatArray:
            return self.cdf(x) - level

        found = elementwise.find_root(excess, bracket, args=(q.ravel(),))
        return np.where(inside, found.x, np.where(np.isfinite(low), high, low)).reshape(q.shape)

    def moments(self) -> tuple[float, float]:
        """Mean and variance; with the exact moments of the noise where there is no transform."""
        if self.law is None or self.transform is not None:
            return float(self.states.mean()), float(self.states.var())
        center = self.base + self.location + self.scale * self.law.mean()
        return float(center.mean()), float(center.var() + self.law.var() * np.mean(self.scale**2))
