"""How many samples and where next: against refits, by brute force, and what cannot be done."""

import numpy as np
import pytest
from helpers import untuned
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from wienerkernel import RBF
from wienerkernel.decisions.design import next_sample, samples_needed

X = np.array([[-1.0], [0.0], [0.0], [1.5]])
WHERE = np.array([[-1.0], [0.3], [1.5], [6.0]])
MODELS = {
    "matched": {},
    "ridge below the noise": {"ridge": 0.05},
    "ridge above the noise": {"ridge": 4.0},
    "constant trend": {"trend": "constant"},
    "trend and ridge": {"trend": "linear", "ridge": 3.0},
    "noise level": {"noise_level": lambda x: 2 / (2 + np.abs(x[:, 0]))},
    "noise level and ridge": {"noise_level": lambda x: 2 / (2 + np.abs(x[:, 0])), "ridge": 0.7},
}


def fitted(noise=None, kernel=None, **options):
    noise = stats.gamma(0.25, scale=2) if noise is None else noise
    return untuned(X, X[:, 0], 2.0 * RBF(0.9) if kernel is None else kernel, noise=noise, **options)


def std_curve(options, x, of, most=32):
    """By brute force: the standard deviation at x after 0, 1, 2, ... samples there."""
    model, curve = fitted(**options), []
    for _ in range(most):
        parts = model.uncertainty(x)
        curve.append(float(np.sqrt(parts.noise if of == "estimate" else parts.epistemic)[0]))
        model.partial_fit(x, [0.0])
    return np.array(curve)


@pytest.mark.parametrize("of", ["function", "estimate"])
@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_the_smallest_number_of_samples_is_that_of_refits(options, of):
    curves = [std_curve(options, x, of) for x in WHERE[:, None]]
    for std in (0.9, 0.4, 0.25):
        plan = samples_needed(fitted(**options).posterior_, WHERE, std=std, of=of)
        for row, curve in enumerate(curves):
            missed = np.flatnonzero(curve > std * (1 + 1e-9))
            expected = missed[-1] + 1 if len(missed) else 0
            assert plan.number[row] == expected, (std, row)
            assert plan.before[row] == pytest.approx(curve[0], rel=1e-7)
            assert plan.after[row] == pytest.approx(curve[expected], rel=1e-7)


@settings(max_examples=60, deadline=None)
@given(std=st.floats(1e-3, 3.0), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_the_target_is_met_and_one_sample_less_misses_it(std, scale):
    model = fitted(noise=stats.norm(scale=scale), kernel=2.0 * scale**2 * RBF(0.9))
    target = std * scale
    plan = samples_needed(model.posterior_, WHERE, std=target)
    assert np.all(plan.after <= target * (1 + 1e-9))
    assert np.all(plan.number <= plan.paper_bound)
    s2, v = scale**2, plan.before**2
    less = np.maximum(plan.number - 1, 0)
    one_less = np.sqrt(v * s2 / (less * v + s2))
    assert np.all((plan.number == 0) | (one_less > target * (1 - 1e-9)))


def test_the_bound_of_lemma_3_suffices_for_the_noise_part():
    posterior = fitted().posterior_
    for std in (0.9, 0.3, 0.1, 0.01):
        plan = samples_needed(posterior, WHERE, std=std, of="estimate")
        assert np.all(plan.number <= plan.paper_bound)
        assert np.all(plan.paper_bound == np.ceil(1 / std**2 - 1e-9))


def test_the_noise_part_is_planned_until_it_stays_small():
    # Far from all data V is 0 at first, then 1/4 at its first sample's place, and falls from there on.
    model = untuned([[0.0]], [1.0], RBF(1.0), trend=None)
    plan = samples_needed(model.posterior_, np.array([[50.0]]), std=0.4, of="estimate")
    assert plan.before[0] == 0.0
    curve = [n / (n + 1) ** 2 for n in range(20)]
    assert plan.number[0] == max(n for n in range(20) if curve[n] > 0.16) + 1


def test_each_place_may_have_its_own_target():
    posterior = fitted().posterior_
    targets = np.array([0.5, 0.4, 0.3, 0.2])
    together = samples_needed(posterior, WHERE, std=targets).number
    apart = [int(samples_needed(posterior, WHERE[[i]], std=targets[i]).number[0]) for i in range(4)]
    assert together.tolist() == apart


@pytest.mark.parametrize("std", [0.0, -1.0, np.nan, [0.1, 0.2]])
def test_targets_that_cannot_be_are_refused(std):
    with pytest.raises(ValueError, match="std must be positive"):
        samples_needed(fitted().posterior_, WHERE, std=std)


def test_targets_out_of_reach_say_so():
    with pytest.raises(ValueError, match="out of reach at row"):
        samples_needed(fitted().posterior_, WHERE, std=1e-12)
    with pytest.raises(ValueError, match="of must be one of 'function', 'estimate'"):
        samples_needed(fitted().posterior_, WHERE, std=0.1, of="observation")


GRID = np.linspace(-3, 5, 9)[:, None]
REFERENCE = np.linspace(-2.5, 4, 6)[:, None]


@pytest.mark.parametrize("goal", ["average", "worst"])
@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("reference", [None, REFERENCE], ids=["candidates", "reference"])
def test_the_next_samples_are_the_best_of_all_refits(options, goal, reference):
    model = fitted(**options)
    plan = next_sample(model.posterior_, GRID, goal=goal, n_samples=3, reference=reference)
    where = GRID if reference is None else reference
    summary = np.mean if goal == "average" else np.max
    assert plan.variance[0] == pytest.approx(summary(model.uncertainty(where).epistemic), rel=1e-8)
    for step in range(3):
        values = [
            summary(
                fitted(**options)
                .partial_fit(np.concatenate([plan.points[:step], x[None]]), np.zeros(step + 1))
                .uncertainty(where)
                .epistemic
            )
            for x in GRID
        ]
        assert plan.variance[step + 1] == pytest.approx(min(values), rel=1e-7)
        assert values[plan.index[step]] == pytest.approx(min(values), rel=1e-7)
        before = fitted(**options)
        if step:
            before.partial_fit(plan.points[:step], np.zeros(step))
        parts = before.uncertainty(plan.points[step : step + 1])
        assert plan.noise[step] == pytest.approx(parts.noise[0], rel=1e-6, abs=1e-12)
        assert plan.model[step] == pytest.approx(parts.model[0], rel=1e-6, abs=1e-12)
        assert plan.repeat[step] == (plan.noise[step] >= plan.model[step])


def test_an_empty_place_is_new_and_a_noisy_place_is_repeated():
    model = untuned([[0.0]], [1.0], 9.0 * RBF(1.0))
    plan = next_sample(model.posterior_, np.array([[0.0], [20.0]]), n_samples=3)
    assert plan.points[:, 0].tolist()[0] == 20.0
    assert plan.repeat.tolist() == [False, True, True]


def test_when_one_sample_cannot_help_the_worst_it_still_helps_one_of_them():
    model = untuned([[0.0]], [0.0], RBF(0.1))
    far = np.array([[0.0], [-5.0], [5.0]])  # two places are equally bad
    plan = next_sample(model.posterior_, far, goal="worst", n_samples=2)
    assert sorted(plan.index.tolist()) == [1, 2]
    assert plan.variance[2] < plan.variance[1]


def test_one_candidate_and_one_column_are_enough():
    plan = next_sample(fitted().posterior_, np.array([[0.0]]), n_samples=2, goal="worst")
    assert plan.index.tolist() == [0, 0]
    assert np.all(np.diff(plan.variance) < 0)


@pytest.mark.parametrize(
    ("candidates", "options", "message"),
    [
        (np.empty((0, 1)), {}, "at least one row"),
        (GRID, {"reference": np.empty((0, 1))}, "at least one row"),
        (GRID, {"goal": "best"}, "goal must be one of 'average', 'worst'"),
        (GRID, {"n_samples": 0}, "n_samples must be a positive integer"),
        (GRID, {"n_samples": 1.5}, "n_samples must be a positive integer"),
    ],
)
def test_bad_requests_are_named(candidates, options, message):
    with pytest.raises(ValueError, match=message):
        next_sample(fitted().posterior_, candidates, **options)
