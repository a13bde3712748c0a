"""A fitted model at x: the variances by cause, the predictive distribution, the chaos form, sample paths."""

from .distribution import PredictiveDistribution
from .parts import LeaveOneOut, PredictionGradient, Uncertainty
from .paths import SamplePaths
from .posterior import Posterior
from .random_input import RandomInput
from .separate import SeparateOutputs

__all__ = [
    "LeaveOneOut",
    "Posterior",
    "PredictionGradient",
    "PredictiveDistribution",
    "RandomInput",
    "SamplePaths",
    "SeparateOutputs",
    "Uncertainty",
]
