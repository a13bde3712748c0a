"""Names for the few types that recur in signatures."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "BoolArray", "ComplexArray", "FloatArray", "IntArray", "RandomState"]

Array: TypeAlias = Any
"""An array of NumPy, or of another library that follows the array API standard."""

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.floating]
ComplexArray: TypeAlias = NDArray[np.complex128]
IntArray: TypeAlias = NDArray[np.intp]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
