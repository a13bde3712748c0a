"""Expectation propagation: the posterior of f under noise of any density, as a Gaussian process.

Each sample's density p(y_i - f) is replaced by a site exp(-tau_i f^2 / 2 + nu_i f), whose tau may be negative. All
sites are updated at once, with power alpha < 1 and adaptive damping: Minka (2001, 2004), Seeger (2005).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf

from .._typing import FloatArray
from ..noise import Noise
from .coordinates import Coordinates, Observed
from .density import NoiseDensity
from .tilted import tilted_moments
from .weights import NormalWeights

__all__ = ["Propagation", "gaussian", "propagate"]

SCHEDULE: tuple[tuple[float, int], ...] = ((0.8, 100), (0.5, 150))
"""Powers, and the most sweeps with each: the second where the first does not reach `REACHED`."""
CONVERGED, REACHED = 1e-6, 1e-2
START_STEP, SMALLEST_STEP = 0.5, 0.02
INFLUENTIAL = 0.9
"""Fraction of the precision of f at a sample's place; if the others have less, they are propagated without it."""


@dataclass(frozen=True)
class Propagation:
    """A fixed point of expectation propagation, or the best iterate.

    Attributes
    ----------
    tau, nu : ndarray of shape (n,)
        Sites.
    residual : float
        Largest mismatch of a marginal with its tilted law: of means in standard deviations, and of log variances.
    sweeps : int
    power : float
    log_evidence : float
        Approximate log density of y; with a trend, up to a constant.
    """

    coordinates: Coordinates
    observed: Observed
    noise: Noise
    tau: FloatArray
    nu: FloatArray
    residual: float
    sweeps: int
    power: float
    log_evidence: float

    @property
    def converged(self) -> bool:
        """Whether all marginals match their tilted laws within 1 %."""
        return self.residual <= REACHED

    @cached_property
    def posterior(self) -> NormalWeights:
        """The Gaussian posterior of the weights."""
        posterior = gaussian(self.coordinates, self.observed, self.tau, self.nu)
        assert posterior is not None  # the sites were accepted with it
        return posterior

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean of f, and the variances of phi(x)'w and of the rest at the rows of X, each (m,)."""
        phi, rest = self.coordinates.features(X)
        root = solve_triangular(self.posterior.factor, phi.T, lower=True)
        return phi @ self.posterior.mean, np.einsum("ij,ij->j", root, root), rest

    def left_out(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Means and variances of f at some samples, each given all others."""
        cavity = Cavity.of(self.posterior, self.observed, self.tau, self.nu, 1.0)
        of_others = cavity.precision * self.posterior.variance_at[self.observed.index]
        mean, variance = cavity.shift / cavity.precision, 1 / cavity.precision
        samples = np.arange(len(mean))[rows]
        for i in samples[of_others[samples] < INFLUENTIAL]:  # the sites of the others depend on this sample
            found = propagate(self.coordinates, self.observed.without(i), self.noise).posterior
            place = self.observed.index[i]
            mean[i], variance[i] = found.mean_at[place], found.variance_at[place]
        return mean[samples], variance[samples]

    def kernel_gradient(self) -> FloatArray:
        """Gradient of the log evidence with respect to the kernel's ``theta``, (p,), at a fixed point."""
        tau, nu = self.observed.per_place(self.tau), self.observed.per_place(self.nu)
        weighted = tau[:, None] * self.coordinates.phi
        covariance = weighted @ cho_solve((self.posterior.factor, True), weighted.T)
        b = nu - tau * self.posterior.mean_at
        sensitivity = 0.5 * (np.outer(b, b) + covariance - np.diag(tau))
        return self.coordinates.kernel.pullback(self.coordinates.places, sensitivity, symmetric=True)

    def noise_derivative(self, noise: Noise) -> float:
        """Log evidence with another law at the same cavities; its derivative is that of the log evidence."""
        cavity = Cavity.of(self.posterior, self.observed, self.tau, self.nu, self.power)
        density = NoiseDensity.of(self.noise).near(noise)
        log_integral = _tilt(density, self.observed, cavity, self.power)[0]
        return float(np.sum(log_integral) / self.power)


class Cavity(NamedTuple):
    """Precisions and precision times mean of f at the samples without alpha times their own site, each (n,)."""

    precision: FloatArray
    shift: FloatArray

    @classmethod
    def of(
        cls, posterior: NormalWeights, observed: Observed, tau: FloatArray, nu: FloatArray, power: float
    ) -> Cavity:
        """The cavities of a posterior."""
        precision = 1 / posterior.variance_at[observed.index]
        return cls(precision - power * tau, posterior.mean_at[observed.index] * precision - power * nu)


def gaussian(
    coordinates: Coordinates, observed: Observed, tau: FloatArray, nu: FloatArray
) -> NormalWeights | None:
    """The posterior for these sites, or None if it is not proper."""
    phi = coordinates.phi
    matrix = phi.T @ (observed.per_place(tau)[:, None] * phi)
    matrix.flat[:: len(matrix) + 1] += coordinates.precision
    factor, info = dpotrf(matrix, lower=1, clean=1)
    if info != 0 or not np.all(np.isfinite(factor)):
        return None
    root = solve_triangular(factor, phi.T, lower=True, check_finite=False)
    mean = cho_solve((factor, True), phi.T @ observed.per_place(nu), check_finite=False)
    return NormalWeights(factor, mean, phi @ mean, np.einsum("ij,ij->j", root, root))


def propagate(
    coordinates: Coordinates,
    observed: Observed,
    noise: Noise,
    start: Propagation | None = None,
    tolerance: float = CONVERGED,
) -> Propagation:
    """Run expectation propagation to a residual, from the sites of normal noise, or from those of another run with its power."""
    density = NoiseDensity.of(noise)
    # sites are those of y without what a trend explains, so that rounding errors are those of the rest
    trend = coordinates.phi[observed.index, len(coordinates.pivots) :]
    explained = trend @ np.linalg.lstsq(trend, observed.y)[0]
    centered = replace(observed, y=observed.y - explained)
    tau: FloatArray = 1 / (noise.var() * observed.scale**2)
    nu: FloatArray = (centered.y - observed.scale * noise.mean()) * tau
    schedule, step = SCHEDULE, START_STEP
    if start is not None:  # near a fixed point, whole steps converge
        tau, nu = start.tau, start.nu - start.tau * explained
        schedule, step = ((start.power, SCHEDULE[0][1]),), 1.0
    best: Propagation | None = None
    for power, sweeps in schedule:
        with np.errstate(all="ignore"):  # steps that are not finite are left out
            found = _sweeps(coordinates, centered, noise, density, tau, nu, power, sweeps, tolerance, step)
        best = found if best is None or found.residual < best.residual else best
        if best.converged:
            break
    assert best is not None
    return replace(best, observed=observed, nu=best.nu + best.tau * explained)


def _sweeps(
    coordinates: Coordinates,
    observed: Observed,
    noise: Noise,
    density: NoiseDensity,
    tau: FloatArray,
    nu: FloatArray,
    power: float,
    most: int,
    tolerance: float,
    first: float,
) -> Propagation:
    """Damped parallel sweeps; the iterate with the smallest residual."""
    posterior = gaussian(coordinates, observed, tau, nu)
    if posterior is None or not _proper(posterior, observed, tau, power):
        msg = "the posterior is improper: too few samples for the trend; use trend=None or add samples"
        raise ValueError(msg)
    step, last, best = first, np.zeros(0), None
    for sweep in range(1, most + 1):
        cavity = Cavity.of(posterior, observed, tau, nu, power)
        log_integral, mean, variance = _tilt(density, observed, cavity, power)
        mean_at, variance_at = posterior.mean_at[observed.index], posterior.variance_at[observed.index]
        off = np.maximum(
            np.abs(mean - mean_at) / np.sqrt(variance_at), np.abs(np.log(variance / variance_at))
        )
        residual = float(np.max(np.where(np.isfinite(off), off, np.inf)))
        if best is None or residual < best.residual:
            evidence = _log_evidence(posterior, observed, nu, cavity, log_integral, power)
            best = Propagation(coordinates, observed, noise, tau, nu, residual, sweep, power, evidence)
        if residual < tolerance:
            break
        wanted = (
            (1 / variance - cavity.precision) / power - tau,
            (mean / variance - cavity.shift) / power - nu,
        )
        # in units of the posterior, so that both kinds of steps count
        now = np.concatenate(
            [wanted[0] * variance_at, (wanted[1] - wanted[0] * mean_at) * np.sqrt(variance_at)]
        )
        now = np.where(np.isfinite(now), now, 0.0)
        if last.size:
            cosine = float(now @ last) / max(float(np.linalg.norm(now) * np.linalg.norm(last)), 1e-300)
            step = (
                max(0.6 * step, SMALLEST_STEP)
                if cosine < -0.1
                else min(1.15 * step, 1.0)
                if cosine > 0.3
                else step
            )
        last = now
        moved = _move(coordinates, observed, (tau, nu), wanted, step, power)
        if moved is None:
            break
        tau, nu, posterior, step = moved
    assert best is not None
    return best


def _proper(posterior: NormalWeights, observed: Observed, tau: FloatArray, power: float) -> bool:
    """Whether all cavities are."""
    return bool(np.all(1 / posterior.variance_at[observed.index] > power * tau))


def _move(
    coordinates: Coordinates,
    observed: Observed,
    sites: tuple[FloatArray, FloatArray],
    wanted: tuple[FloatArray, FloatArray],
    step: float,
    power: float,
) -> tuple[FloatArray, FloatArray, NormalWeights, float] | None:
    """The sites after a step, which is halved until the posterior and all cavities are proper, and its size."""
    usable = np.isfinite(wanted[0]) & np.isfinite(wanted[1])
    for _ in range(30):
        tau, nu = (
            site + step * np.where(usable, change, 0.0) for site, change in zip(sites, wanted, strict=True)
        )
        posterior = gaussian(coordinates, observed, tau, nu)
        if posterior is not None and _proper(posterior, observed, tau, power):
            return tau, nu, posterior, step
        step /= 2
    return None


def _tilt(
    density: NoiseDensity, observed: Observed, cavity: Cavity, power: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log integrals, means and variances of p(y - f)^alpha times the cavities, each (n,)."""
    unit = observed.scale * density.scale
    origin = observed.y - observed.scale * density.loc
    std = 1 / np.sqrt(cavity.precision)
    center = cavity.shift / cavity.precision
    log_integral, mean, variance = tilted_moments(density, (origin - center) / unit, std / unit, power)
    return log_integral - power * np.log(unit), origin - unit * mean, unit**2 * variance


def _log_evidence(
    posterior: NormalWeights,
    observed: Observed,
    nu: FloatArray,
    cavity: Cavity,
    log_integral: FloatArray,
    power: float,
) -> float:
    """Log of the integral of the product of the sites, each scaled to match its tilted integral."""
    mean, variance = posterior.mean_at[observed.index], posterior.variance_at[observed.index]
    ratio = 0.5 * (cavity.shift**2 / cavity.precision - mean**2 / variance)
    ratio -= 0.5 * np.log(cavity.precision * variance)
    return float(
        -np.sum(np.log(np.diag(posterior.factor))) + 0.5 * nu @ mean + np.sum(log_integral + ratio) / power
    )
