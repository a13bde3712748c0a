"""Fit approximations, and data that are read in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import scale as at_scale
from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..losses import is_linear
from ..noise.family import noise_model
from ..noise.level import NoiseLevel
from ..scale.stream import Batch, Stream
from ..transform import Transform
from ..tuning.data import Data
from ..validation import regularizer_of
from .exact import as_data, carried, condition, given, is_separate, learn

__all__ = ["check_unscaled", "fit_approximately", "fit_stream"]

SEED = 1  # of the random sample of a stream; the reservoir of the sums has another


def fit_stream(model: Any, stream: Stream) -> None:
    """Fit the model to data that are read in parts: exactly if they have few distinct inputs, or approximately."""
    level, transform, learned = given(model)
    separate = not stream.single_output and is_separate(model)
    if learned or separate or not is_linear(model.loss, model.inference) or model.dtype != "float64":
        raise ValueError(
            "files and Dask collections need loss='squared', inference=None, dtype='float64', a level and a transform "
            "that are not learned (and none for several outputs), and another noise than 'auto'"
        )
    if model.ridge is not None:
        regularizer_of(model.ridge, np.ones(1), 1.0)
    scales = _Scales(level, transform)
    prepared = stream.then(scales)
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
    return _approximate(model, approximation, data, stream.single_output, scales, neighborhood)


@dataclass(frozen=True)
class _Scales:
    """Noise level and transform; takes a batch to the scale of the model."""

    level: NoiseLevel | None
    transform: Transform | None

    def __call__(self, batch: Batch) -> Batch:
        return batch[0], *carried(*batch, self)


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


def fit_approximately(
    model: Any, approximation: Any, inputs: Array, outputs: FloatArray, scale: FloatArray
) -> None:
    """Fit a model whose weights come from neighbors or features."""
    level, transform, learned = given(model)
    linear = is_linear(model.loss, model.inference)
    device = None if arrays.is_numpy(inputs) else inputs[:0, :]
    known = device is None or arrays.library(device) == "torch"
    if learned or not linear or scale.ndim == 2 or not known or model.dtype == "mixed":
        raise ValueError(
            "approximation needs arrays of NumPy or torch, loss='squared', inference=None, independent noise, a level and a "
            "transform that are not learned, and another noise than 'auto'"
        )
    scales = _Scales(level, None if transform is None else transform.for_data(outputs))
    single, (inputs, outputs, scale) = outputs.ndim == 1, scales((arrays.as_numpy(inputs), outputs, scale))
    if model.ridge is not None:
        check_unscaled((inputs, outputs, scale))
    ridge = None if model.ridge is None else regularizer_of(model.ridge, scale, 1.0)[1]
    data = as_data(model, inputs.astype(np.float64, copy=False), outputs, scale, ridge)
    _approximate(model, approximation, data, single, scales, device=device)


def _approximate(
    model: Any,
    approximation: Any,
    data: Data,
    single: bool,
    scales: _Scales,
    neighborhood: at_scale.Neighborhood | None = None,
    device: Array | None = None,
) -> None:
    """Fit to all data, or to the stream that these are a sample of; on the device of an empty array (0, d) of torch."""
    tuned = model.tuning is not None
    found = at_scale.fit(
        approximation, data, model.kernel, model.noise, tuned, model.random_state, neighborhood, device
    )
    model.kernel_, model.noise_, model.ridge_ = found.kernel, found.noise, found.ridge
    model.tuning_result_, model.approximation_ = found.tuning, found.approximation
    smoother: Any = found.smoother
    model.posterior_ = at_scale.ApproximatePosterior(
        smoother, found.noise, single, model.ridge is None, level=scales.level, transform=scales.transform
    )
