"""Scorers, intervals and tables of predictions through scikit-learn's pipelines and model selection."""

from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from wienerkernel import (
    RBF,
    IntervalRegressor,
    WienerKernelRegressor,
    coverage,
    crps,
    log_score,
    neg_crps,
    prediction_table,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 6, (30, 2))
Y = np.sin(X[:, 0]) + 0.2 * RNG.normal(size=30)


def a_model(scale=1.0):
    return WienerKernelRegressor(RBF([scale, 3.0]), noise="norm(0, 0.2)", tuning=None)


def test_scorers_are_those_of_the_predicted_laws():
    model = a_model().fit(X[:20], Y[:20])
    law, report = model.predict_distribution(X[20:], "observation"), model.score_report(X[20:], Y[20:])
    assert log_score(model, X[20:], Y[20:]) == pytest.approx(report.log_score.mean())
    assert neg_crps(model, X[20:], Y[20:]) == pytest.approx(-crps(law, Y[20:]).mean())
    assert coverage(model, X[20:], Y[20:]) == report.coverage(0.9)
    assert coverage(model, X[20:], Y[20:], probability=0.5) == report.coverage(0.5)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        coverage(model, X, Y, probability=90)


def test_model_selection_takes_them_with_and_without_a_pipeline():
    folds = KFold(3)
    expected = [
        a_model().fit(X[a], Y[a]).score_report(X[b], Y[b]).log_score.mean() for a, b in folds.split(X)
    ]
    np.testing.assert_allclose(cross_val_score(a_model(), X, Y, scoring=log_score, cv=folds), expected)
    pipeline = make_pipeline(StandardScaler(), a_model())
    scoring = {"log": log_score, "crps": neg_crps, "half": partial(coverage, probability=0.5)}
    found = cross_validate(pipeline, X, Y, scoring=scoring, cv=folds)
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in scoring)
    grid = {"kernel": [RBF([0.01, 3.0]), RBF([1.0, 3.0])]}
    search = GridSearchCV(a_model(), grid, scoring=neg_crps, cv=folds).fit(X, Y)
    assert search.best_params_["kernel"] == RBF([1.0, 3.0])
    assert np.isfinite(log_score(search, X, Y))


def test_intervals_pass_through_pipelines_and_cross_validation():
    folds, scaler = KFold(3), StandardScaler()
    wrapped = IntervalRegressor(make_pipeline(scaler, a_model()), coverage=0.8, of="function")
    found = cross_val_predict(wrapped, X, Y, cv=folds)
    for a, b in folds.split(X):
        before = StandardScaler().fit(X[a])
        model = a_model().fit(before.transform(X[a]), Y[a])
        np.testing.assert_allclose(found[b], model.predict_interval(before.transform(X[b]), 0.8, "function"))
    fitted = wrapped.fit(X, Y)
    assert fitted.score(X, Y) == fitted.estimator_.score(X, Y)
    with pytest.raises(TypeError, match="got LinearRegression"):
        IntervalRegressor(LinearRegression()).fit(X, Y).predict(X)


@pytest.mark.parametrize("several", [False, True])
def test_tables_of_predictions_are_frames_if_the_inputs_are(several):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"], index=[f"row {k}" for k in range(len(X))])
    y = pd.DataFrame({"u": Y, "v": -Y}, index=frame.index) if several else pd.Series(Y, frame.index, name="u")
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), a_model()).fit(frame, y)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b"]
    assert pipeline[-1].target_names_in_.tolist() == (["u", "v"] if several else ["u"])
    table = prediction_table(pipeline, frame, coverage=0.8)
    assert isinstance(table, pd.DataFrame)
    assert table.index.equals(frame.index)
    model, inputs = pipeline[-1], pipeline[:-1].transform(frame)
    names = ["mean_u", "lower_u", "upper_u"] if several else ["mean", "lower", "upper"]
    interval = model.predict_interval(inputs, 0.8).reshape(30, -1, 2)[:, 0]
    np.testing.assert_allclose(table[names[1:]], interval)
    np.testing.assert_allclose(table[names[0]], model.predict(inputs).reshape(30, -1)[:, 0])
    plain = prediction_table(pipeline[-1].__class__(**a_model().get_params()).fit(X, Y), X)
    assert list(plain) == ["mean", "lower", "upper", "std_noise", "std_model", "std_aleatoric"]
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        prediction_table(pipeline, frame, coverage=95)


def test_names_of_targets_do_not_outlive_a_fit_without_names():
    pd = pytest.importorskip("pandas")
    model = a_model().fit(X, pd.Series(Y, name="u"))
    assert model.target_names_in_.tolist() == ["u"]
    assert not hasattr(model.fit(X, Y), "target_names_in_")


def test_parameters_have_the_names_of_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["time", "dose"])
    for noise in (None, "auto"):
        named = WienerKernelRegressor(noise=noise).fit(frame, Y).tuning_result_.parameters
        plain = WienerKernelRegressor(noise=noise).fit(X, Y).tuning_result_.parameters
        assert "kernel.k2.length_scale[time]" in named
        assert [name.replace("time", "0").replace("dose", "1") for name in named] == list(plain)
        assert list(named.values()) == list(plain.values())
    separate = WienerKernelRegressor(noise_level="input").fit(frame, np.column_stack([Y, Y + X[:, 0]]))
    assert "kernel.k2.length_scale[dose]" in separate.tuning_result_[1].parameters
    efficient = WienerKernelRegressor(noise="laplace", inference="ep").fit(frame[:15], Y[:15])
    assert [name for name in efficient.tuning_result_.parameters if "length_scale" in name] == [
        "kernel.k2.length_scale[time]",
        "kernel.k2.length_scale[dose]",
    ]


def test_dates_and_texts_are_refused_with_a_hint():
    pd = pytest.importorskip("pandas")
    days = pd.DataFrame({"a": X[:, 0], "day": pd.date_range("2024-01-01", periods=30)})
    model = a_model()
    with pytest.raises(ValueError, match=r"column 'day' of X has dates.*pd.Timedelta"):
        model.fit(days, Y)
    with pytest.raises(ValueError, match="X has dates"):
        model.fit(days[["day"]].to_numpy(), Y)
    with pytest.raises(ValueError, match="column 'day' of X has durations"):
        model.fit(days.assign(day=days.day - days.day.min()), Y)
    with pytest.raises(ValueError, match="column 'day' of X has dates"):
        model.fit(days.assign(day=days.day.dt.to_period("M")), Y)
    with pytest.raises(ValueError, match="y has dates"):
        model.fit(X, days.day)
    with pytest.raises(ValueError, match="column '0' of X has texts"):
        model.fit(pd.DataFrame([["red"]] * 30), Y)
    with pytest.raises(ValueError, match=r"column 'color' of X has texts.*OneHotEncoder"):
        model.fit(pd.DataFrame({"a": X[:, 0], "color": ["red"] * 30}), Y)
    fitted = model.fit(days.assign(day=(days.day - days.day.min()) / pd.Timedelta(days=1)), Y)
    with pytest.raises(ValueError, match="column 'day' of X has dates"):
        fitted.predict(days)


def test_metadata_reach_the_model_within():
    rng = np.random.default_rng(0)
    X, scale = rng.uniform(0, 6, (20, 1)), rng.uniform(1, 3, 20)
    y = np.sin(X[:, 0])
    requested = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None)
    with sklearn.config_context(enable_metadata_routing=True):
        requested.set_fit_request(noise_scale=True)
        pipeline = make_pipeline(StandardScaler(), requested)
        options = {"params": {"noise_scale": scale}, "cv": KFold(2)}
        found = cross_val_predict(IntervalRegressor(pipeline), X, y, **options)
    for train, test in KFold(2).split(X):
        scaler = StandardScaler().fit(X[train])
        model = requested.fit(scaler.transform(X[train]), y[train], noise_scale=scale[train])
        np.testing.assert_allclose(found[test], model.predict_interval(scaler.transform(X[test]), 0.9))


def test_interval_regressors_know_their_inputs():
    pd = pytest.importorskip("pandas")
    fitted = IntervalRegressor(make_pipeline(StandardScaler(), a_model())).fit(
        pd.DataFrame(X, columns=["a", "b"]), Y
    )
    assert fitted.n_features_in_ == 2
    assert fitted.feature_names_in_.tolist() == ["a", "b"]
