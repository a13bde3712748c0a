"""Kernels that are inner products of features: linear functions, polynomials, any feature map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.blas import dgemv

from .._typing import Array, FloatArray
from ..backend import arrays
from .base import Block, Constant, InputPull, Kernel, Point, Pull
from .operations import column_dots, cross_products, inner, times
from .parameters import DEFAULT_BOUNDS, Bounds, Scale, check_columns
from .tiles import as_rows

__all__ = ["FeatureMap", "Linear", "Polynomial"]


@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    """The linear kernel sum_k x_k z_k / l_k^2, of linear functions through the origin.

    Parameters
    ----------
    length_scale : float or sequence of d floats, default 1.0
        One for all inputs or one per input.
    length_scale_bounds : pair of floats, one pair per input, or "fixed", default (1e-5, 1e5)

    Examples
    --------
    >>> from wienerkernel.kernels import Linear
    >>> Linear([1.0, 2.0])([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[5.0]]
    """

    length_scale: Scale = 1.0
    length_scale_bounds: Bounds = DEFAULT_BOUNDS
    _hyperparameters: ClassVar[tuple[str, ...]] = ("length_scale",)
    _per_input: ClassVar[tuple[str, ...]] = ("length_scale",)

    def _prepare(self, X: Array, center: Array) -> Block:  # noqa: ARG002
        check_columns("length_scale", self.length_scale, X.shape[1])
        return arrays.contiguous(X / arrays.like(self.length_scale, X))

    def _values(self, P: Block, Q: Block) -> Array:
        return cross_products(1.0, P, Q)

    def _linearize(self, P: Block, Q: Block) -> tuple[Array, Pull]:
        def pull(W: Array) -> FloatArray:
            # dK/dlog l_k = -2 x_k z_k / l_k^2
            by_input = -2 * column_dots(P, times(W, Q))
            return by_input if isinstance(self.length_scale, tuple) else by_input.sum(keepdims=True)

        return self._values(P, Q), pull

    def _linearize_inputs(self, P: Block, Q: Block) -> tuple[Array, InputPull]:
        return self._values(P, Q), lambda W: times(W, Q) / arrays.like(self.length_scale, P)

    def _diagonal(self, X: Array) -> Array:
        rows = self._prepare(X, X)
        return arrays.row_dots(rows, rows)

    def _diagonal_gradient(self, X: Array) -> Array:
        return 2 * self._prepare(X, X) / arrays.like(self.length_scale, X)

    def _point(self, X: FloatArray) -> Point:
        slopes = np.asfortranarray(self._prepare(X, X) / np.asarray(self.length_scale))
        return lambda x: dgemv(1.0, slopes, x)


@dataclass(frozen=True, repr=False)
class FeatureMap(Kernel):
    """The kernel scale^2 phi(x)' phi(z) of finitely many features.

    Parameters
    ----------
    phi : callable
        Maps an array of shape (n, d), of the library of X, to the features, of shape (n, n_phi), row by row.
    scale : float, default 1.0
    scale_bounds : pair of floats or "fixed", default (1e-5, 1e5)

    Examples
    --------
    >>> import numpy as np
    >>> from wienerkernel.kernels import FeatureMap
    >>> k = FeatureMap(lambda X: np.hstack([X, X**2]), scale=2.0)
    >>> k.features([[3.0]]).tolist()
    [[3.0, 9.0]]
    >>> k([[3.0]]).tolist()
    [[360.0]]
    """

    phi: Callable[[Array], Any]
    scale: float = 1.0
    scale_bounds: Bounds = DEFAULT_BOUNDS
    _hyperparameters: ClassVar[tuple[str, ...]] = ("scale",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.phi):
            raise TypeError(f"phi must be callable, from (n, d) to (n, n_phi); got {self.phi!r}")

    def features(self, X: Any) -> Array:
        """Features phi(X), of shape (n, n_phi), without the scale."""
        x = as_rows("X", X)
        features = arrays.contiguous(arrays.like(self.phi(x), x))
        if features.ndim != 2 or features.shape[0] != x.shape[0]:
            raise ValueError(
                f"phi must return an array of shape ({x.shape[0]}, n_phi); got {tuple(features.shape)}"
            )
        return features

    def _prepare(self, X: Array, center: Array) -> Block:  # noqa: ARG002
        return self.features(X)

    def _values(self, P: Block, Q: Block) -> Array:
        return cross_products(self.scale**2, P, Q)

    def _linearize(self, P: Block, Q: Block) -> tuple[Array, Pull]:
        K = self._values(P, Q)
        return K, lambda W: np.array([2 * inner(W, K)])

    def _diagonal(self, X: Array) -> Array:
        rows = self.features(X)
        return self.scale**2 * arrays.row_dots(rows, rows)


def Polynomial(degree: int = 3, offset: float = 1.0, length_scale: Scale = 1.0) -> Kernel:
    """Return the polynomial kernel (sum_k x_k z_k / l_k^2 + offset)^degree.

    Parameters
    ----------
    degree : int, default 3
    offset : float, default 1.0
    length_scale : float or sequence of d floats, default 1.0

    Returns
    -------
    kernel : Kernel
        ``(Linear(length_scale) + Constant(offset)) ** degree``.

    Examples
    --------
    >>> from wienerkernel.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0]], [[2.0]]).tolist()
    [[9.0]]
    """
    return (Linear(length_scale) + Constant(offset)) ** degree
