"""The path of ridges against smoothers that were fitted one by one."""

import numpy as np
import pytest
from helpers import every_trend

from wienerkernel import RBF, Linear, Matern, NotPositiveDefiniteError
from wienerkernel.smoother import Smoother
from wienerkernel.smoother.leave_one_out import leave_one_out
from wienerkernel.smoother.ridge_path import RidgePath
from wienerkernel.smoother.samples import Samples

RIDGES = np.array([1e-3, 0.07, 0.3, 2.0, 1e3])
TOLERANCE = {"rtol": 1e-9, "atol": 1e-10}


def data(case):
    rng = np.random.default_rng(0)
    n_outputs = 3 if case == "several outputs" else 1
    X = rng.normal(size=(20, 2))
    if case in ("replicated", "several outputs"):
        X = X[rng.integers(0, 8, size=30)]
    if case == "one row":
        X = X[:1]
    if case == "one place":
        X = np.repeat(X[:1], 5, axis=0)
    if case == "one column":
        X = X[:, :1]
    return X, rng.normal(size=(len(X), n_outputs)), rng.normal(size=(7, X.shape[1]))


def fitted(kernel, X, Y, ridge, trend=None):
    return Smoother(kernel, Samples.collapse(X, np.full(len(X), ridge), np.ones(len(X))), Y, trend)


CASES = ["distinct", "replicated", "several outputs", "one row", "one place", "one column"]
every_case = pytest.mark.parametrize("case", CASES)
every_kernel = pytest.mark.parametrize("kernel", [1.7 * RBF(0.9) + 0.2 * Matern(1.1), Linear() + RBF(0.5)])


def determines(case, trend):
    return trend != "linear" or case not in ("one row", "one place")


@every_case
@every_trend
@every_kernel
class TestAgainstOneSmootherForEachRidge:
    @pytest.fixture
    def both(self, case, trend, kernel):
        """The path, the smoothers of all ridges, and query points."""
        if not determines(case, trend):
            pytest.skip("the data do not determine the trend")
        X, Y, Z = data(case)
        smoothers = [fitted(kernel, X, Y, ridge, trend) for ridge in RIDGES]
        return RidgePath.from_smoother(smoothers[0], RIDGES), smoothers, Z

    def test_mean(self, both):
        path, smoothers, Z = both
        np.testing.assert_allclose(path.mean(Z), [smoother.mean(Z) for smoother in smoothers], **TOLERANCE)

    def test_variances(self, both):
        path, smoothers, Z = both
        expected = zip(*(smoother.mean_and_parts(Z)[1:] for smoother in smoothers), strict=True)
        for found, parts in zip(path.variances(Z), expected, strict=True):
            np.testing.assert_allclose(found, parts, **TOLERANCE)

    def test_log_likelihood(self, both):
        path, smoothers, _ = both
        expected = [smoother.log_likelihood() for smoother in smoothers]
        np.testing.assert_allclose(path.log_likelihood(), expected, **TOLERANCE)

    def test_leave_one_out(self, both, case, trend):
        path, smoothers, _ = both
        if case == "one row" and trend:
            with pytest.raises(ValueError, match="sample 0 cannot be left out"):
                path.leave_one_out()
            return
        expected = zip(*(leave_one_out(smoother) for smoother in smoothers), strict=True)
        for found, parts in zip(path.leave_one_out(), expected, strict=True):
            np.testing.assert_allclose(found, parts, **TOLERANCE)


def test_a_trend_that_the_data_do_not_determine_is_refused():
    samples = Samples.collapse(np.zeros((3, 1)), np.ones(3), np.ones(3))
    with pytest.raises(NotPositiveDefiniteError, match="2 coefficients, which 1 different rows"):
        RidgePath(RBF(), samples, np.zeros((3, 1)), RIDGES, trend="linear")


def test_leave_one_out_equals_a_path_without_the_sample():
    X, Y, _ = data("replicated")
    kernel = RBF(0.9)
    samples = lambda rows: Samples.collapse(rows, np.ones(len(rows)), np.ones(len(rows)))
    residual, model, gain = RidgePath(kernel, samples(X), Y, RIDGES).leave_one_out()
    for i in (0, 5, 29):
        rest = RidgePath(kernel, samples(np.delete(X, i, axis=0)), np.delete(Y, i, axis=0), RIDGES)
        np.testing.assert_allclose(residual[:, i], Y[i] - rest.mean(X[[i]])[:, 0], **TOLERANCE)
        of_rest = rest.variances(X[[i]])
        np.testing.assert_allclose(model[:, i], of_rest[0][:, 0], **TOLERANCE)
        np.testing.assert_allclose(gain[:, i], of_rest[1][:, 0], **TOLERANCE)


def test_parts_sum_to_the_posterior_variance_when_the_ridge_is_the_noise_variance():
    X, Y, Z = data("replicated")
    kernel = RBF(0.9)
    model, gain = RidgePath.from_smoother(fitted(kernel, X, Y, 1.0), RIDGES).variances(Z)
    for ridge, p2, g in zip(RIDGES, model, gain, strict=True):
        A = np.linalg.inv(kernel(X) + ridge * np.eye(len(X)))
        gp = kernel.diag(Z) - np.einsum("ij,jk,ik->i", kernel(Z, X), A, kernel(Z, X))
        np.testing.assert_allclose(p2 + ridge * g, gp, rtol=1e-8, atol=1e-10)


def test_results_do_not_depend_on_the_chunks(monkeypatch):
    X, Y, Z = data("several outputs")
    path = RidgePath.from_smoother(fitted(RBF(0.9), X, Y, 1.0), RIDGES)
    whole = path.mean(Z), *path.variances(Z), *path.leave_one_out()
    monkeypatch.setattr("wienerkernel.smoother.ridge_path.CHUNK", 20)
    parts = path.mean(Z), *path.variances(Z), *path.leave_one_out()
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_units_of_y_do_not_matter(unit):
    X, Y, Z = data("replicated")
    path = RidgePath.from_smoother(fitted(RBF(0.9), X, Y, 1.0), RIDGES)
    scaled = RidgePath.from_smoother(fitted(unit * RBF(0.9), X, np.sqrt(unit) * Y, unit), unit * RIDGES)
    np.testing.assert_allclose(scaled.mean(Z) / np.sqrt(unit), path.mean(Z), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(scaled.variances(Z)[0] / unit, path.variances(Z)[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(scaled.leave_one_out()[2], path.leave_one_out()[2], rtol=1e-9, atol=1e-11)


def test_no_query_points_give_empty_results():
    X, Y, Z = data("several outputs")
    path = RidgePath.from_smoother(fitted(RBF(), X, Y, 1.0), RIDGES)
    assert path.mean(Z[:0]).shape == (5, 0, 3)
    assert [part.shape for part in path.variances(Z[:0])] == [(5, 0), (5, 0)]


def test_inputs_are_not_modified():
    X, Y, Z = data("replicated")
    smoother = fitted(RBF(), X, Y, 1.0)
    before = smoother.places.copy(), smoother.targets.copy(), smoother.factor.copy()
    ridges = RIDGES.copy()
    path = RidgePath.from_smoother(smoother, ridges)
    path.mean(Z), path.variances(Z), path.leave_one_out(), path.log_likelihood()
    for one, other in zip(before, (smoother.places, smoother.targets, smoother.factor), strict=True):
        np.testing.assert_array_equal(one, other)
    ridges[:] = 5.0
    np.testing.assert_array_equal(path.ridges, RIDGES)


@pytest.mark.parametrize("ridges", [1.0, [], [0.0, 1.0], [-1.0], [np.nan], [np.inf], [[1.0]]])
def test_ridges_are_positive_and_in_one_row(ridges):
    X, Y, _ = data("distinct")
    with pytest.raises(
        ValueError, match="ridges must be a one-dimensional sequence of positive finite numbers"
    ):
        RidgePath.from_smoother(fitted(RBF(), X, Y, 1.0), ridges)


def test_what_a_ridge_alone_does_not_describe_is_refused():
    X, Y, _ = data("distinct")
    n = len(X)
    several = np.linspace(1, 2, n)
    for regularizer, scale in ((np.ones(n), several), (np.eye(n), np.eye(n))):
        with pytest.raises(ValueError, match="samples must have noise of scale 1"):
            RidgePath(RBF(), Samples.collapse(X, regularizer, scale), Y, RIDGES)
    with pytest.raises(ValueError, match="samples must have the same regularizer"):
        RidgePath(RBF(), Samples.collapse(X, several, np.ones(n)), Y, RIDGES)


def test_a_ridge_below_the_rounding_of_the_eigenvalues_is_refused_with_the_remedy():
    X = np.linspace(0, 1, 30)[:, None]
    samples = Samples.collapse(X, np.ones(30), np.ones(30))
    with pytest.raises(NotPositiveDefiniteError, match="raise the ridges"):
        RidgePath(RBF(10.0), samples, np.zeros((30, 1)), [1e-20, 1.0])
