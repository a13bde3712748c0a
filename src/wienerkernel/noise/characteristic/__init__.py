"""Characteristic functions of the laws in ``scipy.stats``: closed forms, contours, and quadrature of the density."""

from .dispatch import (
    CharacteristicFunction,
    characteristic,
    is_formula,
    standard_singular_points,
    standard_tails,
)

__all__ = [
    "CharacteristicFunction",
    "characteristic",
    "is_formula",
    "standard_singular_points",
    "standard_tails",
]
