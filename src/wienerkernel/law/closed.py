"""Closed forms: a point mass, normal laws, one term alone, gamma laws of one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .._typing import FloatArray, IntArray
from ..noise import Noise, ScipyNoise
from .ray import EPS, Values

__all__ = ["ClosedForm", "GammaSum", "Normal", "PointMass", "SingleTerm", "gamma_shape"]

SAME = 1e-13
"""Points that differ by less, in standard deviations or relative to their size, are the same atom."""


def gamma_shape(noise: Noise) -> float | None:
    """Shape parameter if the noise (of origin 0) is a gamma law, else None."""
    if isinstance(noise, ScipyNoise):
        if noise.name in {"gamma", "erlang"}:
            return noise.shapes[0]
        if noise.name == "expon":
            return 1.0
        if noise.name == "chi2":
            return noise.shapes[0] / 2
    return None


def _values(pdf: FloatArray, cdf: FloatArray, sf: FloatArray) -> Values:
    error = np.full(np.shape(cdf), 4 * EPS)
    return Values(pdf, cdf, sf, error, 4 * EPS * np.abs(np.where(np.isfinite(pdf), pdf, 0.0)))


class ClosedForm:
    """An inversion that knows its quantiles."""

    relative = True

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
        raise NotImplementedError

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_], index: IntArray) -> FloatArray:
        """Smallest x with F(x) >= p, or with sf(x) <= p where ``upper``; shape (n, k)."""
        raise NotImplementedError


class PointMass(ClosedForm):
    """All weights are 0: X = 0."""

    def __call__(self, x: FloatArray, index: IntArray) -> Values:  # noqa: ARG002, D102
        step = (x >= 0).astype(float)
        pdf = np.where(x == 0, np.inf, 0.0)
        return Values(pdf, step, 1 - step, np.zeros(x.shape), np.zeros(x.shape))

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_], index: IntArray) -> FloatArray:  # noqa: ARG002, D102
        return np.zeros(p.shape)


@dataclass
class Normal(ClosedForm):
    """Standard deviation 1 about ``mean`` of shape (rows,)."""

    mean: FloatArray

    def __call__(self, x: FloatArray, index: IntArray) -> Values:  # noqa: D102
        z = x - self.mean[index, None]
        return _values(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi), special.ndtr(z), special.ndtr(-z))

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_], index: IntArray) -> FloatArray:  # noqa: D102
        z = special.ndtri(p)
        return np.asarray(self.mean[index, None] + np.where(upper, -z, z))


@dataclass
class SingleTerm(ClosedForm):
    """X = v M with v of shape (rows,): the noise law itself."""

    noise: Noise
    weight: FloatArray

    def __call__(self, x: FloatArray, index: IntArray) -> Values:  # noqa: D102
        v = self.weight[index, None]
        m = x / v
        if self.noise.atomic:
            # an atom is reached, whatever a standardized x rounds to; where v < 0, P(vM <= x) = P(M >= m)
            pdf, m = np.full(m.shape, np.nan), m + np.sign(v) * SAME * (1 + np.abs(m))
        else:
            pdf = self.noise.pdf(m) / np.abs(v)
        below, above = self.noise.cdf(m), self.noise.sf(m)
        # the smaller tail has the digits: some of SciPy's survival functions are 1 where the cdf is 1e-6
        below, above = np.where(above < below, 1 - above, below), np.where(below < above, 1 - below, above)
        values = _values(pdf, np.where(v > 0, below, above), np.where(v > 0, above, below))
        if self.noise.rounding:
            moved = np.nan_to_num(pdf * np.abs(v), nan=0.0, posinf=np.inf) * self.noise.rounding
            values.error[:] += np.minimum(moved, 1.0)
        return values

    def quantile_error(
        self, x: FloatArray, p: FloatArray, upper: NDArray[np.bool_], index: IntArray
    ) -> FloatArray:
        """Error of the probability at quantiles x; 0 where the values of the law are exact."""
        if not self.noise.rounding:
            return np.zeros(x.shape)
        values = self(x, index)
        return np.where(p > 0, np.abs(np.where(upper, values.sf, values.cdf) - p) + values.error, 0.0)

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_], index: IntArray) -> FloatArray:  # noqa: D102
        v = self.weight[index, None]
        return np.asarray(v * np.where(upper ^ (v < 0), self.noise.isf(p), self.noise.ppf(p)))


@dataclass
class GammaSum(ClosedForm):
    """Gamma laws with one scale add up to a gamma law: shape and signed scale, each of shape (rows,)."""

    shape: FloatArray
    scale: FloatArray

    def __call__(self, x: FloatArray, index: IntArray) -> Values:  # noqa: D102
        a, scale = self.shape[index, None], self.scale[index, None]
        m = x / scale
        inside = np.maximum(m, 0.0)
        with np.errstate(divide="ignore"):
            log_pdf = special.xlogy(a - 1, inside) - inside - special.gammaln(a)
        pdf = np.where(m < 0, 0.0, np.exp(log_pdf)) / np.abs(scale)
        below, above = special.gammainc(a, inside), special.gammaincc(a, inside)
        return _values(pdf, np.where(scale > 0, below, above), np.where(scale > 0, above, below))

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_], index: IntArray) -> FloatArray:  # noqa: D102
        a, scale = self.shape[index, None], self.scale[index, None]
        return np.asarray(
            scale * np.where(upper ^ (scale < 0), special.gammainccinv(a, p), special.gammaincinv(a, p))
        )
