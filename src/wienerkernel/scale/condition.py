"""From data to an approximate model, and more data added to it."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array, FloatArray, RandomState
from ..backend import arrays
from ..kernels import Kernel, as_kernel
from ..kernels.spectral import frequencies
from ..noise import Noise
from ..noise.family import known_noise
from ..smoother.samples import distinct_rows
from ..tuning.data import Data
from ..tuning.search import TuningResult
from .actions import ActionSmoother, action_matrix
from .approximation import EXACT_PLACES, Actions, Approximation, Features, Neighbors
from .features import FeatureSmoother, choose_audit
from .inducing import choose_inducing
from .nearest import Neighborhood
from .neighbors import NeighborSmoother
from .stream import Batch, Stream
from .sums import Sums, chunks
from .tuning import tune_by_neighbors

__all__ = ["ApproximateSmoother", "Fit", "choose", "condition", "extended", "fit", "is_small"]

ApproximateSmoother = NeighborSmoother | FeatureSmoother | ActionSmoother

TRIAL_FEATURES, TRIAL_POINTS = 1000, 100
SMALL_REST = 0.1
"""Features are chosen if the variance that they leave out is this fraction of that of the estimate by neighbors."""


def is_small(X: FloatArray) -> bool:
    """Whether the data have so few distinct inputs that the exact model fits into memory."""
    return len(X) <= EXACT_PLACES or len(distinct_rows(X)[0]) <= EXACT_PLACES


class Fit(NamedTuple):
    """A smoother, and what it was made from; ``tuning`` is None if nothing was tuned."""

    smoother: ApproximateSmoother
    approximation: Approximation
    kernel: Kernel
    noise: Noise
    ridge: float
    tuning: TuningResult | None


def fit(
    approximation: Approximation | str,
    data: Data,
    kernel: Any,
    noise: Any,
    tune: bool,
    random_state: RandomState,
    neighborhood: Neighborhood | None = None,
    device: Array | None = None,
) -> Fit:
    """Tune kernel and noise unless they are given, choose the approximation if it is "auto", and condition on the data.

    With a neighborhood, ``data`` are a random sample of its stream, and the model is that of all rows.
    """
    if not isinstance(approximation, str | Neighbors | Actions):
        _check(approximation, kernel, *data.X.shape)
    found = None
    if tune:
        start = None if kernel is None else as_kernel(kernel)
        found = tune_by_neighbors(data, start, noise, random_state, neighborhood)
        kernel, law = found.kernel, found.noise
    else:
        kernel, law = as_kernel(kernel), known_noise(noise)
    ridge = law.var() if data.ridge is None else data.ridge
    if isinstance(approximation, str):
        approximation = choose(kernel, data, ridge, neighborhood)
    stream = (
        Stream.of_arrays(data.X, data.y, data.noise_scale) if neighborhood is None else neighborhood.stream
    )
    centered = stream.then(Centered(law.mean()))
    smoother = condition(approximation, kernel, centered, data.X, ridge, data.trend, device)
    return Fit(smoother, approximation, kernel, law, ridge, found)


def _check(approximation: Features, kernel: Any, n: int, d: int) -> None:
    """Raise, before the data are read once more, without a spectral density; warn if there are fewer rows than features."""
    if kernel is not None:
        try:
            frequencies(as_kernel(kernel, d), 1, d, np.random.default_rng(0))
        except TypeError as error:
            raise ValueError(f"features need another kernel: {error}") from None
    if approximation.n_features > n:
        msg = f"{approximation.n_features} features are more than the {n} rows: approximation=None is exact, and faster"
        warnings.warn(msg, UserWarning, stacklevel=6)


@dataclass(frozen=True)
class Centered:
    """Targets y0 = y - E M of a batch."""

    mean: float

    def __call__(self, batch: Batch) -> Batch:
        """X, y0 and noise scales."""
        X, y, scale = batch
        return X, y - self.mean * scale[:, None], scale


@dataclass(frozen=True)
class Moved:
    """A batch on the device of an array of another library."""

    device: Array

    def __call__(self, batch: Batch) -> Batch:
        """X, y and noise scales."""
        X, y, scale = (arrays.like(part, self.device) for part in batch)
        return X, y, scale


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
        stacklevel=5,
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
    if isinstance(approximation, Neighbors):
        inputs, targets, scale = stream.gather()
        local = NeighborSmoother(
            kernel,
            inputs,
            targets,
            ridge * scale**2,
            scale,
            trend,
            approximation.n_neighbors,
            None if device is None else arrays.like(inputs, device),
        )
        local.check_trend()
        return local
    if isinstance(approximation, Actions):
        inputs, targets, scale = stream.gather()
        actions = action_matrix(approximation, kernel, inputs)
        return ActionSmoother(kernel, inputs, targets, ridge * scale**2, scale, trend, actions)
    stream = stream if device is None else stream.then(Moved(device))
    generator = np.random.default_rng(approximation.random_state)
    inducing = choose_inducing(kernel, X, approximation.n_features, trend, generator)
    audit = choose_audit(inducing, X, approximation.n_audits, generator)
    summed = partial(Sums.over, inducing=inducing, audit=audit, reservoir=approximation.reservoir)
    smoother = FeatureSmoother(inducing, audit, stream.fold(summed, operator.add), ridge)
    smoother.coefficients  # noqa: B018  # or NotPositiveDefiniteError
    return smoother


def extended(
    smoother: ApproximateSmoother, X: FloatArray, targets: FloatArray, scale: FloatArray, ridge: float
) -> ApproximateSmoother:
    """Add samples; inducing points stay as they are."""
    if isinstance(smoother, ActionSmoother):
        raise TypeError("a model with given actions cannot be extended: fit all samples at once")
    X = arrays.as_numpy(X)
    if isinstance(smoother, NeighborSmoother):
        pairs = (
            (smoother.X, X),
            (smoother.targets, targets),
            (smoother.regularizer, ridge * scale**2),
            (smoother.scale, scale),
        )
        X, targets, regularizer, scale = (np.concatenate(pair) for pair in pairs)
        device = smoother.on_device
        device = None if device is None else arrays.like(X, device)
        return replace(smoother, X=X, targets=targets, regularizer=regularizer, scale=scale, on_device=device)
    old = smoother.sums
    new = Sums.over(chunks(X, targets, scale, old.n), smoother.inducing, smoother.audit, old.rows.number)
    return replace(smoother, sums=old + new)
