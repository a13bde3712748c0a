"""Features of a kernel, k(x, x') = phi(x)'phi(x'): exact where there are finitely many, or Fourier features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import roots_hermitenorm

from .._typing import Array, FloatArray
from ..backend import arrays
from ..kernels import RBF, Constant, FeatureMap, Kernel, Linear, Power, Product, Sum, spectral
from ..kernels.base import no_input_gradient

__all__ = ["Features", "feature_map"]


class Features(NamedTuple):
    """phi, a function of the rows of X, (m, d), with values (m, n_phi), and its derivative by an input."""

    values: Callable[[Array], Array]
    slopes: Callable[[Array, int], Array]


MOST = 4096  # features of a product or power of kernels
MOST_NODES = 150  # nodes of the Gauss rule for one input; it is exact to 1e-12 over 17 length scales


def feature_map(kernel: Kernel, places: Array, features: Any, generator: Any) -> Features | None:
    """phi for "auto" (exact or None), None, or a number of Fourier features; TypeError if the kernel has none."""
    if features is None:
        return None
    exact = _exact(kernel)
    if exact is not None and exact.values(places[:1, :]).shape[1] <= MOST:
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
        frequencies, amplitudes = (
            nodes[positive, None] / scale,
            np.sqrt(2 * variance * weights[positive] / weights.sum()),
        )
    else:
        count = int(features) // 2
        frequencies = spectral.frequencies(kernel, count, d, generator)
        amplitudes = np.full(count, np.sqrt(spectral.prior_variance(kernel) / count))
    center = arrays.namespace(places).mean(places, axis=0)

    def waves(X: Array) -> tuple[Array, Array]:
        xp = arrays.namespace(X)
        angles = (X - center) @ arrays.like(frequencies.T, X)
        factor = arrays.like(amplitudes, X)
        return factor * xp.cos(angles), factor * xp.sin(angles)

    def slopes(X: Array, k: int) -> Array:
        (cosine, sine), frequency = waves(X), arrays.like(frequencies[:, k], X)
        return arrays.namespace(X).concat([-frequency * sine, frequency * cosine], axis=1)

    return Features(lambda X: arrays.namespace(X).concat(list(waves(X)), axis=1), slopes)


def _exact(kernel: Kernel) -> Features | None:
    """phi of a kernel that has finitely many features, otherwise None."""
    if isinstance(kernel, Constant):
        return Features(
            lambda X: arrays.filled((X.shape[0], 1), np.sqrt(kernel.value), X),
            lambda X, _: arrays.filled((X.shape[0], 1), 0.0, X),
        )
    if isinstance(kernel, Linear):

        def one_input(X: Array, k: int) -> Array:
            row = np.zeros(X.shape[1])
            row[k] = 1.0
            return (0 * X + arrays.like(row, X)) / arrays.like(kernel.length_scale, X)

        return Features(lambda X: X / arrays.like(kernel.length_scale, X), one_input)
    if isinstance(kernel, FeatureMap):

        def unknown(X: Array, k: int) -> Array:  # noqa: ARG001
            raise no_input_gradient(kernel)

        return Features(lambda X: kernel.scale * kernel.features(X), unknown)
    if not isinstance(kernel, Sum | Product | Power):
        return None
    parts = [_exact(part) for part in kernel.kernels]
    maps = [part for part in parts if part is not None] * (
        kernel.exponent if isinstance(kernel, Power) else 1
    )
    if None in parts or len(maps) > 12:
        return None

    def joined(columns: list[Array]) -> Array:
        if isinstance(kernel, Sum):
            return arrays.namespace(columns[0]).concat(columns, axis=1)
        result = columns[0]
        for column in columns[1:]:
            products = result[:, :, None] * column[:, None, :]
            result = arrays.namespace(result).reshape(products, (column.shape[0], -1))
        return result

    def slopes(X: Array, k: int) -> Array:
        if isinstance(kernel, Sum):
            return joined([part.slopes(X, k) for part in maps])
        columns = [part.values(X) for part in maps]
        return sum(
            joined([*columns[:i], part.slopes(X, k), *columns[i + 1 :]]) for i, part in enumerate(maps)
        )

    return Features(lambda X: joined([part.values(X) for part in maps]), slopes)


def _single_rbf(kernel: Kernel) -> tuple[float, float] | None:
    """Variance and length scale of a multiple of an RBF kernel of one input, otherwise None."""
    if isinstance(kernel, RBF):
        return 1.0, float(np.ravel(kernel.length_scale)[0])
    if isinstance(kernel, Product):
        for constant, other in (kernel.kernels, kernel.kernels[::-1]):
            if isinstance(constant, Constant) and (one := _single_rbf(other)) is not None:
                return constant.value * one[0], one[1]
    return None
