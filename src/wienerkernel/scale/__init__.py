"""Approximations for large data: weights from nearest neighbors or from features, and the cost of the approximation."""

from .approximation import Features, Neighbors, as_approximation
from .condition import extended, fit, is_small
from .posterior import ApproximatePosterior

__all__ = [
    "ApproximatePosterior",
    "Features",
    "Neighbors",
    "as_approximation",
    "extended",
    "fit",
    "is_small",
]
