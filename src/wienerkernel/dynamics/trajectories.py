"""Trajectories, and the regression problems that they pose."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from .._typing import FloatArray
from ..regressor import WienerKernelRegressor

__all__ = ["check_lags", "check_trajectories", "fitted", "split_trajectories"]

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


def check_trajectories(X: Any, U: Any) -> Trajectories:
    """Trajectories as lists of arrays (T, n_x) and (T, n_u) or (T - 1, n_u)."""
    several = isinstance(X, list | tuple) and np.ndim(X[0]) > 0
    states = [_columns(x) for x in (X if several else [X])]
    inputs: list[FloatArray]
    if U is None:
        inputs = [np.empty((len(x), 0)) for x in states]
    else:
        inputs = [_columns(u) for u in (U if several else [U])]
    if len(inputs) != len(states):
        raise ValueError(f"X has {len(states)} trajectories, U {len(inputs)}")
    for k, (x, u) in enumerate(zip(states, inputs, strict=True)):
        if len(u) not in (len(x), len(x) - 1):
            raise ValueError(
                f"trajectory {k} has {len(x)} states, so U must have {len(x)} or {len(x) - 1} rows, got {len(u)}"
            )
        if x.shape[1] != states[0].shape[1] or u.shape[1] != inputs[0].shape[1]:
            raise ValueError(f"trajectory {k} has other numbers of states or inputs than the first")
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(u))):
            raise ValueError(f"trajectory {k} has values that are not finite")
    return states, inputs


def _columns(values: Any) -> FloatArray:
    array = np.asarray(values, dtype=float)
    if array.ndim not in (1, 2):
        raise ValueError(f"a trajectory must have shape (T,) or (T, n), got {array.shape}")
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
    early = (
        [x[:cut] for x, cut in zip(states, cuts, strict=True)],
        [u[:cut] for u, cut in zip(inputs, cuts, strict=True)],
    )
    late = (
        [x[cut:] for x, cut in zip(states, cuts, strict=True)],
        [u[cut:] for u, cut in zip(inputs, cuts, strict=True)],
    )
    return early, late


def fitted(
    states: list[FloatArray], inputs: list[FloatArray], lags: tuple[int, int], model: Any, learns: str
) -> list[WienerKernelRegressor]:
    """One fitted copy of a model for each state."""
    short = [k for k, x in enumerate(states) if len(x) <= max(lags)]
    if short:
        raise ValueError(
            f"trajectory {short[0]} has {len(states[short[0]])} samples; lags {lags} need at least {max(lags) + 1}"
        )
    rows = [_lagged(x, u, lags) for x, u in zip(states, inputs, strict=True)]
    Z, now, following = (np.concatenate([row[i] for row in rows]) for i in range(3))
    targets = following - now if learns == "increment" else following
    return [clone(model).fit(Z, column) for column in targets.T]


def _lagged(X: FloatArray, U: FloatArray, lags: tuple[int, int]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows z_k = (x_k, x_{k-1}, ..., u_k, u_{k-1}, ...) of one trajectory, the states x_k and the next ones."""
    p, q = lags
    first, last = max(p, q) - 1, len(X) - 1
    columns = [X[first - i : last - i] for i in range(p)] + [U[first - i : last - i] for i in range(q)]
    return np.hstack(columns), X[first:last], X[first + 1 :]
