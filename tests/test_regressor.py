"""The estimator: scikit-learn's manners, agreement with its GaussianProcessRegressor, bad input."""

import pickle

import numpy as np
import pytest
from helpers import every_trend, untuned
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import wienerkernel
from wienerkernel import (
    RBF,
    Actions,
    Exponential,
    FeatureMap,
    Matern,
    Neighbors,
    NotPositiveDefiniteError,
    Polynomial,
    RationalQuadratic,
    WienerKernelRegressor,
    as_noise,
)
from wienerkernel.tuning.data import Data


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # data without noise, and the like
@parametrize_with_checks([WienerKernelRegressor(), WienerKernelRegressor(trend=None)])
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=30), rng.normal(size=(11, 2))


KERNELS = [
    (2.0 * RBF([0.7, 1.3]), 2.0 * sk.RBF([0.7, 1.3])),
    (1.5 * Matern(0.9, nu=1.5), 1.5 * sk.Matern(0.9, nu=1.5)),
    (1.5 * Exponential(0.9), 1.5 * sk.Matern(0.9, nu=0.5)),
    (RBF(0.7) + 0.5 * RationalQuadratic(1.1, alpha=0.6), sk.RBF(0.7) + 0.5 * sk.RationalQuadratic(1.1, 0.6)),
    (Matern(0.9, nu=2.5) * RBF(2.0), sk.Matern(0.9, nu=2.5) * sk.RBF(2.0)),
]


@pytest.mark.parametrize(("ours", "theirs"), KERNELS, ids=lambda k: type(k).__name__)
def test_agreement_with_scikit_learn_gpr(ours, theirs, data):
    X, y, Z = data
    model = untuned(X, y, ours, noise=stats.norm(scale=0.3), trend=None)
    peer = GaussianProcessRegressor(theirs, alpha=0.09, optimizer=None).fit(X, y)
    mean, std = model.predict(Z, return_std=True)
    expected_mean, expected_std = peer.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(std, expected_std, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        model.predict(Z, return_cov=True)[1], peer.predict(Z, return_cov=True)[1], atol=1e-9
    )
    value, gradient = model.log_likelihood(eval_gradient=True)
    expected, expected_gradient = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(expected, rel=1e-9)
    if isinstance(theirs, sk.Sum):  # scikit-learn sorts the hyperparameters of RationalQuadratic by name
        expected_gradient = expected_gradient[[0, 1, 3, 2]]
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("ours", "theirs"), KERNELS, ids=lambda k: type(k).__name__)
def test_scikit_learn_kernels_are_accepted(ours, theirs, data):
    X, y, Z = data
    np.testing.assert_allclose(untuned(X, y, theirs).predict(Z), untuned(X, y, ours).predict(Z), rtol=1e-10)


def test_a_plain_callable_is_accepted(data):
    X, y, Z = data
    k = lambda a, b: (a @ b.T + 1.0) ** 2
    by_name = untuned(X, y, Polynomial(2))
    np.testing.assert_allclose(untuned(X, y, k).predict(Z), by_name.predict(Z), rtol=1e-9)


@pytest.mark.parametrize("noise", [None, "gamma(0.25, scale=2)", [-1.0, 0.5, 0.5]])
@pytest.mark.parametrize("ridge", [None, 0.7])
def test_the_parts_of_the_uncertainty_add_up(data, noise, ridge):
    X, y, Z = data
    model = untuned(X, y, noise=noise, ridge=ridge)
    u = model.uncertainty(Z)
    np.testing.assert_allclose(u.epistemic, u.noise + u.model)
    np.testing.assert_allclose(u.total, u.epistemic + u.aleatoric)
    np.testing.assert_allclose(model.predict(Z, return_std=True)[1] ** 2, u.epistemic, rtol=1e-9)
    for of, variance in [("estimate", u.noise), ("function", u.epistemic), ("observation", u.total)]:
        np.testing.assert_allclose(model.predict_distribution(Z, of).var(), variance, rtol=1e-9)


def test_an_observation_has_the_mean_of_its_noise(data):
    X, y, Z = data
    model = untuned(X, y, noise="gamma(0.25, scale=2)")
    np.testing.assert_allclose(model.predict_distribution(Z).mean(), model.predict(Z), rtol=1e-12)
    np.testing.assert_allclose(
        model.predict_distribution(Z, "observation").mean(), model.predict(Z) + 0.5, rtol=1e-12
    )


def test_score_compares_observations(data):
    X, y, _ = data
    plain = untuned(X, y, noise=stats.norm(scale=0.5))
    shifted = untuned(X, y + 7.0, noise=stats.norm(loc=7.0, scale=0.5))
    assert shifted.score(X, y + 7.0) == pytest.approx(plain.score(X, y))


def test_samples_shifted_by_the_mean_of_the_noise_give_the_same_estimate(data):
    X, y, Z = data
    centered = untuned(X, y, noise=stats.gamma(0.25, loc=-0.5, scale=2))
    shifted = untuned(X, y + 0.5, noise=stats.gamma(0.25, scale=2))
    np.testing.assert_allclose(centered.predict(Z), shifted.predict(Z), rtol=1e-12)


def test_a_common_noise_scale_is_the_scaled_law(data):
    X, y, Z = data
    scaled = untuned(X, y, noise=stats.gamma(0.25, scale=2), noise_scale=np.full(30, 3.0))
    law = untuned(X, y, noise=stats.gamma(0.25, scale=6))
    np.testing.assert_allclose(scaled.predict(Z), law.predict(Z), rtol=1e-12)
    np.testing.assert_allclose(scaled.uncertainty(Z).noise, law.uncertainty(Z).noise, rtol=1e-12)
    for r in (3, 4):
        one, other = (m.predict_distribution(Z).cumulant(r) for m in (scaled, law))
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_a_diagonal_matrix_of_noise_scales_is_a_vector_of_them(data):
    X, y, Z = data
    s = np.linspace(0.5, 2.0, 30)
    vector = untuned(X, y, noise="gamma(2)", noise_scale=s)
    matrix = untuned(X, y, noise="gamma(2)", noise_scale=np.diag(s))
    np.testing.assert_allclose(vector.predict(Z), matrix.predict(Z), rtol=1e-10)
    np.testing.assert_allclose(vector.uncertainty(Z).noise, matrix.uncertainty(Z).noise, rtol=1e-10)
    assert vector.log_likelihood() == pytest.approx(matrix.log_likelihood())
    np.testing.assert_allclose(vector.loo().total, matrix.loo().total, rtol=1e-9)


def test_several_outputs_are_so_many_single_ones(data):
    X, y, Z = data
    Y = np.column_stack([y, -2 * y, np.cos(y)])
    model = untuned(X, Y, noise="gamma(2)")
    singles = [untuned(X, column, noise="gamma(2)") for column in Y.T]
    np.testing.assert_allclose(model.predict(Z), np.column_stack([m.predict(Z) for m in singles]), rtol=1e-10)
    assert model.log_likelihood() == pytest.approx(sum(m.log_likelihood() for m in singles))
    assert model.predict(Z, return_std=True)[1].shape == (11, 3)
    assert model.predict(Z, return_cov=True)[1].shape == (11, 11, 3)
    assert model.sample_y(Z, 5).shape == (11, 3, 5)
    Y_law, y_law = model.predict_distribution(Z), singles[1].predict_distribution(Z)
    np.testing.assert_allclose(Y_law.mean()[:, 1], y_law.mean(), rtol=1e-10)
    np.testing.assert_allclose(Y_law.std()[:, 1], y_law.std(), rtol=1e-10)
    np.testing.assert_allclose(Y_law.ppf(0.9)[:, 1], y_law.ppf(0.9), rtol=1e-9)
    np.testing.assert_allclose(
        Y_law.ppf(np.array([0.1, 0.9])[:, None, None])[:, :, 1], y_law.ppf([[0.1], [0.9]]), rtol=1e-9
    )
    np.testing.assert_allclose(Y_law.cdf(Y_law.mean())[:, 1], y_law.cdf(y_law.mean()), rtol=1e-9)
    for method, argument in ((Y_law.ppf, 0.9), (Y_law.isf, np.full((4, 1, 1), 0.3)), (Y_law.cdf, 0.5)):
        value, error = method(argument, return_error=True)
        assert value.shape == error.shape == (*np.shape(argument)[:1], 11, 3)
    assert model.predict_quantiles(Z, [0.1, 0.5, 0.9]).shape == (11, 3, 3)
    assert Y_law.chaos().coefficients.shape == (11, 3, 31)
    one_column = untuned(X, Y[:, :1])
    assert one_column.predict(Z).shape == (11, 1)
    assert one_column.predict_distribution(Z).mean().shape == (11, 1)


def test_outputs_are_drawn_independently(data):
    X, y, Z = data
    draws = untuned(X, np.column_stack([y, y]), noise="gamma(2)").sample_y(Z[:1], 4000, of="estimate")
    assert abs(np.corrcoef(draws[0])[0, 1]) < 0.06


@pytest.mark.parametrize("of", ["estimate", "function", "observation"])
def test_draws_have_the_covariance_of_the_law(data, of):
    X, y, Z = data
    model = untuned(X, y, noise="gamma(0.25, scale=2)")
    Y = model.predict_distribution(Z, of)
    draws = Y.rvs(40_000, random_state=1)
    np.testing.assert_allclose(draws.mean(axis=0), Y.mean(), atol=0.03)
    np.testing.assert_allclose(draws.std(axis=0), Y.std(), rtol=0.05)
    if of == "function":
        covariance = model.predict(Z, return_cov=True)[1]
        np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.04)


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, Z: model.predict_distribution(Z, of="estimate"),
        lambda model, Z: model.predict_distribution(Z, of="function"),
        lambda model, Z: model.predict_distribution(Z, of="observation"),
        lambda model, Z: model.predict(Z, return_uncertainty=True),
        lambda model, Z: model.predict(Z, return_cov=True),
        lambda model, Z: model.bound(Z, norm=100.0),
        lambda model, Z: model.bound(Z, norm=100.0, method="abbasi-yadkori"),
        lambda model, Z: model.next_sample(Z),
    ],
)
def test_each_query_row_is_evaluated_once_against_the_data(data, ask, monkeypatch):
    X, y, Z = data
    monkeypatch.setattr("wienerkernel.smoother.smoother.CHUNK", 1)
    monkeypatch.setattr("wienerkernel.smoother.smoother.CHUNK_ROWS", 3)
    met = []

    def kernel(A, B):
        if B.shape == X.shape:
            met.extend(map(tuple, A))
        return np.exp(-0.5 * np.sum((A[:, None] - B) ** 2, axis=2))

    model = untuned(X, y, kernel, noise="norm(0, 0.5)", trend=None)
    met.clear()
    ask(model, Z)
    assert sorted(row for row in met if row not in set(map(tuple, X))) == sorted(map(tuple, Z))


def test_quantiles_and_intervals_put_the_query_point_first(data):
    X, y, Z = data
    model = untuned(X, y, noise="gamma(0.25, scale=2)")
    quantiles = model.predict_quantiles(Z, [0.05, 0.5, 0.95])
    assert quantiles.shape == (11, 3)
    np.testing.assert_allclose(quantiles[:, [0, 2]], model.predict_interval(Z, coverage=0.9), rtol=1e-10)
    Y = model.predict_distribution(Z, "observation")
    np.testing.assert_allclose(
        Y.cdf(quantiles.T), np.array([0.05, 0.5, 0.95])[:, None] * np.ones(11), atol=1e-10
    )


def test_repeated_samples_cost_only_their_places():
    rng = np.random.default_rng(0)
    places = rng.uniform(-5, 5, size=(400, 1))
    X = places[rng.integers(0, 400, 20_000)]
    model = untuned(X, np.sin(X[:, 0]) + rng.normal(size=20_000), RBF(1.0))
    assert model.posterior_.smoother.factor.shape == (400, 400)
    assert np.isfinite(model.log_likelihood())
    assert model.loo().mean.shape == (20_000,)


def test_tuning_scores_the_smoother_that_is_fitted_also_with_a_ridge_and_unequal_scales():
    X, y, scale = np.array([[0.0], [0.0], [1.0]]), np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 1.0])
    fitted = untuned(X, y, RBF(1.0), ridge=0.5, noise_scale=scale)
    data = Data(X, y[:, None], scale, ridge=0.5, trend="constant")
    scored = data.smoother(RBF(1.0), as_noise("norm(0, 1)"), np.full(3, 0.5))
    np.testing.assert_allclose(scored.mean(X)[:, 0], fitted.predict(X), rtol=1e-13)


def test_it_works_in_a_pipeline_a_search_and_cross_validation(data):
    X, y, _ = data
    pipeline = make_pipeline(
        StandardScaler(), WienerKernelRegressor(noise=stats.norm(scale=0.2), tuning=None)
    )
    assert np.all(np.isfinite(cross_val_score(pipeline, X, y)))
    search = GridSearchCV(
        WienerKernelRegressor(tuning=None), {"kernel": [RBF(0.5), RBF(2.0)], "noise": ["norm(0, 0.1)"]}, cv=3
    )
    assert search.fit(X, y).best_score_ > 0


def test_clones_and_pickles_predict_the_same(data):
    X, y, Z = data
    model = untuned(X, y, 2.0 * RBF(1.5), noise=stats.gamma(2), trend="linear")
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(Z), model.predict(Z))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(Z), model.predict(Z))


def test_inputs_are_not_modified(data):
    X, y, Z = data
    s = np.ones(30)
    copies = [a.copy() for a in (X, y, Z, s)]
    model = untuned(X, y, noise="gamma(2)", noise_scale=s)
    model.predict(Z, return_std=True)
    model.uncertainty(Z)
    model.predict_distribution(Z, "observation").cdf(np.zeros(11))
    for array, copy in zip((X, y, Z, s), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("approximation", [None, Neighbors(5), Actions("subset", 5)])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_data_that_change_after_the_fit_do_not_matter(data, approximation, library):
    X, y, Z = data
    as_array = pytest.importorskip("torch").tensor if library == "torch" else np.array
    given = [as_array(X), as_array(y), np.ones(30) if approximation else np.eye(30) + 0.1]
    model = WienerKernelRegressor(tuning=None, approximation=approximation).fit(*given)
    before = model.predict(as_array(Z), return_std=True)
    for array in given:
        array += 1.0
    for one, other in zip(before, model.predict(as_array(Z), return_std=True), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_a_fit_that_fails_leaves_the_model_as_it_was_or_unfitted(data):
    X, y, Z = data
    model = WienerKernelRegressor(noise="norm(0, 0.1)", tuning=None).fit(X, y)
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match="noise_scale must be positive"):
        model.fit(X[:, :1], y, noise_scale=-1)
    assert model.__dict__ == before
    with pytest.raises(NotPositiveDefiniteError, match="trend"):  # found when the old factor has made room
        model.set_params(trend="linear").fit(np.ones((30, 1)), y)
    with pytest.raises(NotFittedError):
        model.predict(Z)


def test_a_trend_extrapolates_what_the_kernel_forgets():
    X = np.linspace(0, 1, 15)[:, None]
    y = 3.0 + 2.0 * X[:, 0]
    far = np.array([[10.0]])
    assert abs(untuned(X, y, RBF(0.3), ridge=1e-6, trend=None).predict(far)[0]) < 1e-6
    assert untuned(X, y, RBF(0.3), ridge=1e-6, trend="constant").predict(far)[0] == pytest.approx(4, abs=1)
    assert untuned(X, y, RBF(0.3), ridge=1e-6, trend="linear").predict(far)[0] == pytest.approx(23.0)


class TestUglyCases:
    def test_one_row(self):
        model = WienerKernelRegressor(RBF(1.0), noise="gamma(0.25, scale=2)", trend=None, tuning=None)
        model.fit([[0.0]], [1.5])
        assert model.predict([[0.0]])[0] == pytest.approx(0.5)  # k / (k + rho^2) (y - m0)
        u = model.uncertainty([[0.0], [100.0]])
        np.testing.assert_allclose(u.noise, [0.25, 0.0], atol=1e-12)
        np.testing.assert_allclose(u.model, [0.25, 1.0])
        assert model.loo().mean[0] == pytest.approx(0.0)
        np.testing.assert_allclose(model.loo().model, 1.0)

    def test_one_row_and_a_constant_trend(self):
        model = untuned([[0.0]], [1.5], RBF(1.0), noise="gamma(0.25, scale=2)")
        np.testing.assert_allclose(model.predict([[0.0], [100.0]]), 1.0)  # y - m0
        u = model.uncertainty([[0.0], [100.0]])
        np.testing.assert_allclose(u.noise, 1.0)
        np.testing.assert_allclose(u.model, [0.0, 2.0], atol=1e-12)  # f(0) = y - M, and f(0) - f(100)
        with pytest.raises(ValueError, match="sample 0 cannot be left out"):
            model.loo()
        with pytest.raises(ValueError, match="sample 0 cannot be left out"):
            model.score_report()

    @pytest.mark.parametrize(("trend", "mean"), [(None, 24.5 * 50 / 51), ("constant", 24.5)])
    def test_all_rows_the_same(self, trend, mean):
        model = WienerKernelRegressor(RBF(1.0), trend=trend, tuning=None)
        model.fit(np.zeros((50, 2)), np.arange(50.0))
        assert model.predict([[0.0, 0.0]])[0] == pytest.approx(mean)

    def test_tiny_ridge_interpolates(self):
        X = np.linspace(0, 10, 8)[:, None]
        y = np.cos(X[:, 0])
        model = untuned(X, y, RBF(1.0), noise=stats.norm(scale=1e-7))
        np.testing.assert_allclose(model.predict(X), y, atol=1e-9)

    def test_huge_scale(self, data):
        X, y, Z = data
        small = untuned(X, y, RBF(1.0))
        huge = untuned(X, 1e20 * y, 1e40 * RBF(1.0), noise=stats.norm(scale=1e20))
        np.testing.assert_allclose(huge.predict(Z), 1e20 * small.predict(Z), rtol=1e-9)
        np.testing.assert_allclose(huge.uncertainty(Z).model, 1e40 * small.uncertainty(Z).model, rtol=1e-6)

    def test_a_far_point_knows_only_the_prior(self, data):
        X, y, _ = data
        model = WienerKernelRegressor(RBF(1.0), noise="gamma(0.25, scale=2)", trend=None, tuning=None)
        model.fit(X, y)
        far = [[1e3, 1e3]]
        assert model.predict(far)[0] == 0.0
        Y = model.predict_distribution(far)
        assert (Y.mean()[0], Y.var()[0], Y.ppf(0.5)[0]) == (0.0, 0.0, 0.0)
        assert model.predict_distribution(far, "function").ppf(0.975)[0] == pytest.approx(1.959963984540054)

    def test_no_query_points_are_refused_as_scikit_learn_does(self, data):
        X, y, _ = data
        with pytest.raises(ValueError, match="0 sample"):
            untuned(X, y).predict(np.empty((0, 2)))


@pytest.mark.parametrize(
    ("arguments", "fit", "message"),
    [
        ({"ridge": 0.0}, {}, "ridge must be a positive number"),
        ({"ridge": -1.0}, {}, "ridge must be a positive number"),
        ({"ridge": np.nan}, {}, "ridge must be a positive number"),
        ({"trend": "cubic"}, {}, "trend must be None, 'constant' or 'linear'"),
        ({"tuning": "magic"}, {}, "tuning must be"),
        ({"noise": "gama(1)"}, {}, "did you mean"),
        ({"noise": stats.cauchy()}, {}, "finite variance"),
        ({}, {"noise_scale": np.zeros(30)}, "noise_scale must be positive"),
        ({}, {"noise_scale": np.ones(4)}, "noise_scale must be finite, of shape"),
        ({}, {"noise_scale": np.full((30, 30), np.inf)}, "noise_scale must be finite, of shape"),
        ({}, {"noise_scale": np.zeros((30, 30))}, "no entry above 0 in row 0"),
        ({"ridge": 1.0}, {"noise_scale": np.diag(np.arange(30.0)[::-1])}, "no entry above 0 in row 29"),
        ({}, {"noise_scale": np.ones((30, 30))}, "covariance of the noise is singular"),
        ({}, {"noise_scale": np.eye(30)[[*range(29), 4]]}, "covariance of the noise is singular"),
        ({}, {"noise_scale": np.full(30, np.nan)}, "noise_scale must be finite"),
        ({"kernel": RBF([1.0, 2.0, 3.0])}, {}, "3.*2|2.*3"),
        ({"kernel": sk.RBF() + sk.WhiteKernel()}, {}, "noise"),
    ],
)
def test_bad_arguments_are_named(data, arguments, fit, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        WienerKernelRegressor(**arguments).fit(X, y, **fit)


def test_a_singular_covariance_of_the_noise_needs_a_ridge_of_its_own(data):
    X, y, _ = data
    model = untuned(X, y, ridge=0.5, noise_scale=np.ones((30, 30)))
    assert np.all(np.isfinite(model.uncertainty(X).noise))


def test_a_kernel_of_the_wrong_kind_is_refused(data):
    X, y, _ = data
    with pytest.raises(TypeError, match="kernel"):
        untuned(X, y, [1.0])


def test_bad_data_are_refused(data):
    X, y, Z = data
    for bad_X, bad_y in [
        (X[:, 0], y),
        (np.where(X > 1, np.nan, X), y),
        (X, np.where(y > 1, np.inf, y)),
        (X[:-1], y),
    ]:
        with pytest.raises(ValueError):
            untuned(bad_X, bad_y)
    with pytest.raises(NotFittedError):
        WienerKernelRegressor(tuning=None).predict(Z)
    with pytest.raises(ValueError, match="3 features"):
        untuned(X, y).predict(np.zeros((1, 3)))


def test_a_singular_kernel_matrix_names_the_remedies(data):
    X, y, _ = data
    with pytest.raises(NotPositiveDefiniteError, match="ridge"):
        untuned(X, y, RBF(1e4), ridge=1e-18)


def test_bad_questions_are_refused(data):
    X, y, Z = data
    model = untuned(X, y)
    with pytest.raises(ValueError, match="of must be one of"):
        model.predict_distribution(Z, of="future")
    with pytest.raises(ValueError, match="at most one of return_std"):
        model.predict(Z, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="levels between 0 and 1"):
        model.predict_quantiles(Z, [1.2])
    with pytest.raises(ValueError, match="coverage"):
        model.predict_interval(Z, coverage=1.0)
    with pytest.raises(ValueError, match="chaos form"):
        model.predict_distribution(Z, "function").chaos()
    with pytest.raises(TypeError, match="FeatureMap"):
        model.feature_weights()


def test_feature_map_equals_its_kernel(data):
    X, y, Z = data
    phi = lambda x: np.column_stack([np.ones(len(x)), x, x**2])
    features = untuned(X, y, FeatureMap(phi, scale=1.5))
    plain = untuned(X, y, lambda a, b: 2.25 * phi(a) @ phi(b).T)
    np.testing.assert_allclose(features.predict(Z), plain.predict(Z), rtol=1e-9)


@every_trend
def test_feature_weights_and_trend_are_the_estimate(data, trend):
    X, y, Z = data
    kernel = FeatureMap(lambda x: np.column_stack([np.ones(len(x)), x, x**2]))
    model = untuned(X, y, kernel, noise="gamma(2)", trend=trend)
    weights, smoother = model.feature_weights(), model.posterior_.smoother
    of_trend = smoother.trend(Z) @ smoother.trend_coefficients[:, 0]
    np.testing.assert_allclose(kernel.features(Z) @ weights.mean() + of_trend, model.predict(Z), rtol=1e-9)
    if trend is None:
        return
    shifted = untuned(X, y + 7, kernel, noise="gamma(2)", trend=trend)
    np.testing.assert_allclose(shifted.feature_weights().mean(), weights.mean(), atol=1e-9)


@pytest.mark.parametrize("n_outputs", [None, 2])
def test_gradients_equal_finite_differences(data, n_outputs):
    X, y, Z = data
    y = y if n_outputs is None else np.column_stack([y, y**2])
    model = untuned(X, y, 2.0 * Matern([0.9, 1.4], nu=2.5), noise="gamma(2)", trend="linear")
    gradient, h = model.predict_gradient(Z), 1e-6
    for k, step in enumerate(h * np.eye(2)):
        ahead, behind = Z + step, Z - step
        np.testing.assert_allclose(
            gradient.mean[..., k],
            (model.predict(ahead) - model.predict(behind)) / (2 * h),
            rtol=1e-5,
            atol=1e-7,
        )
        for part in ("noise", "model"):
            difference = getattr(model.uncertainty(ahead), part) - getattr(model.uncertainty(behind), part)
            np.testing.assert_allclose(
                getattr(gradient, part)[..., k], difference / (2 * h), rtol=1e-5, atol=1e-7
            )


def test_the_fast_predictor_equals_the_estimator(data):
    X, y, Z = data
    model = untuned(X, y, 2.0 * RBF(1.3), noise="gamma(0.25, scale=2)")
    mean, noise, part = model.predictor()(Z)
    np.testing.assert_allclose(mean, model.predict(Z), rtol=1e-11)
    np.testing.assert_allclose(noise, model.uncertainty(Z).noise, rtol=1e-10)
    np.testing.assert_allclose(part, model.uncertainty(Z).model, rtol=1e-9)
    np.testing.assert_allclose(model.predictor()(Z[0]), [mean[0], noise[0], part[0]], rtol=1e-10)


def test_the_ridge_path_equals_refits(data):
    X, y, Z = data
    model = untuned(X, y, RBF(1.3))
    path = model.ridge_path([0.1, 1.0])
    for mean, ridge in zip(path.mean(Z), path.ridges, strict=True):
        refit = untuned(X, y, RBF(1.3), ridge=float(ridge))
        np.testing.assert_allclose(mean[:, 0], refit.predict(Z), rtol=1e-10)


def test_bounds_and_plans_are_views_of_the_model(data):
    X, y, Z = data
    model = untuned(X, y, 2.0 * RBF(1.3), noise="gamma(0.25, scale=2)")
    lower, upper = model.bound(Z, norm=50.0, confidence=0.9)
    assert np.all(lower < model.predict(Z))
    assert np.all(model.predict(Z) < upper)
    needed = model.samples_needed(Z, std=0.1)
    assert np.all(needed.after <= 0.1)
    repeated = untuned(
        np.vstack([X, np.repeat(Z[:1], needed.number[0], axis=0)]),
        np.append(y, np.zeros(needed.number[0])),
        2.0 * RBF(1.3),
        noise="gamma(0.25, scale=2)",
    )
    assert repeated.predict(Z[:1], return_std=True)[1][0] == pytest.approx(needed.after[0], rel=1e-8)
    assert model.next_sample(Z, n_samples=3).points.shape == (3, 2)


class TestPrecision:
    def test_single_precision_stays_single_and_is_close(self, data):
        X, y, Z = data
        options = {"kernel": 2.0 * RBF(1.3), "noise": "norm(0, 0.5)", "tuning": None}
        double = WienerKernelRegressor(**options).fit(X, y)
        single = WienerKernelRegressor(**options, dtype="float32").fit(X, y)
        assert single.posterior_.smoother.factor.dtype == np.float32
        assert single.predict(Z).dtype == np.float32
        np.testing.assert_allclose(single.predict(Z), double.predict(Z), atol=2e-5)
        np.testing.assert_allclose(
            single.uncertainty(Z).epistemic, double.uncertainty(Z).epistemic, atol=2e-5
        )
        np.testing.assert_allclose(
            single.predict_quantiles(Z[:3], [0.1, 0.9]),
            double.predict_quantiles(Z[:3], [0.1, 0.9]),
            atol=1e-4,
        )

    def test_single_precision_loses_all_digits_of_a_tiny_ridge(self):
        X = np.linspace(0, 1, 40)[:, None]
        options = {"kernel": RBF(1.0), "ridge": 1e-8, "tuning": None}
        WienerKernelRegressor(**options).fit(X, X[:, 0])
        with pytest.raises(NotPositiveDefiniteError):
            WienerKernelRegressor(**options, dtype="float32").fit(X, X[:, 0])

    def test_a_saved_model_keeps_its_precision(self, data, tmp_path):
        X, y, Z = data
        model = untuned(X, y, 2.0 * RBF(1.3), noise="norm(0, 0.5)", dtype="float32")
        model.save(tmp_path / "model.wk")
        loaded = wienerkernel.load(tmp_path / "model.wk")
        assert loaded.dtype == "float32"
        np.testing.assert_array_equal(loaded.predict(Z), model.predict(Z))
        np.testing.assert_array_equal(loaded.uncertainty(Z).model, model.uncertainty(Z).model)

    def test_another_precision_is_refused(self, data):
        with pytest.raises(ValueError, match="dtype must be one of"):
            WienerKernelRegressor(dtype="float16").fit(*data[:2])


def test_mean_and_uncertainty_come_together(data):
    X, y, Z = data
    model = untuned(X, y, 2.0 * RBF(1.3), noise="gamma(2)")
    mean, parts = model.predict(Z, return_uncertainty=True)
    np.testing.assert_allclose(mean, model.predict(Z), rtol=1e-12)
    np.testing.assert_allclose(parts.noise, model.uncertainty(Z).noise, rtol=1e-12)
    with pytest.raises(ValueError, match="at most one"):
        model.predict(Z, return_std=True, return_uncertainty=True)


class TestTuning:
    def test_defaults_learn_length_scale_and_noise(self):
        rng = np.random.default_rng(0)
        X = np.sort(rng.uniform(-4, 4, 80))[:, None]
        model = WienerKernelRegressor().fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=80))
        assert model.noise_.std() == pytest.approx(0.1, rel=0.3)
        assert model.ridge_ == pytest.approx(model.noise_.var())
        np.testing.assert_allclose(model.predict([[0.5]]), np.sin(0.5), atol=0.1)
        assert model.tuning_result_.method == "likelihood"
        assert set(model.tuning_result_.parameters) == {
            "kernel.k1.value",
            "kernel.k2.length_scale",
            "noise.std",
        }

    def test_a_family_is_fitted_and_an_unknown_one_needs_tuning(self):
        rng = np.random.default_rng(1)
        X = np.linspace(-4, 4, 60)[:, None]
        y = np.sin(X[:, 0]) + rng.exponential(0.5, 60) - 0.5
        model = WienerKernelRegressor(noise="expon", tuning="loo").fit(X, y)
        assert model.noise_.mean() == pytest.approx(0.0, abs=1e-12)
        assert model.noise_.std() == pytest.approx(0.5, rel=0.4)
        with pytest.raises(ValueError, match="has unknown parameters"):
            untuned(X, y, noise="expon")

    def test_tuning_does_not_depend_on_the_array_library(self):
        torch = pytest.importorskip("torch")
        rng = np.random.default_rng(0)
        X = rng.uniform(-3, 3, (40, 2))
        y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=40)
        for tuning in ("likelihood", "loo"):
            ours = WienerKernelRegressor(noise="laplace", tuning=tuning).fit(X, y)
            theirs = WienerKernelRegressor(noise="laplace", tuning=tuning).fit(
                torch.asarray(X), torch.asarray(y)
            )
            np.testing.assert_allclose(theirs.kernel_.theta, ours.kernel_.theta, rtol=1e-3, atol=1e-3)
            assert isinstance(theirs.predict(torch.asarray(X)), torch.Tensor)
