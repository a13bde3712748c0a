"""Integer powers of kernels."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, FloatArray
from .base import InputPull, Kernel, Point, Pull, Rows
from .compose import Pair, bracketed

__all__ = ["Power"]

LARGEST = 10**6


@dataclass(frozen=True, repr=False)
class Power(Kernel):
    """The kernel k(x, x')^exponent, written ``k ** exponent``.

    Parameters
    ----------
    kernel : Kernel
    exponent : int
        Positive: other powers of a kernel need not be kernels. At most a million.
    """

    kernel: Kernel
    exponent: int

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a Kernel; got {self.kernel!r}")
        object.__setattr__(self, "exponent", _checked_exponent(self.exponent))
        self._nest(self.kernel)

    def _prepare(self, X: Array, center: Array) -> Rows:
        return self.kernel._prepare(X, center)

    def _values(self, P: Rows, Q: Rows) -> Array:
        K = self.kernel._values(P, Q)
        K **= self.exponent
        return K

    def _linearize(self, P: Rows, Q: Rows) -> tuple[Array, Pull]:
        K, pull = self.kernel._linearize(P, Q)
        lower = K ** (self.exponent - 1)
        return lower * K, lambda W: pull(self.exponent * lower * W)

    def _linearize_inputs(self, P: Rows, Q: Rows) -> tuple[Array, InputPull]:
        K, pull = self.kernel._linearize_inputs(P, Q)
        lower = K ** (self.exponent - 1)
        return lower * K, lambda W: pull(self.exponent * lower * W)

    def _diagonal(self, X: Array) -> Array:
        return self.kernel._diagonal(X) ** self.exponent

    def _diagonal_gradient(self, X: Array) -> Array:
        lower = self.kernel._diagonal(X)[:, None] ** (self.exponent - 1)
        return self.exponent * lower * self.kernel._diagonal_gradient(X)

    @property
    def _prior(self) -> float | None:
        prior = self.kernel._prior
        return None if prior is None else prior**self.exponent

    def _point(self, X: FloatArray) -> Point:
        point, exponent = self.kernel._point(X), self.exponent
        return lambda x: np.power(point(x), exponent)

    @property
    def _n_theta(self) -> int:
        return self.kernel._n_theta

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the free hyperparameters, of shape (p,)."""
        return self.kernel.theta

    @property
    def bounds(self) -> FloatArray:
        """Bounds of `theta`, of shape (p, 2); logarithms as well."""
        return self.kernel.bounds

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of `theta`."""
        return tuple(f"kernel.{name}" for name in self.kernel.names)

    def with_theta(self, theta: ArrayLike) -> Kernel:
        """Return the kernel of the same form whose free hyperparameters are exp(theta), theta of shape (p,)."""
        return Power(self.kernel.with_theta(self._checked_theta(theta)), self.exponent)

    def __repr__(self) -> str:
        return f"{bracketed(self.kernel, (Pair, Power))} ** {self.exponent}"


def _checked_exponent(exponent: Any) -> int:
    try:
        power = operator.index(exponent)
    except TypeError:
        power = 0
    if not 1 <= power <= LARGEST or isinstance(exponent, bool):
        raise ValueError(f"exponent must be a positive integer of at most {LARGEST}; got {exponent!r}")
    return power
