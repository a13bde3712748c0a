"""The fast predictor against its smoother."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import every_structure, every_trend, problem

from wienerkernel import RBF, FeatureMap, Linear, Matern, Periodic, Polynomial, RationalQuadratic
from wienerkernel.smoother import Smoother
from wienerkernel.smoother.fast_predictor import FastPredictor
from wienerkernel.smoother.samples import Samples

S2 = 0.3
TOLERANCE = {"rtol": 1e-10, "atol": 1e-11}


def assert_agrees(smoother, X, s2=S2, **tolerance):
    predictor = FastPredictor(smoother, s2)
    mean, model, gain = smoother.mean_and_parts(X)
    expected = mean, s2 * gain, model
    single = [np.array(part) for part in zip(*(predictor(x) for x in X), strict=True)]
    for found in (single, predictor(X)):
        mean, noise, model_part = found
        np.testing.assert_allclose(mean.reshape(expected[0].shape), expected[0], **tolerance)
        np.testing.assert_allclose(noise, expected[1], **tolerance)
        np.testing.assert_allclose(model_part, expected[2], **tolerance)


@every_structure
@every_trend
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_predictor_agrees_with_the_smoother(structure, trend, n_outputs):
    assert_agrees(*problem(structure, trend, n_outputs), **TOLERANCE)


@pytest.mark.parametrize("d", [1, 4, 8])
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(1.3),
        4.21**2 * RBF(3.59),
        Matern(1.2, nu=0.5),
        Matern(1.2, nu=1.5),
        2.0 * (Matern(1.2, nu=2.5) * 0.5),
        RationalQuadratic(1.1, 0.7),
        Periodic(1.4, 5.0),
        Linear(2.0) + RBF(),
        0.5 * RBF() * Matern(2.0) + 0.3,
        Polynomial(2),
        3.0 * FeatureMap(lambda X: np.hstack([np.sin(X), np.cos(X)])),
    ],
)
def test_every_kernel_agrees_with_the_smoother(kernel, d):
    assert_agrees(*problem("replicated", kernel=kernel, d=d), **TOLERANCE)
    assert_agrees(*problem("other ridges", "constant", kernel=kernel, d=d), **TOLERANCE)


def test_one_point_gives_plain_numbers():
    smoother, X = problem()
    assert [type(part) for part in FastPredictor(smoother, S2)(X[0])] == [float, float, float]
    mean, noise, model = FastPredictor(problem(n_outputs=2)[0], S2)(X[0])
    assert mean.shape == (2,)
    assert (type(noise), type(model)) == (float, float)


def test_a_batch_gives_arrays():
    smoother, X = problem()
    assert [part.shape for part in FastPredictor(smoother, S2)(X)] == [(9,), (9,), (9,)]
    assert FastPredictor(problem(n_outputs=2)[0], S2)(X)[0].shape == (9, 2)
    assert [part.shape for part in FastPredictor(smoother, S2)(X[:1])] == [(1,), (1,), (1,)]


def test_integers_and_single_precision_are_accepted():
    for kernel in (RBF(), Linear() + 1.0, Periodic(), Matern(nu=0.5)):
        predictor = FastPredictor(problem(kernel=kernel, trend="linear")[0], S2)
        expected = predictor(np.array([1.0, -2.0]))
        assert predictor(np.array([1, -2])) == pytest.approx(expected, rel=1e-13)
        assert predictor(np.array([1, -2], dtype=np.float32)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("trend", [None, "linear"])
def test_nothing_that_is_given_or_was_returned_changes(trend):
    smoother, X = problem("scaled", trend, n_outputs=2)
    X.flags.writeable = False
    predictor = FastPredictor(smoother, S2)
    mean, noise, model = predictor(X[0])
    kept = mean.copy()
    for x in X:
        predictor(x)
    np.testing.assert_array_equal(mean, kept)
    again = predictor(X[0])
    np.testing.assert_array_equal(again[0], kept)
    assert again[1:] == (noise, model)


def test_a_pickled_predictor_gives_the_same_numbers():
    smoother, X = problem("replicated", "linear")
    predictor = FastPredictor(smoother, S2)
    predictor(X[0])
    twin = pickle.loads(pickle.dumps(predictor))
    for x in X:
        assert twin(x) == predictor(x)


def test_threads_may_share_a_predictor():
    smoother, _ = problem("other ridge", "linear")
    predictor = FastPredictor(smoother, S2)
    X = np.random.default_rng(1).normal(size=(400, 2))
    expected = [predictor(x) for x in X]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(predictor, X)) == expected


@pytest.mark.parametrize("kernel", [RBF(1.0), Matern(1.0), 1e4 * RBF(3.0)])
@pytest.mark.parametrize("ridge", [1e-2, 1e-6, 1e-9])
def test_model_part_is_not_negative_at_the_samples_and_small_ridges_lose_no_more_than_the_smoother(
    kernel, ridge
):
    X = np.linspace(-3, 3, 30)[:, None]
    samples = Samples.collapse(X, np.full(30, ridge), np.ones(30))
    smoother = Smoother(kernel, samples, np.sin(X))
    predictor = FastPredictor(smoother, ridge)
    between = X + 0.1
    k = float(kernel.diag(X[:1])[0])
    for Z in (X, between):
        mean, model, gain = smoother.mean_and_parts(Z)
        parts = np.array([predictor(z) for z in Z])
        assert np.all(parts[:, 2] >= 0)
        rounding = 1e-16 * 30 * k / ridge  # eps times the condition of K + R
        np.testing.assert_allclose(parts[:, 2], model, rtol=1e-10, atol=1e-14 * k)
        np.testing.assert_allclose(parts[:, 1], ridge * gain, rtol=1e-10 + rounding)
        np.testing.assert_allclose(parts[:, 0], mean[:, 0], rtol=1e-10, atol=1e-11 + rounding)


def test_one_sample():
    samples = Samples.collapse(np.array([[0.5]]), np.array([0.2]), np.ones(1))
    predictor = FastPredictor(Smoother(RBF(), samples, np.array([[3.0]])), 0.2)
    mean, noise, model = predictor(np.array([0.5]))
    assert mean == pytest.approx(3 / 1.2)
    assert noise == pytest.approx(0.2 / 1.44)
    assert model == pytest.approx(1 - 1 / 1.2 - 0.2 / 1.44)


def test_far_away_the_prior_is_left():
    smoother, _ = problem()
    mean, noise, model = FastPredictor(smoother, S2)(np.array([1e5, -1e5]))
    assert (mean, noise) == (0.0, 0.0)
    assert model == pytest.approx(1.9)


@pytest.mark.parametrize("spread", [1.0, 1e4])
def test_data_far_from_the_origin_and_data_wider_than_the_length_scale(spread):
    rng = np.random.default_rng(0)
    X = 1e5 + spread * rng.normal(size=(30, 4))
    samples = Samples.collapse(X, np.full(30, 0.1), np.ones(30))
    smoother = Smoother(2.0 * RBF() + Matern(), samples, rng.normal(size=(30, 1)))
    assert_agrees(smoother, X[:5] + 0.1, 0.1, **TOLERANCE)


def test_not_a_number_is_not_hidden():
    smoother, _ = problem()
    assert np.all(np.isnan(FastPredictor(smoother, S2)(np.array([np.nan, 0.0]))))
