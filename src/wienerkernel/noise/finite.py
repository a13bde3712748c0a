"""Noise made of data and of other noises: recorded residuals, weighted mixtures."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import ComplexArray, FloatArray, RandomState
from .base import Noise, as_generator, cumulants_from_moments, moments_from_cumulants
from .identity import digest

__all__ = ["Mixture", "Residuals"]


def _log_mixture(probabilities: FloatArray, exponents: ComplexArray) -> ComplexArray:
    """Logarithm of sum_k p_k exp(z_k) over the last axis, with relative accuracy where all z_k are small."""
    from scipy.special import log1p

    small = np.max(np.abs(exponents), axis=-1, initial=0.0) < 0.5
    top = np.max(exponents.real, axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        result = np.asarray(np.log(np.exp(exponents - top) @ probabilities) + top[..., 0])
    # exp(z) - 1 by halves: numpy's complex expm1 is accurate, its complex log1p is not
    result[small] = log1p(np.expm1(exponents[small]) @ probabilities)
    return result


class Residuals(Noise):
    """The empirical law of recorded residuals, each equally likely unless weighted.

    Parameters
    ----------
    values : array-like of shape (n,)
        At least two different finite numbers.
    weights : array-like of shape (n,), optional
        Non-negative; normalized to sum 1.

    Examples
    --------
    >>> noise = Residuals([-1.0, 0.0, 0.0, 1.0])
    >>> noise.mean(), noise.var()
    (0.0, 0.5)
    """

    discrete = True

    def __init__(self, values: ArrayLike, weights: ArrayLike | None = None) -> None:
        x = np.asarray(values, dtype=float)
        if x.ndim != 1 or not np.all(np.isfinite(x)):
            msg = f"residuals must be a one-dimensional array of finite numbers, got shape {x.shape}"
            raise ValueError(msg)
        p = _probabilities("weights", np.ones(len(x)) if weights is None else weights, len(x))
        self.values, inverse = np.unique(x, return_inverse=True)
        self.weights = np.bincount(inverse, weights=p).astype(np.float64)
        if np.count_nonzero(self.weights) < 2:
            msg = "residuals must hold at least two different values, or the noise has no variance"
            raise ValueError(msg)
        self._mean = float(self.values @ self.weights)
        self._cumulative = np.minimum(np.cumsum(self.weights), 1.0)
        self._cumulative[-1] = 1.0
        self._survival = np.append(np.cumsum(self.weights[::-1])[::-1][1:], 0.0)
        self.values.flags.writeable = self.weights.flags.writeable = False

    def _made_of(self) -> tuple[Hashable, ...]:
        return (digest(self.values, self.weights),)

    def __repr__(self) -> str:
        return f"<Residuals: {len(self.values)} values, mean {self.mean():.4g}, std {self.std():.4g}>"

    def atoms(self) -> tuple[FloatArray, FloatArray]:
        kept = self.weights > 0
        return self.values[kept], self.weights[kept]

    def cumulants(self, order: int = 8) -> FloatArray:
        centered = self.values - self._mean
        return cumulants_from_moments(self._mean, [centered**r @ self.weights for r in range(2, order + 1)])

    def logcf(self, t: ArrayLike) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        centered = self.values - self._mean
        flat = np.empty(t.size, dtype=complex)
        step = max(1, 2**20 // len(centered))
        for start in range(0, t.size, step):
            part = slice(start, start + step)
            flat[part] = _log_mixture(self.weights, 1j * t.ravel()[part, None] * centered)
        return flat.reshape(t.shape) + 1j * self._mean * t

    def sector(self) -> float:
        return np.pi / 2

    def pdf(self, x: ArrayLike) -> FloatArray:  # noqa: ARG002
        msg = "recorded residuals are discrete and have no density"
        raise TypeError(msg)

    def _before(self, x: ArrayLike) -> tuple[Any, Any]:
        position = np.searchsorted(self.values, x, side="right")
        return position, np.maximum(position - 1, 0)

    def cdf(self, x: ArrayLike) -> FloatArray:
        position, index = self._before(x)
        return np.where(position == 0, 0.0, self._cumulative[index])

    def sf(self, x: ArrayLike) -> FloatArray:
        position, index = self._before(x)
        return np.where(position == 0, 1.0, self._survival[index])

    def ppf(self, q: ArrayLike) -> FloatArray:
        q = np.asarray(q, dtype=float)
        index = np.searchsorted(self._cumulative, np.clip(q, 0, 1), side="left")
        return np.where((q >= 0) & (q <= 1), self.values[np.minimum(index, len(self.values) - 1)], np.nan)

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        uniform = as_generator(random_state).uniform(size=size)
        return np.asarray(self.values[np.searchsorted(self._cumulative, uniform, side="right")])

    def support(self) -> tuple[float, float]:
        return float(self.values[0]), float(self.values[-1])


class Mixture(Noise):
    """M follows component k with probability p_k.

    Parameters
    ----------
    components : sequence
        Anything that is accepted as noise.
    weights : array-like
        One non-negative number a component; normalized to sum 1.

    Examples
    --------
    >>> noise = Mixture(["norm(0, 1)", "norm(0, 10)"], [0.9, 0.1])   # one sample in ten is an outlier
    >>> round(noise.var(), 6)
    10.9
    """

    def __init__(self, components: Sequence[Any], weights: ArrayLike) -> None:
        from . import as_noise

        self.components = tuple(as_noise(component) for component in components)
        self.weights = _probabilities("weights", weights, len(self.components))
        self.weights.flags.writeable = False
        self.discrete = all(component.discrete for component in self.components)
        self.costly = any(component.costly for component in self.components)
        self._mean = float(sum(p * c.mean() for p, c in self._pairs()))

    def _made_of(self) -> tuple[Hashable, ...]:
        return (*self.components, digest(self.weights))

    def __repr__(self) -> str:
        return f"Mixture({list(self.components)!r}, {self.weights.tolist()!r})"

    @property
    def atomic(self) -> bool:
        """Whether a component of positive weight has atoms."""
        return any(component.atomic for _, component in self._pairs())

    def flattened(self) -> list[tuple[float, Noise]]:
        """Probabilities and components, with those of mixtures within the mixture in their place."""
        pairs: list[tuple[float, Noise]] = []
        for p, component in self._pairs():
            inner = component.flattened() if isinstance(component, Mixture) else [(1.0, component)]
            pairs += [(p * q, part) for q, part in inner]
        return pairs

    def _pairs(self) -> list[tuple[float, Noise]]:
        return [(p, part) for p, part in zip(self.weights.tolist(), self.components, strict=True) if p > 0]

    def _sum(self, name: str, x: ArrayLike) -> FloatArray:
        return np.asarray(sum(p * getattr(c, name)(x) for p, c in self._pairs()))

    def atoms(self) -> tuple[FloatArray, FloatArray]:
        rules = [component.atoms() for component in self.components]
        probabilities = np.concatenate([p * w for p, (_, w) in zip(self.weights, rules, strict=True)])
        return Residuals(np.concatenate([x for x, _ in rules]), probabilities).atoms()

    def cumulants(self, order: int = 8) -> FloatArray:
        moments = np.zeros(order)
        for p, component in self._pairs():
            kappa = component.cumulants(order)
            kappa[0] -= self._mean
            moments += p * moments_from_cumulants(kappa)
        return cumulants_from_moments(self._mean, moments[1:])

    def logcf(self, t: ArrayLike) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        drift = 1j * self._mean * t
        return (
            _log_mixture(self.weights, np.stack([c.logcf(t) - drift for c in self.components], axis=-1))
            + drift
        )

    def strip(self) -> tuple[float, float]:
        ends = np.array([component.strip() for component in self.components])
        return float(ends[:, 0].max()), float(ends[:, 1].min())

    def sector(self) -> float:
        """The smallest of the components'; the logarithm may have branch points there, its exponential has none."""
        return min(component.sector() for component in self.components)

    def pdf(self, x: ArrayLike) -> FloatArray:
        return self._sum("pdf", x)

    def cdf(self, x: ArrayLike) -> FloatArray:
        return self._sum("cdf", x)

    def sf(self, x: ArrayLike) -> FloatArray:
        return self._sum("sf", x)

    def pdf_near(self, point: float, offset: FloatArray) -> FloatArray:
        return np.asarray(sum(p * c.pdf_near(point, offset) for p, c in self._pairs()))

    def singular_points(self) -> FloatArray:
        return np.unique(np.concatenate([component.singular_points() for component in self.components]))

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        generator = as_generator(random_state)
        choice = generator.choice(len(self.components), size=size, p=self.weights)
        result = np.empty(choice.shape)
        for k, component in enumerate(self.components):
            chosen = choice == k
            result[chosen] = component.rvs(int(chosen.sum()), random_state=generator)
        return result

    def support(self) -> tuple[float, float]:
        ends = np.array([component.support() for component in self.components])
        return float(ends[:, 0].min()), float(ends[:, 1].max())


def _probabilities(name: str, weights: ArrayLike, n: int) -> FloatArray:
    p = np.asarray(weights, dtype=float)
    if n == 0 or p.shape != (n,) or not np.all(np.isfinite(p)) or np.any(p < 0) or p.sum() == 0:
        msg = f"{name} must be {n} non-negative numbers with a positive sum, got {np.asarray(weights)!r}"
        raise ValueError(msg)
    return np.asarray(p / p.sum())
