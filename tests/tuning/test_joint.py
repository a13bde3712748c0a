"""The joint model of kernel, noise level and transform against dense formulas and differences."""

import numpy as np
import pytest
from scipy import stats

from wienerkernel import RBF, WienerKernelRegressor, load
from wienerkernel.noise.family import Family
from wienerkernel.noise.level import BOUND, PRIOR_STD, Level, features, level_nodes
from wienerkernel.transform import BoxCox, YeoJohnson
from wienerkernel.tuning.data import Data, Parameters
from wienerkernel.tuning.joint import (
    SHARES,
    JointLikelihood,
    averaged_level,
    fisher_information,
    fit_joint,
    level_covariance,
)
from wienerkernel.tuning.search_box import NormalPrior, search_box


def problem(trend="constant", transform=None, seed=0):
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.uniform(0, 3, (12, 2)), rng.integers(1, 4, 12), axis=0)
    y = np.exp(np.sin(X[:, 0]) + 0.3 * rng.normal(size=len(X)))[:, None]
    data = Data(X, y, rng.uniform(0.5, 2, len(X)), None, trend)
    phi, _ = features(RBF([1.0, 1.0]), data.samples.places)
    transform = None if transform is None else transform.for_data(y)
    parameters = Parameters(2.0 * RBF([1.0, 1.5]), Family("norm"))
    joint = JointLikelihood(data, parameters, phi, transform, NormalPrior(np.zeros(4), np.eye(4)))
    values = np.concatenate([0.2 * rng.normal(size=3), [-1.0], 0.3 * rng.normal(size=phi.shape[1])])
    return joint, values if transform is None else np.append(values, 0.4)


def dense(joint, values):
    """Covariance, trend and transformed responses of all samples, one by one."""
    data, samples = joint.data, joint.data.samples
    scale = data.noise_scale * joint.scale_at(values)[samples.index]
    noise = np.exp(2 * values[joint.parameters.n_kernel]) * scale**2
    covariance = joint.parameters.kernel_at(values)(data.X, data.X) + np.diag(noise)
    return covariance, np.ones((len(data.y), 1)), joint.data_at(values).y[:, 0], noise


@pytest.mark.parametrize("transform", [None, BoxCox(), YeoJohnson()], ids=["none", "box-cox", "yeo-johnson"])
@pytest.mark.parametrize("trend", [None, "constant", "linear"])
def test_the_gradient_is_that_of_the_value(trend, transform):
    joint, values = problem(trend, transform)
    _, gradient = joint(values)
    step = 1e-5
    differences = [
        (joint(values + step * e)[0] - joint(values - step * e)[0]) / (2 * step) for e in np.eye(len(values))
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-6)


def test_the_value_is_the_density_with_the_trend_integrated_out():
    joint, values = problem("constant", BoxCox())
    covariance, H, z, _ = dense(joint, values)
    inverse = np.linalg.inv(covariance)
    Q = inverse - inverse @ H @ np.linalg.inv(H.T @ inverse @ H) @ H.T @ inverse
    log_density = -0.5 * (
        np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(H.T @ inverse @ H)[1] + z @ Q @ z
    )
    log_density -= 0.5 * len(z) * np.log(2 * np.pi)
    log_density += np.sum(joint.transform_at(values).log_derivative(joint.data.y))
    weights, shared = values[joint.level], values[: joint.parameters.n_kernel + 1]
    # the exponent has the prior N(1, 0.5^2)
    priors = -0.5 * (weights @ weights + shared @ shared) - 2 * (values[-1] - 1) ** 2
    assert joint(values)[0] == pytest.approx(log_density + priors, rel=1e-11)


def test_few_samples_do_not_make_the_response_logarithmic():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (400, 1))
    y = np.exp(np.sin(X[:, 0]) + 0.1 * rng.normal(size=400))
    normal = 10 + np.sin(X[:, 0]) + 0.5 * rng.normal(size=400)  # hardly any difference from its logarithm
    assert WienerKernelRegressor(noise="auto").fit(X, y).tuning_result_.transform.lam < 0.1
    exponents = [
        WienerKernelRegressor(noise="auto")
        .fit(X[k : k + 25], normal[k : k + 25])
        .tuning_result_.transform.lam
        for k in range(0, 400, 25)
    ]
    assert np.mean(np.array(exponents) > 0.5) > 0.9


def test_the_information_about_the_noise_is_fishers():
    joint, values = problem()
    covariance, H, _, noise = dense(joint, values)
    inverse = np.linalg.inv(covariance)
    Q = inverse - inverse @ H @ np.linalg.inv(H.T @ inverse @ H) @ H.T @ inverse
    slope = (1 - np.tanh(joint.phi @ values[joint.level] / BOUND) ** 2)[:, None] * joint.phi
    J = np.column_stack([np.ones(len(noise)), slope[joint.data.samples.index]])  # of log s at every sample
    expected = J.T @ (2 * np.outer(noise, noise) * Q**2) @ J
    np.testing.assert_allclose(fisher_information(joint, values), expected, rtol=1e-9)


def test_the_level_is_as_uncertain_as_the_posterior_of_all_parameters_says():
    """Two parameters, integrated on a grid: a length scale that is hardly known makes the noise less certain."""
    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(0, 6, (25, 1)), axis=0)
    y = (np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=25))[:, None]
    data, parameters = Data(X, y, np.ones(25), None, "constant"), Parameters(RBF(0.7), Family("norm"))
    prior = NormalPrior(np.zeros(2), np.eye(2) / 9)
    joint = JointLikelihood(data, parameters, np.zeros((25, 0)), None, prior)
    lengths, stds = np.linspace(-3, 2, 60), np.linspace(-2.5, 1.5, 80)
    heights = np.array([[joint(np.array([a, b]))[0] for b in stds] for a in lengths])
    a, b = np.unravel_index(np.argmax(heights), heights.shape)
    mode, bounds = np.array([lengths[a], stds[b]]), [(-5.0, 5.0), (-5.0, 5.0)]
    chances = np.exp(heights - heights.max()).sum(axis=0)
    mean = chances @ stds / chances.sum()
    std = np.sqrt(chances @ (stds - mean) ** 2 / chances.sum())
    assert np.sqrt(level_covariance(joint, mode, bounds)[0, 0]) == pytest.approx(std, rel=0.1)
    known = level_covariance(joint, mode, [(mode[0], mode[0]), (-5.0, 5.0)])[0, 0]
    assert known == pytest.approx(1 / (fisher_information(joint, mode)[0, 0] + 1 / 9), rel=1e-6)
    assert known < level_covariance(joint, mode, bounds)[0, 0]


def test_the_posterior_of_the_level_is_nowhere_wider_than_its_prior():
    joint, values = problem()
    bounds = [(-20.0, 20.0)] * len(values)
    for far in (values, values + 3.0, values - 3.0):
        sizes = np.linalg.eigvalsh(level_covariance(joint, far, bounds))
        assert 0 < sizes.min() <= sizes.max() <= 1 + 1e-9


def test_the_prior_of_the_level_is_averaged_over_by_its_evidence():
    """Weights with a normal likelihood: all integrals are values of normal densities."""
    F, observed = np.diag([0.5, 4.0]) + 0.3, np.array([1.5, -1.0])
    noise, at = np.linalg.inv(F), np.zeros(2)
    constant = stats.multivariate_normal(at, noise).logpdf(observed)
    exact = np.array(
        [stats.multivariate_normal(at, noise + s**2 * np.eye(2)).logpdf(observed) - constant for s in SHARES]
    )
    at_one = np.linalg.solve(F + np.eye(2), F @ observed)
    gain, share, weights = averaged_level(F, at_one, exact[-1])
    assert gain == pytest.approx(np.log(np.mean(np.exp(exact))), rel=1e-12)
    probabilities = np.exp([0.0, *exact]) / np.sum(np.exp([0.0, *exact]))
    assert share == pytest.approx(probabilities[1:] @ SHARES, rel=1e-12)
    np.testing.assert_allclose(weights, np.linalg.solve(F + np.eye(2) / share**2, F @ observed), rtol=1e-12)


def test_a_level_without_need_hardly_varies():
    """At 25 samples of constant noise, where a varying level has hardly lower evidence."""
    spread = []
    for seed in range(6):
        X, y = noisy(lambda x: 0.3 + 0 * x, 25, seed)
        level = fit_joint(Data(X, y[:, None], np.ones(len(X)), None, "constant"), None, None).level
        spread.append(np.log(level(X)).std())
    assert np.mean(spread) < 0.1


def test_features_reproduce_the_kernel_and_extend_to_new_inputs():
    X = np.random.default_rng(0).uniform(0, 3, (60, 1))
    kernel = RBF(1.0)
    phi, pivots = features(kernel, X)
    np.testing.assert_allclose(phi @ phi.T, PRIOR_STD**2 * kernel(X), atol=2e-2)
    factor = np.linalg.cholesky(kernel(X[pivots]) + 1e-10 * np.eye(len(pivots)))
    level = Level(kernel, X[pivots], factor, np.zeros(len(pivots)), np.eye(1 + len(pivots)))
    np.testing.assert_allclose(level.features(X), phi, atol=1e-4)
    np.testing.assert_allclose(level.log_variance(X), 1 + PRIOR_STD**2, atol=2e-2)


def test_a_constant_level_is_uncertain_as_well(monkeypatch, tmp_path):
    """Normal samples alone: the variance of log std is 1 / 2(n - 1), and observations are nearly Student's."""
    monkeypatch.setattr("wienerkernel.tuning.joint.LEAST", 2.0)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (30, 1)), rng.normal(size=30)
    level = fit_joint(Data(X, y[:, None], np.ones(30), None, "constant"), None, None).level
    assert not level.varies
    np.testing.assert_array_equal(level(X), 1.0)
    assert 1 / 58 <= level.log_variance(X[:1])[0] < 2 / 58
    model = WienerKernelRegressor(noise="auto").fit(X, y)
    np.testing.assert_array_equal(model.predict_noise_scale(X), 1.0)
    law = model.predict_distribution([[0.5]], of="observation")
    assert law.kurtosis()[0] == pytest.approx(6 / (29 - 4), rel=0.5)
    np.testing.assert_allclose(law.var(), model.uncertainty([[0.5]]).total, rtol=1e-12)
    model.save(tmp_path / "model.wk")
    loaded = load(tmp_path / "model.wk")
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))


def test_nodes_have_the_moments_of_the_normal_law():
    nodes, probabilities = level_nodes(np.array([0.0, 0.25]))
    assert probabilities.sum() == pytest.approx(1)
    np.testing.assert_allclose(probabilities @ np.exp(nodes), np.exp([0.0, 0.125]), rtol=1e-7)
    np.testing.assert_allclose(probabilities @ nodes**4, [0.0, 3 * 0.25**2], rtol=1e-12)


def test_a_prior_shrinks_length_scales_together():
    rng = np.random.default_rng(0)
    data = Data(rng.normal(size=(30, 3)), rng.normal(size=(30, 1)), np.ones(30))
    box = search_box(data, Parameters(1.0 * RBF([1.0, 1.0, 1.0]), Family("norm")))
    values = box.start + 0.3 * rng.normal(size=len(box.start))
    _, gradient = box.log_prior(values)
    step = 1e-6
    differences = [
        (box.log_prior(values + step * e)[0] - box.log_prior(values - step * e)[0]) / (2 * step)
        for e in np.eye(len(values))
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-7)
    apart = box.log_prior.center.copy()
    apart[1] += 1.0
    together = box.log_prior.center.copy()
    together[1:4] += 1.0
    assert box.log_prior(apart)[0] < box.log_prior(together)[0] < box.log_prior(box.log_prior.center)[0]


def noisy(level, n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 6, (n, 1)), axis=0)
    return X, np.sin(X[:, 0]) + level(X[:, 0]) * rng.normal(size=n)


def test_a_varying_level_is_found_and_a_constant_one_is_kept():
    X, y = noisy(lambda x: 0.05 * (1 + x))
    found = fit_joint(Data(X, y[:, None], np.ones(len(X)), None, "constant"), None, None)
    assert found.level.varies
    ratio = found.noise.std() * found.level(X) / (0.05 * (1 + X[:, 0]))
    assert np.sqrt(np.mean(np.log(ratio) ** 2)) < 0.3
    X, y = noisy(lambda x: 0.2 + 0 * x)
    constant = fit_joint(Data(X, y[:, None], np.ones(len(X)), None, "constant"), None, None)
    assert constant.level_evidence < found.level_evidence
    assert constant.level_evidence < 0


def test_a_learned_level_widens_intervals_where_the_noise_is_large():
    X, y = noisy(lambda x: 0.05 * (1 + x))
    model = WienerKernelRegressor(noise_level="input", trend="constant").fit(X, y)
    low, high = model.predict_interval([[0.5], [5.5]]).T
    assert 2 < (high - low)[1] / (high - low)[0] < 12
    assert model.score_report().coverage(0.9) == pytest.approx(0.9, abs=0.05)
    parts = model.uncertainty([[0.5], [5.5]])
    law = model.predict_distribution([[0.5], [5.5]], of="observation")
    np.testing.assert_allclose(law.var(), parts.total, rtol=1e-12)
    draws = model.sample_y([[0.5], [5.5]], 4000, of="observation", random_state=1)
    np.testing.assert_allclose(draws.std(axis=1), law.std(), rtol=0.06)


def test_a_level_can_follow_the_mean():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (150, 2))
    mean = 3 + 2 * np.sin(X[:, 0])
    model = WienerKernelRegressor(noise_level="mean", trend="constant").fit(
        X, mean + 0.1 * mean * rng.normal(size=150)
    )
    scale = model.noise_.std() * model.predict_noise_scale(X)
    assert np.sqrt(np.mean(np.log(scale / (0.1 * mean)) ** 2)) < 0.35
    # inputs of equal mean have equal levels
    fitted = model.posterior_.level.inputs(X)[:, 0]
    order = np.argsort(fitted)
    assert np.all(np.abs(np.diff(np.log(scale[order]))) < 2 * np.diff(fitted[order]) + 1e-9)
    assert model.tuning_result_.level_evidence > 3
