"""Fit one model, or one for each output, exactly or approximately."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import scale as at_scale
from .._typing import Array, FloatArray
from ..losses import check_setting, is_linear
from ..posterior import SeparateOutputs
from ..posterior.input_noise import as_input_noise
from ..validation import check_noise_scale
from .exact import condition, fit_noisy_inputs, is_separate, learn
from .large import fit_approximately

__all__ = ["fit"]


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
        return fit_approximately(model, approximation, inputs, outputs, scale)
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
