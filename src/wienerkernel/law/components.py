"""Sums of few terms of a mixture: one law for each choice of components, weighted by its probability.

Atoms among the components shift the laws of the others, and poles stay where the components have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from math import comb, factorial, prod
from typing import NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray
from ..noise import Noise, ScipyNoise
from .atoms import SUM, TOLERANCE, nearest, relevant_atoms, sum_of_atoms
from .closed import NORMAL, SingleTerm
from .convolution import Convolution, scaled_pieces
from .corners import components
from .ray import EPS, Inversion, Values
from .rows import Rows, split

__all__ = ["ComponentSum", "choices"]

MOST_CHOICES = 100
"""Choices of components that are convolved one by one; a quarter of it for more than four terms."""


class _Choice(NamedTuple):
    """Probability, law of the continuous part (None for none), and values and masses of the discrete one."""

    probability: float
    law: Inversion | None
    shift: FloatArray
    mass: FloatArray


def choices(rows: Rows, row: int) -> int:
    """Number of ways to choose components for the terms of a row."""
    used = zip(rows.weights[row], rows.counts, rows.laws, strict=True)
    terms = [(components(law), int(count)) for weight, count, law in used if weight]
    # all atoms of a choice are summed over
    atoms = [
        sum(len(relevant_atoms(part)[0]) for _, part in pairs if part.discrete) ** n for pairs, n in terms
    ]
    if prod(number for number in atoms if number) > SUM:
        return MOST_CHOICES + 1
    return prod(comb(len(pairs) + n - 1, n) for pairs, n in terms)


class ComponentSum:
    """The laws of all choices of components, added, for rows of few terms."""

    relative = True

    def __init__(self, rows: Rows) -> None:
        self.rows = [list(_choices(rows, row)) for row in range(len(rows))]

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        result = Values(*np.zeros((5, *x.shape)))
        for i, row in enumerate(index):
            for choice in self.rows[row]:
                for out, value in zip(result, _values(choice, x[i]), strict=True):
                    out[i] += choice.probability * value
        return result

    def snap(self, x: FloatArray, index: IntArray) -> FloatArray:
        """The points ``x``, moved to the atoms that they are next to."""
        atoms = [
            np.concatenate([[np.inf]] + [c.shift for c in self.rows[row] if c.law is None]) for row in index
        ]
        return np.stack([nearest(points, values) for points, values in zip(x, atoms, strict=True)])


def _choices(rows: Rows, row: int) -> Iterator[_Choice]:
    weights, tau = rows.weights[row], float(np.sqrt(rows.normal_var[row]))
    used = np.flatnonzero(weights)
    pairs = {j: components(rows.laws[j]) for j in used}
    # poles are moved to 0, where x is rounded least
    parts = {
        j: [split(law) if isinstance(law, ScipyNoise) else (law, 0.0, 1.0, 0.0) for _, law in pairs[j]]
        for j in used
    }
    known: dict[tuple[tuple[float, Noise], ...], Inversion] = {}
    chosen = [combinations_with_replacement(range(len(pairs[j])), int(rows.counts[j])) for j in used]
    for assignment in product(*chosen):
        terms = [(j, k) for j, ks in zip(used, assignment, strict=True) for k in ks]
        probability = prod(_multinomial(ks) for ks in assignment) * prod(pairs[j][k][0] for j, k in terms)
        rough = [(float(weights[j]), pairs[j][k][1]) for j, k in terms if pairs[j][k][1].discrete]
        smooth = [(j, k) for j, k in terms if not pairs[j][k][1].discrete]
        origin = sum(weights[j] * parts[j][k][1] for j, k in smooth)
        laws = tuple(
            sorted(((weights[j] * parts[j][k][2], parts[j][k][0]) for j, k in smooth), key=_widest_first)
        )
        if tau:
            laws += ((tau, NORMAL),)
        if laws and laws not in known:
            known[laws] = _law(laws)
        values, mass = sum_of_atoms(rough)
        yield _Choice(probability, known.get(laws), values + origin, mass)


def _widest_first(term: tuple[float, Noise]) -> tuple[float, int]:
    return -abs(term[0]) * term[1].std(), hash(term[1])


def _multinomial(components: tuple[int, ...]) -> int:
    return factorial(len(components)) // prod(factorial(components.count(k)) for k in set(components))


def _law(terms: tuple[tuple[float, Noise], ...]) -> Inversion:
    if len(terms) == 1:
        return SingleTerm(terms[0][1], np.array([terms[0][0]]))
    return Convolution([scaled_pieces(noise, np.array([weight])) for weight, noise in terms])


def _values(choice: _Choice, x: FloatArray) -> tuple[FloatArray, ...]:
    """Values at the points ``x`` of shape (k,)."""
    if choice.law is None:  # an atom is reached, whatever a standardized x rounds to
        reached = x[:, None] + 4 * TOLERANCE * (1 + np.abs(x[:, None])) >= choice.shift
        error = np.full(x.shape, 16 * EPS)
        return np.full(x.shape, np.nan), reached @ choice.mass, ~reached @ choice.mass, error, error
    moved = np.ravel(x[:, None] - choice.shift)[None]
    return tuple(
        part.reshape(len(x), -1) @ choice.mass for part in choice.law(moved, np.zeros(1, dtype=np.intp))
    )
