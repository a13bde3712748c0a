"""Sums of log characteristic functions over many weights, with their derivatives, at nodes t in the complex plane.

E(t) = sum_j n_j L(v_j t) for rows of weights v. Local interpolation in log|v| makes the sum over the weights one
histogram a row times one table for all rows, and the derivatives by the weights follow from the transposed product.
Small weights enter through power sums: many of them are a normal variable plus cumulants.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..backend.linalg import matmul
from .standard_law import NEGLIGIBLE, ORDERS, POINTS, STEP, StandardLaw, slope_of, stencil

__all__ = ["DirectSum", "RaySum", "WeightSum"]

CELLS = 64
"""Histograms begin and end at multiples of this, so that one table serves many of them."""
CHUNK = 2**20


class WeightSum(Protocol):
    """E(t) for rows of weights at fixed nodes, as a function of the law.

    ``reliable``, (rows,), is the |t| up to which E is accurate.
    """

    reliable: FloatArray

    def value(self, law: StandardLaw) -> ComplexArray:
        """E, (rows, K)."""

    def slope(self, law: StandardLaw, cotangent: ComplexArray) -> FloatArray:
        """Re sum_k cotangent_k v dE_k/dv for each weight, (rows, J)."""


class FarField:
    """The part of the sum that small weights have: a normal variable plus cumulants, through power sums.

    Parameters
    ----------
    weights : ndarray of shape (rows, J)
        0 where a weight is not small.
    counts : ndarray of shape (J,)
    t : ndarray of shape (K,) or (rows, K)
    """

    def __init__(self, weights: FloatArray, counts: FloatArray, t: ComplexArray) -> None:
        self.weights, self.counts, self.t = weights, counts, t

    @cached_property
    def _power_sums(self) -> FloatArray:
        """Sums of n_j v_j^r, r = 2 to 8: (7, rows)."""
        result = np.empty((len(ORDERS), len(self.weights)))
        power = self.weights * self.weights
        for k in range(len(ORDERS)):
            result[k] = power @ self.counts
            power *= self.weights
        return result

    def value(self, law: StandardLaw) -> ComplexArray:
        """E, (rows, K)."""
        terms = zip(ORDERS, law.series, self._power_sums, strict=True)
        return np.asarray(sum(c * sums[:, None] * self.t**order for order, c, sums in terms))

    def slope(self, law: StandardLaw, cotangent: ComplexArray) -> FloatArray:
        """Re sum_k cotangent_k v dE_k/dv for each weight, without its count, (rows, J)."""
        # Horner: sum over r of r c_r t^r v^r
        result = np.zeros(self.weights.shape)
        for order, c in zip(ORDERS[::-1], law.series[::-1], strict=True):
            result *= self.weights
            result += np.sum(order * c * self.t**order * cotangent, axis=1).real[:, None]
        result *= self.weights
        result *= self.weights
        return result


class DirectSum:
    """The sum term by term, each row at its own nodes.

    Parameters
    ----------
    weights : ndarray of shape (rows, J)
    counts : ndarray of shape (J,)
    t : ndarray of shape (rows, K)
    law : StandardLaw
        The law that decides which weights are small.
    """

    def __init__(self, weights: FloatArray, counts: FloatArray, t: ComplexArray, law: StandardLaw) -> None:
        self.weights, self.counts, self.t = weights, counts, t
        far = np.abs(weights) * np.abs(t).max(axis=1, initial=0.0)[:, None] < law.radius
        self._far = FarField(np.where(far, weights, 0.0), counts, t)
        self._row, self._column = np.nonzero(~far)
        self.reliable = np.full(len(weights), np.inf)

    def _chunks(self) -> list[tuple[IntArray, IntArray]]:
        step = max(1, CHUNK // max(1, self.t.shape[1]))
        starts = range(0, len(self._row), step)
        return [(self._row[i : i + step], self._column[i : i + step]) for i in starts]

    def value(self, law: StandardLaw) -> ComplexArray:
        """E, (rows, K)."""
        result = self._far.value(law)
        for row, column in self._chunks():
            terms = law.logcf(self.weights[row, column, None] * self.t[row])
            np.add.at(result, row, terms * self.counts[column, None])
        return result

    def slope(self, law: StandardLaw, cotangent: ComplexArray) -> FloatArray:
        """Re sum_k cotangent_k v dE_k/dv for each weight, (rows, J)."""
        result = self._far.slope(law, cotangent)
        for row, column in self._chunks():
            argument = self.weights[row, column, None] * self.t[row]
            result[row, column] = np.einsum("nk,nk->n", slope_of(law, argument), cotangent[row]).real
        return np.asarray(result * self.counts)


class RaySum:
    """The sum by histograms, all rows at the same nodes t = r e^{-i theta}.

    Parameters
    ----------
    weights : ndarray of shape (rows, J)
    counts : ndarray of shape (J,)
    r : ndarray of shape (K,)
    theta : float
    law : StandardLaw
        The law whose smoothness decides which weights are small, and which do not interpolate.
    careful : bool
        Whether weights that do not interpolate at all nodes are summed term by term.
    """

    def __init__(
        self,
        weights: FloatArray,
        counts: FloatArray,
        r: FloatArray,
        theta: float,
        law: StandardLaw,
        careful: bool = True,
    ) -> None:
        self.weights, self.counts, self.r, self.theta = weights, counts, r, theta
        self.t = r * np.exp(-1j * theta)
        log_r = np.log(r)
        magnitude = np.abs(weights) * r[-1]
        ray = law.ray(theta)
        ray.cover(np.log(NEGLIGIBLE), np.log(np.max(magnitude, initial=1.0)))
        far = magnitude < np.exp(ray.series_until)
        rough = (magnitude > np.exp(ray.smooth_until)) & ~far
        self.reliable = np.full(len(weights), np.inf)
        if not careful:
            largest = np.abs(np.where(rough, weights, 0.0)).max(axis=1, initial=0.0)
            np.divide(np.exp(ray.smooth_until), largest, out=self.reliable, where=largest > 0)
            rough[:] = False
        smooth = ~(far | rough)
        self._far = FarField(np.where(far, weights, 0.0), counts, self.t)
        self._rough = np.nonzero(rough)
        self._row, self._column = np.nonzero(smooth)
        chosen = weights[smooth]
        log_v = np.log(np.abs(chosen))
        first = CELLS * int(np.floor((log_v.min(initial=0.0) / STEP - POINTS) / CELLS))
        self._cells = CELLS * int(np.ceil((log_v.max(initial=0.0) / STEP + POINTS - first) / CELLS))
        position, self._stencil = stencil(log_v / STEP - first)
        # a cell has one column for positive and one for negative weights
        self._at = 2 * position + (chosen < 0) + 2 * self._cells * self._row
        self._shift = log_r / STEP + first

    @cached_property
    def _histogram(self) -> FloatArray:
        size = len(self.weights) * 2 * self._cells
        mass = self.counts[self._column]
        result = np.zeros(size)
        for p in range(POINTS):
            result += np.bincount(self._at + 2 * p, weights=self._stencil[p] * mass, minlength=size)
        return result.reshape(len(self.weights), -1)

    def value(self, law: StandardLaw) -> ComplexArray:
        """E, (rows, K)."""
        real, imag = law.ray(self.theta).table(self._shift, self._cells, slopes=False)
        result = self._far.value(law)
        result.real += matmul(self._histogram, real, transpose_b=True)
        result.imag += matmul(self._histogram, imag, transpose_b=True)
        for row, column in self._rough_chunks():
            terms = law.single(self.weights[row, column], self.r, self.theta, slopes=False)
            np.add.at(result, row, terms * self.counts[column, None])
        return result

    def slope(self, law: StandardLaw, cotangent: ComplexArray) -> FloatArray:
        """Re sum_k cotangent_k v dE_k/dv for each weight, (rows, J)."""
        result = self._far.slope(law, cotangent)
        real, imag = law.ray(self.theta).table(self._shift, self._cells, slopes=True)
        by_cell = matmul(np.ascontiguousarray(cotangent.real), real)
        by_cell -= matmul(np.ascontiguousarray(cotangent.imag), imag)
        found = np.zeros(len(self._at))
        for p in range(POINTS):
            found += self._stencil[p] * by_cell.ravel()[self._at + 2 * p]
        result[self._row, self._column] = found
        for row, column in self._rough_chunks():
            slopes = law.single(self.weights[row, column], self.r, self.theta, slopes=True)
            result[row, column] = np.einsum("nk,nk->n", slopes, cotangent[row]).real
        return np.asarray(result * self.counts)

    def _rough_chunks(self) -> list[tuple[IntArray, IntArray]]:
        row, column = self._rough
        step = max(1, CHUNK // len(self.r))
        return [(row[i : i + step], column[i : i + step]) for i in range(0, len(row), step)]
