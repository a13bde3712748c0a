"""What a hyperparameter may be: a positive number or one per input, with bounds or fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray

__all__ = ["DEFAULT_BOUNDS", "Bounds", "Scale", "checked_bounds", "checked_scale", "log_bounds"]

Scale: TypeAlias = float | Sequence[float] | FloatArray
Bounds: TypeAlias = tuple[float, float] | Sequence[tuple[float, float]] | FloatArray | Literal["fixed"]

DEFAULT_BOUNDS = (1e-5, 1e5)


def checked_scale(name: str, value: ArrayLike, per_input: bool) -> float | tuple[float, ...]:
    """Return ``value`` as a float or, where ``per_input`` allows it, as a tuple of floats; all positive and finite."""
    accepted = "a positive finite number" + (", or one per input" if per_input else "")
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {accepted}; got {value!r}") from None
    if numbers.ndim > per_input or numbers.size == 0:
        raise ValueError(f"{name} must be {accepted}; got an array of shape {numbers.shape}")
    if not (np.all(numbers > 0) and np.all(np.isfinite(numbers))):
        raise ValueError(f"{name} must be {accepted}; got {value!r}")
    return float(numbers) if numbers.ndim == 0 else tuple(map(float, numbers))


def checked_bounds(
    name: str, bounds: Bounds, value: float | tuple[float, ...]
) -> tuple[float, float] | tuple[tuple[float, float], ...] | Literal["fixed"]:
    """Return ``bounds`` as "fixed", as one pair of floats, or as one pair per entry of ``value``."""
    accepted = 'a pair (low, high) with 0 < low <= high, one such pair per input, or "fixed"'
    if isinstance(bounds, str):
        if bounds != "fixed":
            raise ValueError(f"{name} must be {accepted}; got {bounds!r}")
        return "fixed"
    try:
        pairs = np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {accepted}; got {bounds!r}") from None
    if pairs.shape == (1, 2):
        pairs = pairs[0]
    size = len(value) if isinstance(value, tuple) else 1
    if pairs.shape not in ((2,), (size, 2)) or not np.all(
        (pairs[..., 0] > 0) & (pairs[..., 0] <= pairs[..., 1])
    ):
        raise ValueError(f"{name} must be {accepted}; got {bounds!r} for {size} value(s)")
    if pairs.ndim == 1:
        low, high = map(float, pairs)
        return low, high
    return tuple((float(low), float(high)) for low, high in pairs)


def log_bounds(bounds: Bounds, value: Scale) -> FloatArray:
    """Return the logarithms of ``bounds``, one row per entry of ``value``."""
    size = len(value) if isinstance(value, tuple) else 1
    return np.log(np.broadcast_to(np.asarray(bounds, dtype=np.float64), (size, 2)))
