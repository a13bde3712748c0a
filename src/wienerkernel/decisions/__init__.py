"""What to do next: error bounds, norms, experiment design and optimization."""
