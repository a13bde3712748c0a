"""Kernel values k(x, z) of pairs of points, element by element instead of as a matrix."""

from __future__ import annotations

from functools import singledispatch
from math import prod
from typing import Any

import numpy as np

from .._typing import Array
from ..backend import arrays
from .base import Constant, Kernel, _Composition
from .dot import FeatureMap, Linear
from .parameters import Scale
from .periodic import Periodic
from .stationary import _Stationary

__all__ = ["differences", "paired", "scales"]

BLOCK = 16
"""Pairs whose matrix is computed for its diagonal, where a kernel is known as a matrix only."""


@singledispatch
def paired(kernel: Kernel, X: Array, Z: Array) -> Array:
    """k(x, z) for arrays of points X and Z of shapes (..., d) that broadcast, of shape (...)."""
    xp = arrays.namespace(X)
    X, Z = xp.broadcast_arrays(X, Z)
    shape, d = X.shape[:-1], X.shape[-1]
    x, z = arrays.contiguous(xp.reshape(X, (-1, d))), arrays.contiguous(xp.reshape(Z, (-1, d)))
    blocks = [arrays.diagonal(kernel(x[a, :], z[a, :])) for a in arrays.slices(x.shape[0], BLOCK)]
    return xp.reshape(xp.concat([arrays.filled((0,), 0.0, x), *blocks]), shape)


@paired.register
def _(kernel: Constant, X: Array, Z: Array) -> Array:
    return arrays.filled(np.broadcast_shapes(X.shape[:-1], Z.shape[:-1]), kernel.value, X)


@paired.register
def _(kernel: _Stationary, X: Array, Z: Array) -> Array:
    return kernel._f(
        kernel._factor * sum((differences(X, Z, k) / s) ** 2 for k, s in scales(kernel.length_scale, X))
    )


@paired.register
def _(kernel: Periodic, X: Array, Z: Array) -> Array:
    xp, periods = arrays.namespace(X), dict(scales(kernel.period, X))
    sines = (
        2 * xp.sin(np.pi / periods[k] * differences(X, Z, k)) / s for k, s in scales(kernel.length_scale, X)
    )
    return kernel._f(kernel._factor * sum(s**2 for s in sines))


@paired.register
def _(kernel: Linear, X: Array, Z: Array) -> Array:
    return sum(X[..., k] * Z[..., k] / s**2 for k, s in scales(kernel.length_scale, X))


@paired.register
def _(kernel: FeatureMap, X: Array, Z: Array) -> Array:
    xp = arrays.namespace(X)
    left, right = (
        xp.reshape(kernel.features(xp.reshape(P, (prod(P.shape[:-1]), P.shape[-1]))), (*P.shape[:-1], -1))
        for P in (X, Z)
    )
    return kernel.scale**2 * xp.sum(left * right, axis=-1)


@paired.register
def _(kernel: _Composition, X: Array, Z: Array) -> Array:
    return kernel._f(*(paired(part, X, Z) for part in kernel._kernels))


def scales(scale: Scale, X: Array) -> list[tuple[int, Any]]:
    """Number and length scale of each input."""
    return list(enumerate(np.broadcast_to(np.asarray(scale, dtype=float), X.shape[-1]).tolist()))


def differences(X: Array, Z: Array, k: int) -> Array:
    """x_k - z_k of pairs of points."""
    return X[..., k] - Z[..., k]
