"""A batch of linear combinations: what it is made of, its moments and its draws."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from ..noise import Noise, as_noise
from ..noise.base import as_generator
from .dispatch import METHODS
from .rows import Rows, split
from .terms import Terms

__all__ = ["Combination"]

CHUNK = 2**20
MAX_ROWS = 4096
"""Weights and rows that are worked on at once."""


NORMAL = as_noise(None)


class Combination:
    """Y = loc + sum_j w_j M_j + N(0, normal_std^2), row by row Y = start + scale X with X of unit variance.

    The parameters are those of :class:`~wienerkernel.LinearCombination`.
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
        self.terms = _terms(noise, weights, counts)
        loc_, std = _finite("loc", loc), _finite("normal_std", normal_std)
        if np.any(std < 0):
            msg = f"normal_std must be at least 0, got {std.min()}"
            raise ValueError(msg)
        if method not in METHODS:
            msg = f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}"
            raise ValueError(msg)
        shapes = [w.shape[:-1] for _, w, _ in self.terms]
        self.shape: tuple[int, ...] = np.broadcast_shapes(*shapes, loc_.shape, std.shape)
        self.method = method
        self.verbose = verbose
        self.terms = [(law, np.broadcast_to(w, (*self.shape, w.shape[-1])), n) for law, w, n in self.terms]
        self.loc = np.broadcast_to(loc_, self.shape)
        self.normal_std = np.broadcast_to(std, self.shape)
        self._standardize()

    def _standardize(self) -> None:
        """Write Y row by row as start + scale X, where X has unit variance and terms of few standard laws."""
        start, tau = self.loc.ravel(), self.normal_std.ravel()
        moved = np.zeros(len(start))  # what the rounding of the start is relative to
        size = int(np.prod(self.shape, dtype=int))
        largest = tau
        columns: dict[Noise, list[tuple[FloatArray, FloatArray]]] = {}
        spreads: list[tuple[FloatArray, FloatArray, float]] = []
        for law, weights, counts in self.terms:
            w = weights.reshape(size, weights.shape[-1])
            standard, origin, scale, normal = split(law)
            start = start + origin * (w @ counts)
            moved = moved + abs(origin) * (np.abs(w) @ counts)
            largest = np.maximum(largest, np.max(np.abs(w), axis=1) * law.std())
            spreads.append((w, counts, law.std()))
            columns.setdefault(standard, []).append((scale * w, counts))
            if normal:
                columns.setdefault(NORMAL, []).append((normal * w, counts))
        unit = np.where(largest > 0, largest, 1.0)
        relative = (tau / unit) ** 2
        for w, counts, std in spreads:
            relative = relative + (w / unit[:, None] * std) ** 2 @ counts
        self._start, self._moved = start, np.where(moved > 0, moved + np.abs(start), 0.0)
        self._scale = unit * np.where(largest > 0, np.sqrt(relative), 1.0)
        # what is normal needs no terms
        self._normal = columns.pop(NORMAL, [])
        self._columns = {
            law: (np.concatenate([w for w, _ in parts], axis=1), np.concatenate([n for _, n in parts]))
            for law, parts in columns.items()
        }

    @property
    def noise(self) -> Noise | tuple[Noise, ...]:
        """The law of the terms, or the laws of several."""
        return self.terms[0][0] if len(self.terms) == 1 else tuple(law for law, _, _ in self.terms)

    def __repr__(self) -> str:
        parts = ", ".join(f"{w.shape[-1]} weights of {law!r}" for law, w, _ in self.terms)
        return f"<{type(self).__name__}: shape {self.shape}, {parts}>"

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
        total = self.loc if order == 1 else self.normal_std**2 if order == 2 else np.zeros(self.shape)
        for law, weights, counts in self.terms:
            kappa = law.mean() if order == 1 else law.var() if order == 2 else law.cumulants(int(order))[-1]
            power = weights ** int(order) @ counts
            # a term of weight 0 does not ask for moments that do not exist
            total = total + np.where(np.any(weights != 0, axis=-1), kappa, 0.0) * power
        return np.asarray(total)

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
        low, high = self.loc, self.loc
        for law, weights, counts in self.terms:
            ends = Terms(law, weights.reshape(-1, weights.shape[-1]), counts).support
            low, high = low + ends[0].reshape(self.shape), high + ends[1].reshape(self.shape)
        wide = self.normal_std > 0
        return np.where(wide, -np.inf, low), np.where(wide, np.inf, high)

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
        n, size = int(np.prod(lead, dtype=int)), int(np.prod(self.shape, dtype=int))
        result = np.zeros((n, size))
        for law, weights, counts in self.terms:
            first, total = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(int), int(counts.sum())
            step = max(1, 2**22 // total)
            for start in range(0, n, step):
                stop = min(start + step, n)
                draws = law.rvs((stop - start, total), random_state=generator)
                result[start:stop] += (
                    np.add.reduceat(draws, first, axis=1) @ weights.reshape(size, weights.shape[-1]).T
                )
        result += self.loc.ravel()
        if np.any(self.normal_std > 0):
            result += self.normal_std.ravel() * generator.standard_normal(result.shape)
        return result.reshape(*lead, *self.shape)

    def _chunks(self) -> Iterator[tuple[slice, Rows]]:
        width = sum(w.shape[1] for w, _ in self._columns.values())
        step = max(1, min(MAX_ROWS, CHUNK // max(1, width)))
        total = sum(float(counts.sum()) for _, counts in self._columns.values())
        for start in range(0, len(self._scale), step):
            part = slice(start, start + step)
            scale = self._scale[part]
            tau2 = (self.normal_std.ravel()[part] / scale) ** 2
            for w, counts in self._normal:
                tau2 = tau2 + (w[part] / scale[:, None]) ** 2 @ counts
            terms = []
            for law, (w, counts) in self._columns.items():
                v = w[part] / scale[:, None]
                # Terms that float64 cannot see beside the others would only stretch the tables.
                v = np.where(np.abs(v) * law.std() * np.sqrt(total) < 1e-17, 0.0, v)
                terms.append(Terms(law, *_merged(v, counts)))
            # rows without terms need a law all the same
            terms = terms or [Terms(NORMAL, np.zeros((len(scale), 1)), np.ones(1))]
            yield part, Rows(tuple(terms), np.where(tau2 < 1e-34, 0.0, tau2))


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


def _terms(noise: Any, weights: Any, counts: Any) -> list[tuple[Noise, FloatArray, FloatArray]]:
    """Laws, weights (..., D) and counts (D,): one of each, or one for each law of a list."""
    several = isinstance(noise, list | tuple) and not all(isinstance(part, Real) for part in noise)
    if not several:
        return [_term(noise, weights, counts)]
    parts = [None] * len(noise) if counts is None else counts
    if not len(noise) == len(weights) == len(parts):
        msg = f"{len(noise)} laws need as many arrays of weights and of counts, got {len(weights)} and {len(parts)}"
        raise ValueError(msg)
    return [_term(*part) for part in zip(noise, weights, parts, strict=True)]


def _term(noise: Any, weights: ArrayLike, counts: ArrayLike | None) -> tuple[Noise, FloatArray, FloatArray]:
    law, w = as_noise(noise), _finite("weights", weights)
    if w.ndim == 0 or w.shape[-1] == 0:
        msg = f"weights must have shape (..., D) with D >= 1, got shape {w.shape}"
        raise ValueError(msg)
    return law, w, _counts(counts, w.shape[-1])


def _counts(counts: ArrayLike | None, width: int) -> FloatArray:
    if counts is None:
        return np.ones(width)
    array = np.asarray(counts, dtype=float)
    if array.shape != (width,) or not np.all((array >= 1) & (array == np.rint(array))):
        msg = f"counts must be {width} positive integers, one a weight, got {counts!r}"
        raise ValueError(msg)
    return array
