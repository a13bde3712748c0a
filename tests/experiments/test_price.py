"""The table of the price of linearity."""

import csv

import numpy as np
import pytest

from wienerkernel.experiments import price
from wienerkernel.experiments.price import LAWS, data_set, measure, reproduce, summarize
from wienerkernel.noise import as_noise


def test_the_posterior_beats_the_linear_estimate_under_skewed_noise():
    rows = summarize(
        [
            result
            for seed in range(4)
            for result in measure("lognormal", 30, seed, ("linear", "efficient", "ep"))
        ]
    )
    linear, efficient, ep = (row["crps"] for row in rows)
    assert ep < 0.7 * linear
    assert efficient < 0.85 * linear


def test_queries_and_samples_belong_to_one_function():
    """Noise-free, neighboring samples and queries have nearly the same value."""
    X, y, query, f = data_set(as_noise("norm(0, 1e-6)"), 200, np.random.default_rng(0))
    inside = np.abs(query[:, 0]) < 4.9
    np.testing.assert_allclose(np.interp(query[inside, 0], X[:, 0], y), f[inside], atol=0.05)


def test_files(tmp_path, monkeypatch):
    monkeypatch.setattr(price, "LAWS", {"laplace": LAWS["laplace"], "gamma": LAWS["gamma"]})
    monkeypatch.setattr("wienerkernel.losses.sampling.PARTICLES", 64)
    ticks = []
    rows, files = reproduce(tmp_path, [8], 1, progress=lambda: ticks.append(1))
    paths = [path for _, path in files]
    assert len(ticks) == 2
    assert [row["method"] for row in rows[:4]] == ["linear", "efficient", "ep", "bayes"]
    with (tmp_path / "price.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 8
    assert all(path.stat().st_size > 0 for path in paths)
    assert rows[0]["crps"] == pytest.approx(measure("laplace", 8, 0, ("linear",))[0].crps)
