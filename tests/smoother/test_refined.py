"""A single-precision factor with refinement gives the results of double precision."""

import numpy as np
import pytest
from helpers import every_trend

from wienerkernel import WienerKernelRegressor
from wienerkernel.backend.linalg import NotPositiveDefiniteError
from wienerkernel.kernels import RBF, Matern
from wienerkernel.smoother import Smoother
from wienerkernel.smoother.gradient import mean_gradient, variance_gradients
from wienerkernel.smoother.refined import RefinedSmoother
from wienerkernel.smoother.samples import Samples


def problem(n=300, ridge=1e-3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 5, (n, 2))
    X[10] = X[3]
    scale = rng.uniform(0.5, 2.0, n)
    return (
        Samples.collapse(X, ridge * scale**2, scale),
        rng.standard_normal((n, 2)),
        rng.uniform(0, 6, (7, 2)),
    )


@every_trend
@pytest.mark.parametrize("kernel", [3.0 * RBF(1.0), Matern(1.0, nu=1.5)], ids=str)
def test_results_have_ten_digits(kernel, trend):
    samples, y, query = problem()
    exact, refined = Smoother(kernel, samples, y, trend), RefinedSmoother(kernel, samples, y, trend)
    assert refined.factor.dtype == np.float32
    for method in ("mean_and_parts", "evaluate", "evaluate_jointly", "mean_and_variance"):
        for a, b in zip(getattr(exact, method)(query), getattr(refined, method)(query), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(refined.log_likelihood(), exact.log_likelihood(), rtol=1e-5)
    np.testing.assert_allclose(refined.dual, exact.dual, rtol=1e-8, atol=1e-7)


def test_torch_arrays_stay_in_torch():
    torch = pytest.importorskip("torch")
    samples, y, query = problem(n=100)
    places = torch.tensor(samples.places)
    exact = Smoother(RBF(1.0), samples, y).mean(query)
    moved = Samples(places, samples.index, samples.row_regularizer, samples.scale)
    mean = RefinedSmoother(RBF(1.0), moved, y).mean(torch.tensor(query))
    assert isinstance(mean, torch.Tensor)
    assert mean.dtype == torch.float64
    np.testing.assert_allclose(mean.numpy(), exact, rtol=1e-8, atol=1e-8)


def test_a_hopeless_factor_says_what_to_change():
    samples, y, _ = problem(ridge=1e-12)
    with pytest.raises(NotPositiveDefiniteError, match="ridge"):
        _ = RefinedSmoother(RBF(3.0), samples, y).dual


def test_the_estimator_with_mixed_precision_agrees_with_double_precision():
    samples, y, query = problem(n=80)
    X = samples.places[samples.index]
    options = {"kernel": 2.0 * RBF(1.0), "noise": "gamma(0.5, scale=0.3)", "tuning": None}
    exact = WienerKernelRegressor(**options).fit(X[:60], y[:60]).partial_fit(X[60:], y[60:]).forget([3, 5])
    mixed = WienerKernelRegressor(**options, dtype="mixed").fit(X[:60], y[:60])
    mixed = mixed.partial_fit(X[60:], y[60:]).forget([3, 5])
    np.testing.assert_allclose(mixed.predict(query), exact.predict(query), rtol=1e-8, atol=1e-9)
    parts, expected = mixed.uncertainty(query), exact.uncertainty(query)
    np.testing.assert_allclose(parts.model, expected.model, rtol=1e-8, atol=1e-9)
    law, other = (m.predict_distribution(query, of="observation") for m in (mixed, exact))
    np.testing.assert_allclose(law.ppf(0.9), other.ppf(0.9), rtol=1e-7)
    with pytest.raises(TypeError, match="dtype"):
        mixed.loo()
    with pytest.raises(TypeError, match="dtype"):
        mixed.save("unused.wk")


@every_trend
def test_gradients_have_ten_digits(trend):
    samples, y, query = problem()
    exact, refined = (kind(3.0 * RBF(1.0), samples, y, trend) for kind in (Smoother, RefinedSmoother))
    np.testing.assert_allclose(
        mean_gradient(refined, query), mean_gradient(exact, query), rtol=1e-8, atol=1e-8
    )
    for a, b in zip(variance_gradients(exact, query), variance_gradients(refined, query), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-9)
