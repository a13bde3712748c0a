"""A figure of the page: the prediction along one input, with samples that can be moved."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...posterior.distribution import OF
from ..report.scores import thinned
from ..report.slices import TAILS, Path, nearness
from .figures import LEVEL, slice_figure
from .scenes import PaperScene

__all__ = ["Slice"]

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
        models: Any = import_module("bokeh.models")
        events: Any = import_module("bokeh.events")

        self.page, self.j = page, j
        self.curve, self.data = models.ColumnDataSource(), models.ColumnDataSource()
        self.span = models.Span(dimension="height", line_dash="dotted", line_width=2)
        scene = page.scene
        self.plot = slice_figure(self.curve, self.data, self.span, isinstance(scene, PaperScene))
        self.plot.xaxis.axis_label = scene.names[j]
        self.plot.title.text = f"mean and exact {LEVEL} intervals"
        self.standard: dict[str, FloatArray] = {}
        """Quantiles in units of the standard deviation, when they were last computed."""
        self.held: int | None = None
        if not scene.fixed:
            self.plot.on_event(events.Tap, lambda event: self.click(event.x, event.y))
            self.plot.on_event(events.PanStart, lambda event: self.grasp(event.x, event.y))
            self.plot.on_event(events.Pan, lambda event: self.drag(event.x, event.y))
            self.plot.on_event(events.PanEnd, lambda _: self.drop())

    def frame(self) -> None:
        """Take the horizontal range of the samples."""
        self.plot.x_range.update(**dict(zip(("start", "end"), self.page.scene.limits(self.j), strict=True)))

    def _path(self) -> Path:
        return Path(self.j, self.page.at, np.zeros(0, dtype=int), 0.0, 1.0, np.zeros((0, 0)))

    def _shift(self, points: FloatArray) -> FloatArray:
        """How far samples at points (m, d) are moved along the mean, (m,)."""
        onto = self._path().onto(points)
        if np.array_equal(onto, points):
            return np.zeros(len(points))
        mean = self.page.posterior.mean
        return np.asarray(mean(onto) - mean(points), dtype=float).reshape(len(points))

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
        near = nearness(posterior.smoother.kernel, scene.points[shown], along) ** 2
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
        if row is None and not all(axis.start <= value <= axis.end for value, axis in ranges):
            return  # on an axis or the legend
        if row is None:
            scene.add(self._path()(np.array([x]))[0], y / scene.unit)
        else:
            scene.remove(row)
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
