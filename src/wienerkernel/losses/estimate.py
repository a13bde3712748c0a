"""The estimate for a convex loss, and its law: by bootstrap, by its influence function, or by the lifted problem (9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._typing import FloatArray
from ..noise import Noise, Residuals
from .convex import Curve, Loss, NegativeLogDensity, Pinball
from .coordinates import Coordinates, Observed
from .posterior import CoordinatePosterior
from .score import Score
from .solver import Solution, minimize_loss
from .weights import DrawnWeights, InfluenceWeights, Weights

__all__ = ["LossPosterior", "fit_loss", "spectrum"]

ATOMS = 512
"""Values that stand for the law of psi(M - c), unless it takes two."""


class LossPosterior(CoordinatePosterior):
    """The estimate for a convex loss, with the largest violation ``kkt`` of the optimality conditions.

    Its noise part is the variance of its law: that of the ``draws`` of the weights (N, r + q), or to first order in the
    noise without them. Its model part is that of the linear smoother with the same curvature: lam / h is the noise
    variance of squared loss that corresponds to this loss.

    Examples
    --------
    >>> from wienerkernel import WienerKernelRegressor
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]
    >>> model = WienerKernelRegressor(noise="laplace()", loss="absolute", tuning=None, random_state=0).fit(X, y)
    >>> model.posterior_.kkt < 1e-10
    True
    """

    laws = ("estimate", "function", "observation")

    def __init__(
        self,
        setting: str,
        noise: Noise,
        coordinates: Coordinates,
        observed: Observed,
        estimate: FloatArray,
        draws: FloatArray | None,
        *,
        loss: Loss,
        score: Score,
        lam: float,
        kkt: float,
    ) -> None:
        self.loss, self.score, self.lam, self.kkt = loss, score, lam, kkt
        self._smoother = _information(coordinates, observed, lam / score.slope)
        weights: Weights
        if draws is None:
            phi = coordinates.phi[observed.index] / observed.scale[:, None]
            slopes = cho_solve(self._smoother, phi.T)
            weights = InfluenceWeights(estimate, slopes, _law_of_psi(loss.curve(noise), noise, score))
        else:
            weights = DrawnWeights(draws)
        super().__init__(setting, noise, coordinates, observed, estimate, weights)

    def normal_root(self, phi: FloatArray) -> FloatArray:
        """Rows whose squared lengths, with the rest, are the model part: rho^2 D^(1/2) C^-1 phi."""
        ridge = self.lam / self.score.slope
        return np.asarray(ridge * cho_solve(self._smoother, phi.T).T * np.sqrt(self.coordinates.precision))

    def quantile_curves(self, X: FloatArray, taus: FloatArray) -> FloatArray:
        """Quantiles of observations at the rows of X by the pinball loss for each tau, (m, k), increasing in tau.

        Curves that cross are sorted, which brings none of them farther from the true ones (Chernozhukov et al. 2010).
        """
        levels, position = np.unique(np.ravel(taus).astype(float), return_inverse=True)
        phi = self.coordinates.features(X)[0]
        columns = []
        for tau in levels:
            curve = Pinball(float(tau)).curve(self.noise)
            solution = _solve(self.coordinates, self.observed, curve, self.lam, self.observed.y[:, None], 0.0)
            columns.append(phi @ solution.w[:, 0])
        found = np.stack(columns, axis=1)
        curves = found if self.transform is None else self.transform.inverse(found)
        return np.asarray(np.sort(curves, axis=1)[:, position])


def fit_loss(
    coordinates: Coordinates,
    observed: Observed,
    noise: Noise,
    loss: Loss,
    *,
    setting: str,
    ridge: float | None,
    generator: Any,
) -> LossPosterior:
    """The estimate for a loss and its law; without a ridge, lam is E psi^2 / h: lam / h is the asymptotic variance."""
    curve, y = loss.curve(noise), observed.y[:, None]
    score = Score.of(curve, noise, spectrum(coordinates, observed))
    if isinstance(loss, NegativeLogDensity):  # E psi' = E psi^2
        score = replace(score, slope=score.square)
    lam = score.lam if ridge is None else ridge
    solution = _solve(coordinates, observed, curve, lam, y, score.center)
    estimate, draws = solution.w[:, 0], None
    if loss.law != "influence":
        new = observed.scale[:, None] * noise.rvs((len(y), loss.n_draws), random_state=generator)
    if loss.law == "lifted":
        draws = _solve(coordinates, observed, curve, lam, y - new, 0.0).w.T
    elif loss.law == "bootstrap":
        # reflected about the smoothed estimate: what the smoother takes away from the estimate is in the model part
        fitted = coordinates.phi @ estimate
        weighted = coordinates.phi.T @ (observed.per_place(observed.scale**-2) * fitted)
        smoothed = cho_solve(_information(coordinates, observed, lam / score.slope), weighted)
        y_new = fitted[observed.index, None] + new
        draws = estimate + smoothed - _solve(coordinates, observed, curve, lam, y_new, score.center).w.T
    kkt = float(solution.kkt[0])
    return LossPosterior(
        setting, noise, coordinates, observed, estimate, draws, loss=loss, score=score, lam=lam, kkt=kkt
    )


def _solve(
    coordinates: Coordinates,
    observed: Observed,
    curve: Curve,
    lam: float,
    y: FloatArray,
    center: float,
) -> Solution:
    """Minimizers for the columns of y, (n, b), in units of the noise scales."""
    phi = coordinates.phi[observed.index] / observed.scale[:, None]
    return minimize_loss(phi, coordinates.precision, y / observed.scale[:, None] - center, curve, lam)


def _law_of_psi(curve: Curve, noise: Noise, score: Score) -> Residuals:
    """The law of psi(M - c) / h, of mean 0."""
    if curve.is_step:
        below = float(noise.cdf(score.center + curve.r[0]))
        values, probabilities = curve.u, np.array([below, 1 - below])
    else:
        at = noise.ppf((np.arange(ATOMS) + 0.5) / ATOMS) - score.center
        values, probabilities = np.interp(at, curve.r, curve.u), np.full(ATOMS, 1 / ATOMS)
    return Residuals((values - probabilities @ values) / score.slope, probabilities)


def _information(coordinates: Coordinates, observed: Observed, ridge: float) -> Any:
    """Cholesky factorization of Phi'S^-2 Phi + ridge D."""
    gram = coordinates.gram(observed.per_place(observed.scale**-2))
    return cho_factor(gram + ridge * np.diag(coordinates.precision), lower=True)


def spectrum(coordinates: Coordinates, observed: Observed) -> FloatArray:
    """Eigenvalues of the kernel matrix of the samples in units of their noise scales, (n,)."""
    n, r = len(observed.y), len(coordinates.pivots)
    values = np.linalg.eigvalsh(coordinates.gram(observed.per_place(observed.scale**-2))[:r, :r])
    return np.concatenate([np.maximum(values, 0.0), np.zeros(n)])[:n]
