"""Recorded residuals and other laws of countably many values."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from wienerkernel import Mixture
from wienerkernel.law import AccuracyWarning, LinearCombination


def enumerate_sums(values, weights):
    sums = np.array(
        [np.dot(weights, combination) for combination in itertools.product(values, repeat=len(weights))]
    )
    return np.sort(sums)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -0.3], [0.2, 0.5, 0.7, -1.1], [1.0, 1.0, 1.0]])
def test_few_residuals_equal_the_enumeration_of_all_outcomes(weights):
    values = [-1.0, -0.2, 0.1, 0.4, 2.0]
    sums = enumerate_sums(values, weights)
    Y = LinearCombination(values, weights)
    y = np.linspace(sums[0] - 0.1, sums[-1] + 0.1, 57) + np.pi * 1e-5  # never on an atom
    np.testing.assert_allclose(Y.cdf(y), np.mean(sums <= y[:, None], axis=1), atol=1e-13)
    np.testing.assert_allclose(Y.sf(y), np.mean(sums > y[:, None], axis=1), atol=1e-13)
    q = np.array([0.013, 0.3, 0.5003, 0.97])
    expected = [sums[np.argmax(np.arange(1, len(sums) + 1) / len(sums) >= level)] for level in q]
    np.testing.assert_allclose(Y.ppf(q), expected, atol=1e-13)


def test_quantile_of_a_flat_distribution_function_is_the_infimum():
    Y = LinearCombination([-1.0, 1.0], [1.0, 1.0])  # -2, 0, 2 with probabilities 1/4, 1/2, 1/4
    np.testing.assert_allclose(Y.ppf([0.2, 0.25, 0.26, 0.75, 0.76, 1.0]), [-2, -2, 0, 0, 2, 2], atol=1e-14)
    np.testing.assert_allclose(Y.cdf([-2.0, -0.1, 0.0, 2.0]), [0.25, 0.25, 0.75, 1.0], atol=1e-14)
    np.testing.assert_allclose(Y.cdf(Y.ppf(0.5)), 0.75, atol=1e-14)


def test_many_equal_signs_follow_the_binomial_law():
    n = 200
    Y = LinearCombination([-1.0, 1.0], np.ones(n))
    k = np.array([70, 90, 100, 120])
    np.testing.assert_allclose(Y.cdf(2.0 * k - n), stats.binom(n, 0.5).cdf(k), rtol=1e-10)
    np.testing.assert_allclose(Y.ppf([0.1, 0.5]), 2 * stats.binom(n, 0.5).ppf([0.1, 0.5]) - n, atol=1e-9)


def test_sums_of_poisson_variables_are_poisson():
    Y, exact = LinearCombination(stats.poisson(3.0), np.ones(20)), stats.poisson(60.0)
    q = np.array([1e-6, 0.05, 0.5, 0.95])
    np.testing.assert_allclose(Y.ppf(q), exact.ppf(q), atol=1e-9)
    np.testing.assert_allclose(Y.cdf([40, 60, 90]), exact.cdf([40, 60, 90]), rtol=1e-10)


def test_negative_weights_of_one_discrete_variable_keep_the_atoms():
    Y = LinearCombination(stats.poisson(2.0), [-1.0])
    k = np.arange(5)
    np.testing.assert_allclose(Y.cdf(-k), stats.poisson(2.0).sf(k - 1), atol=1e-14)
    np.testing.assert_allclose(Y.sf(-k), stats.poisson(2.0).cdf(k - 1), atol=1e-14)


def test_many_residuals_agree_with_draws():
    rng = np.random.default_rng(0)
    residuals = rng.gamma(0.5, size=40)
    weights = rng.normal(size=(2, 25))
    Y = LinearCombination(residuals, weights)
    draws = Y.rvs(20_000, random_state=1)
    y = np.quantile(draws, [0.05, 0.5, 0.95], axis=0)
    np.testing.assert_allclose(Y.cdf(y), [[0.05] * 2, [0.5] * 2, [0.95] * 2], atol=0.01)
    np.testing.assert_allclose(Y.cdf(Y.ppf([[0.05], [0.95]])), [[0.05] * 2, [0.95] * 2], atol=1e-10)


def test_residuals_with_a_normal_part_are_a_normal_mixture():
    residuals = np.array([-1.0, 0.0, 3.0])
    Y = LinearCombination(residuals, [1.0, -0.5], normal_std=0.3)
    sums = enumerate_sums(residuals, [1.0, -0.5])
    y = np.linspace(-3, 5, 17)
    np.testing.assert_allclose(Y.cdf(y), stats.norm.cdf((y[:, None] - sums) / 0.3).mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(
        Y.pdf(y), (stats.norm.pdf((y[:, None] - sums) / 0.3) / 0.3).mean(axis=1), atol=1e-12
    )


def test_lattice_bracket_holds_the_exact_law():
    residuals = np.random.default_rng(4).normal(size=12)
    weights = [1.0, -0.7, 0.31]
    exact = LinearCombination(residuals, weights)
    y = np.linspace(-2, 2, 9)
    with pytest.warns(AccuracyWarning, match="errors of up to"):
        value, error = LinearCombination(residuals, weights, method="lattice").cdf(y, return_error=True)
    assert np.all(np.abs(value - exact.cdf(y)) <= error + 1e-12)
    assert error.max() < 1e-2


def test_discrete_noise_has_no_density():
    with pytest.raises(TypeError, match="no density"):
        LinearCombination([-1.0, 1.0], [1.0, 2.0]).pdf(0.0)


def both_halves(values, weights, y):
    """Distribution function of a discrete sum from the sorted sums of either half of its terms."""

    def sums(part):
        total = np.zeros(1)
        for w in part:
            total = np.add.outer(total, w * values).ravel()
        return np.sort(total)

    left, right = sums(weights[::2]), sums(weights[1::2])
    return np.array([np.searchsorted(right, point - left, side="right").mean() / len(right) for point in y])


def test_sums_of_billions_of_atoms_are_exact():
    rng = np.random.default_rng(0)
    values, weights = rng.gamma(0.7, size=8), rng.uniform(0.3, 1.0, 12)
    y = np.array([3.0, 4.5, 6.0, 7.5])
    cdf, error = LinearCombination(values, weights).cdf(y, return_error=True)
    np.testing.assert_allclose(cdf, both_halves(values, weights, y), rtol=0, atol=1e-13)
    assert error.max() < 1e-12


def test_sums_with_too_many_atoms_are_close_and_say_how_close():
    rng = np.random.default_rng(0)
    values, weights = rng.gamma(0.7, size=8), rng.uniform(0.3, 1.0, 13)
    y = np.array([3.0, 4.5, 6.0, 7.5])
    with pytest.warns(AccuracyWarning):
        cdf, error = LinearCombination(values, weights).cdf(y, return_error=True)
    assert np.all(np.abs(cdf - both_halves(values, weights, y)) <= error)
    assert error.max() < 1e-4


def test_recorded_values_on_a_fine_grid_are_not_taken_for_a_smooth_law():
    # Every term comes back at the frequency of the grid, far beyond where phi first vanishes.
    rng = np.random.default_rng(1)
    values = np.unique(rng.normal(size=15).round(1))
    weights = np.repeat([1.0, 1.003, 1.005, 1.007, 1.011, 1.013], 5)
    y = values.mean() * weights.sum() + np.linspace(-3.0, 3.0, 40)
    with pytest.warns(AccuracyWarning):
        cdf, error = LinearCombination(values, weights, method="fourier").cdf(y, return_error=True)
    # on the grid of 1e-4 that the sums live on, by a convolution of exact probabilities
    points = np.rint(1e4 * np.multiply.outer(weights, values)).astype(int)
    lowest = points.min(axis=1).sum()
    size = int(points.max(axis=1).sum() - lowest) + 1
    transform = np.ones(2 ** int(np.ceil(np.log2(size))) // 2 + 1, dtype=complex)
    n = 2 * (len(transform) - 1)
    for row in points:
        transform *= np.fft.rfft(np.bincount(row - row.min(), minlength=n) / len(values))
    exact = np.cumsum(np.fft.irfft(transform, n))[np.floor(1e4 * y + 1e-3).astype(int) - lowest]
    assert np.all(np.abs(cdf - exact) <= error + 1e-10)
    np.testing.assert_allclose(LinearCombination(values, weights).cdf(y), exact, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weights", [[1.0, -0.7, 0.4, -1.3, 0.9], [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03]])
@pytest.mark.parametrize("law", ["expon()", "norm()"])
def test_many_atoms_beside_a_continuous_law_equal_the_sum_over_all_choices(law, weights):
    w, y = np.array(weights), np.array([-1.3, -0.35, 0.0, 0.3, 0.30000001, 1.7, 40.0])
    expected = np.zeros(len(y))
    for kind in itertools.product((0, 1, 2), repeat=len(w)):  # the atoms 0 and 1, or the law
        kind = np.array(kind)
        probability = np.prod(np.where(kind == 2, 0.5, 0.25))
        rest, loc = w[kind == 2], w[kind == 1].sum()
        # an atom may be rounded
        at_most = LinearCombination(law, rest, loc=loc).cdf(y) if len(rest) else y + 1e-12 >= loc
        expected += probability * at_most
    Y = LinearCombination(Mixture([[0.0, 1.0], law], [0.5, 0.5]), w)
    cdf, error = Y.cdf(y, return_error=True)
    np.testing.assert_allclose(cdf, expected, atol=2e-12)
    assert np.all(error < 1e-11)
    atom = w[0] + w[1]
    jump = Y.cdf(atom) - Y.cdf(atom - 1e-9)
    level = Y.cdf(atom) - 0.5 * jump
    assert jump > 0.25 ** len(w)
    np.testing.assert_allclose(Y.ppf(level), atom, atol=1e-14)


def test_many_copies_of_few_values_keep_their_place():
    law, copies, weights = stats.binom(7, 0.3), 100, np.array([10, -7, 4, -13, 9])
    exact, first = np.ones(1), 0
    for weight in weights:  # on a grid of 0.1
        step = np.zeros(7 * abs(weight) + 1)
        step[:: abs(weight)] = law.pmf(np.arange(8))
        first += min(0, 7 * weight * copies)
        for _ in range(copies):
            exact = np.convolve(exact, step if weight > 0 else step[::-1])
    values, tau = (np.arange(len(exact)) + first) / 10, 0.0247
    Y = LinearCombination(law, weights / 10, counts=np.full(5, copies), normal_std=tau)
    for y in (30.0, 53.12031895178795, 63.0):
        value, error = Y.cdf(y, return_error=True)
        assert abs(value - exact @ ndtr((y - values) / tau)) < 1e-13 + 2 * error


@pytest.mark.parametrize("weight", [1.0, 0.1, -1 / 3])
@pytest.mark.parametrize("number", [50, 1000, 5000, 100_000])
def test_many_bernoulli_terms_are_binomial_at_every_atom(number, weight):
    success = np.arange(int(0.29 * number), int(0.31 * number) + 2)[:200]
    Y = LinearCombination("bernoulli(0.3)", [weight], counts=[number])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        cdf, error = Y.cdf(weight * success, return_error=True)
    exact = stats.binom(number, 0.3)
    expected = exact.cdf(success) if weight > 0 else exact.sf(success - 1)
    assert np.all(np.abs(cdf - expected) <= 10 * error)
    assert error.max() < 2e-11


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("weight", [1.0, 0.1, 1 / 3])
def test_atoms_far_from_zero_are_found_where_the_argument_is_rounded(offset, weight):
    Y = LinearCombination([offset, offset + 1], [weight, weight])
    np.testing.assert_allclose(
        Y.cdf(weight * (2 * offset) + weight * np.arange(3)), [0.25, 0.75, 1], rtol=1e-13
    )
    np.testing.assert_allclose(
        Y.sf(weight * (2 * offset) + weight * np.arange(3)), [0.75, 0.25, 0], atol=1e-13
    )
