"""Y = loc + sum_j w_j M_j + N(0, normal_std^2), a whole batch of rows of weights at once."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from ..noise import Noise, as_noise
from ..noise.base import as_generator
from ..text import check_choice
from .batch import Batch, Term
from .derived import DerivedMethods, as_levels
from .dispatch import METHODS
from .divisible import check_counts, is_whole, power

__all__ = ["AccuracyWarning", "LinearCombination"]

ACCURACY = 1e-12
"""Error of a probability that triggers a warning."""
DRAWS = 2**22
"""Random numbers held at once, 32 MB."""


class AccuracyWarning(UserWarning):
    """A probability has an error larger than 1e-12.

    Examples
    --------
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", AccuracyWarning)   # an inaccurate result is an error
    ...     round(float(LinearCombination("expon()", [1.0, 1.0]).sf(2.0)), 9)   # 3 exp(-2)
    0.40600585
    """


class LinearCombination(DerivedMethods):
    """Law of Y = loc + sum_j w_j M_j + N(0, normal_std^2) with independent M_j of one law or of several.

    Parameters
    ----------
    noise : frozen scipy.stats law, str, array-like of shape (n,) or Noise, or list of them
        Law of M: anything that :func:`~wienerkernel.as_noise` accepts. A list of laws needs as many arrays of
        weights; a list of numbers is one law, that of recorded residuals.
    weights : array-like of shape (..., D), or list of them
        One row of weights for each linear combination; these have the shape S = weights.shape[:-1], broadcast with
        ``loc`` and ``normal_std``.
    counts : array-like of shape (D,), or list of them, optional
        Number of independent copies of M_j that share the weight w_j; 1 by default. A count n need not be whole if
        the law is infinitely divisible (gamma, norm, poisson, nbinom, laplace, invgauss, lomax, ...): the term is then
        w_j times the variable whose characteristic function is that of M to the power n.
    loc : array-like, default 0
    normal_std : array-like, default 0
        Standard deviation of an independent normal part.
    method : {"auto", "contour", "convolution", "fourier", "lattice"}, default "auto"
        How the law is computed where there is no closed form: by inverting the characteristic function on a contour or
        by a Fourier series, by convolving few terms, or on a lattice that brackets it.
    verbose : bool, default False
        Show progress on stderr once a computation takes more than two seconds.

    Notes
    -----
    Probabilities have an absolute error near 1e-15, and in light tails a relative error near 1e-13. If an error may
    exceed 1e-12, an :class:`AccuracyWarning` states it. The true error is at most ten times the stated one.

    Examples
    --------
    >>> Y = LinearCombination("expon()", [[1.0, 2.0], [1.0, -1.0]])
    >>> Y.mean().tolist(), Y.var().tolist()
    ([3.0, 0.0], [5.0, 2.0])
    >>> [round(float(p), 12) for p in Y.cdf(2.0)]     # (1 - e^{-1})^2 and 1 - e^{-2}/2
    [0.399576400894, 0.932332358382]
    >>> [round(float(y), 12) + 0.0 for y in Y.ppf(0.5)]
    [2.455894354599, 0.0]

    An exponential variable and two uniform ones:

    >>> Y = LinearCombination(["expon()", "uniform()"], [[1.0], [2.0, 0.5]])
    >>> round(float(Y.mean()), 12), round(float(Y.cdf(1.0)), 12)
    (2.25, 0.113651218541)

    A weighted sum of gamma variables of the shapes 0.5 and 2.25:

    >>> Y = LinearCombination("gamma(1)", [1.0, 2.0], counts=[0.5, 2.25])
    >>> float(Y.mean()), float(Y.var())
    (5.0, 9.5)
    """

    def __init__(
        self,
        noise: Any,
        weights: Any,
        *,
        counts: Any = None,
        loc: ArrayLike = 0.0,
        normal_std: ArrayLike = 0.0,
        method: str = "auto",
        verbose: bool = False,
    ) -> None:
        terms = _as_terms(noise, weights, counts)
        loc_, std = _finite("loc", loc), _finite("normal_std", normal_std)
        if np.any(std < 0):
            msg = f"normal_std must be at least 0, got {std.min()}"
            raise ValueError(msg)
        check_choice("method", method, METHODS)
        shapes = [w.shape[:-1] for _, w, _ in terms]
        self.shape: tuple[int, ...] = np.broadcast_shapes(*shapes, loc_.shape, std.shape)
        self.method = method
        self.terms = [(law, np.broadcast_to(w, (*self.shape, w.shape[-1])), n) for law, w, n in terms]
        self.loc, self.normal_std = np.broadcast_to(loc_, self.shape), np.broadcast_to(std, self.shape)
        self._batch = Batch(self.terms, self.loc, self.normal_std, method, verbose)

    @property
    def noise(self) -> Noise | tuple[Noise, ...]:
        """The law of the terms, or the laws of several."""
        return self.terms[0][0] if len(self.terms) == 1 else tuple(law for law, _, _ in self.terms)

    def __repr__(self) -> str:
        parts = ", ".join(f"{w.shape[-1]} weights of {law!r}" for law, w, _ in self.terms)
        return f"<{type(self).__name__}: shape {self.shape}, {parts}>"

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
            Whether to return a bound on the absolute error as well, which holds within a factor of ten.

        Returns
        -------
        ndarray of shape broadcast(y.shape, S), or two of them
            A point mass (all weights 0) has density 0, and inf at its point.

        Examples
        --------
        >>> round(float(LinearCombination("expon()", [1.0, 1.0]).pdf(1.0)), 12)    # y e^{-y}
        0.367879441171
        """
        if np.any(self._batch.atomic):
            laws = " and ".join(repr(law) for law, _, _ in self.terms if law.atomic)
            msg = (
                f"a linear combination of {laws}, which takes values with positive probability, has no density; use cdf, "
                "sf or quantiles"
            )
            raise TypeError(msg)
        value, error = self._batch.values("pdf", np.asarray(y, dtype=float))
        return (value, error) if return_error else value

    def _log_density(self, y: FloatArray) -> FloatArray:
        return self._batch.log_density(y)

    @overload
    def cdf(self, y: ArrayLike, *, return_error: Literal[False] = False) -> FloatArray: ...
    @overload
    def cdf(self, y: ArrayLike, *, return_error: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def cdf(self, y: ArrayLike, *, return_error: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Distribution function P(Y <= y); arguments and shapes as for :meth:`pdf`.

        Examples
        --------
        >>> round(float(LinearCombination("uniform()", [1.0, 1.0, 1.0]).cdf(1.0)), 12)
        0.166666666667
        """
        value, error = self._batch.values("cdf", np.asarray(y, dtype=float))
        return _checked(value, error, return_error)

    @overload
    def sf(self, y: ArrayLike, *, return_error: Literal[False] = False) -> FloatArray: ...
    @overload
    def sf(self, y: ArrayLike, *, return_error: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def sf(self, y: ArrayLike, *, return_error: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Survival function P(Y > y), accurate where it is small; arguments and shapes as for :meth:`pdf`.

        Examples
        --------
        >>> f"{LinearCombination('expon()', [1.0, 2.0]).sf(80.0):.12g}"     # 2 e^{-y/2} - e^{-y}
        '8.49670851058e-18'
        """
        value, error = self._batch.values("sf", np.asarray(y, dtype=float))
        return _checked(value, error, return_error)

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
            Whether to return a bound on the error of the probability at the quantile as well.

        Returns
        -------
        ndarray of shape broadcast(q.shape, S), or two of them

        Examples
        --------
        >>> Y = LinearCombination("expon()", [[1.0, 2.0], [2.0, 2.0]])
        >>> Y.ppf(np.array([0.05, 0.95])[:, None]).shape
        (2, 2)
        """
        level = as_levels("q", q)
        tail = np.minimum(level, 1 - level)
        value, error = self._batch.quantile(tail, level > 0.5)
        return _checked(value, error, return_error, tail)

    @overload
    def isf(self, q: ArrayLike, *, return_error: Literal[False] = False) -> FloatArray: ...
    @overload
    def isf(self, q: ArrayLike, *, return_error: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def isf(self, q: ArrayLike, *, return_error: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Upper quantile: the smallest y with P(Y > y) <= q, accurate for small q; arguments as for :meth:`ppf`.

        Examples
        --------
        >>> round(float(LinearCombination("expon()", [1.0, 2.0]).isf(1e-12)), 9)
        56.648336593
        """
        level = as_levels("q", q)
        tail = np.minimum(level, 1 - level)
        value, error = self._batch.quantile(tail, level <= 0.5)
        return _checked(value, error, return_error, tail)

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
        total = self.loc if order == 1 else self.normal_std**2 if order == 2 else np.zeros(self.shape)
        for law, weights, counts in self.terms:
            kappa = law.mean() if order == 1 else law.var() if order == 2 else law.cumulants(int(order))[-1]
            power_sum = weights ** int(order) @ counts
            # a missing moment does not matter for rows in which the law has no weight
            total = total + np.where(np.any(weights != 0, axis=-1), kappa, 0.0) * power_sum
        return np.asarray(total)

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the support, each of shape S.

        Examples
        --------
        >>> [float(end) for end in LinearCombination("uniform()", [1.0, -2.0]).support()]
        [-2.0, 1.0]
        """
        return self._batch.support

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
        result = np.zeros((int(np.prod(lead, dtype=int)), self.loc.size))
        for law, weights, counts in self._batch.terms:
            step = max(1, int(DRAWS // np.maximum(counts, 1).sum()))
            for start in range(0, len(result), step):
                part = result[start : start + step]
                part += _sums(law, counts, len(part), generator) @ weights.T
        result += self.loc.ravel()
        if np.any(self.normal_std > 0):
            result += self.normal_std.ravel() * generator.standard_normal(result.shape)
        return result.reshape(*lead, *self.shape)


def _finite(name: str, values: ArrayLike) -> FloatArray:
    """A copy of ``values``, which the law keeps; ValueError for NaN or infinity."""
    array = np.array(values, dtype=float)
    if not np.all(np.isfinite(array)):
        msg = f"{name} must be finite numbers, got NaN or infinity"
        raise ValueError(msg)
    return array


def _as_terms(noise: Any, weights: Any, counts: Any) -> list[Term]:
    """One term, or one for each law of a list. A list of numbers is one law, that of recorded residuals."""
    if not isinstance(noise, list | tuple) or all(isinstance(part, Real) for part in noise):
        return [_term(noise, weights, counts)]
    counts = [None] * len(noise) if counts is None else counts
    if not len(noise) == len(weights) == len(counts):
        msg = f"{len(noise)} laws need as many arrays of weights and of counts, got {len(weights)} and {len(counts)}"
        raise ValueError(msg)
    return [_term(*part) for part in zip(noise, weights, counts, strict=True)]


def _term(noise: Any, weights: ArrayLike, counts: ArrayLike | None) -> Term:
    law, w = as_noise(noise), _finite("weights", weights)
    if w.ndim == 0 or w.shape[-1] == 0:
        msg = f"weights must have shape (..., D) with D >= 1, got shape {w.shape}"
        raise ValueError(msg)
    width = w.shape[-1]
    n = np.ones(width) if counts is None else np.array(counts, dtype=float)
    if n.shape != (width,) or not np.all((n > 0) & np.isfinite(n)):
        msg = f"counts must be {width} positive numbers, one per weight, got {counts!r}"
        raise ValueError(msg)
    check_counts(law, n)
    return law, w, n


def _checked(
    value: FloatArray, error: FloatArray, return_error: bool, tail: FloatArray | float = np.inf
) -> FloatArray | tuple[FloatArray, FloatArray]:
    """Warn, on behalf of a public method, of an error above 1e-12, or above the probability in the tail of a quantile."""
    worst = float(np.max(error, initial=0.0))
    lost = (error > tail) & (tail > 0)
    if worst > ACCURACY or lost.any():
        message = f"probabilities have errors of up to {worst:.1e}, more than {ACCURACY:.0e}"
        if lost.any():
            level = np.broadcast_to(tail, lost.shape)[lost].min()
            message = (
                f"quantiles {level:.1e} from 0 or 1 are uncertain: probabilities have errors of {worst:.1e}"
            )
        warnings.warn(message, AccuracyWarning, stacklevel=3)
    return (value, error) if return_error else value


def _sums(law: Noise, counts: FloatArray, size: int, generator: Any) -> FloatArray:
    """Draws of the sums of as many copies as each count says, shape (size, D)."""
    result, whole = np.empty((size, len(counts))), is_whole(counts)
    if whole.any():
        ends = np.cumsum(counts[whole]).astype(int)
        copies = law.rvs((size, int(ends[-1])), random_state=generator)
        result[:, whole] = np.add.reduceat(copies, np.append(0, ends[:-1]), axis=1)
    for column in np.flatnonzero(~whole):
        count = float(counts[column])
        named = power(law, count)
        if named is not None:
            result[:, column] = named.rvs(size, random_state=generator)
        else:
            result[:, column] = LinearCombination(law, [1.0], counts=[count]).ppf(
                generator.uniform(size=size)
            )
    return result
