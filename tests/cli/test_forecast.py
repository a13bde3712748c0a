"""The command forecast: the table, the figure, several trajectories and inputs, and mistakes in one line."""

import csv
import sys

import numpy as np
import pytest

from wienerkernel import Dynamics, WienerKernelRegressor
from wienerkernel.cli import main

pytest.importorskip("typer")


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command: exit code, standard output, standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["wienerkernel", "forecast", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        code, captured = ended.value.code, capsys.readouterr()
        return (
            (1, captured.out, captured.err + code)
            if isinstance(code, str)
            else (code or 0, captured.out, captured.err)
        )

    return call


@pytest.fixture
def series(tmp_path):
    rng = np.random.default_rng(0)
    x = np.zeros(60)
    for k in range(1, 59):
        x[k + 1] = 1.5 * x[k] - 0.8 * x[k - 1] + 0.3 * rng.standard_normal()
    path = tmp_path / "series.csv"
    path.write_text("year,level\n" + "\n".join(f"{1900 + k},{v:.6f}" for k, v in enumerate(x)) + "\n")
    return path, x.round(6)


@pytest.fixture
def driven(tmp_path):
    rng = np.random.default_rng(1)
    lines = ["run,p,v,u"]
    for name in ("first", "second"):
        p, v = 0.0, 0.0
        for _ in range(25):
            u = rng.uniform(-1, 1)
            lines.append(f"{name},{p:.5f},{v:.5f},{u:.5f}")
            p, v = p + 0.3 * v, 0.8 * v + 0.4 * u + 0.02 * rng.standard_normal()
    path = tmp_path / "driven.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_series(run, series, tmp_path):
    path, x = series
    out, figure = tmp_path / "out.csv", tmp_path / "out.png"
    code, shown, said = run(
        path,
        "--target",
        "level",
        "--time",
        "year",
        "--lags",
        2,
        "--horizon",
        4,
        "--paths",
        300,
        "-o",
        out,
        "--figure",
        figure,
    )
    assert code == 0, said
    table = rows(out)
    assert [row["year"] for row in table] == ["1960.0", "1961.0", "1962.0", "1963.0"]
    system = Dynamics.from_trajectories(x, lags=2, model=WienerKernelRegressor())
    expected = system.rollout(x[-2:], steps=4, n_paths=300, random_state=0)
    np.testing.assert_allclose(
        [float(row["upper"]) for row in table], expected.quantiles([0.95])[1:, 0, 0], rtol=1e-6
    )
    np.testing.assert_allclose(
        [float(row["std_process"]) ** 2 for row in table],
        expected.causes.shares["process"][1:, 0],
        rtol=1e-6,
        atol=1e-9,
    )
    assert "variance of level at step 4: model" in shown
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert run(path, "--target", "level", "-o", out)[0] == 1  # exists


def test_lags_are_chosen(run, series):
    code, shown, said = run(series[0], "--target", "level", "--lags", "1,2", "--horizon", 3, "--paths", 50)
    assert code == 0, said
    assert len(shown.splitlines()) == 4


def test_trajectories_and_inputs(run, driven, tmp_path):
    future = tmp_path / "future.csv"
    future.write_text("u\n0.5\n-0.5\n")
    out = tmp_path / "out.csv"
    arguments = [
        driven,
        "--target",
        "p,v",
        "--inputs",
        "u",
        "--trajectory",
        "run",
        "--learns",
        "increment",
        "--horizon",
        3,
    ]
    code, _, said = run(*arguments, "--paths", 100, "--future", future, "-o", out)
    assert code == 0, said
    table = rows(out)
    assert [(row["step"], row["state"]) for row in table[:3]] == [("1", "p"), ("1", "v"), ("2", "p")]
    held = run(*arguments, "--paths", 100)
    assert held[0] == 0
    assert len(held[1].splitlines()) == 7


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--target", "depth"], 1, "no column 'depth'"),
        (["--target", "level", "--horizon", 0], 2, "integer of at least 1"),
        (["--target", "level", "--lags", "0"], 2, "--lags must be positive integers"),
        (["--target", "level", "--interval", 95], 2, "--interval must lie"),
        (["--target", "level", "--lags", 80], 1, "need at least 81"),
        (["--target", "level", "--future", "x.csv"], 2, "--future needs --inputs"),
        (["--target", "level", "--time", "level"], 2, "named twice"),
        (["--target", "year", "--time", "level"], 1, "must increase in equal steps"),
        (["--target", "level", "--trajectory", "run"], 1, "no column 'run'"),
        (["--target", "level", "--figure", "figure.docx", "--paths", 10], 1, "PNG, PDF or SVG"),
    ],
)
def test_mistakes(run, series, arguments, code, message):
    found, _, said = run(series[0], *arguments)
    assert found == code
    assert message in " ".join(said.split())
