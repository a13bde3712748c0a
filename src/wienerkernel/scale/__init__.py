"""Approximations for large data: weights from nearest neighbors or from features, and the cost of the approximation."""

from .approximation import EXACT_PLACES, Actions, Approximation, Features, Neighbors, as_approximation
from .collapse import collapse
from .condition import ApproximateSmoother, extended, is_small
from .features import FeatureSmoother
from .inducing import CANDIDATES
from .nearest import Neighborhood
from .neighbors import NeighborSmoother
from .posterior import ApproximatePosterior

__all__ = [
    "CANDIDATES",
    "EXACT_PLACES",
    "Actions",
    "ApproximatePosterior",
    "ApproximateSmoother",
    "Approximation",
    "FeatureSmoother",
    "Features",
    "NeighborSmoother",
    "Neighborhood",
    "Neighbors",
    "as_approximation",
    "collapse",
    "extended",
    "is_small",
]
