"""Dynamic systems: what the models do not know, and the models themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dynamics import Dynamics
from ...noise import Noise
from ...validation import check_size
from .archive import FormatError
from .nodes import Node, Reader, Writer, choice, entries, integer
from .noise import noise_from, noise_node

__all__ = ["system_from", "system_node"]

MOST_LAGS, MOST_STEPS = 2**20, 2**31
ENTRIES = (
    "learns",
    "process_noise",
    "lags",
    "lags_transformed",
    "state_names",
    "input_names",
    "origin",
    "horizon",
    "models",
)


def system_node(system: Dynamics, writer: Writer, model_node: Callable[[Any, Writer], Node]) -> Node:
    """Describe a system; ``model_node`` describes its models."""
    origin: Node = None
    if system.origin is not None:
        names = ("origin_states", "origin_inputs")
        origin = [writer.array(name, values) for name, values in zip(names, system.origin, strict=True)]
    process: Node = None
    if not system.parts[0].own:
        laws = [law for part in system.parts for law in part.laws]
        process = [noise_node(law, writer, f"process{k}") for k, law in enumerate(laws)]
    models = []
    for k, model in enumerate(system.models):
        writer.prefix = f"model{k}."
        models.append(model_node(model, writer))
    found = (
        system.learns,
        process,
        list(system.lags),
        system.lags_transformed,
        [str(name) for name in system.state_names],
        [str(name) for name in system.input_names],
        origin,
        system.horizon,
        models,
    )
    return dict(zip(ENTRIES, found, strict=True))


def system_from(node: Node, reader: Reader, model_from: Callable[[Any, Reader], Any]) -> Dynamics:
    """The system that a node describes."""
    learns, process, lags, transformed, names, drivers, origin, horizon, models = entries(node, *ENTRIES)
    lists = (
        ("lags", lags, int),
        ("state_names", names, str),
        ("input_names", drivers, str),
        ("models", models, dict),
    )
    for what, value, kind in lists:
        if not isinstance(value, list) or not all(isinstance(entry, kind) for entry in value):
            raise FormatError(f"model.json: {what} is not what a system has")
    noise: list[Noise] | bool | None = None
    if process is not None:
        if not isinstance(process, list):
            raise FormatError("model.json: process_noise must be a list of laws, or null")
        noise = [noise_from(law, reader) for law in process] or False
    fitted = [model_from(model, reader) for model in models]
    system = Dynamics(
        fitted if len(fitted) != 1 else fitted[0],
        learns=choice(learns, "state", "increment"),
        process_noise=noise,
        lags=tuple(integer(lag, 1, MOST_LAGS) for lag in lags),  # type: ignore[arg-type]
        lags_transformed=choice(transformed, True, False),
        state_names=names,
        input_names=drivers,
    )
    system.horizon = integer(horizon, 1, MOST_STEPS)
    if origin is not None:
        if not isinstance(origin, list) or len(origin) != 2:
            raise FormatError("model.json: origin must be states and inputs")
        states = reader.array(origin[0], (None, system.n_states))
        inputs = reader.array(origin[1], (None, system.n_inputs))
        if len(states) < system.lags[0] or len(inputs) < system.lags[1]:
            raise FormatError("model.json: origin has fewer states or inputs than the lags need")
        check_size("origin", states)
        check_size("origin", inputs)
        system.origin = states, inputs
    return system
