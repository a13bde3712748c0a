"""Rigorous intervals: their coverage on functions of known norm, their order, their formulas, bad input."""

import warnings

import numpy as np
import pytest
from helpers import untuned
from scipy import optimize, stats

from wienerkernel import RBF, Matern, Mixture, WienerKernelRegressor
from wienerkernel.decisions.bounds import METHODS, bound
from wienerkernel.decisions.norms import NormWarning, interpolant_norm, norm_lower_bound, rkhs_norm

KERNEL = 2.0 * RBF(0.8)
CENTERS = np.array([[-1.5], [-0.2], [0.9], [1.7]])
COEFFICIENTS = np.array([0.8, -1.1, 0.9, -0.4])
NORM = float(np.sqrt(COEFFICIENTS @ KERNEL(CENTERS, CENTERS) @ COEFFICIENTS))
NOISES = {
    "gamma": stats.gamma(0.25, scale=2),
    "uniform": stats.uniform(-1.5, 3),
    "normal": stats.norm(scale=0.8),
}
WHERE = np.linspace(-2.2, 2.2, 5)[:, None]


def truth(X):
    """A function of the RKHS, of norm NORM."""
    return KERNEL(X, CENTERS) @ COEFFICIENTS


def fit(X, y, noise=None, kernel=KERNEL, noise_scale=None, trend=None):
    """The posterior of a model that is not tuned."""
    return untuned(X, y, kernel, noise=noise, trend=trend, noise_scale=noise_scale).posterior_


def fitted(noise, n=12, seed=0, **options):
    X = np.linspace(-2, 2, n)[:, None]
    return fit(X, truth(X) + noise.rvs(n, random_state=seed), noise, **options)


def misses(noise, method, confidence, trials=4000, *, simultaneous=False, side="both"):
    """Rate at which f leaves the interval: the margins do not depend on y, so they are computed once."""
    X = np.linspace(-2, 2, 9)[:, None]
    posterior = fit(X, truth(X), noise)
    options = {"method": method, "simultaneous": simultaneous, "side": side}
    lower, upper = bound(posterior, WHERE, norm=NORM, confidence=confidence, **options)
    mean = posterior.mean(WHERE)
    M = noise.rvs((trials, len(X)), random_state=np.random.default_rng(7))
    means = (truth(X) + M - noise.mean()) @ posterior.smoother.evaluate(WHERE)[1].T
    f = truth(WHERE)
    out = (f < means + (lower - mean)) | (f > means + (upper - mean))
    return out.any(axis=1).mean() if simultaneous else out.mean(axis=0).max()


def allowed(d, trials=4000):
    """d, and what four standard deviations of the sampling add to it."""
    return d + 4 * np.sqrt(d * (1 - d) / trials)


APPLICABLE = [
    (law, method)
    for law in NOISES
    for method in METHODS
    if not (method == "gaussian" and law != "normal")
    and not (method == "hoeffding" and law != "uniform")
    and not (method in ("subgaussian", "abbasi-yadkori", "fiedler2021") and law == "gamma")
]


@pytest.mark.filterwarnings("ignore::wienerkernel.decisions.bounds.NormWarning")
@pytest.mark.parametrize(("law", "method"), APPLICABLE)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_a_function_of_the_rkhs_is_missed_at_most_with_probability_d(law, method, confidence):
    assert misses(NOISES[law], method, confidence) <= allowed(1 - confidence)


@pytest.mark.parametrize("law", NOISES)
def test_the_simultaneous_interval_covers_all_points_at_once(law):
    assert misses(NOISES[law], "exact", 0.9, simultaneous=True) <= allowed(0.1)
    narrow = misses(NOISES[law], "exact", 0.9)
    assert narrow <= allowed(0.1)


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("law", NOISES)
def test_one_sided_claims_hold(law, side):
    assert misses(NOISES[law], "exact", 0.8, side=side) <= allowed(0.2)


def test_the_exact_interval_is_not_wider_than_its_confidence_needs():
    # At a sampled place of a model with hardly any ridge the worst case B P vanishes: the miss rate is d itself.
    noise = stats.gamma(0.25, scale=0.02)
    X = np.linspace(-2, 2, 3)[:, None]
    posterior = fit(X, np.zeros(3), noise, RBF(0.1))
    lower, upper = bound(posterior, X[1:2], norm=1e-9, confidence=0.8)
    weights = posterior.smoother.evaluate(X[1:2])[1]
    M = noise.rvs((20000, 3), random_state=np.random.default_rng(0)) - noise.mean()
    mean = posterior.mean(X[1:2])
    errors = -(M @ weights.T)[:, 0]  # f - (mu - a'(M - m0)) for f = 0
    rate = np.mean((errors < lower - mean) | (errors > upper - mean))
    assert rate == pytest.approx(0.2, abs=0.012)


def test_the_sub_gaussian_bound_is_wrong_for_gamma_noise_and_the_exact_one_is_right():
    noise = NOISES["gamma"]
    X = np.zeros((1, 1))
    posterior = fit(X, [0.5], noise, RBF(1.0))
    options = {"norm": 0.0, "confidence": 0.99}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormWarning)
        wrong = bound(posterior, X, method="subgaussian", subgaussian_constant=noise.std(), **options)
        right = bound(posterior, X, method="exact", **options)
    mean = posterior.mean(X)
    means = 0.5 * (noise.rvs(40000, random_state=np.random.default_rng(0)) - noise.mean())  # f = 0
    missed = {
        name: np.mean((means + (lower - mean) > 0) | (means + (upper - mean) < 0))
        for name, (lower, upper) in {"wrong": wrong, "right": right}.items()
    }
    assert missed["right"] <= allowed(0.01, 40000)
    assert missed["wrong"] > 0.0125


def test_abbasi_yadkori_holds_for_a_design_that_chases_the_noise():
    # The next sample goes where the estimate is largest: its place depends on the noise before it.
    rng, grid, missed = np.random.default_rng(3), np.linspace(-2, 2, 9)[:, None], 0
    for _ in range(60):
        model = WienerKernelRegressor(KERNEL, noise=NOISES["normal"], trend=None, tuning=None).fit(
            grid[4:5], truth(grid[4:5]) + rng.normal(scale=0.8, size=1)
        )
        for _ in range(6):
            x = grid[[int(np.argmax(model.predict(grid)))]]
            model.partial_fit(x, truth(x) + rng.normal(scale=0.8, size=1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NormWarning)
            lower, upper = bound(model.posterior_, grid, norm=NORM, confidence=0.8, method="abbasi-yadkori")
        missed += bool(np.any((truth(grid) < lower) | (truth(grid) > upper)))
    assert missed / 60 <= allowed(0.2, 60)


def test_the_formulas_of_the_comparison_bounds():
    posterior = fitted(NOISES["normal"])
    X, d, B, R, rho2 = posterior.smoother.places, 0.05, NORM, 0.8, 0.64
    A = np.linalg.inv(KERNEL(X, X) + rho2 * np.eye(len(X)))
    k = KERNEL(WHERE, X)
    sigma = np.sqrt(KERNEL.diag(WHERE) - np.sum(k @ A * k, axis=1))
    a, mean = k @ A, posterior.mean(WHERE)
    gains = np.linalg.slogdet(np.eye(len(X)) + KERNEL(X, X) / rho2)[1]
    expected = {
        "abbasi-yadkori": sigma * (B + R / np.sqrt(rho2) * np.sqrt(2 * np.log(1 / d) + gains)),
        "fiedler2021": B * sigma
        + R * np.linalg.norm(a, axis=1) * np.sqrt(12 + 2 * np.sqrt(12 * np.log(1 / d)) + 2 * np.log(1 / d)),
    }
    P = np.sqrt(KERNEL.diag(WHERE) - 2 * np.sum(a * k, axis=1) + np.sum(a @ KERNEL(X, X) * a, axis=1))
    expected["subgaussian"] = B * P + R * np.sqrt(2 * np.log(2 / d)) * np.linalg.norm(a, axis=1)
    expected["cantelli"] = B * P + R * np.linalg.norm(a, axis=1) / np.sqrt(d)
    expected["gaussian"] = B * P + stats.norm.isf(d / 2) * R * np.linalg.norm(a, axis=1)
    for method, margin in expected.items():
        lower, upper = bound(posterior, WHERE, norm=B, confidence=1 - d, method=method)
        np.testing.assert_allclose(mean - lower, margin, rtol=1e-9)
        np.testing.assert_allclose(upper - mean, margin, rtol=1e-9)


@pytest.mark.parametrize("law", NOISES)
def test_the_exact_interval_is_inside_all_other_pointwise_ones(law):
    posterior = fitted(NOISES[law])
    lower, upper = bound(posterior, WHERE, norm=NORM)
    for name, method in APPLICABLE:
        if name == law and method != "cantelli":  # Chebyshev's tails are not equal
            low, high = bound(posterior, WHERE, norm=NORM, method=method)
            assert np.all(low <= lower + 1e-9), method
            assert np.all(high >= upper - 1e-9), method
    below, above = (posterior.mean(WHERE) - lower, upper - posterior.mean(WHERE))
    assert np.allclose(below, above) == (law != "gamma")


@pytest.mark.parametrize("noise", [stats.gamma(0.25, scale=2), stats.laplace(), stats.uniform(-1, 2)])
def test_chernoff_finds_the_best_exponent(noise):
    posterior = fitted(noise)
    lower, upper = bound(posterior, WHERE, norm=NORM, method="chernoff")
    law = posterior.distribution(WHERE, "estimate").law
    ((_, weights, _),) = law.terms
    worst = NORM * np.sqrt(posterior.uncertainty(WHERE).model)
    left, right = posterior.noise.strip()
    for row in range(len(WHERE)):
        w = weights[row]
        for sign, margin in ((-1, posterior.mean(WHERE) - lower), (1, upper - posterior.mean(WHERE))):
            v = sign * w

            def objective(s, v=v):
                cgf = posterior.noise.logcf(-1j * s * v).real - s * v * posterior.noise.mean()
                return (cgf.sum() + np.log(40)) / s

            ends = [right / x if x > 0 else left / x for x in v if x != 0]
            top = min(min(ends), 1e3 / law.std()[row])
            best = optimize.minimize_scalar(objective, bounds=(1e-6, top), method="bounded")
            assert (margin - worst)[row] == pytest.approx(min(best.fun, objective(0.999 * top)), rel=2e-4)
            assert (margin - worst)[row] <= best.fun * (1 + 1e-9)


def test_per_sample_scales_and_repeats_enter_every_method():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [2.0]])
    scale = np.array([1.0, 1.0, 2.0, 0.5, 1.0])
    rng = np.random.default_rng(0)
    y = truth(X) + 0.3 * rng.normal(size=5)
    noise = stats.norm(scale=0.3)
    together = fit(X, y, noise, noise_scale=scale)
    # The same without repeats: places that differ by next to nothing.
    apart = fit(X + 1e-7 * np.arange(5)[:, None], y, noise, noise_scale=scale)
    for method in METHODS:
        if method != "hoeffding":
            one = bound(together, WHERE, norm=NORM, method=method)
            other = bound(apart, WHERE, norm=NORM, method=method)
            np.testing.assert_allclose(one, other, rtol=1e-4)


def test_a_trend_shifts_the_interval_and_the_norm_is_that_of_the_rest():
    X, noise = np.linspace(-2, 2, 7)[:, None], NOISES["uniform"]
    y = truth(X) + noise.rvs(7, random_state=0)
    before, after = (bound(fit(X, y + c, noise, trend="constant"), WHERE, norm=NORM) for c in (0.0, 1e3))
    np.testing.assert_allclose(np.asarray(before) + 1e3, after, rtol=1e-9)


def test_several_outputs_share_the_margins_and_the_confidence():
    X = np.linspace(-2, 2, 6)[:, None]
    Y = np.column_stack([truth(X), -truth(X)])
    posterior = fit(X, Y, NOISES["normal"])
    lower, upper = bound(posterior, WHERE, norm=NORM, confidence=0.9)
    assert lower.shape == upper.shape == (5, 2)
    np.testing.assert_allclose((upper - lower)[:, 0], (upper - lower)[:, 1])
    for method, divided in (("exact", 1 - 0.1 / 10), ("fiedler2021", 0.95)):
        wide = bound(posterior, WHERE, norm=NORM, confidence=0.9, simultaneous=True, method=method)
        same = bound(posterior, WHERE, norm=NORM, confidence=divided, method=method)
        np.testing.assert_allclose(wide, same)


def test_hoeffding_never_goes_beyond_the_support():
    posterior = fitted(NOISES["uniform"], n=2)
    confidence = 1 - 1e-9
    lower, _ = bound(posterior, WHERE, norm=0.0, confidence=confidence, method="hoeffding", side="lower")
    least, _ = posterior.distribution(WHERE).law.support()
    np.testing.assert_allclose(lower, posterior.mean(WHERE) + least)


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_intervals_scale_with_the_units_of_y(n, scale):
    X = np.linspace(0, 1, n)[:, None]
    y = np.arange(1.0, n + 1)
    posteriors = [fit(X, c * y, stats.gamma(0.25, scale=2 * c), c**2 * RBF(1.0)) for c in (1.0, scale)]
    intervals = [
        bound(posterior, np.array([[0.3], [5.0]]), norm=4.0, method=method)
        for posterior in posteriors
        for method in ("exact", "chernoff")
    ]
    np.testing.assert_allclose(scale * np.asarray(intervals[:2]), intervals[2:], rtol=1e-7)


def test_the_norm_of_the_estimate_is_that_of_its_expansion():
    posterior = fitted(NOISES["normal"], trend="constant")
    X, dual = posterior.smoother.places, posterior.smoother.dual[:, 0]
    assert rkhs_norm(posterior) == pytest.approx(np.sqrt(dual @ KERNEL(X, X) @ dual), rel=1e-10)


def test_the_norm_of_the_interpolant_approaches_the_norm_of_f_from_below():
    norms = [
        interpolant_norm(KERNEL, X, truth(X)) for X in (np.linspace(-2, 2, n)[:, None] for n in (2, 5, 9))
    ]
    assert np.all(np.diff(norms) > 0)
    assert norms[-1] <= NORM
    assert interpolant_norm(KERNEL, CENTERS, truth(CENTERS)) == pytest.approx(NORM, rel=1e-9)
    dense = np.linspace(-2, 2, 300)[:, None]
    assert interpolant_norm(KERNEL, dense, truth(dense)) <= NORM


@pytest.mark.parametrize("law", NOISES)
@pytest.mark.parametrize("trend", [None, "constant"])
def test_the_lower_bound_of_the_norm_holds(law, trend):
    lowest = [norm_lower_bound(fitted(NOISES[law], seed=seed, trend=trend), 0.8) for seed in range(25)]
    assert np.mean(np.asarray(lowest) > NORM) <= 0.2


def test_the_lower_bound_of_the_norm_finds_the_quantile_of_the_noise():
    # |S M| of pure noise must stay below |mu| - lower bound with the stated confidence, and be near it when normal.
    X = np.array([[0.0], [0.0], [0.7], [2.0]])
    scale = np.array([1.0, 2.0, 1.0, 0.5])
    lengths = {}
    for law, noise in NOISES.items():
        big = fit(X, np.full(4, 1e3), noise, noise_scale=scale)
        quantile = rkhs_norm(big) - norm_lower_bound(big, 0.9)
        smoother = big.smoother
        M = noise.rvs((4000, 4), random_state=np.random.default_rng(0)) - noise.mean()
        means = smoother.samples.means((M * scale).T)
        dual = smoother.inverse @ means
        K = KERNEL(smoother.places, smoother.places)
        lengths[law] = np.mean(np.sqrt(np.sum(dual * (K @ dual), axis=0)) > quantile)
    assert lengths["normal"] == pytest.approx(0.1, abs=0.02)
    assert lengths["gamma"] <= 0.1
    assert lengths["uniform"] <= 0.1


def test_a_norm_that_the_data_contradict_is_warned_of():
    posterior = fitted(stats.norm(scale=0.01), n=8)
    with pytest.warns(NormWarning, match="contradicted by the data"):
        bound(posterior, WHERE, norm=0.1)
    bound(posterior, WHERE, norm=NORM)


def test_noise_without_fourth_moment_still_bounds_the_norm():
    posterior = fit([[0.0]], [1e4], stats.t(3), RBF(1.0))
    assert 0 < norm_lower_bound(posterior, 0.9) < rkhs_norm(posterior)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": -1.0}, "norm must be"),
        ({"norm": np.nan}, "norm must be"),
        ({"norm": 1.0, "confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"norm": 1.0, "confidence": 0.0}, "confidence must lie strictly between 0 and 1"),
        ({"norm": 1.0, "method": "magic"}, "method must be one of 'exact'"),
        ({"norm": 1.0, "side": "left"}, "side must be one of"),
        ({"norm": 1.0, "subgaussian_constant": -1.0}, "subgaussian_constant must be"),
        ({"norm": 1.0, "method": "subgaussian"}, "give the constant as subgaussian_constant"),
        ({"norm": 1.0, "method": "fiedler2021"}, "give the constant as subgaussian_constant"),
        ({"norm": 1.0, "method": "hoeffding"}, "needs bounded noise"),
        ({"norm": 1.0, "method": "gaussian"}, "needs normal noise"),
    ],
)
def test_bad_requests_are_named(options, message):
    posterior = fit([[0.0]], [0.5], NOISES["gamma"], RBF(1.0))
    with pytest.raises(ValueError, match=message):
        bound(posterior, np.zeros((1, 1)), **options)


def test_bounds_that_do_not_apply_are_refused():
    X, y = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
    heavy = fit(X, y, stats.t(3), RBF(1.0))
    with pytest.raises(ValueError, match="exponential moments"):
        bound(heavy, X, norm=3.0, method="chernoff")
    drifting = fit(X, y, kernel=RBF(1.0), trend="constant")
    with pytest.raises(ValueError, match="not proven for a trend"):
        bound(drifting, X, norm=3.0, method="abbasi-yadkori")
    correlated = fit(X, y, kernel=RBF(1.0), noise_scale=[[1.0, 0.0], [0.5, 1.0]])
    with pytest.raises(ValueError, match="independent noise"):
        bound(correlated, X, norm=3.0, method="abbasi-yadkori")
    lower, upper = bound(correlated, X, norm=3.0)
    assert np.all(lower < upper)
    with pytest.raises(ValueError, match="shape"):
        interpolant_norm(RBF(1.0), X, [1.0])


def test_mixtures_and_other_kernels_are_served():
    noise = Mixture(["norm(0, 0.1)", "norm(0, 1)"], [0.9, 0.1])
    X = np.random.default_rng(0).normal(size=(8, 2))
    posterior = fit(X, X[:, 0], noise, Matern(1.0, nu=1.5))
    for method in ("exact", "chernoff", "cantelli"):
        lower, upper = bound(posterior, X, norm=5.0, method=method)
        assert np.all(lower < upper)
    lower, upper = bound(posterior, X, norm=5.0, method="subgaussian", subgaussian_constant=1.0)
    assert np.all(lower < upper)
