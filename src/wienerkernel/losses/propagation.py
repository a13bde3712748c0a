"""Expectation propagation: the posterior of f under noise of any density, as a Gaussian process.

Each sample's density p(y_i - f) is replaced by a site exp(-tau_i f^2 / 2 + nu_i f), whose tau may be negative. All
sites are updated at once, with power alpha < 1 and adaptive damping: Minka (2001, 2004), Seeger (2005).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotrf

from .._typing import FloatArray
from ..noise import Noise
from .coordinates import Coordinates, Observed
from .density import NoiseDensity
from .tilted import tilted_moments
from .weights import NormalWeights

__all__ = ["Propagation", "gaussian", "propagate"]

SCHEDULE: tuple[tuple[float, int], ...] = ((0.8, 100), (0.5, 150), (0.25, 150))
"""Powers, and the most sweeps with each: the next where those before do not reach `REACHED`, as for noise of several modes."""
CONVERGED, REACHED = 1e-6, 1e-2
START_STEP, SMALLEST_STEP, HALVINGS = 0.5, 0.02, 30
INFLUENTIAL = 0.9
"""Fraction of the precision of f at a sample's place; if the others have less, they are propagated without it."""


@dataclass(frozen=True)
class Propagation:
    """A fixed point of expectation propagation, or the best iterate, with the sites tau and nu, (n,).

    The residual is the largest mismatch of a marginal with its tilted law: of means in standard deviations, and of log
    variances. The log evidence is an approximate log density of y; with a trend, up to a constant.
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
    def _sites(self) -> _Sites:
        sites = _Sites.of(self.coordinates, self.observed, self.tau, self.nu, self.power)
        assert sites is not None  # they were accepted
        return sites

    @property
    def posterior(self) -> NormalWeights:
        """The normal posterior of the weights."""
        return self._sites.posterior

    def left_out(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Means and variances of f at some samples, each given all others."""
        sites = replace(self._sites, power=1.0)
        of_others = sites.precision * sites.variance
        mean, variance = sites.shift / sites.precision, 1 / sites.precision
        samples = np.arange(len(mean))[rows]
        for i in samples[of_others[samples] < INFLUENTIAL]:  # the sites of the others depend on this sample
            found = propagate(self.coordinates, self.observed.without(i), self.noise).posterior
            phi = self.coordinates.phi[self.observed.index[[i]]]
            mean[i], variance[i] = phi[0] @ found.mean, found.variance(phi)[0]
        return mean[samples], variance[samples]

    def kernel_gradient(self) -> FloatArray:
        """Gradient of the log evidence with respect to the kernel's ``theta``, (p,), at a fixed point."""
        tau, nu = self.observed.per_place(self.tau), self.observed.per_place(self.nu)
        posterior, phi = self.posterior, self.coordinates.phi
        b = nu - tau * (phi @ posterior.mean)
        covariance = posterior.covariance(tau[:, None] * phi)
        sensitivity = 0.5 * (np.outer(b, b) + covariance - np.diag(tau))
        return self.coordinates.kernel.pullback(self.coordinates.places, sensitivity, symmetric=True)

    def noise_derivative(self, noise: Noise) -> float:
        """Log evidence with another law at the same cavities; its derivative is that of the log evidence."""
        density = NoiseDensity.of(self.noise).near(noise)
        return float(np.sum(_tilt(density, self.observed, self._sites)[0]) / self.power)


@dataclass(frozen=True)
class _Sites:
    """Sites, the posterior of the weights under them, and the means and variances of f at the samples, each (n,)."""

    tau: FloatArray
    nu: FloatArray
    power: float
    posterior: NormalWeights
    mean: FloatArray
    variance: FloatArray

    @classmethod
    def of(
        cls, coordinates: Coordinates, observed: Observed, tau: FloatArray, nu: FloatArray, power: float
    ) -> _Sites | None:
        """None if the posterior is not proper."""
        posterior = gaussian(coordinates, observed, tau, nu)
        if posterior is None:
            return None
        phi, index = coordinates.phi, observed.index
        mean, variance = (phi @ posterior.mean)[index], posterior.variance(phi)[index]
        return cls(tau, nu, power, posterior, mean, variance)

    @cached_property
    def precision(self) -> FloatArray:
        """Precisions of the cavities, which are the marginals of f without alpha times the sample's own site, (n,)."""
        return np.asarray(1 / self.variance - self.power * self.tau)

    @cached_property
    def shift(self) -> FloatArray:
        """Precision times mean of the cavities, (n,)."""
        return np.asarray(self.mean / self.variance - self.power * self.nu)

    @property
    def proper(self) -> bool:
        """Whether all cavities are."""
        return bool(np.all(self.precision > 0))

    @property
    def log_ratio(self) -> FloatArray:
        """Log integrals of the cavities over those of the marginals, without the constants of normal laws, (n,)."""
        squares = self.shift**2 / self.precision - self.mean**2 / self.variance
        return np.asarray(0.5 * (squares - np.log(self.precision * self.variance)))


def gaussian(
    coordinates: Coordinates, observed: Observed, tau: FloatArray, nu: FloatArray
) -> NormalWeights | None:
    """The posterior for these sites, or None if it is not proper."""
    matrix = coordinates.gram(observed.per_place(tau))
    matrix.flat[:: len(matrix) + 1] += coordinates.precision
    factor, info = dpotrf(matrix, lower=1, clean=1)
    if info != 0 or not np.all(np.isfinite(factor)):
        return None
    mean = cho_solve((factor, True), coordinates.phi.T @ observed.per_place(nu), check_finite=False)
    return NormalWeights(factor, mean)


def propagate(
    coordinates: Coordinates,
    observed: Observed,
    noise: Noise,
    start: Propagation | None = None,
    tolerance: float = CONVERGED,
) -> Propagation:
    """Run expectation propagation to a residual, from the sites of normal noise, or from those of another run with its power."""
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
            found = _sweeps(coordinates, centered, noise, tau, nu, power, sweeps, tolerance, step)
        best = found if best is None or found.residual < best.residual else best
        if best.converged:
            break
    assert best is not None
    return replace(best, observed=observed, nu=best.nu + best.tau * explained)


def _sweeps(
    coordinates: Coordinates,
    observed: Observed,
    noise: Noise,
    tau: FloatArray,
    nu: FloatArray,
    power: float,
    most: int,
    tolerance: float,
    step: float,
) -> Propagation:
    """Damped parallel sweeps; the iterate with the smallest residual."""
    density = NoiseDensity.of(noise)
    sites = _Sites.of(coordinates, observed, tau, nu, power)
    if sites is None or not sites.proper:
        msg = "the posterior is improper: too few samples for the trend; use trend=None or add samples"
        raise ValueError(msg)
    last, best = np.zeros(0), None
    for sweep in range(1, most + 1):
        log_integral, mean, variance = _tilt(density, observed, sites)
        std = np.sqrt(sites.variance)
        off = np.maximum(np.abs(mean - sites.mean) / std, np.abs(np.log(variance / sites.variance)))
        residual = float(np.max(np.where(np.isfinite(off), off, np.inf)))
        if best is None or residual < best.residual:
            # log of the integral of the product of the sites, each scaled to match its tilted integral
            evidence = float(
                -np.sum(np.log(np.diag(sites.posterior.factor)))
                + 0.5 * sites.nu @ sites.mean
                + np.sum(log_integral + sites.log_ratio) / power
            )
            best = Propagation(
                coordinates, observed, noise, sites.tau, sites.nu, residual, sweep, power, evidence
            )
        if residual < tolerance:
            break
        d_tau = (1 / variance - sites.precision) / power - sites.tau
        d_nu = (mean / variance - sites.shift) / power - sites.nu
        usable = np.isfinite(d_tau) & np.isfinite(d_nu)
        d_tau, d_nu = np.where(usable, d_tau, 0.0), np.where(usable, d_nu, 0.0)
        # in units of the posterior, so that both kinds of steps count
        now = np.concatenate([d_tau * sites.variance, (d_nu - d_tau * sites.mean) * std])
        if last.size:
            cosine = float(now @ last) / max(float(np.linalg.norm(now) * np.linalg.norm(last)), 1e-300)
            if cosine < -0.1:
                step = max(0.6 * step, SMALLEST_STEP)
            elif cosine > 0.3:
                step = min(1.15 * step, 1.0)
        last = now
        for _ in range(HALVINGS):
            tau, nu = sites.tau + step * d_tau, sites.nu + step * d_nu
            moved = _Sites.of(coordinates, observed, tau, nu, power)
            if moved is not None and moved.proper:
                sites = moved
                break
            step /= 2
        else:  # no step is small enough
            break
    assert best is not None
    return best


def _tilt(
    density: NoiseDensity, observed: Observed, sites: _Sites
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log integrals, means and variances of p(y - f)^alpha times the cavities, each (n,)."""
    unit = observed.scale * density.scale
    origin = observed.y - observed.scale * density.loc
    std, center = 1 / np.sqrt(sites.precision), sites.shift / sites.precision
    log_integral, mean, variance = tilted_moments(density, (origin - center) / unit, std / unit, sites.power)
    return log_integral - sites.power * np.log(unit), origin - unit * mean, unit**2 * variance
