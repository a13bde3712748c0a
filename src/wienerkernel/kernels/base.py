"""The class `Kernel` and the algebra of kernels: `Constant`, `Sum`, `Product` and `Power`.

Matrices are computed in tiles. A kernel sees each block of rows once (``_prepare``) and is then asked for the tile
between two prepared blocks. Arrays of libraries other than NumPy are treated alike, in larger tiles, and stay on their
device.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .._typing import Array, FloatArray
from ..backend import arrays
from .parameters import DEFAULT_BOUNDS, Bounds, Parametrized
from .tiles import CrossKernel, as_rows, as_two_sets, center_of, gram, input_pullback, mirrored, pullback

__all__ = [
    "MAX_DEPTH",
    "Constant",
    "Kernel",
    "Power",
    "Product",
    "Sum",
    "bracketed",
    "elementary",
    "no_input_gradient",
    "too_deep",
]

MAX_DEPTH = 100
"""Levels of a composition: every method recurses through them, and copying takes several calls per level."""

MAX_EXPONENT = 10**6

Block: TypeAlias = Any
"""A block of rows as ``_prepare`` returns it."""

Pull: TypeAlias = Callable[[Array], FloatArray]
"""Maps W to the gradient of sum(W * K) for one tile K, in NumPy."""

InputPull: TypeAlias = Callable[[Array], Array]
"""Maps W to the rows sum_j W_ij dk(x_i, z_j)/dx_i for one tile, in the library of W."""

Point: TypeAlias = Callable[[FloatArray], FloatArray]
"""Maps one point x of shape (d,) to the values k(x, x_i), of shape (n,), in a new array."""


@dataclass(frozen=True, repr=False)
class Kernel(Parametrized, ABC):
    """A positive semi-definite function k(x, x') with p free hyperparameters.

    Kernels are immutable; they compare and hash by their parameters. ``k1 + k2``, ``k1 * k2``, ``k ** 2``, ``3 * k``
    and ``k + 3`` are new kernels; a number stands for `Constant`.

    Examples
    --------
    >>> from wienerkernel.kernels import RBF
    >>> k = 4.21**2 * RBF(3.59)
    >>> k
    Constant(value=17.7241) * RBF(length_scale=3.59)
    >>> k.names
    ('k1.value', 'k2.length_scale')
    >>> k([[0.0], [3.59]]).round(4).tolist()
    [[17.7241, 10.7502], [10.7502, 17.7241]]
    """

    _depth = 1
    """Levels of sums, products and powers, this one included."""

    __array_ufunc__ = None  # so that numpy.float64(2.0) * kernel calls __rmul__

    def _prepare(self, X: Array, center: Array) -> Block:  # noqa: ARG002
        """Return what the tiles need to know of a block of rows; ``center`` is the center of all rows."""
        return X

    @abstractmethod
    def _values(self, P: Block, Q: Block) -> Array:
        """Return the tile K(P, Q), a new C-ordered array that the caller may overwrite."""

    def _linearize(self, P: Block, Q: Block) -> tuple[Array, Pull]:
        """Return the tile K(P, Q), or its value if it is constant, and its pullback to the free hyperparameters."""
        raise NotImplementedError

    @property
    def _prior(self) -> float | None:
        """The value of k(x, x) if it is the same for all x."""
        return None

    def _diagonal(self, X: Array) -> Array:
        """Return k(x_i, x_i) in the library and dtype of X."""
        if self._prior is None:
            raise NotImplementedError
        return arrays.filled((X.shape[0],), self._prior, X)

    def _linearize_inputs(self, P: Block, Q: Block) -> tuple[Array, InputPull]:  # noqa: ARG002
        """Return the tile K(P, Q), or its value if it is constant, and its pullback to the inputs, of shape (n, d)."""
        raise no_input_gradient(self)

    def _diagonal_gradient(self, X: Array) -> Array:
        """Return dk(x_i, x_i)/dx_i, of shape (n, d)."""
        if self._prior is None:
            raise no_input_gradient(self)
        return arrays.filled(X.shape, 0.0, X)

    def _point(self, X: FloatArray) -> Point:
        """Return the function x -> k(x, X) for one point at a time, without checks."""
        center = center_of(X)
        Q = self._prepare(X, center)
        return lambda x: self._values(self._prepare(np.asarray(x, dtype=X.dtype)[None], center), Q)[0]

    def _pullback(self, P: Block, Q: Block, W: Array) -> FloatArray:
        """Return the gradient of sum(W * K(P, Q)) in double precision; P, Q are prepared from double precision."""
        return self._linearize(P, Q)[1](W) if self._n_theta else np.empty(0)

    def __call__(self, X: Any, Z: Any = None) -> Array:
        """Matrix K(X, Z) of shape (n, m), for X of shape (n, d) and Z of shape (m, d); by default exactly symmetric K(X, X).

        It is float32 if X and Z are, else float64, and in the library and on the device of X.
        """
        if Z is None:
            return mirrored(gram(self, X))
        x, z = as_two_sets(X, Z)
        n, m = x.shape[0], z.shape[0]
        if n == 0 or m == 0:
            return arrays.filled((n, m), 0.0, x)
        return CrossKernel(self, z, center_of(x, z))(x)

    def diag(self, X: Any) -> Array:
        """Diagonal k(x_i, x_i) of K(X, X), of shape (n,), without computing the matrix."""
        return self._diagonal(as_rows("X", X))

    def pullback(self, X: Any, W: Any, *, symmetric: bool = False) -> FloatArray:
        """Gradient of sum(W * K(X, X)) with respect to `theta`, a NumPy array of shape (p,), for W of shape (n, n).

        With W = dObjective/dK this is the gradient of the objective. No n x n array is allocated. Of a W that is
        ``symmetric``, only the lower triangle is read.
        """
        return pullback(self, X, W, symmetric)

    def input_pullback(self, X: Any, Z: Any, W: Any) -> Array:
        """Rows sum_j W_ij dk(x_i, z_j)/dx_i: the gradient of sum(W * K(X, Z)) with respect to X.

        It has the shape (n, d), or (q, n, d) for several W of shape (q, n, m), which share one evaluation of the
        kernel. Where the kernel has no derivative, as Matern of smoothness 1/2 at x_i = z_j, it is taken as 0.

        >>> from wienerkernel.kernels import RBF
        >>> RBF().input_pullback([[0.0], [1.0]], [[1.0]], [[1.0], [1.0]]).round(4).tolist()
        [[0.6065], [0.0]]
        """
        return input_pullback(self, X, Z, W)

    def diag_gradient(self, X: Any) -> Array:
        """Gradient of the diagonal, dk(x, x)/dx at each row of X, of shape (n, d)."""
        return self._diagonal_gradient(as_rows("X", X))

    def __repr__(self) -> str:
        shown = (
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __add__(self, other: Any) -> Kernel:
        return _joined(Sum, self, other)

    def __radd__(self, other: Any) -> Kernel:
        if isinstance(other, Real) and other == 0:  # sum() of a list of kernels starts with 0
            return self
        return _joined(Sum, other, self)

    def __mul__(self, other: Any) -> Kernel:
        return _joined(Product, self, other)

    def __rmul__(self, other: Any) -> Kernel:
        return _joined(Product, other, self)

    def __pow__(self, exponent: int) -> Kernel:
        return Power(self, exponent)


def _joined(join: type[Sum | Product], *operands: Any) -> Kernel:
    """Join two kernels, or a kernel and the Constant that a number stands for."""
    kernels = [Constant(float(k)) if isinstance(k, Real) else k for k in operands]
    return join(*kernels) if all(isinstance(k, Kernel) for k in kernels) else NotImplemented


@dataclass(frozen=True, repr=False)
class Constant(Kernel):
    """The kernel that is ``value`` everywhere: the variance of an unknown constant, or of what it multiplies.

    A number in a sum or product of kernels stands for it.

    Parameters
    ----------
    value : float, default 1.0
    value_bounds : pair of floats or "fixed", default (1e-5, 1e5)

    Examples
    --------
    >>> from wienerkernel.kernels import RBF, Constant
    >>> Constant(2.0) * RBF() == 2.0 * RBF()
    True
    >>> Constant(2.0)([[0.0]], [[1.0], [5.0]]).tolist()
    [[2.0, 2.0]]
    """

    value: float = 1.0
    value_bounds: Bounds = DEFAULT_BOUNDS
    _hyperparameters: ClassVar[tuple[str, ...]] = ("value",)

    def _values(self, P: Block, Q: Block) -> Array:
        return arrays.filled((P.shape[0], Q.shape[0]), self.value, P)

    def _linearize(self, P: Block, Q: Block) -> tuple[Array, Pull]:  # noqa: ARG002
        return self.value, lambda W: np.array([self.value * float(arrays.namespace(W).sum(W))])

    def _linearize_inputs(self, P: Block, Q: Block) -> tuple[Array, InputPull]:  # noqa: ARG002
        return self.value, lambda _: arrays.filled(P.shape, 0.0, P)

    @property
    def _prior(self) -> float | None:
        return self.value

    def _point(self, X: FloatArray) -> Point:
        return lambda _: np.full(len(X), self.value)


class _Composition(Kernel):
    """A kernel f(k1, ...) of other kernels: a subclass gives f and its derivatives, the chain rule does the rest."""

    @abstractmethod
    def _f(self, *K: Array) -> Array:
        """Return f of the values of the operands, as a new array."""

    @abstractmethod
    def _f_and_slopes(self, *K: Array) -> tuple[Array, tuple[Array, ...]]:
        """Return f and its derivative with respect to each operand."""

    def __post_init__(self) -> None:
        for name, k in self.parts.items():
            if not isinstance(k, Kernel):
                raise TypeError(f"{name} must be a Kernel; got {k!r}")
        depth = 1 + max(k._depth for k in self.kernels)
        if depth > MAX_DEPTH:
            raise too_deep()
        object.__setattr__(self, "_depth", depth)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(self.parts.values())

    @property
    def _kernels_and_numbers(self) -> tuple[Kernel | float, ...]:
        """The operands, with numbers for constants as long as one operand is a matrix."""
        if all(isinstance(k, Constant) for k in self.kernels):
            return self.kernels
        return tuple(k.value if isinstance(k, Constant) else k for k in self.kernels)

    def _prepare(self, X: Array, center: Array) -> Block:
        return tuple(k._prepare(X, center) for k in self.kernels)

    def _values(self, P: Block, Q: Block) -> Array:
        operands = zip(self._kernels_and_numbers, P, Q, strict=True)
        return self._f(*(k if isinstance(k, float) else k._values(p, q) for k, p, q in operands))

    def _linearize(self, P: Block, Q: Block) -> tuple[Array, Pull]:
        parts = [_linearized(k, p, q) for k, p, q in zip(self.kernels, P, Q, strict=True)]
        return self._chain(parts, np.concatenate)

    def _linearize_inputs(self, P: Block, Q: Block) -> tuple[Array, InputPull]:
        operands = zip(self._kernels_and_numbers, P, Q, strict=True)
        parts = [(k, None) if isinstance(k, float) else k._linearize_inputs(p, q) for k, p, q in operands]
        return self._chain(parts, sum)

    def _chain(
        self, parts: Sequence[tuple[Array, Any]], join: Callable[[list[Array]], Array]
    ) -> tuple[Array, Any]:
        """Return f and its pullback, given values and pullbacks (or None) of the operands: the chain rule."""
        K, pulls = zip(*parts, strict=True)
        value, slopes = self._f_and_slopes(*K)
        chained = [(pull, s) for pull, s in zip(pulls, slopes, strict=True) if pull is not None]
        # A pullback is linear: a number scales its short result instead of the tile W.
        return value, lambda W: join(
            [s * pull(W) if isinstance(s, float) else pull(W * s) for pull, s in chained]
        )

    def _diagonal(self, X: Array) -> Array:
        return self._f(*(k._diagonal(X) for k in self.kernels))

    def _diagonal_gradient(self, X: Array) -> Array:
        _, slopes = self._f_and_slopes(*(k._diagonal(X)[:, None] for k in self.kernels))
        return sum(s * k._diagonal_gradient(X) for s, k in zip(slopes, self.kernels, strict=True))

    @property
    def _prior(self) -> float | None:
        priors = [k._prior for k in self.kernels]
        return None if None in priors else self._f(*priors)

    def _point(self, X: FloatArray) -> Point:
        parts = [k if isinstance(k, float) else k._point(X) for k in self._kernels_and_numbers]
        return lambda x: self._f(*[k if isinstance(k, float) else k(x) for k in parts])


@dataclass(frozen=True, repr=False)
class _Pair(_Composition):
    """A composition of two kernels."""

    k1: Kernel
    k2: Kernel
    _operands: ClassVar[tuple[str, ...]] = ("k1", "k2")


class Sum(_Pair):
    """The kernel k1(x, x') + k2(x, x'), written ``k1 + k2``."""

    def _f(self, *K: Array) -> Array:
        return K[0] + K[1]

    def _f_and_slopes(self, *K: Array) -> tuple[Array, tuple[Array, ...]]:
        return K[0] + K[1], (1.0, 1.0)

    def _pullback(self, P: Block, Q: Block, W: Array) -> FloatArray:
        # A summand without hyperparameters need not be evaluated.
        return np.concatenate([self.k1._pullback(P[0], Q[0], W), self.k2._pullback(P[1], Q[1], W)])

    def __repr__(self) -> str:
        return f"{self.k1!r} + {bracketed(self.k2, Sum)}"


class Product(_Pair):
    """The kernel k1(x, x') k2(x, x'), written ``k1 * k2``."""

    def _f(self, *K: Array) -> Array:
        return K[0] * K[1]

    def _f_and_slopes(self, *K: Array) -> tuple[Array, tuple[Array, ...]]:
        return K[0] * K[1], (K[1], K[0])

    def __repr__(self) -> str:
        return f"{bracketed(self.k1, Sum)} * {bracketed(self.k2, (Sum, Product))}"


@dataclass(frozen=True, repr=False)
class Power(_Composition):
    """The kernel k(x, x')^exponent, written ``k ** exponent``; powers other than 1, 2, ... need not be kernels."""

    kernel: Kernel
    exponent: int
    _operands: ClassVar[tuple[str, ...]] = ("kernel",)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            exponent = operator.index(self.exponent)
        except TypeError:
            exponent = 0
        if not 1 <= exponent <= MAX_EXPONENT or isinstance(self.exponent, bool):
            raise ValueError(
                f"exponent must be a positive integer of at most {MAX_EXPONENT}; got {self.exponent!r}"
            )
        object.__setattr__(self, "exponent", exponent)

    def _f(self, *K: Array) -> Array:
        return K[0] ** (self.exponent - 1) * K[0]  # squares and cubes without calls of pow

    def _f_and_slopes(self, *K: Array) -> tuple[Array, tuple[Array, ...]]:
        lower = K[0] ** (self.exponent - 1)
        return lower * K[0], (self.exponent * lower,)

    def __repr__(self) -> str:
        return f"{bracketed(self.kernel, (Sum, Product, Power))} ** {self.exponent}"


def _linearized(kernel: Kernel, P: Block, Q: Block) -> tuple[Array, Pull | None]:
    """Linearize an operand; one without free hyperparameters is only evaluated."""
    if kernel._n_theta:
        return kernel._linearize(P, Q)
    return kernel.value if isinstance(kernel, Constant) else kernel._values(P, Q), None


def elementary(kernel: Kernel) -> Iterator[Kernel]:
    """The kernels that a kernel is composed of."""
    for part in kernel.parts.values():
        yield from elementary(part)
    if not kernel.parts:
        yield kernel


def bracketed(kernel: Kernel, looser: type | tuple[type, ...]) -> str:
    """Return the repr of a kernel, in parentheses if it binds less tightly than its surroundings."""
    return f"({kernel!r})" if isinstance(kernel, looser) else repr(kernel)


def no_input_gradient(kernel: Kernel) -> TypeError:
    """Return the error for a kernel whose derivatives with respect to the inputs are not known."""
    return TypeError(
        f"{type(kernel).__name__} has no analytic gradient with respect to x; RBF, Matern, RationalQuadratic, "
        "Periodic, Linear, Constant and their sums, products and powers have one"
    )


def too_deep() -> ValueError:
    """Return the error for a composition of too many levels."""
    return ValueError(
        f"sums, products and powers of kernels are nested more than {MAX_DEPTH} deep; add many kernels in pairs, or "
        "write them as one function f(X, Z)"
    )
