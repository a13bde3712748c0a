"""Features of a kernel, k(x, x') = phi(x)'phi(x'): exact where there are finitely many, or Fourier features."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from scipy.special import roots_hermitenorm

from .._typing import Array, FloatArray
from ..backend import arrays
from ..kernels import RBF, Constant, FeatureMap, Kernel, Linear, Power, Product, Sum, spectral

__all__ = ["feature_map", "slope"]

Phi = Callable[[Array], Array]
"""phi: the rows of X, (m, d), to features (m, n_phi)."""
MOST = 4096  # features of a product or power of kernels
MOST_NODES = 150  # nodes of the Gauss rule for one input; it is exact to 1e-12 over 17 length scales
TINY = 1e-30  # complex step


def feature_map(kernel: Kernel, places: Array, features: Any, generator: Any) -> Phi | None:
    """phi for "auto" (exact or None), None, or a number of Fourier features; TypeError if the kernel has none."""
    if features is None:
        return None
    exact = _exact(kernel)
    if exact is not None and exact(places[:1, :]).shape[1] <= MOST:
        return exact
    if isinstance(features, str) and features == "auto":
        return None
    if isinstance(features, bool) or not isinstance(features, int | np.integer) or features < 2:
        raise ValueError(f"features must be 'auto', None or an integer of at least 2, got {features!r}")
    d = places.shape[1]
    frequencies: FloatArray
    amplitudes: FloatArray
    if d == 1 and (one := _single_rbf(kernel)) is not None:
        variance, scale = one
        nodes, weights = roots_hermitenorm(2 * (min(int(features), MOST_NODES) // 2))
        positive = nodes > 0
        frequencies = nodes[positive, None] / scale
        amplitudes = np.sqrt(2 * variance * weights[positive] / weights.sum())
    else:
        count = int(features) // 2
        frequencies = spectral.frequencies(kernel, count, d, generator)
        amplitudes = np.full(count, np.sqrt(spectral.prior_variance(kernel) / count))
    center = arrays.namespace(places).mean(places, axis=0)

    def waves(X: Array) -> Array:
        xp = arrays.namespace(X)
        angles, factor = (X - center) @ arrays.like(frequencies.T, X), arrays.like(amplitudes, X)
        return xp.concat([factor * xp.cos(angles), factor * xp.sin(angles)], axis=1)

    return waves


def slope(phi: Phi, X: Array, k: int) -> Array:
    """Derivative of phi by input k, (m, n_phi): phi is analytic, so a tiny complex step is exact."""
    step = np.zeros(X.shape[1])
    step[k] = TINY
    return arrays.namespace(X).imag(phi(X + 1j * arrays.like(step, X))) / TINY


def _exact(kernel: Kernel) -> Phi | None:
    """phi of a kernel that has finitely many features, otherwise None."""
    if isinstance(kernel, Constant):
        return lambda X: arrays.filled((X.shape[0], 1), np.sqrt(kernel.value), X)
    if isinstance(kernel, Linear):
        return lambda X: X / arrays.like(kernel.length_scale, X)
    if isinstance(kernel, FeatureMap):
        return lambda X: kernel.scale * kernel.features(X)
    if not isinstance(kernel, Sum | Product | Power):
        return None
    repeats = kernel.exponent if isinstance(kernel, Power) else 1
    maps = [_exact(part) for part in kernel.kernels] * repeats
    if None in maps or len(maps) > 12:
        return None

    def joined(X: Array) -> Array:
        columns, xp = [phi(X) for phi in maps if phi is not None], arrays.namespace(X)
        if isinstance(kernel, Sum):
            return xp.concat(columns, axis=1)
        return reduce(lambda a, b: xp.reshape(a[:, :, None] * b[:, None, :], (X.shape[0], -1)), columns)

    return joined


def _single_rbf(kernel: Kernel) -> tuple[float, float] | None:
    """Variance and length scale of a multiple of an RBF kernel of one input, otherwise None."""
    if isinstance(kernel, RBF):
        return 1.0, float(np.ravel(kernel.length_scale)[0])
    if isinstance(kernel, Product):
        for constant, other in (kernel.kernels, kernel.kernels[::-1]):
            if isinstance(constant, Constant) and (one := _single_rbf(other)) is not None:
                return constant.value * one[0], one[1]
    return None
