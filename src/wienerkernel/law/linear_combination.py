"""Y = loc + sum_j w_j M_j + N(0, normal_std^2), a whole batch of rows of weights at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import FloatArray, IntArray, RandomState
from ..noise import as_noise
from ..noise.base import as_generator
from .block import Block
from .choose import METHODS
from .hdi import shortest
from .rows import Rows, split_origin

__all__ = ["AccuracyWarning", "LinearCombination"]

ACCURACY = 1e-12
CHUNK = 2**20
MAX_ROWS = 4096
"""Weights and rows that are worked on at once."""


class AccuracyWarning(UserWarning):
    """A probability has an error larger than 1e-12."""


class LinearCombination:
    """Law of Y = loc + sum_j w_j M_j + N(0, normal_std^2) with independent, equally distributed M_j.

    Parameters
    ----------
    noise : frozen scipy.stats law, str, array-like of shape (n,) or Noise
        Law of M: anything that :func:`~wienerkernel.as_noise` accepts.
    weights : array-like of shape (..., D)
        One row of weights for each law; the laws have the shape S = weights.shape[:-1], broadcast with ``loc`` and
        ``normal_std``.
    counts : array-like of int of shape (D,), optional
        Number of independent copies of M_j that share the weight w_j; 1 by default.
    loc : array-like, default 0
    normal_std : array-like, default 0
        Standard deviation of an independent normal part.
    method : {"auto", "contour", "fourier", "lattice"}, default "auto"
        How the characteristic function is inverted where there is no closed form.

    Notes
    -----
    Probabilities have an absolute error near 1e-15, and in light tails a relative error near 1e-13. What cannot
    reach 1e-12 issues an :class:`AccuracyWarning` that tells its error.

    Examples
    --------
    >>> Y = LinearCombination("expon()", [[1.0, 2.0], [1.0, -1.0]])
    >>> Y.mean().tolist(), Y.var().tolist()
    ([3.0, 0.0], [5.0, 2.0])
    >>> [round(float(p), 12) for p in Y.cdf(2.0)]     # (1 - e^{-1})^2 and 1 - e^{-2}/2
    [0.399576400894, 0.932332358382]
    >>> [round(float(y), 12) for y in Y.ppf(0.5)]
    [2.455873842606, 0.0]
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
        self.weights = np.broadcast_to(w, (*self.shape, w.shape[-1]))
        self.loc = np.broadcast_to(loc_, self.shape)
        self.normal_std = np.broadcast_to(std, self.shape)
        self._rows = self.weights.reshape(-1, w.shape[-1])
        self._block: Block | None = None
        self._origin_noise, self._origin = split_origin(self.noise)
        # Row by row Y = origin + scale X, where X has unit variance.
        largest = np.maximum(np.max(np.abs(self._rows), axis=1), self.normal_std.ravel())
        unit = np.where(largest > 0, largest, 1.0)
        relative = ((self._rows / unit[:, None]) ** 2 @ self.counts) * self.noise.var()
        relative = relative + (self.normal_std.ravel() / unit) ** 2
        self._scale = unit * np.where(largest > 0, np.sqrt(relative), 1.0)
        self._start = self.loc.ravel() + self._origin * (self._rows @ self.counts)

    def __repr__(self) -> str:
        return f"<LinearCombination: shape {self.shape}, {self.weights.shape[-1]} weights of {self.noise!r}>"

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
        >>> float(LinearCombination("expon()", [1.0, 2.0], loc=1.0).mean())
        4.0
        """
        return self.cumulant(1)

    def var(self) -> FloatArray:
        """Variance s2 sum_j w_j^2 + normal_std^2, of shape S.

        Examples
        --------
        >>> float(LinearCombination("expon()", [1.0, 2.0], normal_std=1.0).var())
        6.0
        """
        return self.cumulant(2)

    def std(self) -> FloatArray:
        """Standard deviation, of shape S.

        Examples
        --------
        >>> float(LinearCombination("norm()", [3.0, 4.0]).std())
        5.0
        """
        return np.sqrt(self.var())

    def skewness(self) -> FloatArray:
        """Skewness kappa_3 / kappa_2^(3/2), of shape S.

        Examples
        --------
        >>> float(LinearCombination("expon()", [-1.0]).skewness())
        -2.0
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.cumulant(3) / self.var() ** 1.5)

    def kurtosis(self) -> FloatArray:
        """Excess kurtosis kappa_4 / kappa_2^2, of shape S.

        Examples
        --------
        >>> float(LinearCombination("expon()", [1.0, 1.0]).kurtosis())
        3.0
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.cumulant(4) / self.var() ** 2)

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the support, each of shape S.

        Examples
        --------
        >>> [float(end) for end in LinearCombination("uniform()", [1.0, -2.0]).support()]
        [-2.0, 1.0]
        """
        ends = [
            np.concatenate(part) for part in zip(*(rows.support for _, rows in self._chunks()), strict=True)
        ]
        low, high = (np.reshape(self._start + self._scale * end, self.shape) for end in ends)
        return low, high

    @overload
    def pdf(self, y: ArrayLike, *, return_error: Literal[False] = False) -> FloatArray: ...
    @overload
    def pdf(self, y: ArrayLike, *, return_error: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def pdf(self, y: ArrayLike, *, return_error: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Density at y.

        Parameters
        ----------
        y : array-like
            Broadcast against S.
        return_error : bool, default False
            Whether to return an estimate of the absolute error, too.

        Returns
        -------
        ndarray of shape broadcast(y.shape, S), or two of them
            A point mass (all weights 0) has density 0, and inf at its point.

        Examples
        --------
        >>> round(float(LinearCombination("expon()", [1.0, 1.0]).pdf(1.0)), 12)    # y e^{-y}
        0.367879441171
        """
        if self.noise.discrete and np.any((self._rows != 0).any(axis=1) & (self.normal_std.ravel() == 0)):
            msg = "a linear combination of discrete noise has no density; cdf, sf and quantiles are there"
            raise TypeError(msg)
        value, error = self._evaluate(y, "pdf")
        return (value, error) if return_error else value

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Logarithm of the density at y, accurate in light tails.

        Examples
        --------
        >>> round(float(LinearCombination("expon()", [1.0, 2.0]).logpdf(100.0)), 9)
        -50.0
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(self.pdf(y), 0.0)))

    @overload
    def cdf(self, y: ArrayLike, *, return_error: Literal[False] = False) -> FloatArray: ...
    @overload
    def cdf(self, y: ArrayLike, *, return_error: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def cdf(self, y: ArrayLike, *, return_error: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Distribution function P(Y <= y).

        Parameters
        ----------
        y : array-like
            Broadcast against S.
        return_error : bool, default False
            Whether to return an estimate of the absolute error, too.

        Returns
        -------
        ndarray of shape broadcast(y.shape, S), or two of them

        Examples
        --------
        >>> round(float(LinearCombination("uniform()", [1.0, 1.0, 1.0]).cdf(1.0)), 12)
        0.166666666667
        """
        value, error = self._evaluate(y, "cdf")
        self._warn(error)
        return (value, error) if return_error else value

    @overload
    def sf(self, y: ArrayLike, *, return_error: Literal[False] = False) -> FloatArray: ...
    @overload
    def sf(self, y: ArrayLike, *, return_error: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def sf(self, y: ArrayLike, *, return_error: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Survival function P(Y > y), accurate where it is small.

        Parameters
        ----------
        y : array-like
            Broadcast against S.
        return_error : bool, default False
            Whether to return an estimate of the absolute error, too.

        Returns
        -------
        ndarray of shape broadcast(y.shape, S), or two of them

        Examples
        --------
        >>> f"{LinearCombination('expon()', [1.0, 2.0]).sf(80.0):.12g}"     # 2 e^{-y/2} - e^{-y}
        '8.49670850969e-18'
        """
        value, error = self._evaluate(y, "sf")
        self._warn(error)
        return (value, error) if return_error else value

    @overload
    def ppf(self, q: ArrayLike, *, return_error: Literal[False] = False) -> FloatArray: ...
    @overload
    def ppf(self, q: ArrayLike, *, return_error: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def ppf(self, q: ArrayLike, *, return_error: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Quantile: the smallest y with P(Y <= y) >= q.

        Parameters
        ----------
        q : array-like
            Probabilities, broadcast against S; 0 and 1 give the ends of the support.
        return_error : bool, default False
            Whether to return an estimate of the error, too, as that of the probability at the quantile.

        Returns
        -------
        ndarray of shape broadcast(q.shape, S), or two of them

        Examples
        --------
        >>> Y = LinearCombination("expon()", [[1.0, 2.0], [2.0, 2.0]])
        >>> Y.ppf(np.array([0.05, 0.95])[:, None]).shape
        (2, 2)
        """
        level = _levels("q", q)
        value, error = self._quantile(np.where(level <= 0.5, level, 1 - level), level > 0.5)
        self._warn(error)
        return (value, error) if return_error else value

    @overload
    def isf(self, q: ArrayLike, *, return_error: Literal[False] = False) -> FloatArray: ...
    @overload
    def isf(self, q: ArrayLike, *, return_error: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def isf(self, q: ArrayLike, *, return_error: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Upper quantile: the smallest y with P(Y > y) <= q, accurate for small q.

        Parameters
        ----------
        q : array-like
            Probabilities, broadcast against S.
        return_error : bool, default False
            Whether to return an estimate of the error, too, as that of the probability at the quantile.

        Returns
        -------
        ndarray of shape broadcast(q.shape, S), or two of them

        Examples
        --------
        >>> round(float(LinearCombination("expon()", [1.0, 2.0]).isf(1e-12)), 9)
        56.648416472
        """
        level = _levels("q", q)
        value, error = self._quantile(np.where(level <= 0.5, level, 1 - level), level <= 0.5)
        self._warn(error)
        return (value, error) if return_error else value

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
        >>> low, high = LinearCombination("laplace()", [1.0, 1.0]).interval(0.9)
        >>> bool(abs(low + high) < 1e-12)
        True
        """
        tail = 0.5 * (1 - _levels("confidence", confidence))
        return self.ppf(tail), self.isf(tail)

    def hdi(self, confidence: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Shortest interval that holds this probability; for a density with one peak, the highest-density interval.

        Parameters
        ----------
        confidence : array-like
            Probability inside, broadcast against S.

        Returns
        -------
        low, high : ndarray of shape broadcast(confidence.shape, S)

        Examples
        --------
        >>> low, high = LinearCombination("expon()", [1.0]).hdi(0.5)
        >>> round(float(low), 9), round(float(high), 9)
        (0.0, 0.693147181)
        """
        return shortest(self.ppf, self.isf, _levels("confidence", confidence), self.shape)

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
            tau = self.normal_std.ravel()[part] / scale
            yield part, Rows(self._origin_noise, v, self.counts, np.where(tau < 1e-17, 0.0, tau**2))

    def _blocks(self) -> Iterator[tuple[slice, Block]]:
        if self._block is not None:
            yield slice(None), self._block
            return
        for part, rows in self._chunks():
            block = Block(rows, self.method)
            if len(rows) == len(self._rows):
                self._block = block
            yield part, block

    def _by_rows(
        self,
        arguments: list[NDArray[Any]],
        function: Callable[[Block, slice, list[NDArray[Any]]], tuple[FloatArray, FloatArray]],
    ) -> tuple[FloatArray, FloatArray]:
        """Hand each block its rows of the broadcast arguments as (rows, k) arrays, and put the results in shape."""
        shape = np.broadcast_shapes(arguments[0].shape, self.shape)
        number = np.broadcast_to(np.arange(len(self._rows)).reshape(self.shape), shape)
        order = np.argsort(number, axis=None, kind="stable").reshape(
            len(self._rows), -1 if number.size else 0
        )
        tables = [np.broadcast_to(argument, shape).ravel()[order] for argument in arguments]
        value, error = np.empty(order.shape), np.empty(order.shape)
        if order.size:
            for part, block in self._blocks():
                value[part], error[part] = function(block, part, [table[part] for table in tables])
        return self._in_shape(value, order, shape), self._in_shape(error, order, shape)

    def _in_shape(self, table: FloatArray, order: IntArray, shape: tuple[int, ...]) -> FloatArray:
        flat = np.empty(order.size)
        flat[order] = table
        return flat.reshape(shape)

    def _evaluate(self, y: ArrayLike, name: str) -> tuple[FloatArray, FloatArray]:
        points = np.asarray(y, dtype=float)

        def values(block: Block, part: slice, tables: list[NDArray[Any]]) -> tuple[FloatArray, FloatArray]:
            start, scale = self._start[part, None], self._scale[part, None]
            x = (tables[0] - start) / scale
            known = np.isfinite(x)
            at = block(np.where(known, x, 0.0))
            end = {"pdf": (0.0, 0.0), "cdf": (0.0, 1.0), "sf": (1.0, 0.0)}[name]
            value = np.where(known, getattr(at, name), np.where(x < 0, end[0], end[1]))
            value = np.where(np.isnan(x), np.nan, value)
            error = np.where(known, at.pdf_error if name == "pdf" else at.error, 0.0)
            return (value / scale, error / scale) if name == "pdf" else (value, error)

        return self._by_rows([points], values)

    def _quantile(self, p: FloatArray, upper: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        def values(block: Block, part: slice, tables: list[NDArray[Any]]) -> tuple[FloatArray, FloatArray]:
            x, error = block.quantile(tables[0], tables[1].astype(bool))
            return self._start[part, None] + self._scale[part, None] * x, error

        return self._by_rows([p, upper], values)

    def _warn(self, error: FloatArray) -> None:
        worst = float(np.max(error, initial=0.0))
        if worst > ACCURACY:
            message = f"probabilities have errors of up to {worst:.1e}, more than {ACCURACY:.0e}"
            warnings.warn(message, AccuracyWarning, stacklevel=3)


def _finite(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=float)
    if not np.all(np.isfinite(array)):
        msg = f"{name} must be finite numbers, got NaN or infinity"
        raise ValueError(msg)
    return array


def _levels(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=float)
    if not np.all((array >= 0) & (array <= 1)):
        msg = f"{name} must lie between 0 and 1, got {array}"
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
