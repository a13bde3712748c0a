"""Terms of one law: rows of weights, and the sums over them of its log characteristic function, with derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np

from .._typing import ComplexArray, FloatArray, IntArray
from ..backend.linalg import matmul
from ..noise import Noise, Residuals
from .ray_table import COARSE, DEGREE, EXACT, NEAR_ZEROS, SMOOTH, Law, RayTable, band_table, stencil, table_of

__all__ = ["COARSE", "SumAtNodes", "SumOnRay", "Terms", "WeightSum"]

MANY = 2**12
"""Arguments of phi above which a table is worth its cost."""
CHUNK = 2**19
"""Complex numbers held at once in a sum over weights,"""
BLOCK = 2**14
"""and weights that enter a histogram at once: they stay in the cache."""
KEPT = 2**18
"""Weights up to which their stencils, 64 bytes or more each, are kept."""
CELLS = 16
"""Histograms begin and end at multiples of this, so that one table serves many of them."""
DIFFERENCE = 3e-5
"""Step of central differences in the logarithm of the argument."""


class Terms:
    """Terms v_j M_j of one law: weights of shape (rows, D), each with a number of independent copies, (D,).

    The tolerance SMOOTH lets small weights enter nodes in the complex plane through their power sums.
    """

    def __init__(
        self, noise: Noise, weights: FloatArray, counts: FloatArray, tolerance: float = EXACT
    ) -> None:
        self.noise, self.weights, self.counts, self.tolerance = noise, weights, counts, tolerance
        self._histograms: dict[tuple[float, int, int, tuple[float, float]], Histogram] = {}

    def take(self, index: IntArray) -> Terms:
        """The rows with these indices."""
        terms = Terms(self.noise, self.weights[index], self.counts, self.tolerance)
        terms._histograms = {key: known.take(index) for key, known in list(self._histograms.items())}
        return terms

    @cached_property
    def copies(self) -> FloatArray:
        """Number of terms that are not 0, shape (rows,)."""
        return np.asarray((self.weights != 0) @ self.counts)

    @cached_property
    def largest(self) -> tuple[FloatArray, FloatArray]:
        """Largest negative and positive weight in modulus, each of shape (rows,)."""
        return np.maximum(-self.weights.min(axis=1), 0.0), np.maximum(self.weights.max(axis=1), 0.0)

    @cached_property
    def support(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the support of the sum, each of shape (rows,)."""
        lower, upper = self.noise.support()
        positive = np.maximum(self.weights, 0.0) @ self.counts
        negative = np.maximum(-self.weights, 0.0) @ self.counts
        with np.errstate(invalid="ignore"):  # 0 * inf: a side without weights
            ends = [
                np.where(positive > 0, positive * a, 0.0) - np.where(negative > 0, negative * b, 0.0)
                for a, b in ((lower, upper), (upper, lower))
            ]
        return ends[0], ends[1]

    @cached_property
    def strip(self) -> tuple[FloatArray, FloatArray]:
        """Open interval of real s with E exp(s X) finite, each end of shape (rows,)."""
        lower, upper = self.noise.strip()
        negative, positive = self.largest
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = (
                np.fmin(
                    np.where(positive > 0, a / positive, np.inf), np.where(negative > 0, b / negative, np.inf)
                )
                for a, b in ((-lower, upper), (upper, -lower))
            )
        return -low, high

    @cached_property
    def _smallest(self) -> float:
        """Smallest weight in modulus that is not 0; inf if all are."""
        magnitude = np.abs(self.weights)
        return float(np.min(magnitude, initial=np.inf, where=magnitude > 0))

    def logcf_on_ray(self, r: FloatArray, theta: float, tolerance: float) -> ComplexArray:
        """Log characteristic function of the sum at t = r e^{-i theta}, as :meth:`Rows.logcf_on_ray`."""
        largest = float(np.max(self.largest))
        if not largest:
            return np.zeros((len(self.weights), len(r)), dtype=complex)
        # A table is worth its cost if each of its cells serves several weights.
        cells = 20 * np.log(largest / self._smallest) + 32
        if self.weights.size * len(r) > CHUNK // 8 and self.weights.size > 2 * cells:
            return SumOnRay(self, r, theta, tolerance).value(self.noise)
        return self.logcf(np.broadcast_to(r * np.exp(-1j * theta), (len(self.weights), len(r))))

    def logcf(self, t: ComplexArray) -> ComplexArray:
        """Log characteristic function of each row at its own nodes ``t`` of shape (rows, K), same shape."""
        return SumAtNodes(self, t).value(self.noise)

    def histogram(self, step: float, points: int, signs: int, limits: tuple[float, float]) -> Histogram:
        """Histogram of the weights between the limits, made once."""
        key = step, points, signs, limits
        if key not in self._histograms:
            high = min(limits[1], float(np.max(self.largest)))
            low = min(max(limits[0], self._smallest), high)
            first = CELLS * int(np.floor((np.log(low) / step - points) / CELLS))
            cells = CELLS * int(np.ceil((np.log(high) / step + points - first) / CELLS))
            self._histograms[key] = Histogram(self.weights, self.counts, *key, first, cells)
        return self._histograms[key]


@dataclass(frozen=True)
class Histogram:
    """Weights on a grid of log|w|, such that sums over them integrate smooth functions as the weights do.

    The grid is first * step, (first + 1) * step, ... with one column per cell, or two for either sign, and a stencil of
    ``points``. Weights below the first limit enter power sums, relative to it; those above the second do not count.
    """

    weights: FloatArray
    counts: FloatArray
    step: float
    points: int
    signs: int
    limits: tuple[float, float]
    first: int
    cells: int

    def take(self, index: IntArray) -> Histogram:
        """The rows with these indices."""
        some = replace(self, weights=self.weights[index])
        if "sums" in self.__dict__:
            some.__dict__["sums"] = tuple(table[index] for table in self.sums)
        return some

    def _blocks(self) -> Iterable[_Block]:
        """Blocks of rows, kept for the pullback if they are small."""
        return self._kept if self.weights.size <= KEPT else self._new_blocks()

    @cached_property
    def _kept(self) -> list[_Block]:
        return list(self._new_blocks())

    def _new_blocks(self) -> Iterator[_Block]:
        columns = self.weights.shape[1]
        rows = max(1, BLOCK // columns)
        small, rough = self.limits
        for start in range(0, len(self.weights), rows):
            part = slice(start, start + rows)
            weights = self.weights[part].ravel()
            magnitude = np.abs(weights)
            below = self.weights[part] * (magnitude < small).reshape(-1, columns) if small else weights[:0]
            chosen = np.flatnonzero((magnitude >= small) & (magnitude < rough) & (magnitude > 0))
            position, stencils = stencil(np.log(magnitude[chosen]) / self.step - self.first, self.points)
            position += self.cells * (chosen // columns)
            if self.signs == 2:
                position *= 2
                position += weights[chosen] < 0
            yield _Block(part, below / (small or 1.0), chosen, position, stencils)

    @cached_property
    def sums(self) -> tuple[FloatArray, FloatArray]:
        """Histograms (rows, signs * cells), and power sums (rows, DEGREE) of the small weights."""
        rows, columns = self.weights.shape
        powers, mass = np.zeros((rows, DEGREE)), np.zeros((rows, self.signs * self.cells))
        for block in self._blocks():
            of_rows, of_cells = powers[block.rows], mass[block.rows].ravel()
            power = block.small.copy()
            for k in range(DEGREE if power.size else 0):
                of_rows[:, k] = power @ self.counts
                power *= block.small
            counts = self.counts[block.chosen % columns]
            for p in range(self.points):
                of_cells += np.bincount(
                    block.position + self.signs * p, block.stencils[p] * counts, minlength=of_cells.size
                )
        return mass, powers

    def pullback(self, by_cell: FloatArray, by_power: FloatArray) -> FloatArray:
        """Interpolated ``by_cell`` at each weight, or the polynomial with coefficients ``by_power``: (rows, D)."""
        result = np.zeros(self.weights.shape)
        for block in self._blocks():
            of_rows, cells = result[block.rows].ravel(), by_cell[block.rows].ravel()
            for k in range(DEGREE - 1 if block.small.size else -1, -1, -1):  # Horner
                result[block.rows] += by_power[block.rows, k, None]
                result[block.rows] *= block.small
            found = np.zeros(len(block.position))
            for p in range(self.points):
                found += block.stencils[p] * cells[block.position + self.signs * p]
            of_rows[block.chosen] = found
        return result


class _Block(NamedTuple):
    """Some rows of weights: the small ones over their limit, (rows, D), and the others by their places in these rows.

    ``position`` is the first cell of a weight's stencil, counted through the histograms of all rows of the block.
    """

    rows: slice
    small: FloatArray
    chosen: IntArray
    position: IntArray
    stencils: FloatArray


class SumAtNodes:
    """E(t) = sum_j n_j log phi(w_j t), as a function of the law: term by term, each row at its own nodes t, (rows, K).

    ``reliable``, of shape (rows,), is the |t| up to which E is accurate.
    """

    def __init__(self, terms: Terms, t: ComplexArray) -> None:
        self.terms, self.t = terms, t
        self.reliable = np.full(len(t), np.inf)
        radius = _radius(terms.noise) if terms.tolerance == SMOOTH else 0.0
        far = np.abs(terms.weights) * np.max(np.abs(t), axis=1, initial=0.0)[:, None] < radius
        self._far = np.where(far, terms.weights, 0.0) if radius else None
        self._pairs = np.nonzero(~far & (terms.weights != 0))

    def _parts(self) -> Iterator[tuple[IntArray, IntArray, ComplexArray]]:
        return _products(self.terms.weights, self._pairs, self.t)

    def value(self, law: Law) -> ComplexArray:
        """E, of shape (rows, K)."""
        result = np.zeros(self.t.shape, dtype=complex)
        for row, column, argument in self._parts():
            _add_to_rows(result, row, _log_phi(law, argument) * self.terms.counts[column, None])
        if self._far is not None:
            power = self._far.copy()
            for order, coefficient in enumerate(_taylor(law), start=1):
                result += coefficient * (power @ self.terms.counts)[:, None] * self.t**order
                power *= self._far
        return result

    def pullback(self, law: Law, cotangent: ComplexArray) -> FloatArray:
        """Re sum_k cotangent_k w dE_k/dw for each weight, of shape (rows, D)."""
        result = np.zeros(self.terms.weights.shape)
        if self._far is not None:
            power = self._far.copy()
            for order, coefficient in enumerate(_taylor(law), start=1):
                by_power = order * np.sum(coefficient * self.t**order * cotangent, axis=1).real
                result += by_power[:, None] * power
                power *= self._far
        for row, column, argument in self._parts():
            result[row, column] = np.einsum(
                "nk,nk->n", _slope(partial(_log_phi, law), argument), cotangent[row]
            ).real
        return np.asarray(result * self.terms.counts)


class SumOnRay:
    """The same by histograms, all rows at the same nodes t = r e^{-i theta}.

    Weights that do not interpolate at all nodes, because phi has zeros, are summed one by one.
    Without ``careful`` they are interpolated as well, and ``reliable`` states how far that is accurate.
    """

    def __init__(
        self, terms: Terms, r: FloatArray, theta: float, tolerance: float, careful: bool = True
    ) -> None:
        self.terms, self.r, self.theta, self.tolerance = terms, r, theta, tolerance
        self.log_r, self.farthest = np.log(r), float(np.max(r))
        table, largest = table_of(terms.noise, theta, tolerance), np.maximum(*terms.largest)
        table.cover(table.start * table.step, float(np.log(largest.max() * self.farthest)))
        # Power sums are for weights that change all the time; a histogram that is made once can be wide.
        self.series_until = table.series_until if tolerance == SMOOTH else -np.inf
        rough = np.exp(table.smooth_until) / self.farthest
        self.reliable = np.full(len(largest), np.inf)
        if not careful:
            beyond = largest >= rough
            self.reliable[beyond] = np.exp(table.smooth_until) / largest[beyond]
            rough = np.inf
        self.rough: tuple[IntArray, ...] = (np.empty(0, dtype=np.intp),) * 2
        if np.any(largest >= rough):
            self.rough = np.nonzero(np.abs(terms.weights) >= rough)
        self.signs, self.limits = (
            table.signs,
            (float(np.exp(self.series_until)) / self.farthest, float(rough)),
        )

    def _prepare(self, law: Law) -> tuple[RayTable, Histogram]:
        """Table and histogram for a law, which need not be as symmetric as that of the terms."""
        table = table_of(law, self.theta, self.tolerance)
        known = self.terms.histogram(table.step, table.points, max(self.signs, table.signs), self.limits)
        low, high = known.first * table.step, (known.first + known.cells) * table.step
        table.cover(low + self.log_r.min() - 4 * table.step, high + self.log_r.max() + 4 * table.step)
        return table, known

    def value(self, law: Law) -> ComplexArray:
        """E, of shape (rows, K)."""
        table, known = self._prepare(law)
        mass, powers = known.sums
        result = np.zeros((len(mass), len(self.r)), dtype=complex)
        for part, (real, imag) in self._matrices(table, known, slopes=False):
            result.real[:, part] = matmul(mass, real, transpose_b=True)
            result.imag[:, part] = matmul(mass, imag, transpose_b=True)
        if np.isfinite(self.series_until):
            series = self._series(table)
            result.real += powers @ series.real
            result.imag += powers @ series.imag
        for row, column, argument in self._rough_parts():
            _add_to_rows(result, row, self._log_phi(law, argument) * self.terms.counts[column, None])
        return result

    def pullback(self, law: Law, cotangent: ComplexArray) -> FloatArray:
        """Re sum_k cotangent_k w dE_k/dw for each weight, of shape (rows, D)."""
        real_part, imag_part = np.ascontiguousarray(cotangent.real), np.ascontiguousarray(cotangent.imag)
        table, known = self._prepare(law)
        by_cell = np.zeros((len(cotangent), known.signs * known.cells))
        for part, (real, imag) in self._matrices(table, known, slopes=True):
            by_cell += matmul(np.ascontiguousarray(real_part[:, part]), real)
            by_cell -= matmul(np.ascontiguousarray(imag_part[:, part]), imag)
        by_power = np.zeros((len(cotangent), DEGREE))
        if np.isfinite(self.series_until):
            series = self._series(table)
            by_power = (real_part @ series.real.T - imag_part @ series.imag.T) * np.arange(1.0, DEGREE + 1)
        result = known.pullback(by_cell, by_power)
        for row, column, argument in self._rough_parts():
            result[row, column] = np.einsum(
                "nk,nk->n", _slope(partial(self._log_phi, law), argument), cotangent[row]
            ).real
        return np.asarray(result * self.terms.counts)

    def _matrices(
        self, table: RayTable, known: Histogram, slopes: bool
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Tables of log phi, or of its derivative by log r, for a few nodes at a time."""
        for start in range(0, len(self.r), step := max(1, CHUNK // known.cells)):
            part = slice(start, start + step)
            yield part, table.matrix(known.first, known.cells, self.log_r[part], known.signs, slopes)

    def _series(self, table: RayTable) -> ComplexArray:
        """Terms of the polynomial for weights at the limit of the small ones: (DEGREE, K)."""
        powers = (self.r / self.farthest) ** np.arange(1, DEGREE + 1)[:, None]
        return np.asarray(table.series(self.series_until)[:, None] * powers)

    def _log_phi(self, law: Law, t: ComplexArray) -> ComplexArray:
        return _log_phi_on_ray(law, t, self.theta) if self.tolerance == SMOOTH else _log_phi(law, t)

    def _rough_parts(self) -> Iterator[tuple[IntArray, IntArray, ComplexArray]]:
        t = np.broadcast_to(self.r * np.exp(-1j * self.theta), (len(self.terms.weights), len(self.r)))
        return _products(self.terms.weights, self.rough, t)


WeightSum = SumAtNodes | SumOnRay


def _products(
    weights: FloatArray, pairs: tuple[IntArray, ...], t: ComplexArray
) -> Iterator[tuple[IntArray, IntArray, ComplexArray]]:
    """Rows, columns and w t of a few weights at a time, for nodes ``t`` of shape (rows, K)."""
    step = max(1, CHUNK // max(1, t.shape[1]))
    for start in range(0, len(pairs[0]), step):
        row, column = (index[start : start + step] for index in pairs)
        yield row, column, weights[row, column, None] * t[row]


def _add_to_rows(result: ComplexArray, row: IntArray, terms: ComplexArray) -> None:
    """Add terms (n, K) to the rows of the result that they belong to, which increase."""
    first = np.flatnonzero(np.diff(row, prepend=-1))
    result[row[first]] += np.add.reduceat(terms, first, axis=0)


def _log_phi(law: Law, t: ComplexArray) -> ComplexArray:
    """Log phi, from a table where each value costs a sum over many atoms."""
    if isinstance(law, Residuals) and t.size > MANY and not np.any(t.imag):
        table = band_table(law)
        if table.covers(float(np.max(np.abs(t)))):
            return table.logcf(t.real)
    with np.errstate(all="ignore"):
        return law.logcf(t)


def _log_phi_on_ray(law: Law, t: ComplexArray, theta: float) -> ComplexArray:
    """The same on a ray, from tables of phi, which is smooth at its zeros; t is not 0."""
    if theta:
        return table_of(law, theta, NEAR_ZEROS).log_phi((t * np.exp(1j * theta)).real)
    cheap = getattr(law, "name", None) == "uniform"  # its formula is faster than a table
    if isinstance(law, Noise) and np.all(np.isfinite(law.support())) and not cheap:
        table = band_table(law)
        if table.covers(float(np.max(np.abs(t)))):
            return table.logcf(t.real)
    if (mixed := getattr(law, "mixed", None)) is not None:
        return np.asarray(mixed(t, lambda part: _log_phi_on_ray(part, t, theta)))
    return _log_phi(law, t)


def _taylor(law: Law) -> ComplexArray:
    """Coefficients kappa_k i^k / k! of log phi for k = 1 to 8; 0 from the first cumulant on that does not exist."""
    kappa, order = law.cumulants(8), np.arange(1, 9)
    exists = np.cumprod(np.isfinite(kappa)) > 0
    return np.asarray(np.where(exists, kappa, 0.0) * 1j**order / np.cumprod(order))


@lru_cache(maxsize=32)
def _radius(law: Law) -> float:
    """The |t| up to which, in all directions, the cumulant series equals log phi to rounding; 0 for heavy tails."""
    low, high = law.strip()
    if not low < 0 < high:
        return 0.0
    r = np.exp(np.arange(-11.0, 2.0, 0.05)) / np.sqrt(law.var())
    t = r * np.exp(0.25j * np.pi * np.arange(8))[:, None]
    series = sum(c * t**order for order, c in enumerate(_taylor(law), start=1))
    with np.errstate(all="ignore"):
        close = np.abs(law.logcf(t) - series) < 0.05 * SMOOTH * law.var() * np.abs(t) ** 2 + 1e-15
    return 0.8 * float(r[max(int(np.argmin(np.all(close, axis=0))) - 1, 0)])


def _slope(log_phi: Callable[[ComplexArray], ComplexArray], t: ComplexArray) -> ComplexArray:
    """Derivative of log phi by log t, by central differences; 0 where phi is not known."""
    with np.errstate(all="ignore"):
        difference = log_phi(t * np.exp(DIFFERENCE)) - log_phi(t * np.exp(-DIFFERENCE))
        # the logarithm is known up to multiples of 2 pi i
        difference.imag -= 2 * np.pi * np.rint(difference.imag / (2 * np.pi))
        return np.where(np.isfinite(difference), difference / (2 * DIFFERENCE), 0.0)
