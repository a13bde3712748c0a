"""What the page shows: the paper's example or a user's model, with the samples and the controls that change it."""

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
from ...noise.level import checked_level
from ...posterior import Posterior
from ...regressor import WienerKernelRegressor
from ...text import rounded
from ..report.numbers import default_names, single_models, target_names, transform_name
from ..report.slices import observations, path
from .code import model_code

__all__ = ["LAWS", "ModelScene", "PaperScene", "Scene"]

models: Any = import_module("bokeh.models")

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
    """Samples that can be moved, the widgets that change them or the model, and the model."""

    heading: str
    introduction: str
    names: list[str]
    target = "y"
    controls: list[Any]
    """Widgets that change the model."""
    sources: list[Any]
    """Widgets that replace the samples; `reset` reads them."""
    points: FloatArray
    values: FloatArray
    noise_scale: FloatArray
    """Factors of the noise of the samples, (n,)."""
    unit = 1.0
    """What values of the model are multiplied by for display."""
    fixed = ""
    """Why samples cannot be moved; empty if they can."""

    @abstractmethod
    def reset(self) -> None:
        """Take the samples as they were, or as the sources say."""

    @abstractmethod
    def fit(self) -> Posterior:
        """The model of the samples, as the controls say."""

    @abstractmethod
    def retune(self) -> None:
        """Estimate the parameters of the model from the samples as they are now."""

    @abstractmethod
    def code(self) -> str:
        """Python that makes this model."""

    def truth(self, x: FloatArray) -> FloatArray:
        """Values of the true function, NaN if it is unknown."""
        return np.full(x.shape, np.nan)

    def limits(self, j: int) -> tuple[float, float]:
        """Ends of the axis of input j, beyond those of the samples."""
        swept = path(self.points, j).sweep(2)[:, j]
        return float(swept[0]), float(swept[1])

    def add(self, point: FloatArray, value: float) -> None:
        """Add a sample."""
        self.points = np.vstack([self.points, point])
        self.values = np.append(self.values, value)
        self.noise_scale = np.append(self.noise_scale, 1.0)

    def remove(self, row: int) -> None:
        """Remove a sample; the last one stays."""
        if len(self.values) > 1:
            self.points = np.delete(self.points, row, axis=0)
            self.values = np.delete(self.values, row)
            self.noise_scale = np.delete(self.noise_scale, row)

    def move(self, row: int, j: int, x: float, value: float) -> None:
        """Give a sample another input x_j and another value."""
        self.points, self.values = self.points.copy(), self.values.copy()
        self.points[row, j], self.values[row] = x, value


class PaperScene(Scene):
    """The paper's example, with any number of inputs and repeats."""

    heading = "The paper's example"
    introduction = (
        "Samples of a cubic function at evenly spaced inputs in [−5, 5]. "
        "All noise laws have mean 0.5 and variance 1."
    )

    def __init__(self) -> None:
        self.names = ["x"]
        self.places = models.Slider(title="number of inputs", start=1, end=25, value=5)
        self.repeats = models.Slider(title="samples per input", start=1, end=MAX_REPEATS, value=1)
        self.scale = models.Slider(title="length scale", start=0.5, end=10.0, step=0.01, value=LENGTH_SCALE)
        self.law = models.Select(title="noise law", options=list(LAWS), value="gamma")
        self.draw = models.Slider(title="random seed", start=1, end=100, value=1)
        self.controls = [self.scale]
        self.sources = [self.places, self.repeats, self.law, self.draw]
        self.kernel = paper_kernel()
        self.reset()

    def _noise(self) -> Any:
        return LAWS[self.law.value].law(std=1.0, mean=0.5)

    def _model(self, **options: Any) -> WienerKernelRegressor:
        kernel = _stretched(self.kernel, self.scale.value / LENGTH_SCALE)
        return WienerKernelRegressor(kernel, noise=self._noise(), trend=None, **options)

    def reset(self) -> None:
        n = int(self.places.value)
        x = np.linspace(-5.0, 5.0, n) if n > 1 else np.zeros(1)
        # the same probabilities for every law, and more repeats keep the earlier ones
        uniform = np.random.default_rng([int(self.draw.value), n]).uniform(size=(n, MAX_REPEATS))
        y = truth(x)[:, None] + self._noise().ppf(uniform[:, : int(self.repeats.value)])
        self.points, self.values = np.repeat(x, y.shape[1])[:, None], y.ravel()
        self.noise_scale = np.ones(y.size)

    def fit(self) -> Posterior:
        posterior: Posterior = self._model(tuning=None).fit(self.points, self.values).posterior_
        return posterior

    def retune(self) -> None:
        """Estimate amplitude and length scale."""
        found = self._model().fit(self.points, self.values).kernel_
        # the slider shows the length scale, which its range may bound
        [scale] = np.exp(found.theta[_is_length_scale(found)])
        value = float(np.clip(scale, self.scale.start, self.scale.end))
        self.kernel = _stretched(found, LENGTH_SCALE / scale)
        self.scale.value = value

    def code(self) -> str:
        X, y = self.points, self.values
        model = self._model(tuning=None).fit(X, y)
        return model_code(model, X, y, model.kernel_, model.noise_, self.noise_scale, (X, y))

    def truth(self, x: FloatArray) -> FloatArray:
        return truth(x)

    def limits(self, j: int) -> tuple[float, float]:  # noqa: ARG002
        return -6.0, 6.0  # as in the paper's figures


class ModelScene(Scene):
    """A user's fitted model, under other noise laws and length scales, with other samples."""

    heading = "Your model"

    def __init__(self, model: Any) -> None:
        given = single_models(model)
        self.names = default_names(model)
        self.outputs = [(one, k) for one in given for k in range(len(one.posterior_.output_scale))]
        self.targets = target_names(getattr(model, "target_names_in_", None), len(self.outputs))
        self.factor = models.Slider(title="length-scale multiplier", start=0.2, end=5.0, step=0.01, value=1.0)
        self.law = models.Select(title="noise law", options=[OWN, *LAWS], value=OWN)
        options = [(str(k), name) for k, name in enumerate(self.targets)]
        self.shown = models.Select(title="output", options=options, value="0")
        stretches = any(_is_length_scale(one.kernel_).any() for one in given)
        self.controls = [self.factor] * stretches + [self.law]
        self.sources = [self.shown] * (len(self.outputs) > 1)
        self.reset()

    def reset(self) -> None:
        self.model, column = self.outputs[int(self.shown.value)]
        self.target = self.targets[int(self.shown.value)]
        posterior: Posterior = self.model.posterior_
        samples = posterior.smoother.samples
        self.points, outputs = observations(posterior)
        self.unit = float(posterior.output_scale[column])
        self.values = outputs[:, column] / self.unit
        if samples.scale.ndim == 2:
            self.fixed = "Samples with correlated noise cannot be moved."
        elif posterior.input_noise is not None:
            self.fixed = "Samples with noise on their inputs cannot be moved."
        # without the level, which is that of the inputs where the samples are moved to
        self.noise_scale = samples.scale if self.fixed else samples.scale / self._level(self.points)
        self._original = self.points, self.values
        n, noise = len(self.values), self.model.noise_
        mean = noise.mean() if abs(noise.mean()) > 1e-12 * noise.std() else 0.0
        self.introduction = (
            f"{n} samples: <code>{escape(rounded(repr(self.model.kernel_)))}</code> with noise "
            f"<code>{escape(rounded(repr(noise)))}</code>. The other noise laws have the same mean, {mean:.4g}, and "
            f"variance, {noise.var():.4g}. {escape(self.fixed)}"
        )
        if transform := transform_name(posterior.transform):
            self.target += ", transformed"
            self.introduction += (
                f" Everything except the scores is on the transformed scale ({escape(transform)})."
            )
        if len(self.names) > 1:
            self.introduction += (
                " Each figure varies one input of the chosen point; samples are moved there along the mean, and fade "
                "with distance from it."
            )

    def _level(self, points: FloatArray) -> FloatArray:
        level = self.model.posterior_.level
        return np.ones(len(points)) if level is None else checked_level(level(points), len(points))

    def _parts(self) -> tuple[Any, Any]:
        """Kernel and noise, as the controls say."""
        law = self.model.noise_
        if self.law.value != OWN:
            law = LAWS[self.law.value].law(law.std(), mean=law.mean())
        return _stretched(self.model.kernel_, self.factor.value), law

    def fit(self) -> Posterior:
        """Fit to the samples, with another noise law or length scale if the controls say so."""
        posterior: Posterior = self.model.posterior_
        moved = self.points is not self._original[0] or self.values is not self._original[1]
        changed = moved or self.law.value != OWN or self.factor.value != 1.0
        if posterior.single_output and not changed:
            return posterior
        kernel, law = self._parts()
        trend = posterior.smoother.trend.kind
        new = WienerKernelRegressor(kernel, noise=law, ridge=self.model.ridge, trend=trend, tuning=None)
        noise = None if posterior.input_noise is None else posterior.input_noise.noise
        points = self.points if noise is None else self.points + noise.mean
        scale = self.noise_scale if self.fixed else self.noise_scale * self._level(points)
        fitted: Posterior = new.fit(points, self.values, noise_scale=scale, input_noise=noise).posterior_
        return replace(fitted, level=posterior.level)

    def retune(self) -> None:
        """Estimate all that was estimated in the user's model, or kernel and noise variance if nothing was."""
        if self.fixed:
            raise ValueError(self.fixed)
        old = self.model
        options = {**old.get_params(deep=False), "approximation": None}
        if old.tuning is None:
            options |= {"tuning": "likelihood", "kernel": old.kernel_}
        transform = old.posterior_.transform
        values = self.values if transform is None else transform.inverse(self.values)
        self.model = WienerKernelRegressor(**options).fit(self.points, values, noise_scale=self.noise_scale)
        if transform is not None:
            self.values = self.model.posterior_.transform(values)
        self._original = self.points, self.values
        self.law.value, self.factor.value = OWN, 1.0

    def code(self) -> str:
        if self.fixed:
            return f"# {self.fixed}"
        transform = self.model.posterior_.transform
        values, before = self.values, self._original[1]
        if transform is not None:
            values, before = transform.inverse(values), transform.inverse(before)
        return model_code(
            self.model, self.points, values, *self._parts(), self.noise_scale, (self._original[0], before)
        )


def _is_length_scale(kernel: Any) -> Any:
    return np.array(["length_scale" in name for name in kernel.names], dtype=bool)


def _stretched(kernel: Any, factor: float) -> Any:
    """The kernel with all length scales multiplied by a factor."""
    return kernel.with_theta(kernel.theta + _is_length_scale(kernel) * np.log(factor))
