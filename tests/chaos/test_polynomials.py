"""Orthogonal polynomials: recurrence coefficients against independent oracles, bases, Gauss rules."""

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from wienerkernel.chaos.discretize import discretize, standardize
from wienerkernel.chaos.polynomials import (
    OrthogonalBasis,
    affine,
    exact_rule,
    lanczos,
    max_degree,
    polynomial_rule,
    recurrence,
)
from wienerkernel.noise import Mixture, Residuals, as_noise


def coefficients_from_moments(moment, n, digits=150):
    """First n coefficients from exact moments, by Cholesky's factor of the Hankel matrix in many digits."""
    with mp.workdps(digits):
        hankel = mp.matrix(n + 1, n + 1)
        for i in range(n + 1):
            for j in range(n + 1):
                hankel[i, j] = moment(i + j)
        factor = mp.cholesky(hankel).T
        ratio = [factor[k, k + 1] / factor[k, k] for k in range(n)]
        alpha = [ratio[k] - (ratio[k - 1] if k else 0) for k in range(n)]
        beta = [mp.mpf(1)] + [(factor[k, k] / factor[k - 1, k - 1]) ** 2 for k in range(1, n)]
        return np.array(alpha, dtype=float), np.array(beta, dtype=float)


def assert_same_coefficients(found, expected, rtol=1e-12):
    unit = np.sqrt(expected[1][1])
    np.testing.assert_allclose(found[0], expected[0], rtol=rtol, atol=rtol * unit)
    np.testing.assert_allclose(found[1], expected[1], rtol=rtol)


def triangular_moment(k, c):
    return 2 * (
        c ** (k + 1) / (k + 2) + ((1 - c ** (k + 1)) / (k + 1) - (1 - c ** (k + 2)) / (k + 2)) / (1 - c)
    )


def student_moment(k, df):
    if k % 2:
        return mp.mpf(0)
    return (
        mp.mpf(df) ** (k // 2) * mp.beta(mp.mpf(k + 1) / 2, mp.mpf(df - k) / 2) / mp.beta(0.5, mp.mpf(df) / 2)
    )


MOMENTS = {
    "norm(0, 1)": lambda k: mp.mpf(0) if k % 2 else mp.fac2(k - 1),
    "expon()": mp.factorial,
    "gamma(0.25, scale=2)": lambda k: 2**k * mp.rf(mp.mpf("0.25"), k),
    "erlang(3)": lambda k: mp.rf(3, k),
    "chi2(5)": lambda k: 2**k * mp.rf(mp.mpf(5) / 2, k),
    "uniform(0, 1)": lambda k: mp.mpf(1) / (k + 1),
    "beta(0.5, 0.5)": lambda k: mp.rf(mp.mpf("0.5"), k) / mp.rf(1, k),
    "beta(2, 5)": lambda k: mp.rf(2, k) / mp.rf(7, k),
    "beta(1, 1)": lambda k: mp.mpf(1) / (k + 1),
    "weibull_min(0.5)": lambda k: mp.gamma(1 + 2 * k),
    "weibull_min(1.5)": lambda k: mp.gamma(1 + mp.mpf(k) / mp.mpf("1.5")),
    "triang(0.25)": lambda k: triangular_moment(k, mp.mpf("0.25")),
    "laplace()": lambda k: mp.mpf(0) if k % 2 else mp.factorial(k),
    "arcsine()": lambda k: mp.binomial(2 * k, k) / mp.mpf(4) ** k,
    "powerlaw(0.25)": lambda k: mp.mpf("0.25") / (mp.mpf("0.25") + k),
    "dweibull(0.5)": lambda k: mp.mpf(0) if k % 2 else mp.gamma(1 + 2 * k),
    "lognorm(0.5)": lambda k: mp.exp(mp.mpf(k) ** 2 / 8),
    "t(40)": lambda k: student_moment(k, 40),
    "poisson(3)": lambda k: sum((mp.stirling2(k, j) * mp.mpf(3) ** j for j in range(k + 1)), mp.mpf(0)),
}


@pytest.mark.parametrize("law", MOMENTS)
def test_recurrence_equals_the_one_from_exact_moments(law):
    assert_same_coefficients(recurrence(law, 10), coefficients_from_moments(MOMENTS[law], 10))


@pytest.mark.parametrize(
    "law", ["norm(1, 3)", "gamma(0.25)", "gamma(30)", "uniform(-1, 3)", "beta(0.3, 0.4)"]
)
def test_discretized_lanczos_equals_closed_forms_at_degree_thirty(law):
    noise, loc, scale = standardize(as_noise(law))
    alpha, beta = affine(*lanczos(*polynomial_rule(noise, 30), 30), loc, scale)
    expected = recurrence(law, 30)
    assert_same_coefficients((alpha, np.append(1.0, beta[1:30])), expected)


@pytest.mark.parametrize(
    ("law", "loc", "scale"), [("weibull_min(0.5", 3.0, 1e-3), ("gamma(2", -1e3, 10.0), ("t(20", 1, 1e8)]
)
def test_recurrence_obeys_the_affine_rule(law, loc, scale):
    alpha, beta = recurrence(law + ")", 6)
    found = recurrence(f"{law}, loc={loc}, scale={scale})", 6)
    assert_same_coefficients(found, (loc + scale * alpha, np.append(1.0, scale**2 * beta[1:])))


@pytest.mark.parametrize(
    ("law", "rule"),
    [
        ("norm(0, 1)", lambda n: special.roots_hermitenorm(n)),
        ("gamma(0.25)", lambda n: special.roots_genlaguerre(n, -0.75)),
        ("uniform(-1, 2)", lambda n: special.roots_legendre(n)),
        ("beta(0.3, 0.6, loc=-1, scale=2)", lambda n: special.roots_jacobi(n, -0.4, -0.7)),
    ],
)
def test_gauss_rule_equals_that_of_scipy(law, rule):
    nodes, weights = OrthogonalBasis(law, 2).quadrature(20)
    x, w = rule(20)
    np.testing.assert_allclose(nodes, x, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(weights, w / w.sum(), rtol=1e-10)


@pytest.mark.parametrize(
    "law",
    [
        "gamma(0.25, scale=2)",
        "weibull_min(1.5)",
        "semicircular()",
        "beta(2, 3)",
        "norm(2, 0.1)",
        "gumbel_r()",
        "t(20)",
    ],
)
@pytest.mark.parametrize("normalized", [True, False])
def test_basis_is_orthogonal_under_quadrature_by_quantiles(law, normalized):
    basis = OrthogonalBasis(law, 5, normalized)
    x, w = np.polynomial.legendre.leggauss(
        200
    )  # not the basis' own nodes: they would hide wrong coefficients
    t = 4.2 * x
    tail = special.expit(-np.pi * np.sinh(np.abs(t)))
    xi = np.where(t < 0, basis.law.ppf(tail), basis.law.isf(tail))
    phi = basis(xi)
    gram = (phi * (4.2 * w * tail * (1 - tail) * np.pi * np.cosh(t))[:, None]).T @ phi
    root = np.sqrt(basis.norms)
    np.testing.assert_allclose(gram / np.outer(root, root), np.eye(5), atol=1e-9)


def test_monic_polynomials_have_leading_coefficient_one():
    basis = OrthogonalBasis("gamma(0.25)", 4, normalized=False)
    x = 1e6
    np.testing.assert_allclose(basis(x) / x ** np.arange(4), 1, rtol=1e-4)
    np.testing.assert_allclose(basis.norms, np.cumprod(recurrence("gamma(0.25)", 4)[1]))


def test_orthonormal_hermite_polynomials_equal_those_of_numpy():
    x = np.linspace(-4, 4, 9).reshape(3, 3)
    expected = [special.eval_hermitenorm(k, x) / np.sqrt(special.factorial(k)) for k in range(6)]
    np.testing.assert_allclose(
        OrthogonalBasis("norm(0, 1)", 6)(x), np.stack(expected, axis=-1), rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize(
    ("law", "degree"),
    [
        ("t(5)", 2),
        ("t(4)", 1),
        ("t(4.5)", 2),
        ("t(10)", 4),
        ("t(10.5)", 5),
        ("pareto(3)", 1),
        ("lomax(11)", 5),
        ("invgamma(7)", 3),
        ("lognorm(1)", np.inf),
        ("weibull_min(0.1)", np.inf),
        ("laplace()", np.inf),
        ("triang(0.5)", np.inf),
        ("binom(5, 0.3)", 5),
        ("poisson(2)", np.inf),
    ],
)
def test_largest_degree_follows_from_the_moments_that_exist(law, degree):
    assert max_degree(law) == degree


def test_student_noise_has_no_basis_beyond_its_moments():
    assert OrthogonalBasis("t(5)", 3).size == 3
    with pytest.raises(ValueError, match="up to degree 2 only"):
        OrthogonalBasis("t(5)", 4)
    with pytest.raises(ValueError, match="up to degree 5 only"):
        recurrence("t(11)", 6)
    with pytest.raises(ValueError, match="up to degree 2 only"):
        exact_rule(as_noise("t(5)"), 6)
    with pytest.raises(ValueError, match="up to degree 2 only"):
        OrthogonalBasis(Mixture(["norm(0, 1)", "t(5)"], [0.9, 0.1]), 4)


def test_student_basis_has_the_norms_of_its_moments():
    # df = 5: E x^2 = 5/3, E x^4 = 25, so that beta_2 = 25 / (5/3) - 5/3
    np.testing.assert_allclose(OrthogonalBasis("t(5)", 3).beta, [1, 5 / 3, 15 - 5 / 3], rtol=1e-10)


def test_two_point_residuals_have_two_polynomials():
    basis = OrthogonalBasis([-1.0, 3.0], 2)
    np.testing.assert_allclose(basis([-1.0, 3.0]), [[1, -1], [1, 1]], atol=1e-15)
    nodes, weights = basis.quadrature(2)
    np.testing.assert_allclose(nodes, [-1, 3], atol=1e-14)
    np.testing.assert_allclose(weights, [0.5, 0.5], atol=1e-15)
    with pytest.raises(ValueError, match="atoms for polynomials up to degree 1 only"):
        OrthogonalBasis([-1.0, 3.0], 3)
    with pytest.raises(ValueError, match="degree 2 is needed"):
        recurrence([-1.0, 3.0], 3)


def test_duplicated_and_weightless_residuals_do_not_count_as_atoms():
    assert max_degree(Residuals([0.0, 1.0, 1.0, 1.0, 2.0], [1, 1, 1, 1, 0])) == 1


def test_finite_laws_reach_their_last_degree_exactly():
    n, k = 30, np.arange(1, 30)
    alpha, beta = recurrence(np.arange(n), n)  # discrete Chebyshev polynomials
    np.testing.assert_allclose(alpha, (n - 1) / 2, rtol=1e-13)
    np.testing.assert_allclose(beta[1:], n**2 / 4 * (1 - (k / n) ** 2) / (4 - 1 / k**2), rtol=1e-12)


@pytest.mark.parametrize("p", [0.3, 0.01])
def test_binomial_law_has_krawtchouk_polynomials(p):
    k = np.arange(13)
    alpha, beta = recurrence(stats.binom(12, p), 13)
    np.testing.assert_allclose(alpha, k * (1 - p) + p * (12 - k), rtol=1e-11)
    np.testing.assert_allclose(beta[1:], (k * (13 - k) * p * (1 - p))[1:], rtol=1e-11)


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e100])
def test_residuals_of_any_scale_keep_their_accuracy(scale):
    values = np.random.default_rng(0).normal(size=50)
    alpha, beta = recurrence(values, 8)
    assert_same_coefficients(
        recurrence(scale * values, 8), (scale * alpha, np.append(1.0, scale**2 * beta[1:])), rtol=1e-11
    )


def test_mixture_has_the_coefficients_of_its_moments():
    def moment(k):
        narrow = sum(
            mp.binomial(k, j) * mp.mpf(3) ** (k - j) * mp.mpf("0.125") ** j * MOMENTS["norm(0, 1)"](j)
            for j in range(k + 1)
        )
        return mp.mpf("0.75") * MOMENTS["norm(0, 1)"](k) + mp.mpf("0.25") * narrow

    mixture = Mixture(["norm(0, 1)", "norm(3, 0.125)"], [0.75, 0.25])
    assert_same_coefficients(recurrence(mixture, 8), coefficients_from_moments(moment, 8))


def test_mixture_of_atoms_and_a_density_has_the_coefficients_of_its_moments():
    mixture = Mixture(["norm(0, 1)", [-1.0, 1.0]], [0.5, 0.5])
    alpha, beta = recurrence(mixture, 3)  # moments 1, 0, 1, 0, 2
    np.testing.assert_allclose(alpha, 0, atol=1e-14)
    np.testing.assert_allclose(beta, [1, 1, 1], rtol=1e-13)


def test_exact_rule_integrates_as_far_as_moments_exist():
    nodes, weights = exact_rule(as_noise("t(5)"), 4)
    assert weights @ nodes**4 == pytest.approx(25, rel=1e-10)


def test_exact_rule_keeps_its_digits_in_the_tails():
    nodes, weights = exact_rule(as_noise("norm(0, 1)"), 60)
    assert weights @ nodes**60 == pytest.approx(float(mp.fac2(59)), rel=1e-12)


@pytest.mark.parametrize(
    ("law", "function", "mean"),
    [
        ("norm(0, 1)", np.exp, np.exp(0.5)),
        ("laplace()", np.abs, 1.0),
        ("triang(0.3)", lambda x: (x < 0.3) * 1.0, 0.3),
        ("beta(0.3, 0.4)", np.sqrt, special.beta(0.8, 0.4) / special.beta(0.3, 0.4)),
        ("pareto(3)", np.log, 1 / 3),
        ("poisson(2)", lambda x: 2.0**x, np.exp(2)),
        ("truncnorm(-1000, 1000)", np.square, 1.0),
    ],
)
def test_discretization_integrates_rough_functions_and_singular_laws(law, function, mean):
    nodes, weights = discretize(as_noise(law), lambda _x, _w: lambda x: function(x)[:, None])
    assert weights @ function(nodes) == pytest.approx(mean, rel=1e-12)


def test_atoms_of_a_discrete_mixture_are_merged():
    values, weights = Mixture([[0.0, 1.0], "binom(2, 0.5)"], [0.5, 0.5]).atoms()
    np.testing.assert_allclose(values, [0, 1, 2])
    np.testing.assert_allclose(weights, [0.375, 0.5, 0.125])


def test_heavy_discrete_law_is_refused():
    with pytest.raises(ValueError, match="tails are too heavy"):
        recurrence("zipf(4)", 3)


@pytest.mark.parametrize("size", [0, -1])
def test_a_basis_has_at_least_one_polynomial(size):
    with pytest.raises(ValueError, match="at least 1"):
        OrthogonalBasis("norm(0, 1)", size)


def test_a_basis_of_one_polynomial_is_the_constant():
    np.testing.assert_array_equal(OrthogonalBasis("norm(0, 1)", 1)([3.0, 4.0]), [[1.0], [1.0]])


def test_a_basis_cannot_be_changed():
    basis = OrthogonalBasis("norm(0, 1)", 3)
    with pytest.raises(AttributeError):
        basis.size = 4
    for array in (basis.alpha, basis.beta, basis.norms):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7.0
