"""Tables of log phi along a ray, which make sums over weights cheap.

Along a ray, log phi(w t) depends on log|w| + log|t| alone. Local interpolation in log|w| turns the sum over the
weights into a product of two matrices: a histogram of log|w| for each row, times one table of log phi for all rows.
Small weights need no histogram: there log phi is a polynomial, and its sum follows from power sums of the weights.
At real t, a characteristic function that costs one term per atom is tabulated itself.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import factorial
from threading import RLock
from typing import Protocol

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise

__all__ = [
    "COARSE",
    "DEGREE",
    "EXACT",
    "NEAR_ZEROS",
    "POINTS",
    "SMOOTH",
    "BandTable",
    "Law",
    "RayTable",
    "band_table",
    "ray_table",
    "stencil",
    "table_of",
]

EXACT = 1e-13
"""Tolerance of values that are reported,"""
SMOOTH = 1e-9
"""of values that are optimized, and so must be smooth functions of the weights,"""
NEAR_ZEROS = 1e-11
"""of single terms of these, from tables that are fine enough for phi itself to be interpolated,"""
COARSE = 1e-3
"""and of values that only serve to choose a method."""
POINTS = 16
DEGREE = 10
"""Degree of the polynomial that stands for log phi at small arguments,"""
SPAN = 3.0
"""fitted where log r is at most this far below its end,"""
TRIALS = np.arange(0.5, -11.5, -0.25)
"""which is one of these, relative to -log(std); at the last of them only the variance of a heavy tail matters."""
MAX_MATRICES, MAX_SIZE = 8, 2**20
"""Number and size of the matrices that are kept."""
HUGE = 1e300
"""Values of phi beyond this size, which no result has, are cut off, so that sums of them stay finite."""
BLOCK = 2**13
"""Values that are interpolated at once: they stay in the cache."""
PHASE, MAX_LENGTH = 0.25, 2**16
"""Of a table at real t, the largest phase of e^{itx} between two points, and the length at most."""
_LAGRANGE = {
    # ratios of the factors (-1)^(n-p) / (p! (n-p)!), n = points - 1, the first of which is left as it is
    points: [(-1.0) ** (points - 1) / factorial(points - 1)] + [-(points - p) / p for p in range(1, points)]
    for points in (8, 12, POINTS)
}
_DIFFERENCES = (45 / 60, -9 / 60, 1 / 60)
"""Coefficients of the first derivative by central differences of sixth order."""


def _grid(tolerance: float, theta: float) -> tuple[int, tuple[float, ...], float]:
    """How a table interpolates: points of the stencil, steps of log r, and the error of phi that is no error.

    The nearer the singularities of log phi, the finer the step has to be.
    """
    if tolerance == SMOOTH:  # fewer points are faster
        # On the real axis there are zeros of phi, and few weights to sum; those of skewnorm are close to the rays. The step
        # is the same for all laws, so that those of a family can be blended.
        return 8, (1 / 48 if theta else 1 / 96,), 1e-13
    if tolerance == NEAR_ZEROS:
        return 12, (1 / 96,), 1e-13
    if tolerance == COARSE:
        return 8, (1 / 8, 1 / 20, 1 / 40, 1 / 80), tolerance
    return POINTS, (1 / 20, 1 / 40, 1 / 80), tolerance


class Law(Protocol):
    """What sums over weights need to know about a law; every :class:`~wienerkernel.Noise` does."""

    @property
    def gaussian(self) -> bool: ...
    @property
    def atomic(self) -> bool: ...
    def mean(self) -> float: ...
    def var(self) -> float: ...
    def cumulants(self, order: int, /) -> FloatArray: ...
    def logcf(self, t: ComplexArray, /) -> ComplexArray: ...
    def support(self) -> tuple[float, float]: ...
    def strip(self) -> tuple[float, float]: ...
    def sector(self) -> float: ...


def stencil(position: FloatArray, points: int = POINTS) -> tuple[IntArray, FloatArray]:
    """First grid point and the weights (points, ...) of local Lagrange interpolation at ``position``."""
    first = np.floor(position).astype(np.intp) - (points // 2 - 1)
    offset = position - first
    weights = np.empty((points, *position.shape))
    weights[0] = _LAGRANGE[points][0]
    for p in range(1, points):  # products of the factors before p, then times those behind it
        np.multiply(weights[p - 1], offset - (p - 1), out=weights[p])
        weights[p] *= _LAGRANGE[points][p]
    behind = offset - (points - 1)
    for p in range(points - 2, -1, -1):
        weights[p] *= behind
        if p:
            behind *= offset - p
    return first, weights


class RayTable:
    """log phi(+-r e^{-i theta}) of one law on an equidistant grid of log r, grown on demand.

    Up to log r = ``smooth_until``, interpolation makes an error of phi below the tolerance.
    """

    def __init__(self, noise: Law, theta: float, tolerance: float) -> None:
        self.noise, self.theta, self.tolerance = noise, theta, tolerance
        self._lock = RLock()  # threads share the table of a law
        self.direction = np.exp(-1j * theta)
        self.points, steps, self.floor = _grid(tolerance, theta)
        self._matrices: dict[tuple[bytes, int, int, int, bool], FloatArray] = {}
        unit = self._unit
        for self.step in steps:
            self.start = self.stop = 0
            self.values: ComplexArray = np.empty((2, 0), dtype=complex)
            self.smooth_until = np.inf
            self.cover(unit - 5, unit + 0.5)
            if np.isinf(self.smooth_until):
                break
        # the sign of a weight does not matter for a symmetric law
        self.signs = 1 if self._symmetric() else 2

    @property
    def _unit(self) -> float:
        return -0.5 * float(np.log(self.noise.var()))

    def _symmetric(self) -> bool:
        return np.array_equal(*self.values)

    def _evaluate(self, log_r: FloatArray) -> ComplexArray:
        t = np.exp(log_r) * self.direction
        with np.errstate(all="ignore"):
            return np.stack([self.noise.logcf(t), self.noise.logcf(-t)])

    def cover(self, low: float, high: float) -> None:
        """Make the table reach from log r = ``low`` to ``high``."""
        first = int(np.floor(low / self.step)) - self.points
        stop = int(np.ceil(high / self.step)) + self.points + 1
        with self._lock:
            if not self.values.size:
                self.start = self.stop = first
            first, stop = min(first, self.start), max(stop, self.stop)
            if first < self.start or stop > self.stop:
                self._grow(first, stop)

    def _grow(self, first: int, stop: int) -> None:
        new = [np.arange(first, self.start), np.arange(self.stop, stop)]
        self.values = np.concatenate(
            [self._evaluate(new[0] * self.step), self.values, self._evaluate(new[1] * self.step)], axis=1
        )
        self.values.imag = np.unwrap(self.values.imag, axis=1)
        self.start, self.stop = first, stop
        # Zeros of phi and noise in its tail spoil interpolation; what lies beyond is summed term by term.
        for part in new:
            inside = part[(part >= first + self.points) & (part < stop - self.points)]
            probe = (inside[::5] + 0.5) * self.step
            truth, guess = self._evaluate(probe), self(probe)
            with np.errstate(all="ignore"):
                size = np.abs(np.exp(truth))
                error = np.abs(np.exp(truth) - np.exp(guess))
                allowed = np.maximum(self.tolerance * size, self.floor) * np.maximum(1, np.abs(truth))
                rough = ~np.all(error < allowed, axis=0)
            if rough.any():
                self.smooth_until = min(
                    self.smooth_until, float(probe[np.argmax(rough)]) - self.points * self.step
                )

    def matrix(self, first_cell: int, cells: int, log_r: FloatArray, signs: int, slopes: bool) -> FloatArray:
        """Real and imaginary part for the weights +-e^{(first_cell + i) step} and K covered nodes: (2, K, signs * cells).

        A cell has a column for the positive weight and, with 2 ``signs``, one for the negative; ``slopes`` are the
        derivatives by log r.
        """
        key = log_r.tobytes(), first_cell, cells, signs, slopes
        with self._lock:
            known = self._matrices.get(key)
        if known is not None:
            return known
        start, values = self.snapshot()
        # relative to the origin, not to the start, so that rounding does not depend on how the table has grown
        first, weights = stencil(log_r / self.step + first_cell, self.points)
        first -= start
        low, high = int(first.min()), int(first.max()) + cells + self.points
        part = values[:signs, low - 3 : high + 3]
        part = np.where(np.isfinite(part), part, -745.0)  # where phi is 0, or not known at all
        part = _derivative(part, self.step) if slopes else part[:, 3:-3]
        flat = np.stack([part.real, part.imag]).swapaxes(1, 2).reshape(2, -1)
        size, columns = flat.shape[1] - signs * (self.points - 1), signs * cells
        windows = np.stack([flat[:, signs * p :][:, :size] for p in range(self.points)], axis=1)
        result, weights = np.empty((2, len(log_r), columns)), np.ascontiguousarray(weights.T)
        for k, at in enumerate(signs * (first - low)):  # a node shifts the whole row of cells
            np.matmul(weights[k], windows[:, :, at : at + columns], out=result[:, k])
        if result.size <= MAX_SIZE:
            with self._lock:
                if len(self._matrices) >= MAX_MATRICES:
                    self._matrices.clear()
                self._matrices[key] = result
        return result

    def __call__(self, log_r: FloatArray) -> ComplexArray:
        """Interpolated log phi(r e^{-i theta}) and log phi(-r e^{-i theta}), shape (2, ...)."""
        start, values = self.snapshot()
        first, weights = stencil(log_r / self.step, self.points)
        first -= start
        result = np.zeros((2, *log_r.shape), dtype=complex)
        for p in range(self.points):
            result += weights[p] * values[:, first + p]
        return result

    def log_phi(self, x: FloatArray) -> ComplexArray:
        """Log phi(x e^{-i theta}) for real x != 0 of any shape, up to multiples of 2 pi i.

        What is interpolated is the function, not its logarithm, which is singular at zeros.
        """
        log_r, sign = np.log(np.abs(x)).ravel(), (x < 0).ravel().astype(np.intp)
        self.cover(float(log_r.min()), float(log_r.max()))
        start, values = self.snapshot()
        with np.errstate(all="ignore"):
            phi = np.nan_to_num(np.exp(values), posinf=HUGE, neginf=-HUGE)
        result = np.empty(len(log_r), dtype=complex)
        for part in (slice(k, k + BLOCK) for k in range(0, len(log_r), BLOCK)):
            first, weights = stencil(log_r[part] / self.step, self.points)
            first -= start
            result[part] = sum(weights[p] * phi[sign[part], first + p] for p in range(self.points))
        return np.log(np.where(result == 0, 1e-300, result)).reshape(x.shape)

    @cached_property
    def series_until(self) -> float:
        """The log r, on the grid, up to which the polynomial of :meth:`series` equals log phi to the tolerance."""
        trials = self.step * np.floor((self._unit + TRIALS) / self.step)
        for trial in trials[:-1]:
            t, x, truth = self._below(trial)
            value = sum(c * x**k for k, c in enumerate(self.series(trial), start=1))
            # many small weights have small squares
            allowed = 0.05 * self.tolerance * self.noise.var() * np.abs(t) ** 2 + 1e-15
            if np.all(np.abs(value - truth) < allowed):
                return float(trial)
        return float(trials[-1])

    def _below(self, until: float) -> tuple[ComplexArray, FloatArray, ComplexArray]:
        """Arguments t, the same relative to the last, and values just below log r = ``until``; each of shape (2, n)."""
        last = round(until / self.step)
        first = last - round(SPAN / self.step)
        self.cover(first * self.step, last * self.step)
        start, values = self.snapshot()
        x = np.exp(np.arange(first - last, 1) * self.step)
        x = np.stack([x, -x])
        return x * np.exp(until) * self.direction, x, values[:, first - start : last + 1 - start]

    def series(self, until: float) -> ComplexArray:
        """Coefficients, from order 1 to DEGREE, of log phi(r e^{-i theta}) as a polynomial in r / R, log R = ``until``.

        The first one is the mean; the others make the relative error small where r < R. R must be on the grid.
        """
        t, x, values = self._below(until)
        result = np.zeros(DEGREE, dtype=complex)
        result[0] = 1j * self.noise.mean() * t[0, -1]
        if until < self._unit + TRIALS[-2] - self.step:
            result[1] = -0.5 * self.noise.var() * t[0, -1] ** 2
        else:
            quotient = (values - 1j * self.noise.mean() * t) / x**2
            result[1:] = _fit(x.shape[1], self.step) @ quotient.ravel()
        return result

    def snapshot(self) -> tuple[int, ComplexArray]:
        """Index of the first grid point, and the values (2, n), which another thread may extend meanwhile."""
        with self._lock:
            return self.start, self.values


@lru_cache(maxsize=8)
def _fit(n: int, step: float) -> FloatArray:
    """Matrix that fits a polynomial of degree DEGREE - 2 to values at +-e^{-step k}, k = n - 1 to 0."""
    x = np.exp(-step * np.arange(n - 1, -1, -1.0))
    return np.linalg.pinv(np.vander(np.concatenate([x, -x]), DEGREE - 1, increasing=True))


def _derivative(values: ComplexArray, step: float) -> ComplexArray:
    """Derivative along the last axis, three points at each end of it left out."""
    size = values.shape[-1]
    parts = (
        coefficient / step * (values[..., 3 + k : size - 3 + k] - values[..., 3 - k : size - 3 - k])
        for k, coefficient in enumerate(_DIFFERENCES, start=1)
    )
    return np.asarray(sum(parts))


ray_table = lru_cache(maxsize=32)(RayTable)
"""The table of a law along a ray, built once."""


def table_of(law: Law, theta: float, tolerance: float) -> RayTable:
    """The same for a law that may keep its tables itself."""
    own = getattr(law, "ray_table", None)
    return own(theta, tolerance) if own is not None else ray_table(law, theta, tolerance)  # type: ignore[arg-type]


class BandTable:
    """phi(t) of a bounded law at real t, on a grid that grows on demand: phi is band-limited."""

    def __init__(self, noise: Noise) -> None:
        self.noise = noise
        self.step = PHASE / float(np.max(np.abs(noise.support())))
        self.values: ComplexArray = np.empty(0, dtype=complex)

    def covers(self, t: float) -> bool:
        """Whether the table may reach to ``t``."""
        return t / self.step < MAX_LENGTH

    def logcf(self, t: FloatArray) -> ComplexArray:
        """Log phi(t) for real t of any shape."""
        position = np.abs(t) / self.step + POINTS
        length = int(position.max(initial=0.0)) + 2 * POINTS
        values = self.values  # which another thread may replace meanwhile
        if length > len(values):
            grid = (np.arange(len(values), length) - POINTS) * self.step
            self.values = values = np.concatenate([values, np.exp(self.noise.logcf(grid))])
        flat = np.ravel(position)
        result = np.empty(flat.shape, dtype=complex)
        for start in range(0, len(flat), 2**15):
            first, weights = stencil(flat[start : start + 2**15])
            phi = np.einsum("pn,pn->n", weights, values[first + np.arange(POINTS)[:, None]])
            with np.errstate(divide="ignore"):
                result[start : start + 2**15] = np.log(phi)
        table = result.reshape(t.shape)
        return np.where(t < 0, table.conj(), table)


band_table = lru_cache(maxsize=8)(BandTable)
"""The table of a law at real t, built once."""
