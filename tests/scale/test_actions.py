"""Given actions: IterGP's decomposition of the variance, exactly."""

import numpy as np
import pytest

from wienerkernel import RBF, Actions, WienerKernelRegressor

NOISE = 0.3


def problem(n=40):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (n, 1))
    return X, np.sin(X[:, 0]) + NOISE * rng.standard_normal(n), np.linspace(-1, 6, 7)[:, None]


def fitted(approximation, X, y, trend=None, scale=None):
    kernel, noise = 1.5 * RBF(0.8), f"norm(0, {NOISE})"
    model = WienerKernelRegressor(kernel, noise=noise, trend=trend, tuning=None, approximation=approximation)
    return model.fit(X, y, scale)


MATRIX = np.random.default_rng(1).standard_normal((40, 9))


@pytest.mark.parametrize("actions", [Actions("subset", 8), Actions("cholesky", 8), Actions(MATRIX)], ids=str)
def test_the_variance_is_that_of_the_projection(actions):
    X, y, query = problem()
    model = fitted(actions, X, y)
    parts, S, kernel = model.uncertainty(query), model.posterior_.smoother.actions, model.kernel_
    noisy, k = kernel(X) + NOISE**2 * np.eye(len(X)), kernel(query, X)
    solved = np.linalg.solve(S.T @ noisy @ S, S.T @ k.T)
    total = kernel.diag(query) - np.sum((k @ S).T * solved, axis=0)
    np.testing.assert_allclose(parts.epistemic, total, atol=1e-12)
    np.testing.assert_allclose(model.predict(query), y @ S @ solved, atol=1e-12)
    residual = k - (S @ solved).T @ noisy
    excess = np.sum(residual.T * np.linalg.solve(noisy, residual.T), axis=0)
    exact = fitted(None, X, y).uncertainty(query)
    np.testing.assert_allclose(parts.epistemic - exact.epistemic, excess, atol=1e-12)
    np.testing.assert_allclose(
        parts.computational, np.minimum(excess, parts.model + parts.computational), atol=1e-12
    )


@pytest.mark.parametrize("kind", ["subset", "cholesky"])
@pytest.mark.parametrize("trend", [None, "constant"])
def test_each_action_helps_and_all_of_them_are_exact(kind, trend):
    X, y, query = problem()
    scale = np.linspace(0.5, 2.0, len(y))
    totals = [
        fitted(Actions(kind, m), X, y, trend, scale).uncertainty(query).epistemic for m in (2, 5, 10, 20)
    ]
    assert np.all(np.diff(totals, axis=0) <= 1e-12)
    whole, exact = fitted(Actions("subset"), X, y, trend, scale), fitted(None, X, y, trend, scale)
    np.testing.assert_allclose(whole.predict(query), exact.predict(query), atol=1e-10)
    np.testing.assert_allclose(whole.uncertainty(query).computational, 0, atol=1e-10)
    for a, b in zip(
        whole.predict(query, return_cov=True), exact.predict(query, return_cov=True), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_what_is_refused():
    X, y, _ = problem()
    with pytest.raises(ValueError, match="must have 40 rows"):
        fitted(Actions(np.ones((3, 2))), X, y)
    for column in (np.ones(40), np.full(40, np.nan)):
        with pytest.raises(ValueError, match="finite and linearly independent"):
            fitted(Actions(np.column_stack([np.ones(40), column])), X, y)
    with pytest.raises(ValueError, match="kind must be"):
        Actions("krylov")
    with pytest.raises(ValueError, match="matrix of shape"):
        Actions([1.0, 2.0])
    with pytest.raises(ValueError, match="number must be"):
        Actions("subset", 0)
    model = fitted(Actions("subset", 3), X, y)
    with pytest.raises(TypeError, match="cannot be extended"):
        model.partial_fit(X, y)
