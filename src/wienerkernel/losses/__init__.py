"""Beyond the linear estimate: other convex losses, expectation propagation, sampling."""

from .convex import EpsilonInsensitive, Huber, Loss, NegativeLogDensity, Pinball
from .estimate import LossPosterior
from .fit import check_setting, condition, is_linear
from .posterior import CoordinatePosterior, FullPosterior

__all__ = [
    "CoordinatePosterior",
    "EpsilonInsensitive",
    "FullPosterior",
    "Huber",
    "Loss",
    "LossPosterior",
    "NegativeLogDensity",
    "Pinball",
    "check_setting",
    "condition",
    "is_linear",
]
