"""Sums of few uniform terms in closed form, and sums of two bounded terms by quadrature."""

from __future__ import annotations

from itertools import pairwise
from math import factorial

import numpy as np

from .._typing import FloatArray, IntArray
from ..noise import Noise, ScipyNoise
from .ray import EPS, Values
from .rows import Rows

__all__ = ["TwoTerms", "UniformSum", "is_uniform"]

MAX_TERMS = 7


def is_uniform(noise: Noise) -> bool:
    """Whether the noise is uniform."""
    return isinstance(noise, ScipyNoise) and noise.name == "uniform"


class UniformSum:
    """F(s) = sum_S (-1)^|S| (s - sum_S u)_+^n / (n! prod u) over all subsets S of n widths u; s from the lower end.

    Parameters
    ----------
    rows : Rows
        All with the same number n of terms.
    """

    relative = True

    def __init__(self, rows: Rows) -> None:
        terms = np.repeat(rows.weights, rows.counts.astype(int), axis=1)
        n = int(np.count_nonzero(terms[0]))
        widths = np.sort(np.abs(terms), axis=1)[:, -n:] * (rows.noise.support()[1] - rows.noise.support()[0])
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
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
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


class TwoTerms:
    """X = v_1 M_1 + v_2 M_2 with bounded M: F(x) = int_0^1 F_M((x - v_2 Q(q)) / v_1) dq by tanh-sinh quadrature.

    Parameters
    ----------
    rows : Rows
        With two terms each, after counts.
    """

    relative = True

    def __init__(self, rows: Rows) -> None:
        self.noise = rows.noise
        terms = np.repeat(rows.weights, rows.counts.astype(int), axis=1)
        order = np.argsort(-np.abs(terms), axis=1)[:, :2]
        self.first, self.second = np.take_along_axis(terms, order, axis=1).T

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
        fine, coarse = self._sum(x, index, 0.06), self._sum(x, index, 0.12)
        difference = [np.abs(a - b) for a, b in zip(fine, coarse, strict=True)]
        error = 32 * EPS * np.minimum(fine[1], fine[2]) + np.maximum(difference[1], difference[2]) ** 2
        return Values(*fine, error, 1e-12 * fine[0] + difference[0])

    def _sum(self, x: FloatArray, index: IntArray, h: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        low, high = self.noise.support()
        v, w = self.first[index, None], self.second[index, None]
        # Pieces end where M_1 has an end of its support.
        inner = np.clip(np.stack([(x - v * low) / w, (x - v * high) / w]), low, high)
        below, above = np.sort(self.noise.cdf(inner), axis=0), np.sort(self.noise.sf(inner), axis=0)[::-1]
        zero, one = np.zeros((1, *x.shape)), np.ones((1, *x.shape))
        below, above = np.concatenate([zero, below, one]), np.concatenate([one, above, zero])
        u = np.arange(-3.3, 3.3 + h / 2, h)
        left, right = 1 / (1 + np.exp(-np.pi * np.sinh(u))), 1 / (1 + np.exp(np.pi * np.sinh(u)))
        weight = h * np.pi * np.cosh(u) * left * right
        pdf, cdf, sf = (np.zeros(x.shape) for _ in range(3))
        flip = v[..., None] < 0
        for (a, b), (c, d) in zip(pairwise(below), pairwise(above), strict=True):
            length = np.where(b < 0.5, b - a, c - d)[..., None]
            q = np.where(u < 0, a[..., None] + length * left, b[..., None] - length * right)
            tail = np.where(u < 0, c[..., None] - length * left, d[..., None] + length * right)
            m = np.where(q < 0.5, self.noise.ppf(np.clip(q, 0, 1)), self.noise.isf(np.clip(tail, 0, 1)))
            other = (x[..., None] - w[..., None] * m) / v[..., None]
            density = self.noise.pdf(other)
            under, over = self.noise.cdf(other), self.noise.sf(other)
            mass = length * weight
            pdf += np.sum(mass * np.where(np.isfinite(density), density, 0.0), axis=-1) / np.abs(v)
            cdf += np.sum(mass * np.where(flip, over, under), axis=-1)
            sf += np.sum(mass * np.where(flip, under, over), axis=-1)
        return pdf, cdf, sf
