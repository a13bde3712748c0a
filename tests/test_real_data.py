"""The pieces of benchmarks/real_data.py: scores of quantiles, laws of peers, the table and the targets."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

FOLDER = Path(__file__).parents[1] / "benchmarks"
if not FOLDER.exists():
    pytest.skip("the benchmarks are not part of the source distribution", allow_module_level=True)


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(FOLDER))
    try:
        import peers
        import real_data
    finally:
        sys.path.remove(str(FOLDER))
    return real_data, peers


def test_mean_quantile_scores_are_the_crps(modules):
    real_data, peers = modules
    y = np.array([-1.0, 0.2, 2.5])
    law = peers.Quantiles(np.tile(stats.norm.ppf(peers.LEVELS), (3, 1)))
    np.testing.assert_allclose(law.crps(y), real_data.crps(stats.norm(), y), rtol=0.02)
    np.testing.assert_allclose(law.at(0.05), stats.norm.ppf(0.05))


def test_the_prediction_of_a_student_process_is_a_mixture(modules):
    _, peers = modules
    mean, std = np.array([0.0, 2.0]), np.array([0.5, 0.01])
    law = peers.StudentMixture(mean, std, 4.0, 0.3)
    y = np.array([0.4, 2.1])
    for k in range(2):

        def density(f, k=k):
            return stats.norm.pdf(f, mean[k], std[k]) * stats.t.pdf(y[k], 4, f, 0.3)

        ends = mean[k] - 9 * std[k], mean[k] + 9 * std[k]
        assert np.exp(law.logpdf(y)[k]) == pytest.approx(integrate.quad(density, *ends)[0], rel=1e-5)
    for level in (0.05, 0.5, 0.95):
        np.testing.assert_allclose(law.cdf(law.ppf(level)), level, atol=1e-10)


def scored(real_data, law, y):
    return real_data.scores(lambda X, rest, new: law(len(new)), np.zeros((len(y), 1)), y, 5)


def test_targets_tell_better_from_worse(modules):
    real_data, peers = modules
    y = np.random.default_rng(0).normal(size=60)
    right = scored(real_data, lambda m: stats.norm(np.zeros(m), 1.0), y)
    wide = scored(real_data, lambda m: stats.norm(np.zeros(m), 3.0), y)
    quantiles = scored(
        real_data, lambda m: peers.Quantiles(np.tile(stats.norm.ppf(peers.LEVELS, 0, 3), (m, 1))), y
    )
    assert "nlpd" not in quantiles
    methods = ["auto", "default", "quantile forest"]
    for own, other, word in ((right, wide, "met"), (wide, right, "MISSED")):
        results = {"mcycle": {"auto": own, "default": other, "quantile forest": quantiles}}
        told = real_data.acceptance(results, methods, [("a fit", 1.0, 2.0)]).splitlines()
        for words in ("best mean rank in nlpd", "best mean rank in crps", "never worse than our default"):
            assert all(line.split()[0] == word for line in told if words in line)
        assert told[-1].split()[0] == "met"
        assert "quantile forest" in real_data.tables(results, methods)


def test_scores_are_kept_and_found_again(modules, tmp_path):
    real_data, _ = modules
    first = real_data.kept(tmp_path, "set", "a method", lambda: {"nlpd": np.arange(3.0)})
    again = real_data.kept(tmp_path, "set", "a method", lambda: pytest.fail("computed twice"))
    np.testing.assert_array_equal(first["nlpd"], again["nlpd"])
    assert real_data.kept(tmp_path, "set", "other", lambda: None) is None
