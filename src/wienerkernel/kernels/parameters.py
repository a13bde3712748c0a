"""What a hyperparameter may be, a positive number or one per input, with bounds or fixed; and their logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray

__all__ = [
    "DEFAULT_BOUNDS",
    "Bounds",
    "Parametrized",
    "Scale",
    "check_columns",
    "checked_bounds",
    "checked_scale",
    "log_bounds",
]

Scale: TypeAlias = float | Sequence[float] | FloatArray
Bounds: TypeAlias = tuple[float, float] | Sequence[tuple[float, float]] | FloatArray | Literal["fixed"]

DEFAULT_BOUNDS = (1e-5, 1e5)


class Parametrized:
    """An object whose fields named in ``_hyperparameters`` are positive, each with a field of bounds beside it.

    `theta` holds the logarithms of those that are not fixed.

    Examples
    --------
    >>> from wienerkernel.kernels import RBF
    >>> RBF([1.0, 2.0]).names
    ('length_scale[0]', 'length_scale[1]')
    """

    _hyperparameters: ClassVar[tuple[str, ...]] = ()
    _per_input: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self._hyperparameters:
            value = checked_scale(name, getattr(self, name), per_input=name in self._per_input)
            bounds = checked_bounds(f"{name}_bounds", getattr(self, f"{name}_bounds"), value)
            object.__setattr__(self, name, value)
            object.__setattr__(self, f"{name}_bounds", bounds)

    @property
    def _free(self) -> tuple[str, ...]:
        """Hyperparameters that are not fixed."""
        return tuple(name for name in self._hyperparameters if getattr(self, f"{name}_bounds") != "fixed")

    @property
    def _n_theta(self) -> int:
        return sum(np.size(getattr(self, name)) for name in self._free)

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the free hyperparameters, of shape (p,)."""
        values = [np.empty(0), *(np.atleast_1d(getattr(self, name)) for name in self._free)]
        logs: FloatArray = np.log(np.concatenate(values))
        return logs

    @property
    def bounds(self) -> FloatArray:
        """Bounds of `theta`, of shape (p, 2); logarithms as well."""
        pairs = [log_bounds(getattr(self, f"{name}_bounds"), getattr(self, name)) for name in self._free]
        return np.concatenate([np.empty((0, 2)), *pairs])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of `theta`."""
        named: list[str] = []
        for name in self._free:
            value = getattr(self, name)
            named += [f"{name}[{i}]" for i in range(len(value))] if isinstance(value, tuple) else [name]
        return tuple(named)

    def _checked_theta(self, theta: ArrayLike) -> FloatArray:
        logs = np.asarray(theta, dtype=np.float64)
        if logs.shape != (self._n_theta,):
            raise ValueError(
                f"theta must have shape ({self._n_theta},), one entry per name; got {logs.shape}"
            )
        return logs


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


def check_columns(name: str, value: Scale, d: int) -> None:
    """Refuse one value per input where there are not as many inputs."""
    if isinstance(value, tuple) and len(value) != d:
        raise ValueError(f"{name} has {len(value)} entries, but X has {d} columns")


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
