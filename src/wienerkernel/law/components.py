"""Sums of few terms of a mixture: one law for each choice of components, weighed by its probability.

Atoms among the components shift the laws of the others, and poles stay where the components have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from math import comb, factorial, prod
from typing import NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray
from ..noise import Mixture, Noise, ScipyNoise, as_noise
from .atoms import TOLERANCE, SmoothedAtoms, _Half, sum_of_atoms
from .closed import SingleTerm
from .convolution import Convolution, scaled_pieces
from .ray import EPS, Inversion, Values
from .rows import Rows, split

__all__ = ["ComponentSum", "choices"]

MOST_CHOICES = 100
"""Choices of components that are convolved one by one; of more than four terms, a quarter of them."""


class _Choice(NamedTuple):
    """Probability, law of the continuous part (None for none), and values and masses of the discrete one."""

    probability: float
    law: Inversion | None
    shift: FloatArray
    mass: FloatArray


def choices(noise: Noise, counts: FloatArray) -> int:
    """Number of ways to choose components for terms of these multiplicities."""
    if not isinstance(noise, Mixture):
        return 1
    n = len(noise.flattened())
    return prod(comb(n + int(count) - 1, int(count)) for count in counts)


class ComponentSum:
    """Inversion of no transform: the laws of all choices of components, added.

    Parameters
    ----------
    rows : Rows
        Of a mixture, with few terms.
    """

    relative = True

    def __init__(self, rows: Rows) -> None:
        self.rows = [list(_choices(rows, row)) for row in range(len(rows))]

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
        result = Values(*(np.zeros(x.shape) for _ in Values._fields))
        for i, row in enumerate(index):
            for choice in self.rows[row]:
                for out, value in zip(result, _values(choice, x[i]), strict=True):
                    out[i] += choice.probability * value
        return result

    def snap(self, x: FloatArray, index: IntArray) -> FloatArray:
        """The points ``x``, moved to the atoms that they are next to."""
        result = x.copy()
        for i, row in enumerate(index):
            atoms = np.concatenate([[np.inf]] + [c.shift for c in self.rows[row] if c.law is None])
            distance = np.abs(x[i, :, None] - atoms)
            nearest = np.argmin(distance, axis=1)
            close = np.min(distance, axis=1) < 8 * TOLERANCE * (1 + np.abs(x[i]))
            result[i] = np.where(close, atoms[nearest], x[i])
        return result


def _choices(rows: Rows, row: int) -> Iterator[_Choice]:
    assert isinstance(rows.noise, Mixture)
    pairs = rows.noise.flattened()
    # poles are moved to 0, where x is rounded least
    parts = [split(law)[:2] if isinstance(law, ScipyNoise) else (law, 0.0) for _, law in pairs]
    weights, tau = rows.weights[row], float(np.sqrt(rows.normal_var[row]))
    used = np.flatnonzero(weights)
    laws: dict[tuple[tuple[float, int], ...], Inversion] = {}
    chosen = [combinations_with_replacement(range(len(pairs)), int(rows.counts[j])) for j in used]
    for assignment in product(*chosen):
        terms = [(float(weights[j]), k) for j, ks in zip(used, assignment, strict=True) for k in ks]
        ways = prod(_multinomial(ks) for ks in assignment)
        probability = ways * prod(pairs[k][0] for _, k in terms)
        smooth = tuple(sorted((term for term in terms if not pairs[term[1]][1].discrete), key=_widest_first))
        atoms = sum_of_atoms([(w, pairs[k][1]) for w, k in terms if pairs[k][1].discrete])
        if atoms is None:
            msg = f"{rows.noise!r} has too many atoms for method='convolution'; use method='auto'"
            raise ValueError(msg)
        origin = sum(w * parts[k][1] for w, k in smooth)
        if smooth and smooth not in laws:
            laws[smooth] = _law([(w, parts[k][0]) for w, k in smooth], tau)
        if not smooth and tau:
            half = _Half(len(atoms[0]))
            half.values, half.mass = atoms
            yield _Choice(
                probability, SmoothedAtoms([(_Half(1), half)], np.array([tau])), np.zeros(1), np.ones(1)
            )
        else:
            yield _Choice(probability, laws.get(smooth), atoms[0] + origin, atoms[1])


def _widest_first(term: tuple[float, int]) -> tuple[float, int]:
    return -abs(term[0]), term[1]


def _multinomial(components: tuple[int, ...]) -> int:
    return factorial(len(components)) // prod(factorial(components.count(k)) for k in set(components))


def _law(terms: list[tuple[float, Noise]], tau: float) -> Inversion:
    if len(terms) == 1 and not tau:
        return SingleTerm(terms[0][1], np.array([terms[0][0]]))
    laws = [scaled_pieces(noise, np.array([weight])) for weight, noise in terms]
    if tau:
        laws.append(scaled_pieces(as_noise(None), np.array([tau])))
    return Convolution(laws)


def _values(choice: _Choice, x: FloatArray) -> tuple[FloatArray, ...]:
    """Values at the points ``x`` of shape (k,)."""
    if choice.law is None:  # an atom is reached, whatever a standardised x rounds to
        reached = x[:, None] + 4 * TOLERANCE * (1 + np.abs(x[:, None])) >= choice.shift
        error = np.full(x.shape, 16 * EPS)
        return np.full(x.shape, np.nan), reached @ choice.mass, ~reached @ choice.mass, error, error
    moved = np.ravel(x[:, None] - choice.shift)[None]
    return tuple(
        part.reshape(len(x), -1) @ choice.mass for part in choice.law(moved, np.zeros(1, dtype=np.intp))
    )
