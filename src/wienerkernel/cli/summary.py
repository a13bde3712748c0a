"""What a fit found, as numbers and as text: model, uncertainty by cause, relevance of inputs, scores and a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..backend import arrays
from ..evaluation.diagnostics import pit_band
from ..evaluation.relevance import relevance
from ..evaluation.report.numbers import single_models
from ..evaluation.report.scores import sampled_scores
from ..io.tables import shortened
from ..noise.level import LEVELS
from ..palette import CAUSES
from ..posterior.separate import causes, each
from ..regressor import WienerKernelRegressor
from ..text import rounded
from .console import show
from .model import scale_name
from .read import SampleTable, spans

__all__ = ["show_summary", "summarize"]

AVERAGED = 1000
"""Samples over which the variance of the fit, and the parts of the variance of an approximate model, are averaged."""
REMEDIES = {
    "noise": "reduced by more samples",
    "model": "reduced by samples at new inputs",
    "computational": "reduced by more neighbors or features",
    "aleatoric": "not reduced by more samples",
}
ADVICE = {
    "noise": "so more samples narrow predictions most, repeated inputs included",
    "model": "so samples at new inputs narrow predictions most",
    "computational": "so more neighbors or features narrow predictions most",
    "aleatoric": "so more samples cannot narrow predictions much",
}
INTERVALS = (0.5, 0.9)
JUDGED = 10
"""Samples from which the coverage of intervals is judged."""
SLIGHT = 0.07
"""Difference from a wanted coverage that is small, even if it is more than chance."""
SHARED = 0.2
"""Share of the variation that no single input has from which it is told."""
FLAT = 1.05
"""Ratio of the highest level of the noise to the lowest, up to which it is practically constant."""


def summarize(model: WienerKernelRegressor, samples: SampleTable, collapsed: bool = False) -> dict[str, Any]:
    """All findings, ready for JSON: ``samples``, ``inputs``, and one entry of ``targets`` for each output.

    ``samples`` that were ``collapsed`` to their means at each input, without single rows, have no scores.
    """
    X, scale, approximate = samples.X, samples.scale, hasattr(model, "approximation_")
    y = samples.y.reshape(len(X), -1)
    report = None
    if not collapsed:
        report = sampled_scores(model.posterior_) if approximate else model.score_report()
    some = np.arange(len(X))
    if approximate:
        some = np.sort(np.random.default_rng(0).permutation(len(X))[:AVERAGED])
    parts = model.uncertainty(X[some], None if scale is None else scale[some])
    effects = _relevance(model, samples)
    names = [column.name for column in samples.columns]
    models, targets = single_models(model), []
    for k, name in enumerate(samples.targets):
        relevant = {column: float(effect) for column, effect in zip(names, effects[:, k], strict=True)}
        found = {
            "target": name,
            **(_fitted(models[k], 0, X, y[:, k]) if len(models) > 1 else _fitted(model, k, X, y[:, k])),
            "uncertainty": _uncertainty(model, parts, k),
            "relevance": dict(sorted(relevant.items(), key=lambda item: -item[1])),
        }
        if report is not None:
            found["scores"] = _scores(report, y[:, k], k)
            found["verdict"] = _verdict(found)
        targets.append(found)
    return {
        "samples": model.posterior_.n_samples if collapsed else len(X),
        **({"distinct_inputs": len(X)} if collapsed else {}),
        "inputs": samples.features,
        "approximation": str(model.approximation_) if approximate else None,
        "targets": targets,
    }


def _relevance(model: WienerKernelRegressor, samples: SampleTable) -> FloatArray:
    """Share of the variance of the fit that involves a column, alone or together with others, (columns, outputs).

    This is the total-effect index of a sensitivity analysis, which takes columns for independent. All inputs of a
    category change together.
    """
    rows = samples.X[np.random.default_rng(0).permutation(len(samples.X))[:AVERAGED]]
    parts = [rows[:, span] for _, span in spans(samples.columns)]

    class ByColumn:
        """The estimate as a function of the rows from which the columns are taken."""

        def mean(self, points: FloatArray) -> FloatArray:
            X = np.hstack([part[index] for part, index in zip(parts, points.T.astype(int), strict=True)])
            return np.asarray(each(model.posterior_, lambda p: arrays.as_numpy(p.mean(X))))

    by_column, points = ByColumn(), np.tile(np.arange(len(rows), dtype=float)[:, None], len(parts))
    spread = np.var(by_column.mean(points).reshape(len(rows), -1), axis=0)
    changes = relevance(by_column, points) ** 2
    varies = (spread > 0) & (np.ptp(samples.y.reshape(len(samples.y), -1), axis=0) > 0)
    shares = np.divide(changes, spread, out=np.zeros_like(changes), where=varies)
    return np.asarray(np.minimum(shares, 1.0))


def _output(values: FloatArray, k: int) -> FloatArray:
    """Values of output k, (n,)."""
    return values if values.ndim == 1 else values[:, k]


def _fitted(model: WienerKernelRegressor, k: int, X: FloatArray, y: FloatArray) -> dict[str, Any]:
    """The model of output k, which has the kernel and the noise law of all its outputs."""
    noise, unit = model.noise_, float(model.output_scale_[k])
    mean, std = unit * noise.mean(), unit * noise.std()
    return {
        "kernel": rounded(repr(model.kernel_)),
        "noise": rounded(repr(noise)).partition(", mean")[0].strip("<>"),
        "output_scale": unit,
        "noise_mean": mean if abs(mean) > 1e-12 * std else 0.0,
        "noise_std": std,
        "findings": dict(_level_and_transform(model, k, X, y)),
        "transform": scale_name(model) or None,
    }


def _uncertainty(model: WienerKernelRegressor, parts: Any, k: int) -> dict[str, dict[str, float]]:
    """Standard deviation and share of the variance of a new observation by cause, averaged over the data."""
    total = float(_output(parts.total, k).mean())
    found = {cause: float(_output(getattr(parts, cause), k).mean()) for cause in causes(model.posterior_)}
    return {cause: {"std": value**0.5, "share": value / total} for cause, value in found.items()}


def _scores(report: Any, y: FloatArray, k: int) -> dict[str, Any]:
    """Leave-one-out scores of one output."""
    pit = _output(report.pit, k)
    errors = _output(np.broadcast_to(report.values - report.law.mean(), report.pit.shape), k)
    mse, n = float(np.mean(errors**2)), len(pit)
    coverage = {}
    for level in INTERVALS:
        low, high = pit_band(n, level)
        inside = float(np.mean(np.abs(pit - 0.5) <= 0.5 * level))
        coverage[f"{level:g}"] = {"fraction": inside, "low": float(low) / n, "high": float(high) / n}
    return {
        "scored": n,
        "log_score": float(_output(report.log_score, k).mean()),
        "crps": float(_output(report.crps, k).mean()),
        "rmse": mse**0.5,
        "r2": 1 - mse / float(np.var(y)) if np.ptp(y) > 0 else None,
        "coverage": coverage,
    }


def _verdict(found: dict[str, Any]) -> str:
    """Whether to trust the intervals, what the inputs explain, and what would help, in a sentence or two."""
    scores = found["scores"]
    r2 = scores["r2"]
    if r2 is None:
        return f"{found['target']} is the same in all rows, so there is nothing to learn."
    coverage = scores["coverage"]
    outer = f"90% intervals contain {coverage['0.9']['fraction']:.0%} of left-out samples"
    wrong = [level for level, part in coverage.items() if not part["low"] <= part["fraction"] <= part["high"]]
    if scores["scored"] < JUDGED:
        trust = f"Too few samples to check the intervals: {outer}"
    elif not wrong:
        trust = f"Intervals are calibrated within chance: {outer}"
    else:
        level, fraction = float(wrong[-1]), coverage[wrong[-1]]["fraction"]
        much = "slightly" if abs(fraction - level) < SLIGHT else "too"
        judgment = f"{much} {'narrow' if fraction < level else 'wide'}"
        if level == INTERVALS[-1]:
            trust = f"Intervals are {judgment}: {outer}"
        else:
            trust = f"{level:.0%} intervals are {judgment}: they contain {fraction:.0%} of left-out samples, {outer}"
    if r2 <= 0.05:
        explained = f"the inputs hardly explain {found['target']} (R^2 {r2:.2f})"
    else:
        share = "more than 99%" if r2 > 0.99 else f"{r2:.0%}"
        explained = f"the inputs explain {share} of the variance of {found['target']}"
    cause, part = max(found["uncertainty"].items(), key=lambda item: float(item[1]["share"]))
    return (
        f"{trust}, and {explained}. "
        f"{part['share']:.0%} of the variance of a new observation is {CAUSES[cause]}, {ADVICE[cause]}."
    )


def show_summary(summary: dict[str, Any]) -> None:
    """Show the findings as text."""
    several = len(summary["targets"]) > 1
    names = ", ".join(found["target"] for found in summary["targets"])
    at = f" at {summary['distinct_inputs']} inputs," if "distinct_inputs" in summary else ""
    show(f"{summary['samples']} samples of {names}{at} against {shortened(summary['inputs'])}")
    for found in summary["targets"]:
        if several:
            show(f"\n{found['target']}", style="bold underline")
        _show_output(found, summary)


def _show_output(found: dict[str, Any], summary: dict[str, Any]) -> None:

    show("fitted model", style="bold")
    show(f"  kernel     {found['kernel']}")
    if found["output_scale"] != 1:
        show(
            f"  scale      {found['output_scale']:.4g}, a factor of the function and the noise of this output"
        )
    show(f"  noise      {found['noise']}")
    show(f"             mean {found['noise_mean']:.4g}, standard deviation {found['noise_std']:.4g}")
    for name, finding in found["findings"].items():
        show(f"  {'' if name == 'shape' else name:<10} {finding}")
    if summary["approximation"]:
        show(f"  solution   approximate: {summary['approximation']}")
    where = "; on the transformed scale" * bool(found["transform"])
    over = "inputs" if "distinct_inputs" in summary else "data"
    show(f"standard deviation of a new observation by cause, averaged over the {over}{where}", style="bold")
    width = max(10, *map(len, found["uncertainty"]))
    for cause, part in found["uncertainty"].items():
        show(
            f"  {cause:<{width}} {part['std']:<9.4g} {part['share']:>4.0%}  {CAUSES[cause]}; {REMEDIES[cause]}"
        )
    if len(found["relevance"]) > 1:
        show("relevance of inputs: how much of the variation of the fit involves them", style="bold")
        width = max(10, *map(len, found["relevance"]))
        for name, value in found["relevance"].items():
            show(f"  {name:<{width}} {value:>4.0%}  {'█' * round(30 * value)}".rstrip())
        rest = 1 - sum(found["relevance"].values())
        if rest > SHARED:  # of independent inputs, the shares add up to at least 1
            show(
                f"  {'':<{width}} {rest:>4.0%}  of inputs that vary together, which the data do not separate"
            )
    scores = found.get("scores")
    if scores is None:
        show("scores need held-out data: only means and variances at each input are kept, not the rows")
        return
    of = f" of {scores['scored']} random samples" * (scores["scored"] < summary["samples"])
    show(f"leave-one-out scores{of}", style="bold")
    show(f"  log score  {scores['log_score']:.4f} per sample; higher is better")
    show(f"  CRPS       {scores['crps']:.4g}; lower is better, in units of {found['target']}")
    show(f"  RMSE       {scores['rmse']:.4g}" + ("" if scores["r2"] is None else f"; R^2 {scores['r2']:.3f}"))
    for level, part in scores["coverage"].items():
        show(f"  coverage   {part['fraction']:.1%} of samples in their {float(level):.0%} intervals")
    show("verdict", style="bold")
    show(f"  {found['verdict']}")


def _level_and_transform(
    model: WienerKernelRegressor, k: int, X: FloatArray, y: FloatArray
) -> Iterator[tuple[str, str]]:
    """What was found about the shape of the noise, its level and the transform, if any of them was asked for."""
    tuned, auto = model.tuning_result_, model.noise == "auto"
    if auto and tuned.shape_gain:
        yield "shape", f"leave-one-out log score {tuned.shape_gain:+.1f} compared with normal noise"
    elif auto:
        yield "shape", "normal: no other shape has a clearly better leave-one-out log score"
    if tuned is not None and (auto or model.noise_level in LEVELS):
        evidence = f"log evidence {tuned.level_evidence or 0:+.1f}"
        if tuned.level is not None and tuned.level.varies:
            names = model.feature_names_in_
            by = "the mean" if model.noise_level == "mean" else names[0] if len(names) == 1 else "the inputs"
            level = _output(model.predict_noise_scale(X), k)
            extent = f"between {level.min():.3g} and {level.max():.3g} times the noise"
            varies = "varies" if (tuned.level_evidence or 0) > 0 else "may vary"
            how = (
                f"{varies} with {by} {extent}" if level.max() > FLAT * level.min() else "practically constant"
            )
            yield "level", f"{how} ({evidence} compared with constant)"
        elif tuned.level_evidence is None:
            yield "level", "constant: too few samples to estimate a varying one"
        else:
            yield "level", f"constant: a varying one has lower evidence ({evidence})"
    if transform := scale_name(model):
        gain = None if tuned is None else tuned.transform_gain
        yield (
            "transform",
            transform + ("" if gain is None else f" (log posterior {gain:+.1f} compared with none)"),
        )
    elif auto and (y <= 0).any():
        yield "transform", "none: only positive observations are transformed"
