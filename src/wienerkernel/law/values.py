"""Density, distribution function and survival function at many points: allocating, filling and joining them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from .ray import Values

__all__ = ["between", "empty", "joined", "put"]


def empty(shape: tuple[int, ...]) -> Values:
    """Values to be filled in."""
    return Values(*(np.empty(shape) for _ in Values._fields))


def put(result: Values, at: Any, values: Iterable[FloatArray], chosen: Any = ...) -> None:
    """Write ``values[chosen]`` into ``result[at]``, field by field."""
    for out, value in zip(result, values, strict=True):
        out[at] = value[chosen]


def joined(parts: Iterable[Values]) -> Values:
    """Values of consecutive rows."""
    return Values(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def between(
    below: NDArray[np.bool_], above: NDArray[np.bool_], pdf: FloatArray, cdf: FloatArray, sf: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Density, distribution and survival function, with no mass where x is ``below`` or ``above``."""
    return (
        np.where(below | above, 0.0, pdf),
        np.where(below, 0.0, np.where(above, 1.0, cdf)),
        np.where(below, 1.0, np.where(above, 0.0, sf)),
    )
