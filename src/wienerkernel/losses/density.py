"""The density of the noise, prepared for integrals against normal densities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import betaln, logsumexp

from .._typing import FloatArray
from ..noise import Mixture, Noise, ScipyNoise

__all__ = ["POLE", "NoiseDensity"]

LEVELS = np.array([1e-4, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 1 - 1e-4])
"""Levels of the quantiles at which panels begin."""
TAILS, NEGLIGIBLE = 2.0 ** np.arange(1, 13), -60.0
"""Distances from the median at which panels begin in tails, in spreads, unless the log density is negligible there."""
POLE = -0.05
"""A density that grows at least like distance^-0.05 has a pole."""
CLOSE = 1e-7
"""Distance, relative to the spread of the noise, at which the growth at a singular point is measured."""
ON_THE_LINE = frozenset({"gumbel_l", "gumbel_r", "hypsecant", "logistic", "norm", "skewnorm", "t"})
"""Families with a smooth density on the whole line, whose singular points need not be looked for."""


@dataclass(frozen=True)
class NoiseDensity:
    """The log density of Z, where the noise is M = loc + scale Z; a pole of a law of ``scipy.stats`` is mostly at 0.

    ``logpdf`` is that of Z, -inf outside the support, and everything else is in units of Z, too. ``quantiles`` include
    those of the components of a mixture, and points in heavy tails; ``spread`` is the distance of those of the levels 5 %
    and 95 %. The density is not smooth at the ``points``, and panels must shrink towards those that are ``graded``: ends
    of the support and poles. With a ``pole`` it is unbounded.
    """

    loc: float
    scale: float
    logpdf: Callable[[FloatArray], FloatArray]
    quantiles: FloatArray
    spread: float
    points: FloatArray
    graded: FloatArray
    pole: bool
    support: tuple[float, float]

    @classmethod
    def of(cls, noise: Noise) -> NoiseDensity:
        """The density of a law; ValueError if it has none."""
        if noise.atomic:
            msg = (
                f"{noise!r} has no density, which inference and every loss but 'squared' and Huber's need; for recorded residuals, "
                "noise=SmoothedResiduals(values) has one"
            )
            raise ValueError(msg)
        return _prepared(_standard(noise))._in_units_of(noise)

    def near(self, noise: Noise) -> NoiseDensity:
        """The density of a law that differs little from this one, with the same panels unless the support is another."""
        standard = _standard(noise)
        if standard.support() != self.support:
            return NoiseDensity.of(noise)
        return replace(self, logpdf=_log_density(standard))._in_units_of(noise)

    def _in_units_of(self, noise: Noise) -> NoiseDensity:
        loc, scale = (noise.loc, noise.scale) if isinstance(noise, ScipyNoise) else (0.0, 1.0)
        return replace(self, loc=loc, scale=scale)


def _standard(noise: Noise) -> Noise:
    """The law of Z."""
    return noise.standard if isinstance(noise, ScipyNoise) else noise


@lru_cache(maxsize=32)
def _prepared(standard: Noise) -> NoiseDensity:
    """The density of a standard law."""
    logpdf = _log_density(standard)
    quantiles = standard.ppf(LEVELS)
    spread = float(quantiles[-3] - quantiles[2])
    tails = quantiles[5] + spread * np.concatenate([-TAILS, TAILS])
    parts = [part.ppf(LEVELS) for _, part in standard.flattened()] if isinstance(standard, Mixture) else []
    quantiles = np.sort(np.concatenate([quantiles, tails[logpdf(tails) > NEGLIGIBLE], *parts]))
    smooth = isinstance(standard, ScipyNoise) and standard.name in ON_THE_LINE
    points = np.asarray([] if smooth else standard.singular_points(), dtype=float)
    ends, step = standard.support(), CLOSE * spread
    sides = points[:, None] + step * np.array([-1.0, -0.25, 0.25, 1.0])
    with np.errstate(invalid="ignore"):
        values = logpdf(sides)
        growth = np.stack([values[:, 0] - values[:, 1], values[:, 3] - values[:, 2]], axis=1) / np.log(4.0)
    is_pole = np.any(np.where(np.isfinite(growth), growth, 0.0) < POLE, axis=1)
    return NoiseDensity(
        0.0,
        1.0,
        logpdf,
        quantiles,
        spread,
        points,
        is_pole | np.isin(points, ends),
        bool(is_pole.any()),
        ends,
    )


def _log_density(noise: Noise) -> Callable[[FloatArray], FloatArray]:
    """Log density of a law, accurate where the density underflows if a formula is known."""
    if isinstance(noise, ScipyNoise) and noise.name == "t":  # that of scipy.stats takes several times as long
        (df,), loc, scale = noise.shapes, noise.loc, noise.scale
        top = -float(betaln(df / 2, 0.5)) - 0.5 * np.log(df) - np.log(scale)
        return lambda z: top - (df + 1) / 2 * np.log1p(((z - loc) / scale) ** 2 / df)
    if isinstance(noise, ScipyNoise):
        return _quiet(noise.frozen.logpdf)
    if isinstance(noise, Mixture):
        pairs = noise.flattened()
        logs = np.log([p for p, _ in pairs])
        parts = [_log_density(part) for _, part in pairs]
        return _quiet(
            lambda z: logsumexp([log + part(z) for log, part in zip(logs, parts, strict=True)], axis=0)
        )
    return _quiet(lambda z: np.log(noise.pdf(z)))


def _quiet(function: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray], FloatArray]:
    """The function without warnings, and -inf where it is not a number: at or beyond the ends of the support."""

    def quiet(z: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            values = np.asarray(function(z), dtype=float)
        return np.where(np.isnan(values), -np.inf, values)

    return quiet
