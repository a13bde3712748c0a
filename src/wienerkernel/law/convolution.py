"""Sums of few terms by convolution of their laws, where characteristic functions decay too slowly to be inverted.

F(y) = int F_A(y - x) dF_B(x), cut where either factor is not smooth; double-exponential quadrature does each part.
Two terms need no more; three and four are sums of two halves, each of which is tabulated first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray
from ..noise import Noise
from .pieces import CdfValues, Pieces, tabulate
from .ray import EPS, RESOLVED, Values, put

__all__ = ["Convolution", "is_sharp", "scaled_pieces"]

CHUNK = 2**15
"""Nodes processed at once: they stay in the cache."""
DEPTH = 6.0
"""Depth of the tables of single terms: distances from the cuts down to e^(-pi sinh 6) = 1e-275."""
STEP, HALVINGS = 0.125, 4
"""Step of the quadrature, and how often it is halved where the error is not good yet."""
GOOD, GOOD_DENSITY = 2e-14, 1e-13
"""Absolute error of a probability, and relative error of a density, that need no smaller step."""
FAR = 3.0
"""Distance of all cuts from the quartiles, in interquartile ranges, beyond which the median becomes a cut, too."""
SAME_CUT = 4e-14
"""Sums of cuts that differ by less, in standard deviations, are one."""
TABLE_FROM = 400
"""Points per piece of a table of the whole sum from which it is worth its cost."""
TABLE_ERROR = 1e-12
"""Error up to which it is used."""
CLOSE = 0.5
"""Distance of a singular point from an interval, in lengths of it, below which it disturbs the quadrature."""
SHARP, JUMP, POLE = 1e-6, 1e-3, 1e2
"""Distance from a singular point at which the densities beside it show a jump or a pole, all in standard deviations."""


@lru_cache(maxsize=32)
def noise_pieces(noise: Noise, sign: float) -> Pieces:
    """The law of M, or of -M where ``sign`` is -1, as a table."""
    lower, upper = noise.support()
    cuts = np.asarray(noise.singular_points(), dtype=float)
    low, middle, high = noise.ppf([0.25, 0.5, 0.75])
    # distances from a far cut would resolve the bulk of the law poorly
    if np.all((cuts < low - FAR * (high - low)) | (cuts > high + FAR * (high - low))):
        cuts = np.sort(np.append(cuts, middle))
    ends = [np.isinf(lower), np.isinf(upper)]
    if sign < 0:
        cuts, ends = -cuts[::-1], ends[::-1]

    def density(_row: IntArray, end: FloatArray, offset: FloatArray) -> FloatArray:
        result = np.empty(len(end))
        for point in np.unique(end):
            at = end == point
            result[at] = noise.pdf_near(sign * point, sign * offset[at])
        return result

    pieces = Pieces(
        cuts[None], np.array([noise.std()]), bool(ends[0]), bool(ends[1]), 0.0 * np.abs(cuts[None]), DEPTH
    )
    tabulate(pieces, density)
    pieces.grain = np.abs(cuts[None])
    pieces.need = pieces.depth_for(1e-16)
    return pieces


def scaled_pieces(noise: Noise, weights: FloatArray) -> Pieces:
    """The laws of v M as tables, for weights v of one sign, of shape (rows,)."""
    return noise_pieces(noise, float(np.sign(weights[0]))).scaled(np.abs(weights))


@lru_cache(maxsize=64)
def is_sharp(noise: Noise) -> bool:
    """Whether the density has a pole or jumps, so that the characteristic function decays slowly."""
    std = noise.std()
    beside = SHARP * std * np.array([-1.0, 1.0])
    with np.errstate(all="ignore"):
        densities = [noise.pdf_near(float(point), beside) for point in noise.singular_points()]
    return any(np.ptp(density) * std > JUMP or density.max() * std > POLE for density in densities)


class _Intervals(NamedTuple):
    """_Intervals [c, d] of x on which y - x stays in one piece of A, and x in one of B.

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

    def halved(self) -> _Intervals:
        """The same, with intervals that have singular points close to both ends cut in two."""
        width = self.d - self.c
        two = (self.before < CLOSE * width) & (self.after < CLOSE * width)
        if not two.any():
            return self
        chosen = _Intervals._make(part[two] for part in self)
        half, none = 0.5 * width[two], np.full(len(chosen.c), np.inf)
        lower, upper = chosen._replace(after=none, to_d=half), chosen._replace(before=none, to_c=half)
        rest = _Intervals._make(part[~two] for part in self)
        return _Intervals._make(np.concatenate(part) for part in zip(rest, lower, upper, strict=True))

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


class _Sum:
    """The law of A + B, row by row, from tables of the same rows."""

    def __init__(self, a: Pieces, b: Pieces) -> None:
        self.a, self.b = a, b
        self.error = a.error[a.row] + b.error[b.row]
        self.far = [
            b.reach(upper) if tail else np.zeros(len(b.cuts))
            for upper, tail in ((False, b.lower), (True, b.upper))
        ]
        # no mass lies outside
        self.low = a.cuts[:, 0] + b.cuts[:, 0] - self.far[0] - (a.reach(False) if a.lower else 0.0)
        self.high = a.cuts[:, -1] + b.cuts[:, -1] + self.far[1] + (a.reach(True) if a.upper else 0.0)

    def table(self) -> Pieces:
        """The law as a table."""
        a, b = self.a, self.b
        cuts = (a.cuts[:, :, None] + b.cuts[:, None, :]).reshape(len(a.cuts), -1)
        grain = (a.grain[:, :, None] + b.grain[:, None, :]).reshape(cuts.shape)
        order = np.argsort(cuts, axis=1)
        cuts, grain = np.take_along_axis(cuts, order, axis=1), np.take_along_axis(grain, order, axis=1)
        new = np.diff(cuts, axis=1, prepend=-np.inf) > SAME_CUT
        cuts = np.maximum.accumulate(np.where(new, cuts, -np.inf), axis=1)
        kept = np.any(np.diff(cuts, axis=1, prepend=-np.inf) > 0, axis=0)
        lower, upper = a.lower or b.lower, a.upper or b.upper
        # the mass of a sum next to its cuts is the product of those of its terms
        depth = min(max(law.depth_for(1e-8) for law in (a, b)), a.depth, b.depth)
        pieces = Pieces(cuts[:, kept], a.tail + b.tail, lower, upper, grain[:, kept], depth)
        tabulate(pieces, self._density_beside)
        pieces.need = depth
        pieces.error += self.error
        return pieces

    def _density_beside(self, row: IntArray, end: FloatArray, offset: FloatArray) -> FloatArray:
        y = end + offset
        some = np.flatnonzero((y > self.low[row]) & (y < self.high[row]))
        density = np.zeros(len(y))
        density[some] = self(row[some], y[some], False)[0].pdf
        return density

    def __call__(
        self, row: IntArray, y: FloatArray, tails: bool = True
    ) -> tuple[CdfValues, FloatArray, FloatArray]:
        """Values at (n,) points y of (n,) rows; errors of the distribution function and of the density."""
        place, error, pdf_error = self._integrate(row, y, STEP, tails)
        step = STEP
        for _ in range(HALVINGS):
            poor = np.flatnonzero((error > GOOD) | (pdf_error > GOOD_DENSITY * place.pdf))
            if not len(poor):
                break
            step /= 2
            better, some_error, some_pdf_error = self._integrate(row[poor], y[poor], step, tails)
            put(place, poor, better)
            error[poor], pdf_error[poor] = some_error, some_pdf_error
        return place, error, pdf_error

    def _integrate(
        self, row: IntArray, y: FloatArray, step: float, tails: bool
    ) -> tuple[CdfValues, FloatArray, FloatArray]:
        parts, n = self._parts(row, y), len(y)
        place, error, pdf_error = CdfValues(np.zeros(n), np.zeros(n), np.zeros(n)), np.zeros(n), np.zeros(n)
        outermost = (self.b.lower & (parts.at_b == 0)) | (self.b.upper & (parts.at_b == self.b.pieces - 1))
        # light tails take a finer step
        for chosen, h in ((~outermost, step), (outermost, step / 2)):
            some = _Intervals._make(part[chosen] for part in parts)
            for part, terms, sign in self._terms(row, y, some, h, tails):
                for out, term in zip(place, terms, strict=False):
                    out += np.bincount(part.point, weights=term.sum(axis=1), minlength=n)
                for out, term in zip((pdf_error, error, error), terms, strict=False):
                    whole, half = term.sum(axis=1), term @ sign
                    with np.errstate(all="ignore"):
                        missed = np.abs(half) / whole
                        coarse = np.where(
                            whole > 0, np.abs(half) * np.where(missed < RESOLVED, missed, 1.0), 0.0
                        )
                    out += np.bincount(part.point, weights=coarse, minlength=n)
        if tails:
            self._beyond(row, y, place)
            error = np.maximum(error, np.abs(place.cdf + place.sf - 1) - self.error[row])
        return place, error, pdf_error

    def _terms(
        self, row: IntArray, y: FloatArray, parts: _Intervals, step: float, tails: bool
    ) -> Iterator[tuple[_Intervals, list[FloatArray], FloatArray]]:
        """Terms of the sums for density, distribution and survival function, and alternating signs that show the error."""
        depth = max(self.a.need, self.b.need)
        u = np.arange(-depth + step / 2, depth, step)
        steep = np.pi * np.sinh(u)
        p, q = 1 / (1 + np.exp(-steep)), 1 / (1 + np.exp(steep))
        weight = step * np.pi * np.cosh(u) * (p * q)
        sign = np.where(np.arange(len(u)) % 2, -1.0, 1.0)
        size = max(1, CHUNK // len(u))
        for first in range(0, len(parts.point), size):
            some = _Intervals._make(part[first : first + size] for part in parts)
            left, right, slope = some.nodes(p, q)
            rows = row[some.point][:, None]
            at_a, at_b = some.at_a[:, None], some.at_b[:, None]
            lower_a, upper_a, lower_b, upper_b = (part[:, None] for part in self._outer(row, y, some))
            of_a = self.a.at(rows, at_a, lower_a + right, upper_a + left, tails)
            of_b = self.b.at(rows, at_b, lower_b + left, upper_b + right, False)
            mass = of_b.pdf * slope * weight
            yield some, [value * mass for value in (of_a if tails else of_a[:1])], sign

    def _beyond(self, row: IntArray, y: FloatArray, place: CdfValues) -> None:
        """Add the contribution of B alone, where y - x lies outside the support of A."""
        a, b = self.a, self.b
        if not a.upper:
            place.cdf[:] += b(row, y - a.cuts[row, -1]).cdf
        if not a.lower:
            place.sf[:] += b(row, y - a.cuts[row, 0]).sf

    def _parts(self, row: IntArray, y: FloatArray) -> _Intervals:
        a, b = self.a, self.b
        images, cuts = y[:, None] - a.cuts[row, ::-1], b.cuts[row]
        edges = np.concatenate([images, cuts], axis=1)
        order = np.argsort(edges, axis=1, kind="stable")
        edges = np.take_along_axis(edges, order, axis=1)
        passed = np.cumsum(order >= images.shape[1], axis=1)
        # a tail ends where it has no mass
        low = np.minimum(edges[:, :1], cuts[:, :1] - self.far[0][row, None])
        high = np.maximum(edges[:, -1:], cuts[:, -1:] + self.far[1][row, None])
        edges = np.concatenate([low, edges, high], axis=1)
        at_b = np.concatenate([np.zeros((len(y), 1), dtype=np.intp), passed], axis=1)
        passed_a = np.arange(at_b.shape[1]) - at_b
        at_a, at_b = a.cuts.shape[1] - 1 - passed_a + a.lower, at_b - 1 + b.lower
        inside = (at_a >= 0) & (at_a < a.pieces) & (at_b >= 0) & (at_b < b.pieces)
        c, d = edges[:, :-1], edges[:, 1:]
        # how far beyond either end the next edge is, where something is singular
        gap = np.diff(edges, axis=1)
        gap = np.where(gap > 0, gap, np.inf)
        gap[:, [0, -1]] = np.inf
        beyond = np.full((len(y), 1), np.inf)
        before, after = np.hstack([beyond, gap[:, :-1]]), np.hstack([gap[:, 1:], beyond])
        # in a tail, the logarithm of the distance counts
        tail = b.tail[row, None]
        before = np.where(
            b.upper & (at_b == b.pieces - 1), np.minimum(before, c - cuts[:, -1:] + tail), before
        )
        after = np.where(b.lower & (at_b == 0), np.minimum(after, cuts[:, :1] - d + tail), after)
        tail = a.tail[row, None]
        before = np.where(a.lower & (at_a == 0), np.minimum(before, c - images[:, -1:] + tail), before)
        after = np.where(a.upper & (at_a == a.pieces - 1), np.minimum(after, images[:, :1] - d + tail), after)
        at = np.nonzero(inside & (d > c))
        return _Intervals(
            at[0], c[at], d[at], at_a[at], at_b[at], before[at], after[at], *np.zeros((2, len(at[0])))
        ).halved()

    def _outer(self, row: IntArray, y: FloatArray, parts: _Intervals) -> list[FloatArray]:
        """Distances of intervals from the ends of their pieces of A and of B; exactly 0 where they meet."""
        at, y = row[parts.point], y[parts.point]
        distances = [
            (y - self.a.ends[at, parts.at_a]) - parts.d,
            parts.c - (y - self.a.ends[at, parts.at_a + 1]),
            parts.c - self.b.ends[at, parts.at_b],
            self.b.ends[at, parts.at_b + 1] - parts.d,
        ]
        return [np.where(np.isfinite(distance), distance, 0.0) for distance in distances]


class Convolution:
    """The law of a sum of few terms, from the laws of at least two terms for the same rows, the widest first."""

    relative = True

    def __init__(self, laws: list[Pieces]) -> None:
        while len(laws) > 2:
            pairs = [_Sum(*pair).table() for pair in zip(laws[::2], laws[1::2], strict=False)]
            laws = pairs + laws[2 * len(pairs) :]
        self.sum = _Sum(laws[0], laws[1])
        self.points = 0
        self.whole: Pieces | None = None
        self.table_from = TABLE_FROM * laws[0].cuts.size * (1 + laws[1].cuts.shape[1])

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        row, y = np.repeat(index, x.shape[1]), x.ravel()
        self.points += len(y)
        if self.whole is None and self.points > self.table_from:
            self.whole = self.sum.table()
        if self.whole is None or np.any(self.whole.error[index] > TABLE_ERROR):
            place, error, pdf_error = self.sum(row, y)
            error = error + self.sum.error[row]
        else:
            place = self.whole(row, y)
            error, pdf_error = self.whole.error[row], 1e-13 * place.pdf
        error = error + 32 * EPS
        values = [part.reshape(x.shape) for part in (*place, error, pdf_error + 64 * EPS * place.pdf)]
        return Values(*values)
