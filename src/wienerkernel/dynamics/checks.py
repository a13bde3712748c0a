"""Initial states and inputs of a simulation, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import FloatArray
from ..noise import as_noise

if TYPE_CHECKING:
    from .simulation import Policy

__all__ = [
    "check_count",
    "check_inputs",
    "check_names",
    "check_start",
    "drawn_start",
    "is_law",
    "step_number",
]


def step_number(step: int, steps: int) -> int:
    """The step from 0 to ``steps`` that an index means; negative ones count from the end."""
    if not -steps - 1 <= step <= steps:
        raise IndexError(f"step must be between 0 and {steps}, or negative to count from the end, got {step}")
    return range(steps + 1)[step]


def check_count(name: str, value: Any) -> int:
    """A positive integer."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not float(value).is_integer() or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    return int(value)


def is_law(x0: Any) -> bool:
    """Whether an initial state is random."""
    several = isinstance(x0, list | tuple) and any(hasattr(law, "rvs") or isinstance(law, str) for law in x0)
    return hasattr(x0, "rvs") or isinstance(x0, str) or several


def check_names(what: str, names: Sequence[str] | None, count: int, letter: str) -> tuple[str, ...]:
    """The names, or the letter with numbers."""
    found = [f"{letter}{i + 1}" for i in range(count)] if names is None else list(names)
    if len(found) != count:
        raise ValueError(f"{what} must have {count} names, got {len(found)}")
    return tuple(found)


def check_start(x0: Any, n_x: int, p: int) -> FloatArray:
    """Initial states, latest first, (1, p, n_x)."""
    try:
        x = np.asarray(x0, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"x0 must be numbers, a law, or a list of laws and numbers, got {x0!r}") from None
    if x.shape == (p, n_x):
        x = x[::-1]
    elif (p == 1 and x.shape in ((n_x,), (1, n_x))) or (p == 1 and n_x == 1 and x.ndim == 0):
        x = x.reshape(1, n_x)
    elif n_x == 1 and x.shape == (p,):
        x = x[::-1, None]
    else:
        wanted = f"({n_x},)" if p == 1 else f"({p}, {n_x}), in the order of time"
        raise ValueError(f"x0 must have shape {wanted}, got {x.shape}")
    if not np.all(np.isfinite(x)):
        raise ValueError(f"x0 must be finite, got {x0!r}")
    return np.array(x)[None]


def drawn_start(x0: Any, n: int, n_x: int, p: int, generator: Any) -> FloatArray:
    """Draws of a random initial state, (n, 1, n_x)."""
    if p > 1:
        raise ValueError("a random x0 needs a system without lags")
    if isinstance(x0, list | tuple):
        if len(x0) != n_x:
            raise ValueError(f"x0 must have one law or number for each of {n_x} states, got {len(x0)}")
        columns = [
            np.full(n, law)
            if np.isscalar(law) and not isinstance(law, str)
            else as_noise(law).rvs(n, random_state=generator)
            for law in x0
        ]
        draws = np.stack(columns, axis=1)
    else:
        law = as_noise(x0) if isinstance(x0, str) else x0
        draws = np.asarray(law.rvs(size=n, random_state=generator), dtype=float)
    if draws.size != n * n_x:
        raise ValueError(f"x0 must be a law of {n_x} states, its draws have shape {draws.shape[1:]}")
    return draws.reshape(n, 1, n_x)


def check_inputs(inputs: Any, steps: int | None, n_u: int, q: int, policy: bool) -> tuple[Any, int]:
    """Inputs (steps + q - 1, n_u) or a policy, and the number of steps."""
    if steps is not None:
        steps = check_count("steps", steps)
    if callable(inputs):
        if not policy or q > 1:
            raise ValueError(
                "a policy needs a system without input lags" if policy else "inputs must be an array here"
            )
        if steps is None:
            raise ValueError("steps is needed with a policy")
        return _checked_policy(inputs, n_u), steps
    if inputs is None or np.size(inputs) == 0:
        if n_u:
            raise ValueError(
                f"the system has {n_u} inputs: give an array of shape (steps, {n_u}) or a policy"
            )
        if steps is None:
            raise ValueError("steps is needed without inputs")
        return np.empty((steps + q - 1, 0)), steps
    values = np.asarray(inputs, dtype=float)
    values = values[:, None] if values.ndim == 1 and n_u == 1 else values
    known = values.shape[0] - q + 1 if values.ndim else 0
    if values.ndim != 2 or values.shape[1] != n_u or known < 1 or (steps is not None and steps != known):
        wanted = "steps" if steps is None else f"{steps + q - 1}"
        past = f", of which the first {q - 1} are past inputs" * (q > 1)
        raise ValueError(f"inputs must have shape ({wanted}, {n_u}){past}, got {np.shape(inputs)}")
    if not np.all(np.isfinite(values)):
        raise ValueError("inputs must be finite")
    return values, known


def _checked_policy(policy: Policy, n_u: int) -> Policy:
    def checked(k: int, x: FloatArray) -> FloatArray:
        u = np.asarray(policy(k, x), dtype=float)
        column = u.ndim == 1 and n_u == 1 and len(u) == len(x)
        if u.shape not in ((len(x), n_u), (n_u,)) and not column:
            raise ValueError(
                f"the policy must return inputs of shape ({len(x)}, {n_u}) or ({n_u},), got {u.shape}"
            )
        return np.broadcast_to(u[:, None] if column else u, (len(x), n_u))

    return checked
