"""Is the model well calibrated? Leave-one-out scores under the exact predictive law, and comparisons of models.

Each sample is compared with the law predicted from the other samples. If the law is right, the probability integral
transform (PIT) F_i(y_i) is uniform. The log score and the CRPS are proper: only the true law maximizes the one and
minimizes the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, IntArray
from ..law import LinearCombination
from ..law.mixed import MixedLaw
from ..losses import CoordinatePosterior
from ..noise import Noise
from ..noise.level import Level, level_nodes
from ..notebook import table_html
from ..posterior import PredictiveDistribution, RandomInput, SeparateOutputs
from ..posterior.separate import stacked
from ..posterior.transformed import TransformedDistribution
from ..scale import ApproximatePosterior
from ..smoother.leave_one_out import LeaveOneOutLaws
from .crps import crps

if TYPE_CHECKING:
    from .plotting import ScoreDisplay

__all__ = [
    "BAND",
    "Comparison",
    "ScoreReport",
    "compare",
    "compared",
    "leave_one_out_law",
    "pit_band",
    "score_report",
]

BAND = 0.95
"""Probability that a count of PIT values lies in its band if the laws are right."""
ALL = slice(None)


@dataclass(frozen=True, repr=False)
class ScoreReport:
    """How samples compare with their predicted laws.

    Attributes
    ----------
    pit : ndarray of shape (n,) or (n, n_y)
        Probability integral transform: uniform if the laws are right.
    log_score : ndarray of the same shape
        Log density of each sample; higher is better.
    standardized : ndarray of the same shape
        Residuals divided by their predicted standard deviations.
    noise : Noise or tuple of Noise
        The noise law, to compare ``standardized`` with, or that of each output.
    law : distribution
        The predicted laws, of a shape that broadcasts to that of ``pit``.
    values : ndarray of the same shape
        What was observed and is distributed by ``law``.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, np.sin(X[:, 0]))
    >>> report = model.score_report()
    >>> report.pit.shape, round(report.coverage(0.9), 2)
    ((20,), 1.0)
    >>> round(model.score_report([[1.0]], [0.9]).summary()["log_score"], 3)
    1.105
    """

    pit: FloatArray
    log_score: FloatArray
    standardized: FloatArray
    noise: Noise | tuple[Noise, ...]
    law: Any
    values: FloatArray

    @classmethod
    def of(cls, law: Any, values: FloatArray, noise: Noise) -> ScoreReport:
        """Scores of values (n,) or (n, n_y) under their laws, whose shape broadcasts to that of the values."""
        base, at = law, values
        if isinstance(law, TransformedDistribution):  # where residuals have nearly the shape of the noise
            base, at = law.base, law.transform(values)
        standardized = (at - base.mean()) / base.std()
        return cls(law.cdf(values), law.logpdf(values), standardized, noise, law, values)

    @cached_property
    def crps(self) -> FloatArray:
        """Continuous ranked probability score of each sample, in units of y; lower is better."""
        return crps(self.law, self.values)

    @property
    def rmse(self) -> float:
        """Root mean squared difference of the samples and the means of their laws, in units of y."""
        return float(np.sqrt(np.mean((self.values - self.law.mean()) ** 2)))

    def coverage(self, confidence: float) -> float:
        """Fraction of samples inside their equal-tailed intervals of this probability."""
        return float(np.mean(np.abs(self.pit - 0.5) <= 0.5 * confidence))

    def calibration(self, levels: ArrayLike) -> FloatArray:
        """Fraction of samples below their predicted quantiles, (k,), at levels (k,): the calibration curve.

        It equals the levels, up to chance, if the laws are right.
        """
        levels = np.asarray(levels, dtype=float)
        if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
            raise ValueError(f"levels must be a one-dimensional sequence between 0 and 1, got {levels!r}")
        return np.asarray(np.searchsorted(np.sort(self.pit, axis=None), levels, side="right") / self.pit.size)

    def quantile_pairs(self) -> tuple[FloatArray, FloatArray]:
        """Quantiles of the standardized noise law, and the sorted standardized residuals, each of shape (n n_y,)."""
        if isinstance(self.noise, tuple):
            columns = map(_quantile_pairs, self.noise, self.standardized.T)
            theory, residuals = (np.concatenate(parts) for parts in zip(*columns, strict=True))
            return theory, residuals
        return _quantile_pairs(self.noise, self.standardized)

    def plot(self, ax: Any = None) -> ScoreDisplay:
        """PIT histogram, calibration curve and residuals on three axes, as a :class:`~wienerkernel.ScoreDisplay`."""
        from .plotting import ScoreDisplay

        return ScoreDisplay(self).plot(ax=ax)

    def summary(self) -> dict[str, float]:
        """Means of the scores, and the coverage of 50 % and 90 % intervals."""
        return {
            "log_score": float(self.log_score.mean()),
            "crps": float(self.crps.mean()),
            "coverage_50": self.coverage(0.5),
            "coverage_90": self.coverage(0.9),
            "pit_mean": float(self.pit.mean()),
            "pit_std": float(self.pit.std()),
        }

    def __str__(self) -> str:
        expected = {"coverage_50": 0.5, "coverage_90": 0.9, "pit_mean": 0.5, "pit_std": 1 / np.sqrt(12)}
        lines = [f"{'score':<14}{'value':>10}{'expected':>10}"]
        for name, value in self.summary().items():
            right = f"{expected[name]:>10.3f}" if name in expected else ""
            lines.append(f"{name:<14}{value:>10.3f}{right}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html(str(self))


def _html(text: str) -> str:
    """A table in text as one in HTML."""
    head, *rows = (re.split(r" {2,}", line) for line in text.splitlines())
    return table_html(head, ([*row, *[""] * (len(head) - len(row))] for row in rows))


def _quantile_pairs(noise: Noise, standardized: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Quantiles of a standardized law, and sorted residuals."""
    residuals = np.sort(standardized, axis=None)
    levels = (np.arange(len(residuals)) + 0.5) / len(residuals)
    return (noise.ppf(levels) - noise.mean()) / noise.std(), residuals


class _Affine(PredictiveDistribution):
    """mu + scale X for a law X, (m,): one law serves outputs of several scales."""

    of = "observation"

    def __init__(self, law: LinearCombination | MixedLaw, mu: FloatArray, scale: ArrayLike = 1.0) -> None:
        self.law, self.mu, self.scale = law, mu, np.asarray(scale, dtype=float)


def pit_band(n: int, probability: float | FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of the band in which a count of n PIT values lies with probability `BAND` if they are uniform.

    ``probability`` is the chance of each value to be counted.
    """
    from scipy.stats import binom

    low, high = binom.interval(BAND, n, probability)
    return np.asarray(low), np.asarray(high)


def leave_one_out_law(posterior: Any, rows: IntArray | slice = ALL) -> tuple[Any, FloatArray]:
    """The exact law of some samples, each predicted from all others, and their values: both (n,) or (n, n_y).

    Without a transform these are residuals y_i - m0 - mu_{-i}(x_i): unexplored inputs, the noise of sample i and that of
    the other samples, which must be independent. With a transform, or an estimate that is not linear in y, they are the
    samples y_i themselves, and in the latter case the law is approximate.
    """
    if isinstance(posterior, CoordinatePosterior):
        found, values = posterior.left_out(rows)
        if posterior.transform is None:
            return found, values
        base = _Affine(found, np.zeros(found.shape))
        return TransformedDistribution(base, posterior.transform), posterior.transform.inverse(values)
    smoother: Any = posterior.smoother
    if isinstance(posterior, ApproximatePosterior):
        if isinstance(rows, slice):
            raise TypeError(
                "an approximate model has too many samples to leave out each: score held-out data, score_report(X, y)"
            )
        laws: Any = smoother.left_out(rows)
        group, residual = laws.group, laws.residual
    else:
        laws = LeaveOneOutLaws(smoother)
        group, residual = laws.group[rows], laws.residual[rows]
    noise = posterior.noise
    weights, others = laws.weights[group], posterior.terms[1:]
    probabilities: FloatArray = np.ones(1)
    if isinstance(posterior.level, Level):  # the level at a held-out sample is uncertain, too
        samples = posterior.smoother.samples
        nodes, probabilities = level_nodes(posterior.level.log_variance(samples.places[samples.index[rows]]))
        weights = np.repeat(weights[None], len(nodes), axis=0)
        weights[:, np.arange(len(group)), group] *= np.exp(nodes)
    terms = [(noise, weights), *((law, laws.weights_of(scale)[group]) for law, scale in others)]
    combination = LinearCombination(
        [law for law, _ in terms],
        [w for _, w in terms],
        counts=[laws.counts] * len(terms),
        loc=-sum(law.mean() * (w @ laws.counts) for law, w in terms),
        normal_std=np.sqrt(laws.model)[group],
    )
    law = combination if len(probabilities) == 1 else MixedLaw(combination, probabilities)
    if posterior.transform is not None:
        values = posterior.observed()[rows, 0]
        base = _Affine(law, values - residual[:, 0])
        return TransformedDistribution(base, posterior.transform), posterior.transform.inverse(values)
    if posterior.single_output:
        return law, residual[:, 0]
    return _Affine(law, 0 * residual, posterior.output_scale), residual * posterior.output_scale


def score_report(
    model: Any,
    X: ArrayLike | RandomInput | None = None,
    y: ArrayLike | None = None,
    noise_scale: ArrayLike | None = None,
) -> ScoreReport:
    """Score a fitted model on its own samples, each left out in turn, or on new data."""
    posterior = model.posterior_
    separate = isinstance(posterior, SeparateOutputs)
    if X is None and y is not None:
        raise ValueError("observations y need the inputs X at which they were made")
    if X is None:
        posteriors = posterior.outputs if separate else [posterior]
        reports = [ScoreReport.of(*leave_one_out_law(each), each.noise) for each in posteriors]
        return _joined(reports) if separate else reports[0]
    law = model.predict_distribution(X, of="observation", noise_scale=noise_scale)
    values = np.asarray(y, dtype=float)
    if values.shape != law.shape:
        raise ValueError(f"y must have shape {law.shape}, one value per prediction, got {values.shape}")
    if not np.all(np.isfinite(values)):
        raise ValueError("y must be finite numbers: leave out the rows where it is NaN or infinite")
    if not separate:
        return ScoreReport.of(law, values, posterior.noise)
    return _joined(list(map(ScoreReport.of, law.parts, values.T, posterior.noise)))


def _joined(reports: list[ScoreReport]) -> ScoreReport:
    """The report on outputs that have a model each."""
    names = ("pit", "log_score", "standardized", "law", "values")
    parts = {name: stacked([getattr(report, name) for report in reports]) for name in names}
    return ScoreReport(noise=tuple(report.noise for report in reports), **parts)  # type: ignore[misc]


@dataclass(frozen=True)
class Comparison:
    """Models ranked by their leave-one-out log scores.

    Attributes
    ----------
    names : tuple of str
        Best first.
    log_score : ndarray of shape (k,)
        Sums over the samples.
    difference : ndarray of shape (k,)
        Difference of the log score to that of the best model.
    standard_error : ndarray of shape (k,)
        Standard error of the difference, from the differences of individual samples.
    crps : ndarray of shape (k,)
        Means over the samples.

    Examples
    --------
    >>> print(Comparison(("gamma", "norm"), np.array([-9.0, -12.0]), np.array([0.0, -3.0]), np.array([0.0, 1.5]),
    ...                  np.array([0.3, 0.4])))
    model     log score  difference  std. error        crps
    gamma        -9.000       0.000       0.000       0.300
    norm        -12.000      -3.000       1.500       0.400
    """

    names: tuple[str, ...]
    log_score: FloatArray
    difference: FloatArray
    standard_error: FloatArray
    crps: FloatArray

    def __str__(self) -> str:
        width = max(5, *map(len, self.names)) + 2
        lines = [f"{'model':<{width}}{'log score':>12}{'difference':>12}{'std. error':>12}{'crps':>12}"]
        values = np.column_stack([self.log_score, self.difference, self.standard_error, self.crps])
        for name, row in zip(self.names, values, strict=True):
            lines.append(f"{name:<{width}}" + "".join(f"{value:>12.3f}" for value in row))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _html(str(self))


def compare(
    models: Mapping[str, Any] | Sequence[Any], X: ArrayLike | None = None, y: ArrayLike | None = None
) -> Comparison:
    """Rank models by the leave-one-out log score.

    Parameters
    ----------
    models : mapping of str to WienerKernelRegressor, or sequence of them
        A sequence is numbered.
    X : array-like of shape (n, d), default=None
        Inputs to fit clones of the models to; None takes the models as they are, fitted to the same data.
    y : array-like of shape (n,) or (n, n_y), default=None

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> models = {
    ...     name: WienerKernelRegressor(RBF(scale), noise="norm(0, 0.1)", tuning=None)
    ...     for name, scale in [("short", 0.1), ("long", 1.0)]
    ... }
    >>> compare(models, X, np.sin(X[:, 0])).names
    ('long', 'short')
    """
    named = dict(models) if isinstance(models, Mapping) else {str(k): model for k, model in enumerate(models)}
    if not named:
        raise ValueError("models must hold at least one model, got none")
    if X is not None:
        from sklearn.base import clone

        named = {name: clone(model).fit(X, y) for name, model in named.items()}
    return compared({name: score_report(model) for name, model in named.items()})


def compared(reports: Mapping[str, ScoreReport]) -> Comparison:
    """Rank score reports on the same samples."""
    sizes = {report.log_score.shape for report in reports.values()}
    if len(sizes) > 1:
        raise ValueError(f"models must be fitted to the same samples, got scores of shapes {sorted(sizes)}")
    names = sorted(reports, key=lambda name: -float(reports[name].log_score.sum()))
    scores = np.array([reports[name].log_score.ravel() for name in names])
    differences = scores - scores[0]
    n = scores.shape[1]
    return Comparison(
        names=tuple(names),
        log_score=scores.sum(axis=1),
        difference=differences.sum(axis=1),
        standard_error=np.sqrt(n * np.var(differences, axis=1, ddof=min(1, n - 1))),
        crps=np.array([reports[name].crps.mean() for name in names]),
    )
