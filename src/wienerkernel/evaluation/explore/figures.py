"""The figures of the page, in the colors of light and dark pages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...palette import COLORS, LAWS
from ..report.slices import COVERAGE

__all__ = ["LEVEL", "WIDEST_FIRST", "WIDGET_STYLE", "density_figure", "set_theme", "slice_figure"]

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


def slice_figure(curve: Any, data: Any, span: Any, truth: bool) -> Any:
    """Mean, tubes and samples along one input; ``span`` marks the chosen point."""
    models: Any = import_module("bokeh.models")
    figure = import_module("bokeh.plotting").figure

    ranges = {"x_range": models.Range1d(), "y_range": models.Range1d()}
    plot = figure(height=380, tools="", toolbar_location=None, **ranges)
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


def density_figure(sources: dict[str, Any], y_range: Any, pdf_range: Any) -> Any:
    """The three densities at the chosen point."""
    figure = import_module("bokeh.plotting").figure

    plot = figure(height=380, tools="", toolbar_location=None, x_range=y_range, y_range=pdf_range)
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
    for axis in plot.axis:
        axis.update(
            axis_label_text_color=colors["soft"],
            major_label_text_color=colors["soft"],
            axis_line_color=colors["soft"],
            major_tick_line_color=colors["soft"],
            minor_tick_line_color=None,
        )
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


def _with_legend_below(plot: Any) -> Any:
    """Move the legend of a figure below it."""
    legend = plot.legend[0]
    legend.update(
        orientation="horizontal", ncols=3, location="center", border_line_color=None, spacing=4, padding=2
    )
    legend.label_text_font_size = "11px"
    plot.add_layout(legend, "below")
    return plot
