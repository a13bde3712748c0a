"""The report: its numbers against the model, what it does with hostile names, and the page in a browser."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from browser import chromium, console_errors, overflow, requested_addresses, set_color_scheme, set_width
from scipy import stats
from sklearn.base import clone

from wienerkernel import RBF, Mixture, WienerKernelRegressor, __version__
from wienerkernel.evaluation.diagnostics import score_report
from wienerkernel.evaluation.relevance import exclusive, relevance, variables
from wienerkernel.evaluation.report import contents, page, write_report
from wienerkernel.evaluation.report import numbers as numbers_room
from wienerkernel.evaluation.report import scores as scores_room
from wienerkernel.evaluation.report.choices import strength
from wienerkernel.evaluation.report.numbers import unit_of
from wienerkernel.evaluation.report.slices import path

__all__ = ["chromium"]

GAMMA = "gamma(0.25, scale=2)"
HOSTILE = "</script><script>window.hacked = 1</script><!-- \"'&amp;"


def _model(n=25, d=1, outputs=None, noise=GAMMA, scale=1.0, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = scale * rng.uniform(-3, 3, (n, d))
    f = np.sin(X[:, 0] / scale)
    y = f if outputs is None else np.column_stack([(k + 1) * f for k in range(outputs)])
    y = y + rng.gamma(0.25, 2.0, y.shape)
    return WienerKernelRegressor(2.0 * RBF(scale), noise=noise, tuning=None, **options).fit(X, y)


def _data(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    )


class _Outline(HTMLParser):
    """Tags and visible text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.words = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def _outline(path):
    outline = _Outline()
    outline.feed(path.read_text(encoding="utf-8"))
    return outline


@pytest.fixture(scope="module")
def model():
    return _model()


@pytest.fixture(scope="module")
def told(model):
    return contents(model)


def test_tubes_are_the_exact_quantiles(model, told):
    part = told["slices"][0]
    grid = np.array(part["x"])[:, None]
    for law in ("estimate", "function", "observation"):
        exact = model.predict_quantiles(grid, [0.05, 0.95], of=law)
        told = np.stack([part["tubes"][law]["low"], part["tubes"][law]["high"]], axis=1)
        np.testing.assert_allclose(np.array(part["mean"][0])[:, None] + told, exact, atol=2e-5)


def test_densities_are_those_of_the_laws_and_hold_almost_all_probability(model, told):
    part = told["slices"][0]
    grid = np.array(part["x"])[part["at"], None]
    for law in ("estimate", "function", "observation"):
        density = part["densities"][law]
        exact = model.predict_distribution(grid, of=law)
        k = len(grid) // 3
        y = np.array(density["y"][k]) + float(exact.mu[k])
        np.testing.assert_allclose(density["pdf"][k], exact.pdf(y[:, None])[:, k], rtol=1e-3)
        assert np.trapezoid(density["pdf"][k], density["y"][k]) == pytest.approx(0.998, abs=0.01)
        assert density["std"][k] == pytest.approx(exact.std()[k], rel=1e-5)


def test_variances_and_shares_are_those_of_the_model(model, told):
    part = told["slices"][0]
    split = model.uncertainty(np.array(part["x"])[:, None])
    np.testing.assert_allclose(part["variance"]["model"], split.model, rtol=1e-4)
    np.testing.assert_allclose(part["variance"]["noise"], split.noise, rtol=1e-4)
    assert sum(told["shares"].values()) == pytest.approx(1.0, abs=1e-5)
    smoother = model.posterior_.smoother
    at_data = model.uncertainty(smoother.places)
    assert told["shares"]["aleatoric"] == pytest.approx(
        np.mean(at_data.aleatoric) / np.mean(at_data.total), rel=1e-4
    )


def test_data_are_the_observations_with_the_mean_of_the_noise():
    X, y = [[0.0], [1.0], [2.0]], [3.0, -1.0, 0.5]
    model = WienerKernelRegressor(RBF(1.0), noise=GAMMA, tuning=None).fit(X, y, noise_scale=[1.0, 2.0, 0.5])
    assert contents(model)["slices"][0]["data"]["y"] == [pytest.approx(y)]


def test_scores_are_those_of_the_score_report(model, told):
    told, report = told["scores"], score_report(model)
    assert told["scored"] == 25
    for name, value in report.summary().items():
        assert told["summary"][name] == pytest.approx([value] if name == "crps" else value, rel=1e-4)
    assert sum(told["pit"]["counts"]) == 25
    noise, residuals = report.quantile_pairs()
    np.testing.assert_allclose(told["pairs"]["residual"], residuals, rtol=1e-5)
    np.testing.assert_allclose(told["pairs"]["noise"], noise, rtol=1e-4, atol=1e-6)


def test_band_of_the_histogram_holds_95_percent_of_the_counts_of_uniform_numbers():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(200):
        told = scores_room._histogram(rng.uniform(size=200))
        inside += [told["low"] <= count <= told["high"] for count in told["counts"]]
    assert 0.94 < np.mean(inside) < 0.98


def test_many_samples_are_thinned_and_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(numbers_room, "MAX_DATA", 30)
    monkeypatch.setattr(scores_room, "MAX_SCORED", 20)
    model = _model(n=60, noise="uniform(-1, 2)")
    told = contents(model)
    assert told["data"]["shown"] == 30 == len(told["slices"][0]["data"]["x"])
    assert told["scores"]["scored"] == 20
    path = write_report(model, tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    assert "20 of the 60 samples" in text
    assert "; scores of 20 of them, chosen at random" in text


def test_normal_laws_are_cheap_and_all_scored(monkeypatch):
    monkeypatch.setattr(scores_room, "MAX_SCORED", 20)
    assert contents(_model(n=60, noise="norm(0, 1)"))["scores"]["scored"] == 60


def test_a_model_of_a_stream_leaves_the_scores_out(tmp_path):
    """It keeps the means at each input, which are fewer than the numbers that its smoother holds."""
    path = tmp_path / "data.csv"
    rows = [f"{x},{np.sin(x) + 0.1 * (-1) ** k}\n" for k in range(4) for x in range(6)]
    path.write_text("x,y\n" + "".join(rows))
    told = contents(WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(path, "y"))
    assert "keeps mean and variance at each input only" in told["scores"]["missing"]
    assert told["summary"]["samples"] == 24
    np.testing.assert_allclose(told["slices"][0]["data"]["y"][0], np.sin(np.arange(6)), atol=1e-5)


def test_too_many_places_leave_the_scores_out(monkeypatch):
    monkeypatch.setattr(scores_room, "MAX_PLACES", 10)
    assert "10 distinct inputs" in contents(_model())["scores"]["missing"]


def test_correlated_noise_leaves_the_scores_out_and_says_why(tmp_path):
    X = np.arange(4.0)[:, None]
    scale = np.eye(4) + 0.2 * np.eye(4, k=1)
    model = WienerKernelRegressor(RBF(1.0), noise=GAMMA, tuning=None).fit(X, X[:, 0], noise_scale=scale)
    path = write_report(model, tmp_path / "report.html")
    assert "independent noise" in path.read_text(encoding="utf-8")
    assert contents(model)["slices"][0]["data"]["y"] == [pytest.approx([0.0, 1.0, 2.0, 3.0])]


def test_each_input_has_a_slice_through_one_sample():
    model = _model(n=30, d=3, noise="norm(0, 1)")
    told = contents(model, input_names=["a", "b", "c"])
    assert [part["input"] for part in told["slices"]] == ["a", "b", "c"]
    base = {item["name"]: item["value"] for part in told["slices"] for item in part["base"]}
    rows = model.posterior_.smoother.places
    assert np.min(np.abs(rows - [base["a"], base["b"], base["c"]]).max(axis=1)) < 1e-5
    part = told["slices"][1]
    grid = np.tile([base["a"], 0.0, base["c"]], (len(part["x"]), 1))
    grid[:, 1] = part["x"]
    np.testing.assert_allclose(part["mean"][0], model.predict(grid), rtol=1e-3, atol=1e-4)


def test_values_that_differ_by_a_small_part_of_their_size_keep_their_digits():
    X = 1e6 + np.linspace(0, 5, 20)[:, None]
    y = 101325 + np.sin(X[:, 0])
    told = contents(WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, y))
    np.testing.assert_allclose(told["slices"][0]["data"]["x"], X[:, 0], rtol=0, atol=1e-4)
    np.testing.assert_allclose(told["slices"][0]["data"]["y"][0], y, rtol=0, atol=1e-4)
    text = page([told])
    assert "<td>1000002.5</td><td>1000005</td>" in text
    assert f"<td>{y.min():.8g}</td>" in text


def test_rounding_errors_of_inputs_are_zeros_and_no_values_of_their_own():
    """Cosines of multiples of 90 degrees: six numbers for three values, and a cubic through them is ill-conditioned."""
    angle = np.arange(24) * np.pi / 2
    X = np.column_stack([np.cos(angle), np.linspace(0, 1, 24)])
    assert len(np.unique(X[:, 0])) > 3
    told = contents(WienerKernelRegressor(RBF(1.0), noise="norm(0, 1)", tuning=None).fit(X, np.sin(angle)))
    assert next(c["range"] for c in told["columns"] if c["name"] == "x1") == [-1.0, 0.0, 1.0]
    assert path(X, 0).coefficients.shape[0] <= 3


def test_samples_on_the_slice_are_near_and_others_are_not():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 50.0]])
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 1)", tuning=None).fit(X, np.arange(4.0))
    assert contents(model)["slices"][0]["data"]["nearness"] == [1.0, 1.0, 1.0, 0.0]


def test_correlated_inputs_change_together_along_a_slice():
    """Where all others are fixed, the ends of the slice are far from any sample."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=200)
    X = np.column_stack([z, z**2 + 0.1 * rng.normal(size=200), rng.normal(size=200)])
    model = WienerKernelRegressor(RBF(0.5), noise="norm(0, 0.1)", tuning=None).fit(X, z)
    part = contents(model, input_names=["a", "b", "c"])["slices"][0]
    assert part["follow"] == ["b"]
    assert [item["name"] for item in part["base"]] == ["c"]
    along = path(X, 0)
    at = along(np.linspace(-1.5, 1.5, 31))
    np.testing.assert_allclose(at[:, 1], at[:, 0] ** 2, atol=0.1)
    inside = np.array(part["x"]) ** 2 < 4
    assert np.max(np.array(part["variance"]["model"])[inside]) < 0.5  # with b fixed, it is the prior's: 1
    assert "b as in the data" in page([contents(model, input_names=["a", "b", "c"])])


def test_one_hot_columns_change_together_along_a_slice():
    codes = np.eye(4)[np.arange(40) % 4]
    X = np.column_stack([np.linspace(0, 1, 40), codes])
    along = path(X, 1)
    assert along.follow.tolist() == [2, 3, 4]
    np.testing.assert_allclose(along(np.array([1.0]))[0, 1:], [1, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(along(np.array([0.0]))[0, 1:], [0, 1 / 3, 1 / 3, 1 / 3], atol=1e-12)


@pytest.fixture(scope="module")
def category():
    """A number and a category of three values."""
    rng = np.random.default_rng(0)
    kind = np.arange(45) % 3
    X = np.column_stack([rng.uniform(0, 1, 45), np.eye(3)[kind]])
    y = np.sin(3 * X[:, 0]) + kind + 0.1 * rng.normal(size=45)
    model = WienerKernelRegressor(RBF(0.7), noise="norm(0, 0.1)", tuning=None).fit(X, y)
    return model, kind, ["depth", "site=A, b", "site=A, c", f"site={HOSTILE}"]


def test_a_category_has_one_slice_with_its_values(category):
    """Its columns are never between 0 and 1, where no sample can be."""
    model, kind, names = category
    told = contents(model, input_names=names)
    assert told["inputs"] == ["depth", "site"]
    assert told["surface"] is None
    number, part = told["slices"]
    assert number["values"] == []
    assert number["base"][0]["value"] in {"A, b", "A, c", HOSTILE}
    assert part["values"] == ["A, b", "A, c", HOSTILE]
    assert part["x"] == [0, 1, 2] == part["at"]
    assert part["data"]["x"] == kind.tolist()
    grid = np.column_stack([np.full(3, part["base"][0]["value"]), np.eye(3)])
    mean, split = model.predict(grid, return_uncertainty=True)
    np.testing.assert_allclose(part["mean"][0], mean, rtol=1e-3)
    np.testing.assert_allclose(part["variance"]["model"], split.model, rtol=1e-3, atol=1e-7)
    assert [column["values"] for column in told["columns"] if column["name"] == "site"] == [3]
    bins = told["scores"]["residuals"][0]["against"][2]["bins"]
    assert bins["x"] == [0, 1, 2]
    residual = model.loo().residual / np.sqrt(model.loo().total)
    np.testing.assert_allclose(
        bins["mean"], [residual[kind == k].mean() for k in range(3)], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("names", "points", "found"),
    [
        (["a_x", "a_y"], [[1, 0], [0, 1]], [("a", ("x", "y"))]),
        (["x", "y"], [[1, 0], [0, 1]], [("category", ("x", "y"))]),
        (["s=a_1", "s=a_2"], [[1, 0], [0, 1]], [("s", ("a_1", "a_2"))]),
        (["s=a", "s=b"], [[1, 0], [0, 0]], [("s=a", ()), ("s=b", ())]),  # one value has no column
        (["u", "v"], [[1, 0], [0.5, 1]], [("u", ()), ("v", ())]),
    ],
)
def test_columns_of_a_category_are_recognized(names, points, found):
    points = np.asarray(points, dtype=float)
    assert [(v.name, v.values) for v in variables(names, points, exclusive(points))] == found


def test_a_transformed_model_is_shown_on_the_scale_of_y():
    X = np.linspace(0, 5, 30)[:, None]
    y = np.exp(np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=30))
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", transform="log", tuning=None).fit(X, y)
    told = contents(model)
    part = told["slices"][0]
    grid = np.array(part["x"])[:, None]
    mean = np.array(part["mean"][0])
    np.testing.assert_allclose(mean, model.predict(grid), rtol=1e-4)
    np.testing.assert_allclose(part["data"]["y"][0], y, rtol=1e-4)
    for law in ("estimate", "function", "observation"):
        ends = np.stack([part["tubes"][law][end] for end in ("low", "high")], axis=1) + mean[:, None]
        np.testing.assert_allclose(ends, model.predict_quantiles(grid, [0.05, 0.95], of=law), rtol=1e-4)
    density, k = part["densities"]["observation"], 11
    exact = model.predict_distribution(grid[part["at"]], of="observation")
    at = np.array(density["y"][k]) + mean[part["at"][k]]
    np.testing.assert_allclose(density["pdf"][k], exact.pdf(at[:, None])[:, k], rtol=1e-3)
    assert density["std"][k] == pytest.approx(exact.std()[k], rel=1e-4)
    np.testing.assert_allclose(part["variance"]["model"], model.uncertainty(grid).model, rtol=1e-4)
    both = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", transform="log", tuning=None)
    both.fit(np.column_stack([X, X[::-1] ** 2]), y)
    surface = contents(both)["surface"]
    at = [[surface["x"][7], surface["y"][20]]]
    assert surface["mean"][0][20][7] == pytest.approx(both.predict(at)[0], rel=1e-4)
    std = both.predict_distribution(at, of="observation").std()[0]
    assert surface["observation"][20][7] == pytest.approx(std, rel=1e-4)


def test_samples_are_moved_to_the_slice_along_the_mean():
    model = _model(n=30, d=2, noise="norm(0, 1)")
    part = contents(model)["slices"][1]
    samples = model.posterior_.smoother.samples
    X, y = samples.places[samples.index], model.posterior_.observed()[:, 0]
    onto = X.copy()
    onto[:, 0] = part["base"][0]["value"]
    np.testing.assert_allclose(
        part["data"]["y"][0], y - model.predict(X) + model.predict(onto), rtol=1e-3, atol=1e-3
    )


def test_inputs_that_are_independent_do_not_follow():
    X = np.random.default_rng(0).uniform(size=(25, 4))
    for j in range(4):
        along = path(X, j)
        assert not len(along.follow)
        assert any(np.array_equal(along.base, row) for row in X)
    few = path(X[:3], 0)
    assert not len(few.follow)


def test_relevance_of_a_sum_is_the_standard_deviation_of_each_term():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    terms = np.column_stack([2 * X[:, 0], np.sin(2 * X[:, 1]), 0 * X[:, 2]])
    mean = SimpleNamespace(mean=lambda Z: 2 * Z[:, 0] + np.sin(2 * Z[:, 1]))
    found = relevance(mean, X)
    np.testing.assert_allclose(found[:, 0], terms.std(axis=0), rtol=0.1)
    assert found[2, 0] == 0
    assert relevance(mean, X[:1]).shape == (3, 1)


def test_relevance_of_one_hot_columns_is_that_of_the_category():
    kind = np.random.default_rng(0).integers(3, size=300)
    X = np.column_stack([np.linspace(0, 1, 300), np.eye(3)[kind], np.arange(300) % 2])
    effect = np.array([1.0, -2.0, 4.0])
    mean = SimpleNamespace(mean=lambda Z: Z[:, 1:4] @ effect)
    assert exclusive(X).tolist() == [
        [1 <= j <= 3 and 1 <= k <= 3 and j != k for k in range(5)] for j in range(5)
    ]
    found = relevance(mean, X, exclusive(X))[:, 0]
    np.testing.assert_allclose(found[1:4], effect[kind].std(), rtol=0.1)
    assert found[0] == found[4] == 0
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None)
    told = contents(model.fit(X[:60, :4], effect[kind[:60]]))
    assert [column["name"] for column in told["columns"]] == ["y", "category", "x1"]
    assert told["columns"][1]["relevance"] == pytest.approx([effect[kind[:60]].std()], rel=0.2)
    assert "One-hot" not in page([told])
    told = contents(model.fit(X[:60, [0, 2, 3]], effect[kind[:60]]))  # the first value has no column
    assert len({column["relevance"][0] for column in told["columns"][1:3]}) == 1
    assert "One-hot columns change together" in page([told])


def test_scores_in_units_of_y_are_those_of_each_output():
    X = np.linspace(0, 6, 25)[:, None]
    y = np.sin(X) * [1.0, 1000.0] + np.random.default_rng(0).normal(0, [0.1, 100.0], (25, 2))
    model = WienerKernelRegressor(noise="norm").fit(X, y)
    told, report = contents(model)["scores"]["summary"], score_report(model)
    errors = report.values - report.law.mean()
    np.testing.assert_allclose(told["rmse"], np.sqrt(np.mean(errors**2, axis=0)), rtol=1e-4)
    np.testing.assert_allclose(told["crps"], report.crps.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(told["r2"], 1 - np.mean(errors**2, axis=0) / y.var(axis=0), rtol=1e-4)


def test_residuals_are_those_of_leave_one_out(model, told):
    told, left_out = told["scores"]["residuals"][0], model.loo()
    smoother = model.posterior_.smoother
    observed = model.posterior_.observed()[:, 0]
    np.testing.assert_allclose(told["observed"], observed, rtol=1e-5)
    np.testing.assert_allclose(told["against"][0]["x"], left_out.mean + 0.5, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        told["standardized"], left_out.residual / np.sqrt(left_out.total), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        told["against"][1]["x"], smoother.places[smoother.samples.index][:, 0], rtol=1e-5
    )


def test_residuals_of_a_transformed_model_are_on_the_scale_of_y():
    X = np.linspace(0, 5, 40)[:, None]
    y = np.exp(np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40))
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", transform="log", tuning=None).fit(X, y)
    told = contents(model)
    np.testing.assert_allclose(told["scores"]["residuals"][0]["observed"], y, rtol=1e-5)
    without = [np.arange(40) != k for k in (7, 31)]
    refits = [clone(model).fit(X[rows], y[rows]) for rows in without]
    predicted = [
        refit.predict_distribution(X[~rows], of="observation").mean()[0]
        for refit, rows in zip(refits, without, strict=True)
    ]
    at = np.array(told["scores"]["residuals"][0]["against"][0]["x"])
    np.testing.assert_allclose(at[[7, 31]], predicted, rtol=1e-4)
    assert told["columns"][0]["range"][0] == pytest.approx(y.min(), rel=1e-5)


@pytest.mark.parametrize(("slope", "depends"), [(0.0, False), (1.0, True)])
def test_a_dependence_of_residuals_is_told_from_chance(slope, depends):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 200)
    found = scores_room.binned(x, slope * x + rng.normal(size=200))
    assert found["depends"] is depends
    assert len(found["x"]) == 12


def test_rounding_errors_depend_on_nothing():
    x = np.arange(60.0)
    assert scores_room.binned(x, 1e-15 * x)["depends"] is False


def test_few_residuals_are_not_judged_nor_connected_one_by_one():
    found = scores_room.binned(np.arange(12.0), np.arange(12.0))
    assert found["depends"] is None
    assert len(found["x"]) == 1


def test_chance_alone_is_rarely_taken_for_a_dependence():
    rng = np.random.default_rng(1)
    found = [scores_room.binned(rng.uniform(size=150), rng.normal(size=150))["depends"] for _ in range(300)]
    assert np.mean(found) < 0.03


def test_noise_level_is_that_of_the_model_with_an_interval():
    X = np.linspace(0, 5, 80)[:, None]
    noise = 0.05 * np.exp(X[:, 0] / 2) * np.random.default_rng(2).normal(size=80)
    model = WienerKernelRegressor(noise="auto").fit(X, np.sin(X[:, 0]) + noise)
    told = contents(model)
    part = told["slices"][0]
    exact = model.noise_.std() * model.predict_noise_scale(np.array(part["x"])[:, None])
    np.testing.assert_allclose(part["level"]["std"], exact, rtol=1e-4)
    assert np.all(np.array(part["level"]["low"]) < exact)
    assert np.all(np.array(part["level"]["high"]) > exact)
    rows = {row["choice"]: row for row in told["choices"]}
    assert rows["noise level"]["sure"] == "very strong, for a varying level"
    assert f"{model.tuning_result_.level_evidence:+.1f}" in rows["noise level"]["compared"]
    assert rows["transform"]["sure"] == "not tried"  # some observations are negative


def test_what_was_given_is_not_said_to_be_chosen(told):
    assert told["choices"] == []
    assert told["slices"][0]["level"] is None
    assert "how certain" not in page([told])


@pytest.mark.parametrize(
    ("gain", "words"), [(0.2, "hardly"), (-2, "weak"), (4, "strong"), (9, "very strong")]
)
def test_evidence_in_words(gain, words):
    assert strength(gain).startswith(words)


def test_surface_is_the_prediction_over_both_inputs():
    model = _model(n=30, d=2, outputs=2, noise="norm(0, 1)")
    told = contents(model)["surface"]
    grid = [[told["x"][7], told["y"][20]]]
    mean, std = model.predict(grid, return_std=True)
    assert [plane[20][7] for plane in told["mean"]] == pytest.approx(mean[0].tolist(), rel=1e-3, abs=1e-4)
    assert told["function"][20][7] == pytest.approx(std[0, 0], rel=1e-3)
    assert contents(_model(n=5, d=3, noise="norm(0, 1)"))["surface"] is None


@pytest.mark.parametrize(
    ("name", "unit"),
    [("time [ms]", "ms"), ("speed (m/s)", "m/s"), ("T[K]", "K"), ("f(x)", ""), ("y", ""), ("a [b] c", "")],
)
def test_units_are_read_from_names(name, unit):
    assert unit_of(name) == unit


def test_head_has_file_date_version_and_units(tmp_path):
    path = write_report(
        _model(), tmp_path / "r.html", source="run7.wk", input_names=["time [ms]"], target_name="speed (m/s)"
    )
    text = path.read_text(encoding="utf-8")
    assert f"run7.wk · {datetime.now(UTC):%Y-%m-%d} · wienerkernel {__version__}" in text
    assert "in m/s; lower is better" in text


def test_outputs_with_a_model_each_have_a_part_each(tmp_path):
    X = np.linspace(0, 5, 30)[:, None]
    y = np.column_stack([np.sin(X[:, 0]), 100 + 10 * np.cos(X[:, 0])])
    y += np.random.default_rng(0).normal(size=y.shape) * [0.1, 2.0]
    model = WienerKernelRegressor(noise="auto").fit(X, y)
    path = write_report(model, tmp_path / "r.html", target_name=["u", "v"])
    told = _data(path)["models"]
    assert [part["targets"][0].split(",")[0] for part in told] == ["u", "v"]
    alone = contents(WienerKernelRegressor(noise="auto").fit(X, y[:, 1]), target_name="v")
    np.testing.assert_allclose(told[1]["slices"][0]["mean"], alone["slices"][0]["mean"], rtol=1e-5)
    assert sum(tag == "article" for tag, _ in _outline(path).tags) == 2
    with pytest.raises(ValueError, match="target_name must have 2"):
        write_report(model, tmp_path / "r.html", target_name="u")


def test_of_many_inputs_those_that_matter_are_shown():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 11))
    y = np.sin(3 * X[:, 9]) + np.cos(3 * X[:, 4])
    model = WienerKernelRegressor(RBF(1.5), noise="norm(0, 0.1)", tuning=None).fit(X, y)
    told = contents(model)
    names = [part["input"] for part in told["slices"]]
    assert len(names) == 8
    assert "the 8 most relevant inputs" in page([told])
    assert {"x5", "x10"} <= set(names)


def test_outputs_share_the_laws_but_not_the_means():
    model = _model(outputs=2)
    told = contents(model, target_name=["u", "v"])
    part = told["slices"][0]
    grid = np.array(part["x"])[:, None]
    assert told["targets"] == ["u", "v"]
    assert len(told["slices"][0]["data"]["y"]) == 2
    exact = model.predict_quantiles(grid, [0.95], of="observation")[:, 1, 0]
    np.testing.assert_allclose(
        np.add(part["mean"][1], part["tubes"]["observation"]["high"]), exact, atol=2e-5
    )


def test_names_that_the_model_knows_are_the_input_names():
    model = _model(n=3, d=2, noise="norm(0, 1)")
    model.feature_names_in_ = np.array(["depth", "age"], dtype=object)
    assert contents(model)["inputs"] == ["depth", "age"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_names": ["a", "b"]}, "input_names must have 1"),
        ({"target_name": ["a", "b"]}, "target_name must have 1"),
    ],
)
def test_wrong_number_of_names_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        contents(_model(n=3, noise="norm(0, 1)"), **options)


@pytest.mark.parametrize(
    ("n", "scale", "noise"),
    [
        (1, 1.0, "norm(0, 1)"),
        (2, 1e-9, "norm(0, 1)"),
        (6, 1e9, GAMMA),
        (4, 1.0, [-0.3, 0.1, 0.2, 0.5]),
        (8, 1.0, Mixture(["norm(0, 0.1)", "norm(0, 3)"], [0.9, 0.1])),
        (8, 1.0, stats.lognorm(0.5)),
    ],
)
def test_ugly_models_have_reports_too(tmp_path, n, scale, noise):
    model = _model(n=n, scale=scale, noise=noise)
    path = write_report(model, tmp_path / "report.html")
    told = _data(path)["models"][0]
    assert told["summary"]["samples"] == n
    assert all(np.isfinite(told["slices"][0]["mean"][0]))


def test_duplicates_and_a_constant_column_have_a_report():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 5.0]])
    model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 1)", tuning=None).fit(X, [1.0, 1.0, 1.0])
    told = contents(model)
    assert told["summary"]["places"] == 2
    assert np.ptp(told["slices"][0]["x"]) > 0


def test_the_law_of_the_estimate_under_discrete_noise_has_no_density():
    model = _model(n=3, noise=[-0.3, 0.1, 0.2, 0.5])
    densities = contents(model)["slices"][0]["densities"]
    assert densities["estimate"] is None
    assert densities["observation"] is not None


def test_hostile_names_stay_text(tmp_path):
    path = write_report(
        _model(n=4, d=2),
        tmp_path / "report.html",
        title=HOSTILE,
        input_names=[HOSTILE, "b"],
        target_name=HOSTILE,
    )
    outline = _outline(path)
    assert [attrs.get("type") for tag, attrs in outline.tags if tag == "script"] == ["application/json", None]
    assert HOSTILE in "".join(outline.words)
    told = _data(path)
    assert told["title"] == told["models"][0]["inputs"][0] == told["models"][0]["targets"][0] == HOSTILE


def test_the_file_is_small_and_refers_to_nothing_outside(tmp_path):
    path = write_report(_model(n=60, d=3, outputs=2, noise="norm(0, 1)"), tmp_path / "report.html")
    assert path.stat().st_size < 1_000_000
    for _, attrs in _outline(path).tags:
        for name in ("src", "href", "data", "action"):
            assert (attrs.get(name) or "data:").startswith("data:")
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|@import|url\((?!#)", text)


def test_numbers_are_in_the_page_without_scripts(told, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page([told]), encoding="utf-8")
    words = " ".join(_outline(path).words)
    assert f"{told['slices'][0]['mean'][0][60]:.4g}".replace("-", "−") in words
    assert f"{told['scores']['summary']['crps'][0]:.4g}" in words
    assert "need JavaScript" in words
    poor = {**told["scores"], "summary": {**told["scores"]["summary"], "r2": [-0.042]}}
    assert "R² −0.042" in page([{**told, "scores": poor}])
    assert "of the variance" in words


def test_a_failed_report_leaves_no_file_behind(tmp_path):
    folder = tmp_path / "report.html"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"report\.html: it exists and is not a regular file"):
        write_report(_model(n=3, noise="norm(0, 1)"), folder)
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]


def test_an_unfitted_model_has_no_report(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        write_report(WienerKernelRegressor(tuning=None), tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    model = _model(n=30, d=2, outputs=2, noise="norm(0.5, 1)")
    path = write_report(model, folder / "report.html", title=HOSTILE, input_names=[HOSTILE, "b"])
    return path.as_uri()


@pytest.fixture
def opened(chromium, address):
    set_width(chromium, 1280)
    set_color_scheme(chromium, "light")
    console_errors(chromium), requested_addresses(chromium)
    chromium.get(address)
    return chromium


def _density(page, number=0):
    return [
        path.get_attribute("d")
        for path in page.find_elements("css selector", ".density path.exact")[3 * number :]
    ]


def test_page_opens_without_complaint_and_asks_for_nothing(opened, address):
    assert len(opened.find_elements("css selector", ".tubes svg path.area")) == 6
    assert len(_density(opened)) == 6
    assert console_errors(opened) == []
    assert requested_addresses(opened) == [address]
    assert opened.execute_script("return window.hacked") is None
    assert HOSTILE in opened.find_element("css selector", "h1").text


SETTINGS = [{"loss": "absolute"}, {"inference": "ep"}, {"inference": "bayes", "random_state": 0}]


@pytest.fixture(scope="module", params=SETTINGS, ids=["loss", "ep", "bayes"])
def nonlinear(request):
    """A model whose estimate is not linear in y, with a transform and several samples at an input."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(-3, 3, 15), 2)[:, None]
    y = np.exp(np.sin(X[:, 0]) + rng.laplace(scale=0.2, size=30))
    options = {"noise": "laplace(0, 0.2)", "transform": "log", "tuning": None, **request.param}
    model = WienerKernelRegressor(2.0 * RBF(1.0), **options).fit(X, y)
    return model, X, y, contents(model)


def test_an_estimate_that_is_not_linear_in_y_has_its_own_laws(nonlinear):
    model, _, _, told = nonlinear
    part = told["slices"][0]
    grid = np.array(part["x"])[:, None]
    laws = ["estimate"] * (model.inference is None) + ["function", "observation"]
    assert list(part["tubes"]) == list(part["densities"]) == laws
    for law in laws:
        quantiles = model.predict_quantiles(grid, [0.05, 0.95], of=law)
        told_quantiles = np.stack([part["tubes"][law]["low"], part["tubes"][law]["high"]], axis=1)
        ends = np.array(part["mean"][0])[:, None] + told_quantiles  # on the scale of y, rounded
        np.testing.assert_allclose(np.log(ends), np.log(quantiles), atol=5e-5)
        density = part["densities"][law]
        for y, pdf, std in zip(density["y"], density["pdf"], density["std"], strict=True):
            assert np.trapezoid(pdf, y) == pytest.approx(0.998, abs=0.02)
            assert np.max(pdf) < 2 / std  # draws are not spikes
    np.testing.assert_allclose(part["variance"]["model"], model.uncertainty(grid).model, rtol=1e-4, atol=1e-6)
    assert told["summary"]["places"] == 15


def test_residuals_of_an_estimate_that_is_not_linear_in_y(nonlinear, tmp_path):
    model, X, y, told = nonlinear
    scores, path = told["scores"], tmp_path / "report.html"
    path.write_text(page([told]), encoding="utf-8")
    words = " ".join(_outline(path).words)
    if model.inference is None:
        assert "not available with loss='absolute'" in scores["missing"]
        assert "the prediction depends on the sample, too" in words
        law = model.predict_distribution(X, "observation")
        seen = scores["residuals"][0]
        np.testing.assert_allclose(seen["observed"], y, rtol=1e-4)
        np.testing.assert_allclose(seen["against"][0]["x"], law.mean(), rtol=1e-4)
        expected = score_report(model, X, y).standardized
        np.testing.assert_allclose(seen["standardized"], expected, rtol=1e-3, atol=1e-4)
    else:
        assert scores["summary"]["log_score"] == pytest.approx(score_report(model).log_score.mean(), rel=1e-4)
        assert "mean predicted from the other samples" in words
    assert f"not linear in y ({model.posterior_.setting})" in words


def test_page_of_an_estimate_that_is_not_linear_in_y(nonlinear, chromium, tmp_path):
    model, _, _, told = nonlinear
    path = tmp_path / "report.html"
    path.write_text(page([told]), encoding="utf-8")
    console_errors(chromium)
    chromium.get(path.as_uri())
    assert console_errors(chromium) == []
    laws = 3 if model.inference is None else 2
    assert len(chromium.find_elements("css selector", ".tubes svg path.area")) == laws
    assert len(_density(chromium)) == laws
    assert len(chromium.find_elements("css selector", ".diagnostics svg")) == (0 if laws == 3 else 3)
    assert len(chromium.find_elements("css selector", ".residuals svg")) == 3
    assert chromium.find_element("css selector", ".density figcaption").text.startswith("Densities at x = ")


def test_page_of_a_category_has_a_bar_for_each_value(category, chromium, tmp_path):
    model, _, names = category
    path = write_report(model, tmp_path / "r.html", input_names=names, target_name="rate [mol/s]")
    console_errors(chromium)
    chromium.get(path.as_uri())
    assert console_errors(chromium) == []
    number, part = chromium.find_elements("css selector", ".slice")
    area = part.find_element("css selector", ".tubes path.area.observation").get_attribute("d")
    assert area.count("M") == 3
    assert [part.find_element("css selector", "label").text] == ["site = A, c"]
    nodes = part.find_elements("css selector", ".tubes svg > text")
    ticks = [chromium.execute_script("return arguments[0].firstChild.data", node) for node in nodes]
    assert {"A, b", "A, c"} < set(ticks)
    assert not any(len(tick) > 40 for tick in ticks)
    assert "variance of rate [(mol/s)²]" in number.find_element("css selector", ".causes svg").text
    last = chromium.find_elements("css selector", ".residuals figure")[-1]
    assert last.find_element("css selector", "path.line.mean").get_attribute("d").count("M") == 3


def test_slider_chooses_the_density_by_keyboard(opened):
    slider = opened.find_elements("css selector", ".chooser input")[0]
    before, label, others = _density(opened)[:3], slider.get_attribute("aria-valuetext"), _density(opened, 1)
    slider.send_keys("\ue014")  # right arrow
    assert all(new != old for new, old in zip(_density(opened)[:3], before, strict=True))
    assert slider.get_attribute("aria-valuetext") != label
    assert _density(opened, 1) == others


def test_click_on_the_curve_chooses_the_place(opened):
    from selenium.webdriver import ActionChains

    slider = opened.find_elements("css selector", ".chooser input")[0]
    plot = opened.find_elements("css selector", ".tubes svg")[0]
    ActionChains(opened).move_to_element_with_offset(plot, -200, 0).click().perform()
    assert int(slider.get_property("value")) < int(slider.get_attribute("max")) / 2


def test_pointing_at_the_curve_shows_its_numbers(opened):
    from selenium.webdriver import ActionChains

    tip = opened.find_element("id", "tip")
    assert not tip.is_displayed()
    for selector, words in [
        (".tubes svg", "mean"),
        (".density svg", "density"),
        (".causes svg", "%"),
        (".surface svg", "mean"),
        (".pit svg", "PIT"),
        (".residuals svg", "observed"),
        (".residuals figure:nth-child(3) svg", "around"),
    ]:
        plot = opened.find_elements("css selector", selector)[0]
        opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
        ActionChains(opened).move_to_element(plot).perform()
        assert tip.is_displayed()
        assert words in tip.text
    ActionChains(opened).move_to_element(opened.find_element("css selector", "h1")).perform()
    assert not tip.is_displayed()


def test_theme_follows_the_system_and_the_button(opened):
    def background():
        return opened.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = background()
    opened.find_element("id", "theme").click()
    dark = background()
    assert dark != light
    set_color_scheme(opened, "dark")
    opened.find_element("id", "theme").click()
    assert background() == light
    opened.refresh()
    assert background() == dark


def test_output_can_be_chosen(opened):
    from selenium.webdriver.support.ui import Select

    before = opened.find_element("css selector", ".tubes path.line.mean").get_attribute("d")
    Select(opened.find_element("css selector", "select.output")).select_by_visible_text("y2")
    assert opened.find_element("css selector", ".tubes path.line.mean").get_attribute("d") != before


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_page_is_never_wider_than_the_screen(opened, width):
    set_width(opened, width)
    opened.refresh()
    opened.execute_script("document.querySelector('details').open = true")
    assert overflow(opened) == 0


def test_print_has_the_tables_open(opened):
    opened.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert opened.find_element("css selector", "details table").is_displayed()
    assert len(opened.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000


def test_tables_remain_without_scripts(opened):
    opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened.refresh()
        assert not opened.find_element("id", "theme").is_displayed()
        assert opened.find_element("css selector", ".notice").is_displayed()
        assert opened.find_element("css selector", ".tiles").is_displayed()
    finally:
        opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize(
    ("std", "reading"), [(0.05, "intervals are too narrow"), (3.0, "intervals are too wide")]
)
def test_the_scores_are_read_for_the_user(std, reading):
    """Both rows of coverage and the spread of the PIT say what is wrong; for the true noise nothing is."""
    X = np.linspace(0, 10, 80)[:, None]
    y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(scale=0.4, size=80)
    texts = [
        page([contents(WienerKernelRegressor(RBF(1.5), noise=f"norm(0, {value})", tuning=None).fit(X, y))])
        for value in (std, 0.4)
    ]
    # three rows of the table, and the tiles of both intervals
    assert [text.count(reading) for text in texts] == [5, 0]
    assert texts[1].count("within chance") == 6
