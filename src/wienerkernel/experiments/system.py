"""The paper's system: the function to be learned (eq. 15), the kernel and the two noise laws."""

from __future__ import annotations

import numpy as np

from .._typing import FloatArray
from ..kernels import RBF, Kernel

__all__ = ["GAMMA", "NORMAL", "kernel", "truth"]


NORMAL, GAMMA = "norm(0, 1)", "gamma(0.25, scale=2)"


def truth(x: FloatArray) -> FloatArray:
    """Right-hand side of the system (eq. 15) without its noise."""
    return np.asarray(0.01 * x**3 - 0.2 * x**2 + 0.2 * x)


def kernel() -> Kernel:
    """Squared-exponential kernel with the hyperparameters of the paper."""
    return 4.21**2 * RBF(3.59)
