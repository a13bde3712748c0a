"""Outputs with a model each: the results of the models, stacked along the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
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
    """Outputs that have a kernel, a noise law, a noise level and a transform each.

    Parameters
    ----------
    outputs : tuple of Posterior
        One model of a single output for each column of y.
    """

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
            msg = (
                "this needs one kernel and one noise law for all outputs; with noise='auto', noise_level or transform, each "
                "output has a model of its own: fit them one by one"
            )
            raise ValueError(msg)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def causes(posterior: Any) -> tuple[str, ...]:
    """Names of the parts of the variance that a fitted model has; that of noise on the inputs only with such noise."""
    parts = posterior.outputs if isinstance(posterior, SeparateOutputs) else (posterior,)
    noisy = any(isinstance(part, Posterior) and part.input_noise is not None for part in parts)
    return ("noise", *(("input",) if noisy else ()), "model", "aleatoric")


def each(posterior: Any, function: Callable[[Any], Any], axis: int = -1) -> Any:
    """A function of a fitted model; if outputs have a model each, its values are stacked along ``axis``."""
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


class StackedDistribution(PredictiveDistribution):
    """Laws of single outputs, of shape (m,) each, as one of shape (m, n_y)."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts, self.of = tuple(parts), getattr(parts[0], "of", "observation")

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, n_y)."""
        return *self.parts[0].shape, len(self.parts)

    def _each(self, name: str, *arguments: Any) -> Any:
        return stacked([getattr(part, name)(*arguments) for part in self.parts])

    def _at(self, name: str, values: ArrayLike, **options: Any) -> Any:
        """A method at values that broadcast against the shape."""
        points = np.asarray(values, dtype=float)
        points = np.broadcast_to(points, np.broadcast_shapes(points.shape, self.shape))
        return stacked([getattr(part, name)(points[..., k], **options) for k, part in enumerate(self.parts)])

    @property
    def mu(self) -> FloatArray:  # type: ignore[override]
        """Estimate of f."""
        return np.stack([part.mu for part in self.parts], axis=-1)

    def mean(self) -> FloatArray:
        """Mean."""
        return np.asarray(self._each("mean"))

    def var(self) -> FloatArray:
        """Variance."""
        return np.asarray(self._each("var"))

    def std(self) -> FloatArray:
        """Standard deviation."""
        return np.asarray(self._each("std"))

    def skewness(self) -> FloatArray:
        """Skewness."""
        return np.asarray(self._each("skewness"))

    def kurtosis(self) -> FloatArray:
        """Excess kurtosis."""
        return np.asarray(self._each("kurtosis"))

    def cumulant(self, order: int) -> FloatArray:
        """Cumulant of the given order."""
        return np.asarray(self._each("cumulant", order))

    def pdf(self, y: ArrayLike, **options: Any) -> Any:
        """Density at y."""
        return self._at("pdf", y, **options)

    def logpdf(self, y: ArrayLike, **options: Any) -> Any:
        """Logarithm of the density at y."""
        return self._at("logpdf", y, **options)

    def cdf(self, y: ArrayLike, **options: Any) -> Any:
        """Probability of at most y."""
        return self._at("cdf", y, **options)

    def sf(self, y: ArrayLike, **options: Any) -> Any:
        """Probability of more than y."""
        return self._at("sf", y, **options)

    def ppf(self, q: ArrayLike, **options: Any) -> Any:
        """Quantile."""
        return self._at("ppf", q, **options)

    def isf(self, q: ArrayLike, **options: Any) -> Any:
        """Upper quantile."""
        return self._at("isf", q, **options)

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed interval."""
        low, high = self._each("interval", confidence)
        return low, high

    def hdi(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Shortest interval."""
        low, high = self._each("hdi", confidence)
        return low, high

    def rvs(self, size: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draws of shape (size, m, n_y), the outputs one after the other."""
        return np.asarray(self._each("rvs", size, as_generator(random_state)))

    def chaos(self) -> ChaosForm:
        """Raise ValueError: the outputs have germs of several laws."""
        raise ValueError("each output has a chaos form of its own: use those of .parts")
