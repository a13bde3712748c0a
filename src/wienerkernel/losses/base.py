"""The base of models whose estimate is not linear in y: methods that need the weights a(x) raise an error."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from ..law.mixed import MixedLaw
from ..noise import Noise
from ..noise.level import NoiseLevel, observation_scale
from ..posterior import Posterior
from ..transform import Transform

__all__ = ["NonlinearPosterior"]


class NonlinearPosterior:
    """A fitted model behind the interface of :class:`Posterior`, for a single output.

    Parameters
    ----------
    setting : str
        The arguments of the estimator that make the model nonlinear, for messages.
    noise : Noise

    Attributes
    ----------
    level : callable or None
    transform : Transform or None
        Set after the fit, which is on their scale.
    """

    single_output = True
    output_scale = np.ones(1)
    level: NoiseLevel | None = None
    transform: Transform | None = None

    def __init__(self, setting: str, noise: Noise) -> None:
        self.setting, self.noise = setting, noise

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and (hasattr(Posterior, name) or name in Posterior.__dataclass_fields__):
            msg = (
                f"this needs an estimate that is linear in y; the model has {self.__dict__['setting']}: use loss='squared' "
                "and inference=None"
            )
            raise ValueError(msg)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def left_out(self, rows: Any) -> tuple[MixedLaw, FloatArray]:  # noqa: ARG002
        """The laws of some samples, each given all others, and the samples on the scale of the model, (m,) each."""
        msg = f"leave-one-out scores are not available with {self.setting}: score held-out data, score_report(X, y)"
        raise ValueError(msg)

    def aleatoric(self, X: FloatArray, noise_scale: FloatArray | None) -> FloatArray:
        """Variance of the noise of new observations, (m,)."""
        scale, probabilities = observation_scale(self.level, X, noise_scale)
        return np.asarray(self.noise.var() * (probabilities @ scale**2))
