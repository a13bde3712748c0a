"""Adding and removing samples by updates of the smoother's factor.

The factor follows the order of the places in ``Samples``. Arrays of other libraries are refactorized: on their
devices, factorizing is fast.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..backend.growable_cholesky import GrowableCholesky, updated
from ..backend.linalg import matmul, solve_lower
from ..kernels import gram
from .smoother import Smoother

__all__ = ["extended", "without"]


def extended(
    smoother: Smoother, X: Array, regularizer: FloatArray, scale: FloatArray, targets: FloatArray
) -> Smoother:
    """Add samples X (k, d) with targets (k, n_y): new places are appended, repeats change the regularizer of a place."""
    samples = smoother.samples.extended(X, regularizer, scale)
    targets = np.concatenate([smoother.targets, targets])
    n, kind = smoother.samples.n_places, smoother.trend.kind
    factor = _updated(smoother, np.arange(n), samples.regularizer[:n])
    if factor is None:
        return type(smoother)(smoother.kernel, samples, targets, kind)
    growable = smoother.growable if factor is smoother.factor else None
    growable = growable or GrowableCholesky(factor, n)
    # L^-1 H of the known places stays; those of a linear trend depend on the center of all places.
    whitened = smoother.whitened_trend if kind == "constant" and factor is smoother.factor else None
    if samples.n_places > n:
        new = samples.places[n:]
        one = len(new) == 1
        corner = np.array(smoother.kernel.diag(new))[:, None] if one else gram(smoother.kernel, new)
        corner.flat[:: len(new) + 1] += samples.regularizer[n:]
        factor, growable = growable.append(factor, smoother.cross(new), corner)
        if whitened is not None:
            rest = 1 - matmul(whitened, np.ascontiguousarray(factor[n:, :n]), transpose_b=True)
            rest = solve_lower(np.ascontiguousarray(factor[n:, n:]), rest)
            whitened = np.concatenate([whitened, rest], axis=1)
    return Smoother(smoother.kernel, samples, targets, kind, factor, growable, whitened_trend=whitened)


def without(smoother: Smoother, rows: IntArray) -> Smoother:
    """Drop the samples with the given indices; at least one must remain."""
    samples, left = smoother.samples.without(rows)
    targets = np.delete(smoother.targets, rows, axis=0)
    kind, factor = smoother.trend.kind, _updated(smoother, left, samples.regularizer)
    if factor is None:
        return type(smoother)(smoother.kernel, samples, targets, kind)
    return Smoother(smoother.kernel, samples, targets, kind, factor)


def _updated(smoother: Smoother, left: IntArray, regularizer: FloatArray) -> FloatArray | None:
    """Factor of K + R for the places that are left, with their new regularizer; None if it must be refactorized."""
    if not arrays.is_numpy(smoother.factor) or type(smoother) is not Smoother:
        return None
    change = regularizer - smoother.samples.regularizer[left]
    if len(left) == len(smoother.factor) and not change.any():
        return np.asarray(smoother.factor)
    diagonal = smoother.kernel.diag(smoother.places[left]) + regularizer
    return updated(smoother.factor, left, change, diagonal)
