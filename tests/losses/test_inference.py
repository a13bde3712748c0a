"""The posterior of f behind the estimator: ``inference="ep"``."""

import copy
import pickle

import numpy as np
import pytest
from scipy import stats

from wienerkernel import RBF, Huber, SmoothedResiduals, WienerKernelRegressor, as_noise

KERNEL = 4.0 * RBF(1.5)
Q = np.linspace(-1, 7, 9)[:, None]


def data(law, n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 6, n))[:, None]
    return X, np.sin(X[:, 0]) + 2 + law.rvs(n, random_state=rng)


def model(noise, inference="ep", **options):
    return WienerKernelRegressor(KERNEL, noise=noise, inference=inference, tuning=None, **options)


@pytest.mark.parametrize("trend", [None, "constant"])
def test_normal_noise_gives_the_linear_answers(trend):
    X, y = data(stats.norm(0, 0.5))
    full, linear = (model(stats.norm(0, 0.5), inference, trend=trend).fit(X, y) for inference in ("ep", None))
    mean, std = linear.predict(Q, return_std=True)
    assert np.all(np.abs(full.predict(Q) - mean) < 1e-5 * std)
    np.testing.assert_allclose(full.predict(Q, return_std=True)[1], std, rtol=1e-5)
    np.testing.assert_allclose(
        full.predict(Q, return_cov=True)[1], linear.predict(Q, return_cov=True)[1], atol=1e-7
    )
    for of in ("function", "observation"):
        ours, theirs = (m.predict_distribution(Q, of=of) for m in (full, linear))
        for q in (0.05, 0.5, 0.9):
            np.testing.assert_allclose(ours.ppf(q), theirs.ppf(q), atol=1e-4)
        np.testing.assert_allclose(ours.pdf(theirs.mean()), theirs.pdf(theirs.mean()), rtol=1e-4)
    assert abs(full.score(X, y) - linear.score(X, y)) < 1e-6


@pytest.mark.parametrize("trend", [None, "constant", "linear"])
def test_uncertainty_splits_by_total_variance(trend):
    """Unexplored inputs leave what an almost noise-free model leaves; the parts sum up to the posterior variance."""
    X, y = data(stats.t(4), 8)
    fitted = model(stats.t(4), trend=trend).fit(X, y)
    parts = fitted.uncertainty(Q)
    exact = model(stats.norm(0, 1e-4), None, trend=trend).fit(X, y)
    np.testing.assert_allclose(parts.model, exact.predict(Q, return_std=True)[1] ** 2, atol=2e-5, rtol=5e-3)
    np.testing.assert_allclose(parts.epistemic, fitted.predict(Q, return_std=True)[1] ** 2, rtol=1e-9)
    np.testing.assert_allclose(parts.aleatoric, 2.0)
    assert np.all(parts.noise >= 0)


def test_draws_have_the_moments_of_the_law():
    X, y = data(stats.laplace(0, 0.5))
    fitted = model(stats.laplace(0, 0.5)).fit(X, y)
    for of in ("function", "observation"):
        law = fitted.predict_distribution(Q, of=of)
        draws = law.rvs(20_000, random_state=0)
        assert np.all(np.abs(draws.mean(axis=0) - law.mean()) < 5 * law.std() / np.sqrt(20_000))
        np.testing.assert_allclose(draws.std(axis=0), law.std(), rtol=0.05)
    np.testing.assert_allclose(
        np.cov(law.rvs(20_000, 1).T - 0)[0, 1], fitted.predict(Q, return_cov=True)[1][0, 1], atol=0.15
    )


def test_outliers_hardly_move_the_posterior_under_heavy_tails():
    X, y = data(stats.norm(0, 0.2))
    y[10] += 30
    robust = model(stats.t(3, scale=0.2)).fit(X, y)
    linear = model(stats.t(3, scale=0.2), None).fit(X, y)
    truth = np.sin(X[:, 0]) + 2
    assert np.max(np.abs(robust.predict(X) - truth)) < 0.3 < np.max(np.abs(linear.predict(X) - truth))


def test_levels_scales_and_transforms():
    X, y = data(stats.norm(0, 0.1))
    fitted = model("t(5, scale=0.1)", noise_level=lambda X: 2 + X[:, 0], transform="log").fit(X, y)
    law = fitted.predict_distribution(Q, of="observation")
    assert np.all(law.ppf(0.1) > 0)
    np.testing.assert_allclose(law.cdf(law.ppf(0.3)), 0.3, atol=1e-9)
    median = fitted.predict_distribution(X, of="function").ppf(0.5)
    np.testing.assert_allclose(median, np.exp(fitted.posterior_.mean(X)), rtol=1e-9)
    scaled = model("t(5)").fit(X, y, noise_scale=np.full(30, 0.1))
    plain = model("t(5, scale=0.1)").fit(X, y)
    np.testing.assert_allclose(scaled.predict(Q), plain.predict(Q), rtol=1e-6)


def test_methods_that_need_a_linear_estimate_refuse():
    X, y = data(stats.t(4))
    fitted = model(stats.t(4)).fit(X, y)
    for call in (
        lambda: fitted.bound(Q, norm=1.0),
        lambda: fitted.samples_needed(Q, std=0.1),
        lambda: fitted.next_sample(Q),
        lambda: fitted.ridge_path([0.1]),
        lambda: fitted.predictor(),
        lambda: fitted.predict_gradient(Q),
        lambda: fitted.loo(),
        lambda: fitted.log_likelihood(),
        lambda: fitted.feature_weights(),
        lambda: fitted.partial_fit(X, y),
        lambda: fitted.forget([0]),
        lambda: fitted.predict_distribution(Q, of="function").chaos(),
    ):
        with pytest.raises(ValueError, match="linear in y; the model has inference='ep'"):
            call()
    by_default, of_function = fitted.predict_distribution(Q), fitted.predict_distribution(Q, of="function")
    np.testing.assert_array_equal(by_default.ppf(0.9), of_function.ppf(0.9))
    with pytest.raises(ValueError, match="of must be 'function' or 'observation'"):
        fitted.predict_distribution(Q, of="estimate")
    for twin in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(twin.predict(Q), fitted.predict(Q))


def test_leave_one_out_scores_under_normal_noise_are_the_linear_ones():
    X, y = data(stats.norm(0, 0.5))
    options = {"noise_level": lambda X: 1 + 0.1 * X[:, 0], "transform": "log"}
    for given in ({}, options):
        full, linear = (model("norm(0, 0.2)", kind, **given).fit(X, y) for kind in ("ep", None))
        ours, theirs = full.score_report(), linear.score_report()
        np.testing.assert_allclose(ours.log_score, theirs.log_score, atol=1e-4)
        np.testing.assert_allclose(ours.pit, theirs.pit, atol=1e-4)


@pytest.mark.parametrize(
    "noise", ["laplace(0, 0.4)", "logistic(0, 0.2)", "t(3, scale=0.3)", "gamma(0.6, scale=0.5)"]
)
def test_leave_one_out_scores_against_refits(noise):
    X, y = data(as_noise(noise))
    fitted = model(noise).fit(X, y)
    rows = np.arange(len(y))[::4]
    refits = []
    for row in rows:
        others = np.arange(len(y)) != row
        refits.append(model(noise).fit(X[others], y[others]).score_report(X[[row]], y[[row]]).log_score[0])
    np.testing.assert_allclose(fitted.score_report().log_score[rows], refits, atol=0.06)
    with pytest.raises(ValueError, match="score held-out data"):
        model(noise, None, loss="absolute").fit(X, y).score_report()


@pytest.mark.parametrize(
    "options",
    [{"inference": "ep"}, {"inference": None, "loss": "efficient"}, {"inference": None, "loss": Huber(0.3)}],
)
def test_several_outputs_are_models_of_the_columns(options):
    X, y = data(stats.laplace(0, 0.3))
    Y = np.stack([y, 10 * y**2], axis=1)
    options = {"noise": "laplace(0, 0.3)", "random_state": 0, **options}
    both, columns = model(**options).fit(X, Y), [model(**options).fit(X, column) for column in Y.T]
    np.testing.assert_array_equal(both.predict(Q), np.stack([m.predict(Q) for m in columns], axis=1))
    for cause in ("noise", "model", "aleatoric"):
        parts = [getattr(m.uncertainty(Q), cause) for m in columns]
        np.testing.assert_array_equal(getattr(both.uncertainty(Q), cause), np.stack(parts, axis=1))
    for of in ("function", "observation"):
        law, laws = both.predict_distribution(Q, of), [m.predict_distribution(Q, of) for m in columns]
        np.testing.assert_array_equal(law.ppf(0.9), np.stack([each.ppf(0.9) for each in laws], axis=1))
    assert both.sample_y(Q, 5).shape == (9, 2, 5)
    assert both.predict_interval(Q, 0.9, of="function").shape == (9, 2, 2)
    report = both.score_report(X, Y)
    np.testing.assert_array_equal(report.log_score[:, 1], columns[1].score_report(X, Y[:, 1]).log_score)
    assert abs(both.score(X, Y) - np.mean([m.score(X, c) for m, c in zip(columns, Y.T, strict=True)])) < 1e-12
    with pytest.raises(ValueError, match="each output has a model of its own"):
        both.ridge_path([0.1])


def test_bad_input():
    X, y = data(stats.t(4))
    for options, message in (
        ({"inference": "mcmc"}, "inference must be one of None, 'ep'"),
        ({"ridge": 0.1}, "takes the place of the ridge"),
        ({"noise": [-1.0, 0.0, 1.0]}, "SmoothedResiduals"),
        ({"noise": "poisson(3)"}, "no density"),
    ):
        with pytest.raises(ValueError, match=message):
            model(**{"noise": "t(4)", **options}).fit(X, y)
    with pytest.raises(ValueError, match="independent noise"):
        model("t(4)").fit(X, y, noise_scale=np.eye(30))
    assert model(SmoothedResiduals([-1.0, 0.1, 0.5])).fit(X, y).predict(Q).shape == (9,)
