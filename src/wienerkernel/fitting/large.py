"""Fit approximations, and data that are read in parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import scale as at_scale
from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..kernels import as_kernel
from ..losses import is_linear
from ..noise.family import known_noise, noise_model
from ..noise.level import NoiseLevel, check_noise_level
from ..scale.stream import Batch, Stream
from ..transform import Transform, as_transform
from ..tuning import tune
from ..tuning.data import Data
from ..validation import check_spans, regularizer_of
from .exact import carried, condition, feature_names, is_auto, is_separate

__all__ = ["check_unscaled", "fit_approximately", "fit_stream"]

SEED = 1
"""Of the random sample of a stream; the reservoir of the sums has another."""


def fit_stream(model: Any, stream: Stream) -> None:
    """Fit the model to data that are read in parts: exactly if they have few distinct inputs, or approximately."""
    transform, level = as_transform(model.__dict__["transform"]), check_noise_level(model.noise_level)
    learned = is_auto(model.noise) or isinstance(level, str) or (transform is not None and transform.free)
    separate = not stream.single_output and is_separate(model)
    if learned or separate or not is_linear(model.loss, model.inference) or model.dtype != "float64":
        raise ValueError(
            "files and Dask collections need loss='squared', inference=None, dtype='float64', a level and a transform "
            "that are not learned (and none for several outputs), and another noise than 'auto'"
        )
    if model.ridge is not None:
        regularizer_of(model.ridge, np.ones(1), 1.0)
    prepared = stream.then(_Carried(level, transform))
    approximation = at_scale.as_approximation(model.approximation)
    model.__dict__.pop("approximation_", None)
    if approximation is None or approximation == "auto":
        collapsed = at_scale.collapse(prepared)
        if collapsed is not None:
            return _fit_collapsed(model, prepared, *collapsed.rows(), level, transform)
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
    return _approximate(model, approximation, data, stream.single_output, level, transform, neighborhood)


@dataclass(frozen=True)
class _Carried:
    """A batch on the scale of the model."""

    level: NoiseLevel | None
    transform: Transform | None

    def __call__(self, batch: Batch) -> Batch:
        X, y, scale = batch
        return X, *carried(X, y, scale, self.level, self.transform)


def check_unscaled(batch: Batch) -> Batch:
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
            raise ValueError(
                "files and Dask collections with few distinct inputs need a noise of known shape and tuning='likelihood' or "
                "None: the shape is not in the means and variances at the inputs"
            )
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
    condition(model, X, y, scale, (kernel, noise, level, transform), count=count)


def fit_approximately(
    model: Any, approximation: Any, inputs: Array, outputs: FloatArray, scale: FloatArray
) -> None:
    """Fit a model whose weights come from neighbors or features."""
    transform, level = as_transform(model.__dict__["transform"]), check_noise_level(model.noise_level)
    linear = is_linear(model.loss, model.inference)
    learned = is_auto(model.noise) or isinstance(level, str) or (transform is not None and transform.free)
    device = None if arrays.is_numpy(inputs) else inputs[:0, :]
    known = device is None or arrays.library(device) == "torch"
    if learned or not linear or scale.ndim == 2 or not known or model.dtype == "mixed":
        raise ValueError(
            "approximation needs arrays of NumPy or torch, loss='squared', inference=None, independent noise, a level and a "
            "transform that are not learned, and another noise than 'auto'"
        )
    transform = None if transform is None else transform.for_data(outputs)
    inputs, single = arrays.as_numpy(inputs), outputs.ndim == 1
    outputs, scale = carried(inputs, outputs, scale, level, transform)
    if model.ridge is not None:
        check_unscaled((inputs, outputs, scale))
    inputs, columns = inputs.astype(np.float64, copy=False), outputs.reshape(len(outputs), -1)
    ridge = None if model.ridge is None else regularizer_of(model.ridge, scale, 1.0)[1]
    data = Data(inputs, columns, scale, ridge, model.trend, feature_names=feature_names(model))
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
