"""A batch of linear combinations: what it is made of, its moments and its draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from ..noise import as_noise
from ..noise.base import as_generator
from .choose import METHODS
from .rows import Rows, split

__all__ = ["Combination"]

CHUNK = 2**20
MAX_ROWS = 4096
"""Weights and rows that are worked on at once."""


class Combination:
    """Y = loc + sum_j w_j M_j + N(0, normal_std^2), row by row Y = start + scale X with X of unit variance.

    The parameters are those of :class:`~wienerkernel.LinearCombination`.
    """

    def __init__(
        self,
        noise: Any,
        weights: ArrayLike,
        *,
        counts: ArrayLike | None = None,
        loc: ArrayLike = 0.0,
        normal_std: ArrayLike = 0.0,
        method: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.noise = as_noise(noise)
        w = _finite("weights", weights)
        if w.ndim == 0 or w.shape[-1] == 0:
            msg = f"weights must have shape (..., D) with D >= 1, got shape {w.shape}"
            raise ValueError(msg)
        loc_, std = _finite("loc", loc), _finite("normal_std", normal_std)
        if np.any(std < 0):
            msg = f"normal_std must be at least 0, got {std.min()}"
            raise ValueError(msg)
        if method not in METHODS:
            msg = f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}"
            raise ValueError(msg)
        self.shape: tuple[int, ...] = np.broadcast_shapes(w.shape[:-1], loc_.shape, std.shape)
        self.counts = _counts(counts, w.shape[-1])
        self.method = method
        self.verbose = verbose
        self.weights = np.broadcast_to(w, (*self.shape, w.shape[-1]))
        self.loc = np.broadcast_to(loc_, self.shape)
        self.normal_std = np.broadcast_to(std, self.shape)
        self._rows = self.weights.reshape(-1, w.shape[-1])
        self._origin_noise, self._origin, self._bandwidth = split(self.noise)
        # Row by row Y = origin + scale X, where X has unit variance.
        largest = np.maximum(np.max(np.abs(self._rows), axis=1), self.normal_std.ravel())
        unit = np.where(largest > 0, largest, 1.0)
        relative = ((self._rows / unit[:, None]) ** 2 @ self.counts) * self.noise.var()
        relative = relative + (self.normal_std.ravel() / unit) ** 2
        self._scale = unit * np.where(largest > 0, np.sqrt(relative), 1.0)
        self._start = self.loc.ravel() + self._origin * (self._rows @ self.counts)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: shape {self.shape}, {self.weights.shape[-1]} weights of {self.noise!r}>"
        )

    def cumulant(self, order: int) -> FloatArray:
        """Cumulant kappa_r = kappa_r(M) sum_j w_j^r, of shape S; NaN where the moment does not exist.

        Parameters
        ----------
        order : int
            From 1 to 8.

        Returns
        -------
        ndarray of shape S

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> float(LinearCombination("expon()", [1.0, 2.0]).cumulant(3))
        18.0
        """
        if order < 1 or order != int(order):
            msg = f"order must be a positive integer, got {order}"
            raise ValueError(msg)
        power = self.weights ** int(order) @ self.counts
        if order == 1:
            return np.asarray(self.loc + self.noise.mean() * power)
        if order == 2:
            return np.asarray(self.noise.var() * power + self.normal_std**2)
        return np.asarray(self.noise.cumulants(int(order))[-1] * power)

    def mean(self) -> FloatArray:
        """Mean loc + m0 sum_j w_j, of shape S.

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> float(LinearCombination("expon()", [1.0, 2.0], loc=1.0).mean())
        4.0
        """
        return self.cumulant(1)

    def var(self) -> FloatArray:
        """Variance s2 sum_j w_j^2 + normal_std^2, of shape S.

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

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the support, each of shape S.

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> [float(end) for end in LinearCombination("uniform()", [1.0, -2.0]).support()]
        [-2.0, 1.0]
        """
        lower, upper = self.noise.support()
        positive, negative = (
            np.maximum(self.weights, 0) @ self.counts,
            np.maximum(-self.weights, 0) @ self.counts,
        )
        wide = self.normal_std > 0
        with np.errstate(invalid="ignore"):  # 0 * inf, where there are no weights of this sign
            low = np.where(positive > 0, positive * lower, 0.0) - np.where(
                negative > 0, negative * upper, 0.0
            )
            high = np.where(positive > 0, positive * upper, 0.0) - np.where(
                negative > 0, negative * lower, 0.0
            )
        return np.where(wide, -np.inf, self.loc + low), np.where(wide, np.inf, self.loc + high)

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        """Draws; one draw of the noise vector is shared by all rows, so that the rows are jointly distributed.

        Parameters
        ----------
        size : int or tuple of int, default 1
        random_state : int, numpy Generator or RandomState, optional

        Returns
        -------
        ndarray of shape size + S
            The normal part is drawn independently for each row.

        Examples
        --------
        >>> from wienerkernel import LinearCombination
        >>> Y = LinearCombination("expon()", [[1.0, 2.0], [2.0, 4.0]])
        >>> draws = Y.rvs(5, random_state=0)
        >>> draws.shape, bool(np.allclose(2 * draws[:, 0], draws[:, 1]))
        ((5, 2), True)
        """
        generator = as_generator(random_state)
        lead = (size,) if isinstance(size, int | np.integer) else tuple(size)
        n, total = int(np.prod(lead, dtype=int)), int(self.counts.sum())
        first = np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(int)
        result = np.empty((n, len(self._rows)))
        step = max(1, 2**22 // total)
        for start in range(0, n, step):
            stop = min(start + step, n)
            draws = self.noise.rvs((stop - start, total), random_state=generator)
            result[start:stop] = np.add.reduceat(draws, first, axis=1) @ self._rows.T
        result += self.loc.ravel()
        if np.any(self.normal_std > 0):
            result += self.normal_std.ravel() * generator.standard_normal(result.shape)
        return result.reshape(*lead, *self.shape)

    def _chunks(self) -> Iterator[tuple[slice, Rows]]:
        step = max(1, min(MAX_ROWS, CHUNK // self._rows.shape[1]))
        for start in range(0, len(self._rows), step):
            part = slice(start, start + step)
            scale = self._scale[part]
            v = self._rows[part] / scale[:, None]
            # Terms that float64 cannot see beside the others would only stretch the tables.
            v = np.where(np.abs(v) * self.noise.std() * np.sqrt(self.counts.sum()) < 1e-17, 0.0, v)
            tau2 = (self.normal_std.ravel()[part] / scale) ** 2 + self._bandwidth**2 * (v**2 @ self.counts)
            yield part, Rows(self._origin_noise, *_merged(v, self.counts), np.where(tau2 < 1e-34, 0.0, tau2))


def _merged(weights: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights and counts without columns that are equal in all rows."""
    if len(np.unique(weights[0])) == weights.shape[1]:
        return weights, counts
    columns, inverse = np.unique(weights, axis=1, return_inverse=True)
    return columns, np.bincount(inverse.ravel(), weights=counts).astype(np.float64)


def _finite(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=float)
    if not np.all(np.isfinite(array)):
        msg = f"{name} must be finite numbers, got NaN or infinity"
        raise ValueError(msg)
    return array


def _counts(counts: ArrayLike | None, width: int) -> FloatArray:
    if counts is None:
        return np.ones(width)
    array = np.asarray(counts, dtype=float)
    if array.shape != (width,) or not np.all((array >= 1) & (array == np.rint(array))):
        msg = f"counts must be {width} positive integers, one a weight, got {counts!r}"
        raise ValueError(msg)
    return array
