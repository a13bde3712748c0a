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
