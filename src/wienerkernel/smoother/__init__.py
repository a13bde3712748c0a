"""Data, kernel and ridge become weights a(x): the linear smoother, and what else follows from its factor."""

from .smoother import CANCELLED, Smoother, quadratic_form, times

__all__ = ["CANCELLED", "Smoother", "quadratic_form", "times"]
