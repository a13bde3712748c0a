"""Kernel values k(x, z) of pairs of points, and their derivatives by the inputs: the covariances of derivatives of f."""

from __future__ import annotations

from math import prod

import numpy as np

from .._typing import Array
from ..backend import arrays
from .base import Constant, Kernel, Power, Product, Sum, _Composition, no_input_gradient
from .dot import FeatureMap, Linear
from .parameters import Scale
from .stationary import Matern, Periodic, RationalQuadratic, _Stationary

__all__ = ["paired"]

BLOCK = 16  # pairs whose matrix is computed for its diagonal, where a kernel is known as a matrix only


def paired(kernel: Kernel, X: Array, Z: Array, a: int | None = None, b: int | None = None) -> Array:
    """k(x, z) of points X and Z (..., d) that broadcast, or its derivative by input a of x and input b of z; (...).

    TypeError if the derivatives are not known, ValueError if functions with this kernel have none.
    """
    if a is not None:
        return _slope(kernel, X, Z, a, b)
    return _value(kernel, X, Z) if b is None else _slope(kernel, Z, X, b, None)  # k is symmetric


def _value(kernel: Kernel, X: Array, Z: Array) -> Array:
    xp = arrays.namespace(X)
    match kernel:
        case Constant():
            return _filled(kernel.value, X, Z)
        case Linear():
            scales = _scales(kernel.length_scale, X)
            return sum(X[..., k] * Z[..., k] / s**2 for k, s in enumerate(scales))
        case FeatureMap():
            left, right = (
                xp.reshape(
                    kernel.features(xp.reshape(P, (prod(P.shape[:-1]), P.shape[-1]))), (*P.shape[:-1], -1)
                )
                for P in (X, Z)
            )
            return kernel.scale**2 * xp.sum(left * right, axis=-1)
        case _Stationary():
            return kernel._f(kernel._factor * sum(u**2 for u in _scaled_differences(kernel, X, Z)))
        case _Composition():
            return kernel._f(*(_value(part, X, Z) for part in kernel.kernels))
    X, Z = xp.broadcast_arrays(X, Z)
    shape, d = X.shape[:-1], X.shape[-1]
    x, z = arrays.contiguous(xp.reshape(X, (-1, d))), arrays.contiguous(xp.reshape(Z, (-1, d)))
    blocks = [arrays.diagonal(kernel(x[a, :], z[a, :])) for a in arrays.slices(x.shape[0], BLOCK)]
    return xp.reshape(xp.concat(blocks), shape)


def _slope(kernel: Kernel, X: Array, Z: Array, a: int, b: int | None) -> Array:
    match kernel:
        case Constant():
            return _filled(0.0, X, Z)
        case Linear():
            none, precision = _filled(0.0, X, Z), _scales(kernel.length_scale, X)[a] ** -2
            if b is None:
                return none + Z[..., a] * precision
            return none + precision if a == b else none
        case Periodic():
            return _periodic_slope(kernel, X, Z, a, b)
        case _Stationary():
            return _stationary_slope(kernel, X, Z, a, b)
        case Sum():
            return sum(paired(part, X, Z, a, b) for part in kernel.kernels)
        case Product():  # each derivative acts on one of the factors
            return sum(
                paired(kernel.k1, X, Z, a1, b1) * paired(kernel.k2, X, Z, a2, b2)
                for a1, a2 in ((a, None), (None, a))
                for b1, b2 in {(b, None), (None, b)}
            )
        case Power():
            part, n = kernel.kernel, kernel.exponent
            k = _value(part, X, Z)
            result = n * k ** (n - 1) * paired(part, X, Z, a, b)
            if b is not None and n > 1:
                slopes = paired(part, X, Z, a) * paired(part, X, Z, None, b)
                result = result + n * (n - 1) * k ** (n - 2) * slopes
            return result
    raise no_input_gradient(kernel)


def _stationary_slope(kernel: _Stationary, X: Array, Z: Array, a: int, b: int | None) -> Array:
    if kernel._rough:
        raise ValueError(f"functions with the kernel {kernel!r} have no derivatives: use nu=1.5 or more")
    lengths, u = _scales(kernel.length_scale, X), _scaled_differences(kernel, X, Z)
    q = kernel._factor * sum(value**2 for value in u)
    slope = kernel._f_and_slope(q)[1]
    if b is None:
        return -slope * u[a] / lengths[a]
    mixed = -_curvature(kernel, q, slope) * u[a] * u[b] / (lengths[a] * lengths[b])
    return mixed + slope / lengths[a] ** 2 if a == b else mixed


def _curvature(kernel: _Stationary, q: Array, slope: Array) -> Array:
    """Four times the second derivative of f by r^2."""
    if isinstance(kernel, RationalQuadratic):
        return (1 + 1 / kernel.alpha) * slope / (1 + q)
    if not isinstance(kernel, Matern):  # RBF
        return slope
    xp = arrays.namespace(q)
    s = xp.sqrt(q)
    if kernel.nu == 1.5:  # infinite at 0, where it belongs to differences that vanish
        return 9 * xp.exp(-s) / xp.where(s > 0, s, xp.inf)
    return (25 / 3) * xp.exp(-s)


def _periodic_slope(kernel: Periodic, X: Array, Z: Array, a: int, b: int | None) -> Array:
    xp, k = arrays.namespace(X), _value(kernel, X, Z)
    lengths, periods = (_scales(s, X) for s in (kernel.length_scale, kernel.period))

    def sine(j: int) -> Array:  # minus the derivative of log k by x_j
        w = 2 * np.pi / periods[j]
        return w / lengths[j] ** 2 * xp.sin(w * (X[..., j] - Z[..., j]))

    if b is None:
        return -k * sine(a)
    mixed = -sine(a) * sine(b)
    if a == b:
        w = 2 * np.pi / periods[a]
        mixed = mixed + (w / lengths[a]) ** 2 * xp.cos(w * (X[..., a] - Z[..., a]))
    return k * mixed


def _scaled_differences(kernel: _Stationary, X: Array, Z: Array) -> list[Array]:
    """One for each input; the sum of their squares is r^2."""
    xp = arrays.namespace(X)
    differences = [X[..., k] - Z[..., k] for k in range(X.shape[-1])]
    if isinstance(kernel, Periodic):  # chords of circles
        periods = _scales(kernel.period, X)
        differences = [2 * xp.sin(np.pi / p * u) for p, u in zip(periods, differences, strict=True)]
    return [u / s for s, u in zip(_scales(kernel.length_scale, X), differences, strict=True)]


def _filled(value: float, X: Array, Z: Array) -> Array:
    return arrays.filled(np.broadcast_shapes(X.shape[:-1], Z.shape[:-1]), value, X)


def _scales(scale: Scale, X: Array) -> list[float]:
    """Length scale or period of each input."""
    return list(np.broadcast_to(np.asarray(scale, dtype=float), X.shape[-1]).tolist())
