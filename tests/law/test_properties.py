"""What holds for every law and every row of weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from wienerkernel.law import LinearCombination

LAWS = ["gamma(0.25, scale=2)", "expon(loc=-1)", "laplace()", "uniform(-1, 2)", "norm(1, 2)", "logistic()"]
LEVELS = np.array([1e-9, 1e-4, 0.05, 0.3, 0.5, 0.8, 0.99, 1 - 1e-7])

rows = st.lists(st.floats(-3, 3).filter(lambda w: w == 0 or abs(w) > 1e-3), min_size=1, max_size=7).filter(
    lambda w: any(w)
)
quick = settings(max_examples=15, deadline=None)


def law(noise, weights, **keywords):
    return LinearCombination(noise, weights, **keywords)


@quick
@given(st.sampled_from(LAWS), rows, st.sampled_from([0.0, 0.3]))
def test_distribution_function_is_monotone_and_complements_survival(noise, weights, normal_std):
    Y = law(noise, weights, normal_std=normal_std)
    y = Y.mean() + Y.std() * np.linspace(-9, 9, 61)
    below, above = Y.cdf(y), Y.sf(y)
    assert np.all(np.diff(below) >= -1e-13)
    assert np.all((below >= 0) & (below <= 1 + 1e-13))
    assert np.all(Y.pdf(y) >= -1e-10 / Y.std())
    np.testing.assert_allclose(below + above, 1, rtol=0, atol=1e-13)


@quick
@given(st.sampled_from(LAWS), rows, st.sampled_from([0.0, 0.3]))
def test_quantiles_invert_the_distribution_function(noise, weights, normal_std):
    Y = law(noise, weights, normal_std=normal_std)
    np.testing.assert_allclose(Y.cdf(Y.ppf(LEVELS)), LEVELS, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(Y.sf(Y.isf(LEVELS)), LEVELS, rtol=1e-6, atol=1e-15)


@quick
@given(st.sampled_from(LAWS), rows, st.floats(-1e3, 1e3), st.sampled_from([1e-9, 0.1, 7.0, 1e12]))
def test_quantiles_follow_shift_and_scale(noise, weights, shift, scale):
    q = np.array([0.01, 0.4, 0.97])
    plain = law(noise, weights)
    moved = law(noise, scale * np.array(weights), loc=shift)
    np.testing.assert_allclose(
        moved.ppf(q), shift + scale * plain.ppf(q), rtol=1e-9, atol=1e-9 * scale * float(plain.std())
    )


@quick
@given(st.sampled_from(LAWS), rows, st.randoms(use_true_random=False))
def test_order_of_weights_and_zero_weights_change_nothing(noise, weights, random):
    shuffled = [*weights, 0.0, 0.0]
    random.shuffle(shuffled)
    a, b = law(noise, weights), law(noise, shuffled)
    y = a.mean() + a.std() * np.linspace(-4, 4, 9)
    np.testing.assert_allclose(a.cdf(y), b.cdf(y), rtol=0, atol=1e-13)


@quick
@given(st.sampled_from(LAWS), rows)
def test_reflected_weights_reflect_the_law(noise, weights):
    a, b = law(noise, weights), law(noise, -np.array(weights))
    y = a.mean() + a.std() * np.linspace(-4, 4, 9)
    np.testing.assert_allclose(a.cdf(y), b.sf(-y), rtol=0, atol=1e-13)


@pytest.mark.parametrize("noise", LAWS)
def test_counts_are_copies(noise):
    weights, counts = np.array([0.5, -1.2, 0.1]), np.array([3, 1, 2])
    short = law(noise, weights, counts=counts)
    long = law(noise, np.repeat(weights, counts))
    y = long.mean() + long.std() * np.linspace(-4, 4, 9)
    np.testing.assert_allclose(short.cdf(y), long.cdf(y), rtol=0, atol=1e-13)
    np.testing.assert_allclose(short.cumulant(3), long.cumulant(3), rtol=1e-13)


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("weights", [[1.0], [1.0, -0.4], [0.2, 0.5, 0.7, 0.1, -0.3, 0.6]])
def test_moments_integrated_from_the_density_equal_the_cumulants(noise, weights):
    Y = law(noise, weights, normal_std=0.3)
    center, width = float(Y.mean()), float(Y.std())
    nodes, gauss = np.polynomial.legendre.leggauss(60)
    edges = np.array([-40, -20, -10, -5, -2.5, 0, 2.5, 5, 10, 20, 40, 80])
    z = np.concatenate([0.5 * (a + b) + 0.5 * (b - a) * nodes for a, b in itertools.pairwise(edges)])
    mass = np.concatenate([0.5 * (b - a) * gauss for a, b in itertools.pairwise(edges)])
    mass *= width * Y.pdf(center + width * z)
    moments = [mass @ z**r for r in range(5)]
    np.testing.assert_allclose(moments[:3], [1, 0, 1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(moments[3], Y.skewness(), rtol=0, atol=1e-8)
    np.testing.assert_allclose(moments[4] - 3, Y.kurtosis(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("noise", LAWS)
def test_density_integrates_to_differences_of_the_distribution_function(noise):
    Y = law(noise, [1.0, -0.4, 0.7])
    a, b = (float(v) for v in Y.ppf([0.3, 0.6]))
    area, _ = integrate.quad(lambda y: float(Y.pdf(y)), a, b, epsabs=1e-10)
    assert area == pytest.approx(0.3, abs=1e-8)


@pytest.mark.parametrize("noise", [*LAWS, "t(5)", "lognorm(0.5)"])
def test_draws_pass_a_kolmogorov_smirnov_test(noise):
    weights = np.array([[1.0, -0.4, 0.7], [0.1, 0.1, 2.0]])
    Y = law(noise, weights, loc=0.5, normal_std=[0.0, 0.4], counts=[2, 1, 1])
    draws = Y.rvs(4000, random_state=3)
    assert draws.shape == (4000, 2)
    for k, probabilities in enumerate(Y.cdf(draws).T):
        assert stats.kstest(probabilities, "uniform").pvalue > 1e-3, k


@pytest.mark.parametrize("noise", LAWS)
def test_rows_do_not_depend_on_their_neighbors(noise):
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(300, 40)) * 10.0 ** rng.uniform(-4, 0, size=(300, 40))
    many = law(noise, weights)
    q = many.ppf(np.array([0.05, 0.5, 0.95])[:, None])
    for row in (0, 17, 299):
        alone = law(noise, weights[row])
        np.testing.assert_allclose(alone.cdf(q[:, row]), [0.05, 0.5, 0.95], rtol=0, atol=1e-12)


def test_quantile_curves_are_smooth_where_methods_change():
    # From five terms to one dominant term: contours of several angles, and the law of one term at the end.
    share = np.linspace(0, 1, 201)
    weights = (1 - share)[:, None] * np.array([0.1, 0.5, -0.2, 0.3, 0.0]) + share[:, None] * np.eye(5)[1]
    curve = law("gamma(0.25, scale=2)", weights).ppf(0.9)
    steps = np.abs(np.diff(curve, 4))
    assert steps[20:180].max() < 1e-6


def test_methods_agree_where_two_apply():
    weights = np.random.default_rng(1).uniform(-1, 1, 30)
    for noise in ("gamma(0.5)", "laplace()", "expon()"):
        contour, fourier = (law(noise, weights, method=method) for method in ("contour", "fourier"))
        y = contour.mean() + contour.std() * np.linspace(-3, 3, 13)
        np.testing.assert_allclose(contour.cdf(y), fourier.cdf(y), rtol=0, atol=1e-12)
        np.testing.assert_allclose(contour.pdf(y), fourier.pdf(y), rtol=1e-9)


def test_shortest_interval_is_shorter_than_the_equal_tailed_one_and_holds_its_probability():
    Y = law("gamma(0.25, scale=2)", [[1.0, -0.2, 0.4], [0.3, 0.4, 0.5]])
    low, high = Y.hdi(0.8)
    left, right = Y.interval(0.8)
    np.testing.assert_allclose(Y.cdf(high) - Y.cdf(low), 0.8, atol=1e-11)
    assert np.all(high - low < right - left)
    inside = low > Y.support()[0] + 1e-6
    np.testing.assert_allclose(Y.pdf(low)[inside], Y.pdf(high)[inside], rtol=1e-4)
