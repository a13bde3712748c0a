"""Predictions at random inputs, against closed forms for the squared exponential, and against draws."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from wienerkernel import RBF, Mixture, RandomInput, WienerKernelRegressor

SCALES = np.array([1.0, 1.5])
VARIANCE, NOISE = 2.0, 0.09
S = np.array([[0.10, 0.04], [0.04, 0.06]])
GENERATOR = np.random.default_rng(5)
X = GENERATOR.uniform(-2, 2, (25, 2))
Y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.3 * GENERATOR.normal(size=25)
QUERY = np.array([[0.3, -0.4], [1.5, 1.0], [4.0, 0.0]])


@pytest.fixture(scope="module")
def model():
    kernel = VARIANCE * RBF(SCALES)
    return WienerKernelRegressor(kernel, noise=stats.norm(0, np.sqrt(NOISE)), tuning=None, trend=None).fit(
        X, Y
    )


def closed_form(m, covariance):
    """Mean and variance of f(X*), X* ~ N(m, covariance): Deisenroth and Rasmussen, PILCO (2011)."""
    lam = np.diag(SCALES**2)
    distance = (X[:, None] - X[None]) / SCALES
    K = VARIANCE * np.exp(-0.5 * np.sum(distance**2, axis=-1))
    A = np.linalg.inv(K + NOISE * np.eye(len(X)))
    beta = A @ Y
    v = X - m
    q = VARIANCE / np.sqrt(np.linalg.det(np.eye(2) + covariance @ np.linalg.inv(lam)))
    q = q * np.exp(-0.5 * np.einsum("ij,jk,ik->i", v, np.linalg.inv(lam + covariance), v))
    middle = (X[:, None] + X[None]) / 2 - m
    L = VARIANCE**2 / np.sqrt(np.linalg.det(np.eye(2) + 2 * covariance @ np.linalg.inv(lam)))
    L = L * np.exp(-0.25 * np.sum(distance**2, axis=-1))
    L = L * np.exp(-0.5 * np.einsum("abj,jk,abk->ab", middle, np.linalg.inv(lam / 2 + covariance), middle))
    mean = beta @ q
    return mean, VARIANCE - np.sum(A * L) + beta @ L @ beta - mean**2, beta @ L @ beta - mean**2


def test_moments_equal_the_closed_form_of_the_squared_exponential(model):
    at = RandomInput(QUERY, S, n_nodes=15)
    mean, std = model.predict(at, return_std=True)
    parts = model.uncertainty(at)
    expected = np.array([closed_form(m, S) for m in QUERY])
    assert_allclose(mean, expected[:, 0], rtol=1e-8, atol=1e-10)
    assert_allclose(std**2, expected[:, 1], rtol=1e-8)
    assert_allclose(parts.epistemic, expected[:, 1], rtol=1e-8)
    assert_allclose(parts.input, expected[:, 2], rtol=1e-7, atol=1e-12)
    assert_allclose(model.predict_distribution(at, of="function").var(), expected[:, 1], rtol=1e-8)


def test_one_noisy_column_equals_a_singular_covariance(model):
    one = model.predict_distribution(RandomInput(QUERY, ["norm(0, 0.3)", None], n_nodes=15), of="function")
    expected = [closed_form(m, np.diag([0.09, 0.0]))[:2] for m in QUERY]
    assert_allclose(np.stack([one.mean(), one.var()], axis=1), expected, rtol=1e-8, atol=1e-10)
    matrix = model.predict_distribution(RandomInput(QUERY, np.diag([0.09, 0.0]), n_nodes=15), of="function")
    assert_allclose(matrix.ppf(0.3), one.ppf(0.3), rtol=1e-9)


@pytest.mark.parametrize(
    "law",
    [
        "gamma(4, scale=0.1)",
        "uniform(-0.5, 1)",
        "t(3, 0, 0.1)",
        [-0.3, 0.1, 0.4],
        Mixture(["norm(0.3, 0.1)", "norm(-0.2, 0.2)"], [0.3, 0.7]),
    ],
    ids=["gamma", "uniform", "heavy tails", "discrete", "mixture"],
)
@pytest.mark.parametrize("of", ["function", "observation"])
def test_probabilities_equal_those_of_draws_of_the_input(model, law, of):
    from wienerkernel import as_noise

    at = RandomInput(QUERY[:2], [law, None])
    Y = model.predict_distribution(at, of=of)
    moved = as_noise(law).rvs(4000, random_state=1)
    for k, x in enumerate(QUERY[:2]):
        points = np.stack([x[0] + moved, np.full(4000, x[1])], axis=1)
        exact = model.predict_distribution(points, of=of)
        level = Y.ppf(np.array([[0.05], [0.5], [0.9]]))[:, k]
        # the standard error of the mean of probabilities over 4000 draws
        values = exact.cdf(level[:, None])
        error = values.std(axis=1) / np.sqrt(4000)
        assert np.all(np.abs(values.mean(axis=1) - [0.05, 0.5, 0.9]) < 4 * error + 1e-3)


def test_the_law_is_consistent(model):
    Y = model.predict_distribution(RandomInput(QUERY, S), of="observation")
    assert Y.shape == (3,)
    assert_allclose(Y.cdf(Y.ppf(0.2)), 0.2, rtol=1e-9)
    assert_allclose(Y.cdf(0.3) + Y.sf(0.3), 1, rtol=1e-12)
    step = 1e-4
    assert_allclose(Y.pdf(0.3), (Y.cdf(0.3 + step) - Y.cdf(0.3 - step)) / (2 * step), rtol=1e-5)
    total = model.uncertainty(RandomInput(QUERY, S))
    assert_allclose(Y.var(), total.total, rtol=1e-10)
    assert_allclose(Y.mean(), model.predict(RandomInput(QUERY, S)), rtol=1e-10)
    draws = Y.rvs(20_000, random_state=0)
    assert_allclose(np.mean(draws <= Y.ppf(0.2), axis=0), 0.2, atol=0.015)
    with pytest.raises(ValueError, match="no chaos form"):
        Y.chaos()


def test_the_estimators_methods_accept_it(model):
    at = RandomInput(QUERY, "norm(0, 0.2)")
    interval = model.predict_interval(at, 0.8)
    assert_allclose(interval, model.predict_quantiles(at, [0.1, 0.9]))
    assert model.sample_y(at, 5).shape == (3, 5)
    assert model.score_report(at, [0.1, 0.2, 0.3]).pit.shape == (3,)
    doubled = model.uncertainty(at, noise_scale=[2.0, 1.0, 1.0]).aleatoric
    assert_allclose(doubled, [4 * NOISE, NOISE, NOISE])
    mean, parts = model.predict(at, return_uncertainty=True)
    assert_allclose(mean, model.predict(at))
    assert_allclose(parts.total, model.uncertainty(at).total)


def test_a_transform_and_a_learned_level_are_carried_along():
    generator = np.random.default_rng(3)
    inputs = np.sort(generator.uniform(0, 5, 60))[:, None]
    y = np.exp(np.sin(inputs[:, 0]) + (0.1 + 0.1 * inputs[:, 0]) * generator.normal(size=60))
    model = WienerKernelRegressor(noise_level="input", transform="log").fit(inputs, y)
    at = RandomInput([[2.0]], "norm(0, 0.3)")
    Y = model.predict_distribution(at, of="observation")
    draws = 2.0 + 0.3 * generator.normal(size=2000)
    expected = (
        model.predict_distribution(draws[:, None], of="observation").cdf(np.full(2000, Y.ppf(0.7)[0])).mean()
    )
    assert abs(expected - 0.7) < 0.02
    assert_allclose(model.predict(at), Y.mean())


def test_noise_on_the_inputs_of_the_data_adds_to_that_of_the_query():
    generator = np.random.default_rng(3)
    inputs = np.sort(generator.uniform(0, 5, 30))[:, None]
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None, trend=None)
    model.fit(inputs, np.sin(inputs[:, 0]), input_noise="gamma(4, scale=0.05)")
    at = RandomInput([[2.0]], "norm(0, 0.1)")
    parts = model.uncertainty(at)
    Y = model.predict_distribution(at, of="function")
    assert parts.input > model.uncertainty([[2.0]]).input
    assert_allclose(Y.var(), parts.epistemic, rtol=1e-10)


def test_it_warns_where_the_mixture_is_too_coarse(model):
    sharp = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.001)", tuning=None, trend=None)
    inputs = np.linspace(0, 6, 40)[:, None]
    sharp.fit(inputs, np.sin(inputs[:, 0]))
    with pytest.warns(UserWarning, match="raise n_nodes"):
        sharp.predict_distribution(RandomInput([[3.0]], "norm(0, 0.3)"), of="function")


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (lambda: RandomInput(QUERY, None), "exact inputs need no RandomInput"),
        (lambda: RandomInput(QUERY, [None, None]), "exact inputs need no RandomInput"),
        (lambda: RandomInput(QUERY, "norm(0, 1)", n_nodes=1), "at least 2"),
        (lambda: RandomInput(QUERY, "norm(0, 1)", n_nodes=100), "lower n_nodes"),
        (lambda: RandomInput(QUERY, ["norm(0, 1)"]), "one law for each of the 2 columns"),
        (lambda: RandomInput(QUERY, "cauchy()"), "column 0.*variance"),
        (lambda: RandomInput(QUERY, -S), "positive semi-definite"),
        (lambda: RandomInput(QUERY[:, :1], "norm(0, 1)"), "2 features"),
        (lambda: RandomInput([[np.nan, 0.0]], "norm(0, 1)"), "NaN"),
    ],
)
def test_bad_input_is_refused(model, at, message):
    with pytest.raises(ValueError, match=message):
        model.predict(at())


def test_what_is_not_available_is_refused(model):
    at = RandomInput(QUERY, "norm(0, 1)")
    with pytest.raises(ValueError, match="joint law"):
        model.predict(at, return_cov=True)
    several = WienerKernelRegressor(tuning=None, trend=None).fit(X, np.stack([Y, Y], axis=1))
    with pytest.raises(ValueError, match="one model for each column"):
        several.predict(at)
