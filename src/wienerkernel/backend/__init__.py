"""Arrays of any library, the one place that factorizes, and updates of a Cholesky factor."""
