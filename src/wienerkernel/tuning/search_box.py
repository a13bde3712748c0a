"""Where to look for hyperparameters: bounds and starting points that follow from the data.

A kernel's own bounds are respected; those that are still at their default are replaced by what the data can tell
apart: length scales between a fraction of the smallest spacing and a multiple of the range of the inputs, variances
around that of y.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import arrays
from .._typing import FloatArray
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
from ..kernels.parameters import DEFAULT_BOUNDS
from .data import Data, Parameters

__all__ = ["SearchBox", "default_kernel", "search_box"]

LENGTH_FRACTION, LENGTH_MULTIPLE = 0.5, 100.0
VARIANCE_FACTOR = 1e6
ALIKE = 3.0
NOISE_FACTORS = (1e-8, 10.0)
DEFAULT = np.log(DEFAULT_BOUNDS)


@dataclass(frozen=True)
class SearchBox:
    """Bounds and a starting point of all parameters.

    Attributes
    ----------
    start, low, high : ndarray of shape (p,)
    lengths : ndarray of bool of shape (p,)
        Which parameters are length scales.
    """

    start: FloatArray
    low: FloatArray
    high: FloatArray
    lengths: FloatArray


@dataclass(frozen=True)
class _Extent:
    """Typical width, range and smallest spacing of each input, and the mean square and variance of y."""

    width: FloatArray
    range: FloatArray
    spacing: FloatArray
    square: float
    variance: float

    @classmethod
    def of(cls, data: Data) -> _Extent:
        X = arrays.as_numpy(data.places.points)
        spread, width = np.ptp(X, axis=0), X.std(axis=0)
        gaps = np.diff(np.sort(X, axis=0), axis=0)
        smallest = np.where(gaps > 0, gaps, np.inf).min(axis=0, initial=np.inf)
        constant = spread <= 1e-12 * np.abs(X).max(axis=0)
        spread = np.where(constant, 1.0, spread)
        variance = float(np.var(data.y))
        square = variance if data.trend else float(np.mean(data.y**2))
        square = square or variance or 1.0
        tiny = variance <= 1e-20 * square
        return cls(
            np.where(constant, 1.0, width),
            spread,
            np.clip(np.where(np.isfinite(smallest), smallest, spread), 2e-4 * spread, spread),
            square,
            square if tiny else variance,
        )


def default_kernel(data: Data) -> Kernel:
    """The kernel that is used where none is given: a variance times a squared exponential.

    One length scale serves all inputs if their widths are alike, within a factor of 3; else each has its own.

    Parameters
    ----------
    data : Data

    Returns
    -------
    Kernel

    Examples
    --------
    >>> X, y = np.array([[0.0], [2.0]]), np.array([[1.0], [-1.0]])
    >>> default_kernel(Data(X, y, np.ones(2)))
    Constant() * RBF()
    """
    extent = _Extent.of(data)
    alike = extent.width.max() <= ALIKE * extent.width.min()
    scale = float(np.linalg.norm(extent.width)) if alike else np.sqrt(data.X.shape[1]) * extent.width
    return Product(Constant(extent.square), RBF(scale))


def search_box(data: Data, parameters: Parameters) -> SearchBox:
    """Bounds and start of all parameters.

    Parameters
    ----------
    data : Data
    parameters : Parameters

    Returns
    -------
    SearchBox

    Examples
    --------
    >>> from wienerkernel.noise.family import Family
    >>> X, y = np.array([[0.0], [1.0], [4.0]]), np.array([[1.0], [-1.0], [0.0]])
    >>> box = search_box(Data(X, y, np.ones(3)), Parameters(RBF(1.0), Family("norm")))
    >>> [round(float(np.exp(end[0])), 6) for end in (box.low, box.high)]
    [0.5, 400.0]
    """
    extent, kernel = _Extent.of(data), parameters.kernel
    entries = [_entry(leaf, name, extent) for leaf, name in _leaves(kernel)]
    table = np.array([entry[:3] for entry in entries]).reshape(-1, 3)
    start, from_data = np.log(table[:, 0]), np.log(table[:, 1:])
    given = kernel.bounds
    untouched = np.all(given == DEFAULT, axis=1)
    bounds = np.where(untouched[:, None], from_data, given)
    start = np.where(untouched, start, kernel.theta)
    lengths = [entry[3] for entry in entries]
    if parameters.noise.free_std:
        std = np.sqrt(extent.variance)
        ends = 0.5 * np.log(np.array(NOISE_FACTORS) * extent.variance)
        mean_scale = np.log(np.sqrt(np.mean(data.noise_scale**2))) if data.noise_scale.ndim == 1 else 0.0
        start = np.append(start, np.log(np.sqrt(0.1) * std) - mean_scale)
        bounds = np.concatenate([bounds, ends[None] - mean_scale])
        lengths.append(False)
    shapes = parameters.noise.shape_bounds
    start = np.concatenate([start, shapes.mean(axis=1)])
    bounds = np.concatenate([bounds, shapes])
    lengths += [False] * len(shapes)
    low, high = bounds[:, 0], bounds[:, 1]
    return SearchBox(np.clip(start, low, high), low, high, np.array(lengths, dtype=bool))


def _leaves(kernel: Kernel) -> Iterator[tuple[Kernel, str]]:
    """The elementary kernel and the name there of each entry of theta."""
    if isinstance(kernel, Sum | Product):
        yield from _leaves(kernel.k1)
        yield from _leaves(kernel.k2)
    elif isinstance(kernel, Power):
        yield from _leaves(kernel.kernel)
    else:
        for name in kernel.names:
            yield kernel, name


def _entry(leaf: Kernel, name: str, extent: _Extent) -> tuple[float, float, float, bool]:
    """Start, lower and upper bound of a parameter, and whether it is a length scale."""
    word, _, rest = name.partition("[")
    column = int(rest[:-1]) if rest else None
    if isinstance(leaf, RBF | Matern | RationalQuadratic) and word == "length_scale":
        # One length scale for all inputs looks at their Euclidean distances.
        if column is None:
            width, spread = float(np.linalg.norm(extent.width)), float(np.linalg.norm(extent.range))
            spacing = float(extent.spacing.min())
        else:
            width = float(np.sqrt(len(extent.width)) * extent.width[column])
            spread, spacing = float(extent.range[column]), float(extent.spacing[column])
        low, high = LENGTH_FRACTION * spacing, LENGTH_MULTIPLE * spread
        return float(np.clip(0.5 * width, low, high)), low, high, True
    if isinstance(leaf, Periodic) and word == "period":
        spread = float(extent.range.max() if column is None else extent.range[column])
        spacing = float(extent.spacing.min() if column is None else extent.spacing[column])
        return 0.5 * spread, min(2 * spacing, 0.5 * spread), 4 * spread, True
    if isinstance(leaf, Constant):
        return extent.square, extent.square / VARIANCE_FACTOR, extent.square * VARIANCE_FACTOR, False
    if isinstance(leaf, Linear):
        width = float(extent.width.max() if column is None else extent.width[column])
        middle = width / np.sqrt(extent.square)
        return middle, middle / np.sqrt(VARIANCE_FACTOR), middle * np.sqrt(VARIANCE_FACTOR), False
    if isinstance(leaf, FeatureMap):
        middle = float(np.sqrt(extent.square))
        return middle, middle / np.sqrt(VARIANCE_FACTOR), middle * np.sqrt(VARIANCE_FACTOR), False
    value = float(np.exp(leaf.theta[leaf.names.index(name)]))
    return value, *DEFAULT_BOUNDS, False
