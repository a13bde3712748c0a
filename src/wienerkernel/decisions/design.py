"""Plan an experiment: how many more samples are needed at x, and where the next one helps most.

Everything follows from one update. A sample at x moves the estimate at z by h(z) (y0 - mu(x)), where
h(z) = c(z,x) / (c(x,x) + rho^2) and c is the posterior covariance k - k'Ak. So the errors of the model and of the noise
become p(z) - h(z) p(x) and n(z) - h(z) (n(x) + M - m0): the variances P2 and V are updated exactly and separately,
without knowing y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import Array, FloatArray, IntArray
from ..backend import arrays
from ..posterior import Posterior
from ..smoother import times_covariance
from ..text import check_choice

__all__ = ["GOALS", "NextSample", "SamplesNeeded", "next_sample", "samples_needed", "space_filling"]

GOALS = ("average", "worst")
"""What new samples minimize: the mean or the maximum of the epistemic variance at the reference points."""

MOST = 2**53  # larger numbers of samples are not exact in float64


@dataclass(frozen=True)
class SamplesNeeded:
    """How many more samples are needed at each row of X.

    Attributes
    ----------
    number : ndarray of int of shape (m,)
        The smallest number of samples at x from which the target is met.
    paper_bound : ndarray of int of shape (m,)
        ceil(s2 / std^2), which is always enough (Lemma 3) and usually too many.
    before, after : ndarray of shape (m,)
        Standard deviation now, and after ``number`` samples; the largest of several outputs.

    Examples
    --------
    >>> plan = SamplesNeeded(np.array([99]), np.array([100]), np.array([1.0]), np.array([0.1]))
    >>> int(plan.number[0])
    99
    """

    number: IntArray
    paper_bound: IntArray
    before: FloatArray
    after: FloatArray


def samples_needed(posterior: Posterior, X: Array, *, std: ArrayLike, of: str = "function") -> SamplesNeeded:
    """Smallest number of samples at x that reduces the standard deviation at x to a target.

    N samples at x turn the errors into 1 - g times what they were, plus g times the mean of the new noise, with
    g = N v / (N v + rho^2) and v = c(x,x). So V_N = (1-g)^2 V + g^2 s2 / N and P2_N = (1-g)^2 P2, and the target is met
    where a quadratic in N is not negative. Several outputs all meet the target where the one of the largest scale does. The V
    of ``of="estimate"`` may rise before it falls; from ``number`` on it stays at the target or below.
    """
    check_choice("of", of, ("function", "estimate"))
    m = len(X)
    goal = np.asarray(std, dtype=float)
    if goal.shape not in ((), (m,)) or not np.all((goal > 0) & (goal < np.inf)):
        raise ValueError(
            f"std must be positive, one value or one per row of X (no number of samples reaches 0), got {std!r}"
        )
    unit = float(posterior.output_scale.max())
    target = (np.broadcast_to(goal, (m,)) / unit) ** 2
    s2, ridge = _of_new_samples(posterior, X)
    parts = posterior.common_uncertainty(X)
    start = arrays.as_numpy(parts.estimate if of == "estimate" else parts.epistemic)
    w = arrays.as_numpy(posterior.smoother.mean_and_variance(X)[1]) / ridge  # N w = g / (1-g)

    def variance(n: FloatArray) -> FloatArray:
        return np.asarray((start + n * w**2 * s2) / (1 + n * w) ** 2)

    # target (1 + N w)^2 >= start + N w^2 s2: the larger root of the quadratic, if there is one
    b, c = 2 * target - w * s2, target - start
    root = np.sqrt(np.maximum(b**2 - 4 * target * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        largest = np.where(b > 0, -2 * c / (b + root), (root - b) / (2 * target)) / w
    largest = np.where((w > 0) & (b**2 >= 4 * target * c), largest, -1.0)
    if np.any(largest > MOST):
        row = int(np.argmax(largest))
        raise ValueError(
            f"std={unit * np.sqrt(target[row]):.3g} is out of reach at row {row} of X: it takes more than 2^53 samples"
        )
    near = np.floor(largest) + np.arange(-1, 3)[:, None]  # integers around the root, which is rounded
    missed = (near >= 0) & (variance(np.maximum(near, 0.0)) > target * (1 + 1e-12))
    number = np.max(np.where(missed, near, -1.0), axis=0) + 1
    return SamplesNeeded(
        number=number.astype(np.intp),
        paper_bound=np.ceil(s2 / target * (1 - 1e-12)).astype(np.intp),
        before=unit * np.sqrt(start),
        after=unit * np.sqrt(variance(number)),
    )


@dataclass(frozen=True)
class NextSample:
    """Where to sample next, in this order.

    Attributes
    ----------
    points : ndarray of shape (k, d)
    index : ndarray of int of shape (k,)
        Rows of the candidates.
    repeat : ndarray of bool of shape (k,)
        Whether the sample acts as a repeat: before it is taken, the noise part V at its input is at least the model
        part P2. Otherwise it explores.
    noise, model : ndarray of shape (k,)
        V and P2 at its input, before the sample is taken; the average or the largest of several outputs.
    variance : ndarray of shape (k + 1,)
        The average or worst epistemic variance, now and after each sample.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(9.0 * RBF(1.0), tuning=None).fit([[0.0]], [1.0])
    >>> next_sample(model.posterior_, np.array([[0.0], [5.0]]), n_samples=3).repeat.tolist()
    [False, True, True]
    """

    points: FloatArray
    index: IntArray
    repeat: NDArray[np.bool_]
    noise: FloatArray
    model: FloatArray
    variance: FloatArray


def next_sample(
    posterior: Posterior,
    candidates: Array,
    *,
    goal: str = "average",
    n_samples: int = 1,
    reference: Array | None = None,
) -> NextSample:
    """Propose inputs at which new samples reduce the average, or the worst, epistemic variance most, chosen one by one.

    The variance after a sample does not depend on its outcome. Time and memory are of order (c + r)^2 for c candidates and
    r reference points.
    """
    check_choice("goal", goal, GOALS)
    if n_samples != int(n_samples) or n_samples < 1:
        raise ValueError(f"n_samples must be a positive integer, got {n_samples!r}")
    places = arrays.as_numpy(candidates)
    if places.ndim != 2 or not len(places) or (reference is not None and not len(reference)):
        shapes = places.shape, None if reference is None else reference.shape
        raise ValueError(
            f"candidates and reference must have at least one row each, got shapes {shapes[0]} and {shapes[1]}"
        )
    c = len(places)
    X = places if reference is None else np.concatenate([places, arrays.as_numpy(reference)])
    counted = slice(0, None) if reference is None else slice(c, None)
    s2, ridge = _of_new_samples(posterior, places)
    model, noise, covariance = _covariances(posterior, X)
    summary = np.mean if goal == "average" else np.max
    index, parts = [], []
    variance = [summary((np.diag(model) + np.diag(noise))[counted])]
    for _ in range(int(n_samples)):
        error = model + noise
        gain = covariance[counted, :c] / (np.diag(covariance)[:c] + ridge)  # h(z), one column per candidate
        after = np.diag(error)[counted, None] - 2 * gain * error[counted, :c]
        after += gain**2 * (np.diag(error)[:c] + s2)
        values = summary(after, axis=0)
        # If no sample reduces the worst variance, many candidates are equally good: the average decides.
        tied = np.flatnonzero(values <= np.min(values) * (1 + 1e-9))
        best = int(tied[np.argmin(np.mean(after[:, tied], axis=0))])
        index.append(best)
        parts.append((noise[best, best], model[best, best]))
        variance.append(values[best])
        h = covariance[:, best] / (covariance[best, best] + ridge[best])
        model, noise = _after(model, h, best), _after(noise, h, best) + s2[best] * np.outer(h, h)
        covariance = (
            model + noise if posterior.ridge_is_noise_variance else covariance - np.outer(h, covariance[best])
        )
    unit = summary(posterior.output_scale**2)
    before = unit * np.asarray(parts)
    return NextSample(
        points=places[index],
        index=np.asarray(index, dtype=np.intp),
        repeat=before[:, 0] >= before[:, 1],
        noise=before[:, 0],
        model=before[:, 1],
        variance=unit * np.asarray(variance),
    )


def space_filling(
    low: FloatArray, high: FloatArray, n: int, generator: np.random.Generator | None = None
) -> FloatArray:
    """At least n points (., d) that fill a box: a grid for one input, otherwise a Sobol set, scrambled by a generator."""
    if len(low) == 1:
        return np.linspace(low, high, n)
    from scipy.stats.qmc import Sobol

    sobol = Sobol(len(low), scramble=generator is not None, rng=generator)
    return np.asarray(low + sobol.random_base2(int(np.ceil(np.log2(n)))) * (high - low))


def _of_new_samples(posterior: Posterior, X: Array) -> tuple[FloatArray, FloatArray]:
    """Noise variance s2 and ridge rho^2 of a new sample at each row of X, (m,) each."""
    scale = np.ones(len(X)) if posterior.level is None else posterior.level(arrays.as_numpy(X))
    s2 = ridge = posterior.noise.var() * scale**2
    if not posterior.ridge_is_noise_variance:
        ridge = np.full(len(X), float(posterior.smoother.samples.row_regularizer.flat[0]))
    noisy = posterior.input_noise
    if noisy is None:
        return s2, ridge
    further = noisy.noise.variance_at(posterior.smoother, arrays.as_numpy(X))
    return s2 + further, ridge + further - (0.0 if posterior.ridge_is_noise_variance else noisy.variance[0])


def _covariances(posterior: Posterior, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Covariances (m, m) of the errors of model and noise at the rows of X, and the posterior covariance k - k'Ak."""
    _, b, model = map(arrays.as_numpy, posterior.smoother.evaluate_jointly(X))
    noise = posterior.noise_covariance(b)
    if posterior.ridge_is_noise_variance:
        return model, noise, model + noise
    return model, noise, model + times_covariance(b, posterior.smoother.samples.regularizer) @ b.T


def _after(covariance: FloatArray, h: FloatArray, x: int) -> FloatArray:
    """Covariance of e(z) - h(z) e(x) from that of e."""
    shift = np.outer(h, covariance[x])
    return np.asarray(covariance - shift - shift.T + covariance[x, x] * np.outer(h, h))
