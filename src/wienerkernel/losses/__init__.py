"""Beyond the linear estimate: other convex losses, expectation propagation, sampling."""

from .base import NonlinearPosterior
from .convex import EpsilonInsensitive, Huber, Loss, NegativeLogDensity, Pinball
from .estimate import LossPosterior
from .fit import check_setting, condition, is_linear
from .posterior import FullPosterior

__all__ = [
    "EpsilonInsensitive",
    "FullPosterior",
    "Huber",
    "Loss",
    "LossPosterior",
    "NegativeLogDensity",
    "NonlinearPosterior",
    "Pinball",
    "check_setting",
    "condition",
    "is_linear",
]
