"""The figures of the page: slices with samples that can be moved, and densities, in light and dark colors."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...palette import COLORS, LAWS
from ...posterior.distribution import OF
from ..report.scores import thinned
from ..report.slices import COVERAGE, TAILS, Path, nearness, shift
from .scenes import PaperScene

__all__ = ["LEVEL", "WIDEST_FIRST", "WIDGET_STYLE", "Slice", "density_figure", "set_theme"]

models: Any = import_module("bokeh.models")
plotting: Any = import_module("bokeh.plotting")

WIDEST_FIRST = tuple(reversed(LAWS))
"""The order in which tubes are drawn, so that none hides another."""
LEVEL = f"{100 * COVERAGE:.0f}\u00a0%"
PAGE = {"background": ("#ffffff", "#14171c"), "grid": ("#e5e8ec", "#2b313a"), "soft": ("#59616d", "#a3abb8")}
WIDGET_STYLE = """
:host { color: inherit; }
.bk-input { background: light-dark(#fff, #1d2128); color: inherit; border-color: light-dark(#ccc, #4a5260); }
select.bk-input { appearance: auto !important; background-image: none !important; }
.bk-btn { background: light-dark(#f6f7f9, #1d2128); color: inherit; border-color: light-dark(#ccc, #4a5260); }
.bk-btn:hover { background: light-dark(#e5e8ec, #2b313a); }
.bk-btn.bk-active { background: light-dark(#d8dce2, #363c47); color: inherit; }
.noUi-target { background: light-dark(#fafafa, #2b313a); border-color: light-dark(#d3d3d3, #4a5260); box-shadow: none; }
.noUi-connect { background: light-dark(#0072b2, #6cbdf5) !important; }
.noUi-handle { background: light-dark(#fff, #a3abb8); border-color: light-dark(#d3d3d3, #4a5260); box-shadow: none; }
"""
N_GRID = 81
MAX_DATA = 1000
VISIBLE = 0.05
REACH = 12
"""Pixels around a sample within which it is clicked or dragged."""
INNER = (600, 320)
"""Size of a figure in pixels until the browser has said it."""


class Slice:
    """The prediction along input j through the chosen point, with the samples near it."""

    def __init__(self, page: Any, j: int) -> None:
        self.page, self.j = page, j
        self.curve, self.data = models.ColumnDataSource(), models.ColumnDataSource()
        self.span = models.Span(dimension="height", line_dash="dotted", line_width=2)
        scene = page.scene
        self.plot = _slice_figure(self.curve, self.data, self.span, isinstance(scene, PaperScene))
        self.plot.xaxis.axis_label = scene.names[j]
        self.plot.title.text = f"mean and exact {LEVEL} intervals"
        self.standard: dict[str, FloatArray] = {}
        """Quantiles in units of the standard deviation, when they were last computed."""
        self.held: int | None = None
        if not scene.fixed:
            self.plot.on_event("tap", lambda event: self.click(event.x, event.y))
            self.plot.on_event("panstart", lambda event: self.grasp(event.x, event.y))
            self.plot.on_event("pan", lambda event: self.drag(event.x, event.y))
            self.plot.on_event("panend", self.drop)

    def frame(self) -> None:
        """Take the horizontal range of the samples."""
        start, end = self.page.scene.limits(self.j)
        self.plot.x_range.update(start=start, end=end)

    def _path(self) -> Path:
        return Path([self.j], self.page.at)

    def _shift(self, points: FloatArray) -> FloatArray:
        """How far samples at points (m, d) are moved along the mean, (m,)."""
        return shift(self.page.posterior, points, self._path().onto(points))[:, 0]

    def draw(self, exact: bool) -> None:
        """Draw the curve and the samples; without ``exact``, with the quantiles of the last laws in units of the new std."""
        page, scene, along = self.page, self.page.scene, self._path()
        posterior, unit = page.posterior, scene.unit
        x = np.linspace(self.plot.x_range.start, self.plot.x_range.end, N_GRID)
        grid = along(x)
        parts = posterior.common_uncertainty(grid)
        mean = np.asarray(posterior.mean(grid)).reshape(N_GRID)
        stds = {"estimate": parts.estimate, "function": parts.epistemic, "observation": parts.total}
        curve = {"x": x, "mean": unit * mean, "truth": scene.truth(x)}
        for of in OF:
            std = np.sqrt(np.maximum(stds[of], np.finfo(float).tiny))
            if exact or of not in self.standard:
                self.standard[of] = posterior.distribution(grid, of).law.ppf(TAILS) / std
            low, high = unit * (mean + std * self.standard[of])
            curve |= {f"{of}_low": low, f"{of}_high": high}
        self.curve.data = curve
        shown = thinned(len(scene.values), MAX_DATA)
        points = scene.points[shown]
        near = nearness(posterior.smoother.kernel, points, along.onto(points)) ** 2
        shown, near = shown[near >= VISIBLE], near[near >= VISIBLE]
        y = unit * (scene.values[shown] + self._shift(scene.points[shown]))
        self.data.data = {"x": scene.points[shown, self.j], "y": y, "nearness": near, "row": shown}
        if exact and self.held is None:
            ends = np.concatenate([curve["observation_low"], curve["observation_high"], y])
            margin = 0.05 * (np.ptp(ends) or 1.0)
            self.plot.y_range.update(start=float(ends.min() - margin), end=float(ends.max() + margin))

    def sample_at(self, x: float, y: float) -> int | None:
        """The sample within reach of a position, if there is one."""
        xs, ys = np.asarray(self.data.data["x"]), np.asarray(self.data.data["y"])
        if not len(xs):
            return None
        try:
            wide, high = self.plot.inner_width, self.plot.inner_height
        except ValueError:
            wide, high = INNER
        across = (xs - x) / (self.plot.x_range.end - self.plot.x_range.start) * wide
        along = (ys - y) / (self.plot.y_range.end - self.plot.y_range.start) * high
        distance = np.hypot(across, along)
        nearest = int(np.argmin(distance))
        return int(self.data.data["row"][nearest]) if distance[nearest] <= REACH else None

    def click(self, x: float, y: float) -> None:
        """Remove the sample at this position, or add one."""
        scene, row = self.page.scene, self.sample_at(x, y)
        ranges = (x, self.plot.x_range), (y, self.plot.y_range)
        if row is not None:
            scene.remove(row)
        elif all(axis.start <= value <= axis.end for value, axis in ranges):
            scene.add(self._path()(np.array([x]))[0], y / scene.unit)
        else:
            return  # on an axis or the legend
        self.page.changed()

    def grasp(self, x: float, y: float) -> None:
        """Begin to drag the sample at this position."""
        self.held = self.sample_at(x, y)

    def drag(self, x: float, y: float) -> None:
        """Move the sample that is held."""
        if self.held is not None:
            scene = self.page.scene
            point = scene.points[self.held].copy()
            point[self.j] = x
            scene.move(self.held, self.j, x, y / scene.unit - float(self._shift(point[None])[0]))
            self.page.changed()

    def drop(self) -> None:
        """Let go of the sample."""
        if self.held is not None:
            self.held = None
            self.page.changed()


def _slice_figure(curve: Any, data: Any, span: Any, truth: bool) -> Any:
    """Mean, tubes and samples along one input; ``span`` marks the chosen point."""
    plot = _figure()
    for of in WIDEST_FIRST:
        ends = {"y1": f"{of}_low", "y2": f"{of}_high"}
        plot.varea(x="x", **ends, source=curve, legend_label=LAWS[of], name=of)
    line = {"source": curve, "line_width": 2}
    if truth:
        plot.line("x", "truth", legend_label="true function", name="truth", **line)
    mean = plot.line("x", "mean", legend_label="mean", name="mean", **line)
    plot.scatter("x", "y", source=data, legend_label="data", size=7, alpha="nearness", name="text")
    tips = [("x", "@x"), ("mean", "@mean")]
    tips += [(LAWS[of], f"@{of}_low … @{of}_high") for of in WIDEST_FIRST]
    plot.add_tools(models.HoverTool(tooltips=tips, renderers=[mean], mode="vline"))
    plot.xaxis.ticker.desired_num_ticks = 5
    plot.xaxis.formatter.power_limit_low = -5
    plot.add_layout(span)
    return _with_legend_below(plot)


def density_figure(sources: dict[str, Any]) -> Any:
    """The three densities at the chosen point."""
    plot = _figure()
    for of in WIDEST_FIRST:
        line = {"source": sources[of], "name": f"{of}-line"}
        plot.line("y", "pdf", line_width=2.5, legend_label=LAWS[of], **line)
        plot.line("y", "gaussian", line_dash="dashed", line_width=1.5, **line)
    dashed = {"name": "text", "line_dash": "dashed"}
    plot.line([np.nan] * 2, [np.nan] * 2, legend_label="normal, same variance", **dashed)
    return _with_legend_below(plot)


def set_theme(plot: Any, dark: bool) -> None:
    """Give a figure the colors of light or dark pages; glyphs are named after their colors."""
    colors = {name: pair[dark] for name, pair in (COLORS | PAGE).items()}
    plot.update(
        background_fill_color=colors["background"],
        border_fill_color=None,  # the color of the page; its edge would stay there when the theme changes
        outline_line_color=colors["grid"],
    )
    plot.title.text_color = colors["text"]
    soft = ("axis_label_text_color", "major_label_text_color", "axis_line_color", "major_tick_line_color")
    for axis in plot.axis:
        axis.update(minor_tick_line_color=None, **dict.fromkeys(soft, colors["soft"]))
    for grid in plot.grid:
        grid.grid_line_color = colors["grid"]
    plot.legend[0].update(background_fill_color=None, label_text_color=colors["text"])
    for renderer in plot.renderers:
        glyph, value = renderer.glyph, colors[renderer.name]
        for name in ("fill_color", "line_color"):
            if name in glyph.properties():
                setattr(glyph, name, value)
    for span in plot.center:
        if type(span).__name__ == "Span":
            span.line_color = colors["text"]


def _figure() -> Any:
    """Axes without tools, whose ranges are those that are set."""
    ranges = {"x_range": models.Range1d(), "y_range": models.Range1d()}
    return plotting.figure(height=380, tools="", toolbar_location=None, **ranges)


def _with_legend_below(plot: Any) -> Any:
    """Move the legend of a figure below it."""
    legend = plot.legend[0]
    legend.update(
        orientation="horizontal", ncols=3, location="center", border_line_color=None, spacing=4, padding=2
    )
    legend.label_text_font_size = "11px"
    plot.add_layout(legend, "below")
    return plot
