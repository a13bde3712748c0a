"""The estimate for a convex loss, and its law: by bootstrap, by its influence function, or by the lifted problem (9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._typing import FloatArray
from ..law import LinearCombination
from ..law.mixed import MixedLaw
from ..noise import Noise, Residuals
from ..noise.level import Nodes
from .convex import Curve, Loss, NegativeLogDensity, Pinball
from .coordinates import Coordinates, Observed
from .posterior import AnyLaw, CoordinatePosterior, DrawnWeights, Weights
from .score import Score
from .solver import Solution, minimize_loss

__all__ = ["InfluenceWeights", "LossPosterior", "fit_loss", "influence_weights", "spectrum"]

ATOMS = 512
"""Values that stand for the law of psi(M - c), unless it takes two."""


@dataclass(frozen=True)
class InfluenceWeights:
    """w - sum_i z_i psi(M_i - c) / h to first order: the law of f around the estimate, approximately.

    Parameters
    ----------
    estimate : ndarray of shape (r,)
    root : ndarray of shape (r, n)
        The derivatives z_i of the estimate by the samples.
    psi : Residuals
        The law of psi(M - c) / h, of mean 0.
    """

    estimate: FloatArray
    root: FloatArray
    psi: Residuals

    @property
    def mean(self) -> FloatArray:
        """Mean of w."""
        return self.estimate

    def covariance(self, phi: FloatArray) -> FloatArray:
        """Covariance of phi'w, (m, m)."""
        a = phi @ self.root
        return np.asarray(self.psi.var() * a @ a.T)

    def variance(self, phi: FloatArray) -> FloatArray:
        """Variance of phi'w, (m,)."""
        return np.asarray(self.psi.var() * np.sum((phi @ self.root) ** 2, axis=1))

    def law(
        self, phi: FloatArray, normal_std: FloatArray, noise: Noise | None, scale: Nodes, verbose: bool
    ) -> AnyLaw:
        """The law of phi'w and independent variables, (m,): exact linear combinations."""
        loc, a = phi @ self.estimate, -phi @ self.root
        if noise is None:
            return LinearCombination(self.psi, a, loc=loc, normal_std=normal_std, verbose=verbose)
        scales, chances = scale
        weights = [np.broadcast_to(a, (len(scales), *a.shape)), scales[..., None]]
        law = LinearCombination([self.psi, noise], weights, loc=loc, normal_std=normal_std, verbose=verbose)
        return MixedLaw(law, chances)

    def rvs(self, size: int, generator: Any) -> FloatArray:
        """Draws of w, (size, r)."""
        psi = self.psi.rvs((size, self.root.shape[1]), random_state=generator)
        return np.asarray(self.estimate - psi @ self.root.T)


class LossPosterior(CoordinatePosterior):
    """The estimate for a convex loss.

    Its noise part is the variance of its law. Its model part is that of the linear smoother with the same curvature, whose
    ridge is lam / h.

    Parameters
    ----------
    setting, noise, coordinates, estimate, weights
        As in :class:`CoordinatePosterior`.
    loss : Loss
    score : Score
    ridge : float
        lam / h, the noise variance of squared loss that corresponds to this loss.
    kkt : float
        Largest violation of the optimality conditions.
    observed : Observed

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
        estimate: FloatArray,
        weights: Weights,
        *,
        loss: Loss,
        score: Score,
        lam: float,
        kkt: float,
        observed: Observed,
    ) -> None:
        super().__init__(setting, noise, coordinates, estimate, weights)
        self.loss, self.score, self.lam, self.kkt, self.observed = loss, score, lam, kkt, observed
        self.ridge = lam / score.slope

    @cached_property
    def _smoother(self) -> Any:
        return _information(self.coordinates, self.observed, self.ridge)

    def normal_root(self, phi: FloatArray) -> FloatArray:
        """Rows whose squared lengths, with the rest, are the model part: rho^2 D^(1/2) C^-1 phi."""
        solved = cho_solve(self._smoother, phi.T).T
        return np.asarray(self.ridge * solved * np.sqrt(self.coordinates.precision))

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
    """The estimate for a loss and its law.

    Without a ridge, lam is E psi^2 / h, so that lam / h is the asymptotic variance.
    """
    curve = loss.curve(noise)
    score = Score.of(curve, noise, spectrum(coordinates, observed))
    if isinstance(loss, NegativeLogDensity):  # E psi' = E psi^2
        score = replace(score, slope=score.square)
    lam = score.square / score.slope if ridge is None else ridge
    solution = _solve(coordinates, observed, curve, lam, observed.y[:, None], score.center)
    estimate = solution.w[:, 0]
    weights: Weights
    if loss.law == "influence":
        weights = influence_weights(coordinates, observed, noise, curve, score, lam, estimate)
    else:
        weights = _refits(coordinates, observed, noise, loss, curve, score, lam, estimate, generator)
    return LossPosterior(
        setting,
        noise,
        coordinates,
        estimate,
        weights,
        loss=loss,
        score=score,
        lam=lam,
        kkt=float(solution.kkt[0]),
        observed=observed,
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


def _refits(
    coordinates: Coordinates,
    observed: Observed,
    noise: Noise,
    loss: Loss,
    curve: Curve,
    score: Score,
    lam: float,
    estimate: FloatArray,
    generator: Any,
) -> DrawnWeights:
    """Fits to new noise around the estimate, reflected about the smoothed estimate; or to y - M, the lifted problem.

    What the smoother takes away from the estimate itself is not counted: the model part has it.
    """
    new = observed.scale[:, None] * noise.rvs((len(observed.y), loss.n_draws), random_state=generator)
    if loss.law == "lifted":
        return DrawnWeights(_solve(coordinates, observed, curve, lam, observed.y[:, None] - new, 0.0).w.T)
    fitted = coordinates.phi @ estimate
    refits = _solve(coordinates, observed, curve, lam, fitted[observed.index, None] + new, score.center).w.T
    weighted = coordinates.phi.T @ (observed.per_place(observed.scale**-2) * fitted)
    smoothed = cho_solve(_information(coordinates, observed, lam / score.slope), weighted)
    return DrawnWeights(estimate + smoothed - refits)


def influence_weights(
    coordinates: Coordinates,
    observed: Observed,
    noise: Noise,
    curve: Curve,
    score: Score,
    lam: float,
    estimate: FloatArray,
) -> InfluenceWeights:
    """The first-order law: fhat - f ~ sum_i a_i psi(M_i - c) / h with a = (K + (lam / h) I)^-1 k."""
    phi = coordinates.phi[observed.index] / observed.scale[:, None]
    root = cho_solve(_information(coordinates, observed, lam / score.slope), phi.T)
    if np.all(curve.r == curve.r[0]) and len(curve.r) == 2:  # a single step: two values
        below = float(noise.cdf(score.center + curve.r[0]))
        values, probabilities = curve.u, np.array([below, 1 - below])
    else:
        levels = (np.arange(ATOMS) + 0.5) / ATOMS
        values, probabilities = (
            np.interp(noise.ppf(levels) - score.center, curve.r, curve.u),
            np.full(ATOMS, 1 / ATOMS),
        )
    values = (values - probabilities @ values) / score.slope
    return InfluenceWeights(estimate, np.asarray(root), Residuals(values, probabilities))


def _information(coordinates: Coordinates, observed: Observed, ridge: float) -> Any:
    """Cholesky factorization of Phi'S^-2 Phi + ridge D."""
    phi = coordinates.phi
    matrix = phi.T @ (observed.per_place(observed.scale**-2)[:, None] * phi)
    return cho_factor(matrix + ridge * np.diag(coordinates.precision), lower=True)


def spectrum(coordinates: Coordinates, observed: Observed) -> FloatArray:
    """Eigenvalues of the kernel matrix of the samples in units of their noise scales, (n,)."""
    phi = coordinates.phi[:, : len(coordinates.pivots)]
    values = np.linalg.eigvalsh(phi.T @ (observed.per_place(observed.scale**-2)[:, None] * phi))
    return np.concatenate([np.maximum(values, 0.0), np.zeros(len(observed.y))])[: len(observed.y)]
