"""Kernels k(x, x'): values, diagonal, hyperparameters and the pullback of a gradient.

`RBF`, `Matern`, `Exponential`, `RationalQuadratic` and `Periodic` depend on the distance between two points;
`Constant`, `Linear`, `Polynomial` and `FeatureMap` are inner products of features. ``+``, ``*`` and ``**`` combine them
into `Sum`, `Product` and `Power`. `as_kernel` converts the kernels of scikit-learn and plain functions, and `gram`
computes the matrix to be factorized.
"""

from .adapt import FunctionKernel, ScikitLearnKernel, as_kernel
from .base import Constant, Kernel, Power, Product, Sum
from .dot import FeatureMap, Linear, Polynomial
from .stationary import RBF, Exponential, Matern, Periodic, RationalQuadratic
from .tiles import gram

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
