"""The leave-one-out log score under the exact law of every held-out sample, with its gradient.

The score is the sum of the log densities of the leave-one-out residuals. Derivatives run backwards: from the densities
to residuals, P2 and weights, to Q, and with dQ = -Q dK Q to the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from .._typing import FloatArray
from ..leave_one_out import weighted_residual
from ..noise.family import Family
from ..smoother import Smoother
from .blend import Blend, ShapeGrid, shape_grid
from .data import Data, Parameters
from .log_density import LogDensity
from .loo_laws import LeaveOneOutLaws
from .rows import Rows
from .standard_law import StandardLaw

__all__ = ["LeaveOneOutScore"]

SHAPE_STEP = 2e-4

_LawAndSlopes: TypeAlias = tuple[StandardLaw, list[Blend]]


@dataclass(frozen=True)
class LeaveOneOutScore:
    """Sum of the leave-one-out log densities as a function of the parameters.

    Parameters
    ----------
    data : Data
        With independent noise.
    parameters : Parameters

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> from wienerkernel.noise.family import Family
    >>> data = Data(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]), np.ones(2))
    >>> value, gradient = LeaveOneOutScore(data, Parameters(RBF(1.0), Family("norm")))(np.zeros(2))
    >>> round(value, 6), gradient.shape
    (-2.735189, (2,))
    """

    data: Data
    parameters: Parameters
    _known: dict[bytes, _LawAndSlopes] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def _grid(self) -> ShapeGrid | None:
        """Laws on a grid, where there is one shape, a logarithm, and no singularity that moves with it."""
        model = self.parameters.noise
        return shape_grid(model) if isinstance(model, Family) else None

    def _law_and_slopes(self, shapes: FloatArray) -> _LawAndSlopes:
        """The standardised law and its derivatives by the shapes, kept while the shapes stay the same."""
        key = shapes.tobytes()
        if key not in self._known:
            self._known.clear()
            self._known[key] = self._make(shapes)
        return self._known[key]

    def _make(self, shapes: FloatArray) -> _LawAndSlopes:
        if self._grid is not None:
            law, slope = self._grid(float(shapes[0]))
            return law, [slope]

        def at(point: FloatArray) -> StandardLaw:
            return StandardLaw(self.parameters.noise.law(1.0, point))

        steps = SHAPE_STEP * np.eye(len(shapes))
        halves = np.array([0.5, -0.5]) / SHAPE_STEP
        return at(shapes), [Blend([at(shapes + step), at(shapes - step)], halves) for step in steps]

    def smoother(self, values: FloatArray) -> Smoother:
        """The smoother for these parameters, with the given ridge if there is one."""
        data, noise = self.data.in_numpy, self.parameters.noise_at(values)
        regulariser = data.covariance(noise.var())
        if data.ridge is not None:
            regulariser = np.full_like(regulariser, data.ridge)
        return data.smoother(self.parameters.kernel_at(values), noise, regulariser)

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient of shape (p,)."""
        parameters = self.parameters
        noise, smoother = parameters.noise_at(values), self.smoother(values)
        law, slopes = self._law_and_slopes(values[parameters.shapes])
        loo, std = LeaveOneOutLaws(smoother), noise.std()
        n, n_outputs = loo.residual.shape
        rows = Rows(std * loo.weights, loo.counts, loo.model, std * loo.scale)
        density = LogDensity(law, rows, loo.residual.ravel(), np.repeat(loo.group, n_outputs))
        by_residual, by_model, by_weights = density.gradient()
        by_kernel, by_log_ridge = loo.pullback(by_residual.reshape(n, n_outputs), by_model, std * by_weights)
        gradient = np.zeros(len(values))
        kernel = smoother.kernel
        gradient[: parameters.n_kernel] = kernel.pullback(smoother.places, by_kernel, symmetric=True)
        # r is linear in y0 = y - m0 scale
        by_mean = (
            -float(by_residual.reshape(n, -1).sum(axis=1) @ self._residual_of_scale(loo))
            if noise.mean()
            else 0.0
        )
        if parameters.noise.free_std:
            by_std = float(np.sum(by_weights * rows.weights))
            if self.data.ridge is None:
                by_std += 2 * by_log_ridge
            if noise.mean():
                by_std += by_mean * parameters.mean_slope(values, parameters.n_kernel)
            gradient[parameters.n_kernel] = by_std
        for k, slope in enumerate(slopes, start=parameters.shapes.start):
            gradient[k] = density.by_law(slope)
            if noise.mean():
                gradient[k] += by_mean * parameters.mean_slope(values, k)
        return float(density.value.sum()), gradient

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
