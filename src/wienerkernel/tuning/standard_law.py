"""The noise with mean 0 and variance 1: its log characteristic function L, tabulated where sums of it need it.

Along a ray, L(v t) depends on log|v| + log|t| alone, so that one table in log r serves all weights. On the real axis
the function itself is tabulated, because its logarithm is singular at its zeros.
"""

from __future__ import annotations

from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise

__all__ = ["NEGLIGIBLE", "ORDERS", "POINTS", "STEP", "RayTable", "StandardLaw", "slope_of", "stencil"]

STEP = 1 / 48
POINTS = 8
MAX_TABLES = 12
NEGLIGIBLE = 1e-5
"""An argument |v t| below this adds to the variance and to nothing else that float64 can see."""
DERIVATIVE_STEP = 3e-5
UNDERFLOW = -700.0
"""Logarithm of what is as good as 0."""
ORDERS = np.arange(2, 9)
_FACTORIALS = np.cumprod(np.arange(1.0, 9.0))[1:]
_DIFFERENCES = (45 / 60, -9 / 60, 1 / 60)
"""Coefficients of the first derivative by central differences of sixth order."""


class StandardLaw:
    """The noise with mean 0 and variance 1, as far as sums of it need it.

    Parameters
    ----------
    noise : Noise
    """

    def __init__(self, noise: Noise) -> None:
        self.noise = noise
        self.mean, self.std = noise.mean(), noise.std()
        self.gaussian = noise.gaussian
        lower, upper = ((end - self.mean) / self.std for end in noise.support())
        self.support = lower, upper
        # where the density may be singular
        self.edge = lower if np.isfinite(lower) else upper if np.isfinite(upper) else 0.0
        bounded = np.isfinite(lower) and np.isfinite(upper)
        with np.errstate(all="ignore"):
            self.strip = noise.strip()[0] * self.std, noise.strip()[1] * self.std
            self.sector = 0.0 if bounded or noise.discrete else noise.sector()
        self._rays: dict[float, RayTable] = {}
        self._samples: dict[float, tuple[int, ComplexArray]] = {}
        self._axis: ComplexArray = np.empty((2, 0), dtype=complex)  # phi and phi' on a grid

    @cached_property
    def series(self) -> ComplexArray:
        """Coefficients kappa_r i^r / r! of L for r = 2 to 8; 0 from the first cumulant on that does not exist."""
        kappa = self.noise.cumulants(8)[1:] / self.std**ORDERS
        exists = np.cumprod(np.isfinite(kappa)).astype(bool)
        return np.asarray(np.where(exists, kappa, 0.0) * 1j**ORDERS / _FACTORIALS)

    def logcf(self, t: ComplexArray) -> ComplexArray:
        """Log characteristic function at complex t."""
        with np.errstate(all="ignore"):
            return np.asarray(self.noise.logcf(t / self.std) - 1j * (self.mean / self.std) * t)

    def continuous_logcf(self, t: ComplexArray) -> ComplexArray:
        """Log characteristic function at t, whose last axis runs along a path from where it is real.

        Where the law begins at an edge, the phase turns with it; without that turn it moves slowly.
        """
        turn = 1j * self.edge * t
        value = self.logcf(t) - turn
        return np.asarray(value.real + 1j * np.unwrap(value.imag, axis=-1) + turn)

    @cached_property
    def window(self) -> tuple[float, float]:
        """Interval that holds all of the law but 1e-13."""
        lower, upper = self.noise.support()
        lower = lower if np.isfinite(lower) else float(self.noise.ppf(1e-13))
        upper = upper if np.isfinite(upper) else float(self.noise.isf(1e-13))
        return (lower - self.mean) / self.std, (upper - self.mean) / self.std

    @cached_property
    def decay(self) -> float:
        """Real argument from which on the characteristic function is below 1e-13; inf if there is none up to 1e4."""
        x = np.exp(np.arange(0.0, 9.3, 0.02))
        level = np.nan_to_num(self.logcf(x.astype(complex)).real, nan=-np.inf)
        above = np.flatnonzero(level > -30.0)
        return (
            np.inf if len(above) and above[-1] == len(x) - 1 else float(x[above[-1] + 1 if len(above) else 0])
        )

    @cached_property
    def radius(self) -> float:
        """Up to which |t|, in all directions, the cumulants are as good as L itself; 0 for heavy tails."""
        if not self.strip[0] < 0 < self.strip[1]:
            return 0.0
        r = np.exp(np.arange(np.log(NEGLIGIBLE), 2.0, 0.05))
        t = r * np.exp(0.25j * np.pi * np.arange(8))[:, None]
        close = np.all(self.is_series(t, self.logcf(t)), axis=0)
        return 0.8 * float(r[max(int(np.argmin(close)) - 1, 0)])

    def is_series(self, t: ComplexArray, value: ComplexArray) -> NDArray[np.bool_]:
        """Where the series of cumulants equals the ``value`` of L at t as well as float64 can tell."""
        series = sum(c * t**order for c, order in zip(self.series, ORDERS, strict=True))
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(value - series) < 5e-11 * np.abs(t) ** 2 + 2e-16)

    def samples(self, theta: float, first: int, last: int) -> ComplexArray:
        """L(+-r e^{-i theta}) at log r = k STEP / 2, k = first to last: (2, last - first + 1), continuous in r."""
        start, values = self._samples.get(theta, (first, np.empty((2, 0), dtype=complex)))
        end = start + values.shape[1] - 1
        if first < start or last > end:
            start, end = min(first, start), max(last, end)
            r = np.exp(np.arange(start, end + 1) * (STEP / 2))
            t = r * np.exp(-1j * theta)
            values = np.stack([-0.5 * t * t] * 2)
            far = r > NEGLIGIBLE
            values[:, far] = [self.continuous_logcf(sign * t[far]) for sign in (1.0, -1.0)]
            self._samples[theta] = start, values
        return values[:, first - start : last - start + 1]

    def ray(self, theta: float) -> RayTable:
        """Table along t = +-r e^{-i theta}, made once."""
        if theta not in self._rays:
            self._rays[theta] = RayTable(self, theta)
        return self._rays[theta]

    def single(self, v: FloatArray, r: FloatArray, theta: float, slopes: bool) -> ComplexArray:
        """L(v r e^{-i theta}), or its derivative by log r, for each weight alone, near zeros of the function, too.

        Parameters
        ----------
        v : ndarray of shape (n,)
        r : ndarray of shape (K,)
        theta : float
        slopes : bool

        Returns
        -------
        ndarray of shape (n, K)
        """
        return self.ray(theta).single(v, r, slopes) if theta else self._on_axis(v[:, None] * r, slopes)

    def _on_axis(self, x: FloatArray, slopes: bool) -> ComplexArray:
        """L(x), or its derivative by log x, at real x, from a table of the characteristic function.

        The logarithm has a singularity at every zero of the characteristic function; the function itself, a
        superposition of waves whose frequencies lie in the window, is smooth.
        """
        step = 0.1 / max(abs(end) for end in self.window)
        magnitude = np.abs(x)
        self._extend_axis(float(magnitude.max(initial=0.0)), step)
        position = np.minimum(magnitude / step + POINTS, self._axis.shape[1] - POINTS)
        first, weights = stencil(position, POINTS)
        phi = sum(weights[p] * self._axis[0, first + p] for p in range(POINTS))
        phi = np.where(phi == 0, 1e-300, phi)
        if slopes:
            of_phi = sum(weights[p] * self._axis[1, first + p] for p in range(POINTS))
            result = magnitude * of_phi / phi
        else:
            result = np.log(phi)
        return np.asarray(np.where(x < 0, result.conj(), result))

    def _extend_axis(self, until: float, step: float) -> None:
        needed = int(np.ceil(until / step)) + 3 * POINTS
        have = self._axis.shape[1]
        # beyond its decay the function is taken as constant
        if have >= needed or (have and np.max(np.abs(self._axis[0, -64:])) < 1e-17):
            return
        size = max(needed, 2 * have, 1024)
        grid = step * (np.arange(have, size) - POINTS)
        phi = np.concatenate([self._axis[0], np.exp(self.logcf(grid.astype(complex)))])
        self._axis = np.stack([phi, _derivative(phi, step)])


class RayTable:
    """L(+-r e^{-i theta}) and its derivative by log r on an equidistant grid of log r, grown on demand."""

    def __init__(self, law: StandardLaw, theta: float) -> None:
        self.law, self.theta = law, theta
        self.start = 0
        self.smooth_until, self.series_until = np.inf, -np.inf
        self.values: ComplexArray = np.empty((2, 2, 0), dtype=complex)  # value or slope, sign, grid
        self._rough: NDArray[np.bool_] = np.empty((2, 0), dtype=bool)  # sign, cell of the grid
        self._fine: ComplexArray = np.empty((2, 2, 0), dtype=complex)
        self._tables: dict[tuple[bytes, int, bool], FloatArray] = {}

    def cover(self, low: float, high: float) -> None:
        """Make the table reach from log r = ``low`` to ``high``."""
        first, last = int(np.floor(low / STEP)) - 2 * POINTS, int(np.ceil(high / STEP)) + 2 * POINTS
        end = self.start + self.values.shape[2] - 1
        if self.values.shape[2] and self.start <= first and last <= end:
            return
        if self.values.shape[2]:
            first, last = min(first, self.start), max(last, end)
        # room to spare, so that the next request finds all it needs
        self.start, last = first - 48, last + 48
        fine = np.arange(2 * self.start, 2 * last + 1) * (STEP / 2)
        with np.errstate(all="ignore"):
            both = self.law.samples(self.theta, 2 * self.start, 2 * last)
            both = np.where(np.isneginf(both.real), UNDERFLOW, both)
            grid, value = fine[::2], both[:, ::2].copy()
            # Between the points of the grid the function itself is the judge.
            probe, there = fine[1::2][POINTS:-POINTS], both[:, 1::2][:, POINTS:-POINTS]
            position, weights = stencil(probe / STEP - self.start)
            guess = sum(weights[p] * value[:, position + p] for p in range(POINTS))
            error = np.abs(np.expm1(guess - there)) / np.maximum(1.0, np.abs(there))
            # What the function has lost to cancellation, no table can bring back.
            tolerance = 1e-9 + 1e-13 * np.exp(-there.real)
        # Zeros of the characteristic function spoil interpolation.
        self._rough = np.pad(~(error < tolerance), ((0, 0), (POINTS, POINTS)))
        rough = np.any(self._rough[:, POINTS:-POINTS], axis=0)
        self.smooth_until = float(probe[np.argmax(rough)]) - STEP if rough.any() else np.inf
        # Up to where the cumulants are as good as the function itself.
        t = np.exp(grid - 1j * self.theta) * np.array([[1.0], [-1.0]])
        close = np.all(self.law.is_series(t, value), axis=0)
        self.series_until = max(float(grid[np.argmin(close)]) - STEP, float(np.log(NEGLIGIBLE)))
        value[~np.isfinite(value)] = 0.0
        self.values = np.stack([value, _derivative(value, STEP)])

    def single(self, v: FloatArray, r: FloatArray, slopes: bool) -> ComplexArray:
        """L(v r e^{-i theta}), or its derivative by log r, for each weight alone: (n, K).

        Where a zero of the characteristic function makes the logarithm rough, the function itself is interpolated,
        without the turn of the edge and on a grid twice as fine.
        """
        log_x = np.log(np.abs(v))[:, None] + np.log(r)
        self.cover(float(log_x.min(initial=0.0)), float(log_x.max(initial=0.0)))
        negative = np.broadcast_to((v < 0)[:, None], log_x.shape).astype(np.intp)
        result = _interpolate(self.values[int(slopes)], negative, log_x / STEP - self.start)
        rough = self._rough[negative, np.floor(log_x / STEP).astype(np.intp) - self.start]
        if rough.any():
            log_x, negative = log_x[rough], negative[rough]
            position = 2 * (log_x / STEP - self.start)
            turn = 1j * self.law.edge * np.where(negative, -1.0, 1.0) * np.exp(log_x - 1j * self.theta)
            phi = _interpolate(self._function[0], negative, position)
            phi = np.where(phi == 0, 1e-300, phi)
            if slopes:
                result[rough] = _interpolate(self._function[1], negative, position) / phi + turn
            else:
                result[rough] = np.log(phi) + turn
        return result

    @property
    def _function(self) -> ComplexArray:
        """exp(L - i edge t) and its derivative by log r on a grid twice as fine: (2, sign, grid)."""
        if self._fine.shape[2] != 2 * self.values.shape[2] - 1:
            last = self.start + self.values.shape[2] - 1
            t = np.exp(np.arange(2 * self.start, 2 * last + 1) * (STEP / 2) - 1j * self.theta)
            turn = 1j * self.law.edge * np.stack([t, -t])
            with np.errstate(all="ignore"):
                phi = np.nan_to_num(np.exp(self.law.samples(self.theta, 2 * self.start, 2 * last) - turn))
            self._fine = np.stack([phi, _derivative(phi, STEP / 2)])
        return self._fine

    def table(self, shift: FloatArray, cells: int, slopes: bool) -> FloatArray:
        """Real and imaginary part of L for all cells and both signs of the weight, at all nodes: (2, K, 2 cells).

        ``shift`` is the position of the first cell's weight times each node.
        """
        key = (shift.tobytes(), cells, slopes)
        if key not in self._tables:
            if len(self._tables) > MAX_TABLES:
                self._tables.clear()
            self._tables[key] = self._make_table(shift, cells, slopes)
        return self._tables[key]

    def _make_table(self, shift: FloatArray, cells: int, slopes: bool) -> FloatArray:
        self.cover(float(shift.min()) * STEP, (float(shift.max()) + cells) * STEP)
        first, weights = stencil(shift - self.start)
        values = self.values[int(slopes)].T  # grid, sign
        parts = np.stack([values.real, values.imag])
        windows = np.lib.stride_tricks.sliding_window_view(parts, POINTS, axis=1)
        flat = np.ascontiguousarray(windows).reshape(2, -1, POINTS)  # part, grid and sign, stencil
        result = np.empty((2, len(shift), 2 * cells))
        for k, low in enumerate(first):  # a node shifts the whole row of cells
            np.matmul(flat[:, 2 * low : 2 * (low + cells)], weights[:, k], out=result[:, k])
        return result


def _derivative(values: ComplexArray, step: float) -> ComplexArray:
    """Derivative along the last axis, 0 at its ends."""
    slope, size = np.zeros_like(values), values.shape[-1]
    for k, coefficient in enumerate(_DIFFERENCES, start=1):
        slope[..., 3:-3] += (
            coefficient / step * (values[..., 3 + k : size - 3 + k] - values[..., 3 - k : -3 - k])
        )
    return slope


def _interpolate(table: ComplexArray, row: IntArray, position: FloatArray) -> ComplexArray:
    """Values of a table's rows at positions between its columns."""
    first, weights = stencil(position)
    return np.asarray(sum(weights[p] * table[row, first + p] for p in range(POINTS)))


def slope_of(law: StandardLaw, argument: ComplexArray) -> ComplexArray:
    """dL/dlog of the argument, by central differences."""
    up, down = (law.logcf(argument * np.exp(sign * DERIVATIVE_STEP)) for sign in (1.0, -1.0))
    difference = up - down
    # the logarithm is known up to multiples of 2 pi i
    turns: NDArray[np.float64] = 2 * np.pi * np.rint(difference.imag / (2 * np.pi))
    return np.asarray((difference - 1j * turns) / (2 * DERIVATIVE_STEP))


def stencil(position: FloatArray, points: int = POINTS) -> tuple[IntArray, FloatArray]:
    """First grid point and the weights (points, ...) of local Lagrange interpolation at ``position``."""
    first = np.floor(position).astype(np.intp) - (points // 2 - 1)
    offset = position - first
    # a point on the grid would divide 0 by 0
    offset = np.where(offset == np.rint(offset), offset + 1e-13, offset)
    weights = np.stack([(-1) ** p * comb(points - 1, p) / (offset - p) for p in range(points)])
    return first, weights / weights.sum(axis=0)
