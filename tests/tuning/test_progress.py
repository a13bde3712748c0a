"""Progress of searches, for whoever watches."""

import numpy as np
import pytest

from wienerkernel import RBF, WienerKernelRegressor
from wienerkernel.tuning.progress import Reporter, observed, report

X = np.linspace(0, 6, 25)[:, None]
Y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=25)


@pytest.mark.parametrize("options", [{}, {"noise": "auto"}, {"noise": "norm", "tuning": "loo"}])
def test_every_evaluation_of_an_objective_is_seen(options):
    seen = []
    with observed(seen.append):
        model = WienerKernelRegressor(**options).fit(X, Y)
    assert len(seen) > 0.5 * model.tuning_result_.n_evaluations, "values alone are not reported"
    assert np.all(np.isfinite(seen))
    if not options:
        np.testing.assert_allclose(max(seen), model.tuning_result_.value / 25, rtol=0.05)


def test_watching_ends_and_changes_nothing():
    seen = []
    with observed(seen.append):
        one = WienerKernelRegressor().fit(X, Y)
    n = len(seen)
    other = WienerKernelRegressor().fit(X, Y)
    report(0.0)
    assert len(seen) == n
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_lines_come_every_few_seconds():
    lines, times = [], iter([0.0, 1.0, 2.5, 3.0, 4.9, 5.0])
    reporter = Reporter(lines.append, 2.5, lambda: next(times))
    for value in range(5):
        reporter(-float(value))
    assert lines == [
        "evaluation 2, objective -1 per sample, 2.5 s",
        "evaluation 5, objective -4 per sample, 5.0 s",
    ]


def test_verbose_writes_to_stderr(capsys):
    WienerKernelRegressor(verbose=True).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("wienerkernel: fitted after ")
    WienerKernelRegressor(RBF(1.0), tuning=None).fit(X, Y)
    assert capsys.readouterr() == ("", "")
