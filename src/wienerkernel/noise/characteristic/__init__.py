"""Characteristic functions of the laws in ``scipy.stats``: closed forms, contours, and quadrature of the density."""

from .dispatch import Characteristic, characteristic, is_formula, standard_singular_points, standard_tails

__all__ = ["Characteristic", "characteristic", "is_formula", "standard_singular_points", "standard_tails"]
