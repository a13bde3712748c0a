"""Data, kernel and ridge become weights: factor once, then everything is a function of a(x).

For regulariser R (rho^2 I in the paper) and weights a = (K + R)^-1 k(x), the mean is a'y0 (eq. 13a), the noise part
of the variance is s2 |L'a|^2 (13b) and the model part is P2 = k(x,x) - 2 a'k + a'Ka. With a trend of basis functions
h, the weights are those of universal kriging, a = A k + A H (H'AH)^-1 (h - H'A k): still linear in y, so the rest
holds as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ._typing import FloatArray
from .kernels import Kernel, gram
from .linalg import (
    NotPositiveDefiniteError,
    cholesky,
    inverse_from_cholesky,
    matmul,
    solve_lower,
    solve_lower_transposed,
)
from .samples import Samples

__all__ = ["Smoother", "Trend"]

CHUNK = 2**22  # kernel values of a chunk of queries: 32 MiB


class Smoother:
    """A linear smoother, conditioned on data.

    Parameters
    ----------
    kernel : Kernel
    samples : Samples
        Places of the data, regulariser R and noise scale L.
    targets : ndarray of shape (D, n_y)
        y0 = y - E M, the samples without the mean of their noise.
    trend : {None, "constant", "linear"}

    Attributes
    ----------
    places : ndarray of shape (U, d)
    dual : ndarray of shape (U, n_y)
        Coefficients of the mean in terms of k(x).

    Examples
    --------
    >>> from wienerkernel import RBF
    >>> X = np.array([[0.0], [1.0]])
    >>> smoother = Smoother(RBF(1.0), Samples.collapse(X, np.ones(2), np.ones(2)), np.array([[0.0], [1.0]]))
    >>> model, gain = smoother.variances(X)
    >>> bool(np.allclose(model + gain, smoother.posterior_variance(X)))
    True
    """

    def __init__(
        self, kernel: Kernel, samples: Samples, targets: FloatArray, trend: str | None = None
    ) -> None:
        self.kernel = kernel
        self.samples = samples
        self.targets = targets
        self.places = samples.points
        self.trend = Trend(trend, self.places)
        self.factor = cholesky(_plus(gram(kernel, self.places), samples.regulariser))
        self._lh = solve_lower(
            self.factor, np.ascontiguousarray(self.trend(self.places).T)
        )  # L^-1 H, as rows
        self._information = self._trend_information()
        means = np.ascontiguousarray(samples.means(targets).T)
        whitened = solve_lower(self.factor, means.copy())
        self.trend_coefficients = np.linalg.solve(self._information, self._lh @ whitened.T)  # (q, n_y)
        whitened -= self.trend_coefficients.T @ self._lh
        self._quadratic = float(np.sum(whitened**2))  # ybar' Q ybar
        self.dual = np.ascontiguousarray(solve_lower_transposed(self.factor, whitened).T)

    def _trend_information(self) -> FloatArray:
        """H'AH, refused where the places do not determine the trend."""
        information = self._lh @ self._lh.T
        if len(information) and np.linalg.cond(information) > 1e12:
            msg = (
                f"the trend has {len(information)} coefficients, which {self.samples.n_places} different rows of X do "
                "not determine: use trend='constant' or trend=None, or add rows"
            )
            raise NotPositiveDefiniteError(msg)
        return information

    def _chunks(self, X: FloatArray) -> Iterator[slice]:
        step = max(1, CHUNK // self.samples.n_places)
        for start in range(0, len(X), step):
            yield slice(start, start + step)

    def mean(self, X: FloatArray) -> FloatArray:
        """Mean a(x)'y0 at the rows of X, (m, n_y) (eq. 13a)."""
        result = self.trend(X) @ self.trend_coefficients
        for part in self._chunks(X):
            result[part] += matmul(self.kernel(X[part], self.places), self.dual)
        return result

    def _whiten(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """v = L^-1 k(x) as rows (m, U), the trend's mismatch d = h - H'A k (m, q), and (H'AH)^-1 d."""
        v = solve_lower(self.factor, np.ascontiguousarray(self.kernel(X, self.places)))
        mismatch = self.trend(X) - v @ self._lh.T
        return v, mismatch, np.linalg.solve(self._information, mismatch.T).T

    def _weigh(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights b of the places (m, U), and the posterior variance k(x,x) - k'Ak + d'(H'AH)^-1 d (m,)."""
        v, mismatch, solved = self._whiten(X)
        variance = self.kernel.diag(X) - np.einsum("ij,ij->i", v, v) + np.einsum("ij,ij->i", mismatch, solved)
        v += solved @ self._lh
        return solve_lower_transposed(self.factor, v), variance

    def weights(self, X: FloatArray) -> FloatArray:
        """Weights of the places' means at the rows of X, (m, U)."""
        return self._weigh(X)[0]

    def posterior_variance(self, X: FloatArray) -> FloatArray:
        """Variance k(x,x) - k'Ak of a Gaussian process whose noise covariance is R, (m,) (eq. 2b)."""
        result = np.empty(len(X))
        for part in self._chunks(X):
            v, mismatch, solved = self._whiten(X[part])
            result[part] = self.kernel.diag(X[part]) - np.einsum("ij,ij->i", v, v)
            result[part] += np.einsum("ij,ij->i", mismatch, solved)
        return np.maximum(result, 0.0)

    def variances(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Model part P2 and noise gain |L'a|^2 at the rows of X, both (m,)."""
        model, gain = np.empty(len(X)), np.empty(len(X))
        for part in self._chunks(X):
            weights, variance = self._weigh(X[part])
            model[part] = variance - _quadratic_form(weights, self.samples.regulariser)
            gain[part] = _quadratic_form(weights, self.samples.gain)
        return np.maximum(model, 0.0), gain

    def model_covariance(self, X: FloatArray) -> FloatArray:
        """Prior covariance of f(x) - a(x)'f(X) between the rows of X, (m, m); its diagonal is P2."""
        v, mismatch, solved = self._whiten(X)
        covariance = self.kernel(X, X) - matmul(v, v, transpose_b=True) + mismatch @ solved.T
        v += solved @ self._lh
        weights = solve_lower_transposed(self.factor, v)
        return np.asarray(covariance - _times(weights, self.samples.regulariser) @ weights.T)

    def log_likelihood(self) -> float:
        """Log density of the targets under a Gaussian process with noise covariance R, summed over outputs.

        The trend's coefficients are at their best values (profile likelihood).
        """
        n, n_outputs = self.targets.shape
        log_determinant = 2 * np.sum(np.log(np.diagonal(self.factor)))
        quadratic = self._quadratic
        regulariser = self.samples.row_regulariser
        if regulariser.ndim == 1:
            log_determinant += np.sum(np.log(regulariser)) - np.sum(np.log(self.samples.regulariser))
            quadratic += float(np.sum(self._within**2 / regulariser[:, None]))
        return float(-0.5 * (quadratic + n_outputs * (log_determinant + n * np.log(2 * np.pi))))

    def log_likelihood_gradient(self) -> FloatArray:
        """Gradient of :meth:`log_likelihood` with respect to the kernel's ``theta``, (p,)."""
        n_outputs = self.targets.shape[1]
        sensitivity = matmul(self.dual, self.dual, transpose_b=True) - n_outputs * self.inverse
        return self.kernel.pullback(self.places, 0.5 * sensitivity, symmetric=True)

    @cached_property
    def _within(self) -> FloatArray:
        """Targets minus the mean of their place, (D, n_y)."""
        return np.asarray(self.targets - self.samples.means(self.targets)[self.samples.index])

    @cached_property
    def inverse(self) -> FloatArray:
        """A = (K + R)^-1 of the places, (U, U)."""
        return inverse_from_cholesky(self.factor)

    def leave_one_out(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What the smoother without sample i says about sample i, for all i, from one inverse.

        Returns
        -------
        residual : ndarray of shape (D, n_y)
            y0_i minus the mean at x_i.
        model, gain : ndarray of shape (D,)
            Model part P2 and noise gain |L'a|^2 at x_i.
        """
        projected = self.inverse  # Q = A - AH (H'AH)^-1 H'A
        if len(self._information):
            ah = solve_lower_transposed(self.factor, self._lh.copy())
            projected = projected - ah.T @ np.linalg.solve(self._information, ah)
        if self.samples.row_regulariser.ndim == 2:
            return self._leave_one_out_correlated(projected)
        return self._leave_one_out_collapsed(projected)

    def _leave_one_out_collapsed(self, projected: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Q of the samples from Q of the places, by the Woodbury identity.

        Q_ii = (1 - share_i) / r_i + share_i^2 Q_uu; off the diagonal share_i share_j Q_uv between places and
        share_i share_j (Q_uu - 1/R_u) within one.
        """
        index, share = self.samples.index, self.samples.share
        row_r, place_r = self.samples.row_regulariser, self.samples.regulariser
        place_q = np.diagonal(projected)
        diagonal = (1 - share) / row_r + share**2 * place_q[index]
        residual = (self._within / row_r[:, None] + share[:, None] * self.dual[index]) / diagonal[:, None]

        between, within = projected**2, (place_q - 1 / place_r) ** 2
        np.fill_diagonal(between, 0.0)

        def spread(place: FloatArray, row: FloatArray) -> FloatArray:
            """Sum over j != i of a_j^2 c_j, for c of the samples, collapsed and row by row."""
            others = (between @ place + within * place)[index] - within[index] * share**2 * row
            return np.asarray(np.maximum(others, 0.0) * share**2 / diagonal**2)

        model = 1 / diagonal - row_r - spread(place_r, row_r)
        return residual, np.maximum(model, 0.0), spread(self.samples.gain, self.samples.scale**2)

    def _leave_one_out_correlated(self, projected: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The noise of sample i tells of its neighbours' noise, but the estimate of f(x_i) must not use that.

        With cross-covariance K, not K + R, between f(x_i) and the others: a = -Q_i/Q_ii - (Q without i) R_i.
        """
        regulariser = self.samples.row_regulariser
        diagonal = np.diagonal(projected)
        off = regulariser - np.diag(np.diagonal(regulariser))
        leaked = matmul(projected, off)
        weights = projected * ((np.diagonal(leaked) - 1) / diagonal) - leaked  # column i: sample i left out
        np.fill_diagonal(weights, 0.0)
        weights = np.ascontiguousarray(weights.T)
        kernel = self.kernel(self.places, self.places)
        model = (
            np.diagonal(kernel)
            - 2 * np.einsum("ij,ij->i", weights, kernel)
            + _quadratic_form(weights, kernel)
        )
        residual = self.targets - weights @ self.targets
        return residual, np.maximum(model, 0.0), _quadratic_form(weights, self.samples.gain)


@dataclass(frozen=True)
class Trend:
    """Basis functions h of the trend: none, the constant, or the constant and the inputs.

    Parameters
    ----------
    kind : {None, "constant", "linear"}
    places : ndarray of shape (U, d)
        The inputs are centred and scaled by them, which changes the conditioning and nothing else.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0]])
    >>> Trend("linear", X)(X).tolist()
    [[1.0, -1.0], [1.0, 1.0]]
    """

    kind: str | None
    places: FloatArray

    def __post_init__(self) -> None:
        if self.kind not in (None, "constant", "linear"):
            msg = f"trend must be None, 'constant' or 'linear', got {self.kind!r}"
            raise ValueError(msg)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Values h(x) at the rows of X, (m, q)."""
        if self.kind == "linear":
            spread = self.places.std(axis=0)
            centred = (X - self.places.mean(axis=0)) / np.where(spread == 0, 1.0, spread)
            return np.column_stack([np.ones(len(X)), centred])
        return np.ones((len(X), int(self.kind == "constant")))


def _plus(matrix: FloatArray, covariance: FloatArray) -> FloatArray:
    """Add a covariance, given whole or by its diagonal, in place."""
    if covariance.ndim == 2:
        matrix += covariance
    else:
        matrix.flat[:: len(matrix) + 1] += covariance
    return matrix


def _times(weights: FloatArray, covariance: FloatArray) -> FloatArray:
    return matmul(weights, covariance) if covariance.ndim == 2 else weights * covariance


def _quadratic_form(weights: FloatArray, covariance: FloatArray) -> FloatArray:
    """b'Cb for each row b, with C given whole or by its diagonal."""
    return np.asarray(np.einsum("ij,ij->i", _times(weights, covariance), weights))
