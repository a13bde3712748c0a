"""Mean, variances, likelihood and leave-one-out for a grid of ridges, from one eigendecomposition.

With n_u samples at place u, K + rho^2 N^-1 = N^-1/2 (N^1/2 K N^1/2 + rho^2 I) N^-1/2. In the eigenbasis E of
N^1/2 K N^1/2, with eigenvalues lambda, the ridge is a division by lambda + rho^2, and the rest are matrix products.
With a trend of basis functions h, B = E'N^1/2 H and D = 1 / (lambda + rho^2), H'AH is B'DB.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, FloatArray
from ..backend import arrays
from ..backend.linalg import NotPositiveDefiniteError, eigh, matmul
from ..kernels import Kernel, gram
from ..kernels.tiles import CrossKernel, as_rows
from .samples import Samples
from .smoother import Smoother
from .trend import Trend, check_determined, check_others_determine

__all__ = ["RidgePath"]

CHUNK = 2**22  # entries of the largest array per chunk of rows: 32 MiB


class RidgePath:
    """The smoothers of all ridges of a grid, from one eigendecomposition.

    For U places it takes about 9 U^3 operations, as many as 27 factorizations, and the memory of four (U, U) matrices.
    Above about 10,000 places it takes minutes; then fit a few ridges one by one.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples
        Places of the data, with noise of scale 1. Its regularizer, the same for all samples, is replaced by each of the ridges.
    targets : ndarray of shape (D, n_y)
        y0 = y - E M, the samples without the mean of their noise.
    ridges : array-like of shape (r,)
        Values of rho^2, positive.
    output_scale : ndarray of shape (n_y,), default=None
        Scales of the outputs, by which the targets are divided; None is 1 for all. Variances do not include them.
    trend : {None, "constant", "linear"}, default=None

    Attributes
    ----------
    ridges : ndarray of shape (r,)
    eigenvalues : ndarray of shape (U,)
        Of N^1/2 K N^1/2, in ascending order. Both are NumPy arrays, whatever the library of the places.

    Raises
    ------
    NotPositiveDefiniteError
        If an eigenvalue plus the smallest ridge is not positive.

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> samples = Samples.collapse(np.array([[0.0], [1.0]]), np.ones(2), np.ones(2))
    >>> path = RidgePath(RBF(1.0), samples, np.array([[0.0], [1.0]]), [0.1, 1.0])
    >>> path.mean(np.array([[1.0]])).round(4).ravel().tolist()
    [0.8694, 0.4494]
    >>> path.log_likelihood().round(4).tolist()
    [-2.4051, -2.7581]
    """

    def __init__(
        self,
        kernel: Kernel,
        samples: Samples,
        targets: FloatArray,
        ridges: ArrayLike,
        output_scale: FloatArray | None = None,
        trend: str | None = None,
    ) -> None:
        self.kernel, self.samples, self.targets = kernel, samples, targets
        self.output_scale = np.ones(targets.shape[1]) if output_scale is None else output_scale
        self.ridges = _checked_ridges(ridges)
        samples.check_single()
        if samples.scale.ndim == 2 or np.any(samples.scale != 1):
            raise ValueError(
                "samples must have noise of scale 1 for a path of ridges; got other or correlated noise"
            )
        if samples.row_regularizer.ndim == 2 or np.any(samples.row_regularizer != samples.row_regularizer[0]):
            raise ValueError("samples must have the same regularizer for a path of ridges; got several")
        self._counts = np.bincount(samples.index).astype(np.float64)

        matrix = gram(kernel, samples.places)
        self._root = arrays.like(np.sqrt(self._counts), matrix)
        matrix *= self._root[:, None]
        matrix *= self._root
        eigenvalues, self._vectors = eigh(matrix)  # E': rows are eigenvectors
        self.eigenvalues = arrays.as_numpy(eigenvalues).astype(np.float64)
        if not self.eigenvalues[0] + self.ridges.min() > 0:
            raise NotPositiveDefiniteError(
                f"K has the eigenvalue {self.eigenvalues[0]:.3g}, so K + R is not positive definite for the ridge "
                f"{self.ridges.min():.3g}: raise the ridges, or check that the kernel is positive semi-definite"
            )
        self._inverses = 1 / (self.eigenvalues[:, None] + self.ridges)  # (U, r)
        means = samples.means(targets)
        # E'N^1/2 ybar, (U, n_y)
        self._coordinates = matmul(self._vectors, self._root[:, None] * self._like(means))
        self._within = np.asarray(targets - means[samples.index])
        self._cross = CrossKernel(kernel, samples.places)
        self.trend = Trend(trend, samples.places)
        self._prepare_trend()

    def _prepare_trend(self) -> None:
        """B'DB and B'D^2 B, (r, q, q), the coefficients of the trend (r, q, n_y), and [D B, D^2 B], (U, 2 r q)."""
        basis = arrays.as_numpy(self._root[:, None] * self.trend(self.samples.places)).astype(np.float64)
        basis = arrays.as_numpy(self._vectors) @ basis
        D, coordinates = self._inverses, arrays.as_numpy(self._coordinates)
        self._information, self._squared_information = (
            np.einsum("up,ur,uq->rpq", basis, power, basis) for power in (D, D**2)
        )
        for information in self._information:
            check_determined(information, self.samples.n_places)
        products = np.einsum("up,ur,uk->rpk", basis, D, coordinates)
        self._trend_coefficients = np.linalg.solve(self._information, products)
        self._residual_coordinates = coordinates[:, None, :] - np.einsum(
            "up,rpk->urk", basis, self._trend_coefficients
        )
        self._shrunk_basis = (np.stack([D, D**2], axis=1)[..., None] * basis[:, None, None, :]).reshape(
            len(D), -1
        )

    @classmethod
    def from_smoother(
        cls, smoother: Smoother, ridges: ArrayLike, output_scale: FloatArray | None = None
    ) -> RidgePath:
        """Path for the data, the kernel and the trend of a smoother."""
        kernel, samples, targets = smoother.kernel, smoother.samples, smoother.targets
        return cls(kernel, samples, targets, ridges, output_scale, smoother.trend.kind)

    def mean(self, X: Array) -> Array:
        """Mean a(x)'y0 (eq. 13a) at the rows of X, for every ridge: (r, m, n_y)."""
        X = as_rows("X", X)
        xp, coefficients, r = arrays.namespace(self._root), self._shrunk_coordinates(), len(self.ridges)
        means = [matmul(self._features(X[part, :]), coefficients) for part in self._chunks(X)]
        outputs = xp.reshape(xp.concat(means), (X.shape[0], r, self.targets.shape[1]))
        outputs = xp.permute_dims(outputs, (1, 0, 2))
        if self.trend.kind:
            outputs = outputs + self.trend(self._like(X)) @ self._like(self._trend_coefficients)
        return outputs * self._like(self.output_scale)

    def variances(self, X: Array) -> tuple[Array, Array]:
        """Model part P2 and noise gain |a|^2 for every ridge, both (r, m); the noise part is V = s2 |a|^2 (eq. 13b)."""
        X = self._like(as_rows("X", X))
        parts = [self._forms(self._features(X[a, :]), self.trend(X[a, :])) for a in self._chunks(X)]
        explained, gain = (
            arrays.namespace(X).concat(list(part), axis=1) for part in zip(*parts, strict=True)
        )
        # P2 = sigma_GP^2 - rho^2 |a|^2
        model = self.kernel.diag(X) - explained - self._like(self.ridges[:, None]) * gain
        return arrays.positive_part(model), gain

    def log_likelihood(self) -> FloatArray:
        """Log density of the targets under a Gaussian process whose noise variance is the ridge, for every ridge: (r,).

        It is summed over outputs, whose scales multiply to 1. The trend's coefficients maximize it.
        """
        (n, n_outputs), n_places = self.targets.shape, self.samples.n_places
        log_determinant = (n - n_places) * np.log(self.ridges) - np.sum(np.log(self._inverses), axis=0)
        quadratic = np.einsum("urk,urk,ur->r", *[self._residual_coordinates] * 2, self._inverses)
        quadratic = quadratic + np.sum(self._within**2) / self.ridges
        likelihood: FloatArray = -0.5 * (quadratic + n_outputs * (log_determinant + n * np.log(2 * np.pi)))
        return likelihood

    def leave_one_out(self) -> tuple[Array, Array, Array]:
        """Residuals y0_i - mean (r, D, n_y), model part P2 and noise gain |a|^2 (r, D), each sample left out in turn."""
        r, index, ridges = len(self.ridges), self.samples.index, self.ridges[:, None]
        parts = []
        for part in self._chunks(self._vectors):
            rows = arrays.contiguous(self._vectors[:, part].T)
            none = self._like(np.zeros((rows.shape[0], self._information.shape[1])))
            parts.append((*self._forms(rows, none), matmul(rows * rows, self._like(self._inverses)).T))
        sums, squares, plain = (
            np.concatenate([arrays.as_numpy(form) for form in forms], axis=1)[:, index]
            for forms in zip(*parts, strict=True)
        )
        # Q of the samples acts as 1/rho^2 across the means of the places: (Q^p)_ii = (sums_p + (n - 1)/rho^2p) / n
        n = self._counts[index]
        a, a2 = (sums + (n - 1) / ridges) / n, (squares + (n - 1) / ridges**2) / n
        check_others_determine(
            self.trend, np.min(a * n / (plain + (n - 1) / ridges), axis=0), np.ones(len(n))
        )
        gain = np.maximum(a2 / a**2 - 1, 0.0)
        model = np.maximum(1 / a - ridges - ridges * gain, 0.0)

        rows = (
            matmul(arrays.contiguous(self._shrunk_coordinates().T), self._vectors) / self._root
        )  # (r n_y, U)
        dual = arrays.as_numpy(rows).reshape(r, -1, len(self._counts)).transpose(0, 2, 1)[:, index]
        residual = (dual + self._within / ridges[:, :, None]) / a[:, :, None] * self.output_scale
        return self._like(residual), self._like(model), self._like(gain)

    def _like(self, values: Any) -> Array:
        """Values in the library and precision of the places."""
        return arrays.like(values, self._root)

    def _features(self, X: Array) -> Array:
        """E'N^1/2 k(x) as rows, (m, U)."""
        cross = self._cross(self._like(X))
        cross *= self._root
        return matmul(cross, self._vectors, transpose_b=True)

    def _forms(self, features: Array, basis: Array) -> tuple[Array, Array]:
        """k'Ak - d'(H'AH)^-1 d with d = h - H'A k, and |a|^2, both (r, m), from features (m, U) and h(x), (m, q)."""
        r, m = len(self.ridges), features.shape[0]
        sums = matmul(features * features, self._like(np.hstack([self._inverses, self._inverses**2]))).T
        explained, gain = sums[:r, :], sums[r:, :]
        if self.trend.kind:
            products = arrays.as_numpy(matmul(features, self._like(self._shrunk_basis)))
            # B'D k and B'D^2 k, (r, q, m)
            first, second = products.reshape(m, 2, r, -1).transpose(1, 2, 3, 0)
            d = arrays.as_numpy(basis).T - first
            s = np.linalg.solve(self._information, d)
            explained = explained - self._like(np.sum(d * s, axis=1))
            gain = gain + self._like(np.sum(s * (2 * second + self._squared_information @ s), axis=1))
        return explained, gain

    def _shrunk_coordinates(self) -> Array:
        """D (E'N^1/2 ybar - B beta), (U, r n_y)."""
        shrunk = self._inverses[:, :, None] * self._residual_coordinates
        return self._like(shrunk.reshape(len(shrunk), -1))

    def _chunks(self, X: Array) -> list[slice]:
        width = max(max(2, self.targets.shape[1]) * len(self.ridges), self._shrunk_basis.shape[1])
        step = max(1, arrays.chunk(X, CHUNK) // max(width, self.samples.n_places))
        return arrays.slices(X.shape[0], step) or [slice(0, 0)]


def _checked_ridges(ridges: ArrayLike) -> FloatArray:
    values = np.array(ridges, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(
            f"ridges must be a one-dimensional sequence of positive finite numbers; got {ridges!r}"
        )
    return values
