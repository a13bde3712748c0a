"""A fitted model with approximate weights: the results of the exact one, and the cost of the approximation."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from ..posterior import Posterior
from ..posterior.distribution import PredictiveDistribution
from ..posterior.posterior import PosteriorMethods
from .neighbors import NeighborSmoother

__all__ = ["ApproximatePosterior"]


class NeighborDistribution(PredictiveDistribution):
    """The law of a prediction from neighbors; functions are drawn with one draw of the noise of each sample."""

    def _draw_estimate(self, size: int, generator: Any) -> FloatArray:
        posterior: Any = self._posterior
        rows, weights = posterior.smoother.joint_weights(self._X)
        scale, noise = posterior.smoother.scale[rows], posterior.noise
        drawn = scale * (noise.rvs((size, len(rows)), random_state=generator) - noise.mean())
        return np.asarray(-(weights @ drawn.T).T)


class ApproximatePosterior(Posterior):
    """A posterior whose smoother is a :class:`NeighborSmoother` or a :class:`FeatureSmoother`."""

    further_parts = ("computational", "standard_error")

    mean_and_epistemic = PosteriorMethods.mean_and_epistemic

    def _law(
        self, X: FloatArray, of: str, verbose: bool, noise_scale: FloatArray | None
    ) -> PredictiveDistribution:
        neighbors = isinstance(self.smoother, NeighborSmoother)
        kind = NeighborDistribution if neighbors else PredictiveDistribution
        return kind(self, X, of, verbose, noise_scale)
