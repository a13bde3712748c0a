"""Sample paths: random functions whose law at any x is that of the prediction (Matheron's rule with the real noise).

    F(x) = mu(x) - a(x)'(M - m0) + r(x),    r(x) = f0(x) - a(x)'f0(X),  f0 ~ GP(0, k)

with one draw of the noise M in the data and one function f0 for each path; the estimate has r = 0. The first two terms
are k(x)'c + h(x)'beta with coefficients from the data minus drawn noise. r is drawn where a path is evaluated: given its
values at the points that were visited before, its law at a new point is normal, which is exact for every kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from .._typing import Array, FloatArray, RandomState
from ..backend import arrays
from ..kernels.paired import paired
from ..noise.base import as_generator
from ..text import check_choice
from .features import feature_map, slope
from .residual import PriorRoot, VisitedResidual, swapped

if TYPE_CHECKING:
    from .posterior import Posterior

__all__ = ["Functions", "SamplePaths"]

DRAWS = 2**22  # random numbers held at once, 32 MB


def drawn_noise(posterior: Posterior, n: int, generator: Any) -> FloatArray:
    """Draws of the noise in the data without its mean, averaged at the places, (n, U)."""
    samples = posterior.smoother.samples
    samples.check_single()
    size = len(samples.index)
    result = np.zeros((n, samples.n_places))
    for law, scale in posterior.terms:
        matrix: Any = scale
        if scale.ndim == 1:
            entries = samples.share * scale, (samples.index, np.arange(size))
            matrix = csr_array(entries, shape=(samples.n_places, size))
        for part in arrays.slices(n, max(1, DRAWS // size)):
            draws = law.rvs((part.stop - part.start, size), random_state=generator) - law.mean()
            result[part] += (matrix @ draws.T).T
    return result


class Functions:
    """n groups of functions on the scale of the smoother: ``copies`` draws of the noise in the data and as many of r.

    Function (i, j, k) has draw j of r and draw k of the noise of group i. Memory is reserved for ``expected`` points per
    function; a ``root`` makes points cheaper, if there are many.
    """

    def __init__(
        self,
        posterior: Posterior,
        n: int,
        of: str,
        features: Any,
        generator: Any,
        copies: int = 1,
        expected: int = 0,
        root: PriorRoot | None = None,
    ) -> None:
        smoother = posterior.smoother
        if arrays.library(smoother.places) not in ("numpy", "torch", "cupy"):
            raise TypeError(
                f"sample paths need NumPy, torch or CuPy arrays; the model was fitted with {arrays.library(smoother.places)}"
            )
        if smoother.factor.dtype != smoother.places.dtype:
            raise TypeError("sample paths need a model with dtype='float64' or 'float32', not 'mixed'")
        self.smoother, self.n, self.copies = smoother, n, copies
        self.n_y = n_y = smoother.targets.shape[1]
        means = smoother.samples.means(smoother.targets).T
        draws = drawn_noise(posterior, n * copies * n_y, generator)
        values = means - draws.reshape(
            n, 1, copies, *means.shape
        )  # axes: group, draw of r, draw of the noise
        self._phi: Callable[[Array], Array] | None = None
        self._residual: VisitedResidual | None = None
        if of == "function":
            self._phi = feature_map(smoother.kernel, smoother.places, features, generator)
            if self._phi is None:
                self._residual = VisitedResidual(smoother, n * copies, n_y, generator, expected, root)
        self._coefs: list[Array] = []
        if self._phi is not None:  # r(x) = phi(x)'w - a(x)'Phi w, with standard normal w
            at_places = arrays.as_numpy(self._phi(smoother.places))
            w = generator.standard_normal((n, copies, 1, n_y, at_places.shape[1]))
            values = values - w @ at_places.T
            self._coefs = [arrays.like(w, smoother.places)]
        rows = np.ascontiguousarray(values.reshape(-1, means.shape[1]))
        projected = smoother.project(arrays.like(rows, smoother.factor))
        xp = arrays.namespace(smoother.places)
        self._coefs = [*(xp.reshape(part, (*values.shape[:-1], -1)) for part in projected), *self._coefs]

    def _basis(self, X: Array, cross: Array) -> list[Array]:
        """What the coefficients belong to, k(x), h(x) and phi(x), at X (m, d)."""
        return [cross, self.smoother.trend(X), *([] if self._phi is None else [self._phi(X)])]

    def common(self, X: Array) -> Array:
        """Values at X (m, d) of the functions of one copy, (n, n_y, m)."""
        X = arrays.like(X, self.smoother.places)
        cross = self.smoother.cross(X)
        pairs = zip(self._coefs, self._basis(X, cross), strict=True)
        values = sum(coef[:, 0, 0] @ basis.T for coef, basis in pairs)
        return values if self._residual is None else values + self._residual.values(X, cross)

    def own(self, X: Array) -> Array:
        """Values at X (n, copies * copies * m, d), m points for each function; (n, copies * copies * m, n_y)."""
        X, xp, c = arrays.like(X, self.smoother.places), arrays.namespace(self.smoother.places), self.copies
        flat = arrays.contiguous(xp.reshape(X, (-1, X.shape[-1])))
        cross = self.smoother.cross(flat)
        shape = self.n, c, c, X.shape[1] // c**2, -1
        pairs = zip(self._coefs, self._basis(flat, cross), strict=True)
        values = sum(xp.reshape(basis, shape) @ swapped(coef) for coef, basis in pairs)
        values = xp.reshape(values, (self.n, X.shape[1], self.n_y))
        if self._residual is None:
            return values
        r = self._residual.values(xp.reshape(X, (self.n * c, X.shape[1] // c, -1)), cross)
        return values + xp.reshape(swapped(r), values.shape)

    def gradient(self, X: Array, own: bool) -> Array:
        """Gradient of the functions of one copy at X (m, d), or (n, m, d) if ``own``; (n, n_y, m, d)."""
        X, smoother, xp = arrays.like(X, self.smoother.places), self.smoother, arrays.namespace(X)
        coef, trend, *weights = (part[:, 0, 0] for part in self._coefs)
        n, m, d = self.n, X.shape[-2], X.shape[-1]
        # functions are differentiated together, or each at its own points
        pairs = [(X[i], coef[i]) for i in range(n)] if own else [(X, xp.reshape(coef, (n * self.n_y, -1)))]
        parts = []
        for at, rows in pairs:
            rows = xp.broadcast_to(rows[:, None, :], (rows.shape[0], m, rows.shape[1]))
            parts.append(arrays.like(smoother.kernel.input_pullback(at, smoother.places, rows), X))
        gradient = xp.reshape(xp.concat(parts), (n, self.n_y, m, d))
        gradient = gradient + (trend @ smoother.trend.gradient)[:, :, None, :]
        if self._residual is not None:
            return gradient + self._residual.gradient(X)
        if self._phi is None:
            return gradient
        flat = xp.reshape(X, (-1, d))
        paired(smoother.kernel, flat[:1, :], flat[:1, :], 0)  # ValueError for functions without derivatives
        slopes = [xp.reshape(slope(self._phi, flat, k), (*X.shape[:-1], -1)) for k in range(d)]
        return gradient + xp.stack([weights[0] @ swapped(part) for part in slopes], axis=-1)


class SamplePaths:
    """Random functions, drawn from the law of a fitted model, that can be evaluated anywhere, any number of times.

    One path is one function: values at different points, in one call or several, belong together. At any x they have
    the law of ``predict_distribution(x, of)``, and at several points the joint law. It is the law of the error of the
    estimate about its mean under the prior, not a Bayesian posterior.

    Parameters
    ----------
    posterior : Posterior
    n : int
        Number of paths.
    of : {"estimate", "function"}, default="function"
    features : "auto", None or int, default="auto"
        How the prior functions of ``of="function"`` are drawn: "auto" uses features of the kernel where there are
        finitely many (:class:`FeatureMap`, :class:`Linear`, :class:`Polynomial`, :class:`Constant`). Otherwise, and with
        None, values are drawn where a path is evaluated, given those drawn before, which is exact for every kernel. A
        number is a number of Fourier features: an approximation, but the cost of a point does not grow with the
        number of those before. For a multiple of an RBF kernel of one input they are those of a Gauss rule, and 100 are
        exact to 1e-12 over 12 length scales.
    random_state : int, numpy Generator or RandomState, or None

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), noise="gamma(0.25, scale=2)", tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> paths = model.sample_paths(3, random_state=0)
    >>> y = paths([[0.0], [0.5]])
    >>> y.shape, bool(np.allclose(paths([[0.5]]), y[:, 1:]))
    ((3, 2), True)
    >>> paths([[0.0], [1.0], [2.0]], own=True).shape   # path i at row i
    (3,)
    """

    def __init__(
        self,
        posterior: Posterior,
        n: int,
        of: str = "function",
        features: Any = "auto",
        random_state: RandomState = None,
    ) -> None:
        check_choice("of", of, ("estimate", "function"))
        if n is True or n != int(n) or n < 1:
            raise ValueError(f"n must be a positive integer, got {n!r}")
        self.n, self.of, self._posterior = int(n), of, posterior
        self._functions = Functions(posterior, self.n, of, features, as_generator(random_state))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n} paths of the {self.of}>"

    def _points(self, X: Any, own: bool) -> tuple[Array, bool]:
        """Points as an array (m, d), or (n, m, d) if ``own``, and whether each path has a single one."""
        x = X if arrays.is_array_api(X) else np.asarray(X, dtype=float)
        d = self._posterior.smoother.places.shape[1]
        wanted = f"({self.n}, {d}) or ({self.n}, m, {d})" if own else f"(m, {d})"
        if x.shape[-1:] != (d,) or x.ndim not in ((2, 3) if own else (2,)) or (own and x.shape[0] != self.n):
            raise ValueError(f"X must have shape {wanted}, got {tuple(x.shape)}")
        if 0 in x.shape:
            raise ValueError(f"X must have at least one point, got shape {tuple(x.shape)}")
        xp = arrays.namespace(x)
        if not bool(xp.all(xp.isfinite(x))):
            raise ValueError("X contains NaN or infinity")
        return (x[:, None, :], True) if own and x.ndim == 2 else (x, False)

    def _in_units(self, values: Array) -> Array:
        """Values (n, n_y, ...) in the units of y, as (n, ..., n_y), or (n, ...) for a single output."""
        posterior, xp = self._posterior, arrays.namespace(values)
        if posterior.single_output:
            return values[:, 0]
        return xp.moveaxis(values, 1, 2) * arrays.like(posterior.output_scale, values).reshape(
            (-1,) + (1,) * (values.ndim - 3)
        )

    def __call__(self, X: ArrayLike, own: bool = False) -> Array:
        """Values of the paths; memory grows with the square of the number of points that were visited.

        Parameters
        ----------
        X : array-like of shape (m, d), or (n, d) or (n, m, d) if ``own``
        own : bool, default=False
            Whether each path has its own points, rows X[i] of path i.

        Returns
        -------
        ndarray of shape (n, m) or (n, m, n_y); (n,) or (n, n_y) for one point per path
        """
        x, single = self._points(X, own)
        xp = arrays.namespace(self._posterior.smoother.places)
        values = xp.moveaxis(self._functions.own(x), 2, 1) if own else self._functions.common(x)
        values = self._in_units(values)
        if self._posterior.transform is not None:
            values = self._posterior.transform.inverse(arrays.as_numpy(values))
        return values[:, 0] if single else values

    def gradient(self, X: ArrayLike, own: bool = False) -> Array:
        """Gradients of the paths with respect to x.

        They are exact: derivatives of a function are drawn jointly with its values. The kernel must be differentiable
        (TypeError), and so must be the functions that it describes: those of Matern(nu=0.5) are not (ValueError).

        Parameters
        ----------
        X : array-like of shape (m, d), or (n, d) or (n, m, d) if ``own``
        own : bool, default=False

        Returns
        -------
        ndarray of shape (n, m, d) or (n, m, n_y, d); without m for one point per path
        """
        x, single = self._points(X, own)
        gradient = self._in_units(self._functions.gradient(x, own))
        if self._posterior.transform is not None:
            y = self(x, own)
            slope = np.exp(-self._posterior.transform.log_derivative(y))
            gradient = arrays.as_numpy(gradient) * slope[..., None]
        return gradient[:, 0] if single else gradient
