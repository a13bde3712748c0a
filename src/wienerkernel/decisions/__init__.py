"""Decisions: error bounds, norms, experiment design and optimization."""
