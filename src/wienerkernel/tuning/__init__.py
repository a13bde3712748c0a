"""Estimation of unknown parameters: hyperparameters of the kernel, variance and shape of the noise.

Two objectives. ``"likelihood"``: the Gaussian quasi-likelihood with the variance of the noise; cheap, and consistent
whatever the law of the noise. ``"loo"``: the leave-one-out log score under the exact law of the noise; it uses the
shape of the noise, which improves on the likelihood if the noise is far from normal.
"""

from .data import Data
from .learn import learn
from .search import METHODS, TuningResult, tune

__all__ = ["METHODS", "Data", "TuningResult", "learn", "tune"]
