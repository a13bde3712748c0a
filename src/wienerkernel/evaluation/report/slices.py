"""Curves and densities along one input at a time, where the data are, and the prediction over two inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import ndtri

from ..._typing import FloatArray, IntArray
from ...backend import arrays
from ...law import LinearCombination
from ...law.mixed import MixedLaw
from ...losses import CoordinatePosterior
from ...losses.weights import DrawnWeights
from ...noise.level import Level
from ...posterior import Posterior
from ...posterior.distribution import PredictiveDistribution
from ...posterior.separate import causes
from ...smoother.samples import Samples
from ..relevance import Variable, exclusive

__all__ = [
    "COVERAGE",
    "PEAK",
    "TAILS",
    "AnyPosterior",
    "Path",
    "densities",
    "means",
    "middle",
    "nearness",
    "observations",
    "path",
    "shift",
    "slices",
    "surface",
]

AnyPosterior = Posterior | CoordinatePosterior
"""Of outputs with one kernel and one noise law."""
COVERAGE = 0.9
TAILS = np.array([[0.5 - COVERAGE / 2], [0.5 + COVERAGE / 2]])
N_SURFACE = 41
"""Points of a surface along each of its inputs."""
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


def observations(posterior: AnyPosterior) -> tuple[FloatArray, FloatArray]:
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
    """Points along a number, which is one of the columns, or of a category: the other inputs are those of ``base`` (d,).

    Those that ``follow`` a number depend on it in the data: their ``coefficients`` (degree + 1, k) are those of Chebyshev
    series between ``low`` and ``high``, its range in the data.
    """

    columns: list[int]
    base: FloatArray
    low: float = 0.0
    high: float = 1.0
    follow: IntArray | tuple[()] = ()
    coefficients: FloatArray | None = None

    def onto(self, points: FloatArray) -> FloatArray:
        """The points of the path with the number or category of ``points`` (m, d)."""
        return self(points[:, self.columns])

    def __call__(self, x: FloatArray) -> FloatArray:
        """The points (m, d) at values x, (m,) or (m, columns); beyond the data, inputs that follow stay constant."""
        points = np.tile(self.base, (len(x), 1))
        points[:, self.columns] = x.reshape(len(x), -1)
        if self.coefficients is not None:
            points[:, self.follow] = chebyshev.chebval(self.unit(x.ravel()), self.coefficients).T
        return points

    def unit(self, x: FloatArray) -> FloatArray:
        """Values of the number, on the scale from -1 to 1."""
        return np.asarray(np.clip((2 * x - self.low - self.high) / (self.high - self.low), -1.0, 1.0))

    def sweep(self, n: int) -> FloatArray:
        """n points, extending beyond the data on both sides; of a category, one point for each value."""
        if len(self.columns) > 1:
            return self(np.eye(len(self.columns)))
        wide = self.high > self.low
        margin = MARGIN * (self.high - self.low) if wide else 0.5 * max(abs(self.low), 1.0)
        return self(np.linspace(self.low - margin, self.high + margin, n))


def path(points: FloatArray, j: int) -> Path:
    """The path along input j through samples (n, d).

    With all others fixed, the points would be far from the data where inputs are correlated.
    """
    alone = Path([j], middle(points), float(points[:, j].min()), float(points[:, j].max()))
    n = len(points)
    if alone.high == alone.low:
        return alone
    unit = alone.unit(points[:, j])
    degree = min(DEGREE, len(np.unique(np.round(unit, 9))) - 1, n // 5)
    if degree < 1:
        return alone
    coefficients = chebyshev.chebfit(unit, points, degree)
    rest = np.var(points - chebyshev.chebval(unit, coefficients).T, axis=0) * (n - 1) / (n - 1 - degree)
    follows = (rest < (1 - FOLLOWS) * points.var(axis=0)) | exclusive(points)[j]
    follows &= np.ptp(points, axis=0) > 0
    follows[j] = False
    return replace(alone, follow=np.flatnonzero(follows), coefficients=coefficients[:, follows])


def middle(points: FloatArray) -> FloatArray:
    """The sample nearest the median."""
    spread = np.where(np.ptp(points, axis=0) > 0, points.std(axis=0), 1.0)
    distance = np.sum(((points - np.median(points, axis=0)) / spread) ** 2, axis=1)
    return np.asarray(points[np.argmin(distance)])


def slices(
    posterior: AnyPosterior,
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
    prior = posterior.coordinates if isinstance(posterior, CoordinatePosterior) else posterior.smoother
    slow = posterior.noise.costly or posterior.noise.discrete
    n_grid = (31 if d > 3 else 61) if slow else 61 if d > 3 else 121
    stride = 3 if d == 1 or slow else 6
    some, parts = points[shown], []
    for variable in chosen:
        columns = variable.columns
        along = Path(columns, middle(points)) if variable.values else path(points, columns[0])
        others = [other for other in every if other is not variable]
        follow = [other for other in others if set(other.columns) & set(along.follow)]
        fixed = [other for other in others if other not in follow]
        grid, onto = along.sweep(n_grid), along.onto(some)
        y = outputs[shown] + shift(posterior, some, onto)
        part = {
            "input": variable.name,
            "values": list(variable.values),
            "base": [{"name": other.name, "value": other.at(along.base)} for other in fixed],
            "follow": [other.name for other in follow],
            "data": {
                "x": variable.coordinate(some),
                "y": (y if posterior.transform is None else posterior.transform.inverse(y)).T,
                "nearness": nearness(prior.kernel, some, onto),
            },
            "x": variable.coordinate(grid),
        }
        parts.append(part | _curve(posterior, grid, 1 if variable.values else stride))
    return parts


def shift(posterior: AnyPosterior, points: FloatArray, onto: FloatArray) -> FloatArray:
    """How far samples are moved along the mean, (n, n_y), from their points onto those of a slice."""
    if np.array_equal(onto, points):
        return np.zeros((len(points), len(posterior.output_scale)))
    return means(posterior, onto) - means(posterior, points)


def nearness(kernel: Any, points: FloatArray, onto: FloatArray) -> FloatArray:
    """Absolute prior correlation (n,) of f at points and at those of a slice, rounded to three digits."""
    if np.array_equal(onto, points):
        return np.ones(len(points))
    cross = np.diagonal(arrays.as_numpy(kernel(points, onto)))
    scale = np.sqrt(arrays.as_numpy(kernel.diag(points)) * arrays.as_numpy(kernel.diag(onto)))
    return np.round(np.divide(np.abs(cross), scale, out=np.zeros_like(scale), where=scale > 0), 3)


def _curve(posterior: AnyPosterior, grid: FloatArray, stride: int) -> dict[str, Any]:
    """Mean, tubes, variances and noise level along a slice, and densities at every ``stride``-th of its points."""
    parts = posterior.common_uncertainty(grid)
    at = np.arange(0, len(grid), stride)
    transformed = posterior.transform is not None
    mean = (
        posterior.distribution(grid, "observation").mean()[:, None] if transformed else means(posterior, grid)
    )
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
        "level": _noise_level(posterior, grid),
        "at": at,
        "densities": laws,
    }


def _noise_level(posterior: AnyPosterior, points: FloatArray) -> dict[str, FloatArray] | None:
    """Standard deviation of the noise at points, with the ends of a `COVERAGE` interval; None if it is constant."""
    if posterior.level is None:
        return None
    std = posterior.noise.std() * posterior.level(points)
    error = np.zeros(len(points))
    if isinstance(posterior.level, Level):
        error = ndtri(0.5 + COVERAGE / 2) * np.sqrt(posterior.level.log_variance(points))
    return {"std": std, "low": std * np.exp(-error), "high": std * np.exp(error)}


def means(posterior: AnyPosterior, grid: FloatArray) -> FloatArray:
    """Mean of each output, (m, n_y)."""
    return arrays.as_numpy(posterior.mean(grid)).reshape(len(grid), -1)


def _bandwidth(posterior: AnyPosterior, of: str) -> float:
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


def surface(posterior: AnyPosterior, points: FloatArray) -> dict[str, Any] | None:
    """Mean of each output and standard deviations on a grid over the samples (n, 2); None for other numbers of inputs.

    Entry (i, k) of a grid belongs to ``y[i]`` and ``x[k]``. Standard deviations do not include the scales of the outputs.
    With a transform, all are on the scale of y, and the mean is that of a new observation.
    """
    if points.shape[1] != 2 or not np.all(np.ptp(points, axis=0) > 0):
        return None
    x, y = np.linspace(points.min(axis=0), points.max(axis=0), N_SURFACE).T
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    if posterior.transform is None:
        mean, parts = posterior.mean(grid), posterior.common_uncertainty(grid)
        function, observation = (arrays.as_numpy(part) ** 0.5 for part in (parts.epistemic, parts.total))
    else:
        of_y = posterior.distribution(grid, "observation")
        mean, function, observation = of_y.mean(), posterior.distribution(grid, "function").std(), of_y.std()
    return {
        "x": x,
        "y": y,
        "mean": np.moveaxis(arrays.as_numpy(mean).reshape(N_SURFACE, N_SURFACE, -1), -1, 0),
        "function": function.reshape(N_SURFACE, N_SURFACE),
        "observation": observation.reshape(N_SURFACE, N_SURFACE),
    }
