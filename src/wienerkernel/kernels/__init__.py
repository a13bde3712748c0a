"""Kernels k(x, x'): values, diagonal, hyperparameters and the pullback of a gradient.

`RBF`, `Matern`, `Exponential`, `RationalQuadratic` and `Periodic` depend on the distance of two points; `Constant`,
`Linear`, `Polynomial` and `FeatureMap` are inner products of features. They combine by ``+``, ``*`` and ``**`` into
`Sum`, `Product` and `Power`. `as_kernel` accepts the kernels of scikit-learn and plain functions, and `gram` makes
the matrix that is to be factorized.
"""

from .adapt import FunctionKernel, ScikitLearnKernel, as_kernel
from .base import Kernel
from .compose import Product, Sum
from .dot import Constant, FeatureMap, Linear, Polynomial
from .matrix import gram
from .periodic import Periodic
from .power import Power
from .stationary import RBF, Exponential, Matern, RationalQuadratic

__all__ = [
    "RBF",
    "Constant",
    "Exponential",
    "FeatureMap",
    "FunctionKernel",
    "Kernel",
    "Linear",
    "Matern",
    "Periodic",
    "Polynomial",
    "Power",
    "Product",
    "RationalQuadratic",
    "ScikitLearnKernel",
    "Sum",
    "as_kernel",
    "gram",
]
