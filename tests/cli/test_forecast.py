"""The command forecast: the table, the figure, several trajectories and inputs, and mistakes in one line."""

import csv
import sys
from calendar import monthrange
from datetime import datetime

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
    out, figure, saved = tmp_path / "out.csv", tmp_path / "out.png", tmp_path / "system.wk"
    code, shown, said = run(
        path,
        "-t",
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
        "--save",
        saved,
    )
    assert code == 0, said
    table = rows(out)
    assert [row["year"] for row in table] == ["1960", "1961", "1962", "1963"]
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
    assert "variance of level at step 4: noise in the data" in shown
    assert figure.read_bytes().startswith(b"\x89PNG")
    again = Dynamics.load(saved).forecast(n_paths=300, random_state=0)
    np.testing.assert_array_equal(again.states, expected.states)
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
        "-t",
        "p",
        "-t",
        "v",
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


def test_trajectories_that_start_at_other_times_have_one_season(run, tmp_path):
    path, rng = tmp_path / "parts.csv", np.random.default_rng(0)
    months = np.concatenate([np.arange(20), np.arange(27, 45)])
    level = np.sin(2 * np.pi * months / 12) + 0.01 * rng.standard_normal(38)
    labels = np.repeat(["a", "b"], [20, 18])
    path.write_text(
        "part,month,level\n"
        + "".join(f"{a},{b},{c}\n" for a, b, c in zip(labels, months, level, strict=True))
    )
    arguments = (path, "-t", "level", "--trajectory", "part", "--season", 12, "--horizon", 6, "--paths", 50)
    code, shown, said = run(*arguments, "--time", "month")
    assert code == 0, said
    found = [float(row["median"]) for row in csv.DictReader(shown.splitlines())]
    np.testing.assert_allclose(found, np.sin(2 * np.pi * np.arange(45, 51) / 12), atol=0.1)
    path.write_text(
        "part,month,level\n"
        + "".join(f"a,{k},{k}\n" for k in range(5))
        + "".join(f"b,{2 * k},{k}\n" for k in range(5))
    )
    code, _, said = run(*arguments, "--time", "month")
    assert code == 1
    assert "must be the same in all trajectories, but are from 1 to 2" in said


def test_a_season_and_the_report(run, tmp_path, monkeypatch):
    k = np.arange(72)
    x = np.sin(2 * np.pi * k / 12) + 0.05 * np.random.default_rng(2).standard_normal(72)
    path, saved, page = tmp_path / "months.csv", tmp_path / "months.wk", tmp_path / "report.html"
    path.write_text("level\n" + "\n".join(f"{v:.6f}" for v in x) + "\n")
    code, shown, said = run(
        path, "-t", "level", "--season", 12, "--lags", 2, "--horizon", 12, "--paths", 100, "--save", saved
    )
    assert code == 0, said
    assert Dynamics.load(saved).lags == (2, 1)  # of two waves, the earlier follows from the later one
    table = list(csv.DictReader(shown.splitlines()))
    median = np.array([float(row["median"]) for row in table])
    np.testing.assert_allclose(median, np.sin(2 * np.pi * np.arange(72, 84) / 12), atol=0.3)
    again = Dynamics.load(saved).forecast(n_paths=100, random_state=0)  # inputs of the season go on
    np.testing.assert_allclose(again.quantiles([0.5])[1:, 0, 0], median, rtol=1e-5)
    monkeypatch.setattr(sys, "argv", ["wienerkernel", "report", str(saved), "-o", str(page)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "<h2>Forecast</h2>" in page.read_text(encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["wienerkernel", "explore", str(saved), "--no-browser"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--target", "depth"], 1, "no column 'depth'"),
        (["--target", "level", "--horizon", 0], 2, "integer of at least 1"),
        (["--target", "level", "--lags", "0"], 2, "--lags must be positive integers"),
        (["--target", "level", "--interval", 95], 2, "--interval must lie"),
        (["--target", "level", "--season", 1], 2, "finite number"),
        (["--target", "level", "--lags", 80], 1, "need at least 81"),
        (["--target", "level", "--future", "x.csv"], 2, "--future needs --inputs"),
        (["--target", "level", "--time", "level"], 2, "named twice"),
        (["--target", "year", "--time", "level"], 1, "must increase in equal steps"),
        (["--target", "level", "--trajectory", "run"], 1, "no column 'run'"),
        (["--target", "level", "--figure", "figure.docx"], 2, "PNG, PDF or SVG"),
    ],
)
def test_mistakes(run, series, arguments, code, message):
    found, _, said = run(series[0], *arguments)
    assert found == code
    assert message in " ".join(said.split())


def test_times_can_be_dates(run, tmp_path):
    path, out = tmp_path / "days.csv", tmp_path / "out.csv"
    days = [f"2024-02-{day:02d},{np.sin(day):.4f}" for day in range(1, 29)]
    path.write_text("\n".join(["day,level", *days]) + "\n")
    assert run(path, "-t", "level", "--time", "day", "--horizon", 2, "--paths", 20, "-o", out)[0] == 0
    assert [row["day"] for row in rows(out)] == ["2024-02-29", "2024-03-01"]
    path.write_text("\n".join(["day,level", *days[:9], *days[12:]]) + "\n")
    code, _, said = run(path, "-t", "level", "--time", "day")
    assert code == 1
    assert "goes from 2024-02-09 to 2024-02-13 where the usual step is 1 day; without --time" in said
    path.write_text("day,level\n" + "mon,1\ntue,2\n" * 5)
    assert "has texts, but --time needs numbers, or dates" in run(path, "-t", "level", "--time", "day")[2]
    path.write_text("day,level\n" + "".join(f"2024-{k:02d},{k}\n" for k in range(1, 13)))
    assert "has texts, but --time needs numbers, or dates" in run(path, "-t", "level", "--time", "day")[2]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("2023-01-15", ["2024-12-15", "2025-01-15"]),
        ("2023-01-31", ["2024-12-31", "2025-01-31"]),
        ("2023-01-01 06:30:00", ["2024-12-01 06:30:00", "2025-01-01 06:30:00"]),
        ("2023-01-15 06:30:00+00:00", ["2024-12-15 06:30:00", "2025-01-15 06:30:00"]),
    ],
)
def test_times_can_be_months(run, tmp_path, start, expected):
    path, out = tmp_path / "months.csv", tmp_path / "out.csv"
    first, lines = datetime.fromisoformat(start), ["month,level"]
    for k in range(23):
        year, month = 2023 + k // 12, k % 12 + 1
        day = min(first.day, monthrange(year, month)[1])
        lines.append(f"{first.replace(year=year, month=month, day=day)},{np.sin(k):.4f}")
    path.write_text("\n".join(lines) + "\n")
    arguments = [path, "-t", "level", "--time", "month", "--horizon", 2, "--paths", 20]
    code, _, said = run(*arguments, "-o", out)
    assert code == 0, said
    assert [row["month"] for row in rows(out)] == expected
    path.write_text("\n".join(lines[:9] + lines[10:]) + "\n")
    assert "must increase in equal steps" in run(*arguments)[2]
