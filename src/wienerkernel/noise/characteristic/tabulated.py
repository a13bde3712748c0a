"""Tables of costly characteristic functions along the rays on which they are evaluated."""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import ComplexArray, FloatArray, IntArray
from .characteristic_function import CHUNK, LogCF
from .quadrature import chebyshev

__all__ = ["tabulated"]

# Cells of a ray: their width in log r, the degree of their polynomials, and how far they reach from 1/unit
WIDTH, DEGREE, SPAN = 0.125, 12, 30.0
UNKNOWN, LOGARITHM, PLAIN, DIRECT = 0, 1, 2, 3
SAME_RAY = 4e-15
_CHEBYSHEV, _TO_CHEBYSHEV, _TO_POWERS = chebyshev(DEGREE + 1)


def _truncation(series: NDArray[Any]) -> FloatArray:
    """Estimated truncation error of Chebyshev series; a single coefficient may be small by chance."""
    return np.asarray(np.maximum(np.abs(series[:, -1]), np.abs(series[:, -2]) / 16))


def tabulated(direct: LogCF, unit: float = 1.0, power: int = 1, even: bool = False) -> LogCF:
    """Replace the log characteristic function ``direct`` by tables along the rays on which it is evaluated.

    A ray is cut into cells of equal length in log r, each with its own polynomial. Below r = 1/unit, where unit is the
    scale of the law, the table holds log phi / t^power, which tends to a constant (power 1, or 2 if the mean is 0) and
    so keeps the relative accuracy. Cells that the polynomial does not resolve, and points that are not on a common
    ray, are evaluated directly. If phi is even, a ray and its conjugate share a table.
    """
    rays: dict[float, tuple[ComplexArray, IntArray, IntArray]] = {}
    lock = RLock()  # threads share the table of a law
    cells = int(2 * SPAN / WIDTH)
    zero = cells // 2

    def build(angle: float, cell: IntArray, powers: ComplexArray, state: IntArray) -> None:
        middle = -SPAN + WIDTH * (cell + 0.5)
        direction = np.exp(1j * angle)
        direction = 1j * direction.imag if abs(direction.real) < SAME_RAY else direction
        t = np.exp(middle[:, None] + WIDTH / 2 * _CHEBYSHEV) * (direction / unit)
        values = direct(t.ravel()).reshape(t.shape)
        values.imag = np.unwrap(values.imag, axis=1)
        near = cell < zero
        phi = np.exp(np.where(values.real < 1, values, np.nan))
        values[near] /= t[near] ** power
        values[~np.isfinite(values).all(axis=1)] = np.nan
        size, largest = np.abs(values).max(axis=1), np.minimum(np.abs(phi).max(axis=1), 1.0)
        # Near 0 the relative error of log phi counts; farther out an error of 2e-15 in phi is small enough, and
        # around a zero of phi the logarithm is not smooth, but phi is.
        logarithm, plain = values @ _TO_CHEBYSHEV, phi @ _TO_CHEBYSHEV
        error = _truncation(logarithm)
        built = np.where(near, error <= 1e-13 * size, (error <= 1e-14 * size) | (error * largest <= 2e-15))
        resolved = ~near & (_truncation(plain) <= 2e-15)
        state[cell] = np.select([built, resolved], [LOGARITHM, PLAIN], DIRECT)
        powers[cell] = (
            np.where(built[:, None], logarithm, np.where(resolved[:, None], plain, 0.0)) @ _TO_POWERS
        )

    def on_ray(t: ComplexArray, r: FloatArray, angle: float) -> ComplexArray:
        position = (np.log(np.maximum(r * unit, 1e-300)) + SPAN) / WIDTH
        cell = np.clip(position, 0, cells - 1).astype(np.intp)
        y = np.clip(2 * (position - cell) - 1, -1.0, 1.0)
        with lock:
            # A ray that differs by rounding is the same ray.
            angle = next((known for known in rays if abs(known - angle) <= SAME_RAY), angle)
            if angle not in rays:
                rays[angle] = (
                    np.zeros((cells, DEGREE + 1), dtype=complex),
                    *np.zeros((2, cells), dtype=np.intp),
                )
            powers, state, asked = rays[angle]
            # a polynomial costs as many values of phi as it has coefficients
            np.add.at(asked, cell, 1)
            fresh = np.flatnonzero((state == UNKNOWN) & (asked > DEGREE))
            if fresh.size:
                build(angle, fresh, powers, state)
            # polynomials and what they stand for, before another thread builds more
            rows, kind = powers[cell], state[cell]
        out: ComplexArray = rows[:, DEGREE]
        for k in range(DEGREE - 1, -1, -1):
            out = out * y + rows[:, k]
        out *= np.where(cell < zero, t**power, 1.0)
        plain = kind == PLAIN
        if plain.any():
            out[plain] = np.log(out[plain])
        beyond = (kind == DIRECT) | (kind == UNKNOWN) | (position > cells)
        if beyond.any():
            out[beyond] = off_table(t[beyond])
        return out

    def off_table(t: ComplexArray) -> ComplexArray:
        # Below the table, as at t = 0, log phi is a power of t.
        r = np.abs(t)
        tiny = r * unit < np.exp(-SPAN)
        safe = np.where(tiny, np.exp(-SPAN) / unit, t)
        out = direct(safe)
        out[tiny] *= (t[tiny] / safe[tiny]) ** power
        return out

    def right_half(t: ComplexArray) -> ComplexArray:
        """Re t >= 0, shape (n,)."""
        if t.size < 32:
            return off_table(t)
        r = np.abs(t)
        largest = int(np.argmax(r))
        ray = t[largest] / (r[largest] or 1.0)
        if np.any(np.abs(t - r * ray) > SAME_RAY * r):
            return off_table(t)
        return on_ray(t, r, float(np.angle(ray)))

    def logcf(t: ComplexArray) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        flat = t.ravel()
        # phi(-t) = conj(phi(conj t)) for every real law
        left = flat.real < 0
        flat = np.where(left, -flat.conj(), flat)
        if even:  # phi(conj t) = conj(phi(t))
            up = flat.imag > 0
            flat, left = np.where(up, flat.conj(), flat), left ^ up
        known = np.isfinite(flat)
        flat = np.where(known, flat, 0.0)
        out = np.empty(flat.shape, dtype=complex)
        above = flat.imag > 0
        for part in (above, ~above):
            if part.any():
                for start in range(0, int(part.sum()), CHUNK // 8):
                    where = np.flatnonzero(part)[start : start + CHUNK // 8]
                    out[where] = right_half(flat[where])
        out[~known] = np.nan
        return np.where(left, out.conj(), out).reshape(t.shape)

    return logcf
