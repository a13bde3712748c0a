"""The report of a dynamic system: the forecast section, names of inputs and outputs, and systems without a forecast."""

import re

import numpy as np
import pytest

from wienerkernel import RBF, Dynamics, WienerKernelRegressor
from wienerkernel.evaluation.report import write_report
from wienerkernel.evaluation.report.rollout import _ticks, forecast_section, model_names

HOSTILE = "<script>alert(1)</script>"
MODEL = WienerKernelRegressor(2.0 * RBF(3.0), noise="norm(0, 0.05)", tuning=None)


def driven(**options):
    """Two states and an input, with a model each."""
    rng = np.random.default_rng(0)
    X, U = np.zeros((30, 2)), rng.uniform(-1, 1, (30, 1))
    for k in range(29):
        x, v = X[k]
        X[k + 1] = x + 0.3 * v, 0.8 * v + 0.4 * U[k, 0] + 0.05 * rng.standard_normal()
    return Dynamics.from_trajectories(X, U, model=MODEL, horizon=4, state_names=["p", HOSTILE], **options)


def test_the_numbers_are_those_of_the_forecast(tmp_path):
    system = driven(lags=2)
    run = system.forecast(n_paths=1000, random_state=0)
    text = write_report(system, tmp_path / "report.html").read_text(encoding="utf-8")
    section = re.search(r'<section class="forecast">.*?</section>', text, re.DOTALL)[0]
    assert HOSTILE not in text
    assert section.count("<svg") == 2
    assert section.count("<polygon") == 6  # three causes for each state
    rows = re.findall(r'<th scope="row">(\d)</th><td>([^<]*)</td><td>([^<]*) … ([^<]*)</td>', section)
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4] * 2
    expected = run.quantiles([0.5, 0.05, 0.95])[1:].transpose(1, 0, 2).reshape(8, 3)
    found = [[float(cell.replace("−", "-")) for cell in row[1:]] for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
    shares = [float(share) for share in re.findall(r"<b>(\d+)\u00a0%</b>", section)[:3]]
    exact = [run.causes.shares[name][-1, 0] for name in ("noise", "model", "process")]
    np.testing.assert_allclose(shares, 100 * np.array(exact) / sum(exact), atol=0.51)
    assert text.index('class="forecast"') < text.index('id="model-0"') < text.index('id="model-1"')


def test_names_of_inputs_and_outputs():
    inputs, outputs = model_names(driven(lags=(2, 1)))
    assert inputs == ["p", HOSTILE, "p, 1 step back", f"{HOSTILE}, 1 step back", "u1"]
    assert outputs == [["next p"], [f"next {HOSTILE}"]]
    assert model_names(driven(learns="increment"))[1][0] == ["change of p"]
    system = driven(lags=(2, 1))
    system.state_names = ["p [m]", "v"]
    assert model_names(system)[0] == ["p [m]", "v", "p, 1 step back [m]", "v, 1 step back", "u1"]
    system.input_names = ["force"]
    assert model_names(system)[0][-1] == "force"


def test_warnings_are_shown_and_a_system_without_trajectories_has_no_forecast(tmp_path):
    x = 1.2 ** np.arange(25.0)
    system = Dynamics.from_trajectories(
        x, model=WienerKernelRegressor(RBF(0.3), tuning=None, noise="norm(0, 0.1)")
    )
    assert 'class="notice">at step' in forecast_section(system)
    plain = Dynamics(system.models[0])
    assert forecast_section(plain) == ""
    text = write_report(plain, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "next x1" in text
    assert 'class="forecast"' not in text


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 10.0), (-45.0, 15.0), (1e-9, 3e-9), (5.0, 5.0), (-1e300, 1e300)]
)
def test_ticks_are_round_and_inside(low, high):
    ticks = _ticks(low, high, 6)
    assert len(ticks) <= 8
    span = (high - low) or 1.0
    assert np.all((ticks >= low - 1e-6 * span) & (ticks <= high + 1e-6 * span))
