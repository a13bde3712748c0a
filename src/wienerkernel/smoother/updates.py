"""Samples come and go: the smoother with more of them, or with some forgotten, without factorizing anew.

``Samples`` has the order of the places, and the factor follows it. Arrays of other libraries are factorized anew: where
they live, that is what goes fast.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..backend.growable_cholesky import GrowableCholesky, deleted, rank_one, squared_row_norms
from ..backend.linalg import NotPositiveDefiniteError
from ..kernels import gram
from .smoother import Smoother

__all__ = ["extended", "without"]

MOST_CHANGES = 1 / 128
"""Fraction of the rows that may change one by one before factorizing anew is cheaper: 13 of 2000 on one core."""

MOST_ROUNDING = (16.0, 1 / 32)
"""Relative error that the diagonal of L L' may have, in units of the rounding error: a number, and one per row.

A new factor has some n/100 of it, by theory at most n + 1 (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
theorem 10.3). In an updated one, the errors of all updates add up, and those of a variance that was far larger before.
"""


def extended(
    smoother: Smoother, X: Array, regularizer: FloatArray, scale: FloatArray, targets: FloatArray
) -> Smoother:
    """The smoother with more samples: new places are appended, repeats change the regularizer of their place.

    Parameters
    ----------
    smoother : Smoother
        Kept.
    X : array of shape (k, d)
    regularizer, scale : ndarray of shape (k,)
    targets : ndarray of shape (k, n_y)

    Returns
    -------
    Smoother
    """
    samples = smoother.samples.extended(X, regularizer, scale)
    targets = np.concatenate([smoother.targets, targets])
    n, kind = smoother.samples.n_places, smoother.trend.kind
    factor = _updated(smoother, np.arange(n), samples.regularizer[:n])
    if factor is None:
        return Smoother(smoother.kernel, samples, targets, kind)
    store = smoother.store if factor is smoother.factor and smoother.store else GrowableCholesky(factor, n)
    if samples.n_places > n:
        new = samples.points[n:]
        one = len(new) == 1
        corner = np.array(smoother.kernel.diag(new))[:, None] if one else gram(smoother.kernel, new)
        corner.flat[:: len(new) + 1] += samples.regularizer[n:]
        factor, store = store.append(factor, smoother.cross(new), corner)
    return Smoother(smoother.kernel, samples, targets, kind, factor, store)


def without(smoother: Smoother, rows: IntArray) -> Smoother:
    """The smoother without some of its samples.

    Parameters
    ----------
    smoother : Smoother
        Kept.
    rows : ndarray of int
        Indices of the samples to drop; at least one must remain.

    Returns
    -------
    Smoother
    """
    samples, left = smoother.samples.without(rows)
    targets = np.delete(smoother.targets, rows, axis=0)
    factor = _updated(smoother, left, samples.regularizer)
    return Smoother(smoother.kernel, samples, targets, smoother.trend.kind, factor)


def _updated(smoother: Smoother, left: IntArray, regularizer: FloatArray) -> FloatArray | None:
    """Factor of K + R for some of the places, with another regularizer: the old one if nothing changes.

    None if it is to be made anew: because many rows change, because it is not NumPy's, or because the rounding errors of
    this update and of those before have grown.
    """
    old = smoother.samples.regularizer
    gone, changed = np.delete(np.arange(len(old)), left), np.flatnonzero(old[left] != regularizer)
    changes = len(gone) + len(changed)
    if not arrays.is_numpy(smoother.factor) or changes > MOST_CHANGES * len(old) + 1:
        return None
    if not changes:
        return np.asarray(smoother.factor)
    factor = deleted(smoother.factor, gone)
    for place in changed:
        change = regularizer[place] - old[left[place]]
        vector = np.zeros(len(left))
        vector[place] = np.sqrt(abs(change))
        try:
            rank_one(factor, vector, np.sign(change))
        except NotPositiveDefiniteError:
            return None
    diagonal = smoother.kernel.diag(smoother.places[left]) + regularizer
    limit = (MOST_ROUNDING[0] + MOST_ROUNDING[1] * len(left)) * np.finfo(factor.dtype).eps
    accurate = np.all(np.abs(squared_row_norms(factor) - diagonal) <= limit * diagonal)
    return factor if accurate else None
