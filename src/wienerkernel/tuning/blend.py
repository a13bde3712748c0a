"""Standard laws between which a shape moves smoothly: interpolation in the shape instead of a new law at each step.

To tabulate the characteristic function of a law may take long. While a shape is tuned, the log characteristic function
is interpolated between laws on a grid of shapes, and its derivative by the shape is that of the interpolation. The
strip of exponential moments must not depend on the shape, or the interpolation fails near its end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from threading import get_ident

import numpy as np

from .._typing import ComplexArray, FloatArray
from ..noise import Noise
from ..noise.family import Family
from .standard_law import StandardLaw

__all__ = ["Blend", "ShapeGrid", "shape_grid"]

SPACING = 0.1
POINTS = 6


class Blend(StandardLaw):
    """A weighted sum of the log characteristic functions of some standard laws.

    Parameters
    ----------
    laws : list of StandardLaw
    weights : ndarray of shape (k,)
        They sum to 1 for a law, and to 0 for a derivative.
    """

    def __init__(self, laws: list[StandardLaw], weights: FloatArray) -> None:
        super().__init__(laws[len(laws) // 2].noise)
        self.laws, self.weights = laws, weights
        ends = np.array([law.strip for law in laws])
        self.strip = float(ends[:, 0].max()), float(ends[:, 1].min())
        self.sector = min(law.sector for law in laws)

    @cached_property
    def series(self) -> ComplexArray:
        """Coefficients of L for orders 2 to 8; 0 from the first on that some law does not have."""
        table = np.array([law.series for law in self.laws])
        exist = np.cumprod(np.all(table != 0, axis=0) | np.all(table == 0, axis=0))
        return np.asarray(self.weights @ table * exist)

    @cached_property
    def radius(self) -> float:
        """Up to which |t|, in all directions, the cumulants are as good as L itself."""
        return min(law.radius for law in self.laws)

    def logcf(self, t: ComplexArray) -> ComplexArray:
        """Log characteristic function at t, whose last axis runs along a path from where it is real."""
        parts = zip(self.weights, self.laws, strict=True)
        return np.asarray(sum(weight * law.continuous_logcf(t) for weight, law in parts))

    def samples(self, theta: float, first: int, last: int) -> ComplexArray:
        """L(+-r e^{-i theta}) at log r = k STEP / 2, k = first to last; the laws keep theirs."""
        parts = zip(self.weights, self.laws, strict=True)
        return np.asarray(sum(weight * law.samples(theta, first, last) for weight, law in parts))

    def single(self, v: FloatArray, r: FloatArray, theta: float, slopes: bool) -> ComplexArray:
        """L(v r e^{-i theta}), or its derivative by log r; the laws are so close that phases differ by less than pi."""
        values = [law.single(v, r, theta, slopes) for law in self.laws]
        result = np.zeros(values[0].shape, dtype=complex)
        for value, weight in zip(values, self.weights, strict=True):
            turns = np.rint((value - values[0]).imag / (2 * np.pi)) if not slopes else 0.0
            result += weight * (value - 2j * np.pi * turns)
        return result


class ShapeGrid:
    """Standard laws for all values of one shape, from laws on a grid.

    Parameters
    ----------
    law : callable
        Noise for a value of the shape's representative.
    low, high : float
        Where laws exist.
    """

    def __init__(self, law: Callable[[float], Noise], low: float, high: float) -> None:
        self._law = law
        self._low = low
        self._step = (high - low) / max(POINTS, int(np.ceil((high - low) / SPACING)))
        self._last = round((high - low) / self._step)
        self._laws: dict[int, StandardLaw] = {}

    def __call__(self, shape: float) -> tuple[Blend, Blend]:
        """The law at a shape, and the derivative of its log characteristic function by the shape."""
        position = (shape - self._low) / self._step
        first = int(np.clip(np.floor(position) - POINTS // 2 + 1, 0, self._last - POINTS + 1))
        laws = [self._at(first + k) for k in range(POINTS)]
        weights, slopes = _lagrange(position - first)
        return Blend(laws, weights), Blend(laws, slopes / self._step)

    def _at(self, index: int) -> StandardLaw:
        if index not in self._laws:
            self._laws[index] = StandardLaw(self._law(self._low + index * self._step))
        return self._laws[index]


def shape_grid(family: Family) -> ShapeGrid | None:
    """The grid of a family, kept for the next fit.

    Parameters
    ----------
    family : Family

    Returns
    -------
    ShapeGrid or None
        None unless there is one shape, a logarithm, and no singularity that moves with it.
    """
    return _grid_of_thread(family, get_ident())


@lru_cache(maxsize=16)
def _grid_of_thread(family: Family, _thread: int) -> ShapeGrid | None:
    """The tables of its laws grow in place, so that no two threads share them."""
    bounds = family.shape_bounds
    if len(bounds) != 1 or family.linear_shapes:
        return None
    low, high = bounds[0]
    try:
        laws = [StandardLaw(family.law(1.0, [shape])) for shape in (low, (low + high) / 2, high)]
    except ValueError:  # not a law everywhere
        return None
    ends = {end for law in laws for end in law.strip}
    if any(law.sector == 0 or law.strip != laws[0].strip for law in laws) or ends - {-np.inf, 0.0, np.inf}:
        return None
    return ShapeGrid(lambda shape: family.law(1.0, [shape]), float(bounds[0, 0]), float(bounds[0, 1]))


def _lagrange(x: float) -> tuple[FloatArray, FloatArray]:
    """Lagrange weights for the nodes 0, 1, ..., and their derivatives, at x."""
    weights, slopes = np.empty(POINTS), np.empty(POINTS)
    for p in range(POINTS):
        others = np.array([q for q in range(POINTS) if q != p], dtype=float)
        polynomial = np.poly1d(np.poly(others) / np.prod(p - others))
        weights[p], slopes[p] = polynomial(x), polynomial.deriv()(x)
    return weights, slopes
