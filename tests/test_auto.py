"""Noise levels and scales at prediction, and noise="auto", through the estimator."""

import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from wienerkernel import RBF, LinearCombination, SmoothedResiduals, WienerKernelRegressor
from wienerkernel.noise.family import ScaledShape
from wienerkernel.tuning import joint

KERNEL = 2.0 * RBF(1.0)
X = np.linspace(0, 3, 15)[:, None]
Y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=15)
Z = np.array([[0.4], [1.9]])
GAMMA = "gamma(2, loc=-0.2, scale=0.1)"


def skewed(seed, sign=1.0, n=100):
    rng = np.random.default_rng(seed)
    inputs = np.sort(rng.uniform(0, 6, (n, 1)), axis=0)
    return inputs, np.sin(inputs[:, 0]) + sign * 0.5 * (rng.gamma(0.5, 1, n) - 0.5)


def test_the_scale_of_a_new_observation_is_the_weight_of_its_noise():
    model = WienerKernelRegressor(KERNEL, noise=GAMMA, tuning=None).fit(X, Y)
    scale = np.array([0.5, 3.0])
    law = model.predict_distribution(Z, of="observation", noise_scale=scale)
    base = model.predict_distribution(Z, of="function").law
    noise, weights, counts = base.terms[0]
    expected = LinearCombination(
        noise,
        np.column_stack([weights, scale]),
        counts=np.append(counts, 1),
        loc=base.loc,
        normal_std=base.normal_std,
    )
    np.testing.assert_allclose(law.ppf(0.9) - law.mu, expected.ppf(0.9), rtol=1e-12)
    parts = model.uncertainty(Z, noise_scale=scale)
    np.testing.assert_allclose(parts.aleatoric, model.noise_.var() * scale**2, rtol=1e-14)
    np.testing.assert_allclose(
        model.predict_quantiles(Z, [0.9], noise_scale=scale)[:, 0], law.ppf(0.9), rtol=1e-13
    )
    np.testing.assert_allclose(
        model.predict_interval(Z, 0.8, noise_scale=scale)[:, 1], law.ppf(0.9), rtol=1e-13
    )
    draws = model.sample_y(Z, 3000, of="observation", noise_scale=scale)
    np.testing.assert_allclose(draws.std(axis=1), law.std(), rtol=0.08)
    report = model.score_report(Z, [0.7, -0.6], noise_scale=scale)
    np.testing.assert_allclose(report.log_score, law.logpdf([0.7, -0.6]), rtol=1e-12)


def test_a_level_that_is_given_multiplies_every_noise():
    def level(inputs):
        return 1 + inputs[:, 0]

    model = WienerKernelRegressor(KERNEL, noise=GAMMA, noise_level=level, tuning=None).fit(X, Y)
    same = WienerKernelRegressor(KERNEL, noise=GAMMA, tuning=None).fit(X, Y, noise_scale=level(X))
    np.testing.assert_allclose(model.predict(Z), same.predict(Z), rtol=1e-13)
    np.testing.assert_allclose(model.predict_noise_scale(Z), level(Z))
    np.testing.assert_allclose(
        model.predict_interval(Z, noise_scale=[2.0, 2.0]),
        same.predict_interval(Z, noise_scale=2 * level(Z)),
        rtol=1e-12,
    )
    twice = WienerKernelRegressor(KERNEL, noise=GAMMA, noise_level=level, tuning=None).fit(
        X, Y, noise_scale=np.full(15, 2.0)
    )
    both = WienerKernelRegressor(KERNEL, noise=GAMMA, tuning=None).fit(X, Y, noise_scale=2 * level(X))
    np.testing.assert_allclose(twice.predict(Z), both.predict(Z), rtol=1e-13)
    grown = WienerKernelRegressor(KERNEL, noise=GAMMA, noise_level=level, tuning=None).fit(X[:9], Y[:9])
    np.testing.assert_allclose(grown.partial_fit(X[9:], Y[9:]).predict(Z), model.predict(Z), rtol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise_level": "x"}, "noise_level must be None, 'input', 'mean', or a function"),
        ({"noise_level": lambda inputs: inputs[:, 0] * 0}, "positive and finite, got 0"),
        ({"noise_level": lambda inputs: inputs[:, 0] * np.nan + 1}, "positive and finite, got nan"),
        ({"noise_level": lambda inputs: inputs}, "one value for each of the 15 rows"),
        ({"noise_level": "input", "tuning": None}, "need tuning"),
        ({"noise": "auto", "tuning": None}, "need tuning"),
    ],
)
def test_levels_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        WienerKernelRegressor(KERNEL, **arguments).fit(X, Y)


@pytest.mark.parametrize("scale", [[1.0], [1.0, 0.0], [1.0, np.nan], np.ones((2, 2))])
def test_scales_of_new_observations_that_do_not_fit_are_refused(scale):
    model = WienerKernelRegressor(KERNEL, tuning=None).fit(X, Y)
    for method in (model.uncertainty, model.predict_distribution, model.predict_interval, model.sample_y):
        with pytest.raises(ValueError, match="noise_scale"):
            method(Z, noise_scale=scale)


def test_auto_finds_gamma_noise_on_either_side():
    models = [WienerKernelRegressor(noise="auto").fit(*skewed(0, sign)) for sign in (1.0, -1.0)]
    for model, sign in zip(models, (1.0, -1.0), strict=True):
        assert np.sign(model.noise_.cumulants(3)[2]) == sign
        assert model.tuning_result_.shape_gain > 3
        assert model.noise_.mean() == pytest.approx(0.0, abs=1e-12)
        shown = repr(model.tuning_result_)  # what was found, without the arrays behind it
        assert "level=Level(kernel=RBF(" in shown
        assert "np.float64" not in shown
        assert len(shown) < 1200


def test_auto_beats_normal_noise_on_new_data():
    model = WienerKernelRegressor(noise="auto").fit(*skewed(1))
    plain = WienerKernelRegressor(trend="constant").fit(*skewed(1))
    new = skewed(2, n=60)
    assert model.score_report(*new).log_score.mean() > plain.score_report(*new).log_score.mean() + 0.2


def test_auto_takes_the_residuals_for_a_shape_that_no_family_has():
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0, 6, (210, 1))
    noise = np.where(rng.random(210) < 0.4, -0.36, 0.24) + 0.06 * rng.normal(size=210)
    y = np.sin(inputs[:, 0]) + noise
    model = WienerKernelRegressor(noise="auto").fit(inputs[:150], y[:150])
    assert isinstance(model.noise_, SmoothedResiduals)
    assert model.noise_.std() == pytest.approx(noise.std(), rel=0.2)
    normal = WienerKernelRegressor().fit(inputs[:150], y[:150])
    gain = (
        model.score_report(inputs[150:], y[150:]).log_score
        - normal.score_report(inputs[150:], y[150:]).log_score
    )
    assert gain.mean() > 0.3


@pytest.mark.parametrize("heavy", [False, True])
def test_smoothed_residuals_compete_unless_their_tails_are_heavy(heavy, monkeypatch):
    """Beyond the largest residual, the smoothed residuals have next to no density."""
    rng = np.random.default_rng(0)
    inputs, noise = rng.uniform(0, 6, (120, 1)), rng.choice([-0.3, 0.3], 120) + 0.06 * rng.normal(size=120)
    if heavy:
        noise = np.where(rng.random(120) < 0.6, 0.02 * rng.normal(size=120), rng.standard_t(1.5, 120))
    shapes = []
    monkeypatch.setattr(
        sys.modules["wienerkernel.tuning.learn"], "_score", lambda _, __, shape: shapes.append(shape) or 0.0
    )
    WienerKernelRegressor(noise="auto").fit(inputs, np.sin(inputs[:, 0]) + noise)
    assert any(isinstance(shape, ScaledShape) for shape in shapes) != heavy


def test_auto_keeps_normal_noise_where_nothing_else_is_there():
    rng = np.random.default_rng(3)
    inputs = rng.uniform(0, 6, (80, 1))
    model = WienerKernelRegressor(noise="auto").fit(inputs, np.sin(inputs[:, 0]) + 0.2 * rng.normal(size=80))
    assert model.noise_.gaussian
    assert model.posterior_.transform is None  # some responses are negative
    assert model.noise_.std() == pytest.approx(0.2, rel=0.25)


def test_auto_learns_the_scale_of_positive_responses():
    rng = np.random.default_rng(4)
    inputs = rng.uniform(0, 6, (90, 2))
    y = np.exp(2 + np.sin(inputs[:, 0]) + 0.2 * rng.normal(size=90))
    model = WienerKernelRegressor(noise="auto").fit(inputs, y)
    assert model.posterior_.transform.lam < 0.4
    assert model.score(inputs, y) > 0.8
    assert 0.8 < model.score_report().coverage(0.9) < 0.97
    mean, std = model.predict(inputs[:3], return_std=True)
    assert np.all(std > 0)
    draws = model.sample_y(inputs[:3], 4000, of="observation", random_state=0)
    np.testing.assert_allclose(draws.mean(axis=1), mean, rtol=0.03)


def test_few_rows_take_the_smaller_model():
    model = WienerKernelRegressor(noise="auto").fit(X[::2], Y[::2])
    assert model.posterior_.level is None
    assert model.noise_.gaussian


def test_responses_that_do_not_vary_say_nothing_about_the_noise():
    with pytest.warns(ConvergenceWarning, match="do not vary"):
        model = WienerKernelRegressor(noise="auto").fit(np.arange(30.0)[:, None], np.ones(30))
    assert model.noise_.gaussian
    np.testing.assert_allclose(model.predict([[3.5]]), 1.0, rtol=1e-6)


def test_units_do_not_matter():
    inputs, y = skewed(5)
    one = WienerKernelRegressor(noise="auto").fit(inputs, y)
    other = WienerKernelRegressor(noise="auto").fit(1e3 * inputs, 1e-2 * y)
    at = np.array([[1.0], [5.0]])
    np.testing.assert_allclose(other.predict_interval(1e3 * at), 1e-2 * one.predict_interval(at), rtol=2e-5)
    inputs, y = skewed(6, n=30)
    one = WienerKernelRegressor(noise="auto").fit(inputs, y).predict_interval(at)
    for unit in (1e8, 3.7, 1e-8):
        other = WienerKernelRegressor(noise="auto").fit(inputs, unit * y)
        np.testing.assert_allclose(other.predict_interval(at), unit * one, rtol=1e-6)


def test_rounding_errors_do_not_matter():
    """Of evenly spaced inputs, two can be equally far from the pivots of the level's features."""
    inputs = np.linspace(0, 5, 40)[:, None]
    spread = 0.05 * np.exp(inputs[:, 0] / 2)
    y = np.exp(np.sin(inputs[:, 0]) + spread * np.random.default_rng(2).normal(size=40))
    expected = WienerKernelRegressor(noise="auto").fit(inputs, y).predict(inputs)
    rng = np.random.default_rng(0)
    for _ in range(4):
        rounded = y * (1 + 2e-16 * rng.integers(-1, 2, 40))
        found = WienerKernelRegressor(noise="auto").fit(inputs, rounded).predict(inputs)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_new_parameters_are_those_of_an_estimator():
    model = WienerKernelRegressor(noise="auto", noise_level="input", transform="box-cox")
    assert clone(model).get_params()["transform"] == "box-cox"


def test_auto_is_not_tuned_by_leave_one_out():
    with pytest.raises(ValueError, match="set tuning='likelihood'"):
        WienerKernelRegressor(noise="auto", tuning="loo").fit(X, Y)


def test_restarts_search_from_other_points_and_never_end_lower():
    inputs, y = skewed(0, n=40)
    results = [
        WienerKernelRegressor(noise="auto", n_restarts=n, random_state=seed).fit(inputs, y).tuning_result_
        for n, seed in ((0, 0), (2, 0), (2, 0), (2, 1))
    ]
    assert results[1].n_evaluations > 2 * results[0].n_evaluations
    assert results[1].parameters == results[2].parameters
    assert results[1].n_evaluations != results[3].n_evaluations
    assert all(result.value >= results[0].value - 1e-3 for result in results)


@pytest.mark.parametrize("level", ["input", "mean"])
def test_a_level_needs_samples_and_a_warning_says_that_it_is_constant(level):
    with pytest.warns(
        UserWarning, match=f"noise_level='{level}' needs at least 20 samples, got 15: the level is constant"
    ):
        model = WienerKernelRegressor(noise_level=level).fit(X, Y)
    assert model.tuning_result_.level is None
    assert model.tuning_result_.level_evidence is None
    np.testing.assert_array_equal(model.predict(Z), WienerKernelRegressor().fit(X, Y).predict(Z))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda inputs: 0 * inputs[:, 0], "positive and finite, got 0.0 for row 0"),
        (lambda inputs: np.where(inputs[:, 0] > 1, np.nan, 1.0), "positive and finite, got nan for row"),
        (lambda inputs: -1 + 0 * inputs[:, 0], "positive and finite, got -1.0"),
        (lambda inputs: 1 + inputs, r"one value for each of the 15 rows of X, got shape \(15, 1\)"),
        (lambda _: 1.0, r"got shape \(\)"),
        (lambda inputs: [1.0] * (len(inputs) - 1), r"got shape \(14,\)"),
        (lambda inputs: ["a"] * len(inputs), "real numbers"),
        (lambda inputs: 1 + 1j * inputs[:, 0], "real numbers"),
    ],
)
@pytest.mark.parametrize("tuning", [None, "likelihood"])
def test_level_functions_that_return_nonsense_are_refused(returned, message, tuning):
    with pytest.raises(ValueError, match=message):
        WienerKernelRegressor(noise_level=returned, tuning=tuning).fit(X, Y)


def test_a_level_function_that_fails_at_new_inputs_is_refused_there():
    model = WienerKernelRegressor(noise_level=lambda inputs: 4.0 - inputs[:, 0], tuning=None).fit(X, Y)
    far = [[5.0]]
    for ask in (
        lambda: model.predict_noise_scale(far),
        lambda: model.uncertainty(far),
        lambda: model.predict_interval(far),
        lambda: model.score_report(far, [0.0]),
        lambda: model.partial_fit(far, [0.0]),
    ):
        with pytest.raises(ValueError, match=r"positive and finite, got -1\.0 for row 0"):
            ask()


def test_correlated_noise_has_given_levels_only():
    matrix = np.eye(15) + 0.2 * np.tri(15)

    def level(inputs):
        return 1 + inputs[:, 0]

    given = WienerKernelRegressor(KERNEL, noise=GAMMA, noise_level=level, tuning=None).fit(
        X, Y, noise_scale=matrix
    )
    same = WienerKernelRegressor(KERNEL, noise=GAMMA, tuning=None).fit(
        X, Y, noise_scale=level(X)[:, None] * matrix
    )
    np.testing.assert_allclose(given.predict(Z), same.predict(Z), rtol=1e-12)
    np.testing.assert_allclose(given.uncertainty(Z).noise, same.uncertainty(Z).noise, rtol=1e-12)
    np.testing.assert_allclose(
        given.uncertainty(Z).aleatoric, same.uncertainty(Z).aleatoric * level(Z) ** 2, rtol=1e-12
    )
    more = np.eye(30)
    inputs, y = skewed(0, n=30)
    for options in ({"noise": "auto"}, {"noise_level": "input"}, {"transform": "yeo-johnson"}):
        with pytest.raises(ValueError, match=r"noise_scale must have shape \(30,\)"):
            WienerKernelRegressor(**options).fit(inputs, y, noise_scale=more)


LEARNED = [
    {"noise": "auto"},
    {"noise_level": "input", "noise": "laplace", "transform": "box-cox"},
    {"noise_level": "mean", "transform": "log"},
    {"noise_level": lambda inputs: 1 + inputs[:, 0], "transform": "yeo-johnson", "trend": "linear"},
]


@pytest.mark.parametrize("options", LEARNED)
def test_a_given_scale_multiplies_the_level_and_updates_equal_a_refit(options):
    inputs, y = skewed(1, n=30)
    inputs, y, scale = np.round(inputs, 1), y + 2.0, np.linspace(0.5, 2.0, 30)
    model = WienerKernelRegressor(**options).fit(inputs[:27], y[:27], noise_scale=scale[:27])
    found = model.posterior_
    level = np.ones(27) if found.level is None else found.level(inputs[:27])
    np.testing.assert_allclose(found.smoother.samples.scale, scale[:27] * level, rtol=1e-12)
    transform = found.transform and (
        found.transform,
        found.transform.inverse,
        lambda values: np.exp(found.transform.log_derivative(values)),
    )
    fixed = {"noise": model.noise_, "noise_level": found.level, "transform": transform, "tuning": None}
    trend = options.get("trend", "constant")
    model.partial_fit(inputs[27:], y[27:], noise_scale=scale[27:]).forget([0, 5, 28])
    left = np.delete(np.arange(30), [0, 5, 28])
    again = WienerKernelRegressor(model.kernel_, trend=trend, **fixed).fit(
        inputs[left], y[left], noise_scale=scale[left]
    )
    np.testing.assert_allclose(model.predict(Z), again.predict(Z), rtol=1e-8)
    np.testing.assert_allclose(model.uncertainty(Z).total, again.uncertainty(Z).total, rtol=1e-8)
    np.testing.assert_allclose(model.predict_interval(Z), again.predict_interval(Z), rtol=1e-7)
    np.testing.assert_allclose(model.score_report().pit, again.score_report().pit, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.log_likelihood(), again.log_likelihood(), rtol=1e-8)


def test_many_samples_are_thinned_for_the_search(monkeypatch):
    monkeypatch.setattr(sys.modules["wienerkernel.tuning.learn"], "MOST", 60)
    inputs, y = skewed(2, n=150)
    model = WienerKernelRegressor(noise="auto").fit(inputs, np.exp(y))
    assert len(model.posterior_.smoother.targets) == 150
    sizes = []
    call = joint.JointLikelihood.__call__
    monkeypatch.setattr(
        joint.JointLikelihood,
        "__call__",
        lambda self, values: (sizes.append(len(self.data.y)), call(self, values))[1],
    )
    again = WienerKernelRegressor(noise="auto").fit(inputs, np.exp(y))
    assert set(sizes) == {60}
    np.testing.assert_array_equal(model.predict(Z), again.predict(Z))
    with pytest.raises(ValueError, match="positive responses"):
        WienerKernelRegressor(transform="box-cox").fit(inputs, np.append(np.exp(y)[:-1], -1.0))


def test_a_given_ridge_changes_the_estimate_and_not_what_is_learned():
    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(0, 6, 60))[:, None]
    y = np.exp(np.sin(X[:, 0]) + 0.1 * (1 + X[:, 0]) * rng.standard_normal(60))
    free = WienerKernelRegressor(noise="auto").fit(X, y)
    given = WienerKernelRegressor(noise="auto", ridge=5.0).fit(X, y)
    assert (given.ridge_, given.tuning_result_.ridge) == (5.0, 5.0)
    assert given.kernel_ == free.kernel_
    np.testing.assert_array_equal(given.predict_noise_scale(X), free.predict_noise_scale(X))
    assert given.tuning_result_.transform == free.tuning_result_.transform
    smoother = given.posterior_.smoother
    np.testing.assert_array_equal(smoother.samples.row_regularizer, 5.0)
    A = np.linalg.inv(given.kernel_(X) + 5.0 * np.eye(60))
    z = given.tuning_result_.transform(y) - given.noise_.mean() * given.predict_noise_scale(X)
    beta = A.sum(axis=0) @ z / A.sum()
    mean = beta + given.kernel_(X) @ A @ (z - beta)
    np.testing.assert_allclose(given.posterior_.mean(X), mean, rtol=1e-8)
    assert not np.allclose(given.predict(X), free.predict(X), rtol=1e-2)
