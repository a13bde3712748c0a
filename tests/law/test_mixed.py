"""Mixtures of linear combinations against sums over their parts."""

import numpy as np
import pytest
from scipy import integrate, stats

from wienerkernel import LinearCombination
from wienerkernel.law.mixed import MixedLaw

PROBABILITIES = np.array([0.2, 0.5, 0.3])
STDS = np.array([[0.5, 1.0], [1.0, 2.0], [3.0, 0.1]])
LOCS = np.array([[0.0, 1.0], [0.5, 1.0], [-1.0, 1.0]])


@pytest.fixture(scope="module")
def normal():
    return MixedLaw(LinearCombination("norm()", STDS[..., None], loc=LOCS), PROBABILITIES)


@pytest.fixture(scope="module")
def skewed():
    weights = np.random.default_rng(0).normal(size=(3, 2, 4))
    return MixedLaw(LinearCombination("gamma(0.5)", weights, normal_std=0.1), PROBABILITIES)


def test_probabilities_and_densities_are_averages_over_the_parts(normal):
    y = np.linspace(-4, 4, 9)[:, None]
    parts = stats.norm(LOCS, STDS)
    for name in ("cdf", "sf", "pdf"):
        expected = np.einsum("k,ykm->ym", PROBABILITIES, getattr(parts, name)(y[:, None]))
        np.testing.assert_allclose(getattr(normal, name)(y), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(normal.logpdf(y), np.log(normal.pdf(y)), rtol=1e-12)


def test_moments_are_those_of_the_density(normal):
    for column in range(2):

        def moment(order, center=0.0, column=column):
            def term(y):
                density = PROBABILITIES @ stats.norm(LOCS[:, column], STDS[:, column]).pdf(y)
                return (y - center) ** order * density

            return integrate.quad(term, -40, 40, points=[LOCS[0, column]], limit=200, epsabs=1e-12)[0]

        mean = moment(1)
        var = moment(2, mean)
        assert normal.mean()[column] == pytest.approx(mean, abs=1e-9)
        assert normal.var()[column] == pytest.approx(var, rel=1e-8)
        assert normal.skewness()[column] == pytest.approx(moment(3, mean) / var**1.5, abs=1e-8)
        assert normal.kurtosis()[column] == pytest.approx(moment(4, mean) / var**2 - 3, abs=1e-8)


@pytest.mark.parametrize("q", [1e-9, 1e-3, 0.3, 0.5, 0.9, 1 - 1e-6])
def test_quantiles_invert_the_distribution_function(normal, skewed, q):
    for law in (normal, skewed):
        np.testing.assert_allclose(law.cdf(law.ppf(q)), q, rtol=1e-9)
        np.testing.assert_allclose(law.sf(law.isf(q)), q, rtol=1e-9)
        value, error = law.ppf(q, return_error=True)
        assert value.shape == law.shape
        assert np.all(error < 1e-9)


def test_ends_of_the_support_are_those_of_all_parts():
    law = MixedLaw(LinearCombination("uniform()", [[1.0], [3.0], [-2.0]]), PROBABILITIES)
    assert (
        (float(law.ppf(0.0)), float(law.ppf(1.0)))
        == tuple(float(end) for end in law.support())
        == (-2.0, 3.0)
    )


def test_equal_parts_are_no_mixture():
    one = LinearCombination("gamma(2)", [1.0, -0.5])
    law = MixedLaw(LinearCombination("gamma(2)", [[1.0, -0.5]] * 3), PROBABILITIES)
    for order in range(1, 7):
        assert law.cumulant(order) == pytest.approx(float(one.cumulant(order)), rel=1e-11)
    np.testing.assert_allclose(law.interval(0.9), one.interval(0.9), rtol=1e-10)
    np.testing.assert_allclose(law.hdi(0.5), one.hdi(0.5), rtol=1e-6)


def test_draws_have_the_law(skewed):
    draws = skewed.rvs(4000, random_state=0)
    assert draws.shape == (4000, 2)
    for column in range(2):
        uniform = skewed.cdf(np.stack([draws[:, column]] * 2, axis=1))[:, column]
        assert stats.kstest(uniform, "uniform").pvalue > 1e-3
