"""A learned noise level s(x), and noise on the inputs, as JSON and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ..._typing import FloatArray
from ...kernels import Kernel
from ...noise import Noise
from ...noise.level import FittedMean, Level
from ...posterior.input_noise import InputNoise, Linearization
from .archive import FormatError
from .nodes import Array, Record, check_shape, each, packed, unpacked

__all__ = ["RECORDS", "check_level"]

CLOSE = 1e-6
"""Difference of numbers of size 1 that are equal up to rounding and the jitter of the factor."""
LARGEST = 9.0
"""Prior variance of the logarithm of the noise's standard deviation; that of a weight is at most 1."""


def check_level(level: Any, n_features: int) -> None:
    """Compare the parts of a level with each other and with the number of inputs."""
    if level is None:
        return
    points = level.points if level.inputs is None else level.inputs.places
    if points.shape[1] != n_features or level.points.shape[1] not in (1, points.shape[1]):
        raise FormatError(
            f"the noise level has points of shape {points.shape}, expected {n_features} columns"
        )
    if level.covariance.shape != (1 + len(level.points),) * 2:
        raise FormatError(f"the covariance of the noise level has the shape {level.covariance.shape}")
    if level.varies:
        _check_factor(level)
    _check_covariance(level.covariance)


def _check_mean(mean: FittedMean) -> None:
    if len(mean.coefficients) not in (0, 1, 1 + mean.places.shape[1]):
        raise FormatError("the mean that the noise level follows has another trend")
    if not np.all(np.isfinite(mean(mean.places))):
        raise FormatError("the mean that the noise level follows is not finite")


def _check_factor(level: Level) -> None:
    """L L' is the kernel, of variance 1, and L^-1 K L^-T is at most 1: so are then the features, at any input."""
    if np.any(np.diagonal(level.factor) <= 0):
        raise FormatError("the diagonal of the noise level's factor must be positive")
    kernel = level.kernel(level.points)
    product = level.factor @ level.factor.T
    close = np.allclose([np.diagonal(kernel), np.diagonal(product)], 1, rtol=0, atol=CLOSE)
    if not close or not np.allclose(product, kernel, rtol=0, atol=CLOSE):
        raise FormatError("the factor of the noise level does not belong to its kernel, of variance 1")
    half = solve_triangular(level.factor, kernel, lower=True)
    whitened = solve_triangular(level.factor, half.T, lower=True)
    if not np.linalg.eigvalsh(whitened).max() <= 1 + CLOSE:
        raise FormatError("the factor of the noise level is too inaccurate")


def _check_covariance(covariance: FloatArray) -> None:
    """Symmetric, with eigenvalues between 0 and the largest of the prior."""
    symmetric = np.allclose(covariance, covariance.T, rtol=0, atol=CLOSE)
    sizes = np.linalg.eigvalsh(covariance)
    if not symmetric or not np.all((sizes >= -CLOSE) & (sizes <= LARGEST + CLOSE)):
        raise FormatError(
            f"the covariance of the noise level must be symmetric, with eigenvalues from 0 to {LARGEST:g}"
        )


def _level(points: FloatArray, factor: FloatArray, **parts: Any) -> Level:
    return Level(points=points, factor=unpacked(factor, len(points), name="level.factor"), **parts)


def _input_noise(laws: tuple[Noise, ...], directions: FloatArray, **parts: FloatArray) -> Linearization:
    d = directions.shape[1]
    each(Noise, 1, d)(laws, "input_noise.laws")
    check_shape("directions", directions, len(laws), d)
    return Linearization(InputNoise(laws, directions), **parts)


RECORDS = [
    Record(
        FittedMean,
        {
            "kernel": Kernel,
            "coefficients": Array("_", empty=True),
            "places": "mean_places _",
            "dual": "mean_places",
        },
        check=_check_mean,
    ),
    Record(
        Level,
        {
            "kernel": Kernel,
            "inputs": FittedMean | None,
            "points": Array("level_points _", empty=True),
            "factor": Array("_", empty=True),
            "weights": Array("level_points", empty=True),
            "covariance": Array("_ _", empty=True),
        },
        take=lambda level: {"factor": packed(level.factor)},
        make=_level,
    ),
    Record(
        Linearization,
        {"laws": each(Noise, 1), "directions": "laws d", "slopes": "n laws", "curvature": "n"},
        take=lambda linear: {"laws": linear.noise.laws, "directions": linear.noise.directions},
        make=_input_noise,
    ),
]
