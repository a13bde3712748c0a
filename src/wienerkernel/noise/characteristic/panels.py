"""Densities as Legendre series on panels: characteristic functions, tails and singular points that follow."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from functools import cache, lru_cache, partial
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray

from ..._typing import ComplexArray, FloatArray
from .characteristic_function import INF, CharacteristicFunction, by_chunks, expm1, log1p
from .quadrature import atoms
from .tabulated import tabulated

if TYPE_CHECKING:
    from ..scipy_law import ScipyNoise

__all__ = ["POINTS", "density_panels", "numerical", "panelled", "singular_points", "tails"]

Tails = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

Panels = tuple[FloatArray, FloatArray, FloatArray]
"""Two arrays of shape (n,) that locate the panels, and the Legendre coefficients of shape (n, POINTS)."""

POINTS = 16
NODES, _WEIGHTS = np.polynomial.legendre.leggauss(POINTS)
TO_SERIES = (
    np.polynomial.legendre.legvander(NODES, POINTS - 1) * _WEIGHTS[:, None] * (np.arange(POINTS) + 0.5)
)
"""Values at the nodes @ TO_SERIES are the coefficients of Legendre polynomials."""
MAX_PANELS = 1000
ROUNDED = 4e-15
"""Size of coefficients, relative to the largest, that a panel need not resolve."""
CELL, MOMENTS = 0.5, 12
"""Largest phase of exp(itx) over a cell, and its moments in use: 0.25^12 / 12! = 1e-16 is left out."""
EPS = float(np.finfo(float).eps)
SHARP = 1e-3
"""A panel narrower than this, relative to the quartiles and to its distance from the ends, marks a singular point."""
JUMP = 1e-6
"""So do neighboring panels whose densities or slopes differ by this fraction of the density."""
MAX_STEPS = 4
_silence = RLock()


def numerical(law: Any) -> CharacteristicFunction:
    """Characteristic function of a continuous law from its density, for real t."""
    left, right, series = density_panels(law)
    return panelled((left + right) / 2, (right - left) / 2, series, law)


def panelled(middle: FloatArray, half: FloatArray, series: FloatArray, law: Any) -> CharacteristicFunction:
    """Characteristic function of a law whose density is a Legendre series on each of many panels.

    The Fourier transforms of Legendre polynomials are spherical Bessel functions, so that the absolute error is about
    1e-14 for every t, however fast exp(itx) oscillates. Densities of panels that overlap add up.
    """
    # 40 nodes resolve exp(itx) times the series on a panel of |t| half < 23.
    x, w = np.polynomial.legendre.leggauss(40)
    nodes = middle[:, None] + half[:, None] * x
    masses = half[:, None] * w * (series @ np.polynomial.legendre.legvander(x, POINTS - 1).T)
    total = masses.sum()
    if not abs(total - 1) < 1e-6:
        name = f"{law.dist.name}{law.args}" if hasattr(law, "dist") else repr(law)
        msg = f"the density of {name} integrates to {total}, not to 1"
        raise ValueError(msg)
    masses, series = masses / total, series / total
    mean = float(np.sum(masses * nodes))
    spread = float(np.sqrt(np.sum(masses * (nodes - mean) ** 2)))
    stated = float(law.mean())
    mean = stated if abs(stated - mean) < 1e-12 * spread else mean
    nodes, middle = nodes - mean, middle - mean
    heavy = masses.sum(axis=1) > 1e-18
    seen = np.abs(series) > ROUNDED * np.abs(series).max(axis=1, keepdims=True)
    orders = 1 + int(np.max(np.nonzero(seen)[1], initial=0))  # 1 for a histogram
    off_axis = atoms(nodes.ravel(), masses.ravel(), 0.0)

    def waves(t: ComplexArray, wide: NDArray[np.bool_]) -> ComplexArray:
        """Fourier transform of the wide panels, where z = t half exceeds every order."""
        z = t.real[:, None] * half[wide]
        # Spherical Bessel functions, upwards in the order
        before, now = np.cos(z) / z, np.sin(z) / z
        fourier = series[wide, 0] * now + 0j
        for k in range(1, orders):
            before, now = now, (2 * k - 1) / z * now - before
            fourier += series[wide, k] * 1j**k * now
        return np.asarray(np.sum(2 * half[wide] * fourier * np.exp(1j * t[:, None] * middle[wide]), axis=1))

    @cache
    def cells(octave: int) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
        """Which panels are wide at frequencies of an octave; centers of cells, and moments / k! of the other nodes in them."""
        size = CELL / 2 ** ((octave + 1) / 2)
        wide = 2 ** (octave / 2) * half > orders
        x, p = nodes[~wide].ravel(), masses[~wide].ravel()
        order = np.argsort(x)
        x, p = x[order], p[order]
        number = np.rint(x / size)  # the mean, 0, is a center: nothing cancels there as t -> 0
        first = np.flatnonzero(np.diff(number, prepend=np.nan))
        center, offset = size * number[first], x - size * number
        moments = np.empty((MOMENTS, len(first)))
        for k in range(MOMENTS):
            moments[k] = np.add.reduceat(p, first) if len(x) else 0.0
            p = p * offset / (k + 1)
        return wide, center, moments

    def small(t: ComplexArray, octave: int) -> ComplexArray:
        wide, center, moments = cells(octave)
        u = 1j * t[:, None]
        rest = waves(t, wide) - masses[wide].sum() - u[:, 0] * np.sum(masses[wide] * nodes[wide])
        powers = np.vander(u[:, 0], MOMENTS, increasing=True)[:, 2:]
        inner = np.sum(np.exp(u * center) * (powers @ moments[2:]), axis=1) + u[:, 0] * (
            expm1(u * center) @ moments[1]
        )
        return log1p(_exp_remainder(u * center) @ moments[0] + inner + rest)

    def large(t: ComplexArray, octave: int) -> ComplexArray:
        wide, center, moments = cells(octave)
        u = 1j * t[:, None]
        powers = np.vander(u[:, 0], MOMENTS, increasing=True)
        phi = np.sum(np.exp(u * center) * (powers @ moments), axis=1) + waves(t, heavy & wide)
        return np.log(np.where(phi == 0, 1e-300, phi))

    def centered(t: ComplexArray) -> ComplexArray:
        if np.any(t.imag != 0):
            return off_axis(t)
        out = np.empty(t.shape, dtype=complex)
        # Points of similar size share the choice of wide panels.
        octave = np.floor(2 * np.log2(np.abs(t)))
        for k in np.unique(octave):
            where = np.flatnonzero(octave == k)
            branch = small if 2 ** (k / 2) * spread < 1 else large
            wide, center, _ = cells(int(k))
            out[where] = by_chunks(partial(branch, octave=int(k)), len(center) + int(np.sum(wide)), t[where])
        return out

    lower, upper = law.support()
    table = tabulated(centered, spread, power=2)
    strip = (-INF if np.isfinite(lower) else 0.0, INF if np.isfinite(upper) else 0.0)
    return CharacteristicFunction(lambda t: 1j * mean * t + table(t), strip, 0.0)


@lru_cache(maxsize=64)
def tails(law: ScipyNoise) -> Tails:
    """x -> P(M <= x), P(M > x) from the density alone, each accurate where it is small."""
    left, right, series = density_panels(law.frozen)
    mass = series[:, 0] * (right - left)
    below, above = np.cumsum(mass) - mass, np.cumsum(mass[::-1])[::-1] - mass
    integral = np.polynomial.legendre.legint(series.T * (right - left) / 2, lbnd=-1)

    def both(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        panel = np.clip(np.searchsorted(left, x, side="right") - 1, 0, len(left) - 1)
        y = np.clip((2 * x - left[panel] - right[panel]) / (right - left)[panel], -1.0, 1.0)
        part = np.polynomial.legendre.legval(y, integral[:, panel], tensor=False)
        lower, upper = below[panel] + part, above[panel] + (mass[panel] - part)
        return lower / (lower + upper), upper / (lower + upper)

    return both


def _exp_remainder(z: ComplexArray) -> ComplexArray:
    """exp(z) - 1 - z, relatively accurate as z -> 0."""
    out = expm1(z) - z
    near = np.abs(z) < 0.3
    y = z[near]
    out[near] = y * y / 2 * polyval(y, _REMAINDER)
    return out


_REMAINDER = 1 / np.cumprod([1.0, *range(3, 16)])


def bisected(edges: FloatArray, fit: Callable[[FloatArray, FloatArray, int], tuple[Any, ...]]) -> Panels:
    """Panels between edges, bisected until ``fit(left, right, depth)`` accepts them and says where they are (twice)."""
    left, right = edges[:-1], edges[1:]
    done: list[list[FloatArray]] = []
    while left.size:
        fine, *parts = fit(left, right, len(done))
        done.append([part[fine] for part in parts])
        left, right = left[~fine], right[~fine]
        cut = (left + right) / 2
        left, right = np.concatenate([left, cut]), np.concatenate([cut, right])
    first, second, series = (np.concatenate(parts) for parts in zip(*done, strict=True))
    return first, second, series


def density_panels(law: Any) -> Panels:
    """The density as Legendre series on panels in increasing order: their left and right ends, and the coefficients."""
    q = 10.0 ** -np.array([1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 40.0])
    low, median, high = law.ppf([0.25, 0.5, 0.75])
    quartile = high - median
    with _silence, np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for all threads, hence the lock
        edges = np.concatenate([[low, median, high], law.support(), getattr(law, "knots", [])])
        for quantile in (law.ppf, law.isf):
            with contextlib.suppress(
                ValueError, RuntimeError
            ):  # scipy.stats cannot compute some that far out
                edges = np.append(edges, quantile(q))
        edges = np.unique(edges[np.isfinite(edges)])
        far = median + np.multiply.outer([-1.0, 1.0], quartile * 2.0 ** np.arange(60))
        beyond = ((far < edges[0]) | (far > edges[-1])) & (law.pdf(far) * np.abs(far - median) > 1e-30)
        edges = np.unique(np.append(edges, far[beyond]))

    def fit(left: FloatArray, right: FloatArray, _: int) -> tuple[Any, ...]:
        width = right - left
        with np.errstate(all="ignore"):
            density = law.pdf(((left + right)[:, None] + width[:, None] * NODES) / 2)
            series = np.nan_to_num(density, nan=0.0, posinf=0.0) @ TO_SERIES
        mass, tail = (width * np.abs(part).max(axis=1) for part in (series, series[:, -3:]))
        # The error of a panel is weighted by its contribution to the variance.
        far = np.maximum(np.abs(left - median), np.abs(right - median)) / quartile
        fine = (tail <= ROUNDED * mass) | (tail * (1 + far**2) < 1e-17) | (left.size > MAX_PANELS)
        # Where x is rounded too coarsely for the density the panel takes its mass from the distribution
        # function; next to a pole or a jump it becomes flat.
        rounding = EPS * np.abs(left + right) * (np.abs(series) @ np.arange(POINTS))
        coarse = ~fine & ((tail < rounding) | (width < 1e-12 * np.abs(left + right)))
        series[coarse & (tail >= rounding), 1:] = 0.0
        a, b = left[coarse], right[coarse]
        exact = np.where(law.sf(a) < 0.5, law.sf(a) - law.sf(b), law.cdf(b) - law.cdf(a))
        present = series[coarse, 0] * (b - a)
        series[coarse] *= (exact / np.where(present == 0, 1.0, present))[:, None]
        return fine | coarse | (width < 1e-280), left, right, series

    left, right, series = bisected(edges, fit)
    order = np.argsort(left)
    return left[order], right[order], series[order]


@lru_cache(maxsize=256)
def singular_points(law: ScipyNoise) -> FloatArray:
    """Points where a density is not smooth, increasing: finite ends of its support, and where panels crowd or disagree."""
    if law.knots.size:
        return law.knots
    left, right, series = density_panels(law)
    lower, upper = (float(end) for end in law.support())
    width = right - left
    quartiles = float(law.ppf(0.75) - law.ppf(0.25))
    room = np.minimum(np.minimum(left - lower, upper - right), quartiles)
    narrow = (width < SHARP * room) & (width > 0)
    sharp = np.flatnonzero(narrow)
    inner = []
    for cluster in np.split(sharp, np.flatnonzero(np.diff(sharp) > 1) + 1) if len(sharp) else []:
        narrowest = cluster[np.argmin(width[cluster])]
        if width[narrowest] > 1e-10 * quartiles:
            inner.append(_locate(law, float(left[cluster[0]]), float(right[cluster[-1]])))
        else:
            inner.append(float(left[narrowest] if narrow[narrowest - 1] else right[narrowest]))
    k = np.arange(POINTS)
    ends = [series @ sign**k for sign in (1.0, -1.0)]
    with np.errstate(over="ignore", invalid="ignore"):  # next to a pole
        slopes = [series @ (sign ** (k + 1) * k * (k + 1)) / width for sign in (1.0, -1.0)]
    size = JUMP * np.abs(series).max(axis=1)
    off = np.abs(ends[0][:-1] - ends[1][1:]) > np.maximum(size[:-1], size[1:])
    reach = np.minimum(width[:-1], width[1:])
    with np.errstate(over="ignore", invalid="ignore"):
        off |= np.abs(slopes[0][:-1] - slopes[1][1:]) * reach > np.maximum(size[:-1], size[1:])
    # panels without mass need not match
    sure = ~narrow & (room > SHARP * quartiles) & (size * width > 1e-8 * JUMP)
    off &= sure[:-1] & sure[1:]
    # a noisy density has meaningless steps everywhere
    inner += right[:-1][off].tolist() if off.sum() <= MAX_STEPS else []
    return np.unique([end for end in (lower, *inner, upper) if np.isfinite(end)])


def _locate(law: Any, left: float, right: float) -> float:
    """The point between left and right where the continuation of the density from one side gives way to the other."""
    reach = 8 * (right - left)
    nodes = np.cos((np.arange(8) + 0.5) * np.pi / 8)
    with np.errstate(all="ignore"):
        sides = [
            np.polynomial.Chebyshev.fit(x, law.pdf(x), 7, domain=[x.min(), x.max()])
            for x in (left - reach * (1 + nodes) / 2, right + reach * (1 + nodes) / 2)
        ]
    low, high = left, right
    rising = sides[0](low) < sides[1](low)
    crosses = rising != (sides[0](high) < sides[1](high))
    for _ in range(60):
        middle = 0.5 * (low + high)
        before, after = sides[0](middle), sides[1](middle)
        if crosses:  # a kink: the continuations meet
            stays = (before < after) == rising
        else:  # a jump: the density follows one of them
            stays = abs(law.pdf(middle) - before) < abs(law.pdf(middle) - after)
        low, high = (middle, high) if stays else (low, middle)
    return 0.5 * (low + high)
