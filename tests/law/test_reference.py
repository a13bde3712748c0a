"""Values computed in high precision, by others' means."""

from __future__ import annotations

import json
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import stats

from wienerkernel.law import LinearCombination
from wienerkernel.law.dispatch import parts

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "linear_combinations.json").read_text())


def frozen(noise):
    return getattr(stats, noise["scipy"])(*noise["args"], **noise["kwds"])


@pytest.mark.parametrize("case", REFERENCE["cases"], ids=lambda case: case["name"])
def test_density_and_distribution_function_equal_the_reference(case):
    Y = LinearCombination(frozen(case["noise"]), case["weights"])
    y = np.array(case["y"])
    tolerance = 1e-12 if case["noise"]["scipy"] in {"gamma", "uniform"} else 1e-10
    np.testing.assert_allclose(Y.cdf(y), case["cdf"], rtol=0, atol=tolerance)
    np.testing.assert_allclose(Y.sf(y), 1 - np.array(case["cdf"]), rtol=0, atol=tolerance)
    np.testing.assert_allclose(Y.pdf(y), case["pdf"], rtol=1e-9)
    np.testing.assert_allclose(Y.ppf(case["cdf"]), y, rtol=1e-8, atol=1e-10)


def test_quantiles_of_the_papers_gamma_example_equal_the_reference():
    paper = REFERENCE["paper_gamma"]
    a = np.array(paper["a"], dtype=float)
    noise = stats.gamma(paper["alpha"], scale=paper["scale"])
    Y = LinearCombination(noise, -a, loc=noise.mean() * a.sum())
    for level, quantile in paper["quantiles_minus_mu"].items():
        assert float(Y.ppf(float(level))) == pytest.approx(float(quantile), abs=1e-11)
    assert float(Y.mean()) == pytest.approx(0, abs=1e-15)
    assert float(Y.var()) == pytest.approx(float(paper["variance"]), rel=1e-13)
    assert float(Y.skewness()) == pytest.approx(float(paper["skewness"]), rel=1e-13)
    assert float(Y.kurtosis()) == pytest.approx(float(paper["excess_kurtosis"]), rel=1e-13)


def hypoexponential(weights, y):
    """P(Y <= y) and P(Y > y) of sum_j w_j E_j with distinct signed weights, by partial fractions in 50 digits."""
    with mpmath.workdps(50):
        w = [mpmath.mpf(float(v)) for v in weights]
        y = mpmath.mpf(float(y))
        side = 1 if y >= 0 else -1
        tail = mpmath.mpf(0)
        for j, wj in enumerate(w):
            if wj * side > 0:
                fraction = mpmath.mpf(1)
                for k, wk in enumerate(w):
                    if k != j:
                        fraction /= 1 - wk / wj
                tail += fraction * mpmath.exp(-y / wj)
        return (float(1 - tail), float(tail)) if side > 0 else (float(tail), float(1 - tail))


@pytest.mark.parametrize(
    "weights",
    [
        [1, 2],
        [1, -1.5],
        [1, 2, 3.5, -0.3, -4],
        [1, 1e-3],
        [1, 1e-8, -2],
        [1e6, 1, 1e-6],
        [1, 1.001],
        [3e-200, 1e-200],
    ],
)
def test_sums_of_exponentials_have_relative_accuracy_down_to_both_tails(weights):
    scale = float(max(np.abs(weights)))
    y = scale * np.array([-40, -20, -3, -0.5, -1e-3, -1e-9, 1e-9, 1e-4, 0.1, 1, 4, 25, 60])
    Y = LinearCombination("expon()", weights)
    below, above = np.transpose([hypoexponential(weights, v) for v in y])
    np.testing.assert_allclose(Y.cdf(y), below, rtol=1e-9, atol=0)
    np.testing.assert_allclose(Y.sf(y), above, rtol=1e-9, atol=0)


def test_extreme_quantiles_of_exponentials_equal_the_solution_in_high_precision():
    weights = [1.0, 2.0, -0.5]
    Y = LinearCombination("expon()", weights)
    upper, lower = float(Y.isf(1e-12)), float(Y.ppf(1e-12))
    assert hypoexponential(weights, upper)[1] == pytest.approx(1e-12, rel=1e-9)
    assert hypoexponential(weights, lower)[0] == pytest.approx(1e-12, rel=1e-9)
    assert float(Y.sf(upper)) == pytest.approx(1e-12, rel=1e-9)
    assert float(Y.ppf(1 - 1e-9)) == pytest.approx(float(Y.isf(1e-9)), rel=1e-7)


@pytest.mark.parametrize("n", [2, 3, 5, 7, 12, 30])
def test_sums_of_uniforms_equal_irwin_hall(n):
    x = np.array([0.01, 0.3, 0.5, 0.8, 0.999]) * n
    with mpmath.workdps(60):
        exact = [
            float(
                sum(
                    (-1) ** k * mpmath.binomial(n, k) * (mpmath.mpf(float(v)) - k) ** n
                    for k in range(int(v) + 1)
                )
                / mpmath.factorial(n)
            )
            for v in x
        ]
    Y = LinearCombination("uniform()", np.ones(n))
    np.testing.assert_allclose(Y.cdf(x), exact, rtol=0, atol=1e-13)
    np.testing.assert_allclose(Y.cdf(x[:1]), exact[:1], rtol=1e-8)


def test_few_uniforms_of_different_magnitude_equal_a_trapezoid():
    Y = LinearCombination("uniform()", [1.0, 1e-5])
    assert float(Y.cdf(0.5)) == pytest.approx(0.5 - 0.5e-5, abs=1e-15)
    assert float(Y.cdf(5e-6)) == pytest.approx(0.5 * 5e-6**2 / 1e-5, rel=1e-9)


def test_sum_of_two_arcsine_laws_is_exact_at_its_singular_points():
    # X + Y for two arcsine laws on (0, 1): F(1) = 1/2 by symmetry, F(1/2) from the elliptic integral
    Y = LinearCombination("arcsine()", [1.0, 1.0])
    assert float(Y.cdf(1.0)) == pytest.approx(0.5, abs=1e-13)
    with mpmath.workdps(30):
        exact = mpmath.quad(
            lambda q: (
                (2 / mpmath.pi)
                * mpmath.asin(mpmath.sqrt(mpmath.mpf("0.5") - mpmath.sin(mpmath.pi * q / 2) ** 2))
            ),
            [0, mpmath.mpf("0.5")],
        )
    assert float(Y.cdf(0.5)) == pytest.approx(float(exact), abs=1e-12)


def test_laplace_sums_equal_differences_of_exponentials():
    y = np.linspace(-12, 12, 25)
    laplace = LinearCombination("laplace()", [1.0, 0.3, 2.0])
    exponential = LinearCombination("expon()", [1.0, 0.3, 2.0, -1.0, -0.3, -2.0])
    np.testing.assert_allclose(laplace.cdf(y), exponential.cdf(y), rtol=1e-10)
    np.testing.assert_allclose(laplace.pdf(y), exponential.pdf(y), rtol=1e-10)


@pytest.mark.parametrize("D", [2, 5, 50, 500, 2000])
def test_equal_gammas_equal_the_closed_form_by_every_method(D):
    exact = stats.gamma(0.25 * D, scale=2.0)
    q = np.array([1e-12, 0.01, 0.5, 0.9])
    y, z = exact.ppf(q), exact.isf(q)
    methods = ["auto", "fourier"] if D >= 500 else ["auto", "contour"]
    for method in methods:
        Y = LinearCombination("gamma(0.25, scale=2)", np.ones(D), method=method)
        np.testing.assert_allclose(Y.cdf(y), q, rtol=1e-9)
        np.testing.assert_allclose(Y.sf(z), q, rtol=1e-9)
        np.testing.assert_allclose(Y.pdf(y), exact.pdf(y), rtol=1e-9)
        np.testing.assert_allclose(Y.ppf(q), y, rtol=1e-9)
        np.testing.assert_allclose(Y.isf(q), z, rtol=1e-9)


def test_sums_of_more_and_more_equal_gammas_are_computed_together():
    D = 40
    Y = LinearCombination("gamma(0.25, scale=2)", np.tril(np.ones((D, D))) * np.resize([1, -1], (D, 1)))
    q, shape = np.array([[1e-12], [0.3], [0.9]]), 0.25 * np.arange(1, D + 1)
    exact = stats.gamma(shape, scale=2.0)
    even = np.arange(D) % 2 == 0
    np.testing.assert_allclose(Y.ppf(q), np.where(even, exact.ppf(q), -exact.isf(q)), rtol=1e-12)
    np.testing.assert_allclose(Y.pdf(Y.ppf(q)), exact.pdf(np.abs(Y.ppf(q))), rtol=1e-9)
    assert len(list(parts(Y._batch._rows, "auto"))) == 2  # one gamma variable, and more
