"""Scores under the exact leave-one-out law: against closed forms, refits and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from wienerkernel import RBF, LinearCombination, WienerKernelRegressor, crps
from wienerkernel.evaluation.diagnostics import _Affine, compare, leave_one_out_law, score_report
from wienerkernel.law.mixed import MixedLaw
from wienerkernel.posterior.transformed import TransformedDistribution
from wienerkernel.transform import BoxCox


def _model(noise="norm(0, 0.5)", scale=1.0, **options):
    return WienerKernelRegressor(2.0 * RBF(scale), noise=noise, tuning=None, **options)


def _samples(n=12, outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3, 3, n))[:, None]
    shape = (n,) if outputs is None else (n, outputs)
    return X, (np.sin(X) if outputs else np.sin(X[:, 0])) + 0.5 * rng.normal(size=shape)


def _crps_normal(mean, std, y):
    """Gneiting and Raftery (2007), eq. 21."""
    z = (y - mean) / std
    return std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))


@pytest.mark.parametrize("y", [-9.0, -1.0, 0.3, 4.0, 60.0])
def test_crps_of_a_normal_law_has_its_closed_form(y):
    assert crps(stats.norm(0.5, 2.0), y) == pytest.approx(_crps_normal(0.5, 2.0, y), rel=1e-7)


@pytest.mark.parametrize("shape", [0.2, 0.7, 3.0])
def test_crps_of_a_gamma_law_has_its_closed_form(shape):
    """Scheuerer and Moeller (2015); below the support, the distance to it is added."""
    y = np.array([-3.0, 0.01, 0.5, 2.0, 30.0])
    at = np.maximum(y, 0.0)
    own, next_one = (2 * stats.gamma.cdf(at, a) - 1 for a in (shape, shape + 1))
    expected = at * own - shape * next_one - 1 / special.beta(0.5, shape) + at - y
    np.testing.assert_allclose(crps(stats.gamma(shape), y), expected, rtol=3e-7)


def test_crps_of_a_mixture_under_a_transform_equals_adaptive_quadrature():
    parts = LinearCombination(
        "gamma(0.5, loc=-0.5)", [[[1.0, 0.2]], [[2.0, 0.2]]], loc=0.3, normal_std=[[0.1], [0.3]]
    )
    law = TransformedDistribution(
        _Affine(MixedLaw(parts, np.array([0.7, 0.3])), np.zeros(1)), BoxCox(lam=0.3)
    )
    for y in (0.2, 1.1, 9.0):
        below = integrate.quad(lambda x: law.cdf([x])[0] ** 2, 0, y, limit=500, epsabs=1e-9)[0]
        above = integrate.quad(lambda x: law.sf([x])[0] ** 2, y, 400, limit=500, epsabs=1e-9)[0]
        assert crps(law, [y])[0] == pytest.approx(below + above, rel=1e-6)


@pytest.mark.parametrize("law", ["gamma(0.25, scale=2)", "t(3)", "uniform(-1, 2)"])
def test_crps_equals_adaptive_quadrature(law):
    combination = LinearCombination(law, [1.0, -0.4, 0.2], normal_std=0.2)
    y = 0.4
    below = integrate.quad(lambda x: float(combination.cdf(x)) ** 2, -60, y, limit=400, epsabs=1e-10)[0]
    above = integrate.quad(lambda x: float(combination.sf(x)) ** 2, y, 60, limit=400, epsabs=1e-10)[0]
    assert crps(combination, y) == pytest.approx(below + above, abs=2e-5 if law == "t(3)" else 1e-6)


def test_crps_broadcasts_the_points_against_the_laws():
    law = stats.norm([0.0, 1.0], [1.0, 2.0])
    y = np.array([[0.0], [1.0], [2.0]])
    np.testing.assert_allclose(
        crps(law, y), _crps_normal(np.array([0.0, 1.0]), np.array([1.0, 2.0]), y), rtol=1e-7
    )


def test_report_under_normal_noise_is_that_of_refitted_models():
    X, y = _samples()
    report = score_report(_model().fit(X, y))
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        left_out = _model().fit(X[rest], y[rest])
        mean, std = left_out.predict(X[i : i + 1], return_std=True)
        law = stats.norm(mean[0], np.hypot(std[0], 0.5))
        assert report.log_score[i] == pytest.approx(law.logpdf(y[i]), rel=1e-9)
        assert report.pit[i] == pytest.approx(law.cdf(y[i]), rel=1e-9)
        assert report.crps[i] == pytest.approx(_crps_normal(mean[0], law.std(), y[i]), rel=1e-6)


def test_report_under_skewed_noise_is_that_of_refitted_models():
    X, y = _samples(8)
    noise = "gamma(0.5, scale=0.7)"
    report = score_report(_model(noise).fit(X, y))
    rest = np.arange(1, 8)
    law = _model(noise).fit(X[rest], y[rest]).predict_distribution(X[:1], of="observation")
    assert report.pit[0] == pytest.approx(float(law.cdf(y[:1])[0]), rel=1e-9)
    assert report.log_score[0] == pytest.approx(float(law.logpdf(y[:1])[0]), rel=1e-9)


def test_repeated_rows_are_left_out_one_at_a_time():
    X, y = np.array([[0.0], [0.0], [0.0], [1.0]]), np.array([0.1, 0.4, -0.2, 1.0])
    report = score_report(_model("expon(-0.3, 0.3)").fit(X, y))
    law = _model("expon(-0.3, 0.3)").fit(X[1:], y[1:]).predict_distribution(X[:1], of="observation")
    assert report.pit[0] == pytest.approx(float(law.cdf(y[:1])[0]), rel=1e-9)


def test_new_samples_are_scored_under_the_law_of_an_observation():
    X, y = _samples()
    model = _model("gamma(0.5, scale=0.7)").fit(X, y)
    new = np.array([[-0.5], [2.5]]), np.array([0.2, 1.4])
    report = score_report(model, *new)
    law = model.predict_distribution(new[0], of="observation")
    np.testing.assert_allclose(report.log_score, law.logpdf(new[1]))
    with pytest.raises(ValueError, match="y must have shape"):
        score_report(model, new[0], new[1][:1])
    with pytest.raises(ValueError, match="y must be finite"):
        score_report(model, new[0], [0.2, np.nan])
    with pytest.raises(ValueError, match="y need the inputs X"):
        score_report(model, y=new[1])


def test_several_outputs_are_scored_one_by_one():
    X, y = _samples(outputs=2)
    both = score_report(_model().fit(X, y))
    assert both.pit.shape == both.crps.shape == (12, 2)
    single = score_report(_model().fit(X, y[:, 1]))
    np.testing.assert_allclose(both.pit[:, 1], single.pit)
    np.testing.assert_allclose(both.crps[:, 1], single.crps)


def test_true_model_is_calibrated_and_gaussian_intervals_are_not():
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(-5, 5, 120))[:, None]
    f = np.linalg.cholesky(2.0 * RBF(1.0)(X) + 1e-9 * np.eye(120)) @ rng.normal(size=120)
    y = f + rng.gamma(0.25, 2.0, size=120)
    right = score_report(_model("gamma(0.25, scale=2)").fit(X, y))
    assert stats.kstest(right.pit, "uniform").pvalue > 0.01
    np.testing.assert_allclose(right.calibration([0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.12)
    wrong = score_report(_model("norm(0.5, 1)").fit(X, y))
    assert right.log_score.sum() > wrong.log_score.sum() + 10
    assert stats.kstest(wrong.pit, "uniform").pvalue < 1e-3


def test_calibration_and_coverage_count_pit_values():
    report = score_report(_model().fit(*_samples()))
    levels = np.linspace(0, 1, 5)
    expected = [np.mean(report.pit <= level) for level in levels]
    np.testing.assert_allclose(report.calibration(levels), expected)
    assert report.coverage(0.5) == pytest.approx(np.mean((report.pit >= 0.25) & (report.pit <= 0.75)))
    with pytest.raises(ValueError, match="levels"):
        report.calibration([0.5, 1.2])


def test_quantile_pairs_compare_residuals_with_the_noise():
    report = score_report(_model("gamma(2, loc=-1, scale=0.5)").fit(*_samples()))
    of_noise, of_residuals = report.quantile_pairs()
    assert of_noise.shape == of_residuals.shape == (12,)
    assert np.all(np.diff(of_noise) > 0)
    np.testing.assert_allclose(np.sort(report.standardized), of_residuals)


def test_residuals_of_a_transformed_response_are_standardized_on_the_transformed_scale():
    X = np.linspace(0, 5, 20)[:, None]
    y = np.exp(np.sin(X[:, 0]) + 0.2 * np.cos(7 * X[:, 0]))
    options = {"noise": "norm(0, 0.2)", "tuning": None}
    of_y = WienerKernelRegressor(RBF(1.0), transform="log", **options).fit(X, y).score_report()
    of_log = WienerKernelRegressor(RBF(1.0), **options).fit(X, np.log(y)).score_report()
    np.testing.assert_allclose(of_y.standardized, of_log.standardized, rtol=1e-9)
    np.testing.assert_allclose(of_y.pit, of_log.pit, rtol=1e-9)


def test_report_prints_scores_and_what_to_expect():
    text = str(score_report(_model().fit(*_samples())))
    assert "log_score" in text
    assert "0.900" in text


def test_the_law_of_a_residual_has_the_variance_of_leave_one_out():
    model = _model("gamma(2, scale=0.5)").fit(*_samples())
    law, residual = leave_one_out_law(model.posterior_)
    np.testing.assert_allclose(law.var(), model.loo().total, rtol=1e-9)
    np.testing.assert_allclose(law.mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(residual, model.loo().residual, rtol=1e-9)


def test_comparison_ranks_by_log_score_with_paired_errors():
    X, y = _samples(20)
    models = {
        "short": _model(scale=0.05),
        "right": _model(),
        "skewed": _model("gamma(1, loc=-0.5, scale=0.5)"),
    }
    comparison = compare(models, X, y)
    assert set(comparison.names) == set(models)
    assert np.all(np.diff(comparison.log_score) <= 0)
    assert comparison.difference[0] == comparison.standard_error[0] == 0.0
    scores = {name: score_report(model.fit(X, y)).log_score for name, model in models.items()}
    d = scores[comparison.names[1]] - scores[comparison.names[0]]
    assert comparison.difference[1] == pytest.approx(d.sum())
    assert comparison.standard_error[1] == pytest.approx(np.sqrt(20) * d.std(ddof=1))
    assert comparison.names[1] in str(comparison)


def test_models_are_compared_as_they_are_fitted_if_there_are_no_data():
    X, y = _samples()
    models = [_model().fit(X, y), _model(scale=0.1).fit(X, y)]
    assert compare(models).names == ("0", "1")
    with pytest.raises(ValueError, match="same samples"):
        compare([models[0], _model().fit(X[:5], y[:5])])
    with pytest.raises(ValueError, match="at least one"):
        compare({})


def test_comparison_leaves_the_given_models_alone():
    model = _model()
    compare([model], *_samples())
    assert not hasattr(model, "posterior_")


def test_a_report_in_a_notebook_shows_its_summary_and_not_its_arrays():
    X = np.linspace(0, 6, 40)[:, None]
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, np.sin(X[:, 0]))
    report = model.score_report()
    assert repr(report) == str(report)
    assert len(repr(report).splitlines()) == 1 + len(report.summary())
