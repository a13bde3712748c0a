"""Arrays of any library, linear algebra, and updates of a Cholesky factor."""
