"""Dask: the same results as without it, bit for bit, whatever happens to the workers; one clear line for bad input."""

import os
import signal
import socket
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from wienerkernel import RBF, Features, Neighbors, WienerKernelRegressor
from wienerkernel.scale.condition import condition
from wienerkernel.scale.stream import Stream

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as found:
        yield found


@contextmanager
def connected(cluster):
    with distributed.Client(cluster, set_as_default=False) as found, found.as_current():
        yield found


@pytest.fixture
def client(cluster):
    with connected(cluster) as found:
        yield found


def frame(n=1000, places=1000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, (places, 2))[rng.integers(places, size=n)]
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + rng.gamma(0.5, 0.4, n)
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "s": rng.choice([0.5, 1.0], n)})


def partitions(table, n=6):
    """A Dask frame, with an empty partition."""
    table = table.assign(part=np.sort(np.arange(len(table)) % n))
    lazy = dd.from_pandas(table, npartitions=n, sort=False)
    return lazy[lazy.part != 2].drop(columns="part"), table[table.part != 2].drop(columns="part")


def model(approximation=None, **options):
    settings = {"noise": "gamma(0.5, scale=0.4)", "tuning": None} | options
    return WienerKernelRegressor(2.0 * RBF(1.5), approximation=approximation, **settings)


QUERY = pd.DataFrame(np.random.default_rng(2).uniform(0, 6, (5, 2)), columns=["a", "b"])


def results(fitted):
    mean, parts = fitted.predict(QUERY, return_uncertainty=True)
    return np.stack([mean, parts.noise, parts.model])


@pytest.mark.parametrize("approximation", [None, Neighbors(20), Features(40, n_audits=8)], ids=str)
def test_workers_give_the_same_bits_as_the_embedded_engine(cluster, approximation):
    lazy, table = partitions(frame(places=1000 if approximation else 30))
    data = lazy[["a", "b"]], lazy["y"], lazy["s"]
    with threadpool_limits(1):
        embedded = results(model(approximation).fit(*data))
        with connected(cluster):
            by_workers = results(model(approximation).fit(*data))
        assert np.array_equal(by_workers, embedded)
        memory = model(approximation).fit(table[["a", "b"]], table["y"], table["s"])
    if not isinstance(approximation, Features):  # which have other inducing points
        np.testing.assert_allclose(embedded, results(memory), rtol=1e-10)


def test_arrays_have_the_chunks_of_x(client):
    table = frame(places=30).to_numpy()
    X = da.from_array(table[:, :2], chunks=(300, 1))
    y = da.from_array(table[:, 2], chunks=150)
    found = model(trend=None).fit(X, y)
    exact = model(trend=None).fit(table[:, :2], table[:, 2])
    query = QUERY.to_numpy()
    np.testing.assert_allclose(found.predict(query), exact.predict(query), rtol=1e-10)


def test_tuning_by_workers(cluster, monkeypatch):
    from wienerkernel.scale import tuning as scale_tuning

    monkeypatch.setattr(scale_tuning, "SCORED_ROWS", 100)
    monkeypatch.setattr(scale_tuning, "NEIGHBORS", 8)
    table = frame()
    lazy = dd.from_pandas(table, npartitions=3)
    settings = {"kernel": 1.0 * RBF(1.0), "approximation": Neighbors(20), "random_state": 0}
    with threadpool_limits(1):
        with connected(cluster):
            by_workers = WienerKernelRegressor(**settings).fit(lazy[["a", "b"]], lazy["y"])
        embedded = WienerKernelRegressor(**settings).fit(lazy[["a", "b"]], lazy["y"])
    assert by_workers.tuning_result_.parameters == embedded.tuning_result_.parameters


def test_predictions_of_a_dask_collection_are_lazy(client):
    lazy, table = partitions(frame())
    fitted = model(Neighbors(20)).fit(table[["a", "b"]], table["y"])
    mean, std = fitted.predict(lazy[["a", "b"]], return_std=True)
    expected = fitted.predict(table[["a", "b"]], return_std=True)
    assert isinstance(mean, dd.Series)
    np.testing.assert_allclose(mean.compute(), expected[0], rtol=1e-12)
    np.testing.assert_allclose(std.compute(), expected[1], rtol=1e-12)
    assert mean.compute().index.equals(table.index)
    two = model(Neighbors(20)).fit(table[["a", "b"]].to_numpy(), table[["y", "s"]].to_numpy())
    found = two.predict(da.from_array(table[["a", "b"]].to_numpy(), chunks=(200, 2)))
    assert found.shape == (len(table), 2)
    np.testing.assert_allclose(found, two.predict(table[["a", "b"]].to_numpy()), rtol=1e-12)
    with pytest.raises(ValueError, match="return_std"):
        fitted.predict(lazy[["a", "b"]], return_uncertainty=True)


def test_a_killed_worker_changes_nothing(cluster):
    """Every row is counted once, and the result is the same to the last bit."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (1200, 2))
    y, scale = rng.standard_normal((1200, 1)), np.ones(1200)
    parts = [(X[k::12], y[k::12], scale[k::12]) for k in range(12)]

    def read(part):
        import time

        time.sleep(0.2)
        yield part

    slow, fast = Stream(parts, read, 2), Stream(parts, lambda part: iter([part]), 2)
    kernel = RBF(1.0)
    features = Features(50, n_audits=8)
    with threadpool_limits(1):
        with connected(cluster) as client:
            killed = next(iter(client.run(os.getpid).values()))
            timer = threading.Timer(0.7, os.kill, (killed, signal.SIGKILL))
            timer.start()
            found = condition(features, kernel, slow, X, 0.1, "constant").sums
            timer.join()
            assert killed not in client.run(os.getpid).values()
        expected = condition(features, kernel, fast, X, 0.1, "constant").sums
    assert found.n == 1200
    for name in ("gram", "targets", "audit"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert np.array_equal(found.rows.keys, expected.rows.keys)


def test_a_bad_row_is_an_error_that_names_it(client, tmp_path):
    for k in range(4):
        frame(n=50, seed=k).to_csv(tmp_path / f"part{k}.csv", index=False)
    text = (tmp_path / "part2.csv").read_text().splitlines()
    text[7] = "1.0,,2.0,1.0"
    (tmp_path / "part2.csv").write_text("\n".join(text))
    pattern = str(tmp_path / "*.csv")
    with pytest.raises(ValueError, match=r"part2\.csv, row 8, column 'b': the cell is empty"):
        model(Neighbors(20)).fit(pattern, "y", "s")
    table = frame()
    table.loc[700, "b"] = np.nan
    lazy = dd.from_pandas(table, npartitions=4)
    with pytest.raises(ValueError, match=r"X, partition 2, row 200, column 'b': nan is not a finite number"):
        model(Neighbors(20)).fit(lazy[["a", "b"]], lazy["y"])


@pytest.mark.parametrize(
    "case",
    [
        "text",
        "numerals",
        "dates",
        "complex",
        "scale",
        "rows",
        "partitions",
        "unknown",
        "numpy",
        "empty",
        "vector",
    ],
)
def test_bad_collections(case):
    table = frame()
    lazy = dd.from_pandas(table, npartitions=4)
    X, y, s = lazy[["a", "b"]], lazy["y"], lazy["s"]
    array = da.from_array(table[["a", "b"]].to_numpy(), chunks=(250, 2))
    unknown = array[array[:, 0] > 1]
    cases = {
        "text": (
            (X.assign(b=lazy["b"].astype(object).where(lazy["b"] < 5.9, "high")), y),
            "'high' is not a finite",
        ),
        "numerals": ((X.assign(b=lazy["b"].astype(str)), y), r"column 'b': '[\d.]+' is not a finite number"),
        "dates": ((X[["a"]].astype("int64").astype("datetime64[ns]"), y), "datetime64.* is not a finite"),
        "complex": (
            (array + 1j, da.from_array(table["y"].to_numpy(), chunks=250)),
            r"\+1j\) is not a finite",
        ),
        "scale": ((X, y, s - 0.5), "noise_scale, partition 0, row .* 0 is not positive"),
        "rows": ((X, lazy[lazy.a > 1]["y"]), "partition 0 has 250 rows of X and"),
        "partitions": ((X, dd.from_pandas(table["y"], npartitions=2)), "X has 4 partitions and y has 2"),
        "unknown": ((unknown, y.to_dask_array(lengths=True).rechunk(500)), "compute_chunk_sizes"),
        "numpy": ((X, table["y"]), "y must be a Dask collection"),
        "empty": ((X[X.a > 99], y[lazy.a > 99]), "the data have no rows"),
        "vector": ((y, y), "X must be a Dask DataFrame"),
    }
    given, message = cases[case]
    with pytest.raises(ValueError, match=message):
        model(Neighbors(20)).fit(*given)


def test_numbers_of_any_type_are_numbers():
    from wienerkernel.io.streams import as_stream

    table = pd.DataFrame(
        {"a": [True, False, True], "b": [1, 2, 3], "c": np.float32([0.5, 1.5, 2.5]), "y": 1.0}
    )
    table["d"] = pd.array([1, 2, 3], dtype="Int64")
    stream = as_stream(
        *(dd.from_pandas(table, npartitions=1)[names] for names in (["a", "b", "c", "d"], "y"))
    )
    X, *_ = stream.gather()
    np.testing.assert_array_equal(X, [[1, 1, 0.5, 1], [0, 2, 1.5, 2], [1, 3, 2.5, 3]])


def test_unknown_chunk_sizes_are_no_obstacle():
    table = frame(places=30)
    array = da.from_array(table[["a", "b", "y"]].to_numpy(), chunks=(250, 3))
    some = array[array[:, 0] > 1]
    found = model(trend=None).fit(some[:, :2], some[:, 2])
    kept = table[table.a > 1]
    exact = model(trend=None).fit(kept[["a", "b"]].to_numpy(), kept["y"].to_numpy())
    np.testing.assert_allclose(found.predict(QUERY.to_numpy()), exact.predict(QUERY.to_numpy()), rtol=1e-10)


def test_an_unreachable_scheduler_is_one_line():
    from wienerkernel.io.streams import workers

    with (
        pytest.raises(ValueError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        workers("tcp://127.0.0.1:9", timeout=1e9),
    ):
        pass


def test_an_address_where_nothing_answers_is_one_line():
    from wienerkernel.io.streams import workers

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(ValueError, match=r"no Dask scheduler answers at .*timed out"),
            workers(address, 0.2),
        ):
            pass


def test_the_command_line_uses_a_scheduler(cluster, tmp_path, monkeypatch, capsys):
    import sys

    from wienerkernel import load
    from wienerkernel.cli import main

    for k in range(3):
        frame(n=60, places=20, seed=k).to_parquet(tmp_path / f"part{k}.parquet")
    options = ["--target", "y", "--noise-scale", "s", "--scheduler", cluster.scheduler_address]
    command = ["wienerkernel", "fit", str(tmp_path / "*.parquet"), *options, "-o", str(tmp_path / "m.wk")]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, capsys.readouterr()
    assert load(tmp_path / "m.wk").posterior_.n_samples == 180


def test_names_that_are_not_strings_are_no_feature_names():
    table = pd.DataFrame(np.arange(12.0).reshape(6, 2))
    frame = dd.from_pandas(table, npartitions=2)
    model = WienerKernelRegressor(RBF(), noise="norm(0, 0.3)", tuning=None).fit(frame, frame[0])
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(frame).compute(), model.predict(table))


def test_chunks_without_rows_have_no_predictions():
    X = np.arange(6.0)[:, None]
    model = WienerKernelRegressor(RBF(), noise="norm(0, 0.3)", tuning=None).fit(X, X[:, 0])
    array = da.from_array(X, chunks=(3, 1))
    found = model.predict(array[array[:, 0] > 3], return_std=True)
    np.testing.assert_array_equal([part.compute() for part in found], model.predict(X[4:], return_std=True))
