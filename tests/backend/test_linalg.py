"""The linear algebra against NumPy's."""

import numpy as np
import pytest

from wienerkernel.backend import linalg


@pytest.fixture
def matrix():
    a = np.random.default_rng(0).normal(size=(150, 150))
    return a @ a.T + np.eye(150)


@pytest.fixture(params=[False, True], ids=["whole", "in blocks"])
def in_blocks(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(linalg, "BLOCKED_ABOVE", 10)
        monkeypatch.setattr(linalg, "BLOCK", 32)


@pytest.mark.usefixtures("in_blocks")
def test_cholesky_overwrites_the_lower_triangle(matrix):
    work = np.tril(matrix) + np.triu(np.full_like(matrix, np.nan), 1)  # the upper triangle must not be read
    factor = linalg.cholesky(work)
    assert factor is work or np.shares_memory(factor, work)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("in_blocks")
def test_the_row_of_a_bad_pivot_is_named(matrix):
    matrix[100, 100] = -1.0
    with pytest.raises(linalg.NotPositiveDefiniteError, match="row 100"):
        linalg.cholesky(matrix)


def test_nan_is_caught_before_lapack():
    with pytest.raises(linalg.NotPositiveDefiniteError, match="NaN"):
        linalg.cholesky(np.full((2, 2), np.nan))


@pytest.mark.parametrize("n_rows", [1, 7])
def test_triangular_solves_overwrite_their_rows(matrix, n_rows):
    factor = linalg.cholesky(matrix.copy())
    lower = np.tril(factor)
    rows = np.random.default_rng(1).normal(size=(n_rows, 150))
    for solve, triangle in ((linalg.solve_lower, lower.T), (linalg.solve_lower_transposed, lower)):
        work = rows.copy()
        assert np.shares_memory(solve(factor, work), work)
        np.testing.assert_allclose(work @ triangle, rows, atol=1e-12)


@pytest.mark.parametrize("block", [None, 1, 32, 149, 1000])
def test_the_inverse_reads_the_lower_triangle_and_keeps_the_factor(matrix, block, monkeypatch):
    if block is not None:
        monkeypatch.setattr(linalg, "BLOCKED_ABOVE", 10)
        monkeypatch.setattr(linalg, "BLOCK", block)
    lower = np.linalg.cholesky(matrix)
    factor = lower + np.triu(np.full_like(matrix, np.nan), 1)
    inverse = linalg.inverse_from_cholesky(factor)
    np.testing.assert_allclose(np.tril(inverse), np.tril(np.linalg.inv(matrix)), atol=1e-12)
    np.testing.assert_array_equal(np.tril(factor), lower)


@pytest.mark.usefixtures("in_blocks")
def test_add_outer_updates_the_lower_triangle(matrix):
    rows = np.random.default_rng(1).normal(size=(3, 150))
    expected = np.tril(-2.0 * matrix + 0.5 * rows.T @ rows)
    work = matrix.copy()
    assert np.shares_memory(linalg.add_outer(work, rows, 0.5, -2.0), work)
    np.testing.assert_allclose(np.tril(work), expected, atol=1e-10)


def test_matmul_equals_numpy():
    a, b = np.random.default_rng(2).normal(size=(2, 4, 4))
    np.testing.assert_allclose(linalg.matmul(a[:3], b), a[:3] @ b)
    np.testing.assert_allclose(linalg.matmul(a[:3], b, transpose_b=True), a[:3] @ b.T)
    np.testing.assert_allclose(linalg.matmul(a[:3], b[:, :1]), a[:3] @ b[:, :1])
    np.testing.assert_allclose(linalg.matmul(a[:3], b[:1], transpose_b=True), a[:3] @ b[:1].T)
