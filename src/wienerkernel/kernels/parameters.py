"""Hyperparameters: positive numbers, one or one per input, with bounds or fixed; and their logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray

__all__ = ["DEFAULT_BOUNDS", "Bounds", "Parametrized", "Scale", "check_columns"]

Scale: TypeAlias = float | Sequence[float] | FloatArray
Bounds: TypeAlias = tuple[float, float] | Sequence[tuple[float, float]] | FloatArray | Literal["fixed"]

DEFAULT_BOUNDS = (1e-5, 1e5)


class Parametrized:
    """A dataclass whose fields in ``_hyperparameters`` are positive, each with a field of bounds beside it.

    `theta` holds the logarithms of those that are not fixed, then the theta of the fields in ``_operands``.
    """

    _hyperparameters: ClassVar[tuple[str, ...]] = ()
    _per_input: ClassVar[tuple[str, ...]] = ()
    _operands: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self._hyperparameters:
            value = _checked_scale(name, getattr(self, name), per_input=name in self._per_input)
            bounds = _checked_bounds(f"{name}_bounds", getattr(self, f"{name}_bounds"), value)
            object.__setattr__(self, name, value)
            object.__setattr__(self, f"{name}_bounds", bounds)

    @property
    def _free(self) -> dict[str, Any]:
        """Values of the hyperparameters that are not fixed, by name."""
        free = (name for name in self._hyperparameters if getattr(self, f"{name}_bounds") != "fixed")
        return {name: getattr(self, name) for name in free}

    @property
    def parts(self) -> dict[str, Any]:
        """Operands by name."""
        return {name: getattr(self, name) for name in self._operands}

    @property
    def _n_theta(self) -> int:
        sizes = [np.size(value) for value in self._free.values()]
        return sum([*sizes, *(part._n_theta for part in self.parts.values())], start=0)

    @property
    def theta(self) -> FloatArray:
        """Logarithms of the free hyperparameters, of shape (p,)."""
        own = [np.log(np.atleast_1d(value)) for value in self._free.values()]
        return np.concatenate([np.empty(0), *own, *(part.theta for part in self.parts.values())])

    @property
    def bounds(self) -> FloatArray:
        """Bounds of `theta`, of shape (p, 2); logarithms as well."""
        own = [
            np.log(np.broadcast_to(getattr(self, f"{name}_bounds"), (np.size(value), 2)))
            for name, value in self._free.items()
        ]
        return np.concatenate([np.empty((0, 2)), *own, *(part.bounds for part in self.parts.values())])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of `theta`."""
        named: list[str] = []
        for name, value in self._free.items():
            named += [f"{name}[{i}]" for i in range(len(value))] if isinstance(value, tuple) else [name]
        for operand, part in self.parts.items():
            named += [f"{operand}.{name}" for name in part.names]
        return tuple(named)

    def with_theta(self, theta: ArrayLike) -> Self:
        """Return the kernel of the same form whose free hyperparameters are exp(theta), theta of shape (p,)."""
        logs, changes = self._checked_theta(theta), dict[str, Any]()
        with np.errstate(over="ignore"):  # an infinite hyperparameter is refused by name
            for name, value in self._free.items():
                new = np.exp(logs[: np.size(value)])
                changes[name] = tuple(new) if isinstance(value, tuple) else new[0]
                logs = logs[np.size(value) :]
        for name, part in self.parts.items():
            changes[name] = part.with_theta(logs[: part._n_theta])
            logs = logs[part._n_theta :]
        return replace(self, **changes)  # type: ignore[type-var]

    def _checked_theta(self, theta: ArrayLike) -> FloatArray:
        logs = np.asarray(theta, dtype=np.float64)
        if logs.shape != (self._n_theta,):
            raise ValueError(
                f"theta must have shape ({self._n_theta},), one entry per name; got {logs.shape}"
            )
        return logs


def check_columns(name: str, value: Scale, d: int) -> None:
    """Raise ValueError if there is one value per input, but not as many as inputs."""
    if isinstance(value, tuple) and len(value) != d:
        raise ValueError(f"{name} has {len(value)} entries, but X has {d} columns")


def _checked_scale(name: str, value: ArrayLike, per_input: bool) -> float | tuple[float, ...]:
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


def _checked_bounds(name: str, bounds: Bounds, value: float | tuple[float, ...]) -> Bounds:
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
    size = np.size(value)
    if pairs.shape not in ((2,), (size, 2)) or not np.all(
        (pairs[..., 0] > 0) & (pairs[..., 0] <= pairs[..., 1])
    ):
        raise ValueError(f"{name} must be {accepted}; got {bounds!r} for {size} value(s)")
    if pairs.ndim == 1:
        low, high = map(float, pairs)
        return low, high
    return tuple((float(low), float(high)) for low, high in pairs)
