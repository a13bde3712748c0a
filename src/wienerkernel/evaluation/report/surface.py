"""The prediction over two inputs, as numbers on a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...backend import arrays
from ...losses.posterior import CoordinatePosterior
from ...posterior import Posterior

__all__ = ["surface"]

N_GRID = 41


def surface(posterior: Posterior | CoordinatePosterior, points: FloatArray) -> dict[str, Any] | None:
    """Mean of each output and standard deviations on a grid over the samples (n, 2); None for other numbers of inputs.

    Entry (i, k) of a grid belongs to ``y[i]`` and ``x[k]``. Standard deviations do not include the scales of the outputs.
    """
    if points.shape[1] != 2 or not np.all(np.ptp(points, axis=0) > 0):
        return None
    x, y = (np.linspace(low, high, N_GRID) for low, high in zip(points.min(0), points.max(0), strict=True))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    mean = arrays.as_numpy(posterior.mean(grid)).reshape(N_GRID, N_GRID, -1)
    parts = posterior.common_uncertainty(grid)
    epistemic, total = (
        arrays.as_numpy(part).reshape(N_GRID, N_GRID) for part in (parts.epistemic, parts.total)
    )
    return {
        "x": x,
        "y": y,
        "mean": np.moveaxis(mean, -1, 0),
        "function": epistemic**0.5,
        "observation": total**0.5,
    }
