"""Kernels made of kernels: sums, products and integer powers."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from .base import Kernel, Pull, Rows
from .blas import inner
from .dot import Constant

__all__ = ["Power", "Product", "Sum"]


@dataclass(frozen=True, repr=False)
class _Pair(Kernel):
    """Two kernels on the same inputs; theta is that of k1, then that of k2."""

    k1: Kernel
    k2: Kernel

    def __post_init__(self) -> None:
        for name, k in (("k1", self.k1), ("k2", self.k2)):
            if not isinstance(k, Kernel):
                raise TypeError(f"{name} must be a Kernel; got {k!r}")

    def _prepare(self, X: FloatArray, centre: FloatArray) -> Rows:
        return self.k1._prepare(X, centre), self.k2._prepare(X, centre)

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


class Sum(_Pair):
    """The kernel k1(x, x') + k2(x, x'), written ``k1 + k2``.

    Parameters
    ----------
    k1, k2 : Kernel

    Examples
    --------
    >>> from wienerkernel.kernels import RBF, Linear
    >>> k = RBF(2.0) + Linear()
    >>> k.names
    ('k1.length_scale', 'k2.length_scale')
    >>> k.diag([[3.0]]).tolist()
    [10.0]
    """

    def _values(self, P: Rows, Q: Rows) -> FloatArray:
        K = self.k1._values(P[0], Q[0])
        K += self.k2._values(P[1], Q[1])
        return K

    def _linearise(self, P: Rows, Q: Rows) -> tuple[FloatArray, Pull]:
        K1, pull1 = _linearised(self.k1, P[0], Q[0])
        K2, pull2 = _linearised(self.k2, P[1], Q[1])
        return K1 + K2, lambda W: np.concatenate([pull1(W), pull2(W)])

    def _pullback(self, P: Rows, Q: Rows, W: FloatArray) -> FloatArray:
        return np.concatenate([self.k1._pullback(P[0], Q[0], W), self.k2._pullback(P[1], Q[1], W)])

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return self.k1._diagonal(X) + self.k2._diagonal(X)

    def __repr__(self) -> str:
        return f"{self.k1!r} + {_bracketed(self.k2, Sum)}"


class Product(_Pair):
    """The kernel k1(x, x') k2(x, x'), written ``k1 * k2``.

    Parameters
    ----------
    k1, k2 : Kernel

    Examples
    --------
    >>> from wienerkernel.kernels import RBF
    >>> k = 9.0 * RBF([1.0, 2.0])
    >>> k.names
    ('k1.value', 'k2.length_scale[0]', 'k2.length_scale[1]')
    >>> k.diag([[0.0, 0.0]]).tolist()
    [9.0]
    """

    def _values(self, P: Rows, Q: Rows) -> FloatArray:
        # A constant scales the other factor and is no matrix.
        if isinstance(self.k1, Constant):
            K = self.k2._values(P[1], Q[1])
            K *= self.k1.value
        else:
            K = self.k1._values(P[0], Q[0])
            K *= self.k2.value if isinstance(self.k2, Constant) else self.k2._values(P[1], Q[1])
        return K

    def _linearise(self, P: Rows, Q: Rows) -> tuple[FloatArray, Pull]:
        if isinstance(self.k1, Constant):
            return _scaled(self.k1, self.k2, P[1], Q[1], constant_first=True)
        if isinstance(self.k2, Constant):
            return _scaled(self.k2, self.k1, P[0], Q[0], constant_first=False)
        K1, pull1 = _linearised(self.k1, P[0], Q[0])
        K2, pull2 = _linearised(self.k2, P[1], Q[1])

        def pull(W: FloatArray) -> FloatArray:
            first = pull1(W * K2) if self.k1._n_theta else np.empty(0)
            return np.concatenate([first, pull2(W * K1) if self.k2._n_theta else np.empty(0)])

        return K1 * K2, pull

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return self.k1._diagonal(X) * self.k2._diagonal(X)

    def __repr__(self) -> str:
        return f"{_bracketed(self.k1, Sum)} * {_bracketed(self.k2, _Pair)}"


@dataclass(frozen=True, repr=False)
class Power(Kernel):
    """The kernel k(x, x')^exponent, written ``k ** exponent``.

    Parameters
    ----------
    kernel : Kernel
    exponent : int
        Positive: other powers of a kernel need not be kernels.

    Examples
    --------
    >>> from wienerkernel.kernels import Linear
    >>> k = (Linear() + 1.0) ** 2
    >>> k([[1.0]], [[2.0]]).tolist()
    [[9.0]]
    """

    kernel: Kernel
    exponent: int

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a Kernel; got {self.kernel!r}")
        object.__setattr__(self, "exponent", _checked_exponent(self.exponent))

    def _prepare(self, X: FloatArray, centre: FloatArray) -> Rows:
        return self.kernel._prepare(X, centre)

    def _values(self, P: Rows, Q: Rows) -> FloatArray:
        K = self.kernel._values(P, Q)
        return np.power(K, self.exponent, out=K)

    def _linearise(self, P: Rows, Q: Rows) -> tuple[FloatArray, Pull]:
        K, pull = self.kernel._linearise(P, Q)
        lower = np.power(K, self.exponent - 1)
        return lower * K, lambda W: pull(self.exponent * lower * W)

    def _diagonal(self, X: FloatArray) -> FloatArray:
        return np.power(self.kernel._diagonal(X), self.exponent)

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
        return f"{_bracketed(self.kernel, (_Pair, Power))} ** {self.exponent}"


def _linearised(kernel: Kernel, P: Rows, Q: Rows) -> tuple[FloatArray, Pull]:
    """Linearise a factor or summand; one without hyperparameters is only evaluated."""
    if kernel._n_theta:
        return kernel._linearise(P, Q)
    return kernel._values(P, Q), lambda _: np.empty(0)


def _scaled(
    constant: Constant, kernel: Kernel, P: Rows, Q: Rows, constant_first: bool
) -> tuple[FloatArray, Pull]:
    K, pull_kernel = _linearised(kernel, P, Q)

    def pull(W: FloatArray) -> FloatArray:
        of_constant = np.full(constant._n_theta, constant.value * inner(W, K) if constant._n_theta else 0.0)
        of_kernel = constant.value * pull_kernel(W)
        return np.concatenate([of_constant, of_kernel] if constant_first else [of_kernel, of_constant])

    return constant.value * K, pull


def _checked_exponent(exponent: Any) -> int:
    try:
        power = operator.index(exponent)
    except TypeError:
        power = 0
    if power < 1 or isinstance(exponent, bool):
        raise ValueError(f"exponent must be a positive integer; got {exponent!r}")
    return power


def _bracketed(kernel: Kernel, looser: type | tuple[type, ...]) -> str:
    """Return the repr of a kernel, in brackets if it binds less tightly than its surroundings."""
    return f"({kernel!r})" if isinstance(kernel, looser) else repr(kernel)
