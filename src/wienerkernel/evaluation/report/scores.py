"""Leave-one-out scores and diagnostics of a report, on a subsample where all samples would take long."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import FloatArray, IntArray
from ...posterior import Posterior
from ..diagnostics import ScoreReport, leave_one_out_law, pit_band

__all__ = ["score_contents", "thinned"]

MAX_SCORED = 500
MAX_WEIGHTS = 10**6
"""Weights of all scored laws together; 100 laws are scored in any case."""
MAX_PLACES = 8000
"""Distinct inputs up to which the matrices of leave-one-out weights fit into memory."""
MAX_PAIRS = 250


def score_contents(posterior: Posterior) -> dict[str, Any]:
    """Leave-one-out scores for a report.

    ``scored``, ``values``, ``samples``, ``summary``, ``pit``, ``calibration`` and ``pairs``; or only ``missing``, the reason why
    there are none.
    """
    samples = posterior.smoother.samples
    if samples.n_places > MAX_PLACES:
        return {"missing": f"Scores are omitted: the data have more than {MAX_PLACES} distinct inputs."}
    try:
        report = _score(posterior)
    except (TypeError, ValueError) as error:
        return {"missing": f"Scores are omitted: {error}."}
    levels = np.linspace(0.0, 1.0, 41)
    low, high = pit_band(report.pit.size, levels)
    theory, residuals = report.quantile_pairs()
    kept = np.unique(np.linspace(0, len(theory) - 1, MAX_PAIRS).round().astype(int))
    return {
        "scored": report.pit.shape[0],
        "values": report.pit.size,
        "samples": len(samples.index),
        "summary": {**report.summary(), "rmse": report.rmse},
        "pit": _histogram(report.pit),
        "calibration": {
            "level": levels,
            "fraction": report.calibration(levels),
            "low": low / report.pit.size,
            "high": high / report.pit.size,
        },
        "pairs": {"noise": theory[kept], "residual": residuals[kept]},
    }


def thinned(n: int, limit: int) -> IntArray:
    """Sorted indices of at most ``limit`` of n samples, the same ones each time."""
    if n <= limit:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, limit, replace=False))


def _score(posterior: Posterior) -> ScoreReport:
    """The scores of `score_report`, of a subsample."""
    n = len(posterior.smoother.samples.index)
    rows = thinned(n, min(MAX_SCORED, max(100, MAX_WEIGHTS // n)))
    return ScoreReport.of(*leave_one_out_law(posterior, rows), posterior.noise)


def _histogram(pit: FloatArray) -> dict[str, Any]:
    """Counts of the PIT, and the band of each count."""
    bins = 10 if pit.size >= 50 else 5
    counts, edges = np.histogram(pit, bins=bins, range=(0.0, 1.0))
    low, high = pit_band(pit.size, 1 / bins)
    return {"edges": edges, "counts": counts, "low": low, "high": high, "expected": pit.size / bins}
