"""What every kernel k(x, x') answers: values, diagonal, hyperparameters, pullbacks of gradients; and + * **.

Matrices are made and read in tiles that stay in the cache. A kernel looks at each block of rows once
(``_prepare``) and is then asked for the tile between two prepared blocks. Arrays of another library than NumPy are
treated alike, in larger tiles, and remain where they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, FloatArray
from ..backend import arrays
from .blas import for_each
from .cross_kernel import CrossKernel
from .matrix import gram
from .parameters import Parametrized
from .tiles import as_rows, as_two_sets, center_of, mirrored, row_blocks

__all__ = ["DEEPEST", "InputPull", "Kernel", "Point", "Pull", "Rows", "too_deep"]

DEEPEST = 100
"""Levels of a composition: all that a kernel answers goes through them, and copying takes several calls for each."""

Rows: TypeAlias = Any
"""A block of rows as one kernel wants to see it."""

Pull: TypeAlias = Callable[[Array], FloatArray]
"""Maps W to the gradient of sum(W * K) for one tile K, in NumPy."""

InputPull: TypeAlias = Callable[[Array], Array]
"""Maps W to the rows sum_j W_ij dk(x_i, z_j)/dx_i for one tile, in the library of W."""

Point: TypeAlias = Callable[[FloatArray], FloatArray]
"""Maps one point x of shape (d,) to the values k(x, x_i), of shape (n,), in a new array."""


@dataclass(frozen=True, repr=False)
class Kernel(Parametrized, ABC):
    """A positive semi-definite function k(x, x') with p free hyperparameters.

    Kernels are values: they do not change, they compare and hash by their parameters. ``k1 + k2``, ``k1 * k2``,
    ``k ** 2``, ``3 * k`` and ``k + 3`` make new kernels; a number stands for `Constant`.

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

    __array_ufunc__ = None  # numpy.float64(2.0) * kernel is the kernel's business

    @abstractmethod
    def _values(self, P: Rows, Q: Rows) -> Array:
        """Return the tile K(P, Q), a new C-ordered array that the caller may overwrite."""

    @abstractmethod
    def _linearize(self, P: Rows, Q: Rows) -> tuple[Array, Pull]:
        """Return the tile K(P, Q) and its pullback, which both share the work; K is not to be overwritten."""

    @abstractmethod
    def _diagonal(self, X: Array) -> Array:
        """Return k(x_i, x_i) in the library and dtype of X."""

    def _linearize_inputs(self, P: Rows, Q: Rows) -> tuple[Array, InputPull]:  # noqa: ARG002
        """Return the tile K(P, Q) and the map from W to the rows sum_j W_ij dk(x_i, z_j)/dx_i, of shape (n, d)."""
        raise self._no_input_gradient()

    def _diagonal_gradient(self, X: Array) -> Array:  # noqa: ARG002
        """Return dk(x_i, x_i)/dx_i, of shape (n, d)."""
        raise self._no_input_gradient()

    def _no_input_gradient(self) -> TypeError:
        return TypeError(
            f"{type(self).__name__} has no analytic gradient with respect to x; RBF, Matern, RationalQuadratic, "
            "Periodic, Linear, Constant and their sums, products and powers have"
        )

    @property
    def _prior(self) -> float | None:
        """The value of k(x, x) where it is one and the same for all x."""
        return None

    def _point(self, X: FloatArray) -> Point:
        """Return the function x -> k(x, X) for one point at a time, without checks."""
        center = center_of(X)
        Q = self._prepare(X, center)
        return lambda x: self._values(self._prepare(np.asarray(x, dtype=X.dtype)[None], center), Q)[0]

    def _nest(self, *operands: Kernel) -> None:
        """Set the depth of a composition of these operands, if it is not too large."""
        depth = 1 + max(operand._depth for operand in operands)
        if depth > DEEPEST:
            raise too_deep()
        object.__setattr__(self, "_depth", depth)

    def _prepare(self, X: Array, center: Array) -> Rows:  # noqa: ARG002
        """Return what the tiles need to know of a block of rows; ``center`` is a point amid all rows."""
        return X

    def _pullback(self, P: Rows, Q: Rows, W: Array) -> FloatArray:
        """Return the gradient of sum(W * K(P, Q)) in double precision; P, Q are prepared from double precision."""
        if not self._n_theta:
            return np.empty(0)
        return self._linearize(P, Q)[1](W)

    def __call__(self, X: Any, Z: Any = None) -> Array:
        """Values of the kernel.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Or an array of another library, such as a torch tensor on a GPU.
        Z : array-like of shape (m, d), optional
            Without it the matrix is K(X, X), exactly symmetric.

        Returns
        -------
        K : ndarray of shape (n, m)
            float32 if X and Z are float32, else float64; in the library and on the device of X.
        """
        if Z is None:
            return mirrored(gram(self, X))
        x, z = as_two_sets(X, Z)
        n, m = x.shape[0], z.shape[0]
        if n == 0 or m == 0:
            return arrays.filled((n, m), 0.0, x)
        return CrossKernel(self, z, center_of(x, z))(x)

    def diag(self, X: Any) -> Array:
        """Diagonal k(x_i, x_i) of K(X, X), of shape (n,), without the matrix."""
        return self._diagonal(as_rows("X", X))

    def pullback(self, X: Any, W: Any, *, symmetric: bool = False) -> FloatArray:
        """Gradient of sum(W * K(X, X)) with respect to `theta`.

        With W = dObjective/dK this is the gradient of the objective. No array of n x n entries is made.

        Parameters
        ----------
        X : array-like of shape (n, d)
        W : array-like of shape (n, n)
            In the library and on the device of X.
        symmetric : bool, default False
            The promise that W is symmetric. Then only its lower triangle is read.

        Returns
        -------
        gradient : ndarray of shape (p,), float64
            A NumPy array, whatever the library of X.
        """
        x = arrays.as_float64(as_rows("X", X))
        n, w = x.shape[0], _weights(W, x)
        if tuple(w.shape) != (n, n):
            raise ValueError(
                f"W must have shape ({n}, {n}), one row and column per row of X; got {tuple(w.shape)}"
            )
        gradient = np.zeros(self._n_theta)
        if gradient.size == 0 or n == 0:
            return gradient
        center = center_of(x)
        blocks = [(a, self._prepare(x[a, :], center)) for a in row_blocks(x)]

        def of_rows(i: int) -> FloatArray:
            a, P = blocks[i]
            part = np.zeros(self._n_theta)
            for b, Q in blocks[:i] if symmetric else blocks:
                part += self._pullback(P, Q, arrays.as_float64(w[a, b]))
            if symmetric:
                # All is doubled in the end, so what is on the diagonal is halved. tril drops NaN above it, too.
                lower = arrays.as_float64(arrays.namespace(w).tril(w[a, a]))
                part += self._pullback(P, P, arrays.set_diagonal(lower, arrays.diagonal(lower) / 2))
            return part

        tiles = len(blocks) ** 2 // (2 if symmetric else 1)
        for part in for_each(of_rows, range(len(blocks))[::-1], x, tiles):
            gradient += part
        return 2 * gradient if symmetric else gradient

    def input_pullback(self, X: Any, Z: Any, W: Any) -> Array:
        """Rows sum_j W_ij dk(x_i, z_j)/dx_i: the gradient of sum(W * K(X, Z)) with respect to X.

        Where the kernel has no derivative, Matern of smoothness 1/2 at x_i = z_j, it is taken as 0.

        Parameters
        ----------
        X : array-like of shape (n, d)
        Z : array-like of shape (m, d)
        W : array-like of shape (n, m) or (q, n, m)
            Several W share the evaluation of the kernel.

        Returns
        -------
        gradient : ndarray of shape (n, d) or (q, n, d), float64
            In the library and on the device of X.

        Examples
        --------
        >>> from wienerkernel.kernels import RBF
        >>> RBF().input_pullback([[0.0], [1.0]], [[1.0]], [[1.0], [1.0]]).round(4).tolist()
        [[0.6065], [0.0]]
        """
        x, z = map(arrays.as_float64, as_two_sets(X, Z))
        n, m, w = x.shape[0], z.shape[0], _weights(W, x)
        if w.ndim not in (2, 3) or tuple(w.shape[-2:]) != (n, m):
            raise ValueError(
                f"W must have shape ({n}, {m}) or (q, {n}, {m}), a row per row of X and a column per row of Z; "
                f"got {tuple(w.shape)}"
            )
        shape = (*w.shape[:-1], x.shape[1])
        if 0 in (*shape, m):
            return arrays.filled(shape, 0.0, x)
        xp, center = arrays.namespace(x), center_of(x, z)
        layers = [w] if w.ndim == 2 else [w[i, :, :] for i in range(w.shape[0])]
        columns = [(b, self._prepare(z[b, :], center)) for b in row_blocks(z)]
        parts = []
        for a in row_blocks(x):
            P = self._prepare(x[a, :], center)
            sums: list[Array] = [0.0] * len(layers)
            for b, Q in columns:
                _, pull = self._linearize_inputs(P, Q)
                sums = [s + pull(arrays.as_float64(v[a, b])) for s, v in zip(sums, layers, strict=True)]
            parts.append(xp.stack(sums))
        gradient = xp.concat(parts, axis=1)
        return gradient if w.ndim == 3 else gradient[0, :, :]

    def diag_gradient(self, X: Any) -> Array:
        """Gradient of the diagonal, dk(x, x)/dx at each row of X.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        gradient : ndarray of shape (n, d)
            In the library and on the device of X.

        Examples
        --------
        >>> from wienerkernel.kernels import RBF, Linear
        >>> (RBF() + Linear()).diag_gradient([[3.0]]).tolist()
        [[6.0]]
        """
        return self._diagonal_gradient(as_rows("X", X))

    def with_theta(self, theta: ArrayLike) -> Kernel:
        """Return the kernel of the same form whose free hyperparameters are exp(theta), theta of shape (p,)."""
        with np.errstate(over="ignore"):  # an infinite hyperparameter is refused by name
            values = np.exp(self._checked_theta(theta))
        changes: dict[str, Any] = {}
        for name in self._free:
            old = getattr(self, name)
            changes[name] = tuple(values[: len(old)]) if isinstance(old, tuple) else values[0]
            values = values[np.size(old) :]
        return replace(self, **changes)

    def __repr__(self) -> str:
        shown = (
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __add__(self, other: Kernel | float) -> Kernel:
        from .compose import Sum

        operand = _operand(other)
        return NotImplemented if operand is None else Sum(self, operand)

    def __radd__(self, other: object) -> Kernel:
        if isinstance(other, Real) and other == 0:  # where the sum of a list of kernels starts
            return self
        operand = _operand(other)
        return NotImplemented if operand is None else operand + self

    def __mul__(self, other: Kernel | float) -> Kernel:
        from .compose import Product

        operand = _operand(other)
        return NotImplemented if operand is None else Product(self, operand)

    def __rmul__(self, other: float) -> Kernel:
        operand = _operand(other)
        return NotImplemented if operand is None else operand * self

    def __pow__(self, exponent: int) -> Kernel:
        from .power import Power

        return Power(self, exponent)


def too_deep() -> ValueError:
    """The error for a composition of too many levels."""
    return ValueError(
        f"sums, products and powers of kernels are nested more than {DEEPEST} deep; add many kernels in pairs, or write "
        "them as one function f(X, Z)"
    )


def _weights(W: Any, x: Array) -> Array:
    """W as an array of the library of x."""
    w = np.asarray(W) if arrays.is_numpy(x) and not arrays.is_array_api(W) else W
    if arrays.library(w) != arrays.library(x):
        raise TypeError(
            f"X and W must be arrays of one library; got {arrays.library(x)} and {arrays.library(w)}"
        )
    return w


def _operand(other: object) -> Kernel | None:
    """Return a kernel, or the Constant that a number stands for."""
    from .dot import Constant

    if isinstance(other, Real):
        return Constant(float(other))
    return other if isinstance(other, Kernel) else None
