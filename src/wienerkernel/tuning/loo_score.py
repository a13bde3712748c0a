"""The leave-one-out log score under the exact law of every held-out sample, with its gradient.

The score is the sum of the log densities of the leave-one-out residuals. Derivatives run backwards: from the densities
to residuals, P2 and weights, to Q, and with dQ = -Q dK Q to the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._typing import FloatArray, IntArray
from ..noise.family import Family, NoiseModel, ScaledShape
from ..smoother import Smoother
from ..smoother.leave_one_out import weighted_residual
from ..smoother.loo_weights import LeaveOneOutLaws
from .blend import Blend, ShapeGrid, shape_grid
from .data import Data, Parameters
from .log_density import LogDensity
from .rows import Rows
from .standard_law import StandardLaw

__all__ = ["LeaveOneOutScore"]

SHAPE_STEP = 2e-4


class _Laws:
    """The standardized law at some shapes, and its derivatives by them, each made when it is asked for."""

    def __init__(self, noise: NoiseModel, grid: ShapeGrid | None, shapes: FloatArray) -> None:
        self._noise, self._shapes = noise, shapes
        self._blends = grid(float(shapes[0])) if grid is not None else None

    def _at(self, shapes: FloatArray) -> StandardLaw:
        return StandardLaw(self._noise.law(1.0, shapes))

    @cached_property
    def law(self) -> StandardLaw:
        return self._blends[0] if self._blends is not None else self._at(self._shapes)

    @cached_property
    def slopes(self) -> list[Blend]:
        if self._blends is not None:
            return [self._blends[1]]
        steps, halves = SHAPE_STEP * np.eye(len(self._shapes)), np.array([0.5, -0.5]) / SHAPE_STEP
        return [
            Blend([self._at(self._shapes + step), self._at(self._shapes - step)], halves) for step in steps
        ]


@dataclass(frozen=True)
class LeaveOneOutScore:
    """Sum of the leave-one-out log densities as a function of the parameters.

    Parameters
    ----------
    data : Data
        With independent noise.
    parameters : Parameters
    """

    data: Data
    parameters: Parameters
    _known: dict[bytes, _Laws] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def _grid(self) -> ShapeGrid | None:
        """Laws on a grid, where there is one shape, a logarithm, and no singularity that moves with it."""
        model = self.parameters.noise
        return shape_grid(model) if isinstance(model, Family) else None

    def _laws(self, shapes: FloatArray) -> _Laws:
        """The standardized law and its derivatives by the shapes, kept while the shapes stay the same."""
        key = shapes.tobytes()
        if key not in self._known:
            self._known.clear()
            self._known[key] = _Laws(self.parameters.noise, self._grid, shapes)
        return self._known[key]

    def smoother(self, values: FloatArray) -> Smoother:
        """The smoother for these parameters, with the given ridge if there is one."""
        data, noise = self.data.in_numpy, self.parameters.noise_at(values)
        regularizer = data.covariance(noise.var())
        if data.ridge is not None:
            regularizer = np.full_like(regularizer, data.ridge)
        return data.smoother(self.parameters.kernel_at(values), noise, regularizer)

    @cached_property
    def _folds(self) -> list[tuple[IntArray, StandardLaw]]:
        """Samples, and the standardized law that was made without them."""
        model = self.parameters.noise
        folds = model.folds if isinstance(model, ScaledShape) else ()
        return [(index, StandardLaw(shape.standardized(1.0))) for index, shape in folds]

    def _densities(
        self, values: FloatArray
    ) -> tuple[LeaveOneOutLaws, Rows, list[tuple[IntArray, LogDensity]]]:
        """Laws of the residuals, and the log densities by the law that the samples are scored with."""
        loo, std = LeaveOneOutLaws(self.smoother(values)), self.parameters.noise_at(values).std()
        rows = Rows(std * loo.weights, loo.counts, loo.model, std * loo.scale)
        row, x = np.repeat(loo.group, loo.residual.shape[1]), loo.residual.ravel()
        parts = self._folds or [(np.arange(x.size), self._laws(values[self.parameters.shapes]).law)]
        return loo, rows, [(index, LogDensity(law, rows, x[index], row[index])) for index, law in parts]

    def value(self, values: FloatArray) -> float:
        """Value alone, which needs no derivatives of the law."""
        return sum(float(density.value.sum()) for _, density in self._densities(values)[2])

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient of shape (p,)."""
        parameters, noise = self.parameters, self.parameters.noise_at(values)
        loo, rows, densities = self._densities(values)
        smoother, std = loo.smoother, noise.std()
        by_residual, by_model, by_weights = (
            np.zeros(shape) for shape in (loo.residual.size, loo.model.shape, loo.weights.shape)
        )
        for index, density in densities:
            by_residual[index], of_model, of_weights = density.gradient()
            by_model += of_model
            by_weights += of_weights
        by_residual = by_residual.reshape(loo.residual.shape)
        by_kernel, by_log_ridge = loo.pullback(by_residual, by_model, std * by_weights)
        gradient = np.zeros(len(values))
        kernel = smoother.kernel
        gradient[: parameters.n_kernel] = kernel.pullback(smoother.places, by_kernel, symmetric=True)
        # r is linear in y0 = y - m0 scale
        by_mean = -float(by_residual.sum(axis=1) @ self._residual_of_scale(loo)) if noise.mean() else 0.0
        if parameters.noise.free_std:
            by_std = float(np.sum(by_weights * rows.weights))
            if self.data.ridge is None:
                by_std += 2 * by_log_ridge
            if noise.mean():
                by_std += by_mean * parameters.mean_slope(values, parameters.n_kernel)
            gradient[parameters.n_kernel] = by_std
        slopes = self._laws(values[parameters.shapes]).slopes
        for k, slope in enumerate(slopes, start=parameters.shapes.start):
            gradient[k] = sum(density.by_law(slope) for _, density in densities)
            if noise.mean():
                gradient[k] += by_mean * parameters.mean_slope(values, k)
        return sum(float(density.value.sum()) for _, density in densities), gradient

    def _residual_of_scale(self, loo: LeaveOneOutLaws) -> FloatArray:
        smoother = loo.smoother
        scale = Smoother(
            smoother.kernel,
            smoother.samples,
            self.data.mean_scale[:, None],
            self.data.trend,
            smoother.factor,
        )
        return np.asarray(weighted_residual(scale)[:, 0] / loo.diagonal[loo.group])
