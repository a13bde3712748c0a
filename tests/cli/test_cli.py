"""The command line: the whole job, and every mistake in one line that says what to change."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
from rich.console import Console

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.cli import console, main, options
from wienerkernel.io.store import load, save
from wienerkernel.palette import CAUSES

COMMANDS = [
    "fit",
    "predict",
    "compare",
    "report",
    "forecast",
    "plan",
    "explore",
    "demo",
    "paper",
    "safe-optimization",
    "price",
]


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["wienerkernel", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        captured = capsys.readouterr()
        if isinstance(code, str):  # the interpreter prints it and exits with 1
            return 1, captured.out, captured.err + code + "\n"
        return code or 0, captured.out, captured.err

    return call


@pytest.fixture
def fails(run):
    """Run a command that must fail with one line, and give that line."""

    def call(*arguments, expected=1):
        code, out, err = run(*arguments)
        assert code == expected
        assert out == ""
        lines = err.splitlines()
        assert len(lines) == 1, err
        assert lines[0].startswith("wienerkernel: ")
        return lines[0]

    return call


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-2, 2, size=(2, 30)).round(3)
    y = np.sin(a) + 0.5 * b + 0.1 * rng.gamma(2.0, size=30)
    path = tmp_path / "data.csv"
    rows = [f"{p},{q},{r:.5f},run {k}" for k, (p, q, r) in enumerate(zip(a, b, y, strict=True))]
    path.write_text("a,b,y,note\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A saved model of one input, named x."""
    x = np.linspace(-2, 2, 12)
    fitted = WienerKernelRegressor(RBF(1.0), noise="gamma(2, scale=0.1)", tuning=None).fit(
        x[:, None], np.sin(x)
    )
    fitted.feature_names_in_ = np.array(["x"], dtype=object)
    path = tmp_path_factory.mktemp("model") / "model.wk"
    save(fitted, path)
    return path


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("name,x\nfirst,-1.5\nsecond,0.25\nfar,9\n")
    return path


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


# ---- fit


def test_fit_tells_what_it_found_and_saves_the_model(data, run, tmp_path):
    out = tmp_path / "model.wk"
    code, shown, said = run("fit", data, "--target", "y", "--inputs", "a,b", "--noise", "gamma", "-o", out)
    assert code == 0, said
    for word in (
        "30 samples of y against a, b",
        "kernel",
        "RBF",
        "gamma(",
        "aleatoric",
        *(words for cause, words in CAUSES.items() if cause not in ("input", "computational")),
        "log score",
        "coverage",
        "90% intervals",
    ):
        assert word in shown
    assert f"wrote {out}" in said
    fitted = load(out)
    assert fitted.feature_names_in_.tolist() == ["a", "b"]
    assert fitted.target_names_in_.tolist() == ["y"]
    assert fitted.noise == "gamma"


def test_fit_prints_the_numbers_of_the_model(data, run, tmp_path):
    _, shown, _ = run(
        "fit", data, "--target", "y", "--inputs", "a,b", "--kernel", "2*rbf(0.7)", "--noise", "norm(0, 0.2)", "--tuning", "none",
        "-o", tmp_path / "model.wk",
    )  # fmt: skip
    X = np.loadtxt(data, delimiter=",", skiprows=1, usecols=(0, 1))
    y = np.loadtxt(data, delimiter=",", skiprows=1, usecols=2)
    expected = WienerKernelRegressor(2.0 * RBF(0.7), noise="norm(0, 0.2)", tuning=None).fit(X, y)
    assert load(tmp_path / "model.wk").kernel_ == expected.kernel_
    scores, parts = expected.score_report(), expected.uncertainty(X)
    assert f"log score  {scores.log_score.mean():.4f}" in shown
    assert f"CRPS       {scores.crps.mean():.4g}" in shown
    assert f"RMSE       {np.sqrt(np.mean(expected.loo().residual ** 2)):.4g}; R^2 " in shown
    assert f"{scores.coverage(0.9):.1%} of samples in their 90% intervals" in shown
    assert f"{np.sqrt(parts.model.mean()):.4g}" in shown
    assert f"{parts.aleatoric.mean() / parts.total.mean():.0%}" in shown


def test_a_kernel_without_numbers_gets_a_variance_to_tune(data, run, tmp_path):
    code, _, said = run(
        "fit", data, "--target", "y", "--inputs", "a", "--kernel", "matern52", "-o", tmp_path / "a.wk"
    )
    assert code == 0, said
    assert load(tmp_path / "a.wk").kernel_.names == ("k1.value", "k2.length_scale")
    run("fit", data, "--target", "y", "--inputs", "a", "--kernel", "matern52", "--noise", "norm(0, 1)", "--tuning", "none",
        "-o", tmp_path / "b.wk")  # fmt: skip
    assert load(tmp_path / "b.wk").kernel_.names == ("length_scale",)


def test_all_other_columns_are_the_inputs_by_default(run, tmp_path):
    (tmp_path / "d.csv").write_text("b,y,a\n" + "".join(f"{k},{k % 3},{k**2}\n" for k in range(8)))
    code, _, said = run(
        "fit", tmp_path / "d.csv", "--target", "y", "--tuning", "none", "-o", tmp_path / "m.wk"
    )
    assert code == 0, said
    assert load(tmp_path / "m.wk").feature_names_in_.tolist() == ["b", "a"]


def test_parquet_is_fitted_like_csv(run, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x = np.linspace(0, 1, 9)
    parquet.write_table(pyarrow.table({"x": x, "y": x**2}), tmp_path / "d.parquet")
    (tmp_path / "d.csv").write_text("x,y\n" + "".join(f"{a!r},{a**2!r}\n" for a in x.tolist()))
    for name in ("d.parquet", "d.csv"):
        run("fit", tmp_path / name, "--target", "y", "--tuning", "none", "-o", tmp_path / f"{name}.wk")
    one, other = (load(tmp_path / f"{name}.wk") for name in ("d.parquet", "d.csv"))
    np.testing.assert_array_equal(one.posterior_.smoother.dual, other.posterior_.smoother.dual)


def test_data_come_from_standard_input(run, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("x,y\n0,1\n1,2\n2,2\n"))
    code, _, said = run("fit", "-", "--target", "y", "--tuning", "none", "-o", tmp_path / "m.wk")
    assert code == 0, said


def test_warnings_are_notes_in_one_line(run, tmp_path):
    (tmp_path / "d.csv").write_text("x,y\n0,1\n1,1\n2,1\n3,1\n")
    code, shown, said = run("fit", tmp_path / "d.csv", "--target", "y", "-o", tmp_path / "m.wk")
    assert code == 0
    notes = [line for line in said.splitlines() if line.startswith("note: ")]
    assert notes
    assert "tuning" in notes[0]
    assert "Warning" not in said + shown


@pytest.mark.parametrize("noise", ["residuals", "poisson(0.3)", "t(5, scale=0.1)"])
def test_every_kind_of_noise_can_be_fitted(noise, data, run, tmp_path):
    code, shown, said = run(
        "fit", data, "--target", "y", "--inputs", "a,b", "--noise", noise, "-o", tmp_path / "m.wk"
    )
    assert code == 0, said
    assert "log score" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "z", "--inputs", "a"], "there is no column 'z'; the columns are a, b, y, note"),
        (["--target", "y", "--inputs", "a,c"], "there is no column 'c'; the columns are a, b, y, note"),
        (["--target", "y", "--inputs", "a", "--kernel", "rbf([1, 2])", "--tuning", "none"], "length_scale has 2 entries"),
        (["--target", "y", "--inputs", "a", "-o", "/no/folder/m.wk"], "there is no folder /no/folder"),
    ],
)  # fmt: skip
def test_mistakes_of_data_and_model_in_fit_are_one_line(options, message, data, fails, tmp_path):
    out = [] if "-o" in options else ["-o", tmp_path / "m.wk"]
    assert message in fails("fit", data, *options, *out)
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--inputs", "a,y"], "the target 'y' is also among the inputs"),
        (["--inputs", "a,a"], "names a column twice"),
        (["--noise", "gama"], "unknown law 'gama'; did you mean gamma"),
        (["--noise", "gamma(0.25"], "noise 'gamma(0.25'"),
        (["--noise", "poisson"], "continuous family"),
        (["--noise", "cauchy(0, 1)"], "finite variance"),
        (["--noise", "gamma", "--tuning", "none"], "has unknown parameters"),
        (["--kernel", "gauss"], "unknown kernel 'gauss'; known are"),
        (["--kernel", "rbf("], "column 4: '(' was never closed"),
        (["--ridge", "0"], "ridge must be a positive number"),
        (["--ridge", "-1e3"], "ridge must be a positive number"),
    ],
)
def test_options_of_fit_that_no_data_could_make_right_are_wrong_usage(
    options, message, data, fails, tmp_path
):
    command = ["fit", data, "--target", "y", *options, "-o", tmp_path / "m.wk"]
    assert message in fails(*command, expected=2)
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize("several", [["-t", "y,z"], ["-t", "y", "-t", "z"], ["-t", "z", "--target", "y"]])
def test_targets_and_inputs_are_in_one_option_or_in_several(several, run, tmp_path):
    rows = np.random.default_rng(0).normal(size=(12, 4))
    np.savetxt(tmp_path / "d.csv", rows, delimiter=",", header="a,b,y,z", comments="")
    inputs = ["--inputs", "b", "--inputs", "a"]
    code, shown, said = run("fit", tmp_path / "d.csv", *several, *inputs, *QUICK, "-o", tmp_path / "m.wk")
    assert code == 0, said
    assert "12 samples of " + ("z, y" if several[1] == "z" else "y, z") + " against b, a" in shown
    assert load(tmp_path / "m.wk").feature_names_in_.tolist() == ["b", "a"]


def test_hints_about_inputs_are_given_for_columns_only(fails, tmp_path):
    for content in ("x,z,y\n", "x,z,y\n1,1,2\n"):
        (tmp_path / "d.csv").write_text(content)
        assert "--inputs" not in fails("fit", tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "m.wk")
    (tmp_path / "d.csv").write_text(
        '"a,""b""",it\'s,k g,y\n' + "".join(f"{k},3{k}.1.2024,{k},0\n" for k in range(3))
    )
    hint = "write dates as 2024-12-31; choose the input columns"
    line = fails("fit", tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "m.wk")
    quoted = '"a,""b"""'
    assert line.endswith(f"{hint}, --inputs '{quoted}, k g'")
    names = ",".join(f"k{i}" for i in range(21))
    (tmp_path / "d.csv").write_text(f"when,{names},y\n31.1.2024{',1' * 22}\n30.1.2024{',2' * 22}\n")
    line = fails("fit", tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "m.wk")
    assert line.endswith(f"{hint} with --inputs")


def test_columns_that_tell_nothing_are_left_out_unless_they_are_chosen(data, run, fails, tmp_path):
    rows = data.read_text().splitlines()
    full = ["unit,empty,one," + rows[0]] + [f"A,,1,{row}" for row in rows[1:]]
    data.write_text("\n".join(full))
    code, shown, said = run("fit", data, "-t", "y", *QUICK, "-o", tmp_path / "m.wk")
    assert code == 0, said
    assert shown.startswith("30 samples of y against a, b\n")
    for name, reason in (
        ("empty", "it has no value in 30 rows"),
        ("unit", "it is the same in all rows"),
        ("one", "it is the same in all rows"),
        ("note", "its texts are mostly different"),
    ):
        assert f"note: column '{name}' is not used as an input: {reason}\n" in said
    command = ["fit", data, "-t", "y", *QUICK, "-o", tmp_path / "n.wk", "--inputs"]
    assert "has the text 'A' in all rows" in fails(*command, "a,unit")
    assert "row 2, column 'empty': the cell is empty" in fails(*command, "a,empty")
    assert "30 different texts in 30 rows, such as 'run 0': too many" in fails(*command, "a,note")
    assert "against a, one\n" in run(*command, "a,one")[1]


def test_copies_of_rows_and_identifiers_are_told(run, tmp_path):
    x = np.arange(1.0, 13.0) ** 2
    once = np.column_stack([x, 1e17 * x, np.sin(x)])
    for rows, told in ((np.tile(once, (2, 1)), True), (once, False)):
        np.savetxt(tmp_path / "d.csv", rows, "%.17g", ",", header="x,id,y", comments="")
        said = run("fit", tmp_path / "d.csv", "-t", "y", *QUICK, "-o", tmp_path / "m.wk", "--force")[2]
        assert ("note: 12 of 24 rows are copies of others: remove those" in said) == told
        assert "note: column 'id': huge integers, rounded to 16 digits. Leave out identifiers" in said
        assert "column 'x'" not in said


def test_a_target_that_does_not_vary_has_its_own_verdict(run, tmp_path):
    rows = [f"{k},{k * k},5" for k in range(12)]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    shown = run("fit", tmp_path / "d.csv", "-t", "y", "--noise", "norm", "-o", tmp_path / "m.wk")[1]
    assert shown.endswith("verdict\n  y is the same in all rows, so there is nothing to learn.\n")
    assert "  a            0%\n  b            0%\n" in shown


def test_what_inputs_that_vary_together_share_is_told(run, tmp_path):
    rng = np.random.default_rng(0)
    for together in (1.0, 0.0):
        a = rng.normal(size=200)
        b = together * a + (1.1 - together) * rng.normal(size=200)
        y = a + b + 0.1 * rng.normal(size=200)
        np.savetxt(tmp_path / "d.csv", np.column_stack([a, b, y]), delimiter=",", header="a,b,y", comments="")
        command = [
            "fit",
            tmp_path / "d.csv",
            "-t",
            "y",
            "--noise",
            "norm",
            "-o",
            tmp_path / "m.wk",
            "--force",
        ]
        shares = json.loads(run(*command, "--json")[1])["targets"][0]["relevance"]
        shown = run(*command)[1]
        assert ("of inputs that vary together" in shown) == bool(together)
        if together:
            assert f"{1 - sum(shares.values()):>4.0%}  of inputs that vary together" in shown


def test_an_interrupt_has_an_exit_code_and_no_traceback(run, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("wienerkernel.cli.app", interrupted)
    assert run("fit") == (130, "", "")


def test_a_folder_that_permits_no_files_is_told_before_the_fit(data, fails, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    line = fails("fit", data, "-t", "y", "-o", tmp_path / "m.wk")
    assert line.endswith(f"cannot write {tmp_path / 'm.wk'}: new files are not permitted in {tmp_path}")


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_commands_without_the_option_do_not_propose_to_drop_rows(command, model, fails, tmp_path):
    names = list(load(model).feature_names_in_)
    (tmp_path / "d.csv").write_text(",".join([*names, "y"]) + "\n" + "," * len(names) + "1\n")
    save(load(model), tmp_path / "other.wk")
    options = ["--candidates", tmp_path / "d.csv"]
    if command == "compare":
        options = [tmp_path / "other.wk", "--data", tmp_path / "d.csv"]
    assert fails(command, model, *options).endswith("the cell is empty; every row needs a value here")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("x y\n1 2\n", "the columns are x y; columns are separated by commas, semicolons or tabs"),
        ("x,y\n", "there are no rows"),
        ("x,y\n1,2\n", "at least two samples are needed"),
        ("x,y\n1,2\n2,abc\n", "d.csv, row 3, column 'y': 'abc' is not a number"),
        ("x,y\n1,2\n2,\n", "row 3, column 'y': the cell is empty"),
        ("x,y\n1,2\nnan,2\n", "row 3, column 'x': nan is not a finite number"),
        ("x,y\n1,2\n1e308,2\n", "row 3, column 'x': 1e308 is too large to be squared; rescale the column"),
        ("x,y\n1,2\n2,-1e200\n", "row 3, column 'y': -1e200 is too large to be squared; rescale the column"),
        ("x,y\n1,2\n2,1e999\n", "row 3, column 'y': 1e999 is not a finite number"),
        ("y\n1\n2\n", "no column besides 'y'"),
        ("1,2\n3,4\n", "first row must hold the column names"),
    ],
)
def test_mistakes_in_the_data_are_one_line(content, message, fails, tmp_path):
    (tmp_path / "d.csv").write_text(content)
    assert message in fails("fit", tmp_path / "d.csv", "--target", "y", "-o", tmp_path / "m.wk")
    assert not (tmp_path / "m.wk").exists()


def test_files_that_are_not_there_are_named(fails, tmp_path, new):
    assert "none.csv: No such file" in fails(
        "fit", tmp_path / "none.csv", "--target", "y", "-o", tmp_path / "m.wk"
    )
    for command in (
        ["predict", tmp_path / "none.wk", new],
        ["report", tmp_path / "none.wk", "-o", tmp_path / "r.html"],
    ):
        assert "none.wk: No such file" in fails(*command)


def test_existing_files_are_kept_unless_forced(data, fails, run, tmp_path, model, new):
    out = tmp_path / "out"
    out.write_text("precious")
    fit = ["fit", data, "--target", "y", "--inputs", "a", "--tuning", "none", "-o", out]
    for command in (fit, ["predict", model, new, "-o", out], ["report", model, "-o", out]):
        assert "exists already" in fails(*command)
        assert out.read_text() == "precious"
    assert run(*fit, "--force")[0] == 0
    assert load(out).n_features_in_ == 1


# ---- noise levels, noise scales and transforms


@pytest.fixture(scope="module")
def skewed(tmp_path_factory):
    """A table of positive responses with a scale per sample, and a model fitted to it with noise="auto"."""
    rng = np.random.default_rng(1)
    x, s = np.linspace(0, 5, 40).round(3), np.tile([0.5, 1.0, 2.0, 1.5], 10)
    y = np.exp(np.sin(x) + 0.3 * s * rng.normal(size=40)).round(5)
    folder = tmp_path_factory.mktemp("skewed")
    np.savetxt(folder / "d.csv", np.column_stack([x, y, s]), "%.17g", ",", header="x,y,s", comments="")
    return folder / "d.csv", x[:, None], y, s


@pytest.fixture(scope="module")
def auto(skewed, tmp_path_factory):
    """A saved model with a transform and a level."""
    _, X, _, _ = skewed
    rng = np.random.default_rng(2)
    y = np.exp(np.sin(X[:, 0]) + 0.05 * np.exp(X[:, 0] / 2) * rng.normal(size=40))
    fitted = WienerKernelRegressor(noise="auto").fit(X, y)
    assert fitted.posterior_.level is not None
    path = tmp_path_factory.mktemp("auto") / "auto.wk"
    save(fitted, path)
    return path


def test_fit_says_what_auto_found(skewed, run, tmp_path):
    data, X, y, _ = skewed
    code, shown, said = run(
        "fit", data, "--target", "y", "--inputs", "x", "--noise", "auto", "-o", tmp_path / "m.wk"
    )
    assert code == 0, said
    found = WienerKernelRegressor(noise="auto").fit(X, y).tuning_result_
    assert f"  transform  box-cox, exponent {round(found.transform.lam, 3):g}" in shown
    assert f"(log posterior {found.transform_gain:+.1f} compared with none)" in shown
    assert f"(log evidence {found.level_evidence:+.1f}" in shown
    assert "normal: no other shape" in shown or "compared with normal noise" in shown
    assert shown.count("  level      ") == 1
    assert "averaged over the data; on the transformed scale\n" in shown
    fitted = load(tmp_path / "m.wk")
    np.testing.assert_allclose(fitted.posterior_.transform.lam, found.transform.lam, rtol=1e-12)


def test_row_numbers_without_a_name_are_not_an_input(run, data, tmp_path):
    """As in exports of pandas and R; the columns that are named are used."""
    rows = [line.rpartition(",")[0] for line in data.read_text().splitlines()]
    numbered = tmp_path / "numbered.csv"
    numbered.write_text("\n".join(f"{k or ''},{row}" for k, row in enumerate(rows)) + "\n")
    code, out, err = run("fit", numbered, "--target", "y", "--tuning", "none", "-o", tmp_path / "model.wk")
    assert code == 0, err
    assert "30 samples of y against a, b" in out
    assert "the column without a name is not used" in err


def test_fit_says_between_which_levels_the_noise_varies(run, tmp_path):
    rng = np.random.default_rng(0)
    x = np.linspace(0, 5, 60)
    y = np.sin(x) + 0.1 * np.exp(0.5 * x) * rng.normal(size=60)
    np.savetxt(tmp_path / "d.csv", np.column_stack([x, y]), "%.17g", ",", header="x,y", comments="")
    command = ["fit", tmp_path / "d.csv", "--target", "y", "-o", tmp_path / "m.wk", "--force"]
    _, shown, _ = run(*command, "--noise", "norm", "--noise-level", "input")
    model = WienerKernelRegressor(noise_level="input", random_state=0).fit(x[:, None], y)
    low, high = np.quantile(model.predict_noise_scale(x[:, None]), [0, 1])
    assert f"  level      varies with x between {low:.3g} and {high:.3g} times the noise" in shown
    assert "transform" not in shown
    assert "level" not in run(*command, "--noise", "norm")[1]
    assert "level" not in run(*command, "--tuning", "loo")[1]
    bare = run(*command)[1]
    assert "transform  none: only positive observations" in bare
    assert bare == run(*command, "--noise", "auto")[1]
    assert load(tmp_path / "m.wk").noise == "auto"


def test_fit_says_why_a_level_is_constant(run, tmp_path):
    rng = np.random.default_rng(0)
    x = np.linspace(0, 5, 60)
    y = np.sin(x) + 0.3 * rng.normal(size=60)
    for n, message in (
        (60, "constant: a varying one has lower evidence (log evidence -"),
        (10, "too few samples"),
    ):
        np.savetxt(tmp_path / "d.csv", np.column_stack([x, y])[:n], "%.17g", ",", header="x,y", comments="")
        command = ["fit", tmp_path / "d.csv", "--target", "y", "-o", tmp_path / "m.wk", "--force"]
        assert message in run(*command, "--noise", "auto")[1]


def test_a_level_that_hardly_varies_is_not_said_to_vary(run, tmp_path):
    x = np.linspace(0, 1, 40)
    y = 10 + x + 0.1 * np.random.default_rng(2).normal(size=40)
    np.savetxt(tmp_path / "d.csv", np.column_stack([x, y]), "%.17g", ",", header="x,y", comments="")
    shown = run("fit", tmp_path / "d.csv", "-t", "y", "-o", tmp_path / "m.wk")[1]
    level = (
        WienerKernelRegressor(noise="auto", random_state=0).fit(x[:, None], y).predict_noise_scale(x[:, None])
    )
    assert 1 < level.max() / level.min() < 1.05
    assert "  level      practically constant (log evidence -" in shown


def test_a_column_can_scale_the_noise_and_is_not_an_input_then(skewed, run, tmp_path):
    data, X, y, s = skewed
    command = [
        "fit",
        data,
        "--target",
        "y",
        "--noise-scale",
        "s",
        "--transform",
        "log",
        "--kernel",
        "2*rbf(0.7)",
    ]
    code, _, said = run(*command, "--noise", "norm(0, 0.3)", "--tuning", "none", "-o", tmp_path / "m.wk")
    assert code == 0, said
    model = load(tmp_path / "m.wk")
    assert model.feature_names_in_.tolist() == ["x"]
    expected = WienerKernelRegressor(2.0 * RBF(0.7), noise="norm(0, 0.3)", transform="log", tuning=None).fit(
        X, y, s
    )
    np.testing.assert_array_equal(model.posterior_.smoother.dual, expected.posterior_.smoother.dual)
    code, shown, said = run("predict", tmp_path / "m.wk", data, "--noise-scale", "s", "--interval", "0.8")
    assert code == 0
    assert said == "note: std_noise, std_model, std_aleatoric are on the transformed scale (log)\n"
    law, parts = expected.predict_distribution(X, "observation", noise_scale=s), expected.uncertainty(X, s)
    for name, values in {
        "mean": law.mean(),
        "lower": law.ppf(0.1),
        "upper": law.ppf(0.9),
        "std_aleatoric": np.sqrt(parts.aleatoric),
    }.items():
        np.testing.assert_allclose([float(row[name]) for row in rows_of(shown)], values, rtol=1e-12)


def test_all_commands_take_a_model_with_a_transform_and_a_level(auto, new, run, tmp_path):
    law = load(auto).predict_distribution([[-1.5], [0.25], [9.0]], "observation")
    code, shown, said = run("predict", auto, new)
    assert code == 0, said
    np.testing.assert_allclose([float(row["mean"]) for row in rows_of(shown)], law.mean(), rtol=1e-12)
    assert "on the transformed scale (box-cox" in said
    code, shown, said = run("plan", auto, "--at", "1", "--std", "0.1")
    assert code == 0, said
    assert "note: all standard deviations are on the transformed scale (box-cox" in said
    assert "One sample helps most at x = " in shown
    code, _, said = run("report", auto, "-o", tmp_path / "r.html")
    assert code == 0, said
    page = (tmp_path / "r.html").read_text()
    assert "standard deviations are on the transformed scale (box-cox" in page
    assert '"labels":["y, transformed"]' in page


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--noise-scale", "q"], 1, "there is no column 'q'; the columns are a, b, y, note"),
        (["--noise-scale", "b"], 1, "--noise-scale needs positive numbers, but column 'b' has -"),
        (["--noise-scale", "y"], 2, "must be other columns than the target"),
        (["--transform", "log"], 1, "--transform log needs positive numbers, but column 'y' has -"),
        (["--transform", "box-cox"], 1, "--transform box-cox needs positive numbers, but column 'y' has -"),
        (["--transform", "box-cox", "--tuning", "none"], 2, "need estimation: remove --tuning none"),
        (["--noise-level", "input", "--tuning", "none"], 2, "need estimation: remove --tuning none"),
        (["--noise", "auto", "--tuning", "none"], 2, "estimated by likelihood: remove --tuning none"),
        (["--noise", "auto", "--tuning", "loo"], 2, "estimated by likelihood: remove --tuning loo"),
    ],
)
def test_mistakes_about_levels_scales_and_transforms_are_one_line(
    options, code, message, data, fails, tmp_path
):
    command = ["fit", data, "--target", "y", "--inputs", "a", *options, "-o", tmp_path / "m.wk"]
    assert message in fails(*command, expected=code)
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("q", "there is no column 'q'"),
        ("s", "n.csv: --noise-scale needs positive numbers, but column 's' has 0"),
    ],
)
def test_mistakes_about_noise_scales_in_predict_are_one_line(column, message, model, fails, tmp_path):
    (tmp_path / "n.csv").write_text("x,s\n1,1\n2,0\n")
    command = ["predict", model, tmp_path / "n.csv", "-o", tmp_path / "p.csv"]
    assert message in fails(*command, "--noise-scale", column)
    assert [path.name for path in tmp_path.iterdir()] == ["n.csv"]


# ---- predict


def test_predict_keeps_all_columns_and_appends_its_own(model, new, run):
    code, shown, said = run("predict", model, new, "--interval", "0.8")
    assert (code, said) == (0, "")
    rows = rows_of(shown)
    assert list(rows[0]) == ["name", "x", "mean", "lower", "upper", "std_noise", "std_model", "std_aleatoric"]
    assert [(row["name"], row["x"]) for row in rows] == [("first", "-1.5"), ("second", "0.25"), ("far", "9")]
    fitted = load(model)
    del fitted.feature_names_in_
    X = [[-1.5], [0.25], [9.0]]
    law, parts = fitted.predict_distribution(X, "observation"), fitted.uncertainty(X)
    for name, expected in {
        "mean": law.mean(),
        "lower": law.ppf(0.1),
        "upper": law.ppf(0.9),
        "std_noise": np.sqrt(parts.noise),
        "std_model": np.sqrt(parts.model),
        "std_aleatoric": np.sqrt(parts.aleatoric),
    }.items():
        np.testing.assert_allclose([float(row[name]) for row in rows], expected, rtol=1e-12)


@pytest.mark.parametrize("of", ["estimate", "function"])
def test_predict_of_the_function_has_no_noise_in_its_mean(of, model, new, run):
    rows = rows_of(run("predict", model, new, "--of", of)[1])
    fitted = load(model)
    expected = fitted.posterior_.mean(np.array([[-1.5], [0.25], [9.0]]))
    np.testing.assert_allclose([float(row["mean"]) for row in rows], expected, atol=1e-14)


def test_predict_reads_and_writes_pipes_and_files(model, new, run, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(new.read_text()))
    piped = run("predict", model, "-", "-o", "-")[1]
    code, shown, said = run("predict", model, new, "-o", tmp_path / "p.csv")
    assert (code, shown) == (0, "")
    assert "3 rows" in said
    assert (tmp_path / "p.csv").read_text() == piped


def test_predict_writes_parquet(model, new, run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert run("predict", model, new, "-o", tmp_path / "p.parquet")[0] == 0
    table = parquet.read_table(tmp_path / "p.parquet")
    assert table.column_names[2:] == ["mean", "lower", "upper", "std_noise", "std_model", "std_aleatoric"]
    assert run("predict", model, tmp_path / "p.parquet", "--prefix", "again_", "--inputs", "mean")[0] == 0


def test_predict_streams_long_tables_in_chunks(model, run, tmp_path, monkeypatch):
    sizes = []
    original = WienerKernelRegressor.predict_distribution

    def recorded(self, X, of, **options):
        sizes.append(len(X))
        return original(self, X, of, **options)

    monkeypatch.setattr(WienerKernelRegressor, "predict_distribution", recorded)
    x = np.linspace(-2, 2, 5000)
    (tmp_path / "long.csv").write_text("x\n" + "\n".join(map(str, x)))
    code, shown, _ = run("predict", model, tmp_path / "long.csv", "--of", "estimate")
    assert code == 0
    assert len(shown.splitlines()) == 5001
    assert max(sizes) <= 2048


def test_progress_is_shown_on_a_terminal_only(model, new, run, monkeypatch):
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(console, "MESSAGES", terminal)
    run("predict", model, new)
    assert "predicted 3 rows" in terminal.file.getvalue()


def test_a_model_without_names_takes_x_or_what_it_is_told(run, fails, tmp_path, new):
    save(
        WienerKernelRegressor(RBF(1.0), noise="norm(0, 1)", tuning=None).fit([[0.0], [1.0]], [0.0, 1.0]),
        tmp_path / "m.wk",
    )
    assert run("predict", tmp_path / "m.wk", new)[0] == 0
    (tmp_path / "z.csv").write_text("z\n1\n")
    assert "there is no column 'x'" in fails("predict", tmp_path / "m.wk", tmp_path / "z.csv")
    assert run("predict", tmp_path / "m.wk", tmp_path / "z.csv", "--inputs", "z")[0] == 0


def test_several_outputs_have_their_numbers_in_the_names(run, tmp_path, new):
    y = np.array([[0.0, 1.0], [1.0, 5.0]])
    save(
        WienerKernelRegressor(RBF(1.0), noise="norm(0, 1)", tuning=None).fit([[0.0], [1.0]], y),
        tmp_path / "m.wk",
    )
    rows = rows_of(run("predict", tmp_path / "m.wk", new)[1])
    assert list(rows[0])[2:8] == ["mean_1", "mean_2", "lower_1", "lower_2", "upper_1", "upper_2"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("z\n1\n", [], "there is no column 'x', an input of the model; the columns are z"),
        ("x\n1\noops\n", [], "n.csv, row 3, column 'x': 'oops' is not a number"),
        ("x\n", [], "there are no rows"),
        ("x\n1\n-1e200\n", [], "n.csv, row 3, column 'x': -1e200 is too large to be squared"),
        ("x,mean\n1,2\n", [], "already has a column 'mean': choose another name with --prefix"),
        ("x,y\n1,2\n", ["--inputs", "x,y"], "--inputs must name 1 columns (x)"),
    ],
)
def test_mistakes_in_predict_are_one_line(content, options, message, model, fails, tmp_path):
    (tmp_path / "n.csv").write_text(content)
    assert message in fails("predict", model, tmp_path / "n.csv", "-o", tmp_path / "p.csv", *options)
    assert [path.name for path in tmp_path.iterdir()] == ["n.csv"]


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        ("95", "--interval must lie strictly between 0 and 1, got 95: did you mean 0.95?"),
        ("99.9", "did you mean 0.999?"),
        ("1", "--interval must lie strictly between 0 and 1, got 1"),
        ("0", "got 0"),
        ("-0.5", "got -0.5"),
        ("1e3", "got 1000"),
    ],
)
def test_an_interval_that_is_no_probability_is_wrong_usage(interval, message, model, new, fails):
    assert fails("predict", model, new, "--interval", interval, expected=2).endswith(message)


def test_something_that_is_no_model_is_refused(new, fails):
    assert "not a saved model" in fails("predict", new, new)


# ---- plan


def test_plan_tells_the_number_of_samples_in_words(model, run):
    code, shown, _ = run("plan", model, "--at", "x=0.7", "--std", "0.03")
    assert code == 0
    fitted = load(model)
    del fitted.feature_names_in_
    needed = fitted.samples_needed([[0.7]], std=0.03)
    assert f"{int(needed.number[0])} more samples there reduce it to {needed.after[0]:.4g}" in shown
    assert "One sample helps most at x = " in shown


def test_plan_tells_of_one_sample_in_the_singular(model, run):
    fitted = load(model)
    del fitted.feature_names_in_
    before = fitted.samples_needed([[0.7]], std=0.03).before[0]
    assert (
        "1 more sample there reduces it to"
        in run("plan", model, "--at", "0.7", "--std", str(0.999 * before))[1]
    )


def test_plan_says_when_nothing_is_needed(model, run):
    assert "no more samples are needed" in run("plan", model, "--at", "0.7", "--std", "10")[1]


def test_plan_without_a_place_proposes_places_only(model, run):
    code, shown, _ = run("plan", model, "--samples", "3", "--goal", "worst")
    assert code == 0
    assert shown.count(" at x = ") == 3


def test_plan_spreads_its_candidates_over_several_inputs(run, tmp_path):
    X = np.random.default_rng(0).uniform(size=(300, 2))
    save(
        WienerKernelRegressor(RBF(0.3), noise="norm(0, 0.1)", tuning=None).fit(X, X[:, 0]), tmp_path / "m.wk"
    )
    code, shown, said = run("plan", tmp_path / "m.wk", "--at", "x2=0.5", "--at", "x1=0.1", "--std", "0.05")
    assert code == 0, said
    assert "At x1 = 0.1, x2 = 0.5" in shown
    assert run("plan", tmp_path / "m.wk", "--at", "x1=0.1,x2=0.5", "--std", "0.05")[1] == shown


@pytest.fixture(scope="module")
def two_targets(tmp_path_factory):
    """Data with two targets, and a folder with two files: one has a model each, the other a common model."""
    x = np.linspace(-2, 2, 12)[:, None]
    noise = np.random.default_rng(0).normal(size=(12, 2))
    Y = np.exp(np.hstack([np.sin(x), 5 + x]) + [0.1, 0.5] * noise)
    folder = tmp_path_factory.mktemp("two")
    for file, transform in (("each", "log"), ("common", None)):
        model = WienerKernelRegressor(1.0 * RBF(1.0), transform=transform).fit(x, Y)
        model.target_names_in_ = np.array(["a", "b"], dtype=object)
        save(model, folder / f"{file}.wk")
    return x, Y, folder


def test_plan_has_a_part_for_each_target_with_a_model_of_its_own(two_targets, run, tmp_path):
    x, Y, folder = two_targets
    parts = []
    for k in range(2):
        save(WienerKernelRegressor(1.0 * RBF(1.0), transform="log").fit(x, Y[:, k]), tmp_path / f"{k}.wk")
        parts.append(run("plan", tmp_path / f"{k}.wk", "--at", "0.7", "--std", "0.05")[1])
    assert parts[0] != parts[1]
    code, shown, said = run("plan", folder / "each.wk", "--at", "0.7", "--std", "0.05")
    assert code == 0, said
    assert shown == f"a:\n{parts[0]}b:\n{parts[1]}"
    assert "note: all standard deviations of b are on the transformed scale (log)\n" in said
    assert run("plan", folder / "each.wk", "--at", "0.7", "--std", "0.05", "--target", "b")[1] == parts[1]


def test_plan_for_one_of_the_targets_of_a_common_model(two_targets, run):
    _, _, folder = two_targets
    model = load(folder / "common.wk")
    stds = model.uncertainty([[0.7]]).epistemic[0] ** 0.5
    assert stds[1] > 2 * stds[0]
    for name, std in zip("ab", stds, strict=True):
        shown = run("plan", folder / "common.wk", "--at", "0.7", "--std", "0.05", "-t", name)[1]
        assert f"the standard deviation of the function is {std:.4g} " in shown


@pytest.mark.parametrize("file", ["each", "common"])
def test_plan_names_the_targets_if_one_is_unknown(file, two_targets, fails):
    said = fails("plan", two_targets[2] / f"{file}.wk", "--target", "z", expected=2)
    assert "--target z: the model has no such target, only a, b" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--at", "z=1", "--std", "1"], "--at needs a value for every input of the model, x=...; got 'z=1'"),
        (["--at", "x=one", "--std", "1"], "'one' is not a number"),
        (["--at", "x=1_0", "--std", "1"], "'1_0' is not a number"),
        (["--at", "x=inf", "--std", "1"], "'inf' is not a number"),
        (["--at", "", "--std", "1"], "missing x"),
        (["--at", "x=1"], "--at and --std belong together"),
        (["--at", "x=1", "--std", "0"], "std must be positive"),
    ],
)
def test_mistakes_in_plan_are_one_line(options, message, model, fails):
    assert message in fails("plan", model, *options, expected=2)


# ---- the rest


def test_report_and_explore_hand_the_model_over(model, run, tmp_path, monkeypatch):
    calls = []
    report, explore = (
        types.ModuleType("wienerkernel.evaluation.report"),
        types.ModuleType("wienerkernel.evaluation.explore"),
    )
    report.write_report = lambda fitted, path, **options: calls.append((type(fitted), path, options))
    explore.serve = lambda fitted=None, **options: calls.append((type(fitted), options))
    monkeypatch.setitem(sys.modules, "wienerkernel.evaluation.report", report)
    monkeypatch.setitem(sys.modules, "wienerkernel.evaluation.explore", explore)
    assert run("report", model, "-o", tmp_path / "r.html", "--title", "Mine")[0] == 0
    assert run("explore", model, "--port", "5007", "--no-browser")[0] == 0
    assert run("explore", "--no-browser")[0] == 0
    assert calls[0] == (
        WienerKernelRegressor,
        tmp_path / "r.html",
        {"title": "Mine", "target_name": None, "source": model.name},
    )
    assert calls[1] == (WienerKernelRegressor, {"port": 5007, "open_browser": False})
    assert calls[2][0] is type(None)


def test_demo_does_the_whole_job_and_tells_the_commands(run, tmp_path):
    out = tmp_path / "demo"
    code, shown, said = run("demo", "--out", out)
    assert code == 0, said
    assert {path.name for path in out.iterdir()} == {
        "data.csv",
        "new.csv",
        "model.wk",
        "predictions.csv",
        "report.html",
    }
    for command in ("fit", "predict", "plan", "report"):
        assert f"$ wienerkernel {command} {out}" in said
    assert "coverage" in shown
    told = next(line for line in said.splitlines() if line.startswith("$ wienerkernel fit"))
    before = (out / "model.wk").read_bytes()
    assert run(*told.split()[2:], "--force")[0] == 0
    assert (out / "model.wk").read_bytes() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, run):
    code, shown, _ = run(command, "--help")
    assert code == 0
    assert f"Example: wienerkernel {command}" in " ".join(shown.split())


def test_wrong_usage_has_exit_code_2(run, data):
    for arguments in (
        ["fit", data],
        ["fit", data, "--target", "y", "--tuning", "luck"],
        ["nonsense"],
        ["predict"],
    ):
        code, _, said = run(*arguments)
        assert code == 2
        assert "Traceback" not in said


@pytest.mark.parametrize("text", ["1_000", "٣", "nan", "inf", "1e999", "0x1", "one", ""])
@pytest.mark.parametrize(
    "command",
    [
        ["fit", "data.csv", "--target", "y", "--ridge"],
        ["fit", "data.csv", "--target", "y", "--restarts"],
        ["fit", "data.csv", "--target", "y", "--seed"],
        ["predict", "model.wk", "new.csv", "--interval"],
        ["plan", "model.wk", "--samples"],
        ["plan", "model.wk", "--at", "1", "--std"],
        ["explore", "--port"],
        ["demo", "--seed"],
        ["paper", "--seed"],
        ["safe-optimization", "--runs"],
        ["safe-optimization", "--steps"],
    ],
    ids=lambda command: f"{command[0]} {command[-1]}",
)
def test_numbers_in_options_follow_the_rule_for_all_texts(command, text, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # were the text accepted, some of these would write files
    code, shown, said = run(*command, text)
    assert (code, shown) == (2, "")
    assert command[-1] in said
    assert "number" in said or "integer" in said


def test_integers_in_options_have_bounds(run, model):
    for arguments in (
        ["plan", model, "--samples", "0"],
        ["plan", model, "--samples", "101"],
        ["plan", model, "--samples", "1.5"],
        ["explore", "--port", "65536"],
        ["safe-optimization", "--runs", "0"],
        ["price", "--repeats", "0"],
        ["price", "--sizes", "many"],
        ["demo", "--seed", "-1"],
    ):
        code, _, said = run(*arguments)
        assert code == 2
        assert "is not an integer" in said or "needs integers" in said


def test_the_version_is_told(run):
    assert run("--version")[1].startswith("wienerkernel 0")


def test_the_help_loads_neither_numpy_nor_scipy():
    code = "import sys, wienerkernel.cli; print([m for m in ('numpy', 'scipy', 'sklearn', 'matplotlib', 'pyarrow') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "[]", result.stderr


def test_a_reader_that_has_enough_is_no_error(model, tmp_path):
    (tmp_path / "long.csv").write_text("x\n" + "0.5\n" * 5000)
    code = f"import sys; sys.argv = ['wienerkernel', 'predict', {str(model)!r}, {str(tmp_path / 'long.csv')!r}]; from wienerkernel.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline().startswith(b"x,mean")
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_missing_package_of_an_extra_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "bokeh.application", None)
    monkeypatch.setattr(sys, "argv", ["wienerkernel", "explore", "--no-browser"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert str(stop.value) == "wienerkernel: explore needs Bokeh: pip install 'wienerkernel[explore]'"


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A table of 300 samples of two inputs."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("large") / "large.csv"
    X = rng.uniform(0, 6, (300, 2))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + rng.gamma(0.5, 0.3, 300)
    rows = "\n".join(f"{a},{b},{c}" for a, b, c in np.column_stack([X, y]))
    path.write_text(f"a,b,y\n{rows}\n", encoding="utf-8")
    return path


def test_scores_of_a_random_selection_say_so(large, run, monkeypatch, tmp_path):
    monkeypatch.setattr("wienerkernel.evaluation.report.scores.MAX_SCORED", 50)
    options = "--approximation", "neighbors", "--noise", "norm", "-o", tmp_path / "model.wk"
    assert "leave-one-out scores of 50 random samples\n" in run("fit", large, "-t", "y", *options)[1]


def test_messages_name_columns_as_options_do(fails, tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(',"a, C",b,y\n1,2,3,one\n2,3,5,two\n', encoding="utf-8")
    assert fails("fit", path, "-t", "y", "--inputs", "z").endswith(
        """there is no column 'z'; the columns are "a, C", b, y"""
    )
    path.write_text("a,b,y\n2,3,one\n3,5,two\n", encoding="utf-8")
    assert fails("fit", path, "-t", "y").endswith("column 'y': 'one' is not a number")  # not an input


def test_few_samples_do_not_tell_whether_intervals_are_right(run, tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("x,y\n1,2\n2,3.5\n3,4\n", encoding="utf-8")
    shown = run("fit", path, "-t", "y", "--noise", "norm", "-o", tmp_path / "m.wk")[1]
    assert "Too few samples to check the intervals" in shown
    assert "\n  noise      norm(" in shown
    assert "\n  aleatoric  0." in shown  # aligned


@pytest.mark.parametrize("approximation", ["neighbors", "features"])
def test_approximate_models_are_fitted_predicted_and_reported(approximation, large, run, fails, tmp_path):
    model, predictions = tmp_path / "model.wk", tmp_path / "predictions.csv"
    _, out, _ = run("fit", large, "--target", "y", "--approximation", approximation, "-o", model)
    assert f"approximate: {approximation.capitalize()}(" in out
    assert "computational" in out
    assert "random samples" not in out  # all are scored
    assert run("predict", model, large, "-o", predictions)[0] == 0
    assert "std_computational" in predictions.read_text().splitlines()[0]
    assert run("report", model, "-o", tmp_path / "report.html")[0] == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The solution is approximate" in page
    assert "Scores are omitted" not in page
    assert "needs an exact model" in fails("plan", model)
    assert "needs an exact model" in fails("explore", model, "--no-browser")


def test_auto_is_exact_for_few_inputs_and_normal_noise_is_assumed_for_many(large, run, tmp_path, monkeypatch):
    _, out, _ = run("fit", large, "--target", "y", "-o", tmp_path / "exact.wk")
    assert "approximate" not in out
    for module in ("approximation", "condition"):
        monkeypatch.setattr(f"wienerkernel.scale.{module}.EXACT_PLACES", 100)
    _, out, messages = run("fit", large, "--target", "y", "-o", tmp_path / "model.wk")
    assert "solution   approximate" in out
    assert "more than 100 distinct rows" in messages


# ---- tables as they come


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """A table with row numbers, gaps, texts, dates, a name with a comma, replicates and two targets."""
    rng, n = np.random.default_rng(0), 40
    temperature, color = rng.uniform(10, 40, n).round(1), rng.choice(["red", "green", "blue"], n)
    path = tmp_path_factory.mktemp("messy") / "messy.csv"
    lines = [',"temp, C",color,day,batch,y,z']
    for k in range(n):
        y = np.sin(temperature[k] / 5) + (color[k] == "red") + 0.1 * rng.normal()
        t, c = "" if k == 3 else temperature[k], "NA" if k == 9 else color[k]
        lines.append(f"{k},{t},{c},2024-01-{1 + k % 28:02d},{k // 2},{y:.4f},{y + rng.normal():.4f}")
    path.write_text("\n".join(lines) + "\n")
    return path


QUICK = ["--noise", "norm(0, 0.3)", "--tuning", "none"]


def test_one_missing_value_is_refused_with_the_remedy_or_dropped_and_counted(messy, run, fails, tmp_path):
    command = ["fit", messy, "-t", "y", "--inputs", '"temp, C",color,day', *QUICK, "-o", tmp_path / "m.wk"]
    said = fails(*command)
    assert "row 5, column 'temp, C': the cell is empty" in said
    assert said.endswith("--missing drop skips rows without a value")
    code, shown, said = run(*command, "--missing", "drop")
    assert code == 0, said
    assert "note: 2 of 40 rows are not used: a value is missing" in said
    assert "note: column 'color': text, one-hot (3 values, 3 inputs): blue, green, red" in said
    assert "note: column 'day': dates, as days since 2024-01-01" in said
    assert shown.startswith(
        '38 samples of y against "temp, C", color=blue, color=green, color=red, day (days since'
    )
    assert load(tmp_path / "m.wk").posterior_.n_samples == 38


def test_the_same_columns_are_made_in_predict_and_plan(messy, run, fails, tmp_path):
    model, names = tmp_path / "m.wk", '"temp, C",color,day'
    run("fit", messy, "-t", "y", "--inputs", names, "--missing", "drop", *QUICK, "-o", model)
    (tmp_path / "new.csv").write_text('color,day,"temp, C"\nred,2024-02-01,20\nblue,2023-12-31,30.5\n')
    code, shown, said = run("predict", model, tmp_path / "new.csv")
    assert code == 0, said
    fitted = load(model)
    expected = fitted.posterior_.mean(np.array([[20, 0, 0, 1, 31.0], [30.5, 1, 0, 0, -1.0]]))
    np.testing.assert_allclose([float(row["mean"]) for row in rows_of(shown)], expected)
    code, shown, said = run("predict", model, messy, "--missing", "drop")
    assert (code, len(rows_of(shown))) == (0, 38)
    assert "note: 2 of 40 rows are left out: a value is missing" in said
    assert "--missing drop skips" in fails("predict", model, messy, "-o", tmp_path / "p.csv")
    (tmp_path / "pink.csv").write_text('color,day,"temp, C"\npink,2024-02-01,20\n')
    message = "row 2, column 'color': 'pink' is not among the values that the model knows: blue, green, red"
    assert message in fails("predict", model, tmp_path / "pink.csv", "-o", tmp_path / "p.csv")
    at = ["--at", '"temp, C=20",color=red', "--at", "day=2024-01-20", "--std", "0.1"]
    code, shown, said = run("plan", model, *at)
    assert code == 0, said
    assert "At temp, C = 20, color = red, day = 2024-01-20 the standard deviation" in shown
    pattern = r"helps most at temp, C = \d+\.\d, color = (red|green|blue), day = 2024-01-\d\d \("
    assert re.search(pattern, shown), "with as many digits as the data have"
    assert "pink" in fails(
        "plan", model, "--at", '"temp, C=20",color=pink,day=2024-01-20', "--std", "1", expected=2
    )
    code, shown, said = run("plan", model, "--candidates", tmp_path / "new.csv")
    assert code == 0, said
    assert "At the 2 inputs of" in shown
    assert ("day = 2024-02-01" in shown) != ("day = 2023-12-31" in shown)
    (tmp_path / "other.csv").write_text("x\n1\n")
    assert "there is no column 'temp, C'" in run("plan", model, "--candidates", tmp_path / "other.csv")[2]


def test_several_targets_have_a_summary_and_predictions_each(messy, run, tmp_path):
    command = [
        "fit",
        messy,
        "-t",
        "y,z",
        "--inputs",
        "batch",
        "--missing",
        "drop",
        "-o",
        tmp_path / "m.wk",
        "--force",
    ]
    for noise in ("norm", "auto"):
        code, shown, said = run(*command, "--noise", noise)
        assert code == 0, said
        assert shown.count("leave-one-out scores") == shown.count("verdict") == 2
        assert "samples of y, z against batch" in shown
        code, shown, said = run("predict", tmp_path / "m.wk", messy, "--missing", "drop")
        assert code == 0, said
        assert {"mean_y", "mean_z", "lower_y", "std_noise_z"} <= set(rows_of(shown)[0])


def test_replicates_of_a_group_have_the_same_input(messy, run, fails, tmp_path):
    command = [
        "fit",
        messy,
        "-t",
        "y",
        "--inputs",
        '"temp, C"',
        "--group",
        "batch",
        *QUICK,
        "--missing",
        "drop",
    ]
    code, _, said = run(*command, "-o", tmp_path / "m.wk")
    assert code == 0, said
    model = load(tmp_path / "m.wk")
    assert "20 groups of replicates: inputs are averaged in each, which changes temp, C by at most" in said
    samples, rows = (
        model.posterior_.smoother.samples,
        [row for row in rows_of(messy.read_text()) if row["temp, C"]],
    )
    batch, temperature = (np.array([float(row[name]) for row in rows]) for name in ("batch", "temp, C"))
    expected = [temperature[batch == each].mean() for each in batch]
    np.testing.assert_allclose(samples.places[samples.index, 0], expected)
    assert samples.n_places <= 20
    bad = [
        "fit",
        messy,
        "-t",
        "y",
        "--inputs",
        "color",
        "--group",
        "batch",
        "--missing",
        "drop",
        "-o",
        tmp_path / "b.wk",
    ]
    assert "several values in one group" in " ".join(run(*bad)[2].split())


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_columns_without_a_name_and_row_numbers_are_told(name, run, tmp_path):
    rows = "".join(f"{k},{k + 1},{k % 3},{k**0.5}\n" for k in range(8))
    (tmp_path / "d.csv").write_text(f"{name},id,a,y\n{rows}")
    code, shown, said = run("fit", tmp_path / "d.csv", "-t", "y", *QUICK, "-o", tmp_path / "m.wk")
    assert code == 0, said
    assert "samples of y against id, a" in shown
    assert "is not used as an input: name it in the file to use it" in said
    assert "note: column 'id': these look like row numbers; unless they were measured, leave them out" in said


def test_columns_without_a_name_at_the_end_are_left_out(run, tmp_path):
    (tmp_path / "d.csv").write_text("x,y,,\n" + "".join(f"{k * k},{k % 3},,\n" for k in range(8)))
    code, shown, said = run("fit", tmp_path / "d.csv", "-t", "y", *QUICK, "-o", tmp_path / "m.wk")
    assert code == 0, said
    assert "8 samples of y against x\n" in shown
    assert "columns without a name are not used as inputs" in said
    shown = run("predict", tmp_path / "m.wk", tmp_path / "d.csv", "--prefix", "p_")[1]
    assert rows_of(shown)[0]["Unnamed: 3"] == ""


def test_the_summary_is_json_if_asked_for(data, run, tmp_path):
    command = ["fit", data, "-t", "y", "--inputs", "a,b", *QUICK]
    code, shown, said = run(*command, "--json", "-o", tmp_path / "m.wk")
    assert code == 0, said
    found = json.loads(shown)
    model, (of_y,) = load(tmp_path / "m.wk"), found["targets"]
    report = model.score_report()
    assert (found["samples"], found["inputs"], of_y["target"]) == (30, ["a", "b"], "y")
    assert of_y["scores"]["log_score"] == pytest.approx(report.log_score.mean())
    assert of_y["scores"]["coverage"]["0.9"]["fraction"] == pytest.approx(report.coverage(0.9))
    assert sum(part["share"] for part in of_y["uncertainty"].values()) == pytest.approx(1)
    text = run(*command, "-o", tmp_path / "m.wk", "--force")[1]
    assert f"  {of_y['verdict']}\n" in text
    for name, value in of_y["relevance"].items():
        assert f"  {name:<10} {value:>4.0%}" in text


@pytest.mark.parametrize(
    ("std", "words"),
    [
        ("0.02", "Intervals are too narrow"),
        ("3", "Intervals are too wide"),
        ("0.2", "calibrated"),
    ],
)
def test_the_verdict_says_whether_to_trust_the_intervals(std, words, run, tmp_path):
    rng = np.random.default_rng(0)
    x = np.linspace(0, 6, 80)
    y = np.sin(x) + 0.2 * rng.normal(size=80)
    np.savetxt(tmp_path / "d.csv", np.column_stack([x, y]), "%.17g", ",", header="x,y", comments="")
    command = ["fit", tmp_path / "d.csv", "-t", "y", "--kernel", "rbf(2.0)", "--tuning", "none"]
    shown = run(*command, "--noise", f"norm(0, {std})", "-o", tmp_path / "m.wk")[1]
    assert words in shown.partition("verdict")[2]


def test_the_verdict_is_about_the_inner_intervals_too(run, tmp_path):
    x = np.linspace(0, 6, 400)
    y = np.sin(x) + np.random.default_rng(0).laplace(0, 0.2 / 2**0.5, size=400)
    np.savetxt(tmp_path / "d.csv", np.column_stack([x, y]), "%.17g", ",", header="x,y", comments="")
    command = ["fit", tmp_path / "d.csv", "-t", "y", "--kernel", "rbf(2.0)", "--tuning", "none", "--json"]
    shown = run(*command, "--noise", "norm(0, 0.2)", "-o", tmp_path / "m.wk")[1]
    found = json.loads(shown)["targets"][0]
    inner, outer = (found["scores"]["coverage"][level] for level in ("0.5", "0.9"))
    assert outer["low"] <= outer["fraction"] <= outer["high"] < 1
    assert inner["fraction"] > inner["high"]
    assert found["verdict"].startswith(
        f"50% intervals are too wide: they contain {inner['fraction']:.0%} of left-out samples, "
        f"90% intervals contain {outer['fraction']:.0%} of left-out samples, and the inputs explain"
    )


def test_a_table_of_gaps_has_no_samples(fails, model, tmp_path):
    (tmp_path / "d.csv").write_text("x,y\n,1\n,2\n")
    for command in (["fit", tmp_path / "d.csv", "-t", "y"], ["predict", model, tmp_path / "d.csv"]):
        said = fails(*command, "--missing", "drop", "-o", tmp_path / "out")
        assert "no row has a value in all columns that are used" in said


def test_names_with_commas_are_quoted():
    assert options.listed('a, "b, c" ,d') == ["a", "b, c", "d"]
    assert options.listed("b, c", ["b, c", "b"]) == ["b, c"]
    assert options.listed(" , ") == []
    with pytest.raises(options.UsageError, match="double quotes"):
        options.listed('a,"b')


# ---- compare, figures, completion


def test_models_of_different_targets_are_not_compared(run, fails, tmp_path):
    data = tmp_path / "d.csv"
    data.write_text("x,y,z\n" + "".join(f"{x},{x % 3},{x % 4}\n" for x in range(12)), encoding="utf-8")
    models = [tmp_path / f"{name}.wk" for name in ("y", "z", "y,z")]
    for model in models:
        assert run("fit", data, "-t", model.stem, "--inputs", "x", "--noise", "norm", "-o", model)[0] == 0
    for other in models[1:]:
        assert fails("compare", models[0], other, "--data", data).endswith("have different targets")
    assert fails("compare", models[0], models[2]).endswith("have different targets")


def test_compare_ranks_models_and_says_whether_the_difference_is_clear(run, fails, tmp_path):
    x = np.linspace(0, 6, 40)
    y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=40)
    models = {}
    for name, scale, targets in (
        ("good", 1.0, y),
        ("bad", 0.01, y),
        ("same", 1.0, y),
        ("other", 1.0, y + 1),
    ):
        model = WienerKernelRegressor(RBF(scale), noise="norm(0, 0.1)", tuning=None).fit(x[:, None], targets)
        models[name] = tmp_path / f"{name}.wk"
        save(model, models[name])
    code, shown, said = run("compare", models["bad"], models["good"])
    assert code == 0, said
    lines = shown.splitlines()
    assert lines[0] == (
        "40 samples, each left out in turn: total log score, higher is better, and mean CRPS, lower is better"
    )
    assert lines[2].startswith(str(models["good"]))
    assert lines[-1].startswith(f"{models['good']} predicts better than {models['bad']}: the difference is ")
    assert "No clear difference" in run("compare", models["same"], models["good"])[1]
    found = json.loads(run("compare", models["bad"], models["good"], "--json")[1])
    scores = load(models["bad"]).score_report()
    assert found[1]["model"] == str(models["bad"])
    assert found[1]["log_score"] == pytest.approx(scores.log_score.sum())
    assert found[1]["crps"] == pytest.approx(scores.crps.mean())
    assert "fitted to different samples: name a table to score them on, --data FILE" in fails(
        "compare", models["good"], models["other"]
    )
    (tmp_path / "new.csv").write_text("x,y\n0.5,0.4\n1.5,1.1\n3,0\n")
    code, shown, said = run(
        "compare", models["other"], models["good"], "--data", tmp_path / "new.csv", "--json"
    )
    assert code == 0, said
    expected = load(models["good"]).score_report([[0.5], [1.5], [3]], [0.4, 1.1, 0]).log_score.sum()
    assert json.loads(shown)[0]["log_score"] == pytest.approx(expected)
    assert "two or more" in fails("compare", models["good"], expected=2)


def test_models_of_a_transform_are_compared_on_the_scale_of_y(skewed, run, tmp_path):
    data, *_ = skewed
    names = []
    for transform in ("none", "log"):
        names.append(tmp_path / f"{transform}.wk")
        command = ["fit", data, "-t", "y", "--inputs", "x", "--noise", "norm", "--transform", transform]
        assert run(*command, "-o", names[-1])[0] == 0
    code, shown, said = run("compare", *names)
    assert code == 0, said
    assert shown.splitlines()[2].startswith(str(names[1]))


def test_fit_draws_a_figure(messy, run, fails, tmp_path):
    command = ["fit", messy, "--inputs", '"temp, C",color,day', "--missing", "drop", *QUICK, "--force"]
    for target, name in (("y", "one.png"), ("y,z", "two.svg")):
        code, _, said = run(*command, "-t", target, "-o", tmp_path / "m.wk", "--plot", tmp_path / name)
        assert code == 0, said
        assert f"wrote {tmp_path / name}" in said
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert "PNG, PDF or SVG" in fails(
        *command, "-t", "y", "-o", tmp_path / "m.wk", "--plot", "a.jpg", expected=2
    )


def test_progress_is_shown_line_by_line_where_there_is_no_terminal(data, run, tmp_path, monkeypatch):
    command = ["fit", data, "-t", "y", "--inputs", "a", "--noise", "norm", "-o", tmp_path / "m.wk", "--force"]
    assert "evaluation" not in run(*command)[2]
    said = run(*command, "--verbose")[2]
    assert re.search(r"fitting: evaluation 3, objective -?[\d.e-]+ per sample, \d+\.\d s", said)
    monkeypatch.setattr(console, "PIPED", 0.0)
    assert "fitting: evaluation 1, objective" in run(*command)[2]


def test_long_lines_are_broken_between_words_on_a_terminal_only(capsys, monkeypatch):
    line = "  noise      norm(scale=1), which has 1 word more than fits"
    console.show(line)
    assert capsys.readouterr().out == line + "\n"
    terminal = Console(file=io.StringIO(), force_terminal=True, width=40)
    monkeypatch.setattr(console, "RESULTS", terminal)
    console.show(line + "\nnext")
    assert terminal.file.getvalue().splitlines() == [
        "  noise      norm(scale=1), which has 1",
        "             word more than fits",
        "next",
    ]
    terminal.file.truncate(0)
    console.show_json(["w " * 40])
    assert json.loads(terminal.file.getvalue().strip("\0")) == ["w " * 40]


def test_slow_work_is_told_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(console, "PIPED", 0.0)
    with console.working("scoring"):
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join()
    assert capsys.readouterr().err == "scoring ...\n"


def test_shells_complete_commands_and_options():
    code = "import sys; sys.argv = ['wienerkernel']; from wienerkernel.cli import app; app(prog_name='wienerkernel')"
    for words, expected in (
        ("wienerkernel co", ["compare"]),
        ("wienerkernel fit --noise-", ["--noise-level", "--noise-scale"]),
    ):
        environment = {
            **os.environ,
            "_WIENERKERNEL_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
        )
        assert result.stdout.split() == expected, result.stderr


def test_parameters_at_a_bound_have_the_names_of_columns(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = "".join(f"{a},{b},{np.sin(6 * a):.4f}\n" for a, b in rng.uniform(size=(20, 2)))
    (tmp_path / "d.csv").write_text(f"time,dose,y\n{rows}")
    run("fit", tmp_path / "d.csv", "-t", "y", "--noise", "norm", "-o", tmp_path / "m.wk")
    found = load(tmp_path / "m.wk").tuning_result_.parameters
    assert {"kernel.k2.length_scale[time]", "kernel.k2.length_scale[dose]"} <= set(found)
