"""Experiments that can be repeated: the paper's, calibration, safe optimization, and their data."""
