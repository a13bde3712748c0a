"""Characteristic functions of the laws in ``scipy.stats``: closed forms, contours, and quadrature of the density."""
