"""Curves and densities along one input at a time, through a sample near the center of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import FloatArray, IntArray
from ...backend import arrays
from ...law import LinearCombination
from ...law.mixed import MixedLaw
from ...posterior import Posterior
from ...posterior.distribution import OF
from ...posterior.separate import causes

__all__ = ["COVERAGE", "TAILS", "base_point", "densities", "nearness", "observations", "slices", "sweep"]

COVERAGE = 0.9
TAILS = np.array([[0.5 - COVERAGE / 2], [0.5 + COVERAGE / 2]])
MAX_SLICES = 8
MARGIN = 0.08
"""Fraction of the range of an input by which a slice extends beyond the data on each side."""
TAIL = 1e-3
"""Probability beyond each end of a drawn density; far tails are expensive and not visible."""
LEVELS = np.clip(0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 41)), TAIL, 1 - TAIL)
PEAK = 5.0
"""Height, in units of 1 / std, at which a density is clipped: that of a gamma variable may be infinite."""


def observations(posterior: Posterior) -> tuple[FloatArray, FloatArray]:
    """The samples that a model was fitted to, X (n, d) and y (n, n_y)."""
    samples = posterior.smoother.samples
    return arrays.as_numpy(samples.places)[samples.index], posterior.observed()


def base_point(points: FloatArray) -> FloatArray:
    """The row nearest the median of the columns, each in units of its standard deviation."""
    spread = np.where(np.ptp(points, axis=0) > 0, points.std(axis=0), 1.0)
    distance = np.sum(((points - np.median(points, axis=0)) / spread) ** 2, axis=1)
    return np.asarray(points[np.argmin(distance)])


def sweep(points: FloatArray, j: int, n_grid: int) -> FloatArray:
    """Points (n_grid, d) along input j through the base point, extending beyond the data on both sides."""
    low, high = points[:, j].min(), points[:, j].max()
    margin = MARGIN * (high - low) if high > low else 0.5 * max(abs(low), 1.0)
    grid = np.tile(base_point(points), (n_grid, 1))
    grid[:, j] = np.linspace(low - margin, high + margin, n_grid)
    return grid


def slices(
    posterior: Posterior, points: FloatArray, shown: IntArray, outputs: FloatArray, names: list[str]
) -> list[dict[str, Any]]:
    """One slice for each input through the base point; of many inputs, those along which the mean varies most.

    ``shown`` are the indices of the samples that are drawn. Tubes, variances and densities do not include the scales of
    the outputs.
    """
    d = points.shape[1]
    base = base_point(points)
    slow = posterior.noise.costly or posterior.noise.discrete
    n_grid = 121 if d == 1 and not slow else 61 if d <= 3 or not slow else 31
    stride = 3 if d <= 3 or slow else 6
    grids = [sweep(points, j, n_grid) for j in range(d)]
    order = list(range(d))
    if d > MAX_SLICES:
        unit = np.where(np.ptp(outputs, axis=0) > 0, outputs.std(axis=0), 1.0)
        moves = [np.max(np.ptp(_mean(posterior, grid), axis=0) / unit) for grid in grids]
        order = sorted(np.argsort(moves)[::-1][:MAX_SLICES].tolist())
    others = [{"name": name, "value": value} for name, value in zip(names, base, strict=True)]
    return [
        {
            "input": names[j],
            "base": others[:j] + others[j + 1 :],
            "data": {
                "x": points[shown, j],
                "nearness": nearness(posterior.smoother.kernel, points[shown], base, j),
            },
            **_curve(posterior, grids[j], j, stride),
        }
        for j in order
    ]


def nearness(kernel: Any, points: FloatArray, base: FloatArray, j: int) -> FloatArray:
    """Absolute prior correlation (n,) of f at each sample with f at the same x_j on the slice along input j.

    It is 1 on the slice, which contains the point ``base``, and is rounded to three digits.
    """
    onto = np.tile(base, (len(points), 1))
    onto[:, j] = points[:, j]
    if np.array_equal(onto, points):
        return np.ones(len(points))
    cross = np.diagonal(arrays.as_numpy(kernel(points, onto)))
    scale = np.sqrt(arrays.as_numpy(kernel.diag(points)) * arrays.as_numpy(kernel.diag(onto)))
    return np.round(np.divide(np.abs(cross), scale, out=np.zeros_like(scale), where=scale > 0), 3)


def _curve(posterior: Posterior, grid: FloatArray, j: int, stride: int) -> dict[str, Any]:
    """Mean, tubes and variances along a slice, and densities at every ``stride``-th of its points."""
    parts = posterior.common_uncertainty(grid)
    at = np.arange(0, len(grid), stride)
    tubes, laws = {}, {}
    for of in OF:
        low, high = posterior.distribution(grid, of).law.ppf(TAILS)
        tubes[of] = {"low": low, "high": high}
        laws[of] = densities(posterior.distribution(grid[at], of).law)
    return {
        "x": grid[:, j],
        "mean": _mean(posterior, grid).T,
        "tubes": tubes,
        "variance": {cause: getattr(parts, cause) for cause in causes(posterior)},
        "at": at,
        "densities": laws,
    }


def _mean(posterior: Posterior, grid: FloatArray) -> FloatArray:
    """Mean of each output, (m, n_y)."""
    return arrays.as_numpy(posterior.mean(grid)).reshape(len(grid), -1)


def densities(law: LinearCombination | MixedLaw) -> dict[str, FloatArray] | None:
    """``y`` and ``pdf`` (m, k) of each law between its far quantiles, ``mean`` and ``std`` (m,); None if it is discrete."""
    try:
        law.pdf(law.mean())
    except TypeError:
        return None
    quantiles = law.ppf(LEVELS[:, None])
    even = np.linspace(quantiles[0], quantiles[-1], len(LEVELS) + 1)[1:-1]
    y = np.sort(np.concatenate([quantiles, even]), axis=0)
    std = law.std()
    with np.errstate(divide="ignore"):
        density = np.minimum(law.pdf(y), np.where(std > 0, PEAK / std, 0.0))
    return {"y": y.T, "pdf": density.T, "mean": law.mean(), "std": std}
