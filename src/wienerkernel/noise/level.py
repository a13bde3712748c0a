"""A noise level that varies: sample i has the noise s(x_i) M_i, with s a smooth positive function of the input.

log s(x) = B tanh(g(x) / B) with g = phi(x)'w and features phi of a kernel, so that s stays between e^-B and e^B times
the typical level. The weights w have a normal prior. Laplace's approximation of the posterior of w and of the logarithm
of the typical level gives the uncertainty of the noise at x, which a constant level has as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..kernels import Kernel

__all__ = [
    "BOUND",
    "FittedMean",
    "Level",
    "Nodes",
    "NoiseLevel",
    "features",
    "level_nodes",
    "log_slope",
    "observation_scale",
]

LEVELS = ("input", "mean")  # what a learned noise level can depend on: the inputs, or the fitted mean
BOUND = 3.0
PRIOR_STD = 0.8
"""Standard deviation of g(x) before the data are seen; the predictions hardly depend on it between 0.6 and 1.2."""
MOST_FEATURES = 40
LEFT_OUT = 1e-3  # fraction of the kernel's trace that the features may leave out
TIE = 1e-6  # relative difference of inputs that are equally far from the others, up to rounding errors

Nodes = tuple[FloatArray, FloatArray]
"""Values at m inputs, (k, m), and their probabilities, (k,)."""
NoiseLevel = Callable[[FloatArray], FloatArray]
"""s: the rows of X, (m, d), to positive numbers, (m,)."""


@dataclass(frozen=True)
class FittedMean:
    """The mean mu(x) = k(x)'dual + h(x)'coefficients of a fit, with h = 1 or (1, x): the input of a level that follows it."""

    kernel: Kernel
    places: FloatArray = field(repr=False)
    dual: FloatArray = field(repr=False)
    coefficients: FloatArray = field(repr=False)

    def __call__(self, X: FloatArray) -> FloatArray:
        """mu at the rows of X, (m, 1)."""
        mean = np.asarray(self.kernel(X, self.places) @ self.dual)
        if len(self.coefficients):
            mean = mean + self.coefficients[0] + X[:, : len(self.coefficients) - 1] @ self.coefficients[1:]
        return mean[:, None]


@dataclass(frozen=True)
class Level:
    """The function s, with its uncertainty; a function of ``inputs``, or of x itself where these are None.

    The features belong to the ``points`` (p, d), none for a constant level, with the Cholesky ``factor`` (p, p) of the
    kernel there. ``covariance`` (1 + p, 1 + p) is that of the noise's log standard deviation at s = 1 and of the weights.
    """

    kernel: Kernel
    points: FloatArray = field(repr=False)
    factor: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    covariance: FloatArray = field(repr=False)
    inputs: FittedMean | None = None

    @property
    def varies(self) -> bool:
        """Whether s is not constant."""
        return len(self.weights) > 0

    def features(self, X: FloatArray) -> FloatArray:
        """phi(x) at the rows of X, (m, p)."""
        if not self.varies:
            return np.zeros((len(X), 0))
        cross = self.kernel(self.points, X if self.inputs is None else self.inputs(X))
        return np.asarray(PRIOR_STD * solve_triangular(self.factor, cross, lower=True).T)

    def __call__(self, X: FloatArray) -> FloatArray:
        """s at the rows of X, (m,)."""
        return np.exp(BOUND * np.tanh(self.features(X) @ self.weights / BOUND))

    def log_variance(self, X: FloatArray) -> FloatArray:
        """Variance of the logarithm of the noise's standard deviation at the rows of X, (m,)."""
        slope = log_slope(self.features(X), self.weights)
        return np.asarray(np.einsum("ij,ij->i", slope @ self.covariance, slope))


def log_slope(phi: FloatArray, weights: FloatArray) -> FloatArray:
    """Derivatives of the logarithm of the noise's standard deviation by that where s(x) = 1 and by the weights, (m, 1 + p)."""
    slope = 1 - np.tanh(phi @ weights / BOUND) ** 2
    return np.concatenate([np.ones((len(phi), 1)), slope[:, None] * phi], axis=1)


def features(kernel: Kernel, X: FloatArray) -> tuple[FloatArray, IntArray]:
    """Features phi at the rows of X, (n, p), by a pivoted Cholesky factorization, and the rows that are its pivots."""
    rest = np.asarray(kernel.diag(X)).copy()
    limit = LEFT_OUT * rest.sum()
    columns: list[FloatArray] = []
    pivots: list[int] = []
    while len(pivots) < MOST_FEATURES and rest.sum() > limit:
        pivot = int(
            np.argmax(rest >= (1 - TIE) * rest.max())
        )  # the first of them, whatever the rounding errors are
        column = kernel(X, X[pivot : pivot + 1])[:, 0]
        for other in columns:
            column = column - other * other[pivot]
        column = column / np.sqrt(rest[pivot])
        rest = np.maximum(rest - column**2, 0.0)
        rest[pivot] = 0.0
        columns.append(column)
        pivots.append(pivot)
    return PRIOR_STD * np.stack(columns, axis=1), np.array(pivots)


def level_nodes(log_variance: FloatArray) -> Nodes:
    """Gauss-Hermite nodes of log s(x) about its estimate, (5, m), and their probabilities."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    return nodes[:, None] * np.sqrt(log_variance), weights / weights.sum()


def check_noise_level(level: Any) -> Any:
    """Check ``noise_level``: None, one of `LEVELS`, or a function."""
    if level is None or callable(level) or (isinstance(level, str) and level in LEVELS):
        return level
    msg = f"noise_level must be None, {', '.join(map(repr, LEVELS))}, or a function of X, got {level!r}"
    raise ValueError(msg)


def checked_level(values: Any, n: int) -> FloatArray:
    """Values of a level function at n inputs, which must be positive."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"noise_level(X) must return real numbers, got an array of {array.dtype}")
    array = array.astype(float)
    if array.shape != (n,):
        raise ValueError(
            f"noise_level(X) must return one value for each of the {n} rows of X, got shape {array.shape}"
        )
    if not np.all((array > 0) & np.isfinite(array)):
        row = int(np.argmin((array > 0) & np.isfinite(array)))
        raise ValueError(f"noise_level(X) must be positive and finite, got {array[row]} for row {row}")
    return array


def observation_scale(level: NoiseLevel | None, X: Array, noise_scale: FloatArray | None = None) -> Nodes:
    """Scales s of the noise s M of new observations at the rows of X, (k, m), and their probabilities (k,).

    There are several where the level is learned: its own uncertainty makes the noise a mixture.
    """
    given = np.ones(X.shape[0]) if noise_scale is None else noise_scale
    if level is None:
        return given[None], np.ones(1)
    inputs = arrays.as_numpy(X)
    scale = given * checked_level(level(inputs), len(inputs))
    if not isinstance(level, Level):
        return scale[None], np.ones(1)
    nodes, probabilities = level_nodes(level.log_variance(inputs))
    return scale * np.exp(nodes), probabilities
