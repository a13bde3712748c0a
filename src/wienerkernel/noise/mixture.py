"""Mixtures of noise laws."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import ComplexArray, FloatArray, RandomState
from .base import Noise, as_generator, cumulants_from_moments, moments_from_cumulants
from .convert import as_noise
from .identity import digest
from .residuals import Residuals, log_mixture, probabilities

__all__ = ["Mixture"]


class Mixture(Noise):
    """M follows component k with probability p_k.

    Parameters
    ----------
    components : sequence
        Anything that :func:`as_noise` accepts.
    weights : array-like
        One non-negative number per component; normalized to sum 1.

    Examples
    --------
    >>> noise = Mixture(["norm(0, 1)", "norm(0, 10)"], [0.9, 0.1])   # one sample in ten is an outlier
    >>> round(noise.var(), 6)
    10.9
    """

    def __init__(self, components: Sequence[Any], weights: ArrayLike) -> None:
        self.components = tuple(as_noise(component) for component in components)
        self.weights = probabilities(weights, len(self.components))
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
        """Probabilities and components, where components that are mixtures are replaced by their own."""
        pairs: list[tuple[float, Noise]] = []
        for p, component in self._pairs():
            inner = component.flattened() if isinstance(component, Mixture) else [(1.0, component)]
            pairs += [(p * q, part) for q, part in inner]
        return pairs

    def _pairs(self) -> list[tuple[float, Noise]]:
        return [(p, part) for p, part in zip(self.weights.tolist(), self.components, strict=True) if p > 0]

    def _sum(self, name: str, *arguments: Any) -> FloatArray:
        return np.asarray(sum(p * getattr(c, name)(*arguments) for p, c in self._pairs()))

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
            log_mixture(self.weights, np.stack([c.logcf(t) - drift for c in self.components], axis=-1))
            + drift
        )

    def strip(self) -> tuple[float, float]:
        ends = np.array([component.strip() for component in self.components])
        return float(ends[:, 0].max()), float(ends[:, 1].min())

    def sector(self) -> float:
        """The smallest sector of a component; log phi may have branch points in it, phi has none."""
        return min(component.sector() for component in self.components)

    def tail_index(self) -> float:
        return min(component.tail_index() for component in self.components)

    def pdf(self, x: ArrayLike) -> FloatArray:
        return self._sum("pdf", x)

    def cdf(self, x: ArrayLike) -> FloatArray:
        return self._sum("cdf", x)

    def sf(self, x: ArrayLike) -> FloatArray:
        return self._sum("sf", x)

    def pdf_near(self, point: float, offset: FloatArray) -> FloatArray:
        return self._sum("pdf_near", point, offset)

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
