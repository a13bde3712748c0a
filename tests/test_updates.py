"""Updated factors and smoothers against those made anew."""

import numpy as np
import pytest

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.growing import Growing, deleted, rank_one
from wienerkernel.linalg import solve_lower, solve_lower_transposed
from wienerkernel.samples import Samples


@pytest.fixture
def matrix():
    a = np.random.default_rng(0).normal(size=(40, 40))
    return a @ a.T + np.eye(40)


def test_rank_one_changes_equal_factorising_anew(matrix):
    factor = np.linalg.cholesky(matrix)
    v = np.random.default_rng(1).normal(size=40)
    np.testing.assert_allclose(
        rank_one(factor, v, 1.0), np.linalg.cholesky(matrix + np.outer(v, v)), atol=1e-12
    )
    v *= 0.9 / np.linalg.norm(np.linalg.solve(factor, v))
    np.testing.assert_allclose(
        rank_one(factor, v, -1.0), np.linalg.cholesky(matrix - np.outer(v, v)), atol=1e-11
    )


@pytest.mark.parametrize("row", [0, 17, 39])
def test_deleting_a_row_equals_factorising_without_it(matrix, row):
    rest = np.delete(np.delete(matrix, row, axis=0), row, axis=1)
    np.testing.assert_allclose(
        np.tril(deleted(np.linalg.cholesky(matrix), row)), np.linalg.cholesky(rest), atol=1e-12
    )


def test_rows_appended_one_by_one_equal_one_factorisation(matrix):
    factor = np.linalg.cholesky(matrix[:5, :5])
    store = Growing(factor, 5)
    for n in range(5, 40):
        factor, store = store.append(
            factor, matrix[n : n + 1, :n].copy(), matrix[n : n + 1, n : n + 1].copy()
        )
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), atol=1e-12)


def test_two_factors_may_grow_from_one(matrix):
    base = np.linalg.cholesky(matrix[:20, :20])
    grown, store = Growing(base, 20).append(base, matrix[20:25, :20].copy(), matrix[20:25, 20:25].copy())
    one, _ = store.append(grown, matrix[25:26, :25].copy(), matrix[25:26, 25:26].copy())
    other, _ = store.append(grown, matrix[30:31, :25].copy() * 0, np.eye(1))
    np.testing.assert_allclose(np.tril(one), np.linalg.cholesky(matrix[:26, :26]), atol=1e-12)
    assert other[25, 25] == 1.0


def test_solves_with_a_factor_that_has_room_to_grow(matrix):
    memory = np.full((60, 60), np.nan)
    memory[:40, :40] = np.linalg.cholesky(matrix)
    view, rows = memory[:40, :40], np.random.default_rng(2).normal(size=(3, 40))
    np.testing.assert_allclose(solve_lower(view, rows.copy()) @ view.T, rows, atol=1e-12)
    np.testing.assert_allclose(solve_lower_transposed(view, rows.copy()) @ view, rows, atol=1e-12)


def rows(n, n_places, seed=0):
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(n_places, 2))
    X = places[rng.integers(0, n_places, n)]
    return X, rng.normal(size=n), rng.uniform(0.5, 2.0, n)


def same(one, other, Z):
    np.testing.assert_allclose(one.predict(Z), other.predict(Z), rtol=1e-9, atol=1e-10)
    for a, b in zip(
        (one.uncertainty(Z).noise, one.uncertainty(Z).model, one.loo().residual),
        (other.uncertainty(Z).noise, other.uncertainty(Z).model, other.loo().residual),
        strict=True,
    ):
        np.testing.assert_allclose(np.sort(a), np.sort(b), rtol=1e-8, atol=1e-9)
    assert one.log_likelihood() == pytest.approx(other.log_likelihood(), rel=1e-9)


@pytest.mark.parametrize("trend", [None, "linear"])
@pytest.mark.parametrize("n_places", [12, 1000])
@pytest.mark.parametrize("steps", [[60], [31, 32, 40, 60], list(range(31, 61))])
def test_appending_rows_equals_refitting(trend, n_places, steps):
    X, y, s = rows(60, n_places)
    Z = np.random.default_rng(9).normal(size=(5, 2))
    model = WienerKernelRegressor(2.0 * RBF(0.9), noise="gamma(2)", trend=trend, tuning=None)
    model.fit(X[:30], y[:30], noise_scale=s[:30])
    start = 30
    for stop in steps:
        model.partial_fit(X[start:stop], y[start:stop], noise_scale=s[start:stop])
        start = stop
    same(
        model,
        WienerKernelRegressor(2.0 * RBF(0.9), noise="gamma(2)", trend=trend, tuning=None).fit(
            X, y, noise_scale=s
        ),
        Z,
    )


@pytest.mark.parametrize("n_places", [12, 1000])
@pytest.mark.parametrize("gone", [[0], [59], [3, 17, 18, 40], list(range(25))])
def test_forgetting_rows_equals_never_having_seen_them(n_places, gone):
    X, y, s = rows(60, n_places)
    Z = np.random.default_rng(9).normal(size=(5, 2))
    model = (
        WienerKernelRegressor(2.0 * RBF(0.9), noise="gamma(2)", tuning=None)
        .fit(X, y, noise_scale=s)
        .forget(gone)
    )
    keep = np.delete(np.arange(60), gone)
    same(
        model,
        WienerKernelRegressor(2.0 * RBF(0.9), noise="gamma(2)", tuning=None).fit(
            X[keep], y[keep], noise_scale=s[keep]
        ),
        Z,
    )


@pytest.mark.parametrize("n_places", [1, 12, 1000])
@pytest.mark.parametrize("step", [1, 3, 30])
def test_samples_extended_equal_samples_collapsed_at_once(n_places, step):
    X, _, s = rows(60, n_places)
    samples = Samples.collapse(X[:30], 0.3 * s[:30] ** 2, s[:30])
    for start in range(30, 60, step):
        part = slice(start, start + step)
        samples = samples.extended(X[part], 0.3 * s[part] ** 2, s[part])
    expected = Samples.collapse(X, 0.3 * s**2, s)
    for name in ("points", "index", "share", "row_regulariser", "scale", "regulariser", "gain"):
        np.testing.assert_array_equal(getattr(samples, name), getattr(expected, name))


def test_partial_fit_on_a_new_model_is_fit():
    X, y, _ = rows(10, 10)
    np.testing.assert_array_equal(
        WienerKernelRegressor(tuning=None).partial_fit(X, y).predict(X),
        WienerKernelRegressor(tuning=None).fit(X, y).predict(X),
    )


def test_an_older_view_is_not_changed_by_growth():
    X, y, _ = rows(40, 1000)
    model = WienerKernelRegressor(tuning=None).fit(X[:20], y[:20])
    model.partial_fit(X[20:25], y[20:25])
    old, before = model.posterior_, model.posterior_.mean(X)
    model.partial_fit(X[25:], y[25:])
    np.testing.assert_array_equal(old.mean(X), before)


def test_bad_updates_are_refused():
    X, y, _ = rows(10, 10)
    model = WienerKernelRegressor(tuning=None).fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(np.zeros((1, 3)), [0.0])
    with pytest.raises(ValueError, match="output"):
        model.partial_fit(X[:1], np.zeros((1, 2)))
    with pytest.raises(ValueError, match="rows must be"):
        model.forget([10])
    with pytest.raises(ValueError, match="at least one"):
        model.forget(range(10))
    with pytest.raises(ValueError, match="correlated"):
        WienerKernelRegressor(tuning=None).fit(X, y, noise_scale=np.eye(10)).partial_fit(X[:1], y[:1])
