"""The page: two figures and a text that follow the controls of a scene."""

from __future__ import annotations

from html import escape
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...palette import CAUSES, LAWS, LIGHT
from ...posterior import Posterior
from ...posterior.distribution import OF
from ...posterior.separate import causes as causes_of
from ..report.scores import thinned
from ..report.slices import COVERAGE, TAILS, densities, nearness, observations
from .scenes import PaperScene, Scene

__all__ = ["Page"]

MAX_DATA = 1000
WIDEST_FIRST = tuple(reversed(LAWS))
"""The order in which tubes are drawn, so that none hides another."""
LEVEL = f"{100 * COVERAGE:.0f}\u00a0%"


class Page:
    """Two figures and a text that follow the controls of a scene."""

    def __init__(self, scene: Scene) -> None:
        models: Any = import_module("bokeh.models")

        self.scene = scene
        self.curve, self.data = models.ColumnDataSource(), models.ColumnDataSource()
        self.densities = {of: models.ColumnDataSource() for of in OF}
        self.x = models.Slider(start=0.0, end=1.0, value=0.5, show_value=False)
        self.at = models.Span(dimension="height", line_dash="dotted", line_color=LIGHT["text"], line_width=2)
        self.y_range, self.pdf_range = models.Range1d(), models.Range1d()
        self.text = models.Div(styles={"font-size": "14px"})
        self.tubes, self.density = self._tubes(), self._density()
        self.refit()
        self.x.on_change("value", lambda attr, old, new: self.choose())  # noqa: ARG005
        for control in scene.controls:
            # a slider takes effect when it is released: a fit takes longer than a frame
            moved = "value_throttled" if isinstance(control, models.Slider) else "value"
            control.on_change(moved, lambda attr, old, new: self.refit())  # noqa: ARG005

    def show(self, document: Any) -> None:
        """Put everything into a Bokeh document; its template does the layout."""
        controls = {f"control{k}": control for k, control in enumerate(self.scene.controls)}
        roots = {"x": self.x, "text": self.text, "tubes": self.tubes, "density": self.density, **controls}
        for name, root in roots.items():
            root.update(name=name, sizing_mode="stretch_width")
            document.add_root(root)
        document.title = "wienerkernel"
        document.template = (files(__package__) / "page.html").read_text(encoding="utf-8")
        document.template_variables.update(
            heading=self.scene.heading, introduction=self.scene.introduction, controls=list(controls)
        )

    def _tubes(self) -> Any:
        """Figure of the mean, the tubes and the data."""
        models: Any = import_module("bokeh.models")
        figure = import_module("bokeh.plotting").figure

        plot = figure(height=400, tools="", toolbar_location=None)
        plot.title.text = f"mean and exact {LEVEL} intervals"
        for of in WIDEST_FIRST:
            ends = {"y1": f"{of}_low", "y2": f"{of}_high"}
            plot.varea(x="x", **ends, source=self.curve, fill_color=LIGHT[of], legend_label=LAWS[of])
        curve = {"source": self.curve, "line_width": 2}
        if isinstance(self.scene, PaperScene):
            plot.line("x", "truth", color=LIGHT["truth"], legend_label="true function", **curve)
        mean = plot.line("x", "mean", color=LIGHT["mean"], legend_label="mean", **curve)
        dots = {"color": LIGHT["text"], "size": 6, "alpha": "nearness"}
        plot.scatter("x", "y", source=self.data, legend_label="data", **dots)
        tips = [("x", "@x"), ("mean", "@mean")]
        tips += [(LAWS[of], f"@{of}_low … @{of}_high") for of in WIDEST_FIRST]
        plot.add_tools(models.HoverTool(tooltips=tips, renderers=[mean], mode="vline"))
        plot.add_layout(self.at)
        return _with_legend_below(plot)

    def _density(self) -> Any:
        """Figure of the three densities at x."""
        figure = import_module("bokeh.plotting").figure

        ranges = {"x_range": self.y_range, "y_range": self.pdf_range}
        plot = figure(height=400, tools="", toolbar_location=None, **ranges)
        for of in WIDEST_FIRST:
            line = {"source": self.densities[of], "color": LIGHT[f"{of}-line"]}
            plot.line("y", "pdf", line_width=2.5, legend_label=LAWS[of], **line)
            plot.line("y", "gaussian", line_dash="dashed", line_width=1.5, **line)
        dashed = {"color": LIGHT["text"], "line_dash": "dashed"}
        plot.line([np.nan] * 2, [np.nan] * 2, legend_label="normal, same variance", **dashed)
        return _with_legend_below(plot)

    def refit(self) -> None:
        """Fit as the controls say, and draw the curve."""
        scene = self.scene
        self.posterior = posterior = scene.fit()
        points, outputs = observations(posterior)
        j, k = scene.column(), scene.output()
        self.points = scene.grid(points)
        x = self.points[:, j]
        mean, scale = _means(posterior, self.points)[:, k], posterior.output_scale[k]
        curve = {"x": x, "mean": mean, "truth": scene.truth(x)}
        for of in OF:
            low, high = scale * posterior.distribution(self.points, of).law.ppf(TAILS)
            curve |= {f"{of}_low": mean + low, f"{of}_high": mean + high}
        self.curve.data = curve
        shown = thinned(len(points), MAX_DATA)
        near = nearness(posterior.smoother.kernel, points[shown], self.points[0], j)
        self.data.data = {"x": points[shown, j], "y": outputs[shown, k], "nearness": near**2}
        for plot, label in ((self.tubes, scene.name()), (self.density, scene.target)):
            plot.xaxis.axis_label = label
        start, end = float(x[0]), float(x[-1])
        if (self.x.start, self.x.end) != (start, end):
            self.x.update(start=start, end=end, step=(end - start) / 240, value=(start + end) / 2)
        self.choose()

    def choose(self) -> None:
        """Draw the densities at x, and show its numbers."""
        at = self.points[:1].copy()
        at[0, self.scene.column()] = self.x.value
        self.at.location = self.x.value
        mean = float(_means(self.posterior, at)[0, self.scene.output()])
        scale = float(self.posterior.output_scale[self.scene.output()])
        rows, peaks = "", []
        for of in WIDEST_FIRST:
            law = self.posterior.distribution(at, of).law
            low, high = mean + scale * law.ppf(TAILS)[:, 0]
            rows = _row("td", LAWS[of], f"{scale * law.std()[0]:.4g}", f"{low:.4g} … {high:.4g}") + rows
            curve = densities(law)
            if curve is None:
                self.densities[of].data = {"y": [], "pdf": [], "gaussian": []}
                continue
            center, std = mean + scale * curve["mean"][0], scale * curve["std"][0]
            exact = mean + scale * curve["y"][0]
            y = np.union1d(exact, center + std * np.linspace(-4, 4, 81))
            pdf = np.interp(y, exact, curve["pdf"][0] / scale, left=np.nan, right=np.nan)
            gaussian = np.exp(-0.5 * ((y - center) / std) ** 2) / (std * np.sqrt(2 * np.pi))
            self.densities[of].data = {"y": y, "pdf": pdf, "gaussian": gaussian}
            peaks.append(float(np.nanmax(pdf)))
            if of == "observation":
                self.y_range.update(start=max(y[0], center - 4 * std), end=min(y[-1], center + 4 * std))
        # a narrow law may be a spike: it is clipped so that the others stay visible
        self.pdf_range.update(start=0.0, end=1.05 * max(min(peak, 12 * peaks[0]) for peak in peaks))
        where = f"{self.scene.name()} = {self.x.value:.4g}"
        self.x.title = where
        self.density.title.text = f"exact densities at {where}"
        parts = self.posterior.common_uncertainty(at)
        causes = ", ".join(
            f"{CAUSES[cause]} <b>{scale * float(getattr(parts, cause)[0]) ** 0.5:.4g}</b>"
            for cause in causes_of(self.posterior)
        )
        self.text.text = (
            f"<p>At {escape(where)} the mean is <b>{mean:.4g}</b>. Standard deviations by cause: {causes}.</p>"
            f"<table>{_row('th', '', 'std', f'{LEVEL} interval')}{rows}</table>"
        )


def _means(posterior: Posterior, points: FloatArray) -> FloatArray:
    """Mean of each output, (m, n_y)."""
    return np.asarray(posterior.mean(points)).reshape(len(points), -1)


def _row(cell: str, *texts: str) -> str:
    """A row of a table; ``cell`` is td or th."""
    style = "text-align: left; padding: 1px 16px 1px 0"
    return "<tr>" + "".join(f'<{cell} style="{style}">{text}</{cell}>' for text in texts) + "</tr>"


def _with_legend_below(plot: Any) -> Any:
    """Move the legend of a figure below it."""
    legend = plot.legend[0]
    legend.update(
        orientation="horizontal", ncols=3, location="center", border_line_color=None, spacing=4, padding=2
    )
    legend.label_text_font_size = "11px"
    plot.add_layout(legend, "below")
    return plot
