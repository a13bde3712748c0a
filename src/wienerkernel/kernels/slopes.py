"""Derivatives of kernel values k(x, z) of pairs of points by the inputs: the covariances of derivatives of functions."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from .._typing import Array
from ..backend import arrays
from .base import Constant, Kernel, Power, Product, Sum
from .dot import Linear
from .paired import differences, paired, scales
from .periodic import Periodic
from .stationary import RBF, Matern, RationalQuadratic, _Stationary

__all__ = ["paired_slope"]


@singledispatch
def paired_slope(kernel: Kernel, X: Array, Z: Array, a: int | None, b: int | None) -> Array:  # noqa: ARG001
    """Derivative of k(x, z) by input a of x and input b of z, or none for None; for points (..., d) that broadcast.

    TypeError if the derivatives are not known, ValueError if functions with this kernel have none.
    """
    raise kernel._no_input_gradient()


@paired_slope.register
def _(kernel: Constant, X: Array, Z: Array, a: int | None, b: int | None) -> Array:
    if a is None and b is None:
        return paired(kernel, X, Z)
    return arrays.filled(np.broadcast_shapes(X.shape[:-1], Z.shape[:-1]), 0.0, X)


@paired_slope.register
def _(kernel: Linear, X: Array, Z: Array, a: int | None, b: int | None) -> Array:
    if a is None and b is None:
        return paired(kernel, X, Z)
    none = arrays.filled(np.broadcast_shapes(X.shape[:-1], Z.shape[:-1]), 0.0, X)
    precision = {k: s**-2 for k, s in scales(kernel.length_scale, X)}
    if a is None:
        assert b is not None
        return none + X[..., b] * precision[b]
    if b is None:
        return none + Z[..., a] * precision[a]
    return none + precision[a] if a == b else none


@paired_slope.register
def _(kernel: _Stationary, X: Array, Z: Array, a: int | None, b: int | None) -> Array:
    if a is None and b is None:
        return paired(kernel, X, Z)
    if kernel._rough:
        raise ValueError(f"functions with the kernel {kernel!r} have no derivatives: use nu=1.5 or more")
    lengths = dict(scales(kernel.length_scale, X))
    u = {k: differences(X, Z, k) / s for k, s in lengths.items()}
    q = kernel._factor * sum(value**2 for value in u.values())
    slope = kernel._f_and_slope(q)[1]
    if a is None:
        assert b is not None
        return slope * u[b] / lengths[b]
    if b is None:
        return -slope * u[a] / lengths[a]
    mixed = -_curvature(kernel, q) * u[a] * u[b] / (lengths[a] * lengths[b])
    return mixed + slope / lengths[a] ** 2 if a == b else mixed


@singledispatch
def _curvature(kernel: _Stationary, q: Array) -> Array:  # noqa: ARG001
    """Four times the second derivative of f by r^2."""
    raise kernel._no_input_gradient()


@_curvature.register
def _(kernel: RBF, q: Array) -> Array:
    return kernel._f_and_slope(q)[1]


@_curvature.register
def _(kernel: Matern, q: Array) -> Array:
    xp = arrays.namespace(q)
    s = xp.sqrt(q)
    if kernel.nu == 1.5:  # infinite at 0, where it belongs to differences that vanish
        return 9 * xp.exp(-s) / xp.where(s > 0, s, xp.inf)
    return (25 / 3) * xp.exp(-s)


@_curvature.register
def _(kernel: RationalQuadratic, q: Array) -> Array:
    return (1 + 1 / kernel.alpha) * kernel._f_and_slope(q)[1] / (1 + q)


@paired_slope.register
def _(kernel: Periodic, X: Array, Z: Array, a: int | None, b: int | None) -> Array:
    k = paired(kernel, X, Z)
    if a is None and b is None:
        return k
    xp, lengths, periods = (
        arrays.namespace(X),
        *(dict(scales(s, X)) for s in (kernel.length_scale, kernel.period)),
    )

    def sine(j: int) -> Array:  # minus the derivative of log k by x_j
        w = 2 * np.pi / periods[j]
        return w / lengths[j] ** 2 * xp.sin(w * differences(X, Z, j))

    if a is None:
        assert b is not None
        return k * sine(b)
    if b is None:
        return -k * sine(a)
    mixed = -sine(a) * sine(b)
    if a == b:
        w = 2 * np.pi / periods[a]
        mixed = mixed + (w / lengths[a]) ** 2 * xp.cos(w * differences(X, Z, a))
    return k * mixed


@paired_slope.register
def _(kernel: Sum, X: Array, Z: Array, a: int | None, b: int | None) -> Array:
    return sum(paired_slope(part, X, Z, a, b) for part in kernel._kernels)


@paired_slope.register
def _(kernel: Product, X: Array, Z: Array, a: int | None, b: int | None) -> Array:
    first, second = kernel._kernels
    # each derivative acts on one of the factors
    on_x, on_z = ({(a, None), (None, a)}, {(b, None), (None, b)})
    return sum(
        paired_slope(first, X, Z, a1, b1) * paired_slope(second, X, Z, a2, b2)
        for a1, a2 in on_x
        for b1, b2 in on_z
    )


@paired_slope.register
def _(kernel: Power, X: Array, Z: Array, a: int | None, b: int | None) -> Array:
    part, n = kernel.kernel, kernel.exponent
    k = paired(part, X, Z)
    if a is None and b is None:
        return k**n
    if a is None or b is None:
        return n * k ** (n - 1) * paired_slope(part, X, Z, a, b)
    result = n * k ** (n - 1) * paired_slope(part, X, Z, a, b)
    if n > 1:
        slopes = paired_slope(part, X, Z, a, None) * paired_slope(part, X, Z, None, b)
        result = result + n * (n - 1) * k ** (n - 2) * slopes
    return result
