"""Rollouts against brute force and exact one-step laws, causes, lags, policies, warnings, bad input."""

from itertools import product

import matplotlib.figure
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

from wienerkernel import RBF, Dynamics, Linear, WienerKernelRegressor
from wienerkernel.dynamics import seasonal_inputs, simulation
from wienerkernel.dynamics.causes import split_by_cause
from wienerkernel.experiments.system import GAMMA, kernel, truth
from wienerkernel.transform import BoxCox

matplotlib.use("Agg")
N = 100_000
CRITICAL = 1.628 * np.sqrt(2 / N)
"""Kolmogorov's distance between two samples of size N that is exceeded with probability 1 %."""
LEVELS = (np.arange(4000) + 0.5)[:, None] / 4000


def paper_model(**options):
    X = np.linspace(-5, 5, 5)[:, None]
    y = truth(X[:, 0]) + np.random.default_rng(0).gamma(0.25, 2, 5)
    options = {"noise": GAMMA, "tuning": None, "trend": None} | options
    return WienerKernelRegressor(kernel(), **options).fit(X, y)


def two_state_model(**options):
    """Two states and an input."""
    rng = np.random.default_rng(3)
    Z = rng.uniform(-2, 2, (40, 3))
    Y = np.column_stack([0.9 * Z[:, 0] + 0.2 * np.sin(Z[:, 1]), 0.8 * Z[:, 1] + 0.3 * Z[:, 2]])
    options = {"noise": "gamma(0.5, scale=0.1)", "tuning": None, "trend": None} | options
    return WienerKernelRegressor(4.0 * RBF(2.0), **options).fit(Z, Y + rng.gamma(0.5, 0.1, Y.shape)), Z, Y


def brute_force(model, x0, n, rng):
    """Law of x_1 and x_2 by the definition: matrices of the joint covariance, without conditioning point by point."""
    X, noise = model.posterior_.smoother.places, model.noise_
    y = model.posterior_.smoother.targets[:, 0]
    k, K = model.kernel_, model.kernel_(X, X)
    A = np.linalg.inv(K + model.ridge_ * np.eye(len(X)))
    xi = noise.rvs((n, len(X)), random_state=rng) - noise.mean()

    def at(x):
        kx = k(x[:, None], X)
        return kx, kx @ A

    def covariance(x, z, kxz):
        (kx, ax), (kz, az) = at(x), at(z)
        return kxz - np.sum(ax * kz, 1) - np.sum(kx * az, 1) + np.sum((ax @ K) * az, 1)

    first = np.full(n, x0)
    prior = float(k.diag(np.zeros((1, 1)))[0])
    p0 = covariance(first[:1], first[:1], prior)
    r0 = np.sqrt(p0) * rng.standard_normal(n)
    a0 = at(first[:1])[1][0]
    x1 = (y - xi) @ a0 + r0 + noise.rvs(n, random_state=rng)
    c01 = covariance(first, x1, k(np.array([[x0]]), x1[:, None])[0])
    variance = np.maximum(covariance(x1, x1, prior) - c01**2 / p0, 0)
    r1 = c01 / p0 * r0 + np.sqrt(variance) * rng.standard_normal(n)
    x2 = np.sum((y - xi) * at(x1)[1], axis=1) + r1 + noise.rvs(n, random_state=rng)
    return x1, x2


def test_two_steps_agree_with_brute_force():
    model = paper_model()
    r = Dynamics(model).rollout([-3.0], steps=2, n_paths=N, causes=False, random_state=1)
    brute = brute_force(model, -3.0, N, np.random.default_rng(2))
    for k in (1, 2):
        assert stats.ks_2samp(r.states[:, k, 0], brute[k - 1]).statistic < CRITICAL
        quantiles = np.quantile(brute[k - 1], LEVELS[50::200])  # the law with its exact last step
        assert np.max(np.abs(r.distribution(k).cdf(quantiles) - LEVELS[50::200])) < CRITICAL


@pytest.mark.parametrize(
    "options",
    [{}, {"trend": "linear"}, {"noise_level": lambda X: np.exp(X[:, 0] / 5)}, {"ridge": 3.0}],
    ids=["plain", "trend", "level", "ridge"],
)
def test_one_step_has_the_law_of_a_new_observation(options):
    model = paper_model(**options)
    r = Dynamics(model).rollout([-3.0], steps=1, n_paths=N, causes=False, random_state=4)
    quantiles = model.predict_distribution([[-3.0]], "observation").ppf(LEVELS)[:, 0]
    distance = stats.kstest(r.states[:, 1, 0], lambda y: np.interp(y, quantiles, LEVELS[:, 0])).statistic
    assert distance < 1.628 / np.sqrt(N)
    levels = np.array([[0.01], [0.999]])
    np.testing.assert_allclose(r.distribution(1).cdf(r.distribution(1).ppf(levels)), levels, atol=1e-9)


def test_a_transform_and_a_learned_level():
    rng = np.random.default_rng(0)
    X = np.linspace(0.5, 4, 60)[:, None]
    y = (2 + np.sin(X[:, 0])) * np.exp(0.05 * X[:, 0] * rng.standard_normal(60))
    model = WienerKernelRegressor(noise="norm", transform="log", noise_level="input").fit(X, y)
    r = Dynamics(model).rollout([2.0], steps=1, n_paths=N, causes=False, random_state=5)
    quantiles = model.predict_distribution([[2.0]], "observation").ppf(LEVELS)[:, 0]
    distance = stats.kstest(r.states[:, 1, 0], lambda y: np.interp(y, quantiles, LEVELS[:, 0])).statistic
    assert distance < 1.628 / np.sqrt(N)
    law = Dynamics(model).rollout([2.0], steps=1, n_paths=500, causes=False, random_state=5).distribution(1)
    assert law.cdf(law.ppf(0.9))[0] == pytest.approx(0.9, abs=1e-9)
    grid = np.linspace(1.5, 5.0, 2001)[:, None]
    assert np.trapezoid(law.pdf(grid)[:, 0], grid[:, 0]) == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(ValueError, match="without a transform"):
        Dynamics(model).value_and_jacobian([[1.0]])


def test_causes_of_one_step_are_the_parts_of_the_variance():
    model = paper_model(trend="constant")
    causes = Dynamics(model).rollout([-3.0], steps=1, n_paths=4000, random_state=0).causes
    parts = model.uncertainty([[-3.0]])
    exact = {"noise": parts.noise, "model": parts.model, "process": parts.aleatoric, "interaction": 0.0}
    for name, value in exact.items():
        assert abs(getattr(causes, name)[1, 0] - value) < 3 * causes.errors[name][1, 0]
    for name in ("noise", "model", "process"):
        assert causes.errors[name][1, 0] < 0.2 * exact[name]
    assert not causes.initial.any()


def test_standard_errors_are_those_of_repetitions():
    dynamics = Dynamics(paper_model())
    runs = [dynamics.rollout([-3.0], steps=2, n_paths=200, random_state=i).causes for i in range(40)]
    for name in ("noise", "process", "total"):
        spread = np.std([getattr(run, name)[2, 0] for run in runs], ddof=1)
        assert np.mean([run.errors[name][2, 0] for run in runs]) == pytest.approx(spread, rel=0.35)


def test_the_split_of_a_known_function():
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 40_000, 2))
    outcomes = np.stack(
        [a[:, i] + 2 * b[:, j] + a[:, i] * c[:, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], axis=1
    )
    causes = split_by_cause(outcomes[:, :, None, None], ("model", "noise", "process"), rng)
    assert causes.model[0, 0] == pytest.approx(1, abs=0.1)
    assert causes.noise[0, 0] == pytest.approx(4, abs=0.1)
    assert causes.process[0, 0] == pytest.approx(0, abs=0.1)
    assert causes.interaction[0, 0] == pytest.approx(1, abs=0.1)
    assert causes.shares["model"][0, 0] == pytest.approx(1.5, abs=0.1)
    assert causes.shares["process"][0, 0] == pytest.approx(0.5, abs=0.1)
    np.testing.assert_allclose(sum(causes.shares.values()), causes.total, rtol=1e-12)


def test_a_small_cause_is_seen_beside_a_large_one():
    rng = np.random.default_rng(0)
    n, bits = 500, np.array(list(product((0, 1), repeat=3)))
    model, noise, process = (std * rng.standard_normal((n, 2)) for std in (0.02, 0.01, 1.0))
    outcomes = 5.0 + model[:, bits[:, 0]] + noise[:, bits[:, 1]] + process[:, bits[:, 2]]
    causes = split_by_cause(outcomes[:, :, None, None], ("model", "noise", "process"), rng)
    for name, std in (("model", 0.02), ("noise", 0.01), ("process", 1.0)):
        assert getattr(causes, name)[0, 0] == pytest.approx(std**2, rel=0.2)
        assert abs(getattr(causes, name)[0, 0] - std**2) < 3 * causes.errors[name][0, 0]
    assert abs(causes.interaction[0, 0]) < 1e-12


def test_increments_are_added_to_the_state():
    model = two_state_model()[0]
    u = np.full((1, 1), 0.3)
    states = Dynamics(model).rollout([1.0, -0.5], u, n_paths=5, causes=False, random_state=0).states
    moved = (
        Dynamics(model, learns="increment")
        .rollout([1.0, -0.5], u, n_paths=5, causes=False, random_state=0)
        .states
    )
    np.testing.assert_allclose(moved[:, 1], states[:, 1] + [1.0, -0.5])


def test_one_model_for_each_state_has_the_law_of_one_with_several_outputs():
    model, Z, _ = two_state_model()
    Y = model.posterior_.observed()
    single = [
        WienerKernelRegressor(model.kernel_, noise=model.noise_, tuning=None, trend=None).fit(Z, y)
        for y in Y.T
    ]
    u = np.zeros((3, 1))
    one = Dynamics(model).rollout([1.0, 0.0], u, n_paths=20_000, causes=False, random_state=1).states[:, 3]
    two = Dynamics(single).rollout([1.0, 0.0], u, n_paths=20_000, causes=False, random_state=2).states[:, 3]
    for k in range(2):
        assert stats.ks_2samp(one[:, k], two[:, k]).pvalue > 0.01


def test_a_policy_and_its_inputs_agree():
    model, _, _ = two_state_model()
    dynamics = Dynamics(model)
    u = np.array([[0.3], [-0.2], [0.1]])
    given = dynamics.rollout([1.0, 0.0], u, n_paths=20, random_state=0)
    for policy in (
        lambda k, x: u[k],
        lambda k, x: np.tile(u[k], (len(x), 1)),
        lambda k, x: np.full(len(x), u[k, 0]),
    ):
        called = dynamics.rollout([1.0, 0.0], policy, 3, n_paths=20, random_state=0)
        np.testing.assert_array_equal(called.states, given.states)
    feedback = dynamics.rollout(
        [1.0, 0.0], lambda k, x: -x[:, :1], 3, n_paths=2000, causes=False, random_state=0
    )
    assert feedback.states[:, 3, 1].mean() < given.states[:, 3, 1].mean()


def test_a_random_initial_state_is_a_cause():
    model, _, _ = two_state_model()
    dynamics = Dynamics(model, process_noise=False)
    law = stats.multivariate_normal([0.5, 0.0], np.diag([0.09, 0.04]))
    r = dynamics.rollout(law, np.zeros((2, 1)), n_paths=3000, random_state=0)
    for k, variance in enumerate((0.09, 0.04)):
        assert abs(r.causes.initial[0, k] - variance) < 3.5 * r.causes.errors["initial"][0, k]
    assert not r.causes.process.any()
    mixed = dynamics.rollout(["norm(0.5, 0.3)", 0.0], np.zeros((2, 1)), n_paths=3000, random_state=0)
    assert np.all(mixed.states[:, 0, 1] == 0)
    assert mixed.states[:, 0, 0].std() == pytest.approx(0.3, rel=0.1)
    assert mixed.distribution(0).mean()[0] == pytest.approx(0.5, abs=0.03)


def test_lags_are_in_the_order_of_time():
    rng = np.random.default_rng(0)
    u = rng.normal(size=120)
    x = np.zeros(120)
    for k in range(1, 119):
        x[k + 1] = 0.5 * x[k] - 0.3 * x[k - 1] + 0.4 * u[k] + 0.2 * u[k - 1]
    model = WienerKernelRegressor(Linear(), noise="norm(0, 1e-6)", tuning=None, trend=None)
    dynamics = Dynamics.from_trajectories(x, u, lags=2, model=model)
    assert (dynamics.n_states, dynamics.n_inputs, dynamics.lags) == (1, 1, (2, 2))
    run = dynamics.simulate_mean(x[10:12], u[10:31])
    np.testing.assert_allclose(run[:, 0], x[11:32], atol=1e-6)
    r = dynamics.rollout(x[10:12], u[10:31], n_paths=3, random_state=0)
    np.testing.assert_allclose(r.states[:, :, 0], np.tile(x[11:32], (3, 1)), atol=1e-4)


def test_lags_and_models_are_chosen_by_simulation_error():
    rng = np.random.default_rng(1)
    x = np.zeros(150)
    for k in range(1, 149):
        x[k + 1] = 1.6 * x[k] - 0.9 * x[k - 1] + 0.1 * rng.normal()
    models = [
        WienerKernelRegressor(v * Linear(), noise="norm(0, 0.1)", tuning=None, trend=None)
        for v in (1e-6, 1.0)
    ]
    dynamics = Dynamics.from_trajectories(x, lags=[1, 2, (3, 1)], model=models, horizon=5)
    assert dynamics.lags[0] >= 2
    assert dynamics.parts[0].model.kernel_ == 1.0 * Linear()
    errors = [
        Dynamics.from_trajectories(x, lags=p, model=models[1]).simulation_error(x, horizon=5) for p in (1, 2)
    ]
    assert errors[1] < 0.7 * errors[0]


def test_a_transform_holds_for_past_states_as_well():
    rng = np.random.default_rng(4)
    z = np.zeros(80)
    for k in range(1, 79):
        z[k + 1] = 1.4 * z[k] - 0.7 * z[k - 1] + 0.3 * rng.normal()
    x = np.exp(z)
    fixed = WienerKernelRegressor(2.0 * RBF(3.0), noise="norm(0, 0.3)", tuning=None, trend="linear")
    plain = Dynamics.from_trajectories(z, lags=2, model=fixed)
    log = Dynamics.from_trajectories(x, lags=2, model=fixed.set_params(transform="log"))
    assert log.lags_transformed
    assert not plain.lags_transformed
    runs = [one.forecast(20, of="estimate", n_paths=50, random_state=0) for one in (log, plain)]
    np.testing.assert_allclose(runs[0].states, np.exp(runs[1].states), rtol=1e-6)
    np.testing.assert_allclose(
        runs[0].quantiles([0.05, 0.95]), np.exp(runs[1].quantiles([0.05, 0.95])), rtol=1e-6
    )
    auto = Dynamics.from_trajectories(x, lags=2, model=WienerKernelRegressor(noise="auto", trend="linear"))
    run = auto.forecast(20, n_paths=500, random_state=0)
    assert auto.lags_transformed
    assert np.all(np.quantile(run.states, 0.99, axis=0) < 10 * x.max())
    with pytest.raises(ValueError, match="domain of the models' transforms"):
        log.rollout([1.0, -1.0], steps=2)
    grown = Dynamics.from_trajectories(
        x, learns="increment", model=WienerKernelRegressor(transform="yeo-johnson")
    )
    assert not grown.lags_transformed


def test_a_state_at_the_end_of_its_domain_is_seen_there():
    rng = np.random.default_rng(7)
    transform = BoxCox(0.5, 1.0, free=False)  # onto values above -2
    x = transform.inverse(rng.normal(-1.0, 0.2, 60))
    model = WienerKernelRegressor(Linear(), noise="norm(0, 1)", tuning=None, trend=None, transform=transform)
    system = Dynamics.from_trajectories(x, model=model)
    r = system.rollout(x[-1:], steps=2, n_paths=400, causes=False, of="estimate", random_state=0)
    ended = r.states[:, 1, 0] == 0
    assert 20 < np.count_nonzero(ended) < 380
    first, second = r._last[1][ended, 1:, 0].T
    np.testing.assert_allclose(second / -2.0, first / transform(x[-1]), rtol=1e-6)  # a path is linear
    assert r.distribution(1).cdf([1e-300])[0] == pytest.approx(np.mean(ended), abs=0.1)


def test_growth_that_a_transform_amplifies_is_reported():
    z = np.linspace(-2, 2, 20)[:, None]
    model = WienerKernelRegressor(Linear(), noise="norm(0, 0.5)", tuning=None, trend=None, transform="log")
    system = Dynamics(model.fit(z, np.exp(1.3 * z[:, 0])), lags_transformed=True)
    with pytest.warns(UserWarning, match="of 500 paths diverge"):
        r = system.rollout([np.exp(0.5)], steps=10, n_paths=500, causes=False, random_state=0)
    assert np.nanmax(r.states) < 1010 * np.exp(2.6)
    assert 0 < np.mean(r.diverged) < 0.9


def test_a_forecast_starts_at_the_end_of_the_data():
    rng = np.random.default_rng(5)
    u, x = rng.normal(size=60), np.zeros(60)
    for k in range(1, 59):
        x[k + 1] = 0.5 * x[k] - 0.3 * x[k - 1] + 0.4 * u[k] + 0.2 * u[k - 1]
    model = WienerKernelRegressor(Linear(), noise="norm(0, 1e-3)", tuning=None, trend=None)
    system = Dynamics.from_trajectories([x[:30], x], [u[:30], u], lags=2, model=model, horizon=3)
    held = system.forecast(n_paths=4, random_state=0)
    expected = system.rollout(x[-2:], [u[-2], *[u[-1]] * 3], n_paths=4, random_state=0)
    np.testing.assert_array_equal(held.states, expected.states)
    given = system.forecast(inputs=[0.5, -0.5], n_paths=4, random_state=0)
    expected = system.rollout(x[-2:], [u[-2], 0.5, -0.5], n_paths=4, random_state=0)
    np.testing.assert_array_equal(given.states, expected.states)
    longer = Dynamics.from_trajectories(x, [*u, 0.5, -0.5], lags=2, model=model, horizon=4)
    ahead = system.rollout(x[-2:], [u[-2], u[-1], 0.5, -0.5, -0.5], n_paths=4, random_state=0).states
    np.testing.assert_allclose(longer.forecast(n_paths=4, random_state=0).states, ahead, atol=1e-2)
    np.testing.assert_array_equal(longer.forecast(1, n_paths=4, random_state=0).states[:, 0], ahead[:, 0])
    short = Dynamics.from_trajectories(x, u[:-1], lags=2, model=model)  # the last input is held
    assert short.origin[1].ravel().tolist() == [u[-2], u[-2]]
    with pytest.raises(ValueError, match="made by from_trajectories"):
        Dynamics(paper_model()).forecast()
    with pytest.raises(ValueError, match=r"inputs must have shape \(4, 1\)"):
        system.forecast(4, [0.5])
    for horizon in (0, "long", np.nan):
        with pytest.raises(ValueError, match="horizon must be a positive integer"):
            Dynamics.from_trajectories(x, horizon=horizon)
    with pytest.raises(ValueError, match="steps must be a positive integer"):
        system.forecast(0)


def test_seasons_are_inputs():
    phase = 2 * np.pi * np.arange(5, 29) / 12
    expected = np.column_stack([np.cos(phase), np.sin(phase), np.cos(2 * phase), np.sin(2 * phase)])
    np.testing.assert_allclose(seasonal_inputs(24, 12, 2, start=5), expected)
    assert seasonal_inputs(8, 4).shape == (8, 2)
    for period, harmonics in ((1, 1), (np.nan, 1), (12, 0)):
        with pytest.raises(ValueError, match="a season needs"):
            seasonal_inputs(5, period, harmonics)
    rng = np.random.default_rng(6)
    k = np.arange(96)
    x = 0.02 * k + np.sin(2 * np.pi * k / 12) + 0.1 * rng.normal(size=96)
    system = Dynamics.from_trajectories(
        x[:84],
        seasonal_inputs(96, 12, 1),
        lags=(1, 1),
        model=WienerKernelRegressor(trend="linear"),
        horizon=12,
    )
    run = system.forecast(n_paths=200, causes=False, random_state=0)
    low, high = np.moveaxis(run.quantiles([0.02, 0.98])[1:, 0], -1, 0)
    assert np.mean((low < x[84:]) & (x[84:] < high)) > 0.8
    assert np.max(high - low) < 2.5


def test_causes_of_a_transformed_state_are_on_its_scale():
    X = np.linspace(0, 3, 9)[:, None]
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.2)", transform="log", tuning=None)
    model.fit(X, np.exp(np.sin(X[:, 0])))
    run = Dynamics(model).rollout([1.3], steps=1, n_paths=3000, random_state=2)
    parts = model.uncertainty([[1.3]])
    assert run.transformed == (True,)
    for name, exact in (("noise", parts.noise), ("process", parts.aleatoric)):
        assert abs(getattr(run.causes, name)[1, 0] - exact[0]) < 3 * run.causes.errors[name][1, 0]


def test_memory_is_bounded_by_working_in_chunks(monkeypatch):
    dynamics = Dynamics(paper_model())
    monkeypatch.setattr(simulation, "MEMORY", 2000)
    r = dynamics.rollout([-3.0], steps=2, n_paths=50, random_state=0)
    assert r.states.shape == (50, 3, 1)
    assert len(np.unique(r.states[:, 2])) == 50


def test_progress_is_shown(monkeypatch, capsys):
    monkeypatch.setattr("wienerkernel.law.progress.PATIENCE", 0.0)
    Dynamics(paper_model()).rollout([-3.0], steps=2, n_paths=10, verbose=True, random_state=0)
    assert "20 of 20 steps of paths" in capsys.readouterr().err


def test_diverging_paths_are_reported():
    X = np.linspace(-1, 1, 9)[:, None]
    model = WienerKernelRegressor(100 * Linear(), noise="norm(0, 0.01)", tuning=None, trend=None).fit(
        X, 5 * X[:, 0]
    )
    with pytest.warns(UserWarning, match=r"20 of 20 paths diverge, the first at step 1\d \(largest: x1\)"):
        r = Dynamics(model).rollout([0.5], steps=20, n_paths=20, random_state=0)
    assert r.diverged.all()
    assert np.isnan(r.states[:, -1]).all()
    assert np.isfinite(r.states[:, 5]).all()
    assert np.isfinite(r.distribution(5).mean())
    with pytest.raises(ValueError, match="all paths have diverged by this step"):
        r.quantiles([0.5])


def test_columns_that_do_not_vary_are_no_divergence():
    X = np.column_stack(
        [np.linspace(-2, 2, 9), np.full(9, 0.1)]
    )  # the input was held; 0.1 is not the mean of such numbers
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, np.sin(X[:, 0]))
    r = Dynamics(model).rollout([0.5], [[0.1], [0.3]], n_paths=5, random_state=0)
    assert not r.diverged.any()
    model.fit(np.ones((5, 1)), np.ones(5))
    assert not Dynamics(model).rollout([1.0], steps=3, n_paths=5, random_state=0).diverged.any()


def test_a_policy_does_not_see_diverged_paths(monkeypatch):
    monkeypatch.setattr(simulation, "DIVERGED", 3.0)
    X = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, 0.5 * X[:, 0])

    class OneIsFar:
        def rvs(self, size, random_state):
            return np.where(np.arange(size) == 0, 20.0, 0.0)

    def policy(k, x):
        assert np.all(np.isfinite(x))
        return 0 * x

    with pytest.warns(UserWarning, match="1 of 40 paths diverge, the first at step 1"):
        Dynamics(model).rollout(OneIsFar(), policy, 3, 40, causes=False, random_state=0)


def test_states_that_leave_the_data_are_reported():
    X = np.linspace(-1, 1, 9)[:, None]
    model = WienerKernelRegressor(RBF(0.3), noise="norm(0, 0.01)", tuning=None, trend=None).fit(
        X, 1 + X[:, 0]
    )
    with pytest.warns(
        UserWarning, match=r"at step 2, .* state depth has values from .* the data from -1 to 1"
    ):
        Dynamics(model, learns="increment", state_names=["depth"]).rollout(
            [0.1], steps=5, n_paths=20, random_state=0
        )


def test_inputs_that_leave_the_data_are_reported():
    model, _, _ = two_state_model()
    with pytest.warns(
        UserWarning, match=r"at step 1, 100% .* an input has values from 50 to 50, the data from"
    ):
        Dynamics(model).rollout([1.0, 0.0], [[0.0], [50.0]], n_paths=20, random_state=0)


def test_the_plot_has_a_tube_for_each_cause():
    model, _, _ = two_state_model()
    r = Dynamics(model).rollout([1.0, 0.0], np.zeros((3, 1)), n_paths=100, random_state=0)
    axes = r.plot()
    assert [len(ax.collections) for ax in axes] == [3, 3]
    assert "unexplored inputs" in [text.get_text() for text in axes[0].get_legend().get_texts()]
    plain = Dynamics(model).rollout([1.0, 0.0], np.zeros((3, 1)), n_paths=100, causes=False, random_state=0)
    assert len(plain.plot()[0].collections) == 1
    assert plain.plot(ax=axes)[1] is axes[1]
    plt.close("all")


def test_values_and_jacobians():
    level = {"noise_level": lambda X: np.exp(X[:, 0] / 5)}
    rng = np.random.default_rng(0)
    Z = rng.uniform(-2, 2, (30, 2))
    one = WienerKernelRegressor(RBF(2.0), noise="gamma(2)", tuning=None, trend="linear", **level).fit(
        Z, np.sin(Z[:, 0])
    )
    for dynamics in (
        Dynamics(two_state_model()[0], learns="increment"),
        Dynamics(one),
        Dynamics(one, process_noise="norm(0.3, 1)"),
    ):
        z = rng.uniform(-1, 1, (4, dynamics.n_states + dynamics.n_inputs))
        value, jacobian = dynamics.value_and_jacobian(z)
        assert value.shape == (4, dynamics.n_states)
        assert jacobian.shape == (dynamics.n_states, *z.shape)
        for k in range(z.shape[1]):
            move = 1e-5 * np.eye(z.shape[1])[k]
            slope = (
                dynamics.value_and_jacobian(z + move)[0] - dynamics.value_and_jacobian(z - move)[0]
            ) / 2e-5
            np.testing.assert_allclose(jacobian[:, :, k].T, slope, atol=1e-6)


def test_models_of_torch_tensors():
    torch = pytest.importorskip("torch")
    model, Z, _ = two_state_model()
    Y, u = model.posterior_.observed(), np.zeros((3, 1))
    theirs = WienerKernelRegressor(model.kernel_, noise=model.noise_, tuning=None, trend=None)
    theirs.fit(torch.tensor(Z), torch.tensor(Y))
    # so many points that the root of the prior part is used
    runs = [
        Dynamics(one).rollout([1.0, 0.0], u, n_paths=50, random_state=0).states for one in (model, theirs)
    ]
    np.testing.assert_allclose(runs[1], runs[0], atol=1e-5)
    tubes = [
        Dynamics(one).tube([1.0, 0.0], u, check=0).tightening([1.0, 0.0], 0.1) for one in (model, theirs)
    ]
    np.testing.assert_allclose(tubes[1], tubes[0], atol=1e-9)


def test_bad_arguments_are_refused():
    model, _, _ = two_state_model()
    dynamics, u = Dynamics(model), np.zeros((3, 1))
    for x0 in ([1.0], [[1.0, 2.0], [0.0, 0.0]], 1.0):
        with pytest.raises(ValueError, match=r"x0 must have shape \(2,\)"):
            dynamics.rollout(x0, u)
    with pytest.raises(ValueError, match="x0 must be finite"):
        dynamics.rollout([np.nan, 0.0], u)
    with pytest.raises(ValueError, match="x0 must be numbers"):
        dynamics.rollout([object(), 0.0], u)
    with pytest.raises(ValueError, match="law of 2 states"):
        dynamics.rollout(stats.norm(), u)
    with pytest.raises(ValueError, match="one law or number for each of 2"):
        dynamics.rollout(["norm()"], u)
    for inputs in (np.zeros((3, 2)), np.zeros((0, 1)), np.zeros(()), np.zeros((2, 3, 1))):
        with pytest.raises(ValueError, match="inputs"):
            dynamics.rollout([1.0, 0.0], inputs)
    with pytest.raises(ValueError, match=r"inputs must have shape \(5, 1\)"):
        dynamics.rollout([1.0, 0.0], u, 5)
    with pytest.raises(ValueError, match="the system has 1 inputs"):
        dynamics.rollout([1.0, 0.0], steps=3)
    with pytest.raises(ValueError, match="inputs must be finite"):
        dynamics.rollout([1.0, 0.0], u * np.nan)
    for steps in (0, -1, 2.5, True, "three"):
        with pytest.raises(ValueError, match="steps must be a positive integer"):
            dynamics.rollout([1.0, 0.0], lambda k, x: x[:, :1], steps)
    with pytest.raises(ValueError, match="steps is needed"):
        dynamics.rollout([1.0, 0.0], lambda k, x: x[:, :1])
    with pytest.raises(ValueError, match="steps is needed"):
        Dynamics(paper_model()).rollout([1.0])
    with pytest.raises(ValueError, match=r"policy returned \[nan\] at step 1 for the state"):
        dynamics.rollout([1.0, 0.0], lambda k, x: np.where(k == 1, np.nan, x[:, :1]), 3)
    with pytest.raises(ValueError, match=r"policy must return inputs of shape \(160, 1\)"):
        dynamics.rollout([1.0, 0.0], lambda k, x: x, 3, n_paths=20)
    with pytest.raises(ValueError, match="n_paths must be"):
        dynamics.rollout([1.0, 0.0], u, n_paths=0)
    with pytest.raises(ValueError, match="of must be"):
        dynamics.rollout([1.0, 0.0], u, of="observation")
    for result in (dynamics.rollout([1.0, 0.0], u, n_paths=8, random_state=0), dynamics.tube([1.0, 0.0], u)):
        for step in (4, -5):
            with pytest.raises(IndexError, match="step must be between 0 and 3"):
                result.distribution(step)
    with pytest.raises(TypeError, match="law of its process noise is not known"):
        Dynamics(object())
    with pytest.raises(ValueError, match="learns must be"):
        Dynamics(model, learns="rate")
    with pytest.raises(ValueError, match="one law for each of the 2 states"):
        Dynamics(model, process_noise=["norm()"])
    with pytest.raises(ValueError, match="each must have one output"):
        Dynamics([model, model])
    with pytest.raises(ValueError, match="same inputs"):
        Dynamics([paper_model(), WienerKernelRegressor(tuning=None).fit(np.eye(2), [0.0, 1.0])])
    with pytest.raises(ValueError, match="fitted to 3"):
        Dynamics(model, lags=2)
    with pytest.raises(ValueError, match="lags must be"):
        Dynamics(model, lags=0)
    with pytest.raises(ValueError, match="empty list"):
        Dynamics([])
    with pytest.raises(ValueError, match="2 names"):
        Dynamics(model, state_names=["a"])
    with pytest.raises(ValueError, match="U must have 5 or 4 rows"):
        Dynamics.from_trajectories(np.arange(5.0), np.arange(3.0))
    with pytest.raises(ValueError, match="trajectory 1 has values that are not finite"):
        Dynamics.from_trajectories([np.arange(5.0), np.array([0.0, np.nan])])
    with pytest.raises(ValueError, match="4 lags need at least 5"):
        Dynamics.from_trajectories(np.arange(4.0), lags=4)
    with pytest.raises(ValueError, match="X must have at least one trajectory"):
        Dynamics.from_trajectories([])
    with pytest.raises(ValueError, match="a trajectory must have at least one row"):
        Dynamics.from_trajectories([np.arange(5.0), []])
    for empty in ({"lags": []}, {"model": []}):
        with pytest.raises(ValueError, match="must not be empty lists"):
            Dynamics.from_trajectories(np.arange(9.0), **empty)
    with pytest.raises(TypeError, match="model must be a WienerKernelRegressor or a list of them, got str"):
        Dynamics.from_trajectories(np.arange(9.0), model="rbf")
    run = dynamics.rollout([1.0, 0.0], u, n_paths=5, random_state=0)
    with pytest.raises(ValueError, match="q must lie"):
        run.distribution(1).ppf(1.5)
    with pytest.raises(ValueError, match="coverage must lie"):
        run.plot(coverage=90)
    with pytest.raises(ValueError, match="ax must be 2 axes"):
        run.plot(ax=matplotlib.figure.Figure().add_subplot())
    np.testing.assert_array_equal(run.quantiles(0.5), run.quantiles([0.5]))


@pytest.mark.parametrize("process_noise", [None, False])
def test_tails_and_moments_of_a_state_agree_with_its_distribution_function(process_noise):
    X = np.linspace(-2, 2, 9)[:, None]
    model = WienerKernelRegressor(RBF(1.0), noise="gamma(2, scale=0.1)", tuning=None).fit(
        X, 0.8 * np.sin(X[:, 0])
    )
    r = Dynamics(model, process_noise=process_noise).rollout([1.0], steps=2, n_paths=300, random_state=0)
    law = r.distribution(2)
    x = law.ppf(np.linspace(0.01, 0.99, 99)[:, None])
    np.testing.assert_allclose(law.sf(x), 1 - law.cdf(x), atol=1e-12)
    np.testing.assert_allclose(law.interval(0.9), (x[4], x[94]), rtol=1e-6)
    np.testing.assert_allclose(law.std() ** 2, r.var()[2])
    assert law.mean()[0] == pytest.approx(x.mean(), abs=0.02)
    assert law.std()[0] == pytest.approx(x.std(), rel=0.1)
    assert r.distribution(0).cdf([[0.999], [1.0]]).tolist() == [[0.0], [1.0]]
    assert repr(law) == "<StateDistribution: 1 states, 300 paths>"


def test_a_policy_is_asked_once_in_each_step():
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (20, 2))
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(Z, 0.5 * Z[:, 0])
    asked = []

    def policy(k, x):
        asked.append(k)
        return -0.1 * x

    Dynamics(model).rollout([0.5], policy, 4, n_paths=10, random_state=0)
    assert asked == [0, 1, 2, 3]
