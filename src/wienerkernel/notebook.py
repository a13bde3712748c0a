"""What notebooks show of models, scores and distributions: small tables in HTML, and densities as inline SVG."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from typing import Any

import numpy as np

from ._typing import FloatArray
from .palette import LAWS, LIGHT
from .text import rounded

__all__ = ["FittedHTML", "density_svg", "distribution_html", "distribution_text", "table_html"]

SHOWN = 5
"""Points of a distribution that are shown."""
MANY = 200
"""Points from which quantiles and densities would take too long."""
TAIL = 0.002
"""Probability beyond each end of a drawn density."""
POINTS = 60
SIZE = 120, 28
"""Width and height of a density in pixels."""


def table_html(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table whose cells are escaped, except SVG."""
    body = ""
    for row in rows:
        cells = (cell if cell.startswith("<svg") else escape(cell) for cell in row)
        body += f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    columns = "".join(f"<th>{escape(name)}</th>" for name in head)
    title = f"<caption style='text-align:left'>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>"


def density_svg(y: FloatArray, density: FloatArray) -> str:
    """A density (k,) at points (k,) as an image without axes."""
    width, height = SIZE
    color = LIGHT["function-line"]
    top = float(np.max(density, initial=0.0)) or 1.0
    x = width * (y - y[0]) / (float(y[-1] - y[0]) or 1.0)
    path = " ".join(f"{a:.1f},{height * (1 - b / top):.1f}" for a, b in zip(x, density, strict=True))
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 -1 {width} {height + 2}" role="img" '
        f'aria-label="density"><polygon points="0,{height} {path} {width},{height}" fill="{color}" '
        f'fill-opacity="0.35" stroke="{color}"/></svg>'
    )


def _number(value: Any) -> str:
    return f"{float(value):.4g}"


def _title(distribution: Any) -> str:
    shape = distribution.shape
    points = f"{shape[0]} point{'s' * (shape[0] != 1)}"
    outputs = f", {shape[1]} outputs" if len(shape) > 1 else ""
    return f"{LAWS[distribution.of]} at {points}{outputs}"


def distribution_text(distribution: Any) -> str:
    """Mean and standard deviation at the first points."""
    means, stds = (values[:SHOWN].ravel()[:SHOWN] for values in (distribution.mean(), distribution.std()))
    shown = [f"{_number(mean)} ± {_number(std)}" for mean, std in zip(means, stds, strict=True)]
    more = ", ..." if np.prod(distribution.shape) > len(shown) else ""
    return f"<{type(distribution).__name__}: {_title(distribution)}, {', '.join(shown)}{more}>"


def distribution_html(distribution: Any) -> str:
    """Mean, standard deviation, 90 % interval and density at the first points; of very many, mean and deviation."""
    shape = distribution.shape
    y = density = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of errors beyond the digits that are shown
        columns = {"mean": distribution.mean()[:SHOWN], "std": distribution.std()[:SHOWN]}
        if shape[0] <= MANY:
            ends = np.array([TAIL, 0.05, 0.95, 1 - TAIL]).reshape(-1, *[1] * len(shape))
            low, lower, upper, high = distribution.ppf(ends)
            columns |= {"5 %": lower[:SHOWN], "95 %": upper[:SHOWN]}
            with suppress(TypeError):  # a discrete law has no density
                y = np.linspace(low, high, POINTS)
                density = np.nan_to_num(distribution.pdf(y), posinf=0.0)
    rows = []
    for at in np.ndindex(*columns["mean"].shape):
        name = str(at[0]) if len(shape) == 1 else f"{at[0]}, output {at[1]}"
        drawn = [] if y is None or density is None else [density_svg(y[:, *at], density[:, *at])]
        rows.append([name, *(_number(column[at]) for column in columns.values()), *drawn])
    title = _title(distribution) + (f"; the first {SHOWN} are shown" if shape[0] > SHOWN else "")
    return table_html(["point", *columns, *["density"] * (density is not None)], rows, title)


class FittedHTML:
    """Adds what was found to scikit-learn's diagram of a fitted model."""

    def _html_repr(self) -> str:
        from sklearn.utils import estimator_html_repr

        diagram = str(estimator_html_repr(self))
        return diagram + _findings(self) if hasattr(self, "posterior_") else diagram


def _findings(model: Any) -> str:
    found = model.kernel_, model.noise_, model.tuning_result_
    several = len(model.kernel_) if isinstance(model.kernel_, tuple) else 0
    columns = [part if isinstance(part, tuple) else (part,) * (several or 1) for part in found]
    names = getattr(model, "target_names_in_", range(several))
    rows: list[tuple[str, str]] = []
    for k, (kernel, noise, result) in enumerate(zip(*columns, strict=True)):
        if several:
            rows.append((f"output {names[k]}", ""))
        rows += [("kernel", rounded(repr(kernel))), ("noise", rounded(repr(noise)))]
        if result is None:
            continue
        if result.transform is not None:
            rows.append(("transform", rounded(repr(result.transform))))
        if result.level_evidence is not None:
            # a constant level is a function, too, if it is uncertain
            kind = "varies" if getattr(result.level, "varies", result.level is not None) else "constant"
            rows.append(("noise level", f"{kind} (log evidence {result.level_evidence:+.1f})"))
        rows.append((f"objective ({result.method})", f"{result.value:.6g}"))
        rows += [(name, _number(value)) for name, value in result.parameters.items()]
    return table_html(["found", "value"], rows)
