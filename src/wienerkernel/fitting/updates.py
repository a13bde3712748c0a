"""Add samples to a fitted model, and drop some of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import scale as at_scale
from .._typing import Array, FloatArray
from ..backend import arrays
from ..posterior import Posterior, SeparateOutputs
from ..smoother.updates import extended, without
from ..validation import centered_targets, check_independent, check_outputs, regularizer_of
from .exact import carried
from .fit import check_unscaled

__all__ = ["add", "drop"]


def add(model: Any, inputs: Array, outputs: FloatArray, scale: FloatArray) -> None:
    """Add checked samples to a fitted model."""
    posterior = model.posterior_
    if not isinstance(posterior, SeparateOutputs):
        model.posterior_ = _extended(posterior, inputs, outputs, scale, model.ridge)
        return
    columns = outputs.reshape(len(outputs), -1).T
    check_outputs(len(columns), len(posterior.outputs))
    pairs = zip(posterior.outputs, columns, strict=True)
    grown = [_extended(p, inputs, column, scale, model.ridge) for p, column in pairs]
    model.posterior_ = SeparateOutputs(tuple(grown))


def _extended(
    posterior: Posterior, inputs: Array, outputs: FloatArray, scale: FloatArray, ridge: float | None
) -> Posterior:
    """The posterior with more samples."""
    smoother: Any = posterior.smoother
    approximate = isinstance(posterior, at_scale.ApproximatePosterior)
    check_independent(smoother.samples.scale, scale)
    if not approximate:
        library = arrays.library(smoother.samples.places)
        if arrays.library(inputs) != library:
            raise TypeError(
                f"X must be an array of {library}, like those that the model was fitted with, got {type(inputs)}"
            )
        _check_exact_inputs(posterior)
    outputs, scale = carried(inputs, outputs, scale, posterior.level, posterior.transform)
    targets = centered_targets(outputs, scale, posterior.noise.mean(), posterior.output_scale)
    if approximate and ridge is not None:
        check_unscaled((inputs, outputs, scale))
    regularizer = regularizer_of(ridge, scale, posterior.noise.var())[0]
    grow: Any = at_scale.extended if approximate else extended
    grown = grow(smoother, inputs, regularizer, scale, targets)
    return replace(posterior, smoother=grown)


def drop(model: Any, posterior: Any, rows: ArrayLike) -> None:
    """Drop samples of a fitted model, by their indices."""
    separate = isinstance(posterior, SeparateOutputs)
    posteriors = posterior.outputs if separate else (posterior,)
    n, indices = len(posteriors[0].smoother.targets), np.unique(np.asarray(rows))
    if indices.size and (indices.dtype.kind not in "iu" or indices.min() < 0 or indices.max() >= n):
        raise ValueError(f"rows must be integers from 0 to {n - 1}, got {rows!r}")
    if len(indices) == n:
        raise ValueError("at least one sample must remain")
    check_independent(posteriors[0].smoother.samples.scale)
    _check_exact_inputs(posteriors[0])
    if indices.size:
        left = tuple(replace(p, smoother=without(p.smoother, indices)) for p in posteriors)
        model.posterior_ = SeparateOutputs(left) if separate else left[0]


def _check_exact_inputs(posterior: Posterior) -> None:
    """Refuse to add or forget samples with noise on their inputs."""
    if posterior.input_noise is not None:
        raise ValueError(
            "samples with noise on their inputs cannot be added or forgotten, since that noise depends on the gradient of "
            "the estimate: fit all at once"
        )
