"""Single precision: what it keeps, what it loses, and when it fails."""

import numpy as np
import pytest

from wienerkernel import RBF, NotPositiveDefiniteError
from wienerkernel.backend import arrays
from wienerkernel.noise import as_noise
from wienerkernel.posterior import Posterior
from wienerkernel.smoother import Smoother
from wienerkernel.smoother.fast_predictor import FastPredictor
from wienerkernel.smoother.gradient import mean_gradient, variance_gradients
from wienerkernel.smoother.ridge_path import RidgePath
from wienerkernel.smoother.samples import Samples
from wienerkernel.smoother.updates import extended, without

PRIOR = 2.0


@pytest.fixture(params=["numpy", "torch"])
def xp(request):
    return pytest.importorskip(request.param)


def data(n=300, d=8):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.5 * rng.normal(size=n), rng.normal(size=(50, d))


def posterior(X, y, ridge=0.5, trend="linear"):
    samples = Samples.collapse(X, np.full(len(y), ridge), np.ones(len(y)))
    smoother = Smoother(PRIOR * RBF(2.0), samples, y[:, None], trend)
    return Posterior(smoother, as_noise("norm(0, 0.7)"), True, False)


def everything(model, Z):
    mean, parts = model.mean_and_uncertainty(Z)
    slopes, left_out = model.gradient(Z), model.leave_one_out()
    return {
        "mean": mean,
        "noise": parts.noise,
        "model": parts.model,
        "epistemic": model.mean_and_epistemic(Z)[1],
        "covariance": model.mean_and_covariance(Z)[1],
        "weights": model.smoother.evaluate(Z)[1],
        "slope of the mean": slopes.mean,
        "slope of the noise part": slopes.noise,
        "slope of the model part": slopes.model,
        "residual": left_out.residual,
        "model part, one left out": left_out.model,
    }


def relative_error(one, other):
    return np.max(np.abs(arrays.as_numpy(one) - other)) / np.max(np.abs(other))


def test_single_precision_stays_single_precision(xp):
    X, y, Z = data()
    model = posterior(xp.asarray(X.astype(np.float32)), y)
    assert model.smoother.factor.dtype == xp.float32
    for query in (Z, Z.astype(np.float32)):  # the precision is that of the model
        for name, values in everything(model, xp.asarray(query)).items():
            assert values.dtype == xp.float32, name


def test_a_double_precision_model_answers_in_double_precision(xp):
    X, y, Z = data(20)
    for values in everything(posterior(xp.asarray(X), y), xp.asarray(Z.astype(np.float32))).values():
        assert values.dtype == xp.float64


def test_a_well_conditioned_problem_loses_at_most_four_of_seven_digits(xp):
    X, y, Z = data()
    exact = everything(posterior(X, y), Z)
    single = everything(posterior(xp.asarray(X.astype(np.float32)), y), xp.asarray(Z))
    for name, values in single.items():
        error = relative_error(values, exact[name])
        assert 1e-9 < error < 1e-4, f"{name}: {error}"


def test_log_likelihood_and_gradient_keep_five_digits(xp):
    X, y, _ = data()
    one, other = posterior(xp.asarray(X.astype(np.float32)), y).smoother, posterior(X, y).smoother
    assert one.log_likelihood() == pytest.approx(other.log_likelihood(), rel=1e-6)
    assert relative_error(one.log_likelihood_gradient(), other.log_likelihood_gradient()) < 1e-5


def test_the_noise_part_loses_digits_as_the_ridge_falls_and_the_model_part_keeps_its_absolute_error():
    X, y, Z = data(n=400, d=2)
    noise = []
    for ridge in (1.0, 1e-2, 1e-4):
        exact = posterior(X, y, ridge).uncertainty(Z)
        single = posterior(X.astype(np.float32), y, ridge).uncertainty(Z)
        noise.append(relative_error(single.noise, exact.noise))
        assert np.max(np.abs(single.model - exact.model)) < 1e-4 * PRIOR
    assert noise[0] < 1e-5
    assert noise[0] < noise[1] < noise[2]
    assert noise[2] > 1e-4
    # P2 is a difference of numbers as large as the prior variance: what is far below it has no right digit.
    small = exact.model < 1e-6 * PRIOR
    assert np.max(np.abs(single.model - exact.model)[small] / exact.model[small]) > 0.5


def test_a_ridge_below_the_rounding_of_the_kernel_matrix_fails_in_single_precision_only():
    X, y, Z = data(n=400, d=1)
    assert np.all(np.isfinite(posterior(X, y, 1e-8).mean(Z)))
    with pytest.raises(NotPositiveDefiniteError, match="raise the ridge"):
        posterior(X.astype(np.float32), y, 1e-8)


def test_updates_keep_single_precision():
    X, y, Z = data(60)
    X = X.astype(np.float32)
    X[30] = X[2]  # a repeat
    smoother = posterior(X[:30], y[:30]).smoother
    for i in range(30, 60):
        row = slice(i, i + 1)
        smoother = extended(smoother, X[row].astype(np.float64), np.full(1, 0.5), np.ones(1), y[row, None])
    smoother = without(smoother, np.array([5]))
    keep = np.delete(np.arange(60), 5)
    expected = posterior(X[keep].astype(np.float64), y[keep]).smoother
    assert smoother.factor.dtype == smoother.places.dtype == np.float32
    assert relative_error(smoother.mean(Z), expected.mean(Z)) < 1e-4


def test_the_path_of_ridges_keeps_single_precision(xp):
    X, y, Z = data(100)
    exact = RidgePath.from_smoother(posterior(X, y, trend=None).smoother, [0.5, 1.0])
    smoother = posterior(xp.asarray(X.astype(np.float32)), y, trend=None).smoother
    single = RidgePath.from_smoother(smoother, [0.5, 1.0])
    for one, other in zip(
        (single.mean(xp.asarray(Z)), *single.variances(xp.asarray(Z)), *single.leave_one_out()),
        (exact.mean(Z), *exact.variances(Z), *exact.leave_one_out()),
        strict=True,
    ):
        assert one.dtype == xp.float32
        assert relative_error(one, other) < 1e-4
    np.testing.assert_allclose(single.log_likelihood(), exact.log_likelihood(), rtol=1e-5)


@pytest.mark.parametrize("trend", [None, "linear"])
def test_the_fast_predictor_of_a_single_precision_model_computes_in_double_precision(trend):
    X, y, Z = data(50)
    model = posterior(X.astype(np.float32), y, trend=trend)
    fast = FastPredictor(model.smoother, 0.49)
    mean, parts = model.mean_and_uncertainty(Z)
    for one, other in zip(fast(Z), (mean, parts.noise, parts.model), strict=True):
        assert one.dtype == np.float64
        assert relative_error(one, other) < 1e-4
    assert fast(Z[0])[0] == pytest.approx(float(mean[0]), rel=1e-4)


def test_gradients_equal_those_of_double_precision(xp):
    X, y, Z = data(100)
    exact, single = posterior(X, y).smoother, posterior(xp.asarray(X.astype(np.float32)), y).smoother
    for one, other in zip(
        (mean_gradient(single, xp.asarray(Z)), *variance_gradients(single, xp.asarray(Z))),
        (mean_gradient(exact, Z), *variance_gradients(exact, Z)),
        strict=True,
    ):
        assert relative_error(one, other) < 1e-4
