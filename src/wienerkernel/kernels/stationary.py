"""Kernels that depend only on the scaled distance r of the inputs, or of points on circles for periodic functions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg.blas import dgemv

from .._typing import Array, FloatArray
from ..backend import arrays
from .base import Block, InputPull, Kernel, Point, Pull
from .distance import Points, points, pull_differences, pull_squares, squared_distances
from .operations import column_dots, in_place, inner, times
from .parameters import DEFAULT_BOUNDS, Bounds, Scale, check_columns

__all__ = ["RBF", "Exponential", "Matern", "Periodic", "RationalQuadratic", "SquaredExponential"]


class _Stationary(Kernel):
    """A kernel f(r^2) with r^2 = sum_k ((x_k - z_k) / l_k)^2, given by f and its slope -2 f'."""

    length_scale: Scale
    length_scale_bounds: Bounds
    _hyperparameters: ClassVar[tuple[str, ...]] = ("length_scale",)
    _per_input: ClassVar[tuple[str, ...]] = ("length_scale",)

    @property
    @abstractmethod
    def _factor(self) -> float:
        """The number c such that f is simplest as a function of q = c r^2."""

    @property
    def _rough(self) -> bool:
        """Whether f is not differentiable at 0, where it would amplify the rounding of r^2."""
        return False

    @abstractmethod
    def _f(self, q: Array) -> Array:
        """Return f, in place of q."""

    @abstractmethod
    def _f_and_slope(self, q: Array) -> tuple[Array, Array]:
        """Return f and -2 f' without changing q."""

    def _prepare(self, X: Array, center: Array) -> Block:
        return points(X, center, self.length_scale, exact=self._rough)

    def _values(self, P: Block, Q: Block) -> Array:
        return self._f(squared_distances(P, Q, self._factor))

    def _linearize(self, P: Block, Q: Block) -> tuple[Array, Pull]:
        q = squared_distances(P, Q, self._factor)
        K, slope = self._f_and_slope(q)

        def pull(W: Array) -> FloatArray:
            # dK/dlog l_k = -2 f' ((x_k - z_k) / l_k)^2, over all k for a common length scale
            G = W * slope
            others = self._pull_other(P, Q, W, G, K, q)
            if self.length_scale_bounds == "fixed":
                return others
            if not isinstance(self.length_scale, tuple):
                return np.append(inner(G, q) / self._factor, others)
            squares = pull_squares(P, Q, G).reshape(-1, len(self.length_scale))
            return np.append(squares.sum(axis=0), others)

        return K, pull

    def _linearize_inputs(self, P: Block, Q: Block) -> tuple[Array, InputPull]:
        K, slope = self._f_and_slope(squared_distances(P, Q, self._factor))
        scales = arrays.like(self.length_scale, K)
        # dk/dx = 2 f' (x - z) / l^2, of which one 1/l is in the points
        return K, lambda W: -pull_differences(P, Q, W * slope) / scales

    def _point(self, X: FloatArray) -> Point:
        check_columns("length_scale", self.length_scale, X.shape[1])
        scales = np.broadcast_to(np.asarray(self.length_scale, dtype=np.float64), X.shape[1])
        if not np.all((scales > 1e-100) & (scales < 1e100)):  # squares might overflow or underflow
            return super()._point(X)
        # Explicit differences, so that nothing is lost where K is almost singular; BLAS sums their squares.
        z, c, f, precisions = np.ascontiguousarray(X.T), self._factor, self._f, scales**-2

        def at(x: FloatArray) -> Array:
            squares = z - x[:, None]
            squares *= squares
            return f(dgemv(c, squares.T, precisions))

        return at

    def _pull_other(self, P: Points, Q: Points, W: Array, G: Array, K: Array, q: Array) -> FloatArray:  # noqa: ARG002
        """Return the gradient with respect to the other free hyperparameters; G = W * slope."""
        return np.empty(0)

    @property
    def _prior(self) -> float | None:
        return 1.0


class SquaredExponential(_Stationary):
    """The function exp(-r^2/2), which is also its slope."""

    @property
    def _factor(self) -> float:
        return -0.5

    def _f(self, q: Array) -> Array:
        return in_place("exp", q)

    def _f_and_slope(self, q: Array) -> tuple[Array, Array]:
        K = arrays.namespace(q).exp(q)
        return K, K


@dataclass(frozen=True, repr=False)
class RBF(SquaredExponential):
    """The squared-exponential kernel exp(-r^2/2).

    Parameters
    ----------
    length_scale : float or sequence of d floats, default 1.0
        One for all inputs or one per input.
    length_scale_bounds : pair of floats, one pair per input, or "fixed", default (1e-5, 1e5)

    Examples
    --------
    >>> from wienerkernel.kernels import RBF
    >>> k = RBF(length_scale=2.0)
    >>> round(float(k([[0.0]], [[2.0]])[0, 0]), 6)
    0.606531
    >>> RBF(2.0, "fixed").names
    ()
    """

    length_scale: Scale = 1.0
    length_scale_bounds: Bounds = DEFAULT_BOUNDS


@dataclass(frozen=True, repr=False)
class Matern(_Stationary):
    """The Matern kernel of smoothness 1/2, 3/2 or 5/2: its functions have 0, 1 or 2 derivatives.

    With s = sqrt(2 nu) r it is exp(-s), (1 + s) exp(-s) or (1 + s + s^2/3) exp(-s).

    Parameters
    ----------
    length_scale : float or sequence of d floats, default 1.0
        One for all inputs or one per input.
    length_scale_bounds : pair of floats, one pair per input, or "fixed", default (1e-5, 1e5)
    nu : {0.5, 1.5, 2.5}, default 1.5
        Smoothness; not a hyperparameter.

    Examples
    --------
    >>> from wienerkernel.kernels import Matern
    >>> k = Matern(nu=2.5)
    >>> round(float(k([[0.0]], [[1.0]])[0, 0]), 6)
    0.523994
    """

    length_scale: Scale = 1.0
    length_scale_bounds: Bounds = DEFAULT_BOUNDS
    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5 (RBF is the limit of large nu); got {self.nu!r}")
        object.__setattr__(self, "nu", float(self.nu))

    @property
    def _factor(self) -> float:
        return 2 * self.nu

    @property
    def _rough(self) -> bool:
        return self.nu == 0.5

    def _f(self, q: Array) -> Array:
        polynomial = q / 3 if self.nu == 2.5 else None
        s = in_place("sqrt", q)
        decay = in_place("exp", -s)
        if self._rough:
            return decay
        s += 1
        if polynomial is not None:
            s += polynomial
        s *= decay
        return s

    def _f_and_slope(self, q: Array) -> tuple[Array, Array]:
        xp = arrays.namespace(q)
        s = xp.sqrt(q)
        decay = in_place("exp", -s)
        if self.nu == 0.5:
            # -2 f' = exp(-r) / r belongs to differences that vanish where r does.
            return decay, decay / xp.where(s > 0, s, xp.inf)
        if self.nu == 1.5:
            return (1 + s) * decay, 3 * decay
        return (1 + s + q / 3) * decay, (5 / 3) * (1 + s) * decay


def Exponential(length_scale: Scale = 1.0, length_scale_bounds: Bounds = DEFAULT_BOUNDS) -> Matern:
    """Return the exponential kernel exp(-r), the Matern kernel of smoothness 1/2.

    Parameters
    ----------
    length_scale : float or sequence of d floats, default 1.0
    length_scale_bounds : pair of floats, one pair per input, or "fixed", default (1e-5, 1e5)

    Returns
    -------
    kernel : Matern

    Examples
    --------
    >>> from wienerkernel.kernels import Exponential
    >>> round(float(Exponential(2.0)([[0.0]], [[2.0]])[0, 0]), 6)
    0.367879
    """
    return Matern(length_scale, length_scale_bounds, nu=0.5)


@dataclass(frozen=True, repr=False)
class RationalQuadratic(_Stationary):
    """The rational-quadratic kernel (1 + r^2 / (2 alpha))^-alpha, a scale mixture of RBF kernels.

    Parameters
    ----------
    length_scale : float or sequence of d floats, default 1.0
        One for all inputs or one per input.
    alpha : float, default 1.0
        Small alpha mixes many length scales; large alpha approaches RBF.
    length_scale_bounds : pair of floats, one pair per input, or "fixed", default (1e-5, 1e5)
    alpha_bounds : pair of floats or "fixed", default (1e-5, 1e5)

    Examples
    --------
    >>> from wienerkernel.kernels import RationalQuadratic
    >>> k = RationalQuadratic(length_scale=1.0, alpha=0.5)
    >>> round(float(k([[0.0]], [[1.0]])[0, 0]), 6)
    0.707107
    """

    length_scale: Scale = 1.0
    alpha: float = 1.0
    length_scale_bounds: Bounds = DEFAULT_BOUNDS
    alpha_bounds: Bounds = DEFAULT_BOUNDS
    _hyperparameters: ClassVar[tuple[str, ...]] = ("length_scale", "alpha")

    @property
    def _factor(self) -> float:
        return 1 / (2 * self.alpha)

    def _f(self, q: Array) -> Array:
        q = in_place("log1p", q)
        q *= -self.alpha
        return in_place("exp", q)

    def _f_and_slope(self, q: Array) -> tuple[Array, Array]:
        K = in_place("exp", -self.alpha * arrays.namespace(q).log1p(q))
        return K, K / (1 + q)

    def _pull_other(self, P: Points, Q: Points, W: Array, G: Array, K: Array, q: Array) -> FloatArray:  # noqa: ARG002
        if self.alpha_bounds == "fixed":
            return np.empty(0)
        # dK/dlog alpha = alpha K (q / (1 + q) - log(1 + q))
        return np.array([self.alpha * (inner(G, q) - inner(W * K, arrays.namespace(q).log1p(q)))])


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
