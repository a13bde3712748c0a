"""The law of the noise M: mean, variance, cumulants, characteristic function, quantiles, draws."""

from .base import Noise
from .convert import as_noise
from .mixture import Mixture
from .residuals import Residuals, SmoothedResiduals
from .scipy_law import ScipyNoise

__all__ = ["Mixture", "Noise", "Residuals", "ScipyNoise", "SmoothedResiduals", "as_noise"]
