"""Objectives and their gradients, the exact leave-one-out law, and what the search does with bad luck."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as theirs

from wienerkernel import LinearCombination, Mixture, Residuals, WienerKernelRegressor, as_noise
from wienerkernel.backend.linalg import NotPositiveDefiniteError
from wienerkernel.experiments.datasets import load_mcycle
from wienerkernel.kernels import (
    RBF,
    Constant,
    FeatureMap,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    ScikitLearnKernel,
)
from wienerkernel.law.log_density import THETA, LogDensity, centered
from wienerkernel.law.ray_table import SMOOTH, ray_table
from wienerkernel.law.terms import SumAtNodes, SumOnRay, Terms
from wienerkernel.noise import SmoothedResiduals
from wienerkernel.noise.family import Family, KnownLaw, noise_model
from wienerkernel.smoother.leave_one_out import LeaveOneOutLaws
from wienerkernel.tuning import Data, search, starts, tune
from wienerkernel.tuning.blend import shape_grid
from wienerkernel.tuning.data import Parameters
from wienerkernel.tuning.likelihood import Likelihood
from wienerkernel.tuning.loo_score import LeaveOneOutScore
from wienerkernel.tuning.residuals import residual_shape, shape_of_subset
from wienerkernel.tuning.search_box import default_kernel, search_box, variance_at_odds

KERNELS = {
    "RBF": RBF(1.3),
    "ARD": RBF([0.8, 1.7]),
    "Matern 1/2": Matern(1.1, nu=0.5),
    "Matern 3/2": Matern([1.1, 0.9], nu=1.5),
    "Matern 5/2": Matern(1.1, nu=2.5),
    "RationalQuadratic": RationalQuadratic(1.2, 0.7),
    "Periodic": Periodic(1.0, 2.3),
    "Linear": Linear(0.9),
    "Polynomial": Polynomial(2, 0.8, 1.5),
    "FeatureMap": FeatureMap(lambda X: np.hstack([X, X**2]), 0.7),
    "scikit-learn": ScikitLearnKernel(theirs.RBF(1.1)),
    "sum": Constant(0.6) + RBF(1.1),
    "product": 1.4 * RBF(1.1) * Linear(1.2),
    "sum of products": 2.0 * Matern(1.5, nu=2.5) + 0.3 * Periodic(1.0, 1.7),
    "power": (0.5 + RBF(1.0)) ** 2,
}


def _data(n=14, columns=2, outputs=2, repeats=True, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, columns))
    if repeats:
        X[-4:] = X[:4]
        X[-5] = X[0]
    y = np.sin(X[:, :1]) + rng.normal(scale=0.6, size=(n, outputs))
    return Data(X, y, options.pop("noise_scale", np.ones(n)), **options)


def _start(parameters):
    """Some point: the kernel as it is, noise of standard deviation 0.7, shapes a bit off their middle."""
    std = [np.log(0.7)] * parameters.noise.free_std
    return np.concatenate([parameters.kernel.theta, std, parameters.noise.shape_bounds @ [0.55, 0.45]])


def _differences(function, point, step=2e-4):
    """Central differences of fourth order."""
    result = np.empty(len(point))
    for k in range(len(point)):
        at = [function(point + m * step * np.eye(len(point))[k])[0] for m in (1, -1, 2, -2)]
        result[k] = (8 * (at[0] - at[1]) - (at[2] - at[3])) / (12 * step)
    return result


def _assert_gradient(objective, point, tolerance=1e-6):
    expected = _differences(objective, point)
    np.testing.assert_allclose(
        objective(point)[1], expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
    )


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("law", ["norm", "gamma(2.0, loc=-0.4, scale=0.5)"])
def test_gradients_equal_finite_differences_for_every_kernel(name, law):
    data, parameters = _data(), Parameters(KERNELS[name], noise_model(law))
    point = _start(parameters)
    _assert_gradient(Likelihood(data, parameters), point)
    _assert_gradient(LeaveOneOutScore(data, parameters), point)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("gamma", {}),
        ("gamma", {"ridge": 0.3, "trend": "linear"}),
        ("t", {"trend": "constant"}),
        ("lognorm", {"ridge": 0.3}),
        ("laplace", {"ridge": 0.3, "trend": "linear"}),
        ("uniform", {"trend": "linear"}),
        ("beta", {}),
        ("skewnorm", {}),
        ("weibull_min", {}),
        ("genextreme", {}),
    ],
)
def test_gradients_by_the_noise_equal_finite_differences(family, options):
    data = _data(noise_scale=np.random.default_rng(5).uniform(0.5, 2.0, 14), **options)
    parameters = Parameters(1.5 * RBF(1.0), Family(family))
    point = _start(parameters)
    _assert_gradient(LeaveOneOutScore(data, parameters), point, tolerance=5e-6)


@pytest.mark.parametrize("shape", [2.0, 8.0, 30.0])
def test_tables_of_skewnorm_serve_all_weights(shape):
    """Its characteristic function has zeros beside the rays; where a table fails, weights are summed one by one."""
    table = ray_table(centered(Family("skewnorm").law(1.0, [shape])).law, THETA, SMOOTH)
    table.cover(-12.0, 6.0)
    assert np.isinf(table.smooth_until)


@pytest.mark.parametrize("options", [{}, {"ridge": 0.3}, {"trend": "constant"}])
def test_gradients_see_a_mean_that_depends_on_the_noise(options):
    data = _data(**options)
    parameters = Parameters(1.5 * RBF(1.0), Family("gamma", loc=-0.2))
    point = _start(parameters)
    likelihood = Likelihood(data, parameters)(point)[1]
    expected = _differences(Likelihood(data, parameters), point)
    np.testing.assert_allclose(likelihood[:-1], expected[:-1], rtol=1e-6)  # the last is a shape
    _assert_gradient(LeaveOneOutScore(data, parameters), point, tolerance=5e-6)


def test_evaluations_share_one_matrix_and_do_not_disturb_each_other():
    data, parameters = _data(), Parameters(1.5 * RBF(1.0), Family("norm"))
    shared, point = Likelihood(data, parameters), _start(parameters)
    others = [point + 0.3, point - 0.5]
    for values in (point, *others, point):
        value, gradient = shared(values)
        expected = Likelihood(data, parameters)(values)
        assert value == expected[0] == shared.value(values)
        np.testing.assert_array_equal(gradient, expected[1])


def test_gradient_of_the_likelihood_under_correlated_noise_equals_finite_differences():
    rng = np.random.default_rng(3)
    data = _data(noise_scale=np.eye(14) + 0.2 * rng.normal(size=(14, 14)), repeats=False)
    parameters = Parameters(1.5 * RBF(1.0), Family("norm"))
    _assert_gradient(Likelihood(data, parameters), _start(parameters))


@pytest.mark.parametrize("noise_scale", [np.ones(14), np.linspace(0.5, 2.0, 14)])
def test_likelihood_is_the_density_of_a_normal_vector(noise_scale):
    data = _data(noise_scale=noise_scale)
    parameters = Parameters(1.5 * RBF(1.0), Family("norm"))
    point = _start(parameters)
    covariance = 1.5 * RBF(1.0)(data.X) + 0.49 * np.diag(noise_scale**2)
    expected = sum(stats.multivariate_normal(np.zeros(14), covariance).logpdf(column) for column in data.y.T)
    assert Likelihood(data, parameters)(point)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("law", ["gamma(0.4, loc=-0.3, scale=0.8)", "laplace(0, 0.5)", "norm(0, 0.5)"])
def test_leave_one_out_score_is_that_of_models_fitted_without_each_sample(law):
    data = _data(outputs=1, noise_scale=np.linspace(0.5, 1.5, 14))
    noise, kernel, scale = as_noise(law), 1.5 * RBF(1.0), data.noise_scale
    expected = 0.0
    for i in range(14):
        rest = np.delete(np.arange(14), i)
        k = kernel(data.X[rest], data.X[i : i + 1])[:, 0]
        K = kernel(data.X[rest])
        a = np.linalg.solve(K + noise.var() * np.diag(scale[rest] ** 2), k)
        model = 1.5 - 2 * a @ k + a @ K @ a
        weights = np.append(-a * scale[rest], scale[i])
        residual = data.y[i, 0] - noise.mean() * scale[i] - a @ (data.y[rest, 0] - noise.mean() * scale[rest])
        exact = LinearCombination(
            noise, weights, loc=-noise.mean() * weights.sum(), normal_std=np.sqrt(model)
        )
        expected += float(exact.logpdf(residual))
    score = LeaveOneOutScore(data, Parameters(kernel, KnownLaw(noise)))
    assert score(kernel.theta)[0] == pytest.approx(expected, rel=1e-8)


def test_samples_at_one_place_need_no_more_laws_than_places():
    X = np.repeat(np.linspace(0, 1, 3)[:, None], 4, axis=0)
    data = Data(X, np.random.default_rng(0).normal(size=(12, 1)), np.ones(12))
    score = LeaveOneOutScore(data, Parameters(RBF(0.5), Family("norm")))
    laws = LeaveOneOutLaws(score.smoother(np.array([np.log(0.5), 0.0])))
    assert laws.weights.shape == (3, 6)
    assert laws.counts.sum() == 12


LAWS = [
    "gamma(0.25, scale=2)",
    "expon()",
    "laplace()",
    "gumbel_r()",
    "uniform(-1, 2)",
    "beta(0.5, 3)",
    "lognorm(0.6)",
    "t(3)",
    "skewnorm(4)",
    "logistic()",
]
MIXTURE = Mixture(["norm(0, 0.3)", "gamma(2.0)"], [0.6, 0.4])
RESIDUALS = Residuals(np.random.default_rng(8).standard_t(3, size=60))
SMOOTHED = SmoothedResiduals(RESIDUALS.values)


def _rows(noise, n=12):
    """Weights, counts, model variances and residuals of a real regression, for noise of variance 1."""
    rng = np.random.default_rng(4)
    X = np.sort(rng.uniform(-3, 3, n))[:, None]
    A = np.linalg.inv(4 * RBF(1.0)(X) + np.eye(n))
    weights = A / np.diag(A)[:, None]
    model = 1 / np.diag(A) - np.sum(weights**2, axis=1)
    x = weights @ ((noise.rvs(n, random_state=1) - noise.mean()) / noise.std())
    return weights / noise.std(), np.ones(n), model, x


def _exact(noise, weights, counts, model):
    return LinearCombination(
        noise, weights, counts=counts, loc=-(weights @ counts) * noise.mean(), normal_std=np.sqrt(model)
    )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("spread", [1.0, 6.0])
def test_log_density_equals_that_of_the_linear_combination(law, spread):
    noise = as_noise(law)
    weights, counts, model, x = _rows(noise)
    value = LogDensity(centered(noise), weights, counts, model, spread * x, np.arange(len(x))).value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _exact(noise, weights, counts, model).logpdf(spread * x)
    known = np.isfinite(expected)
    np.testing.assert_allclose(value[known], expected[known], rtol=1e-6, atol=1e-7)
    assert np.all(np.isfinite(value))


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("law", [*LAWS, MIXTURE, RESIDUALS, SMOOTHED], ids=str)
def test_leave_one_out_densities_are_those_of_linear_combinations(law, repeats):
    noise = as_noise(law)
    data = _data(n=30, outputs=1, repeats=repeats, noise_scale=np.linspace(0.5, 1.5, 30))
    kernel = 1.5 * RBF(1.0)
    score = LeaveOneOutScore(data, Parameters(kernel, KnownLaw(noise)))
    loo = LeaveOneOutLaws(score.smoother(kernel.theta))
    exact = _exact(noise, loo.weights[loo.group], loo.counts, loo.model[loo.group])
    ((_, part),) = score._densities(kernel.theta)[2]
    expected = exact.logpdf(loo.residual[:, 0])
    known = np.isfinite(expected)  # beyond the support, but for the normal part, the density underflows
    assert np.mean(known) > 0.9
    np.testing.assert_allclose(part.value[known], expected[known], rtol=1e-7, atol=1e-8)


def _sums(law, weights, counts, theta):
    """The sum over weights on a ray, by tables and one by one."""
    terms, r = Terms(law, weights, counts, SMOOTH), np.exp(np.linspace(-3.0, 3.0, 400))
    t = np.broadcast_to(r * np.exp(-1j * theta), (len(weights), len(r)))
    return SumOnRay(terms, r, theta, SMOOTH), SumAtNodes(Terms(law, weights, counts), t)


@pytest.mark.parametrize(
    "law", ["gamma(0.25)", "t(2.2)", "laplace()", "skewnorm(4)", "lognorm(0.6)", "uniform()"]
)
def test_sums_over_many_weights_and_their_derivatives_equal_those_one_by_one(law):
    noise = centered(as_noise(law)).law
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(3, 40)) * np.exp(rng.uniform(-16, 0, size=(3, 40)))
    weights[1, 3:] = 0.0
    table, direct = _sums(noise, weights, rng.integers(1, 4, 40).astype(float), 0.2 * (law != "uniform()"))
    value, exact = table.value(noise), direct.value(noise)
    size = np.minimum(np.exp(exact.real), 1.0)
    assert np.max(np.abs(np.expm1(value - exact)) * size) < 1e-9
    cotangent = size * np.exp(1j * rng.uniform(0, 6, size=exact.shape))
    expected = direct.pullback(noise, cotangent)
    np.testing.assert_allclose(table.pullback(noise, cotangent), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", [1.5, 2.5, 5.0])
@pytest.mark.parametrize("name", ["weibull_min", "gennorm"])
def test_sums_on_a_ray_are_accurate_near_zeros_of_the_characteristic_function(name, shape):
    noise = centered(Family(name).law(1.0, [np.log(shape)])).law
    theta = 0.45 * noise.sector()
    table, direct = _sums(noise, np.array([[1.0], [-0.3], [-2.2]]), np.ones(1), theta)
    value, exact = table.value(noise), direct.value(noise)
    size = np.minimum(np.abs(np.exp(exact)), 1.0)
    assert np.max(np.abs(np.expm1(value - exact)) * size) < 1e-9
    got, expected = (total.pullback(noise, size.astype(complex)) for total in (table, direct))
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    if shape == 2.5:  # the logarithm alone would not do
        assert np.isfinite(ray_table(noise, theta, SMOOTH).smooth_until)


def test_characteristic_functions_too_large_for_numbers_do_not_disturb_the_others():
    law, theta = Residuals([-1.0, 0.0, 0.1, 9.0]), 0.3
    x = np.append(np.linspace(290, 310, 50), 1.0)  # the first are up to exp(825)
    expected = np.log(np.mean(np.exp(1j * x[-1] * np.exp(-1j * theta) * law.values)))
    log_phi = ray_table(law, theta, SMOOTH).log_phi(x)
    assert log_phi[-1] == pytest.approx(expected, rel=1e-7)
    assert np.all(np.isfinite(log_phi))


def test_log_density_of_smoothed_residuals_is_a_mixture_of_normal_ones():
    values = np.array([-1.0, 0.2, 1.5])
    noise = SmoothedResiduals(values, bandwidth=0.3)
    x = 0.7
    # x = (M_1 - m) + (M_2 - m) / 2 + N(0, 0.04)
    centers = (values[:, None] - noise.mean()) + 0.5 * (values[None, :] - noise.mean())
    width = np.sqrt(0.09 + 0.25 * 0.09 + 0.04)
    expected = np.log(np.mean(stats.norm(centers, width).pdf(x)))
    part = LogDensity(
        centered(noise), np.array([[1.0, 0.5]]), np.ones(2), np.array([0.04]), np.array([x]), np.array([0])
    )
    assert part.value[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("law", ["gamma(0.25, scale=2)", "uniform(-1, 2)"])
def test_several_points_of_one_row_share_its_law(law):
    noise = as_noise(law)
    weights, counts, model, _ = _rows(noise)
    x, row = np.array([0.1, -0.4, 0.9]), np.array([2, 2, 5])

    def density(x):
        return LogDensity(centered(noise), weights, counts, model, x, row)

    here = density(x)
    np.testing.assert_allclose(
        here.value, _exact(noise, weights[row], counts, model[row]).logpdf(x), rtol=1e-8
    )
    by_x, by_normal, by_weights = here.gradient
    assert np.flatnonzero(by_normal).tolist() == np.flatnonzero(np.any(by_weights, axis=1)).tolist() == [2, 5]
    step = 1e-5
    up, down = (density(x + s * np.array([1.0, 0, 0])).value[0] for s in (step, -step))
    assert by_x[0] == pytest.approx((up - down) / (2 * step), rel=1e-6)


def _silent(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return tune(*args, **options)


WIDE = (1e-4, 1e4)


def test_tuned_likelihood_under_the_users_bounds_is_at_least_that_of_scikit_learn():
    rng = np.random.default_rng(2)
    X = rng.uniform(-4, 4, (50, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=50)
    kernel, noise = Constant(1.0, WIDE) * RBF(1.0, WIDE), Family("norm", bounds={"std": WIDE})
    tuned = tune(Data(X, y[:, None], np.ones(50)), kernel, noise)
    kernel = theirs.ConstantKernel(1.0) * theirs.RBF(1.0) + theirs.WhiteKernel(0.1)
    reference = GaussianProcessRegressor(kernel, n_restarts_optimizer=3, random_state=0).fit(X, y)
    assert tuned.value >= reference.log_marginal_likelihood_value_ - 1e-4
    assert tuned.ridge == pytest.approx(reference.kernel_.k2.noise_level, rel=1e-2)


@pytest.mark.parametrize("seed", [1, 25])
@pytest.mark.parametrize("trend", [None, "constant"])
def test_the_leave_one_out_score_does_not_run_away_on_lines_with_growing_noise(seed, trend):
    """Without priors the kernel's variance ends at its bound, and predictions a little outside are absurd."""
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(0, 0.5, (60, 1)))
    y = (1 + 2 * X) * (1 + 0.15 * rng.normal(size=(60, 1)))
    data = Data(X, y, np.ones(60), trend=trend)
    tuned = tune(data, method="loo")
    assert tuned.parameters["kernel.k1.value"] < 100 * np.mean(y**2)
    outside = data.smoother(tuned.kernel, tuned.noise, data.covariance(tuned.ridge)).mean(
        2 * X.max(keepdims=True)
    )
    assert 0.0 < outside[0, 0] < 4 * y.max()


@pytest.mark.parametrize("noise", [1e-3, 0.3])
def test_priors_move_a_well_determined_optimum_by_much_less_than_its_standard_error(noise):
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 10, (80, 1)), axis=0)
    f = np.linalg.cholesky(RBF(0.7)(X) + 1e-10 * np.eye(80)) @ rng.normal(size=(80, 1))
    data = Data(X, f + noise * rng.normal(size=X.shape), np.ones(80))
    kernel, family = Constant(1.0, WIDE) * RBF(1.0, WIDE), Family("norm", bounds={"std": (1e-6, 1e2)})
    free, weak = tune(data, kernel, family), tune(data, 1.0 * RBF(1.0))
    maximum = np.log(list(free.parameters.values()))
    likelihood = Likelihood(data, Parameters(kernel, family))
    hessian = np.array(
        [likelihood(maximum + step)[1] - likelihood(maximum - step)[1] for step in 1e-4 * np.eye(3)]
    )
    errors = np.sqrt(np.diag(np.linalg.inv(-hessian / 2e-4)))
    shift = np.log(list(weak.parameters.values())) - maximum
    assert np.all(np.abs(shift) < 0.25 * errors)
    assert free.value - 0.05 < weak.value <= free.value


@pytest.mark.parametrize("method", ["likelihood", "loo"])
def test_the_value_is_that_of_the_objective_without_the_prior(method):
    data = _data()
    tuned = _silent(data, 1.0 * RBF(1.0), method=method)
    objective = {"likelihood": Likelihood, "loo": LeaveOneOutScore}[method]
    values = np.log(list(tuned.parameters.values()))
    scaled = Data(data.X, data.y / tuned.output_scale, data.noise_scale)  # the scales multiply to 1
    expected = objective(scaled, Parameters(1.0 * RBF(1.0), Family("norm"))).value(values)
    assert tuned.value == pytest.approx(expected, rel=1e-9)


def test_a_score_that_still_grows_at_a_bound_yields_to_the_likelihood():
    rng = np.random.default_rng(21)
    X = rng.normal(size=(6, 1))
    data = Data(X, X + 1e-3 * rng.standard_t(2.5, size=(6, 1)), np.ones(6))
    with pytest.warns(ConvergenceWarning, match=r"increases up to the bound of noise\.std.*the likelihood's"):
        tuned = tune(data, 1.01 * RBF(1.01), method="loo")
    assert tuned.parameters == tune(data, 1.01 * RBF(1.01)).parameters


def test_factors_share_the_variance_of_their_product():
    data = Data(np.linspace(1, 2, 9)[:, None], np.linspace(1e3, 2e3, 9)[:, None], np.ones(9))
    square = np.mean(data.y**2)
    for kernel in (
        2.0 * RBF(1.0),
        2.0 * Linear(1.0),
        Linear(1.0) * Linear(1.0) * RBF(1.0),
        Polynomial(3),
        Polynomial(2),
    ):
        box = search_box(data, Parameters(kernel, KnownLaw(as_noise("norm()"))))
        center = kernel.with_theta(box.log_prior.center)
        assert square / 2 < np.mean(center.diag(data.X)) < 10 * square


def test_a_feature_map_starts_at_the_size_of_the_data():
    data = Data(np.linspace(1, 2, 9)[:, None], np.linspace(1e3, 2e3, 9)[:, None], np.ones(9))
    kernel = FeatureMap(lambda X: 1e-3 * np.hstack([X, X**2]))
    box = search_box(data, Parameters(kernel, KnownLaw(as_noise("norm()"))))
    assert np.mean(kernel.with_theta(box.start).diag(data.X)) == pytest.approx(np.mean(data.y**2))


def test_a_users_bounds_replace_the_prior_and_equal_ones_fix_the_noise():
    data = _data()
    box = search_box(
        data, Parameters(Constant(1.0, WIDE) * RBF(1.0), Family("norm", bounds={"std": (0.1, 9.0)}))
    )
    assert box.has_prior.tolist() == [False, True, False]
    np.testing.assert_allclose(np.exp([box.low[2], box.high[2]]), [0.1, 9.0])
    assert _silent(
        data, 1.0 * RBF(1.0), Family("norm", bounds={"std": (0.4, 0.4)})
    ).noise.std() == pytest.approx(0.4)


def test_tuning_finds_scale_and_shape_of_gamma_noise():
    rng = np.random.default_rng(2)
    X = np.sort(rng.uniform(-5, 5, 100))[:, None]
    y = np.sin(X) + rng.gamma(0.5, 2.0, size=X.shape) - 1.0
    tuned = tune(Data(X, y, np.ones(100)), 1.0 * RBF(1.0), "gamma", method="loo")
    assert tuned.noise.mean() == pytest.approx(0.0, abs=1e-12)
    assert tuned.parameters["noise.a"] == pytest.approx(0.5, rel=0.3)
    assert tuned.noise.std() == pytest.approx(np.sqrt(2.0), rel=0.3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_sign_of_the_skew_is_found(sign):
    """The symmetric member of the skew-normal family is a stationary point of every score."""
    rng, kernel = np.random.default_rng(1), RBF(1.0, "fixed")
    X = rng.uniform(-3, 3, (60, 1))
    noise = stats.skewnorm(2.0).ppf((rng.permutation(60) + 0.5) / 60)[:, None]
    data = Data(X, sign * (np.sin(X) + noise - noise.mean()), np.ones(60))
    skewed, normal = (tune(data, kernel, family) for family in ("skewnorm", "norm"))
    assert 1.0 < sign * skewed.parameters["noise.a"] < 10.0
    score, symmetric = (
        LeaveOneOutScore(data, Parameters(kernel, KnownLaw(tuned.noise))).value(np.empty(0))
        for tuned in (skewed, normal)
    )
    assert score > symmetric + 0.3


@pytest.mark.parametrize(
    ("family", "sides"),
    [
        ("skewnorm", 2),
        ("johnsonsu", 2),
        ("beta", 2),
        ("genextreme", 2),
        ("jf_skew_t", 2),
        ("t", 1),
        ("gamma", 1),
    ],
)
def test_searches_for_shapes_start_on_both_sides_of_symmetric_laws(family, sides):
    parameters = Parameters(RBF(1.0), Family(family))
    box = search_box(_data(), parameters)
    found = starts.shape_starts(box, parameters, box.start)
    assert len(found) == sides
    if sides == 2:
        left, right = (
            [starts.skewness(parameters, start[parameters.shapes]) for start in side] for side in found
        )
        assert np.max(left) < -1e-6
        assert np.nanmin(right) > 1e-6


def test_a_given_law_and_fixed_hyperparameters_stay_as_they_are():
    data, kernel = _data(), 2.0 * RBF(1.0, "fixed")
    tuned = _silent(data, kernel, "gamma(2, loc=-1, scale=0.5)", method="loo")
    assert tuned.kernel.k2 == kernel.k2
    assert tuned.noise == as_noise("gamma(2, loc=-1, scale=0.5)")
    assert list(tuned.parameters) == ["kernel.k1.value"]
    fixed = tune(data, RBF(1.0, "fixed"), "norm(0, 2)")
    assert fixed.parameters == {}
    assert fixed.ridge == 4.0


def test_a_given_ridge_is_kept_and_does_not_enter_the_likelihood():
    free, given = tune(_data(), 1.0 * RBF(1.0)), tune(_data(ridge=0.123), 1.0 * RBF(1.0))
    assert given.ridge == 0.123
    assert given.parameters == free.parameters


def test_residuals_give_their_shape_and_the_tuned_variance():
    rng = np.random.default_rng(1)
    X = np.linspace(-3, 3, 60)[:, None]
    y = np.sin(X) + rng.gamma(0.5, size=X.shape)
    tuned = tune(Data(X, y, np.ones(60)), 1.0 * RBF(1.0), "residuals")
    assert isinstance(tuned.noise, SmoothedResiduals)
    assert tuned.noise.mean() == pytest.approx(0.0, abs=1e-12)
    assert tuned.noise.std() == pytest.approx(tuned.parameters["noise.std"])
    assert tuned.noise.cumulants(3)[2] > 0


def test_residuals_do_not_score_themselves():
    """On normal data a shape taken from the residuals is no better than the normal law."""
    kernel, gain = RBF(1.0, "fixed"), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-3, 3, (25, 1))
        data = Data(X, np.sin(X) + 0.3 * rng.normal(size=X.shape), np.ones(25))
        residuals, normal = (_silent(data, kernel, noise, method="loo") for noise in ("residuals", "norm"))
        gain.append(residuals.value - normal.value)
    assert np.mean(gain) < 0


@pytest.mark.parametrize("repeats", [1, 6])
def test_every_sample_is_scored_by_the_residuals_of_others(repeats):
    X = np.repeat(np.linspace(0, 3, 8)[:, None], repeats, axis=0)
    data = Data(X, np.random.default_rng(0).normal(size=(len(X), 2)), np.ones(len(X)))
    parameters = Parameters(RBF(1.0), Family("norm"))
    shape = residual_shape(data, parameters, np.zeros(2))
    scored = np.concatenate([index for index, _ in shape.folds])
    assert np.sort(scored).tolist() == list(range(data.y.size))
    for index, law in shape.folds:
        assert len(law.residuals.values) == data.y.size - len(index)
    _assert_gradient(LeaveOneOutScore(data, Parameters(RBF(1.0), shape)), np.array([0.1, -0.2]), 5e-6)


def test_replicates_show_the_shape_of_the_noise_without_a_model():
    rng = np.random.default_rng(1)
    X = np.repeat(np.linspace(-3, 3, 5)[:, None], 12, axis=0)
    y = 5 * np.sin(7 * X) + rng.gamma(0.5, size=X.shape)
    tuned = _silent(Data(X, y, np.ones(60)), 1.0 * RBF(1.0), "residuals")
    skewness = tuned.noise.cumulants(3)[2] / tuned.noise.std() ** 3
    assert skewness == pytest.approx(
        stats.skew((y - y.reshape(5, 12).mean(1).repeat(12)[:, None]).ravel()), rel=0.2
    )


def test_the_same_random_state_gives_the_same_result():
    first, second = (
        _silent(_data(), 1.0 * RBF(1.0), "laplace", method="loo", n_restarts=2, random_state=7) for _ in "ab"
    )
    assert first.parameters == second.parameters


def test_restarts_never_end_below_a_single_search():
    one = _silent(_data(), 1.0 * RBF(1.0))
    more = _silent(_data(), 1.0 * RBF(1.0), n_restarts=3, random_state=0)
    assert more.value >= one.value - 1e-9


def test_scaling_the_data_scales_what_is_learned():
    data = _data(repeats=False)
    small = tune(data, 1.0 * RBF(1.0))
    for unit_x, unit_y in ((1e6, 1e-7), (1e-7, 1e6)):
        large = tune(Data(unit_x * data.X, unit_y * data.y, data.noise_scale), 1.0 * RBF(1.0))
        assert large.noise.std() / unit_y == pytest.approx(small.noise.std(), rel=1e-3)
        assert large.kernel.k2.length_scale / unit_x == pytest.approx(small.kernel.k2.length_scale, rel=1e-2)


@pytest.mark.parametrize("method", ["likelihood", "loo"])
@pytest.mark.parametrize("kernel", [None, "matern52", "rbf + linear"])
def test_predictions_do_not_depend_on_the_units_of_the_inputs(kernel, method):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(40, 3)) + 1.0, rng.normal(size=(5, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + rng.gumbel(scale=0.1, size=40)
    units = np.array([3e-4, 1.0, 7e3])
    models = [
        WienerKernelRegressor(kernel, noise="laplace", tuning=method).fit(X * unit, y)
        for unit in (1.0, units)
    ]
    expected, found = models[0].predict(Z), models[1].predict(Z * units)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(
        models[1].uncertainty(Z * units).total, models[0].uncertainty(Z).total, rtol=1e-6
    )
    assert len(models[0].kernel_.names) >= 4


def test_a_default_value_is_no_start_and_another_one_is():
    data = _data(columns=1)
    for kernel, given in (
        (1.0 * RBF(1.0), False),
        (1.0 * RBF(1.1), True),
        (1.0 * RBF(1.0, (0.5, 2.0)), True),
    ):
        parameters = Parameters(kernel, KnownLaw(as_noise("norm()")))
        box = search_box(data, parameters)
        first = next(iter(starts.starting_points(box, parameters)))
        assert first[1] == (kernel.theta if given else box.start)[1]


def test_the_prior_counts_once_for_each_output():
    one, two = _data(columns=3, outputs=1), _data(columns=3, outputs=2)
    boxes = [search_box(d, Parameters(1.0 * RBF([1.0, 1.0, 1.0]), Family("norm"))) for d in (one, two)]
    values = boxes[0].log_prior.center + np.array([0.1, 0.5, -0.2, 0.3, 0.2])
    shifted = values + boxes[1].log_prior.center - boxes[0].log_prior.center
    assert boxes[1].log_prior(shifted)[0] == pytest.approx(2 * boxes[0].log_prior(values)[0])
    assert boxes[0].has_prior.all()


BAD_LUCK = {
    "constant target": (np.linspace(0, 1, 9)[:, None], np.full(9, 3.0), "noise.std"),
    "zero target": (np.linspace(0, 1, 9)[:, None], np.zeros(9), "noise.std"),
    "single row": (np.array([[1.0]]), np.array([2.0]), "length_scale"),
    "one place": (np.ones((8, 1)), np.random.default_rng(0).normal(size=8), "length_scale"),
    "fewer rows than parameters": (
        np.random.default_rng(0).normal(size=(3, 6)) * [1, 10, 100, 1, 1, 1],
        np.arange(3.0),
        "length_scale",
    ),
    "constant input": (
        np.column_stack([np.linspace(0, 5, 20), np.full(20, 7.0)]) * [10.0, 1.0],
        np.sin(np.linspace(0, 5, 20)) + 0.1 * np.random.default_rng(0).normal(size=20),
        "length_scale[1]",
    ),
}


@pytest.mark.parametrize("case", BAD_LUCK)
@pytest.mark.parametrize("method", ["likelihood", "loo"])
def test_bad_luck_ends_in_a_model_and_a_warning_that_names_the_parameter(case, method):
    X, y, name = BAD_LUCK[case]
    with pytest.warns(ConvergenceWarning, match="tuning: ") as record:
        tuned = tune(Data(X, y[:, None], np.ones(len(y))), method=method)
    assert any(name in str(warning.message) for warning in record)
    assert np.all(np.isfinite(tuned.kernel.theta))
    assert 0 < tuned.noise.std() < np.inf


@pytest.mark.parametrize("method", ["likelihood", "loo"])
@pytest.mark.parametrize("y", [np.zeros(9), np.full(9, 3.0), np.full(1, 3.0)])
def test_targets_that_do_not_vary_end_without_a_search_for_the_shape_of_the_noise(y, method, monkeypatch):
    monkeypatch.setattr(LeaveOneOutScore, "__call__", None)
    data = Data(np.linspace(0, 1, len(y))[:, None], y[:, None], np.ones(len(y)))
    with pytest.warns(ConvergenceWarning, match=r"the targets do not vary.*do not determine.*noise\.a"):
        tuned = tune(data, None, "gamma", method=method)
    assert np.isfinite(tuned.value)


@pytest.mark.parametrize("method", ["likelihood", "loo"])
@pytest.mark.parametrize("y", [np.full(9, 3.0), np.full(1, 3.0), np.arange(2.0)])
def test_residuals_that_do_not_show_a_shape_are_normal_noise(y, method):
    data = Data(np.linspace(0, 1, len(y))[:, None], y[:, None], np.ones(len(y)))
    with pytest.warns(ConvergenceWarning, match="tuning: "):
        tuned = tune(data, None, "residuals", method=method)
    assert tuned.noise.gaussian
    with pytest.warns(ConvergenceWarning, match="tuning: "):
        assert tuned.value == pytest.approx(tune(data, None, "norm", method=method).value)


FAMILIES = (
    "beta exponnorm fisk gamma genextreme gennorm genpareto gumbel_r invgamma invgauss laplace logistic lognorm lomax "
    "pareto skewnorm t triang uniform weibull_min"
)


@pytest.mark.parametrize("family", FAMILIES.split())
def test_every_family_ends_in_a_model(family):
    """Normal data drive many shapes to the end of their range."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(30, 1))
    data = Data(X, np.sin(X) + 0.3 * rng.normal(size=X.shape), np.ones(30))
    tuned = _silent(data, RBF(), Family(family), method="likelihood")
    assert np.isfinite(tuned.value)
    assert 0.2 < tuned.noise.std() < 0.4


def test_a_family_near_the_end_of_its_exponential_moments_is_tuned():
    """A Weibull law whose shape is a little above 1 has moments E exp(sM) beyond all numbers."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(25, 1))
    data = Data(X, np.sin(X) + 0.3 * rng.exponential(size=X.shape), np.ones(25))
    tuned = _silent(data, RBF(), Family("weibull_min", bounds={"c": (0.9, 1.3)}), method="loo")
    assert np.isfinite(tuned.value)


def test_duplicated_rows_with_different_targets_are_noise():
    X = np.repeat(np.linspace(0, 3, 6)[:, None], 2, axis=0)
    y = np.sin(X) + np.tile([[0.5], [-0.5]], (6, 1))
    assert _silent(Data(X, y, np.ones(12))).noise.std() == pytest.approx(0.5, rel=0.5)


@pytest.mark.parametrize("method", ["likelihood", "loo"])
def test_a_bound_that_is_hit_is_named(method):
    X = np.linspace(0, 6, 40)[:, None]
    data = Data(X, np.sin(X) + 0.1 * np.random.default_rng(0).normal(size=X.shape), np.ones(40))
    with pytest.warns(ConvergenceWarning, match=r"kernel\.length_scale ended at its upper bound 0\.2"):
        tuned = tune(data, RBF(0.1, (0.05, 0.2)), method=method)
    assert tuned.kernel.length_scale == pytest.approx(0.2)


def test_a_support_that_excludes_the_residuals_is_named():
    rng = np.random.default_rng(0)
    X = np.linspace(0, 5, 30)[:, None]
    y = 0.02 * rng.standard_t(3, size=X.shape) + np.where(np.arange(30)[:, None] == 13, 5.0, 0.0)
    with pytest.warns(ConvergenceWarning, match="outside the support of noise"):
        tune(Data(X, y, np.ones(30)), RBF(1.0, "fixed") * Constant(0.01, "fixed"), "uniform(-0.1, 0.2)")


@pytest.mark.parametrize("trend", [None, "constant"])
@pytest.mark.parametrize("kernel", [RBF(1.0), RBF(1.0) + Matern(2.0), ScikitLearnKernel(theirs.RBF(1.1))])
@pytest.mark.parametrize("size", [1e-2, 1e2])
def test_a_kernel_without_an_amplitude_that_does_not_fit_the_data_is_named(size, kernel, trend):
    data = _data()
    with pytest.warns(ConvergenceWarning, match=r"multiply the kernel by a constant, 1\.0 \* "):
        tune(Data(data.X, size * data.y, data.noise_scale, trend=trend), kernel)


@pytest.mark.parametrize(
    "kernel",
    [
        None,
        1.0 * RBF(1.0),
        RBF(1.0) * Matern(2.0) * Constant(2.0),
        Constant(0.01, "fixed") * RBF(1.0),
        Linear(1.0),
        Linear(1.0, "fixed"),
        FeatureMap(lambda X: X, 2.0, "fixed"),
        Polynomial(2),
    ],
)
def test_a_kernel_whose_amplitude_is_free_or_given_on_purpose_is_not_named(kernel):
    data = _data()
    large = Data(data.X, 1e2 * data.y, data.noise_scale)
    assert variance_at_odds(large, default_kernel(large) if kernel is None else kernel) == ""


@pytest.mark.parametrize("size", [0.4, 1.0, 2.5])
def test_a_kernel_without_an_amplitude_that_fits_the_data_is_not_named(size):
    y = size * np.array([[1.0], [-1.0]])
    assert variance_at_odds(Data(np.arange(2.0)[:, None], y, np.ones(2)), RBF(1.0)) == ""


def test_a_trend_that_the_rows_do_not_determine_is_an_error():
    data = Data(np.ones((4, 1)), np.arange(4.0)[:, None], np.ones(4), trend="linear")
    with pytest.raises(NotPositiveDefiniteError, match="trend"):
        tune(data)


def test_correlated_noise_has_no_leave_one_out_score():
    data = _data(noise_scale=np.eye(14))
    with pytest.raises(ValueError, match="noise_scale"):
        tune(data, method="loo")
    assert tune(data, 1.0 * RBF(1.0)).value == pytest.approx(tune(_data(), 1.0 * RBF(1.0)).value, rel=1e-5)


@pytest.mark.parametrize(
    ("noise", "method", "options"),
    [
        ("norm", "likelihood", {}),
        ("norm", "likelihood", {"trend": "constant", "noise_scale": np.linspace(0.5, 2, 240)}),
        ("skewnorm", "likelihood", {}),
        ("laplace", "loo", {"ridge": 0.05}),
        ("residuals", "loo", {}),
    ],
)
def test_a_search_that_begins_on_a_subset_ends_at_the_maximum_of_all_samples(
    noise, method, options, monkeypatch
):
    rng, kernel = np.random.default_rng(0), 1.0 * RBF([1.0, 1.0])
    X = rng.uniform(-2, 2, (240, 2))
    X[-20:] = X[:20]
    y = np.sin(2 * X[:, :1]) + X[:, 1:] ** 2 + 0.2 * rng.gumbel(size=(240, 1))
    data = Data(X, y, **{"noise_scale": np.ones(240), **options})
    objective, sizes = {"likelihood": Likelihood, "loo": LeaveOneOutScore}[method], []
    evaluate = objective.__call__
    monkeypatch.setattr(
        objective, "__call__", lambda self, values: sizes.append(len(self.data.y)) or evaluate(self, values)
    )
    whole = _silent(data, kernel, noise, method=method)
    on_all = len(sizes)
    monkeypatch.setattr(starts, "MIN_SUBSET", 50)
    staged = _silent(data, kernel, noise, method=method)
    assert min(sizes) < 70
    assert sizes[on_all:].count(240) < on_all
    box = search_box(data, Parameters(kernel, Family("norm")))  # shapes have no prior

    def posterior(tuned):
        return tuned.value + box.log_prior(np.log(list(tuned.parameters.values())[:4]))[0]

    # The shape of residuals depends a little on where the first search ended.
    assert posterior(staged) == pytest.approx(posterior(whole), abs=0.05 if noise == "residuals" else 1e-3)
    np.testing.assert_allclose(
        list(staged.parameters.values()), list(whole.parameters.values()), rtol=0.02, atol=0.01
    )


def test_a_start_that_beats_the_maximum_of_the_subset_is_taken(monkeypatch):
    """A subset of every fourth point does not resolve the oscillation."""
    X = np.linspace(0, 60, 240)[:, None]
    data = Data(X, np.sin(4 * X) + 0.1 * np.random.default_rng(0).normal(size=X.shape), np.ones(240))
    kernel = 1.0 * RBF(0.4)
    monkeypatch.setattr(search, "nested_subsets", lambda _: [np.arange(0, 240, 8), None])
    staged = _silent(data, kernel)
    monkeypatch.setattr(search, "nested_subsets", lambda _: [None])
    assert staged.value == pytest.approx(_silent(data, kernel).value, abs=2e-3)


def test_a_subset_that_cannot_be_evaluated_is_skipped(monkeypatch):
    data = _data(trend="linear", repeats=False)
    whole = _silent(data, 1.0 * RBF(1.0))
    monkeypatch.setattr(
        search, "nested_subsets", lambda _: [np.arange(2), None]
    )  # a plane needs three points
    assert _silent(data, 1.0 * RBF(1.0)).parameters == whole.parameters


def test_samples_of_a_subset_are_scored_by_the_same_residuals():
    rng = np.random.default_rng(0)
    data = Data(rng.normal(size=(12, 1)), rng.normal(size=(12, 2)), np.ones(12))
    shape = residual_shape(data, Parameters(RBF(1.0), Family("norm")), np.zeros(2))
    rows = np.array([1, 4, 5, 10])
    law_of = {int(i): law for index, law in shape.folds for i in index}
    for index, law in shape_of_subset(shape, rows, data.y.shape).folds:
        for i in index:
            assert law_of[int(2 * rows[i // 2] + i % 2)] is law


def test_an_unknown_method_is_an_error():
    with pytest.raises(ValueError, match="'likelihood', 'loo'"):
        tune(_data(), method="mcmc")


def test_the_users_bounds_are_respected_and_default_bounds_come_from_the_data():
    data = Data(np.linspace(0, 10, 11)[:, None], np.arange(11.0)[:, None], np.ones(11))
    box = search_box(data, Parameters(Constant(1.0, (0.5, 2.0)) * RBF(1.0), Family("norm")))
    np.testing.assert_allclose(np.exp([box.low[0], box.high[0]]), [0.5, 2.0])
    np.testing.assert_allclose(np.exp([box.low[1], box.high[1]]), [0.5, 1000.0])


def _leave_one_out_density(model, X, y):
    """Mean log score of a scikit-learn GPR with fixed hyperparameters, each sample left out in turn."""
    K = model.kernel_(X)
    inverse = np.linalg.inv(K)
    center, scale = model._y_train_mean, model._y_train_std
    residual = inverse @ ((y - center) / scale) / np.diag(inverse)
    return np.mean(stats.norm(0, 1 / np.sqrt(np.diag(inverse))).logpdf(residual)) - np.log(scale)


@pytest.mark.parametrize("name", ["diabetes", "mcycle"])
def test_defaults_are_as_good_as_scikit_learn_in_log_score(name):
    X, y = load_diabetes(return_X_y=True) if name == "diabetes" else load_mcycle()
    kernel = theirs.ConstantKernel() * theirs.RBF() + theirs.WhiteKernel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = GaussianProcessRegressor(kernel).fit(X, y)
    tuned = _silent(Data(X, y[:, None], np.ones(len(y))))
    score = LeaveOneOutScore(
        Data(X, y[:, None], np.ones(len(y))), Parameters(tuned.kernel, KnownLaw(tuned.noise))
    )
    ours = score(tuned.kernel.theta)[0] / len(y)
    assert ours >= _leave_one_out_density(reference, X, y)


@pytest.mark.parametrize("shape", [-0.41354671, 0.2])
def test_characteristic_functions_are_interpolated_between_shapes_where_they_have_turned_often(shape):
    family = Family("lognorm")
    law, _ = shape_grid(family)(shape)
    exact = centered(family.law(1.0, [shape]))
    r = np.exp(np.arange(-5.0, 4.0, 0.25))
    for sign in (1, -1):
        found = law.law.ray_table(THETA, SMOOTH).log_phi(sign * r)
        truth = exact.law.logcf(sign * r * np.exp(-1j * THETA))
        np.testing.assert_allclose(np.exp(found), np.exp(truth), rtol=0, atol=1e-7)
