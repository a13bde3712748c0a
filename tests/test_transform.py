"""Transforms of the response against SciPy, and models on a transformed scale against models of transformed data."""

import numpy as np
import pytest
from helpers import untuned
from scipy import integrate, special, stats

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.transform import BoxCox, YeoJohnson, as_transform

KERNEL = 2.0 * RBF(1.0)
X = np.linspace(0, 3, 12)[:, None]
Y = np.exp(np.sin(2 * X[:, 0]) + 0.2 * np.random.default_rng(1).normal(size=12))
Z = np.array([[0.4], [1.9], [5.0]])


def inverse_sine():
    return (np.arcsinh, np.sinh, lambda y: 1 / np.sqrt(1 + y**2))


@pytest.mark.parametrize("lam", [0.0, 1e-9, 0.3, 0.5, 1.0])
def test_box_cox_is_scipys(lam):
    y = np.array([0.01, 0.5, 1.0, 7.0, 300.0])
    np.testing.assert_allclose(BoxCox(lam, 2.0)(y), 2 * special.boxcox(y / 2, lam), rtol=1e-14)
    np.testing.assert_allclose(BoxCox(lam, 2.0).inverse(BoxCox(lam, 2.0)(y)), y, rtol=1e-12)


@pytest.mark.parametrize("lam", [0.0, 0.4, 1.0, 1.7, 2.0])
def test_yeo_johnson_is_scipys(lam):
    y = np.array([-30.0, -1.0, -1e-3, 0.0, 1e-3, 2.0, 50.0])
    transform = YeoJohnson(lam)
    np.testing.assert_allclose(transform(y), stats.yeojohnson(y, lam), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(transform.inverse(transform(y)), y, rtol=1e-9, atol=1e-12)
    scaled = YeoJohnson(lam, 3.0)
    np.testing.assert_allclose(scaled(3 * y), 3 * transform(y), rtol=1e-12)
    np.testing.assert_allclose(scaled.inverse(scaled(3 * y)), 3 * y, rtol=1e-9, atol=1e-12)


def test_variances_of_a_model_that_needs_no_transform_are_those_of_none():
    """The transformed scale has the units of y."""
    x = np.linspace(0, 6, 40)[:, None]
    y = 5 + np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    other = WienerKernelRegressor(transform="box-cox").fit(x, y)
    assert other.tuning_result_.transform.lam == pytest.approx(1.0, abs=0.3)
    std = np.sqrt(other.uncertainty(x).total)
    np.testing.assert_allclose(std, np.sqrt(WienerKernelRegressor().fit(x, y).uncertainty(x).total), rtol=0.1)


@pytest.mark.parametrize(
    "transform", [BoxCox(0.3, 2.0), BoxCox(0.0), YeoJohnson(0.6, 3.0), as_transform(inverse_sine())]
)
def test_the_derivative_is_that_of_the_transform(transform):
    y = np.array([0.2, 1.0, 5.0])
    slope = (transform(y + 1e-6) - transform(y - 1e-6)) / 2e-6
    np.testing.assert_allclose(np.exp(transform.log_derivative(y)), slope, rtol=1e-7)


@pytest.mark.parametrize("transform", ["log", inverse_sine()])
def test_a_transformed_model_is_a_model_of_transformed_data(transform):
    model = untuned(X, Y, KERNEL, noise="gamma(2, loc=-0.4, scale=0.2)", transform=transform)
    function, inverse, derivative = (np.log, np.exp, lambda y: 1 / y) if transform == "log" else transform
    plain = untuned(X, function(Y), KERNEL, noise="gamma(2, loc=-0.4, scale=0.2)")
    for of in ("estimate", "function", "observation"):
        law, base = model.predict_distribution(Z, of), plain.predict_distribution(Z, of)
        y = inverse(base.ppf(np.array([[0.2], [0.7]])))
        np.testing.assert_allclose(law.cdf(y), [[0.2] * 3, [0.7] * 3], rtol=1e-9)
        np.testing.assert_allclose(law.sf(y), base.sf(function(y)), rtol=1e-12)
        np.testing.assert_allclose(law.pdf(y), base.pdf(function(y)) * derivative(y), rtol=1e-10)
        np.testing.assert_allclose(law.logpdf(y), np.log(law.pdf(y)), rtol=1e-9)
        np.testing.assert_allclose(law.ppf(0.3), inverse(base.ppf(0.3)), rtol=1e-12)
        np.testing.assert_allclose(law.interval(0.8), inverse(np.array(base.interval(0.8))), rtol=1e-12)
        np.testing.assert_allclose(
            law.rvs(5, random_state=1), inverse(base.rvs(5, random_state=1)), rtol=1e-12
        )
    np.testing.assert_allclose(model.uncertainty(Z).total, plain.uncertainty(Z).total, rtol=1e-13)


def test_the_mean_of_a_lognormal_prediction_is_known():
    model = untuned(X, Y, KERNEL, noise="norm(0, 0.1)", transform="log")
    law = model.predict_distribution(Z[:2], "observation")
    mean, var = law.base.mean(), law.base.var()
    np.testing.assert_allclose(model.predict(Z[:2]), np.exp(mean + var / 2), rtol=1e-6)
    np.testing.assert_allclose(law.var(), np.expm1(var) * np.exp(2 * mean + var), rtol=1e-4)
    np.testing.assert_allclose(law.skewness(), (np.exp(var) + 2) * np.sqrt(np.expm1(var)), rtol=2e-2)


def test_the_mean_of_a_mixture_of_lognormal_predictions_is_known():
    """However wide: four nodes lose 5 % where the logarithm has the standard deviation 2."""
    inputs = np.linspace(0, 6, 30)[:, None]
    y = np.exp(2.0 * np.random.default_rng(0).normal(size=30))
    law = (
        WienerKernelRegressor(transform="log", noise_level="input")
        .fit(inputs, y)
        .predict_distribution([[1.0], [20.0]], "observation")
    )
    parts = law.base.law
    mean, var = law.base.mu + parts.law.mean(), parts.law.var()
    expected = parts.probabilities @ np.exp(mean + var / 2)
    assert var.max() > 5
    np.testing.assert_allclose(law.mean(), expected, rtol=1e-8)
    second = parts.probabilities @ np.exp(2 * mean + 2 * var)
    np.testing.assert_allclose(law.var(), second - expected**2, rtol=1e-2)


def test_moments_are_those_of_the_density():
    model = untuned(X, Y, KERNEL, noise="gamma(2, loc=-0.2, scale=0.1)", transform=inverse_sine())
    law = model.predict_distribution(Z[:1], "observation")
    low, high = law.ppf(1e-10)[0], law.isf(1e-10)[0]

    def integral(function):
        return integrate.quad(lambda y: function(y) * law.pdf(np.array([y]))[0], low, high, limit=200)[0]

    assert integral(lambda y: 1.0) == pytest.approx(1.0, abs=1e-6)
    mean = integral(lambda y: y)
    assert law.mean()[0] == pytest.approx(mean, rel=1e-6)
    assert law.var()[0] == pytest.approx(integral(lambda y: (y - mean) ** 2), rel=1e-3)


@pytest.mark.parametrize("of", ["estimate", "function", "observation"])
def test_moments_on_the_scale_of_y_are_exact_enough_where_little_is_known(of):
    # Of exp(Z), the moments are values of the moment generating function of Z, here near the data and far from them.
    noise, at = stats.gamma(2, scale=0.1), np.vstack([X[:2], Z, 20 + Z])
    log_model = WienerKernelRegressor(KERNEL, noise=noise, tuning=None).fit(X, np.log(Y))
    weights = np.stack(
        [
            WienerKernelRegressor(KERNEL, noise=noise, tuning=None).fit(X, row).predict(at)
            - WienerKernelRegressor(KERNEL, noise=noise, tuning=None).fit(X, 0 * row).predict(at)
            for row in np.eye(len(X))
        ],
        axis=1,
    )
    parts, mean = log_model.uncertainty(at), log_model.predict(at)

    def raw_moment(k):
        value = np.exp(k * (mean + noise.mean() * weights.sum(axis=1))) * np.prod(
            (1 + 0.1 * k * weights) ** -2.0, axis=1
        )
        value = value if of == "estimate" else value * np.exp(k**2 * parts.model / 2)
        return value * (1 - 0.1 * k) ** -2.0 if of == "observation" else value

    law = (
        WienerKernelRegressor(KERNEL, noise=noise, transform="log", tuning=None)
        .fit(X, Y)
        .predict_distribution(at, of)
    )
    np.testing.assert_allclose(law.mean(), raw_moment(1), rtol=1e-6)
    np.testing.assert_allclose(law.var(), raw_moment(2) - raw_moment(1) ** 2, rtol=1e-3)


def test_below_the_domain_there_is_nothing():
    law = untuned(X, Y, KERNEL, transform="log").predict_distribution(Z, "observation")
    for y in (-1.0, 0.0):
        assert law.cdf(y).tolist() == law.pdf(y).tolist() == [0.0] * 3
        assert law.sf(y).tolist() == [1.0] * 3
        assert law.logpdf(y).tolist() == [-np.inf] * 3


def test_the_exponent_is_learned():
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0, 6, size=(150, 1))
    truth = 4 + np.sin(inputs[:, 0])
    for lam, y in (
        (0.0, np.exp(truth + 0.2 * rng.normal(size=150))),
        (0.5, (truth + 0.3 * rng.normal(size=150)) ** 2),
    ):
        model = WienerKernelRegressor(transform="box-cox", trend="constant").fit(inputs, y)
        assert model.posterior_.transform.lam == pytest.approx(lam, abs=0.3)
        assert model.score_report().coverage(0.9) == pytest.approx(0.9, abs=0.06)


def test_scores_have_the_jacobian():
    plain = untuned(X, np.log(Y), KERNEL, noise="norm(0, 0.2)").score_report()
    report = untuned(X, Y, KERNEL, noise="norm(0, 0.2)", transform="log").score_report()
    np.testing.assert_allclose(report.log_score, plain.log_score - np.log(Y), rtol=1e-10)
    np.testing.assert_allclose(report.pit, plain.pit, rtol=1e-10)
    np.testing.assert_allclose(report.values, Y, rtol=1e-12)


def test_updates_transform_what_they_add():
    model = untuned(X[:8], Y[:8], KERNEL, noise="norm(0, 0.2)", transform="log")
    whole = untuned(X, Y, KERNEL, noise="norm(0, 0.2)", transform="log")
    np.testing.assert_allclose(model.partial_fit(X[8:], Y[8:]).predict(Z), whole.predict(Z), rtol=1e-8)


@pytest.mark.parametrize(
    ("transform", "y", "message"),
    [
        ("log", Y - 2.0, "positive responses"),
        ("box-cox", Y - 2.0, "positive responses"),
        ("sqrt", Y, "transform must be None, one of 'log', 'box-cox', 'yeo-johnson'"),
        ((np.sqrt, np.exp, np.cos), Y, "inverse"),
        ((np.sqrt, np.square, np.square), Y, "derivative"),
        ((np.negative, np.negative, lambda y: -np.ones_like(y)), Y, "derivative must be positive"),
    ],
)
def test_transforms_that_do_not_fit_are_refused(transform, y, message):
    with pytest.raises(ValueError, match=message):
        WienerKernelRegressor(KERNEL, transform=transform).fit(X, y)


def test_what_a_transform_does_not_have_is_refused():
    model = untuned(X, Y, KERNEL, transform="log")
    with pytest.raises(ValueError, match="sample_y"):
        model.predict(Z, return_cov=True)
    with pytest.raises(ValueError, match="not linear"):
        model.predict_distribution(Z).chaos()
    with pytest.raises(ValueError, match="need tuning"):
        untuned(X, Y, KERNEL, transform="box-cox")
    with pytest.raises(ValueError, match="positive responses"):
        model.partial_fit([[9.0]], [-1.0])
