"""What the page shows: the paper's example or a user's model, with the controls that change it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...experiments.system import kernel as paper_kernel
from ...experiments.system import truth
from ...noise.family import Family
from ...posterior import Posterior
from ...regressor import WienerKernelRegressor
from ...text import rounded
from ..report.numbers import default_names, transform_name
from ..report.slices import base_point, observations, sweep

__all__ = ["LAWS", "ModelScene", "PaperScene", "Scene"]

N_GRID = 81
MAX_REPEATS = 50
LENGTH_SCALE = 3.59
OWN = "the model's own"
LAWS = {
    "gamma": Family("gamma", bounds={"a": (0.25, 0.25)}),
    "normal": Family("norm"),
    "uniform": Family("uniform"),
    "lognormal": Family("lognorm", bounds={"s": (1.0, 1.0)}),
    "Student": Family("t", bounds={"df": (5.0, 5.0)}),
    "Laplace": Family("laplace"),
}
"""Families of noise with fixed shapes."""


class Scene(ABC):
    """What the page shows: an introduction in HTML, the widgets that change the model, and the model."""

    heading: str
    introduction: str
    controls: list[Any]
    target = "y"

    @abstractmethod
    def fit(self) -> Posterior:
        """Fit the model as the controls say."""

    def column(self) -> int:
        """Index of the input that varies."""
        return 0

    def name(self) -> str:
        """Name of the input that varies."""
        return "x"

    def output(self) -> int:
        """Index of the output that is shown."""
        return 0

    def truth(self, x: FloatArray) -> FloatArray:
        """Values of the true function, NaN if it is unknown."""
        return np.full(x.shape, np.nan)

    def grid(self, points: FloatArray) -> FloatArray:
        """Points along the input that varies, (m, d)."""
        return sweep(points, self.column(), N_GRID)


class PaperScene(Scene):
    """The paper's example, with any number of inputs and repeats."""

    heading = "The paper's example"
    introduction = (
        "Samples of a cubic function at evenly spaced inputs in [−5, 5]. "
        "All noise laws have mean 0.5 and variance 1."
    )

    def __init__(self) -> None:
        models: Any = import_module("bokeh.models")

        self.places = models.Slider(title="number of inputs", start=1, end=25, value=5)
        self.repeats = models.Slider(title="samples per input", start=1, end=MAX_REPEATS, value=1)
        self.scale = models.Slider(title="length scale", start=0.5, end=10.0, step=0.01, value=LENGTH_SCALE)
        self.law = models.Select(title="noise law", options=list(LAWS), value="gamma")
        self.draw = models.Slider(title="random seed", start=1, end=100, value=1)
        self.controls = [self.places, self.repeats, self.scale, self.law, self.draw]

    def fit(self) -> Posterior:
        """Fit to as many inputs and repeats as the controls say."""
        n = int(self.places.value)
        x = np.linspace(-5.0, 5.0, n) if n > 1 else np.zeros(1)
        # the same probabilities for every law, and more repeats keep the earlier ones
        uniform = np.random.default_rng([int(self.draw.value), n]).uniform(size=(n, MAX_REPEATS))
        noise = LAWS[self.law.value].law(std=1.0, mean=0.5)
        y = truth(x)[:, None] + noise.ppf(uniform[:, : int(self.repeats.value)])
        kernel = _stretched(paper_kernel(), self.scale.value / LENGTH_SCALE)
        model = WienerKernelRegressor(kernel, noise=noise, trend=None, tuning=None)
        posterior: Posterior = model.fit(np.repeat(x, y.shape[1])[:, None], y.ravel()).posterior_
        return posterior

    def truth(self, x: FloatArray) -> FloatArray:
        """Right-hand side of the paper's system."""
        return truth(x)

    def grid(self, points: FloatArray) -> FloatArray:  # noqa: ARG002
        """Points of the paper's figures."""
        return np.linspace(-6.0, 6.0, N_GRID)[:, None]


class ModelScene(Scene):
    """A user's fitted model, under other noise laws and length scales."""

    heading = "Your model"

    def __init__(self, model: Any) -> None:
        models: Any = import_module("bokeh.models")

        self.model = model
        self.posterior: Posterior = model.posterior_
        self.points, self.outputs = observations(self.posterior)
        n, d = self.points.shape
        n_y = self.outputs.shape[1]
        noise = model.noise_
        self.names = default_names(model)
        self.introduction = (
            f"{n} samples: <code>{escape(rounded(repr(model.kernel_)))}</code> with noise "
            f"<code>{escape(rounded(repr(noise)))}</code>. The other noise laws have the same mean, {noise.mean():.4g}, and "
            f"variance, {noise.var():.4g}."
        )
        if transform := transform_name(self.posterior.transform):
            self.introduction += f" Everything is on the transformed scale ({escape(transform)})."
        self.factor = models.Slider(title="length-scale multiplier", start=0.2, end=5.0, step=0.01, value=1.0)
        self.law = models.Select(title="noise law", options=[OWN, *LAWS], value=OWN)
        numbers = [(str(j), name) for j, name in enumerate(self.names)]
        self.input = models.Select(title="input that varies", options=numbers, value="0")
        outputs = [(str(k), f"y{k + 1}") for k in range(n_y)]
        self.shown = models.Select(title="output", options=outputs, value="0")
        stretches = any("length_scale" in name for name in model.kernel_.names)
        self.controls = (
            [self.factor] * stretches + [self.law] + [self.input] * (d > 1) + [self.shown] * (n_y > 1)
        )
        if d > 1:
            base = ", ".join(
                f"{escape(name)} = {v:.4g}"
                for name, v in zip(self.names, base_point(self.points), strict=True)
            )
            self.introduction += (
                f" The other inputs are those of the sample nearest the median: {base}. "
                "Points fade with distance from this slice."
            )

    def fit(self) -> Posterior:
        """Fit to the user's data, with another noise law or length scale if the controls say so."""
        old, samples = self.model, self.posterior.smoother.samples
        if self.law.value == OWN and self.factor.value == 1.0:
            return self.posterior
        law = old.noise_
        if self.law.value != OWN:
            law = LAWS[self.law.value].law(law.std(), mean=law.mean())
        kernel = _stretched(old.kernel_, self.factor.value)
        trend = self.posterior.smoother.trend.kind
        new = WienerKernelRegressor(kernel, noise=law, ridge=old.ridge, trend=trend, tuning=None)
        units = self.posterior.output_scale
        outputs = self.outputs[:, 0] if self.posterior.single_output else self.outputs / units
        linear = self.posterior.input_noise
        noise = None if linear is None else linear.noise
        points = self.points if noise is None else self.points + noise.mean
        fitted: Posterior = new.fit(points, outputs, noise_scale=samples.scale, input_noise=noise).posterior_
        return replace(fitted, output_scale=units, level=self.posterior.level)

    def column(self) -> int:
        """Index of the chosen input."""
        return int(self.input.value)

    def name(self) -> str:
        """Name of the chosen input."""
        return self.names[self.column()]

    def output(self) -> int:
        """Index of the chosen output."""
        return int(self.shown.value)


def _stretched(kernel: Any, factor: float) -> Any:
    """The kernel with all length scales multiplied by a factor."""
    scales = np.array(["length_scale" in name for name in kernel.names], dtype=bool)
    return kernel.with_theta(kernel.theta + scales * np.log(factor))
