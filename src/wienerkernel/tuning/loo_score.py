"""The leave-one-out log score under the exact law of every held-out sample, with its gradient.

The score is the sum of the log densities of the leave-one-out residuals. Derivatives run backwards: from the densities
to residuals, P2 and weights, to Q, and with dQ = -Q dK Q to the kernel. Noise on the inputs counts as normal here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._typing import FloatArray, IntArray
from ..law.log_density import Centered, LogDensity, centered
from ..noise.family import NoiseModel, ScaledShape
from ..smoother import Smoother
from ..smoother.leave_one_out import LeaveOneOutLaws, weighted_residual
from .blend import blended, shape_grid
from .data import Data, Parameters

__all__ = ["LeaveOneOutScore"]

SHAPE_STEP = 2e-4
STD_STEP = 1e-4


class _Laws:
    """The noise of variance 1 for given shapes and its derivatives with respect to them, computed on demand."""

    def __init__(self, noise: NoiseModel, shapes: FloatArray) -> None:
        self._noise, self._shapes, grid = noise, shapes, shape_grid(noise)
        self._blends = grid(float(shapes[0])) if grid is not None else None

    def _at(self, shapes: FloatArray) -> Centered:
        return centered(self._noise.law(1.0, shapes))

    @cached_property
    def law(self) -> Centered:
        return self._blends[0] if self._blends is not None else self._at(self._shapes)

    @cached_property
    def slopes(self) -> list[Centered]:
        if self._blends is not None:
            return [self._blends[1]]
        steps, halves = SHAPE_STEP * np.eye(len(self._shapes)), np.array([0.5, -0.5]) / SHAPE_STEP
        return [
            blended([self._at(self._shapes + step), self._at(self._shapes - step)], halves) for step in steps
        ]


@dataclass(frozen=True)
class LeaveOneOutScore:
    """Sum of the leave-one-out log densities as a function of the parameters, for data with independent noise."""

    data: Data
    parameters: Parameters
    _known: dict[bytes, _Laws] = field(default_factory=dict, init=False, repr=False, compare=False)

    def _laws(self, shapes: FloatArray) -> _Laws:
        """The standardized law and its derivatives with respect to the shapes, kept while the shapes stay the same."""
        key = shapes.tobytes()
        if key not in self._known:
            self._known.clear()
            self._known[key] = _Laws(self.parameters.noise, shapes)
        return self._known[key]

    def smoother(self, values: FloatArray) -> Smoother:
        """The smoother for these parameters, with the given ridge if there is one."""
        data, noise = self.data.in_numpy, self.parameters.noise_at(values)
        return data.smoother(self.parameters.kernel_at(values), noise, data.regularizer(noise.var()))

    @cached_property
    def _folds(self) -> list[tuple[IntArray, Centered]]:
        """Samples, and the noise of variance 1 that was estimated without them."""
        model = self.parameters.noise
        folds = model.folds if isinstance(model, ScaledShape) else ()
        return [(index, centered(shape.standardized(1.0))) for index, shape in folds]

    def _densities(
        self, values: FloatArray
    ) -> tuple[LeaveOneOutLaws, float, list[tuple[IntArray, LogDensity]]]:
        """Laws of the residuals, the scale of the noise, and the densities by the law that scores the samples."""
        loo, parameters = LeaveOneOutLaws(self.smoother(values)), self.parameters
        scale = float(np.exp(values[parameters.n_kernel])) if parameters.noise.free_std else 1.0
        weights, normal = scale * loo.weights, loo.model
        if self.data.input_noise is not None:
            normal = normal + loo.weights**2 @ loo.by_weight(self.data.input_noise.variance)
        row, x = np.repeat(loo.group, loo.residual.shape[1]), loo.residual.ravel()
        laws = self._folds or [(np.arange(x.size), self._laws(values[parameters.shapes]).law)]
        parts = [
            (index, LogDensity(law, weights, loo.counts, normal, x[index], row[index])) for index, law in laws
        ]
        return loo, scale, parts

    def value(self, values: FloatArray) -> float:
        """Value alone, which needs no derivatives of the law."""
        return sum(float(part.value.sum()) for _, part in self._densities(values)[2])

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient of shape (p,)."""
        parameters, noise = self.parameters, self.parameters.noise_at(values)
        loo, scale, parts = self._densities(values)
        smoother = loo.smoother
        by_residual, by_model, by_weights = (
            np.zeros(shape) for shape in (loo.residual.size, loo.model.shape, loo.weights.shape)
        )
        for index, part in parts:
            by_residual[index], of_model, of_weights = part.gradient
            by_model += of_model
            by_weights += of_weights
        by_weights *= scale
        by_std = float(np.vdot(by_weights, loo.weights))  # before the pullback overwrites them
        by_residual = by_residual.reshape(loo.residual.shape)
        if self.data.input_noise is not None:
            by_weights += 2 * by_model[:, None] * loo.weights * loo.by_weight(self.data.input_noise.variance)
        by_kernel, by_log_ridge = loo.pullback(by_residual, by_model, by_weights)
        gradient = np.zeros(len(values))
        kernel = smoother.kernel
        gradient[: parameters.n_kernel] = kernel.pullback(smoother.places, by_kernel, symmetric=True)
        # r is linear in y0 = y - m0 scale
        by_mean = 0.0
        if noise.mean():
            of_scale = weighted_residual(smoother.with_targets(self.data.mean_scale[:, None]))[:, 0]
            by_mean = -float(by_residual.sum(axis=1) @ (of_scale / loo.diagonal[loo.group]))
        if parameters.noise.free_std:
            if self.data.ridge is None:
                by_std += 2 * by_log_ridge
            if noise.mean():
                by_std += by_mean * parameters.mean_slope(values, parameters.n_kernel)
            if self.data.input_noise is not None:
                by_std = self._by_std(values)
            gradient[parameters.n_kernel] = by_std
        slopes = self._laws(values[parameters.shapes]).slopes
        for k, slope in enumerate(slopes, start=parameters.shapes.start):
            gradient[k] = sum(part.by_law(slope) for _, part in parts)
            if noise.mean():
                gradient[k] += by_mean * parameters.mean_slope(values, k)
        return sum(float(part.value.sum()) for _, part in parts), gradient

    def _by_std(self, values: FloatArray) -> float:
        """Derivative with respect to the logarithm of the noise's standard deviation, by central differences.

        With noise on the inputs, the regularizer is not proportional to the variance of the noise.
        """
        step = np.where(np.arange(len(values)) == self.parameters.n_kernel, STD_STEP, 0.0)
        return (self.value(values + step) - self.value(values - step)) / (2 * STD_STEP)
