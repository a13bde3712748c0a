"""The oracles themselves, against closed forms and integrals in high precision."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from law.bracket import Bracket, Law, merged
from law.cases import LAWS, Case, Oracle, points_of
from law.exact import exact_cdf, inversion, nested
from scipy import stats

SIZE = 2**17


def irwin_hall(weights, y):
    """P(sum_j w_j U_j <= y) for positive weights, by inclusion and exclusion in 60 digits."""
    with mpmath.workdps(60):
        w = [mpmath.mpf(float(v)) for v in weights]
        total = mpmath.mpf(0)
        for corner in range(2 ** len(w)):
            chosen = [v for j, v in enumerate(w) if corner >> j & 1]
            rest = mpmath.mpf(float(y)) - mpmath.fsum(chosen)
            if rest > 0:
                total += (-1) ** len(chosen) * rest ** len(w)
        return float(total / (mpmath.factorial(len(w)) * mpmath.fprod(w)))


def hypoexponential(weights, y):
    """P(sum_j w_j E_j <= y) for different weights of either sign, by partial fractions in 50 digits."""
    with mpmath.workdps(50):
        w, y = [mpmath.mpf(float(v)) for v in weights], mpmath.mpf(float(y))
        side = 1 if y >= 0 else -1
        tail = mpmath.fsum(
            mpmath.exp(-y / v) / mpmath.fprod(1 - u / v for u in w if u != v) for v in w if v * side > 0
        )
        return float(1 - tail if side > 0 else tail)


def powerlaw_and_normal(a, std, y):
    """P(M + N(0, std^2) <= y) for the density a x^(a - 1) on (0, 1), with x = u^(1/a), in 30 digits."""
    with mpmath.workdps(30):
        y, std = mpmath.mpf(float(y)), mpmath.mpf(std)
        scales = (-8, -4, -2, -1, 0, 1, 2, 4, 8)
        edges = [(y + k * std) ** mpmath.mpf(a) for k in scales if 0 < y + k * std < 1]
        return float(mpmath.quad(lambda u: mpmath.ncdf((y - u ** (1 / mpmath.mpf(a))) / std), [0, *edges, 1]))


def assert_encloses(bracket, y, exact, width):
    lower, upper = bracket.cdf(y)
    exact = np.asarray(exact)
    assert np.all(lower <= exact)
    assert np.all(exact <= upper)
    assert np.max(upper - lower) < width


@pytest.mark.parametrize("n", [1, 3, 500])
def test_bracket_encloses_sums_of_normal_variables(n):
    y = np.sqrt(n) * np.linspace(-9, 9, 37)
    exact = stats.norm.cdf(y / np.sqrt(n))
    assert_encloses(Bracket(Law([(1.0, stats.norm())]), np.ones(n), size=SIZE), y, exact, 4e-2)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("shape", "n", "width"), [(5.0, 4, 1e-3), (0.1, 30, 2e-2), (0.25, 200, 2e-2)])
def test_bracket_encloses_sums_of_gamma_variables(sign, shape, n, width):
    law = stats.gamma(shape * n)
    y = law.ppf([1e-9, 0.01, 0.3, 0.5, 0.9, 0.9999])
    bracket = Bracket(Law([(1.0, stats.gamma(shape))]), np.full(n, 2.0 * sign), size=SIZE)
    assert_encloses(bracket, 2.0 * sign * y, law.cdf(y) if sign > 0 else law.sf(y), width)


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [1.0, 0.3, 0.07, 2.0], [1.0, 1e-3, 1e-9]])
def test_bracket_encloses_sums_of_uniform_variables(weights):
    y = np.sum(weights) * np.array([-0.1, 0.0, 0.01, 0.3, 0.5, 0.99, 1.0, 1.1])
    exact = [irwin_hall(weights, v) if v < sum(weights) else 1.0 for v in y]
    assert_encloses(Bracket(Law([(1.0, stats.uniform())]), weights, size=SIZE), y, exact, 1e-4)


def test_bracket_of_many_equal_masses_is_certain_beyond_the_support():
    # such a normal part is finer than the lattice, and the masses of the uniform law are all rounded alike
    bracket = Bracket(Law([(1.0, stats.uniform())]), [1e-6, 10**-1.5, 1e3], normal_std=2.89e-6, size=2**18)
    lower, upper = bracket.cdf(np.array([-1.0, 1001.0]))
    assert lower[0] == 0
    assert upper[1] == 1
    assert upper[0] < 1e-11
    assert lower[1] > 1 - 1e-11


def test_bracket_far_from_the_origin_knows_that_its_cells_are_rounded():
    loc, scale, w = 1e6, 1e-6, 0.37
    y = w * loc + w * scale * np.linspace(0.05, 0.95, 19)
    exact = [float((Fraction(v) / Fraction(w) - Fraction(loc)) / Fraction(scale)) for v in y.tolist()]
    bracket = Bracket(Law([(1.0, stats.uniform(loc, scale))]), [w], size=SIZE)
    assert_encloses(bracket, y, exact, 1e-2)


def test_bracket_encloses_exponential_variables_of_both_signs_and_a_location():
    weights = [1.0, 2.0, -0.5]
    y = np.array([-8.0, -1.0, -1e-3, 0.0, 1e-3, 0.7, 3.0, 20.0])
    bracket = Bracket(Law([(1.0, stats.expon())]), weights, loc=5.0, size=SIZE)
    assert_encloses(bracket, y + 5.0, [hypoexponential(weights, v) for v in y], 1e-3)


@pytest.mark.parametrize("n", [1, 10, 300])
def test_bracket_of_a_lattice_law_is_exact_at_its_atoms_and_between(n):
    law, k = stats.binom(7, 0.3), np.arange(8.0)
    bracket, exact = Bracket(Law(atoms=(k, law.pmf(k))), np.ones(n), size=SIZE), stats.binom(7 * n, 0.3)
    y = np.arange(7.0 * n + 1)
    assert_encloses(bracket, y, exact.cdf(y), 1e-9)
    assert_encloses(bracket, y + 0.5, exact.cdf(y), 1e-9)


def test_bracket_of_atoms_beside_a_density_includes_the_atom():
    # M is 0 or 1 with probability 1/4 each, else exponential
    law = Law([(0.5, stats.expon())], (np.array([0.0, 1.0]), np.array([0.25, 0.25])))
    value, error = exact_cdf(law, [1.0, 1.0], [-1e-9, 0.0, 1e-9, 1.0])
    below_one = 1 / 16 + (1 - np.exp(-1.0)) / 4 + (1 - 2 * np.exp(-1.0)) / 4
    assert np.all(error < 1e-13)
    np.testing.assert_allclose(value, [0.0, 1 / 16, 1 / 16, below_one + 1 / 8], atol=1e-9)
    lower, upper = Bracket(law, [1.0, 1.0], size=SIZE).cdf(np.array([-1e-9, 0.0, 1e-9, 1.0]))
    assert np.all((lower <= value + error) & (value - error <= upper))


@pytest.mark.parametrize("weights", [[1.0, 0.3], [1.0, 1.0], [1e3, 1.0, 1e-6], [0.9, 0.7, 0.4]])
def test_integrals_equal_sums_of_uniform_variables(weights):
    y = np.sum(weights) * np.array([1e-9, 0.01, 0.3, 0.5, 0.99])
    value, error = exact_cdf(Law([(1.0, stats.uniform())]), weights, y)
    np.testing.assert_allclose(value, [irwin_hall(weights, v) for v in y], rtol=0, atol=5e-14)
    assert error.max() < 1e-12


@pytest.mark.parametrize("weights", [[1.0, -0.7], [1.0, 1e-6, -1e3], [0.3, 1.0, 2.0]])
def test_integrals_equal_sums_of_exponential_variables(weights):
    y = np.abs(weights).max() * np.array([-3.0, -1e-4, 1e-4, 0.5, 4.0])
    value, error = exact_cdf(Law([(1.0, stats.expon())]), weights, y)
    np.testing.assert_allclose(value, [hypoexponential(weights, v) for v in y], rtol=0, atol=5e-14)
    assert error.max() < 1e-12


@pytest.mark.parametrize("std", ["1e-6", "1e-3", "0.2"])
@pytest.mark.parametrize("a", [0.05, 0.3])
def test_integrals_resolve_a_pole_under_a_normal_part(a, std):
    y = np.array([-0.5 * float(std), 0.0, 2 * float(std), 0.01, 0.5, 1.0, 1.0 + float(std)])
    value, error = exact_cdf(Law([(1.0, stats.powerlaw(a))]), [1.0], y, normal_std=float(std))
    np.testing.assert_allclose(value, [powerlaw_and_normal(a, std, v) for v in y], rtol=0, atol=1e-12)
    assert error.max() < 1e-12


def test_integrals_equal_closed_forms_of_poles_and_of_heavy_tails():
    y = np.array([0.01, 0.5, 3.0, 30.0])
    value, _ = exact_cdf(Law([(1.0, stats.chi2(1))]), [1.0, 1.0], y)
    np.testing.assert_allclose(value, stats.chi2(2).cdf(y), rtol=0, atol=1e-13)
    value, _ = exact_cdf(Law([(1.0, stats.cauchy())]), [1.0, -2.0], y)
    np.testing.assert_allclose(value, stats.cauchy(scale=3.0).cdf(y), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [5, 50, 500])
def test_inversion_equals_the_gamma_law_of_a_sum(n):
    law = stats.gamma(5.0 * n)
    y = law.ppf([1e-6, 0.2, 0.5, 0.99])
    value, error = exact_cdf(LAWS["gamma(5)"].law, np.ones(n), y)
    np.testing.assert_allclose(value, law.cdf(y), rtol=0, atol=2e-13)
    assert error.max() < 2e-12


QUICK = [
    "expon",
    "t(3)",
    "lognorm(1)",
    "pareto(2.5)",
    "exponweib",
    "weibull_min(.3)",
    "arcsine",
    "chaos square",
]


@pytest.mark.parametrize("name", QUICK)
def test_inversion_and_nested_integrals_agree(name):
    law = LAWS[name].law
    weights = np.array([1.0, -0.7])
    std = np.sqrt(law.var() * np.sum(weights**2))
    terms, normal = merged(law, weights, None, 0.3 * std)
    y = law.mean() * weights.sum() + std * np.array([-3.0, -0.5, 0.1, 2.0])
    (one, error), (other, other_error) = (way(terms, normal, y, 1e7) for way in (inversion, nested))
    assert max(error.max(), other_error.max()) < 2e-8
    np.testing.assert_array_less(np.abs(one - other), error + other_error)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(
    ("weights", "part"), [("[1.0, -0.7]", 0.0), ("np.resize([1.0, -0.7, 0.4], 10)", 0.3)]
)
def test_bracket_and_direct_integrals_agree(name, weights, part):
    law = LAWS[name].law
    case = Case(name, weights)
    case = Case(name, weights, float(part * np.sqrt(law.var() * np.sum(case.row**2))))
    y = points_of(case)
    value, error = exact_cdf(law, case.row, y, normal_std=case.normal_std, budget=3e6)
    near = (
        np.finfo(float).eps
        * 8
        * (np.abs(y) + np.abs(case.row).max() * np.abs(law.singular_points).max(initial=0.0))
    )
    lower, upper = Oracle(case, size=2**16).bracket.cdf(y, near)
    known = error < 1e-10
    assert np.all(lower[known] <= value[known] + error[known] + 1e-13)
    assert np.all(value[known] - error[known] - 1e-13 <= upper[known])
    assert np.median(upper - lower) < 0.02
