"""Trajectories, and the regression problems that they pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .._typing import FloatArray
from ..regressor import WienerKernelRegressor
from ..transform import Transform

__all__ = [
    "check_lags",
    "check_trajectories",
    "fitted",
    "seasonal_inputs",
    "split_trajectories",
    "transformed",
]

Trajectories = tuple[list[FloatArray], list[FloatArray]]
"""States (T, n_x) and inputs (T, n_u) or (T - 1, n_u), a list of arrays each."""


def check_lags(lags: Any) -> tuple[int, int]:
    """Lags of states and inputs."""
    pair = (lags, lags) if np.ndim(lags) == 0 else tuple(lags)
    if len(pair) != 2 or any(
        isinstance(lag, bool) or not isinstance(lag, int | np.integer) or lag < 1 for lag in pair
    ):
        raise ValueError(f"lags must be a positive integer or a pair of them, got {lags!r}")
    return int(pair[0]), int(pair[1])


def check_trajectories(X: Any, U: Any) -> tuple[list[FloatArray], list[FloatArray], FloatArray]:
    """Trajectories as lists of arrays (T, n_x) and (T, n_u) or (T - 1, n_u), and inputs after the last one."""
    if hasattr(X, "__len__") and not len(X):
        raise ValueError("X must have at least one trajectory, got none")
    several = isinstance(X, list | tuple) and np.ndim(X[0]) > 0
    states = [_columns(x) for x in (X if several else [X])]
    inputs: list[FloatArray]
    if U is None:
        inputs = [np.empty((len(x), 0)) for x in states]
    else:
        inputs = [_columns(u) for u in (U if several else [U])]
    if len(inputs) != len(states):
        raise ValueError(f"X has {len(states)} trajectories, U {len(inputs)}")
    ahead = inputs[-1][len(states[-1]) :]
    inputs[-1] = inputs[-1][: len(states[-1])]
    for k, (x, u) in enumerate(zip(states, inputs, strict=True)):
        if len(u) not in (len(x), len(x) - 1):
            raise ValueError(
                f"trajectory {k} has {len(x)} states, so U must have {len(x)} or {len(x) - 1} rows, got {len(u)}"
            )
        if x.shape[1] != states[0].shape[1] or u.shape[1] != inputs[0].shape[1]:
            raise ValueError(f"trajectory {k} has other numbers of states or inputs than the first")
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(u))):
            raise ValueError(f"trajectory {k} has values that are not finite")
    if not np.all(np.isfinite(ahead)):
        raise ValueError("the inputs after the last trajectory are not finite")
    return states, inputs, ahead


def seasonal_inputs(n: int, period: float, harmonics: int = 3, start: int = 0) -> FloatArray:
    """Cosines and sines of a season, as inputs that tell a model the time of the year.

    Parameters
    ----------
    n : int
        Number of steps.
    period : float
        In steps, such as 12 for monthly data.
    harmonics : int, default=3
        Frequencies 1, 2, ... over the period, below one half of a cycle per step.
    start : int, default=0
        The first step.

    Returns
    -------
    ndarray of shape (n, 2 * harmonics), or less if the period is short

    Examples
    --------
    >>> from wienerkernel import seasonal_inputs
    >>> seasonal_inputs(24, 12).shape
    (24, 6)
    """
    if not np.isfinite(period) or period < 2 or harmonics < 1:
        raise ValueError(
            f"a season needs a period of at least 2 steps and a harmonic, got {period!r}, {harmonics!r}"
        )
    phase = 2 * np.pi * (start + np.arange(n)) / period
    orders = [k for k in range(1, harmonics + 1) if 2 * k < period] or [1]
    return np.column_stack([wave(k * phase) for k in orders for wave in (np.cos, np.sin)])


def _columns(values: Any) -> FloatArray:
    array = np.asarray(values, dtype=float)
    if array.ndim not in (1, 2):
        raise ValueError(f"a trajectory must have shape (T,) or (T, n), got {array.shape}")
    if not len(array):
        raise ValueError(f"a trajectory must have at least one row, got shape {array.shape}")
    return array.reshape(len(array), -1)


def split_trajectories(
    states: list[FloatArray], inputs: list[FloatArray], needed: int
) -> tuple[Trajectories, Trajectories]:
    """The first two thirds of the data, and the rest."""
    if len(states) > 2:
        cut = max(1, len(states) * 2 // 3)
        return (states[:cut], inputs[:cut]), (states[cut:], inputs[cut:])
    cuts = [len(x) * 2 // 3 for x in states]
    if any(len(x) - cut <= 2 or cut <= needed for x, cut in zip(states, cuts, strict=True)):
        raise ValueError(
            f"choosing by simulation error needs trajectories of at least {3 * (needed + 1) // 2 + 3} samples"
        )
    halves = [(x[:cut], u[:cut], x[cut:], u[cut:]) for x, u, cut in zip(states, inputs, cuts, strict=True)]
    x_early, u_early, x_late, u_late = (list(column) for column in zip(*halves, strict=True))
    return (x_early, u_early), (x_late, u_late)


def fitted(
    states: list[FloatArray], inputs: list[FloatArray], lags: tuple[int, int], model: Any, learns: str
) -> tuple[list[WienerKernelRegressor], bool]:
    """One fitted copy of a model for each state, and whether past states are transformed as the next one is.

    They are if the model has a transform: otherwise paths of a positive series could grow without bound. The exponent is
    learned from untransformed past states first, and kept.
    """
    short = [k for k, x in enumerate(states) if len(x) <= max(lags)]
    if short:
        raise ValueError(
            f"trajectory {short[0]} has {len(states[short[0]])} samples; {max(lags)} lags need at least {max(lags) + 1}"
        )
    rows = [_lagged(x, u, lags) for x, u in zip(states, inputs, strict=True)]
    Z, now, following = (np.concatenate([row[i] for row in rows]) for i in range(3))
    targets = following - now if learns == "increment" else following
    models = [clone(model).fit(Z, column) for column in targets.T]
    transforms = [_fixed(one.posterior_.transform) for one in models]
    if learns == "increment" or not any(transforms):
        return models, False
    for i in range(lags[0]):
        columns = slice(i * len(models), (i + 1) * len(models))
        Z[:, columns] = transformed(Z[:, columns], transforms)
    again = [
        clone(model).set_params(transform=transform).fit(Z, column)
        for transform, column in zip(transforms, targets.T, strict=True)
    ]
    return again, True


def _fixed(transform: Transform | None) -> Transform | None:
    """A transform whose exponent is not learned again."""
    return replace(transform, free=False) if transform is not None and transform.free else transform  # type: ignore[type-var]


def transformed(states: FloatArray, transforms: Sequence[Transform | None]) -> FloatArray:
    """States (..., n_x), each on the scale of its transform."""
    columns = [x if T is None else T(x) for x, T in zip(np.moveaxis(states, -1, 0), transforms, strict=True)]
    return np.stack(columns, axis=-1)


def _lagged(X: FloatArray, U: FloatArray, lags: tuple[int, int]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows z_k = (x_k, x_{k-1}, ..., u_k, u_{k-1}, ...) of one trajectory, the states x_k and the next ones."""
    p, q = lags
    first, last = max(p, q) - 1, len(X) - 1
    columns = [X[first - i : last - i] for i in range(p)] + [U[first - i : last - i] for i in range(q)]
    return np.hstack(columns), X[first:last], X[first + 1 :]
