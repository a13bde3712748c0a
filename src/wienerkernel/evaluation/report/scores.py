"""Leave-one-out scores and diagnostics of a report, on so many samples that it does not take long."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import FloatArray, IntArray
from ...posterior import Posterior
from ..diagnostics import ScoreReport, leave_one_out_law

__all__ = ["score_contents", "thinned"]

MAX_SCORED = 500
MAX_WEIGHTS = 10**6
"""Weights in all scored laws together, beyond 100 laws."""
MAX_PLACES = 8000
"""Places up to which the matrices of the leave-one-out weights fit into ordinary memory."""
MAX_PAIRS = 250
BAND = 0.9


def score_contents(posterior: Posterior) -> dict[str, Any]:
    """Compute what a report shows of the leave-one-out scores.

    Parameters
    ----------
    posterior : Posterior

    Returns
    -------
    dict
        ``missing``, a sentence, where there are no scores; else ``scored``, ``summary``, ``pit``, ``calibration``
        and ``pairs``.
    """
    samples = posterior.smoother.samples
    if samples.n_places > MAX_PLACES:
        return {"missing": f"Scores are left out: the data have more than {MAX_PLACES} different places."}
    try:
        report = _score(posterior)
    except (TypeError, ValueError) as error:
        return {"missing": f"Scores are left out: {error}."}
    levels = np.linspace(0.0, 1.0, 41)
    low, high = _band(report.pit.size, levels)
    theory, residuals = report.quantile_pairs()
    kept = np.unique(np.linspace(0, len(theory) - 1, MAX_PAIRS).round().astype(int))
    return {
        "scored": report.pit.shape[0],
        "samples": len(samples.index),
        "summary": report.summary(),
        "pit": _histogram(report.pit),
        "calibration": {
            "level": levels,
            "part": report.calibration(levels),
            "low": low / report.pit.size,
            "high": high / report.pit.size,
        },
        "pairs": {"noise": theory[kept], "residual": residuals[kept]},
    }


def thinned(n: int, limit: int) -> IntArray:
    """Numbers of at most ``limit`` of n samples, the same ones each time.

    Parameters
    ----------
    n, limit : int

    Returns
    -------
    ndarray of shape (min(n, limit),)
        In increasing order.
    """
    if n <= limit:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, limit, replace=False))


def _score(posterior: Posterior) -> ScoreReport:
    """Scores as :func:`wienerkernel.evaluation.diagnostics.score_report` has them, of some of the samples."""
    n = len(posterior.smoother.samples.index)
    rows = thinned(n, min(MAX_SCORED, max(100, MAX_WEIGHTS // n)))
    return ScoreReport.of(*leave_one_out_law(posterior, rows), posterior.noise)


def _histogram(pit: FloatArray) -> dict[str, Any]:
    """Counts of the PIT, and the band in which each count lies with probability ``BAND`` if the laws are right."""
    bins = 10 if pit.size >= 50 else 5
    counts, edges = np.histogram(pit, bins=bins, range=(0.0, 1.0))
    low, high = _band(pit.size, np.array([1 / bins]))
    return {"edges": edges, "counts": counts, "low": low[0], "high": high[0], "expected": pit.size / bins}


def _band(n: int, probability: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Quantiles of the number of successes in n trials."""
    from scipy.stats import binom

    tail = 0.5 - BAND / 2
    return np.asarray(binom.ppf(tail, n, probability)), np.asarray(binom.ppf(1 - tail, n, probability))
