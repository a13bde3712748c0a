"""Rollouts x_{k+1} = F(x_k, u_k) + M_{k+1} with one random function F per path, never a fresh draw in each step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..backend import arrays
from ..law.progress import shown
from ..posterior.paths import Functions
from .causes import Causes, split_by_cause
from .parts import Part
from .state_law import StateDistribution, empirical

if TYPE_CHECKING:
    from ..noise import Noise
    from ..transform import Transform

__all__ = ["Policy", "Rollout", "simulate"]

Policy = Callable[[int, FloatArray], ArrayLike]
"""Inputs (m, n_u) from the step k and states (m, n_x)."""

MEMORY = 2**28
"""Bytes that the visited points of the paths in progress may take."""
DIVERGED = 1e8
"""Distance from the data, in their ranges, from which on a path counts as diverged."""
UNRELATED = 1e-4
"""Correlation of f(x) with all data below which the model has no information about f(x)."""
EXAMINED = 256
"""Paths that are examined for leaving the data."""


@dataclass(frozen=True)
class Rollout:
    """Simulated trajectories of a learned system.

    Attributes
    ----------
    states : ndarray of shape (n_paths, steps + 1, n_x)
        NaN from the step at which a path diverges.
    diverged : ndarray of bool of shape (n_paths,)
    causes : Causes or None
        Variances by cause.
    names : tuple of str
        Of the states.

    Examples
    --------
    >>> from wienerkernel import Dynamics, RBF, WienerKernelRegressor
    >>> X = np.linspace(-2, 2, 9)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, 0.8 * np.sin(X[:, 0]))
    >>> r = Dynamics(model).rollout([1.0], steps=3, n_paths=200, random_state=0)
    >>> r.states.shape, r.distribution(3).ppf([[0.05], [0.95]]).shape
    ((200, 4, 1), (2, 1))
    """

    states: FloatArray
    diverged: FloatArray
    causes: Causes | None
    names: tuple[str, ...]
    _laws: tuple[Noise | None, ...]
    _transforms: tuple[Transform | None, ...]
    _last: tuple[FloatArray, FloatArray, FloatArray]

    def __repr__(self) -> str:
        n, steps, n_x = self.states.shape
        return f"<Rollout: {n} paths, {steps - 1} steps, {n_x} states, {int(self.diverged.sum())} diverged>"

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.states.shape[1]) - 1

    def distribution(self, step: int) -> StateDistribution:
        """The law of the states after ``step`` steps, of the paths that have not diverged.

        Parameters
        ----------
        step : int
            From 0 to ``steps``; -1 is the last.

        Returns
        -------
        StateDistribution
            Of shape (n_x,).
        """
        k = range(self.steps + 1)[step]
        if k == 0:
            return empirical(self.states[:, 0])
        base, location, scale = (part[:, k - 1] for part in self._last)
        return StateDistribution(self.states[:, k], self._laws, base, location, scale, self._transforms)

    def quantiles(self, levels: ArrayLike) -> FloatArray:
        """Quantiles of every state at every step.

        Parameters
        ----------
        levels : array-like of shape (q,)

        Returns
        -------
        ndarray of shape (steps + 1, n_x, q)
        """
        q = np.asarray(levels, dtype=float)
        return np.stack([self.distribution(k).ppf(q[:, None]).T for k in range(self.steps + 1)])

    def mean(self) -> FloatArray:
        """Mean of every state at every step, (steps + 1, n_x)."""
        return np.stack([self.distribution(k).mean() for k in range(self.steps + 1)])

    def var(self) -> FloatArray:
        """Variance of every state at every step, (steps + 1, n_x)."""
        return np.stack([self.distribution(k).var() for k in range(self.steps + 1)])

    def plot(self, coverage: float = 0.9, axes: Any = None) -> Any:
        """Draw the tube of each state over the steps, divided by cause.

        Parameters
        ----------
        coverage : float, default=0.9
            Of the whole tube. Inner tubes have its width times the root of the share of the variance.
        axes : array of n_x matplotlib Axes, default=None

        Returns
        -------
        ndarray of n_x matplotlib Axes
        """
        from .plotting import plot_rollout

        return plot_rollout(self, coverage, axes)


def simulate(
    parts: Sequence[Part],
    start: Callable[[int, Any], FloatArray],
    inputs: FloatArray | Policy | None,
    steps: int,
    n_paths: int,
    *,
    lags: tuple[int, int],
    increment: bool,
    random_start: bool,
    causes: bool,
    names: tuple[str, ...],
    of: str,
    features: Any,
    verbose: bool,
    generator: Any,
) -> Rollout:
    """Simulate; ``start`` draws n initial histories (n, p, n_x), latest first."""
    factors = ["model", "noise", *["process"] * bool(parts[0].laws), *["initial"] * random_start]
    bits = (
        np.array(list(product((0, 1), repeat=len(factors)))) if causes else np.zeros((1, len(factors)), int)
    )
    n_x, vertices = parts[-1].states.stop, len(bits)
    copies = 2 if causes else 1
    outcomes = np.full((n_paths, vertices, steps + 1, n_x), np.nan)
    last = tuple(np.zeros((n_paths, steps, n_x)) for _ in range(3))
    points = steps * vertices // copies
    sizes = [points * (part.posterior.smoother.samples.n_places + points) for part in parts]
    chunk = max(1, int(MEMORY // (8 * copies * sum(sizes))))

    def runs() -> Iterator[tuple[slice, None]]:
        for rows in arrays.slices(n_paths, chunk):
            group = _Group(
                parts, rows.stop - rows.start, bits, factors, copies, of, features, points, generator
            )
            history = group.spread(start, generator, lags[0])
            outcomes[rows, :, 0] = history[:, :, 0]
            recent = inputs[: lags[1] - 1][::-1] if isinstance(inputs, np.ndarray) else np.empty((0, 0))
            for k in range(steps):
                u = _inputs_at(inputs, k, lags[1], history[:, :, 0])
                before = np.broadcast_to(recent.ravel(), (*u.shape[:2], recent.size))
                past = np.concatenate([u, before], axis=2)
                recent = np.concatenate([u[0, :1], recent])[: lags[1] - 1] if lags[1] > 1 else recent
                state, *parts_of_law = group.step(history, past, increment, generator)
                outcomes[rows, :, k + 1] = state
                for array, values in zip(last, parts_of_law, strict=True):
                    array[rows, k] = values
                history = np.concatenate([state[:, :, None], history[:, :, :-1]], axis=2)
                yield slice(0, rows.start * steps + (k + 1) * (rows.stop - rows.start)), None

    for _ in shown(runs(), n_paths * steps, verbose, "steps of paths"):
        pass
    diverged = np.any(np.isnan(outcomes), axis=(1, 2, 3))
    _report_divergence(outcomes, diverged, names)
    split = None
    if causes and np.count_nonzero(~diverged) > 1:
        split = split_by_cause(outcomes[~diverged], tuple(factors), generator)
    states = outcomes[:, 0].copy()
    laws = tuple(
        law for part in parts for law in (part.laws or (None,) * (part.states.stop - part.states.start))
    )
    transforms = tuple(part.transform for part in parts for _ in range(part.states.stop - part.states.start))
    return Rollout(
        states,
        np.any(np.isnan(states), axis=(1, 2)),
        split,
        names,
        laws,
        transforms,
        (last[0], last[1], last[2]),
    )


class _Group:
    """n groups of paths that are simulated together, with one rollout for each combination of copies of the causes."""

    def __init__(
        self,
        parts: Sequence[Part],
        n: int,
        bits: Any,
        factors: list[str],
        copies: int,
        of: str,
        features: Any,
        points: int,
        generator: Any,
    ) -> None:
        self.parts, self.n, self.copies, self.bits, self.factors = parts, n, copies, bits, factors
        self.functions = [
            Functions(part.posterior, n, of, features, generator, copies, points) for part in parts
        ]
        self.nodes = [part.draw_nodes(n * copies, generator).reshape(n, copies) for part in parts]
        places = arrays.as_numpy(parts[0].posterior.smoother.places)
        self.center = places.mean(axis=0)
        self.limit = DIVERGED * np.maximum(np.ptp(places, axis=0), 1e-300)

    def _copy(self, cause: str) -> Any:
        """Which copy of a cause each combination has."""
        return self.bits[:, self.factors.index(cause)] if cause in self.factors else self.bits[:, 0] * 0

    def spread(self, start: Callable[[int, Any], FloatArray], generator: Any, lags: int) -> FloatArray:
        """Initial histories (n, V, p, n_x)."""
        drawn = start(self.n * self.copies, generator).reshape(self.n, self.copies, lags, -1)
        return drawn[:, self._copy("initial")]

    def step(
        self, history: FloatArray, past: FloatArray, increment: bool, generator: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Next states (n, V, n_x); and base, location and scale of their law for the first combination, each (n, n_x)."""
        n, vertices = history.shape[:2]
        Z = np.concatenate([history.reshape(n, vertices, -1), past], axis=2)
        lost = ~np.all(np.abs(Z - self.center) < self.limit, axis=2)  # also where it is NaN
        Z = np.where(lost[:, :, None], self.center, Z)
        flat, copy = Z.reshape(n * vertices, -1), self._copy("process")
        state, location, scale = (np.empty((n, vertices, history.shape[3])) for _ in range(3))
        for part, functions, nodes in zip(self.parts, self.functions, self.nodes, strict=True):
            at = part.states
            location[:, :, at] = arrays.as_numpy(functions.own(Z)) * part.posterior.output_scale
            value, scale[:, :, at] = location[:, :, at], 0.0
            if part.laws:
                scale[:, :, at] = part.noise_scale(flat, nodes[:, copy].ravel()).reshape(value.shape)
                draws = [law.rvs((n, self.copies), random_state=generator)[:, copy] for law in part.laws]
                value = value + scale[:, :, at] * np.stack(draws, axis=-1)
            state[:, :, at] = value if part.transform is None else part.transform.inverse(value)
        base = history[:, :, 0] if increment else np.zeros_like(state)
        state = np.where(lost[:, :, None], np.nan, state + base)
        n_x = state.shape[2]
        far = np.any(np.abs(state - self.center[:n_x]) >= self.limit[:n_x], axis=2)
        state[far] = np.nan
        return state, base[:, 0], location[:, 0], scale[:, 0]


def _inputs_at(inputs: FloatArray | Policy | None, k: int, q: int, states: FloatArray) -> FloatArray:
    """Inputs of step k for states (n, V, n_x): (n, V, n_u)."""
    n, vertices, n_x = states.shape
    if inputs is None:
        return np.empty((n, vertices, 0))
    if isinstance(inputs, np.ndarray):
        return np.broadcast_to(inputs[k + q - 1], (n, vertices, inputs.shape[1]))
    alive = np.all(np.isfinite(states), axis=2).ravel()
    flat = states.reshape(-1, n_x)
    values = np.asarray(inputs(k, np.where(alive[:, None], flat, 0.0)), dtype=float)
    values = np.broadcast_to(values, (len(flat), values.shape[-1] if values.ndim else 1))
    if not np.all(np.isfinite(values[alive])):
        row = int(np.flatnonzero(alive & ~np.all(np.isfinite(values), axis=1))[0])
        raise ValueError(
            f"the policy returned {values[row].tolist()} at step {k} for the state {flat[row].tolist()}"
        )
    return np.where(alive[:, None], values, 0.0).reshape(n, vertices, -1)


def _report_divergence(outcomes: FloatArray, diverged: Any, names: tuple[str, ...]) -> None:
    """Warn if paths diverge, with number, first step and state."""
    if not np.any(diverged):
        return
    gone = np.any(np.isnan(outcomes), axis=(0, 1))
    step = int(np.argmax(np.any(gone, axis=1)))
    before = np.abs(outcomes[:, :, step - 1])
    lost = np.any(np.isnan(outcomes[:, :, step]), axis=2)
    state = names[int(np.argmax(np.nanmax(np.where(lost[..., None], before, 0.0), axis=(0, 1))))]
    warnings.warn(
        f"{int(np.sum(diverged))} of {len(diverged)} paths diverge, the first at step {step} (largest: {state}); their states "
        "are NaN from there on, and distributions and causes are those of the other paths",
        UserWarning,
        stacklevel=4,
    )


def warn_of_unexplored(
    parts: Sequence[Part], rollout: Rollout, inputs_of: Callable[[int], FloatArray], lags: int
) -> None:
    """Warn if more than 5 % of the paths are unrelated to the data, naming state and step."""
    kernel = parts[0].posterior.smoother.kernel
    if kernel._prior is None:  # not a function of the distance from the data
        return
    smoother = parts[0].posterior.smoother
    places = arrays.as_numpy(smoother.places)
    low, high = places.min(axis=0), places.max(axis=0)
    spans = np.where(high > low, high - low, 1.0)
    some = rollout.states[:EXAMINED]
    for k in range(lags - 1, rollout.steps):
        Z = np.hstack([some[:, k - i] for i in range(lags)] + [inputs_of(k)[: len(some)]])
        Z = Z[np.all(np.isfinite(Z), axis=1)]
        if not len(Z):
            return
        correlation = (
            np.max(np.abs(arrays.as_numpy(smoother.cross(arrays.like(Z, smoother.places)))), axis=1)
            / kernel._prior
        )
        far = correlation < UNRELATED
        if np.mean(far) > 0.05:
            away = np.maximum(Z[far] - high, low - Z[far]).clip(min=0) / spans
            column = int(np.argmax(away.mean(axis=0)[: len(rollout.names)]))
            warnings.warn(
                f"at step {k}, {np.mean(far):.0%} of the paths are many length scales away from all data: state "
                f"{rollout.names[column]} has values from {Z[:, column].min():.3g} to {Z[:, column].max():.3g}, the data from "
                f"{low[column]:.3g} to {high[column]:.3g}; the model knows nothing there",
                UserWarning,
                stacklevel=4,
            )
            return
