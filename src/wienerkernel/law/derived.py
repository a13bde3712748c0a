"""What follows from the density, the quantiles and the cumulants of a batch of laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise

from .._typing import FloatArray, IntArray

__all__ = ["DerivedMethods", "as_levels", "shortest"]

GRID = 49
"""Values of the part of the outer probability that lies below, on which the width is searched for local minima."""
VALLEYS, NEARLY = 3, 1.1
"""Local minima that are refined, and how much wider than the narrowest they may be on the grid."""
PRECISION = 1e-9
"""Of the part that lies below; the width, near its minimum, is then exact to rounding."""
INFINITE = 1e100
"""Width of an interval with an infinite end; the search needs finite values."""


def as_levels(name: str, values: ArrayLike) -> FloatArray:
    """``values`` as an array of probabilities."""
    array = np.asarray(values, dtype=float)
    if not np.all((array >= 0) & (array <= 1)):
        msg = f"{name} must lie between 0 and 1, got {array}"
        raise ValueError(msg)
    return array


class DerivedMethods:
    """Methods of a batch of laws of shape S that follow from others."""

    shape: tuple[int, ...]
    pdf: Callable[..., Any]
    ppf: Callable[..., Any]
    isf: Callable[..., Any]
    cumulant: Callable[[int], FloatArray]
    _log_density: Callable[[FloatArray], FloatArray]  # where the density underflows; -inf at NaN

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Logarithm of the density at y, accurate in light tails.

        Where the density underflows, at about exp(-740), it is an approximation, with an error of about 0.1 or a millionth of it.

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> round(float(LinearCombination("expon()", [1.0, 2.0]).logpdf(100.0)), 9)
        -50.0
        """
        with np.errstate(divide="ignore"):
            value = np.asarray(np.log(np.maximum(self.pdf(y), 0.0)))
        gone = np.isneginf(value)
        return np.where(gone, self._log_density(np.where(gone, y, np.nan)), value) if gone.any() else value

    def interval(self, confidence: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Interval with equal tails.

        Parameters
        ----------
        confidence : array-like
            Probability inside, broadcast against S.

        Returns
        -------
        low, high : ndarray of shape broadcast(confidence.shape, S)

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> low, high = LinearCombination("laplace()", [1.0, 1.0]).interval(0.9)
        >>> bool(abs(low + high) < 1e-12)
        True
        """
        tail = 0.5 * (1 - as_levels("confidence", confidence))
        return self.ppf(tail), self.isf(tail)

    def hdi(self, confidence: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Shortest interval with this probability; for a density with one peak, the highest-density interval.

        If the density has several peaks, it is the shortest of all intervals. Arguments and shapes as for :meth:`interval`.

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> low, high = LinearCombination("expon()", [1.0]).hdi(0.5)
        >>> round(float(low), 9), round(float(high), 9)
        (0.0, 0.693147181)
        """
        return shortest(self.ppf, self.isf, as_levels("confidence", confidence), self.shape)

    def mean(self) -> FloatArray:
        """Mean, of shape S.

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> float(LinearCombination("expon()", [1.0, 2.0], loc=1.0).mean())
        4.0
        """
        return self.cumulant(1)

    def var(self) -> FloatArray:
        """Variance, of shape S.

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> float(LinearCombination("expon()", [1.0, 2.0], normal_std=1.0).var())
        6.0
        """
        return self.cumulant(2)

    def std(self) -> FloatArray:
        """Standard deviation, of shape S.

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> float(LinearCombination("norm()", [3.0, 4.0]).std())
        5.0
        """
        return np.sqrt(self.var())

    def skewness(self) -> FloatArray:
        """Skewness kappa_3 / kappa_2^(3/2), of shape S.

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> float(LinearCombination("expon()", [-1.0]).skewness())
        -2.0
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.cumulant(3) / self.var() ** 1.5)

    def kurtosis(self) -> FloatArray:
        """Excess kurtosis kappa_4 / kappa_2^2, of shape S.

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> float(LinearCombination("expon()", [1.0, 1.0]).kurtosis())
        3.0
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.cumulant(4) / self.var() ** 2)


def shortest(
    ppf: Callable[[FloatArray], FloatArray],
    isf: Callable[[FloatArray], FloatArray],
    confidence: FloatArray,
    shape: tuple[int, ...],
) -> tuple[FloatArray, FloatArray]:
    """Ends of the shortest interval [ppf(p), isf(1 - confidence - p)] over p, of shape broadcast(confidence, shape).

    A law with several peaks has several local minima of the width: a grid finds them, Chandrupatla's method refines them.
    ``ppf`` and ``isf`` broadcast against ``shape``.
    """
    outside = 1 - np.broadcast_to(confidence, np.broadcast_shapes(confidence.shape, shape))

    def ends(part: FloatArray) -> tuple[FloatArray, FloatArray]:
        return ppf(part * outside), isf((1 - part) * outside)

    def width(part: FloatArray) -> FloatArray:
        inside = np.clip(part, 0.0, 1.0)
        low, high = ends(inside)
        with np.errstate(invalid="ignore"):
            result = np.nan_to_num(high - low, nan=INFINITE, posinf=INFINITE)
        return np.asarray(
            result * (1 + np.abs(part - inside))
        )  # grows beyond 0 and 1, where there may be a minimum

    grid = np.linspace(0, 1, GRID).reshape(-1, *(1,) * outside.ndim)
    best = _valleys(width(grid))
    floor = best / (GRID - 1)

    def width_of_some(part: FloatArray, index: IntArray) -> FloatArray:
        every = floor.copy()
        every.flat[index] = part
        return np.asarray(width(every).flat[index])

    bracket = (best - 1) / (GRID - 1), floor, (best + 1) / (GRID - 1)
    index = np.arange(best.size).reshape(best.shape)
    found = elementwise.find_minimum(
        width_of_some,
        bracket,
        args=(index,),
        tolerances={"xatol": PRECISION, "xrtol": PRECISION, "fatol": 0.0, "frtol": 0.0},
    )
    floor = np.clip(np.where(found.success, found.x, floor), 0.0, 1.0)
    part = np.take_along_axis(floor, np.argmin(width(floor), axis=0)[None], axis=0)[0]
    for end in (0.0, 1.0):  # a monotone density has its shortest interval at an end of the support
        part = np.where(width(np.full(part.shape, end)) <= width(part), end, part)
    return ends(part)


def _valleys(widths: FloatArray) -> IntArray:
    """Grid points of the lowest local minima, shape (minima, ...); the lowest one again where there is no other."""
    around = np.pad(widths, [(1, 1)] + [(0, 0)] * (widths.ndim - 1), constant_values=np.inf)
    lowest = np.min(widths, axis=0)
    valley = (widths <= around[:-2]) & (widths <= around[2:]) & (widths <= NEARLY * lowest)
    floors = np.where(valley, widths, np.inf)
    order = np.argsort(floors, axis=0, kind="stable")[:VALLEYS]
    real = np.isfinite(np.take_along_axis(floors, order, axis=0))
    used = max(1, int(real.reshape(len(real), -1).any(axis=1).sum()))
    return np.where(real, order, np.argmin(widths, axis=0))[:used]
