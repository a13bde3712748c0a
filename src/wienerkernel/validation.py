"""What the estimator accepts, and the messages for what it does not."""

from __future__ import annotations

from functools import cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_X_y

from ._typing import Array, FloatArray
from .backend import arrays
from .backend.linalg import NotPositiveDefiniteError, cholesky, matmul

__all__ = [
    "PRECISIONS",
    "SMALLEST",
    "centered_targets",
    "check_array_api",
    "check_array_api_outputs",
    "check_noise_scale",
    "check_size",
    "check_spans",
    "is_plain",
    "largest",
    "regularizer_of",
]

PRECISIONS = ("float64", "float32")

SMALLEST = 1e-150
"""Of the numbers whose squares, and the reciprocals of those, are normal numbers in float64."""


@cache  # asked for with every prediction
def largest(dtype: str = "float64") -> float:
    """Magnitude up to which numbers can be squared and the squares summed.

    Parameters
    ----------
    dtype : {"float64", "float32"}, default="float64"

    Returns
    -------
    float
    """
    return float(1e-4 * np.sqrt(np.finfo(dtype).max))


def check_size(name: str, values: Array, dtype: str = "float64") -> None:
    """Refuse numbers that are too large to be squared.

    Parameters
    ----------
    name : str
        For the message.
    values : array of shape (n,) or (n, d)
        Finite.
    dtype : {"float64", "float32"}, default="float64"
    """
    xp = arrays.namespace(values)
    if values.shape[0] == 0 or bool(xp.all(xp.abs(values) <= largest(dtype))):
        return
    plain = arrays.as_numpy(values)
    at = np.unravel_index(np.argmax(np.abs(plain)), plain.shape)
    where = ", ".join(f"{axis} {k}" for axis, k in zip(("row", "column"), at, strict=False))
    msg = f"{name} has the value {plain[at]:g} in {where}: that is too large to be squared in {dtype}; rescale {name}"
    raise ValueError(msg)


def check_spans(X: Array, y: FloatArray) -> None:
    """Refuse data whose differences say nothing about a length scale or a variance, once these are squared.

    Parameters
    ----------
    X : array of shape (n, d)
    y : ndarray of shape (n,) or (n, n_y)
    """
    # Variances are of the size of y^2, and are squared themselves.
    for name, values, root in (("X", arrays.as_numpy(X), 1.0), ("y", y.reshape(len(y), -1), 0.5)):
        spans = values.max(axis=0) - values.min(axis=0)
        for off, size in ((spans < SMALLEST**root, "little"), (spans > largest() ** root, "much")):
            if np.any(off & (spans > 0)):
                column = int(np.argmax(off & (spans > 0)))
                msg = (
                    f"column {column} of {name} spans {spans[column]:g}, which is too {size} "
                    f"to be squared{' twice' * (root < 1)} in float64; rescale {name}"
                )
                raise ValueError(msg)


def check_noise_scale(noise_scale: ArrayLike | None, n: int, invertible: bool = False) -> FloatArray:
    """Scales of the noise of n samples: (n,), or (n, n) for correlated noise.

    Parameters
    ----------
    noise_scale : None, float or array-like of shape (n,) or (n, n)
    n : int
    invertible : bool, default=False
        Whether the covariance of the noise must be invertible: it is if it is the ridge.

    Returns
    -------
    ndarray of shape (n,) or (n, n)
    """
    if noise_scale is None:
        return np.ones(n)
    scale = np.asarray(noise_scale, dtype=np.float64)
    if scale.ndim == 0:
        scale = np.full(n, scale)
    if scale.shape not in ((n,), (n, n)) or not np.all(np.isfinite(scale)):
        msg = f"noise_scale must be finite, of shape ({n},) or ({n}, {n}), got shape {scale.shape}"
        raise ValueError(msg)
    if scale.ndim == 1 and np.any(scale <= 0):
        msg = f"noise_scale must be positive, got {scale.min()} at row {int(scale.argmin())}"
        raise ValueError(msg)
    check_size("noise_scale", scale)
    sizes = np.abs(scale) if scale.ndim == 1 else np.max(np.abs(scale), axis=1)
    if np.any(sizes < SMALLEST):
        row = int(sizes.argmin())
        msg = f"noise_scale has nothing above {sizes[row]:g} in row {row}: every sample must have noise"
        raise ValueError(msg)
    if scale.ndim == 2:
        _check_mixing(scale, invertible)
    return scale


def _check_mixing(scale: FloatArray, invertible: bool) -> None:
    """Refuse a matrix L with a singular L L', if need be."""
    if not invertible:
        return
    unit = scale / np.linalg.norm(scale, axis=1, keepdims=True)
    try:
        pivots = np.diagonal(cholesky(matmul(unit, unit, transpose_b=True)))
        singular = bool(np.min(pivots) ** 2 <= len(scale) * np.finfo(np.float64).eps)
    except NotPositiveDefiniteError:
        singular = True
    if singular:
        msg = (
            "the covariance of the noise is singular, so that it cannot be the ridge: the rows of noise_scale must be "
            "linearly independent, or ridge must be given"
        )
        raise ValueError(msg)


def regularizer_of(ridge: Any, scale: FloatArray, variance: float) -> tuple[FloatArray, float]:
    """R, as its diagonal where it is diagonal, and the ridge.

    Parameters
    ----------
    ridge : float or None
        None is the noise covariance.
    scale : ndarray of shape (n,) or (n, n)
    variance : float
        Of the noise.

    Returns
    -------
    regularizer : ndarray of shape (n,) or (n, n)
    ridge : float
    """
    if ridge is None:
        regularizer = (scale**2 if scale.ndim == 1 else scale @ scale.T) * variance
    elif isinstance(ridge, Real) and 0 < float(ridge) < np.inf:
        diagonal = np.full(len(scale), float(ridge))
        regularizer = diagonal if scale.ndim == 1 else np.diag(diagonal)
    else:
        msg = f"ridge must be a positive number, or None for the noise variance, got {ridge!r}"
        raise ValueError(msg)
    entries = regularizer if regularizer.ndim == 1 else np.diagonal(regularizer)
    off = np.flatnonzero(~((entries >= SMALLEST**2) & (entries <= SMALLEST**-2)))
    if off.size:
        msg = (
            f"the regularizer (noise variance or ridge) is {entries[off[0]]:g} in row {off[0]}, "
            "which float64 cannot be divided by: rescale y"
        )
        raise ValueError(msg)
    return regularizer, variance if ridge is None else float(ridge)


def centered_targets(
    outputs: FloatArray, scale: FloatArray, noise_mean: float, output_scale: FloatArray
) -> FloatArray:
    """Outputs over their scales, without the mean of their noise: that of sample i is its scale times ``noise_mean``.

    Parameters
    ----------
    outputs : ndarray of shape (n,) or (n, n_y)
    scale : ndarray of shape (n,) or (n, n)
    noise_mean : float
    output_scale : ndarray of shape (n_y,)

    Returns
    -------
    ndarray of shape (n, n_y)
    """
    columns = outputs.reshape(len(outputs), -1)
    if columns.shape[1] != len(output_scale):
        msg = f"y has {columns.shape[1]} outputs, the model was fitted with {len(output_scale)}"
        raise ValueError(msg)
    sums = scale if scale.ndim == 1 else scale.sum(axis=1)
    return np.asarray(columns / output_scale - noise_mean * sums[:, None])


def is_plain(estimator: Any, X: Any) -> bool:
    """Whether scikit-learn's checks of a query would find nothing; they take longer than a prediction at one point.

    Parameters
    ----------
    estimator : estimator
        Fitted, of precision ``dtype``.
    X : object

    Returns
    -------
    bool
        True for a NumPy array of that precision with rows, the right number of columns and entries that can be
        squared, where columns have no names.
    """
    return bool(
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[1] == estimator.n_features_in_
        and X.shape[0] > 0
        and X.dtype == estimator.dtype
        and "feature_names_in_" not in estimator.__dict__
        and (np.abs(X) <= largest(estimator.dtype)).all()
    )


def check_array_api(estimator: Any, X: Array, reset: bool) -> Array:
    """An array of another library than NumPy: what scikit-learn checks, without leaving its device.

    Parameters
    ----------
    estimator : estimator
    X : array of shape (n, d)
    reset : bool
        Whether the number of columns is to be remembered; else it is compared.

    Returns
    -------
    array of shape (n, d)
        In the precision of the estimator.
    """
    if X.ndim != 2 or X.shape[0] < 1 or X.shape[1] < 1:
        msg = f"X must have shape (n, d) with at least one row and column, got {tuple(X.shape)}"
        raise ValueError(msg)
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
    elif X.shape[1] != estimator.n_features_in_:
        name, expected = type(estimator).__name__, estimator.n_features_in_
        msg = f"X has {X.shape[1]} features, but {name} is expecting {expected} features as input"
        raise ValueError(msg)
    xp = arrays.namespace(X)
    if not bool(xp.all(xp.isfinite(X))):
        msg = "X contains NaN or infinity"
        raise ValueError(msg)
    inputs = arrays.in_precision(X, estimator.dtype)
    check_size("X", inputs, estimator.dtype)
    return inputs


def check_array_api_outputs(X: Array, y: Any) -> FloatArray:
    """Outputs that go with inputs of another library, in NumPy.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,) or (n, n_y)

    Returns
    -------
    ndarray of shape (n,) or (n, n_y)
    """
    values = arrays.as_numpy(y) if arrays.is_array_api(y) else y
    _, outputs = check_X_y(np.zeros((X.shape[0], 1)), values, multi_output=True, y_numeric=True)
    return np.asarray(outputs, dtype=np.float64)
