"""The example of predictive control: exact margins keep the allowed rate of violations, Gaussian ones do not."""

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

pytest.importorskip("casadi")
EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_7_predictive_control.py"


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not part of the source distribution")
def test_exact_margins_keep_the_allowed_rate_of_violations():
    mpl.use("Agg")
    results = runpy.run_path(str(EXAMPLE))["results"]
    mpl.pyplot.close("all")
    true, possible = results["exact"]
    assert 0.006 < possible.min() <= possible.max() < 0.014
    assert true.max() < 0.012
    assert results["Gaussian"][1].min() > 0.025
