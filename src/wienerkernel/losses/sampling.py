"""Draws from the posterior of the weights: elliptical slice sampling, from expectation propagation or by annealing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from .._typing import FloatArray
from .coordinates import Coordinates, Observed
from .density import NoiseDensity
from .propagation import Propagation, gaussian
from .tilted import tilted_moments

__all__ = ["Draws", "effective_sample_size", "posterior_draws", "r_hat"]

CHAINS, WARM_UP, BLOCK, MOST_BLOCKS = 32, 150, 250, 16
DEGREES = 8.0
"""Degrees of freedom of the Student law that ellipses are drawn from: its tails are heavier than the posterior's."""
MIXED, CERTIFIED = 1.01, 1.05
"""Largest R-hat of chains that go on to be used, and of draws that count as certified."""
ENOUGH = 2000
"""Effective sample size at which the chains stop."""
KEPT = 2048
METHODS = ("slice", "annealed")
PARTICLES, RUNS = 1024, 2
FEWEST_MOVES, MOST_MOVES, FORGOTTEN = 3, 15, 0.5
"""Moves at each stage of the annealing: until the particles' correlation with where they were is at most 0.5."""
LARGEST, SMALLEST, FACTOR = 0.5, 1e-5, 0.75
"""Annealing: the smoothing of the noise falls between these fractions of the spread of the noise, about by the factor."""
IMPOSSIBLE = -1e4
"""Mean log density of the smoothed noise below which no function explains the samples: bounded noise, far away from them."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
FAR = 12.0
"""Distances from singular points, and between quantiles, in eps, at which a Gauss-Hermite rule is accurate."""
CELLS, WIDEST, HUGE = 1200, 1e4, 1e290
"""Size of the table of a smoothed density for each singular point, its reach in spreads, and -log of a density of 0."""

LogDensity = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Draws:
    """Draws of the weights, and how far they can be trusted.

    R-hat is the largest, and the effective sample size the smallest, of all coordinates and of their distances from the
    medians: between split chains ("slice") or between annealed populations ("annealed").
    """

    weights: FloatArray
    r_hat: float
    effective: float
    method: str

    @property
    def certified(self) -> bool:
        """Whether R-hat is at most 1.05."""
        return self.r_hat <= CERTIFIED


def posterior_draws(found: Propagation, generator: Any) -> Draws:
    """Draws by slice sampling from expectation propagation; by annealing if the noise has a pole or the chains disagree."""
    density = NoiseDensity.of(found.noise)
    if not density.pole:
        chains = _chains(found, density, generator)
        if chains is not None and chains.r_hat <= MIXED:
            return chains
    return _annealed(found, density, generator)


def _target(
    coordinates: Coordinates, observed: Observed, density: NoiseDensity, logpdf: LogDensity
) -> LogDensity:
    """Log posterior of the weights up to a constant, from (c, r) to (c,)."""
    unit = observed.scale * density.scale
    origin = (observed.y - observed.scale * density.loc) / unit
    phi = (coordinates.phi[observed.index] / unit[:, None]).T
    precision = coordinates.precision

    def target(w: FloatArray) -> FloatArray:
        return np.asarray(logpdf(origin - w @ phi).sum(axis=1) - 0.5 * w**2 @ precision)

    return target


class _Slice:
    """Elliptical slice sampling of several chains at once, with a Student law as base (Nishihara et al. 2014).

    The base has the scale matrix R R' with R the ``root`` (r, r); the chains start at ``w`` (c, r).
    """

    def __init__(self, target: LogDensity, mean: FloatArray, root: FloatArray, w: FloatArray) -> None:
        self._target, self._mean, self._root = target, mean, root
        self.z = np.linalg.solve(root, (w - mean).T).T
        self._value = self._ratio(self.z)

    @property
    def w(self) -> FloatArray:
        """The current states, (c, r)."""
        return np.asarray(self._mean + self.z @ self._root.T)

    @property
    def value(self) -> FloatArray:
        """Log densities of the target at the current states, (c,)."""
        return self._value + self._base(self.z)

    def _base(self, z: FloatArray) -> FloatArray:
        """Log density of the base up to a constant."""
        return np.asarray(-0.5 * (DEGREES + z.shape[1]) * np.log1p(np.sum(z**2, axis=1) / DEGREES))

    def _ratio(self, z: FloatArray) -> FloatArray:
        """Log density of the target over that of the base."""
        return np.asarray(self._target(self._mean + z @ self._root.T) - self._base(z))

    def step(self, generator: Any) -> None:
        """Move all chains once."""
        z, d = self.z, self.z.shape[1]
        scale = (DEGREES + np.sum(z**2, axis=1)) / 2 / generator.standard_gamma((DEGREES + d) / 2, len(z))
        other = np.sqrt(scale)[:, None] * generator.standard_normal(z.shape)
        level = self._value + np.log(generator.uniform(size=len(z)))
        angle = generator.uniform(0, 2 * np.pi, len(z))
        low, high = angle - 2 * np.pi, angle.copy()
        new, value, open_ = z.copy(), self._value.copy(), np.arange(len(z))
        for _ in range(100):
            a = angle[open_, None]
            proposed = z[open_] * np.cos(a) + other[open_] * np.sin(a)
            ratio = self._ratio(proposed)
            good = ratio > level[open_]
            new[open_[good]], value[open_[good]] = proposed[good], ratio[good]
            open_ = open_[~good]
            if not len(open_):
                break
            low[open_] = np.where(angle[open_] < 0, angle[open_], low[open_])
            high[open_] = np.where(angle[open_] >= 0, angle[open_], high[open_])
            angle[open_] = generator.uniform(low[open_], high[open_])
        self.z, self._value = new, value

    def forget(self, generator: Any) -> None:
        """Move all chains until they have forgotten where they were, on average."""
        start = self.z
        for move in range(1, MOST_MOVES + 1):
            self.step(generator)
            if move >= FEWEST_MOVES:
                norms = np.linalg.norm(start, axis=0) * np.linalg.norm(self.z, axis=0)
                both = np.sum(start * self.z, axis=0) / np.maximum(norms, 1e-300)
                if np.mean(both) <= FORGOTTEN:
                    break


def _chains(found: Propagation, density: NoiseDensity, generator: Any) -> Draws | None:
    """Chains from the posterior of expectation propagation; None if it has no density where they could start."""
    target = _target(found.coordinates, found.observed, density, density.logpdf)
    mean = found.posterior.mean
    root = found.posterior.spread(np.eye(len(mean))).T
    start = mean + generator.standard_normal((CHAINS, len(mean))) @ root.T
    for _ in range(8):  # bounded noise may exclude starting points: move them to the mean
        outside = ~np.isfinite(target(start))
        if not outside.any():
            break
        start[outside] = mean + (start[outside] - mean) / 2
    else:
        return None
    chains = _Slice(target, mean, root, start)
    for _ in range(WARM_UP):
        chains.step(generator)
    # where the posterior is wider than expectation propagation has it, chains would stay in its tails for long
    chains = _Slice(target, mean, root * np.maximum(chains.z.std(axis=0), 1.0), chains.w)
    for _ in range(WARM_UP):
        chains.step(generator)
    states: list[FloatArray] = []
    for _ in range(MOST_BLOCKS):
        for _ in range(BLOCK):
            chains.step(generator)
            states.append(chains.w)
        history = np.stack(states)
        both = _with_distances(history)
        disagreement, effective = r_hat(both), effective_sample_size(both)
        if disagreement <= MIXED and effective >= ENOUGH:
            break
    flat = history.reshape(-1, len(mean))
    kept = flat[np.linspace(0, len(flat) - 1, min(KEPT, len(flat))).round().astype(int)]
    return Draws(kept, disagreement, effective, "slice")


def _annealed(found: Propagation, density: NoiseDensity, generator: Any) -> Draws:
    """Populations of particles that follow the noise M + N(0, eps^2) as eps falls (sequential Monte Carlo)."""
    spread = min(found.noise.std() / density.scale, density.spread)
    stages = int(np.ceil(np.log(LARGEST / SMALLEST) / -np.log(FACTOR)))
    targets = [
        _target(found.coordinates, found.observed, density, _smoothed(density, eps))
        for eps in spread * np.geomspace(LARGEST, SMALLEST, stages + 1)
    ]
    runs = [_population(found, targets, generator) for _ in range(RUNS)]
    disagreement = r_hat(_with_distances(np.stack(runs, axis=1)), split=False)
    # the variance of a population's mean is that of the posterior over its effective size
    effective = RUNS / (max(disagreement**2 - 1, 0.0) + 1 / PARTICLES)
    weights = np.concatenate(runs)
    if np.max(targets[-1](weights)) < IMPOSSIBLE * len(found.observed.y):
        disagreement, effective = np.inf, 0.0
    return Draws(weights, disagreement, effective, "annealed")


def _population(found: Propagation, targets: Sequence[LogDensity], generator: Any) -> FloatArray:
    """One population, (N, r), which starts from the linear posterior with larger standard deviations."""
    coordinates, observed, noise = found.coordinates, found.observed, found.noise
    tau = 1 / (noise.var() * observed.scale**2)
    linear = gaussian(coordinates, observed, tau, tau * (observed.y - observed.scale * noise.mean()))
    assert linear is not None
    normal = generator.standard_normal((PARTICLES, len(linear.mean)))
    w: FloatArray = linear.mean + 1.5 * linear.spread(normal)
    previous: FloatArray = -0.5 * np.sum(normal**2, axis=1)
    for target in targets:
        value = target(w)
        log_weight = value - previous
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        mean = weight @ w
        covariance = (weight[:, None] * (w - mean)).T @ (w - mean)
        positions = (np.arange(PARTICLES) + generator.uniform()) / PARTICLES
        w = w[np.minimum(np.searchsorted(np.cumsum(weight), positions), PARTICLES - 1)]
        values, vectors = np.linalg.eigh(covariance)
        # all particles can be the same; the prior's variances are 1
        root = vectors * np.sqrt(np.maximum(values, max(1e-14 * values[-1], 1e-30)))
        population = _Slice(target, mean, root, w)
        population.forget(generator)
        w = population.w
        previous = population.value
    return w


def _smoothed(density: NoiseDensity, eps: float) -> LogDensity:
    """Log density of Z + N(0, eps^2), from a table with equidistant nodes on a scale that is finer around singular points."""
    centers = density.points if len(density.points) else density.quantiles[[len(density.quantiles) // 2]]

    def position(z: FloatArray) -> FloatArray:
        found: FloatArray = np.arcsinh((z - centers[0]) / eps)
        for center in centers[1:]:
            found += np.arcsinh((z - center) / eps)
        return found

    ends = np.array([centers.min(), centers.max()]) + WIDEST * density.spread * np.array([-1, 1])
    first, last = position(ends)
    cells = CELLS * len(centers)
    step = (last - first) / cells
    wanted = first + step * np.arange(cells + 1)
    nodes, high = np.repeat(ends[:, None], cells + 1, axis=1)
    for _ in range(64):  # bisection
        middle = (nodes + high) / 2
        below = position(middle) < wanted
        nodes, high = np.where(below, middle, nodes), np.where(below, high, middle)
    values = np.maximum(_log_smoothed(density, eps, nodes), -HUGE)
    slope = np.append(np.diff(values) / np.diff(nodes), 0.0)

    def logpdf(z: FloatArray) -> FloatArray:
        left = np.clip((position(z) - first) / step, 0, cells).astype(np.intp)
        return np.asarray(values[left] + (z - nodes[left]) * slope[left])

    return logpdf


def _log_smoothed(density: NoiseDensity, eps: float, z: FloatArray) -> FloatArray:
    """Log density of Z + N(0, eps^2), by a Gauss-Hermite rule where no singular point and no quantile is near."""
    ends = np.concatenate([[-np.inf], density.quantiles, [np.inf]])
    after = np.searchsorted(density.quantiles, z)
    apart = np.abs(z[:, None] - density.points).min(axis=1, initial=np.inf)
    smooth = (apart > FAR * eps) & (ends[after + 1] - ends[after] > FAR * eps)
    values = logsumexp(density.logpdf(z[:, None] + eps * NODES), axis=1, b=WEIGHTS)
    near = z[~smooth]
    values[~smooth] = tilted_moments(density, near, np.full(len(near), eps)).log_integral
    return np.asarray(values)


def _with_distances(draws: FloatArray) -> FloatArray:
    """Draws (steps, chains, r) and their distances from the medians, (steps, chains, 2 r)."""
    return np.concatenate([draws, np.abs(draws - np.median(draws, axis=(0, 1)))], axis=2)


def r_hat(draws: FloatArray, split: bool = True) -> float:
    """Largest potential scale reduction of a coordinate, from draws (steps, chains, r); chains are halved by default."""
    if split:
        half = len(draws) // 2
        draws = np.concatenate([draws[:half], draws[half : 2 * half]], axis=1)
    n = len(draws)
    within = draws.var(axis=0, ddof=1).mean(axis=0)
    between = draws.mean(axis=0).var(axis=0, ddof=1)
    return float(np.max(np.sqrt((n - 1) / n + between / np.maximum(within, 1e-300))))


def effective_sample_size(draws: FloatArray) -> float:
    """Smallest effective sample size of a coordinate, from draws (steps, chains, r), by Geyer's initial sequence."""
    n, chains, _ = draws.shape
    centered = draws - draws.mean(axis=0)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.abs(np.fft.rfft(centered, size, axis=0)) ** 2
    covariance = np.fft.irfft(spectrum, size, axis=0)[:n].mean(axis=1) / n  # (n, r)
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + draws.mean(axis=0).var(axis=0, ddof=1)
    correlation = 1 - (within - covariance) / np.maximum(total, 1e-300)
    pairs = correlation[: n // 2 * 2].reshape(n // 2, 2, -1).sum(axis=1)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    pairs = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = np.maximum(2 * pairs.sum(axis=0) - 1, 1 / np.log10(n * chains))
    return float(np.min(n * chains / time))
