"""Chaos expansions: their law, their algebra, the joint basis and the chaos form."""

import numpy as np
import pytest
from scipy import special, stats
from scipy.integrate import quad

from wienerkernel.chaos import ChaosForm, Expansion, JointBasis, lift, project, two_term
from wienerkernel.chaos.polynomials import OrthogonalBasis, recurrence
from wienerkernel.noise import Mixture, Residuals, as_noise

NORMAL = "norm(0, 1)"
LEVELS = np.array([1e-4, 0.01, 0.2, 0.5, 0.8, 0.99, 1 - 1e-4])

EXPANSIONS = {
    "affine, falling": lambda: Expansion(OrthogonalBasis("gamma(1.5, scale=2)", 2), [1.0, -2.0]),
    "parabola of a normal": lambda: Expansion(OrthogonalBasis(NORMAL, 3), [1.0, 0.5, -0.7]),
    "cubic with two turns": lambda: Expansion(OrthogonalBasis(NORMAL, 4), [0.0, 0.2, 0.3, 1.0]),
    "rising cubic": lambda: Expansion(OrthogonalBasis(NORMAL, 4), [0.0, 2.0, 0.0, 0.5]),
    "falling cubic": lambda: Expansion(OrthogonalBasis(NORMAL, 4), [0.0, -2.0, 0.0, -0.5]),
    "monic basis": lambda: Expansion(OrthogonalBasis("expon()", 4, normalized=False), [1.0, -0.5, 0.2, 0.1]),
    "bounded germ": lambda: Expansion(OrthogonalBasis("uniform(-1, 2)", 4), [0.3, -1.0, 0.5, 1.0]),
    "kinked germ": lambda: Expansion(OrthogonalBasis("triang(0.3)", 3), [0.0, 1.0, 1.0]),
    "singular germ": lambda: Expansion(OrthogonalBasis("weibull_min(0.5)", 3), [0.0, 1.0, -0.5]),
    "heavy germ": lambda: Expansion(OrthogonalBasis("t(9)", 3), [0.0, 1.0, 0.5]),
    "zeros at the end": lambda: Expansion(OrthogonalBasis(NORMAL, 5), [1.0, 1.0, 1.0, 0.0, 0.0]),
    "exponential, eight terms": lambda: project(np.exp, OrthogonalBasis(NORMAL, 8)),
}


@pytest.fixture(params=EXPANSIONS)
def expansion(request):
    return EXPANSIONS[request.param]()


# ---- every expansion is a noise law ----------------------------------------------------------------------------------


def test_quantile_inverts_the_distribution_function(expansion):
    y = expansion.ppf(LEVELS)
    assert np.all(np.diff(y) > 0)
    np.testing.assert_allclose(expansion.cdf(y), LEVELS, rtol=1e-6)
    np.testing.assert_allclose(expansion.sf(expansion.isf(LEVELS)), LEVELS, rtol=1e-6)
    np.testing.assert_allclose(
        expansion.isf(LEVELS[:-1]), expansion.ppf(1 - LEVELS[:-1]), rtol=1e-6, atol=1e-7
    )


def test_distribution_and_survival_function_sum_to_one(expansion):
    y = np.concatenate([expansion.ppf(LEVELS), [-np.inf, np.inf, expansion.mean()]])
    np.testing.assert_allclose(expansion.cdf(y) + expansion.sf(y), 1, rtol=1e-13)
    assert expansion.cdf(-np.inf) == 0
    assert expansion.cdf(np.inf) == 1
    assert np.isnan(expansion.cdf(np.nan))


def test_distribution_function_counts_the_draws(expansion):
    draws = expansion.rvs(20_000, random_state=0)
    assert stats.kstest(draws, expansion.cdf).pvalue > 1e-3
    lower, upper = expansion.support()
    assert lower <= draws.min()
    assert draws.max() <= upper


def test_density_is_the_slope_of_the_distribution_function(expansion):
    for a, b in expansion.ppf([[0.1, 0.3], [0.5, 0.6]]):
        turns = [v for v in getattr(expansion._law, "at_left", []) if a < v < b]
        mass = quad(expansion.pdf, a, b, points=turns or None, limit=200, epsabs=1e-10)[0]
        assert mass == pytest.approx(float(expansion.cdf(b) - expansion.cdf(a)), abs=1e-8)


def test_cumulants_equal_those_of_the_germ_pushed_through(expansion):
    def raw(r):
        return sum(
            quad(
                lambda x: float((expansion(x) - expansion.mean()) ** r * expansion.germ.pdf(x)),
                *piece,
                limit=500,
            )[0]
            for piece in pieces
        )

    lower, upper = expansion.germ.support()
    inner = [float(expansion.germ.ppf(q)) for q in (0.01, 0.3, 0.9)]
    pieces = list(zip([lower, *inner], [*inner, upper], strict=True))
    kappa = expansion.cumulants(4)
    np.testing.assert_allclose(kappa[:2], [expansion.mean(), expansion.var()])
    assert kappa[0] == pytest.approx(expansion.mean() + raw(1), abs=1e-6)
    assert kappa[1] == pytest.approx(raw(2), rel=1e-6)
    assert kappa[2] == pytest.approx(raw(3), rel=1e-5)
    if not np.isnan(kappa[3]):
        assert kappa[3] == pytest.approx(raw(4) - 3 * raw(2) ** 2, rel=1e-5)


def test_characteristic_function_is_the_mean_of_waves(expansion):
    t = np.array([0.0, 1e-3, -0.4, 1.7, 5.0])
    draws = expansion(expansion.germ.ppf((np.arange(200_000) + 0.5) / 200_000))
    expected = np.exp(1j * t[:, None] * draws).mean(axis=1)
    np.testing.assert_allclose(np.exp(expansion.logcf(t)), expected, atol=2e-4)
    # log cf = i t mean - t^2 var / 2 + O(t^3), accurate also where it is tiny
    near = expansion.logcf(1e-5) - 1e-5j * expansion.mean()
    assert near.real == pytest.approx(-0.5e-10 * expansion.var(), rel=1e-3)


def test_levels_outside_the_unit_interval_have_no_quantile(expansion):
    np.testing.assert_array_equal(np.isnan(expansion.ppf([-0.1, 1.1, np.nan])), True)
    np.testing.assert_allclose(expansion.ppf([0.0, 1.0]), expansion.support())


def test_shapes_follow_the_arguments(expansion):
    for method in (expansion.pdf, expansion.cdf, expansion.sf, expansion.ppf, expansion.isf, expansion.logcf):
        assert np.shape(method(0.5)) == ()
        assert np.shape(method(np.full((2, 3), 0.5))) == (2, 3)
    assert expansion.rvs((2, 3), random_state=0).shape == (2, 3)


# ---- against laws in closed form -------------------------------------------------------------------------------------


def test_square_of_a_normal_is_chi_squared():
    square, chi2 = Expansion(OrthogonalBasis(NORMAL, 3), [1.0, 0.0, np.sqrt(2)]), stats.chi2(1)
    y = np.array([-1.0, 0.01, 0.5, 3.0, 40.0, 200.0, 1000.0])
    np.testing.assert_allclose(square.cdf(y), chi2.cdf(y), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(square.sf(y), chi2.sf(y), rtol=1e-11)
    np.testing.assert_allclose(square.pdf(y), chi2.pdf(y), rtol=1e-11)
    np.testing.assert_allclose(square.isf([1e-100, 1e-3, 0.5]), chi2.isf([1e-100, 1e-3, 0.5]), rtol=1e-12)
    np.testing.assert_allclose(
        square.cumulants(8), 2.0 ** np.arange(8) * special.factorial(np.arange(8)), rtol=1e-12
    )
    t = np.array([1e-6, 0.3, 20.0, -500.0, 0.2 + 0.1j])
    np.testing.assert_allclose(np.exp(square.logcf(t)), (1 - 2j * t) ** -0.5, rtol=1e-11)
    assert square.support() == (0.0, np.inf)


def test_square_of_a_uniform_has_a_square_root_law():
    square = Expansion(OrthogonalBasis("uniform(-1, 2)", 3), [1 / 3, 0.0, 2 / 3 / np.sqrt(5)])
    y = np.array([-0.1, 0.01, 0.25, 0.81, 1.5])
    np.testing.assert_allclose(square.cdf(y), np.sqrt(np.clip(y, 0, 1)), atol=1e-14)
    np.testing.assert_allclose(square.support(), (0, 1), atol=1e-15)


def test_cube_of_a_heavy_germ_keeps_the_tail():
    basis = OrthogonalBasis("t(7)", 4)
    cube = project(lambda x: x**3, basis)
    assert cube.truncation_error < 1e-10 * cube.std()
    np.testing.assert_allclose(cube.sf(1e30), stats.t(7).sf(1e10), rtol=1e-12)
    np.testing.assert_allclose(cube.isf(1e-60), stats.t(7).isf(1e-60) ** 3, rtol=1e-10)
    np.testing.assert_array_equal(np.isnan(cube.cumulants(4)), [False, False, True, True])


def test_exponential_of_a_normal_has_lognormal_moments():
    sigma = 0.25
    lognormal = project(lambda x: np.exp(sigma * x), OrthogonalBasis(NORMAL, 12))
    v = np.exp(sigma**2)
    mean, var, skew, excess = stats.lognorm(sigma).stats("mvsk")
    assert lognormal.mean() == pytest.approx(np.sqrt(v), rel=1e-14)
    kappa = lognormal.cumulants(4)
    np.testing.assert_allclose(kappa, [mean, var, skew * var**1.5, excess * var**2], rtol=1e-9)
    m = np.sqrt(v) * sigma ** np.arange(12) / np.sqrt(special.factorial(np.arange(12)))
    np.testing.assert_allclose(lognormal.coefficients, m, rtol=1e-11, atol=1e-16)


@pytest.mark.parametrize("n_quad", [None, 60])
def test_truncation_error_is_the_norm_of_the_dropped_terms(n_quad):
    lognormal = project(np.exp, OrthogonalBasis(NORMAL, 8), n_quad)
    dropped = np.sqrt(np.e * np.sum(1 / special.factorial(np.arange(8, 40))))  # m_j = exp(1/2) / sqrt(j!)
    assert lognormal.truncation_error == pytest.approx(dropped, rel=1e-10)


def test_projection_of_a_kink_converges_with_its_known_coefficients():
    half = project(lambda x: np.maximum(x, 0.0), OrthogonalBasis(NORMAL, 3))
    np.testing.assert_allclose(
        half.coefficients, [1 / np.sqrt(2 * np.pi), 0.5, 0.5 / np.sqrt(np.pi)], rtol=1e-12
    )


def test_projection_on_a_monic_basis_describes_the_same_variable():
    orthonormal = project(np.sin, OrthogonalBasis("gamma(2)", 5))
    monic = project(np.sin, OrthogonalBasis("gamma(2)", 5, normalized=False))
    x = np.linspace(0, 5, 7)
    np.testing.assert_allclose(monic(x), orthonormal(x), rtol=1e-10)
    assert monic.var() == pytest.approx(orthonormal.var(), rel=1e-13)
    assert monic.truncation_error == pytest.approx(orthonormal.truncation_error, rel=1e-10)
    np.testing.assert_allclose(monic.cumulants(4), orthonormal.cumulants(4), rtol=1e-9)


def test_projection_of_a_constant_function_is_the_constant():
    constant = project(lambda _x: 3.0, OrthogonalBasis("beta(2, 3)", 3))
    np.testing.assert_allclose(constant.coefficients, [3, 0, 0], atol=1e-14)


# ---- two terms -------------------------------------------------------------------------------------------------------

LAWS = [
    "norm(1, 2)",
    "gamma(0.25, scale=2)",
    "uniform(-1, 2)",
    "t(3)",
    "weibull_min(0.5)",
    "laplace()",
    "poisson(2)",
]


@pytest.mark.parametrize("law", LAWS)
def test_two_terms_are_the_law_itself(law):
    noise, terms = as_noise(law), two_term(law)
    np.testing.assert_allclose(terms.coefficients, [noise.mean(), noise.std()])
    assert terms.truncation_error == 0
    y = noise.ppf(LEVELS)
    np.testing.assert_allclose(terms.cdf(y), noise.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(terms.ppf(LEVELS), y, rtol=1e-13)
    np.testing.assert_allclose(terms.logcf([0.3, 4.0]), noise.logcf([0.3, 4.0]), rtol=1e-12)
    np.testing.assert_allclose(terms.cumulants(8), noise.cumulants(8), rtol=1e-12)
    assert (terms.strip(), terms.sector()) == (noise.strip(), noise.sector())
    assert (terms.gaussian, terms.discrete) == (noise.gaussian, noise.discrete)


def test_negative_multiple_mirrors_the_law():
    noise, mirrored = stats.gamma(0.25, scale=2), -2.0 * two_term("gamma(0.25, scale=2)") + 1.0
    y = np.array([-30.0, -1.0, 0.9, 1.0, 2.0])
    np.testing.assert_allclose(mirrored.cdf(y), noise.sf((1 - y) / 2), rtol=1e-12)
    np.testing.assert_allclose(mirrored.sf(y), noise.cdf((1 - y) / 2), rtol=1e-12)
    np.testing.assert_allclose(mirrored.pdf(y[:3]), noise.pdf((1 - y[:3]) / 2) / 2, rtol=1e-11)
    np.testing.assert_allclose(mirrored.ppf(1e-30), 1 - 2 * noise.isf(1e-30), rtol=1e-12)
    assert mirrored.support() == (-np.inf, 1.0)
    np.testing.assert_allclose(mirrored.strip(), (-0.25, np.inf))
    np.testing.assert_allclose(mirrored.cumulants(3)[2], -8 * 4.0, rtol=1e-12)


def test_affine_function_of_a_normal_is_gaussian():
    basis = OrthogonalBasis(NORMAL, 3)
    assert Expansion(basis, [1.0, 2.0, 0.0]).gaussian
    assert not Expansion(basis, [1.0, 2.0, 0.1]).gaussian


@pytest.mark.parametrize("slope", [1.0, -3.0])
def test_expansion_of_residuals_is_discrete(slope):
    values = np.array([-1.0, 0.0, 0.5, 4.0])
    terms = two_term(values) * slope
    y = np.unique(slope * values)
    assert terms.discrete
    np.testing.assert_allclose(terms.cdf(y + 1e-9), [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(terms.ppf([0.1, 0.3, 0.6, 0.9]), y, atol=1e-14)
    np.testing.assert_allclose(
        terms.cumulants(6), Residuals(slope * values).cumulants(6), rtol=1e-12, atol=1e-12
    )
    with pytest.raises(TypeError, match="no density"):
        terms.pdf(0.0)


def test_function_on_atoms_is_an_exact_expansion():
    square = project(np.square, OrthogonalBasis([-1.0, 0.0, 2.0], 3))
    assert square.truncation_error < 1e-14
    np.testing.assert_allclose(square.cdf([-0.1, 0.1, 1.1, 4.1]), [0, 1 / 3, 2 / 3, 1], atol=1e-15)
    assert square.logcf(0.7) == pytest.approx(np.log(np.mean(np.exp(0.7j * np.array([1, 0, 4])))), rel=1e-12)


def test_constant_has_moments_but_no_law():
    constant = Expansion(OrthogonalBasis(NORMAL, 2), [3.0, 0.0])
    assert (constant.mean(), constant.var()) == (3.0, 0.0)
    with pytest.raises(ValueError, match="constant"):
        constant.cdf(0.0)


def test_an_expansion_can_be_the_germ_of_another_basis():
    chi2 = Expansion(OrthogonalBasis(NORMAL, 3), [1.0, 0.0, np.sqrt(2)])
    for found, expected in zip(recurrence(chi2, 6), recurrence("chi2(1)", 6), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert two_term(chi2).cdf(1.0) == pytest.approx(stats.chi2(1).cdf(1.0))


@pytest.mark.parametrize("scale", [1e-100, 1e-9, 1e9, 1e100])
def test_scale_of_the_coefficients_does_not_matter(scale):
    m = np.array([0.3, -1.0, 0.5, 1.0])
    basis = OrthogonalBasis(NORMAL, 4)
    small, plain = Expansion(basis, scale * m), Expansion(basis, m)
    np.testing.assert_allclose(small.ppf(LEVELS), scale * plain.ppf(LEVELS), rtol=1e-9)
    np.testing.assert_allclose(small.cdf(scale * np.array([-1.0, 0.2])), plain.cdf([-1.0, 0.2]), rtol=1e-12)


# ---- algebra ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [NORMAL, "gamma(0.25, scale=2)", "weibull_min(1.5)", "beta(2, 3)", "t(20)"])
@pytest.mark.parametrize("normalized", [True, False])
def test_product_and_sum_equal_direct_evaluation(law, normalized):
    rng = np.random.default_rng(1)
    first = Expansion(OrthogonalBasis(law, 3, normalized), rng.normal(size=3))
    second = Expansion(OrthogonalBasis(law, 4), rng.normal(size=4))
    x = first.germ.rvs(20, random_state=2)
    for found, expected in (
        (first * second, first(x) * second(x)),
        (first + second, first(x) + second(x)),
        (first - second, first(x) - second(x)),
        (2 - first * np.float64(3), 2 - 3 * first(x)),
        (np.float64(3) * first + np.int64(1), 3 * first(x) + 1),
    ):
        np.testing.assert_allclose(found(x), expected, rtol=1e-8, atol=1e-9)
        assert found.truncation_error == 0
    assert (first * second).basis.size == 6
    assert (first * second).basis.normalized == normalized
    assert sum([first, second]).basis.size == 4


def test_square_has_the_second_moment_as_its_mean():
    e = project(np.exp, OrthogonalBasis("uniform(0, 1)", 6))
    assert (e * e).mean() == pytest.approx(e.var() + e.mean() ** 2, rel=1e-14)


def test_product_on_atoms_needs_no_more_terms_than_atoms():
    e = Expansion(OrthogonalBasis([0.0, 1.0, 3.0], 3), [1.0, -2.0, 0.5])
    np.testing.assert_allclose(
        (e * e)(np.array([0.0, 1.0, 3.0])), e(np.array([0.0, 1.0, 3.0])) ** 2, rtol=1e-12
    )
    assert (e * e).basis.size == 3


def test_expansions_of_different_germs_do_not_mix():
    first, second = two_term("norm(0, 1)"), two_term("norm(0, 2)")
    with pytest.raises(ValueError, match="same germ"):
        first * second
    with pytest.raises(ValueError, match="same germ"):
        first + second
    with pytest.raises(TypeError):
        first * "two"


def test_product_beyond_the_moments_of_the_germ_is_refused():
    e = Expansion(OrthogonalBasis("t(5)", 3), [0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="up to degree 2 only"):
        e * e


def test_truncation_adds_what_it_drops():
    e = project(np.exp, OrthogonalBasis(NORMAL, 10))
    assert e.truncate(4).truncation_error == pytest.approx(
        project(np.exp, OrthogonalBasis(NORMAL, 4)).truncation_error
    )
    assert (2 * e).truncation_error == pytest.approx(2 * e.truncation_error)
    assert (e + e).truncation_error == pytest.approx(2 * e.truncation_error)
    assert (e * e).truncation_error == np.inf
    with pytest.raises(ValueError, match="between 1 and 10"):
        e.truncate(11)


@pytest.mark.parametrize("m", [[1.0], [1.0, 2.0, 3.0], [1.0, np.nan], 1.0])
def test_coefficients_must_match_the_basis(m):
    with pytest.raises(ValueError, match="2 finite numbers"):
        Expansion(OrthogonalBasis(NORMAL, 2), m)


# ---- joint basis and chaos form --------------------------------------------------------------------------------------


def test_joint_basis_has_the_order_of_the_paper():
    joint = JointBasis(OrthogonalBasis(NORMAL, 4), 3)
    by_hand = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert [joint.index(j) for j in range(joint.size)] == by_hand
    assert [joint.position(*pair) for pair in by_hand] == list(range(10))
    assert joint.position(2, 0) == 0
    xi = np.array([0.5, -1.0, 2.0])
    he1, he2, he3 = xi, (xi**2 - 1) / np.sqrt(2), (xi**3 - 3 * xi) / np.sqrt(6)
    expected = [1, he1[0], he2[0], he3[0], he1[1], he2[1], he3[1], he1[2], he2[2], he3[2]]
    np.testing.assert_allclose(joint(xi), expected, rtol=1e-14)
    assert joint(np.zeros((2, 5, 3))).shape == (2, 5, 10)


def test_joint_basis_refuses_what_it_does_not_hold():
    joint = JointBasis(OrthogonalBasis(NORMAL, 4), 3)
    for wrong in (lambda: joint.index(10), lambda: joint.index(-1), lambda: joint.position(3, 1)):
        with pytest.raises(IndexError):
            wrong()
    with pytest.raises(ValueError, match=r"\(\.\.\., 3\)"):
        joint(np.zeros(4))
    with pytest.raises(ValueError, match="not be negative"):
        JointBasis(joint.basis, -1)


@pytest.mark.parametrize("normalized", [True, False])
def test_lifted_prediction_is_the_linear_combination_of_the_noise(normalized):
    basis = OrthogonalBasis("gamma(0.25, scale=2)", 4, normalized)
    noise = project(np.sqrt, basis)
    rng = np.random.default_rng(3)
    a, mu = rng.normal(size=(6, 5)), rng.normal(size=6)
    form = lift(noise, a, mu)
    assert form.coefficients.shape == (6, 1 + 5 * 3)
    xi = noise.germ.rvs((7, 5), random_state=4)
    np.testing.assert_allclose(form(xi), mu - (noise(xi) - noise.mean()) @ a.T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(form.mean(), mu)
    np.testing.assert_allclose(form.var(), noise.var() * np.sum(a**2, axis=1), rtol=1e-12)  # eq. (13b)
    np.testing.assert_allclose(form.cov(), noise.var() * a @ a.T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.diag(form.cov()), form.var())


def test_lift_of_one_prediction_is_a_scalar_form():
    form = lift(two_term(NORMAL), [1.0, 2.0], 0.5)
    assert form.mean().shape == form.var().shape == form.cov().shape == ()
    assert form.rvs(9, random_state=0).shape == (9,)
    with pytest.raises(ValueError, match=r"weights must have the shape"):
        lift(two_term(NORMAL), np.ones((3, 2)), np.ones(2))


def test_draws_have_the_mean_and_covariance_of_the_form():
    form = ChaosForm(
        JointBasis(OrthogonalBasis("expon()", 3), 2), [[1.0, 0.5, 0.1, -1.0, 0.0], [0.0, 1, 0.2, 0.3, 0.1]]
    )
    draws = form.rvs(200_000, random_state=5)
    assert draws.shape == (200_000, 2)
    np.testing.assert_allclose(draws.mean(axis=0), form.mean(), atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), form.cov(), atol=0.05)
    np.testing.assert_array_equal(draws[:3], form.rvs(200_000, random_state=5)[:3])
    assert form.rvs((4, 3), random_state=0).shape == (4, 3, 2)


def test_form_of_any_shape_keeps_its_axes():
    form = ChaosForm(JointBasis(OrthogonalBasis(NORMAL, 2), 3), np.arange(24.0).reshape(2, 3, 4))
    assert form.mean().shape == form.var().shape == (2, 3)
    assert form.cov().shape == (2, 3, 2, 3)
    assert form(np.zeros((5, 3))).shape == (5, 2, 3)
    np.testing.assert_allclose(form(np.zeros(3)), form.mean())
    with pytest.raises(ValueError, match=r"\(\.\.\., 4\)"):
        ChaosForm(form.basis, np.ones(5))


def test_germ_of_one_term_carries_no_uncertainty():
    form = ChaosForm(JointBasis(OrthogonalBasis(NORMAL, 1), 4), [[2.0]])
    np.testing.assert_array_equal(form.var(), [0.0])
    np.testing.assert_array_equal(form.rvs(3, random_state=0), [[2.0]] * 3)


def test_mixture_germ_is_expanded_like_any_other():
    germ = Mixture([NORMAL, "norm(4, 0.5)"], [0.75, 0.25])
    e = Expansion(OrthogonalBasis(germ, 3), [0.0, 1.0, 0.5])
    draws = e.rvs(20_000, random_state=6)
    assert stats.kstest(draws, e.cdf).pvalue > 1e-3
    np.testing.assert_allclose(e.cdf(e.ppf(LEVELS)), LEVELS, rtol=1e-6)


def test_inputs_are_copied_and_results_are_read_only():
    m = np.array([1.0, 2.0])
    e = Expansion(OrthogonalBasis(NORMAL, 2), m)
    m[0] = 9.0
    assert e.mean() == 1.0
    with pytest.raises(ValueError, match="read-only"):
        e.coefficients[0] = 5.0
