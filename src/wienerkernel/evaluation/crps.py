"""The continuous ranked probability score (CRPS) of any law, by quadrature of its distribution function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray

__all__ = ["crps"]

OUTSIDE = 1e-5
"""Probability on either side beyond which the CRPS is not integrated, unless y lies there."""
TOLERANCE, HALVED, ROUNDS = 1e-6, 2, 10
"""Target relative error, estimated by Gauss's rule; intervals halved per round, and maximum number of rounds."""
# Kronrod's rule of 15 nodes, with Gauss's of 7 in it; the other half is symmetric
_NODES = [
    0.991455371120812639,
    0.949107912342758525,
    0.864864423359769073,
    0.741531185599394440,
    0.586087235467691130,
    0.405845151377397167,
    0.207784955007898468,
]
_WEIGHTS = [
    0.022935322010529225,
    0.063092092629978553,
    0.104790010322250184,
    0.140653259715525919,
    0.169004726639267903,
    0.190350578064785410,
    0.204432940075298892,
]
KRONROD = np.array([*(-node for node in _NODES), 0.0, *_NODES[::-1]])
KRONROD_WEIGHTS = np.array([*_WEIGHTS, 0.209482141084727828, *_WEIGHTS[::-1]])
GAUSS_WEIGHTS = np.zeros(15)
GAUSS_WEIGHTS[1::2] = np.polynomial.legendre.leggauss(7)[1]


def crps(law: Any, y: ArrayLike) -> FloatArray:
    """Continuous ranked probability score, the integral of (F(x) - [y <= x])^2.

    Parameters
    ----------
    law : distribution with ``cdf``, ``sf``, ``ppf`` and ``isf``
        Of shape S.
    y : array-like
        Broadcast against S.

    Returns
    -------
    ndarray of shape broadcast(y.shape, S)

    Examples
    --------
    >>> from scipy import stats
    >>> round(float(crps(stats.norm(), 0.0)), 9)       # (sqrt(2) - 1) / sqrt(pi)
    0.233694977
    """
    points = np.asarray(y, dtype=float)
    low, middle, high = law.ppf(OUTSIDE), law.ppf(0.5), law.isf(OUTSIDE)

    def integrand(x: FloatArray) -> FloatArray:
        below = law.cdf(np.maximum(x, low))
        if np.any(points < low):  # small probabilities can be costly, those near 1 are not
            below = np.where(x < low, 1 - law.sf(np.minimum(x, low)), below)
        return np.asarray(np.where(x < points, below, 1 - below) ** 2)

    return _integral(integrand, np.sort(np.stack(np.broadcast_arrays(low, middle, high, points)), axis=0))


def _integral(function: Callable[[FloatArray], FloatArray], edges: FloatArray) -> FloatArray:
    """Integrals from the first to the last of sorted edges, (k, *S), by halving intervals of the largest errors."""
    low, high = edges[:-1], edges[1:]
    value, error = _kronrod(function, low, high)
    for _ in range(ROUNDS):
        if np.all(error.sum(axis=0) <= TOLERANCE * value.sum(axis=0)):
            break
        order = np.argsort(-error, axis=0)
        low, high, value, error = (np.take_along_axis(a, order, axis=0) for a in (low, high, value, error))
        middle = 0.5 * (low[:HALVED] + high[:HALVED])
        halves = np.concatenate([low[:HALVED], middle]), np.concatenate([middle, high[:HALVED]])
        new = *halves, *_kronrod(function, *halves)
        low, high, value, error = (
            np.concatenate([a, b[HALVED:]]) for a, b in zip(new, (low, high, value, error), strict=True)
        )
    return np.asarray(value.sum(axis=0))


def _kronrod(
    function: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Integrals over intervals, (k, *S), and their errors: Gauss's rule of 7 nodes in Kronrod's of 15."""
    half = 0.5 * (high - low)
    nodes = low + half * (1 + KRONROD.reshape(-1, *[1] * half.ndim))
    values = function(nodes.reshape(-1, *half.shape[1:])).reshape(nodes.shape)
    fine, coarse = (half * np.tensordot(w, values, axes=1) for w in (KRONROD_WEIGHTS, GAUSS_WEIGHTS))
    return fine, np.abs(fine - coarse)
