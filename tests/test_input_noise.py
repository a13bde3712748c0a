"""Noise on the inputs: to first order it is further noise of the samples, of its own law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.noise.family import noise_model
from wienerkernel.posterior.input_noise import Linearization, as_input_noise
from wienerkernel.smoother.leave_one_out import leave_one_out
from wienerkernel.transform import BoxCox
from wienerkernel.tuning.data import Data, Parameters
from wienerkernel.tuning.joint import JointLikelihood
from wienerkernel.tuning.likelihood import Likelihood
from wienerkernel.tuning.loo_score import LeaveOneOutScore

X = np.array([[0.0], [0.7], [0.7], [1.9], [3.0]])
Y = np.array([0.1, 0.8, 0.6, 0.9, 0.2])
QUERY = np.array([[0.3], [0.7], [2.4], [5.0]])
SCALE = np.array([1.0, 0.5, 0.5, 2.0, 1.0])
SLOPES = np.array([0.9, 0.4, 0.4, -0.8, -1.1])


def two_terms(law, slopes, ridge=None):
    """A model whose samples have the noise SCALE M and slopes E, given rather than found."""
    noise = as_input_noise(law, 1)
    linear = Linearization(noise, slopes[:, None], np.zeros(len(slopes)))
    base = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.3)", trend=None, tuning=None, ridge=ridge).fit(
        X, Y, noise_scale=SCALE
    )
    samples = base.posterior_.smoother.samples
    samples = replace(samples, row_regularizer=linear.added_to(samples.row_regularizer))
    old = base.posterior_.smoother
    smoother = type(old)(old.kernel, samples, old.targets)
    base.posterior_ = replace(base.posterior_, smoother=smoother, input_noise=linear)
    return base


class TestTwoNormalTerms:
    """Normal noise M and E together are normal noise of a larger scale."""

    @pytest.fixture
    def models(self):
        scale = np.sqrt(SCALE**2 + (0.5 * SLOPES / 0.3) ** 2)
        one = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.3)", trend=None, tuning=None).fit(
            X, Y, noise_scale=scale
        )
        return two_terms("norm(0, 0.5)", SLOPES), one

    def test_the_parts_add_up(self, models):
        both, one = (model.uncertainty(QUERY) for model in models)
        assert np.all(both.input > 0)
        assert not one.input.any()
        assert_allclose(both.estimate, one.noise, rtol=1e-12)
        assert_allclose(both.model, one.model, rtol=1e-9, atol=1e-14)
        assert_allclose(both.epistemic, one.epistemic, rtol=1e-12)
        assert_allclose(both.total, one.total, rtol=1e-12)

    @pytest.mark.parametrize("of", ["estimate", "function", "observation"])
    def test_the_laws_are_equal(self, models, of):
        both, one = (model.predict_distribution(QUERY, of=of) for model in models)
        assert_allclose(both.mean(), one.mean(), rtol=1e-12)
        assert_allclose(both.ppf(0.9), one.ppf(0.9), rtol=1e-10)
        assert_allclose(both.var(), one.var(), rtol=1e-12)

    def test_covariances_and_gradients_are_equal(self, models):
        both, one = models
        assert_allclose(
            both.predict(QUERY, return_cov=True)[1], one.predict(QUERY, return_cov=True)[1], rtol=1e-9
        )
        assert_allclose(both.predict_gradient(QUERY).noise, one.predict_gradient(QUERY).noise, rtol=1e-9)
        assert_allclose(both.predict_gradient(QUERY).model, one.predict_gradient(QUERY).model, rtol=1e-9)

    def test_leave_one_out_is_equal(self, models):
        both, one = (model.loo() for model in models)
        assert_allclose(both.residual, one.residual, rtol=1e-12)
        assert_allclose(both.estimate, one.noise, rtol=1e-12)
        assert_allclose(both.aleatoric, one.aleatoric, rtol=1e-12)
        assert_allclose(both.total, one.total, rtol=1e-12)


def test_the_estimate_has_the_cumulants_of_both_laws():
    model = two_terms("expon()", SLOPES)
    samples = model.posterior_.smoother.samples
    a = samples.per_sample(model.posterior_.smoother.weights(QUERY))
    Y = model.predict_distribution(QUERY)
    assert_allclose(Y.cumulant(3), 2 * (a * SLOPES) ** 3 @ np.ones(len(X)), rtol=1e-12)
    assert_allclose(Y.mean(), model.predict(QUERY), rtol=1e-12)


def test_draws_have_the_law_of_both_terms():
    model = two_terms("expon()", SLOPES)
    Y = model.predict_distribution(QUERY[:2], of="observation")
    draws = Y.rvs(40_000, random_state=0)
    assert_allclose(draws.mean(axis=0), Y.mean(), atol=5 * Y.std().max() / 200)
    assert_allclose(np.mean(draws <= Y.ppf(0.2), axis=0), 0.2, atol=0.01)


class TestObjectivesOfTuning:
    """With noise on the inputs, gradients still are derivatives, and the objectives see its variance."""

    @staticmethod
    def data(ridge=None, transform=False):
        generator = np.random.default_rng(2)
        n = 14
        inputs = generator.uniform(0, 5, (n, 1))
        inputs[3] = inputs[4] = inputs[5]
        scale = generator.uniform(0.5, 2, n)
        scale[4] = scale[5]
        slopes = np.cos(inputs[:, 0])[:, None]
        linear = Linearization(as_input_noise("gamma(2, scale=0.2)", 1), slopes, 0.1 * np.sin(inputs[:, 0]))
        y = np.exp(0.3 * generator.normal(size=(n, 1))) if transform else generator.normal(size=(n, 1))
        return Data(inputs, y, scale, ridge, "constant", linear)

    @staticmethod
    def check(objective, values, rtol=2e-6):
        _, gradient = objective(values)
        steps = 1e-5 * np.eye(len(values))
        expected = [(objective(values + step)[0] - objective(values - step)[0]) / 2e-5 for step in steps]
        assert_allclose(gradient, expected, rtol=rtol, atol=2e-6)

    def test_likelihood(self):
        parameters = Parameters(2.0 * RBF(1.0), noise_model("gumbel_r"))
        objective = Likelihood(self.data(), parameters)
        self.check(objective, np.array([0.3, 0.1, -0.5]))

    def test_likelihood_is_that_of_a_gaussian_process_with_the_whole_noise(self):
        data = self.data()
        parameters = Parameters(2.0 * RBF(1.0), noise_model(None))
        values = np.array([0.3, 0.1, -0.5])
        covariance = np.exp(0.3) * RBF(np.exp(0.1))(data.X)
        covariance += np.diag(np.exp(-1.0) * data.noise_scale**2 + 0.08 * np.cos(data.X[:, 0]) ** 2)
        y = data.y[:, 0] - 0.1 * np.sin(data.X[:, 0])
        H = np.linalg.solve(covariance, np.ones(len(y)))
        y = y - H @ y / H.sum()
        expected = stats.multivariate_normal(cov=covariance).logpdf(y)
        assert_allclose(Likelihood(data, parameters).value(values), expected, rtol=1e-10)

    @pytest.mark.parametrize("ridge", [None, 0.4])
    def test_leave_one_out_score(self, ridge):
        parameters = Parameters(2.0 * RBF(1.0), noise_model("gamma"))
        objective = LeaveOneOutScore(self.data(ridge), parameters)
        self.check(objective, np.array([0.3, 0.1, -0.5, 0.7]), rtol=2e-5)

    def test_leave_one_out_score_of_normal_noise_is_exact(self):
        data, parameters = self.data(), Parameters(2.0 * RBF(1.0), noise_model(None))
        values = np.array([0.3, 0.1, -0.5])
        loo = LeaveOneOutScore(data, parameters)
        smoother = loo.smoother(values)
        residual, *parts = leave_one_out(smoother, data.input_noise.variance)
        variance = (
            parts[0] + np.exp(-1.0) * (parts[1] + data.noise_scale**2) + parts[2] + data.input_noise.variance
        )
        expected = stats.norm(0, np.sqrt(variance)).logpdf(residual[:, 0]).sum()
        assert_allclose(loo.value(values), expected, rtol=1e-10)

    def test_joint_likelihood_of_a_level_and_a_transform(self):
        data = self.data(transform=True)
        parameters = Parameters(2.0 * RBF(1.0), noise_model(None))
        places = data.samples.places
        phi = np.stack([np.sin(places[:, 0]), np.cos(places[:, 0])], axis=1)
        objective = JointLikelihood(
            data, parameters, phi, BoxCox(), lambda values: (0.0, np.zeros(len(values)))
        )
        self.check(objective, np.array([0.3, 0.1, -0.5, 0.4, -0.3, 0.6]), rtol=1e-5)
