"""Curves and densities along one input at a time, where the data are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import ndtri

from ..._typing import FloatArray, IntArray
from ...backend import arrays
from ...law import LinearCombination
from ...law.mixed import MixedLaw
from ...losses.posterior import CoordinatePosterior, DrawnWeights
from ...noise.level import Level
from ...posterior import Posterior
from ...posterior.distribution import PredictiveDistribution
from ...posterior.separate import causes
from ...smoother.samples import Samples
from ..relevance import exclusive
from .variables import Variable

__all__ = [
    "COVERAGE",
    "PEAK",
    "TAILS",
    "Path",
    "densities",
    "nearness",
    "noise_level",
    "observations",
    "path",
    "slices",
]

COVERAGE = 0.9
TAILS = np.array([[0.5 - COVERAGE / 2], [0.5 + COVERAGE / 2]])
MARGIN = 0.08
"""Fraction of the range of an input by which a slice extends beyond the data on each side."""
DEGREE = 3
FOLLOWS = 0.3
"""Fraction of the variance of an input that must be a function of another one for it to follow that."""
TAIL = 1e-3
"""Probability beyond each end of a drawn density; far tails are expensive and not visible."""
LEVELS = np.clip(0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 41)), TAIL, 1 - TAIL)
PEAK = 5.0
"""Height, in units of 1 / std, at which a density is clipped: that of a gamma variable may be infinite."""


def observations(posterior: Posterior | CoordinatePosterior) -> tuple[FloatArray, FloatArray]:
    """The samples that a model was fitted to, X (n, d) and y (n, n_y); of a stream, their means at each input."""
    if isinstance(posterior, CoordinatePosterior):
        observed = posterior.observed
        return observed.places[observed.index], observed.y[:, None]
    samples: Any = posterior.smoother.samples
    if isinstance(samples, Samples) and samples.count is not None:
        return arrays.as_numpy(samples.places), samples.means(posterior.observed())
    return arrays.as_numpy(samples.places)[samples.index], posterior.observed()


@dataclass(frozen=True)
class Path:
    """Points along input j: other inputs that depend on it in the data follow it, the rest are those of one sample.

    Attributes
    ----------
    j : int
    base : ndarray of shape (d,)
        The sample nearest the median.
    follow : ndarray of shape (k,)
        Indices of the inputs that follow.
    low, high : float
        Range of input j in the data.
    coefficients : ndarray of shape (degree + 1, k)
        Of the inputs that follow, as Chebyshev series.
    """

    j: int
    base: FloatArray
    follow: IntArray
    low: float
    high: float
    coefficients: FloatArray

    def onto(self, points: FloatArray) -> FloatArray:
        """The points of the path with the values of input j of ``points`` (m, d)."""
        return self(points[:, self.j])

    def __call__(self, x: FloatArray) -> FloatArray:
        """The points (m, d) at values x (m,) of input j; beyond the data, inputs that follow stay constant."""
        points = np.tile(self.base, (len(x), 1))
        points[:, self.j] = x
        if len(self.follow):
            points[:, self.follow] = chebyshev.chebval(self._unit(x), self.coefficients).T
        return points

    def _unit(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.clip((2 * x - self.low - self.high) / (self.high - self.low), -1.0, 1.0))

    def sweep(self, n: int) -> FloatArray:
        """n points, extending beyond the data on both sides."""
        wide = self.high > self.low
        margin = MARGIN * (self.high - self.low) if wide else 0.5 * max(abs(self.low), 1.0)
        return self(np.linspace(self.low - margin, self.high + margin, n))


@dataclass(frozen=True)
class Choices:
    """The values of a category, with the other inputs of the sample ``base`` (d,); has the methods of `Path`."""

    columns: list[int]
    base: FloatArray
    follow: tuple[int, ...] = ()

    def onto(self, points: FloatArray) -> FloatArray:
        """``base`` with the category of each of ``points`` (m, d)."""
        moved = np.tile(self.base, (len(points), 1))
        moved[:, self.columns] = points[:, self.columns]
        return moved

    def sweep(self, n: int) -> FloatArray:  # noqa: ARG002
        """One point for each value."""
        points = np.tile(self.base, (len(self.columns), 1))
        points[:, self.columns] = np.eye(len(self.columns))
        return points


def path(points: FloatArray, j: int) -> Path:
    """The path along input j through samples (n, d).

    With all others fixed, the points would be far from the data where inputs are correlated.
    """
    spread = np.where(np.ptp(points, axis=0) > 0, points.std(axis=0), 1.0)
    base = _middle(points)
    low, high = float(points[:, j].min()), float(points[:, j].max())
    none = Path(j, base, np.zeros(0, dtype=int), low, high, np.zeros((0, 0)))
    n = len(points)
    if high == low:
        return none
    unit = none._unit(points[:, j])
    degree = min(DEGREE, len(np.unique(np.round(unit, 9))) - 1, n // 5)
    if degree < 1:
        return none
    coefficients = chebyshev.chebfit(unit, points, degree)
    rest = np.var(points - chebyshev.chebval(unit, coefficients).T, axis=0) * (n - 1) / (n - 1 - degree)
    follows = (rest < (1 - FOLLOWS) * spread**2) | exclusive(points)[j]
    follow = np.flatnonzero(follows & (np.ptp(points, axis=0) > 0))
    follow = follow[follow != j]
    return Path(j, base, follow, low, high, coefficients[:, follow])


def _middle(points: FloatArray) -> FloatArray:
    """The sample nearest the median."""
    spread = np.where(np.ptp(points, axis=0) > 0, points.std(axis=0), 1.0)
    distance = np.sum(((points - np.median(points, axis=0)) / spread) ** 2, axis=1)
    return np.asarray(points[np.argmin(distance)])


def slices(
    posterior: Posterior | CoordinatePosterior,
    points: FloatArray,
    outputs: FloatArray,
    shown: IntArray,
    chosen: list[Variable],
    every: list[Variable],
) -> list[dict[str, Any]]:
    """One slice for each of the ``chosen`` of ``every`` variable.

    ``shown`` are the indices of the samples that are drawn. Tubes, variances and densities do not include the scales of the
    outputs. With a transform, means, tubes and densities are on the scale of y, variances and the noise level are not.
    """
    d = points.shape[1]
    kernel = (
        posterior.coordinates if isinstance(posterior, CoordinatePosterior) else posterior.smoother
    ).kernel
    slow = posterior.noise.costly or posterior.noise.discrete
    n_grid = (31 if d > 3 else 61) if slow else 61 if d > 3 else 121
    stride = 3 if d == 1 or slow else 6
    parts = []
    for variable in chosen:
        along = (
            Choices(variable.columns, _middle(points))
            if variable.values
            else path(points, variable.columns[0])
        )
        others = [other for other in every if other is not variable]
        follow = [other for other in others if set(other.columns) & set(along.follow)]
        grid = along.sweep(n_grid)
        parts.append(
            {
                "input": variable.name,
                "values": list(variable.values),
                "base": [
                    {"name": other.name, "value": other.at(along.base)}
                    for other in others
                    if other not in follow
                ],
                "follow": [other.name for other in follow],
                "data": {
                    "x": variable.coordinate(points[shown]),
                    "y": _moved(posterior, points[shown], outputs[shown], along).T,
                    "nearness": nearness(kernel, points[shown], along),
                },
                "x": variable.coordinate(grid),
                **_curve(posterior, grid, 1 if variable.values else stride),
            }
        )
    return parts


def _moved(
    posterior: Posterior | CoordinatePosterior, points: FloatArray, outputs: FloatArray, along: Path | Choices
) -> FloatArray:
    """Samples (n, n_y) as they would be on the slice: the mean there plus their residuals."""
    onto = along.onto(points)
    if not np.array_equal(onto, points):
        outputs = outputs + _mean(posterior, onto) - _mean(posterior, points)
    return outputs if posterior.transform is None else posterior.transform.inverse(outputs)


def nearness(kernel: Any, points: FloatArray, along: Path | Choices) -> FloatArray:
    """Absolute prior correlation (n,) of f at each sample with f at the same x_j on the slice.

    It is 1 on the slice, and is rounded to three digits.
    """
    onto = along.onto(points)
    if np.array_equal(onto, points):
        return np.ones(len(points))
    cross = np.diagonal(arrays.as_numpy(kernel(points, onto)))
    scale = np.sqrt(arrays.as_numpy(kernel.diag(points)) * arrays.as_numpy(kernel.diag(onto)))
    return np.round(np.divide(np.abs(cross), scale, out=np.zeros_like(scale), where=scale > 0), 3)


def _curve(posterior: Posterior | CoordinatePosterior, grid: FloatArray, stride: int) -> dict[str, Any]:
    """Mean, tubes, variances and noise level along a slice, and densities at every ``stride``-th of its points."""
    parts = posterior.common_uncertainty(grid)
    at = np.arange(0, len(grid), stride)
    transformed = posterior.transform is not None
    mean = _predicted(posterior, grid)
    # the laws are those of deviations from the mean, except on another scale, or where the estimate is not linear in y
    absolute = transformed or isinstance(posterior, CoordinatePosterior)
    center = mean[:, 0] if absolute else np.zeros(len(grid))
    tubes, laws = {}, {}
    for of in posterior.laws:
        along, some = (posterior.distribution(points, of) for points in (grid, grid[at]))
        low, high = (along if transformed else along.law).ppf(TAILS) - center
        tubes[of] = {"low": low, "high": high}
        laws[of] = density = densities(some if transformed else some.law, _bandwidth(posterior, of))
        if density is not None:
            density["y"] -= center[at, None]
            density["mean"] = density["mean"] - center[at]
    return {
        "mean": mean.T,
        "tubes": tubes,
        "variance": {cause: getattr(parts, cause) for cause in causes(posterior)},
        "level": noise_level(posterior, grid),
        "at": at,
        "densities": laws,
    }


def noise_level(
    posterior: Posterior | CoordinatePosterior, points: FloatArray
) -> dict[str, FloatArray] | None:
    """Standard deviation of the noise at points, with the ends of a `COVERAGE` interval; None if it is constant."""
    if posterior.level is None:
        return None
    std = posterior.noise.std() * posterior.level(points)
    error = np.zeros(len(points))
    if isinstance(posterior.level, Level):
        error = ndtri(0.5 + COVERAGE / 2) * np.sqrt(posterior.level.log_variance(points))
    return {"std": std, "low": std * np.exp(-error), "high": std * np.exp(error)}


def _predicted(posterior: Posterior | CoordinatePosterior, grid: FloatArray) -> FloatArray:
    """The prediction of each output, (m, n_y); with a transform, the mean of a new observation."""
    if posterior.transform is None:
        return _mean(posterior, grid)
    return np.asarray(posterior.distribution(grid, "observation").mean())[:, None]


def _mean(posterior: Posterior | CoordinatePosterior, grid: FloatArray) -> FloatArray:
    """Mean of each output, (m, n_y)."""
    return arrays.as_numpy(posterior.mean(grid)).reshape(len(grid), -1)


def _bandwidth(posterior: Posterior | CoordinatePosterior, of: str) -> float:
    """Bandwidth of a density that is known from draws only, by the rule of Silverman, in units of its std; otherwise 0."""
    weights = posterior.weights if isinstance(posterior, CoordinatePosterior) else None
    if of == "observation" or not isinstance(weights, DrawnWeights):  # noise makes the density smooth
        return 0.0
    return float(0.9 * len(weights.draws) ** -0.2)


def densities(
    law: LinearCombination | MixedLaw | PredictiveDistribution, bandwidth: float = 0.0
) -> dict[str, FloatArray] | None:
    """``y`` and ``pdf`` (m, k) of each law between its far quantiles, ``mean`` and ``std`` (m,); None if it is discrete.

    With a bandwidth, in units of the standard deviation, the density is the mean over an interval of twice this width.
    """
    try:
        law.pdf(law.mean())
    except TypeError:
        return None
    quantiles = law.ppf(LEVELS[:, None])
    even = np.linspace(quantiles[0], quantiles[-1], len(LEVELS) + 1)[1:-1]
    y = np.sort(np.concatenate([quantiles, even]), axis=0)
    std = law.std()
    with np.errstate(divide="ignore"):
        if bandwidth and np.all(std > 0):
            away = bandwidth * std
            found = (law.cdf(y + away) - law.cdf(y - away)) / (2 * away)
        else:
            found = law.pdf(y)
        density = np.minimum(found, np.where(std > 0, PEAK / std, 0.0))
    return {"y": y.T, "pdf": density.T, "mean": law.mean(), "std": std}
