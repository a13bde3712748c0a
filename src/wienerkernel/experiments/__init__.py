"""Reproducible experiments: the paper's, calibration, safe optimization, and their data."""
