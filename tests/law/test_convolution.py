"""Sums of few terms whose characteristic functions decay slowly, and sums with heavy tails."""

from __future__ import annotations

import warnings

import mpmath
import numpy as np
import pytest
from scipy import stats

from wienerkernel import Expansion, OrthogonalBasis
from wienerkernel.law import AccuracyWarning, LinearCombination
from wienerkernel.law.convolution import Convolution
from wienerkernel.law.graded import Graded
from wienerkernel.noise import Mixture

SQUARE = Expansion(OrthogonalBasis("norm(0, 1)", 3), [1.0, 0.0, 2**0.5])  # xi^2, chi2 with one degree
CUBIC = Expansion(OrthogonalBasis("norm(0, 1)", 4), [0.2, 1.0, 0.5, 0.1])
SHIFTED = Mixture([stats.gamma(2.0), stats.expon(1.0), stats.uniform(-1.0, 1.0)], [0.4, 0.3, 0.3])
LAWS = [
    stats.arcsine(),
    stats.beta(2.3, 0.63),
    stats.powerlaw(0.3),
    stats.loglaplace(2.5),
    stats.genexpon(9.1, 16.0, 3.2),
    SHIFTED,
    SQUARE,
    CUBIC,
]
names = [getattr(getattr(law, "dist", None), "name", type(law).__name__) for law in LAWS]


def method_of(Y):
    Y.cdf(0.0)
    return type(Y._batch._block.parts[0][1].inversion)


def arcsine_cdf(y, w):
    """P(M_1 + w M_2 <= y) for two arcsine laws, in high precision."""
    y, w = mpmath.mpf(y), mpmath.mpf(w)

    def cdf(z):
        return mpmath.mpf(z >= 1) if not 0 < z < 1 else 2 / mpmath.pi * mpmath.asin(mpmath.sqrt(z))

    ends = [mpmath.asin(mpmath.sqrt(b)) for b in (y / w, (y - 1) / w) if 0 < b < 1]
    points = sorted([mpmath.mpf(0), *ends, mpmath.pi / 2])
    return float(2 / mpmath.pi * mpmath.quad(lambda a: cdf(y - w * mpmath.sin(a) ** 2), points, maxdegree=10))


@pytest.mark.parametrize("y", [1e-3, 0.4, 0.7, 0.70001, 1.0, 1.3, 1.699])
def test_two_arcsine_terms_equal_an_integral_in_high_precision(y):
    with mpmath.workdps(20):
        exact = arcsine_cdf(y, 0.7)
    Y = LinearCombination(stats.arcsine(), [1.0, 0.7])
    assert method_of(Y) is Convolution
    assert float(Y.cdf(y)) == pytest.approx(exact, abs=1e-12)
    assert float(Y.sf(y)) == pytest.approx(1 - exact, abs=1e-12)
    assert float(LinearCombination(stats.arcsine(), [-1.0, -0.7]).sf(-y)) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_squares_of_normal_variables_add_up_to_chi_squared_laws(n):
    exact, Y = stats.chi2(n), LinearCombination(SQUARE, np.full(n, 2.0))
    q = np.array([1e-6, 0.01, 0.5, 0.99, 1 - 1e-6])
    np.testing.assert_allclose(Y.ppf(q), 2 * exact.ppf(q), rtol=1e-10)
    y = 2 * exact.ppf([0.01, 0.3, 0.8, 0.999])
    np.testing.assert_allclose(Y.cdf(y), exact.cdf(y / 2), rtol=0, atol=1e-12)
    np.testing.assert_allclose(Y.pdf(y), exact.pdf(y / 2) / 2, rtol=1e-10)


@pytest.mark.parametrize(("law", "n"), [("gamma(0.25)", 3), ("expon()", 4), ("gamma(0.6, loc=2.0)", 2)])
def test_convolution_agrees_with_the_contour(law, n):
    w = np.array([1.3, -0.7, 0.4, 0.9])[:n]
    one, other = (LinearCombination(law, w, method=name) for name in ("convolution", "contour"))
    y = other.ppf([1e-4, 0.1, 0.45, 0.9, 0.999])
    np.testing.assert_allclose(one.cdf(y), other.cdf(y), rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.pdf(y), other.pdf(y), rtol=1e-9)


def test_convolution_of_uniform_terms_is_the_spline():
    w = [1.0, -0.6, 0.3]
    y = np.linspace(-0.55, 1.25, 9)
    exact = LinearCombination("uniform()", w)
    np.testing.assert_allclose(
        LinearCombination("uniform()", w, method="convolution").cdf(y), exact.cdf(y), rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("law", LAWS, ids=names)
@pytest.mark.parametrize("w", [[1.0, -0.7], [1.0, 1.0, 1.0]], ids=["two", "three equal"])
def test_few_terms_are_exact_consistent_and_without_a_warning(law, w):
    Y = LinearCombination(law, w)
    q = np.array([0.003, 0.2, 0.5, 0.77, 0.99])
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        y = Y.ppf(q)
        np.testing.assert_allclose(Y.cdf(y), q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(Y.sf(y), 1 - q, rtol=0, atol=2e-12)
    step = 1e-4 * Y.std()
    slope = (Y.cdf(y + step) - Y.cdf(y - step)) / (2 * step)
    smooth = np.abs(Y.pdf(y + step) + Y.pdf(y - step) - 2 * Y.pdf(y)) < 1e-5 * Y.pdf(y)
    assert smooth.any()
    np.testing.assert_allclose(slope[smooth], Y.pdf(y)[smooth], rtol=1e-5)
    draws = Y.rvs(20_000, random_state=3)
    deviation = np.abs(np.mean(draws <= y[:, None], axis=1) - q) / np.sqrt(q * (1 - q) / 20_000)
    assert deviation.max() < 4


def test_a_table_of_the_sum_takes_over_without_a_jump():
    Y = LinearCombination(stats.arcsine(), [1.0, 0.7, 0.3], method="convolution")
    y = np.linspace(0.05, 1.95, 8)
    direct, slope = Y.cdf(y), Y.pdf(y)
    Y.cdf(np.linspace(0.0, 2.0, 8000))
    inversion = Y._batch._block.parts[0][1].inversion
    assert inversion.whole is not None
    np.testing.assert_allclose(Y.cdf(y), direct, rtol=0, atol=1e-12)
    np.testing.assert_allclose(Y.pdf(y), slope, rtol=1e-9)


def test_rows_of_all_signs_and_sizes_are_served_at_once():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(12, 3)) * 10.0 ** rng.uniform(-3, 0, (12, 3))
    together = LinearCombination(stats.beta(2.3, 0.63), w).ppf([[0.1], [0.6]])
    for k in (0, 5, 11):
        alone = LinearCombination(stats.beta(2.3, 0.63), w[k]).ppf([0.1, 0.6])
        np.testing.assert_allclose(together[:, k], alone, rtol=1e-10)


def test_location_and_scale_move_the_law_exactly():
    plain = LinearCombination(stats.arcsine(), [1.0, 0.4])
    moved = LinearCombination(stats.arcsine(loc=-3.0, scale=50.0), [1.0, 0.4], loc=7.0)
    q = np.array([0.05, 0.4, 0.9])
    np.testing.assert_allclose(moved.ppf(q), 7.0 - 3.0 * 1.4 + 50.0 * plain.ppf(q), rtol=1e-11)


def test_convolution_refuses_what_it_cannot_serve():
    for law, w, std in (
        ("arcsine()", np.ones(20), 0.0),
        ([0.0, 1.0], [1.0, 0.3], 0.0),
    ):
        with pytest.raises(ValueError, match="convolution"):
            LinearCombination(law, w, normal_std=std, method="convolution").cdf(0.5)


@pytest.mark.parametrize("law", [stats.fisk(3.1), stats.loglaplace(2.5)], ids=["fisk", "loglaplace"])
def test_many_heavy_tailed_terms_are_exact(law):
    Y = LinearCombination(law, np.ones(40))
    assert method_of(Y) is Graded
    q = np.array([0.001, 0.3, 0.9, 0.9999])
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        np.testing.assert_allclose(Y.cdf(Y.ppf(q)), q, rtol=0, atol=1e-12)
    draws = Y.rvs(20_000, random_state=0)
    assert stats.kstest(draws[:4000], Y.cdf).pvalue > 1e-3
    # far out, one large term makes the sum large
    y = Y.mean() + 3000 * Y.std()
    assert float(Y.sf(y)) == pytest.approx(40 * float(law.sf(y - 39 * law.mean())), rel=1e-2)


def test_graded_nodes_agree_with_the_contour_of_student_terms():
    from wienerkernel.law.fourier import decay_point, window

    contour = LinearCombination("t(3)", np.linspace(0.5, 1.0, 30))
    rows = contour._batch._standard_rows(slice(None))
    graded = Graded(rows, window(rows), float(decay_point(rows)[0]))
    x = np.array([[-20.0, -1.3, 0.1, 2.0, 35.0, 200.0]])
    np.testing.assert_allclose(
        graded(x, np.array([0])).cdf[0], contour.cdf(x[0] * contour.std()), rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.9])
def test_shortest_interval_of_a_law_with_several_peaks_beats_every_other(confidence):
    peaks = Mixture([stats.norm(-3, 0.5), stats.norm(0, 0.45), stats.norm(4, 0.4)], [0.33, 0.33, 0.34])
    Y = LinearCombination(peaks, [1.0, 0.05])
    low, high = Y.hdi(confidence)
    assert float(Y.cdf(high) - Y.cdf(low)) == pytest.approx(confidence, abs=1e-12)
    p = np.linspace(0, 1 - confidence, 1001)[1:-1]
    assert float(high - low) <= np.min(Y.ppf(p + confidence) - Y.ppf(p)) + 1e-9


@pytest.mark.parametrize("s", [0.001, 0.02, 0.05, 0.1])
def test_narrow_lognormal_laws_are_those_of_a_conditional_sum(s):
    law = stats.lognorm(s)
    y = 1.5 * (1 + s * np.array([-0.4, 0.0, 0.9]))
    # condition on the second of two terms: Gauss-Legendre in its probability
    nodes, weights = np.polynomial.legendre.leggauss(400)
    u = 0.5 * (nodes + 1)
    expected = law.cdf(y[:, None] - 0.5 * law.ppf(u)) @ (0.5 * weights)
    np.testing.assert_allclose(LinearCombination(law, [1.0, 0.5]).cdf(y), expected, atol=2e-7)


def beta_sum_cdf(a, b, w, y):
    """P(M_1 + w M_2 <= y) for two beta laws, integrated over powers of the distances from the ends of M_1."""
    a, b = mpmath.mpf(a), mpmath.mpf(b)

    def cdf(x):
        inside = min(max(x, mpmath.mpf(0)), mpmath.mpf(1))
        return mpmath.betainc(a, b, 0, inside, regularized=True)

    def inner(x):
        return cdf((y - x) / w) if w > 0 else 1 - cdf((y - x) / w)

    cuts = sorted({mpmath.mpf(0.5), *(c for c in (mpmath.mpf(y), mpmath.mpf(y) - w) if 0 < c < 1)})
    below = [mpmath.mpf(0), *(c**a for c in cuts if c <= 0.5)]
    above = [mpmath.mpf(0), *sorted((1 - c) ** b for c in cuts if c >= 0.5)]
    lower = mpmath.quad(lambda s: inner(s ** (1 / a)) * (1 - s ** (1 / a)) ** (b - 1) / a, below)
    upper = mpmath.quad(lambda s: inner(1 - s ** (1 / b)) * (1 - s ** (1 / b)) ** (a - 1) / b, above)
    return (lower + upper) / mpmath.beta(a, b)


@pytest.mark.filterwarnings("ignore::wienerkernel.AccuracyWarning")
@pytest.mark.parametrize(("a", "b"), [(0.1, 0.1), (0.1, 50.0), (0.05, 1.0)])
def test_sums_of_laws_with_strong_poles(a, b):
    single = LinearCombination(stats.beta(a, b), [1.0])
    for x in (1e-300, 1e-20, 0.3, 1 - 1e-9):
        with mpmath.workdps(40):
            below = mpmath.betainc(a, b, 0, mpmath.mpf(x), regularized=True)
            above = mpmath.betainc(a, b, mpmath.mpf(x), 1, regularized=True)
        assert float(single.cdf(x)) == pytest.approx(float(below), rel=1e-12)
        assert float(single.sf(x)) == pytest.approx(float(above), rel=1e-12)
    assert single.cdf(single.ppf(1e-9)) == pytest.approx(1e-9, rel=1e-12)
    Y = LinearCombination(stats.beta(a, b), [1.0, -0.7])
    for z in (-0.8, 0.1, 0.9):
        y = float(Y.mean() + z * Y.std())
        with mpmath.workdps(20):
            expected = float(beta_sum_cdf(a, b, -mpmath.mpf(0.7), y))
        got, error = Y.cdf(y, return_error=True)
        assert abs(got - expected) <= error < 1e-4
        assert Y.cdf(Y.ppf(expected)) == pytest.approx(expected, abs=1e-12 + 2 * float(error))
