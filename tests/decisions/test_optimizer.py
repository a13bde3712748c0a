"""Ask and tell: acquisitions against Monte Carlo, safety, resuming, agreement with known optima, bad input."""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import OptimizeResult

from wienerkernel import RBF, WienerKernelRegressor, as_noise
from wienerkernel.decisions.acquisition import expected_improvement
from wienerkernel.decisions.bounds import bound
from wienerkernel.decisions.optimizer import (
    NoSafePointError,
    Optimizer,
    SafetyConstraint,
    minimize,
)

KERNEL = 2.0 * RBF(0.7)
CENTERS, COEFFICIENTS = np.array([[0.2], [1.1], [2.6]]), np.array([0.6, 1.0, -0.7])
NORM = float(np.sqrt(COEFFICIENTS @ KERNEL(CENTERS, CENTERS) @ COEFFICIENTS))
GRID = np.linspace(0.0, 3.0, 121)[:, None]


def truth(X):
    return KERNEL(np.atleast_2d(X), CENTERS) @ COEFFICIENTS


PEAK = float(GRID[np.argmax(truth(GRID)), 0])


@pytest.mark.parametrize("objective", ["max", "min"])
@pytest.mark.parametrize(
    "noise",
    [stats.norm(scale=0.7), stats.gamma(0.25, scale=2), stats.uniform(-1, 2)],
    ids=["normal", "gamma", "uniform"],
)
def test_expected_improvement_is_the_mean_of_the_improvements(noise, objective):
    X = np.linspace(0, 2, 6)[:, None]
    model = WienerKernelRegressor(KERNEL, noise=noise, trend=None, tuning=None).fit(X, truth(X))
    F = model.predict_distribution(GRID[::30], of="function")
    draws = F.rvs(40000, random_state=0)
    for best in (-30.0, 0.0, 0.5, 1.5, 30.0):
        gains = np.maximum(draws - best if objective == "max" else best - draws, 0.0)
        error = 5 * gains.std(axis=0) / np.sqrt(len(draws)) + 2e-4
        np.testing.assert_array_less(
            np.abs(expected_improvement(F, best, objective) - gains.mean(axis=0)), error
        )


@pytest.mark.parametrize("objective", ["max", "min"])
def test_the_integral_of_the_tail_equals_the_closed_form_of_a_normal_law(objective):
    X, y = np.linspace(0, 2, 6)[:, None], np.zeros(6)
    # The normal law, as a Gamma law of large shape cannot be told from it by more than its skewness.
    normal = WienerKernelRegressor(KERNEL, noise=stats.norm(scale=0.3), trend=None, tuning=None).fit(X, y)
    nearly = WienerKernelRegressor(KERNEL, noise=stats.gamma(1e8, scale=0.3e-4), trend=None, tuning=None).fit(
        X, y + 0.3e4
    )
    closed = expected_improvement(normal.predict_distribution(GRID[::20], of="function"), 0.2, objective)
    integral = expected_improvement(nearly.predict_distribution(GRID[::20], of="function"), 0.2, objective)
    np.testing.assert_allclose(integral, closed, rtol=1e-4)


def test_improvement_without_uncertainty_is_the_difference():
    model = WienerKernelRegressor(
        RBF(1.0), noise=stats.norm(scale=1e-9), ridge=1e-9, trend=None, tuning=None
    ).fit([[0.0]], [1.0])
    F = model.predict_distribution([[0.0]], of="estimate")
    assert expected_improvement(F, 0.25)[0] == pytest.approx(0.75, abs=1e-6)
    assert expected_improvement(F, 0.25, "min")[0] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("acquisition", ["ei", "ucb", "thompson"])
@pytest.mark.parametrize("objective", ["max", "min"])
@pytest.mark.parametrize("noise", ["norm(0, 0.2)", "gamma(0.25, scale=0.4)"])
def test_the_optimum_is_found(acquisition, objective, noise):
    sign = 1 if objective == "max" else -1
    rng = np.random.default_rng(1)
    optimizer = Optimizer(
        [(0.0, 3.0)],
        KERNEL,
        noise,
        objective=objective,
        acquisition=acquisition,
        candidates=61,
        random_state=0,
    )
    for _ in range(18):
        x = optimizer.ask()
        optimizer.tell(x, sign * truth(x)[0] + as_noise(noise).rvs(1, random_state=rng)[0])
    result = optimizer.result()
    assert truth(result.x)[0] >= truth([[PEAK]])[0] - 0.2
    assert result.nfev == 18


def test_both_objectives_mirror_each_other():
    asked = {}
    for objective, sign in (("max", 1.0), ("min", -1.0)):
        # a symmetric law is its own mirror image
        optimizer = Optimizer([(0.0, 3.0)], KERNEL, "laplace(0, 0.2)", objective=objective, candidates=31)
        for _ in range(5):
            x = optimizer.ask()
            optimizer.tell(x, sign * truth(x)[0])
        asked[objective] = optimizer.X
    np.testing.assert_array_equal(asked["max"], asked["min"])


def test_ucb_takes_the_quantile_of_the_exact_law():
    noise = stats.gamma(0.25, scale=2)
    optimizer = Optimizer(
        [(0.0, 3.0)], KERNEL, noise, acquisition="ucb", confidence=0.9, candidates=GRID[::4]
    )
    optimizer.tell([[0.5], [2.0]], [1.0, 0.2])
    F = optimizer.model.predict_distribution(GRID[::4], of="function")
    assert float(optimizer.ask()[0]) == GRID[::4][np.argmax(F.ppf(0.9)), 0]


def test_refinement_leaves_the_grid_and_does_not_lose():
    optimizers = [
        Optimizer([(0.0, 3.0)], KERNEL, "norm(0, 0.2)", candidates=7, refine=refine, random_state=0)
        for refine in (0, 6)
    ]
    gains = []
    for optimizer in optimizers:
        optimizer.tell([[0.0], [1.5], [3.0]], truth([[0.0], [1.5], [3.0]]))
        x = optimizer.ask()
        F = optimizer.model.predict_distribution(x[None], of="function")
        gains.append(float(expected_improvement(F, optimizer.incumbent()[1])[0]))
        assert np.all((x >= 0) & (x <= 3))
    assert gains[1] > gains[0]


def test_several_inputs_are_searched_by_a_sobol_set():
    optimizer = Optimizer(
        [(-1.0, 1.0), (0.0, 2.0)], RBF(1.0), "norm(0, 0.05)", objective="min", candidates=200
    )
    assert optimizer.candidates.shape == (256, 2)
    for _ in range(15):
        x = optimizer.ask()
        optimizer.tell(x, (x[0] - 0.3) ** 2 + (x[1] - 1.2) ** 2)
    assert np.linalg.norm(optimizer.result().x - [0.3, 1.2]) < 0.25


def test_a_noisy_place_is_repeated_and_an_empty_one_explored():
    optimizer = Optimizer([(0.0, 1.0)], 9.0 * RBF(0.5), "norm(0, 1)", acquisition="ucb", candidates=[[0.0]])
    optimizer.tell([0.0], 0.0)
    optimizer.ask()
    assert optimizer.repeat is True
    other = Optimizer(
        [(0.0, 9.0)], 9.0 * RBF(0.5), "norm(0, 1)", acquisition="ucb", candidates=[[0.0], [9.0]]
    )
    other.tell([0.0], 0.0)
    assert other.ask().tolist() == [9.0]
    assert other.repeat is False


def test_a_pickled_optimizer_goes_on_where_it_was():
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=0.2, size=8)
    optimizer = Optimizer([(0.0, 3.0)], KERNEL, "norm(0, 0.2)", candidates=33, refine=2, random_state=5)
    for step in range(4):
        x = optimizer.ask()
        optimizer.tell(x, truth(x)[0] + noise[step])
    copy = pickle.loads(pickle.dumps(optimizer))
    for step in range(4, 8):
        x, other = optimizer.ask(), copy.ask()
        np.testing.assert_array_equal(x, other)
        optimizer.tell(x, truth(x)[0] + noise[step])
        copy.tell(other, truth(other)[0] + noise[step])


def test_no_step_refactorizes(monkeypatch):
    optimizer = Optimizer([(0.0, 3.0)], KERNEL, "norm(0, 0.2)", candidates=33)
    optimizer.tell(GRID[::12], truth(GRID[::12]))

    def refuse(*args, **kwargs):
        raise AssertionError("the kernel matrix was recomputed")

    monkeypatch.setattr("wienerkernel.smoother.smoother.gram", refuse)
    for x in ([0.11], [0.11], [1.7]):
        optimizer.tell(x, 1.0)
    assert len(optimizer.y) == len(GRID[::12]) + 3


THRESHOLD = 0.0
SEED = [[0.2]]


@pytest.mark.parametrize("method", ["exact", "subgaussian", "abbasi-yadkori", "fiedler2021"])
@pytest.mark.parametrize("acquisition", ["ei", "ucb", "thompson"])
def test_only_certified_points_are_asked_for(method, acquisition):
    safety = SafetyConstraint(THRESHOLD, norm=NORM, confidence=0.99, bound=method, seeds=SEED)
    optimizer = Optimizer(
        [(0.0, 3.0)],
        KERNEL,
        "norm(0, 0.2)",
        acquisition=acquisition,
        safety=safety,
        candidates=61,
        refine=2,
        random_state=0,
    )
    rng = np.random.default_rng(2)
    for _ in range(15):
        x = optimizer.ask()
        if len(optimizer.y):
            lower, _ = bound(optimizer.model.posterior_, x[None], norm=NORM, confidence=0.99, method=method)
            assert lower[0] >= THRESHOLD or x.tolist() == SEED[0]
        assert truth(x)[0] >= THRESHOLD
        optimizer.tell(x, truth(x)[0] + 0.2 * rng.normal())
    assert len(np.unique(optimizer.X)) > 2


def test_a_minimum_is_sought_below_the_threshold():
    safety = SafetyConstraint(0.0, norm=NORM, confidence=0.9, bound="exact", seeds=SEED)
    optimizer = Optimizer([(0.0, 3.0)], KERNEL, "norm(0, 0.1)", objective="min", safety=safety, candidates=61)
    for _ in range(10):
        x = optimizer.ask()
        if len(optimizer.y):
            upper = bound(optimizer.model.posterior_, x[None], norm=NORM, confidence=0.9)[1]
            assert upper[0] <= 0.0 or x.tolist() == SEED[0]
        optimizer.tell(x, -truth(x)[0])
    assert optimizer.result().fun < -1.0


def test_without_a_safe_point_there_is_a_clear_error():
    safety = SafetyConstraint(10.0, norm=1.0)
    optimizer = Optimizer([(0.0, 3.0)], KERNEL, "norm(0, 0.2)", safety=safety, candidates=5)
    with pytest.raises(NoSafePointError, match="without samples"):
        optimizer.ask()
    optimizer.tell([1.0], 0.5)
    with pytest.raises(NoSafePointError, match=r"the best certificate is .*, the threshold 10"):
        optimizer.ask()


def test_minimize_returns_what_scipy_optimize_would():
    rng, seen = np.random.default_rng(0), []
    result = minimize(
        lambda x: float(-truth(x)[0] + 0.1 * rng.normal()),
        [(0.0, 3.0)],
        kernel=KERNEL,
        noise="norm(0, 0.1)",
        x0=[[0.0], [3.0]],
        n_calls=12,
        candidates=61,
        callback=lambda r: seen.append(r.fun),
    )
    assert isinstance(result, OptimizeResult)
    assert result.success
    assert result.nfev == result.nit == len(seen) == 12
    np.testing.assert_array_equal(result.X[:2], [[0.0], [3.0]])
    assert truth(result.x)[0] >= truth([[PEAK]])[0] - 0.1
    assert abs(result.fun + truth(result.x)[0]) < 5 * result.std


def test_the_callback_can_stop():
    result = minimize(
        lambda x: float(x[0]), [(0.0, 1.0)], n_calls=9, callback=lambda r: r.nfev == 3, candidates=5
    )
    assert result.nfev == 3
    assert "callback" in result.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"space": [(1.0, 0.0)]}, "space must be"),
        ({"space": [0.0, 1.0]}, "space must be"),
        ({"objective": "best"}, "objective must be one of"),
        ({"acquisition": "pi"}, "acquisition must be one of"),
        ({"confidence": 1.0}, "confidence must lie"),
        ({"candidates": np.empty((0, 1))}, "at least one row"),
        ({"candidates": [[0.0, 1.0]]}, "points must have shape"),
        ({"candidates": 1}, "candidates must be at least 2"),
    ],
)
def test_bad_optimizers_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Optimizer(**{"space": [(0.0, 1.0)], **options})


def test_bad_input_is_named():
    optimizer = Optimizer([(0.0, 1.0)], candidates=5)
    with pytest.raises(ValueError, match="no samples yet"):
        optimizer.incumbent()
    with pytest.raises(ValueError, match="y must have one value per point"):
        optimizer.tell([[0.0], [1.0]], 1.0)
    with pytest.raises(ValueError, match="NaN"):
        optimizer.tell([0.0], np.nan)
    assert len(optimizer.y) == 0
    with pytest.raises(ValueError, match="n_calls must be at least 1"):
        minimize(lambda x: 0.0, [(0.0, 1.0)], n_calls=0)
    with pytest.raises(ValueError, match="bound must be one of"):
        SafetyConstraint(0.0, norm=1.0, bound="magic")
    with pytest.raises(ValueError, match="threshold must be"):
        SafetyConstraint(np.nan, norm=1.0)
    with pytest.raises(ValueError, match="norm must be"):
        SafetyConstraint(0.0, norm=-1.0)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        SafetyConstraint(0.0, norm=1.0, confidence=1.0)


def test_thompson_sampling_asks_for_each_point_as_often_as_it_is_the_best():
    X, y = np.array([[0.0], [1.5], [3.0]]), np.array([0.2, 0.5, 0.1])
    pool, noise, n = np.array([[0.4], [1.2], [2.2]]), "gamma(0.25, scale=2)", 1000
    model = WienerKernelRegressor(KERNEL, noise=noise, tuning=None).fit(X, y)
    places = np.concatenate([pool, X])
    best = np.argmax(model.sample_y(places, 100_000, random_state=0), axis=0)
    expected = np.bincount(best, minlength=6) / 100_000
    optimizer = Optimizer(
        [(0.0, 3.0)], KERNEL, noise, acquisition="thompson", candidates=pool, random_state=1
    )
    optimizer.tell(X, y)
    asked = np.array([optimizer.ask() for _ in range(n)])
    shares = np.mean(asked[:, None, 0] == places[:, 0], axis=0)
    np.testing.assert_allclose(shares, expected, atol=3.5 / (2 * np.sqrt(n)))
