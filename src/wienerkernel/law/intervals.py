"""Intervals of a convolution integral, with nodes that crowd near singular points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray

__all__ = ["Intervals"]

CLOSE = 0.5
"""Distance of a singular point from an interval, in lengths of it, below which it disturbs the quadrature."""


class Intervals(NamedTuple):
    """Intervals [c, d] of x on which y - x stays in one piece of A, and x in one of B.

    Each belongs to a point y. ``before`` and ``after`` are the distances of the next singular points beyond c and d.
    The part in use starts ``to_c`` after c and ends ``to_d`` before d.
    """

    point: IntArray
    c: FloatArray
    d: FloatArray
    at_a: IntArray
    at_b: IntArray
    before: FloatArray
    after: FloatArray
    to_c: FloatArray
    to_d: FloatArray

    def halved(self) -> Intervals:
        """The same, with intervals that have singular points close to both ends cut in two."""
        width = self.d - self.c
        two = (self.before < CLOSE * width) & (self.after < CLOSE * width)
        if not two.any():
            return self
        chosen = Intervals._make(part[two] for part in self)
        half, none = 0.5 * width[two], np.full(len(chosen.c), np.inf)
        lower, upper = chosen._replace(after=none, to_d=half), chosen._replace(before=none, to_c=half)
        rest = Intervals._make(part[~two] for part in self)
        return Intervals._make(np.concatenate(part) for part in zip(rest, lower, upper, strict=True))

    def nodes(self, p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Distances from c and from d of the nodes at fractions p = 1 - q, and the slope of x.

        Where a singular point is close, the fraction is one of the logarithm of the distance from it.
        """
        width = self.d - self.c - self.to_c - self.to_d
        left, right, slope = width[:, None] * p, width[:, None] * q, np.repeat(width[:, None], len(p), axis=1)
        for distance, s, t, inner, outer in (
            (self.before, p, q, left, right),
            (self.after, q, p, right, left),
        ):
            chosen = np.flatnonzero(
                (distance < CLOSE * width) & (distance <= np.minimum(self.before, self.after))
            )
            if len(chosen):
                start = distance[chosen, None]
                length = np.log1p(width[chosen, None] / start)
                inner[chosen] = start * np.expm1(length * s)
                outer[chosen] = -(start + width[chosen, None]) * np.expm1(-length * t)
                slope[chosen] = (start + inner[chosen]) * length
        return self.to_c[:, None] + left, self.to_d[:, None] + right, slope
