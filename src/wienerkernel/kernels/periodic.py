"""Kernels of periodic functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import Array, FloatArray
from ..backend import arrays
from .base import Block, InputPull, Kernel, Point
from .distance import Points, points
from .operations import column_dots, times
from .parameters import DEFAULT_BOUNDS, Bounds, Scale, check_columns
from .stationary import SquaredExponential

__all__ = ["Periodic"]


@dataclass(frozen=True, repr=False)
class Periodic(SquaredExponential):
    """The periodic kernel exp(-2 sum_k sin^2(pi (x_k - z_k) / period_k) / l_k^2).

    It is the RBF kernel of points on circles, since |e(x) - e(z)|^2 = 4 sin^2(pi (x - z) / period) for
    e(x) = (cos, sin)(2 pi x / period).

    Parameters
    ----------
    length_scale : float or sequence of d floats, default 1.0
        One for all inputs or one per input.
    period : float or sequence of d floats, default 1.0
        One for all inputs or one per input.
    length_scale_bounds : pair of floats, one pair per input, or "fixed", default (1e-5, 1e5)
    period_bounds : pair of floats, one pair per input, or "fixed", default (1e-5, 1e5)

    Examples
    --------
    >>> from wienerkernel.kernels import Periodic
    >>> k = Periodic(length_scale=2.0, period=3.0)
    >>> k([[0.0]], [[1.5], [3.0]]).round(6).tolist()
    [[0.606531, 1.0]]
    """

    length_scale: Scale = 1.0
    period: Scale = 1.0
    length_scale_bounds: Bounds = DEFAULT_BOUNDS
    period_bounds: Bounds = DEFAULT_BOUNDS
    _hyperparameters: ClassVar[tuple[str, ...]] = ("length_scale", "period")
    _per_input: ClassVar[tuple[str, ...]] = ("length_scale", "period")

    def _prepare(self, X: Array, center: Array) -> Block:
        d = X.shape[1]
        check_columns("length_scale", self.length_scale, d)
        check_columns("period", self.period, d)
        xp = arrays.namespace(X)
        angles = (X - center) * arrays.like(2 * np.pi / np.asarray(self.period), X)
        circles = xp.concat([xp.cos(angles), xp.sin(angles)], axis=1)
        scales = 2 * self.length_scale if isinstance(self.length_scale, tuple) else self.length_scale
        return points(circles, arrays.filled((2 * d,), 0.0, X), scales, angles=angles)

    def _linearize_inputs(self, P: Block, Q: Block) -> tuple[Array, InputPull]:
        K, d = self._values(P, Q), P.angles.shape[1]
        frequency = arrays.like(2 * np.pi / np.asarray(self.period), K)

        def pull(W: Array) -> Array:
            # dK/da = -K sin(a - b) / l^2 with the angles a, b; the sine by its addition theorem
            sums = times(W * K, arrays.contiguous(Q.x))
            sines = P.x[:, d:] * sums[:, :d] - P.x[:, :d] * sums[:, d:]
            return -frequency * sines

        return K, pull

    def _pull_other(self, P: Points, Q: Points, W: Array, G: Array, K: Array, q: Array) -> FloatArray:  # noqa: ARG002
        if self.period_bounds == "fixed":
            return np.empty(0)
        # dK/dlog period = K (a - b) sin(a - b) / l^2 with the angles a, b, and sin(a - b) = sin a cos b - cos a sin b
        # leaves four bilinear forms.
        a, b, d = P.angles, Q.angles, P.x.shape[1] // 2
        cos_a, sin_a = P.x[:, :d], P.x[:, d:]
        cos_b, sin_b = Q.x[:, :d], Q.x[:, d:]
        xp = arrays.namespace(G)
        products = times(G, xp.concat([cos_b, sin_b, b * cos_b, b * sin_b], axis=1))
        factors = xp.concat([a * sin_a, -a * cos_a, -sin_a, cos_a], axis=1)
        forms: FloatArray = column_dots(factors, products).reshape(4, d).sum(axis=0)
        return forms if isinstance(self.period, tuple) else forms.sum(keepdims=True)

    def _point(self, X: FloatArray) -> Point:
        return Kernel._point(self, X)  # the distance is not that of the inputs
