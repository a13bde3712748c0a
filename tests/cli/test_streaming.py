"""fit and predict for patterns of files: bounded memory, files of the same names, and one line for each mistake."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wienerkernel import RBF, WienerKernelRegressor, load
from wienerkernel.cli import main, streaming


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line in this process: exit code, and all that it printed."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["wienerkernel", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return (1, captured.err + code) if isinstance(code, str) else (code or 0, captured.out + captured.err)

    return call


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 15, 400) / 3.0
    return {"a": a, "y": np.sin(a) + 0.1 * rng.standard_normal(400)}


@pytest.fixture
def folder(tmp_path, table):
    (tmp_path / "data").mkdir()
    for k in range(4):
        part = {name: values[k::4] for name, values in table.items()}
        pq.write_table(pa.table(part), tmp_path / "data" / f"part{k}.parquet")
    return tmp_path


def test_a_pattern_is_fitted_and_predicted(run, folder, table):
    code, text = run("fit", folder / "data" / "*.parquet", "--target", "y", "-o", folder / "m.wk")
    assert code == 0, text
    assert "400 samples of y at 15 inputs, against a" in text
    model = load(folder / "m.wk")
    exact = WienerKernelRegressor(noise="norm", random_state=0).fit(table["a"][:, None], table["y"])
    np.testing.assert_allclose(model.noise_.std(), exact.noise_.std(), rtol=1e-3)
    code, text = run("predict", folder / "m.wk", folder / "data" / "*.parquet", "-o", folder / "out")
    assert code == 0, text
    found = [pq.read_table(folder / "out" / f"part{k}.parquet").to_pydict() for k in range(4)]
    assert sum(len(part["mean"]) for part in found) == 400
    expected = model.posterior_.mean(np.array(found[3]["a"])[:, None])
    np.testing.assert_allclose(found[3]["mean"], expected, rtol=1e-10)


def test_files_without_rows_have_no_predictions(run, folder):
    new, model = folder / "new", folder / "m.wk"
    new.mkdir()
    for k, rows in enumerate(["", "0.5\n1.0\n", ""]):
        (new / f"{k}.csv").write_text("x0\n" + rows)
    fitted = WienerKernelRegressor(RBF(1.0), noise="norm(0, 1)", tuning=None)
    fitted.fit([[0.0], [1.0]], [0.0, 1.0]).save(model)
    code, text = run("predict", model, new / "*.csv", "--inputs", "x0", "-o", folder / "out")
    assert code == 0, text
    assert "2.csv: there are no rows below the column names; no predictions are written" in text
    assert [path.name for path in (folder / "out").iterdir()] == ["1.csv"]
    code, text = run("predict", model, new / "[02].csv", "--inputs", "x0", "-o", folder / "none")
    assert code == 1
    assert "2.csv: there are no rows below the column names" in text


def test_features_of_a_pattern(run, folder):
    code, text = run(
        "fit",
        folder / "data" / "*.parquet",
        "--target",
        "y",
        "--approximation",
        "features",
        "-o",
        folder / "m.wk",
    )
    assert code == 0, text
    assert "note: 2000 features are more than the 400 rows" in text
    assert "approximate: Features" in text
    assert "leave-one-out scores" in text


def test_a_large_file_is_read_in_parts(run, folder, monkeypatch):
    monkeypatch.setattr(streaming, "LARGE", 100)
    path = folder / "data" / "part0.parquet"
    code, text = run("fit", path, "--target", "y", "--tuning", "none", "-o", folder / "m.wk")
    assert code == 0, text
    assert "scores need held-out data" in text


def test_each_mistake_is_one_line(run, folder):
    data, model = folder / "data", folder / "m.wk"
    WienerKernelRegressor(RBF(1.0), noise="norm(0, 1)", tuning=None).fit([[0.0], [1.0]], [0.0, 1.0]).save(
        model
    )
    pq.write_table(pa.table({"a": [1.0], "b": [1.0], "y": [1.0]}), folder / "other.parquet")
    (folder / "text").mkdir()
    for k, cell in enumerate(["1.0", "high"]):
        (folder / "text" / f"{k}.csv").write_text(f"a,y\n1.0,2.0\n{cell},3.0\n")
    pattern = data / "*.parquet"
    for arguments, message in [
        (("fit", data, "--target", "y"), "is a directory: use a pattern such as"),
        (("fit", folder / "no*.csv", "--target", "y"), "no file matches"),
        (("fit", pattern, "--target", "z"), "there is no column 'z'"),
        (("fit", folder / "**" / "*.parquet", "--target", "y"), "other.parquet has a column 'b', which"),
        (
            ("fit", folder / "text" / "*.csv", "--target", "y"),
            "1.csv, row 3, column 'a': 'high' is not a number",
        ),
        (("fit", pattern, "--target", "y", "--noise", "gamma"), "noise of known shape"),
        (("fit", pattern, "--target", "y", "--noise-level", "input"), "files and Dask collections need"),
        (("fit", "-", "--target", "y", "--scheduler", "tcp://127.0.0.1:9"), "--scheduler needs files"),
        (
            ("fit", pattern, "--target", "y", "--kernel", "linear", "--approximation", "features"),
            "spectral density",
        ),
        (("predict", model, pattern), "the predictions need a folder"),
        (("predict", model, pattern, "-o", data), "is the folder of the data"),
    ]:
        code, text = run(*arguments, *(["-o", folder / "new.wk"] if arguments[0] == "fit" else []))
        assert code in (1, 2), text
        assert len(text.strip().splitlines()) == 1, text
        assert message in text


MESSY = """when,color,a,batch,y
2024-01-01,red,0.0,p,1.0
2024-01-02,red,1.0,q,2.0
2024-01-03,red,,q,2.5
"""
FURTHER = """when,color,a,batch,y
2024-01-05,red,2.0,r,3.0
2024-01-06,blue,3.0,s,
2024-01-07,blue,0.4,p,4.5
2024-01-08,blue,1.1,q,2.5
"""
SMOOTH = ("--kernel", "rbf(2)", "--noise", "norm(0, 1)", "--tuning", "none", "--missing", "drop")


@pytest.fixture
def messy(tmp_path):
    """Two files with texts, dates and missing values, and the same rows in one file."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "1.csv").write_text(MESSY)
    (tmp_path / "parts" / "2.csv").write_text(FURTHER)
    (tmp_path / "all.csv").write_text(MESSY + FURTHER.partition("\n")[2])
    return tmp_path


@pytest.mark.parametrize("group", [False, True])
def test_messy_files_are_fitted_as_one_file_is(run, messy, group):
    more = ("--group", "batch", "--inputs", "a,when") if group else ("--inputs", "when,color,a")
    models = []
    for data, name in (("all.csv", "one.wk"), ("parts/*.csv", "many.wk")):
        code, text = run("fit", messy / data, "-t", "y", *more, *SMOOTH, "-o", messy / name)
        assert code == 0, text
        assert "2 of 7 rows are not used: a value is missing" in text
        assert "3 groups of replicates" in text or not group
        models.append(load(messy / name))
    one, many = models
    assert many.columns_ == one.columns_
    assert list(many.feature_names_in_) == list(one.feature_names_in_)
    query = np.random.default_rng(0).uniform(0, 3, (5, len(one.feature_names_in_)))
    found, expected = (model.posterior_.mean_and_epistemic(query) for model in (many, one))
    for values, same in zip(found, expected, strict=True):
        np.testing.assert_allclose(values, same, rtol=1e-9)


def test_what_is_wrong_in_one_of_the_files_is_one_line(run, messy):
    pattern, refuse = messy / "parts" / "*.csv", SMOOTH[:-2]
    code, text = run("fit", pattern, "-t", "y", "--inputs", "a", *refuse, "-o", messy / "m.wk")
    assert code == 1
    assert "1.csv, row 4, column 'a': the cell is empty" in text
    assert "--missing drop" in text
    (messy / "parts" / "2.csv").write_text(FURTHER.replace("2024-01-07", "yesterday"))
    code, text = run("fit", pattern, "-t", "y", "--inputs", "when", *SMOOTH, "-o", messy / "m.wk")
    assert code == 1
    assert "2.csv, row 4, column 'when': 'yesterday' is not a date" in text
    (messy / "parts" / "2.csv").write_text(FURTHER.replace("0.4", "high"))
    code, text = run("fit", pattern, "-t", "y", "--inputs", "a", *SMOOTH, "-o", messy / "m.wk")
    assert code == 1
    assert "2.csv, row 4, column 'a': 'high' is not a number" in text
    assert not (messy / "m.wk").exists()


def test_the_workers_of_a_scheduler_predict_the_files(run, messy):
    distributed = pytest.importorskip("distributed")
    new, model = messy / "parts" / "*.csv", messy / "m.wk"
    code, text = run("fit", messy / "all.csv", "-t", "y", *SMOOTH, "--inputs", "when,color,a", "-o", model)
    assert code == 0, text
    code, text = run("predict", model, new, "--missing", "drop", "-o", messy / "here")
    assert code == 0, text
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        more = ("--scheduler", cluster.scheduler_address)
        code, text = run("predict", model, new, "--missing", "drop", "-o", messy / "there", *more)
        assert code == 0, text
        assert "1 of 7 rows are left out: a value is missing" in text
        code, text = run("predict", model, new, "-o", messy / "refused", *more)
        assert code == 1
        assert "1.csv, row 4, column 'a': the cell is empty" in text
        code, text = run(
            "fit", new, "-t", "y", *SMOOTH, "--inputs", "when,color,a", "-o", messy / "w.wk", *more
        )
        assert code == 0, text
        assert load(messy / "w.wk").columns_ == load(model).columns_
    for name in ("1.csv", "2.csv"):
        assert (messy / "there" / name).read_bytes() == (messy / "here" / name).read_bytes()
    code, text = run("predict", model, "-", "--scheduler", "tcp://127.0.0.1:1")
    assert code == 2
    assert "--scheduler needs files" in text
