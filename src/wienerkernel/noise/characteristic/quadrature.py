"""Characteristic functions as sums: over atoms, or over the nodes of a quadrature rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial.polynomial import polyval

from ..._typing import ComplexArray, FloatArray
from .characteristic_function import INF, CharacteristicFunction, LogCF, by_chunks, log1p, piecewise

if TYPE_CHECKING:
    from ..scipy_law import ScipyNoise

__all__ = ["MAX_ATOMS", "atoms", "chebyshev", "integers", "summed", "tanh_sinh"]

MAX_ATOMS = 2**20


def chebyshev(n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Chebyshev nodes, the matrix from values there to a series (values @ matrix), and that from a series to powers."""
    x = np.cos((np.arange(n) + 0.5) * np.pi / n)
    to_series = np.polynomial.chebyshev.chebvander(x, n - 1) * (2 / n)
    to_series[:, 0] /= 2
    powers = (np.polynomial.chebyshev.cheb2poly(row[: k + 1]) for k, row in enumerate(np.eye(n)))
    return x, to_series, np.stack([np.pad(row, (0, n - len(row))) for row in powers])


def atoms(x: FloatArray, p: FloatArray, mean: float | None = None) -> LogCF:
    """Log characteristic function of masses ``p`` on points ``x``, such as a quadrature rule; ``mean`` if it is known.

    Near t = 0 the sum is replaced by the series in central moments, which keeps the relative accuracy of the logarithm.
    """
    p = p / p.sum()
    center = float(p @ x) if mean is None else mean
    reach = float(np.max(np.abs(x - center)))
    order = 22
    # Coefficients mu_k / k! in units of the reach, so that nothing overflows.
    unit = (x - center) / (reach or 1.0)
    series = np.array([p @ unit**k for k in range(order)]) / np.cumprod([1.0, *range(1, order)])
    series[:2] = 0.0

    def small(t: ComplexArray) -> ComplexArray:
        return 1j * center * t + log1p(np.asarray(polyval(1j * t * reach, series), dtype=complex))

    def direct(t: ComplexArray) -> ComplexArray:
        w = -t.imag if not np.any(t.real) else 1j * t  # real exponentials are faster
        # Factor out the largest exponential, which belongs to an end of the support unless t is real.
        shift = np.where(w.real > 0, x.max(), np.where(w.real < 0, x.min(), center))
        z = np.exp(w[:, None] * (x - shift[:, None])) @ p
        with np.errstate(divide="ignore"):
            return np.asarray(w * shift + np.log(z), dtype=complex)

    near = 1.0 / reach if reach else INF
    return piecewise(near, small, lambda t: by_chunks(direct, len(x), t))


def tanh_sinh(step: float, a: float, b: float, depth: float) -> tuple[FloatArray, FloatArray]:
    """Nodes on (-1, 1) and log weights for ((1 + x)/2)^(a-1) ((1 - x)/2)^(b-1) dx/2.

    The trapezoidal rule in u with x = tanh(pi/2 sinh u); nodes whose weight is below exp(-``depth``) of the
    largest are left out. All weights are relatively accurate, even close to an end.
    """
    # far enough to reach the mass of x^(a-1) for the smallest exponent
    reach = np.arcsinh(max(1.0, depth / (np.pi * min(a, b, 1.0))))
    u = step * np.arange(-np.ceil(reach / step), np.ceil(reach / step) + 1)
    logit = np.pi * np.sinh(u)
    log_p = np.log(step * np.pi * np.cosh(u)) - a * np.logaddexp(0, -logit) - b * np.logaddexp(0, logit)
    kept = log_p > log_p.max() - depth
    return np.tanh(logit[kept] / 2), log_p[kept]


def integers(law: ScipyNoise, negligible: float) -> FloatArray:
    """Values of a discrete law between which all mass lies, up to tails of about ``negligible`` probability."""
    frozen = law.frozen
    lower, upper = (float(end) for end in frozen.support())
    median = float(frozen.median())
    reach = 2.0 ** np.arange(np.log2(MAX_ATOMS) + 1)
    ends = []
    for side, end in ((-1, lower), (1, upper)):
        beyond = median + side * reach
        small = frozen.pmf(beyond) * reach < negligible
        # The mass may vanish at single points: it must be negligible at all points farther out, too.
        enough = np.flatnonzero(np.logical_and.accumulate(small[::-1])[::-1])
        if not enough.size and abs(end - median) > MAX_ATOMS:
            msg = f"{law!r} has more than {MAX_ATOMS} atoms to sum: its tails are too heavy"
            raise ValueError(msg)
        cut = beyond[enough[0]] if enough.size else end
        ends.append(max(cut, end) if side < 0 else min(cut, end))
    return np.arange(ends[0], ends[1] + 1)


def summed(law: ScipyNoise) -> CharacteristicFunction:
    """Characteristic function of a discrete law on the integers, summed over the atoms that carry its mass."""
    x, frozen = integers(law, 1e-18), law.frozen
    lower, upper = np.isfinite(frozen.support())
    return CharacteristicFunction(
        atoms(x, frozen.pmf(x)), (-INF if lower else 0.0, INF if upper else 0.0), 0.0
    )
