"""Simulation of x_{k+1} = F(x_k, u_k) + M_{k+1} with one random function F per path, never a fresh draw in each step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..backend import arrays
from ..law.progress import shown
from ..posterior.paths import Functions
from ..posterior.residual import PriorRoot
from .causes import split_by_cause
from .parts import Part
from .rollout import Rollout
from .trajectories import transformed

if TYPE_CHECKING:
    from ..transform import Transform
    from .dynamics import Dynamics

__all__ = ["Policy", "simulate"]

Policy = Callable[[int, FloatArray], ArrayLike]
"""Inputs (m, n_u) from the step k and states (m, n_x)."""

MEMORY, DEVICE_MEMORY = 2**28, 2**34
"""Bytes that the visited points of the paths in progress may take, on a CPU and on a GPU, which many paths keep busy."""
DIVERGED, DIVERGED_TRANSFORMED = 1e8, 1e3
"""Distance from the data, in their ranges, from which on a path counts as diverged; the second for states with a transform,
whose inverse makes a power or an exponential of linear growth."""
UNRELATED = 1e-4
"""Correlation of f(x) with all data below which the model has no information about f(x)."""
EXAMINED = 256
"""Paths that are examined for leaving the data."""


def simulate(
    system: Dynamics,
    start: Callable[[int, Any], FloatArray],
    inputs: FloatArray | Policy,
    steps: int,
    n_paths: int,
    *,
    random_start: bool,
    causes: bool,
    of: str,
    features: Any,
    verbose: bool,
    generator: Any,
) -> Rollout:
    """Simulate; ``start`` draws n initial histories (n, p, n_x), latest first.

    A history holds what the models see: past states, on the scale of the system's ``lag_transforms``.
    """
    parts, q, n_x = system.parts, system.lags[1], system.n_states
    factors = ["model", "noise", *["process"] * bool(parts[0].laws), *["initial"] * random_start]
    copies = 2 if causes else 1
    bits = np.array(list(product(range(copies), repeat=len(factors))), dtype=int)
    vertices = len(bits)
    outcomes = np.full((n_paths, vertices, steps + 1, n_x), np.nan)
    last = np.zeros((3, n_paths, steps + 1, n_x))
    examined = np.empty((min(n_paths, EXAMINED), steps, parts[0].model.n_features_in_))
    points = steps * vertices // copies
    sizes = [points * (part.posterior.smoother.samples.n_places + points) for part in parts]
    roots = [_root(part, of, features, n_paths * copies * points) for part in parts]
    memory = MEMORY if arrays.is_numpy(parts[0].posterior.smoother.places) else DEVICE_MEMORY
    chunk = max(1, int(memory // (8 * copies * sum(sizes))))

    def runs() -> Iterator[tuple[slice, None]]:
        for rows in arrays.slices(n_paths, chunk):
            n = rows.stop - rows.start
            functions = [
                Functions(part.posterior, n, of, features, generator, copies, points, root)
                for part, root in zip(parts, roots, strict=True)
            ]
            group = _Group(system, functions, factors, bits, generator)
            initial = group.spread(start(n * copies, generator))
            history, state = transformed(initial, system.lag_transforms), initial[:, :, 0]
            outcomes[rows, :, 0] = state
            recent = inputs[: q - 1][::-1] if isinstance(inputs, np.ndarray) else np.empty((0, 0))
            for k in range(steps):
                u = _inputs_at(inputs, k, q, state)
                before = np.broadcast_to(recent.ravel(), (n, vertices, recent.size))
                recent = np.concatenate([u[0, :1], recent])[: q - 1] if q > 1 else recent
                Z = np.concatenate([history.reshape(n, vertices, -1), u, before], axis=2)
                examined[rows, k] = Z[: max(0, len(examined) - rows.start), 0]
                base = state if system.learns == "increment" else np.zeros_like(state)
                state, seen, *law = group.step(Z, base, generator)
                outcomes[rows, :, k + 1] = state
                last[:, rows, k + 1] = base[:, 0], *law
                history = np.concatenate([seen[:, :, None], history[:, :, :-1]], axis=2)
                yield slice(0, rows.start * steps + (k + 1) * n), None

    for _ in shown(runs(), n_paths * steps, verbose, "steps of paths"):
        pass
    diverged = np.any(np.isnan(outcomes), axis=(1, 2, 3))
    _report_divergence(outcomes, diverged, system.state_names)
    split = None
    if causes and np.count_nonzero(~diverged) > 1:
        split = split_by_cause(_on_scales(outcomes[~diverged], system.transforms), tuple(factors), generator)
    if of == "function":
        _warn_of_unexplored(system, examined)
    states = outcomes[:, 0].copy()
    laws = tuple(law for part in parts for law in (part.laws or (None,) * part.n_states))
    gone = np.any(np.isnan(states), axis=(1, 2))
    return Rollout(states, gone, split, system.state_names, laws, system.transforms, last)


def _bounds(data: FloatArray, factor: Any) -> tuple[FloatArray, FloatArray]:
    """Mean of each column, and the distance from it from which on a path has diverged; infinite for constant columns."""
    spread = np.ptp(data, axis=0)
    return data.mean(axis=0), factor * np.where(spread > 0, spread, np.inf)


def _on_scales(
    states: FloatArray, transforms: tuple[Transform | None, ...], otherwise: float | FloatArray = 0.0
) -> FloatArray:
    """States on the scales of the transforms, those at the end of a domain just inside; ``otherwise`` if not finite there."""
    if not any(transforms):
        return states
    inside = np.where(states == 0, np.finfo(float).tiny, states)
    values = transformed(inside, transforms)
    return np.where(np.isfinite(values), values, otherwise)


def _root(part: Part, of: str, features: Any, points: int) -> PriorRoot | None:
    """What makes many points of exact functions cheaper; None where it is not needed."""
    smoother = part.posterior.smoother
    if of != "function" or isinstance(features, int) or smoother.factor.dtype != smoother.places.dtype:
        return None
    return PriorRoot.if_worth(smoother, points)


class _Group:
    """n groups of paths that are simulated together, with one rollout for each combination of copies of the causes."""

    def __init__(
        self, system: Dynamics, functions: list[Functions], factors: list[str], bits: Any, generator: Any
    ) -> None:
        self.system, self.functions, self.factors, self.bits = system, functions, factors, bits
        self.n, self.copies = functions[0].n, functions[0].copies
        parts, shape = system.parts, (self.n, self.copies)
        self.nodes = [part.draw_nodes(self.n * self.copies, generator).reshape(shape) for part in parts]
        places = arrays.as_numpy(parts[0].posterior.smoother.places)
        self.center, self.limit = _bounds(places, DIVERGED)
        states = [
            x if T is None else T.inverse(x) for x, T in zip(places.T, system.lag_transforms, strict=False)
        ]
        factor = [DIVERGED if T is None else DIVERGED_TRANSFORMED for T in system.transforms]
        self.state_center, self.state_limit = _bounds(np.stack(states, axis=1), np.array(factor))

    def _copy(self, cause: str) -> Any:
        """Which copy of a cause each combination has."""
        return self.bits[:, self.factors.index(cause)] if cause in self.factors else self.bits[:, 0] * 0

    def spread(self, drawn: FloatArray) -> FloatArray:
        """Initial histories (n, V, p, n_x) from those of the copies, (n copies, p, n_x)."""
        return drawn.reshape(self.n, self.copies, *drawn.shape[1:])[:, self._copy("initial")]

    def step(
        self, Z: FloatArray, base: FloatArray, generator: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """From rows z (n, V, d): next states and what models see of them, (n, V, n_x), and location and scale of their
        law for the first combination, (n, n_x).
        """
        n, vertices, n_x = base.shape
        lost = ~np.all(np.abs(Z - self.center) < self.limit, axis=2)  # also where it is NaN
        Z = np.where(lost[:, :, None], self.center, Z)
        flat, copy = Z.reshape(n * vertices, -1), self._copy("process")
        state, values, location, scale = (np.empty((n, vertices, n_x)) for _ in range(4))
        for part, functions, nodes in zip(self.system.parts, self.functions, self.nodes, strict=True):
            at = part.states
            location[:, :, at] = arrays.as_numpy(functions.own(Z)) * part.posterior.output_scale
            value, scale[:, :, at] = location[:, :, at], 0.0
            if part.laws:
                scale[:, :, at] = part.noise_scale(flat, nodes[:, copy].ravel()).reshape(value.shape)
                draws = [law.rvs((n, self.copies), random_state=generator)[:, copy] for law in part.laws]
                value = value + scale[:, :, at] * np.stack(draws, axis=-1)
            values[:, :, at] = value
            state[:, :, at] = value if part.transform is None else part.transform.inverse(value)
        state = state + base
        near = np.abs(state - self.state_center) < self.state_limit
        gone = lost | ~np.all(near, axis=2)
        seen = _on_scales(state, self.system.lag_transforms, values)
        state[gone] = seen[gone] = np.nan
        return state, seen, location[:, 0], scale[:, 0]


def _inputs_at(inputs: FloatArray | Policy, k: int, q: int, states: FloatArray) -> FloatArray:
    """Inputs of step k for states (n, V, n_x): (n, V, n_u)."""
    n, vertices, n_x = states.shape
    if isinstance(inputs, np.ndarray):
        return np.broadcast_to(inputs[k + q - 1], (n, vertices, inputs.shape[1]))
    alive = np.all(np.isfinite(states), axis=2).ravel()
    flat = states.reshape(-1, n_x)
    values = np.asarray(inputs(k, np.where(alive[:, None], flat, 0.0)))
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


def _warn_of_unexplored(system: Dynamics, examined: FloatArray) -> None:
    """Warn if more than 5 % of the paths, of rows z (n, steps, d), are unrelated to the data: state and step."""
    smoother = system.parts[0].posterior.smoother
    kernel, places = smoother.kernel, arrays.as_numpy(smoother.places)
    if kernel._prior is None:  # not a function of the distance from the data
        return
    low, high = places.min(axis=0), places.max(axis=0)
    spans = np.where(high > low, high - low, 1.0)
    for k in range(examined.shape[1]):
        Z = examined[:, k]
        Z = Z[np.all(np.isfinite(Z), axis=1)]
        if not len(Z):
            return
        cross = arrays.as_numpy(smoother.cross(arrays.like(Z, smoother.places)))
        far = np.max(np.abs(cross), axis=1) / kernel._prior < UNRELATED
        if np.mean(far) > 0.05:
            away = np.maximum(Z[far] - high, low - Z[far]).clip(min=0) / spans
            column, n_x = int(np.argmax(away.mean(axis=0))), system.n_states
            state = f"state {system.state_names[column % n_x]}"
            kind = state if column < n_x * system.lags[0] else "an input"
            warnings.warn(
                f"at step {k}, {np.mean(far):.0%} of the paths are many length scales away from all data: "
                f"{kind} has values from {Z[:, column].min():.3g} to {Z[:, column].max():.3g}, "
                f"the data from {low[column]:.3g} to {high[column]:.3g}; the model knows nothing there",
                UserWarning,
                stacklevel=4,
            )
            return
