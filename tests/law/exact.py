"""Distribution functions of sums to about 1e-14, by direct means: nothing here is our own law code.

Three ways, each with an estimate of its error: all outcomes of atoms one by one; nested integrals
F_n(y) = E F_{n-1}(y - w_n M) over the probability, cut at the singular points, by double exponential quadrature; and the
inversion formula of Gil-Pelaez (1951) for characteristic functions known in closed form that decay fast.
"""

from __future__ import annotations

import numpy as np
from law.bracket import NORMAL, dyadic, merged
from scipy import special

EPS = float(np.finfo(float).eps)
MAX_OUTCOMES = 3_000_000
MAX_EVALUATIONS = 3e7
GOOD = 3e-14
USABLE = 1e-9
"""Larger differences of two quadratures are no estimates."""
CHUNK = 2**20


def exact_cdf(law, weights, y, *, counts=None, loc=0.0, normal_std=0.0, budget=MAX_EVALUATIONS):
    """P(Y <= y) and an error for it, inf where none of the ways leads there; each of the shape of y."""
    terms, std = merged(law, weights, counts, normal_std)
    terms = [(law.copies(c), w, 1) if c > 1 and law.copies else (law, w, c) for law, w, c in terms]
    z = np.asarray(y, dtype=float).ravel() - loc
    value, error = np.full(z.shape, 0.5), np.full(z.shape, np.inf)
    few = sum(count for _, _, count in terms) + (std > 0) <= 2
    for way in (outcomes_of, nested, inversion) if few else (outcomes_of, inversion, nested):
        answer = way(terms, std, z, budget)
        if answer is not None:
            better = answer[1] < error
            value, error = np.where(better, answer[0], value), np.where(better, answer[1], error)
        if np.all(error < 1e-13):
            break
    error = np.where(error < USABLE, error, np.inf)
    return value.reshape(np.shape(y)), error.reshape(np.shape(y))


# All outcomes


def outcomes_of(terms, std, z, budget):
    if any(law.parts for law, _, _ in terms):
        return None
    copies = sum(count for _, _, count in terms)
    sums, p, work = np.zeros(1), np.ones(1), 0
    for law, w, count in terms:
        for _ in range(count):
            work += len(sums) * len(law.atoms[0])
            if work > MAX_OUTCOMES:
                return None
            sums, p = _collected(np.add.outer(sums, w * law.atoms[0]), np.multiply.outer(p, law.atoms[1]))
    error = np.full(z.shape, 4 * EPS * (1 + copies) + max(0.0, 1 - p.sum()))
    if std > 0:
        value = np.array([special.ndtr((v - sums) / std) @ p for v in z])
        # sums are rounded, and the normal law may be steep
        shift = 4 * EPS * np.max(np.abs(sums), initial=0.0) * copies / std
        density = np.array([np.exp(-0.5 * ((v - sums) / std) ** 2) @ p for v in z])
        return value, error + shift * density
    order = np.argsort(sums)
    cumulative = np.concatenate([[0.0], np.cumsum(p[order])])
    near = 1e-9 * np.max(np.abs(sums), initial=0.0)
    before, after = (np.searchsorted(sums[order], z + s, side="right") for s in (-near, near))
    at = np.searchsorted(sums[order], z, side="right")
    sharp = np.array([dyadic(v) for v in z]) & all(dyadic(w * law.atoms[0]) for law, w, _ in terms)
    value = np.where(sharp, cumulative[at], cumulative[after])
    return value, error + np.where(sharp, 0.0, cumulative[after] - cumulative[before])


def _collected(sums, p):
    sums, p = sums.ravel(), p.ravel()
    order = np.argsort(sums)
    sums, p = sums[order], p[order]
    first = np.concatenate([[True], np.diff(sums) > 1e-13 * max(1e-300, np.abs(sums).max())])
    return sums[first], np.add.reduceat(p, np.flatnonzero(first))


# Nested integrals


def double_exponential(per_unit):
    t = np.arange(-int(3.3 * per_unit), int(3.3 * per_unit) + 1) / per_unit
    x = special.expit(np.pi * np.sinh(t))
    weight = np.pi * np.cosh(t) * x * special.expit(-np.pi * np.sinh(t)) / per_unit
    return x, special.expit(-np.pi * np.sinh(t)), weight


def _gauss(n):
    t, weight = np.polynomial.legendre.leggauss(n)
    return 0.5 * (1 + t), 0.5 * (1 - t), 0.5 * weight


def _distinct(x):
    x = np.sort(x)
    return x[np.concatenate([[True], np.diff(x) > 1e-14 * np.abs(x).max()])]


class _TooMany(Exception):
    """More evaluations than may be spent."""


class _Nest:
    """P(T_1 + ... + T_n <= z) for the terms T_k = w_k M, largest first."""

    def __init__(self, terms, budget):
        self.budget = budget
        spread = [abs(w) * np.sqrt(law.var()) for law, w in terms]
        self.terms = [terms[i] for i in np.argsort(spread)[::-1]]
        self.singular_points = [np.zeros(1)]
        for law, w in self.terms:
            sums = np.add.outer(self.singular_points[-1], w * law.cuts).ravel()
            self.singular_points.append(_distinct(sums))

    def __call__(self, z, per_unit, n=None):
        n = len(self.terms) if n is None else n
        law, w = self.terms[n - 1]
        if n == 1:
            return _term_cdf(law, w, z)
        step = max(1, CHUNK // int(400 * (2 + len(law.cuts) + len(self.singular_points[n - 1]))))
        return np.concatenate([self._mean(z[i : i + step], per_unit, n) for i in range(0, len(z), step)])

    def _mean(self, z, per_unit, n):
        law, w = self.terms[n - 1]
        result = np.zeros(len(z))
        for x, p in zip(*law.atoms, strict=True):
            result += p * self(z - w * x, per_unit, n - 1)
        for p, part in law.parts:
            result += p * self._integral(law, part, w, z, per_unit, n)
        return result

    def _integral(self, law, part, w, z, per_unit, n):
        """E F_{n-1}(z - w X) over the probability u of X, and v = 1 - u with its own digits."""
        cuts = np.broadcast_to(law.cuts, (len(z), len(law.cuts)))
        hits = (z[:, None] - self.singular_points[n - 1]) / w
        x = np.concatenate([cuts, hits], axis=1)
        with np.errstate(all="ignore"):
            u, v = np.clip(part.cdf(x), 0.0, 1.0), np.clip(part.sf(x), 0.0, 1.0)
        ends = np.ones((len(z), 1))
        u = np.sort(np.concatenate([0 * ends, u, ends], axis=1), axis=1)
        v = -np.sort(-np.concatenate([ends, v, 0 * ends], axis=1), axis=1)
        length = np.where(u[:, :-1] < 0.5, np.diff(u, axis=1), -np.diff(v, axis=1))
        row, piece = np.nonzero(length > 1e-18)
        length = length[row, piece]
        smooth = law.piecewise_uniform and all(other.piecewise_uniform for other, _ in self.terms[: n - 1])
        at, complement, weight = _gauss(8) if smooth else double_exponential(per_unit)
        self.budget -= length.size * len(at) * law.cost
        if self.budget < 0:
            raise _TooMany
        node = u[row, piece][:, None] + length[:, None] * at
        rest = v[row, piece + 1][:, None] + length[:, None] * complement
        x = quantile(part, node, rest)
        inner = self((z[row][:, None] - w * x).ravel(), per_unit, n - 1).reshape(x.shape)
        return np.bincount(row, length * (inner @ weight), len(z))


def quantile(part, u, v):
    """Quantiles of the probabilities u = 1 - v, of which v has the digits where u is near 1."""
    x, low = np.empty(u.shape), u < 0.99
    with np.errstate(all="ignore"):
        x[low], x[~low] = part.ppf(u[low]), part.isf(np.maximum(v[~low], 1e-20))
    return x


def _term_cdf(law, w, z):
    with np.errstate(all="ignore"):
        below, above = law.continuous(z / w)
    x, p = law.atoms
    return (below if w > 0 else above) + (w * x <= z[..., None]) @ p


def nested(terms, std, z, budget):
    copies = sum(count for _, _, count in terms)
    if copies + (std > 0) > 4:
        return None
    single = [(law, w) for law, w, count in terms for _ in range(count)]
    if std > 0:
        single.append((NORMAL, std))
    outcomes = np.prod([max(1, len(law.cuts)) for law, _ in single[:-1]], dtype=float)
    if not single or outcomes > 5000:
        return None
    if len(single) == 1:
        return _nest_once(single, z)
    nest = _Nest(single, budget)
    value, error, per_unit = np.zeros(z.shape), np.full(z.shape, np.inf), 8
    todo = np.arange(len(z))
    try:
        before = nest.budget
        nest(z[len(z) // 2 :][:1], per_unit)
        if 3 * (before - nest.budget) * len(z) > budget:
            return None
        while len(todo) and per_unit <= 64:
            finer = nest(z[todo], per_unit)
            if per_unit > 8:
                error[todo] = np.abs(finer - value[todo]) + 4 * EPS
            value[todo] = finer
            todo = todo[error[todo] > GOOD]
            per_unit *= 2
    except _TooMany:
        pass
    return value, error


def _nest_once(single, z):
    law, w = single[0]
    value = _term_cdf(law, w, z)
    jump = sum(
        (p * (np.abs(z - w * x) <= 4 * EPS * np.abs(w * x)) for x, p in zip(*law.atoms, strict=True)), 0.0
    )
    return value, 1e-15 + np.where(np.isin(z, w * law.atoms[0]), 0.0, jump)


# Inversion


def inversion(terms, std, z, budget):
    """The integral of Gil-Pelaez, by Gauss-Legendre panels that are graded towards 0 and follow the oscillation."""
    if any(law.cf is None for law, _, _ in terms):
        return None
    total = np.sqrt(sum(c * w * w * law.var() for law, w, c in terms) + std**2)
    mean = sum(c * w * law.mean() for law, w, c in terms)

    def cf(t):
        result = np.exp(-0.5 * (std * t) ** 2).astype(complex)
        for law, w, count in terms:
            result *= (np.exp(-1j * law.mean() * w * t) * law.cf(w * t)) ** count
        return result

    t = np.geomspace(2.0, 1e6, 4000) / total
    size = np.exp(-0.5 * (std * t) ** 2)
    for law, w, count in terms:
        size *= np.nan_to_num(np.abs(law.cf(w * t)), nan=1.0) ** count  # at most 1 where it is not known
    above = np.flatnonzero(size > 1e-17)
    if len(above) == 0 or above[-1] > len(t) - 500:
        return None
    end = t[above[-1] + 1]
    # 20 nodes resolve a turn and a half of each factor
    bandwidth = float(np.max(np.abs(z - mean))) + sum(c * _extent(law, w) for law, w, c in terms) + 10 * total
    panels = int(np.ceil(end * bandwidth / 8))
    if panels > 2**12:
        return None
    first = end / panels
    edges = np.concatenate([[0.0], first * 0.5 ** np.arange(60, 0, -1), first * np.arange(1, panels + 1)])
    node, _, weight = _gauss(20)
    value, size, turns = np.full(z.shape, 0.5), 0.0, 0.0
    for start in range(0, len(edges) - 1, 400):
        left, right = edges[:-1][start : start + 400], edges[1:][start : start + 400]
        t = (left[:, None] + (right - left)[:, None] * node).ravel()
        term = cf(t) * ((right - left)[:, None] * weight).ravel() / (np.pi * t)
        if np.any(np.isnan(term)):
            return None
        value -= (np.exp(-1j * np.outer(z - mean, t)) @ term).imag
        size, turns = size + float(np.abs(term).sum()), turns + float(np.abs(term) @ t)
    copies = sum(count for _, _, count in terms)
    error = (
        2e-14
        + size * sum(c * law.cf_error for law, _, c in terms)
        + EPS * (copies * size + 4 * turns * (bandwidth + abs(mean)))
    )
    return np.clip(value, 0.0, 1.0), np.full(z.shape, error)


def _extent(law, w):
    """How far from its mean a term has a singular point that makes its characteristic function oscillate."""
    return abs(w) * float(np.max(np.abs(law.singular_points - law.mean()), initial=0.0))
