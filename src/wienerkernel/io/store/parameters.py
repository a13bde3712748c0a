"""The constructor parameters of the estimator, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels import as_kernel
from ...losses.fit import INFERENCES
from ...noise import Noise, as_noise
from ...noise.family import Family
from ...noise.level import LEVELS, Level
from ...posterior import SeparateOutputs
from ...smoother.trend import TRENDS
from ...transform import NAMES, as_transform
from ...tuning import METHODS
from ...validation import PRECISIONS, SMALLEST
from .approximate import approximation_from, approximation_node
from .archive import FormatError
from .level import level_from, level_node
from .nodes import Node, Reader, Writer, as_plain, choice, entries, integer, number
from .noise import family_from, family_node, noise_from, noise_node
from .nonlinear import loss_from, loss_node
from .objects import kernel_from, kernel_node, transform_from, transform_node

if TYPE_CHECKING:
    from ...regressor import WienerKernelRegressor

__all__ = ["parameters_from", "parameters_node"]


def parameters_node(model: WienerKernelRegressor, writer: Writer) -> Node:
    """Describe the parameters of a fitted model."""
    given, posterior = model.get_params(deep=False), model.posterior_
    posterior = posterior.outputs[0] if isinstance(posterior, SeparateOutputs) else posterior
    kernel, noise, level, transform = (given.pop(name) for name in OBJECTS)
    approximation = approximation_node(given.pop("approximation"), writer, "given_actions")
    loss = given.pop("loss")
    if not isinstance(given["random_state"], int | np.integer | None):
        given["random_state"] = None
    return {
        "kernel": kernel if isinstance(kernel, str | None) else kernel_node(as_kernel(kernel)),
        "noise": _noise_node(noise, posterior.noise, writer),
        "noise_level": _level_node(level, posterior.level, writer),
        "transform": _transform_node(transform),
        **({} if isinstance(loss, str) and loss == "squared" else {"loss": loss_node(loss)}),
        **({} if given["inference"] is None else {"inference": given["inference"]}),
        **({} if approximation is None else {"approximation": approximation}),
        **{name: check(as_plain(given[name], name)) for name, check in PARAMETERS.items()},
    }


def _noise_node(noise: Any, fitted: Noise, writer: Writer) -> Node:
    """The noise as the user gave it: nothing, a string, a family with free parameters, or a law."""
    if noise is None or isinstance(noise, str):
        return noise
    if noise is fitted:
        return {"kind": "fitted"}
    if hasattr(noise, "freeze") or isinstance(noise, Family):
        return family_node(noise if isinstance(noise, Family) else Family(noise))
    return noise_node(as_noise(noise), writer, "given_noise")


def _level_node(level: Any, fitted: Any, writer: Writer) -> Node:
    """The noise level as the user gave it: nothing, a name, or a level."""
    if level is None or isinstance(level, str):
        return choice(level, None, *LEVELS)
    return {"kind": "fitted"} if level is fitted else level_node(level, writer, "given_level")


def _transform_node(transform: Any) -> Node:
    """The transform as the user gave it: nothing, a name, or a transform."""
    if transform is None or isinstance(transform, str):
        return choice(transform, None, *NAMES)
    return transform_node(as_transform(transform))


def parameters_from(
    node: Node, fitted: Noise, level: Level | None, n_features: int, reader: Reader
) -> dict[str, Any]:
    """The parameters that a node describes, ``fitted`` and ``level`` being those of the fitted model."""
    node = dict(node) if isinstance(node, dict) else {}
    approximation = approximation_from(node.pop("approximation", None), reader)
    loss = loss_from(node.pop("loss", "squared"))
    inference = choice(node.pop("inference", None), *INFERENCES)
    kernel, noise, given_level, transform, *rest = entries(node, *OBJECTS, *PARAMETERS)
    if not isinstance(kernel, dict | str | None) or not isinstance(noise, dict | str | None):
        raise FormatError("model.json: kernel and noise must be a name, entries or null")
    return {
        "kernel": kernel_from(kernel) if isinstance(kernel, dict) else kernel,
        "noise": _noise_from(noise, fitted, reader) if isinstance(noise, dict) else noise,
        "noise_level": _level_from(given_level, level, n_features, reader),
        "transform": transform_from(transform)
        if isinstance(transform, dict)
        else choice(transform, None, *NAMES),
        "approximation": approximation,
        "loss": loss,
        "inference": inference,
        **{name: check(value) for (name, check), value in zip(PARAMETERS.items(), rest, strict=True)},
    }


def _noise_from(node: dict[str, Node], fitted: Noise, reader: Reader) -> Noise | Family:
    if node.get("kind") == "fitted":
        return fitted
    return family_from(node) if node.get("kind") == "family" else noise_from(node, reader)


def _level_from(node: Node, fitted: Level | None, n_features: int, reader: Reader) -> Level | str | None:
    if not isinstance(node, dict):
        return choice(node, None, *LEVELS)  # type: ignore[no-any-return]
    return fitted if node == {"kind": "fitted"} else level_from(node, n_features, reader)


OBJECTS = ("kernel", "noise", "noise_level", "transform")

PARAMETERS: dict[str, Callable[[Node], Any]] = {
    "ridge": lambda node: None if node is None else number(node, low=SMALLEST**2),
    "trend": lambda node: choice(node, *TRENDS),
    "tuning": lambda node: choice(node, None, *METHODS),
    "n_restarts": lambda node: integer(node, 0, 2**31),
    "random_state": lambda node: None if node is None else integer(node, 0, 2**128),
    "dtype": lambda node: choice(node, *PRECISIONS),
}
"""How the parameters that are no objects are checked, on both sides."""
