"""Names for the few types that recur in signatures."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["ComplexArray", "FloatArray", "IntArray", "RandomState"]

FloatArray: TypeAlias = NDArray[np.floating]
ComplexArray: TypeAlias = NDArray[np.complex128]
IntArray: TypeAlias = NDArray[np.intp]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
