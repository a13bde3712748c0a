"""Data beyond one factorization: weights from nearest neighbors or from features, and what the approximation costs."""

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
