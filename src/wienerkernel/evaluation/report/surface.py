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
    With a transform, all are on the scale of y, and the mean is that of a new observation.
    """
    if points.shape[1] != 2 or not np.all(np.ptp(points, axis=0) > 0):
        return None
    x, y = (np.linspace(low, high, N_GRID) for low, high in zip(points.min(0), points.max(0), strict=True))
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
        "mean": np.moveaxis(arrays.as_numpy(mean).reshape(N_GRID, N_GRID, -1), -1, 0),
        "function": function.reshape(N_GRID, N_GRID),
        "observation": observation.reshape(N_GRID, N_GRID),
    }
