"""Inversion beyond a frequency T, where phi is a sum over corners e^{itC} A_C(t): each one on a ray of its own.

The integrals over t > T of e^{it(C - x)} A_C(t) turn at T into the half-plane where e^{it(C - x)} decays, however slowly
A_C does. A corner of a sum of terms is a sum of corners of the terms, and its A_C the product of theirs.
"""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from .corners import Corners, corners
from .ray import EPS, RESOLVED, Values
from .rows import Rows

__all__ = ["CornerSum", "CornerTail", "corner_sums"]

TURN, STEP = np.pi / 4, 0.14
"""Angle of the rays, and step in log r: both leave an error near e^(-2 pi TURN / STEP) = 5e-16.

Under a normal part, which grows beyond an angle of pi/4, both are half as large.
"""
FIRST, FARTHEST = -3.6, 1e20
"""First node, where r is 1e-17 of its scale, and the last: closer to a corner than its inverse, x is rounded."""
DECAYED = 50.0
"""Exponent of the normal part that needs no more nodes."""
FEW, MOST = 2**7, 2**11
"""Corners of a row that need no higher frequency, and at most."""
NO_MASS = 1e-18
"""Size of A_C that is left out."""
SAME = 1e-13
"""Corners that differ by less, in standard deviations, are one."""
CHUNK = 2**14
"""Complex numbers that are processed at once: they stay in the cache."""
NEAR = 1e-6
"""Distance from a corner, in standard deviations, at which the rounding of x may change the probability."""

# Contour of Talbot for Laplace transforms (Weideman, SIAM Journal on Numerical Analysis 44, 2006): an error of e^(-1.36 N)
_ANGLE = (2 * np.arange(36) + 1) * np.pi / 36 - np.pi
_TALBOT = 36 * (0.5017 * _ANGLE / np.tan(0.6407 * _ANGLE) - 0.6122 + 0.2645j * _ANGLE)
_SLOPE = 0.5017 / np.tan(0.6407 * _ANGLE) - 0.5017 * 0.6407 * _ANGLE / np.sin(0.6407 * _ANGLE) ** 2 + 0.2645j
_TALBOT_WEIGHTS = np.exp(_TALBOT) * _SLOPE / 1j


class CornerSum:
    """Terms of one row, (corners of the law, weight, count), and the standard deviation ``tau`` of the normal part."""

    def __init__(self, terms: list[tuple[Corners, float, int]], tau: float) -> None:
        self.terms, self.tau = terms, tau
        self.start = max(known.start / abs(weight) for known, weight, _ in terms)
        self.error = sum(count * known.error for known, _, count in terms)
        self.grain = EPS * sum(abs(w) * float(np.max(np.abs(known.location))) * n for known, w, n in terms)

    @cached_property
    def atoms(self) -> FloatArray:
        """Values that the sum takes with positive probability."""
        terms = [(w, known.location[known.exponent == 0], n) for known, w, n in self.terms]
        values = np.zeros(1)
        for weight, atoms, count in terms:
            for _ in range(count):
                values = np.unique(np.add.outer(values, weight * atoms))
        return values

    def near_end(self, upper: bool) -> float:
        """Distance from an end of the support up to which the corner there alone gives the law; 0 for an infinite end."""
        reach = 0.0 if self.tau else float(np.min(np.abs(_TALBOT))) / self.start
        for known, weight, _ in self.terms:
            last = (weight > 0) == upper
            places = np.unique(known.location)[:: -1 if last else 1]
            if places[0] != known.noise.support()[last]:
                return 0.0
            reach = min(reach, abs(weight) * float(np.min(np.abs(np.diff(places[:2])), initial=np.inf)))
        return reach

    def beside(self, distance: FloatArray, upper: bool) -> tuple[FloatArray, FloatArray]:
        """Density and tail at distances (n,) from an end, with relative accuracy, by a contour around its corner."""
        z = _TALBOT / distance[:, None]
        total = np.ones(z.shape, dtype=complex)
        for known, weight, count in self.terms:
            last = (weight > 0) == upper
            at_end = known.location == known.location[-1 if last else 0]
            log_z, amplitude = np.log(abs(weight) * z), np.zeros(z.shape, dtype=complex)
            sides = known.exponent[at_end], known.step[at_end], known.coefficient[:, at_end].T
            for exponent, step, coefficient in zip(*sides, strict=True):
                powers = exponent + step * np.arange(len(coefficient))
                # -it = z from below, it = z from above
                real = (coefficient * np.exp((0.5j if last else -0.5j) * np.pi * powers)).real
                amplitude += np.exp(-exponent * log_z) * np.polynomial.polynomial.polyval(
                    np.exp(-step * log_z), real
                )
            total *= amplitude**count
        pdf = (total @ _TALBOT_WEIGHTS).real / distance
        return pdf, ((total / z) @ _TALBOT_WEIGHTS).real / distance

    def frequency(self, limit: float) -> float:
        """Where the corners take over: soon, but where few are left; inf if that is beyond the limit."""
        best, fewest = np.inf, MOST + 1
        for frequency in self.start * 4.0 ** np.arange(6):
            if frequency > limit or fewest <= FEW:
                break
            found = self.amplitudes(np.array([frequency + 0j]))
            if found is not None and len(found[0]) < fewest / 2:
                best, fewest = frequency, len(found[0])
        return float(best)

    def log_phi(self, r: FloatArray) -> ComplexArray:
        """Logarithm of phi at frequencies ``r`` of shape (n,)."""
        total = -0.5 * (self.tau * r) ** 2 + 0j
        with np.errstate(divide="ignore"):
            for known, weight, count in self.terms:
                log_phi = count * np.log(known.phi(abs(weight) * r))
                total += log_phi if weight > 0 else log_phi.conj()
        return np.asarray(total)

    def amplitudes(self, t: ComplexArray) -> tuple[FloatArray, ComplexArray] | None:
        """Corners C, and A_C at the nodes ``t`` of shape (n,), the first of which is the lowest; None if they are many."""
        location, total = np.zeros(1), np.exp(-0.5 * self.tau**2 * t**2)[None]
        for known, weight, count in self.terms:
            places, amplitude = known.amplitude(abs(weight) * (t if weight > 0 else t.conj()))
            if weight < 0:
                amplitude = amplitude.conj()
            for _ in range(count):
                # cuts that do not count any more are left out before they multiply
                size = np.abs(np.multiply.outer(total[:, 0], amplitude[:, 0]))
                first, second = np.nonzero(size > NO_MASS)
                if len(first) > 8 * MOST:
                    return None
                place = location[first] + weight * places[second]
                order = np.argsort(place, kind="stable")
                new = np.flatnonzero(np.diff(place[order], prepend=-np.inf) > SAME)
                if len(new) > MOST:
                    return None
                product = total[first[order]] * amplitude[second[order]]
                location, total = (
                    place[order][new],
                    np.add.reduceat(product, new, axis=0) if len(new) else product,
                )
        return location, total


def corner_sums(rows: Rows) -> list[CornerSum | None]:
    """The corners of each row; None where those of a law are not known."""
    known = [corners(law) for law in rows.laws]
    result: list[CornerSum | None] = []
    for weights, tau in zip(rows.weights, np.sqrt(rows.normal_var), strict=True):
        used = [(k, float(w), int(n)) for k, w, n in zip(known, weights, rows.counts, strict=True) if w]
        unknown = not used or any(k is None for k, _, _ in used)
        result.append(None if unknown else CornerSum(used, float(tau)))  # type: ignore[arg-type]
    return result


class CornerTail:
    """What the frequencies beyond T add to the density and to the distribution function of one row."""

    def __init__(self, row: CornerSum, frequency: float, reach: float) -> None:
        half = 0.5 if row.tau else 1.0
        farthest = FARTHEST
        if row.tau:  # beyond, the normal part has decayed
            farthest = min(farthest, np.sqrt(2 * DECAYED / np.cos(2 * half * TURN)) / row.tau)
        u = np.arange(FIRST, np.log(farthest * reach), half * STEP)
        # e^{it(C - x)} decays first for the corner farthest from x
        r = np.exp(u - np.exp(-u)) / reach
        self.row, self.frequency, self.r, self.theta = row, frequency, r, half * TURN
        self.step = half * STEP * r * (1 + np.exp(-u)) / np.pi
        self.sign = np.where(np.arange(len(u)) % 2, -1.0, 1.0)

    @cached_property
    def _sides(self) -> dict[float, tuple[FloatArray, ComplexArray, ComplexArray]]:
        """For corners above (1) and below x (-1): their places, the nodes, and the terms of the distribution function.

        Those of a corner hold all corners behind it, as seen from x, since e^{it(C - x)} is a product along the way.
        """
        sides = {}
        for side in (1.0, -1.0):
            turn = np.exp(1j * side * self.theta)
            t = self.frequency + self.r * turn
            found = self.row.amplitudes(t)
            assert found is not None  # at the frequency itself, there are few
            location, terms = found[0], found[1] * (self.step * turn / t)
            order = np.arange(len(location))[:: -1 if side > 0 else 1]
            for behind, corner in itertools.pairwise(order):
                terms[corner] += np.exp(1j * (location[behind] - location[corner]) * t) * terms[behind]
            sides[side] = location, t, terms
        return sides

    def __call__(self, x: FloatArray) -> Values:
        """What is to be added at the points ``x`` of shape (k,); sf is the opposite of cdf."""
        result = self._sum(x)
        # next to a corner x and C are rounded
        close = np.flatnonzero(np.min(np.abs(x[:, None] - self._sides[1.0][0]), axis=1, initial=1.0) < NEAR)
        if len(close):
            shift = 4 * (self.row.grain + EPS * np.abs(x[close]))
            result.error[close] += np.abs(self._sum(x[close] + shift).cdf - self._sum(x[close] - shift).cdf)
        return result._replace(sf=-result.cdf, error=result.error + self.row.error)

    def _sum(self, x: FloatArray) -> Values:
        result = Values(*np.zeros((5, len(x))))
        for side, (location, t, terms) in self._sides.items():
            nearest = np.searchsorted(location, x, side="right") - (side < 0)
            point = np.flatnonzero((nearest >= 0) & (nearest < len(location)))
            corner = nearest[point]
            distance = location[corner] - x[point]
            # points that need about as many nodes
            with np.errstate(divide="ignore"):
                last = np.searchsorted(self.r, 40 / (np.sin(self.theta) * np.abs(distance))) + 2
            last = np.minimum(32 * np.ceil(last / 32).astype(int), len(t))
            for number in np.unique(last):
                chosen = np.flatnonzero(last == number)
                size = max(1, CHUNK // number)
                for i in range(0, len(chosen), size):
                    some = chosen[i : i + size]
                    self._add(result, point[some], distance[some], t[:number], terms[corner[some], :number])
        return result

    def _add(
        self, result: Values, point: IntArray, distance: FloatArray, t: ComplexArray, terms: ComplexArray
    ) -> None:
        terms = np.exp(1j * distance[:, None] * t) * terms
        # every second node with the opposite sign shows the error of the step
        both = np.stack([np.ones(len(t)), self.sign[: len(t)]], axis=1)
        every = terms @ np.concatenate([both, both * t[:, None]], axis=1)
        sums = [-every[:, :2].imag, every[:, 2:].real]
        if len(t) == len(self.r):  # on a corner, A_C falls like a power of t beyond the last node
            with np.errstate(all="ignore"):
                power = np.log(np.abs(terms[:, -2] / terms[:, -1])) / np.log(self.r[-1] / self.r[-2])
                rest = -terms[:, -1].imag * (0.5 + 1 / (power * np.log(self.r[-1] / self.r[-2])))
            sums[0][:, 0] += np.where(np.isfinite(rest) & (power > 0), rest, 0.0)
        for out, error, (value, half) in (
            (result.cdf, result.error, sums[0].T),
            (result.pdf, result.pdf_error, sums[1].T),
        ):
            out[point] += value
            half = np.abs(half)
            # halving the step squares the error
            with np.errstate(all="ignore"):
                share = half / np.abs(value)
            if out is result.cdf:
                share = np.where(half < RESOLVED, half, share)
            error[point] += half * np.minimum(np.nan_to_num(share), 1.0)
