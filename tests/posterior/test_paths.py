"""Sample paths: exact covariances of the conditioning, laws and joint laws by large samples, gradients, bad input."""

import numpy as np
import pytest
from helpers import every_structure, every_trend, problem, structured_data, untuned
from kernels.members import every_kernel
from scipy import stats

from wienerkernel import (
    RBF,
    FeatureMap,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    WienerKernelRegressor,
)
from wienerkernel.experiments.system import GAMMA, kernel, truth
from wienerkernel.kernels.paired import paired
from wienerkernel.posterior.features import feature_map
from wienerkernel.posterior.residual import PriorRoot, VisitedResidual

CRITICAL = 1.628 / np.sqrt(1e5)
"""Kolmogorov's distance of 1e5 draws that is exceeded with probability 1 %."""


def distance(drawn, law):
    """Kolmogorov's distance between draws and a law of shape (1,), whose cdf is interpolated between 4000 quantiles."""
    levels = (np.arange(4000) + 0.5) / 4000
    quantiles = law.ppf(levels[:, None])[:, 0]
    return stats.kstest(drawn, lambda y: np.interp(y, quantiles, levels)).statistic


def paper_model(trend=None, **options):
    X = np.linspace(-5, 5, 5)[:, None]
    y = truth(X[:, 0]) + np.random.default_rng(0).gamma(0.25, 2, 5)
    return untuned(X, y, kernel(), noise=GAMMA, trend=trend, **options)


@every_kernel
def test_values_of_pairs_are_those_of_the_matrix(kernel, d):
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(3, 4, d)), rng.normal(size=(3, 1, d))
    expected = [kernel(x, z)[:, 0] for x, z in zip(X, Z, strict=True)]
    np.testing.assert_allclose(paired(kernel, X, Z), expected, rtol=1e-12, atol=1e-12)


@every_kernel
def test_slopes_of_pairs_are_those_of_the_values(kernel, d):
    rng = np.random.default_rng(2)
    X, Z = rng.normal(size=(4, d)), rng.normal(size=(4, d))
    Z[0] = X[0]
    try:
        mixed = paired(kernel, X, Z, 0, 0)
    except TypeError:  # no analytic gradient
        with pytest.raises(TypeError, match="no analytic gradient"):
            kernel.input_pullback(X, Z, np.ones((4, 4)))
        return
    except ValueError:
        assert "nu=0.5" in repr(kernel)
        return
    np.testing.assert_allclose(mixed, paired(kernel, Z, X, 0, 0), rtol=1e-10)
    np.testing.assert_allclose(paired(kernel, X, Z, None, None), paired(kernel, X, Z), rtol=1e-12)
    step = 1e-5
    for a in range(d):
        move = step * np.eye(d)[a]
        slope = (paired(kernel, X + move, Z) - paired(kernel, X - move, Z)) / (2 * step)
        np.testing.assert_allclose(paired(kernel, X, Z, a, None), slope, rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(paired(kernel, Z, X, None, a), slope, rtol=1e-6, atol=1e-5)
        for b in range(d):
            both = [paired(kernel, X + sign * move, Z, None, b) for sign in (1, -1)]
            slope = (both[0] - both[1]) / (2 * step)
            np.testing.assert_allclose(paired(kernel, X, Z, a, b), slope, rtol=1e-4, atol=2e-4)


@every_trend
@every_structure
def test_one_solve_gives_the_covariance_of_the_prior_part(structure, trend):
    smoother, queries = problem(structure, trend)
    expected = smoother.evaluate_jointly(queries)[2]
    cross, prior = smoother.cross(queries), smoother.kernel.diag(queries)
    left, right, variance = PriorRoot(smoother).factors(cross, smoother.trend(queries), prior)
    np.testing.assert_allclose(smoother.kernel(queries, queries) - left @ right.T, expected, atol=1e-12)
    np.testing.assert_allclose(variance, np.diag(expected), atol=1e-12)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("trend", [None, "linear"])
def test_values_and_derivatives_have_their_joint_covariance(trend, own):
    smoother, queries = problem("scaled", trend)
    d, step = queries.shape[1], 1e-3
    values, at = queries[:3], queries[2:4]
    residual = VisitedResidual(smoother, 1, 1, np.random.default_rng(0))
    if own:
        residual.values(values[None], smoother.cross(values))
        residual.gradient(at[None])
        root = residual._own.root[0, : 3 + 2 * d, : 3 + 2 * d]
        found = root @ root.T
    else:
        residual.values(values, smoother.cross(values))
        residual.gradient(at)
        found = residual.root @ residual.root.T  # in the order of the pivots
    moves = [step * np.eye(d)[k] for k in range(d)]
    stencil = np.concatenate([values, *(at + move for move in moves), *(at - move for move in moves)])
    C = smoother.evaluate_jointly(stencil)[2]
    take = np.zeros((3 + 2 * d, len(stencil)))
    take[:3, :3] = np.eye(3)
    take[3:, 3 : 3 + 2 * d] = np.eye(2 * d) / (2 * step)
    take[3:, 3 + 2 * d :] = -np.eye(2 * d) / (2 * step)
    expected = take @ C @ take.T
    if own:
        np.testing.assert_allclose(found, expected, atol=1e-5)
    else:
        eigenvalues = (np.linalg.eigvalsh(matrix) for matrix in (found, expected))
        np.testing.assert_allclose(*eigenvalues, atol=1e-5)


@every_trend
@every_structure
def test_the_factor_of_the_visited_points_is_that_of_the_model_covariance(structure, trend):
    smoother, queries = problem(structure, trend)
    expected = smoother.evaluate_jointly(queries)[2]
    residual = VisitedResidual(smoother, 1, 1, np.random.default_rng(0))
    for part in (queries[:1], queries[1:4], queries[4:]):
        residual.values(part[None], smoother.cross(part))
    root = residual._own.root[0, :9, :9]
    np.testing.assert_allclose(root @ root.T, expected, atol=1e-12)

    shared = VisitedResidual(smoother, 1, 1, np.random.default_rng(0))
    shared.values(queries[:4], smoother.cross(queries[:4]))
    assert shared.root.shape == (4, 4)
    covariance = smoother.evaluate_jointly(shared.shared)[2]
    np.testing.assert_allclose(shared.root @ shared.root.T, covariance, atol=1e-12)
    rest = queries[4:]
    shared.values(rest[None], smoother.cross(rest))
    both = smoother.evaluate_jointly(np.concatenate([shared.shared, rest]))[2]
    conditional = both[4:, 4:] - both[4:, :4] @ np.linalg.solve(both[:4, :4], both[:4, 4:])
    own = shared._own.root[0, :5, :5]
    np.testing.assert_allclose(own @ own.T, conditional, atol=1e-11)


@pytest.mark.parametrize("features", ["auto", None])
@pytest.mark.parametrize(
    "kernel",
    [RBF(2.0), 2.0 * Matern(2.0), Polynomial(2, 1.0, 2.0), RBF(2.0) + FeatureMap(np.sin)],
    ids=["rbf", "matern", "poly", "map"],
)
def test_a_path_is_one_function(kernel, features):
    X = np.linspace(-3, 3, 8)[:, None]
    model = untuned(X, np.sin(X[:, 0]), kernel, noise="gamma(2)")
    paths = model.sample_paths(5, features=features, random_state=0)
    own = np.linspace(-4, 4, 10).reshape(5, 2, 1)
    first, mine = paths(X), paths(own, own=True)
    np.testing.assert_allclose(paths(X), first, atol=1e-5)
    np.testing.assert_allclose(paths(own, own=True), mine, atol=1e-5)
    np.testing.assert_allclose(paths(own[:, 1], own=True), mine[:, 1], atol=1e-5)
    np.testing.assert_allclose(paths(np.concatenate([X[:3], own[2]]))[2, 3:], mine[2], atol=1e-5)


def test_points_that_the_visited_ones_determine_are_not_divided_by():
    model = paper_model()
    paths = model.sample_paths(50, random_state=0)
    near = 1.0 + 1e-7 * np.arange(40)[:, None]
    values = paths(np.broadcast_to(near, (50, 40, 1)), own=True)
    assert np.max(np.abs(np.diff(values, axis=1))) < 1e-4
    assert np.max(np.abs(paths([[4.9]]))) < 30


def test_small_variances_are_not_lost_in_single_precision():
    X = np.linspace(-5, 5, 60)[:, None]
    model = WienerKernelRegressor(2.0 * Matern(2.0), noise="norm(0, 0.05)", trend=None, tuning=None)
    queries, n = np.linspace(-4, 4, 7)[:, None] + 0.05, 4000
    parts = model.fit(X, np.sin(X[:, 0])).uncertainty(queries)
    assert np.all(parts.model < 0.005)
    single = model.set_params(dtype="float32").fit(X, np.sin(X[:, 0]))
    values = single.sample_paths(n, random_state=0)(queries)
    np.testing.assert_allclose(values.var(axis=0), parts.epistemic, rtol=4 * np.sqrt(2 / n))


@pytest.mark.parametrize("trend", [None, "linear"])
@pytest.mark.parametrize("of", ["estimate", "function"])
def test_paths_have_the_exact_law_at_every_point(of, trend):
    model, n = paper_model(trend), 100_000
    paths = model.sample_paths(n, of, random_state=3)
    x = np.array([[-3.0], [1.0], [6.5]])
    drawn = np.concatenate([paths(x[:1]), paths(np.broadcast_to(x[1:], (n, 2, 1)), own=True)], axis=1)
    for i in range(3):
        law = model.predict_distribution(x[i : i + 1], of)
        assert distance(drawn[:, i], law) < CRITICAL


def test_paths_have_the_joint_covariance_at_twenty_points():
    model, n = paper_model("constant"), 100_000
    X = np.linspace(-7, 7, 20)[:, None]
    paths = model.sample_paths(n, random_state=5)
    values = np.concatenate([paths(X[:17]), paths(np.broadcast_to(X[17:], (n, 3, 1)), own=True)], axis=1)
    mean, covariance = model.predict(X, return_cov=True)
    away = values - mean
    lower = np.tril_indices(20)
    products = away[:, lower[0]] * away[:, lower[1]]
    z = (products.mean(axis=0) - covariance[lower]) / (products.std(axis=0) / np.sqrt(n))
    assert np.all(np.abs(z) < 3)


@pytest.mark.parametrize("structure", ["replicated", "scaled", "correlated", "other ridge"])
def test_paths_of_several_outputs_under_structured_noise(structure):
    X, Y, _, scale, queries = structured_data(structure, n_outputs=2)
    ridge = 0.8 if structure == "other ridge" else None
    model = WienerKernelRegressor(RBF(1.0), noise="gamma(2, scale=0.5)", ridge=ridge, tuning=None)
    model.fit(X, Y, noise_scale=scale)
    n = 40_000
    values = model.sample_paths(n, random_state=1)(queries)
    assert values.shape == (n, len(queries), 2)
    mean, covariance = model.predict(queries, return_cov=True)
    for k in range(2):
        away = values[:, :, k] - mean[:, k]
        assert np.all(np.abs(away.mean(axis=0)) < 4 * away.std(axis=0) / np.sqrt(n))
        products = away[:, :, None] * away[:, None, :]
        z = (products.mean(axis=0) - covariance[:, :, k]) / (products.std(axis=0) / np.sqrt(n))
        assert np.all(np.abs(z) < 4)
    cross = np.mean((values[:, :, 0] - mean[:, 0]) * (values[:, :, 1] - mean[:, 1]), axis=0)
    assert np.all(np.abs(cross) < 5 / np.sqrt(n) * values[:, :, 0].std(axis=0) * values[:, :, 1].std(axis=0))


def test_noise_on_the_inputs_is_part_of_the_estimate():
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 25)[:, None]
    model = WienerKernelRegressor(RBF(1.5), noise="norm(0, 0.1)", tuning=None)
    model.fit(X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(25), input_noise="norm(0, 0.1)")
    queries, n = np.array([[0.7], [2.2]]), 40_000
    parts, values = model.uncertainty(queries), model.sample_paths(n, "estimate", random_state=0)(queries)
    assert np.all(parts.input > 0.1 * parts.noise)
    np.testing.assert_allclose(values.var(axis=0), parts.estimate, rtol=4 * np.sqrt(2 / n))


def test_paths_of_a_transformed_model_are_on_the_scale_of_y():
    X = np.linspace(0, 3, 9)[:, None]
    y = np.exp(np.sin(X[:, 0]))
    model = untuned(X, y, RBF(1.0), noise="norm(0, 0.1)", transform="log")
    paths = model.sample_paths(100_000, random_state=2)
    law = model.predict_distribution([[1.3]], "function")
    assert distance(paths([[1.3]])[:, 0], law) < CRITICAL
    few = model.sample_paths(3, "estimate", random_state=2)
    slope = (few([[1.3 + 1e-5]]) - few([[1.3 - 1e-5]])) / 2e-5
    np.testing.assert_allclose(few.gradient([[1.3]])[:, :, 0], slope, rtol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "tolerance"),
    [(RBF(1.0), 1e-4), (1.5 * Matern(1.0, nu=2.5), 2e-3), (Polynomial(2), 1e-4)],
    ids=["rbf", "matern", "poly"],
)
@pytest.mark.parametrize(("of", "features"), [("estimate", None), ("function", "auto"), ("function", 200)])
def test_gradients_are_those_of_the_values(kernel, tolerance, of, features):
    X, Y, _, _, queries = structured_data("distinct", n_outputs=2)
    model = untuned(X, Y, kernel, noise="norm(0, 0.3)", trend="linear")
    paths = model.sample_paths(4, of, features, random_state=0)
    gradient = paths.gradient(queries)
    assert gradient.shape == (4, len(queries), 2, 2)
    step = 2e-3  # the values are drawn after the gradient and must agree with it
    for k in range(2):
        move = step * np.eye(2)[k]
        slope = (paths(queries + move) - paths(queries - move)) / (2 * step)
        np.testing.assert_allclose(gradient[..., k], slope, atol=tolerance)
    own = paths.gradient(np.broadcast_to(queries, (4, *queries.shape)), own=True)
    np.testing.assert_allclose(own, gradient, atol=1e-5)
    assert paths.gradient(queries[:4], own=True).shape == (4, 2, 2)


def test_gradients_before_values_and_of_functions_without_derivatives():
    X = np.linspace(-3, 3, 8)[:, None]
    model = untuned(X, np.sin(X[:, 0]), RBF(1.0), noise="norm(0, 0.2)")
    paths, n = model.sample_paths(20_000, random_state=0), 20_000
    slopes = paths.gradient([[0.4]])[:, 0, 0]
    near = paths([[0.4 - 1e-3], [0.4 + 1e-3]])
    np.testing.assert_allclose((near[:, 1] - near[:, 0]) / 2e-3, slopes, atol=1e-4)
    # variance of the slope: that of a difference quotient of the joint law
    _, C = model.predict([[0.4 - 1e-3], [0.4 + 1e-3]], return_cov=True)
    variance = (C[0, 0] + C[1, 1] - 2 * C[0, 1]) / 4e-6
    assert slopes.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / n))
    rough = untuned(X, np.sin(X[:, 0]), Matern(1.0, nu=0.5))
    with pytest.raises(ValueError, match="have no derivatives"):
        rough.sample_paths(2, random_state=0).gradient([[0.4]])
    mapped = untuned(X, X[:, 0], FeatureMap(lambda X: X**2))
    with pytest.raises(TypeError, match="no analytic gradient"):
        mapped.sample_paths(2, random_state=0).gradient([[0.4]])


def test_a_hundred_features_of_one_input_are_exact_over_twelve_length_scales():
    X = np.linspace(0, 12, 50)[:, None]
    phi = feature_map(3.0 * RBF(1.0), X, 100, np.random.default_rng(0))
    np.testing.assert_allclose(phi(X) @ phi(X).T, 3.0 * RBF(1.0)(X), atol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(2.0) + 0.5,
        Polynomial(2),
        FeatureMap(lambda X: np.hstack([X, X**2]), 2.0),
        2.0 * Linear() * Linear(),
    ],
)
def test_finitely_many_features_are_exact(kernel):
    X = np.random.default_rng(0).normal(size=(20, 2))
    phi = feature_map(kernel, X, "auto", None)
    np.testing.assert_allclose(phi(X) @ phi(X).T, kernel(X, X), atol=1e-10)


@pytest.mark.parametrize(
    "kernel",
    [RBF([1.0, 2.0]), 2.0 * Matern(1.0), RationalQuadratic(1.0, 2.0) + 0.5, RBF(1.0) * Matern(2.0, nu=2.5)],
)
def test_random_features_approximate_the_kernel(kernel):
    X = np.random.default_rng(0).normal(size=(10, 2))
    phi = feature_map(kernel, X, 200_000, np.random.default_rng(1))
    np.testing.assert_allclose(phi(X) @ phi(X).T, kernel(X, X), atol=0.02)


def test_torch_tensors_give_the_paths_of_numpy_arrays():
    torch = pytest.importorskip("torch")
    X, Y, _, _, queries = structured_data("replicated", n_outputs=2)
    model = WienerKernelRegressor(RBF(1.0), noise="gamma(2)", tuning=None, trend="constant")
    ours = model.fit(X, Y).sample_paths(3, random_state=0)
    theirs = model.fit(torch.tensor(X), torch.tensor(Y)).sample_paths(3, random_state=0)
    for points, own in ((queries, False), (queries[:3], True), (queries[3:], False)):
        values = theirs(torch.tensor(points), own=own)
        assert isinstance(values, torch.Tensor)
        np.testing.assert_allclose(values.numpy(), ours(points, own=own), atol=1e-6)
    model.set_params(noise="norm(0, 0.1)", transform="log")
    gradients = [
        model.fit(x, y).sample_paths(3, random_state=0).gradient(x[:3])
        for x, y in ((X, np.exp(Y[:, 0])), (torch.tensor(X), torch.tensor(np.exp(Y[:, 0]))))
    ]
    np.testing.assert_allclose(*gradients, rtol=1e-6)


def test_bad_arguments_are_refused():
    model = paper_model()
    with pytest.raises(ValueError, match="of must be"):
        model.sample_paths(2, "observation")
    for n in (0, 2.5, True):
        with pytest.raises(ValueError, match="positive integer"):
            model.sample_paths(n)
    with pytest.raises(ValueError, match="features must be"):
        model.sample_paths(2, features=1)
    paths = model.sample_paths(2, random_state=0)
    with pytest.raises(ValueError, match=r"\(m, 1\)"):
        paths([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"\(2, 1\) or \(2, m, 1\)"):
        paths([[1.0], [2.0], [3.0]], own=True)
    with pytest.raises(ValueError, match="NaN"):
        paths([[np.nan]])
    for call in (paths, paths.gradient):
        with pytest.raises(ValueError, match="at least one point"):
            call(np.empty((0, 1)))
    with pytest.raises(TypeError, match="not 'mixed'"):
        paper_model(dtype="mixed").sample_paths(2)
    with pytest.raises(TypeError, match="spectral density"):
        untuned([[0.0], [1.0]], [0.0, 1.0], Periodic()).sample_paths(2, features=50)
