"""Integrals of a power of the noise density against normal densities, by Gauss-Legendre rules on panels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from .density import NoiseDensity

__all__ = ["Moments", "tilted_moments"]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
OFFSETS = np.array([0.0, 1, 2, 3, 4, 5.5, 7.5, 10])
OFFSETS = np.concatenate([-OFFSETS[:0:-1], OFFSETS])
"""Panel ends around the center of the normal density, in its standard deviations."""
GRADES, KINK_GRADES = 4.0 ** -np.arange(13), 4.0 ** -np.arange(4)
"""Panel ends around singular points: ends of the support and poles, and others."""
HUGE = 1e300
NEGLIGIBLE = 40.0
"""Panels whose log values are below the largest by more than this are left out."""
ZOOMS = 40
RESOLVED = 0.25
"""Standard deviations below this fraction of the widest panel with mass ask for finer panels."""


class Moments(NamedTuple):
    """Logarithm of the integral, mean and variance of the normalized product, each of shape (n,)."""

    log_integral: FloatArray
    mean: FloatArray
    variance: FloatArray


def tilted_moments(density: NoiseDensity, center: FloatArray, std: FloatArray, power: float = 1.0) -> Moments:
    """Moments of p(z)^power N(z; center, std^2), for the density p of the noise in its own units.

    Panels end where the normal density or p change: at multiples of ``std`` from the center, quantiles of the noise, and
    points where p is not smooth, toward which panels shrink geometrically. The mass of the innermost cell at such a
    point follows from the power law there. A product that is much narrower than its panel is integrated again on
    panels around its center.
    """
    ends = _panel_ends(density, center, std)
    moments, unresolved = _integrate(density, center, std, power, ends)
    for _ in range(ZOOMS):
        if not unresolved.any():
            break
        rows = np.flatnonzero(unresolved)
        width = np.maximum(np.sqrt(moments.variance[rows]), unresolved[rows] / 16)
        extra = moments.mean[rows, None] + width[:, None] * OFFSETS
        ends_of_rows = np.sort(np.concatenate([ends[rows], extra], axis=1), axis=1)
        part, still = _integrate(density, center[rows], std[rows], power, ends_of_rows)
        for old, new in zip(moments, part, strict=True):
            old[rows] = new
        unresolved[rows] = np.where(still < unresolved[rows], still, 0.0)
    return moments


def _panel_ends(density: NoiseDensity, center: FloatArray, std: FloatArray) -> FloatArray:
    """Sorted ends of the panels, (n, b); none lies in the innermost cell of an end of the support or a pole."""
    n = len(center)
    ends = np.concatenate(
        [center[:, None] + std[:, None] * OFFSETS, np.tile(density.quantiles, (n, 1))], axis=1
    )
    reach = np.minimum(std, density.spread)[:, None]
    for point, graded in zip(density.points, density.graded, strict=True):
        steps = reach * (GRADES if graded else KINK_GRADES)
        if graded:
            ends = np.where(np.abs(ends - point) < steps[:, -1:], point, ends)
        ends = np.concatenate([ends, point - steps, point + steps, np.full((n, 1), point)], axis=1)
    return np.sort(ends, axis=1)


def _integrate(
    density: NoiseDensity, center: FloatArray, std: FloatArray, power: float, ends: FloatArray
) -> tuple[Moments, FloatArray]:
    """Moments by the rule on the panels, and the widths of panels that are too wide for their mass, or 0."""
    n = len(ends)
    row, column = np.nonzero(_kept(density, center, std, power, ends))
    left, half = ends[row, column], (ends[row, column + 1] - ends[row, column]) / 2
    z = (left + half)[:, None] + half[:, None] * NODES
    log_terms = np.minimum(power * density.logpdf(z), HUGE) + np.log(half[:, None] * WEIGHTS)
    for point in density.points[density.graded]:
        for sign in (-1.0, 1.0):  # in the cells next to the point, the rule is replaced by a power law
            cells = np.flatnonzero(left + (1 - sign) * half == point)
            place, log_mass = _power_law(density, point, sign * 2 * half[cells], power)
            log_terms[cells] = -np.inf
            z[cells, 0], log_terms[cells, 0] = place, log_mass
    log_terms -= 0.5 * ((z - center[row, None]) / std[row, None]) ** 2
    first = np.searchsorted(row, np.arange(n))
    top = np.maximum.reduceat(log_terms.max(axis=1), first)
    terms = np.exp(log_terms - top[row, None])

    def total(values: FloatArray) -> FloatArray:
        return np.add.reduceat(values.sum(axis=1), first)

    with np.errstate(divide="ignore", invalid="ignore"):
        mass = total(terms)
        mean = total(terms * z) / mass
        variance = total(terms * (z - mean[row, None]) ** 2) / mass
        log_integral = np.log(mass) + top - np.log(std * np.sqrt(2 * np.pi))
    widest = np.maximum.reduceat(np.where(terms.sum(axis=1) > 1e-3 * mass[row], 2 * half, 0.0), first)
    narrow = np.isfinite(mean) & (np.sqrt(variance) < RESOLVED * widest)
    return Moments(log_integral, mean, variance), np.where(narrow, widest, 0.0)


def _kept(
    density: NoiseDensity, center: FloatArray, std: FloatArray, power: float, ends: FloatArray
) -> NDArray[np.bool_]:
    """Panels that can hold mass: next to the end where the product is largest, or with an end where it is not negligible."""
    log_product = power * density.logpdf(ends) - 0.5 * ((ends - center[:, None]) / std[:, None]) ** 2
    largest = np.max(log_product, axis=1, keepdims=True, where=log_product < np.inf, initial=-HUGE)
    seen = log_product >= largest - NEGLIGIBLE
    kept: NDArray[np.bool_] = (seen[:, 1:] | seen[:, :-1]) & (np.diff(ends, axis=1) > 0)
    kept[~kept.any(axis=1), 0] = True  # a product that is 0 everywhere
    return kept


def _power_law(
    density: NoiseDensity, point: float, width: FloatArray, power: float
) -> tuple[FloatArray, FloatArray]:
    """Centers of mass and log integrals of p^power between a point and point + width, where p is a power of the distance."""
    near = density.logpdf(point + width[:, None] * np.array([1.0, 0.25]))
    with np.errstate(invalid="ignore"):
        growth = power * (near[:, 0] - near[:, 1]) / np.log(4.0)
        growth = np.where(np.isfinite(growth), np.maximum(growth, -0.999), 0.0)
    return point + width * (1 + growth) / (2 + growth), np.log(np.abs(width)) + power * near[:, 0] - np.log1p(
        growth
    )
