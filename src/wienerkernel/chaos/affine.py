"""The law of an affine function of a germ."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import ArrayLike

from .._typing import ComplexArray, FloatArray, RandomState
from ..noise import Noise

__all__ = ["Affine"]


class Affine(Noise):
    """The law of offset + slope xi; a negative slope requires a continuous germ."""

    def __init__(self, germ: Noise, offset: float, slope: float) -> None:
        self.germ, self.offset, self.slope = germ, float(offset), float(slope)
        self.up = slope > 0

    def _made_of(self) -> tuple[Hashable, ...]:
        return self.germ, self.offset, self.slope

    def _xi(self, x: ArrayLike) -> FloatArray:
        return (np.asarray(x, dtype=float) - self.offset) / self.slope

    def _ordered(self, ends: tuple[float, float]) -> tuple[float, float]:
        return ends if self.up else ends[::-1]

    def cumulants(self, order: int = 8) -> FloatArray:
        kappa = self.germ.cumulants(order) * self.slope ** np.arange(1, order + 1)
        kappa[0] += self.offset
        return kappa

    def logcf(self, t: ArrayLike) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        return self.germ.logcf(self.slope * t) + 1j * self.offset * t

    def pdf(self, x: ArrayLike) -> FloatArray:
        return self.germ.pdf(self._xi(x)) / abs(self.slope)

    def cdf(self, x: ArrayLike) -> FloatArray:
        return (self.germ.cdf if self.up else self.germ.sf)(self._xi(x))

    def sf(self, x: ArrayLike) -> FloatArray:
        return (self.germ.sf if self.up else self.germ.cdf)(self._xi(x))

    def ppf(self, q: ArrayLike) -> FloatArray:
        return self.offset + self.slope * (self.germ.ppf if self.up else self.germ.isf)(q)

    def isf(self, q: ArrayLike) -> FloatArray:
        return self.offset + self.slope * (self.germ.isf if self.up else self.germ.ppf)(q)

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        return self.offset + self.slope * self.germ.rvs(size, random_state)

    def support(self) -> tuple[float, float]:
        lower, upper = self.germ.support()
        return self._ordered((self.offset + self.slope * lower, self.offset + self.slope * upper))

    def pdf_near(self, point: float, offset: FloatArray) -> FloatArray:
        return self.germ.pdf_near(float(self._xi(point)), offset / self.slope) / abs(self.slope)

    def singular_points(self) -> FloatArray:
        return np.sort(self.offset + self.slope * self.germ.singular_points())

    def strip(self) -> tuple[float, float]:
        lower, upper = self.germ.strip()
        return self._ordered((lower / self.slope, upper / self.slope))

    def sector(self) -> float:
        return self.germ.sector()
