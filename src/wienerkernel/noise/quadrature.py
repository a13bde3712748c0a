"""Characteristic functions by quadrature: sums over atoms, rotated contours, and tables along rays.

Three ways, from the best informed to the least: a density that continues to complex x is integrated on a
rotated half-line, where exp(itx) decays; any other density is integrated on the real line; a discrete law is
summed over its atoms.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import ComplexArray, FloatArray, IntArray

__all__ = [
    "Characteristic",
    "Contour",
    "affine",
    "atoms",
    "expm1",
    "log1p",
    "numerical",
    "panelled",
    "piecewise",
    "polyval",
    "student",
    "summed",
    "symmetric",
    "tabulated",
    "tanh_sinh",
]

INF = np.inf
HALF_PI = np.pi / 2
LogCF = Callable[[ComplexArray], ComplexArray]
CHUNK = 1 << 18
"""Most elements of a (points, nodes) array that is held at one time."""


@dataclass(frozen=True)
class Characteristic:
    """Log characteristic function of a standard law, and where it may be asked for.

    Parameters
    ----------
    logcf : callable
        log E exp(i t M) for complex ``t`` of any shape, up to multiples of 2 pi i.
    strip : tuple of float
        Open interval of real s on which E exp(s M) is finite; there t = -i s may be asked for.
    sector : float
        Angle theta such that ``logcf`` holds for abs(arg t) < theta and abs(arg -t) < theta;
        0 means real ``t`` only.

    Notes
    -----
    Off the real axis the error of exp(logcf) is relative to E exp(-Im(t) M), which exceeds abs(phi(t)).

    Examples
    --------
    >>> standard_normal = Characteristic(lambda t: -t * t / 2, (-np.inf, np.inf), np.pi / 2)
    >>> complex(standard_normal.logcf(np.array(2.0 + 0j))).real
    -2.0
    """

    logcf: LogCF
    strip: tuple[float, float]
    sector: float


def log1p(z: ComplexArray) -> ComplexArray:
    """Logarithm of 1 + z for complex z, relatively accurate as z -> 0 (``np.log1p`` is not).

    Examples
    --------
    >>> complex(log1p(np.array(1e-9j)))
    (5e-19+1e-09j)
    """
    x, y = z.real, z.imag
    squared = x * (2 + x) + y * y
    out = np.empty(np.shape(z), dtype=complex)
    with np.errstate(divide="ignore"):
        out.real = 0.5 * np.log1p(squared)
        # 1 + squared has lost digits where |1 + z| is small.
        if np.any(squared < -0.75):
            out.real = np.where(squared < -0.75, np.log(np.hypot(1 + x, y)), out.real)
    out.imag = np.arctan2(y, 1 + x)
    return out


def expm1(z: ComplexArray) -> ComplexArray:
    """exp(z) - 1 for complex z.

    Examples
    --------
    >>> complex(expm1(np.array(1e-20j))).imag
    1e-20
    """
    return np.asarray(np.expm1(z), dtype=complex)


def polyval(z: ComplexArray, coefficients: FloatArray) -> ComplexArray:
    """Polynomial with real coefficients, lowest power first.

    Examples
    --------
    >>> complex(polyval(np.array(1j), np.array([1.0, 2.0])))
    (1+2j)
    """
    return np.asarray(np.polynomial.polynomial.polyval(z, coefficients), dtype=complex)


def piecewise(near: float, small: LogCF, large: LogCF) -> LogCF:
    """Function that is ``small`` where abs(t) < ``near`` and ``large`` elsewhere.

    Examples
    --------
    >>> f = piecewise(1.0, lambda t: t, lambda t: 0 * t)
    >>> f(np.array([0.5, 2.0])).real.tolist()
    [0.5, 0.0]
    """

    def logcf(t: ComplexArray) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        inside = np.abs(t) < near
        if inside.all():
            return small(t)
        if not inside.any():
            return large(t)
        out = np.empty(t.shape, dtype=complex)
        out[inside] = small(t[inside])
        out[~inside] = large(t[~inside])
        return out

    return logcf


def _by_chunks(function: LogCF, nodes: int, t: ComplexArray) -> ComplexArray:
    """Evaluate ``function`` of a flat array in pieces, so that (points, nodes) arrays stay small."""
    t = np.asarray(t, dtype=complex)
    step = max(1, CHUNK // nodes)
    flat = t.ravel()
    out = np.empty(flat.shape, dtype=complex)
    for start in range(0, flat.size, step):
        out[start : start + step] = function(flat[start : start + step])
    return out.reshape(t.shape)


def atoms(x: FloatArray, p: FloatArray, mean: float | None = None) -> LogCF:
    """Log characteristic function of the law that puts mass ``p`` on the points ``x``.

    The nodes and weights of a quadrature rule are such a law. Near t = 0 the sum is replaced by the series
    in central moments, which keeps the relative accuracy of the logarithm.

    Parameters
    ----------
    x, p : ndarray of shape (n,)
    mean : float, optional
        The mean, where it is known exactly.

    Examples
    --------
    >>> coin = atoms(np.array([-1.0, 1.0]), np.array([0.5, 0.5]))
    >>> round(float(np.exp(coin(np.array(1.0 + 0j))).real - np.cos(1.0)), 12)
    0.0
    """
    p = p / p.sum()
    centre = float(p @ x) if mean is None else mean
    reach = float(np.max(np.abs(x - centre)))
    order = 22
    # Coefficients mu_k / k! in units of the reach, so that nothing overflows.
    unit = (x - centre) / (reach or 1.0)
    series = np.array([p @ unit**k for k in range(order)]) / np.cumprod([1.0, *range(1, order)])
    series[:2] = 0.0

    def small(t: ComplexArray) -> ComplexArray:
        return 1j * centre * t + log1p(polyval(1j * t * reach, series))

    def direct(t: ComplexArray) -> ComplexArray:
        w = 1j * t
        # Factor out the largest exponential, which sits at one end of the support unless t is real.
        shift = np.where(w.real > 0, x.max(), np.where(w.real < 0, x.min(), centre))
        z = np.exp(w[:, None] * (x - shift[:, None])) @ p
        with np.errstate(divide="ignore"):
            return w * shift + np.log(z)

    near = 1.0 / reach if reach else INF
    return piecewise(near, small, lambda t: _by_chunks(direct, len(x), t))


def tanh_sinh(step: float, a: float, b: float, depth: float) -> tuple[FloatArray, FloatArray]:
    """Nodes on (-1, 1) and log weights for ((1 + x)/2)^(a-1) ((1 - x)/2)^(b-1) dx/2.

    The trapezoidal rule in u with x = tanh(pi/2 sinh u); nodes whose weight is below exp(-``depth``) of the
    largest are left out. Every weight is relatively accurate, also next to an end.

    Examples
    --------
    >>> x, log_p = tanh_sinh(0.1, 1.0, 1.0, 45.0)
    >>> round(float(np.exp(log_p).sum()), 12)
    1.0
    """
    u = step * np.arange(-np.ceil(9 / step), np.ceil(9 / step) + 1)
    logit = np.pi * np.sinh(u)
    log_p = np.log(step * np.pi * np.cosh(u)) - a * np.logaddexp(0, -logit) - b * np.logaddexp(0, logit)
    kept = log_p > log_p.max() - depth
    return np.tanh(logit[kept] / 2), log_p[kept]


def affine(law: Characteristic, scale: float, loc: float = 0.0) -> Characteristic:
    """Characteristic function of loc + scale M; a negative scale reflects the law.

    Examples
    --------
    >>> normal = Characteristic(lambda t: -t * t / 2, (-1.0, 3.0), 0.0)
    >>> affine(normal, -2.0).strip
    (-1.5, 0.5)
    """
    strip = sorted((law.strip[0] / scale, law.strip[1] / scale))
    return Characteristic(
        lambda t: 1j * loc * t + law.logcf(scale * t), (strip[0] or 0.0, strip[1] or 0.0), law.sector
    )


# Cells of a ray: their width in log r, the degree of their polynomials, and how far they reach from 1/unit
WIDTH, DEGREE, SPAN = 0.125, 12, 30.0
UNKNOWN, LOGARITHM, PLAIN, DIRECT = 0, 1, 2, 3
SAME_RAY = 4e-15
_CHEBYSHEV = np.cos((np.arange(DEGREE + 1) + 0.5) * np.pi / (DEGREE + 1))
_TO_CHEBYSHEV = np.polynomial.chebyshev.chebvander(_CHEBYSHEV, DEGREE) * (2 / (DEGREE + 1))
_TO_CHEBYSHEV[:, 0] /= 2
_TO_POWERS = np.zeros((DEGREE + 1, DEGREE + 1))
for _k in range(DEGREE + 1):
    _TO_POWERS[_k, : _k + 1] = np.polynomial.chebyshev.cheb2poly(np.eye(DEGREE + 1)[_k, : _k + 1])


def _truncation(series: ComplexArray) -> FloatArray:
    """Estimate of what a Chebyshev series leaves out; one coefficient may be small by chance."""
    return np.maximum(np.abs(series[:, -1]), np.abs(series[:, -2]) / 16)


def tabulated(direct: LogCF, unit: float = 1.0, power: int = 1) -> LogCF:
    """Replace a costly log characteristic function by tables along the rays on which it is asked for.

    A ray is cut into cells of equal length in log r, each with its own polynomial. Below r = 1/unit the table
    holds log phi / t^power, which tends to a constant, and so keeps the relative accuracy. Cells that the
    polynomial does not resolve, and points that are not on a common ray, are evaluated directly.

    Parameters
    ----------
    direct : callable
        log phi for complex t of shape (n,).
    unit : float
        Scale of the law.
    power : int
        1, or 2 if the mean is 0.

    Examples
    --------
    >>> logcf = tabulated(lambda t: -np.log(1 - 1j * t))
    >>> t = np.linspace(0.1, 10.0, 100) + 0j
    >>> bool(np.max(np.abs(logcf(t) + np.log(1 - 1j * t))) < 1e-13)
    True
    """
    rays: dict[float, tuple[ComplexArray, IntArray]] = {}
    cells = int(2 * SPAN / WIDTH)
    zero = cells // 2

    def build(angle: float, cell: IntArray, powers: ComplexArray, state: IntArray) -> None:
        middle = -SPAN + WIDTH * (cell + 0.5)
        t = np.exp(middle[:, None] + WIDTH / 2 * _CHEBYSHEV + 1j * angle) / unit
        values = direct(t.ravel()).reshape(t.shape)
        values.imag = np.unwrap(values.imag, axis=1)
        near = cell < zero
        phi = np.exp(np.where(values.real < 1, values, np.nan))
        values[near] /= t[near] ** power
        values[~np.isfinite(values).all(axis=1)] = np.nan
        size, largest = np.abs(values).max(axis=1), np.minimum(np.abs(phi).max(axis=1), 1.0)
        # Near 0 the relative error of log phi counts; farther out 2e-15 in phi itself is good enough, and
        # around a zero of phi its logarithm is not smooth, but phi is.
        logarithm, plain = values @ _TO_CHEBYSHEV, phi @ _TO_CHEBYSHEV
        error = _truncation(logarithm)
        built = np.where(near, error <= 1e-13 * size, (error <= 1e-14 * size) | (error * largest <= 2e-15))
        resolved = ~near & (_truncation(plain) <= 2e-15)
        state[cell] = np.select([built, resolved], [LOGARITHM, PLAIN], DIRECT)
        powers[cell] = (
            np.where(built[:, None], logarithm, np.where(resolved[:, None], plain, 0.0)) @ _TO_POWERS
        )

    def on_ray(t: ComplexArray, r: FloatArray, angle: float) -> ComplexArray:
        # A ray that differs by rounding is the same ray.
        angle = next((known for known in rays if abs(known - angle) <= SAME_RAY), angle)
        if angle not in rays:
            rays[angle] = np.zeros((cells, DEGREE + 1), dtype=complex), np.zeros(cells, dtype=np.intp)
        powers, state = rays[angle]
        position = (np.log(np.maximum(r * unit, 1e-300)) + SPAN) / WIDTH
        cell = np.clip(position, 0, cells - 1).astype(np.intp)
        y = np.clip(2 * (position - cell) - 1, -1.0, 1.0)
        fresh = np.unique(cell[state[cell] == UNKNOWN])
        if fresh.size:
            build(angle, fresh, powers, state)
        rows = powers[cell]
        out: ComplexArray = rows[:, DEGREE]
        for k in range(DEGREE - 1, -1, -1):
            out = out * y + rows[:, k]
        out *= np.where(cell < zero, t**power, 1.0)
        plain = state[cell] == PLAIN
        if plain.any():
            out[plain] = np.log(out[plain])
        beyond = (state[cell] == DIRECT) | (position > cells)
        if beyond.any():
            out[beyond] = direct(t[beyond])
        return out

    def off_table(t: ComplexArray) -> ComplexArray:
        # Below the table, as at t = 0, log phi is a power of t.
        r = np.abs(t)
        tiny = r * unit < np.exp(-SPAN)
        safe = np.where(tiny, np.exp(-SPAN) / unit, t)
        return np.asarray(direct(safe) * np.where(tiny, t / safe, 1.0) ** power)

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
        out = np.empty(flat.shape, dtype=complex)
        above = flat.imag > 0
        for part in (above, ~above):
            if part.any():
                for start in range(0, int(part.sum()), CHUNK // 8):
                    where = np.flatnonzero(part)[start : start + CHUNK // 8]
                    out[where] = right_half(flat[where])
        return np.where(left, out.conj(), out).reshape(t.shape)

    return logcf


class Contour:
    """Characteristic function of a density on (0, inf) that continues to complex x.

    The integral of f(x) exp(itx) is taken along x = exp(v + i alpha), where exp(itx) decays; the
    trapezoidal rule in v converges exponentially.

    Parameters
    ----------
    log_xf : callable
        log(x f(x)) as a function of complex v = log x; a constant factor of f does not matter.
    opening : float
        f is analytic and does not grow in abs(arg x) < opening.
    tail : float
        Moments of order below ``tail`` exist.
    upper : float
        Upper end of the strip.

    Examples
    --------
    >>> exponential = Contour(lambda v: v - np.exp(v), np.pi / 2, upper=1.0)
    >>> t = np.array([0.5, 50.0]) + 0j
    >>> bool(np.max(np.abs(exponential.direct(t) + np.log(1 - 1j * t))) < 1e-14)
    True
    """

    LEVELS = 8

    def __init__(self, log_xf: LogCF, opening: float, tail: float = INF, upper: float = 0.0) -> None:
        self.log_xf = log_xf
        self.tail = tail
        self.upper = upper
        self.opening, self.reach = self._affordable(min(opening, np.pi))
        self.sector = min(HALF_PI, 0.75 * self.opening)
        self._rules: dict[int, tuple[ComplexArray, ComplexArray]] = {}
        x, log_w = self.rule(0)
        self.mean = float((np.exp(log_w) @ x).real)

    def _affordable(self, opening: float) -> tuple[float, float]:
        """Angles up to which the integral of abs(f) grows by exp(4.5) and by exp(0.75): digits that cancel."""
        left, right = self._window(0.0)
        v = np.linspace(left, right, 1000)
        angle = opening * np.linspace(0.0, 0.999, 100)
        height = self.log_xf(v + 1j * angle[:, None]).real
        highest = height.max(axis=1)
        growth = highest + np.log(np.sum(np.exp(height - highest[:, None]), axis=1))
        growth -= growth[0]
        return (
            opening if growth[-1] < 4.5 else float(angle[np.argmax(growth > 4.5)]),
            HALF_PI if growth[-1] < 0.75 else float(angle[np.argmax(growth > 0.75)]),
        )

    def _window(self, angle: float) -> tuple[float, float]:
        """Interval of v = log abs(x) outside which the density is negligible."""
        v = np.arange(-400.0, 400.0, 0.05)
        with np.errstate(over="ignore"):
            height = self.log_xf(np.asarray(v + 1j * angle)).real
        # Left: negligible next to x = 1e-12, which t = 1e12 sees. Right: negligible for the variance.
        left = height > max(np.interp(-27.6, v, height), height.max() - 300) - 42
        right = height + 2 * v > np.max(height + 2 * v) - 42
        return v[np.argmax(left)] - 0.05, v[len(v) - 1 - np.argmax(right[::-1])] + 0.05

    def rule(self, level: int) -> tuple[ComplexArray, ComplexArray]:
        """Nodes x and log weights for arg t about level / LEVELS of pi/2 (above) or of the sector (below)."""
        if level not in self._rules:
            # The contour stays between 0 < arg t + arg x < pi and arg x < opening.
            lowest = max(0, -level) * self.sector / self.LEVELS
            highest = min(self.opening, np.pi - max(0, level) * HALF_PI / self.LEVELS)
            room = min((highest - lowest) / 2, self.reach)
            angle = lowest + room
            self._rules[level] = self._nodes(angle, 0.85 * 2 * np.pi * room / 42, *self._window(angle))
        return self._rules[level]

    def _nodes(
        self, angle: float, step: float, left: float, right: float
    ) -> tuple[ComplexArray, ComplexArray]:
        v = np.arange(left, right + step, step) + 1j * angle
        log_w = self.log_xf(np.asarray(v))
        largest = log_w.real.max()
        return np.exp(v), log_w - largest - np.log(np.sum(np.exp(log_w - largest)))

    def moments(self, order: int, centre: float) -> FloatArray:
        """E (M - centre)^k for k = 2, ..., order; NaN where the moment does not exist."""
        out = np.full(order - 1, np.nan)
        existing = [k for k in range(2, order + 1) if k < self.tail]
        x, log_w = self._tilted(0.0, existing[-1] if existing else 0)
        for k in existing:
            out[k - 2] = np.sum(((x.real - centre) * np.exp(log_w.real / k)) ** k)
        return out

    def direct(self, t: ComplexArray) -> ComplexArray:
        """Log characteristic function at ``t`` of shape (n,) with Re t >= 0."""
        angle = np.angle(t) * self.LEVELS
        level = np.where(angle > 0, np.floor(angle / HALF_PI), np.floor(angle / self.sector + 1e-9)).astype(
            int
        )
        out = np.empty(t.shape, dtype=complex)
        for k in np.unique(level):
            where = level == k
            x, log_w = self.rule(int(k)) if k >= -self.LEVELS else self._tilted(float(np.abs(t[where]).max()))
            out[where] = self._sum(t[where], x, log_w)
        return out

    def _tilted(self, s: float, order: int = 0) -> tuple[ComplexArray, ComplexArray]:
        """Real nodes that resolve x^order exp(sx) f(x)."""
        v = np.arange(-400.0, 400.0, 0.01)
        with np.errstate(over="ignore", invalid="ignore"):
            height = self.log_xf(np.asarray(v + 0j)).real
            tilted = np.nan_to_num(height + s * np.exp(v) + order * v, nan=-INF)
        peak = int(np.argmax(tilted))
        curvature = -np.diff(tilted[peak - 1 : peak + 2], 2)[0] / 1e-4 if s else 0.0
        left = v[np.argmax(height > height.max() - 42)]
        right = v[len(v) - 1 - np.argmax((tilted > tilted[peak] - 45)[::-1])]
        return self._nodes(0.0, min(0.08 * self.opening, 0.6 / np.sqrt(curvature + 1)), left, right)

    def _sum(self, t: ComplexArray, x: ComplexArray, log_w: ComplexArray) -> ComplexArray:
        weights = np.exp(log_w)

        def small(t: ComplexArray) -> ComplexArray:
            return log1p(expm1(1j * t[:, None] * x) @ weights)

        def large(t: ComplexArray) -> ComplexArray:
            terms = 1j * t[:, None] * x + log_w
            largest = terms.real.max(axis=1)
            return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)))

        return piecewise(
            1 / self.mean,
            lambda t: _by_chunks(small, len(x), t),
            lambda t: _by_chunks(large, len(x), t),
        )(t)

    def characteristic(self) -> Characteristic:
        """Tabulated along rays."""
        return Characteristic(tabulated(self.direct, self.mean), (-INF, self.upper), self.sector)


def symmetric(half: Contour) -> Characteristic:
    """Law of a random sign times the variable of ``half``, which must have a light tail.

    Examples
    --------
    >>> laplace = symmetric(Contour(lambda v: v - np.exp(v), np.pi / 2, upper=1.0))
    >>> bool(abs(laplace.logcf(np.array([2.0 + 0j]))[0] + np.log(5.0)) < 1e-14)
    True
    """
    raw = half.moments(16, 0.0)[::2]
    unit = float(np.sqrt(raw[0]))
    even = np.arange(2, 17, 2)
    series = np.concatenate([[0.0], (-1.0) ** (even / 2) * raw / np.cumprod(even * (even - 1.0))])
    # Up to here the last term is below 1e-16 of the first.
    near = abs(1e-16 * series[1] / series[8]) ** (1 / 14)

    def large(t: ComplexArray) -> ComplexArray:
        plus, minus = half.direct(t), half.direct(t.conj()).conj()
        return minus + log1p(expm1(plus - minus) / 2)

    def small(t: ComplexArray) -> ComplexArray:
        return log1p(polyval(t * t, series))

    direct = piecewise(near, small, large)
    return Characteristic(tabulated(direct, unit, power=2), (-half.upper or 0.0, half.upper), half.sector)


def student(df: float) -> Characteristic:
    """Characteristic function of Student's law: x^m K_m(x) 2^(1-m) / Gamma(m), m = df/2, x = sqrt(df) t.

    Where x is small the Bessel function loses log phi, and the mixture of normal laws is integrated instead:
    phi - 1 = integral of g^(m-1) exp(-g) (exp(-x^2/4g) - 1) dg / Gamma(m).

    Examples
    --------
    >>> t = np.array([0.5 + 0j])
    >>> x = np.sqrt(3.0) * 0.5
    >>> bool(abs(student(3.0).logcf(t)[0] - (np.log1p(x) - x)) < 1e-14)
    True
    """
    from scipy import special

    m = df / 2
    width = 1 / np.sqrt(m)
    step = min(0.1, width / 4)
    left = max(-42 / (m - 1), -105.0) - 12 * width
    v = np.log(m) + np.arange(left, min(5.0, 12 * width) + step, step)
    height = m * np.log(m) - m
    total = np.sum(np.exp(m * v - np.exp(v) - height))

    def mixture(x: ComplexArray) -> ComplexArray:
        # g turns towards arg x where exp(-x^2/4g) is small, and stays real where the mass is.
        ratio = (8 * np.exp(v) / np.abs(x * x)[:, None]) ** 2
        turn = 1j * np.angle(x)[:, None] / (1 + ratio)
        g = np.exp(v + turn)
        weights = np.exp(m * (v + turn) - g - height) * (1 - 2 * turn * ratio / (1 + ratio))
        return log1p(np.sum(weights * expm1(-(x * x)[:, None] / (4 * g)), axis=1) / total)

    def debye(x: ComplexArray) -> ComplexArray:
        root = np.sqrt(m * m + x * x)
        correction = (3 - 5 * (m / root) ** 2) / (24 * root)
        log_k = np.log(np.pi / (2 * root)) / 2 - root - m * np.log(x / (m + root)) + log1p(-correction)
        return np.asarray(m * np.log(x) + log_k + constant)

    def bessel(x: ComplexArray) -> ComplexArray:
        return np.asarray(m * np.log(x) + np.log(special.kve(m, x)) - x + constant)

    constant = (1 - m) * np.log(2) - special.gammaln(m)
    # K overflows for large m, but then phi is below 1e-21 where Debye's expansion takes over.
    many = m > 200
    near = 14 * np.sqrt(m) if many else max(1.0, 2 * np.sqrt(m))
    direct = piecewise(
        near, lambda x: _by_chunks(mixture, len(v), x), debye if many else piecewise(1e6, bessel, debye)
    )
    return Characteristic(
        tabulated(lambda t: direct(np.sqrt(df) * t), power=2), (0.0, 0.0), 0.0 if many else HALF_PI
    )


def summed(frozen: Any) -> Characteristic:
    """Characteristic function of a discrete law on the integers, summed over the atoms that carry its mass.

    Parameters
    ----------
    frozen : frozen scipy.stats law

    Examples
    --------
    >>> from scipy import stats
    >>> law = summed(stats.hypergeom(20, 7, 12))
    >>> round(float(-law.logcf(np.array([1e-4 + 0j]))[0].real * 2e8), 6) == round(float(stats.hypergeom(20, 7, 12).var()), 6)
    True
    """
    lower, upper = (float(end) for end in frozen.support())
    median = float(frozen.median())
    reach = 2.0 ** np.arange(21)
    ends = []
    for side, end in ((-1, lower), (1, upper)):
        beyond = median + side * reach
        small = frozen.pmf(beyond) * reach < 1e-18
        # The mass may vanish at single points: the reach must do for every longer one, too.
        enough = np.flatnonzero(np.logical_and.accumulate(small[::-1])[::-1])
        if not enough.size and abs(end - median) > reach[-1]:
            msg = f"{frozen.dist.name}{frozen.args} has more than {reach[-1]:.0f} atoms, too many to sum"
            raise ValueError(msg)
        cut = beyond[enough[0]] if enough.size else end
        ends.append(max(cut, end) if side < 0 else min(cut, end))
    first, last = ends
    x = np.arange(first, last + 1)
    strip = (-INF if np.isfinite(lower) else 0.0, INF if np.isfinite(upper) else 0.0)
    return Characteristic(atoms(x, frozen.pmf(x)), strip, 0.0)


POINTS = 16
MAX_PANELS = 1000
EPS = float(np.finfo(float).eps)


def numerical(frozen: Any) -> Characteristic:
    """Characteristic function of a continuous law of which only the density is known, for real t.

    The density is represented by Legendre series on panels, whose Fourier transforms are spherical Bessel
    functions, so that the error is about 1e-14 for every t, absolute, however fast exp(itx) oscillates.

    Parameters
    ----------
    frozen : frozen scipy.stats law, or Noise
        Anything with ``pdf``, ``cdf``, ``sf``, ``ppf``, ``isf``, ``mean`` and ``support``.

    Examples
    --------
    >>> from scipy import stats
    >>> law = numerical(stats.expon())
    >>> bool(abs(np.exp(law.logcf(np.array([30.0 + 0j]))[0]) - 1 / (1 - 30j)) < 1e-14)
    True
    """
    left, right, series = _panels(frozen)
    return panelled((left + right) / 2, (right - left) / 2, series, frozen)


def panelled(middle: FloatArray, half: FloatArray, series: FloatArray, law: Any) -> Characteristic:
    """Characteristic function of a law whose density is a Legendre series on each of many panels.

    Parameters
    ----------
    middle, half : ndarray of shape (n,)
        Middles and half widths of the panels, which may overlap: what they hold is added.
    series : ndarray of shape (n, POINTS)
        Coefficients of Legendre polynomials.
    law : frozen scipy.stats law, or Noise
        Of which the mean and the support are asked.

    Examples
    --------
    >>> from scipy import stats
    >>> flat = np.eye(1, POINTS)
    >>> law = panelled(np.array([0.5]), np.array([0.5]), flat, stats.uniform())
    >>> bool(abs(np.exp(law.logcf(np.array([9.0 + 0j]))[0]) - np.expm1(9j) / 9j) < 1e-14)
    True
    """
    # 40 nodes resolve exp(itx) times the series on a panel of |t| half < 23.
    x, w = np.polynomial.legendre.leggauss(40)
    nodes = middle[:, None] + half[:, None] * x
    masses = half[:, None] * w * (series @ np.polynomial.legendre.legvander(x, POINTS - 1).T)
    total = masses.sum()
    if not abs(total - 1) < 1e-6:
        msg = f"the density of {law!r} integrates to {total}, not to 1"
        raise ValueError(msg)
    masses, series = masses / total, series / total
    mean = float(np.sum(masses * nodes))
    spread = float(np.sqrt(np.sum(masses * (nodes - mean) ** 2)))
    stated = float(law.mean())
    mean = stated if abs(stated - mean) < 1e-12 * spread else mean
    nodes, middle = nodes - mean, middle - mean
    heavy = masses.sum(axis=1) > 1e-18
    off_axis = atoms(nodes.ravel(), masses.ravel(), 0.0)

    def waves(t: ComplexArray, wide: NDArray[np.bool_]) -> ComplexArray:
        """Fourier transform of the wide panels, where z = t half exceeds every order."""
        z = t.real[:, None] * half[wide]
        # Spherical Bessel functions, upwards in the order
        before, now = np.cos(z) / z, np.sin(z) / z
        fourier = series[wide, 0] * now + 0j
        for k in range(1, POINTS):
            before, now = now, (2 * k - 1) / z * now - before
            fourier += series[wide, k] * 1j**k * now
        return np.asarray(np.sum(2 * half[wide] * fourier * np.exp(1j * t[:, None] * middle[wide]), axis=1))

    def small(t: ComplexArray, wide: NDArray[np.bool_]) -> ComplexArray:
        u = 1j * t[:, None]
        rest = waves(t, wide) - masses[wide].sum() - u[:, 0] * np.sum(masses[wide] * nodes[wide])
        return log1p(_exp_remainder(u * nodes[~wide].ravel()) @ masses[~wide].ravel() + rest)

    def large(t: ComplexArray, wide: NDArray[np.bool_]) -> ComplexArray:
        narrow = heavy & ~wide
        bulk = np.exp(1j * t[:, None] * nodes[narrow].ravel()) @ masses[narrow].ravel()
        phi = bulk + waves(t, heavy & wide)
        return np.log(np.where(phi == 0, 1e-300, phi))

    def centred(t: ComplexArray) -> ComplexArray:
        if np.any(t.imag != 0):
            return off_axis(t)
        out = np.empty(t.shape, dtype=complex)
        # Points of similar size share the choice of wide panels.
        octave = np.floor(2 * np.log2(np.abs(t)))
        for k in np.unique(octave):
            where = np.flatnonzero(octave == k)
            wide = 2 ** (k / 2) * half > POINTS
            branch = small if 2 ** (k / 2) * spread < 1 else large
            for start in range(0, len(where), 32):
                part = where[start : start + 32]
                out[part] = branch(t[part], wide)
        return out

    lower, upper = law.support()
    table = tabulated(centred, spread, power=2)
    strip = (-INF if np.isfinite(lower) else 0.0, INF if np.isfinite(upper) else 0.0)
    return Characteristic(lambda t: 1j * mean * t + table(t), strip, 0.0)


def _exp_remainder(z: ComplexArray) -> ComplexArray:
    """exp(z) - 1 - z, relatively accurate as z -> 0."""
    out = expm1(z) - z
    near = np.abs(z) < 0.3
    y = z[near]
    out[near] = y * y / 2 * polyval(y, _REMAINDER)
    return out


_REMAINDER = 1 / np.cumprod([1.0, *range(3, 16)])


def _panels(frozen: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Intervals on which the density is a Legendre series, and the coefficients of shape (panels, POINTS)."""
    x, w = np.polynomial.legendre.leggauss(POINTS)
    vander = np.polynomial.legendre.legvander(x, POINTS - 1)
    to_series = vander * w[:, None] * (np.arange(POINTS) + 0.5)
    q = 10.0 ** -np.array([1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 40.0])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # quantiles so far out that some laws cannot tell them
        edges = np.concatenate(
            [frozen.ppf(q), frozen.ppf([0.25, 0.5, 0.75]), frozen.isf(q), frozen.support()]
        )
    edges = np.unique(edges[np.isfinite(edges)])
    median, quartile = frozen.ppf(0.5), frozen.ppf(0.75) - frozen.ppf(0.5)
    left, right = edges[:-1], edges[1:]
    done: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    while left.size:
        nodes = ((left + right)[:, None] + (right - left)[:, None] * x) / 2
        with np.errstate(all="ignore"):
            density = np.nan_to_num(frozen.pdf(nodes), nan=0.0, posinf=0.0)
        series = density @ to_series
        mass = (right - left) * np.abs(series).max(axis=1)
        tail = (right - left) * np.abs(series[:, -3:]).max(axis=1)
        # The error of a panel is weighed by its part in the variance.
        far = np.maximum(np.abs(left - median), np.abs(right - median)) / quartile
        fine = (tail <= 4e-15 * mass) | (tail * (1 + far**2) < 1e-17) | (left.size > MAX_PANELS)
        # Where x is rounded too coarsely for the density the panel takes its mass from the distribution
        # function; next to a pole or a jump it becomes flat.
        rounding = EPS * np.abs(left + right) * (np.abs(series) @ np.arange(POINTS))
        coarse = ~fine & ((tail < rounding) | (right - left < 1e-12 * np.abs(left + right)))
        series[coarse & (tail >= rounding), 1:] = 0.0
        a, b = left[coarse], right[coarse]
        exact = np.where(frozen.sf(a) < 0.5, frozen.sf(a) - frozen.sf(b), frozen.cdf(b) - frozen.cdf(a))
        present = series[coarse, 0] * (b - a)
        series[coarse] *= (exact / np.where(present == 0, 1.0, present))[:, None]
        fine |= coarse | (right - left < 1e-280)
        done.append((left[fine], right[fine], series[fine]))
        left, right = left[~fine], right[~fine]
        cut = (left + right) / 2
        left, right = np.concatenate([left, cut]), np.concatenate([cut, right])
    lefts, rights, all_series = (np.concatenate(parts) for parts in zip(*done, strict=True))
    return lefts, rights, all_series


SHARP = 1e-3
"""Panels that are narrower, beside the quartiles and beside their distance from the support's ends, mark a break,"""
JUMP = 1e-6
"""and so do neighbours whose density or slope differ by this part of the density."""
MAX_STEPS = 4


def breaks(frozen: Any) -> FloatArray:
    """Points where a density is not smooth: the finite ends of its support, and where panels crowd or do not match.

    Parameters
    ----------
    frozen : frozen scipy.stats law
        Anything with ``pdf``, ``cdf``, ``sf``, ``ppf``, ``isf`` and ``support``.

    Returns
    -------
    ndarray of shape (n,)
        Increasing.

    Examples
    --------
    >>> from scipy import stats
    >>> breaks(stats.laplace()).tolist(), breaks(stats.triang(0.25)).round(12).tolist()
    ([0.0], [0.0, 0.25, 1.0])
    """
    left, right, series = _panels(frozen)
    order = np.argsort(left)
    left, right, series = left[order], right[order], series[order]
    lower, upper = (float(end) for end in frozen.support())
    width = right - left
    quartiles = float(frozen.ppf(0.75) - frozen.ppf(0.25))
    room = np.minimum(np.minimum(left - lower, upper - right), quartiles)
    narrow = (width < SHARP * room) & (width > 0)
    sharp = np.flatnonzero(narrow)
    inner = []
    for cluster in np.split(sharp, np.flatnonzero(np.diff(sharp) > 1) + 1) if len(sharp) else []:
        narrowest = cluster[np.argmin(width[cluster])]
        if width[narrowest] > 1e-10 * quartiles:
            inner.append(_locate(frozen, float(left[cluster[0]]), float(right[cluster[-1]])))
        else:
            inner.append(float(left[narrowest] if narrow[narrowest - 1] else right[narrowest]))
    k = np.arange(POINTS)
    ends = [series @ sign**k for sign in (1.0, -1.0)]
    slopes = [series @ (sign ** (k + 1) * k * (k + 1)) / width for sign in (1.0, -1.0)]
    size = JUMP * np.abs(series).max(axis=1)
    off = np.abs(ends[0][:-1] - ends[1][1:]) > np.maximum(size[:-1], size[1:])
    reach = np.minimum(width[:-1], width[1:])
    off |= np.abs(slopes[0][:-1] - slopes[1][1:]) * reach > np.maximum(size[:-1], size[1:])
    # panels of no mass match no better than they must
    sure = ~narrow & (room > SHARP * quartiles) & (size * width > 1e-8 * JUMP)
    off &= sure[:-1] & sure[1:]
    # a density that is noisy itself has steps all over, which mean nothing
    inner += right[:-1][off].tolist() if off.sum() <= MAX_STEPS else []
    return np.unique([end for end in (lower, *inner, upper) if np.isfinite(end)])


def _locate(frozen: Any, left: float, right: float) -> float:
    """The point between left and right where the densities that continue from either side take over."""
    reach = 8 * (right - left)
    nodes = np.cos((np.arange(8) + 0.5) * np.pi / 8)
    with np.errstate(all="ignore"):
        sides = [
            np.polynomial.Chebyshev.fit(x, frozen.pdf(x), 7, domain=[x.min(), x.max()])
            for x in (left - reach * (1 + nodes) / 2, right + reach * (1 + nodes) / 2)
        ]
    low, high = left, right
    rising = sides[0](low) < sides[1](low)
    crosses = rising != (sides[0](high) < sides[1](high))
    for _ in range(60):
        middle = 0.5 * (low + high)
        before, after = sides[0](middle), sides[1](middle)
        if crosses:  # a kink: both continuations meet
            stays = (before < after) == rising
        else:  # a jump: the density follows the one or the other
            stays = abs(frozen.pdf(middle) - before) < abs(frozen.pdf(middle) - after)
        low, high = (middle, high) if stays else (low, middle)
    return 0.5 * (low + high)
