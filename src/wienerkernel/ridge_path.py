"""One eigendecomposition serves every ridge: mean, variances, likelihood and leave-one-out for a whole grid.

With n_u samples at place u, K + rho^2 N^-1 = N^-1/2 (N^1/2 K N^1/2 + rho^2 I) N^-1/2. In the eigenbasis E of
N^1/2 K N^1/2, with eigenvalues lambda, the ridge is a division by lambda + rho^2, and the rest are matrix products.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from ._typing import FloatArray
from .kernels import Kernel, gram
from .linalg import NotPositiveDefiniteError, matmul
from .samples import Samples
from .smoother import Smoother

__all__ = ["RidgePath"]

CHUNK = 2**22  # entries of the largest array of a chunk of rows: 32 MiB


class RidgePath:
    """The smoothers of all ridges of a grid, from one eigendecomposition.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples
        Places of the data, with noise of scale 1. Its regulariser, the same for all samples, is replaced by the ridges.
    targets : ndarray of shape (D, n_y)
        y0 = y - E M, the samples without the mean of their noise.
    ridges : array-like of shape (r,)
        Values of rho^2, positive.

    Attributes
    ----------
    ridges : ndarray of shape (r,)
    eigenvalues : ndarray of shape (U,)
        Of N^1/2 K N^1/2, in ascending order.

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

    def __init__(self, kernel: Kernel, samples: Samples, targets: FloatArray, ridges: ArrayLike) -> None:
        self.kernel, self.samples, self.targets = kernel, samples, targets
        self.ridges = _checked_ridges(ridges)
        if samples.scale.ndim == 2 or np.any(samples.scale != 1):
            raise ValueError(
                "samples must have noise of scale 1 for a path of ridges; got other or correlated noise"
            )
        if samples.row_regulariser.ndim == 2 or np.any(samples.row_regulariser != samples.row_regulariser[0]):
            raise ValueError("samples must have the same regulariser for a path of ridges; got several")
        self._counts = np.bincount(samples.index).astype(np.float64)
        self._root = np.sqrt(self._counts)

        matrix = gram(kernel, samples.points)
        matrix *= self._root[:, None]
        matrix *= self._root
        # The transpose is Fortran-ordered without a copy, and its upper triangle is our lower one.
        self.eigenvalues, vectors = eigh(matrix.T, lower=False, overwrite_a=True, driver="evd")
        if not self.eigenvalues[0] + self.ridges.min() > 0:
            raise NotPositiveDefiniteError(
                f"K has the eigenvalue {self.eigenvalues[0]:.3g}, so K + R is not positive definite for the ridge "
                f"{self.ridges.min():.3g}: raise the ridges, or check that the kernel is positive semi-definite"
            )
        self._vectors = np.ascontiguousarray(vectors)
        self._inverses = 1 / (self.eigenvalues[:, None] + self.ridges)  # (U, r)
        means = samples.means(targets)
        # E'N^1/2 ybar, (U, n_y)
        self._coordinates: FloatArray = matmul(np.ascontiguousarray(vectors.T), self._root[:, None] * means)
        self._within = np.asarray(targets - means[samples.index])

    @classmethod
    def from_smoother(cls, smoother: Smoother, ridges: ArrayLike) -> RidgePath:
        """The path through a fitted smoother.

        Parameters
        ----------
        smoother : Smoother
            Without trend, with noise of scale 1.
        ridges : array-like of shape (r,)

        Returns
        -------
        RidgePath
        """
        if smoother.trend.kind is not None:
            raise ValueError(f"trend must be None for a path of ridges; got {smoother.trend.kind!r}")
        return cls(smoother.kernel, smoother.samples, smoother.targets, ridges)

    def mean(self, X: FloatArray) -> FloatArray:
        """Mean a(x)'y0 (eq. 13a) for every ridge.

        Parameters
        ----------
        X : ndarray of shape (m, d)

        Returns
        -------
        ndarray of shape (r, m, n_y)
        """
        coefficients = self._shrunk_coordinates()
        result = np.empty((len(self.ridges), len(X), self.targets.shape[1]))
        for part in self._chunks(len(X), coefficients.shape[1]):
            means = matmul(self._features(X[part]), coefficients)
            result[:, part] = means.reshape(len(means), *result.shape[::2]).transpose(1, 0, 2)
        return result

    def variances(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Model part P2 and noise gain |a|^2 for every ridge; the noise part is V = s2 |a|^2 (eq. 13b).

        Parameters
        ----------
        X : ndarray of shape (m, d)

        Returns
        -------
        model : ndarray of shape (r, m)
        gain : ndarray of shape (r, m)
        """
        r = len(self.ridges)
        model, gain = np.empty((r, len(X))), np.empty((r, len(X)))
        powers = np.hstack([self._inverses, self._inverses**2])
        for part in self._chunks(len(X), 2 * r):
            features = self._features(X[part])
            sums = matmul(np.square(features, out=features), powers).T
            gain[:, part] = sums[r:]
            # P2 = sigma_GP^2 - rho^2 |a|^2
            model[:, part] = self.kernel.diag(X[part]) - sums[:r] - self.ridges[:, None] * sums[r:]
        return np.maximum(model, 0.0), gain

    def log_likelihood(self) -> FloatArray:
        """Log density of the targets under a Gaussian process whose noise variance is the ridge, for every ridge.

        Returns
        -------
        ndarray of shape (r,)
            Summed over outputs.
        """
        (n, n_outputs), n_places = self.targets.shape, self.samples.n_places
        log_determinant = (n - n_places) * np.log(self.ridges) - np.sum(np.log(self._inverses), axis=0)
        quadratic = (
            np.sum(self._coordinates**2, axis=1) @ self._inverses + np.sum(self._within**2) / self.ridges
        )
        likelihood: FloatArray = -0.5 * (quadratic + n_outputs * (log_determinant + n * np.log(2 * np.pi)))
        return likelihood

    def leave_one_out(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Residuals and variances of all samples, each left out in turn, for every ridge.

        Returns
        -------
        residual : ndarray of shape (r, D, n_y)
            y0_i minus the mean at x_i.
        model : ndarray of shape (r, D)
            Model part P2 at x_i.
        gain : ndarray of shape (r, D)
            Noise gain |a|^2 at x_i.
        """
        r, index, ridges = len(self.ridges), self.samples.index, self.ridges[:, None]
        powers = np.hstack([self._inverses, self._inverses**2])
        sums = np.empty((len(self._counts), 2 * r))
        for part in self._chunks(len(sums), 2 * r):
            sums[part] = matmul(self._vectors[part] ** 2, powers)
        # A of the samples acts as 1/rho^2 across the means of the places: (A^p)_ii = (sums_p + (n - 1)/rho^2p) / n
        n = self._counts[index]
        a = (sums.T[:r, index] + (n - 1) / ridges) / n
        a2 = (sums.T[r:, index] + (n - 1) / ridges**2) / n
        gain = np.maximum(a2 / a**2 - 1, 0.0)
        model = np.maximum(1 / a - ridges - ridges * gain, 0.0)

        dual = matmul(self._vectors, self._shrunk_coordinates()) / self._root[:, None]  # per sample
        dual = dual.reshape(len(dual), r, -1).transpose(1, 0, 2)[:, index]
        return (dual + self._within / ridges[:, :, None]) / a[:, :, None], model, gain

    def _features(self, X: FloatArray) -> FloatArray:
        """E'N^1/2 k(x) as rows, (m, U)."""
        return np.asarray(matmul(self.kernel(X, self.samples.points) * self._root, self._vectors))

    def _shrunk_coordinates(self) -> FloatArray:
        """E'N^1/2 ybar / (lambda + rho^2), (U, r n_y)."""
        shrunk = self._inverses[:, :, None] * self._coordinates[:, None, :]
        return np.asarray(shrunk.reshape(len(shrunk), -1))

    def _chunks(self, n_rows: int, width: int) -> Iterator[slice]:
        step = max(1, CHUNK // max(width, self.samples.n_places))
        return (slice(start, start + step) for start in range(0, n_rows, step))


def _checked_ridges(ridges: ArrayLike) -> FloatArray:
    values = np.array(ridges, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(
            f"ridges must be a one-dimensional sequence of positive finite numbers; got {ridges!r}"
        )
    return values
