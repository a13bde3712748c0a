"""Expectation propagation: exact for normal noise, and close to brute force elsewhere."""

import numpy as np
import pytest
from scipy import stats

from wienerkernel import RBF, Matern, Mixture, WienerKernelRegressor, as_noise
from wienerkernel.losses.coordinates import Coordinates, Observed
from wienerkernel.losses.propagation import propagate

KERNEL = 4.21**2 * RBF(3.59)


def data(law, n, seed=0, repeats=False):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-5, 5, n))[:, None]
    if repeats:
        X[: n // 2] = X[n // 2 : 2 * (n // 2)]
    y = np.sin(X[:, 0]) + X[:, 0] / 3 + as_noise(law).rvs(n, random_state=rng)
    return X, y


def run(law, X, y, kernel=KERNEL, scale=None, trend=None):
    observed = Observed.of(X, y, np.ones(len(y)) if scale is None else scale)
    return propagate(Coordinates.at(kernel, observed.places, trend), observed, as_noise(law))


def at_places(found):
    """Mean of f at the places."""
    return found.coordinates.phi @ found.posterior.mean


@pytest.mark.parametrize("trend", [None, "constant", "linear"])
@pytest.mark.parametrize("kernel", [KERNEL, 2.0 * Matern(0.5, nu=0.5)], ids=["smooth", "rough"])
def test_normal_noise_is_exact(trend, kernel):
    """Also with repeated inputs, noise of several scales, and a trend with a flat prior."""
    X, y = data("norm(0.3, 0.5)", 30, repeats=True)
    scale = np.random.default_rng(1).uniform(0.5, 2, 30)
    found = run("norm(0.3, 0.5)", X, y, kernel, scale, trend)
    model = WienerKernelRegressor(kernel, noise="norm(0.3, 0.5)", trend=trend, tuning=None).fit(X, y, scale)
    Q = np.linspace(-8, 8, 21)[:, None]
    phi, rest = found.coordinates.features(Q)
    mean, noise = phi @ found.posterior.mean, found.posterior.variance(phi)
    expected, std = model.predict(Q, return_std=True)
    assert np.all(np.abs(mean - expected) < 1e-5 * std)
    np.testing.assert_allclose(noise + rest, std**2, rtol=1e-5, atol=1e-9)
    assert found.converged
    if trend is None:
        value, gradient = model.log_likelihood(eval_gradient=True)
        np.testing.assert_allclose(found.log_evidence, value, rtol=1e-9)
        np.testing.assert_allclose(found.kernel_gradient(), gradient, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("law", ["t(3)", "laplace(0, 0.5)", "lognorm(1)", "uniform(-1, 2)"])
@pytest.mark.parametrize("trend", [None, "constant"])
def test_gradient_of_the_evidence(law, trend):
    X, y = data(law, 25, repeats=True)
    theta = np.log([6.0, 2.0])

    def at(values):
        return run(law, X, y, KERNEL.with_theta(values), trend=trend)

    gradient = at(theta).kernel_gradient()
    for k in range(2):
        step = np.where(np.arange(2) == k, 1e-3, 0.0)
        slope = (at(theta + step).log_evidence - at(theta - step).log_evidence) / 2e-3
        assert abs(slope - gradient[k]) < 1e-4 * max(1.0, abs(slope))


def test_derivative_of_the_evidence_by_the_noise():
    X, y = data("t(4)", 25)
    found = run("t(4)", X, y)
    value = found.noise_derivative(as_noise("t(4, scale=1.001)")) - found.noise_derivative(
        as_noise("t(4, scale=0.999)")
    )
    difference = run("t(4, scale=1.001)", X, y).log_evidence - run("t(4, scale=0.999)", X, y).log_evidence
    assert abs(value / difference - 1) < 1e-3


def exact_two(law, K, y, half=12.0, m=2001):
    """Log evidence, means and variances of f at two inputs, on a fine grid."""
    grid = np.linspace(-half, half, m)
    prior = stats.multivariate_normal(np.zeros(2), K)
    log_p = prior.logpdf(np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1))
    log_p += law.logpdf(y[0] - grid)[:, None] + law.logpdf(y[1] - grid)[None, :]
    p = np.exp(log_p) * (grid[1] - grid[0]) ** 2
    z = p.sum()
    marginals = p.sum(axis=1) / z, p.sum(axis=0) / z
    means = np.array([marginal @ grid for marginal in marginals])
    return (
        np.log(z),
        means,
        np.array([q @ (grid - mean) ** 2 for q, mean in zip(marginals, means, strict=True)]),
    )


@pytest.mark.parametrize(
    ("law", "tolerance"),
    [(stats.logistic(0, 0.5), 0.01), (stats.laplace(), 0.05), (stats.gumbel_r(), 0.05), (stats.t(5), 0.05)],
)
def test_two_samples_against_a_grid(law, tolerance):
    X, y = np.array([[0.0], [1.0]]), np.array([1.5, -0.7])
    kernel = 3.0 * RBF(1.0)
    found = run(law, X, y, kernel)
    log_z, means, variances = exact_two(law, kernel(X), y)
    std = np.sqrt(variances)
    assert np.all(np.abs(at_places(found) - means) < tolerance * std)
    assert np.all(np.abs(np.sqrt(found.posterior.variance(found.coordinates.phi)) / std - 1) < tolerance)
    assert abs(found.log_evidence - log_z) < tolerance


@pytest.mark.parametrize(
    "law",
    [
        "t(3)",
        "lognorm(1)",
        "laplace()",
        "uniform(-1, 2)",
        "gamma(0.25, scale=2)",
        Mixture(["norm(0, 0.3)", "norm(0, 3)"], [0.8, 0.2]),
    ],
    ids=str,
)
def test_convergence(law):
    X, y = data(law, 40)
    found = run(law, X, y)
    assert found.residual < 1e-4


def test_samples_outside_the_support_of_bounded_noise():
    """A single outlier, which uniform noise cannot explain near f = 0, moves f."""
    X, y = np.array([[0.0], [0.1], [0.2]]), np.array([0.0, 0.0, 3.5])
    found = run("uniform(-1, 2)", X, y, RBF(1.0))
    assert np.all(np.isfinite(at_places(found)))
    assert np.all(np.abs(y - at_places(found)) < 2)


def test_improper_posterior():
    with pytest.raises(ValueError, match="improper"):
        run("t(3)", np.zeros((2, 1)), np.zeros(2), trend="linear")


@pytest.mark.parametrize("law", ["uniform(-1, 2)", "t(3)", "gamma(2)"])
def test_an_offset_of_y_is_that_of_the_estimate(law):
    """Bounded noise at 1e8 once stopped after a sweep, with marginals that were off by 17 standard deviations."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-5, 5, 40))[:, None]
    y = np.sin(X[:, 0]) + as_noise(law).rvs(40, random_state=rng)
    near, far = (
        WienerKernelRegressor(RBF(1.0), noise=law, inference="ep", trend="constant", tuning=None).fit(
            X, values
        )
        for values in (y, y + 1e8)
    )
    assert near.posterior_.propagation.converged
    assert far.posterior_.propagation.converged
    np.testing.assert_allclose(far.predict(X) - 1e8, near.predict(X), atol=1e-3)
    np.testing.assert_allclose(far.uncertainty(X).noise, near.uncertainty(X).noise, rtol=1e-3)


def test_noise_with_a_narrow_and_a_wide_component():
    """A smaller power converges where larger ones end in a cycle."""
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(-5, 5, 200))[:, None]
    y = np.sin(X[:, 0]) + np.where(rng.random(200) < 0.5, 0.1, 1.0) * rng.standard_normal(200)
    noise = Mixture(["norm(0, 0.1)", "norm(0, 1)"], [0.5, 0.5])
    model = WienerKernelRegressor(RBF(1.5), noise=noise, inference="ep", tuning=None).fit(X, y)
    assert model.posterior_.propagation.converged
    assert np.sqrt(np.mean((model.predict(X) - np.sin(X[:, 0])) ** 2)) < 0.06
