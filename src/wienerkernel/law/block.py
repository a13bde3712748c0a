"""A block of standardised rows with everything prepared: bulk, tails and ends of the support in one."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray, IntArray
from .choose import parts
from .closed import ClosedForm
from .quantile import solve, wilson_hilferty
from .ray import Inversion, Values
from .rows import Rows
from .saddle import SaddleTails

__all__ = ["Block"]

TAIL = 1e-5
"""Below this probability, relative accuracy needs the saddle point,"""
POOR = 1e-13
"""and above this error it may help."""


class Block:
    """The law of standardised rows.

    Parameters
    ----------
    rows : Rows
    method : str
    """

    def __init__(self, rows: Rows, method: str) -> None:
        self.rows = rows
        self.parts = list(parts(rows, method))
        self.tails = SaddleTails(rows)
        kappa = rows.noise.cumulants(3)[2]
        self.skewness = np.nan_to_num(kappa * (rows.weights**3 @ rows.counts), posinf=0.0, neginf=0.0)

    def __call__(self, x: FloatArray) -> Values:
        """Values at points (rows, k)."""
        result = Values(*(np.empty(x.shape) for _ in Values._fields))
        for index, inversion in self.parts:
            values = self._values(inversion, index, x[index], np.arange(len(index)))
            for out, value in zip(result, values, strict=True):
                out[index] = value
        return result

    def _values(self, inversion: Inversion, index: IntArray, x: FloatArray, some: IntArray) -> Values:
        """Values of the rows ``index[some]`` at ``x``, tails and ends of the support included."""
        if isinstance(inversion, ClosedForm):
            return inversion(x, some)
        row = index[some]
        lower, upper = (end[row, None] for end in self.rows.support)
        values = inversion(np.clip(x, lower, upper), some)
        small = (np.minimum(values.cdf, values.sf) < TAIL) | (values.error > POOR)
        small &= self.tails.covers(x, row)
        if not inversion.relative and small.any():
            i, k = np.nonzero(small)
            tail = self.tails(x[small], row[i])
            better = tail.error < values.error[small]
            for out, value in zip(values, tail, strict=True):
                out[i[better], k[better]] = value[better]
        below, above = x <= lower, x >= upper
        if below.any() or above.any():
            outside = below | above
            values = Values(
                np.where((x < lower) | (x > upper), 0.0, values.pdf),
                np.where(below, 0.0, np.where(above, 1.0, values.cdf)),
                np.where(below, 1.0, np.where(above, 0.0, values.sf)),
                np.where(outside, 0.0, values.error),
                np.where(outside, 0.0, values.pdf_error),
            )
        return values

    def quantile(self, p: FloatArray, upper: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """Smallest x with F(x) >= p, or with sf(x) <= p where ``upper``, and the error of the probability there."""
        x, error = np.empty(p.shape), np.zeros(p.shape)
        for index, inversion in self.parts:
            if isinstance(inversion, ClosedForm):
                x[index] = inversion.quantile(p[index], upper[index], np.arange(len(index)))
                continue
            lower, higher = (end[index, None] for end in self.rows.support)
            # the ends of the support, p = 0, need no search
            level = np.where(p[index] > 0, p[index], 0.5)
            start = wilson_hilferty(level, upper[index], self.skewness[index, None])
            x[index], error[index] = solve(
                partial(self._values, inversion, index),
                level,
                upper[index],
                start + self.rows.mean[index, None],
                (lower, higher),
            )
            x[index] = np.where(p[index] > 0, x[index], np.where(upper[index], higher, lower))
        return x, error
