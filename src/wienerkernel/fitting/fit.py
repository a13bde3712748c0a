"""Fit one model, or one for each output, exactly or approximately, to arrays or to data that are read in parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import scale as at_scale
from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..kernels import as_kernel
from ..losses import check_setting, is_linear
from ..noise.family import known_noise, noise_model
from ..noise.level import NoiseLevel
from ..posterior import SeparateOutputs
from ..posterior.input_noise import as_input_noise
from ..scale.condition import check_features, choose
from ..scale.condition import condition as condition_approximately
from ..scale.stream import Batch, Stream
from ..scale.tuning import tune_by_neighbors
from ..transform import Transform
from ..tuning.data import Data
from ..validation import check_noise_scale, regularizer_of
from .exact import as_data, carried, condition, fit_noisy_inputs, given, is_separate, learn

__all__ = ["check_unscaled", "fit", "fit_stream"]

SEED = 1  # of the random sample of a stream; the reservoir of the sums has another


def fit(model: Any, inputs: Array, outputs: FloatArray, noise_scale: Any, input_noise: Any) -> None:
    """Fit the model to checked data: tune what is unknown, and condition on the samples."""
    model.__dict__.pop("approximation_", None)
    if outputs.ndim == 2 and (is_separate(model) or input_noise is not None):
        return _fit_columns(model, inputs, outputs, noise_scale, input_noise)
    scale = check_noise_scale(noise_scale, inputs.shape[0], invertible=model.ridge is None)
    check_setting(model.loss, model.inference, model.ridge, scale)
    approximation = at_scale.as_approximation(model.approximation)
    exact = approximation is None or (approximation == "auto" and at_scale.is_small(inputs))
    noisy = as_input_noise(input_noise, inputs.shape[1])
    if noisy is not None and not (exact and is_linear(model.loss, model.inference)):
        raise ValueError("input_noise needs approximation=None, loss='squared' and inference=None")
    if not exact:
        return _fit_approximately(model, approximation, inputs, outputs, scale)
    if noisy is None:
        return condition(model, inputs, outputs, scale, learn(model, inputs, outputs, scale))
    return fit_noisy_inputs(model, inputs, outputs, scale, noisy)


def _fit_columns(model: Any, inputs: Array, outputs: FloatArray, *more: Any) -> None:
    """Fit a model to each output."""
    models = []
    for k, column in enumerate(outputs.T):
        models.append(part := type(model)(**model.get_params(deep=False)))
        if hasattr(model, "feature_names_in_"):
            part.feature_names_in_ = model.feature_names_in_
        try:
            fit(part, inputs, np.ascontiguousarray(column), *more)
        except ValueError as error:
            raise ValueError(f"column {k} of y: {error}") from error
    model.kernel_, model.noise_ = tuple(m.kernel_ for m in models), tuple(m.noise_ for m in models)
    model.ridge_ = np.array([m.ridge_ for m in models])
    model.tuning_result_ = None if model.tuning is None else tuple(m.tuning_result_ for m in models)
    model.posterior_ = SeparateOutputs(tuple(m.posterior_ for m in models))


def fit_stream(model: Any, stream: Stream) -> None:
    """Fit the model to data that are read in parts: exactly if they have few distinct inputs, or approximately."""
    level, transform, learned = given(model)
    separate = not stream.single_output and is_separate(model)
    if learned or separate or not is_linear(model.loss, model.inference) or model.dtype != "float64":
        raise ValueError(
            "files and Dask collections need loss='squared', inference=None, dtype='float64', a level and a transform "
            "that are not learned (and none for several outputs), and noise other than 'auto'"
        )
    if model.ridge is not None:
        regularizer_of(model.ridge, np.ones(1), 1.0)

    def on_scale(batch: Batch) -> Batch:
        return batch[0], *carried(*batch, level, transform)

    prepared = stream.then(on_scale)
    approximation = at_scale.as_approximation(model.approximation)
    model.__dict__.pop("approximation_", None)
    if approximation is None or approximation == "auto":
        collapsed = at_scale.collapse(prepared)
        if collapsed is not None:
            return _fit_collapsed(model, stream.single_output, *collapsed.rows())
        if approximation is None:
            raise ValueError(
                f"the data have more than {at_scale.EXACT_PLACES:,} distinct inputs, or too many noise scales at each: set "
                "approximation='neighbors', 'features' or 'auto'"
            )
    prepared = prepared if model.ridge is None else prepared.then(check_unscaled)
    number = at_scale.CANDIDATES * getattr(approximation, "n_features", at_scale.Features().n_features)
    sample = prepared.sample(number, SEED)
    data = Data(sample.X, sample.y, sample.scale, model.ridge, model.trend)
    neighborhood = at_scale.Neighborhood(prepared, data, sample.keys, SEED)
    return _approximate(
        model, approximation, data, stream.single_output, level, transform, neighborhood=neighborhood
    )


def check_unscaled(batch: Batch) -> Batch:
    """Refuse noise scales: the ridge of a row of an approximation is proportional to its noise variance."""
    if np.any(batch[2] != 1):
        raise ValueError(
            "approximation with a noise_scale or a noise_level needs ridge=None, the noise variance"
        )
    return batch


def _fit_collapsed(
    model: Any, single: bool, X: FloatArray, y: FloatArray, scale: FloatArray, count: IntArray
) -> None:
    """Fit the exact model to equal samples with the means and variances of the data at each input."""
    if model.tuning is not None:
        noise = noise_model(model.noise)
        if isinstance(noise, str) or len(noise.shape_names) or model.tuning == "loo":
            raise ValueError(
                "files and Dask collections with few distinct inputs need a noise of known shape and tuning='likelihood' or "
                "None: the shape is not in the means and variances at the inputs"
            )
    y = y[:, 0] if single else y
    condition(model, X, y, scale, learn(model, X, y, scale, count=count), count=count)


def _fit_approximately(
    model: Any, approximation: Any, inputs: Array, outputs: FloatArray, scale: FloatArray
) -> None:
    """Fit a model whose weights come from neighbors, features or actions to data in memory."""
    level, transform, learned = given(model)
    linear = is_linear(model.loss, model.inference)
    device = None if arrays.is_numpy(inputs) else inputs[:0, :]
    known = device is None or arrays.library(device) == "torch"
    if learned or not linear or scale.ndim == 2 or not known or model.dtype == "mixed":
        raise ValueError(
            "approximation needs arrays of NumPy or torch, loss='squared', inference=None, independent noise, a level and a "
            "transform that are not learned, and noise other than 'auto'"
        )
    transform = None if transform is None else transform.for_data(outputs)
    inputs, single = arrays.as_float64(arrays.as_numpy(inputs)), outputs.ndim == 1
    outputs, scale = carried(inputs, outputs, scale, level, transform)
    if model.ridge is not None:
        check_unscaled((inputs, outputs, scale))
    ridge = None if model.ridge is None else regularizer_of(model.ridge, scale, 1.0)[1]
    data = as_data(model, inputs, outputs, scale, ridge)
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
    if isinstance(approximation, at_scale.Features):
        check_features(approximation, model.kernel, *data.X.shape)
    if model.tuning is None:
        kernel, noise, found = as_kernel(model.kernel), known_noise(model.noise), None
    else:
        start = None if model.kernel is None else as_kernel(model.kernel)
        found = tune_by_neighbors(data, start, model.noise, model.random_state, neighborhood)
        kernel, noise = found.kernel, found.noise
    ridge, mean = noise.var() if data.ridge is None else data.ridge, noise.mean()
    if approximation == "auto":
        approximation = choose(kernel, data, ridge, neighborhood)

    def centered(batch: Batch) -> Batch:
        X, y, scale = batch
        return X, y - mean * scale[:, None], scale

    stream = (
        Stream.of_arrays(data.X, data.y, data.noise_scale) if neighborhood is None else neighborhood.stream
    )
    smoother: Any = condition_approximately(
        approximation, kernel, stream.then(centered), data.X, ridge, data.trend, device
    )
    model.kernel_, model.noise_, model.ridge_ = kernel, noise, ridge
    model.tuning_result_, model.approximation_ = found, approximation
    model.posterior_ = at_scale.ApproximatePosterior(
        smoother, noise, single, model.ridge is None, level=level, transform=transform
    )
