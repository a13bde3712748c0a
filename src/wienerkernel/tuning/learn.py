"""Tuning of kernel and noise, alone or together with a noise level s(x) and a transform of the response."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import minimize_scalar

from .._typing import FloatArray, RandomState
from ..chaos import Expansion, OrthogonalBasis
from ..kernels import Kernel
from ..noise import Noise, as_noise
from ..noise.family import KnownLaw, NoiseModel
from ..noise.level import NoiseLevel, checked_level
from ..smoother.leave_one_out import leave_one_out
from ..transform import BoxCox, Transform
from .data import Data, Parameters
from .joint import fit_joint
from .loo_score import LeaveOneOutScore
from .residuals import ends_are_known, shape_of
from .search import TuningResult, tune

__all__ = ["learn"]

GAIN = 3.0  # gain in the sum of leave-one-out log scores above which another shape replaces the normal one
MANY = 100  # samples from which the shape may be that of the residuals
FEWEST = 20  # samples below which the level is constant, and noise="auto" keeps normal noise
MOST = 1500
"""Samples, chosen at random, from which a level, an exponent and noise="auto" are estimated if there are more."""


def learn(
    data: Data,
    kernel: Kernel | None = None,
    noise: Any = None,
    *,
    level: Any = None,
    transform: Transform | None = None,
    method: str = "likelihood",
    n_restarts: int = 0,
    random_state: RandomState = None,
    shapes: bool = True,
) -> TuningResult:
    """Find the free parameters of kernel, noise, noise level and transform.

    A level or an exponent that is learned comes from the joint model with normal noise; kernel and noise are then tuned by
    ``method``, as in :func:`tune`, for the level and the transform that were found. ``noise="auto"`` learns all of them, and
    replaces the normal law where another shape clearly has a better leave-one-out score.
    """
    auto = isinstance(noise, str) and noise == "auto"
    if auto and method == "loo":
        msg = "noise='auto' maximizes one likelihood of all that is unknown: set tuning='likelihood', or give a family for tuning='loo'"
        raise ValueError(msg)
    if isinstance(level, str) and len(data.y) < FEWEST:
        msg = (
            f"noise_level={level!r} needs at least {FEWEST} samples, got {len(data.y)}: the level is constant"
        )
        warnings.warn(msg, stacklevel=4)
        level = None
    if data.input_noise is not None and isinstance(noise, str) and noise == "residuals":
        msg = "noise='residuals' cannot tell the noise of the observations from that on the inputs: give a law or a family"
        raise ValueError(msg)
    if auto and not np.ptp(
        data.y
    ):  # nothing to learn from: normal noise of constant level, with the usual warning
        auto, noise = False, None
    if auto and transform is None and np.all(data.y > 0):
        transform = BoxCox()
    if auto and level is None and len(data.y) >= FEWEST:
        level = "input"
    free = transform is not None and transform.free
    fit: TuningResult | None = None
    if auto or free or isinstance(level, str):
        if data.noise_scale.ndim == 2:
            raise ValueError(
                "noise='auto', a learned noise_level and a learned exponent need independent noise: noise_scale must have "
                f"shape ({len(data.y)},)"
            )
        if transform is not None:
            transform.check(data.y)
        some = _sample(_with_level(data, level) if callable(level) else data)
        of = level if isinstance(level, str) else None
        fit = fit_joint(some, kernel, transform, of, n_restarts, random_state)
        transform, kernel = fit.transform, fit.kernel
        level = level if callable(level) else fit.level
    elif transform is not None:
        transform = transform.for_data(data.y)
    transformed = data if transform is None else replace(data, y=transform(data.y))
    scaled = transformed if level is None else _with_level(transformed, level)
    if auto and fit is not None:
        law, gain = _shape(_sample(scaled), fit)
        ridge = law.var() if data.ridge is None else data.ridge
        result = replace(fit, noise=law, ridge=ridge, shape_gain=gain)
    else:
        result = tune(
            scaled,
            kernel,
            noise,
            method=method,
            n_restarts=n_restarts,
            random_state=random_state,
            shapes=shapes,
        )
    if fit is not None:
        result = replace(result, level_evidence=fit.level_evidence, transform_gain=fit.transform_gain)
    return replace(result, level=level, transform=transform)


def _sample(data: Data) -> Data:
    """The data in NumPy, or `MOST` of them, the same ones each time."""
    n, data = len(data.y), data.in_numpy
    return data if n <= MOST else data.subset(np.sort(np.random.default_rng(0).permutation(n)[:MOST]))


def _with_level(data: Data, level: NoiseLevel) -> Data:
    scale = checked_level(level(data.in_numpy.X), len(data.y))
    return replace(
        data, noise_scale=data.noise_scale * (scale if data.noise_scale.ndim == 1 else scale[:, None])
    )


def _shape(data: Data, fit: TuningResult) -> tuple[Noise, float]:
    """The law of the noise, of mean 0: normal, or another shape whose leave-one-out score is better by `GAIN`."""
    normal, std = fit.noise, fit.noise.std()
    if len(data.y) < FEWEST or data.noise_scale.ndim == 2:
        return normal, 0.0
    smoother = data.smoother(fit.kernel, normal, data.covariance(normal.var()))
    further = () if data.input_noise is None else (data.input_noise.variance,)
    residual, model, spread, *of_input = leave_one_out(smoother, *further)
    variance = sum([*further, *of_input], model + normal.var() * (spread + data.noise_scale**2))
    standardized = (residual[:, 0] / np.sqrt(variance)).ravel()
    shapes: list[NoiseModel] = [KnownLaw(law) for law in (normal, *_candidates(standardized, std))]
    smoothed = shape_of(standardized) if len(standardized) >= MANY else None
    if smoothed is not None and ends_are_known(smoothed.shape):
        shapes.append(smoothed)
    scores = [_score(data, fit, shape) for shape in shapes]
    best = int(np.argmax(scores))
    gain = scores[best] - scores[0]
    return (shapes[best].law(std), gain) if gain > GAIN else (normal, 0.0)


def _score(data: Data, fit: TuningResult, shape: NoiseModel) -> float:
    """Sum of the leave-one-out log scores; smoothed residuals score only samples that they were not made of."""
    std = [np.log(fit.noise.std())] if shape.free_std else []
    return LeaveOneOutScore(data, Parameters(fit.kernel, shape)).value(np.array([*fit.kernel.theta, *std]))


def _candidates(residual: FloatArray, std: float) -> Iterator[Noise]:
    """Laws of mean 0 with the given standard deviation and the shape that suits standardized residuals best."""

    def best(logpdf: Any, low: float, high: float) -> float:
        found = minimize_scalar(
            lambda s: -float(np.sum(logpdf(np.exp(s)))), bounds=(np.log(low), np.log(high))
        )
        return float(np.exp(found.x))

    def student(df: float) -> Any:
        return stats.t(df, scale=np.sqrt((df - 2) / df))

    df = best(lambda s: student(s).logpdf(residual), 2.2, 100.0)
    if df < 60:
        yield as_noise(stats.t(df, scale=std * np.sqrt((df - 2) / df)))
    side = 1.0 if stats.skew(residual) >= 0 else -1.0
    # residuals that other noise has carried beyond the support count as if they were at its end
    floor = np.log(1e-4)

    def gamma(a: float) -> FloatArray:
        return np.maximum(
            stats.gamma(a, loc=-np.sqrt(a), scale=1 / np.sqrt(a)).logpdf(side * residual), floor
        )

    a = best(gamma, 0.2, 200.0)
    if a < 100:
        if side > 0:
            yield as_noise(stats.gamma(a, loc=-std * np.sqrt(a), scale=std / np.sqrt(a)))
        else:
            yield Expansion(OrthogonalBasis(stats.gamma(a), 2), [0.0, -std])
