"""Rigorous intervals for f(x) from a bound on the norm of f, and the assumptions that each of them needs.

The estimate is linear in the data, mu(x) = a'f(X) + a'(M - m0), so f(x) lies in

    mu(x) - a'(M - m0) + [-B P(x), B P(x)]        for every f with RKHS norm at most B,

where P is the square root of the model part P2. What remains is the noise, a linear combination of independent
variables, and each method here is one way to bound it. With a trend, B bounds the norm of f minus its trend.

A guarantee is *pointwise* if it holds at any one x with the given confidence, and *uniform* if it holds at all x at
once; ``simultaneous=True`` covers finitely many points at once (union bound). It is for a *fixed* design if the inputs
of the samples must not depend on their noise, and for an *adaptive* one if each input may depend on earlier samples,
as in optimization loops.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt
from typing import Any

import numpy as np
from scipy.optimize import elementwise
from scipy.special import ndtri

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..law import LinearCombination
from ..noise.base import Noise
from ..posterior import Posterior
from ..smoother import Smoother, quadratic_form
from ..text import check_choice, check_probability
from .norms import NormWarning, norm_lower_bound, rkhs_norm

__all__ = ["METHODS", "Claim", "bound"]

SIDES = ("both", "lower", "upper")


@dataclass(frozen=True)
class Claim:
    """The quantities that the margins are computed from; arrays have one entry per interval, of shape S."""

    noise: Noise
    weights: FloatArray  # L'a of the independent noise variables, (*S, J)
    counts: Array  # how many variables share each weight, (J,)
    model: FloatArray  # P2
    variance: FloatArray | None  # k(x,x) - k'Ak (sigma_GP^2 if the ridge is the noise variance); no trend
    norm: float  # B
    error: float  # d, the probability with which the interval may fail
    tails: int  # number of sides that share the error, 1 or 2
    n_samples: int
    log_determinant: Any  # ln det(I + K R^-1), of a shape that broadcasts to S
    largest_scale: float | None  # largest of the noise scales over the roots of R; None for correlated noise
    subgaussian_constant: float | None = None

    @property
    def tail(self) -> float:
        """Probability with which each side may fail."""
        return self.error / self.tails

    @cached_property
    def law(self) -> LinearCombination:
        """Law of a'f(X) - mu(x) = -a'(M - m0)."""
        loc = self.noise.mean() * (self.weights @ self.counts)
        return LinearCombination(self.noise, -self.weights, counts=self.counts, loc=loc)

    @cached_property
    def length(self) -> FloatArray:
        """|L'a|."""
        return np.asarray(np.sqrt(self.weights**2 @ self.counts))

    @cached_property
    def worst_case(self) -> FloatArray:
        """B P(x), the largest error of the estimate from data without noise."""
        return self.norm * np.sqrt(self.model)

    @property
    def posterior_std(self) -> FloatArray:
        """Square root of k(x,x) - k'Ak."""
        if self.variance is None:
            raise ValueError("this bound is not proven for a trend: use trend=None, or another method")
        return np.sqrt(self.variance)

    @cached_property
    def constant(self) -> float:
        """R with E exp(s (M - m0)) <= exp(R^2 s^2 / 2) for all s."""
        if self.subgaussian_constant is not None:
            return self.subgaussian_constant
        if self.noise.gaussian:
            return self.noise.std()
        low, high = self.noise.support()
        if not np.isfinite(high - low):
            raise ValueError(
                f"{self.noise!r} is neither normal nor bounded, so its sub-Gaussian constant is unknown and may not "
                "exist (that of a Gamma law does not): use method='exact', or give the constant as subgaussian_constant"
            )
        return (high - low) / 2  # Hoeffding's lemma


Margins = tuple[FloatArray, FloatArray]
"""Lengths, of shape S, of the interval below and above mu(x)."""


def _exact(claim: Claim) -> Margins:
    """[Q_{d/2}(Yhat) - B P, Q_{1-d/2}(Yhat) + B P] from exact quantiles. Any noise; pointwise; fixed design."""
    if claim.noise.gaussian:
        return _gaussian(claim)
    return claim.worst_case - claim.law.ppf(claim.tail), claim.worst_case + claim.law.isf(claim.tail)


def _gaussian(claim: Claim) -> Margins:
    """z_{1-d/2} sigma_WK + B P. Normal noise, for which it equals the exact interval; pointwise; fixed design."""
    if not claim.noise.gaussian:
        raise ValueError(f"method='gaussian' needs normal noise, got {claim.noise!r}; use method='exact'")
    margin = claim.worst_case - ndtri(claim.tail) * claim.noise.std() * claim.length
    return margin, margin


def _subgaussian(claim: Claim) -> Margins:
    """R sqrt(2 ln(2/d)) |L'a| + B P. Sub-Gaussian noise with constant R; pointwise; fixed design.

    Molodchyk, Teutsch and Faulwasser, Towards safe Bayesian optimization with Wiener kernel regression (2024).
    """
    margin = claim.worst_case + claim.constant * sqrt(2 * log(1 / claim.tail)) * claim.length
    return margin, margin


def _chernoff(claim: Claim) -> Margins:
    """inf_s (K(s) + ln(2/d)) / s + B P, K the cumulant generating function. Light tails; pointwise; fixed design."""
    return claim.worst_case + _chernoff_tail(claim, -1.0), claim.worst_case + _chernoff_tail(claim, 1.0)


def _hoeffding(claim: Claim) -> Margins:
    """(b - a) sqrt(ln(2/d) / 2) |L'a| + B P, or the nearer end of the support. Noise in [a, b]; pointwise; fixed design."""
    low, high = claim.noise.support()
    if not np.isfinite(high - low):
        raise ValueError(
            f"method='hoeffding' needs bounded noise, got {claim.noise!r} with support [{low}, {high}]"
        )
    margin = (high - low) * sqrt(log(1 / claim.tail) / 2) * claim.length
    least, largest = claim.law.support()
    return claim.worst_case + np.minimum(margin, -least), claim.worst_case + np.minimum(margin, largest)


def _cantelli(claim: Claim) -> Margins:
    """sqrt(1/d - 1) sigma_WK + B P on one side, sqrt(1/d) sigma_WK + B P on both. Any noise; pointwise; fixed design."""
    factor = sqrt(1 / claim.error - (claim.tails == 1))
    margin = claim.worst_case + factor * claim.noise.std() * claim.length
    return margin, margin


def _abbasi_yadkori(claim: Claim) -> Margins:
    """sigma (R/rho sqrt(2 ln(1/d) + ln det(I + K/rho^2)) + B). Sub-Gaussian noise; uniform; adaptive design.

    sigma^2 = k(x,x) - k'Ak. It holds at all x and after any number of samples at once. With per-sample scales, rho^2
    is replaced by the regularizer R of the samples, and R/rho by the largest of its ratios. Theorem 3.11 of
    Abbasi-Yadkori, Online learning for linearly parametrized control problems (PhD thesis, Alberta, 2013).
    """
    if claim.largest_scale is None:
        raise ValueError("method='abbasi-yadkori' needs independent noise, got a matrix noise_scale")
    ratio = claim.constant * claim.largest_scale
    beta = ratio * np.sqrt(2 * log(1 / claim.error) + claim.log_determinant) + claim.norm
    return beta * claim.posterior_std, beta * claim.posterior_std


def _fiedler2021(claim: Claim) -> Margins:
    """B sigma + R |L'a| sqrt(D + 2 sqrt(D ln(1/d)) + 2 ln(1/d)). Sub-Gaussian noise; uniform.

    sigma^2 = k(x,x) - k'Ak, D samples. Proposition 2 of Fiedler, Scherer and Trimpe, Practical and rigorous
    uncertainty bounds for Gaussian process regression (AAAI, 2021). The noise enters by its length only, so it also holds
    for an adaptive design, but after a number D of samples that is fixed in advance, not after all of them.
    """
    n, exponent = claim.n_samples, log(1 / claim.error)
    factor = sqrt(n + 2 * sqrt(n * exponent) + 2 * exponent)
    margin = claim.norm * claim.posterior_std + claim.constant * factor * claim.length
    return margin, margin


UNIFORM = {"abbasi-yadkori": _abbasi_yadkori, "fiedler2021": _fiedler2021}
METHODS: dict[str, Callable[[Claim], Margins]] = {
    "exact": _exact,
    "gaussian": _gaussian,
    "subgaussian": _subgaussian,
    "chernoff": _chernoff,
    "hoeffding": _hoeffding,
    "cantelli": _cantelli,
    **UNIFORM,
}
"""How the noise is bounded, by name: margins around mu(x) from a :class:`Claim`."""


def bound(
    posterior: Posterior,
    X: Array,
    *,
    norm: float,
    confidence: float = 0.95,
    method: str = "exact",
    simultaneous: bool = False,
    side: str = "both",
    subgaussian_constant: float | None = None,
) -> Margins:
    """Interval that contains f(x) with the given confidence, for every f with RKHS norm at most ``norm``.

    Parameters
    ----------
    posterior : Posterior
        The fitted model.
    X : ndarray of shape (m, d)
    norm : float
        B, a bound on the RKHS norm of f (of f without its trend, where there is one) in the space of its kernel, which
        for an output of scale c is c^2 times the common one. A :class:`~wienerkernel.NormWarning` is issued if the data
        contradict it, by the test of :func:`~wienerkernel.decisions.norms.norm_lower_bound` at the same confidence.
    confidence : float, default=0.95
        1 - d, strictly between 0 and 1.
    method : str, default="exact"
        How the noise is bounded:

        ==================  ============================  ===================  =====================
        method              noise                         inputs x             design
        ==================  ============================  ===================  =====================
        "exact"             any                           pointwise            fixed
        "gaussian"          normal                        pointwise            fixed
        "subgaussian"       sub-Gaussian                  pointwise            fixed
        "chernoff"          with exponential moments      pointwise            fixed
        "hoeffding"         bounded                       pointwise            fixed
        "cantelli"          any (its variance only)       pointwise            fixed
        "abbasi-yadkori"    sub-Gaussian                  uniform              adaptive, at all times
        "fiedler2021"       sub-Gaussian                  uniform              adaptive, at one time
        ==================  ============================  ===================  =====================
    simultaneous : bool, default=False
        Whether all rows of X (and all outputs) are covered at once with this confidence, by a union bound where the
        method is pointwise.
    side : {"both", "lower", "upper"}, default="both"
        With one side only, the other end is infinite, and this one may fail with all of d.
    subgaussian_constant : float, optional
        The sub-Gaussian constant R of the noise, E exp(s (M - m0)) <= exp(R^2 s^2 / 2). By default the standard
        deviation of normal noise, and half the width of the support of bounded noise.

    Returns
    -------
    lower, upper : ndarray of shape (m,) or (m, n_y)

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), noise="gamma(0.25, scale=2)", trend=None, tuning=None).fit([[0.0], [1.0]], [0.5, 1.5])
    >>> lower, upper = bound(model.posterior_, np.array([[0.5]]), norm=1.0)
    >>> round(float(lower[0]), 4), round(float(upper[0]), 4)   # the noise is skewed, and so is the interval
    (-1.4399, 1.0929)
    """
    if not 0 <= norm < np.inf:
        raise ValueError(f"norm must be a finite number of at least 0, got {norm!r}")
    if posterior.input_noise is not None:
        raise ValueError(
            "bounds hold for exact inputs only: with input_noise, use predict_interval(X, of='function')"
        )
    error = 1 - check_probability("confidence", confidence)
    check_choice("method", method, METHODS)
    check_choice("side", side, SIDES)
    if subgaussian_constant is not None and not 0 < subgaussian_constant < np.inf:
        raise ValueError(
            f"subgaussian_constant must be a positive number or None, got {subgaussian_constant!r}"
        )
    _warn_if_falsified(posterior, norm, confidence)
    smoother, samples = posterior.smoother, posterior.smoother.samples
    mean, b, model = map(arrays.as_numpy, smoother.evaluate(X))
    mean = posterior.outputs(mean)
    if simultaneous:
        error /= mean.size // (len(mean) if method in UNIFORM else 1)
    weights, counts = samples.per_noise(b)
    independent = samples.scale.ndim == 1
    claim = Claim(
        noise=posterior.noise,
        weights=weights,
        counts=counts,
        model=model,
        variance=None if smoother.trend.kind else model + quadratic_form(b, samples.regularizer),
        norm=float(norm),
        error=error,
        tails=2 if side == "both" else 1,
        n_samples=samples.n,
        log_determinant=_log_determinant(smoother) if independent else np.nan,
        largest_scale=float(np.max(samples.scale / np.sqrt(samples.row_regularizer)))
        if independent
        else None,
        subgaussian_constant=subgaussian_constant,
    )
    scale = posterior.output_scale
    below, above = (margin.reshape(-1, *(1,) * (mean.ndim - 1)) * scale for margin in METHODS[method](claim))
    lower = np.full(mean.shape, -np.inf) if side == "upper" else mean - below
    upper = np.full(mean.shape, np.inf) if side == "lower" else mean + above
    return lower, upper


def _log_determinant(smoother: Smoother) -> float:
    """ln det(I + K R^-1), of independent noise."""
    pivots = arrays.as_numpy(arrays.diagonal(smoother.factor))
    return float(2 * np.sum(np.log(pivots)) - np.sum(np.log(smoother.samples.regularizer)))


def _warn_if_falsified(posterior: Posterior, norm: float, confidence: float) -> None:
    if np.max(rkhs_norm(posterior)) <= norm:  # the lower bound is smaller still
        return
    if (lowest := float(np.max(norm_lower_bound(posterior, confidence)))) > norm:
        warnings.warn(
            f"norm={norm:.4g} is contradicted by the data: the RKHS norm of f is at least {lowest:.4g} with confidence "
            f"{confidence:.4g}; raise norm, or check the kernel and the noise",
            NormWarning,
            stacklevel=3,
        )


def _chernoff_tail(claim: Claim, sign: float) -> FloatArray:
    """inf_s (K(sign s) + ln(1/p)) / s over s > 0, with K(s) = log E exp(s (Yhat - mu)): convex in u = 1/s - 1/s_max."""
    ((noise, weights, counts),) = claim.law.terms
    weights, exponent = sign * weights, log(1 / claim.tail)  # Yhat - mu = sum_j w_j (M_j - m0)
    left, right = noise.strip()
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(weights > 0, weights / right, np.where(weights < 0, weights / left, 0.0))
    least = np.max(np.nan_to_num(reach, posinf=np.inf), axis=-1)  # 1 / s_max
    if not np.all(np.isfinite(least)):
        raise ValueError(
            f"method='chernoff' needs noise with exponential moments, got {noise!r}: use 'exact' or 'cantelli'"
        )
    std = noise.std() * claim.length
    unit = np.where(std > 0, std, 1.0) / sqrt(2 * exponent)  # 1/s of the normal law

    def margin(log_u: FloatArray, row: IntArray) -> FloatArray:
        s = 1 / (least.ravel()[row] + unit.ravel()[row] * np.exp(log_u))
        argument = weights.reshape(-1, weights.shape[-1])[row] * s[:, None]
        generating = noise.logcf(-1j * argument).real - noise.mean() * argument
        return np.asarray((generating @ counts + exponent) / s)

    row, grid = np.arange(unit.size), np.linspace(-12.0, 12.0, 13)
    table = np.stack([margin(np.full(unit.size, log_u), row) for log_u in grid])
    middle = grid[np.argmin(table, axis=0)]
    found = elementwise.find_minimum(margin, (middle - 2.0, middle, middle + 2.0), args=(row,))
    return np.where(std > 0, np.fmin(found.f_x, table.min(axis=0)).reshape(unit.shape), 0.0)
