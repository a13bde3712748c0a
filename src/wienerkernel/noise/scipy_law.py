"""Any frozen law of ``scipy.stats`` as noise."""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import ComplexArray, FloatArray, RandomState
from .base import Noise, cumulants_from_moments
from .characteristic.characteristic_function import ORDERS, CharacteristicFunction
from .characteristic.families import characteristic, is_formula, known
from .characteristic.panels import singular_points, tails
from .characteristic.quadrature import integers
from .identity import digest, law_key

__all__ = ["ScipyNoise", "check_line"]

MIRRORED = {"arcsine", "beta"}
"""Laws on [0, 1] whose mirror image is the same family with the shapes in reverse order."""
INTEGRATED = {"genhyperbolic", "geninvgauss", "norminvgauss"}
"""Laws whose distribution function scipy.stats integrates over such a long interval that it may miss all mass."""


class ScipyNoise(Noise):
    """The law of a frozen ``scipy.stats`` distribution; ``name`` is empty unless it is a family of ``scipy.stats``."""

    def __init__(self, frozen: Any) -> None:
        self.frozen = frozen
        key = law_key(frozen)
        self.name: str = key if isinstance(key, str) else ""
        check_line(self.name)
        self.discrete = not hasattr(frozen.dist, "pdf")
        names = [*(frozen.dist.shapes or "").replace(",", " ").split(), "loc", "scale"]
        given = {"loc": 0.0, "scale": 1.0, **dict(zip(names, frozen.args, strict=False)), **frozen.kwds}
        for key, value in given.items():
            if np.ndim(value) and np.size(value) != 1:
                msg = f"noise={frozen.dist.name}(...): {key} must be a single number, got shape {np.shape(value)}"
                raise ValueError(msg)
        values = {key: float(np.asarray(value).item()) for key, value in given.items()}
        self.loc, self.scale = values["loc"], values["scale"]
        self.shapes = tuple(values[key] for key in names[:-2] if key in values)
        self.gaussian = self.name == "norm"
        self.costly = not is_formula(self.name)
        self._central: dict[int, float] = {}  # moments by order, filled on demand: each is an integral

    def __repr__(self) -> str:
        parts = [repr(value) for value in self.shapes]
        parts += [f"loc={self.loc!r}"] * (self.loc != 0)
        parts += [f"scale={self.scale!r}"] * (self.scale != 1)
        text = f"{self.frozen.dist.name}({', '.join(parts)})"
        # without a name of ``scipy.stats``, the text would stand for another law or none
        return text if self.name else f"<{text}>"

    def _made_of(self) -> tuple[Hashable, ...]:
        return law_key(self.frozen), digest(self.shapes, self.loc, self.scale)

    def _placed(self, loc: float, scale: float) -> ScipyNoise:
        # with the same generator, which is slow to construct and may be a user's own
        frozen = copy(self.frozen)
        if self.discrete:  # counts must be integers for numpy to draw from the law
            shapes = [int(value) if value.is_integer() else value for value in self.shapes]
            frozen.args = (*shapes, loc)
        else:
            frozen.args = (*self.shapes, loc, scale)
        frozen.kwds = {}
        return ScipyNoise(frozen)

    @cached_property
    def _at_origin(self) -> ScipyNoise:
        return self._placed(0.0, 1.0)

    @property
    def standard(self) -> ScipyNoise:
        """The law with loc 0 and scale 1."""
        return self if self.loc == 0.0 and self.scale == 1.0 else self._at_origin

    def moved(self, loc: float) -> ScipyNoise:
        """The same law with another ``loc``."""
        noise = self._placed(loc, self.scale)
        if self.costly:  # its moments are integrals, which need not be repeated
            noise.__dict__["_mean_and_variance"] = self.mean() - self.loc + loc, self.var()
        return noise

    @property
    def _characteristic(self) -> CharacteristicFunction:
        return characteristic(self.standard)

    @property
    def knots(self) -> FloatArray:
        """Bin edges of a histogram, where its density jumps; empty for any other law."""
        from scipy import stats

        dist = self.frozen.dist
        bins = vars(dist)["_histogram"][1] if isinstance(dist, stats.rv_histogram) else ()
        return self.loc + self.scale * np.array(bins, dtype=np.float64)

    def _central_moment(self, mean: float, order: int) -> float:
        """E (M - mean)^order, NaN where it does not exist."""
        from scipy.integrate import tanhsinh

        if self.discrete:
            values, probabilities = self.atoms()
            return float(probabilities @ (values - mean) ** order)
        if order >= self.tail_index() * (1 - 1e-6):
            return np.nan
        scale = self.std()
        edges = np.unique([*self.support(), float(self.frozen.median()), *self.knots])

        def integrand(x: FloatArray) -> FloatArray:
            return np.asarray(self.pdf(x) * ((x - mean) / scale) ** order)

        with np.errstate(all="ignore"):
            parts: Any = tanhsinh(integrand, edges[:-1], edges[1:])
        converged = np.all(parts.success | (parts.error < 1e-10 * np.abs(parts.integral).sum()))
        return float(np.sum(parts.integral)) * scale**order if converged else np.nan

    def cumulants(self, order: int = 8) -> FloatArray:
        if order > len(ORDERS):
            raise ValueError(f"order must be at most {len(ORDERS)}, got {order}")
        formula = known(self.name, self.shapes)
        if formula is not None and formula.cumulants is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # large scales overflow
                kappa = formula.cumulants * self.scale**ORDERS
            kappa[0] += self.loc
            return np.asarray(kappa[:order])
        mean, central = self.mean(), self._central
        for r in range(2, order + 1):
            if r not in central:
                central[r] = self._central_moment(mean, r)
        return cumulants_from_moments(mean, [central[r] for r in range(2, order + 1)])

    @cached_property
    def _mean_and_variance(self) -> tuple[float, float]:
        return float(self.frozen.mean()), float(self.frozen.var())

    def mean(self) -> float:
        return self._mean_and_variance[0]

    def var(self) -> float:
        return self._mean_and_variance[1]

    def logcf(self, t: ArrayLike) -> ComplexArray:
        t = np.asarray(t, dtype=np.complex128)
        law = self._characteristic
        return np.asarray(law.logcf(np.asarray(self.scale * t)) + 1j * (self.loc + self.scale * law.loc) * t)

    def strip(self) -> tuple[float, float]:
        lower, upper = self._characteristic.strip
        return lower / self.scale, upper / self.scale

    def sector(self) -> float:
        return self._characteristic.sector

    def atoms(self) -> tuple[FloatArray, FloatArray]:
        if not self.discrete:
            return super().atoms()
        values = integers(self, 1e-150)
        probabilities = np.asarray(self.frozen.pmf(values))
        return values[probabilities > 0], probabilities[probabilities > 0]

    def pdf(self, x: ArrayLike) -> FloatArray:
        if self.discrete:
            raise TypeError(f"{self!r} is discrete and has no density")
        try:
            with np.errstate(divide="ignore"):  # at a pole
                return np.asarray(self.frozen.pdf(x))
        except OverflowError:  # scipy.stats close to a pole, such as that of the beta law at subnormal x
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(self.frozen.logpdf(x)))

    def pdf_near(self, point: float, offset: FloatArray) -> FloatArray:
        # with loc 0 a pole is often at 0, where floating-point numbers are dense
        position, offset = (point - self.loc) / self.scale, np.asarray(offset) / self.scale
        if self.name in MIRRORED and abs(position - 1) < 1e-15 * (1 + abs(self.loc) / self.scale):
            return self._mirrored.pdf(-offset) / self.scale
        if self is self.standard:
            return super().pdf_near(position, offset)
        return self.standard.pdf_near(position, offset) / self.scale

    @cached_property
    def _mirrored(self) -> ScipyNoise:
        """The law of 1 - M, where M has loc 0 and scale 1."""
        return ScipyNoise(self.frozen.dist(*self.shapes[::-1]))

    def _tails(self, x: ArrayLike) -> tuple[FloatArray, FloatArray]:
        z = (np.asarray(x, dtype=float) - self.loc) / self.scale
        return tails(self.standard)(z)

    def cdf(self, x: ArrayLike) -> FloatArray:
        return self._tails(x)[0] if self.name in INTEGRATED else np.asarray(self.frozen.cdf(x))

    def sf(self, x: ArrayLike) -> FloatArray:
        return self._tails(x)[1] if self.name in INTEGRATED else np.asarray(self.frozen.sf(x))

    def ppf(self, q: ArrayLike) -> FloatArray:
        return super().ppf(q) if self.name in INTEGRATED else np.asarray(self.frozen.ppf(q))

    def isf(self, q: ArrayLike) -> FloatArray:
        return super().isf(q) if self.name in INTEGRATED else np.asarray(self.frozen.isf(q))

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        # scipy.stats wraps draws from a circular law without regard to loc and scale
        standard = self._at_origin if self.discrete else self.standard
        draws = np.asarray(standard.frozen.rvs(size=size, random_state=random_state))
        return draws * self.scale + self.loc

    def singular_points(self) -> FloatArray:
        if self.discrete:
            return super().singular_points()
        return self.loc + self.scale * singular_points(self.standard)

    def support(self) -> tuple[float, float]:
        lower, upper = self.frozen.support()
        return float(lower), float(upper)


def check_line(name: str) -> None:
    """Raise ValueError for a family of ``scipy.stats`` that is not a law on the real line."""
    if name == "vonmises":
        raise ValueError(
            "noise=vonmises is a law on the circle, whose distribution function exceeds 1 outside it; use vonmises_line, "
            "the same law on the interval from -pi to pi"
        )
