"""What the estimator accepts, and the messages for what it does not."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_X_y

from . import arrays
from ._typing import Array, FloatArray

__all__ = [
    "centred_targets",
    "check_foreign",
    "check_foreign_outputs",
    "check_noise_scale",
    "is_plain",
    "regulariser_of",
]


def check_noise_scale(noise_scale: ArrayLike | None, n: int) -> FloatArray:
    """Scales of the noise of n samples: (n,), or (n, n) for correlated noise.

    Parameters
    ----------
    noise_scale : None, float or array-like of shape (n,) or (n, n)
    n : int

    Returns
    -------
    ndarray of shape (n,) or (n, n)

    Examples
    --------
    >>> check_noise_scale(2.0, 3).tolist()
    [2.0, 2.0, 2.0]
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
    return scale


def regulariser_of(ridge: Any, scale: FloatArray, variance: float) -> tuple[FloatArray, float]:
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
    regulariser : ndarray of shape (n,) or (n, n)
    ridge : float

    Examples
    --------
    >>> regulariser_of(None, np.array([1.0, 2.0]), 0.5)[0].tolist()
    [0.5, 2.0]
    """
    if ridge is None:
        return (scale**2 if scale.ndim == 1 else scale @ scale.T) * variance, variance
    if not isinstance(ridge, Real) or not 0 < float(ridge) < np.inf:
        msg = f"ridge must be a positive number, or None for the noise variance, got {ridge!r}"
        raise ValueError(msg)
    diagonal = np.full(len(scale), float(ridge))
    return diagonal if scale.ndim == 1 else np.diag(diagonal), float(ridge)


def centred_targets(
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

    Examples
    --------
    >>> centred_targets(np.array([1.0, 2.0]), np.array([1.0, 2.0]), 0.5, np.ones(1)).tolist()
    [[0.5], [1.0]]
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
        True for a NumPy array of that precision with rows, the right number of columns and finite entries, where
        columns have no names.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> fitted = SimpleNamespace(dtype="float64", n_features_in_=2)
    >>> is_plain(fitted, np.zeros((1, 2))), is_plain(fitted, [[0.0, 0.0]]), is_plain(fitted, np.zeros((1, 3)))
    (True, False, False)
    """
    return bool(
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[1] == estimator.n_features_in_
        and X.shape[0] > 0
        and X.dtype == estimator.dtype
        and "feature_names_in_" not in estimator.__dict__
        and np.isfinite(X).all()
    )


def check_foreign(estimator: Any, X: Array, reset: bool) -> Array:
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

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_foreign(SimpleNamespace(dtype="float64"), np.zeros((2, 1), dtype=np.float32), reset=True).dtype
    dtype('float64')
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
    return arrays.in_precision(X, estimator.dtype)


def check_foreign_outputs(X: Array, y: Any) -> FloatArray:
    """Outputs that go with inputs of another library, in NumPy.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,) or (n, n_y)

    Returns
    -------
    ndarray of shape (n,) or (n, n_y)

    Examples
    --------
    >>> check_foreign_outputs(np.zeros((2, 3)), np.array([1, 2])).tolist()
    [1.0, 2.0]
    """
    values = arrays.as_numpy(y) if arrays.is_foreign(y) else y
    _, outputs = check_X_y(np.zeros((X.shape[0], 1)), values, multi_output=True, y_numeric=True)
    return np.asarray(outputs, dtype=np.float64)
