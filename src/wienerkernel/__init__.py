"""Kernel regression under non-Gaussian noise."""
