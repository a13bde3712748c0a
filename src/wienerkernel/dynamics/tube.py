"""Tubes: the rollout, linearized about the run of its mean, is one linear combination of noise variables.

With A_j the derivative of the mean by the state at the nominal points z_j (A_j + B_j K under feedback) and p_j = h'A_{k-1}
... A_{j+1}, the deviation of h'x_k from the nominal run is

    - sum_i (sum_j p_j a_i(z_j)) (M_i - m0) + sum_j p_j (W_{j+1} - E W) + N(0, sum_{j,l} p_j p_l C(z_j, z_l))

with the noise M in the data, the process noise W, and the covariance C of the prior part.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from ..backend import arrays
from ..law import LinearCombination
from ..noise import Noise
from ..posterior import Uncertainty
from ..posterior.distribution import combination
from .checks import step_number

if TYPE_CHECKING:
    from .dynamics import Dynamics
    from .parts import Part

__all__ = ["Tube"]

DISAGREES = 0.15
"""Kolmogorov's distance to the sampled paths above which there is a warning, for at least `PATHS` of them."""
PATHS = 200
"""Of as many paths of the same law, the distance exceeds `DISAGREES` with probability 0.0002."""


class Tube:
    """Law of the states about the nominal run, linear in all noise: exact, non-Gaussian quantiles in milliseconds.

    Made by :meth:`Dynamics.tube`. One step is exact; for more the noise must be small enough for the linearization.

    Parameters
    ----------
    dynamics : Dynamics
        Without lags and transform.
    mean : ndarray of shape (steps + 1, n_x)
        The nominal run.
    inputs : ndarray of shape (steps, n_u)
    feedback : ndarray of shape (steps, n_u, n_x)
        K in u_k = inputs_k + K (x_k - mean_k).

    Attributes
    ----------
    A : ndarray of shape (steps, n_x, n_x)
        Derivatives of the next state by the state, including the feedback.
    B : ndarray of shape (steps, n_x, n_u)
    disagreement : ndarray of shape (steps + 1, n_x) or None
        Kolmogorov's distance between tube and sampled paths, from :meth:`compare`.

    Examples
    --------
    >>> from wienerkernel import Dynamics, RBF, WienerKernelRegressor
    >>> X = np.linspace(-2, 2, 9)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="gamma(0.25, scale=0.2)", tuning=None).fit(X, 0.8 * np.sin(X[:, 0]))
    >>> tube = Dynamics(model).tube([1.0], steps=5)
    >>> tube.distribution(5).ppf(0.95).shape, tube.tightening([1.0], 0.05).shape
    ((1,), (6,))
    """

    def __init__(
        self, dynamics: Dynamics, mean: FloatArray, inputs: FloatArray, feedback: FloatArray
    ) -> None:
        if not np.all(np.isfinite(mean)):
            step = int(np.argmin(np.all(np.isfinite(mean), axis=1)))
            raise ValueError(f"the run of the mean diverges at step {step}")
        self.dynamics, self.mean, self.inputs, self.feedback = dynamics, mean, inputs, feedback
        self._Z = np.hstack([mean[:-1], inputs])
        slopes = np.moveaxis(dynamics.value_and_jacobian(self._Z)[1], 0, 1)
        self.B = slopes[:, :, dynamics.n_states :]
        self.A = slopes[:, :, : dynamics.n_states] + self.B @ feedback
        self.disagreement: FloatArray | None = None

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.A)

    def __repr__(self) -> str:
        return f"<Tube: {self.steps} steps, {self.mean.shape[1]} states>"

    def _propagated(self, directions: FloatArray) -> FloatArray:
        """p_j for directions (r, n_x) and every step k: (r, steps + 1, steps, n_x), 0 for j >= k."""
        p = np.zeros((len(directions), self.steps + 1, *self.mean[1:].shape))
        for k in range(1, self.steps + 1):
            p[:, k, k - 1] = directions
            for j in range(k - 1, 0, -1):
                p[:, k, j - 1] = p[:, k, j] @ self.A[j]
        return p

    @cached_property
    def _at_nominal(self) -> list[tuple[Part, FloatArray, FloatArray, FloatArray]]:
        """For each model: weights of the places (steps, U), C (steps, steps) and factors of the process noise (steps, n)."""
        found = []
        for part in self.dynamics.parts:
            smoother = part.posterior.smoother
            _, weights, covariance = smoother.evaluate_jointly(arrays.like(self._Z, smoother.places))
            scale = part.noise_scale(self._Z) if part.laws else np.empty((self.steps, 0))
            found.append((part, arrays.as_numpy(weights), arrays.as_numpy(covariance), scale))
        return found

    def _terms(self, p: FloatArray) -> tuple[dict[str, list[tuple[Noise, FloatArray, Any]]], FloatArray]:
        """Laws, weights (..., J) and counts of the noise by cause, and variance of the prior part, for p (..., steps, n_x)."""
        terms: dict[str, list[tuple[Noise, FloatArray, Any]]] = {"noise": [], "process": []}
        variance: FloatArray = np.zeros(p.shape[:-2])
        for part, weights, covariance, scale in self._at_nominal:
            posterior = part.posterior
            for i, state in enumerate(range(part.states.start, part.states.stop)):
                q = p[..., state] * posterior.output_scale[i]
                for law, w, counts in posterior.noise_terms((q @ weights).reshape(-1, weights.shape[1])):
                    terms["noise"].append((law, w.reshape(*q.shape[:-1], -1), counts))
                if part.laws:
                    terms["process"].append((part.laws[i], p[..., state] * scale[:, i], np.ones(self.steps)))
                variance = variance + np.maximum(np.einsum("...j,jl,...l->...", q, covariance, q), 0.0)
        return terms, variance

    def _law(self, p: FloatArray, center: FloatArray) -> LinearCombination:
        terms, variance = self._terms(p)
        joined: dict[Noise, list[tuple[FloatArray, Any]]] = {}
        for law, weights, counts in [*terms["noise"], *terms["process"]]:
            joined.setdefault(law, []).append((weights, counts))
            center = center - law.mean() * (weights @ counts)
        merged = [
            (law, np.concatenate([w for w, _ in parts], axis=-1), np.concatenate([n for _, n in parts]))
            for law, parts in joined.items()
        ]
        return combination(merged, loc=center, normal_std=np.sqrt(variance))

    def law(self, direction: ArrayLike) -> LinearCombination:
        """The law of h'x_k for all steps.

        Parameters
        ----------
        direction : array-like of shape (n_x,)
            h.

        Returns
        -------
        LinearCombination
            Of shape (steps + 1,).
        """
        h = self._direction(direction)
        return self._law(self._propagated(h[None])[0], self.mean @ h)

    def distribution(self, step: int, direction: ArrayLike | None = None) -> LinearCombination:
        """The law of the states after ``step`` steps, of shape (n_x,), or of h'x of shape () for a direction h.

        Parameters
        ----------
        step : int
            From 0 to ``steps``; -1 is the last.
        direction : array-like of shape (n_x,), default=None

        Returns
        -------
        LinearCombination
        """
        k = step_number(step, self.steps)
        if direction is None:
            return self._law(self._propagated(np.eye(self.mean.shape[1]))[:, k], self.mean[k])
        h = self._direction(direction)
        return self._law(self._propagated(h[None])[0, k], self.mean[k] @ h)

    def parts(self, step: int) -> Uncertainty:
        """Variances of the states after ``step`` steps by cause, each (n_x,): they add up, since all is linear.

        Parameters
        ----------
        step : int

        Returns
        -------
        Uncertainty
            ``noise`` is the noise in the data, ``model`` unexplored inputs, ``aleatoric`` the process noise.
        """
        p = self._propagated(np.eye(self.mean.shape[1]))[:, step_number(step, self.steps)]
        terms, model = self._terms(p)
        noise, aleatoric = (
            sum((law.var() * (w**2 @ counts) for law, w, counts in terms[cause]), np.zeros(len(p)))
            for cause in ("noise", "process")
        )
        return Uncertainty(noise, model, aleatoric)

    def tightening(self, direction: ArrayLike, eps: ArrayLike) -> FloatArray:
        """By how much to tighten the constraint h'x_k <= b for it to hold with probability 1 - eps, at every step.

        Parameters
        ----------
        direction : array-like of shape (n_x,)
            h.
        eps : float or array-like of shape (steps + 1,)
            Probability of a violation, of all steps or of each.

        Returns
        -------
        ndarray of shape (steps + 1,)
            The nominal run must satisfy h'mean_k <= b - tightening_k.
        """
        level = np.asarray(eps, dtype=float)
        if not np.all((level > 0) & (level < 1)):
            raise ValueError(f"eps must lie strictly between 0 and 1, got {eps!r}")
        h = self._direction(direction)
        return np.asarray(self.law(h).isf(level) - self.mean @ h)

    def _direction(self, direction: ArrayLike) -> FloatArray:
        h = np.asarray(direction, dtype=float)
        if h.shape != self.mean.shape[1:] or not np.all(np.isfinite(h)):
            raise ValueError(f"direction must be {self.mean.shape[1]} finite numbers, got {direction!r}")
        return h

    def compare(self, n_paths: int, random_state: RandomState = None) -> FloatArray:
        """Kolmogorov's distances to sampled paths; there is a warning where they are large.

        Parameters
        ----------
        n_paths : int
        random_state : int, numpy Generator or RandomState, or None

        Returns
        -------
        ndarray of shape (steps + 1, n_x)
        """
        policy = None
        if self.inputs.shape[1]:

            def policy(k: int, x: FloatArray) -> FloatArray:
                return np.asarray(self.inputs[k] + (x - self.mean[k]) @ self.feedback[k].T)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            run = self.dynamics.rollout(
                self.mean[0], policy, self.steps, n_paths, causes=False, random_state=random_state
            )
        directions = np.eye(self.mean.shape[1])
        law = self._law(np.moveaxis(self._propagated(directions), 0, 1), self.mean)
        states = np.sort(np.where(np.isfinite(run.states), run.states, np.inf), axis=0)
        levels = np.arange(n_paths + 1)[:, None, None] / n_paths
        cdf = law.cdf(np.minimum(states, np.finfo(float).max ** 0.25))
        distance = np.maximum(np.abs(cdf - levels[:-1]), np.abs(cdf - levels[1:])).max(axis=0)
        distance[0] = 0.0
        self.disagreement = distance
        large = distance > DISAGREES * max(1.0, PATHS / n_paths) ** 0.5
        if np.any(large):
            step = int(np.argmax(np.any(large, axis=1)))
            state = self.dynamics.state_names[int(np.argmax(distance[step]))]
            warnings.warn(
                f"the linearized tube disagrees with {n_paths} sampled paths from step {step} on (state {state}: distance "
                f"{distance[step].max():.2f} of the distribution functions): use a rollout, or fewer steps",
                UserWarning,
                stacklevel=3,
            )
        return np.asarray(distance)
