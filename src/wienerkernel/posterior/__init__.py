"""A fitted model at x: the variances by cause, the predictive distribution, the chaos form."""

from .distribution import PredictiveDistribution
from .parts import LeaveOneOut, PredictionGradient, Uncertainty
from .posterior import Posterior

__all__ = ["LeaveOneOut", "Posterior", "PredictionGradient", "PredictiveDistribution", "Uncertainty"]
