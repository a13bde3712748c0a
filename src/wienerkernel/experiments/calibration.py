"""Are the quantiles calibrated? Functions drawn from the prior, Gamma noise, and how often each interval misses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..kernels import Kernel
from ..noise import as_noise
from ..regressor import WienerKernelRegressor
from .output import table_rows

__all__ = ["Calibration", "calibrate"]

LEVEL = 0.05


@dataclass(frozen=True)
class Calibration:
    """How often the true value lies below and above a 90 % interval, at each query point.

    Attributes
    ----------
    x : ndarray of shape (m,)
        Query points.
    exact, gaussian : ndarray of shape (m, 2)
        Miss rates below and above, of the exact law and of the Gaussian with the same variance.
    exact_width, gaussian_width : ndarray of shape (m,)
        Widths of the intervals.
    n : int
        Number of repetitions.
    """

    x: FloatArray
    exact: FloatArray
    gaussian: FloatArray
    exact_width: FloatArray
    gaussian_width: FloatArray
    n: int

    def rows(self) -> Iterator[dict[str, Any]]:
        """One table row per query point."""
        columns = {"x": self.x}
        for law, misses in (("exact", self.exact), ("gaussian", self.gaussian)):
            columns |= {f"{law}_below": misses[:, 0], f"{law}_above": misses[:, 1]}
        columns |= {"exact_width": self.exact_width, "gaussian_width": self.gaussian_width}
        yield from table_rows(columns)

    def summary(self) -> str:
        """Miss rates and widths averaged over the query points, in one line."""
        exact, gaussian = 100 * self.exact.mean(axis=0), 100 * self.gaussian.mean(axis=0)
        return (
            f"90 % intervals of f(x) miss below / above: exact {exact[0]:.1f} % / {exact[1]:.1f} %, "
            f"Gaussian {gaussian[0]:.1f} % / {gaussian[1]:.1f} % "
            f"and {100 * (np.mean(self.gaussian_width / self.exact_width) - 1):.0f} % wider"
        )


def calibrate(
    kernel: Kernel, noise: Any, X: FloatArray, x: FloatArray, n: int = 20_000, seed: int = 0
) -> Calibration:
    """Draw f from the prior and noise n times, and count how often f(x) lies outside its 90 % interval.

    Parameters
    ----------
    kernel : Kernel
        Kernel of the model and covariance of the prior.
    noise : noise law
        Anything that :func:`~wienerkernel.as_noise` accepts.
    X : ndarray of shape (D,)
        Inputs of the data, one sample each.
    x : ndarray of shape (m,)
        Query points.
    n : int, default=20000
        Number of repetitions.
    seed : int, default=0

    Returns
    -------
    Calibration

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> result = calibrate(RBF(1.0), "gamma(0.25, scale=2)", np.array([0.0]), np.array([0.0]), n=20_000)
    >>> bool(np.all(np.abs(result.exact - 0.05) < 0.01))
    True
    """
    law = as_noise(noise)
    generator = np.random.default_rng(seed)
    columns = np.concatenate([X, x])[:, None]
    values, vectors = np.linalg.eigh(kernel(columns))
    f = generator.standard_normal((n, len(columns))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    y = f[:, : len(X)] + law.rvs((n, len(X)), random_state=generator)

    # All repetitions share the inputs, hence the weights and the law of f(x) - mu(x): each is one output.
    model = WienerKernelRegressor(kernel, noise=law, trend=None, tuning=None).fit(X[:, None], y.T)
    deviation = f[:, len(X) :].T - model.predict(x[:, None])  # (m, n)
    std = np.sqrt(model.posterior_.common_uncertainty(x[:, None]).epistemic)
    function = model.predict_distribution(x[:, None], of="function").law
    lower, upper = function.ppf(LEVEL), function.isf(LEVEL)
    half = as_noise("norm(0, 1)").isf(LEVEL) * std
    return Calibration(
        x=x,
        exact=_misses(deviation, lower, upper),
        gaussian=_misses(deviation, -half, half),
        exact_width=upper - lower,
        gaussian_width=2 * half,
        n=n,
    )


def _misses(deviation: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    below = np.mean(deviation < lower[:, None], axis=1)
    return np.stack([below, np.mean(deviation > upper[:, None], axis=1)], axis=1)
