"""Characteristic functions of the laws in ``scipy.stats``: in closed form where one exists, else by quadrature.

Each belongs to the standard law (loc 0, scale 1) and is a function of complex t, with the strip of real s on which
E exp(s M) is finite and the sector around the real axis into which it continues analytically. All logarithms keep
their relative accuracy as t -> 0, because thousands of such small terms are summed.

What is computed once per law is cached here, by law: the laws themselves stay small and picklable.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..._typing import FloatArray
from .characteristic_function import CharacteristicFunction
from .closed_forms import known
from .panels import Tails, numerical, tails
from .quadrature import summed
from .singular_points import singular_points

if TYPE_CHECKING:
    from ..scipy_law import ScipyNoise

__all__ = [
    "CharacteristicFunction",
    "characteristic",
    "standard_singular_points",
    "standard_tails",
]


@lru_cache(maxsize=256)
def characteristic(law: ScipyNoise) -> CharacteristicFunction:
    """Characteristic function of a standard law: closed form, rotated contour, or quadrature of its density."""
    formula = known(law.name, law.shapes)
    if formula is not None and formula.accurate:
        return formula
    return summed(law.frozen) if law.discrete else numerical(law)


@lru_cache(maxsize=256)
def standard_singular_points(law: ScipyNoise) -> FloatArray:
    """Points (n,) where the density of a standard law is not smooth."""
    return law.knots if law.knots.size else singular_points(law)


@lru_cache(maxsize=64)
def standard_tails(law: ScipyNoise) -> Tails:
    """x -> P(M <= x), P(M > x) of a standard law, integrated from its density."""
    return tails(law.frozen)
