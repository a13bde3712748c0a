"""The estimator: its parameters, a posterior for each model, and what tuning found; and systems of such models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...dynamics import Dynamics
from ...kernels import Kernel, as_kernel
from ...losses import FullPosterior, LossPosterior
from ...losses.convex import Loss
from ...losses.fit import INFERENCES
from ...noise import Noise, as_noise
from ...noise.family import Family
from ...noise.level import LEVELS, Level
from ...posterior import Posterior, SeparateOutputs
from ...regressor import WienerKernelRegressor
from ...scale.approximation import NAMES as APPROXIMATIONS
from ...scale.approximation import Actions, Features, Neighbors
from ...smoother.trend import TRENDS
from ...transform import NAMES, Transform, as_transform
from ...tuning import METHODS, TuningResult
from ...validation import PRECISIONS, SMALLEST
from ..columns import Column
from .archive import FormatError
from .level import check_level
from .nodes import FLAG, REAL, Array, Record, check_shape, choice, each, number
from .noise import CLOSE, moments_at_hand

__all__ = ["RECORDS"]


@dataclass(frozen=True)
class Fitted:
    """Stands for a parameter that is an object which the fitted model has too."""


class Parameters(dict[str, Any]):
    """The parameters of the constructor."""


def _parts(model: WienerKernelRegressor) -> dict[str, Any]:
    posterior, ridge, tuned = model.posterior_, model.ridge_, model.tuning_result_
    separate = isinstance(posterior, SeparateOutputs)
    posteriors = posterior.outputs if separate else [posterior]
    return {
        "parameters": _given(model, posteriors[0]),
        "separate": separate,
        "posteriors": posteriors,
        "ridges": np.ravel(ridge).tolist(),
        "tuned": (tuned or [None] * len(ridge)) if separate else [tuned],
        "approximation": getattr(model, "approximation_", None),
        "columns": getattr(model, "columns_", None),
        "feature_names": _names(getattr(model, "feature_names_in_", None)),
        "target_names": _names(getattr(model, "target_names_in_", None)),
    }


def _given(model: WienerKernelRegressor, posterior: Any) -> Parameters:
    """The parameters, each as an object that can be described, if it can be at all."""
    found = Parameters(model.get_params(deep=False))
    if not isinstance(found["random_state"], int | np.integer | None):
        found["random_state"] = None
    for name, convert in (("kernel", as_kernel), ("transform", as_transform)):
        if not isinstance(found[name], str | None):
            found[name] = convert(found[name])
    if found["noise_level"] is not None and found["noise_level"] is posterior.level:
        found["noise_level"] = Fitted()
    noise = found["noise"]
    if noise is posterior.noise:
        found["noise"] = Fitted()
    elif not isinstance(noise, str | Family | None):
        found["noise"] = Family(noise) if hasattr(noise, "freeze") else as_noise(noise)
    return found


def _names(names: Any) -> list[str] | None:
    return None if names is None else [str(name) for name in names]


def _model(
    parameters: Parameters,
    posteriors: tuple[Any, ...],
    ridges: tuple[float, ...],
    tuned: tuple[TuningResult | None, ...],
    separate: bool,
    **others: Any,
) -> WienerKernelRegressor:
    first, n_outputs = posteriors[0], len(posteriors)
    n_features = _shape(first)[1]
    if separate:
        kinds = {(type(posterior), _shape(posterior)) for posterior in posteriors}
        if len(kinds) > 1 or not all(posterior.single_output for posterior in posteriors):
            raise FormatError("separate outputs must be single, with the same samples")
    elif n_outputs > 1:
        raise FormatError("several models must be those of separate outputs")
    else:
        n_outputs = _shape(first)[2]
    for name, fitted in (("noise", first.noise), ("noise_level", first.level)):
        if isinstance(parameters[name], Fitted):
            parameters[name] = fitted
    if isinstance(parameters["noise_level"], Level):
        check_level(parameters["noise_level"], n_features)
    model = WienerKernelRegressor(**parameters)
    model.n_features_in_ = n_features
    for name, n in (("feature_names", n_features), ("target_names", n_outputs)):
        if others[name] is not None:
            if len(others[name]) != n:
                raise FormatError(f"{name} must be {n} strings, one per column")
            setattr(model, f"{name}_in_", np.array(others[name], dtype=object))
    if others["approximation"] is not None:
        model.approximation_ = others["approximation"]
    if others["columns"] is not None:
        model.columns_ = list(others["columns"])
        if sum(len(column.features) for column in model.columns_) != n_features:
            raise FormatError(f"columns must make {n_features} inputs")
    results = tuple(_completed(*found) for found in zip(tuned, posteriors, ridges, strict=True))
    if separate:
        model.posterior_ = SeparateOutputs(posteriors)
        model.kernel_, model.noise_ = tuple(map(_kernel, posteriors)), model.posterior_.noise
        model.ridge_, model.tuning_result_ = np.array(ridges), results if any(results) else None
    else:
        model.kernel_, model.noise_, model.posterior_ = _kernel(first), first.noise, first
        model.ridge_, model.tuning_result_ = ridges[0], results[0]
    return model


def _kernel(posterior: Any) -> Kernel:
    holder = posterior.smoother if isinstance(posterior, Posterior) else posterior.coordinates
    return holder.kernel


def _shape(posterior: Any) -> tuple[int, int, int]:
    """Numbers of samples, inputs and outputs."""
    if not isinstance(posterior, Posterior):
        return len(posterior.observed.y), posterior.observed.places.shape[1], 1
    smoother = posterior.smoother
    return len(smoother.targets), smoother.samples.places.shape[1], smoother.targets.shape[1]


def _completed(found: TuningResult | None, posterior: Any, ridge: float) -> TuningResult | None:
    """The result of the tuning, with what the model holds as well."""
    if isinstance(posterior, Posterior) and posterior.ridge_is_noise_variance:
        moments = moments_at_hand(posterior.noise)
        if moments is not None and not abs(ridge - moments[1]) <= CLOSE * ridge:
            raise FormatError(f"the ridge, {ridge:g}, should be the variance of the noise, {moments[1]:g}")
    if found is None:
        return None
    shared = {name: getattr(posterior, name) for name in ("noise", "output_scale", "level", "transform")}
    return replace(found, kernel=_kernel(posterior), ridge=ridge, **shared)


def _tuned(**found: Any) -> TuningResult:
    nothing: Any = None
    return TuningResult(kernel=nothing, noise=nothing, ridge=0.0, **found)


# ---- systems


def _parts_of_system(system: Dynamics) -> dict[str, Any]:
    states, inputs = (None, None) if system.origin is None else system.origin
    laws = [law for part in system.parts for law in part.laws]
    return {
        "process_noise": None if system.parts[0].own else laws,
        "state_names": [str(name) for name in system.state_names],
        "input_names": [str(name) for name in system.input_names],
        "origin_states": states,
        "origin_inputs": inputs,
    }


def _system(
    process_noise: tuple[Noise, ...] | None,
    origin_states: FloatArray | None,
    origin_inputs: FloatArray | None,
    horizon: int,
    models: tuple[WienerKernelRegressor, ...],
    **arguments: Any,
) -> Dynamics:
    noise = None if process_noise is None else list(process_noise) or False
    system = Dynamics(models if len(models) != 1 else models[0], process_noise=noise, **arguments)
    system.horizon = horizon
    if origin_states is not None and origin_inputs is not None:
        check_shape("origin_states", origin_states, "any", system.n_states)
        check_shape("origin_inputs", origin_inputs, "any", system.n_inputs)
        if len(origin_states) < system.lags[0] or len(origin_inputs) < system.lags[1]:
            raise FormatError("model.json: origin has fewer states or inputs than the lags need")
        system.origin = origin_states, origin_inputs
    return system


MOST_LAGS, MOST_STEPS = 2**20, 2**31
ORIGIN = Array("_ _", empty=True, optional=True)
APPROXIMATION = choice(None, "auto", *APPROXIMATIONS, types=Neighbors | Features | Actions)
GAIN = number(-np.inf, np.inf, optional=True)
RECORDS = [
    Record(Fitted, {}),
    Record(
        Parameters,
        {
            "kernel": str | Kernel | None,
            "noise": str | Noise | Family | Fitted | None,
            "noise_level": choice(None, *LEVELS, types=Level | Fitted),
            "transform": choice(None, *NAMES, types=Transform),
            "approximation": APPROXIMATION,
            "loss": choice("squared", "absolute", "efficient", types=Loss),
            "inference": choice(*INFERENCES),
            "ridge": number(SMALLEST**2, optional=True),
            "trend": choice(*TRENDS),
            "tuning": choice(None, *METHODS),
            "n_restarts": number(0, 2**31, int),
            "random_state": number(0, 2**128, int, optional=True),
            "dtype": choice(*PRECISIONS),
        },
        take=lambda parameters: parameters,
    ),
    Record(
        TuningResult,
        {
            "method": choice(*METHODS, "neighbors"),
            "value": REAL,
            "parameters": each(REAL, kind=dict),
            "n_evaluations": number(0, 2**63, int),
            "level_evidence": GAIN,
            "transform_gain": GAIN,
            "shape_gain": GAIN,
        },
        make=_tuned,
    ),
    Record(
        WienerKernelRegressor,
        {
            "parameters": Parameters,
            "separate": FLAG,
            "posteriors": each(Posterior | LossPosterior | FullPosterior),
            "ridges": each(number(SMALLEST**2, SMALLEST**-2)),
            "tuned": each(TuningResult | None),
            "approximation": APPROXIMATION,
            "columns": each(Column, kind=list | tuple | None),
            "feature_names": each(str, kind=list | tuple | None),
            "target_names": each(str, kind=list | tuple | None),
        },
        take=_parts,
        make=_model,
    ),
    Record(
        Dynamics,
        {
            "learns": choice("state", "increment"),
            "process_noise": each(Noise, kind=list | tuple | None),
            "lags": each(number(1, MOST_LAGS, int)),
            "lags_transformed": FLAG,
            "state_names": each(str),
            "input_names": each(str),
            "origin_states": ORIGIN,
            "origin_inputs": ORIGIN,
            "horizon": number(1, MOST_STEPS, int),
            "models": each(WienerKernelRegressor),
        },
        take=_parts_of_system,
        make=_system,
    ),
]
