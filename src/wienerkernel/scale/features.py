"""Weights from features: kernel ridge regression in the span of inducing points, with its error outside of it.

With features f = [phi, h], F of all rows over their noise scales, C = F'F + rho^2 diag(1, 0) and z = C^-1 f(x), the
weights are a = Fz. They are those of a model with kernel phi'phi, but its variance would be far too small. P2 of the
weights under the kernel itself has a part within the span, rho^4 |z_phi|^2, and a part outside of it,
E_w |R_w(x) - a'R_w(X)|^2 with the residual R_w of psi_w after projection onto the features, which frequencies drawn at
random estimate without bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from .._typing import FloatArray, IntArray
from ..backend.linalg import NotPositiveDefiniteError
from ..kernels import Kernel
from ..kernels.spectral import frequencies, prior_variance
from ..smoother.trend import check_determined
from .inducing import Inducing
from .neighbors import Evaluation, LeftOut, NoiseColumns, Shared
from .sums import Audit, Sums

__all__ = ["FeatureSmoother", "choose_audit"]

CANDIDATES, BLOCK = 40_000, 4000
"""Frequencies among which those of the audit are drawn, and how many are evaluated at a time."""
UNIFORM = 0.1
"""Part of the audit that is drawn uniformly, so that no weight is large."""
ROUNDING = 1e-8
"""Variance outside the span, relative to k(x, x), that is as large as its rounding error."""
TRIAL_ROWS = 100
"""Rows on which the residual energy of the candidates is computed."""


def choose_audit(inducing: Inducing, X: FloatArray, number: int, generator: np.random.Generator) -> Audit:
    """Frequencies of the kernel, drawn in proportion to the root of their energy outside the span of the features."""
    kernel, d = inducing.kernel, X.shape[1]
    variance = prior_variance(kernel)
    drawn = frequencies(kernel, CANDIDATES, d, generator)
    trial = X[generator.permutation(len(X))[:TRIAL_ROWS]]
    phi = inducing(trial)[:, : inducing.number]
    onto_points = solve_triangular(inducing.factor, phi.T, lower=True, trans="T").T
    blocks = (Audit(drawn[i : i + BLOCK], np.ones(1), variance) for i in range(0, CANDIDATES, BLOCK))
    psi = Audit.__call__
    if inducing.deferred:  # the digits suffice: probabilities need few
        psi, onto_points = Audit.single, onto_points.astype(np.float32)
    rest = (_energy(psi(block, trial) - onto_points @ psi(block, inducing.points)) for block in blocks)
    # 1e-300: where the features span everything, all are equally likely
    energy = np.sqrt(np.concatenate([values.mean(axis=0, dtype=float) for values in rest])) + 1e-300
    probability = (1 - UNIFORM) * energy / energy.sum() + UNIFORM / CANDIDATES
    chosen = generator.choice(CANDIDATES, number, p=probability / probability.sum())
    return Audit(drawn[chosen], 1 / (CANDIDATES * probability[chosen]), variance)


@dataclass(frozen=True)
class FeatureSmoother(Shared):
    """A linear smoother from sums over the data, where ``ridge`` is rho^2, the regularizer of a row of noise scale 1."""

    inducing: Inducing
    audit: Audit
    sums: Sums
    ridge: float

    @cached_property
    def _penalty(self) -> FloatArray:
        """Diagonal of rho^2 diag(1, 0), (p + q,)."""
        return self.ridge * (np.arange(len(self.sums.gram)) < self.inducing.number)

    @cached_property
    def _factor(self) -> tuple[FloatArray, bool]:
        matrix = self.sums.gram.copy()
        matrix.flat[:: len(matrix) + 1] += self._penalty
        p, n = self.inducing.number, self.sums.n
        try:
            factor = cho_factor(matrix, lower=True, overwrite_a=True)
        except np.linalg.LinAlgError:
            check_determined(self.sums.gram[p:, p:], n, "rows of X")
            raise NotPositiveDefiniteError(f"the ridge {self.ridge:g} is too small for {n} rows") from None
        own = np.tril(factor[0][p:, p:])
        check_determined(own @ own.T, n, "rows of X")
        return factor

    def _solve(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Features f at the rows of X, and z, (m, p + q)."""
        f = self.inducing(X)
        return f, cho_solve(self._factor, f.T).T

    @cached_property
    def coefficients(self) -> FloatArray:
        """Coefficients of the mean in terms of the features, (p + q, n_y)."""
        return cho_solve(self._factor, self.sums.targets)

    @cached_property
    def _projected(self) -> tuple[FloatArray, FloatArray]:
        """L^-1 psi(Z), (p, 2M), and F'R_w of the data, (p + q, 2M)."""
        inducing, sums = self.inducing, self.sums
        at_points = solve_triangular(inducing.factor, self.audit(inducing.points), lower=True)
        return at_points, sums.audit - sums.gram[:, : inducing.number] @ at_points

    @property
    def samples(self) -> NoiseColumns:
        """The noise of the random rows, each of which stands for as many."""
        rows = self.sums.rows
        return NoiseColumns(rows.X, rows.scale, self.sums.n)

    @property
    def targets(self) -> FloatArray:
        """Targets of the random rows, (R, n_y)."""
        return self.sums.rows.y

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.inducing.kernel

    def predict(self, X: FloatArray) -> Evaluation:
        """Predict at the rows of X (m, d)."""
        f, z = self._solve(X)
        gain, model, error, rest = self._parts(X, f, z, np.ones(len(X)))
        total = self.ridge * gain + model
        return Evaluation(
            f @ self.coefficients,
            self._columns(z, gain),
            gain,
            model,
            np.clip(total - self._augmented(X, f, z, rest), 0.0, model),
            error,
        )

    def left_out(self, rows: IntArray) -> LeftOut:
        """Residuals of some of the random rows, each predicted from all other samples, and the law of these.

        Without row i, C loses f_i f_i' over the squared noise scale; z grows by a factor (Sherman and Morrison 1950).
        """
        own = self.sums.rows
        X, y, scale = own.X[rows], own.y[rows], own.scale[rows]
        f, z = self._solve(X)
        leverage = np.einsum("ij,ij->i", f, z) / scale**2
        factor = 1 / (1 - leverage)
        z *= factor[:, None]
        gain, model, *_ = self._parts(X, f, z, factor)
        columns = self._columns(z, gain, rows)
        residual = (y - f @ self.coefficients) * factor[:, None]
        return LeftOut.of(residual, columns, self.samples.count, scale, model)

    def _parts(
        self, X: FloatArray, f: FloatArray, z: FloatArray, own: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Noise gain, P2, its standard error and the variance outside the span, (m,); ``own`` as in `_outside`."""
        phi, inside = f[:, : self.inducing.number], z[:, : self.inducing.number]
        norm = np.einsum("ij,ij->i", inside, inside)
        gain = np.maximum(np.einsum("ij,ij->i", f, z) - self.ridge * norm, 0.0)
        rest = np.maximum(self.audit.variance - np.einsum("ij,ij->i", phi, phi), 0.0)
        outside, error = self._outside(X, phi, z, rest, own)
        return gain, self.ridge**2 * norm + outside, error, rest

    def _outside(
        self, X: FloatArray, phi: FloatArray, z: FloatArray, rest: FloatArray, factor: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Part of P2 outside the span, with |R_w(x)|^2, whose mean ``rest`` is known, as a control variate.

        R_w(x) has a factor (m,) other than 1 where x is a sample that is left out, but is part of the sums.
        """
        at_points, of_data = self._projected
        own = self.audit(X) - phi @ at_points
        weights = self.audit.weights
        own, error = (_energy(values) * weights for values in (own, factor[:, None] * own - z @ of_data))
        own_deviation = own - own.mean(axis=1, keepdims=True)
        deviation = error - error.mean(axis=1, keepdims=True)
        # at an inducing point |R_w(x)|^2 consists of rounding errors
        spread = np.sum(own_deviation**2, axis=1) + len(weights) * (ROUNDING * self.audit.variance) ** 2
        slope = np.einsum("ij,ij->i", own_deviation, deviation) / spread
        gap = own.mean(axis=1) - rest
        value = error.mean(axis=1) - slope * gap
        # a few frequencies may have most of the energy: each is as far off as if it had been left out (HC3)
        leverage = 1 / len(weights) + own_deviation**2 / spread[:, None]
        deviation -= slope[:, None] * own_deviation
        share = 1 / len(weights) - (gap / spread)[:, None] * own_deviation
        variance = np.sum((share * deviation / np.maximum(1 - leverage, ROUNDING)) ** 2, axis=1)
        # the candidates are a random sample of all frequencies themselves
        combined = error - slope[:, None] * own
        apart = combined / weights - combined.mean(axis=1, keepdims=True)
        variance += np.mean(weights * apart**2, axis=1) / CANDIDATES
        return np.maximum(value, 0.0), np.sqrt(variance)

    def evaluate_jointly(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean (m, n_y), weights (m, J) and the covariance of f(x) - a(x)'f(X), (m, m); its diagonal estimates P2."""
        f, z = self._solve(X)
        inside = self.ridge * z[:, : self.inducing.number]
        at_points, of_data = self._projected
        error = self.audit(X) - f[:, : self.inducing.number] @ at_points - z @ of_data
        weights = np.tile(self.audit.weights, 2) / len(self.audit.weights)
        found = self.predict(X)
        return found.mean, found.columns, inside @ inside.T + (error * weights) @ error.T

    def _columns(self, z: FloatArray, gain: FloatArray, without: IntArray | None = None) -> FloatArray:
        """Weights of a random sample of the rows, each for as many rows, scaled so that their squares sum to ``gain``.

        Each of the m weights may be ``without`` one of the rows, (m,).
        """
        rows = self.sums.rows
        columns = z @ (self.inducing(rows.X) / rows.scale[:, None]).T
        if without is not None:
            columns[np.arange(len(columns)), without] = 0.0
        norm = self.samples.count * np.einsum("ij,ij->i", columns, columns)
        columns *= np.sqrt(gain / np.where(norm > 0, norm, 1.0))[:, None]
        return np.asarray(columns)

    def _augmented(self, X: FloatArray, f: FloatArray, z: FloatArray, rest: FloatArray) -> FloatArray:
        """V + P2 if x were an inducing point itself: an estimate of that of the exact weights, (m,).

        The sums of the feature that x adds come from the random rows.
        """
        rows, share = self.sums.rows, self.sums.n / len(self.sums.rows.keys)
        F = self.inducing(rows.X)
        root = np.sqrt(np.maximum(rest, 1e-300))
        new = (
            self.inducing.kernel(X, rows.X) - f[:, : self.inducing.number] @ F[:, : self.inducing.number].T
        ) / (root[:, None] * rows.scale)
        cross = share * (new @ (F / rows.scale[:, None]))
        square = share * np.einsum("ij,ij->i", new, new)
        explained = np.einsum("ij,ij->i", cross, cho_solve(self._factor, cross.T).T)
        pivot = np.maximum(square - explained, 0.0) + self.ridge
        gap = root - np.einsum("ij,ij->i", cross, z)
        return np.asarray(self.ridge * (np.einsum("ij,ij->i", f, z) + gap**2 / pivot))


def _energy(values: FloatArray) -> FloatArray:
    """Sums of squares of the cosine and the sine part: (m, M) from (m, 2M)."""
    half = values.shape[1] // 2
    return np.asarray(values[:, :half] ** 2 + values[:, half:] ** 2)
