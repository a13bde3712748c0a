"""Bounds, starting points and weak priors for the hyperparameters, derived from the data.

Bounds set by the user are respected. Default bounds are replaced by what the data can resolve: length scales between
a fraction of the smallest spacing and a multiple of the range of the inputs, variances around that of y. Within these
a normal prior on the logarithm keeps parameters that the data hardly determine from running away: length scales near
the widths of the inputs, variances near that of y. It moves a well-determined optimum by much less than its standard
error. The length scales of several inputs have a prior together, which shrinks them toward each other in units of the
widths of the inputs. A parameter with bounds set by the user has no prior. Nothing here depends on units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from ..backend import arrays
from ..kernels import (
    RBF,
    Constant,
    FeatureMap,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Power,
    Product,
    RationalQuadratic,
    Sum,
)
from ..kernels.base import bracketed, elementary
from ..kernels.parameters import DEFAULT_BOUNDS
from .data import Data, Parameters

__all__ = ["NormalPrior", "SearchBox", "default_kernel", "has_free_scale", "search_box", "variance_at_odds"]

LENGTH_FRACTION, LENGTH_MULTIPLE = 0.5, 100.0
"""Bounds of length scales, in smallest spacings and ranges of the inputs."""
VARIANCE_FACTOR = 1e6  # bounds of variances, relative to their start
NOISE_FACTORS = (1e-8, 10.0)  # bounds of the noise variance, relative to the variance of y
AT_ODDS = 10.0  # ratio of a fixed kernel variance and that of y that triggers a warning
LENGTH_WIDTHS, NOISE_SHARE = 2.0, np.exp(-1.0)
"""Medians of the priors on length scales, in widths of the inputs, and on the noise, in standard deviations of y."""
LENGTH_SPREAD, SIZE_SPREAD, NOISE_SPREAD = 1.5, 1.5, 3.0
"""Standard deviations of the logarithms of length scales and of the standard deviations of function and noise."""
TOGETHER = 0.2
"""Standard deviation of the logarithms of the length scales of several inputs, in their widths, about their mean."""
DEFAULT = np.log(DEFAULT_BOUNDS)
AMPLITUDES = (Constant, Linear, FeatureMap)  # kernels with a hyperparameter that sets their size


class NormalPrior(NamedTuple):
    """A normal prior, whose precision (p, p) is 0 for parameters that have none."""

    center: FloatArray
    precision: FloatArray

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Log density, up to a constant, and its gradient of shape (p,)."""
        apart = values - self.center
        gradient = -self.precision @ apart
        return 0.5 * float(apart @ gradient), gradient


@dataclass(frozen=True)
class SearchBox:
    """Bounds, a starting point and the prior of all parameters, of which ``lengths`` are length scales or periods."""

    start: FloatArray
    low: FloatArray
    high: FloatArray
    lengths: NDArray[np.bool_]
    log_prior: NormalPrior

    @property
    def has_prior(self) -> NDArray[np.bool_]:
        """Which parameters have a prior."""
        return self.log_prior.precision.diagonal() > 0

    def fixing(self, index: slice, values: FloatArray) -> SearchBox:
        """The same box, where some parameters are fixed at the given values."""
        low, high = self.low.copy(), self.high.copy()
        low[index] = high[index] = values[index]
        return replace(self, low=low, high=high)

    def at_bound(self, values: FloatArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which free parameters are at their lower and upper bounds."""
        tolerance, free = 1e-6 * np.maximum(1.0, self.high - self.low), self.low < self.high
        return free & (values <= self.low + tolerance), free & (values >= self.high - tolerance)


@dataclass(frozen=True)
class _Extent:
    """The distinct inputs; width, range and smallest spacing of each column; mean square and variance of y."""

    points: FloatArray
    width: FloatArray
    range: FloatArray
    spacing: FloatArray
    square: float
    variance: float

    @classmethod
    def of(cls, data: Data) -> _Extent:
        X = arrays.as_numpy(data.samples.places)
        spread, width = np.ptp(X, axis=0), X.std(axis=0)
        gaps = np.diff(np.sort(X, axis=0), axis=0)
        smallest = np.where(gaps > 0, gaps, np.inf).min(axis=0, initial=np.inf)
        constant = spread <= 1e-12 * np.abs(X).max(axis=0)
        spread = np.where(constant, 1.0, spread)
        variance = float(np.mean(data.average((data.y - np.mean(data.average(data.y))) ** 2)))
        square = variance if data.trend else float(np.mean(data.average(data.y**2)))
        square = square or variance or 1.0
        tiny = variance <= 1e-20 * square
        return cls(
            X,
            np.where(constant, 1.0, width),
            spread,
            np.clip(np.where(np.isfinite(smallest), smallest, spread), 2e-4 * spread, spread),
            square,
            square if tiny else variance,
        )


def default_kernel(data: Data) -> Kernel:
    """A variance times a squared exponential with one length scale per input."""
    extent = _Extent.of(data)
    scale = np.sqrt(data.X.shape[1]) * extent.width
    return Product(Constant(extent.square), RBF(scale if len(scale) > 1 else float(scale[0])))


def search_box(data: Data, parameters: Parameters) -> SearchBox:
    """Bounds, start and prior of all parameters."""
    extent, kernel, noise = _Extent.of(data), parameters.kernel, parameters.noise
    entries = [_entry(leaf, name, extent, size) for leaf, name, size in _leaves(kernel, extent.square)]
    given, theta = kernel.bounds, kernel.theta
    for k in np.flatnonzero(np.any(given != DEFAULT, axis=1)):
        start, low, high = np.exp([theta[k], *given[k]])
        entries[k] = entries[k]._replace(start=start, low=low, high=high, spread=np.inf)
    if noise.free_std:
        scale = np.sqrt(data.average(data.noise_scale**2)) if data.noise_scale.ndim == 1 else 1.0
        std = np.sqrt(extent.variance) / scale
        low, high = noise.std_bounds or np.sqrt(NOISE_FACTORS) * std
        spread = np.inf if noise.std_bounds else NOISE_SPREAD
        entries.append(_Entry(np.sqrt(0.1) * std, low, high, NOISE_SHARE * std, spread))
    # Shapes of the noise have the bounds of their family and no prior.
    middles = [(0.5 * (low + high), low, high) for low, high in noise.shape_bounds]
    shapes = [_Entry(middle, low, high, middle, np.inf) for middle, low, high in middles]
    columns = np.array([*entries, *shapes]).reshape(-1, 6).T
    columns[:4, : len(entries)] = np.log(columns[:4, : len(entries)])
    start, lower, upper, center, spreads, lengths = columns
    precision = np.diag(spreads**-2)
    for group in _groups(kernel, spreads):
        n = len(group)
        precision[np.ix_(group, group)] = (np.eye(n) - 1 / n) / TOGETHER**2 + (n * LENGTH_SPREAD) ** -2
    # The prior counts once for each output, so that it is as weak as for a single one.
    prior = NormalPrior(center, data.y.shape[1] * precision)
    return SearchBox(np.clip(start, lower, upper), lower, upper, lengths.astype(bool), prior)


def variance_at_odds(data: Data, kernel: Kernel) -> str:
    """Warning about a kernel without a free amplitude whose variance is not that of y within a factor ``AT_ODDS``."""
    points = data.samples.places
    variance, shifted = (
        float(np.mean(arrays.as_numpy(k.diag(points))))
        for k in (kernel, kernel.with_theta(kernel.theta + 0.1))
    )
    size = _Extent.of(data).square
    alike = variance <= AT_ODDS * size and size <= AT_ODDS * variance
    if alike or shifted != variance or any(isinstance(k, AMPLITUDES) for k in elementary(kernel)):
        return ""
    measure = "variance" if data.trend else "mean square"
    return (
        f"the kernel has the fixed variance {variance:.3g}, but y has the {measure} {size:.3g}: multiply the kernel by "
        f"a constant, 1.0 * {bracketed(kernel, Sum)}"
    )


def has_free_scale(kernel: Kernel) -> bool:
    """Whether the hyperparameters can multiply the kernel by any factor."""
    if parts := kernel.parts.values():
        return (any if isinstance(kernel, Product) else all)(map(has_free_scale, parts))
    return (
        isinstance(kernel, AMPLITUDES) and bool(kernel.names) and bool(np.all(np.ptp(kernel.bounds, axis=1)))
    )


def _leaves(kernel: Kernel, variance: float) -> Iterator[tuple[Kernel, str, float]]:
    """Elementary kernel, name and expected variance by parameter; factors with an amplitude share the variance."""
    parts = kernel.parts.values()
    if isinstance(kernel, Product):
        variance = variance ** (1 / max(1, sum(map(_has_amplitude, parts))))
    elif isinstance(kernel, Power):
        variance = variance ** (1 / kernel.exponent)
    for part in parts:
        yield from _leaves(part, variance)
    if not parts:
        for name in kernel.names:
            yield kernel, name, variance


def _has_amplitude(kernel: Kernel) -> bool:
    """Whether some hyperparameter sets the size of the kernel."""
    return any(isinstance(leaf, AMPLITUDES) for leaf in elementary(kernel) if leaf.names)


def _groups(kernel: Kernel, spread: FloatArray) -> Iterator[list[int]]:
    """Entries of theta that are length scales of several inputs of one kernel, with bounds from the data."""
    first = 0
    for leaf in elementary(kernel):
        group = [first + k for k, name in enumerate(leaf.names) if name.startswith("length_scale[")]
        first += len(leaf.names)
        if len(group) > 1 and not isinstance(leaf, Linear) and np.all(np.isfinite(spread[group])):
            yield group


class _Entry(NamedTuple):
    """Start, bounds, median of the prior and its spread in logarithms, and whether this is a length scale."""

    start: float
    low: float
    high: float
    center: float
    spread: float
    length: bool = False


def _entry(leaf: Kernel, name: str, extent: _Extent, variance: float) -> _Entry:
    """Start, bounds and prior of one hyperparameter."""
    word, _, rest = name.partition("[")
    column = int(rest[:-1]) if rest else None
    if isinstance(leaf, RBF | Matern | RationalQuadratic) and word == "length_scale":
        # One length scale for all inputs scales their Euclidean distances.
        if column is None:
            width, spread = float(np.linalg.norm(extent.width)), float(np.linalg.norm(extent.range))
            spacing = float(extent.spacing.min())
        else:
            width = float(np.sqrt(len(extent.width)) * extent.width[column])
            spread, spacing = float(extent.range[column]), float(extent.spacing[column])
        low, high = LENGTH_FRACTION * spacing, LENGTH_MULTIPLE * spread
        start = float(np.clip(0.5 * width, low, high))
        return _Entry(start, low, high, LENGTH_WIDTHS * width, LENGTH_SPREAD, length=True)
    if isinstance(leaf, Periodic) and word == "period":
        spread = float(extent.range.max() if column is None else extent.range[column])
        spacing = float(extent.spacing.min() if column is None else extent.spacing[column])
        low, high = min(2 * spacing, 0.5 * spread), 4 * spread
        return _Entry(0.5 * spread, low, high, 0.5 * spread, np.inf, length=True)
    if isinstance(leaf, Constant):
        low, high = variance / VARIANCE_FACTOR, variance * VARIANCE_FACTOR
        return _Entry(variance, low, high, variance, 2 * SIZE_SPREAD)
    if isinstance(leaf, Linear | FeatureMap):
        if isinstance(leaf, Linear):  # k(x, x) = |x|^2 / length_scale^2
            columns = extent.points if column is None else extent.points[:, [column]]
            middle = _root_mean_square(columns) / np.sqrt(variance)
        else:  # k(x, x) = scale^2 |phi(x)|^2
            middle = np.sqrt(variance) / _root_mean_square(arrays.as_numpy(leaf.features(extent.points)))
        factor = np.sqrt(VARIANCE_FACTOR)
        return _Entry(middle, middle / factor, middle * factor, middle, SIZE_SPREAD)
    value = float(np.exp(leaf.theta[leaf.names.index(name)]))
    return _Entry(value, *DEFAULT_BOUNDS, value, np.inf)


def _root_mean_square(rows: FloatArray) -> float:
    """Of the Euclidean norms of the rows; 1 where all are 0."""
    return float(np.sqrt(np.mean(np.sum(rows**2, axis=1)))) or 1.0
