"""Kernels of scikit-learn, and plain functions k(X, Z)."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, FloatArray
from ..backend import arrays
from .base import Block, Constant, Kernel, Power, Product, Pull, Sum, too_deep
from .dot import Linear
from .parameters import Bounds
from .parse import parse_kernel
from .stationary import RBF, Matern, RationalQuadratic

__all__ = ["FunctionKernel", "ScikitLearnKernel", "as_kernel"]

_LOCK = RLock()  # tiles are shared by threads; third-party code is called by one thread at a time


def as_kernel(obj: Any, n_inputs: int | None = None) -> Kernel:
    """Convert a formula (see `parse_kernel`), a kernel of scikit-learn or a function f(X, Z) to a `Kernel`; None is RBF(1.0)."""
    if obj is None:
        return RBF(1.0)
    if isinstance(obj, Kernel):
        return obj
    if isinstance(obj, str):
        return parse_kernel(obj, n_inputs)
    # If obj is a kernel of scikit-learn, its module has been imported.
    theirs = sys.modules.get("sklearn.gaussian_process.kernels")
    if theirs is not None and isinstance(obj, theirs.Kernel):
        try:
            if any(isinstance(k, theirs.WhiteKernel) for k in (obj, *obj.get_params(deep=True).values())):
                raise ValueError(
                    "kernel contains a WhiteKernel; set the noise with noise=, the kernel describes f alone"
                )
            return _translated(obj, theirs)
        except RecursionError:
            raise too_deep() from None
    if isinstance(obj, type):
        raise TypeError(
            f"kernel must be an instance; got the class {obj.__name__}: write {obj.__name__}(...)"
        )
    if callable(obj):
        return FunctionKernel(obj)
    raise TypeError(
        f"kernel must be a Kernel, its formula, a scikit-learn kernel, a callable f(X, Z) or None; got {obj!r}"
    )


@dataclass(frozen=True, repr=False)
class FunctionKernel(Kernel):
    """A function f(X, Z) of arrays of shapes (n, d) and (m, d), of any library, whose result (n, m) is a kernel matrix."""

    function: Callable[[Array, Array], Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"function must be callable, from (n, d) and (m, d) to (n, m); got {self.function!r}"
            )

    def _values(self, P: Block, Q: Block) -> Array:
        # A copy, since the function may keep the array that it returns.
        with _LOCK:
            K = arrays.copy(arrays.contiguous(arrays.like(self.function(P, Q), P)))
        shape = P.shape[0], Q.shape[0]
        if tuple(K.shape) != shape:
            raise ValueError(f"kernel function must return shape {shape}; got {tuple(K.shape)}")
        return K

    def _diagonal(self, X: Array) -> Array:
        # square blocks along the diagonal: few calls and little waste
        blocks = (X[a, :] for a in arrays.slices(X.shape[0], 64))
        squares = (arrays.diagonal(self._values(x, x)) for x in blocks)
        return arrays.namespace(X).concat([arrays.filled((0,), 0.0, X), *squares])


@dataclass(frozen=True, repr=False)
class ScikitLearnKernel(Kernel):
    """A kernel of scikit-learn that has no counterpart here; in NumPy, with its own (n, n, p) gradient of each tile."""

    kernel: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", copy.deepcopy(self.kernel))

    def _values(self, P: Block, Q: Block) -> Array:
        with _LOCK:
            K = self.kernel(arrays.as_numpy(P), arrays.as_numpy(Q))
        return arrays.like(np.array(K, dtype=np.float64, order="C"), P)

    def _linearize(self, P: Block, Q: Block) -> tuple[Array, Pull]:
        # eval_gradient takes one set of points: the tile is a block of the matrix of both.
        p, q = arrays.as_numpy(P), arrays.as_numpy(Q)
        both, block = (p, np.s_[:, :]) if P is Q else (np.vstack([p, q]), np.s_[: len(p), len(p) :])
        with _LOCK:
            K, gradient = self.kernel(both, eval_gradient=True)
        tile = gradient[block]
        values = arrays.like(np.ascontiguousarray(K[block]), P)
        return values, lambda W: np.einsum("ij,ijk->k", arrays.as_numpy(W), tile)

    def _diagonal(self, X: Array) -> Array:
        return arrays.like(np.array(self.kernel.diag(arrays.as_numpy(X))), X)

    @property
    def _n_theta(self) -> int:
        return int(self.kernel.n_dims)

    @property
    def theta(self) -> FloatArray:
        return np.array(self.kernel.theta, dtype=np.float64)

    @property
    def bounds(self) -> FloatArray:
        return np.array(self.kernel.bounds, dtype=np.float64).reshape(-1, 2)

    @property
    def names(self) -> tuple[str, ...]:
        named: list[str] = []
        for h in self.kernel.hyperparameters:
            name = h.name.replace("__", ".")
            if not h.fixed:
                named += [name] if h.n_elements == 1 else [f"{name}[{i}]" for i in range(h.n_elements)]
        return tuple(named)

    def with_theta(self, theta: ArrayLike) -> Self:
        return type(self)(self.kernel.clone_with_theta(self._checked_theta(theta)))

    def __hash__(self) -> int:
        return hash((type(self.kernel), *self.theta))

    def __repr__(self) -> str:
        return f"ScikitLearnKernel({self.kernel!r})"


def _translated(kernel: Any, theirs: Any) -> Kernel:
    """Return the same kernel of this library, or else the kernel wrapped; a subclass may differ, so it is wrapped."""
    kind = type(kernel)
    if kind in (theirs.Sum, theirs.Product):
        join = Sum if kind is theirs.Sum else Product
        return join(_translated(kernel.k1, theirs), _translated(kernel.k2, theirs))
    if kind is theirs.Exponentiation and float(kernel.exponent).is_integer() and kernel.exponent > 0:
        return Power(_translated(kernel.kernel, theirs), int(kernel.exponent))
    if kind is theirs.ConstantKernel:
        return Constant(kernel.constant_value, kernel.constant_value_bounds)
    if kind is theirs.RBF or (kind is theirs.Matern and kernel.nu == np.inf):
        return RBF(*_length_scale(kernel))
    if kind is theirs.Matern and kernel.nu in (0.5, 1.5, 2.5):
        return Matern(*_length_scale(kernel), nu=kernel.nu)
    if kind is theirs.RationalQuadratic:
        return RationalQuadratic(
            kernel.length_scale, kernel.alpha, kernel.length_scale_bounds, kernel.alpha_bounds
        )
    if kind is theirs.DotProduct:
        return _dot_product(kernel.sigma_0, kernel.sigma_0_bounds)
    if kind is theirs.CompoundKernel:
        raise ValueError("kernel is a CompoundKernel, which holds several kernels; pass one of them")
    return ScikitLearnKernel(kernel)


def _length_scale(kernel: Any) -> tuple[Any, Bounds]:
    """Return the length scale and its bounds; in scikit-learn a single entry applies to all inputs."""
    value = np.asarray(kernel.length_scale, dtype=np.float64)
    return (value.item() if value.size == 1 else value), kernel.length_scale_bounds


def _dot_product(sigma_0: float, bounds: Any) -> Kernel:
    """Return sigma_0^2 + x'z, whose constant is the square of scikit-learn's hyperparameter."""
    linear = Linear(1.0, "fixed")
    if sigma_0 == 0:
        return linear
    squared: Bounds = "fixed" if isinstance(bounds, str) else np.square(bounds)
    return Sum(linear, Constant(float(sigma_0) ** 2, squared))
