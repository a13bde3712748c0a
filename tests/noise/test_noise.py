"""One suite that every noise law passes, and what is special about each."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import integrate, stats

from wienerkernel import Expansion, Family, Mixture, Noise, OrthogonalBasis, Residuals, as_noise

RECORDED = np.random.default_rng(3).gamma(0.7, size=40)
LAWS = {
    "normal": stats.norm(0.3, 1.7),
    "gamma": stats.gamma(0.25, scale=2),
    "shifted gamma": stats.gamma(2.5, loc=-1.0, scale=0.5),
    "uniform": stats.uniform(-1, 2),
    "student": stats.t(5),
    "lognormal": stats.lognorm(0.5),
    "weibull": stats.weibull_min(1.5),
    "triangular": stats.triang(0.3),
    "skew normal": stats.skewnorm(4.0),
    "text": "laplace(scale=0.5)",
    "poisson": stats.poisson(2.0),
    "residuals": RECORDED,
    "weighted residuals": Residuals([-1.0, 0.5, 2.0], weights=[1, 2, 1]),
    "mixture": Mixture([stats.norm(-1, 0.5), stats.gamma(2.0)], [0.25, 0.75]),
    "mixture with atoms": Mixture([stats.norm(), [0.0, 1.0]], [0.5, 0.5]),
    "expansion": Expansion(OrthogonalBasis("norm(0, 1)", 3), [0.2, 1.0, 0.4]),
}


@pytest.fixture(params=LAWS, ids=str)
def noise(request):
    return as_noise(LAWS[request.param])


def expectation(noise, function):
    """E function(M) from draws by quantiles: an integral over (0, 1) that knows nothing of cumulants or cfs."""
    if isinstance(noise, Residuals):
        return function(noise.values) @ noise.weights
    u, w = np.polynomial.legendre.leggauss(20)
    edges = np.concatenate([[0], np.logspace(-12, np.log10(0.5), 25)])
    total = 0.0
    for a, b in itertools.pairwise(edges):
        level = (b - a) / 2 * u + (a + b) / 2
        total = total + (b - a) / 2 * ((function(noise.ppf(level)) + function(noise.isf(level))) @ w)
    return total


class TestEveryLaw:
    def test_mean_and_variance_are_the_first_cumulants(self, noise):
        kappa = noise.cumulants(4)
        np.testing.assert_allclose([noise.mean(), noise.var()], kappa[:2], rtol=1e-12, atol=1e-12)
        assert noise.std() == pytest.approx(np.sqrt(noise.var()))

    def test_variance_is_that_of_the_quantiles(self, noise):
        if noise.discrete and not isinstance(noise, Residuals):
            pytest.skip("quantiles jump")
        mean = expectation(noise, lambda x: x)
        assert mean == pytest.approx(noise.mean(), rel=1e-3, abs=1e-3)
        assert expectation(noise, lambda x: (x - noise.mean()) ** 2) == pytest.approx(noise.var(), rel=2e-3)

    def test_log_characteristic_function_has_the_cumulants_as_derivatives(self, noise):
        kappa, t = noise.cumulants(3), 1e-3 / noise.std()
        plus, minus = noise.logcf(t), noise.logcf(-t)
        assert (plus - minus) / 2j == pytest.approx(kappa[0] * t, abs=1e-6 * max(1.0, noise.std() * t))
        assert -(plus + minus).real == pytest.approx(kappa[1] * t**2, rel=1e-4)

    def test_characteristic_function_is_the_mean_of_exponentials(self, noise):
        draws = noise.rvs(200_000, random_state=0)
        for t in np.array([0.5, 2.0]) / noise.std():
            sample = np.mean(np.exp(1j * t * draws))
            assert np.exp(noise.logcf(t)) == pytest.approx(sample, abs=0.01)

    def test_cdf_and_sf_sum_to_one(self, noise):
        x = noise.ppf(np.linspace(0.01, 0.99, 13))
        np.testing.assert_allclose(noise.cdf(x) + noise.sf(x), 1.0, atol=1e-12)

    def test_ppf_is_the_infimum(self, noise):
        q = np.linspace(0.01, 0.99, 13)
        x = noise.ppf(q)
        below = x - 1e-6 * noise.std()
        assert np.all(noise.cdf(x) >= q - 1e-12)
        assert np.all(noise.cdf(below) <= q + 1e-12)

    def test_isf_mirrors_ppf(self, noise):
        if noise.discrete:
            pytest.skip("quantiles jump")
        q = np.linspace(0.01, 0.99, 13)
        np.testing.assert_allclose(noise.isf(1 - q), noise.ppf(q), rtol=1e-9, atol=1e-9)

    def test_ends_of_the_support_are_the_extreme_quantiles(self, noise):
        lower, upper = noise.support()
        if noise.name == "poisson" if hasattr(noise, "name") else False:
            lower -= 1  # scipy's convention for discrete laws
        np.testing.assert_allclose(noise.ppf([0.0, 1.0]), [lower, upper])

    def test_draws_have_shape_and_repeat_with_the_seed(self, noise):
        one = noise.rvs((3, 4), random_state=5)
        assert one.shape == (3, 4)
        np.testing.assert_array_equal(one, noise.rvs((3, 4), random_state=5))
        generator = np.random.default_rng(0)
        assert not np.array_equal(
            noise.rvs(50, random_state=generator), noise.rvs(50, random_state=generator)
        )

    def test_density_integrates_to_the_cdf(self, noise):
        if noise.discrete or (isinstance(noise, Mixture) and any(c.discrete for c in noise.components)):
            with pytest.raises(TypeError, match="density"):
                noise.pdf(0.0)
            return
        a, b = noise.ppf([0.3, 0.8])
        area, _ = integrate.quad(noise.pdf, a, b)
        assert area == pytest.approx(0.5, abs=1e-7)

    def test_it_survives_pickling(self, noise):
        again = pickle.loads(pickle.dumps(noise))
        np.testing.assert_array_equal(again.logcf([0.3, 1.0]), noise.logcf([0.3, 1.0]))


@pytest.mark.parametrize(
    "law", [stats.gamma(0.25, scale=2), stats.lognorm(0.5), stats.weibull_min(1.5, 1.0, 2.0)]
)
def test_cumulants_to_order_four_agree_with_scipy(law):
    mean, variance, skewness, kurtosis = law.stats("mvsk")
    expected = [mean, variance, skewness * variance**1.5, kurtosis * variance**2]
    np.testing.assert_allclose(as_noise(law).cumulants(4), expected, rtol=1e-9)


def test_cumulants_of_the_gamma_law_to_order_eight():
    expected = [0.25 * 2**r * np.prod(np.arange(1, r), dtype=float) for r in range(1, 9)]
    np.testing.assert_allclose(as_noise("gamma(0.25, scale=2)").cumulants(8), expected, rtol=1e-14)


def test_cumulants_that_do_not_exist_are_nan():
    kappa = as_noise(stats.t(5)).cumulants(8)
    assert np.all(np.isfinite(kappa[:4]))
    assert np.all(np.isnan(kappa[5:]))


@pytest.mark.parametrize(
    ("law", "index"),
    [
        (stats.t(5), 5),
        (stats.f(3, 9), 4.5),
        (stats.burr12(2, 2), 4),
        # densities that are rounding errors far out, or overflow there
        (stats.jf_skew_t(3, 5), 6),
        (stats.jf_skew_t(8, 8), 16),
        (stats.ncf(5, 20, 2), 10),
        (stats.nct(5, 3), 5),
        (stats.lognorm(12), np.inf),
        (stats.weibull_min(0.05), np.inf),
        (stats.johnsonsu(0, 0.3), np.inf),
    ],
)
def test_the_index_of_a_tail_is_that_of_its_family(law, index):
    np.testing.assert_allclose(as_noise(law).tail_index(), index, rtol=1e-4)


def test_cumulants_exist_up_to_the_index_of_the_tail():
    kappa = as_noise(stats.jf_skew_t(2.5, 2.5)).cumulants(4)  # Student's law with 5 degrees of freedom
    np.testing.assert_allclose(kappa, as_noise(stats.t(5)).cumulants(4), rtol=1e-7, atol=1e-10)
    assert np.all(np.isnan(as_noise(stats.nct(5, 3)).cumulants(8)[4:]))


def test_cumulants_of_a_law_without_closed_form():
    law = stats.johnsonsu(1.0, 2.0)
    mean, variance, skewness, kurtosis = law.stats("mvsk")
    kappa = as_noise(law).cumulants(4)
    np.testing.assert_allclose(
        kappa, [mean, variance, skewness * variance**1.5, kurtosis * variance**2], rtol=1e-7
    )


def test_a_mixture_of_one_law_with_itself_is_that_law():
    law = stats.gamma(0.25, scale=2)
    mixture, single = Mixture([law, law], [0.3, 0.7]), as_noise(law)
    np.testing.assert_allclose(mixture.cumulants(8), single.cumulants(8), rtol=1e-9)
    t = np.array([1e-9, 0.1, 3.0])
    np.testing.assert_allclose(mixture.logcf(t), single.logcf(t), rtol=1e-12)
    np.testing.assert_allclose(mixture.ppf([0.2, 0.9]), single.ppf([0.2, 0.9]), rtol=1e-12)


def test_logcf_keeps_relative_accuracy_near_zero():
    for law in (RECORDED, LAWS["mixture"]):
        noise = as_noise(law)
        t = 1e-7
        drift, variance = noise.mean(), noise.var()
        residue = noise.logcf(t) - 1j * drift * t
        assert residue.real == pytest.approx(-variance * t**2 / 2, rel=1e-6)


def test_scipy_noise_shows_itself_as_text_that_parses_back():
    noise = as_noise(stats.gamma(0.25, loc=-0.5, scale=2))
    assert as_noise(repr(noise)) == noise


def test_arguments_by_name_and_by_position_are_the_same_law():
    assert as_noise(stats.gamma(a=0.25, scale=2)) == as_noise(stats.gamma(0.25, 0, 2))


@pytest.mark.parametrize("law", [stats.cauchy(), stats.t(2), stats.pareto(1.5), "t(1.5)"])
def test_a_law_without_finite_variance_is_refused(law):
    with pytest.raises(ValueError, match="finite variance"):
        as_noise(law)


def test_a_law_on_the_circle_is_refused_with_a_hint_to_the_one_on_the_line():
    for make in (as_noise, Family):
        for given in (
            ("vonmises(2)", stats.vonmises(2.0)) if make is as_noise else ("vonmises", stats.vonmises)
        ):
            with pytest.raises(ValueError, match="vonmises_line"):
                make(given)
    assert as_noise("vonmises_line(2)").support() == (-np.pi, np.pi)


def test_draws_of_a_law_on_an_arc_lie_in_its_support():
    noise = as_noise(stats.wrapcauchy(0.3, loc=0.5, scale=2.0))
    draws = noise.rvs(2000, random_state=0)
    assert stats.kstest(noise.cdf(draws), "uniform").pvalue > 1e-4


@pytest.mark.parametrize(
    "law",
    [
        stats.norminvgauss(1.25, 0.5, loc=0.5, scale=2.0),
        stats.geninvgauss(2.3, 1.5, loc=0.5, scale=2.0),
        stats.genhyperbolic(0.5, 1.5, -0.5, loc=0.5, scale=2.0),
    ],
    ids=lambda law: law.dist.name,
)
def test_distribution_functions_that_scipy_integrates_reach_their_ends(law):
    noise = as_noise(law)
    far = 10.0 ** np.array([3.0, 6.0, 9.0, 12.0])
    np.testing.assert_array_equal(noise.cdf(far), 1.0)
    np.testing.assert_array_equal(noise.sf(-far), 1.0)
    assert np.all(noise.sf(far) < 1e-16)
    assert np.all(noise.cdf(-far) < 1e-16)
    levels = np.array([1e-30, 1e-9, 0.3, 0.5])
    np.testing.assert_allclose(noise.cdf(noise.ppf(levels)), levels, rtol=1e-8)
    np.testing.assert_allclose(noise.sf(noise.isf(levels)), levels, rtol=1e-8)
    x = noise.ppf([0.1, 0.5, 0.9])
    np.testing.assert_allclose(noise.cdf(x), law.cdf(x), rtol=1e-9)
    assert len(noise.singular_points()) == np.isfinite(noise.support()[0])


def test_a_histogram_has_the_moments_and_the_characteristic_function_of_its_bars():
    """Bars at any place, some of them empty, alone and in a mixture."""
    counts, edges = np.array([6.435546875, 0.0, 0.25, 1.0, 0.0]), np.array([0.0, 1.0, 1.7, 2.0, 3.1, 4.0])
    noise = as_noise(stats.rv_histogram((counts, edges), density=False)(loc=1.0, scale=2.0))
    p, left, right = counts / counts.sum(), 1 + 2 * edges[:-1], 1 + 2 * edges[1:]
    raw = [p @ ((right ** (k + 1) - left ** (k + 1)) / ((k + 1) * (right - left))) for k in range(1, 5)]
    np.testing.assert_allclose(noise.cumulants(2), [raw[0], raw[1] - raw[0] ** 2], rtol=1e-12)
    third = raw[2] - 3 * raw[0] * raw[1] + 2 * raw[0] ** 3
    assert noise.cumulants(3)[2] == pytest.approx(third, rel=1e-10)
    t = np.array([0.5, 3.0, 40.0])
    phase = 1j * t[:, None]
    cf = (np.exp(phase * right) - np.exp(phase * left)) / (phase * (right - left)) @ p
    np.testing.assert_allclose(np.exp(noise.logcf(t)), cf, atol=1e-14)
    assert noise.singular_points().tolist() == (1 + 2 * edges).tolist()
    assert Mixture([noise, noise], [0.5, 0.5]).var() == pytest.approx(noise.var())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gama(0.25)", "did you mean .*gamma"),
        ("gamma", "column 1: expected the name of a law and its parameters"),
        ("gamma(0.25", "column 6: .* never closed"),
        ("gamma(0.25, scale=)", "column 1[39]"),
        ("gamma(0.25) + 1", "column 1: expected the name of a law"),
        ("gamma(scale=2, 0.25)", "positional argument follows keyword argument"),
        ("gamma(0.25, scale=2, scale=3)", "twice"),
        ("gamma(0.25, width=2)", "takes the parameters \\(a, loc, scale\\)"),
        ("gamma()", "takes the parameters"),
        ("gamma(-1)", "outside the domain"),
        ("norm(0, -1)", "outside the domain"),
        ("", "column 1: unexpected end"),
        ("__import__('os')", "unknown law"),
        ("norm(os.getcwd())", "expected a number"),
        ("norm(0, 1_000)", "column 9: expected a number"),
        ("norm(0, \u0661\u0662)", "column 9: unexpected character"),
        ("norm(0, \uff11)", "column 9: unexpected character"),
        ("norm(0, inf)", "column 9: expected a number"),
        ("norm(0, 0x10)", "column 9: expected a number"),
    ],
)
def test_malformed_text_says_what_is_wrong_and_where(text, message):
    with pytest.raises(ValueError, match=message):
        as_noise(text)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (stats.gamma, TypeError, "freeze it"),
        (0.5, TypeError, "frozen scipy.stats law"),
        (np.zeros((2, 2)), TypeError, "one-dimensional"),
        ([1.0, np.nan], ValueError, "finite"),
        ([1.0, 1.0], ValueError, "two different"),
        ([], ValueError, "two different values"),
        (stats.norm(0, [1.0, 2.0]), ValueError, "single number"),
    ],
)
def test_what_is_not_noise_is_refused(value, error, message):
    with pytest.raises(error, match=message):
        as_noise(value)


def test_a_law_of_too_many_values_is_named_with_its_parameters():
    with pytest.raises(ValueError, match=r"geom\(0\.0001\) has more than 1048576 atoms"):
        as_noise(stats.geom(p=1e-4)).atoms()


@pytest.mark.parametrize("text", ["binom(7, 0.3)", "hypergeom(20, 7, 12)", "nbinom(2.5, 0.4)"])
def test_counts_given_as_text_are_drawn_as_scipy_draws_them(text):
    name, numbers = text.rstrip(")").split("(")
    frozen = getattr(stats, name)(*[float(x) if "." in x else int(x) for x in numbers.split(",")])
    draws = as_noise(text).rvs(20, random_state=1)
    np.testing.assert_array_equal(draws, frozen.rvs(20, random_state=1))
    np.testing.assert_array_equal(as_noise(f"{name}({numbers}, loc=3)").rvs(20, random_state=1), draws + 3)


def test_mixture_weights_are_checked():
    with pytest.raises(ValueError, match="weights must be 2"):
        Mixture(["norm()", "norm()"], [1.0])
    with pytest.raises(ValueError, match="non-negative"):
        Mixture(["norm()", "norm()"], [1.0, -1.0])


def test_none_is_the_standard_normal_law():
    noise = as_noise(None)
    assert noise.gaussian
    assert (noise.mean(), noise.var()) == (0.0, 1.0)
    assert isinstance(noise, Noise)


def test_a_law_with_an_array_of_probabilities_is_refused():
    with pytest.raises(ValueError, match="p must be a single number"):
        as_noise(stats.poisson_binom([0.1, 0.6, 0.7]))
