"""The joint model of kernel, noise level and transform against dense formulas and differences."""

import numpy as np
import pytest

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.noise.family import Family
from wienerkernel.noise.level import BOUND, PRIOR_STD, Level, features, level_nodes
from wienerkernel.transform import BoxCox, YeoJohnson
from wienerkernel.tuning.data import Data, Parameters
from wienerkernel.tuning.joint import JointLikelihood, fit_joint
from wienerkernel.tuning.search_box import search_box


def problem(trend="constant", transform=None, seed=0):
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.uniform(0, 3, (12, 2)), rng.integers(1, 4, 12), axis=0)
    y = np.exp(np.sin(X[:, 0]) + 0.3 * rng.normal(size=len(X)))[:, None]
    data = Data(X, y, rng.uniform(0.5, 2, len(X)), None, trend)
    phi, _ = features(RBF([1.0, 1.0]), data.samples.places)
    transform = None if transform is None else transform.for_data(y)
    parameters = Parameters(2.0 * RBF([1.0, 1.5]), Family("norm"))
    joint = JointLikelihood(data, parameters, phi, transform, lambda v: (-0.5 * float(v @ v), -v))
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
    assert joint(values)[0] == pytest.approx(
        log_density - 0.5 * (weights @ weights + shared @ shared), rel=1e-11
    )


def test_the_information_of_the_level_is_fishers():
    joint, values = problem()
    covariance, H, _, noise = dense(joint, values)
    inverse = np.linalg.inv(covariance)
    Q = inverse - inverse @ H @ np.linalg.inv(H.T @ inverse @ H) @ H.T @ inverse
    slope = (1 - np.tanh(joint.phi @ values[joint.level] / BOUND) ** 2)[:, None] * joint.phi
    J = slope[joint.data.samples.index]  # of log s at every sample
    expected = np.eye(J.shape[1]) + J.T @ (2 * np.outer(noise, noise) * Q**2) @ J
    np.testing.assert_allclose(joint.level_information(values), expected, rtol=1e-9)


def test_features_reproduce_the_kernel_and_extend_to_new_inputs():
    X = np.random.default_rng(0).uniform(0, 3, (60, 1))
    kernel = RBF(1.0)
    phi, pivots = features(kernel, X)
    np.testing.assert_allclose(phi @ phi.T, PRIOR_STD**2 * kernel(X), atol=2e-2)
    factor = np.linalg.cholesky(kernel(X[pivots]) + 1e-10 * np.eye(len(pivots)))
    level = Level(kernel, X[pivots], factor, np.zeros(len(pivots)), np.eye(len(pivots)))
    np.testing.assert_allclose(level.features(X), phi, atol=1e-4)
    np.testing.assert_allclose(level.log_variance(X), PRIOR_STD**2, atol=2e-2)


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
    apart = box.center.copy()
    apart[1] += 1.0
    together = box.center.copy()
    together[1:4] += 1.0
    assert box.log_prior(apart)[0] < box.log_prior(together)[0] < box.log_prior(box.center)[0]


def noisy(level, n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 6, (n, 1)), axis=0)
    return X, np.sin(X[:, 0]) + level(X[:, 0]) * rng.normal(size=n)


def test_a_varying_level_is_found_and_a_constant_one_is_kept():
    X, y = noisy(lambda x: 0.05 * (1 + x))
    found = fit_joint(Data(X, y[:, None], np.ones(len(X)), None, "constant"), None, None)
    assert found.level is not None
    ratio = found.std * found.level(X) / (0.05 * (1 + X[:, 0]))
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
