"""From data to an approximate model, and more data added to it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray, RandomState
from ..kernels import Kernel, as_kernel
from ..noise import Noise
from ..noise.family import known_noise
from ..smoother.samples import distinct_rows
from ..smoother.trend import Trend
from ..tuning.data import Data
from ..tuning.search import TuningResult
from .approximation import EXACT_PLACES, Approximation, Features, Neighbors
from .features import FeatureSmoother, choose_audit
from .inducing import choose_inducing
from .neighbors import NeighborSmoother
from .sums import Sums, chunks
from .tuning import tune_by_neighbors

__all__ = ["ApproximateSmoother", "Fit", "choose", "condition", "extended", "fit", "is_small"]

ApproximateSmoother = NeighborSmoother | FeatureSmoother

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
) -> Fit:
    """Tune kernel and noise unless they are given, choose the approximation if it is "auto", and condition on the data."""
    found = None
    if tune:
        found = tune_by_neighbors(data, None if kernel is None else as_kernel(kernel), noise, random_state)
        kernel, law = found.kernel, found.noise
    else:
        kernel, law = as_kernel(kernel), known_noise(noise)
    ridge = law.var() if data.ridge is None else data.ridge
    if isinstance(approximation, str):
        approximation = choose(kernel, data.X, data.noise_scale, ridge, data.trend)
    targets = data.y - law.mean() * data.noise_scale[:, None]
    smoother = condition(approximation, kernel, data.X, targets, data.noise_scale, ridge, data.trend)
    return Fit(smoother, approximation, kernel, law, ridge, found)


def choose(
    kernel: Kernel, X: FloatArray, scale: FloatArray, ridge: float, trend: str | None
) -> Approximation:
    """Features if they hardly leave anything out, which holds for smooth functions, otherwise neighbors."""
    generator = np.random.default_rng(0)
    points = X[generator.permutation(len(X))[:TRIAL_POINTS]]
    local = NeighborSmoother(
        kernel, X, np.zeros((len(X), 0)), ridge * scale**2, scale, trend, Neighbors().n_neighbors
    ).predict(points)
    inducing = choose_inducing(kernel, X, TRIAL_FEATURES, Trend(None, X), generator)
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
    X: FloatArray,
    targets: FloatArray,
    scale: FloatArray,
    ridge: float,
    trend: str | None,
) -> ApproximateSmoother:
    """The smoother of an approximation, for rows of noise scale ``scale`` and regularizer ``ridge * scale**2``."""
    if isinstance(approximation, Neighbors):
        return NeighborSmoother(kernel, X, targets, ridge * scale**2, scale, trend, approximation.n_neighbors)
    generator = np.random.default_rng(approximation.random_state)
    inducing = choose_inducing(kernel, X, approximation.n_features, Trend(trend, X), generator)
    audit = choose_audit(inducing, X, approximation.n_audits, generator)
    sums = Sums.over(chunks(X, targets, scale), inducing, audit, approximation.reservoir)
    return FeatureSmoother(inducing, audit, sums, ridge)


def extended(
    smoother: ApproximateSmoother, X: FloatArray, targets: FloatArray, scale: FloatArray, ridge: float
) -> ApproximateSmoother:
    """Add samples; inducing points stay as they are."""
    if isinstance(smoother, NeighborSmoother):
        pairs = (
            (smoother.X, X),
            (smoother.targets, targets),
            (smoother.regularizer, ridge * scale**2),
            (smoother.scale, scale),
        )
        X, targets, regularizer, scale = (np.concatenate(pair) for pair in pairs)
        return replace(smoother, X=X, targets=targets, regularizer=regularizer, scale=scale)
    old = smoother.sums
    new = Sums.over(chunks(X, targets, scale, old.n), smoother.inducing, smoother.audit, old.reservoir)
    return replace(smoother, sums=old + new)
