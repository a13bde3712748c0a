"""Y = loc + sum_j w_j M_j + N(0, normal_std^2), a whole batch of rows of weights at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import FloatArray, IntArray
from .block import Block
from .combination import Combination
from .hdi import shortest
from .progress import shown
from .ray import EPS

__all__ = ["AccuracyWarning", "LinearCombination"]

ACCURACY = 1e-12


class AccuracyWarning(UserWarning):
    """A probability has an error larger than 1e-12.

    Examples
    --------
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", AccuracyWarning)   # rather stop than be less exact
    ...     round(float(LinearCombination("expon()", [1.0, 1.0]).sf(2.0)), 9)   # 3 exp(-2)
    0.40600585
    """


class LinearCombination(Combination):
    """Law of Y = loc + sum_j w_j M_j + N(0, normal_std^2) with independent M_j of one law or of several.

    Parameters
    ----------
    noise : frozen scipy.stats law, str, array-like of shape (n,) or Noise, or list of them
        Law of M: anything that :func:`~wienerkernel.as_noise` accepts. A list of laws asks for as many arrays of
        weights; a list of numbers is one law, that of recorded residuals.
    weights : array-like of shape (..., D), or list of them
        One row of weights for each linear combination; these have the shape S = weights.shape[:-1], broadcast with
        ``loc`` and ``normal_std``.
    counts : array-like of int of shape (D,), or list of them, optional
        Number of independent copies of M_j that share the weight w_j; 1 by default.
    loc : array-like, default 0
    normal_std : array-like, default 0
        Standard deviation of an independent normal part.
    method : {"auto", "contour", "convolution", "fourier", "lattice"}, default "auto"
        How the law is computed where there is no closed form: by inverting the characteristic function on a contour or
        by a Fourier series, by convolving few terms, or on a lattice that brackets it.
    verbose : bool, default False
        Tell on standard error how many rows are done, once it takes more than two seconds.

    Notes
    -----
    Probabilities have an absolute error near 1e-15, and in light tails a relative error near 1e-13. What cannot
    reach 1e-12 issues an :class:`AccuracyWarning` that states its error. The true error is at most ten times that.

    Examples
    --------
    >>> Y = LinearCombination("expon()", [[1.0, 2.0], [1.0, -1.0]])
    >>> Y.mean().tolist(), Y.var().tolist()
    ([3.0, 0.0], [5.0, 2.0])
    >>> [round(float(p), 12) for p in Y.cdf(2.0)]     # (1 - e^{-1})^2 and 1 - e^{-2}/2
    [0.399576400894, 0.932332358382]
    >>> [round(float(y), 12) + 0.0 for y in Y.ppf(0.5)]
    [2.455894354599, 0.0]

    An exponential variable and two that are uniform:

    >>> Y = LinearCombination(["expon()", "uniform()"], [[1.0], [2.0, 0.5]])
    >>> round(float(Y.mean()), 12), round(float(Y.cdf(1.0)), 12)
    (2.25, 0.113651218541)
    """

    _block: Block | None = None

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
            Whether to return a bound on the absolute error, too, which holds within a factor of ten.

        Returns
        -------
        ndarray of shape broadcast(y.shape, S), or two of them
            A point mass (all weights 0) has density 0, and inf at its point.

        Examples
        --------
        >>> round(float(LinearCombination("expon()", [1.0, 1.0]).pdf(1.0)), 12)    # y e^{-y}
        0.367879441171
        """
        if np.any(self._atomic):
            laws = " and ".join(repr(law) for law, _, _ in self.terms if law.atomic)
            msg = (
                f"a linear combination of {laws}, which takes values with positive probability, has no density; use cdf, "
                "sf or quantiles"
            )
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
            Whether to return a bound on the absolute error, too, which holds within a factor of ten.

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
            Whether to return a bound on the absolute error, too, which holds within a factor of ten.

        Returns
        -------
        ndarray of shape broadcast(y.shape, S), or two of them

        Examples
        --------
        >>> f"{LinearCombination('expon()', [1.0, 2.0]).sf(80.0):.12g}"     # 2 e^{-y/2} - e^{-y}
        '8.49670851058e-18'
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
            Whether to return a bound on the error of the probability at the quantile, too.

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
            Whether to return a bound on the error of the probability at the quantile, too.

        Returns
        -------
        ndarray of shape broadcast(q.shape, S), or two of them

        Examples
        --------
        >>> round(float(LinearCombination("expon()", [1.0, 2.0]).isf(1e-12)), 9)
        56.648336593
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

        Of a density with several peaks it is the shortest of all intervals, found by a scan.

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

    @cached_property
    def _atomic(self) -> NDArray[np.bool_]:
        """Whether a law has atoms, because it has terms and all of them have, shape S."""
        used = [np.any(weights != 0, axis=-1) for _, weights, _ in self.terms]
        pairs = list(zip(self.terms, used, strict=True))
        smooth = np.any([some & (not law.atomic) for (law, _, _), some in pairs], axis=0)
        return np.asarray(np.any(used, axis=0) & ~smooth & (self.normal_std == 0))

    def _blocks(self) -> Iterator[tuple[slice, Block]]:
        if self._block is not None:
            yield slice(None), self._block
            return
        for part, rows in self._chunks():
            block = Block(rows, self.method)
            if len(rows) == len(self._scale):
                self._block = block
            yield part, block

    def _by_rows(
        self,
        arguments: list[NDArray[Any]],
        function: Callable[[Block, slice, list[NDArray[Any]]], tuple[FloatArray, FloatArray]],
    ) -> tuple[FloatArray, FloatArray]:
        """Hand each block its rows of the broadcast arguments as (rows, k) arrays, and put the results in shape."""
        shape = np.broadcast_shapes(arguments[0].shape, self.shape)
        number = np.broadcast_to(np.arange(len(self._scale)).reshape(self.shape), shape)
        order = np.argsort(number, axis=None, kind="stable").reshape(
            len(self._scale), -1 if number.size else 0
        )
        tables = [np.broadcast_to(argument, shape).ravel()[order] for argument in arguments]
        value, error = np.empty(order.shape), np.empty(order.shape)
        if order.size:
            for part, block in shown(self._blocks(), len(self._scale), self.verbose):
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
            # the place of x is known up to rounding
            shift = EPS * (np.abs(x) + self._moved[part, None] / scale)
            rounding = np.nan_to_num(at.pdf, nan=0.0, posinf=0.0) * np.where(known, shift, 0.0)
            error = np.where(known, at.pdf_error if name == "pdf" else np.fmin(at.error + rounding, 1.0), 0.0)
            value = np.where(np.isnan(x), np.nan, getattr(at, name))
            return (value / scale, error / scale) if name == "pdf" else (value, error)

        value, error = self._by_rows([points], values)
        # Outside the support all is exact, whatever a standardized y rounds to.
        low, high = self.support()
        below, above = points < low, points > high
        if name != "pdf":
            inside = (low < high) & ~self._atomic
            below, above = below | ((points == low) & inside), above | ((points == high) & inside)
        outside = {"pdf": (0.0, 0.0), "cdf": (0.0, 1.0), "sf": (1.0, 0.0)}[name]
        value = np.where(below, outside[0], np.where(above, outside[1], value))
        return value, np.where(below | above, 0.0, error)

    def _quantile(self, p: FloatArray, upper: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        def values(block: Block, part: slice, tables: list[NDArray[Any]]) -> tuple[FloatArray, FloatArray]:
            x, error = block.quantile(tables[0], tables[1].astype(bool))
            return self._start[part, None] + self._scale[part, None] * x, error

        value, error = self._by_rows([p, upper], values)
        low, high = self.support()
        return np.where(p > 0, value, np.where(upper, high, low)), error

    def _warn(self, error: FloatArray) -> None:
        worst = float(np.max(error, initial=0.0))
        if worst > ACCURACY:
            message = f"probabilities have errors of up to {worst:.1e}, more than {ACCURACY:.0e}"
            warnings.warn(message, AccuracyWarning, stacklevel=3)


def _levels(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=float)
    if not np.all((array >= 0) & (array <= 1)):
        msg = f"{name} must lie between 0 and 1, got {array}"
        raise ValueError(msg)
    return array
