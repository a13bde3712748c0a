"""A rigorous bracket for the distribution function of a sum of independent terms: nothing here is our own law code.

Every term T is rounded down and up to a lattice, offset + h Z. The rounded terms have known probabilities, differences
of the distribution function of the single law; fast Fourier transforms add them up, and

    P(sum of terms rounded up <= y)  <=  P(Y <= y)  <=  P(sum of terms rounded down <= y).

Tails that do not fit on the lattice are left out, and their mass counts as unknown. The bracket is about
(number of terms) * h * density wide, and as wide as the mass of a cell at a pole: wide, but never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import stats

EPS = float(np.finfo(float).eps)
LEFT_OUT = (1e-16, 1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
"""Masses of a tail of one term that may stay outside of the lattice."""
WRAPPED = 1e-16
"""Mass of a tail of the sum that may come round the circle of the Fourier transform."""
COARSE = 2048
FUZZ = 1e-7
"""Atoms this close to the lattice, in units of h, lie on it; the points that are asked for move by as much."""


@dataclass
class Law:
    """The law of one M as a mixture of continuous laws and atoms.

    ``parts`` are (probability, law with cdf, sf, ppf, isf and support); ``singular_points`` the finite points where the
    density of a part is not smooth, ends of supports included; ``normal_std`` belongs to a normal part of each copy.
    ``cf`` is the characteristic function without that part, with a relative error ``cf_error``, and ``copies(n)`` the law of a sum of n copies, if known;
    ``cost`` is what a quantile costs, roughly in tenths of a microsecond.
    """

    parts: list[tuple[float, object]] = field(default_factory=list)
    atoms: tuple[np.ndarray, np.ndarray] = (np.empty(0), np.empty(0))
    singular_points: np.ndarray | None = None
    normal_std: float = 0.0
    cf: object = None
    cf_error: float = 4 * EPS
    copies: object = None
    cost: float = 1.0
    piecewise_uniform: bool = False

    def __post_init__(self):
        self.atoms = tuple(np.asarray(values, dtype=float) for values in self.atoms)
        if self.singular_points is None:
            ends = [end for _, part in self.parts for end in part.support()]
            self.singular_points = np.array(ends)
        points = np.concatenate([np.asarray(self.singular_points, dtype=float), self.atoms[0]])
        self.singular_points = np.unique(points[np.isfinite(points)])
        medians = [float(part.ppf(0.5)) for _, part in self.parts if not np.any(np.isfinite(part.support()))]
        self.cuts = np.unique([*self.singular_points, *medians])

    @property
    def discrete(self):
        return not self.parts and self.normal_std == 0

    @property
    def has_density(self):
        return len(self.atoms[0]) == 0 or self.normal_std > 0

    def mean(self):
        return self._moments[0]

    def var(self):
        return self._moments[1]

    @cached_property
    def _moments(self):
        mean = float(sum(p * part.mean() for p, part in self.parts) + self.atoms[0] @ self.atoms[1])
        inner = sum(p * (part.var() + (part.mean() - mean) ** 2) for p, part in self.parts)
        return mean, float(inner + (self.atoms[0] - mean) ** 2 @ self.atoms[1] + self.normal_std**2)

    def support(self):
        ends = [part.support() for _, part in self.parts] + [(x, x) for x in self.atoms[0]]
        if self.normal_std > 0:
            return -np.inf, np.inf
        return min(a for a, _ in ends), max(b for _, b in ends)

    def _sum(self, name, x):
        with np.errstate(all="ignore"):
            return np.asarray(sum((p * getattr(part, name)(x) for p, part in self.parts), np.zeros(x.shape)))

    def continuous(self, x):
        """P(M <= x) and P(M > x) of the parts alone, without atoms."""
        return self._sum("cdf", x), self._sum("sf", x)

    def ends(self, level):
        """Interval outside of which each part has at most this much of its mass on either side."""
        low, high = [*self.atoms[0]], [*self.atoms[0]]
        for _, part in self.parts:
            lower, upper = part.support()
            low.append(lower if np.isfinite(lower) else float(part.ppf(level)))
            high.append(upper if np.isfinite(upper) else float(part.isf(level)))
        return min(low), max(high)


NORMAL = Law([(1.0, stats.norm())])


def merged(law, weights, counts=None, normal_std=0.0):
    """(law, weight, count) for each different weight, and the standard deviation of all normal parts together."""
    weights = np.asarray(weights, dtype=float)
    counts = np.ones(len(weights)) if counts is None else np.asarray(counts, dtype=float)
    different, inverse = np.unique(weights, return_inverse=True)
    number = np.bincount(inverse.ravel(), weights=counts)
    terms = [(law, w, int(c)) for w, c in zip(different, number, strict=True) if w != 0]
    return terms, float(np.sqrt(normal_std**2 + law.normal_std**2 * np.sum(counts * weights**2)))


class Bracket:
    """Lower and upper bounds for P(loc + sum_j w_j M_j + N(0, normal_std^2) <= y).

    Parameters
    ----------
    law : Law
    weights : array-like of shape (D,)
    counts : array-like of int of shape (D,), optional
    loc, normal_std : float
    size : int
        Points of the lattice, a power of 2.
    """

    def __init__(self, law, weights, *, counts=None, loc=0.0, normal_std=0.0, size=2**20):
        terms, std = merged(law, weights, counts, normal_std)
        if std > 0:
            terms.append((NORMAL, std, 1))
        self.loc = float(loc)
        plans = [_Plan(terms, level, size) for level in (LEFT_OUT if _unbounded(terms) else (0.0,))]
        self.plan = plan = min(plans, key=lambda plan: plan.width)
        self.h, self.copies = plan.h, sum(count for _, _, count in terms)
        # sums of such atoms are exact in float64, and a point that is one of them includes it
        self.dyadic = all(law.discrete and dyadic(w * law.atoms[0]) for law, w, _ in terms) and dyadic(loc)
        self._fill(terms, size)

    def _fill(self, terms, size):
        h, plan = self.h, self.plan
        self.low_offset = self.high_offset = self.loc
        spectra = [np.ones(size // 2 + 1, dtype=complex) for _ in range(2)]
        kept, norms, factors, first, clipped, place = 1.0, [], [], 0, 0.0, abs(self.loc)
        twice = any(len(law.atoms[0]) for law, _, _ in terms)
        for (law, w, count), (a, b) in zip(terms, plan.ends, strict=True):
            if (b - a) < h and not (law.discrete and plan.exact):
                # finer than the lattice: the term is only known to lie between its ends
                kept *= max(0.0, 1 - _outside(law, w, a, b)) ** count
                self.low_offset += count * a
                self.high_offset += count * b
                continue
            origin = (
                w * law.singular_points[0]
                if len(law.singular_points) and np.isfinite(law.singular_points[0])
                else a
            )
            low, high = int(np.floor((a - origin) / h - FUZZ)), int(np.ceil((b - origin) / h + FUZZ))
            mass = np.zeros(high - low)
            if law.parts:
                mass, negative = _cells(law, w, origin + h * np.arange(low, high + 1))
                clipped += count * negative
            place += count * max(abs(a), abs(b), abs(origin))
            up, down = (np.bincount(np.arange(low + s, high + s) % size, mass, size) for s in (1, 0))
            position = (w * law.atoms[0] - origin) / h
            nearest = np.rint(position)
            on = np.abs(position - nearest) < FUZZ
            for pmf, rounded in ((up, np.ceil(position)), (down, np.floor(position))):
                k = np.where(on, nearest, rounded).astype(np.int64) % size
                pmf += np.bincount(k, law.atoms[1], size)
            kept *= min(1.0, float(up.sum())) ** count
            norms.append(float(np.sqrt(np.sum(up**2))))
            self.low_offset += count * origin
            self.high_offset += count * origin
            spectrum = np.fft.rfft(up)
            # 2-norm of the law of all copies but one
            factors.append((count, float(np.sqrt(2 * np.sum(np.abs(spectrum) ** (2 * count - 2)) / size))))
            spectra[0] *= spectrum**count
            if twice:
                spectra[1] *= np.fft.rfft(down) ** count
            else:
                first += count
        start = int(np.floor((plan.low - self.low_offset + self.loc) / h)) - self.copies - 2
        self.start = start
        up = np.roll(np.fft.irfft(spectra[0], size), -(start % size))
        self._up = _cumulative(up)
        self._down = self._up
        self._shift = first  # rounded down, a sum of continuous terms is one cell per term further left
        if twice:
            self._down = _cumulative(np.roll(np.fft.irfft(spectra[1], size), -(start % size)))
        self.lost = max(0.0, 1 - kept) + 2 * self.copies * EPS
        # A transform has an error of at most 4 EPS log2(size) times the 1-norm of the masses at each frequency, and
        # times their 2-norm over all of them (Higham 2002, theorem 24.2); it meets the other factors, which are at
        # most 1. By the inequality of Cauchy and Schwarz the sum of k such errors is at most sqrt(k) times their norm.
        norm = min(norms, default=0.0)
        relative = 8 * EPS * np.log2(size)
        self.per_root = relative * (norm + sum(count * min(norm, rest) for count, rest in factors))
        self.rounding = relative * (1 + self.copies) + 4 * EPS * np.sqrt(size) + clipped
        self.unknown = plan.wrapped + self.rounding
        # edges of cells are rounded like the places they stand for
        self.fuzz = FUZZ * (1 + self.copies) + 4 * EPS * place / h

    def cdf(self, y, slack=0.0):
        """Lower bounds of P(Y <= y - slack) and upper bounds of P(Y <= y + slack), each of the shape of y."""
        y = np.asarray(y, dtype=float)
        fuzz = self.fuzz + 4 * EPS * np.abs(y) / self.h
        inwards = -1e-9 if self.dyadic and self.plan.exact and np.all(slack == 0) else fuzz
        # high_offset >= low_offset: terms finer than the lattice are as large, or as small, as they can be
        k_low = np.floor((y - slack - self.high_offset) / self.h - inwards) - self.start
        k_high = np.floor((y + slack - self.low_offset) / self.h + fuzz) - self.start + self._shift
        lower = _at(self._up, k_low) - self._unknown(k_low)
        upper = _at(self._down, k_high) + self._unknown(k_high) + self.lost
        return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)

    def _unknown(self, k):
        return self.unknown + self.per_root * np.sqrt(np.clip(k + 1, 1, len(self._up)))


def _cumulative(mass):
    """Sums without the drift of equal steps that are all rounded to the same side: by blocks."""
    blocks = mass.reshape(-1, 256)
    before = np.concatenate([[0.0], np.cumsum(blocks.sum(axis=1))[:-1]])
    return (before[:, None] + np.cumsum(blocks, axis=1)).ravel()


def _at(cumulative, k):
    inside = np.clip(k, 0, len(cumulative) - 1).astype(np.int64)
    return np.where(k < 0, 0.0, cumulative[inside])


def dyadic(x):
    """Whether these are multiples of 2^-20 of moderate size, whose sums are exact in float64."""
    scaled = np.asarray(x, dtype=float) * 2.0**20
    return bool(np.all((scaled == np.rint(scaled)) & (np.abs(scaled) < 2.0**50)))


def _unbounded(terms):
    return any(not np.all(np.isfinite(part.support())) for law, _, _ in terms for _, part in law.parts)


def _cells(law, w, edges):
    """Masses of the parts of w M between neighboring edges, with relative accuracy in both tails.

    Also the sum of masses that rounding made negative; they count as 0.
    """
    below, above = law.continuous(edges / w)
    if w < 0:
        below, above = above, below
    mass = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    return np.maximum(mass, 0.0), float(-np.minimum(mass, 0.0).sum())


def _outside(law, w, a, b):
    low, high = (a / w, b / w) if w > 0 else (b / w, a / w)
    return float(law.continuous(np.array(low))[0] + law.continuous(np.array(high))[1])


class _Plan:
    """Where the terms are cut off, the window of the sum and the step of the lattice."""

    def __init__(self, terms, level, size):
        self.ends = []
        lost = 0.0
        for law, w, count in terms:
            a, b = sorted(w * end for end in law.ends(level))
            self.ends.append((a, b))
            lost += count * level * 2 if level else 0.0
        low = sum(count * a for (_, _, count), (a, _) in zip(terms, self.ends, strict=True))
        high = sum(count * b for (_, _, count), (_, b) in zip(terms, self.ends, strict=True))
        copies = sum(count for _, _, count in terms)
        self.low, self.high, self.wrapped = low, high, 0.0
        if copies > 2:
            left, right = _window(terms, self.ends)
            if right - left < high - low:
                self.low, self.high, self.wrapped = max(low, left), min(high, right), 2 * WRAPPED
        length = max(self.high - self.low, 1e-300)
        self.h = length / (max(size - 2 * copies - 16, 1))
        self.exact = False
        grid = _common_step(terms)
        if grid and grid >= self.h:
            discrete = all(law.discrete for law, _, _ in terms)
            self.h = grid if discrete else grid / np.floor(grid / self.h)
            self.exact = discrete
        std = np.sqrt(sum(count * w * w * law.var() for law, w, count in terms))
        self.width = lost + self.wrapped + copies * self.h / std


def _common_step(terms):
    """Largest step on which all atoms of all terms lie, seen from the first atom of each; 0 if there is none."""
    step = 0.0
    for law, w, _ in terms:
        for distance in np.abs(w * (law.atoms[0] - law.singular_points[0])) if len(law.atoms[0]) else ():
            a, b = max(step, distance), min(step, distance)
            while b > 1e-9 * a:
                a, b = b, a - b * np.rint(a / b)
                a, b = max(abs(a), abs(b)), min(abs(a), abs(b))
                if a < 1e-7 * max(step, distance):
                    return 0.0
            step = a
    return step


def _window(terms, ends):
    """Interval that holds the sum up to WRAPPED on either side, by Chernoff's bound on coarsely rounded terms."""
    std = np.sqrt(sum(count * w * w * law.var() for law, w, count in terms))
    rates = np.geomspace(1e-5, 1e3, 160) / std
    bounds = []
    for sign in (-1.0, 1.0):
        cgf = np.zeros(len(rates))
        for (law, w, count), (a, b) in zip(terms, ends, strict=True):
            edges = np.linspace(a, b, COARSE + 1)
            mass = _cells(law, w, edges)[0] if law.parts else np.zeros(COARSE)
            x = np.concatenate([edges[1:] if sign > 0 else edges[:-1], w * law.atoms[0]])
            p = np.concatenate([mass, law.atoms[1]])
            exponent = sign * rates[:, None] * x
            top = exponent.max(axis=1)
            with np.errstate(divide="ignore"):
                cgf += count * (np.log(np.exp(exponent - top[:, None]) @ p) + top)
        bounds.append(sign * float(np.min((cgf - np.log(WRAPPED)) / rates)))
    return bounds[0], bounds[1]
