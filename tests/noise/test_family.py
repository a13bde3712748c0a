"""Noise that is partly known: families with free parameters, and the smoothed shape of residuals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from wienerkernel import LinearCombination
from wienerkernel.noise import SmoothedResiduals
from wienerkernel.noise.family import Family, KnownLaw, ScaledShape, noise_model


@pytest.mark.parametrize(
    "name", ["gamma", "lognorm", "t", "beta", "skewnorm", "uniform", "weibull_min", "norm"]
)
@pytest.mark.parametrize("std", [1e-6, 2.5])
def test_members_have_the_given_standard_deviation_and_mean_zero(name, std):
    family = Family(name)
    noise = family.law(std, family.shape_bounds @ [0.5, 0.5])
    assert noise.std() == pytest.approx(std, rel=1e-10)
    assert noise.mean() == pytest.approx(0.0, abs=1e-10 * std)


def test_a_given_location_is_kept_and_the_mean_follows():
    noise = Family(stats.gamma, loc=0.0).law(2.0, [np.log(4.0)])
    assert noise.support()[0] == 0.0
    assert noise.mean() == pytest.approx(4.0)  # shape 4, scale 1
    assert noise.std() == pytest.approx(2.0)


def test_a_shape_that_may_be_negative_stands_for_itself():
    family = Family("skewnorm")
    assert family.linear_shapes == ("a",)
    assert family.law(1.0, [-3.0]).cumulants(3)[2] < 0 < family.law(1.0, [3.0]).cumulants(3)[2]


def test_equal_bounds_fix_a_shape():
    family = Family("beta", bounds={"a": (2.0, 2.0)})
    assert family.shape_names == ("b",)
    assert family.law(1.0, [np.log(3.0)]).shapes == (2.0, pytest.approx(3.0))


def test_a_family_without_shapes_has_the_standard_deviation_alone():
    assert Family("laplace").shape_names == ()
    assert Family("laplace").law(3.0).std() == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (None, Family),
        ("gamma", Family),
        (stats.gamma, Family),
        (Family("t"), Family),
        ("gamma(0.25, scale=2)", KnownLaw),
        (stats.norm(0, 2), KnownLaw),
        ([-1.0, 0.5, 0.7], KnownLaw),
    ],
)
def test_what_a_user_gives_becomes_a_noise_model(given, kind):
    assert isinstance(noise_model(given), kind)


def test_residuals_are_asked_for_by_name():
    assert noise_model("residuals") == "residuals"


@pytest.mark.parametrize("law", [stats.poisson, "poisson", stats.gamma(2.0), 3.0, "no_such_law"])
def test_what_is_not_a_continuous_family_is_an_error(law):
    with pytest.raises((TypeError, ValueError), match=r"law|unknown"):
        Family(law)


@pytest.mark.parametrize(
    "bounds", [{"b": (1, 2)}, {"a": (2, 1)}, {"a": 3}, {"a": (0.1, np.inf)}, {"std": (0.0, 1.0)}]
)
def test_bad_bounds_are_an_error_that_names_them(bounds):
    with pytest.raises(ValueError, match="bounds"):
        Family("gamma", bounds=bounds)


def test_an_infinite_variance_is_an_error():
    with pytest.raises(ValueError, match="variance"):
        Family("t", bounds={"df": (1.0, 3.0)}).law(1.0, [np.log(1.5)])


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=12, unique=True), st.floats(0.1, 2.0))
@settings(max_examples=25, deadline=None)
def test_density_of_smoothed_residuals_has_their_cumulants(values, bandwidth):
    noise = SmoothedResiduals(values, bandwidth)
    ends = min(values) - 12 * bandwidth, max(values) + 12 * bandwidth
    x, w = np.polynomial.legendre.leggauss(400)
    x = 0.5 * (ends[0] + ends[1]) + 0.5 * (ends[1] - ends[0]) * x
    density = 0.5 * (ends[1] - ends[0]) * w * noise.pdf(x)
    assert density.sum() == pytest.approx(1.0)
    assert density @ x == pytest.approx(noise.mean(), abs=1e-9)
    assert density @ (x - noise.mean()) ** 2 == pytest.approx(noise.var())
    assert density @ (x - noise.mean()) ** 3 == pytest.approx(noise.cumulants(3)[2], abs=1e-8)


def test_smoothed_residuals_answer_like_a_law_of_scipy():
    noise = SmoothedResiduals([-1.0, 0.2, 0.3, 2.0], bandwidth=0.4)
    x = np.linspace(-3, 4, 11)
    np.testing.assert_allclose(noise.cdf(x) + noise.sf(x), 1.0)
    np.testing.assert_allclose(noise.cdf(1.0), integrate.quad(noise.pdf, -10, 1.0)[0], rtol=1e-9)
    np.testing.assert_allclose(noise.cdf(noise.ppf([0.1, 0.9])), [0.1, 0.9], rtol=1e-12)
    draws = noise.rvs(200_000, random_state=0)
    assert draws.mean() == pytest.approx(noise.mean(), abs=0.01)
    assert draws.std() == pytest.approx(noise.std(), rel=0.01)
    t = np.array([0.7, -1.3])
    expected = [np.log(np.mean(np.exp(1j * s * draws))) for s in t]
    np.testing.assert_allclose(noise.logcf(t), expected, atol=0.01)


def test_a_sum_of_smoothed_residuals_is_a_mixture_of_normal_laws():
    values = np.array([-1.0, 0.2, 1.1])
    law = LinearCombination(SmoothedResiduals(values, 0.5), [[1.0, -2.0]])
    centers = values[:, None] - 2 * values[None, :]
    expected = np.mean(stats.norm(centers, 0.5 * np.sqrt(5)).cdf(0.3))
    np.testing.assert_allclose(law.cdf(0.3), expected, rtol=1e-10)


def test_a_scaled_shape_keeps_the_skewness():
    shape = SmoothedResiduals(np.random.default_rng(0).gamma(0.5, size=50))
    scaled = ScaledShape(shape).law(7.0)
    assert scaled.mean() == pytest.approx(0.0, abs=1e-12)
    assert scaled.std() == pytest.approx(7.0)
    skewness = [noise.cumulants(3)[2] / noise.std() ** 3 for noise in (shape, scaled)]
    assert skewness[0] == pytest.approx(skewness[1])


def test_most_values_equal_still_have_a_bandwidth():
    assert SmoothedResiduals([0.0] * 20 + [1.0]).bandwidth > 0


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [np.nan, 1.0]])
def test_residuals_without_variance_are_an_error(values):
    with pytest.raises(ValueError, match="residuals"):
        SmoothedResiduals(values)
