"""Leave-one-out scores and diagnostics of a report, on a subsample where all samples would take long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import kruskal

from ..._typing import FloatArray, IntArray
from ...losses.posterior import CoordinatePosterior
from ...scale import ApproximatePosterior, NeighborSmoother
from ..diagnostics import ScoreReport, leave_one_out_law, pit_band
from ..relevance import Variable
from .slices import AnyPosterior, observations

__all__ = ["binned", "sampled_scores", "score_contents", "scored_rows", "thinned"]

MAX_SCORED = 1000
MAX_WEIGHTS = 10**6
"""Weights of all scored laws together, unless they are normal; 100 laws are scored in any case."""
MAX_PLACES = 8000
"""Distinct inputs up to which the matrices of leave-one-out weights fit into memory."""
MAX_PAIRS = 250
MAX_ROWS = 500
"""Residuals that are drawn."""
SMALLEST_BIN, MOST_BINS = 12, 12
FEWEST = 5
"""Residuals at one value that are compared with others; below, the law of the statistic is not that of a test."""
CHANCE = 0.01
"""Probability that residuals which do not depend on something are said to do so."""


def score_contents(posterior: AnyPosterior, relevant: Sequence[Variable]) -> dict[str, Any]:
    """Leave-one-out scores for a report.

    ``scored``, ``values``, ``samples``, ``summary``, ``pit``, ``calibration``, ``pairs`` and ``residuals``, these also
    against the variables ``relevant``; or only ``missing``, the reason why there are none, and the residuals of the fit if the
    estimate is not linear in y. Scores in units of y, and R^2, are given for each output.
    """
    approximate = isinstance(posterior, ApproximatePosterior | CoordinatePosterior)
    if not approximate and posterior.smoother.samples.n_places > MAX_PLACES:
        return {"missing": f"Scores are omitted: the data have more than {MAX_PLACES} distinct inputs."}
    rows = scored_rows(posterior)
    try:
        report = sampled_scores(posterior)
    except (TypeError, ValueError) as error:
        missing: dict[str, Any] = {"missing": f"Scores are omitted: {error}."}
        if isinstance(posterior, CoordinatePosterior):  # residuals of samples that the estimate has seen
            points, observed, coordinates = _samples(posterior, rows, relevant)
            level = 1.0 if posterior.level is None else posterior.level(points)
            scale = posterior.observed.scale[rows] / level
            law = posterior.distribution(points, "observation", noise_scale=scale)
            seen = ScoreReport.of(law, observed[:, 0], posterior.noise)
            missing["residuals"] = _residuals(seen, observed, coordinates)
        return missing
    _, observed, coordinates = _samples(posterior, rows, relevant)
    levels = np.linspace(0.0, 1.0, 41)
    low, high = pit_band(report.pit.size, levels)
    theory, residuals = report.quantile_pairs()
    kept = np.unique(np.linspace(0, len(theory) - 1, MAX_PAIRS).round().astype(int))
    spread = np.var(observed, axis=0)
    squared = np.square(_columns(report.values) - _columns(report.law.mean()))
    mse = np.mean(squared, axis=0)
    explained = 1 - mse / spread if np.all(spread > 0) else np.full(len(spread), np.nan)
    by_output = {"crps": np.mean(_columns(report.crps), axis=0), "rmse": np.sqrt(mse), "r2": explained}
    return {
        "scored": report.pit.shape[0],
        "values": report.pit.size,
        "samples": posterior.n_samples,
        "summary": {**report.summary(), **by_output},
        "pit": _histogram(report.pit),
        "calibration": {
            "level": levels,
            "fraction": report.calibration(levels),
            "low": low / report.pit.size,
            "high": high / report.pit.size,
        },
        "pairs": {"noise": theory[kept], "residual": residuals[kept]},
        "residuals": _residuals(report, observed, coordinates),
    }


def _samples(
    posterior: AnyPosterior, rows: IntArray, relevant: Sequence[Variable]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inputs and observations of some samples, and their values of the relevant variables."""
    points, observed = (values[rows] for values in observations(posterior))
    if posterior.transform is not None:
        observed = posterior.transform.inverse(observed)
    return points, observed, np.column_stack([variable.coordinate(points) for variable in relevant])


def _columns(values: Any) -> FloatArray:
    return np.asarray(values).reshape(len(values), -1)


def _residuals(report: ScoreReport, observed: FloatArray, X: FloatArray) -> list[dict[str, Any]]:
    """Of each output: observations, predicted means, standardized residuals, and their bins by mean and by input."""
    # without a transform, the values are residuals and their laws have mean 0
    predicted = observed - _columns(report.values) + _columns(report.law.mean())
    shown = thinned(len(X), MAX_ROWS)
    outputs = []
    for y, mean, residual in zip(observed.T, predicted.T, _columns(report.standardized).T, strict=True):
        against = [{"x": x[shown], "bins": binned(x, residual)} for x in (mean, *X.T)]
        outputs.append({"observed": y[shown], "standardized": residual[shown], "against": against})
    return outputs


def binned(x: FloatArray, residual: FloatArray) -> dict[str, Any]:
    """Means and standard deviations of residuals in bins of x, and whether they differ by more than chance, None if they are too few.

    A bin is a value of x if there are few of them; otherwise, bins have equal numbers of residuals.
    """
    n = len(x)
    values, value = np.unique(x, return_inverse=True)
    if len(values) <= MOST_BINS and n >= 2 * len(values):
        groups = [np.flatnonzero(value == k) for k in range(len(values))]
    else:
        order = np.argsort(x, kind="stable")
        groups = np.array_split(order, int(np.clip(n // SMALLEST_BIN, 1, MOST_BINS)))
    mean = np.array([residual[group].mean() for group in groups])
    std = np.array([residual[group].std(ddof=1) if len(group) > 1 else 0.0 for group in groups])
    error = std / np.sqrt([len(group) for group in groups])
    judged = [residual[group] for group in groups if len(group) >= FEWEST]
    depends = None  # nothing to compare
    if len(judged) > 1:
        depends = bool(np.ptp(residual) > 1e-9 and kruskal(*judged).pvalue < CHANCE)
    middle = np.array([np.median(x[group]) for group in groups])
    return {"x": middle, "mean": mean, "std": std, "error": error, "depends": depends}


def thinned(n: int, limit: int) -> IntArray:
    """Sorted indices of at most ``limit`` of n samples, the same ones each time."""
    if n <= limit:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, limit, replace=False))


def scored_rows(posterior: AnyPosterior) -> IntArray:
    """Indices of the samples that a report scores: all of them, or a random selection where that would take long."""
    if isinstance(posterior, CoordinatePosterior):
        return thinned(posterior.n_samples, MAX_SCORED)
    smoother: Any = posterior.smoother
    n = len(smoother.targets)  # features keep a random sample of the rows
    if isinstance(smoother, NeighborSmoother):
        weights = min(n, smoother.n_neighbors)
    elif not isinstance(posterior, ApproximatePosterior) and all(law.gaussian for law, _ in posterior.terms):
        return np.arange(n)
    else:
        weights = n
    return thinned(n, min(MAX_SCORED, max(100, MAX_WEIGHTS // weights)))


def sampled_scores(posterior: AnyPosterior) -> ScoreReport:
    """The leave-one-out scores of `score_report`, of `scored_rows`."""
    return ScoreReport.of(*leave_one_out_law(posterior, scored_rows(posterior)), posterior.noise)


def _histogram(pit: FloatArray) -> dict[str, Any]:
    """Counts of the PIT, and the band of each count."""
    bins = 10 if pit.size >= 50 else 5
    counts, edges = np.histogram(pit, bins=bins, range=(0.0, 1.0))
    low, high = pit_band(pit.size, 1 / bins)
    return {"edges": edges, "counts": counts, "low": low, "high": high, "expected": pit.size / bins}
