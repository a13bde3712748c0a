"""Gradients with respect to x against finite differences, for every structure of noise and trend."""

import numpy as np
import pytest
from helpers import central_differences, every_structure, every_trend, problem

from wienerkernel import RBF, FeatureMap, Linear, Matern, Periodic
from wienerkernel.smoother import Smoother
from wienerkernel.smoother.gradient import gain_ratio, mean_gradient, variance_gradients
from wienerkernel.smoother.samples import Samples
from wienerkernel.smoother.trend import Trend


@every_structure
@every_trend
def test_mean_gradient_equals_finite_differences(structure, trend):
    smoother, X = problem(structure, trend, n_outputs=3)
    gradient = mean_gradient(smoother, X)
    assert gradient.shape == (9, 3, 2)
    np.testing.assert_allclose(gradient, central_differences(smoother.mean, X), rtol=1e-7, atol=1e-8)


@every_structure
@every_trend
def test_variance_gradients_equal_finite_differences(structure, trend):
    smoother, X = problem(structure, trend)
    model, gain = variance_gradients(smoother, X)
    of_model = central_differences(lambda x: smoother.mean_and_parts(x)[1], X)
    of_gain = central_differences(lambda x: smoother.mean_and_parts(x)[2], X)
    np.testing.assert_allclose(model, of_model, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(gain, of_gain, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [Linear(1.5) + RBF(), (Linear(2.0) + 1.0) ** 2 * Periodic(1.3, 4.0), 2.0 * Matern((0.8, 1.5)) * Linear()],
)
def test_kernels_whose_diagonal_is_not_constant(kernel):
    smoother, X = problem("scaled", "linear", kernel=kernel)
    np.testing.assert_allclose(
        mean_gradient(smoother, X), central_differences(smoother.mean, X), rtol=1e-6, atol=1e-7
    )
    for part, gradient in enumerate(variance_gradients(smoother, X), start=1):
        expected = central_differences(lambda x, part=part: smoother.mean_and_parts(x)[part], X)
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_and_origin_of_the_inputs_only_scale_the_gradients(unit):
    smoother, X = problem("scaled", "linear")
    other, Z = problem("scaled", "linear", unit=unit, shift=100 * unit)
    np.testing.assert_allclose(
        unit * mean_gradient(other, Z), mean_gradient(smoother, X), rtol=1e-9, atol=1e-10
    )
    for one, two in zip(variance_gradients(other, Z), variance_gradients(smoother, X), strict=True):
        np.testing.assert_allclose(unit * one, two, rtol=1e-9, atol=1e-10)


def test_gradients_do_not_depend_on_the_chunks(monkeypatch):
    smoother, X = problem("other ridge", "linear", n_outputs=2)
    whole = mean_gradient(smoother, X), *variance_gradients(smoother, X)
    monkeypatch.setattr("wienerkernel.smoother.smoother.CHUNK", 16)
    monkeypatch.setattr("wienerkernel.smoother.smoother.CHUNK_ROWS", 2)
    parts = mean_gradient(smoother, X), *variance_gradients(smoother, X)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_one_sample_and_one_column():
    samples = Samples.collapse(np.array([[0.5]]), np.array([0.2]), np.ones(1))
    smoother = Smoother(RBF(0.7), samples, np.array([[2.0]]))
    X = np.linspace(-1, 2, 7)[:, None]
    u, k = X[:, 0] - 0.5, RBF(0.7)(X, samples.places)[:, 0]
    np.testing.assert_allclose(
        mean_gradient(smoother, X)[:, 0, 0], -u / 0.49 * k * 2 / 1.2, rtol=1e-12, atol=1e-15
    )
    model, gain = variance_gradients(smoother, X)
    np.testing.assert_allclose(gain[:, 0], -2 * u / 0.49 * k**2 / 1.2**2, rtol=1e-12, atol=1e-15)
    # P2 = 1 - k^2 / 1.2 - 0.2 k^2 / 1.44
    np.testing.assert_allclose(
        model[:, 0], 2 * u / 0.49 * k**2 * (1 / 1.2 + 0.2 / 1.44), rtol=1e-12, atol=1e-15
    )


def test_no_query_points_give_empty_gradients():
    smoother, X = problem("replicated", "linear", n_outputs=2)
    assert mean_gradient(smoother, X[:0]).shape == (0, 2, 2)
    assert [part.shape for part in variance_gradients(smoother, X[:0])] == [(0, 2), (0, 2)]


def test_model_and_noise_gradients_sum_to_that_of_the_posterior_variance_when_the_ridge_is_the_noise_variance():
    smoother, X = problem("replicated", None)
    model, gain = variance_gradients(smoother, X)
    k = smoother.kernel
    A = np.linalg.inv(k(smoother.places) + np.diag(smoother.samples.regularizer))
    posterior = lambda x: (
        k.diag(x) - np.einsum("ij,jk,ik->i", k(x, smoother.places), A, k(x, smoother.places))
    )
    np.testing.assert_allclose(model + 0.3 * gain, central_differences(posterior, X), rtol=1e-7, atol=1e-8)


def test_a_kernel_without_gradient_is_refused():
    smoother, X = problem("distinct", None, kernel=FeatureMap(np.sin))
    with pytest.raises(TypeError, match="FeatureMap has no analytic gradient"):
        mean_gradient(smoother, X)
    with pytest.raises(TypeError, match="FeatureMap has no analytic gradient"):
        variance_gradients(smoother, X)


@every_trend
def test_trend_gradient_equals_finite_differences(trend):
    places = np.random.default_rng(0).normal(size=(5, 3)) * [1.0, 100.0, 0.0]
    basis = Trend(trend, places)
    expected = central_differences(basis, places[:1])[0]
    np.testing.assert_allclose(basis.gradient, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("structure", "ratio"),
    [("distinct", 0.3), ("replicated", 0.3), ("scaled", 0.3), ("other ridge", 0.8), ("other ridges", None)],
)
def test_the_ratio_of_regularizer_and_gain_is_found(structure, ratio):
    found = gain_ratio(problem(structure, None)[0].samples)
    assert found is None if ratio is None else found == pytest.approx(ratio, rel=1e-14)
