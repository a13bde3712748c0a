"""Laws of polynomials of a germ: an affine function, and a polynomial by its turning points."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval
from numpy.typing import ArrayLike, NDArray
from scipy.optimize.elementwise import bracket_root, find_root

from .._typing import ComplexArray, FloatArray, RandomState
from ..noise import Noise
from ..noise.base import cumulants_from_moments
from ..noise.characteristic.characteristic_function import CharacteristicFunction
from ..noise.characteristic.panels import NODES, POINTS, TO_SERIES, bisected, panelled
from ..noise.identity import digest
from .polynomials import OrthogonalBasis, exact_rule, max_degree

__all__ = ["Affine", "PolynomialLaw"]

BESIDE = 0.5  # fraction of the range of p on an interval within which offsets are measured from its end
GRADES = 56  # halvings of a panel toward a turning point: the mass beyond the last is 1e-17


class Affine(Noise):
    """The law of offset + slope xi; a negative slope requires a continuous germ."""

    def __init__(self, germ: Noise, offset: float, slope: float) -> None:
        self.germ, self.offset, self.slope = germ, float(offset), float(slope)
        self.up = slope > 0

    def _made_of(self) -> tuple[Hashable, ...]:
        return self.germ, self.offset, self.slope

    def _xi(self, x: ArrayLike) -> FloatArray:
        return (np.asarray(x, dtype=float) - self.offset) / self.slope

    def _ordered(self, ends: tuple[float, float]) -> tuple[float, float]:
        return ends if self.up else ends[::-1]

    def cumulants(self, order: int = 8) -> FloatArray:
        kappa = self.germ.cumulants(order) * self.slope ** np.arange(1, order + 1)
        kappa[0] += self.offset
        return kappa

    def logcf(self, t: ArrayLike) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        return self.germ.logcf(self.slope * t) + 1j * self.offset * t

    def pdf(self, x: ArrayLike) -> FloatArray:
        return self.germ.pdf(self._xi(x)) / abs(self.slope)

    def cdf(self, x: ArrayLike) -> FloatArray:
        return (self.germ.cdf if self.up else self.germ.sf)(self._xi(x))

    def sf(self, x: ArrayLike) -> FloatArray:
        return (self.germ.sf if self.up else self.germ.cdf)(self._xi(x))

    def ppf(self, q: ArrayLike) -> FloatArray:
        return self.offset + self.slope * (self.germ.ppf if self.up else self.germ.isf)(q)

    def isf(self, q: ArrayLike) -> FloatArray:
        return self.offset + self.slope * (self.germ.isf if self.up else self.germ.ppf)(q)

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        return self.offset + self.slope * self.germ.rvs(size, random_state)

    def support(self) -> tuple[float, float]:
        lower, upper = self.germ.support()
        return self._ordered((self.offset + self.slope * lower, self.offset + self.slope * upper))

    def pdf_near(self, point: float, offset: FloatArray) -> FloatArray:
        return self.germ.pdf_near(float(self._xi(point)), offset / self.slope) / abs(self.slope)

    def singular_points(self) -> FloatArray:
        return np.sort(self.offset + self.slope * self.germ.singular_points())

    def strip(self) -> tuple[float, float]:
        lower, upper = self.germ.strip()
        return self._ordered((lower / self.slope, upper / self.slope))

    def sector(self) -> float:
        return self.germ.sector()


@lru_cache(maxsize=64)  # outside the law, which stays picklable
def _characteristic(law: PolynomialLaw) -> CharacteristicFunction:
    return panelled(*law.panels(), law)


class PolynomialLaw(Noise):
    """The law of p(xi) for a continuous germ, summed over the intervals between turning points, where p is monotone."""

    def __init__(self, germ: Noise, c: FloatArray, alpha: FloatArray, beta: FloatArray) -> None:
        self.germ, self.c, self.alpha, self.root_beta = germ, c, alpha, np.sqrt(beta)
        lower, upper = germ.support()
        inside = self._turning_points()
        ends = np.concatenate([[lower], inside[(lower < inside) & (inside < upper)], [upper]])
        values = np.full(len(ends), np.inf)
        finite = np.isfinite(ends)
        values[finite] = self._values(ends[finite])
        values[~finite] *= np.sign(c[-1]) * np.sign(ends[~finite]) ** (len(c) - 1)
        self.left, self.right = ends[:-1], ends[1:]
        self.at_left, self.at_right = values[:-1], values[1:]
        self.up = self.at_right >= self.at_left
        self.median = float(germ.ppf(0.5))
        # the search for a preimage starts from finite ends
        low, high = np.minimum(self.median, self.right), np.maximum(self.median, self.left)
        low = np.where(np.isfinite(self.left), self.left, low - self.root_beta[1])
        high = np.where(np.isfinite(self.right), self.right, high + self.root_beta[1])
        self.start, self.at_middle = (low, high), self._values((low + high) / 2)

    def _made_of(self) -> tuple[Hashable, ...]:
        return self.germ, digest(self.c, self.alpha, self.root_beta)

    def _taylor(self, x: ArrayLike, order: int) -> FloatArray:
        """Coefficients of p(x + delta) in powers of delta up to ``order``, along a new first axis."""
        x = np.asarray(x, dtype=float)
        before, phi = np.zeros((2, order + 1, *x.shape))
        phi[0] = 1.0
        total = self.c[0] * phi
        for k, a in enumerate(self.alpha):
            step = (x - a) * phi - self.root_beta[k] * before
            step[1:] += phi[:-1]
            before, phi = phi, step / self.root_beta[k + 1]
            total = total + self.c[k + 1] * phi
        return np.asarray(total)

    def _values(self, x: ArrayLike) -> FloatArray:
        return np.asarray(self._taylor(x, 0)[0])

    def _turning_points(self) -> FloatArray:
        """Real roots of p', as eigenvalues of its comrade matrix in the basis of the germ."""
        d = len(self.c) - 1
        basis = OrthogonalBasis(self.germ, d)
        nodes, weights = basis.quadrature(d)
        slopes = (weights * self._taylor(nodes, 1)[1]) @ basis(nodes)
        n = d - 1
        comrade = np.diag(self.alpha[:n]) + np.diag(self.root_beta[1:n], 1) + np.diag(self.root_beta[1:n], -1)
        comrade[-1] -= self.root_beta[n] * slopes[:n] / slopes[n]
        roots = np.linalg.eigvals(comrade)
        # A cut where p does not turn is harmless, so nearly real roots count as real.
        real = np.abs(roots.imag) <= 1e-6 * (np.abs(roots) + self.root_beta[1])
        return np.unique([self._polished(root) for root in roots[real].real])

    def _polished(self, root: float) -> float:
        """A root of p' to the last digit, unless it is a multiple root."""
        for _ in range(4):
            slope, bend = self._taylor(root, 2)[1:] * (1.0, 2.0)
            step = slope / bend if bend else 0.0
            if abs(step) > 1e-5 * self.root_beta[1]:
                break
            root -= step
        return root

    def _preimage(self, y: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The point of each interval where p = y, or the end nearer to y if there is none; and whether there is one."""
        y = y[..., None]
        above = np.where(self.up, y >= self.at_right, y <= self.at_right)
        below = np.where(self.up, y <= self.at_left, y >= self.at_left)
        passes = ~(above | below | np.isnan(y))

        def excess(x: FloatArray, y: FloatArray) -> FloatArray:
            return self._values(x) - y

        y = np.where(passes, y, self.at_middle)
        with np.errstate(all="ignore"):
            bracket = bracket_root(excess, *self.start, xmin=self.left, xmax=self.right, args=(y,)).bracket
        return np.where(passes, _root(excess, *bracket, y), np.where(above, self.right, self.left)), passes

    def _mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """P(lower < xi <= upper) from the nearer tail."""
        g = self.germ
        return np.where(lower > self.median, g.sf(lower) - g.sf(upper), g.cdf(upper) - g.cdf(lower))

    def cumulants(self, order: int = 8) -> FloatArray:
        d = len(self.c) - 1
        known = int(min(order, 2 * max_degree(self.germ) // d))
        nodes, weights = exact_rule(self.germ, known * d)
        centered = self._values(nodes) - self.c[0]
        central = [weights @ centered**r if r <= known else np.nan for r in range(2, order + 1)]
        return cumulants_from_moments(float(self.c[0]), central)

    def panels(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The density as Legendre series on panels: middles, half widths and coefficients.

        Each half of an interval on which p is monotone is expanded around its end e, with exact leading terms, so that the
        pole of the density at a turning value keeps full accuracy. Panels shrink geometrically toward it.
        """
        parts = []
        for left, right in zip(self.left, self.right, strict=True):
            below, above = self.germ.cdf(np.array([left, right]))
            center = float(self.germ.ppf((below + above) / 2))
            center = min(max(center, np.nextafter(left, right)), np.nextafter(right, left))
            for end, other in ((left, center), (right, center)):
                if np.isfinite(end):
                    reach = other - end
                    edges = np.append(0.0, reach * 2.0 ** -np.arange(GRADES, -1.0, -1.0))
                    parts.append(self._half_panels(end, edges))
                else:
                    levels = 10.0 ** -np.arange(0.5, 40.0, 0.5)
                    levels = levels[levels < (self.germ.sf(center) if end > 0 else self.germ.cdf(center))]
                    tail = self.germ.isf(levels) if end > 0 else self.germ.ppf(levels)
                    tail = tail[np.isfinite(tail)]
                    parts.append(self._half_panels(center, np.append(0.0, tail - center)))
        middle, half, series = (np.concatenate(part) for part in zip(*parts, strict=True))
        return middle, half, series

    def _half_panels(self, end: float, edges: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Panels between the points end + edges, with y - p(end) as the coordinate; edges run away from 0."""
        q = self._shifted(end)
        value = self._values(end)

        def fit(near: FloatArray, far: FloatArray, depth: int) -> tuple[Any, ...]:
            u_near, u_far = polyval(near, q), polyval(far, q)
            middle, half = (u_near + u_far) / 2, (u_far - u_near) / 2
            delta = _inverse(q, middle[:, None] + half[:, None] * NODES, near[:, None], far[:, None])
            with np.errstate(all="ignore"):
                density = np.nan_to_num(
                    self.germ.pdf(end + delta) / np.abs(polyval(delta, polyder(q))), posinf=0.0
                )
            series = density @ TO_SERIES
            series[half < 0] *= (-1.0) ** np.arange(POINTS)
            mass = 2 * np.abs(half) * np.abs(series).max(axis=1)
            rest = np.abs(half) * np.abs(series[:, -3:]).max(axis=1)
            fine = (rest <= 4e-15 * mass) | (rest < 1e-18)
            # The mass next to the end is negligible, and so is the rest of a jump after 64 bisections.
            fine |= (np.abs(far) <= 1e-30 * np.abs(edges[-1])) | (depth == 64)
            return fine, value + middle, np.abs(half), series

        return bisected(edges, fit)

    def _shifted(self, end: float) -> FloatArray:
        """Coefficients of p(end + delta) - p(end) in powers of delta; at a turning point the slope is exactly 0."""
        total = self._taylor(end, len(self.c) - 1)
        total[0] = 0.0
        if np.any(end == self.left[1:]):
            total[1] = 0.0
        return total

    def logcf(self, t: ArrayLike) -> ComplexArray:
        return _characteristic(self).logcf(np.asarray(t, dtype=np.complex128))

    def _densities(self, y: FloatArray) -> FloatArray:
        """Contribution of each interval to the density at y, along a new last axis."""
        xi, passes = self._preimage(y)
        xi = np.where(passes, xi, self.median)
        with np.errstate(divide="ignore"):
            return np.where(passes, self.germ.pdf(xi) / np.abs(self._taylor(xi, 1)[1]), 0.0)

    def _tail(self, x: ArrayLike, upper: ArrayLike) -> FloatArray:
        """P(M <= x), or P(M > x) where ``upper``."""
        y = np.asarray(x, dtype=float)
        xi, _ = self._preimage(y)
        mass = np.where(
            self.up == np.asarray(upper)[..., None], self._mass(xi, self.right), self._mass(self.left, xi)
        )
        return np.where(np.isnan(y), np.nan, mass.sum(axis=-1))

    def pdf(self, x: ArrayLike) -> FloatArray:
        y = np.asarray(x, dtype=float)
        return np.where(np.isnan(y), np.nan, self._densities(y).sum(axis=-1))

    def cdf(self, x: ArrayLike) -> FloatArray:
        return self._tail(x, upper=False)

    def sf(self, x: ArrayLike) -> FloatArray:
        return self._tail(x, upper=True)

    def ppf(self, q: ArrayLike) -> FloatArray:
        q = np.asarray(q, dtype=float)
        return self._quantile(q, 1 - q)

    def isf(self, q: ArrayLike) -> FloatArray:
        q = np.asarray(q, dtype=float)
        return self._quantile(1 - q, q)

    def _quantile(self, below: FloatArray, above: FloatArray) -> FloatArray:
        """The y with P(M <= y) = below and P(M > y) = above, from the smaller of the two."""
        if len(self.up) == 1:
            lower, upper = (self.germ.ppf, self.germ.isf) if self.up[0] else (self.germ.isf, self.germ.ppf)
            xi = np.where(below < above, lower(below), upper(above))
            finite = np.isfinite(xi)
            y = self._values(np.where(finite, xi, 0.0))
            at_end = np.where(xi > self.median, self.at_right[0], self.at_left[0])
            return np.where(finite, y, np.where(np.isnan(xi), np.nan, at_end))
        inside = (below > 0) & (above > 0)
        lo = self._extreme(np.where(inside, below, 0.5), np.min)
        hi = self._extreme(np.where(inside, above, 0.5), np.max)

        def excess(y: FloatArray, below: FloatArray, above: FloatArray) -> FloatArray:
            # the logarithm of a tail is nearly straight where the tail itself is flat
            upper = above < below
            return np.where(upper, -1.0, 1.0) * np.log(self._tail(y, upper) / np.minimum(below, above))

        # xatol is what values of p are rounded to
        y = _root(excess, lo, hi, below, above, xatol=1e-16 * float(np.abs(self.c).sum()))
        ends = self.support()
        y = np.where(inside, y, np.where(below <= 0, ends[0], ends[1]))
        return np.where((below >= 0) & (above >= 0), y, np.nan)

    def _extreme(self, level: FloatArray, choose: Callable[..., FloatArray]) -> FloatArray:
        """Smallest or largest p over a central interval of the germ that excludes half of the level."""
        ends = np.stack([self.germ.ppf(level / 4), self.germ.isf(level / 4)], axis=-1)
        turning = np.clip(self.left[1:], ends[..., :1], ends[..., 1:])
        return choose(self._values(np.concatenate([ends, turning], axis=-1)), axis=-1)

    def pdf_near(self, point: float, offset: FloatArray) -> FloatArray:
        density = self._densities(point + offset)
        # Branches that end at the point are expanded around it, so that the pole at a turning value is accurate.
        for k, (left, right) in enumerate(zip(self.left, self.right, strict=True)):
            for end, other, value in ((left, right, self.at_left[k]), (right, left, self.at_right[k])):
                if value == point and np.isfinite(end):
                    far = other - end if np.isfinite(other) else np.sign(other) * self.root_beta[1]
                    q = self._shifted(float(end))
                    reach = polyval(far, q)
                    near = (offset / reach > 0) & (offset / reach < BESIDE)
                    # an octave of delta that contains it
                    ladder = far * np.append(0.0, 2.0 ** -np.arange(1000.0, -1.0, -1.0))
                    steps = np.abs(polyval(ladder, q))
                    k_far = np.clip(np.searchsorted(steps, np.abs(offset[near])), 1, len(ladder) - 1)
                    delta = _inverse(q, offset[near], ladder[k_far - 1], ladder[k_far])
                    slope = polyval(delta, polyder(q))
                    with np.errstate(divide="ignore"):
                        density[near, k] = self.germ.pdf(end + delta) / np.abs(slope)
        return np.asarray(density.sum(axis=-1))

    def singular_points(self) -> FloatArray:
        ends = np.concatenate([self.at_left, self.at_right, self._values(self.germ.singular_points())])
        return np.unique(ends[np.isfinite(ends)])

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        return self._values(self.germ.rvs(size, random_state))

    def support(self) -> tuple[float, float]:
        ends = np.append(self.at_left, self.at_right)
        return float(ends.min()), float(ends.max())


def _inverse(q: FloatArray, u: FloatArray, near: FloatArray, far: FloatArray) -> FloatArray:
    """delta between near and far with q(delta) = u, where q is monotone."""
    return _root(lambda delta, u: polyval(delta, q) - u, near, far, u)


def _root(
    func: Callable[..., FloatArray], low: FloatArray, high: FloatArray, *args: FloatArray, xatol: float = 0.0
) -> FloatArray:
    """Roots of func(x, *args) between low and high, elementwise; NaN where the signs do not differ."""
    with np.errstate(all="ignore"):
        return np.asarray(find_root(func, (low, high), args=args, tolerances={"xatol": xatol}).x)
