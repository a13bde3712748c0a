"""Learn what is unknown, and condition on all of the data."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..kernels import Kernel, as_kernel
from ..losses import condition as condition_beyond
from ..losses import is_linear
from ..noise import Noise
from ..noise.family import known_noise
from ..noise.level import NoiseLevel, check_noise_level, checked_level
from ..posterior import Posterior
from ..posterior.input_noise import InputNoise, Linearization, warn_if_large
from ..smoother import Smoother
from ..smoother.refined import RefinedSmoother
from ..smoother.samples import Samples
from ..transform import Transform, as_transform
from ..tuning.data import Data
from ..validation import centered_targets, check_spans, regularizer_of

__all__ = [
    "PASSES",
    "Known",
    "as_data",
    "carried",
    "condition",
    "fit_noisy_inputs",
    "given",
    "is_auto",
    "is_separate",
    "learn",
]

PASSES = 4  # linearizations at the estimate, each followed by a new estimate, for noise on the inputs


class Known(NamedTuple):
    """What is known before conditioning on the data."""

    kernel: Kernel
    noise: Noise
    level: NoiseLevel | None
    transform: Transform | None


def given(model: Any) -> tuple[Any, Transform | None, bool]:
    """Noise level and transform as given, and whether one of them, or everything about the noise, is to be learned."""
    transform, level = as_transform(model.__dict__["transform"]), check_noise_level(model.noise_level)
    free = transform is not None and transform.free
    return level, transform, is_auto(model.noise) or isinstance(level, str) or free


def as_data(
    model: Any, inputs: Array, outputs: FloatArray, scale: FloatArray, ridge: float | None = None, **more: Any
) -> Data:
    """The samples, with the settings of the model that tuning needs."""
    names = tuple(map(str, getattr(model, "feature_names_in_", ())))
    y = outputs.reshape(len(outputs), -1)
    return Data(inputs, y, scale, ridge, model.trend, feature_names=names, **more)


def learn(
    model: Any,
    inputs: Array,
    outputs: FloatArray,
    scale: FloatArray,
    input_noise: Linearization | None = None,
    method: str | None = None,
    count: IntArray | None = None,
) -> Known:
    """Kernel, noise, its level and the transform of y: as given, or tuned.

    Data with a count of equal samples are on the scale of the model, so that level and transform play no part.
    """
    level, transform, learned = given(model)
    of_data = {"level": level, "transform": transform}
    if count is not None:
        level = transform = None
    if model.tuning is None:
        if learned:
            raise ValueError(
                "noise='auto', a learned noise_level and a transform with a free exponent need tuning: set tuning='likelihood'"
            )
        if transform is not None:
            of_data["transform"] = transform.for_data(outputs)
        model.tuning_result_ = None
        return Known(as_kernel(model.kernel), known_noise(model.noise), **of_data)
    from ..losses.tuning import finds_shapes
    from ..tuning import learn

    if not isinstance(model.n_restarts, int | np.integer) or model.n_restarts < 0:
        raise ValueError(f"n_restarts must be an integer of at least 0, got {model.n_restarts!r}")
    check_spans(inputs, outputs)
    by_evidence = model.inference is not None and (method or model.tuning) == "likelihood"
    ridge = None if model.ridge is None else regularizer_of(model.ridge, scale, 1.0)[1]
    found = learn(
        as_data(
            model, arrays.as_float64(inputs), outputs, scale, ridge, input_noise=input_noise, count=count
        ),
        None if model.kernel is None else as_kernel(model.kernel, inputs.shape[1]),
        model.noise,
        level=level,
        transform=transform,
        method=method or model.tuning,
        n_restarts=int(model.n_restarts),
        random_state=model.random_state,
        shapes=not (by_evidence and finds_shapes(model.noise)),
    )
    model.tuning_result_ = found if count is None else replace(found, **of_data)
    return Known(*(getattr(model.tuning_result_, name) for name in Known._fields))


def condition(
    model: Any,
    inputs: Array,
    outputs: FloatArray,
    scale: FloatArray,
    known: Known,
    input_noise: Linearization | None = None,
    count: IntArray | None = None,
) -> None:
    """Condition on the data, with everything else known; data with a count of equal samples have been carried already."""
    kernel, noise, level, transform = known
    if count is None:
        outputs, scale = carried(inputs, outputs, scale, level, transform)
    if not is_linear(model.loss, model.inference):
        _fit_beyond(model, known, inputs, outputs, scale)
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


def fit_noisy_inputs(
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
            known = learn(model, inputs, outputs, scale, linear, model.tuning if last else "likelihood")
        for _ in range(PASSES):
            condition(model, inputs, outputs, scale, known, linear)
            linear = noise.linearize(model.posterior_.smoother)
    condition(model, inputs, outputs, scale, known, linear)
    names = getattr(model, "feature_names_in_", [f"column {c} of X" for c in range(inputs.shape[1])])
    warn_if_large(noise, model.kernel_, list(names))


def _fit_beyond(model: Any, known: Known, inputs: Array, outputs: FloatArray, scale: FloatArray) -> None:
    """Fit a model whose estimate is not linear in y, on the scale of the transform."""
    from ..losses.tuning import tuned

    kernel, noise, ridge = known.kernel, known.noise, model.ridge
    inputs = np.asarray(arrays.as_numpy(inputs), dtype=np.float64)
    if (found := model.tuning_result_) is not None:
        data = as_data(model, inputs, outputs, scale)
        found = tuned(data, found, model.tuning, model.noise, model.loss, model.inference, ridge)
        model.tuning_result_, kernel, noise = found, found.kernel, found.noise
    options = {name: getattr(model, name) for name in ("trend", "loss", "inference", "ridge", "random_state")}
    posterior: Any = condition_beyond(kernel, noise, inputs, outputs, scale, **options)
    posterior.level, posterior.transform = known.level, known.transform
    model.kernel_, model.noise_, model.ridge_, model.posterior_ = kernel, noise, noise.var(), posterior


def is_auto(noise: Any) -> bool:
    """Whether everything about the noise is to be found."""
    return isinstance(noise, str) and noise == "auto"


def is_separate(model: Any) -> bool:
    """Whether several outputs have a model each."""
    plain = model.noise_level is None and model.__dict__["transform"] is None
    return not plain or is_auto(model.noise) or not is_linear(model.loss, model.inference)


def carried(
    inputs: Array,
    outputs: FloatArray,
    scale: FloatArray,
    level: NoiseLevel | None,
    transform: Transform | None,
) -> tuple[FloatArray, FloatArray]:
    """Outputs on the scale of the model, and noise scales that include its level."""
    if transform is not None:
        transform.check(outputs)
        outputs = transform(outputs)
    if level is not None:
        values = checked_level(level(arrays.as_numpy(inputs)), inputs.shape[0])
        scale = scale * values if scale.ndim == 1 else scale * values[:, None]
    return outputs, scale
