"""Rows of weights on standardized noise with a normal part, and their saddle points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray, IntArray
from .ray_sums import DirectSum
from .standard_law import StandardLaw

__all__ = ["Rows", "saddle_point"]


@dataclass(frozen=True)
class Rows:
    """Rows of weights on standardized noise, with a normal part.

    Parameters
    ----------
    weights : ndarray of shape (rows, J)
    counts : ndarray of shape (J,)
        Number of independent variables that share each weight.
    normal_var : ndarray of shape (rows,)
    own : ndarray of shape (rows,)
        The weight that dominates the row: that of the fresh noise.
    """

    weights: FloatArray
    counts: FloatArray
    normal_var: FloatArray
    own: FloatArray

    def take(self, index: IntArray) -> Rows:
        """Some of the rows."""
        return Rows(self.weights[index], self.counts, self.normal_var[index], self.own[index])

    def scaled(self, factor: FloatArray) -> Rows:
        """Rows times a factor each, which may be negative."""
        return Rows(
            self.weights * factor[:, None], self.counts, self.normal_var * factor**2, self.own * factor
        )

    @property
    def var(self) -> FloatArray:
        """Variances, (rows,)."""
        return np.asarray(self.weights**2 @ self.counts + self.normal_var)


def saddle_point(law: StandardLaw, rows: Rows, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Real c at which log E e^{cX} has the slope x, roughly, and its curvature there; NaN in heavy tails.

    One x a row; rows have unit variance and mean 0.
    """
    sign = np.where(x < 0, -1.0, 1.0)
    weights = rows.weights * sign[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.where(
            weights > 0, law.strip[1] / weights, np.where(weights < 0, law.strip[0] / weights, np.inf)
        )
    end = ends.min(axis=1, initial=np.inf)
    ends_somewhere = np.isfinite(end)

    def at(rho: FloatArray) -> FloatArray:
        return np.where(ends_somewhere, np.where(ends_somewhere, end, 1.0) * rho / (1 + rho), rho)

    def slope(c: FloatArray) -> FloatArray:
        room = np.where(ends_somewhere, np.minimum(c, end - c), np.maximum(c, 1.0))
        step = 1e-5 * room
        t = (step - 1j * c)[:, None]
        with np.errstate(all="ignore"):
            exponent = (
                DirectSum(weights, rows.counts, t, law).value(law) - 0.5 * rows.normal_var[:, None] * t**2
            )
            return np.asarray(exponent[:, 0].imag / step)

    low, high = np.full(len(x), -6.0), np.full(len(x), 26.0)  # log rho
    for _ in range(18):
        middle = 0.5 * (low + high)
        below = slope(at(np.exp(middle))) < np.abs(x)  # NaN counts as too far
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    c, further = at(np.exp(low)), at(np.exp(low + 0.01))
    with np.errstate(all="ignore"):
        curvature = (slope(further) - slope(c)) / (further - c)
    usable = (end > 0) & (curvature > 0) & np.isfinite(curvature)
    return np.where(usable, sign * c, np.nan), np.where(usable, curvature, 1.0)
