"""Shapes, ends of the support, degenerate rows, errors and warnings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from wienerkernel.law import AccuracyWarning, LinearCombination
from wienerkernel.law.mixed import MixedLaw


@pytest.mark.parametrize(
    "noise",
    [
        stats.gamma(0.25, scale=2),
        stats.norm(1, 2),
        stats.uniform(-1, 3),
        stats.laplace(1),
        stats.expon(2),
        stats.lognorm(0.7),
    ],
)
@pytest.mark.parametrize("weight", [2.0, -0.5])
def test_one_weight_is_the_noise_law_itself(noise, weight):
    Y = LinearCombination(noise, [0.0, weight, 0.0])
    q = np.array([1e-12, 0.01, 0.5, 0.99])
    y = weight * noise.ppf(q)
    same = Y.cdf(y) if weight > 0 else Y.sf(y)
    np.testing.assert_allclose(same, q, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(Y.pdf(y), noise.pdf(y / weight) / abs(weight), rtol=1e-10)
    quantile = Y.ppf(q) if weight > 0 else Y.isf(q)
    np.testing.assert_allclose(quantile, y, rtol=1e-12, atol=1e-15)


def test_normal_noise_and_normal_part_add_up():
    Y = LinearCombination("norm(1, 2)", [3.0, -1.0], loc=5.0, normal_std=1.5, counts=[1, 2])
    exact = stats.norm(5 + 3 - 2, np.sqrt(4 * (9 + 2) + 1.5**2))
    y = np.linspace(-40, 60, 7)
    np.testing.assert_allclose(Y.cdf(y), exact.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(Y.sf(y), exact.sf(y), rtol=1e-12)
    np.testing.assert_allclose(Y.logpdf(y), exact.logpdf(y), rtol=1e-12)


def test_gamma_plus_normal_equals_the_exponentially_modified_normal():
    y = np.linspace(-3, 12, 16)
    for std in (1e-6, 0.05, 1.0, 20.0):
        Y = LinearCombination("expon()", [1.0], normal_std=std)
        exact = stats.exponnorm(1 / std, scale=std)
        if std >= 0.05:
            np.testing.assert_allclose(Y.cdf(y), exact.cdf(y), rtol=0, atol=1e-12)
        else:
            np.testing.assert_allclose(Y.cdf(y[y > 0.1]), stats.expon.cdf(y[y > 0.1]), rtol=0, atol=1e-11)


def test_broadcasting_follows_scipy():
    Y = LinearCombination("expon()", np.arange(1.0, 13.0).reshape(3, 2, 2), loc=np.zeros((3, 1)))
    assert Y.shape == (3, 2)
    assert Y.mean().shape == Y.skewness().shape == Y.cdf(1.0).shape == (3, 2)
    q = np.array([0.1, 0.5, 0.9, 0.95])
    table = Y.ppf(q[:, None, None])
    assert table.shape == (4, 3, 2)
    np.testing.assert_allclose(table[2, 1, 0], LinearCombination("expon()", [5.0, 6.0]).ppf(0.9), rtol=1e-12)
    np.testing.assert_allclose(Y.cdf(table), np.broadcast_to(q[:, None, None], table.shape), rtol=1e-12)
    single = LinearCombination("expon()", [[1.0, 2.0]])
    assert single.cdf(np.linspace(0, 1, 5)).shape == (5,)
    assert LinearCombination("expon()", [1.0, 2.0]).ppf(0.5).shape == ()
    assert Y.rvs((2, 4), random_state=0).shape == (2, 4, 3, 2)
    assert LinearCombination("expon()", np.ones((0, 3))).ppf(0.5).shape == (0,)


def test_all_weights_zero_is_a_point_mass():
    Y = LinearCombination("gamma(2)", [0.0, 0.0], loc=1.5)
    np.testing.assert_array_equal(Y.cdf([1.0, 1.5, 2.0]), [0, 1, 1])
    np.testing.assert_array_equal(Y.ppf([0.0, 0.3, 1.0]), 1.5)
    np.testing.assert_array_equal(Y.pdf([1.0, 1.5]), [0, np.inf])
    assert np.isnan(Y.skewness())
    normal = LinearCombination("gamma(2)", [0.0, 0.0], loc=1.5, normal_std=2.0)
    assert float(normal.ppf(0.975)) == pytest.approx(1.5 + 2 * stats.norm.ppf(0.975))


def test_ends_of_the_support():
    Y = LinearCombination(
        "gamma(0.25, scale=2)", [[0.3, 0.5, 0.2], [0.3, -0.5, 0.2], [-0.3, -0.5, -0.2]], loc=1.0
    )
    np.testing.assert_array_equal(Y.ppf(0.0), [1.0, -np.inf, -np.inf])
    np.testing.assert_array_equal(Y.ppf(1.0), [np.inf, np.inf, 1.0])
    np.testing.assert_array_equal(Y.isf(0.0), [np.inf, np.inf, 1.0])
    np.testing.assert_array_equal(Y.cdf(1.0)[[0, 2]], [0, 1])
    np.testing.assert_array_equal(Y.cdf([-np.inf, -np.inf, -np.inf]), 0)
    np.testing.assert_array_equal(Y.sf([np.inf, np.inf, np.inf]), 0)
    assert np.all(np.isnan(Y.cdf(np.nan)))
    assert float(Y.pdf(0.5)[0]) == 0.0
    box = LinearCombination("beta(2, 3)", [1.0, -2.0, 0.5])
    assert [float(v) for v in box.ppf([0.0, 1.0])] == [-2.0, 1.5]
    assert [float(v) for v in box.cdf([-2.1, -2.0, 1.5, 1.6])] == [0, 0, 1, 1]


def test_density_at_the_end_of_the_support_is_its_limit():
    weights = [1.0, 0.5]
    assert float(LinearCombination("gamma(0.25)", weights).pdf(0.0)) == np.inf
    assert float(LinearCombination("expon()", weights).pdf(0.0)) == 0.0
    assert float(LinearCombination("gamma(0.5)", weights).pdf(0.0)) == pytest.approx(
        1 / np.sqrt(0.5), rel=1e-8
    )
    assert float(LinearCombination("gamma(0.5)", weights, loc=2.0).pdf(1.99)) == 0.0


def test_noise_far_from_zero_keeps_its_digits():
    near, far = (LinearCombination(stats.gamma(0.25, loc=loc), [1.0, 0.5, -0.2]) for loc in (0.0, 1e6))
    q = np.array([0.05, 0.5, 0.95])
    np.testing.assert_allclose(far.ppf(q) - 1.3e6, near.ppf(q), rtol=0, atol=2e-9)


def test_thousands_of_weights_of_all_magnitudes():
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(3, 10_000)) * 10.0 ** rng.uniform(-12, 0, size=(3, 10_000))
    Y = LinearCombination("gamma(0.25, scale=2)", weights)
    level, error = Y.cdf(Y.ppf(0.05), return_error=True)
    np.testing.assert_allclose(level, 0.05, rtol=0, atol=1e-13)
    assert np.all(error < 1e-12)
    largest = np.sort(np.abs(weights))[:, -2000:].min(axis=1)
    cut = np.where(np.abs(weights) >= largest[:, None], weights, 0.0)
    np.testing.assert_allclose(LinearCombination("gamma(0.25, scale=2)", cut).std(), Y.std(), rtol=1e-3)


def test_inputs_are_not_modified_and_results_repeat():
    weights = np.array([[1.0, -2.0], [0.0, 3.0]])
    copy = weights.copy()
    Y = LinearCombination("gamma(0.25)", weights)
    first = Y.ppf(0.3)
    np.testing.assert_array_equal(Y.ppf(0.3), first)
    np.testing.assert_array_equal(weights, copy)
    mean = Y.mean()
    weights += 1.0
    np.testing.assert_array_equal(Y.mean(), mean)


def test_quantiles_beyond_the_error_of_the_probability_are_said_to_be_uncertain():
    Y = LinearCombination("t(3)", [1.0, 1.0])
    assert np.isfinite(Y.isf(1e-13))  # within 1 %
    for quantile in (Y.isf, Y.ppf):
        with pytest.warns(AccuracyWarning, match="quantiles 1.0e-18 from 0 or 1 are uncertain"):
            quantile([0.5, 1e-18])


def test_accuracy_that_is_not_reached_is_said_and_covers_the_true_error():
    weights, y = [0.2, 0.7], np.array([0.1, 1.0, 5.0])
    misused = LinearCombination("lognorm(1.2)", weights, method="fourier")
    with pytest.warns(AccuracyWarning, match="errors of up to"):
        value, error = misused.cdf(y, return_error=True)
    assert np.all(np.abs(value - LinearCombination("lognorm(1.2)", weights).cdf(y)) <= error + 1e-14)
    assert error.max() < 1e-2


def test_moments_that_do_not_exist_are_nan():
    Y = LinearCombination("t(3)", [1.0, 2.0])
    assert float(Y.var()) == pytest.approx(15.0)
    assert np.isnan(Y.kurtosis())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": 1.0}, "weights must have shape"),
        ({"weights": [1.0, np.nan]}, "weights must be finite"),
        ({"weights": [1.0], "normal_std": -1.0}, "normal_std must be at least 0"),
        ({"weights": [1.0, 2.0], "counts": [1]}, "counts must be 2 positive numbers, one per weight"),
        ({"weights": [1.0, 2.0], "counts": [1, 0]}, "counts must be 2 positive numbers, one per weight"),
        ({"weights": [1.0], "method": "magic"}, "method must be one of 'auto'"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearCombination("expon()", **arguments)


def test_levels_outside_the_unit_interval_are_refused():
    Y = LinearCombination("expon()", [1.0, 2.0])
    with pytest.raises(ValueError, match="q must lie between 0 and 1"):
        Y.ppf(1.2)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        Y.interval(-0.1)


def test_progress_is_told_only_to_those_who_ask(monkeypatch, capsys):
    monkeypatch.setattr("wienerkernel.law.progress.PATIENCE", -1.0)
    weights = np.random.default_rng(0).normal(size=(5, 3))
    LinearCombination("gamma(2)", weights).ppf(0.5)
    assert capsys.readouterr().err == ""
    LinearCombination("gamma(2)", weights, verbose=True).ppf(0.5)
    assert "5 of 5 rows" in capsys.readouterr().err


def test_log_densities_go_on_where_densities_underflow():
    """One outlier must not make the log score of a data set minus infinity."""
    far = np.array([250.0, -1e4, 1e6])
    exact = stats.norm(0, 5)
    np.testing.assert_allclose(
        LinearCombination("norm()", [3.0], normal_std=4.0).logpdf(far), exact.logpdf(far), rtol=2e-6
    )
    np.testing.assert_allclose(
        LinearCombination("expon()", [1.0, 2.0]).logpdf([1470.0, 1500.0, 9e3]), [-735, -750, -4500], atol=0.1
    )
    scales = np.array([1.0, 3.0])
    mixed = MixedLaw(LinearCombination("norm()", scales[:, None]), np.array([0.8, 0.2]))
    expected = logsumexp(stats.norm(0, scales).logpdf(far[:, None]), axis=1, b=[0.8, 0.2])
    np.testing.assert_allclose(mixed.logpdf(far), expected, rtol=2e-6)
    assert LinearCombination("uniform()", [1.0, 1.0]).logpdf(3.0) == -np.inf
