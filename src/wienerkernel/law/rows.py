"""Standardized rows: X = sum_j v_j M_j + N(0, tau^2) with unit variance, over terms of one law or of several."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise, Residuals, ScipyNoise, SmoothedResiduals
from .ray_table import COARSE, EXACT
from .terms import Terms

__all__ = ["Rows", "split"]

PROBE = 0.1
"""Step in log r of the points at which the decay of phi is probed; its oscillations are slower, or much faster,"""
NEIGHBORS = 2
"""so that the largest of a few neighboring values represents its envelope."""
GONE = -80.0
"""Logarithm of |phi| below which the rest is negligible,"""
FARTHEST = 1e40
"""and the highest frequency that is probed: for a pole weaker than |x|^-0.9, phi has decayed there."""


def split(noise: Noise) -> tuple[Noise, float, float, float]:
    """The noise as M = o + s M0 + N(0, tau^2), where the end or the singular point of the law of M0 is 0.

    Contours turn around o; a law far from 0 would lose digits in the phase exp(i t o); and laws that differ only in loc
    and scale share their tables.
    Returns the law of M0, o, s and tau.
    """
    if isinstance(noise, SmoothedResiduals):
        return *split(noise.residuals)[:3], noise.bandwidth
    if isinstance(noise, Residuals):
        center = noise.mean()
        return Residuals(noise.values - center, noise.weights), center, 1.0, 0.0
    if isinstance(noise, ScipyNoise):
        standard = noise.standard
        ends = [end for end in standard.support() if np.isfinite(end)]
        end = ends[0] if len(ends) == 1 else 0.0
        return (standard.moved(-end) if end else standard), noise.loc + noise.scale * end, noise.scale, 0.0
    return noise, 0.0, 1.0, 0.0


class Rows:
    """Rows of terms, scaled to unit variance, with one ``Terms`` per law and the variance of the normal part, (rows,)."""

    def __init__(self, terms: tuple[Terms, ...], normal_var: FloatArray) -> None:
        self.terms, self.normal_var = terms, normal_var

    def __len__(self) -> int:
        return len(self.normal_var)

    def take(self, index: IntArray) -> Rows:
        """The rows with these indices."""
        if len(index) == len(self) and np.array_equal(index, np.arange(len(self))):
            return self
        return Rows(tuple(terms.take(index) for terms in self.terms), self.normal_var[index])

    @cached_property
    def weights(self) -> FloatArray:
        """Weights of the terms of all laws, shape (rows, D)."""
        return np.concatenate([terms.weights for terms in self.terms], axis=1)

    @cached_property
    def counts(self) -> FloatArray:
        """Number of independent copies of each, shape (D,)."""
        return np.concatenate([terms.counts for terms in self.terms])

    @cached_property
    def laws(self) -> list[Noise]:
        """Law of each, D of them."""
        return [terms.noise for terms in self.terms for _ in terms.counts]

    @cached_property
    def copies(self) -> FloatArray:
        """Number of terms that are not 0, shape (rows,)."""
        return np.asarray(sum(terms.copies for terms in self.terms))

    @cached_property
    def costly(self) -> bool:
        """Whether the characteristic function of one of the laws is costly."""
        return any(terms.noise.costly for terms in self.terms)

    @cached_property
    def sector(self) -> float:
        """Angle into which all characteristic functions continue."""
        return min(terms.noise.sector() for terms in self.terms)

    @cached_property
    def bounded(self) -> bool:
        """Whether all laws are bounded."""
        return all(np.all(np.isfinite(terms.noise.support())) for terms in self.terms)

    @cached_property
    def discrete(self) -> NDArray[np.bool_]:
        """Whether all terms of a row that are not 0 are discrete, shape (rows,)."""
        return np.asarray(
            np.all([terms.noise.discrete | (terms.copies == 0) for terms in self.terms], axis=0)
        )

    @cached_property
    def atomic(self) -> NDArray[np.bool_]:
        """Whether all terms of a row that are not 0 have atoms, so that the sum has, shape (rows,)."""
        return np.asarray(np.all([terms.noise.atomic | (terms.copies == 0) for terms in self.terms], axis=0))

    @cached_property
    def mean(self) -> FloatArray:
        """Means, shape (rows,)."""
        return np.asarray(sum(terms.noise.mean() * (terms.weights @ terms.counts) for terms in self.terms))

    @cached_property
    def support(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the support, each of shape (rows,)."""
        low, high = (np.sum([terms.support[k] for terms in self.terms], axis=0) for k in (0, 1))
        return np.where(self.normal_var > 0, -np.inf, low), np.where(self.normal_var > 0, np.inf, high)

    @cached_property
    def strip(self) -> tuple[FloatArray, FloatArray]:
        """Open interval of real s with E exp(s X) finite, each end of shape (rows,)."""
        low, high = zip(*(terms.strip for terms in self.terms), strict=True)
        return np.max(low, axis=0), np.min(high, axis=0)

    def logcf_on_ray(self, r: FloatArray, theta: float, tolerance: float = EXACT) -> ComplexArray:
        """Log characteristic function at t = r e^{-i theta}, shape (rows, K), with this error per weight."""
        result = -0.5 * self.normal_var[:, None] * (r * np.exp(-1j * theta)) ** 2
        for terms in self.terms:
            result = result + terms.logcf_on_ray(r, theta, tolerance)
        return np.asarray(result)

    def beyond(self, r: float, theta: float) -> tuple[FloatArray, FloatArray]:
        """Bounds on the integrals of |phi| dr/r and of |phi| dr over the ray beyond r, each of shape (rows,).

        They hold if neighboring values of |phi| show its envelope.
        """
        over_r, plain = np.zeros(len(self)), np.zeros(len(self))
        open_rows, start, width = np.arange(len(self)), np.log(r), 4.0
        while len(open_rows) and start < np.log(FARTHEST):
            log_r = np.arange(start - NEIGHBORS * PROBE, start + width + NEIGHBORS * PROBE, PROBE)
            level = self.take(open_rows).logcf_on_ray(np.exp(log_r), theta, COARSE).real
            level = np.nan_to_num(level, nan=0.0, neginf=-745.0, posinf=300.0)
            envelope = np.lib.stride_tricks.sliding_window_view(level, 2 * NEIGHBORS + 1, axis=1).max(axis=-1)
            inner = log_r[NEIGHBORS : NEIGHBORS + envelope.shape[1]]
            over_r[open_rows] += PROBE * np.exp(np.minimum(envelope, 300.0)).sum(axis=1)
            plain[open_rows] += PROBE * np.exp(np.minimum(envelope + inner, 300.0)).sum(axis=1)
            open_rows = open_rows[envelope[:, -1] > GONE]
            start += width
        if len(open_rows):  # assume a decay of r^-0.01
            over_r[open_rows] += 100 * np.exp(np.minimum(envelope[envelope[:, -1] > GONE, -1], 300.0))
            plain[open_rows] = np.inf
        return over_r, plain

    def logcf(self, t: ComplexArray) -> ComplexArray:
        """Log characteristic function of each row at its own nodes ``t`` of shape (rows, K), same shape."""
        result = -0.5 * self.normal_var[:, None] * t**2
        for terms in self.terms:
            result = result + terms.logcf(t)
        return result

    def cgf(self, s: FloatArray) -> FloatArray:
        """Log E exp(s X) for real s inside the strip, shape (rows, k)."""
        return self.logcf(-1j * s.astype(complex)).real
