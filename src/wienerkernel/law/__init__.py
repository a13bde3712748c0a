"""The law of a linear combination of independent noise variables: density, distribution function, quantiles, draws."""

from __future__ import annotations

from .linear_combination import AccuracyWarning, LinearCombination

__all__ = ["AccuracyWarning", "LinearCombination"]
