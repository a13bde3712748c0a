"""Outputs with separate models: the results of the models, stacked along the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from ..backend import arrays
from ..chaos import ChaosForm
from ..noise.base import Noise, as_generator
from .distribution import PredictiveDistribution
from .posterior import Posterior

__all__ = ["SeparateOutputs", "StackedDistribution", "causes", "each", "stacked"]


@dataclass(frozen=True)
class SeparateOutputs:
    """One model of a single output for each column of y: each has its kernel, noise law, noise level and transform."""

    outputs: tuple[Any, ...]
    single_output = False

    @property
    def output_scale(self) -> FloatArray:
        """Scales of the outputs, (n_y,): 1, since each model has its own units."""
        return np.ones(len(self.outputs))

    @property
    def noise(self) -> tuple[Noise, ...]:
        """Law of the noise of each output."""
        return tuple(posterior.noise for posterior in self.outputs)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and (hasattr(Posterior, name) or name in Posterior.__dataclass_fields__):
            raise ValueError(
                "this needs one kernel and one noise law for all outputs; with noise='auto', noise_level, transform, loss or "
                "inference, each output has a model of its own: fit them one by one"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def causes(posterior: Any) -> tuple[str, ...]:
    """Names of the parts of the variance that a fitted model has; most have no noise on inputs and no approximation."""
    parts = posterior.outputs if isinstance(posterior, SeparateOutputs) else (posterior,)
    linear = [part for part in parts if isinstance(part, Posterior)]
    noisy = any(part.input_noise is not None for part in linear)
    approximate = any("computational" in part.further_parts for part in linear)
    return ("noise", *["input"] * noisy, "model", *["computational"] * approximate, "aleatoric")


def each(posterior: Any, function: Callable[[Any], Any], axis: int = -1) -> Any:
    """A function of a fitted model; if each output has its own, the values are stacked along ``axis``."""
    if isinstance(posterior, SeparateOutputs):
        return stacked([function(output) for output in posterior.outputs], axis)
    return function(posterior)


def stacked(parts: Sequence[Any], axis: int = -1) -> Any:
    """Arrays, tuples and dataclasses of arrays, and laws of single outputs as those of all outputs."""
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(stacked(entries, axis) for entries in zip(*parts, strict=True))
    if is_dataclass(first):
        names = [field.name for field in fields(first)]
        columns = {name: stacked([getattr(part, name) for part in parts], axis) for name in names}
        return replace(first, **columns)  # type: ignore[type-var]
    if hasattr(first, "cdf"):
        return StackedDistribution(parts)
    return (
        arrays.namespace(first).stack(list(parts), axis=axis)
        if arrays.is_array_api(first)
        else np.stack(parts, axis=axis)
    )


def _of_all(name: str) -> Any:
    """A method without arguments that broadcast: moments, intervals."""

    def method(self: StackedDistribution, *arguments: Any) -> Any:
        return stacked([getattr(part, name)(*arguments) for part in self.parts])

    return wraps(getattr(PredictiveDistribution, name))(method)


def _at(name: str) -> Any:
    """A method of values that broadcast against the shape."""

    def method(self: StackedDistribution, values: ArrayLike, **options: Any) -> Any:
        points = np.asarray(values, dtype=float)
        points = np.broadcast_to(points, np.broadcast_shapes(points.shape, self.shape))
        return stacked([getattr(part, name)(points[..., k], **options) for k, part in enumerate(self.parts)])

    return wraps(getattr(PredictiveDistribution, name))(method)


class StackedDistribution(PredictiveDistribution):
    """Laws of single outputs, of shape (m,) each, as one of shape (m, n_y)."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts, self.of = tuple(parts), getattr(parts[0], "of", "observation")

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, n_y)."""
        return *self.parts[0].shape, len(self.parts)

    @property
    def mu(self) -> FloatArray:  # type: ignore[override]
        """Estimate of f."""
        return np.stack([part.mu for part in self.parts], axis=-1)

    mean, var, skewness, kurtosis = map(_of_all, ("mean", "var", "skewness", "kurtosis"))
    cumulant, hdi = map(_of_all, ("cumulant", "hdi"))
    pdf, logpdf, cdf, sf, ppf, isf = map(_at, ("pdf", "logpdf", "cdf", "sf", "ppf", "isf"))

    def rvs(self, size: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draws of shape (size, m, n_y), the outputs one after the other."""
        generator = as_generator(random_state)
        return np.stack([part.rvs(size, generator) for part in self.parts], axis=-1)

    def chaos(self) -> ChaosForm:
        """Raise ValueError: the outputs have germs of several laws."""
        raise ValueError("each output has a chaos form of its own: use those of .parts")
