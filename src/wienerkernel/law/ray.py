"""Fourier inversion as a sum over nodes on a ray t = r e^{-i theta}, the last step of most methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._typing import ComplexArray, FloatArray, IntArray
from .rows import Rows

__all__ = ["Inversion", "RaySum", "Values", "between", "by_key", "empty", "joined", "put"]

CHUNK = 2**15
"""Numbers that are processed at once: they stay in the cache."""
EPS = float(np.finfo(float).eps)
VANISHED = 1e-14
"""Bound on the integral beyond a frequency above which |phi| < 3e-15."""
RESOLVED = 1e-3
"""Error of every second node below which halving the step squares it."""


class Values(NamedTuple):
    """Density, distribution function, survival function and their errors at (rows, k) points."""

    pdf: FloatArray
    cdf: FloatArray
    sf: FloatArray
    error: FloatArray
    pdf_error: FloatArray


def empty(shape: tuple[int, ...]) -> Values:
    """Values to be filled in."""
    return Values(*(np.empty(shape) for _ in Values._fields))


def put(result: Iterable[FloatArray], at: Any, values: Iterable[FloatArray], chosen: Any = ...) -> None:
    """Write ``values[chosen]`` into ``result[at]``, field by field."""
    for out, value in zip(result, values, strict=True):
        out[at] = value[chosen]


def joined(parts: Iterable[Values]) -> Values:
    """Values of consecutive rows."""
    return Values(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def between(
    below: NDArray[np.bool_], above: NDArray[np.bool_], pdf: FloatArray, cdf: FloatArray, sf: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Density, distribution and survival function, with no mass where x is ``below`` or ``above``."""
    return (
        np.where(below | above, 0.0, pdf),
        np.where(below, 0.0, np.where(above, 1.0, cdf)),
        np.where(below, 1.0, np.where(above, 0.0, sf)),
    )


def by_key(
    keys: IntArray, x: FloatArray, index: IntArray, function: Callable[[int, FloatArray, IntArray], Values]
) -> Values:
    """Values at the points ``x`` of shape (n, k), from a function of a key and the points and rows that have it."""
    result = empty(x.shape)
    for key in np.unique(keys):
        chosen = keys == key
        some = np.flatnonzero(chosen.any(axis=1))
        # points with another key are replaced by one of the same row that has this key
        lent = np.take_along_axis(x, np.argmax(chosen, axis=1)[:, None], axis=1)
        values = function(int(key), np.where(chosen, x, lent)[some], index[some])
        put(result, chosen, values, chosen[some])
    return result


class Inversion(Protocol):
    """The law of standardized rows, prepared by one method.

    ``relative`` says whether the small tail has relative accuracy already.
    """

    relative: bool

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index`` of shape (n,)."""


class RaySum:
    """Quadrature of the inversion integrals on one ray, for all rows.

    f(x) = Re int e^{-itx} phi(t) dt / pi,  F(x) = 1/2 - (Im int e^{-itx} phi(t) dt/t - theta) / pi

    Increasing nodes ``r`` have the weights ``step``, both of shape (K,). The angle ``theta`` of the ray has the sign of
    the points that it serves; 0 serves all. ``alias``, of shape (rows,), bounds the error of the step; without it, it is
    estimated: every second node alone has an error d, and halving the step squares the error. ``complete`` says that phi
    stays below :data:`VANISHED` beyond the last node, and ``log_phi``, of shape (rows, K), is log phi if it is known.
    """

    def __init__(
        self,
        rows: Rows,
        r: FloatArray,
        step: FloatArray,
        theta: float,
        alias: FloatArray | None = None,
        complete: bool = False,
        log_phi: ComplexArray | None = None,
    ) -> None:
        logcf = rows.logcf_on_ray(r, theta) if log_phi is None else log_phi
        gone = ~np.isfinite(logcf)
        self.log_modulus = np.where(gone, -745.0, np.maximum(logcf.real, -745.0))
        self.phase = np.where(gone, 0.0, logcf.imag)
        self.modulus = np.exp(self.log_modulus)
        self.r, self.theta, self.alias = r, theta, alias
        self.step = step / np.pi
        self.rows, self.complete = rows, complete

    @cached_property
    def beyond(self) -> tuple[FloatArray, FloatArray]:
        """Bounds on what distribution and density miss beyond the last node, where x = 0; each of shape (rows,)."""
        if self.complete:
            return np.full(len(self.rows), VANISHED), np.full(len(self.rows), VANISHED * self.r[-1])
        over_r, plain = self.rows.beyond(float(self.r[-1]), self.theta)
        return over_r / np.pi, plain / np.pi

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
        result = empty(x.shape)
        rows = max(1, CHUNK // max(1, x.shape[1] * len(self.r)))
        width = max(1, CHUNK // len(self.r))
        for first in range(0, len(x), rows):
            for i in range(0, x.shape[1], width):
                part = slice(first, first + rows), slice(i, i + width)
                put(result, part, self._block(x[part], index[part[0]]))
        return result

    def _block(self, x: FloatArray, index: IntArray) -> Values:
        cos, sin = np.cos(self.theta), np.sin(self.theta)
        last = len(self.r)
        if self.theta:  # nodes past e^{-40} contribute nothing
            damping = np.min(x * sin, initial=np.inf)
            last = min(last, int(np.searchsorted(self.r * damping, 40.0)) + 2)
        r, step = self.r[:last], self.step[:last]
        rx = r * x[..., None]
        modulus = self.modulus[index, None, :last]
        if self.theta:
            modulus = np.exp(self.log_modulus[index, None, :last] - sin * rx)
        # e^{i a} from tan(a/2): one transcendental function instead of two
        rx *= -cos
        rx += self.phase[index, None, :last]
        rx *= 0.5
        half = np.tan(rx, out=rx)
        square = half * half
        scaled = modulus / (1 + square)
        half *= 2 * scaled
        square -= 1.0
        square *= scaled
        real, imag = square, half  # the real part with the opposite sign
        over_r = step / r
        # every second node with the opposite sign shows the error of the step
        sign = np.where(np.arange(last) % 2, -1.0, 1.0)
        by_step, by_over_r = np.stack([step, step * sign], axis=1), np.stack([over_r, over_r * sign], axis=1)
        sums, over = imag @ by_step, imag @ by_over_r
        pdf, coarse = np.moveaxis(sin * sums - cos * (real @ by_step), -1, 0)
        excess = over[..., 0] - self.theta / np.pi
        sizes = modulus @ np.stack([over_r, step], axis=1)
        error = EPS * (1 + sizes[..., 0]) + self._left_out(0, modulus, x, index)
        pdf_error = EPS * sizes[..., 1] + self._left_out(1, modulus * r, x, index)
        if self.alias is None:
            error = error + np.where(np.abs(over[..., 1]) < RESOLVED, over[..., 1] ** 2, np.abs(over[..., 1]))
            pdf_error = pdf_error + coarse**2 / np.maximum(np.abs(pdf), EPS)
        else:
            error = error + self.alias[index, None]
            pdf_error = pdf_error + self.alias[index, None]
        return Values(pdf, 0.5 - excess, 0.5 + excess, error, pdf_error)

    def _left_out(self, which: int, terms: FloatArray, x: FloatArray, index: IntArray) -> FloatArray:
        """Bound on the part of the integral beyond the last node in use."""
        if terms.shape[-1] < len(self.r):  # damped to e^{-40} there, and ever faster
            return np.broadcast_to(terms[..., -1], x.shape)
        damping = np.sin(self.theta) * self.r[-1] * x
        with np.errstate(invalid="ignore"):
            bound = self.beyond[which][index, None] * np.exp(-damping)
        return np.where(damping > 100.0, 0.0, bound)
