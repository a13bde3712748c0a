"""Noise on the inputs: to first order it is further noise of the samples, of its own law."""

from __future__ import annotations

import importlib.util
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import untuned
from numpy.testing import assert_allclose
from scipy import stats

import wienerkernel
from wienerkernel import RBF, Linear, Matern, RandomInput, WienerKernelRegressor
from wienerkernel.evaluation.report.layout import page
from wienerkernel.evaluation.report.numbers import contents
from wienerkernel.fitting import PASSES
from wienerkernel.noise.family import noise_model
from wienerkernel.posterior.input_noise import Linearization, as_input_noise
from wienerkernel.smoother.leave_one_out import leave_one_out
from wienerkernel.transform import BoxCox
from wienerkernel.tuning.data import Data, Parameters
from wienerkernel.tuning.joint import JointLikelihood
from wienerkernel.tuning.likelihood import Likelihood
from wienerkernel.tuning.loo_score import LeaveOneOutScore
from wienerkernel.tuning.search_box import NormalPrior

X = np.array([[0.0], [0.7], [0.7], [1.9], [3.0]])
Y = np.array([0.1, 0.8, 0.6, 0.9, 0.2])
QUERY = np.array([[0.3], [0.7], [2.4], [5.0]])
SCALE = np.array([1.0, 0.5, 0.5, 2.0, 1.0])
SLOPES = np.array([0.9, 0.4, 0.4, -0.8, -1.1])


def two_terms(law, slopes, ridge=None):
    """A model whose samples have the noise SCALE M and slopes E, given rather than found."""
    noise = as_input_noise(law, 1)
    linear = Linearization(noise, slopes[:, None], np.zeros(len(slopes)))
    base = untuned(X, Y, RBF(1.0), noise="norm(0, 0.3)", trend=None, ridge=ridge, noise_scale=SCALE)
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
        one = untuned(X, Y, RBF(1.0), noise="norm(0, 0.3)", trend=None, noise_scale=scale)
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
    a = samples.per_sample(model.posterior_.smoother.evaluate(QUERY)[1])
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
        prior = NormalPrior(np.zeros(3), np.zeros((3, 3)))
        objective = JointLikelihood(data, parameters, phi, BoxCox(), prior)
        self.check(objective, np.array([0.3, 0.1, -0.5, 0.4, -0.3, 0.6]), rtol=1e-5)


def nigp(inputs, y, queries, scales, variance, noise, sigma, passes):
    """McHutchon and Rasmussen (2011) for the squared exponential, with the mean of the second-order term subtracted.

    The inputs have normal noise of covariance ``sigma``; returns mean and variance at the queries, and the gradients.
    """

    def k(a, b):
        return variance * np.exp(-0.5 * np.sum(((a[:, None] - b[None]) / scales) ** 2, axis=-1))

    lam = np.diag(scales**-2.0)
    R, y0, gradient = np.full(len(y), noise), y, np.zeros_like(inputs)
    for step in range(passes + 1):
        A = np.linalg.inv(k(inputs, inputs) + np.diag(R))
        alpha = A @ y0
        mean, cross = k(queries, inputs) @ alpha, k(queries, inputs)
        if step == passes:
            break
        away = (inputs[:, None] - inputs[None]) @ lam
        weighted = k(inputs, inputs) * alpha
        gradient = -np.einsum("ij,ijd->id", weighted, away)
        hessian = (
            np.einsum("ij,ijd,ije->ide", weighted, away, away) - weighted.sum(axis=1)[:, None, None] * lam
        )
        R = noise + np.einsum("id,de,ie->i", gradient, sigma, gradient)
        y0 = y - 0.5 * np.einsum("ide,de->i", hessian, sigma)
    return mean, variance - np.einsum("ij,jk,ik->i", cross, A, cross), gradient


class TestFit:
    SIGMA = np.array([[0.01, 0.004], [0.004, 0.02]])
    SCALES = np.array([1.0, 1.5])

    @staticmethod
    def data(n=40):
        generator = np.random.default_rng(1)
        inputs = generator.uniform(-2, 2, (n, 2))
        return inputs, np.sin(2 * inputs[:, 0]) * np.cos(inputs[:, 1]) + 0.1 * generator.normal(size=n)

    @pytest.mark.parametrize("diagonal", [True, False])
    def test_normal_noise_equals_the_published_method(self, diagonal):
        inputs, y = self.data()
        sigma = np.diag(np.diagonal(self.SIGMA)) if diagonal else self.SIGMA
        noise = ["norm(0, 0.1)", stats.norm(0, np.sqrt(0.02))] if diagonal else sigma
        queries = np.array([[0.0, 0.5], [1.0, -1.0], [3.0, 3.0]])
        model = WienerKernelRegressor(2.0 * RBF(self.SCALES), noise="norm(0, 0.1)", tuning=None, trend=None)
        model.fit(inputs, y, input_noise=noise)
        mean, variance, gradient = nigp(inputs, y, queries, self.SCALES, 2.0, 0.01, sigma, PASSES)
        found, std = model.predict(queries, return_std=True)
        assert_allclose(found, mean, rtol=1e-6)
        assert_allclose(std**2, variance, rtol=1e-6)
        parts = model.uncertainty(queries)
        assert_allclose(parts.epistemic, variance, rtol=1e-6)
        own = model.posterior_.input_noise.variance
        assert_allclose(own, np.einsum("id,de,ie->i", gradient, sigma, gradient), rtol=1e-5, atol=1e-9)

    def test_the_mean_of_the_noise_shifts_the_inputs(self):
        inputs, y = self.data()
        model = WienerKernelRegressor(2.0 * RBF(self.SCALES), noise="norm(0, 0.1)", tuning=None, trend=None)
        at = [[0.0, 0.5]]
        centered = model.fit(inputs, y, input_noise=["gamma(4, loc=-0.2, scale=0.05)", None])
        expected = centered.predict_distribution(at).ppf(0.1)
        shifted = model.fit(inputs + np.array([0.2, 0.0]), y, input_noise=["gamma(4, scale=0.05)", None])
        assert_allclose(shifted.predict_distribution(at).ppf(0.1), expected, rtol=1e-9)

    def test_a_linear_function_has_no_curvature_and_the_exact_slope(self):
        generator = np.random.default_rng(0)
        inputs = generator.uniform(-3, 3, (50, 1))
        noise = as_input_noise("expon(-1, 1)", 1)
        base = WienerKernelRegressor(100.0 * Linear(), noise="norm(0, 0.1)", tuning=None, trend=None)
        smoother = base.fit(inputs, 2.0 * inputs[:, 0]).posterior_.smoother
        linear = noise.linearize(smoother)
        assert_allclose(linear.slopes, 2.0, rtol=1e-4)
        assert_allclose(linear.curvature, 0.0, atol=1e-9)

    def test_tuning_tells_both_kinds_of_noise_apart(self):
        generator = np.random.default_rng(4)
        true = generator.uniform(0, 12, 150)
        y = np.sin(1.5 * true) + 0.1 * generator.normal(size=150)
        inputs = (true + 0.1 * generator.normal(size=150))[:, None]
        ignored = WienerKernelRegressor().fit(inputs, y)
        model = WienerKernelRegressor().fit(inputs, y, input_noise="norm(0, 0.1)")
        assert ignored.noise_.std() > 0.13
        assert abs(model.noise_.std() - 0.1) < 0.02

    @pytest.mark.parametrize(
        "parameters",
        [
            {"noise": "gamma", "tuning": "loo"},
            {"noise": "auto"},
            {"noise_level": "mean", "trend": "constant"},
            {"ridge": 0.05},
            {"dtype": "float32"},
        ],
        ids=str,
    )
    def test_every_way_of_tuning_covers_the_function(self, parameters):
        generator = np.random.default_rng(4)
        true = generator.uniform(0, 6, 50)
        y = 3 + np.sin(1.5 * true) + 0.2 * (generator.gamma(0.25, 1, 50) - 0.25)
        inputs = (true + 0.1 * (generator.gamma(4, 0.5, 50) - 2))[:, None]
        model = WienerKernelRegressor(**{"trend": "constant"} | parameters)
        model.fit(inputs, y, input_noise="gamma(4, loc=-0.2, scale=0.05)")
        queries = np.linspace(0.5, 5.5, 40)
        low, high = model.predict_interval(queries[:, None], 0.99, of="function").T
        truth = 3 + np.sin(1.5 * queries)
        assert np.mean((low <= truth) & (truth <= high)) > 0.9
        assert np.all(model.uncertainty(queries[:, None]).input > 0)

    def test_several_outputs_have_a_model_each(self):
        inputs, y = self.data()
        both = np.stack([y, -3 * y], axis=1)
        model = WienerKernelRegressor(2.0 * RBF(self.SCALES), noise="norm(0, 0.1)", tuning=None, trend=None)
        at = np.array([[0.0, 0.5], [1.0, -1.0]])
        found = model.fit(inputs, both, input_noise="norm(0, 0.1)").uncertainty(at)
        random = model.predict(RandomInput(at, "norm(0, 0.1)"))
        for k in range(2):
            alone = model.fit(inputs, both[:, k], input_noise="norm(0, 0.1)")
            assert_allclose(found.input[:, k], alone.uncertainty(at).input, rtol=1e-12)
            assert_allclose(random[:, k], alone.predict(RandomInput(at, "norm(0, 0.1)")), rtol=1e-12)

    def test_it_warns_of_noise_that_is_not_small(self):
        pandas = pytest.importorskip("pandas")
        inputs, y = self.data()
        frame = pandas.DataFrame(inputs, columns=["time", "depth"])
        model = WienerKernelRegressor(RBF([1.0, 1.0]), noise="norm(0, 0.1)", tuning=None, trend=None)
        with pytest.warns(
            UserWarning, match="the noise on depth has a standard deviation of 0.2 length scales"
        ):
            model.fit(frame, y, input_noise=["norm(0, 0.1)", "norm(0, 0.2)"])


@pytest.fixture(scope="module")
def fitted():
    generator = np.random.default_rng(7)
    true = np.sort(generator.uniform(0, 5, 30))
    true[4] = true[5]
    inputs = (true + 0.1 * (generator.gamma(2, 1, 30) - 2))[:, None]
    inputs[4] = inputs[5]
    y = np.exp(np.sin(true) + 0.1 * generator.normal(size=30))
    model = WienerKernelRegressor(
        RBF(1.0), noise="gamma(2, scale=0.07)", transform="log", tuning=None, trend=None
    )
    return model.fit(
        inputs, y, noise_scale=np.linspace(0.5, 1.5, 30), input_noise="gamma(2, loc=-0.2, scale=0.1)"
    ), y


class TestWhatFollows:
    def test_leave_one_out_laws_have_the_moments_of_the_residuals(self, fitted):
        model, y = fitted
        report, left = model.score_report(), model.loo()
        assert_allclose(report.values, y, rtol=1e-10)
        assert_allclose(report.law.base.std() ** 2, left.total, rtol=1e-9)
        assert np.all(left.input > 0)
        assert 0.7 < report.coverage(0.9) <= 1

    def test_leave_one_out_equals_leaving_out_at_the_same_slopes(self, fitted):
        model, _ = fitted
        posterior, left = model.posterior_, model.loo()
        old = posterior.smoother
        for i in (0, 4, 17):
            keep = np.arange(30) != i
            linear = posterior.input_noise.subset(keep)
            samples = type(old.samples).collapse(
                old.places[old.samples.index[keep]],
                old.samples.row_regularizer[keep],
                old.samples.scale[keep],
            )
            rest = replace(
                posterior, smoother=type(old)(old.kernel, samples, old.targets[keep]), input_noise=linear
            )
            place = old.places[old.samples.index[[i]]]
            mean, parts = rest.mean_and_uncertainty(place)
            assert_allclose(left.mean[i], mean[0], rtol=1e-8)
            assert_allclose(left.noise[i], parts.noise[0], rtol=1e-7)
            assert_allclose(left.input[i], parts.input[0], rtol=1e-7)
            assert_allclose(left.model[i], parts.model[0], rtol=1e-6, atol=1e-12)
            # the law of the score has the noise of all other samples, and that of sample i
            law = rest.distribution(place).base.law
            own = posterior.noise.cumulants(3)[2] * old.samples.scale[i] ** 3
            own += posterior.terms[1].law.cumulants(3)[2] * posterior.terms[1].scale[i] ** 3
            third = model.score_report().law.base.cumulant(3)[i]
            assert_allclose(third, law.cumulant(3)[0] + own, rtol=1e-6)

    def test_it_survives_a_file(self, fitted, tmp_path):
        model, _ = fitted
        model.save(tmp_path / "model.wk")
        loaded = wienerkernel.load(tmp_path / "model.wk")
        at = np.array([[0.3], [2.0]])
        for of in ("function", "observation"):
            expected = model.predict_distribution(at, of=of).ppf(0.9)
            assert np.array_equal(loaded.predict_distribution(at, of=of).ppf(0.9), expected)
        assert np.array_equal(loaded.uncertainty(at).input, model.uncertainty(at).input)
        assert np.array_equal(loaded.score_report().pit, model.score_report().pit)

    def test_the_fast_predictor_includes_it(self, fitted):
        model, _ = fitted
        at = np.array([[0.3], [2.0]])
        parts = model.uncertainty(at)
        for predictor in (model.predictor(), pickle.loads(pickle.dumps(model.predictor()))):
            _, noise, prior = predictor(at)
            assert_allclose(noise, parts.estimate, rtol=1e-9)
            assert_allclose(prior, parts.model, rtol=1e-7, atol=1e-13)
            assert_allclose(predictor(at[0])[1], parts.estimate[0], rtol=1e-9)

    def test_gradients_of_the_variances(self, fitted):
        model, _ = fitted
        at, step = np.array([[0.3], [2.1]]), 1e-5
        up, down = (model.uncertainty(at + sign * step) for sign in (1, -1))
        gradient = model.predict_gradient(at)
        assert_allclose(gradient.noise[:, 0], (up.estimate - down.estimate) / (2 * step), rtol=1e-6)
        assert_allclose(gradient.model[:, 0], (up.model - down.model) / (2 * step), rtol=1e-5, atol=1e-9)

    @pytest.mark.parametrize("ridge", [None, 0.05])
    def test_planned_samples_have_noise_on_their_inputs(self, ridge):
        model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.2)", tuning=None, trend=None, ridge=ridge)
        inputs = np.linspace(0, 4, 12)[:, None]
        model.fit(inputs, np.sin(2 * inputs[:, 0]), input_noise="norm(0, 0.1)")
        at = np.array([[1.5]])
        needed = model.samples_needed(at, std=0.03)
        n = int(needed.number[0])
        old, linear = model.posterior_.smoother, model.posterior_.input_noise
        further = linear.noise.variance_at(old, at)[0]
        own = 0.04 if ridge is None else ridge
        samples = type(old.samples).collapse(
            np.concatenate([inputs, np.repeat(at, n, axis=0)]),
            np.concatenate([old.samples.row_regularizer, np.full(n, own + further)]),
            np.ones(12 + n),
        )
        slope = np.full((n, 1), np.sqrt(further / 0.01))
        grown = Linearization(linear.noise, np.concatenate([linear.slopes, slope]), np.zeros(12 + n))
        smoother = type(old)(old.kernel, samples, np.zeros((12 + n, 1)))
        after = replace(model.posterior_, smoother=smoother, input_noise=grown).uncertainty(at).epistemic
        assert_allclose(needed.after, np.sqrt(after), rtol=1e-8)
        assert needed.after[0] <= 0.03

    def test_sample_paths_have_its_variance(self, fitted):
        model, _ = fitted
        at = np.array([[0.3], [2.0]])
        paths = model.sample_paths(4000, of="estimate", random_state=0)(at)
        base = model.predict_distribution(at).base
        assert_allclose(np.log(paths).reshape(4000, 2).var(axis=0), base.var(), rtol=0.12)

    def test_the_report_shows_it_as_a_cause(self, fitted):
        model, _ = fitted
        shown = contents(model)
        assert set(shown["shares"]) == {"noise", "input", "model", "aleatoric"}
        assert_allclose(sum(shown["shares"].values()), 1.0, rtol=1e-5)
        exact = contents(untuned(X, Y, trend=None))
        assert "input" not in exact["shares"]
        legend = "noise on the inputs: <b>"  # scripts know all causes
        assert legend in page([shown])
        assert legend not in page([exact])

    def test_the_command_line_writes_it(self, fitted, tmp_path):
        from typer.testing import CliRunner

        from wienerkernel.cli.app import app

        model, _ = fitted
        model.save(tmp_path / "model.wk")
        (tmp_path / "new.csv").write_text("x\n0.3\n2.0\n")
        out = tmp_path / "out.csv"
        result = CliRunner().invoke(
            app,
            [
                "predict",
                str(tmp_path / "model.wk"),
                str(tmp_path / "new.csv"),
                "--inputs",
                "x",
                "-o",
                str(out),
            ],
        )
        assert result.exit_code == 0, result.output
        header, first, *_ = out.read_text().splitlines()
        row = dict(zip(header.split(","), map(float, first.split(",")), strict=True))
        assert_allclose(row["std_input"], np.sqrt(model.uncertainty([[0.3]]).input[0]), rtol=1e-6)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda model: model.partial_fit([[1.0]], [1.0]), "fit all at once"),
            (lambda model: model.forget([0]), "fit all at once"),
            (lambda model: model.bound([[1.0]], norm=2.0), "exact inputs only"),
            (lambda model: model.posterior_.chaos(np.array([[1.0]])), "no chaos form"),
            (lambda model: model.ridge_path([1.0]), "ridges"),
        ],
    )
    def test_what_is_not_available_is_refused(self, fitted, call, message):
        with pytest.raises(ValueError, match=message):
            call(fitted[0])


def test_a_diagonal_matrix_of_noise_scales_equals_the_vector():
    inputs, scale = np.linspace(0, 5, 20)[:, None], np.linspace(0.5, 1.5, 20)
    at = np.array([[1.0], [2.3]])
    model = WienerKernelRegressor(RBF(1.0), noise="gamma(2, scale=0.1)", tuning=None)
    found = []
    for scales in (scale, np.diag(scale)):
        model.fit(inputs, np.sin(inputs[:, 0]), noise_scale=scales, input_noise="norm(0, 0.1)")
        law, left, parts = (
            model.predict_distribution(at, of="observation"),
            model.loo(),
            model.uncertainty(at),
        )
        found.append(
            [law.ppf(0.9), parts.input, parts.noise, left.input, left.residual, model.predictor()(at)[1]]
        )
    for one, other in zip(*found, strict=True):
        assert_allclose(one, other, rtol=1e-9)


def test_discrete_noise_on_the_inputs():
    inputs = np.linspace(0, 4, 9)[:, None]
    model = WienerKernelRegressor(RBF(1.0), noise=[-0.1, 0.1], tuning=None, trend=None)
    model.fit(inputs, np.sin(inputs[:, 0]), input_noise=[-0.05, 0.0, 0.05])
    Y = model.predict_distribution([[1.3]])
    draws = Y.rvs(20_000, random_state=0)
    level = float(np.quantile(draws, 0.3))
    assert abs(Y.cdf(level)[0] - 0.3) < 0.02


class TestBadInput:
    DATA = np.linspace(0, 4, 10)[:, None] * [1.0, 2.0], np.zeros(10)

    @pytest.mark.parametrize(
        ("noise", "message"),
        [
            (["norm(0, 0.1)"], "one law for each of the 2 columns of X, got 1"),
            (["norm(0, 0.1)", "cauchy()"], "column 1: .*variance"),
            ("gamma", "column 0"),
            (np.eye(3), "covariance of the 2 columns"),
            (np.array([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
            (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive semi-definite"),
        ],
    )
    def test_noise(self, noise, message):
        with pytest.raises(ValueError, match=message):
            untuned(*self.DATA, trend=None, input_noise=noise)

    def test_no_noisy_column_is_no_noise(self):
        model = untuned(*self.DATA, trend=None, input_noise=[None, None])
        assert model.posterior_.input_noise is None

    def test_settings_that_are_not_linear_in_y(self):
        for setting in ({"loss": "absolute"}, {"approximation": "neighbors"}):
            with pytest.raises(ValueError, match="input_noise needs"):
                untuned(*self.DATA, trend=None, noise="norm(0, 1)", input_noise="norm(0, 0.1)", **setting)

    def test_arrays_of_other_libraries(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(TypeError, match="NumPy"):
            untuned(torch.tensor(self.DATA[0]), self.DATA[1], trend=None, input_noise="norm(0, 0.1)")

    def test_kernels_without_a_derivative(self):
        model = WienerKernelRegressor(Matern(1.0, nu=0.5), tuning=None, trend=None)
        with pytest.raises(ValueError, match="differentiable kernel"):
            model.fit(*self.DATA, input_noise="norm(0, 0.1)")
        own = WienerKernelRegressor(
            lambda a, b: np.exp(-np.sum((a[:, None] - b) ** 2, axis=-1)), tuning=None, trend=None
        )
        with pytest.raises(TypeError, match="gradient"):
            own.fit(*self.DATA, input_noise="norm(0, 0.1)")

    def test_residuals_as_noise(self):
        generator = np.random.default_rng(0)
        with pytest.raises(ValueError, match="cannot tell the noise"):
            WienerKernelRegressor(noise="residuals").fit(
                self.DATA[0], generator.normal(size=10), input_noise="norm(0, 0.1)"
            )


def test_intervals_cover_the_function_as_often_as_they_say():
    """At 0.1 length scales; for 80 data sets the standard error is 1 %."""
    script = Path(__file__).parents[1] / "benchmarks" / "input_noise.py"
    if not script.exists():
        pytest.skip("the benchmarks are not part of the source distribution")
    spec = importlib.util.spec_from_file_location("input_noise_benchmark", script)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    results = benchmark.run(0.1, 80, tuned=False)
    assert results["ignored"].mean() < 0.82
    assert 0.88 <= results["with curvature"].mean() <= 0.92
