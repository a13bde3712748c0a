"""Checks of the arguments of a linear combination."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..noise import Noise, as_noise
from .divisible import check_counts

__all__ = ["Term", "as_levels", "as_terms", "finite"]

Term = tuple[Noise, FloatArray, FloatArray]
"""A law, weights of shape (..., D) and counts of shape (D,)."""


def finite(name: str, values: ArrayLike) -> FloatArray:
    """A copy of ``values``, which the law keeps; ValueError for NaN or infinity."""
    array = np.array(values, dtype=float)
    if not np.all(np.isfinite(array)):
        msg = f"{name} must be finite numbers, got NaN or infinity"
        raise ValueError(msg)
    return array


def as_levels(name: str, values: ArrayLike) -> FloatArray:
    """``values`` as an array of probabilities."""
    array = np.asarray(values, dtype=float)
    if not np.all((array >= 0) & (array <= 1)):
        msg = f"{name} must lie between 0 and 1, got {array}"
        raise ValueError(msg)
    return array


def as_terms(noise: Any, weights: Any, counts: Any) -> list[Term]:
    """One term, or one for each law of a list. A list of numbers is one law, that of recorded residuals."""
    if not isinstance(noise, list | tuple) or all(isinstance(part, Real) for part in noise):
        return [_term(noise, weights, counts)]
    counts = [None] * len(noise) if counts is None else counts
    if not len(noise) == len(weights) == len(counts):
        msg = f"{len(noise)} laws need as many arrays of weights and of counts, got {len(weights)} and {len(counts)}"
        raise ValueError(msg)
    return [_term(*part) for part in zip(noise, weights, counts, strict=True)]


def _term(noise: Any, weights: ArrayLike, counts: ArrayLike | None) -> Term:
    law, w = as_noise(noise), finite("weights", weights)
    if w.ndim == 0 or w.shape[-1] == 0:
        msg = f"weights must have shape (..., D) with D >= 1, got shape {w.shape}"
        raise ValueError(msg)
    width = w.shape[-1]
    n = np.ones(width) if counts is None else np.array(counts, dtype=float)
    if n.shape != (width,) or not np.all((n > 0) & np.isfinite(n)):
        msg = f"counts must be {width} positive numbers, one per weight, got {counts!r}"
        raise ValueError(msg)
    check_counts(law, n)
    return law, w, n
