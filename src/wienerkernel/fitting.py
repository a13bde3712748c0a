"""From checked data to a fitted model, for every kind of estimate; adding and removing samples."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from . import scale as at_scale
from ._typing import Array, FloatArray, IntArray
from .backend import arrays
from .kernels import Kernel, as_kernel
from .losses import check_setting, condition, is_linear
from .noise import Noise
from .noise.family import known_noise, noise_model
from .noise.level import NoiseLevel, check_noise_level, checked_level
from .posterior import Posterior, SeparateOutputs
from .posterior.input_noise import InputNoise, Linearization, as_input_noise, warn_if_large
from .scale.stream import Batch, Stream
from .smoother import Smoother
from .smoother.refined import RefinedSmoother
from .smoother.samples import Samples
from .smoother.updates import extended, without
from .transform import Transform, as_transform
from .tuning import tune
from .tuning.data import Data
from .validation import (
    centered_targets,
    check_independent,
    check_noise_scale,
    check_outputs,
    check_spans,
    regularizer_of,
)

__all__ = ["PASSES", "add", "drop", "fit", "fit_stream"]

SEED = 1
"""Of the random sample of a stream; the reservoir of the sums has another."""
PASSES = 4
"""Linearizations at the estimate, each followed by a new estimate, for noise on the inputs."""


def fit(model: Any, inputs: Array, outputs: FloatArray, noise_scale: Any, input_noise: Any) -> None:
    """Fit the model to checked data: tune what is unknown, and condition on the samples."""
    if outputs.ndim == 2 and (_is_separate(model) or input_noise is not None):
        return _fit_columns(model, inputs, outputs, noise_scale, input_noise)
    scale = check_noise_scale(noise_scale, inputs.shape[0], invertible=model.ridge is None)
    check_setting(model.loss, model.inference, model.ridge, scale)
    model.__dict__.pop("approximation_", None)
    approximation = at_scale.as_approximation(model.approximation)
    exact = approximation is None or (approximation == "auto" and at_scale.is_small(inputs))
    noisy = as_input_noise(input_noise, inputs.shape[1])
    if noisy is not None and not (exact and is_linear(model.loss, model.inference)):
        raise ValueError("input_noise needs approximation=None, loss='squared' and inference=None")
    if not exact:
        return _fit_approximately(model, approximation, inputs, outputs, scale)
    if noisy is None:
        return _condition(model, inputs, outputs, scale, _learn(model, inputs, outputs, scale))
    return _fit_noisy_inputs(model, inputs, outputs, scale, noisy)


def fit_stream(model: Any, stream: Stream) -> None:
    """Fit the model to data that are read in parts: exactly if they have few distinct inputs, or approximately."""
    transform, level = as_transform(model.__dict__["transform"]), check_noise_level(model.noise_level)
    learned = _is_auto(model.noise) or isinstance(level, str) or (transform is not None and transform.free)
    separate = not stream.single_output and _is_separate(model)
    if learned or separate or not is_linear(model.loss, model.inference) or model.dtype != "float64":
        msg = (
            "files and Dask collections need loss='squared', inference=None, dtype='float64', a level and a transform "
            "that are not learned (and none for several outputs), and another noise than 'auto'"
        )
        raise ValueError(msg)
    if model.ridge is not None:
        regularizer_of(model.ridge, np.ones(1), 1.0)
    carried = stream.then(_Carried(level, transform))
    approximation = at_scale.as_approximation(model.approximation)
    model.__dict__.pop("approximation_", None)
    if approximation is None or approximation == "auto":
        collapsed = at_scale.collapse(carried)
        if collapsed is not None:
            return _fit_collapsed(model, carried, *collapsed.rows(), level, transform)
        if approximation is None:
            msg = (
                f"the data have more than {at_scale.EXACT_PLACES:,} distinct inputs, or too many noise scales at each: set "
                "approximation='neighbors', 'features' or 'auto'"
            )
            raise ValueError(msg)
    carried = carried if model.ridge is None else carried.then(_check_unscaled)
    number = at_scale.CANDIDATES * getattr(approximation, "n_features", at_scale.Features().n_features)
    sample = carried.sample(number, SEED)
    data = Data(sample.X, sample.y, sample.scale, model.ridge, model.trend)
    neighborhood = at_scale.Neighborhood(carried, data, sample.keys, SEED)
    return _approximate(model, approximation, data, stream.single_output, level, transform, neighborhood)


@dataclass(frozen=True)
class _Carried:
    """A batch on the scale of the model."""

    level: NoiseLevel | None
    transform: Transform | None

    def __call__(self, batch: Batch) -> Batch:
        X, y, scale = batch
        return X, *_carried(X, y, scale, self.level, self.transform)


def _check_unscaled(batch: Batch) -> Batch:
    """Refuse noise scales: the ridge of a row of an approximation is proportional to its noise variance."""
    if np.any(batch[2] != 1):
        raise ValueError(
            "approximation with a noise_scale or a noise_level needs ridge=None, the noise variance"
        )
    return batch


def _fit_collapsed(
    model: Any,
    stream: Stream,
    X: FloatArray,
    y: FloatArray,
    scale: FloatArray,
    count: IntArray,
    level: NoiseLevel | None,
    transform: Transform | None,
) -> None:
    """Fit the exact model to equal samples with the means and variances of the data at each input."""
    y = y[:, 0] if stream.single_output else y
    found = None
    if model.tuning is None:
        kernel, noise = as_kernel(model.kernel), known_noise(model.noise)
    else:
        noisy = noise_model(model.noise)
        if isinstance(noisy, str) or len(noisy.shape_names) or model.tuning == "loo":
            msg = (
                "files and Dask collections with few distinct inputs need a noise of known shape and tuning='likelihood' or "
                "None: the shape is not in the means and variances at the inputs"
            )
            raise ValueError(msg)
        check_spans(X, y)
        found = tune(
            Data(X, y.reshape(len(y), -1), scale, model.ridge, model.trend, count=count),
            None if model.kernel is None else as_kernel(model.kernel, X.shape[1]),
            model.noise,
            method=model.tuning,
            n_restarts=model.n_restarts,
            random_state=model.random_state,
        )
        found = replace(found, level=level, transform=transform)
        kernel, noise = found.kernel, found.noise
    model.tuning_result_ = found
    _condition(model, X, y, scale, (kernel, noise, level, transform), count=count)


def _is_separate(model: Any) -> bool:
    """Whether several outputs have a model each."""
    plain = model.noise_level is None and model.__dict__["transform"] is None
    return not plain or _is_auto(model.noise) or not is_linear(model.loss, model.inference)


def _fit_columns(model: Any, inputs: Array, outputs: FloatArray, *more: Any) -> None:
    """Fit a model to each output."""
    models = []
    for k, column in enumerate(outputs.T):
        try:
            models.append(type(model)(**model.get_params(deep=False)).fit(inputs, column, *more))
        except ValueError as error:
            raise ValueError(f"column {k} of y: {error}") from error
    model.kernel_, model.noise_ = tuple(m.kernel_ for m in models), tuple(m.noise_ for m in models)
    model.ridge_ = np.array([m.ridge_ for m in models])
    model.tuning_result_ = None if model.tuning is None else tuple(m.tuning_result_ for m in models)
    model.posterior_ = SeparateOutputs(tuple(m.posterior_ for m in models))


def _learn(
    model: Any,
    inputs: Array,
    outputs: FloatArray,
    scale: FloatArray,
    input_noise: Linearization | None = None,
    method: str | None = None,
) -> tuple[Kernel, Noise, NoiseLevel | None, Transform | None]:
    """Kernel, noise, its level and the transform of y: as given, or tuned."""
    transform, level = as_transform(model.__dict__["transform"]), check_noise_level(model.noise_level)
    if model.tuning is None:
        if _is_auto(model.noise) or isinstance(level, str) or (transform is not None and transform.free):
            msg = "noise='auto', a learned noise_level and a transform with a free exponent need tuning: set tuning='likelihood'"
            raise ValueError(msg)
        transform = None if transform is None else transform.for_data(outputs)
        model.tuning_result_ = None
        return as_kernel(model.kernel), known_noise(model.noise), level, transform
    from .tuning import learn

    check_spans(inputs, outputs)
    ridge = None if model.ridge is None else regularizer_of(model.ridge, scale, 1.0)[1]
    model.tuning_result_ = learn(
        Data(
            arrays.as_float64(inputs),
            outputs.reshape(len(outputs), -1),
            scale,
            ridge,
            model.trend,
            input_noise,
            _feature_names(model),
        ),
        None if model.kernel is None else as_kernel(model.kernel, inputs.shape[1]),
        model.noise,
        level=level,
        transform=transform,
        method=method or model.tuning,
        n_restarts=model.n_restarts,
        random_state=model.random_state,
    )
    found = model.tuning_result_
    return found.kernel, found.noise, found.level, found.transform


def _condition(
    model: Any,
    inputs: Array,
    outputs: FloatArray,
    scale: FloatArray,
    learned: tuple[Kernel, Noise, NoiseLevel | None, Transform | None],
    input_noise: Linearization | None = None,
    count: IntArray | None = None,
) -> None:
    """Condition on the data, with everything else known; data with a count of equal samples have been carried already."""
    kernel, noise, level, transform = learned
    if count is None:
        outputs, scale = _carried(inputs, outputs, scale, level, transform)
    if not is_linear(model.loss, model.inference):
        _fit_beyond(model, kernel, noise, inputs, outputs, scale, level, transform)
        return
    regularizer, ridge = regularizer_of(model.ridge, scale, noise.var())
    if input_noise is not None:
        regularizer = input_noise.added_to(regularizer)
    samples = Samples.collapse(inputs, regularizer, scale, count)
    model.__dict__.pop("posterior_", None)  # two factors may not fit into memory
    n_outputs = 1 if outputs.ndim == 1 else outputs.shape[1]
    units = np.ones(n_outputs) if model.tuning_result_ is None else model.tuning_result_.output_scale
    conditioned = RefinedSmoother if model.dtype == "mixed" else Smoother
    targets = centered_targets(outputs, scale, noise.mean(), units)
    if input_noise is not None:
        targets = targets - input_noise.curvature[:, None]
    smoother = conditioned(kernel, samples, targets, model.trend)
    model.kernel_, model.noise_, model.ridge_ = kernel, noise, ridge
    model.posterior_ = Posterior(
        smoother, noise, outputs.ndim == 1, model.ridge is None, units, level, transform, input_noise
    )


def _fit_noisy_inputs(
    model: Any, inputs: Array, outputs: FloatArray, scale: FloatArray, noise: InputNoise
) -> None:
    """Alternate between tuning, the estimate, and its gradient, which the noise of the samples depends on."""
    if not arrays.is_numpy(inputs):
        raise TypeError(f"input_noise needs NumPy arrays, got an array of {arrays.library(inputs)}")
    inputs = (inputs - noise.mean).astype(inputs.dtype)  # what is left of the noise has mean 0
    linear = noise.without_slope(len(outputs))
    for last in [True] if model.tuning is None else [False, False, True]:
        with warnings.catch_warnings():
            if not last:  # until then, the likelihood is enough
                warnings.simplefilter("ignore", ConvergenceWarning)
            learned = _learn(model, inputs, outputs, scale, linear, model.tuning if last else "likelihood")
        for _ in range(PASSES):
            _condition(model, inputs, outputs, scale, learned, linear)
            linear = noise.linearize(model.posterior_.smoother)
    _condition(model, inputs, outputs, scale, learned, linear)
    names = getattr(model, "feature_names_in_", [f"column {c} of X" for c in range(inputs.shape[1])])
    warn_if_large(noise, model.kernel_, list(names))


def _fit_beyond(
    model: Any,
    kernel: Kernel,
    noise: Noise,
    inputs: Array,
    outputs: FloatArray,
    scale: FloatArray,
    level: NoiseLevel | None,
    transform: Transform | None,
) -> None:
    """Fit a model whose estimate is not linear in y, on the scale of the transform."""
    from .losses.fit import tuned

    inputs = np.asarray(arrays.as_numpy(inputs), dtype=np.float64)
    if model.tuning_result_ is not None:
        names = _feature_names(model)
        data = Data(inputs, outputs[:, None], scale, None, model.trend, feature_names=names)
        model.tuning_result_ = found = tuned(
            data, model.tuning_result_, model.tuning, model.noise, model.loss, model.inference, model.ridge
        )
        kernel, noise = found.kernel, found.noise
    posterior: Any = condition(
        kernel,
        noise,
        inputs,
        outputs,
        scale,
        trend=model.trend,
        loss=model.loss,
        inference=model.inference,
        ridge=model.ridge,
        level=level,
        transform=transform,
        random_state=model.random_state,
    )
    model.kernel_, model.noise_, model.ridge_, model.posterior_ = kernel, noise, noise.var(), posterior


def _fit_approximately(
    model: Any, approximation: Any, inputs: Array, outputs: FloatArray, scale: FloatArray
) -> None:
    """Fit a model whose weights come from neighbors or features."""
    transform, level = as_transform(model.__dict__["transform"]), check_noise_level(model.noise_level)
    linear = is_linear(model.loss, model.inference)
    learned = _is_auto(model.noise) or isinstance(level, str) or (transform is not None and transform.free)
    device = None if arrays.is_numpy(inputs) else inputs[:0, :]
    known = device is None or arrays.library(device) == "torch"
    if learned or not linear or scale.ndim == 2 or not known or model.dtype == "mixed":
        raise ValueError(
            "approximation needs arrays of NumPy or torch, loss='squared', inference=None, independent noise, a level and a "
            "transform that are not learned, and another noise than 'auto'"
        )
    transform = None if transform is None else transform.for_data(outputs)
    inputs, single = arrays.as_numpy(inputs), outputs.ndim == 1
    outputs, scale = _carried(inputs, outputs, scale, level, transform)
    if model.ridge is not None:
        _check_unscaled((inputs, outputs, scale))
    inputs, columns = inputs.astype(np.float64, copy=False), outputs.reshape(len(outputs), -1)
    ridge = None if model.ridge is None else regularizer_of(model.ridge, scale, 1.0)[1]
    data = Data(inputs, columns, scale, ridge, model.trend, feature_names=_feature_names(model))
    _approximate(model, approximation, data, single, level, transform, device=device)


def _approximate(
    model: Any,
    approximation: Any,
    data: Data,
    single: bool,
    level: NoiseLevel | None,
    transform: Transform | None,
    neighborhood: at_scale.Neighborhood | None = None,
    device: Array | None = None,
) -> None:
    """Fit to all data, or to the stream that these are a sample of; on the device of an empty array (0, d) of torch."""
    tuned = model.tuning is not None
    found = at_scale.fit(
        approximation, data, model.kernel, model.noise, tuned, model.random_state, neighborhood, device
    )
    model.kernel_, model.noise_, model.ridge_ = found.kernel, found.noise, found.ridge
    model.tuning_result_ = found.tuning
    model.approximation_ = found.approximation
    smoother: Any = found.smoother
    model.posterior_ = at_scale.ApproximatePosterior(
        smoother, found.noise, single, model.ridge is None, level=level, transform=transform
    )


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
    if isinstance(posterior, at_scale.ApproximatePosterior):
        outputs, scale = _carried(inputs, outputs, scale, posterior.level, posterior.transform)
        if ridge is not None:
            _check_unscaled((inputs, outputs, scale))
        targets = centered_targets(outputs, scale, posterior.noise.mean(), posterior.output_scale)
        rho2 = posterior.noise.var() if ridge is None else ridge
        smoother = at_scale.extended(smoother, inputs, targets, scale, rho2)
        return replace(posterior, smoother=smoother)
    old = smoother.samples
    if arrays.library(inputs) != arrays.library(old.places):
        msg = f"X must be an array of {arrays.library(old.places)}, like those that the model was fitted with, got {type(inputs)}"
        raise TypeError(msg)
    check_independent(old.scale, scale)
    _check_exact_inputs(posterior)
    outputs, scale = _carried(inputs, outputs, scale, posterior.level, posterior.transform)
    targets = centered_targets(outputs, scale, posterior.noise.mean(), posterior.output_scale)
    regularizer = regularizer_of(ridge, scale, posterior.noise.var())[0]
    grown = extended(smoother, inputs, regularizer, scale, targets)
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


def _feature_names(model: Any) -> tuple[str, ...]:
    return tuple(map(str, getattr(model, "feature_names_in_", ())))


def _is_auto(noise: Any) -> bool:
    return isinstance(noise, str) and noise == "auto"


def _carried(
    inputs: Array,
    outputs: FloatArray,
    scale: FloatArray,
    level: NoiseLevel | None,
    transform: Transform | None,
) -> tuple[FloatArray, FloatArray]:
    """Outputs on the scale of the model, and noise scales that include the level."""
    if transform is not None:
        transform.check(outputs)
        outputs = transform(outputs)
    if level is not None:
        values = checked_level(level(arrays.as_numpy(inputs)), inputs.shape[0])
        scale = scale * values if scale.ndim == 1 else scale * values[:, None]
    return outputs, scale
