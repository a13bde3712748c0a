"""Sums of few uniform terms in closed form."""

from __future__ import annotations

from math import factorial

import numpy as np

from .._typing import FloatArray, IntArray
from ..noise import Noise, ScipyNoise
from .ray import EPS, Values
from .rows import Rows

__all__ = ["UniformSum", "is_uniform"]

MAX_TERMS = 7
"""The sum has 2^n terms of alternating signs, and cancels more digits with each."""


def is_uniform(noise: Noise) -> bool:
    """Whether the noise is uniform."""
    return isinstance(noise, ScipyNoise) and noise.name == "uniform"


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
