"""The law of a prediction at the query points, with the names and broadcasting of ``scipy.stats``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from ..backend import arrays
from ..chaos import ChaosForm
from ..law import LinearCombination
from ..law.derived import as_levels
from ..law.mixed import MixedLaw
from ..noise.base import Noise, as_generator
from ..noise.level import observation_scale
from ..notebook import distribution_html, distribution_text
from ..text import check_choice

if TYPE_CHECKING:
    from .posterior import Posterior

__all__ = ["OF", "PredictiveDistribution", "combination"]

OF = ("estimate", "function", "observation")  # the three random variables at x


class PredictiveDistribution:
    """The law of a prediction at m query points, with the names and broadcasting of ``scipy.stats``.

    Its shape is (m,), or (m, n_y) for several outputs; arguments broadcast against it. It works on NumPy arrays,
    whatever the library of X.

    Parameters
    ----------
    posterior : Posterior
    X : ndarray of shape (m, d)
    of : {"estimate", "function", "observation"}
    verbose : bool
        Show the progress of long computations on stderr.
    noise_scale : ndarray of shape (m,), default=None
        Factors of the noise of new observations, beside the level of the model.

    Attributes
    ----------
    law : LinearCombination or MixedLaw
        Law of the deviation from ``mu``, of shape (m,); output k deviates by ``scale[k]`` times as much.
    mu : ndarray of shape (m,) or (m, n_y)
        Estimate of f.
    scale : ndarray of shape (1,) or (n_y,)

    Examples
    --------
    >>> from scipy import stats
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> noise = stats.gamma(0.25, scale=2)
    >>> model = WienerKernelRegressor(4.21**2 * RBF(3.59), noise=noise, trend=None, tuning=None).fit([[-5.0], [0.0], [5.0]], [1.0, 2.0, 3.0])
    >>> Y = model.predict_distribution([[0.0], [1.0]])
    >>> Y.skewness().round(3).tolist()   # the opposite skew of the noise
    [-3.991, -3.7]
    """

    def __init__(
        self,
        posterior: Posterior,
        X: FloatArray,
        of: str,
        verbose: bool = False,
        noise_scale: FloatArray | None = None,
    ) -> None:
        check_choice("of", of, OF)
        self.of = of
        mean, weights, model = posterior.smoother.evaluate(X)
        self.mu: FloatArray = arrays.as_numpy(posterior.outputs(mean))
        self.scale = posterior.output_scale
        self._posterior = posterior
        self._X = X
        terms = posterior.noise_terms(arrays.as_numpy(weights))
        loc = -sum(law.mean() * (w @ counts) for law, w, counts in terms)
        self._estimate = terms, loc
        std = 0.0 if of == "estimate" else np.sqrt(arrays.as_numpy(model))
        probabilities: FloatArray = np.ones(1)
        if of == "observation":
            scale, probabilities = self._fresh = observation_scale(posterior.level, X, noise_scale)
            (noise, own, counts), *others = terms
            own = np.broadcast_to(own, (len(scale), *own.shape))
            own = np.concatenate([own, scale[..., None]], axis=-1)
            terms = [(noise, own if len(scale) > 1 else own[0], np.append(counts, 1)), *others]
        law = combination(terms, loc=loc, normal_std=std, verbose=verbose)
        self.law: LinearCombination | MixedLaw = (
            law if len(probabilities) == 1 else MixedLaw(law, probabilities)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,) or (m, n_y)."""
        return self.mu.shape

    def __repr__(self) -> str:
        return distribution_text(self)

    def _repr_html_(self) -> str:
        return distribution_html(self)

    def _spread(self, values: FloatArray, power: int = 1) -> FloatArray:
        """Values (m,) that are common to all outputs, times a power of their scales."""
        return np.asarray(values.reshape(values.shape + (1,) * (self.mu.ndim - 1)) * self.scale**power)

    def mean(self) -> FloatArray:
        """Mean; that of an observation includes the mean of its noise."""
        return self.mu + self._spread(self.law.mean())

    def var(self) -> FloatArray:
        """Variance."""
        return self._spread(self.law.var(), 2)

    def std(self) -> FloatArray:
        """Standard deviation."""
        return np.sqrt(self.var())

    def skewness(self) -> FloatArray:
        """Skewness."""
        return self._spread(self.law.skewness(), 0)

    def kurtosis(self) -> FloatArray:
        """Excess kurtosis."""
        return self._spread(self.law.kurtosis(), 0)

    def cumulant(self, order: int) -> FloatArray:
        """Cumulant of the given order, 1 to 8."""
        return self.mean() if order == 1 else self._spread(self.law.cumulant(order), order)

    def _evaluate(
        self, function: Callable[..., Any], argument: ArrayLike, shifted: bool, **options: Any
    ) -> Any:
        """Apply a method of the law, whose last axis is the query point, to an argument that broadcasts to the shape."""
        x = np.asarray(argument, dtype=float)
        if shifted:
            x = (x - self.mu) / self.scale
        if self.mu.ndim == 1:
            return function(x, **options)
        x = np.atleast_2d(x)
        if x.shape[-1] > 1:  # otherwise all outputs have one law, up to their scales
            x = np.broadcast_to(x, np.broadcast_shapes(x.shape, self.shape))
        result = function(np.moveaxis(x, -1, 0), **options)
        if isinstance(result, tuple):
            return tuple(np.moveaxis(part, 0, -1) for part in result)
        return np.moveaxis(result, 0, -1)

    def pdf(self, y: ArrayLike, **options: Any) -> Any:
        """Density at y."""
        result = self._evaluate(self.law.pdf, y, True, **options)
        return tuple(r / self.scale for r in result) if isinstance(result, tuple) else result / self.scale

    def logpdf(self, y: ArrayLike, **options: Any) -> Any:
        """Logarithm of the density at y."""
        return self._evaluate(self.law.logpdf, y, True, **options) - np.log(self.scale)

    def cdf(self, y: ArrayLike, **options: Any) -> Any:
        """Probability of at most y."""
        return self._evaluate(self.law.cdf, y, True, **options)

    def sf(self, y: ArrayLike, **options: Any) -> Any:
        """Probability of more than y, accurate where it is small."""
        return self._evaluate(self.law.sf, y, True, **options)

    def _quantile(self, function: Callable[..., Any], q: ArrayLike, **options: Any) -> Any:
        result = self._evaluate(function, q, False, **options)
        if isinstance(result, tuple):
            value = result[0] * self.scale + self.mu
            return value, np.broadcast_to(result[1], value.shape)
        return result * self.scale + self.mu

    def ppf(self, q: ArrayLike, **options: Any) -> Any:
        """Quantile: the smallest y with ``cdf(y) >= q``."""
        return self._quantile(self.law.ppf, q, **options)

    def isf(self, q: ArrayLike, **options: Any) -> Any:
        """Upper quantile: the smallest y with ``sf(y) <= q``."""
        return self._quantile(self.law.isf, q, **options)

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed interval."""
        tail = 0.5 * (1 - as_levels("confidence", confidence))
        return self.ppf(tail), self.isf(tail)

    def hdi(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Shortest interval, for skewed laws."""
        lower, upper = self.law.hdi(confidence)
        return self.mu + self._spread(lower), self.mu + self._spread(upper)

    def rvs(self, size: int = 1, random_state: RandomState = None) -> FloatArray:
        """Draws of functions, (size, m) or (size, m, n_y): one draw of the noise in the data is one on all of X."""
        generator = as_generator(random_state)
        outputs = [self._draw(size, generator) for _ in range(self.mu.size // self._X.shape[0])]
        return (np.stack(outputs, axis=-1) * self.scale).reshape(size, *self.shape) + self.mu

    def _draw(self, size: int, generator: Any) -> FloatArray:
        draws = self._draw_estimate(size, generator)
        if self.of != "estimate":
            draws = draws + generator.standard_normal(draws.shape) @ self._model_root.T
        if self.of == "observation":
            scale, probabilities = self._fresh
            part = generator.choice(len(scale), size=draws.shape, p=probabilities) if len(scale) > 1 else 0
            scale = scale[part, np.arange(scale.shape[1])]
            draws = draws + scale * self._posterior.noise.rvs(draws.shape, random_state=generator)
        return draws

    def _draw_estimate(self, size: int, generator: Any) -> FloatArray:
        """Draws of the estimate minus ``mu``, (size, m)."""
        terms, loc = self._estimate
        return combination(terms, loc=loc).rvs(size, random_state=generator)

    @cached_property
    def _model_root(self) -> FloatArray:
        """A root (m, m) of the covariance of the model part."""
        values, vectors = np.linalg.eigh(self._model_covariance())
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    def _model_covariance(self) -> FloatArray:
        return arrays.as_numpy(self._posterior.smoother.evaluate_jointly(self._X)[2])

    def chaos(self) -> ChaosForm:
        """Chaos form (12) of the estimate: coefficients and joint basis."""
        if self.of != "estimate":
            raise ValueError(f"the chaos form (12) is that of of='estimate'; this is of={self.of!r}")
        return self._posterior.chaos(self._X)


def combination(terms: Sequence[tuple[Noise, FloatArray, Any]], **options: Any) -> LinearCombination:
    """The law of a sum of terms, each with its law, weights and counts."""
    laws, weights, counts = zip(*terms, strict=True)
    return LinearCombination(laws, weights, counts=counts, **options)
