"""One joint model of kernel, noise level s(x) and transform of the response, regularized by priors.

T(y) = f(x) + s(x) M with a constant or no trend, which is integrated out. The objective is the Gaussian likelihood of
all parameters plus their log priors, as in hetGP (Binois, Gramacy and Ludkovski 2018) with features in place of latent
levels; its gradient is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from .._typing import FloatArray, RandomState
from ..backend import arrays
from ..backend.linalg import NotPositiveDefiniteError, add_outer, solve_lower_transposed
from ..kernels import RBF, Kernel
from ..kernels.base import elementary
from ..noise.base import as_generator
from ..noise.family import Family
from ..noise.level import BOUND, FittedMean, Level, features, log_slope
from ..smoother import Smoother
from ..smoother.leave_one_out import projected_inverse, weighted_residual
from ..transform import EXPONENT_STD, NONE, Transform
from .data import Data, Parameters
from .likelihood import by_regularizer
from .progress import report
from .search import TuningResult
from .search_box import NormalPrior, default_kernel, search_box

__all__ = [
    "SHARES",
    "JointLikelihood",
    "averaged_level",
    "fisher_information",
    "fit_joint",
    "level_covariance",
]

EXPONENT_STEP = 1e-4
LEAST = 0.125  # a level whose expected standard deviation is smaller, in units of `PRIOR_STD`, is constant
MEMORY = 20
PRECISION = 1e-12
"""Relative change of the value at which a search ends; units of y then do not matter to 1e-6."""
MEAN_ROUNDS = 2
JITTER = 1e-10
SHARES = np.array([0.25, 0.5, 1.0])
"""Standard deviations that the prior of a varying level may have, in units of `PRIOR_STD`; as likely as a constant one."""
STEP = 1e-3

Bounds = list[tuple[float, float]]


@dataclass(frozen=True)
class JointLikelihood:
    """Log posterior density of kernel, noise level and transform, as a function of one vector.

    Its entries are those of ``parameters`` (kernel, standard deviation of the noise), the weights of the level with features
    ``phi`` (U, p) at the places, and the exponent of the transform where it is free. The exponent has a normal prior about
    that of no transform, the weights one of the given ``precision``.
    """

    data: Data
    parameters: Parameters
    phi: FloatArray
    transform: Transform | None
    prior: NormalPrior
    precision: float = 1.0

    @property
    def _n_shared(self) -> int:
        return self.parameters.n_kernel + 1

    @property
    def level(self) -> slice:
        """Entries that are weights of the level."""
        return slice(self._n_shared, self._n_shared + self.phi.shape[1])

    def transform_at(self, values: FloatArray) -> Transform | None:
        """The transform for these values."""
        if self.transform is None or not self.transform.free:
            return self.transform
        return self.transform.with_exponent(float(values[-1]))

    def scale_at(self, values: FloatArray) -> FloatArray:
        """s at the places, (U,)."""
        return np.exp(BOUND * np.tanh(self.phi @ values[self.level] / BOUND))

    def data_at(self, values: FloatArray) -> Data:
        """Data with transformed responses and the level in their noise scale."""
        transform = self.transform_at(values)
        y = self.data.y if transform is None else transform(self.data.y)
        return replace(
            self.data, y=y, noise_scale=self.data.noise_scale * self.scale_at(values)[self.data.samples.index]
        )

    def smoother(self, values: FloatArray) -> Smoother:
        """The smoother for these values."""
        data, noise = self.data_at(values), self.parameters.noise_at(values)
        old = self.data.samples
        samples = replace(old, row_regularizer=data.covariance(noise.var()), scale=data.noise_scale)
        return Smoother(self.parameters.kernel_at(values), samples, data.centered(0.0), self.data.trend)

    def _jacobian(self, values: FloatArray) -> float:
        transform = self.transform_at(values)
        return 0.0 if transform is None else float(np.sum(transform.log_derivative(self.data.y)))

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient of shape (p,)."""
        smoother = self.smoother(values)
        samples, n_outputs = smoother.samples, smoother.targets.shape[1]
        weights, slope = values[self.level], 1 - np.tanh(self.phi @ values[self.level] / BOUND) ** 2
        prior, by_prior = self.prior(values[: self._n_shared])
        value = smoother.log_likelihood() + self._jacobian(values) + prior
        value -= 0.5 * self.precision * float(weights @ weights)
        gradient = np.zeros(len(values))
        of_residual = weighted_residual(smoother)
        # integrating the trend's coefficients out adds -log|H'AH| / 2; R'R = AH (H'AH)^-1 H'A
        root = np.linalg.cholesky(smoother.trend_information)
        value -= n_outputs * float(np.sum(np.log(np.diagonal(root))))
        rows = np.ascontiguousarray(np.linalg.solve(root, smoother.whitened_trend))
        rows = solve_lower_transposed(smoother.factor, rows)
        sensitivity = smoother.log_likelihood_sensitivity(overwrite_factor=True)
        if len(rows):
            sensitivity = add_outer(sensitivity, rows, 0.5 * n_outputs, 1.0)
        kernel = smoother.kernel
        gradient[: self.parameters.n_kernel] = kernel.pullback(smoother.places, sensitivity, symmetric=True)
        own = self.parameters.noise_at(values).var() * samples.scale**2
        by_log_scale = 2 * np.bincount(
            samples.index, weights=by_regularizer(smoother, np.diagonal(sensitivity)) * own
        )
        gradient[self.parameters.n_kernel] = by_log_scale.sum()
        gradient[: self._n_shared] += by_prior
        gradient[self.level] = self.phi.T @ (by_log_scale * slope) - self.precision * weights
        if self.transform is not None and self.transform.free:
            excess = (values[-1] - NONE) / EXPONENT_STD
            value -= 0.5 * float(excess**2)
            gradient[-1] = self._by_exponent(values, of_residual) - excess / EXPONENT_STD
        return value, gradient

    def _by_exponent(self, values: FloatArray, of_residual: FloatArray) -> float:
        ends = []
        for sign in (1.0, -1.0):
            moved = values.copy()
            moved[-1] += sign * EXPONENT_STEP
            transform = self.transform_at(moved)
            assert transform is not None
            ends.append((transform(self.data.y), self._jacobian(moved)))
        (up, jacobian_up), (down, jacobian_down) = ends
        by_targets = -float(np.sum(of_residual * (up - down)))
        return (by_targets + jacobian_up - jacobian_down) / (2 * EXPONENT_STEP)


def fit_joint(
    data: Data,
    kernel: Kernel | None,
    transform: Transform | None,
    level_of: str | None = "input",
    n_restarts: int = 0,
    random_state: RandomState = None,
) -> TuningResult:
    """Maximize the joint model: first with a constant level, then from there with one that varies with ``level_of``.

    A level of the mean is fitted twice: with the mean of the constant level, and with its own. How much the level varies is
    averaged over: the prior of its weights has the posterior mean of their standard deviation, where no variation is a
    candidate.
    """
    generator = as_generator(random_state)
    transform = None if transform is None else transform.for_data(data.y)
    transformed = data if transform is None else replace(data, y=transform(data.y))
    parameters = Parameters(default_kernel(transformed) if kernel is None else kernel, Family("norm"))
    box = search_box(transformed, parameters)
    free = [transform] if transform is not None and transform.free else []
    places = arrays.as_numpy(data.samples.places)
    constant = JointLikelihood(data, parameters, np.zeros((len(places), 0)), transform, box.log_prior)
    bounds = [*zip(box.low, box.high, strict=True)]

    def limits(objective: JointLikelihood) -> Bounds:
        return [*bounds, *[(-np.inf, np.inf)] * objective.phi.shape[1], *(t.bounds for t in free)]

    def maximize(objective: JointLikelihood, start: FloatArray) -> tuple[FloatArray, float, int]:
        return _maximize(objective, start, limits(objective), n_restarts, generator)

    values, value, evaluations = maximize(constant, np.array([*box.start, *(t.lam for t in free)]))
    transform_gain = None
    if free:
        start = np.array([*values[:-1], NONE])
        _, height, more = _maximize(constant, start, [*bounds, (NONE, NONE)])
        transform_gain, evaluations = value - height, evaluations + more
    best, level, gain = constant, None, None
    if level_of is not None:
        mean, varying, found, height = None, constant, values, value
        for _ in range(MEAN_ROUNDS if level_of == "mean" else 1):
            if level_of == "mean":
                mean = _fitted_mean(varying.smoother(found))
            inputs = places if mean is None else mean(places)
            of_level = RBF(
                _length_scales(parameters.kernel_at(values), places)
                if mean is None
                else float(inputs.std()) or 1.0
            )
            phi, pivots = features(of_level, inputs)
            varying = replace(constant, phi=phi)
            start = np.concatenate(
                [values[: len(box.start)], np.zeros(phi.shape[1]), values[len(box.start) :]]
            )
            found, height, more = maximize(varying, start)
            evaluations += more
        information = fisher_information(varying, found)[1:, 1:]
        determinant = float(np.linalg.slogdet(information + np.eye(len(information)))[1])
        gain, share, found[varying.level] = averaged_level(
            information, found[varying.level], height - 0.5 * determinant - value
        )
        if share >= LEAST:
            best = replace(varying, precision=share**-2)
            values, value, more = maximize(best, found)
            evaluations += more
        else:
            pivots = pivots[:0]
        points = inputs[pivots]
        factor = np.linalg.cholesky(of_level(points) + JITTER * np.eye(len(pivots)))
        covariance = level_covariance(best, values, limits(best))
        level = Level(of_level, points, factor, values[best.level], covariance, mean)
    noise, named = parameters.noise_at(values), parameters.by_name(data, values[: len(box.start)])
    if free:
        named["transform.lam"] = float(values[-1])
    return TuningResult(
        kernel=parameters.kernel_at(values),
        noise=noise,
        ridge=noise.var() if data.ridge is None else data.ridge,
        method="likelihood",
        value=value,
        parameters=named,
        n_evaluations=evaluations,
        level=level,
        transform=best.transform_at(values),
        level_evidence=gain,
        transform_gain=transform_gain,
    )


def _maximize(
    objective: JointLikelihood, start: FloatArray, bounds: Bounds, n_restarts: int = 0, generator: Any = None
) -> tuple[FloatArray, float, int]:
    """The best end of searches from the start and from random points around it, its value, and all evaluations."""
    y = objective.data.y
    # searches stop at changes relative to the value, which must not depend on the units of y
    origin = -y.size * math.log(float(y.std()) or 1.0)

    def negative(values: FloatArray) -> tuple[float, FloatArray]:
        try:
            value, gradient = objective(values)
        except NotPositiveDefiniteError:
            return 1e300, np.zeros(len(values))
        report(value / y.size)
        return origin - value, -gradient

    low, high = np.array(bounds).T
    starts = [start]
    for _ in range(n_restarts):  # a factor of e away
        starts.append(np.clip(start + generator.standard_normal(len(start)), low, high))
    results = [
        minimize(
            negative,
            begin,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxcor": MEMORY, "ftol": PRECISION},
        )
        for begin in starts
    ]
    best = min(results, key=lambda result: float(result.fun))
    return best.x, origin - float(best.fun), sum(int(result.nfev) for result in results)


def _fitted_mean(smoother: Smoother) -> FittedMean:
    coefficients = np.asarray(smoother.trend_coefficients)[:, 0]
    return FittedMean(smoother.kernel, smoother.places, np.asarray(smoother.dual)[:, 0], coefficients)


def _length_scales(kernel: Kernel, X: FloatArray) -> FloatArray:
    """Length scales of the first factor that has one per input, or the widths of the inputs."""
    for leaf in elementary(kernel):
        scale = getattr(leaf, "length_scale", None)
        if scale is not None:
            return np.broadcast_to(np.asarray(scale, dtype=float), X.shape[1]).copy()
    width = X.std(axis=0)
    return np.asarray(np.sqrt(X.shape[1]) * np.where(width > 0, width, 1.0))


def fisher_information(objective: JointLikelihood, values: FloatArray) -> FloatArray:
    """Fisher's information on the noise's log standard deviation and on the weights of its level, (1 + p, 1 + p)."""
    smoother = objective.smoother(values)
    samples = smoother.samples
    own = samples.collapsed(objective.parameters.noise_at(values).var() * samples.scale**2)
    information = 2 * np.outer(own, own) * projected_inverse(smoother) ** 2
    share = own / samples.regularizer  # of the noise that has this level
    information.flat[:: len(information) + 1] += 2 * (np.bincount(samples.index) - 1) * share**2
    slope = log_slope(objective.phi, values[objective.level])
    return np.asarray(smoother.targets.shape[1] * (slope.T @ information @ slope))


def averaged_level(
    information: FloatArray, weights: FloatArray, evidence: float
) -> tuple[float, float, FloatArray]:
    """Gain in log evidence of a varying level, the posterior mean of its prior's standard deviation, and its weights with it.

    ``evidence`` is the gain for a prior of standard deviation 1. About the maximum the likelihood is a normal density in the
    weights, with this ``information``, which can be integrated with any normal prior.
    """
    curvature, vectors = np.linalg.eigh(information)
    slope = vectors.T @ (information @ weights + weights)

    def shrunk(share: float) -> FloatArray:
        return np.asarray(slope * share**2 / (1 + share**2 * curvature))

    heights = np.array([slope @ shrunk(s) - np.sum(np.log1p(s**2 * curvature)) for s in SHARES]) / 2
    heights += evidence - heights[-1]
    share = float(softmax([0.0, *heights])[1:] @ SHARES)
    return float(logsumexp(heights) - np.log(len(SHARES))), share, vectors @ shrunk(share)


def level_covariance(objective: JointLikelihood, values: FloatArray, bounds: Bounds) -> FloatArray:
    """Posterior covariance of the noise's log standard deviation and of the weights of its level, (1 + p, 1 + p).

    The other parameters, as far as they are not at their bounds, are integrated out: with few samples, a kernel of
    shorter length scales explains what is noise to a smoother one. Their second derivatives are differences of the
    gradient. In no direction is the posterior wider than the prior.
    """
    n_noise = objective.parameters.n_kernel
    own = np.r_[n_noise, np.arange(len(values))[objective.level]]
    low, high = np.array(bounds).T
    inside = (values > low + STEP) & (values < high - STEP)
    inside[own] = False
    prior = _prior_precision(objective, high - low)
    precision, others = np.zeros_like(prior), []
    for k in np.flatnonzero(inside):
        step = STEP * (np.arange(len(values)) == k)
        try:
            row = (objective(values - step)[1] - objective(values + step)[1]) / (2 * STEP)
        except NotPositiveDefiniteError:  # too close to a singular kernel matrix: the parameter is kept
            continue
        precision[k, :] = precision[:, k] = row
        others.append(int(k))
    precision[np.ix_(own, own)] = prior[np.ix_(own, own)] + fisher_information(objective, values)
    chosen = np.r_[np.array(others, dtype=int), own]
    root = np.linalg.cholesky(prior[np.ix_(chosen, chosen)])
    relative = np.linalg.solve(root, np.linalg.solve(root, precision[np.ix_(chosen, chosen)]).T)
    sizes, vectors = np.linalg.eigh(0.5 * (relative + relative.T))
    half = np.linalg.solve(root.T, vectors / np.sqrt(np.maximum(sizes, 1.0)))[len(others) :]
    return np.asarray(half @ half.T)


def _prior_precision(objective: JointLikelihood, width: FloatArray) -> FloatArray:
    """Precision of the normal prior of all parameters, (p, p); that of a uniform law between the bounds if there is none."""
    n_shared = objective.level.start
    diagonal = np.full(len(width), EXPONENT_STD**-2)
    diagonal[:n_shared] = objective.prior.precision.diagonal()
    diagonal[objective.level] = objective.precision
    precision = np.diag(diagonal)
    precision[:n_shared, :n_shared] = objective.prior.precision
    with np.errstate(divide="ignore"):
        np.fill_diagonal(precision, np.where(diagonal > 0, diagonal, 12 / width**2))
    return precision
