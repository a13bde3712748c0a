"""Neighbors and features: identities that hold for any weights, and the exact model as the limit."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.base import clone

from wienerkernel import Neighbors, WienerKernelRegressor
from wienerkernel.backend.linalg import NotPositiveDefiniteError
from wienerkernel.kernels import RBF, Constant, Linear, Matern, Periodic, RationalQuadratic
from wienerkernel.kernels.spectral import frequencies
from wienerkernel.scale.features import FeatureSmoother, choose_audit
from wienerkernel.scale.inducing import Inducing, choose_inducing
from wienerkernel.scale.neighbors import NeighborSmoother
from wienerkernel.scale.sums import Sums, chunks, keys
from wienerkernel.smoother import Smoother
from wienerkernel.smoother.samples import Samples

KERNELS = [2.0 * RBF((0.5, 1.0)), 1.5 * Matern(0.8, nu=1.5), 0.7 * RationalQuadratic(1.0) + 0.5 * RBF(2.0)]
TRENDS = [None, "constant", "linear"]


def problem(n=60, seed=0, unequal=False):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 3, (n, 2))
    scale = rng.uniform(0.5, 2.0, n) if unequal else np.ones(n)
    return X, rng.standard_normal((n, 2)), scale, rng.uniform(-0.5, 3.5, (9, 2))


def exact(kernel, X, y, scale, trend, ridge=0.3):
    return Smoother(kernel, Samples.collapse(X, ridge * scale**2, scale), y, trend)


def feature_smoother(kernel, X, y, scale, trend, number, ridge=0.3, audits=64, reservoir=10_000, seed=0):
    generator = np.random.default_rng(seed)
    inducing = choose_inducing(kernel, X, number, trend, generator)
    audit = choose_audit(inducing, X, audits, generator)
    return FeatureSmoother(inducing, audit, Sums.over(chunks(X, y, scale), inducing, audit, reservoir), ridge)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("trend", TRENDS)
def test_all_samples_as_neighbors_are_the_exact_smoother(kernel, trend):
    X, y, scale, query = problem(unequal=True)
    found = NeighborSmoother(kernel, X, y, 0.3 * scale**2, scale, trend, 1000).predict(query)
    mean, model, gain = exact(kernel, X, y, scale, trend).mean_and_parts(query)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.model, model, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.gain, gain, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("trend", TRENDS)
def test_variances_of_neighbors_are_those_of_their_weights(trend):
    kernel = KERNELS[0]
    X, y, scale, query = problem(unequal=True)
    smoother = NeighborSmoother(kernel, X, y, 0.3 * scale**2, scale, trend, 12)
    found, near = smoother.predict(query), smoother.nearest(query, 12)
    for i, x in enumerate(query):
        a = np.zeros(len(X))
        a[near[i]] = found.columns[i] / scale[near[i]]
        k = kernel(x[None], X)[0]
        np.testing.assert_allclose(
            found.model[i], kernel.diag(x[None])[0] - 2 * a @ k + a @ kernel(X) @ a, atol=1e-12
        )
        np.testing.assert_allclose(found.gain[i], np.sum((a * scale) ** 2), atol=1e-13)
        np.testing.assert_allclose(found.mean[i], a @ y, atol=1e-12)


@pytest.mark.parametrize("trend", TRENDS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_neighbors_on_a_device_are_the_same(kernel, trend):
    torch = pytest.importorskip("torch")
    X, y, scale, query = problem(n=200, unequal=True)
    smoother = NeighborSmoother(kernel, X, y, 0.3 * scale**2, scale, trend, 20)
    other = replace(smoother, on_device=torch.asarray(X))
    query = np.tile(query, (70, 1))  # more than one batch
    assert np.array_equal(smoother.nearest(query, 20), other.nearest(query, 20))
    for one, two in zip(smoother.predict(query), other.predict(query), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("unit", "length"), [(2.0**-500, 2.0**-500), (2.0**490, 2.0**490), (1.0, 1e-150)])
def test_neighbors_are_the_nearest_in_any_units(unit, length):
    """Also where squares of distances would overflow, and for points that are very far from all samples."""
    X, y, scale, query = problem()
    plain = NeighborSmoother(RBF(1.0), X, y, 0.3 * scale, scale, "constant", 12)
    found = NeighborSmoother(RBF(length), unit * X, y, 0.3 * scale, scale, "constant", 12)
    assert np.array_equal(found.nearest(unit * query, 12), plain.nearest(query, 12))
    far = found.predict(np.array([[1e3, -1e150], [1e150, 1e150], [-1.0, 1.0]]))
    assert all(np.isfinite(part).all() for part in far)


def test_the_excess_of_neighbors_is_a_quadratic_form_of_the_residual():
    """(V + P2)(a) - (V + P2)(exact) = r'(K + s2 I)^-1 r with r = k - (K + s2 I) a."""
    kernel, ridge = KERNELS[0], 0.3
    X, y, scale, query = problem()
    smoother = NeighborSmoother(kernel, X, y, ridge * scale**2, scale, None, 12)
    found, near = smoother.predict(query), smoother.nearest(query, 12)
    _, model, gain = exact(kernel, X, y, scale, None).mean_and_parts(query)
    noisy = kernel(X) + ridge * np.eye(len(X))
    for i, x in enumerate(query):
        a = np.zeros(len(X))
        a[near[i]] = found.columns[i]
        r = kernel(x[None], X)[0] - noisy @ a
        excess = found.model[i] + ridge * found.gain[i] - model[i] - ridge * gain[i]
        np.testing.assert_allclose(excess, r @ np.linalg.solve(noisy, r), atol=1e-12)
    assert np.all(found.computational >= 0)
    assert np.all(found.computational <= found.model)


def test_neighbors_left_out_do_not_see_their_sample():
    kernel = KERNELS[0]
    X, y, scale, _ = problem()
    X[5] = X[4]  # a repeat
    rows = np.array([0, 4, 5, 59])
    smoother = NeighborSmoother(kernel, X, y, 0.3 * scale, scale, "constant", len(X))
    found = smoother.leave_out(rows)
    for i, row in enumerate(rows):
        keep = np.arange(len(X)) != row
        mean, model, _ = exact(kernel, X[keep], y[keep], scale[keep], "constant").mean_and_parts(
            X[row : row + 1]
        )
        np.testing.assert_allclose(found.mean[i], mean[0], atol=1e-10)
        np.testing.assert_allclose(found.model[i], model[0], atol=1e-10)


@pytest.mark.parametrize("trend", TRENDS)
def test_features_left_out_do_not_see_their_sample(trend):
    X, y, scale, _ = problem(n=80, unequal=True)
    smoother = feature_smoother(KERNELS[0], X, y, scale, trend, 30)
    rows = np.array([0, 4, 79])
    found = smoother.left_out(rows)
    for i, row in enumerate(rows):
        here = smoother.sums.rows
        keep = np.flatnonzero(np.any(here.X[row] != X, axis=1))
        sums = Sums.over(chunks(X[keep], y[keep], scale[keep]), smoother.inducing, smoother.audit, 10_000)
        other = replace(smoother, sums=sums).predict(here.X[row : row + 1])
        np.testing.assert_allclose(found.residual[i], here.y[row] - other.mean[0], atol=1e-10)
        # the audit is in single precision
        np.testing.assert_allclose(found.model[i], other.model[0], rtol=3e-6)
        expected = np.sort(np.append(-other.columns[0], [0.0, here.scale[row]]))
        np.testing.assert_allclose(np.sort(found.weights[i]), expected, atol=1e-10)
        assert np.all(found.counts == 1)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("trend", TRENDS)
def test_all_places_as_inducing_points_are_the_exact_smoother(kernel, trend):
    X, y, scale, query = problem(unequal=True)
    found = feature_smoother(kernel, X, y, scale, trend, len(X)).predict(query)
    mean, weights, model = exact(kernel, X, y, scale, trend).evaluate(query)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.gain, np.sum((weights * scale) ** 2, axis=1), rtol=1e-8, atol=1e-8)
    order = np.argsort(found.columns[0])
    np.testing.assert_allclose(found.columns[0][order], np.sort(weights[0] * scale), atol=1e-8)
    # the part outside the span is estimated: it is the whole of k - phi'phi, without a contribution of the data
    np.testing.assert_allclose(found.model, model, atol=1e-7 + 4 * found.standard_error.max())


def test_the_audited_model_part_is_unbiased_with_a_true_standard_error():
    kernel = 2.0 * RBF(0.4)
    X, y, scale, query = problem(n=300, unequal=True)
    found = feature_smoother(kernel, X, y, scale, "constant", 20, audits=400)
    F = found.inducing(X) / scale[:, None]
    result = found.predict(query)
    for i, x in enumerate(query):
        z = np.linalg.solve(F.T @ F + np.diag(found._penalty), found.inducing(x[None])[0])
        a = F @ z / scale
        k = kernel(x[None], X)[0]
        true = 2.0 - 2 * a @ k + a @ kernel(X) @ a
        assert abs(result.model[i] - true) < 4 * result.standard_error[i] + 1e-12
        assert result.standard_error[i] < 0.2 * true
        np.testing.assert_allclose(result.gain[i], np.sum((a * scale) ** 2), rtol=1e-9)


def test_the_standard_error_holds_where_few_frequencies_have_most_of_the_energy():
    kernel, rng = RBF(0.5), np.random.default_rng(0)
    X, query = rng.uniform(size=(400, 3)), rng.uniform(size=(50, 3))
    K, cross, squares = kernel(X), kernel(query, X), []
    for seed in range(10):
        smoother = feature_smoother(kernel, X, np.zeros((400, 1)), np.ones(400), None, 40, 0.1, 48, seed=seed)
        F, f = smoother.inducing(X), smoother.inducing(query)
        a = np.linalg.solve(F.T @ F + 0.1 * np.eye(F.shape[1]), f.T).T @ F.T
        true = 1 - 2 * np.einsum("ij,ij->i", a, cross) + np.einsum("ij,ij->i", a @ K, a)
        found = smoother.predict(query)
        squares.append(((found.model - true) / found.standard_error) ** 2)
    assert 0.5 < np.mean(squares) < 2.2  # 3.1 without regard to the leverage of single frequencies


def test_sums_do_not_depend_on_chunks_and_keep_the_same_rows():
    X, y, scale, _ = problem(n=500)
    generator = np.random.default_rng(0)
    inducing = choose_inducing(KERNELS[0], X, 30, "constant", generator)
    audit = choose_audit(inducing, X, 16, generator)
    whole = Sums.over(chunks(X, y, scale), inducing, audit, 50)
    parts = [
        Sums.over([(a, X[a:b], y[a:b], scale[a:b])], inducing, audit, 50)
        for a, b in [(300, 500), (0, 7), (7, 300)]
    ]
    other = parts[0] + parts[1] + parts[2]
    assert np.array_equal(np.sort(whole.rows.keys), np.sort(other.rows.keys))
    np.testing.assert_allclose(whole.gram, other.gram, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(whole.audit, other.audit, atol=1e-5 * np.abs(whole.audit).max())
    assert (
        stats.kstest(Sums.over(chunks(X, y, scale), inducing, audit, 500).rows.keys, "uniform").pvalue > 1e-3
    )


@pytest.mark.parametrize("trend", TRENDS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("number", [20, 250])
def test_sums_are_those_of_the_features(trend, library, number, monkeypatch):
    """Also where kernel values are summed and the triangular solve comes last, and in blocks of another library."""
    xp = pytest.importorskip(library)
    monkeypatch.setattr("wienerkernel.scale.sums.BLOCK", 5120)
    X, y, scale, _ = problem(n=700, unequal=True)
    inducing = choose_inducing(1.5 * RBF(0.3), X, number, trend, np.random.default_rng(0))
    audit = choose_audit(inducing, X, 16, np.random.default_rng(1))
    assert inducing.deferred == (number == 20)
    found = Sums.over([(0, *map(xp.asarray, (X, y, scale)))], inducing, audit, 50)
    F = inducing(X) / scale[:, None]
    np.testing.assert_allclose(found.gram, F.T @ F, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.targets, F.T @ (y / scale[:, None]), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.audit, F.T @ (audit(X) / scale[:, None]), atol=1e-4)
    assert np.array_equal(found.rows.X, X[np.argsort(keys(0, 700))[:50]])


@pytest.mark.parametrize(
    "kernel", [*KERNELS, RBF(0.7) * Matern(1.0, nu=2.5), Matern(2.0, nu=0.5), RBF((1.0, 2.0)) ** 2], ids=str
)
def test_frequencies_reproduce_the_kernel(kernel):
    w = frequencies(kernel, 200_000, 2, np.random.default_rng(1))
    differences = np.array([[0.3, 0.1], [1.0, -0.5]])
    for difference in differences:
        values = kernel.diag(np.zeros((1, 2)))[0] * np.cos(w @ difference)
        expected = kernel(np.zeros((1, 2)), difference[None])[0, 0]
        assert abs(values.mean() - expected) < 5 * values.std() / np.sqrt(len(w)) + 1e-12


@pytest.mark.parametrize("kernel", [Linear(), Periodic(), RBF(1.0) + Linear()], ids=str)
def test_kernels_without_a_spectral_density_are_refused(kernel):
    with pytest.raises(TypeError, match="spectral density"):
        frequencies(kernel, 5, 2, np.random.default_rng(0))


def test_constant_kernel_is_one_feature():
    X, *_ = problem(n=40)
    inducing = choose_inducing(Constant(2.0), X, 10, None, np.random.default_rng(0))
    assert isinstance(inducing, Inducing)
    assert inducing.number == 1


def steps(n=400, seed=1):
    """A second input of two values, and neighbors that do not see it."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.sort(rng.uniform(0, 10, n)), np.zeros(n)])
    X[rng.integers(0, n, 12), 1] = 1.0
    X[n // 2 : n // 2 + 40, 1] = 0.0
    y = X @ [[0.3], [2.0]] + 0.1 * rng.standard_normal((n, 1))
    query = np.column_stack([np.linspace(-1, 11, 30), np.tile([0.0, 1.0], 15)])
    return 0.5 * RBF((1.0, 100.0)), X, y, query


@pytest.mark.parametrize("on_device", [False, True])
def test_neighbors_that_do_not_determine_the_trend_are_replaced(on_device):
    kernel, X, y, query = steps()
    scale, data = np.ones(len(X)), None
    if on_device:
        data = pytest.importorskip("torch").asarray(X)
    smoother = NeighborSmoother(kernel, X, y, 0.01 * scale, scale, "linear", 16, data)
    replaced = np.any(smoother.neighbors(query) != smoother.nearest(query, 16), axis=1)
    assert 3 < replaced.sum() < 27
    found, near = smoother.predict(query), smoother.neighbors(query)
    assert all(len(set(rows)) == 16 for rows in near.tolist())
    # unbiased: a'H = h(x), and no fewer than all samples can predict with a smaller error
    np.testing.assert_allclose(found.columns.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(np.einsum("mn,mnd->md", found.columns, X[near]), query, atol=1e-8)
    _, model, gain = exact(kernel, X, y, scale, "linear", 0.01).mean_and_parts(query)
    assert np.all(found.model + 0.01 * found.gain >= model + 0.01 * gain - 1e-10)
    np.testing.assert_allclose(found.mean[:, 0], query @ [0.3, 2.0], atol=1.0)
    assert np.all(found.computational[replaced] > 0)


def test_samples_that_determine_the_trend_do_not_predict_themselves():
    kernel, X, y, _ = steps()
    smoother = NeighborSmoother(kernel, X, y, np.full(400, 0.01), np.ones(400), "linear", 16)
    rows = np.arange(400)
    others = smoother.others(rows)
    assert not np.any(others == rows[:, None])
    assert np.any(others != NeighborSmoother(kernel, X, y, np.ones(400), np.ones(400), None, 16).others(rows))
    assert np.isfinite(smoother.left_out(rows).residual).all()


def test_a_trend_that_no_neighbors_determine_is_one_line():
    kernel, X, y, query = steps()
    flat = X * [1.0, 0.0]
    ones = np.ones(400)
    smoother = NeighborSmoother(kernel, flat, y, 0.01 * ones, ones, "linear", 16)
    assert np.isfinite(smoother.predict(query * [1.0, 0.0]).mean).all()
    with pytest.raises(NotPositiveDefiniteError, match="the trend has 3 coefficients, which 16 neighbors"):
        smoother.predict(query)
    few = NeighborSmoother(kernel, X, y, 0.01 * ones, ones, "linear", 2)
    with pytest.raises(NotPositiveDefiniteError, match="which 2 neighbors"):
        few.predict(query)
    model = WienerKernelRegressor(kernel, noise=stats.norm(), trend="linear", approximation=Neighbors(16))
    with pytest.raises(NotPositiveDefiniteError, match="which 16 neighbors"):
        clone(model).set_params(tuning=None).fit(flat, y[:, 0])
    with pytest.raises(NotPositiveDefiniteError, match="neighbors do not determine"):
        model.fit(flat, y[:, 0])


def test_kernels_are_learned_where_neighborhoods_do_not_determine_the_trend():
    kernel, X, y, query = steps()
    model = WienerKernelRegressor(kernel, noise="norm", trend="linear", approximation=Neighbors(50))
    found = model.fit(X, y[:, 0]).predict(query)
    assert_allclose(found, query @ [0.3, 2.0], atol=0.2)


@pytest.mark.parametrize("on_device", [False, True])
def test_a_ridge_too_small_for_the_neighbors_is_an_error_with_remedies(on_device):
    X, one = np.zeros((20, 2)), np.ones(20)
    data = pytest.importorskip("torch").asarray(X) if on_device else None
    smoother = NeighborSmoother(RBF(1.0), X, one[:, None], 1e-30 * one, one, None, 8, data)
    with pytest.raises(NotPositiveDefiniteError, match="raise the ridge"):
        smoother.predict(X[:3])
