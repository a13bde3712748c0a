"""Minimizing many functions of one variable at a time, by golden sections."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import FloatArray

__all__ = ["golden_sections"]

GOLDEN = (np.sqrt(5.0) - 1) / 2


def golden_sections(
    function: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray]:
    """Narrow intervals that hold a minimum each.

    Parameters
    ----------
    function : callable
        Elementwise, with a single valley between ``low`` and ``high``.
    low, high : ndarray
        Ends of the intervals, of one shape.
    steps : int
        Each shortens the intervals by the factor 0.618.

    Returns
    -------
    middle : ndarray
        Of the last intervals.
    value : ndarray
        Least value that was met in them.
    """
    inner, outer = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_inner, at_outer = function(inner), function(outer)
    for _ in range(steps):
        smaller = at_inner < at_outer
        low, high = np.where(smaller, low, inner), np.where(smaller, outer, high)
        probe = np.where(smaller, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_probe = function(probe)
        inner, outer = np.where(smaller, probe, outer), np.where(smaller, inner, probe)
        at_inner, at_outer = np.where(smaller, at_probe, at_outer), np.where(smaller, at_inner, at_probe)
    return np.asarray(0.5 * (low + high)), np.minimum(at_inner, at_outer)
