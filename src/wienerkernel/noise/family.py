"""Noise that is only partly known: a family with free parameters, or the shape of the residuals.

A noise model maps the standard deviation and the shape parameters to a law. It is parametrized by the standard
deviation rather than the family's own scale, because the Gaussian quasi-likelihood depends on the variance alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, IntArray
from .base import Noise
from .convert import as_noise, scipy_family
from .identity import family_name, generator_key
from .residuals import SmoothedResiduals
from .scipy_law import ScipyNoise, check_line

__all__ = ["Family", "KnownLaw", "NoiseModel", "ScaledShape", "known_noise", "noise_model"]

DEFAULT_BOUNDS = (0.05, 50.0)
BOUNDS: dict[str, dict[str, tuple[float, float]]] = {
    "beta": {"a": (0.1, 100.0), "b": (0.1, 100.0)},
    "burr": {"c": (2.1, 50.0), "d": (0.1, 50.0)},
    "burr12": {"c": (0.5, 20.0), "d": (4.2, 50.0)},
    "exponnorm": {"K": (0.02, 50.0)},
    "fisk": {"c": (2.1, 50.0)},
    "gamma": {"a": (0.05, 500.0)},
    "genextreme": {"c": (-0.45, 0.9)},
    "gennorm": {"beta": (0.3, 20.0)},
    "genpareto": {"c": (-0.9, 0.45)},
    "invgamma": {"a": (2.1, 200.0)},
    "invgauss": {"mu": (0.01, 20.0)},
    "invweibull": {"c": (2.1, 50.0)},
    "johnsonsu": {"a": (-5.0, 5.0), "b": (0.7, 20.0)},
    "loglaplace": {"c": (2.1, 50.0)},
    "lognorm": {"s": (0.05, 2.0)},
    "lomax": {"c": (2.1, 100.0)},
    "pareto": {"b": (2.1, 100.0)},
    "skewnorm": {"a": (-30.0, 30.0)},
    "t": {"df": (2.1, 200.0)},
    "triang": {"c": (0.001, 0.999)},
    "weibull_min": {"c": (0.2, 20.0)},
}
"""Default bounds of shapes: wide, but such that the variance is finite and the law is not nearly a point."""


class NoiseModel(ABC):
    """A law of the noise up to parameters: log std (where it is free) and the shapes.

    A shape whose lower bound is positive is represented by its logarithm, any other shape by its value.
    """

    free_std: bool = False
    """Whether the standard deviation is a parameter."""

    std_bounds: tuple[float, float] | None = None
    """Bounds of the standard deviation given by the user."""

    shape_names: tuple[str, ...] = ()
    """Names of the free shapes."""

    linear_shapes: tuple[str, ...] = ()
    """Names of the free shapes that are represented by their values."""

    shape_bounds: FloatArray = np.empty((0, 2))
    """Bounds of the representatives of the free shapes, (k, 2)."""

    @abstractmethod
    def law(self, std: float, shapes: ArrayLike = ()) -> Noise:
        """The law with this standard deviation and these representatives of the shapes."""


class KnownLaw(NoiseModel):
    """A known law, without free parameters."""

    def __init__(self, noise: Noise) -> None:
        self.noise = noise

    def law(self, std: float, shapes: ArrayLike = ()) -> Noise:  # noqa: ARG002
        """Return the given law."""
        return self.noise


class Family(NoiseModel):
    """A family of ``scipy.stats`` whose scale and shapes are fitted together with the kernel.

    Parameters
    ----------
    law : scipy.stats family or str
        A continuous family, such as ``stats.gamma`` or ``"gamma"``.
    loc : float, default=None
        Location, if it is known; the shapes and the scale then determine the mean of the noise. None chooses the
        location such that the mean is 0.
    bounds : mapping of str to pair of floats, default=None
        Bounds of shapes by name, and of the standard deviation as ``"std"``. Equal bounds fix a parameter. A standard
        deviation without bounds has a weak prior, centered on a fraction of the standard deviation of y.

    Attributes
    ----------
    shape_names : tuple of str
    shape_bounds : ndarray of shape (k, 2)
    std_bounds : tuple of float or None

    Examples
    --------
    >>> family = Family("gamma")
    >>> family.shape_names
    ('a',)
    >>> noise = family.law(std=1.0, shapes=[np.log(4.0)])
    >>> noise.mean(), noise.var(), float(noise.cumulants(3)[2])
    (0.0, 1.0, 1.0)
    """

    free_std = True

    def __init__(
        self, law: Any, *, loc: float | None = None, bounds: Mapping[str, tuple[float, float]] | None = None
    ) -> None:
        self.dist = _continuous_family(law)
        self.loc = None if loc is None else float(loc)
        names = tuple((self.dist.shapes or "").replace(",", " ").split())
        given = dict(bounds or {})
        if unknown := set(given) - {*names, "std"}:
            raise ValueError(f"bounds names {sorted(unknown)}, but {self.dist.name} has {[*names, 'std']}")
        self.std_bounds = _checked_pair("std", given["std"]) if "std" in given else None
        if self.std_bounds and self.std_bounds[0] <= 0:
            raise ValueError(f"bounds['std'] must be positive, got {given['std']!r}")
        table = {**dict.fromkeys(names, DEFAULT_BOUNDS), **BOUNDS.get(family_name(self.dist), {}), **given}
        pairs = [_checked_pair(name, table[name]) for name in names]
        self.bounds = {name: (float(low), float(high)) for name, (low, high) in given.items()}
        # Shapes in the order of scipy.stats: the fixed value, or None if it is free.
        self._fixed = [low if low == high else None for low, high in pairs]
        free = [(name, pair) for name, pair in zip(names, pairs, strict=True) if pair[0] != pair[1]]
        self.shape_names: tuple[str, ...] = tuple(name for name, _ in free)
        self._log = np.array([low > 0 for _, (low, _) in free], dtype=bool)
        self.linear_shapes: tuple[str, ...] = tuple(name for name, (low, _) in free if low <= 0)
        self.shape_bounds: FloatArray = np.array([pair for _, pair in free], dtype=float).reshape(-1, 2)
        self.shape_bounds[self._log] = np.log(self.shape_bounds[self._log])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Family) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return generator_key(self.dist), self.loc, tuple(sorted(self.bounds.items()))

    def __repr__(self) -> str:
        loc = "" if self.loc is None else f", loc={self.loc!r}"
        bounds = f", bounds={self.bounds!r}" if self.bounds else ""
        return f"Family({self.dist.name!r}{loc}{bounds})"

    def law(self, std: float, shapes: ArrayLike = (), mean: float = 0.0) -> Noise:
        """The member with this standard deviation.

        Parameters
        ----------
        std : float
        shapes : array-like of shape (k,)
            Logarithms of the free shapes; shapes that may be negative as they are.
        mean : float, default=0.0
            Mean of the law; ignored if ``loc`` is given.

        Returns
        -------
        Noise

        Raises
        ------
        ValueError
            If the variance of the member is not finite.

        Examples
        --------
        >>> Family("expon", loc=0.0).law(2.0)
        expon(scale=2.0)
        >>> Family("expon").law(2.0, mean=3.0)
        expon(loc=1.0, scale=2.0)
        """
        given = np.array(shapes, dtype=float)
        given[self._log] = np.exp(given[self._log])
        values = iter(given.tolist())
        full = [next(values) if value is None else value for value in self._fixed]
        with np.errstate(all="ignore"):  # shapes may be too extreme for scipy.stats
            center, variance = (float(moment) for moment in self.dist.stats(*full, moments="mv"))
        if not (np.isfinite(center) and np.isfinite(variance) and variance > 0):
            msg = f"{self.dist.name} with shapes {full} has variance {variance}; give Family bounds that exclude it"
            raise ValueError(msg)
        scale = float(std) / np.sqrt(variance)
        loc = mean - scale * center if self.loc is None else self.loc
        return ScipyNoise(self.dist(*full, loc=loc, scale=scale))


class ScaledShape(NoiseModel):
    """A law of known shape and mean 0, whose standard deviation is free.

    ``folds`` holds indices of samples and the shape estimated without them: under one's own shape the score is too high.
    """

    free_std = True

    def __init__(
        self, shape: SmoothedResiduals, folds: Sequence[tuple[IntArray, SmoothedResiduals]] = ()
    ) -> None:
        self.shape = shape
        self.folds = folds

    def law(self, std: float, shapes: ArrayLike = ()) -> Noise:  # noqa: ARG002
        """The shape with this standard deviation and mean 0."""
        return self.shape.standardized(std)


def noise_model(noise: Any) -> NoiseModel | str:
    """The free parameters of a noise argument, as a noise model; "residuals" is returned unchanged.

    None and a bare name are families, anything else that :func:`~wienerkernel.as_noise` accepts is a known law.
    """
    if isinstance(noise, NoiseModel):
        return noise
    if noise is None:
        return Family("norm")
    if isinstance(noise, str):
        if noise.strip() == "residuals":
            return "residuals"
        if "(" not in noise:
            return Family(noise.strip())
    if hasattr(noise, "freeze"):
        return Family(noise)
    return KnownLaw(as_noise(noise))


def known_noise(noise: Any) -> Noise:
    """The law of the noise without tuning, None for the standard normal one; ValueError if it has unknown parameters."""
    model = KnownLaw(as_noise(None)) if noise is None else noise_model(noise)
    if isinstance(model, KnownLaw):
        return model.noise
    raise ValueError(
        f"noise={noise!r} has unknown parameters, which tuning='likelihood' or tuning='loo' estimates; "
        "with tuning=None, give a law with all of its parameters, such as 'gamma(0.25, scale=2)'"
    )


def _continuous_family(law: Any) -> Any:
    if isinstance(law, str):
        law = scipy_family(law)
    if not (hasattr(law, "freeze") and hasattr(law, "pdf")):
        raise TypeError(
            f"law must be a continuous family of scipy.stats without parameters, such as stats.gamma or 'gamma', "
            f"got {getattr(law, 'name', law)!r}"
        )
    check_line(family_name(law))
    return law


def _checked_pair(name: str, pair: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        msg = f"bounds[{name!r}] must be a pair (low, high) of finite numbers with low <= high, got {pair!r}"
        raise ValueError(msg)
    return low, high
