"""Mixtures of linear combinations, for sums in which a weight is itself uncertain."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize.elementwise import find_root
from scipy.special import logsumexp

from .._typing import FloatArray, IntArray, RandomState
from ..noise.base import as_generator, cumulants_from_moments, moments_from_cumulants
from .derived import DerivedMethods
from .linear_combination import LinearCombination

__all__ = ["MixedLaw"]

TOLERANCE = 1e-13
SMALL = 1e-7
"""Below it, probabilities and densities are computed with relative accuracy."""


class MixedLaw(DerivedMethods):
    """The law that is row k of a ``law`` of shape (q, *S) with probability p_k: methods as :class:`LinearCombination`."""

    def __init__(self, law: LinearCombination, probabilities: FloatArray) -> None:
        self.law, self.probabilities = law, probabilities
        self.shape = law.shape[1:]

    def _average(self, values: FloatArray) -> FloatArray:
        """Mean over the parts, whose axis stands before those of S."""
        return np.asarray(np.moveaxis(values, -1 - len(self.shape), -1) @ self.probabilities)

    def _apart(self, values: ArrayLike) -> FloatArray:
        """Values that broadcast against S, with an axis for the parts."""
        array = np.asarray(values, dtype=float)
        array = np.broadcast_to(array, np.broadcast_shapes(array.shape, self.shape))
        return np.expand_dims(array, array.ndim - len(self.shape))

    def _of_parts(self, name: str, y: ArrayLike, return_error: bool) -> Any:
        """Average of a function of the parts; a part's tail needs relative accuracy only where the average is small."""
        points = self._apart(y)
        if name == "pdf" and np.any(self.law._batch.atomic):
            self.law.pdf(points)  # raises TypeError: there is no density
        value, error = (self._average(part) for part in self.law._batch.values(name, points, tails=False))
        small = value * (self.std() if name == "pdf" else 1.0) < SMALL
        if np.any(small):
            points = np.where(self._apart(small), points, self.law.mean())
            fine = (self._average(part) for part in self.law._batch.values(name, points))
            value, error = (np.where(small, *pair) for pair in zip(fine, (value, error), strict=True))
        return (value, error) if return_error else value

    def pdf(self, y: ArrayLike, *, return_error: bool = False) -> Any:
        """Density at y, broadcast against S."""
        return self._of_parts("pdf", y, return_error)

    def _log_density(self, y: FloatArray) -> FloatArray:
        parts = np.moveaxis(self.law._log_density(self._apart(y)), -1 - len(self.shape), -1)
        return np.asarray(logsumexp(parts, axis=-1, b=self.probabilities))

    def cdf(self, y: ArrayLike, *, return_error: bool = False) -> Any:
        """P(Y <= y)."""
        return self._of_parts("cdf", y, return_error)

    def sf(self, y: ArrayLike, *, return_error: bool = False) -> Any:
        """P(Y > y)."""
        return self._of_parts("sf", y, return_error)

    def ppf(self, q: ArrayLike, *, return_error: bool = False) -> Any:
        """Quantile: the y with P(Y <= y) = q."""
        level = np.asarray(q, dtype=float)
        return self._quantile(np.minimum(level, 1 - level), level > 0.5, return_error)

    def isf(self, q: ArrayLike, *, return_error: bool = False) -> Any:
        """Upper quantile: the y with P(Y > y) = q."""
        level = np.asarray(q, dtype=float)
        return self._quantile(np.minimum(level, 1 - level), level <= 0.5, return_error)

    def _quantile(self, p: FloatArray, upper: Any, return_error: bool) -> Any:
        """The mixture's quantile lies between the smallest and the largest of its parts'."""
        shape = np.broadcast_shapes(p.shape, self.shape)
        p, upper = np.broadcast_to(p, shape), np.broadcast_to(upper, shape)
        level = self._apart(p)
        both = np.where(self._apart(upper), self.law.isf(level), self.law.ppf(level))
        axis = -1 - len(self.shape)
        low, high = both.min(axis=axis), both.max(axis=axis)
        inside = (low < high) & np.isfinite(low) & np.isfinite(high) & (p > 0)

        def excess(y: FloatArray, index: IntArray) -> FloatArray:
            """How far the tail at some of the points is from p, relative to p."""
            at = np.broadcast_to(self.mean(), shape).copy()  # where values are easy to compute
            at.flat[index] = y
            above, tail = upper.flat[index], np.empty(len(index))
            for name, some in (("sf", above), ("cdf", ~above)):
                if np.any(some):
                    tail[some] = getattr(self, name)(at).flat[index[some]]
            return np.asarray(np.where(above, -1.0, 1.0) * (tail / p.flat[index] - 1))

        x = np.where((p == 0) & upper, high, low)  # the ends of the support
        index = np.flatnonzero(inside)
        if len(index):
            ends = low.ravel()[index], high.ravel()[index]
            tolerances = {"xatol": 0.0, "xrtol": TOLERANCE, "fatol": TOLERANCE, "frtol": 0.0}
            x.flat[index] = find_root(excess, ends, args=(index,), tolerances=tolerances).x  # type: ignore[call-overload]
        if not return_error:
            return x
        tail = np.where(upper, self.sf(x), self.cdf(x))
        return x, np.abs(tail - p)

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the support, each of shape S."""
        low, high = self.law.support()
        return low.min(axis=0), high.max(axis=0)

    @cached_property
    def _cumulants(self) -> FloatArray:
        """Cumulants of order 1 to 8, (8, *S); NaN where one does not exist."""
        mean = self.mean()
        about_mean = [self.law.mean() - mean, *(self.law.cumulant(r) for r in range(2, 9))]
        moments = [self._average(moment) for moment in moments_from_cumulants(about_mean)]
        return cumulants_from_moments(mean, moments[1:])

    def cumulant(self, order: int) -> FloatArray:
        """Cumulant of order 1 to 8, of shape S."""
        return np.asarray(self._cumulants[order - 1])

    def mean(self) -> FloatArray:
        """Mean, of shape S."""
        return self._average(self.law.mean())

    def var(self) -> FloatArray:
        """Variance, of shape S."""
        return self._average(self.law.var() + (self.law.mean() - self.mean()) ** 2)

    def rvs(self, size: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draws, of shape (size, *S); each row is drawn from one of the parts at random."""
        generator = as_generator(random_state)
        draws = self.law.rvs(size, random_state=generator)
        part = generator.choice(len(self.probabilities), size=(size, 1, *self.shape), p=self.probabilities)
        return np.take_along_axis(draws, part, axis=1)[:, 0]
