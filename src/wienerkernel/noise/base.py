"""The interface of noise laws: moments, characteristic function, quantiles, draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import BoolArray, ComplexArray, FloatArray, RandomState
from .identity import untouched

__all__ = ["Noise", "as_generator", "cumulants_from_moments", "moments_from_cumulants"]

NEAR = 3e-6  # at a smaller distance from a pole, relative to its position, x is rounded too coarsely
POLE = -0.2  # a density that grows at least like distance^-0.2 has a pole


class Noise(ABC):
    """The law of one noise variable M with finite variance.

    All laws have the same few methods, named as in ``scipy.stats``, and use closed forms where they exist.

    Laws are equal if they have the same class, parameters and data, so that a law can be the key of a cache. A law of a
    class that does not declare its parameters equals only itself.

    Examples
    --------
    >>> from wienerkernel import Noise, as_noise
    >>> noise = as_noise("gamma(0.25, scale=2)")
    >>> isinstance(noise, Noise), noise.mean(), noise.var(), noise.cumulants(3).tolist()
    (True, 0.5, 1.0, [0.5, 1.0, 4.0])
    """

    gaussian: bool = False
    """Whether M is normal, so that every linear combination is normal as well."""

    discrete: bool = False
    """Whether M takes countably many values, so that it has no density."""

    @property
    def atomic(self) -> bool:
        """Whether M takes some value with positive probability, so that it has no density."""
        return self.discrete

    rounding: float = 0.0
    """Rounding error of the values of M, where it exceeds that of single numbers: those of a sum that cancels."""

    costly: bool = False
    """Whether the characteristic function at high frequencies is much slower than a formula."""

    def _made_of(self) -> tuple[Hashable, ...]:
        """Parameters and data of the law. Each class declares its own: a subclass does not inherit them."""
        raise NotImplementedError

    @cached_property
    def _identity(self) -> tuple[Hashable, ...] | None:
        known = "_made_of" in vars(type(self)) and untouched(self)
        return (type(self), *self._made_of()) if known else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Noise):
            return NotImplemented
        return self is other or (self._identity is not None and self._identity == other._identity)

    def __hash__(self) -> int:
        return object.__hash__(self) if self._identity is None else hash(self._identity)

    def __getstate__(self) -> dict[str, Any]:
        # a copy may be changed before it is used
        return {key: value for key, value in vars(self).items() if key != "_identity"}

    @abstractmethod
    def cumulants(self, order: int = 8) -> FloatArray:
        """Cumulants kappa_1, ..., kappa_order; NaN where the moment does not exist."""

    @abstractmethod
    def logcf(self, t: ArrayLike) -> ComplexArray:
        """Logarithm of the characteristic function E exp(i t M), up to multiples of 2 pi i.

        For complex ``t``, its analytic continuation, where there is one.
        """

    @abstractmethod
    def pdf(self, x: ArrayLike) -> FloatArray:
        """Density; a discrete law has none and raises TypeError."""

    @abstractmethod
    def cdf(self, x: ArrayLike) -> FloatArray:
        """Distribution function P(M <= x)."""

    @abstractmethod
    def sf(self, x: ArrayLike) -> FloatArray:
        """Survival function P(M > x), accurate where it is small."""

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantile: the smallest x with P(M <= x) >= q."""
        level = np.asarray(q, dtype=float)
        return self._first(lambda x: self.cdf(x) >= level, level, 1 - level)

    def isf(self, q: ArrayLike) -> FloatArray:
        """Upper quantile: the smallest x with P(M > x) <= q."""
        level = np.asarray(q, dtype=float)
        return self._first(lambda x: self.sf(x) <= level, 1 - level, level)

    @abstractmethod
    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        """Independent draws, an array of shape ``size``."""

    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Ends of the support."""

    def _first(
        self, reached: Callable[[FloatArray], BoolArray], below: FloatArray, above: FloatArray
    ) -> FloatArray:
        """Smallest x at which the monotone condition ``reached`` holds, by bisection down to neighboring floats.

        ``below`` and ``above`` are the probabilities on both sides of x, one of them rounded.
        """
        lower, upper = self.support()
        at_lower, at_upper, invalid = below <= 0, above <= 0, ~((below >= 0) & (above >= 0))
        center, width = self.mean(), self.std()
        lo, hi = (np.full(invalid.shape, np.clip(center + side, lower, upper)) for side in (-width, width))
        inside = ~(at_lower | at_upper | invalid)
        for _ in range(1100):  # the bracket doubles, and float64 has 2^11 binades
            low, high = inside & reached(lo) & (lo > lower), inside & ~reached(hi) & (hi < upper)
            if not (low.any() or high.any()):
                break
            width *= 2
            lo = np.where(low, np.maximum(lower, center - width), lo)
            hi = np.where(high, np.minimum(upper, center + width), hi)
        while True:
            middle = lo + (hi - lo) / 2
            open_ = inside & (lo < middle) & (middle < hi)
            if not open_.any():
                break
            up = reached(middle)
            hi = np.where(open_ & up, middle, hi)
            lo = np.where(open_ & ~up, middle, lo)
        result = np.where(at_lower, lower, np.where(at_upper, upper, np.where(reached(lo), lo, hi)))
        return np.where(invalid, np.nan, result)

    def strip(self) -> tuple[float, float]:
        """Open interval of real s around 0 on which E exp(s M) is finite; (0, 0) for two heavy tails."""
        lower, upper = self.support()
        return (-np.inf if np.isfinite(lower) else 0.0, np.inf if np.isfinite(upper) else 0.0)

    def sector(self) -> float:
        """Angle theta such that ``logcf`` continues analytically to |arg t| < theta and |arg -t| < theta.

        0 means that it is available for real ``t`` and in the strip only.
        """
        return 0.0

    def singular_points(self) -> FloatArray:
        """Points where the density is not smooth, increasing: finite ends of the support, poles and kinks."""
        return np.array([end for end in self.support() if np.isfinite(end)])

    def pdf_near(self, point: float, offset: FloatArray) -> FloatArray:
        """Density at point + offset, with relative accuracy even if the density has a pole at the point.

        Very close to a pole at a point other than 0 the sum is rounded too coarsely. There the density is extrapolated
        as e^a l^b e^{cl} in the distance l, fitted slightly farther away.
        """
        density = self.pdf(point + offset)
        start = NEAR * abs(point)
        for sign in (-1.0, 1.0):
            close = (sign * offset > 0) & (sign * offset < start)
            if close.any():
                with np.errstate(all="ignore"):
                    f = np.log(self.pdf(point + sign * start * np.array([1.0, 0.25, 0.0625])))
                    c = (f[0] - 2 * f[1] + f[2]) / (0.5625 * start)
                    b = (f[1] - f[2] - 0.1875 * c * start) / np.log(4.0)
                if b < POLE:
                    distance = np.abs(offset[close])
                    density[close] = np.exp(f[0] + b * np.log(distance / start) + c * (distance - start))
        return density

    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """Values and probabilities of a discrete law; values of negligible probability are left out.

        Returns
        -------
        values, probabilities : ndarrays of shape (n,)
        """
        raise TypeError(f"{self!r} is not discrete and has no atoms")

    def tail_index(self) -> float:
        """Exponent a of a tail P(|M| > x) ~ x^-a from the slope of the log density far out; inf for lighter tails."""
        index = np.inf
        for sign, end in zip((-1.0, 1.0), self.support(), strict=True):
            if self.discrete or np.isfinite(end):
                continue
            with np.errstate(all="ignore"), suppress(ArithmeticError):  # raised by scipy.stats
                # not to where squares overflow; the density is smaller there if there is a variance
                density = self.pdf(self.mean() + sign * self.std() * 2.0 ** np.arange(1, 500))
                slope = -np.diff(np.log2(density[: np.argmin(density > 1e-290)]))
                middle = len(slope) // 2
                # farthest out, some densities of scipy.stats are rounding errors
                last = float(np.median(slope[middle:])) if len(slope) > 4 else 0.0
                if 1 < last < 1.1 * slope[middle]:  # the slope of every lighter tail keeps growing
                    index = min(index, last - 1)
        return index

    def mean(self) -> float:
        """Mean m0."""
        return float(self.cumulants(1)[0])

    def var(self) -> float:
        """Variance s2."""
        return float(self.cumulants(2)[1])

    def std(self) -> float:
        """Standard deviation."""
        return float(np.sqrt(self.var()))


def as_generator(random_state: RandomState) -> Any:
    """A numpy Generator from a seed or None; a Generator or RandomState is returned as it is."""
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    return np.random.default_rng(random_state)


def moments_from_cumulants(kappa: ArrayLike) -> FloatArray:
    """Raw moments of order 1 to r from the cumulants of order 1 to r, both of shape (r, ...)."""
    k = np.asarray(kappa, dtype=float)
    mu = np.ones((len(k) + 1, *k.shape[1:]))
    for r in range(1, len(mu)):
        mu[r] = sum(comb(r - 1, j) * k[j] * mu[r - 1 - j] for j in range(r))
    return mu[1:]


def cumulants_from_moments(mean: ArrayLike, central: ArrayLike) -> FloatArray:
    """Cumulants of order 1 to r from the mean and the central moments mu_2, ..., mu_r of shape (r - 1, ...)."""
    mu = np.asarray(central, dtype=float)
    kappa = np.zeros((len(mu) + 1, *mu.shape[1:]))
    kappa[0] = mean
    for r in range(2, len(mu) + 2):
        kappa[r - 1] = mu[r - 2] - sum(
            comb(r - 1, j - 1) * kappa[j - 1] * mu[r - j - 2] for j in range(2, r - 1)
        )
    return kappa
