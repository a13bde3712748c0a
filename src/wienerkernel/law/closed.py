"""Closed forms: a point mass, one term alone, and sums of few uniform terms."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from .._typing import FloatArray, IntArray
from ..noise import Noise, ScipyNoise, as_noise
from .ray import EPS, Values
from .rows import Rows

__all__ = [
    "MAX_UNIFORM",
    "NORMAL",
    "ClosedForm",
    "GammaSum",
    "Normal",
    "PointMass",
    "SingleTerm",
    "UniformSum",
]
__all__ += ["gamma_shape"]

SAME = 1e-13
"""Points that differ by less, in standard deviations or relative to their size, are the same atom."""
MAX_UNIFORM = 7
"""Uniform terms at most: their sum has 2^n terms of alternating signs, and cancels more digits with each."""
NORMAL = as_noise(None)


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


class ClosedForm:
    """An inversion that knows its quantiles; exactly, unless the values of the law are ``rounded``."""

    relative = True
    rounded: bool = False

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
        raise NotImplementedError

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_], index: IntArray) -> FloatArray:
        """Smallest x with F(x) >= p, or with sf(x) <= p where ``upper``; shape (n, k)."""
        raise NotImplementedError


class PointMass(ClosedForm):
    """All weights are 0: X = 0."""

    def __call__(self, x: FloatArray, index: IntArray) -> Values:  # noqa: ARG002
        step = (x >= 0).astype(float)
        pdf = np.where(x == 0, np.inf, 0.0)
        return Values(pdf, step, 1 - step, np.zeros(x.shape), np.zeros(x.shape))

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_], index: IntArray) -> FloatArray:  # noqa: ARG002
        return np.zeros(p.shape)


class Normal(ClosedForm):
    """All weights are 0 beside a normal part of variance 1: much faster than a single term with that law."""

    def __call__(self, x: FloatArray, index: IntArray) -> Values:  # noqa: ARG002
        pdf = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
        return Values(pdf, special.ndtr(x), special.ndtr(-x), np.full(x.shape, 4 * EPS), 4 * EPS * pdf)

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_], index: IntArray) -> FloatArray:  # noqa: ARG002
        z = special.ndtri(p)
        return np.asarray(np.where(upper, -z, z))


@dataclass
class SingleTerm(ClosedForm):
    """X = v M with v of shape (rows,): the noise law itself."""

    noise: Noise
    weight: FloatArray

    def __post_init__(self) -> None:
        self.rounded = self.noise.rounding > 0

    def law(self, index: IntArray) -> Any:  # noqa: ARG002
        """The laws of some rows."""
        return self.noise

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        v, law = self.weight[index, None], self.law(index)
        m = x / v
        if self.noise.atomic:
            # an atom is reached, whatever a standardized x rounds to; where v < 0, P(vM <= x) = P(M >= m)
            pdf, m = np.full(m.shape, np.nan), m + np.sign(v) * SAME * (1 + np.abs(m))
        else:
            with np.errstate(divide="ignore"):  # at a pole
                pdf = law.pdf(m) / np.abs(v)
        below, above = law.cdf(m), law.sf(m)
        # the smaller tail has the digits: some of SciPy's survival functions are 1 where the cdf is 1e-6
        below, above = np.where(above < below, 1 - above, below), np.where(below < above, 1 - below, above)
        error = np.full(m.shape, 4 * EPS)
        if self.rounded:
            moved = np.nan_to_num(pdf * np.abs(v), nan=0.0, posinf=np.inf) * self.noise.rounding
            error += np.minimum(moved, 1.0)
        pdf_error = 4 * EPS * np.where(np.isfinite(pdf), pdf, 0.0)
        return Values(pdf, np.where(v > 0, below, above), np.where(v > 0, above, below), error, pdf_error)

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_], index: IntArray) -> FloatArray:
        v, law = self.weight[index, None], self.law(index)
        return np.asarray(v * np.where(upper ^ (v < 0), law.isf(p), law.ppf(p)))


class GammaSum(SingleTerm):
    """Gamma laws with one scale add up to a gamma law: a shape and a signed scale for each row."""

    def __init__(self, shape: FloatArray, scale: FloatArray) -> None:
        super().__init__(as_noise(stats.gamma(1.0)), scale)
        self.shape = shape

    def law(self, index: IntArray) -> Any:
        return stats.gamma(self.shape[index, None])


class UniformSum:
    """F(s) = sum_S (-1)^|S| (s - sum_S u)_+^n / (n! prod u) over all subsets S of n widths u; s from the lower end.

    All rows have the same number n of terms.
    """

    relative = True

    def __init__(self, rows: Rows) -> None:
        terms = np.repeat(rows.weights, rows.counts.astype(int), axis=1)
        n = int(np.count_nonzero(terms[0]))
        widths = np.sort(np.abs(terms), axis=1)[:, -n:]  # of the standard law, on an interval of length 1
        subsets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        self.n, self.low, self.high = n, *rows.support
        self.corner = widths @ subsets.T  # (rows, 2^n)
        self.sign = (-1.0) ** subsets.sum(axis=1)
        self.volume = np.prod(widths, axis=1)

    @property
    def rounding(self) -> FloatArray:
        """Error in the middle of the law from the cancellation of terms, shape (rows,)."""
        middle = 0.5 * (self.high - self.low)
        terms = np.maximum(middle[:, None] - self.corner, 0.0) ** self.n
        return np.asarray(EPS * terms.sum(axis=1) / (factorial(self.n) * self.volume))

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        low, high = self.low[index, None], self.high[index, None]
        above = x - low > high - x  # the law is symmetric: the smaller tail is summed
        s = np.where(above, high - x, x - low)
        distance = np.maximum(s[..., None] - self.corner[index, None, :], 0.0)
        volume = self.volume[index, None]
        tail = distance**self.n @ self.sign / (factorial(self.n) * volume)
        pdf = (distance ** (self.n - 1) * (distance > 0)) @ self.sign / (factorial(self.n - 1) * volume)
        error = EPS * (distance**self.n).sum(axis=-1) / (factorial(self.n) * volume)
        pdf_error = EPS * (distance ** (self.n - 1)).sum(axis=-1) / (factorial(self.n - 1) * volume)
        return Values(pdf, np.where(above, 1 - tail, tail), np.where(above, tail, 1 - tail), error, pdf_error)
