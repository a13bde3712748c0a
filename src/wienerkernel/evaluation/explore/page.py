"""The page: figures and texts that follow the controls of a scene and its samples."""

from __future__ import annotations

from html import escape
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np

from ...palette import CAUSES, LAWS
from ...posterior import Posterior
from ...posterior.distribution import OF
from ...posterior.separate import causes as causes_of
from ..relevance import exclusive, relevance, variables
from ..report.scores import sampled_scores
from ..report.slices import PEAK, TAILS, densities, middle
from .figures import LEVEL, WIDEST_FIRST, WIDGET_STYLE, Slice, density_figure, set_theme
from .scenes import Scene

__all__ = ["Page"]

models: Any = import_module("bokeh.models")

MAX_SLICES = 6
LONGEST = 40
"""Letters of a name that fit beside an axis."""
REST_MS = 150
"""Milliseconds without a change after which exact laws, scores and code follow."""
DOWNLOAD = """
const link = document.createElement("a");
link.download = name;
link.href = href;
link.click();
"""
PNG = (
    """
const name = "wienerkernel.png";
const drawn = figures.map((figure) => Bokeh.index.find_one(figure).export("png", true).canvas);
const gap = 16, columns = Math.min(drawn.length, 2), rows = Math.ceil(drawn.length / columns);
const high = Math.max(...drawn.map((one) => one.height)), left = [gap];
for (let k = 0; k < columns; k++)
  left.push(left[k] + gap + Math.max(...drawn.filter((_, i) => i % columns === k).map((one) => one.width)));
const all = document.createElement("canvas");
[all.width, all.height] = [left[columns], rows * (high + gap) + gap];
const context = all.getContext("2d");
context.fillStyle = figures[0].background_fill_color;
context.fillRect(0, 0, all.width, all.height);
drawn.forEach((one, k) => context.drawImage(one, left[k % columns], gap + Math.floor(k / columns) * (high + gap)));
const href = all.toDataURL("image/png");
"""
    + DOWNLOAD
)
PYTHON = (
    """
const name = "model.py";
const holder = document.createElement("div");
holder.innerHTML = code.text;
const href = "data:text/x-python;charset=utf-8," + encodeURIComponent(holder.textContent);
"""
    + DOWNLOAD
)


class Page:
    """Figures and texts that follow the controls of a scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.document: Any = None
        self._rest: Any = None
        self._waiting = False
        self.posterior: Posterior = scene.fit()
        d = scene.points.shape[1]
        together = exclusive(scene.points)
        changes = relevance(self.posterior, scene.points, together).max(axis=1)
        every = variables(scene.names, scene.points, together)
        numbers = [one.columns[0] for one in every if not one.values] or list(range(d))
        shown = sorted(sorted(numbers, key=lambda j: -changes[j])[:MAX_SLICES])
        # a category is chosen, not moved between 0 and 1
        self.categories = [one for one in every if not set(one.columns) & set(numbers)]
        self.at = middle(scene.points).copy()
        self.slices = [Slice(self, j) for j in shown]
        digits = models.PrintfTickFormatter(format="%.4g")
        self.x = [
            models.Slider(title=scene.names[j], start=0.0, end=1.0, value=0.5, format=digits) for j in shown
        ]
        self.values = [
            models.Select(
                title=one.name, options=[(str(k), value) for k, value in enumerate(one.values)], value="0"
            )
            for one in self.categories
        ]
        self._show_categories()
        self.sample = models.Slider(title="go to sample", start=0, end=1, value=0, step=1)
        self.densities = {of: models.ColumnDataSource() for of in OF}
        self.density = density_figure(self.densities)
        self.figures = [*(part.plot for part in self.slices), self.density]
        self.introduction, self.numbers, self.scores, self.code = (
            models.Div(styles={"font-size": "14px"}) for _ in range(4)
        )
        self.dark = models.Toggle(label="dark", active=False)
        self.reset, self.retune = models.Button(label="reset samples"), models.Button(label="retune")
        self.png, self.python = models.Button(label="save PNG"), models.Button(label="save Python")
        self.first: tuple[float, ...] = ()
        self._connect()
        self.set_theme()
        self.restart()

    def _connect(self) -> None:
        """Let the widgets do something."""
        scene = self.scene
        for control in scene.controls:
            control.on_change("value", lambda attr, old, new: self.changed(law=isinstance(new, str)))  # noqa: ARG005
        for source in scene.sources:
            source.on_change("value", lambda attr, old, new: self.start_over())  # noqa: ARG005
        for part, slider in zip(self.slices, self.x, strict=True):
            slider.on_change("value", lambda attr, old, new, j=part.j: self.choose(j, new))  # noqa: ARG005
        for select in self.values:
            select.on_change("value", lambda attr, old, new: self.choose_values())  # noqa: ARG005
        if len(self.at) > 1:
            self.sample.on_change("value", lambda attr, old, new: self.visit(int(new)))  # noqa: ARG005
        self.reset.on_click(self.start_over)
        self.retune.on_click(self.tune)
        self.dark.on_change("active", lambda attr, old, new: self.set_theme())  # noqa: ARG005
        self.dark.js_on_change(
            "active",
            models.CustomJS(code='document.documentElement.dataset.theme = cb_obj.active ? "dark" : "light"'),
        )
        self.png.js_on_click(models.CustomJS(args={"figures": self.figures}, code=PNG))
        self.python.js_on_click(models.CustomJS(args={"code": self.code}, code=PYTHON))

    def show(self, document: Any) -> None:
        """Put everything into a Bokeh document; its template does the layout."""
        self.document = document
        controls = {f"control{k}": w for k, w in enumerate(self.scene.sources + self.scene.controls)}
        buttons = {"reset": self.reset, "retune": self.retune, "png": self.png, "python": self.python}
        points = {f"x{k}": widget for k, widget in enumerate([*self.x, *self.values])}
        if self.scene.points.shape[1] > 1:
            points["sample"] = self.sample
        figures = {f"slice{k}": part.plot for k, part in enumerate(self.slices)} | {"density": self.density}
        texts = {name: getattr(self, name) for name in ("introduction", "numbers", "scores", "code", "dark")}
        style = models.InlineStyleSheet(css=WIDGET_STYLE)
        for name, root in (controls | buttons | points | figures | texts).items():
            root.update(name=name, sizing_mode="stretch_width")
            if name not in figures:
                root.stylesheets = [style]
            document.add_root(root)
        document.title = "wienerkernel"
        document.template = (files(__package__) / "page.html").read_text(encoding="utf-8")
        document.template_variables.update(
            heading=self.scene.heading,
            controls=list(controls),
            buttons=list(buttons),
            points=list(points),
            figures=list(figures),
        )

    def set_theme(self) -> None:
        """Color the figures for a light or a dark page."""
        for plot in self.figures:
            set_theme(plot, self.dark.active)
        self.dark.label = "light" if self.dark.active else "dark"

    def start_over(self) -> None:
        """Take the samples as they were, or as the sources say."""
        self.scene.reset()
        self.restart()

    def restart(self) -> None:
        """Draw everything, with the ranges of the samples."""
        for part, slider in zip(self.slices, self.x, strict=True):
            part.frame()
            start, end = part.plot.x_range.start, part.plot.x_range.end
            if (slider.start, slider.end) != (start, end):
                inside = min(max(float(self.at[part.j]), start), end)
                slider.update(start=start, end=end, step=(end - start) / 240, value=inside)
                self.at[part.j] = inside
        self.sample.end = max(len(self.scene.values) - 1, 1)
        hint = "Click to add a sample, click a sample to remove it, drag it to move it."
        self.introduction.text = f"<p>{self.scene.introduction} {hint * (not self.scene.fixed)}</p>"
        self.first = ()
        self.follow()
        self.settle()

    def tune(self) -> None:
        """Estimate the parameters from the samples as they are."""
        try:
            self.scene.retune()
        except ValueError as error:
            self.scores.text = f"<b>Cannot retune:</b> {escape(str(error))}"
            return
        self.follow()
        self.settle()

    def visit(self, row: int) -> None:
        """Go to a sample."""
        self.at = self.scene.points[min(row, len(self.scene.values) - 1)].copy()
        self._show_categories()
        for part, slider in zip(self.slices, self.x, strict=True):
            slider.value = float(np.clip(self.at[part.j], slider.start, slider.end))
        self.changed()

    def _show_categories(self) -> None:
        """Let the widgets of categories show the chosen point."""
        for one, select in zip(self.categories, self.values, strict=True):
            select.value = str(int(one.coordinate(self.at[None])[0]))

    def choose_values(self) -> None:
        """Go to other values of the categories."""
        at = self.at.copy()
        for one, select in zip(self.categories, self.values, strict=True):
            at[one.columns] = np.arange(len(one.columns)) == int(select.value)
        if not np.array_equal(at, self.at):
            self.at = at
            self.changed()

    def choose(self, j: int, value: float) -> None:
        """Go to another value of input j; all other slices follow."""
        if self.at[j] == value:
            return
        self.at = self.at.copy()
        self.at[j] = value
        if len(self.at) > 1:
            self.changed()
        else:
            self.draw_density()

    def changed(self, law: bool = False) -> None:
        """Follow a change: at once where nothing is shown, else when the messages that have arrived are all read."""
        if law:  # the laws have another shape
            for part in self.slices:
                part.standard.clear()
        if self.document is None:
            self.follow()
            self.settle()
        elif not self._waiting:
            self._waiting = True
            self.document.add_next_tick_callback(self._follow)

    def _follow(self) -> None:
        self._waiting = False
        self.follow()
        fast = all(law.gaussian for law, _ in self.posterior.terms) and self.posterior.level is None
        if fast and len(self.slices) == 1:
            self.settle()
            return
        if self._rest is not None:
            self.document.remove_timeout_callback(self._rest)
        self._rest = self.document.add_timeout_callback(self._settle, REST_MS)

    def _settle(self) -> None:
        self._rest = None
        self.settle()

    def follow(self) -> None:
        """Fit, and draw the curves with quantiles of the shape that they had: fast enough for a slider in motion."""
        self.posterior = self.scene.fit()
        for part in self.slices:
            part.draw(exact=False)
        self._mark()
        self.png.disabled = self.python.disabled = True  # until they are those of this model

    def settle(self) -> None:
        """Draw the exact laws, and update densities, scores and code."""
        for part in self.slices:
            part.draw(exact=True)
        self.draw_density()
        self.draw_scores()
        self.code.text = f"<pre>{escape(self.scene.code())}</pre>"
        self.sample.end = max(len(self.scene.values) - 1, 1)
        self.png.disabled = self.python.disabled = False

    def _mark(self) -> None:
        for part in self.slices:
            part.span.location = float(self.at[part.j])

    def draw_scores(self) -> None:
        """Show the leave-one-out scores, and what they were at first."""
        try:
            report = sampled_scores(self.posterior)
        except (TypeError, ValueError) as error:
            self.scores.text = f"No scores: {escape(str(error))}"
            return
        score = float(report.log_score.mean()) - np.log(self.scene.unit)
        values = (score, self.scene.unit * report.rmse, report.coverage(0.5), report.coverage(0.9))
        self.first = self.first or values
        formats = ("{:.3f}", "{:.4g}", "{:.0%}", "{:.0%}")
        names = ("log score per sample", "RMSE", "in 50\u00a0% intervals", "in 90\u00a0% intervals")
        cells = []
        for name, form, value, first in zip(names, formats, values, self.first, strict=True):
            now, before = (form.format(one).replace("%", "\u00a0%") for one in (value, first))
            cells.append(f"{name} <b>{now}</b>" + f" (first {before})" * (now != before))
        scored, n = report.pit.size, len(self.scene.values)
        of = f" of {scored} of {n} samples" * (scored < n)
        self.scores.text = f"Leave one out{of}: " + ", ".join(cells)

    def draw_density(self) -> None:
        """Draw the densities at the chosen point, and show its numbers."""
        self._mark()
        scene, unit, at = self.scene, self.scene.unit, self.at[None]
        mean = unit * float(np.asarray(self.posterior.mean(at)).ravel()[0])
        rows, peak, limit = "", 0.0, np.inf
        for of in WIDEST_FIRST:
            law = self.posterior.distribution(at, of).law
            low, high = mean + unit * law.ppf(TAILS)[:, 0]
            rows = _row("td", LAWS[of], f"{unit * law.std()[0]:.4g}", f"{low:.4g} … {high:.4g}") + rows
            curve = densities(law)
            if curve is None:
                self.densities[of].data = {"y": [], "pdf": [], "gaussian": []}
                continue
            center, std = mean + unit * curve["mean"][0], unit * curve["std"][0]
            exact = mean + unit * curve["y"][0]
            y = np.union1d(exact, center + std * np.linspace(-4, 4, 81))
            pdf = np.interp(y, exact, curve["pdf"][0] / unit, left=np.nan, right=np.nan)
            gaussian = np.exp(-0.5 * ((y - center) / std) ** 2) / (std * np.sqrt(2 * np.pi))
            self.densities[of].data = {"y": y, "pdf": pdf, "gaussian": gaussian}
            peak, limit = max(peak, float(np.nanmax(pdf))), min(limit, PEAK / std)
            if of == "observation":
                self.density.x_range.update(
                    start=max(y[0], center - 4 * std), end=min(y[-1], center + 4 * std)
                )
        # a narrow law may be a spike: it is clipped so that the others stay visible
        self.density.y_range.update(start=0.0, end=1.05 * (min(peak, limit) or 1.0))
        chosen = [f"{scene.names[part.j]} = {self.at[part.j]:.4g}" for part in self.slices]
        chosen += [f"{one.name} = {one.at(self.at)}" for one in self.categories]
        where = ", ".join(chosen)
        self.density.title.text = "exact densities" + f" at {where}" * (len(chosen) == 1)
        self.density.xaxis.axis_label = name = scene.target
        for part in self.slices:
            part.plot.yaxis.axis_label = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        parts = self.posterior.common_uncertainty(at)
        causes = ", ".join(
            f"{CAUSES[cause]} <b>{unit * float(getattr(parts, cause)[0]) ** 0.5:.4g}</b>"
            for cause in causes_of(self.posterior)
        )
        self.numbers.text = (
            f"<p>At {escape(where)} the mean is <b>{mean:.4g}</b>. Standard deviations by cause: {causes}.</p>"
            f"<table>{_row('th', '', 'std', f'{LEVEL} interval')}{rows}</table>"
        )


def _row(cell: str, *texts: str) -> str:
    """A row of a table; ``cell`` is td or th."""
    style = "text-align: left; padding: 1px 16px 1px 0; white-space: nowrap"
    return "<tr>" + "".join(f'<{cell} style="{style}">{text}</{cell}>' for text in texts) + "</tr>"
