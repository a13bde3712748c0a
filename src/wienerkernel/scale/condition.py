"""From data to an approximate model, and more data added to it."""

from __future__ import annotations

import operator
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._typing import Array, FloatArray
from ..backend import arrays
from ..kernels import Kernel, as_kernel
from ..kernels.spectral import frequencies
from ..smoother.samples import distinct_rows
from ..tuning.data import Data
from .actions import ActionSmoother, action_matrix
from .approximation import EXACT_PLACES, Actions, Approximation, Features, Neighbors
from .features import FeatureSmoother, choose_audit
from .inducing import choose_inducing
from .nearest import Neighborhood
from .neighbors import NeighborSmoother
from .stream import Batch, Stream
from .sums import Sums, chunks

__all__ = ["ApproximateSmoother", "check_features", "choose", "condition", "extended", "is_small"]

ApproximateSmoother = NeighborSmoother | FeatureSmoother | ActionSmoother

TRIAL_FEATURES, TRIAL_POINTS = 1000, 100
SMALL_REST = 0.1
"""Features are chosen if the variance that they leave out is this fraction of that of the estimate by neighbors."""


def is_small(X: FloatArray) -> bool:
    """Whether the data have so few distinct inputs that the exact model fits into memory."""
    return len(X) <= EXACT_PLACES or len(distinct_rows(X)[0]) <= EXACT_PLACES


def check_features(approximation: Features, kernel: Any, n: int, d: int) -> None:
    """Raise, before the data are read once more, without a spectral density; warn if there are fewer rows than features."""
    if kernel is not None:
        try:
            frequencies(as_kernel(kernel, d), 1, d, np.random.default_rng(0))
        except TypeError as error:
            raise ValueError(f"features need another kernel: {error}") from None
    if approximation.n_features > n:
        msg = f"{approximation.n_features} features are more than the {n} rows: approximation=None is exact, and faster"
        warnings.warn(msg, UserWarning, stacklevel=6)


def choose(kernel: Kernel, data: Data, ridge: float, neighborhood: Neighborhood | None) -> Approximation:
    """Features if they hardly leave anything out, which holds for smooth functions, otherwise neighbors."""
    generator, number = np.random.default_rng(0), Neighbors().n_neighbors
    rows = generator.permutation(len(data.X))[:TRIAL_POINTS]
    points, inducing = data.X[rows], choose_inducing(kernel, data.X, TRIAL_FEATURES, None, generator)
    if neighborhood is not None:
        data = neighborhood(kernel, rows, number)
    scale = data.noise_scale
    local = NeighborSmoother(
        kernel, data.X, np.zeros((len(data.X), 0)), ridge * scale**2, scale, data.trend, number
    ).predict(points)
    rest = float(np.mean(np.asarray(kernel.diag(points)) - np.sum(inducing(points) ** 2, axis=1)))
    total = float(np.mean(local.model + ridge * local.gain))
    found: Approximation = Features() if rest < SMALL_REST * total else Neighbors()
    warnings.warn(
        f"X has more than {EXACT_PLACES:,} distinct rows, so the model is approximate: {found}. {TRIAL_FEATURES} features "
        f"leave a variance of {rest:.2g} unexplained, and {total:.2g} is that of the estimate by neighbors",
        UserWarning,
        stacklevel=6,
    )
    return found


def condition(
    approximation: Approximation,
    kernel: Kernel,
    stream: Stream,
    X: FloatArray,
    ridge: float,
    trend: str | None,
    device: Array | None = None,
) -> ApproximateSmoother:
    """The smoother of an approximation, from rows of noise scale s and regularizer ridge s^2; X are some of the inputs."""
    if isinstance(approximation, Neighbors | Actions):
        inputs, targets, scale = stream.gather()
        rows = (kernel, inputs, targets, ridge * scale**2, scale, trend)
        if isinstance(approximation, Actions):
            return ActionSmoother(*rows, action_matrix(approximation, kernel, inputs))
        on_device = None if device is None else arrays.like(inputs, device)
        local = NeighborSmoother(*rows, approximation.n_neighbors, on_device)
        local.check_trend()
        return local

    def moved(batch: Batch) -> Batch:
        X, y, scale = (arrays.like(part, device) for part in batch)
        return X, y, scale

    stream = stream if device is None else stream.then(moved)
    generator = np.random.default_rng(approximation.random_state)
    inducing = choose_inducing(kernel, X, approximation.n_features, trend, generator)
    audit = choose_audit(inducing, X, approximation.n_audits, generator)
    summed = partial(Sums.over, inducing=inducing, audit=audit, reservoir=approximation.reservoir)
    smoother = FeatureSmoother(inducing, audit, stream.fold(summed, operator.add), ridge)
    smoother.coefficients  # noqa: B018  # or NotPositiveDefiniteError
    return smoother


def extended(
    smoother: ApproximateSmoother, X: Array, regularizer: FloatArray, scale: FloatArray, targets: FloatArray
) -> ApproximateSmoother:
    """Add samples; inducing points stay as they are."""
    if isinstance(smoother, ActionSmoother):
        raise TypeError("a model with given actions cannot be extended: fit all samples at once")
    X = arrays.as_numpy(X)
    if isinstance(smoother, NeighborSmoother):
        more = {"X": X, "targets": targets, "regularizer": regularizer, "scale": scale}
        rows: Any = {name: np.concatenate([getattr(smoother, name), part]) for name, part in more.items()}
        device = smoother.on_device
        device = None if device is None else arrays.like(rows["X"], device)
        return replace(smoother, **rows, on_device=device)
    old = smoother.sums
    new = Sums.over(chunks(X, targets, scale, old.n), smoother.inducing, smoother.audit, old.rows.number)
    return replace(smoother, sums=old + new)
