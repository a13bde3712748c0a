"""Several outputs with a noise level, a transform or noise="auto" each: equal to the models of the columns."""

import numpy as np
import pytest
from helpers import untuned

from wienerkernel import RBF, WienerKernelRegressor, load

Z = np.linspace(-0.5, 6.5, 7)[:, None]
S = np.linspace(0.5, 2.0, 7)

SETTINGS = {
    "auto": {"noise": "auto"},
    "level": {"noise_level": "input"},
    "given level": {
        "noise_level": lambda X: 1 + 0.1 * X[:, 0],
        "kernel": RBF(1.0),
        "noise": "gamma(2)",
        "tuning": None,
    },
    "transform": {"transform": "log", "kernel": RBF(1.0), "noise": "norm(0, 0.2)", "tuning": None},
    "learned transform": {"transform": "box-cox", "noise_level": "mean"},
    "family": {"transform": "log", "noise_level": lambda X: 1 + 0.1 * X[:, 0], "noise": "laplace"},
    "trend": {"transform": "log", "trend": "linear", "ridge": 0.1},
}


def samples(n=30):
    rng = np.random.default_rng(0)
    X = np.repeat(np.sort(rng.uniform(0, 6, n // 2)), 2)[:, None]
    f = np.sin(X[:, 0])
    one = np.exp(f + 0.1 * np.exp(0.3 * X[:, 0]) * rng.normal(size=n))
    other = 5 + f**2 + rng.gamma(0.5, 0.2, n)
    return X, np.column_stack([one, other])


@pytest.fixture(scope="module", params=list(SETTINGS))
def both(request):
    """A model of all outputs, and the models of the columns."""
    options = SETTINGS[request.param]
    X, Y = samples()
    scale = np.linspace(0.8, 1.2, len(X))
    model = WienerKernelRegressor(**options).fit(X, Y, noise_scale=scale)
    return model, [WienerKernelRegressor(**options).fit(X, y, noise_scale=scale) for y in Y.T]


def same(actual, expected, axis=-1, rtol=1e-12):
    np.testing.assert_allclose(actual, np.stack(expected, axis=axis), rtol=rtol, atol=1e-14)


def test_mean_std_and_variances(both):
    model, columns = both
    same(model.predict(Z), [m.predict(Z) for m in columns])
    same(model.predict(Z, return_std=True)[1], [m.predict(Z, return_std=True)[1] for m in columns])
    mean, parts = model.predict(Z, return_uncertainty=True)
    same(mean, [m.predict(Z) for m in columns])
    for name in ("noise", "model", "aleatoric", "epistemic", "total"):
        same(getattr(parts, name), [getattr(m.uncertainty(Z), name) for m in columns])
    same(model.uncertainty(Z, S).aleatoric, [m.uncertainty(Z, S).aleatoric for m in columns])
    same(model.predict_noise_scale(Z), [m.predict_noise_scale(Z) for m in columns])
    assert model.score(*samples()) == pytest.approx(
        np.mean([m.score(samples()[0], y) for m, y in zip(columns, samples()[1].T, strict=True)])
    )


@pytest.mark.parametrize("of", ["estimate", "function", "observation"])
def test_distributions(both, of):
    model, columns = both
    Y = model.predict_distribution(Z, of, noise_scale=S)
    parts = [m.predict_distribution(Z, of, noise_scale=S) for m in columns]
    assert Y.shape == (7, 2)
    for name in ("mean", "var", "std", "skewness"):
        same(getattr(Y, name)(), [getattr(p, name)() for p in parts])
    q = np.array([0.1, 0.5, 0.9])
    points = Y.ppf(q[:, None, None])
    same(points, [p.ppf(q[:, None]) for p in parts])
    same(Y.isf(0.2), [p.isf(0.2) for p in parts])
    for name in ("cdf", "sf", "pdf", "logpdf"):
        same(getattr(Y, name)(points), [getattr(p, name)(points[..., k]) for k, p in enumerate(parts)])
    for end, ends in zip(Y.interval(0.8), zip(*(p.interval(0.8) for p in parts), strict=True), strict=True):
        same(end, ends)
    value, error = Y.cdf(points, return_error=True)
    assert value.shape == error.shape == points.shape
    generator = np.random.default_rng(1)
    same(Y.rvs(4, random_state=1), [p.rvs(4, random_state=generator) for p in parts])


def test_quantiles_intervals_and_draws_have_an_axis_for_the_outputs(both):
    model, columns = both
    same(
        model.predict_quantiles(Z, [0.1, 0.9]), [m.predict_quantiles(Z, [0.1, 0.9]) for m in columns], axis=1
    )
    same(model.predict_interval(Z, 0.8), [m.predict_interval(Z, 0.8) for m in columns], axis=1)
    assert model.sample_y(Z, 3).shape == (7, 2, 3)


def test_scores(both):
    model, columns = both
    new = samples()[1][:7] + 0.1
    for arguments, of_columns in (((), [(), ()]), ((Z, new), [(Z, new[:, 0]), (Z, new[:, 1])])):
        report = model.score_report(*arguments)
        reports = [m.score_report(*given) for m, given in zip(columns, of_columns, strict=True)]
        for name in ("pit", "log_score", "standardized", "values"):
            same(getattr(report, name), [getattr(r, name) for r in reports])
        same(report.crps, [r.crps for r in reports], rtol=1e-5)  # adaptive, for all outputs together
        assert report.coverage(0.9) == pytest.approx(np.mean([r.coverage(0.9) for r in reports]))
        for pairs, of_each in zip(
            report.quantile_pairs(), zip(*(r.quantile_pairs() for r in reports), strict=True), strict=True
        ):
            np.testing.assert_allclose(np.sort(pairs), np.sort(np.concatenate(of_each)))
    assert "coverage_90" in str(report)
    left_out, parts = model.loo(), [m.loo() for m in columns]
    same(left_out.residual, [p.residual for p in parts])
    same(left_out.total, [p.total for p in parts])


def test_gradients_and_likelihood(both):
    model, columns = both
    gradient, parts = model.predict_gradient(Z), [m.predict_gradient(Z) for m in columns]
    for name in ("mean", "noise", "model"):
        same(getattr(gradient, name), [getattr(p, name) for p in parts], axis=1)
    assert model.log_likelihood() == pytest.approx(sum(m.log_likelihood() for m in columns))


def test_what_was_fitted_has_an_entry_for_each_output(both):
    model, columns = both
    assert model.kernel_ == tuple(m.kernel_ for m in columns)
    assert model.noise_ == tuple(m.noise_ for m in columns)
    assert model.ridge_.tolist() == [m.ridge_ for m in columns]
    assert model.output_scale_.tolist() == [1.0, 1.0]
    if columns[0].tuning_result_ is None:
        assert model.tuning_result_ is None
    else:
        assert [t.parameters for t in model.tuning_result_] == [m.tuning_result_.parameters for m in columns]


def test_samples_come_and_go(both):
    X, _ = samples()
    model, columns = both
    new, values, scale = (
        np.array([[2.5], [X[3, 0]]]),
        np.array([[1.0, 5.5], [1.2, 6.0]]),
        np.array([1.0, 2.0]),
    )
    before = model.predict(Z)
    old = model.posterior_, [m.posterior_ for m in columns]
    model.partial_fit(new, values, noise_scale=scale).forget([0, 7])
    for m, y in zip(columns, values.T, strict=True):
        m.partial_fit(new, y, noise_scale=scale).forget([0, 7])
    same(model.predict(Z), [m.predict(Z) for m in columns])
    same(model.uncertainty(Z).noise, [m.uncertainty(Z).noise for m in columns])
    model.posterior_ = old[0]
    for m, posterior in zip(columns, old[1], strict=True):
        m.posterior_ = posterior
    np.testing.assert_array_equal(model.predict(Z), before)


def test_a_saved_model_is_the_same(both, tmp_path):
    model, _ = both
    if callable(model.noise_level):
        with pytest.raises(TypeError, match="cannot be saved"):
            model.save(tmp_path / "m.wk")
        return
    model.save(tmp_path / "m.wk")
    loaded = load(tmp_path / "m.wk")
    np.testing.assert_array_equal(loaded.predict(Z), model.predict(Z))
    np.testing.assert_array_equal(loaded.predict_interval(Z), model.predict_interval(Z))
    np.testing.assert_array_equal(loaded.predict_noise_scale(Z), model.predict_noise_scale(Z))
    assert loaded.kernel_ == model.kernel_
    assert [t.level_evidence for t in loaded.tuning_result_ or ()] == [
        t.level_evidence for t in model.tuning_result_ or ()
    ]
    loaded.partial_fit(Z[:1], [[1.0, 5.0]])
    loaded.save(tmp_path / "again.wk")


def test_what_needs_common_weights_is_refused(both):
    model, _ = both
    for ask in (
        lambda: model.ridge_path([1.0]),
        lambda: model.predictor(),
        lambda: model.samples_needed(Z, std=0.1),
        lambda: model.next_sample(Z),
        lambda: model.bound(Z, norm=1.0),
        lambda: model.feature_weights(),
    ):
        with pytest.raises(ValueError, match="each output has a model of its own"):
            ask()


def test_one_column_keeps_its_axis():
    X, Y = samples()
    model = untuned(X, Y[:, :1], RBF(1.0), noise="norm(0, 0.2)", transform="log")
    assert model.predict(Z).shape == (7, 1)
    assert model.predict_interval(Z).shape == (7, 1, 2)


def test_outputs_need_not_all_be_positive():
    X, Y = samples()
    Y = Y - [0, 6]
    model = WienerKernelRegressor(noise="auto").fit(X, Y)
    assert [result.transform is None for result in model.tuning_result_] == [False, True]
    with pytest.raises(ValueError, match=r"column 1 of y: transform='log' is not defined for y = -"):
        untuned(X, Y, transform="log")


def test_arrays_of_other_libraries():
    torch = pytest.importorskip("torch")
    X, Y = samples()
    plain = WienerKernelRegressor(noise="auto").fit(X, Y)
    model = WienerKernelRegressor(noise="auto").fit(torch.asarray(X), torch.asarray(Y))
    query = torch.asarray(Z)
    np.testing.assert_allclose(np.asarray(model.predict(query)), plain.predict(Z), rtol=1e-6)
    parts = model.uncertainty(query)
    assert isinstance(parts.aleatoric, torch.Tensor)
    np.testing.assert_allclose(np.asarray(parts.total), plain.uncertainty(Z).total, rtol=1e-6)
    np.testing.assert_allclose(model.predict_interval(query), plain.predict_interval(Z), rtol=1e-6)


def test_the_number_of_outputs_cannot_change():
    X, Y = samples()
    model = untuned(X, Y, RBF(1.0), noise="norm(0, 0.2)", transform="log")
    with pytest.raises(ValueError, match="y has 1 outputs, the model was fitted with 2"):
        model.partial_fit(X[:1], Y[:1, :1])
