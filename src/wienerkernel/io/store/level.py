"""A learned noise level s(x) as JSON and arrays."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from ...noise.level import FittedMean, Level, NoiseLevel
from ...validation import check_size
from .archive import FormatError
from .nodes import Node, Reader, Writer, entries
from .objects import kernel_from, kernel_node
from .smoother import packed, unpacked

__all__ = ["level_from", "level_node"]

ARRAYS = ("points", "factor", "weights", "covariance")
MEAN = ("places", "dual", "coefficients")

CLOSE = 1e-6
"""Difference of numbers of size 1 that are equal up to rounding and the jitter of the factor."""
LARGEST = 9.0
"""Prior variance of the logarithm of the noise's standard deviation; that of a weight is at most 1."""


def level_node(level: NoiseLevel, writer: Writer, name: str) -> Node:
    """Describe a level, the names of its arrays beginning with ``name``; TypeError for a function."""
    if type(level) is not Level:
        raise TypeError(
            f"noise_level {level!r} cannot be saved: it is code, and a saved model holds numbers only. Use "
            "noise_level='input', or keep the data and the code and fit again"
        )
    triangle = packed(level.factor) if level.varies else np.empty(0)
    parts = {key: getattr(level, key) for key in ARRAYS} | {"factor": triangle}
    nodes = {key: writer.array(f"{name}.{key}", values) for key, values in parts.items()}
    inputs = None
    if level.inputs is not None:
        arrays = {key: writer.array(f"{name}.inputs.{key}", getattr(level.inputs, key)) for key in MEAN}
        inputs = {"kernel": kernel_node(level.inputs.kernel), **arrays}
    return {"kernel": kernel_node(level.kernel), "inputs": inputs, **nodes}


def level_from(node: Node, n_features: int, reader: Reader) -> Level:
    """The level that a node describes, after its parts have been compared with each other."""
    kernel, of_mean, *parts = entries(node, "kernel", "inputs", *ARRAYS)
    inputs = None if of_mean is None else _mean_from(of_mean, n_features, reader)
    points = reader.array(parts[0], (None, n_features if inputs is None else 1))
    n = len(points)
    shapes = ((n * (n + 1) // 2,), (n,), (1 + n, 1 + n))
    factor, weights, covariance = (
        reader.array(part, shape) for part, shape in zip(parts[1:], shapes, strict=True)
    )
    check_size("points of the noise level", points)
    check_size("weights of the noise level", weights)
    level = Level(kernel_from(kernel), points, unpacked(factor, n, n), weights, covariance, inputs)
    if level.varies:
        _check_factor(level)
    _check_covariance(level)
    return level


def _mean_from(node: Node, n_features: int, reader: Reader) -> FittedMean:
    """The fitted mean that a level follows."""
    kernel, *parts = entries(node, "kernel", *MEAN)
    places = reader.array(parts[0], (None, n_features))
    dual, coefficients = reader.array(parts[1], (len(places),)), reader.array(parts[2], (None,))
    if len(places) == 0 or len(coefficients) not in (0, 1, 1 + n_features):
        raise FormatError("the mean that the noise level follows has no places, or another trend")
    for name, values in zip(MEAN, (places, dual, coefficients), strict=True):
        check_size(f"{name} of the noise level", values)
    mean = FittedMean(kernel_from(kernel), places, dual, coefficients)
    if not np.all(np.isfinite(mean(places))):
        raise FormatError("the mean that the noise level follows is not finite")
    return mean


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


def _check_covariance(level: Level) -> None:
    """Symmetric, with eigenvalues between 0 and the largest of the prior."""
    covariance = level.covariance
    symmetric = np.allclose(covariance, covariance.T, rtol=0, atol=CLOSE)
    sizes = np.linalg.eigvalsh(covariance)
    if not symmetric or not np.all((sizes >= -CLOSE) & (sizes <= LARGEST + CLOSE)):
        raise FormatError(
            f"the covariance of the noise level must be symmetric, with eigenvalues from 0 to {LARGEST:g}"
        )
