"""Data that are read in parts: the exact collapse equals the model of all rows in memory, and so do the approximations."""

from functools import partial, reduce
from itertools import pairwise

import numpy as np
import pytest

from wienerkernel import RBF, Actions, Features, Files, Neighbors, WienerKernelRegressor, load
from wienerkernel.backend.linalg import NotPositiveDefiniteError
from wienerkernel.scale import approximation as limits
from wienerkernel.scale.collapse import collapse
from wienerkernel.scale.stream import Stream, tree
from wienerkernel.scale.sums import CHUNK

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def rows(n=3000, places=40, seed=0, n_outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, (places, 2))[rng.integers(places, size=n)]
    y = np.stack([np.sin(X[:, 0] + k) + 0.3 * X[:, 1] for k in range(n_outputs)], axis=1)
    return X, y + rng.gamma(0.5, 0.4, y.shape), rng.choice([0.5, 1.0, 2.0], n)


def write(folder, X, y, scale, kind, n_files=5):
    """Files of unequal length, the last but one without rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ends = np.sort(np.random.default_rng(1).integers(1, len(X), n_files - 2))
    ends = [0, *ends, len(X), len(X)]
    parts = [slice(a, b) for a, b in pairwise(ends)]
    parts[-1], parts[-2] = parts[-2], parts[-1]
    for k, part in enumerate(parts):
        columns = {f"x{j}": X[part, j] for j in range(X.shape[1])}
        columns |= {f"y{j}": y[part, j] for j in range(y.shape[1])} | {"s": scale[part]}
        if kind == "parquet":
            pq.write_table(pa.table(columns), folder / f"part{k}.parquet")
        else:
            lines = [
                ",".join(columns),
                *(
                    ",".join(map(repr, r))
                    for r in zip(*map(np.ndarray.tolist, columns.values()), strict=True)
                ),
            ]
            (folder / f"part{k}.csv").write_text("\n".join(lines) + "\n")
    return str(folder / f"*.{kind}")


def model(approximation=None, **options):
    settings = {"noise": "gamma(0.5, scale=0.4)", "tuning": None} | options
    return WienerKernelRegressor(2.0 * RBF(1.5), approximation=approximation, **settings)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("trend", [None, "constant"])
def test_a_collapsed_stream_is_the_exact_model(tmp_path, kind, n_outputs, trend):
    X, y, scale = rows(n_outputs=n_outputs)
    pattern = write(tmp_path, X, y, scale, kind)
    target = "y0" if n_outputs == 1 else ["y0", "y1"]
    query = np.random.default_rng(2).uniform(0, 6, (5, 2))
    exact = model(trend=trend).fit(X, y[:, 0] if n_outputs == 1 else y, scale)
    found = model(trend=trend).fit(pattern, target, noise_scale="s")
    assert found.feature_names_in_.tolist() == ["x0", "x1"]
    assert found.posterior_.n_samples == len(X)
    del found.feature_names_in_
    np.testing.assert_allclose(found.predict(query), exact.predict(query), **EXACT)
    ours, theirs = found.uncertainty(query), exact.uncertainty(query)
    np.testing.assert_allclose(ours.noise, theirs.noise, **EXACT)
    np.testing.assert_allclose(ours.model, theirs.model, **EXACT)
    np.testing.assert_allclose(found.log_likelihood(), exact.log_likelihood(), rtol=1e-12)
    for of in ("estimate", "observation"):
        law, other = (m.predict_distribution(query, of=of) for m in (found, exact))
        np.testing.assert_allclose(law.ppf(0.9), other.ppf(0.9), rtol=1e-10)
        np.testing.assert_allclose(law.cumulant(3), other.cumulant(3), rtol=1e-11)
    np.testing.assert_allclose(
        found.predict(query, return_cov=True)[1], exact.predict(query, return_cov=True)[1], **EXACT
    )


@pytest.mark.parametrize("noise", [None, "norm(1, 0.4)"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_tuning_of_a_collapsed_stream_is_that_of_all_rows(tmp_path, noise, n_outputs):
    X, y, scale = rows(n=600, n_outputs=n_outputs)
    pattern = write(tmp_path, X, y * [1.0, 5.0][:n_outputs], scale, "parquet")
    target = "y0" if n_outputs == 1 else ["y0", "y1"]
    options = {"kernel": None, "noise": noise, "random_state": 0}
    exact = WienerKernelRegressor(**options).fit(X, y[:, 0] if n_outputs == 1 else y * [1.0, 5.0], scale)
    found = WienerKernelRegressor(**options).fit(Files(pattern, ("x0", "x1")), target, "s")
    ours, theirs = found.tuning_result_, exact.tuning_result_
    np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-6)
    assert list(ours.parameters) == list(theirs.parameters)
    np.testing.assert_allclose(list(ours.parameters.values()), list(theirs.parameters.values()), rtol=2e-3)
    np.testing.assert_allclose(ours.output_scale, theirs.output_scale, rtol=1e-3)


def test_the_gradient_of_the_likelihood_counts_every_row():
    from wienerkernel.noise.family import noise_model
    from wienerkernel.tuning.data import Data, Parameters
    from wienerkernel.tuning.likelihood import Likelihood

    X, y, scale = rows(n=500, n_outputs=2)
    collapsed = collapse(Stream.of_arrays(X, y, scale))
    assert collapsed.count.sum() == 500
    parameters = Parameters(2.0 * RBF((1.0, 2.0)), noise_model("gamma"))
    values = np.append(parameters.kernel.theta, [-0.5, 0.3])
    Xc, yc, sc, count = collapsed.rows()
    whole = Likelihood(Data(X, y, scale, trend="constant"), parameters, True)
    ours = Likelihood(Data(Xc, yc, sc, trend="constant", count=count), parameters, True)
    (a, by_a), (b, by_b) = whole(values), ours(values)
    np.testing.assert_allclose(b, a, rtol=1e-12)
    np.testing.assert_allclose(by_b, by_a, rtol=1e-9, atol=1e-9)
    assert ours.data.size == whole.data.size


def test_large_offsets_keep_their_digits():
    """Sums of y^2 would lose the variance at an offset of 1e8."""
    X, y, _ = rows(n=4000, places=3)
    far = collapse(Stream.of_arrays(X, y + 1e8, np.ones(4000)))
    for x, mean, squares, count in zip(far.X, far.mean, far.squares, far.count, strict=True):
        own = y[np.all(x == X, axis=1), 0]
        np.testing.assert_allclose(mean[0] - 1e8, own.mean(), atol=1e-6)
        np.testing.assert_allclose(squares[0] / count, own.var(), rtol=1e-6)


def test_a_collapsed_model_grows_and_is_saved(tmp_path):
    X, y, scale = rows()
    pattern = write(tmp_path, X[:2000], y[:2000], scale[:2000], "parquet")
    found = model().fit(Files(pattern, ["x0", "x1"]), "y0", "s")
    found.save(tmp_path / "model.wk")
    found = load(tmp_path / "model.wk")
    new = np.array([[9.0, 9.0]])
    X, y, scale = np.concatenate([X, new]), np.append(y[:, 0], 1.0), np.append(scale, 1.0)
    del found.feature_names_in_
    found.partial_fit(X[2000:], y[2000:], scale[2000:])
    exact = model().fit(X, y, scale)
    query = X[::300]
    np.testing.assert_allclose(found.predict(query), exact.predict(query), rtol=1e-10)
    np.testing.assert_allclose(found.uncertainty(query).total, exact.uncertainty(query).total, rtol=1e-10)
    for method in (found.loo, lambda: found.forget([0]), lambda: found.sample_paths(1)):
        with pytest.raises(TypeError, match="every sample"):
            method()


@pytest.mark.parametrize(
    ("approximation", "tolerance"), [(Neighbors(30), 1e-12), (Features(60, n_audits=16), 0.01)], ids=str
)
def test_approximations_of_files_are_those_of_arrays(tmp_path, approximation, tolerance):
    X, y, scale = rows(n=1500, places=1500)
    pattern = write(tmp_path, X, y, scale, "parquet")
    query = np.random.default_rng(2).uniform(0, 6, (5, 2))
    arrays = model(approximation).fit(X, y[:, 0], scale)
    files = model(approximation).fit(pattern, "y0", "s")
    del files.feature_names_in_
    assert files.posterior_.n_samples == 1500
    mean, parts = files.predict(query, return_uncertainty=True)
    other, others = arrays.predict(query, return_uncertainty=True)  # with other inducing points
    np.testing.assert_allclose(mean, other, rtol=tolerance)
    np.testing.assert_allclose(parts.total, others.total, rtol=tolerance)


def test_tuning_finds_the_neighbors_among_all_rows(tmp_path, monkeypatch):
    from wienerkernel.scale import tuning as scale_tuning

    monkeypatch.setattr(scale_tuning, "SCORED_ROWS", 300)
    monkeypatch.setattr(scale_tuning, "NEIGHBORS", 16)
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (3000, 2))
    y = np.sin(3 * X[:, :1]) + 0.1 * rng.gamma(1.0, 1.0, (3000, 1))
    pattern = write(tmp_path, X, y, np.ones(3000), "parquet")
    found = WienerKernelRegressor(noise="gamma", approximation=Features(100), random_state=0)
    found.fit(Files(pattern, ["x0", "x1"]), "y0")
    assert abs(np.log(found.noise_.std() / 0.1)) < 0.15
    assert 0.4 < found.tuning_result_.parameters["noise.a"] < 2.5
    del found.feature_names_in_
    new = rng.uniform(0, 6, (200, 2))
    assert np.sqrt(np.mean((found.predict(new) - np.sin(3 * new[:, 0]) - 0.1) ** 2)) < 0.05


def test_neighbors_in_a_stream_are_the_nearest_rows():
    from wienerkernel.scale.nearest import Neighborhood
    from wienerkernel.tuning.data import Data

    X, y, scale = rows(n=3 * CHUNK, places=20_000)
    parts = [(X[k::3], y[k::3], scale[k::3]) for k in range(3)]
    stream = Stream(parts, lambda part: iter([part]), 2)
    sample = stream.sample(50, 1)
    data = Data(sample.X, sample.y, sample.scale)
    rows_ = np.array([3, 7, 20])
    kernel = RBF((1.0, 3.0))
    near = Neighborhood(stream, data, sample.keys, 1)(kernel, rows_, 25)
    np.testing.assert_array_equal(near.X[:3], data.X[rows_])
    for x in near.X[:3]:
        all_distances = np.sort(np.sum(((X - x) / [1.0, 3.0]) ** 2, axis=1))[:26]
        found = np.sort(np.sum(((near.X - x) / [1.0, 3.0]) ** 2, axis=1))[:26]
        np.testing.assert_allclose(found, all_distances)


def test_a_sample_does_not_depend_on_the_chunks():
    X, y, scale = rows(n=2 * CHUNK + 100, places=5000)
    whole = Stream.of_arrays(X, y, scale).sample(100, 3)
    pieces = Stream(
        [0],
        lambda _: ((X[i : i + 999], y[i : i + 999], scale[i : i + 999]) for i in range(0, len(X), 999)),
        2,
    )
    np.testing.assert_array_equal(pieces.sample(100, 3).X, whole.X)
    assert not np.array_equal(pieces.sample(100, 4).X, whole.X)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 16, 17, 70])
def test_the_tree_has_fan_in_four(n):
    def grouped(items):
        while len(items) > 1:
            groups = [items[i : i + 4] for i in range(0, len(items), 4)]
            items = [group[0] if len(group) == 1 else _nested(group) for group in groups]
        return items[0]

    def _nested(group):
        found = group[0]
        for item in group[1:]:
            found = (found, item)
        return found

    assert tree(iter(range(n)), n, partial(reduce, lambda a, b: (a, b))) == grouped(list(range(n)))


def test_auto_collapses_or_approximates(tmp_path, monkeypatch):
    X, y, _ = rows(n=500, places=300)
    pattern = write(tmp_path, X, y, np.ones(500), "parquet")
    assert not hasattr(model("auto").fit(Files(pattern, ["x0", "x1"]), "y0"), "approximation_")
    monkeypatch.setattr(limits, "EXACT_PLACES", 100)
    with pytest.raises(ValueError, match="distinct inputs"):
        model().fit(Files(pattern, ["x0", "x1"]), "y0")
    from wienerkernel.scale import condition

    monkeypatch.setattr(condition, "TRIAL_FEATURES", 20)
    rough = WienerKernelRegressor(RBF(0.05), noise="norm(0, 0.1)", tuning=None, approximation="auto")
    with pytest.warns(UserWarning, match="approximate: Neighbors"):
        rough.fit(Files(pattern, ["x0", "x1"]), "y0")


def test_an_interrupted_fit_leaves_the_model_as_it_was(tmp_path):
    X, y, scale = rows(n=400)
    pattern = write(tmp_path, X, y, scale, "csv")
    good = model(Neighbors(20)).fit(pattern, "y0", "s")
    before = dict(good.__dict__)
    text = (tmp_path / "part2.csv").read_text().splitlines()
    text[3] = "1.0,oops,2.0,1.0"
    (tmp_path / "part2.csv").write_text("\n".join(text))
    with pytest.raises(ValueError, match=r"part2\.csv, row 4, column 'x1': 'oops' is not a number"):
        good.fit(pattern, "y0", "s")
    assert good.__dict__ == before
    new = model(Neighbors(20))
    with pytest.raises(ValueError, match="row 4"):
        new.fit(pattern, "y0", "s")
    assert not hasattr(new, "posterior_")


def test_a_nameless_index_of_pandas_is_not_an_input(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, _ = rows(200)
    table = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "y0": y[:, 0]})
    table[:80].to_parquet(tmp_path / "a.parquet")
    table[80:].sample(frac=1, random_state=0).to_parquet(tmp_path / "b.parquet")
    found = model().fit(str(tmp_path / "*.parquet"), "y0")
    assert found.feature_names_in_.tolist() == ["x0", "x1"]
    np.testing.assert_allclose(
        found.predict(table[["x0", "x1"]][:5]), model().fit(X, y[:, 0]).predict(X[:5]), **EXACT
    )


@pytest.mark.parametrize(
    ("inputs", "target", "noise_scale", "message"),
    [
        ("x0", "y0", None, "inputs must be a list"),
        (["x0", "x0"], "y0", None, "'x0' is used twice"),
        (["x0", "y0"], "y0", None, "'y0' is used twice"),
        (None, ["y0", "y0"], None, "'y0' is used twice"),
        (None, "y0", "y0", "'y0' is used twice"),
    ],
)
def test_columns_have_one_role(tmp_path, inputs, target, noise_scale, message):
    pattern = write(tmp_path, *rows(20), "csv")
    with pytest.raises((ValueError, TypeError), match=message):
        model().fit(Files(pattern, inputs), target, noise_scale)


@pytest.mark.parametrize("approximation", [Neighbors(20), Features(20), Actions("subset", 20)])
def test_a_ridge_with_noise_scales_is_refused_by_approximations(tmp_path, approximation):
    """It would have to be the same for all rows, but theirs is proportional to the noise variance."""
    X, y, _ = rows(100)
    twice = np.full(100, 2.0)
    pattern = write(tmp_path, X, y, twice, "csv")
    ridge = model(approximation, ridge=0.3)
    with pytest.raises(ValueError, match="needs ridge=None"):
        ridge.fit(X, y[:, 0], twice)
    with pytest.raises(ValueError, match="needs ridge=None"):
        ridge.fit(pattern, "y0", "s")
    with pytest.raises(ValueError, match="needs ridge=None"):
        model(approximation, ridge=0.3, noise_level=lambda X: 1 + X[:, 0] ** 2).fit(X, y[:, 0])
    ridge.fit(X, y[:, 0])
    with pytest.raises(ValueError, match="needs ridge=None"):
        ridge.partial_fit(X, y[:, 0], twice)


@pytest.mark.parametrize("approximation", [Features(20), Actions("subset", 20)])
def test_a_linear_trend_of_dependent_inputs_is_one_line(approximation):
    X, y, _ = rows(100)
    with pytest.raises(NotPositiveDefiniteError, match="the trend has 3 coefficients"):
        model(approximation, trend="linear").fit(X[:, [0, 0]], y[:, 0]).predict(X[:, [0, 0]])
