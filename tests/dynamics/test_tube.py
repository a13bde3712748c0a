"""Tubes against the linear recursion itself, exact one-step laws and sampled paths."""

import warnings

import numpy as np
import pytest
from scipy import stats

from wienerkernel import RBF, Dynamics, WienerKernelRegressor
from wienerkernel.experiments.system import truth

U = np.array([[0.3], [-0.2], [0.1], [0.4]])


def cubic(scale=0.1, noise="gamma(0.25, scale=0.2)", learns="state"):
    """The paper's system under gamma noise of standard deviation 0.1."""
    rng = np.random.default_rng(0)
    X = np.linspace(-5, 5, 15)[:, None]
    y = truth(X[:, 0]) + rng.gamma(0.25, 2 * scale, 15) - (X[:, 0] if learns == "increment" else 0)
    return Dynamics(
        WienerKernelRegressor(4.21**2 * RBF(3.59), noise=noise, tuning=None).fit(X, y), learns=learns
    )


def driven(single=False, n=30, variance=4.0):
    """Two states and an input, repeated samples, noise of different scales; one model or one for each state."""
    rng = np.random.default_rng(3)
    Z = rng.uniform(-2, 2, (n, 3))[rng.integers(0, n, 3 * n // 2)]
    Y = np.column_stack([0.9 * Z[:, 0] + 0.2 * np.sin(Z[:, 1]), 0.8 * Z[:, 1] + 0.3 * Z[:, 2]])
    Y += rng.gamma(0.5, 0.1, Y.shape)
    scale = rng.uniform(0.5, 1.5, len(Z))
    laws = ["gamma(0.5, scale=0.1)", "uniform(-0.1, 0.3)"]
    model = WienerKernelRegressor(variance * RBF(2.0), noise=laws[0], tuning=None, trend="linear")
    if not single:
        return Dynamics(model.fit(Z, Y, noise_scale=scale))
    return Dynamics(
        [
            WienerKernelRegressor(4.0 * RBF(2.0), noise=law, tuning=None).fit(Z, y)
            for law, y in zip(laws, Y.T, strict=True)
        ]
    )


def linear_recursion(tube, n, rng):
    """Deviations (n, steps + 1, n_x), by simulating the linearized system: the definition."""
    steps, n_x = tube.steps, tube.mean.shape[1]
    forces = np.zeros((n, steps, n_x))
    for part in tube.dynamics.parts:
        smoother, posterior = part.posterior.smoother, part.posterior
        samples = smoother.samples
        _, weights, covariance = smoother.evaluate_jointly(tube._Z)
        per_sample = samples.per_sample(weights) * samples.scale
        root = np.linalg.cholesky(covariance + 1e-12 * np.eye(steps))
        for i, state in enumerate(range(part.states.start, part.states.stop)):
            noise = posterior.noise.rvs((n, len(samples.index)), random_state=rng) - posterior.noise.mean()
            model = rng.standard_normal((n, steps)) @ root.T
            process = posterior.noise.rvs((n, steps), random_state=rng) - posterior.noise.mean()
            forces[:, :, state] = posterior.output_scale[i] * (model - noise @ per_sample.T + process)
    away = np.zeros((n, steps + 1, n_x))
    for k in range(steps):
        away[:, k + 1] = away[:, k] @ tube.A[k].T + forces[:, k]
    return away


@pytest.mark.parametrize("single", [False, True])
def test_the_tube_is_the_law_of_the_linear_recursion(single):
    dynamics, n = driven(single), 40_000
    tube = dynamics.tube([1.0, -0.5], U, feedback=[[0.1, -0.4]], check=0)
    away = linear_recursion(tube, n, np.random.default_rng(1))
    h = np.array([1.0, -2.0])
    levels = (np.arange(1000) + 0.5) / 1000
    for k in (1, 2, 4):
        law, drawn = tube.distribution(k, h), (tube.mean[k] + away[:, k]) @ h
        quantiles = law.ppf(levels)
        assert stats.kstest(
            drawn, lambda y, q=quantiles: np.interp(y, q, levels)
        ).statistic < 1.628 / np.sqrt(n)
        np.testing.assert_allclose(tube.parts(k).total, away[:, k].var(axis=0), rtol=0.05)
        np.testing.assert_allclose(tube.distribution(k).var(), tube.parts(k).total, rtol=1e-10)
        np.testing.assert_allclose(tube.distribution(k).mean(), tube.mean[k], rtol=1e-10, atol=1e-12)
        assert tube.law(h).ppf(0.9)[k] == pytest.approx(law.ppf(0.9), rel=1e-9)


@pytest.mark.parametrize("learns", ["state", "increment"])
def test_one_step_is_exact(learns):
    dynamics = cubic(learns=learns)
    tube = dynamics.tube([-3.0], steps=2)
    exact = dynamics.parts[0].model.predict_distribution([[-3.0]], "observation")
    shift = -3.0 if learns == "increment" else 0.0
    levels = np.array([[0.01], [0.5], [0.999]])
    np.testing.assert_allclose(tube.distribution(1).ppf(levels), exact.ppf(levels) + shift, rtol=1e-9)
    parts, expected = tube.parts(1), dynamics.parts[0].model.uncertainty([[-3.0]])
    for name in ("noise", "model", "aleatoric"):
        np.testing.assert_allclose(getattr(parts, name), getattr(expected, name), rtol=1e-6)
    assert tube.distribution(0).var() == 0


def test_small_noise_agrees_with_sampled_paths():
    dynamics = driven(n=120, variance=0.3)
    gain = np.array([[0.1, -0.4]])
    tube = dynamics.tube([1.0, -0.5], U, feedback=gain)
    assert tube.disagreement.max() < 0.15
    n = 20_000
    run = dynamics.rollout(
        [1.0, -0.5], lambda k, x: U[k] + (x - tube.mean[k]) @ gain.T, 4, n, causes=False, random_state=2
    )
    h = np.array([1.0, 1.0])
    violations = np.mean(run.states @ h > tube.mean @ h + tube.tightening(h, 0.05), axis=0)
    np.testing.assert_allclose(violations[1:], 0.05, atol=0.012)
    open_loop = dynamics.tube([1.0, -0.5], U, check=0)
    np.testing.assert_allclose(tube.A, open_loop.A + open_loop.B @ gain)


def test_large_noise_is_warned_of():
    dynamics = cubic(1.0, "gamma(0.25, scale=2)")
    with pytest.warns(UserWarning, match=r"disagrees with 200 sampled paths from step \d on \(state x1"):
        dynamics.tube([-3.0], steps=6)


def test_few_paths_are_not_a_disagreement():
    tube = cubic(1.0, "gamma(0.25, scale=2)").tube([-3.0], steps=1, check=0)  # one step is exact
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distances = [tube.compare(20, seed)[1, 0] for seed in range(20)]
    assert max(distances) > 0.2


def test_bad_arguments_are_refused():
    dynamics = driven()
    with pytest.raises(ValueError, match="feedback must have shape"):
        dynamics.tube([1.0, 0.0], U, feedback=[[1.0]])
    with pytest.raises(ValueError, match="feedback must be finite"):
        dynamics.tube([1.0, 0.0], U, feedback=[[np.nan, 0.0]])
    with pytest.raises(ValueError, match="inputs must be an array"):
        dynamics.tube([1.0, 0.0], lambda k, x: x, 3)
    tube = dynamics.tube([1.0, 0.0], U, check=0)
    with pytest.raises(ValueError, match="direction must be 2 finite numbers"):
        tube.law([1.0])
    with pytest.raises(ValueError, match="eps must lie"):
        tube.tightening([1.0, 0.0], 0.0)
    with pytest.raises(ValueError, match="without lags"):
        Dynamics.from_trajectories(
            np.sin(np.arange(30.0)), lags=2, model=WienerKernelRegressor(tuning=None)
        ).tube([0.0, 1.0], steps=2)
