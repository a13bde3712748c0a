"""Counts that are not whole numbers: phi(t)^n is the characteristic function of a law, too."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from wienerkernel import LinearCombination, Mixture, SmoothedResiduals

Q = np.array([1e-9, 0.001, 0.05, 0.3, 0.5, 0.9, 0.9999])

CLOSED = [
    ("gamma(0.3, scale=2)", lambda n: stats.gamma(0.3 * n, scale=2)),
    ("gamma(2, loc=1, scale=0.5)", lambda n: stats.gamma(2 * n, loc=n, scale=0.5)),
    ("expon(scale=3)", lambda n: stats.gamma(n, scale=3)),
    ("chi2(3)", lambda n: stats.chi2(3 * n)),
    ("norm(1, 2)", lambda n: stats.norm(n, 2 * np.sqrt(n))),
    ("pearson3(-0.7, 1, 2)", lambda n: stats.pearson3(-0.7 / np.sqrt(n), n, 2 * np.sqrt(n))),
    ("invgauss(0.8, scale=2)", lambda n: stats.invgauss(0.8 / n, scale=2 * n * n)),
]
LATTICE = [
    ("poisson(1.2)", lambda n: stats.poisson(1.2 * n)),
    ("nbinom(2, 0.4)", lambda n: stats.nbinom(2 * n, 0.4)),
    ("geom(0.4)", lambda n: stats.nbinom(n, 0.4, loc=n)),
]


@pytest.mark.parametrize(("noise", "exact"), CLOSED, ids=[name for name, _ in CLOSED])
@pytest.mark.parametrize("count", [0.4, 2.5])
@pytest.mark.parametrize("weight", [1.0, -2.0])
def test_families_are_closed_under_real_counts(noise, exact, count, weight):
    Y, law = LinearCombination(noise, [weight], counts=[count]), exact(count)
    level, error = Y.cdf(weight * law.ppf(Q), return_error=True)
    np.testing.assert_allclose(level, Q if weight > 0 else 1 - Q, rtol=1e-9, atol=1e-12)
    assert error.max() < 1e-12
    quantile = Y.ppf(Q) if weight > 0 else Y.isf(Q)
    np.testing.assert_allclose(quantile, weight * law.ppf(Q), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(Y.mean(), weight * law.mean(), rtol=1e-12)
    np.testing.assert_allclose(Y.var(), weight**2 * law.var(), rtol=1e-12)
    np.testing.assert_allclose(Y.skewness(), np.sign(weight) * law.stats("s"), rtol=1e-9)
    np.testing.assert_allclose(Y.kurtosis(), law.stats("k"), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(("noise", "exact"), LATTICE, ids=[name for name, _ in LATTICE])
@pytest.mark.parametrize("count", [0.4, 2.5])
def test_lattice_families_are_closed_under_real_counts(noise, exact, count):
    Y, law = LinearCombination(noise, [0.7], counts=[count]), exact(count)
    k = law.support()[0] + np.arange(8.0)
    np.testing.assert_allclose(Y.cdf(0.7 * k), law.cdf(k + 0.5), rtol=1e-12)
    np.testing.assert_allclose(Y.sf(0.7 * k), law.sf(k + 0.5), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(Y.ppf([0.3, 0.8]), 0.7 * law.ppf([0.3, 0.8]), rtol=1e-12)
    np.testing.assert_allclose(Y.var(), 0.49 * law.var(), rtol=1e-12)


def test_half_a_normal_inverse_gaussian_law():
    Y = LinearCombination("norminvgauss(2, 1)", [1.5], counts=[2.5])
    same = LinearCombination("norminvgauss(1, 0.5, scale=0.5)", [1.5], counts=[5])
    np.testing.assert_allclose(Y.cdf(same.ppf(Q[1:])), Q[1:], rtol=0, atol=1e-12)


def test_equal_weights_add_their_counts():
    Y = LinearCombination("gamma(0.3)", [[2.0, 2.0, 0.0], [1.0, 1.0, 1.0]], counts=[0.5, 1.7, 2.0])
    q = Q[:, None]
    expected = [stats.gamma(0.66, scale=2).ppf(Q), stats.gamma(1.26).ppf(Q)]
    np.testing.assert_allclose(Y.ppf(q).T, expected, rtol=1e-12)


def test_gamma_laws_of_one_scale_are_one_gamma_law():
    Y = LinearCombination(
        ["gamma(0.3, scale=2)", "chi2(3)", "expon()"], [[1.0], [1.0], [2.0]], counts=[[0.5], [0.1], [1]]
    )
    value, error = Y.ppf(Q, return_error=True)
    np.testing.assert_allclose(value, stats.gamma(0.15 + 0.15 + 1.0, scale=2).ppf(Q), rtol=1e-12)
    assert np.all(error == 0)


def test_tails_of_fractional_counts_keep_relative_accuracy():
    counts, weights = np.array([0.5, 1.5]), [1.0, 2.0]
    whole = LinearCombination("gamma(0.5)", weights, counts=[1, 3])
    parts = LinearCombination("gamma(1.0)", weights, counts=counts)
    y = np.array([0.01, 1.0, 20.0, 100.0, 300.0])
    np.testing.assert_allclose(parts.sf(y), whole.sf(y), rtol=1e-11)
    np.testing.assert_allclose(parts.pdf(y), whole.pdf(y), rtol=1e-9)
    np.testing.assert_allclose(parts.isf([1e-30, 1e-3]), whole.isf([1e-30, 1e-3]), rtol=1e-11)


def test_many_different_counts():
    rng = np.random.default_rng(0)
    weights, counts = rng.normal(size=(3, 60)), rng.integers(1, 20, size=60)
    parts = LinearCombination("gamma(1.0)", weights, counts=counts / 4)
    whole = LinearCombination("gamma(0.25)", weights, counts=counts)
    np.testing.assert_allclose(parts.ppf(Q[1:, None]), whole.ppf(Q[1:, None]), rtol=1e-10, atol=1e-11)
    jumps, rates = rng.integers(1, 4, size=(2, 30)), np.arange(1, 31) / 4
    Y = LinearCombination("poisson(1.0)", jumps, counts=rates)
    for row in range(2):  # a compound Poisson law
        mass = np.bincount(jumps[row], weights=rates, minlength=1024)
        transform = np.exp(np.fft.fft(mass) - mass.sum())
        expected = np.cumsum(np.fft.ifft(transform).real)[[150, 200, 250, 300]]
        np.testing.assert_allclose(Y.cdf([[150], [200], [250], [300]])[:, row], expected, rtol=0, atol=1e-13)


INFINITELY_DIVISIBLE = """gamma(0.3); gamma(7); expon(); chi2(5); pearson3(0.8); laplace(); laplace_asymmetric(2); exponnorm(1.5);
invgauss(0.7); norminvgauss(2, 1); logistic(); hypsecant(); genlogistic(0.3); genlogistic(4); loggamma(0.4); loggamma(20);
gumbel_r(); gumbel_l(); moyal(); lomax(6); pareto(5.5); genpareto(0.1); weibull_min(0.7); weibull_max(0.7);
burr12(0.8, 9); halfgennorm(0.7); gennorm(0.7); dweibull(0.8); dgamma(0.6); gengamma(0.8, 0.9); betaprime(0.7, 6);
f(1.5, 12)""".replace("\n", " ").split("; ")


@pytest.mark.parametrize("noise", INFINITELY_DIVISIBLE)
@pytest.mark.filterwarnings("ignore::wienerkernel.AccuracyWarning")
def test_parts_of_an_infinitely_divisible_law_add_up_to_it(noise):
    whole = LinearCombination(noise, [1.0, 0.6, -0.3])
    parts = LinearCombination(
        noise, [1.0, 1.0 + 1e-12, 0.6, -0.3, -0.3 - 1e-12], counts=[0.3, 0.7, 1.0, 0.75, 0.25]
    )
    y = whole.ppf(Q[1:])
    expected, first = whole.cdf(y, return_error=True)
    level, second = parts.cdf(y, return_error=True)
    assert np.all(np.abs(level - expected) <= 10 * (first + second) + 1e-11)
    assert second.max() < 1e-7


def test_several_laws_with_counts_of_their_own():
    Y = LinearCombination(
        ["gamma(1.0)", "uniform()", "norm(0, 1)"],
        [[1.0, -0.5], [0.7], [0.2]],
        counts=[[0.5, 2.0], [1], [2.5]],
    )
    same = LinearCombination(
        ["gamma(0.5)", "uniform()"], [[1.0, -0.5], [0.7]], counts=[[1, 4], [1]], normal_std=0.2 * np.sqrt(2.5)
    )
    value, error = Y.ppf(Q[1:], return_error=True)
    np.testing.assert_allclose(value, same.ppf(Q[1:]), rtol=1e-10, atol=1e-11)
    assert error.max() < 1e-12


@pytest.mark.parametrize("method", ["contour", "fourier", "convolution", "lattice"])
def test_methods_that_are_asked_for_serve_real_counts(method):
    Y = LinearCombination("gamma(4)", [1.0, 0.4], counts=[0.5, 1.5], method=method)
    same = LinearCombination("gamma(2)", [1.0, 0.4], counts=[1, 3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, error = Y.cdf([2.0, 5.0], return_error=True)
    assert np.all(np.abs(value - same.cdf([2.0, 5.0])) <= 10 * error)
    assert error.max() < 1e-3


@pytest.mark.parametrize("method", ["convolution", "lattice"])
def test_methods_that_need_whole_counts_say_so(method):
    with pytest.raises(ValueError, match=f"method='{method}' needs whole counts"):
        LinearCombination("logistic()", [1.0, 0.4], counts=[0.5, 1.5], method=method).cdf(1.0)


@pytest.mark.parametrize(
    "noise",
    ["gamma(2)", "norm(1, 2)", "poisson(3)", "nbinom(2, 0.4)", "invgauss(0.8)", "laplace()", "lomax(6)"],
)
def test_draws_of_real_counts_follow_the_law(noise):
    Y = LinearCombination(noise, [[1.0, -2.0], [2.0, -4.0]], counts=[2.5, 3.0], normal_std=[0.5, 0.0])
    draws = Y.rvs(4000, random_state=0)
    assert draws.shape == (4000, 2)
    first = Y.cdf(draws)[:, 0]  # the normal part makes this law continuous
    assert stats.kstest(first, "uniform").pvalue > 1e-3
    np.testing.assert_allclose(draws.mean(axis=0), Y.mean(), atol=5 * Y.std().max() / np.sqrt(4000))


@pytest.mark.parametrize(
    "noise",
    ["uniform()", "beta(2, 3)", "bernoulli(0.3)", "binom(3, 0.3)", [0.1, 0.2, 0.5]],
    ids=str,
)
def test_bounded_laws_have_no_fractional_counts(noise):
    with pytest.raises(ValueError, match=r"counts of .* must be whole numbers, got 2\.5: .*bounded"):
        LinearCombination(noise, [1.0, 2.0], counts=[1, 2.5])


@pytest.mark.parametrize(
    "noise",
    [
        "rayleigh()",
        "weibull_min(1.5)",
        "skewnorm(2)",
        Mixture([stats.norm(0, 1), stats.norm(1, 1)], [0.5, 0.5]),
        SmoothedResiduals([0.1, 0.4, 0.9], 0.2),
    ],
    ids=repr,
)
def test_laws_that_are_not_known_to_be_divisible_need_whole_counts(noise):
    with pytest.raises(
        ValueError, match=r"counts of .* must be whole numbers, got 0\.5: .*infinitely divisible"
    ):
        LinearCombination(noise, [1.0], counts=[0.5])


def test_a_binomial_law_is_divided_into_its_trials():
    Y = LinearCombination("binom(4, 0.3)", [2.0], counts=[2.5])
    np.testing.assert_allclose(
        Y.cdf(2.0 * np.arange(11)), stats.binom(10, 0.3).cdf(np.arange(11)), rtol=1e-12
    )


@pytest.mark.parametrize("counts", [[1.0], [1.0, 0.0], [1.0, -2.5], [np.nan, 1.0], [np.inf, 1.0]])
def test_counts_are_positive_and_finite(counts):
    with pytest.raises(ValueError, match="counts must be 2 positive numbers, one per weight"):
        LinearCombination("expon()", [1.0, 2.0], counts=counts)
