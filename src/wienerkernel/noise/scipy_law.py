"""Any frozen law of ``scipy.stats`` as noise."""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import ComplexArray, FloatArray, RandomState
from . import characteristic
from .base import Noise, cumulants_from_moments
from .cumulants import standard_cumulants

__all__ = ["ScipyNoise"]

MAX_ORDER = 8
MAX_ATOMS = 2**20


class ScipyNoise(Noise):
    """The law of a frozen ``scipy.stats`` distribution.

    Parameters
    ----------
    frozen : frozen scipy.stats distribution
        Continuous or discrete, with finite variance.

    Attributes
    ----------
    name : str
        Name of the family in ``scipy.stats``.
    shapes : tuple of float
    loc, scale : float

    Examples
    --------
    >>> from scipy import stats
    >>> noise = ScipyNoise(stats.gamma(0.25, scale=2))
    >>> noise.cumulants(4).tolist()
    [0.5, 1.0, 4.0, 24.0]
    >>> noise
    gamma(0.25, scale=2.0)
    """

    def __init__(self, frozen: Any) -> None:
        self.frozen = frozen
        self.name: str = frozen.dist.name
        self.discrete = not hasattr(frozen.dist, "pdf")
        names = [*(frozen.dist.shapes or "").replace(",", " ").split(), "loc"]
        if not self.discrete:
            names.append("scale")
        given: dict[str, Any] = {
            "loc": 0.0,
            "scale": 1.0,
            **dict(zip(names, frozen.args, strict=False)),
            **frozen.kwds,
        }
        for key, value in given.items():
            if np.ndim(value) and np.size(value) != 1:
                msg = f"noise={self.name}(...): {key} must be a single number, got shape {np.shape(value)}"
                raise ValueError(msg)
        values = {key: float(np.asarray(value).item()) for key, value in given.items()}
        self.loc = values.pop("loc")
        self.scale = values.pop("scale")
        self.shapes = tuple(values[key] for key in names if key in values)
        self.gaussian = self.name == "norm"
        self.costly = not characteristic.is_formula(self.name)

    def __repr__(self) -> str:
        parts = [repr(value) for value in self.shapes]
        parts += [f"loc={self.loc!r}"] * (self.loc != 0)
        parts += [f"scale={self.scale!r}"] * (self.scale != 1)
        return f"{self.name}({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScipyNoise) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @cached_property
    def _standard(self) -> Any:
        """The law with loc 0 and scale 1; scipy.stats takes long to freeze one."""
        return self.frozen.dist(*self.shapes)

    def moved(self, loc: float) -> ScipyNoise:
        """The same law at another place ``loc``."""
        scale = {} if self.discrete else {"scale": self.scale}
        noise = ScipyNoise(self.frozen.dist(*self.shapes, loc=loc, **scale))
        if self.costly:  # its moments are integrals, which need not be done again
            noise.__dict__["_mean_and_variance"] = self.mean() - self.loc + loc, self.var()
        return noise

    @property
    def _characteristic(self) -> characteristic.Characteristic:
        # Held by the module's cache, not by the instance, so that models stay picklable.
        return characteristic.characteristic(self.name, self.shapes, self._standard)

    @cached_property
    def _known_cumulants(self) -> FloatArray | None:
        standard = standard_cumulants(self.name, self.shapes, MAX_ORDER)
        if standard is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # of scales that no high power fits
            kappa = np.asarray(standard, dtype=float) * self.scale ** np.arange(1, MAX_ORDER + 1)
        kappa[0] += self.loc
        return np.asarray(kappa)

    @cached_property
    def _central_moments(self) -> list[float]:
        """Of order 2, 3, ..., as far as they have been asked for: each is an integral."""
        return []

    @cached_property
    def _tail(self) -> float:
        """Moments of order below it exist: the density falls like a power of x, or faster than float64 can follow."""
        tail = np.inf
        for sign, end in zip((-1.0, 1.0), self._standard.support(), strict=True):
            if np.isinf(end):
                with np.errstate(all="ignore"), contextlib.suppress(ArithmeticError):  # of scipy.stats
                    near, far = np.log(self._standard.pdf(sign * np.array([1e10, 1e15])))
                    power = (near - far) / np.log(1e5)
                    if np.isfinite(power) and power > 1:  # as any density's
                        tail = min(tail, power - 1 - 1e-6)
        return float(tail)

    def _central_moment(self, mean: float, order: int) -> float:
        """E (M - mean)^order, NaN where it does not exist."""
        from scipy.integrate import tanhsinh

        if self.discrete:
            values, probabilities = self.atoms()
            return float(probabilities @ (values - mean) ** order)
        if order >= self._tail:
            return np.nan
        lower, upper = self.support()
        scale = float(self.frozen.std())
        middle = float(self.frozen.median())

        def integrand(x: FloatArray) -> FloatArray:
            return np.asarray(self.frozen.pdf(x) * ((x - mean) / scale) ** order)

        with np.errstate(all="ignore"):
            halves: Any = tanhsinh(integrand, [lower, middle], [middle, upper])
        converged = np.all(halves.success | (halves.error < 1e-10 * np.abs(halves.integral)))
        return float(np.sum(halves.integral)) * scale**order if converged else np.nan

    def cumulants(self, order: int = 8) -> FloatArray:
        if order > MAX_ORDER:
            msg = f"order must be at most {MAX_ORDER}, got {order}"
            raise ValueError(msg)
        if self._known_cumulants is not None:
            return self._known_cumulants[:order].copy()
        mean, central = float(self.frozen.mean()), self._central_moments
        central.extend(self._central_moment(mean, r) for r in range(len(central) + 2, order + 1))
        return cumulants_from_moments(mean, central[: order - 1])

    @cached_property
    def _mean_and_variance(self) -> tuple[float, float]:
        return float(self.frozen.mean()), float(self.frozen.var())

    def mean(self) -> float:
        return self._mean_and_variance[0]

    def var(self) -> float:
        return self._mean_and_variance[1]

    def logcf(self, t: ArrayLike) -> ComplexArray:
        t = np.asarray(t, dtype=np.complex128)
        return np.asarray(self._characteristic.logcf(np.asarray(self.scale * t)) + 1j * self.loc * t)

    def strip(self) -> tuple[float, float]:
        lower, upper = self._characteristic.strip
        return lower / self.scale, upper / self.scale

    def sector(self) -> float:
        return self._characteristic.sector

    def atoms(self) -> tuple[FloatArray, FloatArray]:
        if not self.discrete:
            return super().atoms()
        lower, upper = self.support()
        reach = 16 * (1 + self.std())
        while True:
            low, high = max(lower, np.floor(self.mean() - reach)), min(upper, np.ceil(self.mean() + reach))
            ends = [end for end, last in ((low, lower), (high, upper)) if end != last]
            if not ends or np.all(self.frozen.pmf(ends) < 1e-150):
                break
            reach *= 2
            if reach > MAX_ATOMS:
                msg = f"{self!r} has too many values of relevant probability: its tails are too heavy"
                raise ValueError(msg)
        values = np.arange(low, high + 1)
        probabilities = np.asarray(self.frozen.pmf(values))
        return values[probabilities > 0], probabilities[probabilities > 0]

    def pdf(self, x: ArrayLike) -> FloatArray:
        if self.discrete:
            msg = f"{self!r} is discrete and has no density"
            raise TypeError(msg)
        return np.asarray(self.frozen.pdf(x))

    def cdf(self, x: ArrayLike) -> FloatArray:
        return np.asarray(self.frozen.cdf(x))

    def sf(self, x: ArrayLike) -> FloatArray:
        return np.asarray(self.frozen.sf(x))

    def ppf(self, q: ArrayLike) -> FloatArray:
        return np.asarray(self.frozen.ppf(q))

    def isf(self, q: ArrayLike) -> FloatArray:
        return np.asarray(self.frozen.isf(q))

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        return np.asarray(self.frozen.rvs(size=size, random_state=random_state))

    def breaks(self) -> FloatArray:
        if self.discrete:
            return super().breaks()
        standard = characteristic.standard_breaks(self.name, self.shapes, self._standard)
        return self.loc + self.scale * standard

    def support(self) -> tuple[float, float]:
        lower, upper = self.frozen.support()
        return float(lower), float(upper)
