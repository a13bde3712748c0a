"""Mean, variances, likelihood and leave-one-out for a grid of ridges, from one eigendecomposition.

With n_u samples at place u, K + rho^2 N^-1 = N^-1/2 (N^1/2 K N^1/2 + rho^2 I) N^-1/2. In the eigenbasis E of
N^1/2 K N^1/2, with eigenvalues lambda, the ridge is a division by lambda + rho^2, and the rest are matrix products.
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
    ) -> None:
        self.kernel, self.samples, self.targets = kernel, samples, targets
        self.output_scale = np.ones(targets.shape[1]) if output_scale is None else output_scale
        self.ridges = _checked_ridges(ridges)
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

    @classmethod
    def from_smoother(
        cls, smoother: Smoother, ridges: ArrayLike, output_scale: FloatArray | None = None
    ) -> RidgePath:
        """Path for the data and the kernel of a smoother without a trend."""
        if smoother.trend.kind is not None:
            raise ValueError(f"trend must be None for a path of ridges; got {smoother.trend.kind!r}")
        return cls(smoother.kernel, smoother.samples, smoother.targets, ridges, output_scale)

    def mean(self, X: Array) -> Array:
        """Mean a(x)'y0 (eq. 13a) at the rows of X, for every ridge: (r, m, n_y)."""
        X = as_rows("X", X)
        xp, coefficients, r = arrays.namespace(self._root), self._shrunk_coordinates(), len(self.ridges)
        means = [matmul(self._features(X[part, :]), coefficients) for part in self._chunks(X)]
        outputs = xp.reshape(xp.concat(means), (X.shape[0], r, self.targets.shape[1]))
        return xp.permute_dims(outputs, (1, 0, 2)) * self._like(self.output_scale)

    def variances(self, X: Array) -> tuple[Array, Array]:
        """Model part P2 and noise gain |a|^2 for every ridge, both (r, m); the noise part is V = s2 |a|^2 (eq. 13b)."""
        X = as_rows("X", X)
        xp, powers, r = arrays.namespace(self._root), self._powers(), len(self.ridges)
        sums = []
        for part in self._chunks(X):
            features = self._features(X[part, :])
            features *= features
            sums.append(matmul(features, powers))
        both = xp.concat(sums).T
        # P2 = sigma_GP^2 - rho^2 |a|^2
        model = self.kernel.diag(self._like(X)) - both[:r, :] - self._like(self.ridges[:, None]) * both[r:, :]
        return arrays.positive_part(model), both[r:, :]

    def log_likelihood(self) -> FloatArray:
        """Log density of the targets under a Gaussian process whose noise variance is the ridge, for every ridge: (r,).

        It is summed over outputs, whose scales multiply to 1.
        """
        (n, n_outputs), n_places = self.targets.shape, self.samples.n_places
        log_determinant = (n - n_places) * np.log(self.ridges) - np.sum(np.log(self._inverses), axis=0)
        quadratic = (
            np.sum(np.square(arrays.as_numpy(self._coordinates), dtype=np.float64), axis=1) @ self._inverses
            + np.sum(self._within**2) / self.ridges
        )
        likelihood: FloatArray = -0.5 * (quadratic + n_outputs * (log_determinant + n * np.log(2 * np.pi)))
        return likelihood

    def leave_one_out(self) -> tuple[Array, Array, Array]:
        """Residuals y0_i - mean (r, D, n_y), model part P2 and noise gain |a|^2 (r, D), each sample left out in turn."""
        r, index, ridges = len(self.ridges), self.samples.index, self.ridges[:, None]
        xp, powers = arrays.namespace(self._root), self._powers()
        columns = (arrays.contiguous(self._vectors[:, part].T) for part in self._chunks(self._vectors))
        sums = arrays.as_numpy(xp.concat([matmul(rows * rows, powers) for rows in columns])).T
        # A of the samples acts as 1/rho^2 across the means of the places: (A^p)_ii = (sums_p + (n - 1)/rho^2p) / n
        n = self._counts[index]
        a = (sums[:r, index] + (n - 1) / ridges) / n
        a2 = (sums[r:, index] + (n - 1) / ridges**2) / n
        gain = np.maximum(a2 / a**2 - 1, 0.0)
        model = np.maximum(1 / a - ridges - ridges * gain, 0.0)

        dual = (
            matmul(arrays.contiguous(self._shrunk_coordinates().T), self._vectors) / self._root
        )  # (r n_y, U)
        dual = (
            arrays.as_numpy(dual).reshape(r, -1, len(self._counts)).transpose(0, 2, 1)[:, index]
        )  # per sample
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

    def _powers(self) -> Array:
        """1 / (lambda + rho^2) and its square, (U, 2 r)."""
        return self._like(np.hstack([self._inverses, self._inverses**2]))

    def _shrunk_coordinates(self) -> Array:
        """E'N^1/2 ybar / (lambda + rho^2), (U, r n_y)."""
        shrunk = self._like(self._inverses)[:, :, None] * self._coordinates[:, None, :]
        return arrays.namespace(shrunk).reshape(shrunk, (shrunk.shape[0], -1))

    def _chunks(self, X: Array) -> list[slice]:
        width = max(2, self.targets.shape[1]) * len(self.ridges)
        step = max(1, arrays.chunk(X, CHUNK) // max(width, self.samples.n_places))
        return arrays.slices(X.shape[0], step) or [slice(0, 0)]


def _checked_ridges(ridges: ArrayLike) -> FloatArray:
    values = np.array(ridges, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(
            f"ridges must be a one-dimensional sequence of positive finite numbers; got {ridges!r}"
        )
    return values
