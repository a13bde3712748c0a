"""Samples come and go: the smoother with more of them, or with some forgotten, without factorising anew.

Arrays of other libraries are factorised anew: where they live, that is what goes fast.
"""

from __future__ import annotations

import numpy as np

from . import arrays
from ._typing import FloatArray, IntArray
from .growing import Growing, deleted, rank_one
from .kernels import gram
from .samples import Samples
from .smoother import Smoother

__all__ = ["extended", "without"]

MOST_CHANGES = 1 / 32
"""Part of the rows that may change one by one before factorising anew is cheaper."""


def extended(smoother: Smoother, samples: Samples, targets: FloatArray) -> Smoother:
    """The smoother with more samples: new places are appended, repeats change the regulariser of their place.

    Parameters
    ----------
    smoother : Smoother
        Kept.
    samples : Samples
        Those of the smoother, followed by the new ones.
    targets : ndarray of shape (D, n_y)

    Returns
    -------
    Smoother

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> one, two = (Samples.collapse(np.zeros((n, 1)), np.ones(n), np.ones(n)) for n in (1, 2))
    >>> extended(Smoother(RBF(), one, np.ones((1, 1))), two, np.ones((2, 1))).dual.round(12).tolist()
    [[0.666666666667]]
    """
    n = smoother.samples.n_places
    factor = _with_regulariser(smoother.factor, smoother.samples.regulariser, samples.regulariser[:n])
    if factor is None:
        return Smoother(smoother.kernel, samples, targets, smoother.trend.kind)
    store = smoother.store if factor is smoother.factor and smoother.store else Growing(factor, n)
    if samples.n_places > n:
        new = samples.points[n:]
        one = len(new) == 1
        corner = np.array(smoother.kernel.diag(new))[:, None] if one else gram(smoother.kernel, new)
        corner.flat[:: len(new) + 1] += samples.regulariser[n:]
        cross = smoother.cross(new)
        factor, store = store.append(factor, cross, corner)
    return Smoother(smoother.kernel, samples, targets, smoother.trend.kind, factor, store)


def without(smoother: Smoother, rows: IntArray) -> Smoother:
    """The smoother without some of its samples.

    Parameters
    ----------
    smoother : Smoother
        Kept.
    rows : ndarray of int
        Numbers of the samples to drop; at least one must remain.

    Returns
    -------
    Smoother

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> samples = Samples.collapse(np.array([[0.0], [9.0]]), np.ones(2), np.ones(2))
    >>> without(Smoother(RBF(), samples, np.ones((2, 1))), np.array([1])).places.tolist()
    [[0.0]]
    """
    samples = smoother.samples.without(rows)
    targets = np.delete(smoother.targets, rows, axis=0)
    remaining = np.unique(np.delete(smoother.samples.index, rows))
    regulariser = smoother.samples.regulariser.copy()
    regulariser[remaining] = samples.regulariser
    factor = _with_regulariser(smoother.factor, smoother.samples.regulariser, regulariser)
    gone = np.setdiff1d(np.arange(smoother.samples.n_places), remaining)
    if factor is None or len(gone) > MOST_CHANGES * smoother.samples.n_places + 1:
        return Smoother(smoother.kernel, samples, targets, smoother.trend.kind)
    for place in gone[::-1]:
        factor = deleted(factor, place)
    return Smoother(smoother.kernel, samples, targets, smoother.trend.kind, factor)


def _with_regulariser(factor: FloatArray, old: FloatArray, new: FloatArray) -> FloatArray | None:
    """Factor after changes of the diagonal; None if it had better be made anew: many change, or it is not NumPy's."""
    changed = np.flatnonzero(old != new)
    if not arrays.is_numpy(factor) or len(changed) > MOST_CHANGES * len(old) + 1:
        return None
    for place in changed:
        change = new[place] - old[place]
        vector = np.zeros(len(old))
        vector[place] = np.sqrt(abs(change))
        factor = rank_one(factor, vector, np.sign(change))
    return factor
