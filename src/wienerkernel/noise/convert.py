"""Conversion of scipy.stats laws, strings and recorded residuals to noise laws."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Noise
from .parse import parse_noise
from .residuals import Residuals
from .scipy_law import from_scipy

__all__ = ["as_noise"]


def as_noise(obj: Any) -> Noise:
    """Convert a description of the noise to a :class:`Noise`.

    Parameters
    ----------
    obj : frozen scipy.stats law, str, array-like of shape (n,), Noise or None
        A law, its name and parameters such as ``"gamma(0.25, scale=2)"``, recorded residuals,
        a :class:`Mixture` or an :class:`~wienerkernel.Expansion`. None is the standard normal law.

    Returns
    -------
    Noise
        With positive, finite variance.

    Examples
    --------
    >>> as_noise("gamma(0.25, scale=2)").var()
    1.0
    >>> as_noise([-0.1, 0.0, 0.2]).support()
    (-0.1, 0.2)
    """
    noise = _convert(obj)
    variance = noise.var()
    if not (np.isfinite(variance) and variance > 0):
        msg = f"noise {noise!r} has variance {variance}; a law with positive, finite variance is needed"
        raise ValueError(msg)
    return noise


def _convert(obj: Any) -> Noise:
    if isinstance(obj, Noise):
        return obj
    if obj is None:
        obj = "norm(0, 1)"
    if isinstance(obj, str):
        obj = parse_noise(obj)
    if hasattr(obj, "dist") and hasattr(obj, "kwds"):
        return from_scipy(obj)
    if hasattr(obj, "freeze"):
        msg = f"noise={obj.name} has no parameters: freeze it first, for example stats.gamma(0.25, scale=2)"
        raise TypeError(msg)
    if np.ndim(obj) == 1:
        return Residuals(obj)
    raise TypeError(
        f"noise must be a frozen scipy.stats law, a string such as 'gamma(0.25, scale=2)', a one-dimensional array "
        f"of residuals, a Mixture or an Expansion, got {type(obj).__name__}"
    )
