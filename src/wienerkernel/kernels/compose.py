"""Kernels made of two kernels: sums and products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, FloatArray
from .base import InputPull, Kernel, Point, Pull, Rows
from .blas import inner
from .dot import Constant

__all__ = ["Pair", "Product", "Sum", "bracketed"]


@dataclass(frozen=True, repr=False)
class Pair(Kernel):
    """Two kernels on the same inputs; theta is that of k1, then that of k2."""

    k1: Kernel
    k2: Kernel

    def __post_init__(self) -> None:
        for name, k in (("k1", self.k1), ("k2", self.k2)):
            if not isinstance(k, Kernel):
                raise TypeError(f"{name} must be a Kernel; got {k!r}")
        self._nest(self.k1, self.k2)

    def _prepare(self, X: Array, center: Array) -> Rows:
        return self.k1._prepare(X, center), self.k2._prepare(X, center)

    @property
    def _n_theta(self) -> int:
        return self.k1._n_theta + self.k2._n_theta

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the free hyperparameters, of shape (p,)."""
        return np.concatenate([self.k1.theta, self.k2.theta])

    @property
    def bounds(self) -> FloatArray:
        """Bounds of `theta`, of shape (p, 2); logarithms as well."""
        return np.concatenate([self.k1.bounds, self.k2.bounds])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of `theta`."""
        return (*(f"k1.{name}" for name in self.k1.names), *(f"k2.{name}" for name in self.k2.names))

    def with_theta(self, theta: ArrayLike) -> Kernel:
        """Return the kernel of the same form whose free hyperparameters are exp(theta), theta of shape (p,)."""
        logs, split = self._checked_theta(theta), self.k1._n_theta
        return type(self)(self.k1.with_theta(logs[:split]), self.k2.with_theta(logs[split:]))


class Sum(Pair):
    """The kernel k1(x, x') + k2(x, x'), written ``k1 + k2``.

    Parameters
    ----------
    k1, k2 : Kernel
    """

    def _values(self, P: Rows, Q: Rows) -> Array:
        K = self.k1._values(P[0], Q[0])
        K += self.k2._values(P[1], Q[1])
        return K

    def _linearize(self, P: Rows, Q: Rows) -> tuple[Array, Pull]:
        K1, pull1 = _linearized(self.k1, P[0], Q[0])
        K2, pull2 = _linearized(self.k2, P[1], Q[1])
        return K1 + K2, lambda W: np.concatenate([pull1(W), pull2(W)])

    def _pullback(self, P: Rows, Q: Rows, W: Array) -> FloatArray:
        return np.concatenate([self.k1._pullback(P[0], Q[0], W), self.k2._pullback(P[1], Q[1], W)])

    def _linearize_inputs(self, P: Rows, Q: Rows) -> tuple[Array, InputPull]:
        K1, pull1 = self.k1._linearize_inputs(P[0], Q[0])
        K2, pull2 = self.k2._linearize_inputs(P[1], Q[1])
        return K1 + K2, lambda W: pull1(W) + pull2(W)

    def _diagonal(self, X: Array) -> Array:
        return self.k1._diagonal(X) + self.k2._diagonal(X)

    def _diagonal_gradient(self, X: Array) -> Array:
        return self.k1._diagonal_gradient(X) + self.k2._diagonal_gradient(X)

    @property
    def _prior(self) -> float | None:
        first, second = self.k1._prior, self.k2._prior
        return None if first is None or second is None else first + second

    def _point(self, X: FloatArray) -> Point:
        first, second = self.k1._point(X), self.k2._point(X)
        return lambda x: first(x) + second(x)

    def __repr__(self) -> str:
        return f"{self.k1!r} + {bracketed(self.k2, Sum)}"


class Product(Pair):
    """The kernel k1(x, x') k2(x, x'), written ``k1 * k2``.

    Parameters
    ----------
    k1, k2 : Kernel
    """

    def _values(self, P: Rows, Q: Rows) -> Array:
        # A constant scales the other factor and is no matrix.
        if isinstance(self.k1, Constant):
            K = self.k2._values(P[1], Q[1])
            K *= self.k1.value
        else:
            K = self.k1._values(P[0], Q[0])
            K *= self.k2.value if isinstance(self.k2, Constant) else self.k2._values(P[1], Q[1])
        return K

    def _linearize(self, P: Rows, Q: Rows) -> tuple[Array, Pull]:
        if isinstance(self.k1, Constant):
            return _scaled(self.k1, self.k2, P[1], Q[1], constant_first=True)
        if isinstance(self.k2, Constant):
            return _scaled(self.k2, self.k1, P[0], Q[0], constant_first=False)
        K1, pull1 = _linearized(self.k1, P[0], Q[0])
        K2, pull2 = _linearized(self.k2, P[1], Q[1])

        def pull(W: Array) -> FloatArray:
            first = pull1(W * K2) if self.k1._n_theta else np.empty(0)
            return np.concatenate([first, pull2(W * K1) if self.k2._n_theta else np.empty(0)])

        return K1 * K2, pull

    def _linearize_inputs(self, P: Rows, Q: Rows) -> tuple[Array, InputPull]:
        if isinstance(self.k1, Constant):
            return _scaled_inputs(self.k1.value, self.k2, P[1], Q[1])
        if isinstance(self.k2, Constant):
            return _scaled_inputs(self.k2.value, self.k1, P[0], Q[0])
        K1, pull1 = self.k1._linearize_inputs(P[0], Q[0])
        K2, pull2 = self.k2._linearize_inputs(P[1], Q[1])
        return K1 * K2, lambda W: pull1(W * K2) + pull2(W * K1)

    def _diagonal(self, X: Array) -> Array:
        return self.k1._diagonal(X) * self.k2._diagonal(X)

    def _diagonal_gradient(self, X: Array) -> Array:
        first, second = self.k1._diagonal(X)[:, None], self.k2._diagonal(X)[:, None]
        return self.k1._diagonal_gradient(X) * second + first * self.k2._diagonal_gradient(X)

    @property
    def _prior(self) -> float | None:
        first, second = self.k1._prior, self.k2._prior
        return None if first is None or second is None else first * second

    def _point(self, X: FloatArray) -> Point:
        if isinstance(self.k1, Constant):
            return _scaled_point(self.k1.value, self.k2._point(X))
        if isinstance(self.k2, Constant):
            return _scaled_point(self.k2.value, self.k1._point(X))
        first, second = self.k1._point(X), self.k2._point(X)
        return lambda x: first(x) * second(x)

    def __repr__(self) -> str:
        return f"{bracketed(self.k1, Sum)} * {bracketed(self.k2, Pair)}"


def _linearized(kernel: Kernel, P: Rows, Q: Rows) -> tuple[Array, Pull]:
    """Linearize a factor or summand; one without hyperparameters is only evaluated."""
    if kernel._n_theta:
        return kernel._linearize(P, Q)
    return kernel._values(P, Q), lambda _: np.empty(0)


def _scaled(constant: Constant, kernel: Kernel, P: Rows, Q: Rows, constant_first: bool) -> tuple[Array, Pull]:
    K, pull_kernel = _linearized(kernel, P, Q)

    def pull(W: Array) -> FloatArray:
        of_constant = np.full(constant._n_theta, constant.value * inner(W, K) if constant._n_theta else 0.0)
        of_kernel = constant.value * pull_kernel(W)
        return np.concatenate([of_constant, of_kernel] if constant_first else [of_kernel, of_constant])

    return constant.value * K, pull


def _scaled_inputs(value: float, kernel: Kernel, P: Rows, Q: Rows) -> tuple[Array, InputPull]:
    K, pull = kernel._linearize_inputs(P, Q)
    return value * K, lambda W: value * pull(W)


def _scaled_point(value: float, point: Point) -> Point:
    return lambda x: value * point(x)


def bracketed(kernel: Kernel, looser: type | tuple[type, ...]) -> str:
    """Return the repr of a kernel, in brackets if it binds less tightly than its surroundings."""
    return f"({kernel!r})" if isinstance(kernel, looser) else repr(kernel)
