"""Responses on another scale: the model holds for T(y) = f(x) + s(x) M, and predictions return to the scale of y."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import boxcox, inv_boxcox, log1p

from ._typing import FloatArray

__all__ = ["BoxCox", "Custom", "Transform", "YeoJohnson", "as_transform"]

STEP = 1e-5
NONE = 1.0
"""Exponent of a transform that changes nothing but the units."""
EXPONENT_STD = 0.5
"""Standard deviation of the normal prior of an exponent about `NONE`: the logarithm needs clear evidence of few data."""


class Transform(ABC):
    """An increasing function T of the response.

    ``free`` says whether the exponent ``lam`` is learned, between ``bounds``.
    """

    free = False
    lam = 1.0
    bounds = (0.0, 1.0)

    @abstractmethod
    def __call__(self, y: FloatArray) -> FloatArray:
        """T(y), NaN outside the domain."""

    @abstractmethod
    def inverse(self, z: FloatArray) -> FloatArray:
        """The y with T(y) = z; the end of the domain where z lies outside the range of T."""

    @abstractmethod
    def log_derivative(self, y: FloatArray) -> FloatArray:
        """log T'(y)."""

    def forward(self, y: ArrayLike) -> FloatArray:
        """T(y), -inf below the domain."""
        z = self(np.asarray(y, dtype=float))
        return np.where(np.isnan(z) & ~np.isnan(y), -np.inf, z)

    def log_slope(self, y: ArrayLike) -> FloatArray:
        """log T'(y), -inf outside the domain."""
        inside = np.isfinite(self.forward(y))
        return np.where(inside, self.log_derivative(np.where(inside, y, 1.0)), -np.inf)

    def check(self, y: FloatArray) -> None:
        """Raise ValueError for responses outside the domain."""
        known = np.isfinite(self(y))
        if not np.all(known):
            worst = float(np.ravel(y)[int(np.argmin(np.ravel(known)))])
            raise ValueError(f"transform={self.name!r} is not defined for y = {worst:g}{self.hint}")

    def for_data(self, y: FloatArray) -> Transform:
        """The transform in units that suit the responses ``y``, which must lie in its domain."""
        self.check(y)
        return self

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the transform as a parameter."""

    hint = ""

    def with_exponent(self, lam: float) -> Transform:
        """The transform with another exponent."""
        return replace(self, lam=lam)  # type: ignore[type-var]


@dataclass(frozen=True)
class BoxCox(Transform):
    """unit ((y / unit)^lam - 1) / lam, or unit log(y / unit) for lam = 0; for positive responses.

    The slope at y = unit is 1, so that the values are in units of y. With the geometric mean of the data as unit, the
    Jacobian of the data is 1 for every lam.
    """

    lam: float = 0.5
    unit: float = 1.0
    free: bool = True

    hint = ": it needs positive responses; use transform='yeo-johnson' or None"

    @property
    def name(self) -> str:
        return "box-cox" if self.free or self.lam else "log"

    def __call__(self, y: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            v = np.where(y > 0, y / self.unit, np.nan)
            return np.asarray(self.unit * boxcox(v, self.lam))

    def inverse(self, z: FloatArray) -> FloatArray:
        """The y with T(y) = z, 0 below the range of T."""
        low = -1 / self.lam if self.lam > 0 else -np.inf
        with np.errstate(over="ignore"):
            return np.asarray(self.unit * inv_boxcox(np.maximum(np.asarray(z) / self.unit, low), self.lam))

    def log_derivative(self, y: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return np.asarray((self.lam - 1) * np.log(y / self.unit))

    def for_data(self, y: FloatArray) -> BoxCox:
        """The transform with the geometric mean of the responses as unit."""
        super().for_data(y)
        return BoxCox(self.lam, float(np.exp(np.mean(np.log(y)))), True) if self.free else self


@dataclass(frozen=True)
class YeoJohnson(Transform):
    """Box and Cox's transform of 1 + y / unit, times unit, and its mirror image with 2 - lam for negative y.

    Yeo and Johnson (2000), A new family of power transformations to improve normality or symmetry, Biometrika 87.
    """

    lam: float = 1.0
    unit: float = 1.0
    free: bool = True
    bounds = (0.0, 2.0)
    name = "yeo-johnson"

    def __call__(self, y: FloatArray) -> FloatArray:
        v = np.asarray(y) / self.unit
        up, down = boxcox(1 + np.maximum(v, 0), self.lam), -boxcox(1 - np.minimum(v, 0), 2 - self.lam)
        return np.asarray(self.unit * np.where(v >= 0, up, down))

    def inverse(self, z: FloatArray) -> FloatArray:
        """The y with T(y) = z, infinite outside the range of T."""
        z = np.asarray(z) / self.unit
        with np.errstate(all="ignore"):
            up = inv_boxcox(np.maximum(z, 0), self.lam) - 1
            down = 1 - inv_boxcox(np.maximum(-z, 0), 2 - self.lam)
        return np.asarray(self.unit * np.where(z >= 0, up, down))

    def log_derivative(self, y: FloatArray) -> FloatArray:
        v = np.asarray(y) / self.unit
        return np.asarray((self.lam - 1) * np.sign(v) * log1p(np.abs(v)))

    def for_data(self, y: FloatArray) -> YeoJohnson:
        """The transform with the standard deviation of the responses as unit."""
        return YeoJohnson(self.lam, float(np.std(y)) or 1.0) if self.free else self


@dataclass(frozen=True)
class Custom(Transform):
    """Any increasing function, given with its inverse and its derivative."""

    function: Callable[[Any], Any]
    inverse_function: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    name = "(function, inverse, derivative)"

    def __call__(self, y: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return np.asarray(self.function(np.asarray(y, dtype=float)), dtype=float)

    def inverse(self, z: FloatArray) -> FloatArray:
        """The y with T(y) = z."""
        with np.errstate(all="ignore"):
            return np.asarray(self.inverse_function(np.asarray(z, dtype=float)), dtype=float)

    def log_derivative(self, y: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return np.asarray(np.log(np.asarray(self.derivative(np.asarray(y, dtype=float)), dtype=float)))

    def for_data(self, y: FloatArray) -> Custom:
        """The transform itself, if it is increasing and has the given inverse and derivative on the data."""
        super().for_data(y)
        z, slope = self(y), np.exp(self.log_derivative(y))
        spread = float(np.std(y)) or 1.0
        if not np.allclose(self.inverse(z), y, rtol=1e-6, atol=1e-6 * spread):
            msg = "transform=(function, inverse, derivative): inverse(function(y)) is not y for the responses given"
            raise ValueError(msg)
        near = (self(y + STEP * spread) - self(y - STEP * spread)) / (2 * STEP * spread)
        usable = np.isfinite(near)
        if not np.all(slope > 0) or not np.allclose(near[usable], slope[usable], rtol=1e-2):
            msg = "transform=(function, inverse, derivative): the derivative must be positive and match the function"
            raise ValueError(msg)
        return self


NAMES = {"log": BoxCox(0.0, free=False), "box-cox": BoxCox(), "yeo-johnson": YeoJohnson()}


def as_transform(transform: Any) -> Transform | None:
    """The transform given by its name or its functions; None for none."""
    if transform is None or isinstance(transform, Transform):
        return transform
    if isinstance(transform, str) and transform in NAMES:
        return NAMES[transform]
    if isinstance(transform, tuple) and len(transform) == 3 and all(map(callable, transform)):
        return Custom(*transform)
    raise ValueError(
        f"transform must be None, one of {', '.join(map(repr, NAMES))}, or three callables "
        f"(function, inverse, derivative), got {transform!r}"
    )
