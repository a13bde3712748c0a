"""Rigorous intervals for f(x), from a bound on the norm of f: what may be claimed, and under which assumptions.

The estimate is linear in the data, mu(x) = a'f(X) + a'(M - m0), so f(x) lies in

    mu(x) - a'(M - m0) + [-B P(x), B P(x)]        for every f with RKHS norm at most B,

where P is the square root of the model part P2. What remains is the noise, a linear combination of independent
variables, and each method here is one way to bound it. With a trend, B bounds the norm of what the trend leaves.

A guarantee is *pointwise* if it holds at any one x with the given confidence, and *uniform* if it holds at all x at
once; finitely many points are covered at once by ``simultaneous=True`` (union bound). It is for a *fixed* design if
the places of the samples must not depend on their noise, and for an *adaptive* one if each place may depend on the
samples before it, as in optimization loops.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt

import numpy as np
from scipy.optimize import elementwise
from scipy.special import ndtri

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..law import LinearCombination
from ..noise.base import Noise
from ..posterior import Posterior
from .norms import NormWarning, check_confidence, norm_lower_bound, rkhs_norm

__all__ = ["METHODS", "bound"]

SIDES = ("both", "lower", "upper")


@dataclass(frozen=True)
class _Claim:
    """What a method is asked for: margins at the rows of X that fail with probability ``error`` at most."""

    posterior: Posterior
    X: Array
    norm: float
    error: float
    tails: int
    subgaussian_constant: float | None

    @property
    def tail(self) -> float:
        """Probability that each side may fail with."""
        return self.error / self.tails

    @property
    def noise(self) -> Noise:
        return self.posterior.noise

    @cached_property
    def law(self) -> LinearCombination:
        """Law of a'f(X) - mu(x) = -a'(M - m0)."""
        return self.posterior.distribution(self.X, "estimate").law

    @cached_property
    def length(self) -> FloatArray:
        """|L'a|."""
        ((_, weights, counts),) = self.law.terms
        return np.asarray(np.sqrt(weights**2 @ counts))

    @cached_property
    def worst_case(self) -> FloatArray:
        """B P(x), the error of the estimate from data without noise."""
        model = arrays.as_numpy(self.posterior.smoother.variances(self.X)[0])
        return self.norm * np.sqrt(model)

    @cached_property
    def posterior_std(self) -> FloatArray:
        """Square root of k(x,x) - k'Ak, which is sigma_GP when the ridge is the noise variance."""
        if self.posterior.smoother.trend.kind:
            msg = "this bound is not proven for a trend: use trend=None, or another method"
            raise ValueError(msg)
        return np.sqrt(arrays.as_numpy(self.posterior.smoother.mean_and_variance(self.X)[1]))

    @cached_property
    def constant(self) -> float:
        """R with E exp(s (M - m0)) <= exp(R^2 s^2 / 2) for all s."""
        if self.subgaussian_constant is not None:
            return self.subgaussian_constant
        if self.noise.gaussian:
            return self.noise.std()
        low, high = self.noise.support()
        if not np.isfinite(high - low):
            msg = (
                f"{self.noise!r} is neither normal nor bounded, so its sub-Gaussian constant is not known and may not "
                "exist (that of a Gamma law does not): use method='exact', or give the constant as subgaussian_constant"
            )
            raise ValueError(msg)
        return (high - low) / 2  # Hoeffding's lemma


Margins = tuple[FloatArray, FloatArray]
"""Lengths (m,) of the interval below and above mu(x)."""


def _exact(claim: _Claim) -> Margins:
    """[Q_{d/2}(Yhat) - B P, Q_{1-d/2}(Yhat) + B P] from exact quantiles. Any noise; pointwise; fixed design."""
    return claim.worst_case - claim.law.ppf(claim.tail), claim.worst_case + claim.law.isf(claim.tail)


def _gaussian(claim: _Claim) -> Margins:
    """z_{1-d/2} sigma_WK + B P. Normal noise, for which it equals the exact interval; pointwise; fixed design."""
    if not claim.noise.gaussian:
        msg = f"method='gaussian' needs normal noise, got {claim.noise!r}; method='exact' serves any law"
        raise ValueError(msg)
    margin = claim.worst_case - ndtri(claim.tail) * claim.law.std()
    return margin, margin


def _subgaussian(claim: _Claim) -> Margins:
    """R sqrt(2 ln(2/d)) |L'a| + B P. Sub-Gaussian noise with constant R; pointwise; fixed design.

    Molodchyk, Teutsch and Faulwasser, Towards safe Bayesian optimization with Wiener kernel regression (2024).
    """
    margin = claim.worst_case + claim.constant * sqrt(2 * log(1 / claim.tail)) * claim.length
    return margin, margin


def _chernoff(claim: _Claim) -> Margins:
    """inf_s (K(s) + ln(2/d)) / s + B P, K the cumulant generating function. Light tails; pointwise; fixed design."""
    return claim.worst_case + _chernoff_tail(claim, -1.0), claim.worst_case + _chernoff_tail(claim, 1.0)


def _hoeffding(claim: _Claim) -> Margins:
    """(b - a) sqrt(ln(2/d) / 2) |L'a| + B P, or the end of the support if that is nearer.

    Noise in [a, b]; pointwise; fixed design.
    """
    low, high = claim.noise.support()
    if not np.isfinite(high - low):
        msg = f"method='hoeffding' needs bounded noise, got {claim.noise!r} with support [{low}, {high}]"
        raise ValueError(msg)
    margin = (high - low) * sqrt(log(1 / claim.tail) / 2) * claim.length
    least, largest = claim.law.support()
    return claim.worst_case + np.minimum(margin, -least), claim.worst_case + np.minimum(margin, largest)


def _cantelli(claim: _Claim) -> Margins:
    """sqrt(1/d - 1) sigma_WK + B P on one side (Cantelli), sqrt(1/d) sigma_WK + B P on both (Chebyshev).

    Any noise, of which it uses the variance only; pointwise; fixed design.
    """
    factor = sqrt(1 / claim.error - (claim.tails == 1))
    margin = claim.worst_case + factor * claim.law.std()
    return margin, margin


def _abbasi_yadkori(claim: _Claim) -> Margins:
    """sigma (R/rho sqrt(2 ln(1/d) + ln det(I + K/rho^2)) + B). Sub-Gaussian noise; uniform; adaptive design.

    sigma^2 = k(x,x) - k'Ak. It holds at all x and after any number of samples at once. With per-sample scales, rho^2
    is replaced by the regularizer R of the samples, and R/rho by the largest of its ratios. Theorem 3.11 of
    Abbasi-Yadkori, Online learning for linearly parametrized control problems (PhD thesis, Alberta, 2013).
    """
    samples, factor = claim.posterior.smoother.samples, claim.posterior.smoother.factor
    if samples.scale.ndim == 2:
        msg = "method='abbasi-yadkori' needs independent noise, got a matrix noise_scale"
        raise ValueError(msg)
    pivots = arrays.as_numpy(arrays.diagonal(factor))
    log_determinant = 2 * np.sum(np.log(pivots)) - np.sum(np.log(samples.regularizer))
    ratio = claim.constant * np.max(samples.scale / np.sqrt(samples.row_regularizer))
    beta = ratio * sqrt(2 * log(1 / claim.error) + log_determinant) + claim.norm
    return beta * claim.posterior_std, beta * claim.posterior_std


def _fiedler2021(claim: _Claim) -> Margins:
    """B sigma + R |L'a| sqrt(D + 2 sqrt(D ln(1/d)) + 2 ln(1/d)). Sub-Gaussian noise; uniform.

    sigma^2 = k(x,x) - k'Ak, D samples. Proposition 2 of Fiedler, Scherer and Trimpe, Practical and rigorous
    uncertainty bounds for Gaussian process regression (AAAI, 2021). The noise enters by its length only, so it holds
    for an adaptive design, too, but after one number D of samples that is fixed beforehand, not after all of them.
    """
    number, information = len(claim.posterior.smoother.samples.index), log(1 / claim.error)
    length = sqrt(number + 2 * sqrt(number * information) + 2 * information)
    margin = claim.norm * claim.posterior_std + claim.constant * length * claim.length
    return margin, margin


UNIFORM: dict[str, Callable[[_Claim], Margins]] = {
    "abbasi-yadkori": _abbasi_yadkori,
    "fiedler2021": _fiedler2021,
}
METHODS: dict[str, Callable[[_Claim], Margins]] = {
    "exact": _exact,
    "gaussian": _gaussian,
    "subgaussian": _subgaussian,
    "chernoff": _chernoff,
    "hoeffding": _hoeffding,
    "cantelli": _cantelli,
    **UNIFORM,
}
"""The ways to bound the noise, by name."""


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
    """Interval that holds f(x) with the given confidence, for every f with RKHS norm at most ``norm``.

    Parameters
    ----------
    posterior : Posterior
        The fitted model.
    X : ndarray of shape (m, d)
    norm : float
        B, a bound on the RKHS norm of f (of f without its trend, where there is one) in the space of its kernel, which
        for an output of scale c is c^2 times the common one. A :class:`NormWarning` tells when the data contradict it, by the test of :func:`norm_lower_bound` at the same confidence.
    confidence : float, default=0.95
        1 - d, strictly between 0 and 1.
    method : str, default="exact"
        How the noise is bounded:

        ==================  ============================  ===================  =====================
        method              noise                         places x             design
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
        Whether the confidence is that all rows of X (and all outputs) are covered at once, by a union bound where
        the method is pointwise.
    side : {"both", "lower", "upper"}, default="both"
        With one side only, the other end is infinite and all of d is left to this one.
    subgaussian_constant : float, optional
        The sub-Gaussian constant R of the noise, E exp(s (M - m0)) <= exp(R^2 s^2 / 2). By default the standard
        deviation of normal noise, and half the width of the support of bounded noise.

    Returns
    -------
    lower, upper : ndarray of shape (m,) or (m, n_y)

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), noise="gamma(0.25, scale=2)", tuning=None).fit([[0.0], [1.0]], [0.5, 1.5])
    >>> lower, upper = bound(model.posterior_, np.array([[0.5]]), norm=1.0)
    >>> round(float(lower[0]), 4), round(float(upper[0]), 4)   # the noise is skewed, and so is the interval
    (-1.4399, 1.0929)
    """
    if not 0 <= norm < np.inf:
        msg = f"norm must be a finite number of at least 0, got {norm!r}"
        raise ValueError(msg)
    error = 1 - check_confidence(confidence)
    if method not in METHODS:
        msg = f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}"
        raise ValueError(msg)
    if side not in SIDES:
        msg = f"side must be one of {', '.join(map(repr, SIDES))}, got {side!r}"
        raise ValueError(msg)
    if subgaussian_constant is not None and not 0 < subgaussian_constant < np.inf:
        msg = f"subgaussian_constant must be a positive number or None, got {subgaussian_constant!r}"
        raise ValueError(msg)
    _warn_if_falsified(posterior, norm, confidence)
    mean = arrays.as_numpy(posterior.mean(X))
    if simultaneous:
        error /= mean.size // (len(mean) if method in UNIFORM else 1)
    claim = _Claim(posterior, X, float(norm), error, 2 if side == "both" else 1, subgaussian_constant)
    scale = posterior.output_scale
    below, above = (margin.reshape(-1, *(1,) * (mean.ndim - 1)) * scale for margin in METHODS[method](claim))
    lower = np.full(mean.shape, -np.inf) if side == "upper" else mean - below
    upper = np.full(mean.shape, np.inf) if side == "lower" else mean + above
    return lower, upper


def _warn_if_falsified(posterior: Posterior, norm: float, confidence: float) -> None:
    if np.max(rkhs_norm(posterior)) <= norm:  # the lower bound is smaller still
        return
    lowest = float(np.max(norm_lower_bound(posterior, confidence)))
    if lowest > norm:
        msg = (
            f"norm={norm:.4g} is contradicted by the data: the RKHS norm of f is at least {lowest:.4g} with confidence "
            f"{confidence:.4g} (the norm of the estimate less a quantile of that of its noise); raise norm, or check "
            "the kernel and the noise"
        )
        warnings.warn(msg, NormWarning, stacklevel=3)


def _chernoff_tail(claim: _Claim, sign: float) -> FloatArray:
    """inf_s (K(sign s) + ln(1/p)) / s over s > 0, with K(s) = log E exp(s (Yhat - mu)).

    Every s gives a valid bound. In u = 1/s - 1/s_max the function is convex: it has one minimum.
    """
    ((_, weights, counts),) = claim.law.terms
    weights = sign * weights  # Yhat - mu = sum_j w_j (M_j - m0)
    noise, information = claim.noise, log(1 / claim.tail)
    left, right = noise.strip()
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(weights > 0, weights / right, np.where(weights < 0, weights / left, 0.0))
    least = np.max(np.nan_to_num(reach, posinf=np.inf), axis=1)  # 1 / s_max
    if not np.all(np.isfinite(least)):
        msg = f"method='chernoff' needs noise with exponential moments, got {noise!r}: use 'exact' or 'cantelli'"
        raise ValueError(msg)
    std = claim.law.std()
    unit = np.where(std > 0, std, 1.0) / sqrt(2 * information)  # 1/s of the normal law

    def margin(log_u: FloatArray, row: IntArray) -> FloatArray:
        s = 1 / (least[row] + unit[row] * np.exp(log_u))
        argument = weights[row] * s[:, None]
        generating = noise.logcf(-1j * argument).real - noise.mean() * argument
        return np.asarray((generating @ counts + information) / s)

    row, grid = np.arange(len(unit)), np.linspace(-12.0, 12.0, 13)
    table = np.stack([margin(np.full(len(unit), log_u), row) for log_u in grid])
    middle = grid[np.argmin(table, axis=0)]
    found = elementwise.find_minimum(margin, (middle - 2.0, middle, middle + 2.0), args=(row,))
    return np.where(std > 0, np.fmin(found.f_x, table.min(axis=0)), 0.0)
