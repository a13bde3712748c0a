"""The samples, and the kernel and the noise as functions of one vector of parameters.

The parameters are the kernel's ``theta``, then the logarithm of the noise's standard deviation if it is free, then its
shapes, as logarithms unless they may be negative.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..kernels import Kernel
from ..noise import Noise
from ..noise.family import NoiseModel
from ..posterior.input_noise import Linearization
from ..smoother import Smoother
from ..smoother.samples import Samples

__all__ = ["Data", "Parameters"]

INDEX = re.compile(r"\[(\d+)\]$")
MEAN_STEP = 1e-4


@dataclass(frozen=True)
class Data:
    """Samples X (n, d), of any library, and y (n, n_y), with noise scales, ridge and trend.

    Sample i has the noise ``noise_scale[i] * M_i``; a matrix is applied to the vector of all M_i. A ridge of None is the
    noise variance. ``count`` (n,) is the number of equal samples that each row stands for.
    """

    X: Array
    y: FloatArray
    noise_scale: FloatArray
    ridge: float | None = None
    trend: str | None = None
    input_noise: Linearization | None = None
    feature_names: tuple[str, ...] = ()
    count: IntArray | None = None

    @cached_property
    def samples(self) -> Samples:
        """The samples by distinct inputs, for noise of variance 1."""
        return Samples.collapse(self.X, self.covariance(1.0), self.noise_scale, self.count)

    @property
    def size(self) -> int:
        """Number of observations, of all outputs together."""
        return self.y.size if self.count is None else int(self.count.sum()) * self.y.shape[1]

    def average(self, values: FloatArray) -> FloatArray:
        """Mean over the samples of values of the rows, (n,) or (n, k)."""
        return np.asarray(np.average(values, axis=0, weights=self.count))

    @cached_property
    def in_numpy(self) -> Data:
        """The same data, with X as a NumPy array."""
        return self if arrays.is_numpy(self.X) else replace(self, X=arrays.as_numpy(self.X))

    def by_column(self, names: Iterable[str]) -> list[str]:
        """Names of parameters, where a number in brackets is that of a column: the name of the column, if it has one."""
        if not self.feature_names:
            return list(names)
        return [INDEX.sub(lambda found: f"[{self.feature_names[int(found[1])]}]", name) for name in names]

    def subset(self, rows: IntArray) -> Data:
        """Some of the samples, whose noise must be independent."""
        return replace(
            self,
            X=arrays.take(self.X, rows),
            y=self.y[rows],
            noise_scale=self.noise_scale[rows],
            input_noise=None if self.input_noise is None else self.input_noise.subset(rows),
            count=None if self.count is None else self.count[rows],
        )

    def noise_covariance(self, variance: float) -> FloatArray:
        """Covariance of the noise of the observations: (n,) or (n, n)."""
        scale = self.noise_scale
        return variance * (scale**2 if scale.ndim == 1 else scale @ scale.T)

    def covariance(self, variance: float) -> FloatArray:
        """Covariance of the noise of the samples, including noise on their inputs: (n,) or (n, n)."""
        return self._with_inputs(self.noise_covariance(variance))

    def regularizer(self, variance: float) -> FloatArray:
        """The same with the given ridge, if there is one, for the noise of the observations."""
        own = self.noise_covariance(variance)
        return self._with_inputs(own if self.ridge is None else np.full_like(own, self.ridge))

    def _with_inputs(self, covariance: FloatArray) -> FloatArray:
        return covariance if self.input_noise is None else self.input_noise.added_to(covariance)

    def smoother(self, kernel: Kernel, noise: Noise, regularizer: FloatArray) -> Smoother:
        """Smoother with these parts; ``regularizer`` has the shape of ``noise_scale``."""
        old = self.samples
        samples = replace(old, row_regularizer=regularizer)
        return Smoother(kernel, samples, self.centered(noise.mean()), self.trend)

    def centered(self, mean: float) -> FloatArray:
        """The responses without the mean of their noise, (n, n_y)."""
        targets = self.y - mean * self.mean_scale[:, None]
        return targets if self.input_noise is None else targets - self.input_noise.curvature[:, None]

    @cached_property
    def mean_scale(self) -> FloatArray:
        """Factor of the noise mean in the mean of each sample, (n,)."""
        return self.noise_scale if self.noise_scale.ndim == 1 else self.noise_scale.sum(axis=1)


@dataclass(frozen=True)
class Parameters:
    """The kernel and the noise as functions of one vector, of which ``n_kernel`` entries belong to the kernel."""

    kernel: Kernel
    noise: NoiseModel
    n_kernel: int = field(init=False)
    shapes: slice = field(init=False)

    def __post_init__(self) -> None:
        n_kernel = len(self.kernel.theta)
        first = n_kernel + self.noise.free_std
        object.__setattr__(self, "n_kernel", n_kernel)
        object.__setattr__(self, "shapes", slice(first, first + len(self.noise.shape_names)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries."""
        std = ("noise.std",) * self.noise.free_std
        return (
            *(f"kernel.{name}" for name in self.kernel.names),
            *std,
            *(f"noise.{name}" for name in self.noise.shape_names),
        )

    @property
    def is_log(self) -> NDArray[np.bool_]:
        """Which entries are logarithms: all but shapes that may be negative."""
        linear = self.noise.linear_shapes
        return np.array([name.removeprefix("noise.") not in linear for name in self.names], dtype=bool)

    def shown(self, values: FloatArray) -> FloatArray:
        """The values of all entries, not their logarithms."""
        return np.where(self.is_log, np.exp(np.where(self.is_log, values, 0.0)), values)

    def by_name(self, data: Data, values: FloatArray) -> dict[str, float]:
        """The same by the names of the entries, with those of the columns of the data."""
        return dict(zip(data.by_column(self.names), self.shown(values).tolist(), strict=True))

    def kernel_at(self, values: FloatArray) -> Kernel:
        """The kernel for these values of all entries."""
        return self.kernel.with_theta(values[: self.n_kernel])

    def noise_at(self, values: FloatArray) -> Noise:
        """The law of the noise for these values of all entries."""
        std = float(np.exp(values[self.n_kernel])) if self.noise.free_std else 1.0
        return _law(self.noise, std, tuple(values[self.shapes].tolist()))

    def mean_slope(self, values: FloatArray, k: int) -> float:
        """Derivative of the noise's mean with respect to parameter k, by central differences."""
        step = np.where(np.arange(len(values)) == k, MEAN_STEP, 0.0)
        return (self.noise_at(values + step).mean() - self.noise_at(values - step).mean()) / (2 * MEAN_STEP)


@lru_cache(maxsize=8)
def _law(model: NoiseModel, std: float, shapes: tuple[float, ...]) -> Noise:
    """One law for all parts of an evaluation: creating a frozen SciPy distribution takes milliseconds."""
    return model.law(std, shapes)
