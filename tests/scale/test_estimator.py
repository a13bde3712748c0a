"""approximation= in the estimator: the same answers as the exact model where it sees all data, and valid ones elsewhere."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from wienerkernel import RBF, Features, Matern, Neighbors, WienerKernelRegressor
from wienerkernel.scale import approximation as limits
from wienerkernel.scale import condition
from wienerkernel.scale import tuning as scale_tuning

NOISE = "gamma(0.5, scale=0.4)"


def data(n=400, seed=0, n_outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, (n, 2))
    f = np.stack([np.sin(X[:, 0] + k) + 0.3 * X[:, 1] for k in range(n_outputs)], axis=1)
    y = f + rng.gamma(0.5, 0.4, f.shape)
    return X, (y if n_outputs > 1 else y[:, 0]), rng.uniform(0, 6, (6, 2))


def model(approximation, **options):
    return WienerKernelRegressor(
        2.0 * RBF(1.5), noise=NOISE, tuning=None, approximation=approximation, **options
    )


@pytest.mark.parametrize("approximation", [Neighbors(1000), Features(150, n_audits=16)], ids=repr)
@pytest.mark.parametrize("options", [{}, {"trend": None}, {"ridge": 0.5}, {"transform": "log"}], ids=str)
def test_an_approximation_that_sees_all_data_is_the_exact_model(approximation, options):
    X, y, query = data(n=150)
    scale = np.ones(len(y)) if "ridge" in options else np.linspace(0.5, 2.0, len(y))
    exact = model(None, **options).fit(X, y + 3, noise_scale=scale)
    found = model(approximation, **options).fit(X, y + 3, noise_scale=scale)
    tolerance = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(found.predict(query), exact.predict(query), **tolerance)
    ours, theirs = found.uncertainty(query), exact.uncertainty(query)
    np.testing.assert_allclose(ours.noise, theirs.noise, **tolerance)
    np.testing.assert_allclose(ours.model + ours.computational, theirs.model, **tolerance)
    np.testing.assert_allclose(ours.total, theirs.total, **tolerance)
    for of in ("estimate", "function", "observation"):
        law, other = (m.predict_distribution(query, of=of) for m in (found, exact))
        np.testing.assert_allclose(law.ppf(0.9), other.ppf(0.9), rtol=1e-5, atol=1e-5)
    if "transform" not in options:
        for a, b in zip(
            found.predict(query, return_cov=True), exact.predict(query, return_cov=True), strict=True
        ):
            np.testing.assert_allclose(a, b, **tolerance)
        np.testing.assert_allclose(
            found.predict(query, return_std=True)[1], exact.predict(query, return_std=True)[1], **tolerance
        )


@pytest.mark.parametrize("approximation", [Neighbors(40), Features(80)], ids=repr)
def test_arrays_of_torch_are_summed_and_weighed_by_torch(approximation):
    torch = pytest.importorskip("torch")
    X, y, query = data()
    here = model(approximation).fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    there = model(approximation).fit(*map(torch.asarray, (X[:300], y[:300])))
    there.partial_fit(*map(torch.asarray, (X[300:], y[300:])))
    np.testing.assert_allclose(there.predict(torch.asarray(query)), here.predict(query), rtol=1e-9)
    one, two = here.uncertainty(query), there.uncertainty(query)
    for part in ("noise", "model", "computational", "aleatoric"):  # the audit is in single precision
        np.testing.assert_allclose(getattr(two, part), getattr(one, part), rtol=1e-4, atol=1e-9)
    xp = pytest.importorskip("array_api_strict")
    with pytest.raises(ValueError, match="NumPy or torch"):
        model(approximation).fit(xp.asarray(X), xp.asarray(y))


@pytest.mark.parametrize("approximation", [Neighbors(40), Features(80)], ids=repr)
def test_more_data_by_partial_fit_are_those_of_one_fit(approximation):
    X, y, query = data(n_outputs=2)
    whole = model(approximation).fit(X, y)
    if isinstance(approximation, Features):  # inducing points come from the first part
        parts = model(approximation).fit(X, y)
        parts.posterior_ = condition_on(parts, X[:200], y[:200])
    else:
        parts = model(approximation).fit(X[:200], y[:200])
    parts.partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(parts.predict(query), whole.predict(query), rtol=1e-9)
    # the last digits depend on how the processor multiplies matrices
    np.testing.assert_allclose(parts.uncertainty(query).total, whole.uncertainty(query).total, rtol=1e-8)


def condition_on(fitted, X, y):
    """The same inducing points and audit, with other data."""
    from dataclasses import replace

    from wienerkernel.scale.sums import Sums, chunks

    old = fitted.posterior_.smoother
    targets = y - fitted.noise_.mean()
    sums = Sums.over(chunks(X, targets, np.ones(len(X))), old.inducing, old.audit, old.sums.rows.number)
    return replace(fitted.posterior_, smoother=replace(old, sums=sums))


def test_draws_from_neighbors_have_the_joint_law():
    X, y, query = data()
    found = model(Neighbors(30)).fit(X, y)
    mean, covariance = found.predict(query, return_cov=True)
    draws = found.predict_distribution(query, of="function").rvs(20_000, random_state=0)
    error = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / len(draws))
    assert np.all(np.abs(np.cov(draws.T) - covariance) < 6 * error)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(covariance) / len(draws)))
    law = found.predict_distribution(query[:1], of="observation")
    sample = law.rvs(20_000, random_state=1)[:, 0]
    assert stats.kstest(law.cdf(sample[:, None])[:, 0], "uniform").pvalue > 1e-3


def test_the_stated_variance_is_the_error_over_functions_from_the_prior():
    """Calibration: E e^2 / (V + P2) = 1, where the naive variance of the features is far too small."""
    rng, kernel, s2 = np.random.default_rng(0), RBF(0.15), 0.1
    X, query = rng.uniform(0, 1, (1500, 2)), rng.uniform(0, 1, (40, 2))
    root = np.linalg.cholesky(kernel(np.concatenate([X, query])) + 1e-10 * np.eye(1540))
    f = root @ rng.standard_normal((1540, 60))
    y = f[:1500] + np.sqrt(s2) * rng.standard_normal((1500, 60))
    for approximation in (Neighbors(20), Features(60)):
        fitted = WienerKernelRegressor(
            kernel, noise=stats.norm(0, np.sqrt(s2)), trend=None, tuning=None, approximation=approximation
        ).fit(X, y)
        stated = fitted.uncertainty(query).epistemic[:, 0]
        ratio = np.mean((fitted.predict(query) - f[1500:]) ** 2 / stated[:, None])
        assert 0.9 < ratio < 1.1


def test_tuning_at_scale_finds_kernel_noise_and_shape(monkeypatch):
    monkeypatch.setattr(scale_tuning, "SCORED_ROWS", 400)
    monkeypatch.setattr(scale_tuning, "NEIGHBORS", 32)
    X, y, _ = data(n=3000)
    found = WienerKernelRegressor(noise="gamma", approximation=Neighbors(32), random_state=0).fit(X, y)
    assert abs(np.log(found.noise_.std() / (0.4 * np.sqrt(0.5)))) < 0.1
    assert 0.3 < found.tuning_result_.parameters["noise.a"] < 0.8
    query, new, _ = data(n=100, seed=1)
    report = found.score_report(query, new)
    assert 0.8 < np.mean((report.pit > 0.05) & (report.pit < 0.95)) < 0.98


def test_auto_says_what_it_chose(monkeypatch):
    X, y, query = data(n=300)
    assert not hasattr(model("auto").fit(X, y), "approximation_")
    for module in (limits, condition):
        monkeypatch.setattr(module, "EXACT_PLACES", 100)
    monkeypatch.setattr(condition, "Features", partial(Features, 200))
    with pytest.warns(UserWarning, match=r"approximate: Features"):
        smooth = model("auto").fit(X, y)
    assert smooth.approximation_ == Features(200)
    rough = WienerKernelRegressor(Matern(0.02, nu=0.5), noise=NOISE, tuning=None, approximation="auto")
    monkeypatch.setattr(condition, "TRIAL_FEATURES", 50)
    with pytest.warns(UserWarning, match=r"approximate: Neighbors"):
        rough.fit(X, y)
    assert np.all(np.isfinite(rough.predict(query)))


@pytest.mark.parametrize(
    "method", ["loo", "predictor", "predict_gradient", "bound", "score_report", "chaos", "forget"]
)
def test_what_needs_the_factorization_is_refused(method):
    X, y, query = data(n=60)
    found = model("neighbors").fit(X, y)
    calls = {
        "loo": found.loo,
        "predictor": found.predictor,
        "predict_gradient": lambda: found.predict_gradient(query),
        "bound": lambda: found.bound(query, norm=1.0),
        "score_report": found.score_report,
        "chaos": lambda: found.predict_distribution(query).chaos(),
        "forget": lambda: found.forget([1]),
    }
    with pytest.raises(TypeError, match=r"approximation=None|held-out"):
        calls[method]()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"approximation": "nearest"}, "approximation must be"),
        ({"approximation": "features", "kernel": lambda a, b: a @ b.T + 1.0}, "spectral density"),
        ({"approximation": "neighbors", "noise": "auto"}, "approximation needs"),
        ({"approximation": "neighbors", "noise_level": "input"}, "approximation needs"),
        ({"approximation": "neighbors", "inference": "ep"}, "approximation needs"),
        ({"approximation": "neighbors", "ridge": 0.5}, "ridge=None"),
    ],
)
def test_bad_settings_are_refused(options, message):
    X, y, _ = data(n=60)
    with pytest.raises((ValueError, TypeError), match=message):
        WienerKernelRegressor(**{"noise": NOISE, "tuning": None} | options).fit(X, y, np.linspace(1, 2, 60))


@pytest.mark.parametrize("wrong", [0, 1.5, True, "3"])
def test_sizes_are_checked(wrong):
    with pytest.raises(ValueError, match="integer"):
        Neighbors(wrong)
    with pytest.raises(ValueError, match="integer"):
        Features(wrong)


@pytest.mark.parametrize("approximation", ["neighbors", Features(10)])
@pytest.mark.filterwarnings("ignore:10 features are more")
def test_tuning_needs_more_samples_than_coefficients(approximation):
    X, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    model = WienerKernelRegressor(trend="linear", approximation=approximation)
    with pytest.raises(ValueError, match="needs more samples than the 3 coefficients of the trend, got 3"):
        model.fit(X, y)


@pytest.mark.parametrize(("unit", "scale"), [(1e-15, 1.0), (1e15, 1.0), (1e-25, 1e12), (1e25, 1e-12)])
@pytest.mark.parametrize("trend", [None, "constant"])
def test_variances_of_features_do_not_depend_on_units(unit, scale, trend):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 8, (300, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=300)

    def parts(unit, scale):
        kernel, noise = unit**2 * RBF(0.5), f"norm(0, {0.3 * unit / scale!r})"
        model = WienerKernelRegressor(
            kernel, noise=noise, tuning=None, trend=trend, approximation=Features(12)
        )
        mean, found = model.fit(X, unit * y, np.full(300, scale)).predict(
            X[:6] + 0.1, return_uncertainty=True
        )
        return [mean / unit, *(part / unit**2 for part in (found.noise, found.model, found.computational))]

    np.testing.assert_allclose(parts(unit, scale), parts(1.0, 1.0), rtol=1e-5, atol=1e-5)


def test_warnings_of_approximations_point_at_the_call(monkeypatch):
    X, y, _ = data(n=60)
    with pytest.warns(UserWarning, match="60 rows") as found:
        model(Features(80, n_audits=8)).fit(X, y)
    assert found[0].filename == __file__
    for module in (limits, condition):
        monkeypatch.setattr(module, "EXACT_PLACES", 10)
    with pytest.warns(UserWarning, match="approximate: ") as found:
        model("auto").fit(X, y)
    assert found[0].filename == __file__


@pytest.mark.parametrize("approximation", [Neighbors(10), Features(10, n_audits=8)], ids=repr)
def test_samples_with_correlated_noise_are_not_added(approximation):
    X, y, _ = data(n=60)
    found = model(approximation).fit(X, y)
    with pytest.raises(ValueError, match="correlated noise"):
        found.partial_fit(X[:2], y[:2], np.eye(2))


@pytest.mark.parametrize("trend", [None, "linear"])
def test_the_gradient_of_the_score_by_neighbors_is_that_of_its_value(trend):
    from scipy.optimize import approx_fprime

    from wienerkernel.noise.family import noise_model
    from wienerkernel.tuning.data import Data, Parameters

    X, y, _ = data(n=100, n_outputs=2)
    samples = Data(X, y, np.linspace(0.5, 2.0, 100), trend=trend)
    parameters = Parameters(2.0 * RBF((1.0, 2.0)), noise_model("norm"))
    values = np.append(parameters.kernel.theta, -0.5)
    smoother = scale_tuning._smoother(samples, parameters, values)
    score = scale_tuning.NeighborScore.of(samples, np.arange(20), smoother, parameters)
    value, gradient = score(values)
    assert value == score.value(values)
    np.testing.assert_allclose(gradient, approx_fprime(values, score.value), rtol=1e-4, atol=1e-4)
