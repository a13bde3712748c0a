"""Functions of every entry of a tile, in place where the library's arrays can change.

Each returns its result; whoever calls it goes on with that and no longer with the argument.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..backend import arrays
from ..backend.arrays import is_numpy

__all__ = ["at_least", "at_most", "exp", "log1p", "sqrt"]


def exp(x: Array) -> Array:
    """Return exp(x), in place of x."""
    return np.exp(x, out=x) if is_numpy(x) else _apply("exp", x)


def sqrt(x: Array) -> Array:
    """Return the square root of x, in its place."""
    return np.sqrt(x, out=x) if is_numpy(x) else _apply("sqrt", x)


def log1p(x: Array) -> Array:
    """Return log(1 + x), in place of x."""
    return np.log1p(x, out=x) if is_numpy(x) else _apply("log1p", x)


def at_least(x: Array, low: float) -> Array:
    """Return max(x, low), in place of x."""
    if is_numpy(x):
        return np.maximum(x, low, out=x)
    return x.clamp_(min=low) if arrays.library(x) == "torch" else arrays.namespace(x).clip(x, min=low)


def at_most(x: Array, high: float) -> Array:
    """Return min(x, high), in place of x."""
    if is_numpy(x):
        return np.minimum(x, high, out=x)
    return x.clamp_(max=high) if arrays.library(x) == "torch" else arrays.namespace(x).clip(x, max=high)


def _apply(name: str, x: Array) -> Array:
    function = getattr(arrays.namespace(x), name)
    return function(x, out=x) if arrays.library(x) in ("torch", "cupy") else function(x)
