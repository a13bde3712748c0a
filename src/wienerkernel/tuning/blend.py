"""Laws between which a shape moves smoothly: interpolation in the shape instead of a new law at each step.

Tabulating the characteristic function of a law can be slow. While a shape is tuned, the log characteristic function
is interpolated between laws on a grid of shapes, and its derivative with respect to the shape is that of the interpolation. The
strip of exponential moments must not depend on the shape, or the interpolation fails near its end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from threading import get_ident

import numpy as np

from .._typing import ComplexArray, FloatArray
from ..law.log_density import Centered, centered
from ..law.ray_table import RayTable, ray_table
from ..noise import Noise
from ..noise.family import Family, NoiseModel

__all__ = ["Blend", "ShapeGrid", "blended", "shape_grid"]

SPACING = 0.1
POINTS = 6


class Blend:
    """A weighted sum of the log characteristic functions of some laws, as a :class:`~wienerkernel.law.ray_table.Law`.

    The weights sum to 1 for a law, and to 0 for a derivative.
    """

    gaussian = atomic = False

    def __init__(self, laws: list[Noise], weights: FloatArray) -> None:
        self.laws, self.weights = laws, weights
        self._tables: dict[tuple[float, float], RayTable] = {}

    def mean(self) -> float:
        return float(self.weights @ [law.mean() for law in self.laws])

    def var(self) -> float:
        """Variance, or its derivative."""
        return float(self.weights @ [law.var() for law in self.laws])

    def cumulants(self, order: int = 8) -> FloatArray:
        return np.asarray(self.weights @ [law.cumulants(order) for law in self.laws])

    def support(self) -> tuple[float, float]:
        return self.laws[0].support()

    def strip(self) -> tuple[float, float]:
        """Interval of exponential moments that all laws have."""
        lower, upper = zip(*(law.strip() for law in self.laws), strict=True)
        return max(lower), min(upper)

    def sector(self) -> float:
        """Sector into which all log characteristic functions continue."""
        return min(law.sector() for law in self.laws)

    def logcf(self, t: ComplexArray) -> ComplexArray:
        return self.mixed(t, lambda law: law.logcf(t))

    def mixed(self, t: ComplexArray, log_phi: Callable[[Noise], ComplexArray]) -> ComplexArray:
        """The weighted sum of the laws' values at t, each up to multiples of 2 pi i.

        From law to law the phase changes by less than pi: the first time apart from the means, then apart from the
        previous change.
        """
        result = np.zeros(np.shape(t), dtype=complex)
        phase, change = np.zeros(0), np.zeros(0)
        for k, (weight, law) in enumerate(zip(self.weights, self.laws, strict=True)):
            value = log_phi(law)
            if k == 1:
                change = (law.mean() - self.laws[0].mean()) * np.real(t)
            if k:
                value = value - 2j * np.pi * np.rint((value.imag - phase - change) / (2 * np.pi))
                change = value.imag - phase
            phase = value.imag
            result = result + weight * value
        return np.asarray(result)

    def ray_table(self, theta: float, tolerance: float) -> RayTable:
        """The table along a ray, combined from those of the laws."""
        key = theta, tolerance
        if key not in self._tables:
            self._tables[key] = _BlendTable(self, theta, tolerance)
        return self._tables[key]


class _BlendTable(RayTable):
    """A weighted sum of tables, each of which is unwrapped from r = 0 on."""

    noise: Blend

    @property
    def _parts(self) -> list[RayTable]:
        return [ray_table(law, self.theta, self.tolerance) for law in self.noise.laws]

    def _symmetric(self) -> bool:
        return all(table.signs == 1 for table in self._parts)

    def _grow(self, first: int, stop: int) -> None:
        low, high = (first + self.points) * self.step, (stop - 1 - self.points) * self.step
        self.values = np.zeros((2, stop - first), dtype=complex)
        for weight, table in zip(self.noise.weights, self._parts, strict=True):
            table.cover(low, high)
            start, known = table.snapshot()
            with np.errstate(invalid="ignore"):
                self.values += weight * known[:, first - start : stop - start]
        self.start, self.stop = first, stop
        self.smooth_until = min(table.smooth_until for table in self._parts)

    def log_phi(self, x: FloatArray) -> ComplexArray:
        """Log phi(x e^{-i theta}); a derivative has no phi of its own."""
        if self.noise.weights.sum() > 0.5:
            return super().log_phi(x)
        tables = {law: ray_table(law, self.theta, self.tolerance) for law in self.noise.laws}
        return self.noise.mixed(x * self.direction, lambda law: tables[law].log_phi(x))

    @property
    def _unit(self) -> float:
        return -0.5 * float(np.log(self.noise.laws[0].var()))

    @cached_property
    def series_until(self) -> float:
        """The log r up to which the polynomials equal the log characteristic functions to rounding."""
        return min(table.series_until for table in self._parts)


class ShapeGrid:
    """Laws of variance 1 for all values of one shape, from those that ``law`` gives on a grid from ``low`` to ``high``."""

    def __init__(self, law: Callable[[float], Noise], low: float, high: float) -> None:
        self._law = law
        self._low = low
        self._step = (high - low) / max(POINTS, int(np.ceil((high - low) / SPACING)))
        self._last = round((high - low) / self._step)
        self._laws: dict[int, Centered] = {}

    def __call__(self, shape: float) -> tuple[Centered, Centered]:
        """The law at a shape, and the derivatives of its parts with respect to the shape."""
        position = (shape - self._low) / self._step
        first = int(np.clip(np.floor(position) - POINTS // 2 + 1, 0, self._last - POINTS + 1))
        laws = [self._at(first + k) for k in range(POINTS)]
        weights, slopes = _lagrange(position - first)
        return blended(laws, weights), blended(laws, slopes / self._step)

    def nearest(self, shape: FloatArray) -> FloatArray:
        """Shapes on the grid, whose laws need no others."""
        return np.asarray(self._low + self._step * np.rint((shape - self._low) / self._step))

    def _at(self, index: int) -> Centered:
        if index not in self._laws:
            self._laws[index] = centered(self._law(self._low + index * self._step))
        return self._laws[index]


def blended(laws: list[Centered], weights: FloatArray) -> Centered:
    """A weighted sum of laws, part by part."""
    parts, shifts, variances = zip(*laws, strict=True)
    used = np.flatnonzero(np.abs(weights) > 1e-12 * np.max(np.abs(weights)))
    law = Blend([parts[k] for k in used], weights[used])
    return Centered(law, float(weights @ shifts), float(weights @ variances))


def shape_grid(model: NoiseModel) -> ShapeGrid | None:
    """The grid of a family, kept for the next fit; None unless one shape, a logarithm, moves no singularity."""
    return _grid_of_thread(model, get_ident()) if isinstance(model, Family) else None


@lru_cache(maxsize=16)
def _grid_of_thread(family: Family, _thread: int) -> ShapeGrid | None:
    bounds = family.shape_bounds
    if len(bounds) != 1 or family.linear_shapes:
        return None
    low, high = (float(end) for end in bounds[0])
    try:
        laws = [family.law(1.0, [shape]) for shape in (low, (low + high) / 2, high)]
    except ValueError:  # not a law everywhere
        return None
    strips = {law.strip() for law in laws}
    bounded = any(np.all(np.isfinite(law.support())) for law in laws)
    if bounded or len(strips) > 1 or {*strips.pop()} - {-np.inf, 0.0, np.inf}:
        return None
    if any(law.sector() == 0 for law in laws):
        return None
    return ShapeGrid(lambda shape: family.law(1.0, [shape]), low, high)


def _lagrange(x: float) -> tuple[FloatArray, FloatArray]:
    """Lagrange weights for the nodes 0, 1, ..., and their derivatives, at x."""
    powers = np.arange(POINTS)
    inverse = np.linalg.inv(np.vander(powers, increasing=True)).T  # coefficients of the Lagrange polynomials
    slopes = inverse[:, 1:] @ (powers[1:] * x ** powers[:-1])
    return inverse @ x**powers, slopes
