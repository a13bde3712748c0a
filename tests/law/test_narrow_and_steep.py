"""Sums that were wrong without a word once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from wienerkernel import AccuracyWarning, Expansion, LinearCombination, Mixture, OrthogonalBasis

pytestmark = pytest.mark.filterwarnings("ignore::wienerkernel.AccuracyWarning")


def assert_stated(value, error, exact):
    assert abs(float(value) - exact) <= 10 * float(error) + 1e-12


@pytest.mark.parametrize(("p", "far", "width"), [(0.1, 1e5, 1.0), (0.5, 1.0, 1e-6)])
def test_a_staircase_of_narrow_peaks_is_not_taken_for_a_smooth_law(p, far, width):
    law = Mixture([stats.norm(0.0, width), stats.norm(far, width)], [1 - p, p])
    Y = LinearCombination(law, [1.0], counts=[200])
    k = np.arange(201)
    for q in (0.3, 0.7):
        y = far * float(stats.binom(200, p).ppf(q)) + 0.012 * far
        exact = stats.binom(200, p).pmf(k) @ stats.norm.cdf((y - far * k) / (width * np.sqrt(200)))
        assert_stated(*Y.cdf(y, return_error=True), exact)


@pytest.mark.parametrize("tau", [1e-14, 1e-12, 1e-9, 4.5e-6])
def test_atoms_under_a_narrow_normal_part_know_how_well_their_places_are_known(tau):
    Y = LinearCombination([0.0, 1.0], [1.0], counts=[20], normal_std=tau)
    assert_stated(
        *Y.cdf(11.0, return_error=True), stats.binom(20, 0.5).cdf(11) - stats.binom(20, 0.5).pmf(11) / 2
    )


def test_the_error_of_a_quantile_is_that_of_the_probability_there():
    Y = LinearCombination(Mixture([[0.0, 1.0], stats.norm(0.5, 1e-4)], [1 - 1e-6, 1e-6]), [1.0], counts=[200])
    y, error = Y.ppf(0.99, return_error=True)
    assert float(error) >= 1e-4
    assert 115.9 < float(y) < 116.1


@pytest.mark.parametrize(("law", "p"), [(stats.gengamma(0.1, 0.5), 0.05), (stats.burr(4.0, 0.0125), 0.05)])
def test_strong_poles_keep_the_mass_next_to_them(law, p):
    # next to 0 the density of one term is a multiple of x^(p-1), and of two of x^(2p-1)
    y = 1e-26
    exact = law.cdf(y) ** 2 * special.gamma(1 + p) ** 2 / special.gamma(1 + 2 * p)
    assert_stated(*LinearCombination(law, [1.0, 1.0]).cdf(y, return_error=True), exact)


def test_frequencies_beyond_all_nodes_do_not_stop_a_sum():
    value, error = LinearCombination(stats.weibull_min(20.0), [1e-6, 1000.0]).cdf(1e-6, return_error=True)
    assert_stated(value, error, 0.0)


def test_atoms_that_are_too_many_to_be_summed_over_are_left_to_another_method():
    Y = LinearCombination(
        Mixture([stats.poisson(1.0), stats.expon(0.5)], [0.6, 0.4]), [1.0, 0.5], counts=[3, 4]
    )
    assert 0 < float(Y.cdf(3.0)) < 1


def test_a_component_of_weight_0_does_not_make_a_law_discrete():
    Y = LinearCombination(Mixture([stats.t(3), [0.0, 5.0]], [1.0, 0.0]), [1.0])
    assert float(Y.cdf(0.3)) == pytest.approx(stats.t(3).cdf(0.3), abs=1e-14)
    assert float(Y.pdf(0.3)) == pytest.approx(stats.t(3).pdf(0.3), rel=1e-12)


def test_what_misses_the_accuracy_warns():
    with pytest.warns(AccuracyWarning):
        LinearCombination([0.0, 1.0], [1.0], counts=[20], normal_std=1e-14).cdf(11.0)


def test_the_atom_of_one_term_is_reached_whatever_its_place_rounds_to():
    Y = LinearCombination([-0.3, 0.1, 1.7], [-2.5])
    np.testing.assert_allclose(Y.cdf([-4.25, -0.25, 0.75]), [1 / 3, 2 / 3, 1.0], rtol=0, atol=1e-15)


def test_a_square_near_zero_states_its_rounding():
    """The smallest values of a chaos expansion are sums that cancel, and the density has a pole there."""
    square = Expansion(OrthogonalBasis("norm(0, 1)", 3), [1.0, 0.0, 2**0.5])  # of a standard normal variable
    law = LinearCombination(square, [1.0])
    with pytest.warns(AccuracyWarning):
        x, error = law.ppf([1e-9, 1e-6, 0.5], return_error=True)
    with pytest.warns(AccuracyWarning):
        p, p_error = law.cdf([2e-16, 1e-12, 1.0], return_error=True)
    assert np.all(np.abs(stats.chi2(1).cdf(x) - [1e-9, 1e-6, 0.5]) <= 10 * error + 1e-12)
    assert np.all(np.abs(stats.chi2(1).cdf([2e-16, 1e-12, 1.0]) - p) <= 10 * p_error + 1e-12)
    assert error[2] < 1e-12


@pytest.mark.parametrize(
    ("noise", "weights", "normal_std"),
    [
        ("powerlaw(.1)", [1000.0, -1.0], 0.3),
        ("powerlaw(.1)", [1000.0, -1.0, 50.0], 0.3),
        ("powerlaw(.05)", [1.0, -1.0], 0.3),
        ("beta(.1, .1)", [1.0, -0.7], 1e-3),
    ],
)
def test_at_a_pole_under_a_normal_part_the_density_is_that_beside_it(noise, weights, normal_std):
    """Where the pole of one term meets the center of another, it was 1e44, or 0."""
    law = LinearCombination(noise, weights, normal_std=normal_std)
    below, at, above = law.pdf([-1e-9, 0.0, 1e-9])
    assert at == pytest.approx((below + above) / 2, rel=1e-7)


@pytest.mark.parametrize("width", [1e-4, 1e-8])
def test_a_narrow_bounded_term_beside_a_wide_one(width):
    """Within its width no rotated contour converges; there was NaN."""
    law = LinearCombination(["gamma(0.5)", "uniform()"], [[1.0], [width]])
    y = width * np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(law.pdf(y), stats.gamma(0.5).cdf(y) / width, rtol=1e-12)
    integral = y * stats.gamma(0.5).cdf(y) - 0.5 * stats.gamma(1.5).cdf(y)
    np.testing.assert_allclose(law.cdf(y), integral / width, rtol=1e-11, atol=1e-14)
    symmetric = LinearCombination(["laplace()", "uniform(-1, 2)"], [[1.0, 0.01], [width]])
    assert float(symmetric.cdf(0.0)) == pytest.approx(0.5, abs=1e-14)
