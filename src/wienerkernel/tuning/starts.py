"""Where searches begin: nested subsets of the rows, and starting points for the parameters and the shapes of the noise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from .._typing import FloatArray, IntArray
from ..kernels.parameters import DEFAULT_BOUNDS
from .blend import shape_grid
from .data import Data, Parameters
from .optimizer import FAILURES
from .search_box import SearchBox

__all__ = ["nested_subsets", "shape_starts", "skewness", "starting_points"]

SHAPE_STARTS = 5
SYMMETRIC = 1e-6  # skewness
SUBSET_RATIO, MIN_SUBSET = 4, 250
"""Ratio of the sizes of successive subsets of the distinct inputs on which searches begin, and the smallest size."""


def nested_subsets(data: Data) -> list[IntArray | None]:
    """Rows of nested random subsets of the distinct inputs, from small to large; the last is None: all rows."""
    subsets: list[IntArray | None] = [None]
    if data.noise_scale.ndim == 2:
        return subsets
    index, n = data.samples.index, data.samples.n_places
    order = np.random.default_rng(0).permutation(n)
    while n // SUBSET_RATIO >= max(MIN_SUBSET, 5 * data.X.shape[1]):
        n //= SUBSET_RATIO
        subsets.insert(0, np.flatnonzero(np.isin(index, order[:n])))
    return subsets


def starting_points(box: SearchBox, parameters: Parameters) -> Iterator[FloatArray]:
    """The user's values, and those derived from the data with long and short length scales, much and little noise."""
    user, kernel = box.start.copy(), parameters.kernel
    # The default value 1.0 with default bounds says nothing about the units of the inputs.
    given = (kernel.theta != 0) | np.any(kernel.bounds != np.log(DEFAULT_BOUNDS), axis=1)
    user[: parameters.n_kernel] = np.where(given, kernel.theta, user[: parameters.n_kernel])
    yield user
    noise = (np.arange(len(user)) == parameters.n_kernel) & parameters.noise.free_std
    for shorter, more in itertools.product((0.0, 1.5), (0.0, 1.0)):
        yield box.start - shorter * box.lengths + more * noise


def shape_starts(box: SearchBox, parameters: Parameters, values: FloatArray) -> list[list[FloatArray]]:
    """A grid of shapes; if there are laws of either skew, in two parts and without symmetric ones.

    At a symmetric law the score may be stationary, as for the skew-normal law, and a search would not leave it.
    """
    low, high = box.low[parameters.shapes], box.high[parameters.shapes]
    signed = ~parameters.is_log[parameters.shapes]  # equidistant like logarithms, on both sides of 0
    ends = np.where(signed, np.arcsinh([low, high]), [low, high])
    fractions = (np.arange(SHAPE_STARTS) + 0.5) / SHAPE_STARTS
    points = ends[0] + np.array(list(itertools.product(fractions, repeat=len(low)))) * (ends[1] - ends[0])
    points = np.where(signed, np.sinh(np.where(signed, points, 0.0)), points)
    grid = shape_grid(parameters.noise)
    points = points if grid is None else grid.nearest(points)
    found = np.repeat(values[None], len(points), axis=0)
    found[:, parameters.shapes] = points
    skews = np.array([skewness(parameters, point) for point in points])
    left, right = skews < -SYMMETRIC, ~(skews <= SYMMETRIC)  # a skewness that does not exist is kept
    sides = [found[left], found[right]] if left.any() and right.any() else [found]
    return [list(side) for side in sides]


def skewness(parameters: Parameters, shapes: FloatArray) -> float:
    """NaN where the skewness or the law does not exist."""
    try:
        return float(parameters.noise.law(1.0, shapes).cumulants(3)[2])
    except FAILURES:
        return np.nan
