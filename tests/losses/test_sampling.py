"""Draws from the posterior: against quadrature in one dimension, and known autocorrelations."""

import warnings

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.exceptions import ConvergenceWarning

from wienerkernel import RBF, Family, Mixture, WienerKernelRegressor, as_noise
from wienerkernel.losses.coordinates import Coordinates, Observed
from wienerkernel.losses.density import NoiseDensity
from wienerkernel.losses.propagation import propagate
from wienerkernel.losses.sampling import _annealed, _smoothed, effective_sample_size, posterior_draws, r_hat
from wienerkernel.losses.tuning import _Evidence, finds_shapes
from wienerkernel.noise.family import KnownLaw
from wienerkernel.tuning.data import Data, Parameters
from wienerkernel.tuning.search_box import search_box


def autoregression(rho, n, chains, seed=0):
    rng = np.random.default_rng(seed)
    x = np.empty((n, chains, 1))
    x[0] = rng.standard_normal((chains, 1))
    for t in range(1, n):
        x[t] = rho * x[t - 1] + np.sqrt(1 - rho**2) * rng.standard_normal((chains, 1))
    return x


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(rho):
    x = autoregression(rho, 2000, 16)
    assert abs(effective_sample_size(x) / (x.size * (1 - rho) / (1 + rho)) - 1) < 0.15
    assert r_hat(x) < 1.01


def test_r_hat_sees_chains_that_disagree():
    x = autoregression(0.5, 1000, 8)
    x[:, 4:] += 2
    assert r_hat(x) > 1.2


def posterior_at_one_place(law, y, variance):
    """Distribution function of f at one place, by quadrature on pieces between the samples."""
    f = np.unique(
        np.concatenate(
            [
                np.linspace(-12, 12, 4001),
                *[
                    value - law.support()[0] - np.geomspace(1e-9, 5, 2000)
                    for value in y
                    if np.isfinite(law.support()[0])
                ],
            ]
        )
    )
    middle = (f[1:] + f[:-1]) / 2
    with np.errstate(divide="ignore"):
        log_p = sum(law.logpdf(value - middle) for value in y) - 0.5 * middle**2 / variance
    p = np.exp(log_p - log_p.max()) * np.diff(f)
    return f, np.concatenate([[0.0], np.cumsum(p) / p.sum()])


@pytest.mark.parametrize(
    ("law", "y", "method"),
    [
        (stats.t(4), [0.3, 1.0, -0.5], "slice"),
        (stats.laplace(), [0.3, 2.0], "slice"),
        (stats.uniform(-1, 2), [0.4, 1.6], "slice"),
        (stats.lognorm(1.0), [0.4, 2.0, 3.0], "slice"),
        (stats.gamma(0.25, scale=2), [0.4, 1.0], "annealed"),
    ],
)
def test_one_place_against_quadrature(law, y, method):
    observed = Observed.of(np.zeros((len(y), 1)), np.array(y), np.ones(len(y)))
    found = propagate(Coordinates.at(4.0 * RBF(1.0), observed.places), observed, as_noise(law))
    draws = posterior_draws(found, np.random.default_rng(0))
    assert draws.method == method
    assert draws.certified
    f, cdf = posterior_at_one_place(law, y, 4.0)
    values = 2.0 * np.sort(np.abs(found.coordinates.phi[0, 0]) / 2 * draws.weights[:, 0])
    u = np.interp(values, f, cdf)
    assert np.max(np.abs(u - (np.arange(len(u)) + 0.5) / len(u))) < 0.05  # Kolmogorov-Smirnov distance


def test_tails_that_propagation_misses():
    """Under a mixture of normal laws the posterior of one value is one, too; its tails need chains that leave them."""
    p, stds, prior, y = np.array([0.8, 0.2]), np.array([0.22, 2.2]), 2.25, 0.2
    observed = Observed.of(np.zeros((1, 1)), np.array([y]), np.ones(1))
    noise = Mixture([f"norm(0, {std})" for std in stds], p)
    draws = posterior_draws(
        propagate(Coordinates.at(prior * RBF(1.0), observed.places), observed, noise),
        np.random.default_rng(0),
    )
    gain = prior / (prior + stds**2)
    share = p * stats.norm.pdf(y, 0, np.sqrt(prior + stds**2))
    share /= share.sum()
    mean = share @ (gain * y)
    std = np.sqrt(share @ (gain * stds**2 + (gain * y) ** 2) - mean**2)
    f = np.sqrt(prior) * draws.weights[:, 0]
    assert abs(f.mean() - mean) < 0.05 * std
    assert abs(f.std() / std - 1) < 0.1


def test_two_modes_are_found_by_annealing():
    """Two samples that exclude each other: half of the draws believe each."""
    law, y = Mixture(["norm(0, 0.05)", "norm(0, 30)"], [0.7, 0.3]), np.array([0.0, 4.0])
    observed = Observed.of(np.zeros((2, 1)), y, np.ones(2))
    found = propagate(Coordinates.at(9.0 * RBF(1.0), observed.places), observed, law)
    draws = _annealed(found, NoiseDensity.of(law), np.random.default_rng(0))
    f = 3.0 * draws.weights[:, 0]
    p = np.array([stats.norm.pdf(center, 0, 3) for center in y])
    share = np.mean(np.abs(f - y[0]) < 0.5), np.mean(np.abs(f - y[1]) < 0.5)
    assert abs(share[0] / sum(share) - p[0] / p.sum()) < 0.1
    assert sum(share) > 0.8


def test_table_of_the_smoothed_density():
    density = NoiseDensity.of(as_noise("gamma(0.25)"))
    smooth = _smoothed(density, 0.01)
    for z in (-0.03, 0.0, 0.005, 0.1, 2.0):
        exact = (
            integrate.quad(
                lambda t, z=z: 4 * stats.norm.pdf(z - t**4, 0, 0.01) * np.exp(-(t**4)),
                0,
                3,
                points=[0.05, 0.3, 0.5, 0.56, 1.18, 1.19, 1.2],
                limit=500,
                epsabs=0,
            )[0]
            / 3.6256099082219083
        )
        assert abs(smooth(np.array(z)) - np.log(exact)) < 1e-3


def test_bayes_behind_the_estimator():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, 30))[:, None]
    y = np.sin(X[:, 0]) + rng.standard_t(3, 30) * 0.3
    options = {"noise": "t(3, scale=0.3)", "tuning": None, "random_state": 0}
    model = WienerKernelRegressor(2.0 * RBF(1.5), inference="bayes", **options).fit(X, y)
    ep = WienerKernelRegressor(2.0 * RBF(1.5), inference="ep", **options).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.abs(mean - ep.predict(X)) < 0.2 * std)
    for of in ("function", "observation"):
        law = model.predict_distribution(X[:5], of=of)
        draws = law.rvs(4000, random_state=1)
        np.testing.assert_allclose(draws.mean(axis=0), law.mean(), atol=0.06)
        np.testing.assert_allclose(np.mean(draws < law.ppf(0.1), axis=0), 0.1, atol=0.03)
        np.testing.assert_allclose(law.cdf(law.ppf(0.7)), 0.7, atol=1e-9)
    parts = model.uncertainty(X)
    np.testing.assert_allclose(parts.epistemic, std**2)
    assert model.posterior_.draws.r_hat < 1.01
    assert model.posterior_.draws.effective > 2000
    again = WienerKernelRegressor(2.0 * RBF(1.5), inference="bayes", **options).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), mean)


def test_draws_that_disagree_are_told(monkeypatch):
    monkeypatch.setattr("wienerkernel.losses.sampling.PARTICLES", 8)
    monkeypatch.setattr("wienerkernel.losses.sampling.MOST_MOVES", 1)
    X = np.linspace(0, 6, 8)[:, None]
    y = np.sin(X[:, 0]) + np.random.default_rng(0).gamma(0.25, 2, 8)
    model = WienerKernelRegressor(
        2.0 * RBF(1.5), noise="gamma(0.25, scale=2)", inference="bayes", tuning=None, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="not certified: R-hat is"):
        model.fit(X, y)


def test_samples_that_bounded_noise_excludes_are_told(monkeypatch):
    """No function has a positive density: populations agree on one that is wrong."""
    for name, value in (("PARTICLES", 64), ("FACTOR", 0.1), ("MOST_MOVES", 3)):
        monkeypatch.setattr(f"wienerkernel.losses.sampling.{name}", value)
    observed = Observed.of(np.zeros((2, 1)), np.array([1.0, 9.0]), np.ones(2))
    found = propagate(Coordinates.at(RBF(1.0), observed.places), observed, as_noise("beta(0.5, 0.5)"))
    draws = posterior_draws(found, np.random.default_rng(0))
    assert draws.r_hat == np.inf
    assert not draws.certified


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        ("t", True),
        ("lognorm", True),
        ("norm", False),
        ("gamma", False),
        ("t(3)", False),
        (None, False),
        ("auto", False),
    ],
)
def test_evidence_finds_shapes_unless_a_member_has_a_pole(noise, expected):
    assert finds_shapes(noise) is expected


def test_evidence_finds_the_shape_of_the_noise():
    """Without the leave-one-out score of the shape, which the linear fit maximizes, and without a warning about it."""
    rng = np.random.default_rng(0)
    X = np.linspace(-3, 3, 80)[:, None]
    y = np.sin(X[:, 0]) + 0.2 * rng.standard_t(2.5, 80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WienerKernelRegressor(noise="t", inference="ep").fit(X, y)
    assert 2.1 < model.noise_.shapes[0] < 6
    observed, coordinates = model.posterior_.observed, model.posterior_.coordinates
    for df in (2.1, 20.0):
        law = as_noise(stats.t(df, scale=model.noise_.std() * np.sqrt((df - 2) / df)))
        assert propagate(coordinates, observed, law).log_evidence < model.tuning_result_.value
    with pytest.warns(ConvergenceWarning, match="noise.s ended at its lower bound"):
        WienerKernelRegressor(noise="lognorm", inference="ep").fit(X[::2], -y[::2])


@pytest.mark.parametrize("noise", ["gamma", "auto"])
def test_evidence_keeps_the_shape_of_noise_with_a_pole_or_learned_from_residuals(noise):
    rng = np.random.default_rng(1)
    X = np.linspace(-3, 3, 30)[:, None]
    y = np.sin(X[:, 0]) + 0.3 * rng.gamma(0.25, size=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        linear, model = (
            WienerKernelRegressor(noise=noise, inference=inference).fit(X, y) for inference in (None, "ep")
        )
    assert model.noise_.cumulants(3)[2] / model.noise_.std() ** 3 == pytest.approx(
        linear.noise_.cumulants(3)[2] / linear.noise_.std() ** 3
    )
    assert model.tuning_result_.value != linear.tuning_result_.value


def test_evidence_is_maximized_together_with_the_prior():
    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(-2, 2, 12))[:, None]
    y = np.sin(X[:, 0]) + 0.5 * rng.standard_t(3, 12)
    model = WienerKernelRegressor(noise="t(3)", inference="ep").fit(X, y)
    data = Data(X, y[:, None], np.ones(12), None, "constant")
    parameters = Parameters(model.kernel_, KnownLaw(model.noise_))
    theta = np.asarray(model.kernel_.theta)
    value, gradient = _Evidence(data, parameters)(theta)
    assert value == pytest.approx(model.tuning_result_.value, abs=1e-2)
    prior = search_box(data, parameters).log_prior(theta)[1]
    assert np.max(np.abs(gradient + prior)) < 0.1


def test_evidence_far_from_a_fixed_point_does_not_count():
    """Noise that is far too small for an outlier: propagation gets nowhere, and its evidence was 1e5."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(size=(150, 1)), axis=0)
    y = 100 * X[:, 0] + 60 * rng.standard_t(2.2, 150)
    data = Data(X, y[:, None], np.ones(150), None, "constant")
    evidence = _Evidence(data, Parameters(1.0 * RBF(1.0), Family("t")))
    good, _ = evidence(np.log([1e4, 3.0, 60.0, 3.0]))
    for length in np.exp([-2.41, -2.6, -2.9]):
        value, _ = evidence(np.log([2.2e6, length, 0.15, 2.1]))
        assert value < good
    assert evidence.best == good


def test_evidence_finds_the_length_scale_under_skewed_noise():
    """Both the kernel and the noise's parameters improve the evidence over the quasi-likelihood's."""
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(-5, 5, 40))[:, None]
    kernel = 4.0 * RBF(2.0)
    y = np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(40)) @ rng.standard_normal(40) + rng.lognormal(0, 1, 40)
    model = WienerKernelRegressor(4.0 * RBF(1.0), noise="lognorm", inference="ep", trend="constant").fit(X, y)
    found = model.tuning_result_
    start = WienerKernelRegressor(4.0 * RBF(1.0), noise="lognorm", trend="constant").fit(X, y)
    observed = Observed.of(X, y, np.ones(40))
    before = propagate(Coordinates.at(start.kernel_, observed.places, "constant"), observed, start.noise_)
    assert found.value > before.log_evidence
    assert model.posterior_.propagation.log_evidence == pytest.approx(found.value, abs=1e-3)
    assert set(found.parameters) == set(start.tuning_result_.parameters)
