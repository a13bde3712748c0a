"""Data that cannot be squared in floating point are refused by name, not by what they do to a hyperparameter."""

import numpy as np
import pytest
from helpers import untuned

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.validation import largest

HUGE = [1e308, -1e308, 1e200, 1e155]
TUNINGS = [{}, {"tuning": None}, {"tuning": "loo"}, {"tuning": None, "trend": "linear"}]


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=12)


@pytest.mark.parametrize("options", TUNINGS, ids=str)
@pytest.mark.parametrize("value", HUGE)
def test_data_too_large_for_squares_are_named(value, options):
    X, y = data()
    model = WienerKernelRegressor(**options)
    for changed, match in (
        (
            (_with(X, (3, 1), value), y),
            r"X has the value .* in row 3, column 1: .* squared in float64; rescale X",
        ),
        ((X, _with(y, 3, value)), r"y has the value .* in row 3: .* squared in float64; rescale y"),
        ((X, np.stack([y, _with(y, 3, value)], axis=1)), r"y has the value .* in row 3, column 1"),
        ((X, y, _with(np.ones(12), 3, abs(value))), r"noise_scale .* row 3"),
        ((X, y, _with(np.eye(12), (3, 4), value)), r"noise_scale .* row 3"),
    ):
        with pytest.raises(ValueError, match=match):
            model.fit(*changed)


@pytest.mark.parametrize("value", HUGE)
def test_queries_and_updates_are_held_to_the_same_limit(value):
    X, y = data()
    model = untuned(X, y, RBF(), noise="norm(0, 1)")
    far = [[0.0, value]]
    for ask in (model.predict, model.uncertainty, lambda Z: model.partial_fit(Z, [1.0])):
        for Z in (far, np.array(far)):
            with pytest.raises(ValueError, match=r"X has the value .* in row 0, column 1"):
                ask(Z)
    with pytest.raises(ValueError, match=r"y has the value .* in row 0"):
        model.partial_fit(X[:1], np.array([value]))


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-308, 1e-200])
@pytest.mark.parametrize("options", TUNINGS[:3], ids=str)
def test_noise_too_small_for_squares_is_named(value, options):
    X, y = data()
    model = WienerKernelRegressor(**options)
    for scale in (_with(np.ones(12), 3, value), _with(np.eye(12), (3, 3), value)):
        with pytest.raises(ValueError, match=r"noise_scale .* row 3"):
            model.fit(X, y, scale)
    with pytest.raises(ValueError, match="noise_scale"):
        model.fit(X, y, value * np.eye(12))


def test_a_ridge_whose_reciprocal_is_not_finite_is_refused():
    X, y = data()
    for ridge in (1e-320, 1e308):
        with pytest.raises(ValueError, match=r"regulari[sz]er .* row 0"):
            untuned(X, y, RBF(), noise="norm(0, 1)", ridge=ridge)
    with pytest.raises(ValueError, match=r"regulari[sz]er .* row 0"):
        untuned(X, y, RBF(), noise="norm(0, 1e-120)", noise_scale=np.full(12, 1e-120))


@pytest.mark.parametrize("factor", [1e-200, 1e-308])
def test_inputs_too_close_for_squares_are_named_where_length_scales_are_tuned(factor):
    X, y = data()
    with pytest.raises(ValueError, match=r"column 0 of X .* squared.*rescale X"):
        WienerKernelRegressor().fit(X * factor, y)
    untuned(X * factor, y)


@pytest.mark.parametrize("factor", [1e150, 1e100, 1e-80, 1e-155, 1e-300])
def test_outputs_whose_variance_cannot_be_squared_are_named_where_it_is_tuned(factor):
    X, y = data()
    for options in ({}, {"tuning": "loo"}):
        with pytest.raises(ValueError, match=r"column 0 of y spans .* squared twice in float64; rescale y"):
            WienerKernelRegressor(**options).fit(X, y * factor)
    model = untuned(X, y * factor)
    assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.parametrize("value", [1e150, 1e100, 1e-200, 5e-324])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_inputs_that_can_be_squared_give_finite_answers(value):
    X, y = data()
    inputs = _with(X, (3, 1), value)
    for options in ({}, {"tuning": None}):
        model = WienerKernelRegressor(**options).fit(inputs, y)
        assert np.all(np.isfinite(model.predict(inputs)))
        assert np.all(np.isfinite(model.uncertainty(inputs).total))


@pytest.mark.parametrize("factor", [1e74, 1e40, 1e-40, 1e-74])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_outputs_of_any_other_size_are_tuned_and_scored(factor):
    X, y = data()
    model = WienerKernelRegressor().fit(X, y * factor)
    assert np.all(np.isfinite(model.score_report().log_score))
    np.testing.assert_allclose(
        model.predict(X) / factor, WienerKernelRegressor().fit(X, y).predict(X), rtol=1e-3
    )


def test_single_precision_has_its_own_limit():
    X, y = data()
    assert 1e15 < largest("float32") < 1e18
    with pytest.raises(ValueError, match="too large to be squared in float32"):
        untuned(_with(X, (3, 1), 1e25), y, RBF(), noise="norm(0, 1)", dtype="float32")


def test_arrays_of_other_libraries_are_held_to_the_same_limit():
    torch = pytest.importorskip("torch")
    X, y = data()
    with pytest.raises(ValueError, match=r"X has the value .* in row 3, column 1"):
        untuned(torch.tensor(_with(X, (3, 1), 1e200)), torch.tensor(y), RBF(), noise="norm(0, 1)")


def _with(values, where, value):
    changed = values.copy()
    changed[where] = value
    return changed


def test_numbers_that_are_none_are_refused_by_name():
    X, y = data()
    model = WienerKernelRegressor(tuning=None).fit(X, y)
    for coverage in ("a", [0.5, 0.9], 95):
        with pytest.raises(ValueError, match="coverage must lie strictly between 0 and 1"):
            model.predict_interval(X, coverage)
    for number in (-1, 1.5, "a"):
        with pytest.raises(ValueError, match="n_samples must be an integer of at least 0"):
            model.sample_y(X, number)
        with pytest.raises(ValueError, match="n_restarts must be an integer of at least 0"):
            WienerKernelRegressor(n_restarts=number).fit(X, y)
    with pytest.raises(ValueError, match="residuals must contain at least two different values"):
        WienerKernelRegressor(noise=[], tuning=None).fit(X, y)
