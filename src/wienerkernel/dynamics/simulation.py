"""Simulation of x_{k+1} = F(x_k, u_k) + M_{k+1} with one random function F per path, never a fresh draw in each step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
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

__all__ = ["Policy", "simulate", "warn_of_unexplored"]

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
    parts: Sequence[Part],
    start: Callable[[int, Any], FloatArray],
    inputs: FloatArray | Policy | None,
    steps: int,
    n_paths: int,
    *,
    lags: tuple[int, int],
    lag_transforms: tuple[Transform | None, ...],
    increment: bool,
    random_start: bool,
    causes: bool,
    names: tuple[str, ...],
    of: str,
    features: Any,
    verbose: bool,
    generator: Any,
) -> Rollout:
    """Simulate; ``start`` draws n initial histories (n, p, n_x), latest first.

    A history holds what the models see: past states, on the scale of ``lag_transforms``.
    """
    factors = ["model", "noise", *["process"] * bool(parts[0].laws), *["initial"] * random_start]
    bits = np.array(list(product((0, 1) if causes else (0,), repeat=len(factors))), dtype=int)
    n_x, vertices = parts[-1].states.stop, len(bits)
    copies = 2 if causes else 1
    outcomes = np.full((n_paths, vertices, steps + 1, n_x), np.nan)
    last = tuple(np.zeros((n_paths, steps, n_x)) for _ in range(3))
    points = steps * vertices // copies
    sizes = [points * (part.posterior.smoother.samples.n_places + points) for part in parts]
    roots = [_root(part, of, features, n_paths * copies * points) for part in parts]
    memory = MEMORY if arrays.is_numpy(parts[0].posterior.smoother.places) else DEVICE_MEMORY
    chunk = max(1, int(memory // (8 * copies * sum(sizes))))

    def runs() -> Iterator[tuple[slice, None]]:
        for rows in arrays.slices(n_paths, chunk):
            group = _Group(
                parts,
                rows.stop - rows.start,
                bits,
                factors,
                copies,
                of,
                features,
                points,
                roots,
                lag_transforms,
                generator,
            )
            initial = group.spread(start, generator, lags[0])
            history, state = transformed(initial, lag_transforms), initial[:, :, 0]
            outcomes[rows, :, 0] = state
            recent = inputs[: lags[1] - 1][::-1] if isinstance(inputs, np.ndarray) else np.empty((0, 0))
            for k in range(steps):
                u = _inputs_at(inputs, k, lags[1], state)
                before = np.broadcast_to(recent.ravel(), (*u.shape[:2], recent.size))
                past = np.concatenate([u, before], axis=2)
                recent = np.concatenate([u[0, :1], recent])[: lags[1] - 1] if lags[1] > 1 else recent
                base = state if increment else np.zeros_like(state)
                state, seen, *parts_of_law = group.step(history, past, base, generator)
                outcomes[rows, :, k + 1] = state
                for array, values in zip(last, (base[:, 0], *parts_of_law), strict=True):
                    array[rows, k] = values
                history = np.concatenate([seen[:, :, None], history[:, :, :-1]], axis=2)
                yield slice(0, rows.start * steps + (k + 1) * (rows.stop - rows.start)), None

    for _ in shown(runs(), n_paths * steps, verbose, "steps of paths"):
        pass
    transforms = _transforms(parts)
    diverged = np.any(np.isnan(outcomes), axis=(1, 2, 3))
    _report_divergence(outcomes, diverged, names)
    split = None
    if causes and np.count_nonzero(~diverged) > 1:
        split = split_by_cause(_on_scales(outcomes[~diverged], transforms), tuple(factors), generator)
    states = outcomes[:, 0].copy()
    laws = tuple(
        law for part in parts for law in (part.laws or (None,) * (part.states.stop - part.states.start))
    )
    return Rollout(
        states,
        np.any(np.isnan(states), axis=(1, 2)),
        split,
        names,
        laws,
        transforms,
        (last[0], last[1], last[2]),
    )


def _transforms(parts: Sequence[Part]) -> tuple[Transform | None, ...]:
    """Of each state."""
    return tuple(part.transform for part in parts for _ in range(part.states.stop - part.states.start))


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
        self,
        parts: Sequence[Part],
        n: int,
        bits: Any,
        factors: list[str],
        copies: int,
        of: str,
        features: Any,
        points: int,
        roots: list[PriorRoot | None],
        lag_transforms: tuple[Transform | None, ...],
        generator: Any,
    ) -> None:
        self.parts, self.n, self.copies, self.bits, self.factors = parts, n, copies, bits, factors
        self.lag_transforms = lag_transforms  # the scales on which the models see past states
        self.functions = [
            Functions(part.posterior, n, of, features, generator, copies, points, root)
            for part, root in zip(parts, roots, strict=True)
        ]
        self.nodes = [part.draw_nodes(n * copies, generator).reshape(n, copies) for part in parts]
        places = arrays.as_numpy(parts[0].posterior.smoother.places)
        self.center, self.limit = _bounds(places, DIVERGED)
        states = [x if T is None else T.inverse(x) for x, T in zip(places.T, lag_transforms, strict=False)]
        factor = [DIVERGED if T is None else DIVERGED_TRANSFORMED for T in _transforms(parts)]
        self.state_center, self.state_limit = _bounds(np.stack(states, axis=1), np.array(factor))

    def _copy(self, cause: str) -> Any:
        """Which copy of a cause each combination has."""
        return self.bits[:, self.factors.index(cause)] if cause in self.factors else self.bits[:, 0] * 0

    def spread(self, start: Callable[[int, Any], FloatArray], generator: Any, lags: int) -> FloatArray:
        """Initial histories (n, V, p, n_x)."""
        drawn = start(self.n * self.copies, generator).reshape(self.n, self.copies, lags, -1)
        return drawn[:, self._copy("initial")]

    def step(
        self, history: FloatArray, past: FloatArray, base: FloatArray, generator: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Next states and what models see of them, (n, V, n_x); location and scale of their law for the first combination,
        (n, n_x).
        """
        n, vertices, _, n_x = history.shape
        Z = np.concatenate([history.reshape(n, vertices, -1), past], axis=2)
        lost = ~np.all(np.abs(Z - self.center) < self.limit, axis=2)  # also where it is NaN
        Z = np.where(lost[:, :, None], self.center, Z)
        flat, copy = Z.reshape(n * vertices, -1), self._copy("process")
        state, values, location, scale = (np.empty((n, vertices, n_x)) for _ in range(4))
        for part, functions, nodes in zip(self.parts, self.functions, self.nodes, strict=True):
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
        seen = _on_scales(state, self.lag_transforms, values)
        state[gone] = seen[gone] = np.nan
        return state, seen, location[:, 0], scale[:, 0]


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
    parts: Sequence[Part],
    rollout: Rollout,
    inputs_of: Callable[[int], FloatArray],
    lags: int,
    lag_transforms: tuple[Transform | None, ...],
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
        past = [_on_scales(some[:, k - i], lag_transforms, np.nan) for i in range(lags)]
        Z = np.hstack([*past, inputs_of(k)[: len(some)]])
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
            column = int(np.argmax(away.mean(axis=0)))
            n_x = len(rollout.names)
            kind = f"state {rollout.names[column % n_x]}" if column < n_x * lags else "an input"
            warnings.warn(
                f"at step {k}, {np.mean(far):.0%} of the paths are many length scales away from all data: {kind} "
                f"has values from {Z[:, column].min():.3g} to {Z[:, column].max():.3g}, the data from "
                f"{low[column]:.3g} to {high[column]:.3g}; the model knows nothing there",
                UserWarning,
                stacklevel=4,
            )
            return
