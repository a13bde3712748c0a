"""Frequencies drawn from the spectral density of a stationary kernel (Bochner's theorem).

k(x, z) = k0 E cos(w'(x - z)) with k0 = k(x, x): w is normal for `RBF`, a multivariate t for `Matern`, a scale mixture of
normal vectors for `RationalQuadratic`. In a sum each part is drawn with its share of k0, in a product frequencies add.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from .base import Constant, Kernel, Power, Product, Sum, elementary
from .stationary import RBF, Matern, RationalQuadratic

__all__ = ["frequencies", "prior_variance"]


def prior_variance(kernel: Kernel) -> float:
    """k(x, x) of a stationary kernel."""
    width = max(np.size(getattr(leaf, "length_scale", 1.0)) for leaf in elementary(kernel))
    return float(np.asarray(kernel.diag(np.zeros((1, width))))[0])


def frequencies(kernel: Kernel, size: int, d: int, generator: Any) -> FloatArray:
    """Draw frequencies w, (size, d); TypeError if the spectral density is not known."""
    if isinstance(kernel, Sum):
        first = prior_variance(kernel.k1)
        share = first / (first + prior_variance(kernel.k2))
        left, right = (frequencies(k, size, d, generator) for k in (kernel.k1, kernel.k2))
        return np.asarray(np.where(generator.random((size, 1)) < share, left, right))
    if isinstance(kernel, Product):
        return frequencies(kernel.k1, size, d, generator) + frequencies(kernel.k2, size, d, generator)
    if isinstance(kernel, Power):
        draws = (frequencies(kernel.kernel, size, d, generator) for _ in range(int(kernel.exponent)))
        return np.asarray(np.sum(list(draws), axis=0))
    if isinstance(kernel, Constant):
        return np.zeros((size, d))
    if isinstance(kernel, RBF):
        factor = np.ones(size)
    elif isinstance(kernel, Matern):
        twice = 2 * kernel.nu
        factor = np.sqrt(twice / generator.chisquare(twice, size))
    elif isinstance(kernel, RationalQuadratic):
        factor = np.sqrt(generator.gamma(kernel.alpha, 1 / kernel.alpha, size))
    else:
        raise TypeError(
            f"the spectral density of {kernel!r} is not known; that of RBF, Matern and RationalQuadratic, their sums and "
            "products is. Without it, approximation='neighbors' and sample_paths(features=None) work for every kernel"
        )
    normal = generator.standard_normal((size, d)) / np.asarray(kernel.length_scale)
    return np.asarray(normal * factor[:, None])
