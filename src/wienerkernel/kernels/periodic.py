"""Kernels of functions that repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import Array, FloatArray
from ..backend import arrays
from .base import InputPull, Kernel, Pull, Rows
from .blas import column_dots, inner, times
from .distance import Points, points, pull_squares, squared_distances
from .elementwise import exp
from .parameters import DEFAULT_BOUNDS, Bounds, Scale, check_columns

__all__ = ["Periodic"]


@dataclass(frozen=True, slots=True)
class _Turns:
    """A block of rows as angles 2 pi x / period, of shape (n, d), and as points [cos, sin] / l on circles."""

    angles: Array
    circles: Points


@dataclass(frozen=True, repr=False)
class Periodic(Kernel):
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

    def _prepare(self, X: Array, center: Array) -> Rows:
        d = X.shape[1]
        check_columns("length_scale", self.length_scale, d)
        check_columns("period", self.period, d)
        xp = arrays.namespace(X)
        angles = (X - center) * arrays.like(2 * np.pi / np.asarray(self.period), X)
        circles = xp.concat([xp.cos(angles), xp.sin(angles)], axis=1)
        twice = 2 * self.length_scale if isinstance(self.length_scale, tuple) else self.length_scale
        return _Turns(angles, points(circles, arrays.filled((2 * d,), 0.0, X), twice))

    def _values(self, P: Rows, Q: Rows) -> Array:
        return exp(squared_distances(P.circles, Q.circles, -0.5))

    def _linearize(self, P: Rows, Q: Rows) -> tuple[Array, Pull]:
        q = squared_distances(P.circles, Q.circles, -0.5)
        K = arrays.namespace(q).exp(q)

        def pull(W: Array) -> FloatArray:
            G, partials = W * K, []
            if self.length_scale_bounds != "fixed":
                if isinstance(self.length_scale, tuple):
                    partials.append(pull_squares(P.circles, Q.circles, G).reshape(2, -1).sum(axis=0))
                else:
                    partials.append(np.array([-2 * inner(G, q)]))
            if self.period_bounds != "fixed":
                of_period = _pull_turns(P, Q, G)
                partials.append(of_period if isinstance(self.period, tuple) else of_period.sum(keepdims=True))
            return np.concatenate(partials)

        return K, pull

    def _linearize_inputs(self, P: Rows, Q: Rows) -> tuple[Array, InputPull]:
        K, d = self._values(P, Q), P.angles.shape[1]
        turns = arrays.like(2 * np.pi / np.asarray(self.period), K)

        def pull(W: Array) -> Array:
            # dK/da = -K sin(a - b) / l^2 with the angles a, b; the sine by its addition theorem
            sums = times(W * K, arrays.contiguous(Q.circles.x))
            sines = P.circles.x[:, d:] * sums[:, :d] - P.circles.x[:, :d] * sums[:, d:]
            return -turns * sines

        return K, pull

    def _diagonal(self, X: Array) -> Array:
        return arrays.filled((X.shape[0],), 1.0, X)

    def _diagonal_gradient(self, X: Array) -> Array:
        return arrays.filled(X.shape, 0.0, X)

    @property
    def _prior(self) -> float | None:
        return 1.0


def _pull_turns(P: _Turns, Q: _Turns, G: Array) -> FloatArray:
    """Return the sums of G_ij (a_i - b_j) sin(a_i - b_j) / l^2 for each input; shape (d,).

    dK/dlog period = K (a - b) sin(a - b) / l^2 with the angles a, b, and sin(a - b) = sin a cos b - cos a sin b
    leaves four bilinear forms.
    """
    a, b, d = P.angles, Q.angles, P.angles.shape[1]
    cos_a, sin_a = P.circles.x[:, :d], P.circles.x[:, d:]
    cos_b, sin_b = Q.circles.x[:, :d], Q.circles.x[:, d:]
    xp = arrays.namespace(G)
    products = times(G, xp.concat([cos_b, sin_b, b * cos_b, b * sin_b], axis=1))
    factors = xp.concat([a * sin_a, -a * cos_a, -sin_a, cos_a], axis=1)
    forms: FloatArray = column_dots(factors, products).reshape(4, d).sum(axis=0)
    return forms
