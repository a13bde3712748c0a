"""Checks of the data that the estimator is given, with messages that say what to change."""

from __future__ import annotations

from functools import cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_X_y, validate_data

from ._typing import Array, FloatArray
from .backend import arrays
from .backend.linalg import NotPositiveDefiniteError, cholesky, matmul
from .text import check_choice

__all__ = [
    "PRECISIONS",
    "SMALLEST",
    "centered_targets",
    "check_data",
    "check_independent",
    "check_noise_scale",
    "check_outputs",
    "check_query",
    "check_query_scale",
    "check_size",
    "check_spans",
    "is_plain",
    "largest",
    "precision",
    "regularizer_of",
]

PRECISIONS = ("float64", "float32", "mixed")

NOT_NUMBERS = (
    (("date", "period"), "dates", "(t - t.min()) / pd.Timedelta(days=1)"),
    (("timedelta", "duration"), "durations", "t / pd.Timedelta(days=1)"),
)
"""Beginnings of the names of dtypes, what they are, and how they become numbers."""

SMALLEST = 1e-150
"""Smallest magnitude whose square, and the reciprocal of that, are normal numbers in float64."""


@cache  # needed in every prediction
def largest(dtype: str = "float64") -> float:
    """Largest magnitude of numbers that can be squared and the squares summed."""
    return float(1e-4 * np.sqrt(np.finfo(dtype).max))


def check_size(name: str, values: Array, dtype: str = "float64") -> None:
    """Raise ValueError for finite numbers (n,) or (n, d) that are too large to be squared."""
    xp = arrays.namespace(values)
    if values.shape[0] == 0 or bool(xp.all(xp.abs(values) <= largest(dtype))):
        return
    plain = arrays.as_numpy(values)
    at = np.unravel_index(np.argmax(np.abs(plain)), plain.shape)
    where = ", ".join(f"{axis} {k}" for axis, k in zip(("row", "column"), at, strict=False))
    msg = f"{name} has the value {plain[at]:g} in {where}: that is too large to be squared in {dtype}; rescale {name}"
    raise ValueError(msg)


def check_spans(X: Array, y: FloatArray) -> None:
    """Raise ValueError if the range of data is so small or large that length scales or variances cannot be squared."""
    # Variances are of the size of y^2, and are squared themselves.
    for name, values, root in (
        ("X", arrays.as_numpy(X).astype(np.float64), 1.0),
        ("y", y.reshape(len(y), -1), 0.5),
    ):
        spans = values.max(axis=0) - values.min(axis=0)
        for off, size in ((spans < SMALLEST**root, "little"), (spans > largest() ** root, "much")):
            if np.any(off & (spans > 0)):
                column = int(np.argmax(off & (spans > 0)))
                raise ValueError(
                    f"column {column} of {name} spans {spans[column]:g}, which is too {size} "
                    f"to be squared{' twice' * (root < 1)} in float64; rescale {name}"
                )


def check_query_scale(noise_scale: ArrayLike | None, n: int) -> FloatArray | None:
    """Noise scales of n new observations, (n,), or None."""
    if noise_scale is None:
        return None
    scale = np.asarray(noise_scale, dtype=np.float64)
    if scale.shape not in ((), (n,)):
        msg = f"noise_scale must have one value for each of the {n} rows of X, got shape {scale.shape}"
        raise ValueError(msg)
    return check_noise_scale(scale, n)


def check_noise_scale(noise_scale: ArrayLike | None, n: int, invertible: bool = False) -> FloatArray:
    """Noise scales of n samples: (n,), or (n, n) for correlated noise, whose covariance may have to be invertible."""
    if noise_scale is None:
        return np.ones(n)
    scale = np.array(noise_scale, dtype=np.float64)  # a copy, which the model keeps
    if scale.ndim == 0:
        scale = np.full(n, scale)
    if scale.shape not in ((n,), (n, n)) or not np.all(np.isfinite(scale)):
        msg = f"noise_scale must be finite, of shape ({n},) or ({n}, {n}), got shape {scale.shape}"
        raise ValueError(msg)
    if scale.ndim == 1 and np.any(scale <= 0):
        raise ValueError(f"noise_scale must be positive, got {scale.min()} at row {int(scale.argmin())}")
    check_size("noise_scale", scale)
    sizes = np.abs(scale) if scale.ndim == 1 else np.max(np.abs(scale), axis=1)
    if np.any(sizes < SMALLEST):
        row = int(sizes.argmin())
        msg = f"noise_scale has no entry above {sizes[row]:g} in row {row}: every sample must have noise"
        raise ValueError(msg)
    if scale.ndim == 2 and invertible:
        _check_invertible(scale)
    return scale


def _check_invertible(scale: FloatArray) -> None:
    """Raise ValueError for a matrix L with a singular L L'."""
    unit = scale / np.linalg.norm(scale, axis=1, keepdims=True)
    try:
        pivots = np.diagonal(cholesky(matmul(unit, unit, transpose_b=True)))
        singular = bool(np.min(pivots) ** 2 <= len(scale) * np.finfo(np.float64).eps)
    except NotPositiveDefiniteError:
        singular = True
    if singular:
        raise ValueError(
            "the covariance of the noise is singular, so it cannot be the ridge: the rows of noise_scale must be "
            "linearly independent, or ridge must be given"
        )


def check_independent(*scales: FloatArray) -> None:
    """Raise ValueError if samples with correlated noise are added or removed."""
    if any(scale.ndim == 2 for scale in scales):
        msg = "samples with correlated noise (a matrix noise_scale) cannot be added or forgotten: fit all at once"
        raise ValueError(msg)


def regularizer_of(ridge: Any, scale: FloatArray, variance: float) -> tuple[FloatArray, float]:
    """R, of the shape of ``scale``, and the ridge; None is the variance of the noise."""
    if ridge is None:
        regularizer = (scale**2 if scale.ndim == 1 else scale @ scale.T) * variance
    elif isinstance(ridge, Real) and 0 < float(ridge) < np.inf:
        regularizer = float(ridge) * (np.ones(len(scale)) if scale.ndim == 1 else np.eye(len(scale)))
    else:
        raise ValueError(f"ridge must be a positive number, or None for the noise variance, got {ridge!r}")
    entries = regularizer if regularizer.ndim == 1 else np.diagonal(regularizer)
    off = np.flatnonzero(~((entries >= SMALLEST**2) & (entries <= SMALLEST**-2)))
    if off.size:
        raise ValueError(
            f"the regularizer (noise variance or ridge) is {entries[off[0]]:g} in row {off[0]}, "
            "and float64 cannot divide by that: rescale y"
        )
    return regularizer, variance if ridge is None else float(ridge)


def check_outputs(given: int, fitted: int) -> None:
    """Refuse another number of outputs than that of the fit."""
    if given != fitted:
        raise ValueError(f"y has {given} outputs, the model was fitted with {fitted}")


def centered_targets(
    outputs: FloatArray, scale: FloatArray, noise_mean: float, output_scale: FloatArray
) -> FloatArray:
    """Outputs (n,) or (n, n_y) divided by their scales, minus the mean of their noise, (n, n_y)."""
    columns = outputs.reshape(len(outputs), -1)
    check_outputs(columns.shape[1], len(output_scale))
    sums = scale if scale.ndim == 1 else scale.sum(axis=1)
    return np.asarray(columns / output_scale - noise_mean * sums[:, None])


def precision(estimator: Any) -> str:
    """Precision of the inputs: double for ``dtype="mixed"``."""
    return "float32" if estimator.dtype == "float32" else "float64"


def is_plain(estimator: Any, X: Any) -> bool:
    """Whether X would pass scikit-learn's checks unchanged; these take longer than a prediction at one point."""
    return bool(
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[1] == estimator.n_features_in_
        and X.shape[0] > 0
        and X.dtype == precision(estimator)
        and "feature_names_in_" not in estimator.__dict__
        and (np.abs(X) <= largest(precision(estimator))).all()
    )


def _check_array_api(estimator: Any, X: Array, reset: bool) -> Array:
    """Check X (n, d) of another library as scikit-learn would, on its device; ``reset`` stores its number of columns."""
    if X.ndim != 2 or X.shape[0] < 1 or X.shape[1] < 1:
        raise ValueError(f"X must have shape (n, d) with at least one row and column, got {tuple(X.shape)}")
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
    elif X.shape[1] != estimator.n_features_in_:
        name, expected = type(estimator).__name__, estimator.n_features_in_
        raise ValueError(f"X has {X.shape[1]} features, but {name} is expecting {expected} features as input")
    xp = arrays.namespace(X)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("X contains NaN or infinity")
    inputs = arrays.in_precision(X, precision(estimator))
    check_size("X", inputs, precision(estimator))
    return inputs


def check_data(estimator: Any, X: Any, y: Any, reset: bool) -> tuple[Array, FloatArray]:
    """Inputs (n, d) in their own library and outputs in NumPy, both checked as scikit-learn does."""
    check_choice("dtype", estimator.dtype, PRECISIONS)
    if arrays.is_array_api(X):
        inputs = _check_array_api(estimator, X, reset)
        values, rows = arrays.as_numpy(y) if arrays.is_array_api(y) else y, np.zeros((X.shape[0], 1))
        outputs = check_X_y(rows, values, multi_output=True, y_numeric=True)[1].astype(np.float64, copy=False)
        check_size("y", outputs)
        return arrays.copy(inputs) if reset else inputs, outputs
    if not reset and is_plain(estimator, X) and _is_plain_vector(y, len(X)):
        return X, y
    _check_kinds(X)
    _check_kinds(y, "y")
    if reset:
        _remember_targets(estimator, y)
    options = {"dtype": precision(estimator), "multi_output": True, "y_numeric": True}
    # a copy: the user may change X later
    inputs, outputs = validate_data(estimator, X, y, **options, reset=reset, copy=reset)
    outputs = np.asarray(outputs, dtype=np.float64)
    check_size("X", inputs, precision(estimator))
    check_size("y", outputs)
    return inputs, outputs


def _check_kinds(values: Any, what: str = "X") -> None:
    """Raise ValueError for dates, which would become numbers of some unit, and for texts."""
    table = hasattr(values, "columns")
    kinds = zip(values.columns, values.dtypes, strict=True) if table else [("", getattr(values, "dtype", ""))]
    for name, dtype in kinds:
        where, kind = f"column {str(name)!r} of {what}" if table else what, str(dtype).lower()
        for prefixes, found, how in NOT_NUMBERS:
            if kind.startswith(prefixes):
                raise ValueError(f"{where} has {found}: convert them to numbers, such as {how}")
        has_texts = kind in ("str", "string", "category") or (
            kind == "object" and table and any(isinstance(value, str) for value in values[name])
        )
        if table and has_texts:
            raise ValueError(
                f"{where} has texts: encode them, such as by sklearn.preprocessing.OneHotEncoder"
            )


def _remember_targets(estimator: Any, y: Any) -> None:
    """Keep the names of a Series or DataFrame y as ``target_names_in_``."""
    estimator.__dict__.pop("target_names_in_", None)
    found = list(getattr(y, "columns", [getattr(y, "name", None)]))
    if found and all(isinstance(name, str) for name in found):
        estimator.target_names_in_ = np.array(found, dtype=object)


def check_query(estimator: Any, X: Any) -> Array:
    """Queries (m, d) in their own library, checked."""
    if is_plain(estimator, X):
        return np.asarray(X)
    if arrays.is_array_api(X):
        return _check_array_api(estimator, X, reset=False)
    _check_kinds(X)
    query = np.asarray(validate_data(estimator, X, dtype=precision(estimator), reset=False))
    check_size("X", query, precision(estimator))
    return query


def _is_plain_vector(y: Any, n: int) -> bool:
    """Whether y would pass scikit-learn's checks unchanged."""
    plain = type(y) is np.ndarray and y.dtype == np.float64 and y.shape == (n,)
    return bool(plain and (np.abs(y) <= largest()).all())
