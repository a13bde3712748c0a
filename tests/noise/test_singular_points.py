"""Where densities are not smooth, and their values next to such points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from wienerkernel import Expansion, OrthogonalBasis
from wienerkernel.noise import Mixture, as_noise


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (stats.norm(3.0, 2.0), []),
        (stats.gamma(0.25, loc=-2.0), [-2.0]),
        (stats.arcsine(loc=1.0, scale=4.0), [1.0, 5.0]),
        (stats.laplace(5e3, 0.1), [5e3]),
        (stats.loglaplace(2.5, scale=3.0), [0.0, 3.0]),
        (stats.gennorm(1.3), [0.0]),
        (stats.crystalball(2.0, 4.0), [-2.0]),
        (stats.trapezoid(0.2, 0.8), [0.0, 0.2, 0.8, 1.0]),
        (stats.dgamma(0.6), [0.0]),
    ],
    ids=lambda value: value.dist.name if hasattr(value, "dist") else "",
)
def test_breaks_are_the_ends_poles_and_kinks_of_the_density(law, expected):
    np.testing.assert_allclose(as_noise(law).singular_points(), expected, atol=1e-6, rtol=1e-12)


def test_breaks_of_a_mixture_are_those_of_its_components():
    noise = Mixture([stats.uniform(-1, 1), stats.norm(), stats.expon(2.0)], [1, 1, 1])
    assert noise.singular_points().tolist() == [-1.0, 0.0, 2.0]


def test_breaks_of_an_expansion_are_its_turning_values_and_ends():
    cube = Expansion(
        OrthogonalBasis("uniform(-1, 2)", 4), [0.0, 0.0, 0.0, 1.0]
    )  # Legendre's third, normalized
    top = np.sqrt(7.0)
    np.testing.assert_allclose(
        cube.singular_points(), top * np.array([-1.0, -(5**-0.5), 5**-0.5, 1.0]), rtol=1e-13
    )


@pytest.mark.parametrize("distance", [1e-40, 1e-18, 1e-12, 1e-7, 1e-3, 0.3])
def test_density_next_to_a_pole_keeps_its_digits(distance):
    offset = np.array([distance])
    for loc, scale in ((0.0, 1.0), (5.0, 0.3)):
        upper = as_noise(stats.beta(2.3, 0.63, loc=loc, scale=scale)).pdf_near(loc + scale, -scale * offset)
        np.testing.assert_allclose(upper * scale, stats.beta(0.63, 2.3).pdf(offset), rtol=1e-13)
        lower = as_noise(stats.gamma(0.3, loc=loc, scale=scale)).pdf_near(loc, scale * offset)
        np.testing.assert_allclose(lower * scale, stats.gamma(0.3).pdf(offset), rtol=1e-13)
    pole = as_noise(stats.rdist(1.26)).pdf_near(1.0, -offset)  # which no mirror brings to 0
    np.testing.assert_allclose(pole, stats.beta(0.63, 0.63).pdf(offset / 2) / 2, rtol=1e-7)
    square = Expansion(OrthogonalBasis("norm(0, 1)", 3), [7.0, 0.0, 2**0.5])  # 6 + xi^2
    np.testing.assert_allclose(square.pdf_near(6.0, offset), stats.chi2(1).pdf(offset), rtol=1e-13)
    both = Mixture([square, stats.uniform(5.0, 2.0)], [0.5, 0.5]).pdf_near(6.0, offset)
    np.testing.assert_allclose(both, 0.5 * stats.chi2(1).pdf(offset) + 0.25, rtol=1e-13)
