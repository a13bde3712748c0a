"""The report as HTML: what :func:`~wienerkernel.evaluation.report.contents` returns, as tables and as data to draw."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from ... import __version__
from ...palette import CAUSES, COLORS, LAWS
from ..diagnostics import BAND, pit_band

__all__ = ["page"]

TABLE_ROWS = 13
METER = '<span class="meter" aria-hidden="true"><i style="width:{:.1%}"></i></span> '
COMPARED = (
    "Each sample is compared with the law predicted from the other samples. If the model is right, about "
    f"{100 * BAND:.0f}\u00a0% of the values lie in the bands."
)
LEFT_OUT = "its mean predicted from the other samples, in units of its predicted standard deviation"
SEEN = (
    "its predicted mean, in units of its predicted standard deviation; the prediction depends on the sample, too, so "
    "residuals of new samples are larger"
)


def page(
    reports: Sequence[dict[str, Any]], title: str | None = None, source: str = "", first: str = ""
) -> str:
    """The contents of reports, one for each model, as self-contained HTML, with every name escaped.

    ``first`` is HTML that stands before them.
    """
    names = [report["targets"] for report in reports]
    if title is None:
        targets = [name for some in names for name in some]
        title = f"{', '.join(targets)} by {', '.join(reports[0]['inputs'])}"
    facts = [source, datetime.now(UTC).strftime("%Y-%m-%d"), f"wienerkernel {__version__}"]
    data = {
        "title": title,
        "laws": LAWS,
        "causes": CAUSES,
        "level": _percent(reports[0]["coverage"]),
        "models": [{**report, "labels": _labels(report)} for report in reports],
    }
    links = [f'<a href="#model-{k}">{escape(", ".join(some))}</a>' for k, some in enumerate(names)]
    parts = {
        "title": escape(title),
        "facts": escape(" · ".join(filter(None, facts))),
        "contents": f'<nav class="toc">{"".join(links)}</nav>' if len(reports) > 1 else "",
        "models": first
        + "\n".join(_model(report, k, len(reports) > 1 or bool(first)) for k, report in enumerate(reports)),
        "colors": "".join(
            f"--{name}: light-dark({light}, {dark}); " for name, (light, dark) in COLORS.items()
        ),
        "style": _resource("report.css"),
        "script": "\n".join(map(_resource, ("chart.js", "slice.js", "report.js"))),
        # "</script>" and "<!--" inside the data would end or hide them
        "data": json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
    }
    return Template(_resource("page.html")).substitute(parts)


def _model(report: dict[str, Any], number: int, heading: bool) -> str:
    """The part of the page that belongs to one model."""
    parts = {
        "anchor": f"model-{number}",
        "heading": f'<h2 class="output">{escape(", ".join(report["targets"]))}</h2>' if heading else "",
        "lead": _lead(report),
        "tiles": _tiles(report),
        "columns": _columns(report),
        "advice": escape(report["advice"]),
        "shares": _share_bar(report["shares"]),
        "choices": _choices(report["choices"]),
        "scores": _scores(report["scores"]),
        "curves": "".join(_curve_table(report, part) for part in report["slices"]),
        "hyperparameters": _hyperparameters(report),
        "compared": escape(report["scores"].get("missing", COMPARED)),
        "residual": SEEN if "missing" in report["scores"] else LEFT_OUT,
    }
    return Template(_resource("model.html")).substitute(parts)


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _number(value: float | str | None, spread: float = 0.0) -> str:
    """Four digits, or as many as tell values apart that differ by a small part of their spread; text as it is."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    more = 3 + math.ceil(math.log10(abs(value) / spread)) if spread > 0 and value else 0
    return f"{value:.{min(max(4, more), 15)}g}".replace("-", "−")


def _numbers(values: Iterable[float | None]) -> str:
    return ", ".join(map(_number, values))


def _percent(fraction: float, digits: int = 0) -> str:
    return f"{100 * fraction:.{digits}f}\u00a0%"


def _table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table whose cells are escaped; the first cell of a row is its heading."""
    columns = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = ""
    for first, *others in rows:
        cells = "".join(f"<td>{cell if isinstance(cell, _Markup) else escape(cell)}</td>" for cell in others)
        body += f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>'
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption>"
        f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _labels(report: dict[str, Any]) -> list[str]:
    """Names of the outputs where variances and noise are shown."""
    return [f"{name}, transformed" if report["summary"]["transform"] else name for name in report["targets"]]


def _lead(report: dict[str, Any]) -> str:
    """What was fitted to what."""
    summary = report["summary"]
    samples, places = summary["samples"], summary["places"]
    at = ""
    if samples > 1 and places is not None:
        at = f", at {places:,} distinct inputs" if places != samples else ", all at distinct inputs"
    text = (
        f"{', '.join(report['targets'])} as a function of {_join(report['inputs'])}, from {samples:,} "
        f"sample{'s' * (samples != 1)}{at}."
    )
    if summary["approximation"]:
        text += f" The solution is approximate: {summary['approximation']}."
    if summary["nonlinear"]:
        text += f" The estimate is not linear in {report['targets'][0]} ({summary['nonlinear']}): its laws are approximate."
    if len(report["slices"]) < len(report["inputs"]):
        text += f" Shown are the {len(report['slices'])} most relevant inputs."
    if transform := summary["transform"]:
        text += (
            f" Relevance, noise level and, by cause, standard deviations are on the transformed scale ({transform}); means, "
            f"intervals, densities and scores are on the scale of {report['targets'][0]}."
        )
    return escape(text)


def _tiles(report: dict[str, Any]) -> str:
    """The headline numbers."""
    summary, scores = report["summary"], report["scores"]
    places = summary["places"]
    note = "approximate solution" if places is None else f"at {places:,} distinct input{'s' * (places != 1)}"
    if scores.get("scored", math.inf) < summary["samples"]:
        note += f"; scores of {scores['scored']:,} of them, chosen at random"
    tiles = [("samples", f"{summary['samples']:,}", note)]
    if "missing" not in scores:
        targets = [column for column in report["columns"] if column["relevance"] is None]
        units = ", ".join(column["unit"] or f"units of {column['name']}" for column in targets)
        values, of = scores["summary"], "of the left-out samples"
        r2 = [] if None in values["r2"] else [f"{value:.3f}".replace("-", "−") for value in values["r2"]]
        explained = f"; R² {', '.join(r2)}" * bool(r2)
        tiles += [
            ("log score", _number(values["log_score"]), "per left-out sample; higher is better"),
            ("CRPS", _numbers(values["crps"]), f"in {units}; lower is better"),
            ("RMSE", _numbers(values["rmse"]), f"in {units}{explained}"),
            *(
                (f"in {_percent(level)} intervals", _percent(value), f"{of}; {reading}")
                for level, value, _, _, reading in _coverages(scores)
            ),
        ]
    blocks = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in tiles
    )
    wide = "".join(
        f'<div class="wide"><dt>{name}</dt><dd><code>{escape(summary[name])}</code></dd></div>'
        for name in ("kernel", "noise")
    )
    return f'{blocks}</dl><dl class="tiles">{wide}'


def _columns(report: dict[str, Any]) -> str:
    """Units and ranges of all columns, and the relevance of the inputs as bars."""
    changes = [column["relevance"] for column in report["columns"] if column["relevance"] is not None]
    several = len(changes) > 1
    largest = [max(values) or 1.0 for values in zip(*changes, strict=True)]
    head = ["column"] + [f"relevance for {name}" for name in _labels(report)] * several
    units = any(column["unit"] for column in report["columns"])
    head += ["smallest", "median", "largest", *["unit"] * units, "role"]
    rows = []
    for column in report["columns"]:
        target = column["relevance"] is None
        bars = [""] * len(largest)
        if not target:
            pairs = zip(column["relevance"], largest, strict=True)
            bars = [_Markup(METER.format(value / most) + _number(value)) for value, most in pairs]
        ends = [f"{column['values']} values", "–", "–"]
        if column["range"]:
            low, _, high = column["range"]
            ends = [_number(end, high - low) for end in column["range"]]
        row = [column["name"], *(bars * several), *ends, *[column["unit"] or "–"] * units]
        rows.append([*row, "observed" if target else "input"])
    hint = "Units are those in brackets at the end of the column names. " * units
    hint += (
        "The relevance of an input is the change of the mean if only this input changes to that of another sample (root "
        "mean square, divided by √2)."
    ) * several
    hint += " One-hot columns change together." * report["one_hot"]
    return f'<p class="hint">{hint}</p>' * bool(hint) + _table("Columns", head, rows)


def _join(names: Sequence[str]) -> str:
    return ("; " if any("," in name for name in names) else ", ").join(names)


class _Markup(str):
    """HTML that is not to be escaped."""

    __slots__ = ()


def _choices(rows: list[dict[str, str]]) -> str:
    """What was learned from the data, and how certain it is."""
    if not rows:
        return ""
    head = ["choice", "found", "compared with", "evidence"]
    table = _table("What was learned from the data", head, (row.values() for row in rows))
    hint = "A difference of 3 means odds of 20 : 1, one of 5 odds of 150 : 1, if the candidates were equally likely before."
    return (
        f'<section><h2>What was chosen, and how certain it is</h2><p class="hint">{hint}</p>{table}</section>'
    )


def _share_bar(shares: dict[str, float]) -> str:
    """Fractions of the causes as a bar with a legend."""
    bar = legend = ""
    for cause, share in shares.items():
        bar += f'<span class="{cause}" style="flex-grow:{max(share, 1e-6):.6f}"></span>'
        percent = "&lt;\u00a01\u00a0%" if 0 < share < 0.005 else _percent(share)
        legend += f'<li><i class="swatch {cause}"></i>{CAUSES[cause]}: <b>{percent}</b></li>'
    return f'<div class="bar" aria-hidden="true">{bar}</div><ul class="legend">{legend}</ul>'


def _scores(scores: dict[str, Any]) -> str:
    if "missing" in scores:
        return ""
    summary, n = scores["summary"], scores["values"]
    rows = [
        ("mean log score", _number(summary["log_score"]), "–", "higher is better"),
        ("mean CRPS", _numbers(summary["crps"]), "–", "lower is better"),
    ]
    for level, value, low, high, reading in _coverages(scores):
        range_ = f"{_percent(low, 1)} … {_percent(high, 1)}"
        rows.append((f"in {_percent(level)} intervals", _percent(value, 1), range_, reading))
    # mean and standard deviation of n uniform variables, and their standard errors
    for name, mean, error, below, above in (
        ("mean", 0.5, (12 * n) ** -0.5, "medians are too high", "medians are too low"),
        ("std", 12**-0.5, (60 * n) ** -0.5, "intervals are too wide", "intervals are too narrow"),
    ):
        value, low, high = summary[f"pit_{name}"], mean - 1.96 * error, mean + 1.96 * error
        reading = _reading(value, low, high, below, above)
        rows.append((f"{name} of the PIT", _number(value), f"{_number(low)} … {_number(high)}", reading))
    some = scores["scored"] < scores["samples"]
    note = f" of {scores['scored']:,} of the {scores['samples']:,} samples, chosen at random" if some else ""
    head = ["score", "value", f"{_percent(BAND)} range if calibrated", "reading"]
    return _table(f"Leave-one-out scores{note}", head, rows)


def _coverages(scores: dict[str, Any]) -> list[tuple[float, float, float, float, str]]:
    """Level, fraction of samples in the intervals, its range if they are calibrated, and what this means."""
    found, n = [], scores["values"]
    for level in (0.5, 0.9):
        value = scores["summary"][f"coverage_{100 * level:.0f}"]
        low, high = (float(end) / n for end in pit_band(n, level))
        reading = _reading(value, low, high, "intervals are too narrow", "intervals are too wide")
        found.append((level, value, low, high, reading))
    return found


def _reading(value: float, low: float, high: float, below: str, above: str) -> str:
    return below if value < low else above if value > high else "within chance"


def _curve_table(report: dict[str, Any], part: dict[str, Any]) -> str:
    """Mean, intervals and standard deviations by cause along a slice."""
    n = len(part["x"])
    at = np.unique(np.linspace(0, n - 1, n if part["values"] else TABLE_ROWS).round().astype(int)).tolist()
    several = len(report["targets"]) > 1
    level = _percent(report["coverage"])
    head = [part["input"], *(f"mean of {name}" if several else "mean" for name in report["targets"])]
    head += [f"{level} interval, {LAWS[law]}" for law in part["tubes"]]
    scale = ", transformed" * bool(report["summary"]["transform"])
    head += [f"std{scale}, {CAUSES[cause]}" for cause in part["variance"]]
    rows = []
    for k in at:
        means = [mean[k] for mean in part["mean"]]
        wide = part["tubes"]["observation"]["high"][k] - part["tubes"]["observation"]["low"][k]
        row = [part["values"][k] if part["values"] else _number(part["x"][k], part["x"][-1] - part["x"][0])]
        row += [_number(mean, wide) for mean in means]
        for law in part["tubes"]:
            # of several outputs, the intervals are given relative to the mean
            center = 0.0 if several else means[0]
            low, high = (center + part["tubes"][law][end][k] for end in ("low", "high"))
            row.append(f"{_number(low, high - low)} … {_number(high, high - low)}")
        row += [_number(variance[k] ** 0.5) for variance in part["variance"].values()]
        rows.append(row)
    where = _join(
        [f"{item['name']} = {_number(item['value'])}" for item in part["base"]]
        + [f"{name} as in the data" for name in part["follow"]]
    )
    caption = f"Prediction along {part['input']}{where and ', with ' + where}"
    caption += "; intervals relative to the mean" * several
    return _table(caption, head, rows)


def _hyperparameters(report: dict[str, Any]) -> str:
    summary = report["summary"]
    rows = [(name, summary[name], "") for name in ("kernel", "noise", "trend")]
    rows += [("estimate", summary["nonlinear"], "")] * bool(summary["nonlinear"])
    rows += [("transform", summary["transform"], "response")] * bool(summary["transform"])
    rows += [(row["name"], _number(row["value"]), row["meaning"]) for row in report["hyperparameters"]]
    return _table("Hyperparameters", ["name", "value", "belongs to"], rows)
