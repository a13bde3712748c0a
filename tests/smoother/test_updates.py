"""Updated factors and smoothers against recomputed ones."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from helpers import untuned
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sklearn.base import clone

import wienerkernel
from wienerkernel import RBF, NotPositiveDefiniteError, WienerKernelRegressor
from wienerkernel.backend import growable_cholesky
from wienerkernel.backend.growable_cholesky import GrowableCholesky, deleted, rank_one
from wienerkernel.backend.linalg import solve_lower, solve_lower_transposed
from wienerkernel.evaluation.diagnostics import leave_one_out_law
from wienerkernel.smoother.samples import Samples


@pytest.fixture
def matrix():
    a = np.random.default_rng(0).normal(size=(40, 40))
    return a @ a.T + np.eye(40)


def test_rank_one_changes_equal_refactorizing(matrix):
    factor = np.linalg.cholesky(matrix)
    v = np.random.default_rng(1).normal(size=40)
    np.testing.assert_allclose(
        np.tril(rank_one(factor.copy(), v, 1.0)), np.linalg.cholesky(matrix + np.outer(v, v)), atol=1e-12
    )
    v *= 0.9 / np.linalg.norm(np.linalg.solve(factor, v))
    np.testing.assert_allclose(
        np.tril(rank_one(factor.copy(), v, -1.0)), np.linalg.cholesky(matrix - np.outer(v, v)), atol=1e-11
    )


@pytest.mark.parametrize("gone", [[0], [17], [39], [0, 1, 16, 39], []])
def test_deleting_rows_equals_factorizing_without_them(matrix, gone):
    rest = np.delete(np.delete(matrix, gone, axis=0), gone, axis=1)
    np.testing.assert_allclose(
        np.tril(deleted(np.linalg.cholesky(matrix), gone)), np.linalg.cholesky(rest), atol=1e-12
    )


def test_updates_have_the_rounding_errors_of_a_factorization_however_ill_conditioned_the_matrix():
    X = np.random.default_rng(3).uniform(-3, 3, (60, 1))
    matrix = RBF(3.0)(X) + 1e-10 * np.eye(60)
    factor = np.linalg.cholesky(matrix)
    for row in range(0, 59, 7):
        lower = np.tril(deleted(factor, [row]))
        rest = np.delete(np.delete(matrix, row, axis=0), row, axis=1)
        np.testing.assert_allclose(lower @ lower.T, rest, rtol=0, atol=2e-15)
        lower = np.tril(rank_one(factor.copy(), 0.9e-5 * np.eye(60)[row], -1.0))
        changed = matrix - np.diag(0.9e-5 * np.eye(60)[row]) ** 2
        np.testing.assert_allclose(lower @ lower.T, changed, rtol=0, atol=2e-15)


def test_a_downdate_to_an_indefinite_matrix_is_refused():
    with pytest.raises(NotPositiveDefiniteError):
        rank_one(np.eye(2), np.array([0.0, 1.0]), -1.0)


def test_rows_appended_one_by_one_equal_one_factorization(matrix):
    factor = np.linalg.cholesky(matrix[:5, :5])
    growable = GrowableCholesky(factor, 5)
    for n in range(5, 40):
        factor, growable = growable.append(
            factor, matrix[n : n + 1, :n].copy(), matrix[n : n + 1, n : n + 1].copy()
        )
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), atol=1e-12)


def test_two_factors_may_grow_from_one(matrix):
    base = np.linalg.cholesky(matrix[:20, :20])
    grown, growable = GrowableCholesky(base, 20).append(
        base, matrix[20:25, :20].copy(), matrix[20:25, 20:25].copy()
    )
    one, _ = growable.append(grown, matrix[25:26, :25].copy(), matrix[25:26, 25:26].copy())
    other, _ = growable.append(grown, matrix[30:31, :25].copy() * 0, np.eye(1))
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
        untuned(X, y, 2.0 * RBF(0.9), noise="gamma(2)", trend=trend, noise_scale=s),
        Z,
    )


@pytest.mark.parametrize("n_places", [12, 1000])
@pytest.mark.parametrize("gone", [[0], [59], [3, 17, 18, 40], list(range(25))])
def test_forgetting_rows_equals_never_having_seen_them(n_places, gone):
    X, y, s = rows(60, n_places)
    Z = np.random.default_rng(9).normal(size=(5, 2))
    model = untuned(X, y, 2.0 * RBF(0.9), noise="gamma(2)", noise_scale=s).forget(gone)
    keep = np.delete(np.arange(60), gone)
    same(
        model,
        untuned(X[keep], y[keep], 2.0 * RBF(0.9), noise="gamma(2)", noise_scale=s[keep]),
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
    for name in ("places", "index", "share", "row_regularizer", "scale", "regularizer", "gain"):
        np.testing.assert_array_equal(getattr(samples, name), getattr(expected, name))


def test_partial_fit_on_a_new_model_is_fit():
    X, y, _ = rows(10, 10)
    np.testing.assert_array_equal(
        WienerKernelRegressor(tuning=None).partial_fit(X, y).predict(X),
        untuned(X, y).predict(X),
    )


def test_an_older_view_is_not_changed_by_growth():
    X, y, _ = rows(40, 1000)
    model = untuned(X[:20], y[:20])
    model.partial_fit(X[20:25], y[20:25])
    old, before = model.posterior_, model.posterior_.mean(X)
    model.partial_fit(X[25:], y[25:])
    np.testing.assert_array_equal(old.mean(X), before)


def test_bad_updates_are_refused():
    X, y, _ = rows(10, 10)
    model = untuned(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(np.zeros((1, 3)), [0.0])
    with pytest.raises(ValueError, match="output"):
        model.partial_fit(X[:1], np.zeros((1, 2)))
    with pytest.raises(ValueError, match="rows must be"):
        model.forget([10])
    with pytest.raises(ValueError, match="at least one"):
        model.forget(range(10))
    with pytest.raises(ValueError, match="correlated"):
        untuned(X, y, noise_scale=np.eye(10)).partial_fit(X[:1], y[:1])


def test_a_model_whose_trend_would_be_undetermined_refuses_to_forget_and_stays_what_it_was():
    X, y = np.array([[0.0], [1.0], [1.0]]), np.array([0.0, 1.0, 2.0])
    model = untuned(X, y, trend="linear")
    before = model.predict(X)
    with pytest.raises(NotPositiveDefiniteError, match="trend"):
        model.forget([0])
    np.testing.assert_array_equal(model.predict(X), before)


def test_forgetting_the_first_copy_of_a_place_keeps_the_predictions_of_the_others():
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.3)", tuning=None)
    model.fit([[0.0], [5.0], [0.0]], [0.0, 9.0, 0.1]).forget([0])
    expected = clone(model).fit([[5.0], [0.0]], [9.0, 0.1])
    np.testing.assert_allclose(model.predict([[0.0], [5.0]]), expected.predict([[0.0], [5.0]]), rtol=1e-12)


def test_new_places_come_behind_those_that_an_earlier_forgetting_left():
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.3)", tuning=None)
    model.fit([[0.0], [1.0], [3.0], [0.0]], [0.0, 1.0, 2.0, 0.1]).forget([0])
    model.partial_fit([[4.0], [5.0]], [1.0, 0.0])
    expected = clone(model).fit([[1.0], [3.0], [0.0], [4.0], [5.0]], [1.0, 2.0, 0.1, 1.0, 0.0])
    for one, other in zip(
        *(each.predict([[1.0]], return_std=True) for each in (model, expected)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_precise_repeat_of_a_very_noisy_sample_is_as_accurate_as_a_refit():
    X, y, _ = rows(30, 1000)
    scale = np.where(np.arange(30) == 3, 1e7, 1.0)
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None)
    model.fit(X, y, noise_scale=scale).partial_fit(X[[3]], [1.0], noise_scale=[1.0])
    expected = clone(model).fit(
        np.append(X, X[[3]], axis=0), np.append(y, 1.0), noise_scale=np.append(scale, 1.0)
    )
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.uncertainty(X).model, expected.uncertainty(X).model, rtol=0, atol=1e-13)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spread", [0.5, 8.0])
def test_two_hundred_updates_leave_the_accuracy_of_a_refit(spread, seed, monkeypatch):
    monkeypatch.setattr(growable_cholesky, "MOST_CHANGES", 1.0)
    rng = np.random.default_rng(seed)
    places = rng.uniform(-3, 3, (40, 2))

    def draw(k):
        return places[rng.integers(0, 40, k)], rng.normal(size=k), np.exp(rng.uniform(-spread, spread, k))

    data = draw(40)
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(*data)
    for _ in range(200):
        if rng.random() < 0.5 and len(data[1]) > 20:
            gone = np.unique(rng.integers(0, len(data[1]), rng.integers(1, 4)))
            model.forget(gone)
            data = [np.delete(part, gone, axis=0) for part in data]
        else:
            more = draw(rng.integers(1, 4))
            model.partial_fit(*more)
            data = [np.concatenate(parts) for parts in zip(data, more, strict=True)]
    expected = clone(model).fit(*data)
    np.testing.assert_allclose(model.predict(places), expected.predict(places), rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.log_likelihood(), expected.log_likelihood(), rtol=1e-11)


PLACES = np.array([[x, z] for x in (-1.5, -0.5, 0.0, 1.0) for z in (-1.0, 0.0, 0.75)])
"""First and second coordinates repeat: a place is known by its whole row."""

ROWS = st.tuples(
    st.integers(0, len(PLACES) - 1), st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([0.5, 1.0, 3.0])
)


def everything(model):
    """What the model says at a point, at a place and far away, and about its own samples."""
    Z = np.array([[0.3, 0.1], [-0.5, 0.0], [4.0, 4.0]])
    mean, parts = model.predict(Z, return_uncertainty=True)
    law = model.predict_distribution(Z[:1], of="observation")
    return {
        "estimate": mean,
        "noise part at points": parts.noise,
        "model part at points": parts.model,
        "quantiles": law.ppf([[0.1], [0.9]]),
        "chaos form": model.predict_distribution(Z[:1]).chaos().coefficients,
        "log-likelihood": model.log_likelihood(),
        "spread of leave-one-out residuals": leave_one_out_law(model.posterior_)[0].std(),
        **vars(model.loo()),
    }


class SamplesComeAndGo(RuleBasedStateMachine):
    """A model after any sequence of updates is the model fitted to the rows that remain, in their order."""

    @initialize(
        rows=st.lists(ROWS, min_size=3, max_size=12),
        trend=st.sampled_from([None, "constant", "linear"]),
        n_outputs=st.sampled_from([None, 2]),
        ridge=st.sampled_from([None, 0.4]),
        most_changes=st.sampled_from([growable_cholesky.MOST_CHANGES, 1.0]),
    )
    def fit(self, rows, trend, n_outputs, ridge, most_changes):
        self.folder = tempfile.TemporaryDirectory()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(growable_cholesky, "MOST_CHANGES", most_changes)
        self.options = {"noise": "norm(0.5, 0.6)", "trend": trend, "ridge": ridge, "tuning": None}
        self.n_outputs = n_outputs
        self.rows = [(place, 1.0, -1.0, 1.0) for place in (4, 1, 9, 3)] + rows  # determine a linear trend
        self.model = self.refitted(self.rows)

    def teardown(self):
        if hasattr(self, "folder"):
            self.patch.undo()
            self.folder.cleanup()

    def arrays(self, rows):
        table = np.array(rows, dtype=float).reshape(-1, 4)
        y = table[:, 1] / 4 if self.n_outputs is None else table[:, 1:3] / 4
        return PLACES[table[:, 0].astype(int)], y, table[:, 3]

    def refitted(self, rows):
        return WienerKernelRegressor(2.0 * RBF(0.9), **self.options).fit(*self.arrays(rows))

    def forget(self, gone):
        rows = [row for i, row in enumerate(self.rows) if i not in gone]
        # Leaving one out of those that remain must leave the coefficients of the trend determined.
        H = np.column_stack([np.ones(len(rows)), self.arrays(rows)[0]])
        if len(rows) > 3 and all(np.linalg.matrix_rank(np.delete(H, i, axis=0)) == 3 for i in range(len(H))):
            self.model.forget(sorted(gone))
            self.rows = rows

    def copies(self, number):
        """Rows at the place of row ``number``."""
        place = self.rows[number % len(self.rows)][0]
        return [i for i, row in enumerate(self.rows) if row[0] == place]

    @rule(row=ROWS)
    def add_one(self, row):
        self.model.partial_fit(*self.arrays([row]))
        self.rows = [*self.rows, row]

    @rule(number=st.integers(0, 99), row=ROWS)
    def repeat_a_place(self, number, row):
        self.add_one((self.rows[number % len(self.rows)][0], *row[1:]))

    @rule(rows=st.lists(ROWS, min_size=2, max_size=8))
    def add_some(self, rows):
        self.model.partial_fit(*self.arrays(rows))
        self.rows = self.rows + rows

    @rule(number=st.integers(0, 99))
    def forget_one(self, number):
        self.forget({number % len(self.rows)})

    @rule(number=st.integers(0, 99), first=st.booleans())
    def forget_a_copy(self, number, first):
        self.forget({self.copies(number)[0 if first else -1]})

    @rule(number=st.integers(0, 99))
    def forget_a_place(self, number):
        self.forget(set(self.copies(number)))

    @rule(numbers=st.sets(st.integers(0, 99), min_size=2, max_size=8))
    def forget_some(self, numbers):
        self.forget({number % len(self.rows) for number in numbers})

    @rule()
    def save_and_load(self):
        path = Path(self.folder.name, "model.wk")
        self.model.save(path)
        self.model = wienerkernel.load(path)

    @invariant()
    def equals_a_refit(self):
        if not hasattr(self, "model"):
            return
        expected = everything(self.refitted(self.rows))
        for name, values in everything(self.model).items():
            np.testing.assert_allclose(values, expected[name], rtol=1e-8, atol=1e-8, err_msg=name)


TestSamplesComeAndGo = SamplesComeAndGo.TestCase
TestSamplesComeAndGo.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
