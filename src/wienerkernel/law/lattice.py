"""Sums on a lattice, by fast Fourier transform, inside a rigorous bracket, for phi that does not decay.

Rounding each of n terms down to a lattice of step h makes a sum S' with S' <= S <= S' + n h, so that the distribution
function of S' at y - n h and at y encloses that of S at y.
"""

from __future__ import annotations

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..noise import Noise, as_noise
from .fourier import Fourier
from .ray import EPS, Values
from .rows import Rows

__all__ = ["Lattice", "affordable"]

SIZES = 2**17, 2**20
"""Points of the lattice for many terms, and for few; the bracket narrows as their inverse."""
FEW, MANY, MANY_DISCRETE = 32, 300, 3000
"""Terms for which the longer lattice is affordable, and any lattice; atoms are transformed faster than densities."""


def affordable(rows: Rows) -> bool:
    """Whether the rows have few enough terms."""
    return int(np.count_nonzero(rows.weights)) <= (MANY_DISCRETE if rows.discrete.all() else MANY)


class Lattice:
    """A Fourier series, improved by the bracket where that is narrower than the error of the series."""

    relative = True  # the saddle point does not help where the series is poor

    def __init__(self, series: Fourier) -> None:
        rows = series.rows
        self.series = series
        self.size = SIZES[int(np.count_nonzero(rows.weights)) <= FEW]
        self.terms = rows.copies + (rows.normal_var > 0)
        self.step = (series.high - series.low) / (self.size - self.terms - 8)
        self.first = np.floor(series.low / self.step) - self.terms - 2
        self.below = np.stack([self._below(rows, row) for row in range(len(rows))])

    def _below(self, rows: Rows, row: int) -> FloatArray:
        """Distribution function of the sum rounded down, at the points of the lattice."""
        transform = np.ones(self.size // 2 + 1, dtype=complex)
        for weight, count, noise in zip(rows.weights[row], rows.counts, rows.laws, strict=True):
            if weight:
                transform *= self._transform(row, float(weight), noise) ** count
        if rows.normal_var[row] > 0:
            transform *= self._transform(row, float(np.sqrt(rows.normal_var[row])), as_noise(None))
        mass = np.roll(np.fft.irfft(transform, self.size), -int(self.first[row]) % self.size)
        return np.clip(np.cumsum(mass), 0.0, 1.0)

    def _transform(self, row: int, weight: float, noise: Noise) -> ComplexArray:
        """Transform of one term rounded down, wrapped round the lattice."""
        step = self.step[row]
        if noise.discrete:
            values, mass = noise.atoms()
            cell = (np.ceil(weight * values / step).astype(int) - 1) % self.size
            return np.fft.rfft(np.bincount(cell, weights=mass, minlength=self.size))
        # The whole sum fits on the lattice, so as many points around the median hold the mass of one term.
        middle = np.rint(weight * float(noise.ppf(0.5)) / step)
        edges = step * (middle + np.arange(-self.size, self.size + 1))
        with np.errstate(all="ignore"):
            if weight > 0:
                cdf = noise.cdf(edges / weight)
            else:  # P(vM <= x) = P(M >= x / v)
                cdf = 1 - noise.cdf(np.nextafter(edges / weight, -np.inf))
        cdf[0], cdf[-1] = 0.0, 1.0
        cells = np.diff(cdf).reshape(2, self.size).sum(axis=0)
        return np.fft.rfft(np.roll(cells, int(middle) % self.size))

    def __call__(self, x: FloatArray, index: IntArray) -> Values:
        """Values at the points ``x`` of shape (n, k), for the rows ``index``."""
        values = self.series(x, index)
        step, first, rows = self.step[index, None], self.first[index, None], index[:, None]
        upper = np.floor(x / step - first + 1e-6)
        lower = np.floor(x / step - first - 1e-6) - self.terms[index, None]
        high, low = (
            np.where(cell < 0, 0.0, self.below[rows, np.clip(cell, 0, self.size - 1).astype(int)])
            for cell in (upper, lower)
        )
        rounding = self.size * EPS
        error = 0.5 * (high - low) + rounding
        better = error < values.error
        # the series is clipped to the bracket, as far as that is known
        cdf = np.where(better, 0.5 * (low + high), np.clip(values.cdf, low - rounding, high + rounding))
        sf = np.where(cdf == values.cdf, values.sf, 1 - cdf)
        return values._replace(cdf=cdf, sf=sf, error=np.where(better, error, values.error))
