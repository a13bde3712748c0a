"""The effect of a loss: the constant that it adds, its asymptotic variance, and the loss with the smallest one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from .._typing import FloatArray
from ..noise import Noise
from .convex import Curve, Huber, Loss, Pinball
from .density import NoiseDensity
from .tilted import NODES, WEIGHTS, tilted_moments

__all__ = ["Score", "as_loss", "efficient_loss"]

NORMAL_NODES, NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
NORMAL_WEIGHTS = NORMAL_WEIGHTS / NORMAL_WEIGHTS.sum()
LEVELS = np.concatenate(
    [10.0 ** np.arange(-12.0, -1.0), np.arange(0.05, 0.96, 0.05), 1 - 10.0 ** np.arange(-2.0, -13.0, -1)]
)
ROUNDS = 30
TAUS = np.array([0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])
TAUS = np.concatenate([TAUS, 1 - TAUS[-2::-1]])
DELTAS = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0])
"""Candidates for the efficient loss; those of Huber's in distances of the quantiles 5 % and 95 %."""


@dataclass(frozen=True)
class Score:
    """Moments of psi(M - c).

    The center is c, with E psi(M - c) = 0; the square E psi^2; the slope h = E psi'(M - c + s Z), smoothed on the scale s of
    the posterior standard deviation; the freedom sum_k lambda_k / (lambda_k + V), the effective number of parameters.
    """

    center: float
    square: float
    slope: float
    freedom: float

    @property
    def lam(self) -> float:
        """E psi^2 / h, with which lam / h is the asymptotic variance."""
        return self.square / self.slope

    @property
    def variance(self) -> float:
        """Asymptotic variance V = E psi^2 / h^2: the variance of normal noise with the same effect."""
        return self.square / self.slope**2

    @classmethod
    def of(cls, curve: Curve, noise: Noise, spectrum: FloatArray) -> Score:
        """The score of a loss, for data whose kernel matrix has these eigenvalues."""
        center = _center(curve, noise)
        square = _mean(curve, noise, center, 2)
        n = len(spectrum)
        variance, freedom = noise.var(), 1.0
        for _ in range(ROUNDS):
            freedom = float(np.sum(spectrum / (spectrum + variance)))
            std = np.sqrt(variance * max(freedom, 1e-3) / n)
            slope = _slope(curve, noise, center, std)
            if not slope**2 > 0:
                msg = f"the loss is flat over all of the noise, whose standard deviation is {noise.std():.3g}: set a smaller epsilon"
                raise ValueError(msg)
            new = square / slope**2
            if abs(np.log(new / variance)) < 1e-4:
                break
            variance = np.sqrt(variance * new)
        return cls(center, square, slope, freedom)


@lru_cache(maxsize=32)
def _quantiles(noise: Noise) -> FloatArray:
    """The median and quantiles of further levels, which are slow for a mixture."""
    return noise.ppf(np.concatenate([[0.5], LEVELS]))


@lru_cache(maxsize=32)
def _middles(noise: Noise) -> FloatArray:
    """Medians of 64 equally likely parts of the law."""
    return noise.ppf((np.arange(64) + 0.5) / 64)


def _split(curve: Curve, noise: Noise, center: float) -> tuple[Curve, int]:
    """The curve with further vertices where the law of M - c changes, and the index of the one at its median."""
    quantiles = _quantiles(noise) - center
    inside = (quantiles > curve.r[0]) & (quantiles <= curve.r[-1])
    points = np.setdiff1d(quantiles[inside], curve.r)
    r = np.concatenate([curve.r, points])
    order = np.argsort(r, kind="stable")
    fine = Curve(r[order], np.concatenate([curve.u, np.interp(points, curve.r, curve.u)])[order])
    return fine, int(np.searchsorted(fine.r, quantiles[0]))


def _mean(curve: Curve, noise: Noise, center: float, power: int) -> float:
    """E psi(M - c)^power, by parts: the value at the median, and increments times the probabilities beyond them."""
    (r, u), at = _split(curve, noise, center)
    at = min(at, len(r) - 1)
    half, middle = np.diff(r)[:, None] / 2, ((r[1:] + r[:-1]) / 2)[:, None]
    z = middle + half * NODES  # a step has the same node eight times
    share = 0.5 * WEIGHTS
    psi = (u[1:] + u[:-1])[:, None] / 2 + (np.diff(u) / 2)[:, None] * NODES
    growth = np.diff(u)[:, None] * share * (1 if power == 1 else 2 * psi)
    above = np.arange(len(half)) >= at
    total = float(np.sum(growth[above] * noise.sf(z[above] + center)))
    total -= float(np.sum(growth[~above] * noise.cdf(z[~above] + center)))
    return total + float(u[at] ** power)


def _center(curve: Curve, noise: Noise) -> float:
    """The c with E psi(M - c) = 0."""
    if curve.is_step:
        return float(noise.ppf(curve.u[1] / (curve.u[1] - curve.u[0])) - curve.r[0])
    ends = noise.ppf(np.array([1e-9, 1 - 1e-9])) - np.clip(0.0, curve.r[0], curve.r[-1])
    values = [_mean(curve, noise, float(end), 1) for end in ends]
    if not values[0] * values[1] < 0:
        return noise.mean()
    low, high = ends.tolist()
    return float(brentq(lambda c: _mean(curve, noise, c, 1), low, high, xtol=1e-12 * noise.std(), rtol=1e-14))


def _slope(curve: Curve, noise: Noise, center: float, std: float) -> float:
    """E psi'(M - c + std Z): steps times the smoothed density, and slopes times probabilities."""
    r, u = curve
    width, rise = np.diff(r), np.diff(u)
    total, steps = 0.0, (width == 0) & (rise > 0)
    if steps.any():
        density = NoiseDensity.of(noise)
        at = (r[:-1][steps] + center - density.loc) / density.scale
        smooth = tilted_moments(density, at, np.full(len(at), std / density.scale)).log_integral
        total += float(rise[steps] @ np.exp(smooth)) / density.scale
    slanted = (width > 0) & (rise > 0)
    if slanted.any():
        if std < 0.25 * noise.std():
            below = noise.cdf(r[:, None] + center - std * NORMAL_NODES) @ NORMAL_WEIGHTS
        else:  # the nodes would be too far apart for the law of M
            below = ndtr((r[:, None] + center - _middles(noise)) / std).mean(axis=1)
        total += float((rise[slanted] / width[slanted]) @ np.diff(below)[slanted])
    return total


def efficient_loss(noise: Noise, spectrum: FloatArray) -> Loss:
    """The Huber or pinball loss with the smallest asymptotic variance for this noise.

    A quantile needs samples on both sides: at least half as many as there are effective parameters.
    """
    density, n = NoiseDensity.of(noise), len(spectrum)
    losses: list[Loss] = [Pinball(float(tau)) for tau in TAUS]
    losses += [Huber(float(delta * density.spread * density.scale)) for delta in DELTAS]

    def variance(loss: Loss) -> float:
        score = Score.of(loss.curve(noise), noise, spectrum)
        if isinstance(loss, Pinball) and min(loss.tau, 1 - loss.tau) < score.freedom / (2 * n):
            return np.inf
        return score.variance

    return min(losses, key=variance)


def as_loss(loss: Any, noise: Noise, spectrum: FloatArray) -> Loss:
    """The loss that the argument ``loss`` stands for."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in ("absolute", "efficient"):
        return Pinball(0.5) if loss == "absolute" else efficient_loss(noise, spectrum)
    msg = (
        f"loss must be 'squared', 'absolute', 'efficient', or one of Huber, Pinball, EpsilonInsensitive and "
        f"NegativeLogDensity, got {loss!r}"
    )
    raise ValueError(msg)
