"""Hyperparameters for data beyond one factorization: random samples, each predicted from its neighbors among all data.

A subset of the rows is not enough: its spacing is larger, and length scales tuned on it are far off. The score is
the Gaussian log density of y_i given its neighbors. With S = K + R of the neighbors and the sample itself (the last
row), Q = S^-1 - S^-1 H (H'S^-1 H)^-1 H'S^-1, c = Q e and alpha = Q y, it is log(c_n / 2 pi) / 2 - alpha_n^2 / (2 c_n), and
dQ = -Q dS Q gives its derivative by S.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from .._typing import FloatArray, IntArray, RandomState
from ..backend.linalg import NotPositiveDefiniteError
from ..kernels import Kernel
from ..law import LinearCombination
from ..noise import SmoothedResiduals
from ..noise.base import as_generator
from ..noise.family import Family, ScaledShape, noise_model
from ..smoother.trend import Trend
from ..tuning.data import Data, Parameters
from ..tuning.optimizer import Optimizer
from ..tuning.search import TuningResult
from ..tuning.search_box import default_kernel, search_box
from .nearest import Neighborhood
from .neighbors import NeighborSmoother

__all__ = ["NeighborScore", "tune_by_neighbors"]

SCORED_ROWS, NEIGHBORS = 1500, 64
ROUNDS = 3
"""Searches, each with the neighbors in the metric of the last."""
BOX_ROWS = 5000
"""Rows from which bounds and starting points are derived."""
SHAPE_ROWS = 300
"""Residuals whose exact laws determine the shapes of a family."""
SHORTER = (0.0, 1.0, 2.0)
"""Starting points: length scales divided by these powers of e."""


@dataclass(frozen=True)
class NeighborScore:
    """Sum of log densities of the samples ``data`` given their neighbors, as a function of the parameters.

    X (b, N + 1, d), y (b, N + 1, n_y) and scale (b, N + 1) are those of the neighbors, and of the sample itself last.
    """

    data: Data
    X: FloatArray
    y: FloatArray
    scale: FloatArray
    parameters: Parameters

    @classmethod
    def of(
        cls, data: Data, rows: IntArray, smoother: NeighborSmoother, parameters: Parameters
    ) -> NeighborScore:
        """The score of some rows of all data, with the neighbors in the metric of the smoother's kernel."""
        block = np.concatenate([smoother.others(rows), rows[:, None]], axis=1)
        return cls(data.subset(rows), data.X[block], data.y[block], data.noise_scale[block], parameters)

    def value(self, values: FloatArray) -> float:
        """Value alone."""
        return self._score(values)[0]

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient of shape (p,)."""
        value, c, alpha = self._score(values)
        parameters, kernel = self.parameters, self.parameters.kernel_at(values)
        by_last = alpha[:, -1] / c[:, -1, None]  # (b, n_y)
        size = 0.5 * (alpha.shape[2] / c[:, -1] + np.sum(by_last**2, axis=1))
        pulled = np.einsum("bny,by->bn", alpha, by_last)
        gradient = np.zeros(len(values))
        # G = sym(c (alpha alpha_n / c_n)') - size c c', of rank 2
        for X, own, other, factor in zip(self.X, c, pulled, size, strict=True):
            outer = np.outer(own, 0.5 * other - 0.5 * factor * own)
            gradient[: parameters.n_kernel] += kernel.pullback(X, outer + outer.T, symmetric=True)
        if parameters.noise.free_std:
            diagonal = c * pulled - size[:, None] * c**2
            variance = parameters.noise_at(values).var()
            gradient[parameters.n_kernel] = 2 * variance * float(np.sum(diagonal * self.scale**2))
        return value, gradient

    def _score(self, values: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The score, c = Q e (b, N + 1) and alpha = Q y (b, N + 1, n_y)."""
        kernel, noise = self.parameters.kernel_at(values), self.parameters.noise_at(values)
        b, n, n_outputs = self.y.shape
        S = np.stack([kernel(X) for X in self.X])
        S[:, np.arange(n), np.arange(n)] += noise.var() * self.scale**2
        unit = np.broadcast_to((np.arange(n) == n - 1).astype(float)[:, None], (b, n, 1))
        H = np.stack([Trend(self.data.trend, self.data.X)(X) for X in self.X])
        y = self.y - noise.mean() * self.scale[..., None]
        try:
            solved = np.linalg.solve(S, np.concatenate([unit, y, H], axis=2))
            solved, AH = solved[..., : 1 + n_outputs], solved[..., 1 + n_outputs :]
            # the pseudo-inverse: the neighborhood need not determine all coefficients of the trend
            inverse = np.linalg.pinv(H.mT @ AH, rcond=1e-12, hermitian=True)
            solved = solved - AH @ (inverse @ (H.mT @ solved))
        except np.linalg.LinAlgError as error:
            raise NotPositiveDefiniteError(str(error)) from error
        c, alpha = solved[..., 0], solved[..., 1:]
        if not np.all(c[:, -1] > 0):
            raise NotPositiveDefiniteError("the kernel matrix of a neighborhood is not positive definite")
        value = 0.5 * n_outputs * np.sum(np.log(c[:, -1] / (2 * np.pi)))
        return float(value - 0.5 * np.sum(alpha[:, -1] ** 2 / c[:, -1, None])), c, alpha


def tune_by_neighbors(
    data: Data,
    kernel: Kernel | None,
    noise: Any,
    random_state: RandomState = 0,
    neighborhood: Neighborhood | None = None,
) -> TuningResult:
    """Find the free parameters of kernel and noise by the score of random samples given their neighbors.

    The shapes of a family maximize the log density of the residuals under their exact laws, after kernel and variance
    have been found; ``noise="residuals"`` takes the shape of these residuals. With a neighborhood, ``data`` are a random
    sample, and the neighbors come from all rows.
    """
    generator = np.random.default_rng(as_generator(random_state).integers(2**31))
    model = noise_model(noise)
    coefficients = Trend(data.trend, data.X)(data.X[:1]).shape[1]
    if len(data.y) <= coefficients:
        raise ValueError(
            f"tuning with an approximation needs more samples than the {coefficients} coefficients of the trend, got "
            f"{len(data.y)}: use approximation=None"
        )
    rows = generator.permutation(len(data.y))
    sample = data.subset(np.sort(rows[:BOX_ROWS]))
    parameters = Parameters(
        default_kernel(sample) if kernel is None else kernel,
        Family("norm") if isinstance(model, str) else model,
    )
    box = search_box(sample, parameters)
    scored = chosen = np.sort(rows[:SCORED_ROWS])
    optimizer = Optimizer(len(scored) * data.y.shape[1], 0, generator)
    values, inside = box.start, box.fixing(parameters.shapes, box.start)
    for i in range(ROUNDS):
        if neighborhood is not None:
            data = neighborhood(parameters.kernel_at(values), chosen, NEIGHBORS)
            scored = np.arange(len(chosen))
        smoother = _smoother(data, parameters, values)
        score = NeighborScore.of(data, scored, smoother, parameters)
        if i == 0:
            smoother.check_trend()
            values = optimizer.best_of(score, [values - power * box.lengths for power in SHORTER], box)
        values, value = optimizer.maximize(score, [values], inside, rough=i < ROUNDS - 1)
    if isinstance(model, str):
        parameters = replace(
            parameters, noise=ScaledShape(_residual_law(data, scored, parameters, values), [])
        )
    elif len(model.shape_names):
        values = _shapes(data, scored[:SHAPE_ROWS], parameters, values, box.low, box.high)
    fitted = parameters.noise_at(values)
    return TuningResult(
        kernel=parameters.kernel_at(values),
        noise=fitted,
        ridge=fitted.var() if data.ridge is None else data.ridge,
        method="neighbors",
        value=value,
        parameters=parameters.by_name(data, values),
        n_evaluations=optimizer.evaluations,
        output_scale=np.ones(data.y.shape[1]),
    )


def _smoother(data: Data, parameters: Parameters, values: FloatArray) -> NeighborSmoother:
    noise, scale = parameters.noise_at(values), data.noise_scale
    targets = data.y - noise.mean() * scale[:, None]
    kernel = parameters.kernel_at(values)
    return NeighborSmoother(kernel, data.X, targets, noise.var() * scale**2, scale, data.trend, NEIGHBORS)


def _residual_law(
    data: Data, rows: IntArray, parameters: Parameters, values: FloatArray
) -> SmoothedResiduals:
    """Law of the standardized residuals of samples given their neighbors."""
    smoother, noise = _smoother(data, parameters, values), parameters.noise_at(values)
    found = smoother.leave_out(rows)
    variance = found.model + noise.var() * (found.gain + data.noise_scale[rows] ** 2)
    residuals = ((smoother.targets[rows] - found.mean) / np.sqrt(variance)[:, None]).ravel()
    return SmoothedResiduals(residuals - residuals.mean())


def _shapes(
    data: Data, rows: IntArray, parameters: Parameters, values: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Values with the shapes that maximize the log density of residuals under their exact laws."""
    shapes = parameters.shapes

    def at(free: FloatArray) -> FloatArray:
        point = values.copy()
        point[shapes] = np.clip(free, low[shapes], high[shapes])
        return point

    def loss(free: FloatArray) -> float:
        point = at(free)
        noise, found = parameters.noise_at(point), _smoother(data, parameters, point).left_out(rows)
        law = LinearCombination(
            noise,
            found.weights,
            loc=-noise.mean() * found.weights.sum(axis=1),
            normal_std=np.sqrt(found.model),
        )
        with np.errstate(divide="ignore"):
            score = np.maximum(law.logpdf(found.residual.T), -1e3)
        return -float(np.sum(score))

    starts = np.linspace(low[shapes], high[shapes], 7)[1:-1]
    best = min(starts, key=loss)
    result = minimize(loss, best, method="Nelder-Mead", options={"xatol": 0.02, "fatol": 0.1, "maxfev": 60})
    return at(result.x)
