"""A fitted model at x: the variances by cause, the predictive distribution, the chaos form, sample paths."""

from .distribution import PredictiveDistribution
from .parts import LeaveOneOut, PredictionGradient, Uncertainty
from .paths import SamplePaths
from .posterior import Posterior
from .separate import SeparateOutputs

__all__ = [
    "LeaveOneOut",
    "Posterior",
    "PredictionGradient",
    "PredictiveDistribution",
    "SamplePaths",
    "SeparateOutputs",
    "Uncertainty",
]
