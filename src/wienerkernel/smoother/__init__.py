"""The linear smoother: weights a(x) from data, kernel and ridge, and the results that follow from its factor."""

from .smoother import CANCELLED, Smoother, quadratic_form, times_covariance

__all__ = ["CANCELLED", "Smoother", "quadratic_form", "times_covariance"]
