"""The models behind a dynamic system, and its process noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray
from ..backend import arrays
from ..noise import Noise, as_noise
from ..noise.level import observation_scale
from ..posterior import Posterior
from ..regressor import WienerKernelRegressor
from ..transform import Transform

__all__ = ["Part", "as_parts"]


@dataclass(frozen=True)
class Part:
    """A fitted model and the states that it predicts."""

    model: WienerKernelRegressor
    states: slice
    laws: tuple[Noise, ...]
    """Law of the process noise of each state; empty for none."""
    own: bool
    """Whether that is the noise of the model, with its level and the scales of the outputs."""

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.states.stop - self.states.start)

    @property
    def posterior(self) -> Posterior:
        """What the model says."""
        posterior: Posterior = self.model.posterior_
        return posterior

    @property
    def transform(self) -> Transform | None:
        """The scale on which the model holds."""
        return self.posterior.transform

    def draw_nodes(self, n: int, generator: Any) -> IntArray:
        """Which of the noise levels that are possible under its uncertainty holds, for each of n paths."""
        place = arrays.as_numpy(self.posterior.smoother.places)[:1]
        probabilities = observation_scale(self.posterior.level, place)[1] if self.own else np.ones(1)
        return np.asarray(generator.choice(len(probabilities), size=n, p=probabilities))

    def noise_scale(self, Z: FloatArray, nodes: IntArray | None = None) -> FloatArray:
        """Factors of the process noise at the rows of Z, (m, n); with the estimated level unless nodes are given."""
        if not self.own:
            return np.ones((len(Z), len(self.laws)))
        scale = observation_scale(self.posterior.level, Z)[0]
        row = scale[nodes, np.arange(len(Z))] if nodes is not None else scale[len(scale) // 2]
        return np.asarray(row[:, None] * self.posterior.output_scale)

    def mean(self, Z: FloatArray) -> FloatArray:
        """Mean of the prediction at the rows of Z, with that of the process noise, on the scale of y; (m, n)."""
        if self.transform is not None:
            return np.asarray(self.model.predict(Z)).reshape(len(Z), -1)
        values = arrays.as_numpy(self.posterior.mean(Z)).reshape(len(Z), -1)
        if not self.laws:
            return values
        return np.asarray(values + self.noise_scale(Z) * np.array([law.mean() for law in self.laws]))

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Gradient of :meth:`mean`, (m, n, d)."""
        slopes = arrays.as_numpy(self.posterior.gradient(Z).mean)
        slopes = slopes.reshape(len(Z), -1, Z.shape[1])
        means = np.array([law.mean() for law in self.laws])
        if self.own and self.posterior.level is not None and np.any(means != 0):
            # the mean of the noise varies with its level
            steps = 1e-4 * np.maximum(np.ptp(arrays.as_numpy(self.posterior.smoother.places), axis=0), 1e-12)
            for k, step in enumerate(steps):
                move = step * np.eye(Z.shape[1])[k]
                change = self.noise_scale(Z + move) - self.noise_scale(Z - move)
                slopes[:, :, k] += change / (2 * step) * means
        return slopes


def as_parts(model: Any, process_noise: Any) -> tuple[Part, ...]:
    """The models of all states, checked, with the given process noise."""
    models = list(model) if isinstance(model, list | tuple) else [model]
    if not models:
        raise ValueError("model must be a fitted model, or a list with one for each state; got an empty list")
    parts: list[tuple[WienerKernelRegressor, slice]] = []
    start = 0
    for k, one in enumerate(models):
        if not isinstance(one, WienerKernelRegressor):
            raise TypeError(
                f"model must be a fitted WienerKernelRegressor or a list of them, got {type(one).__name__}: "
                "the law of its process noise is not known"
            )
        n = one._fitted.smoother.targets.shape[1]
        if len(models) > 1 and n > 1:
            raise ValueError(f"with a list of models each must have one output; model {k} has {n}")
        if one.n_features_in_ != models[0].n_features_in_:
            raise ValueError(
                f"all models must have the same inputs; model {k} has {one.n_features_in_}, the first {models[0].n_features_in_}"
            )
        parts.append((one, slice(start, start + n)))
        start += n
    if process_noise is None:
        return tuple(Part(one, at, (one.noise_,) * (at.stop - at.start), True) for one, at in parts)
    if process_noise is False:
        return tuple(Part(one, at, (), False) for one, at in parts)
    several = isinstance(process_noise, list | tuple) and not np.issubdtype(
        np.asarray(process_noise).dtype, np.number
    )
    laws = [as_noise(law) for law in process_noise] if several else [as_noise(process_noise)] * start
    if len(laws) != start:
        raise ValueError(f"process_noise must have one law for each of the {start} states, got {len(laws)}")
    if any(one.posterior_.transform is not None for one, _ in parts):
        raise ValueError("a model with a transform has its own noise: process_noise must be None or False")
    return tuple(Part(one, states, tuple(laws[states]), False) for one, states in parts)
