"""The constructor parameters of the estimator, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels import as_kernel
from ...noise import Noise, as_noise
from ...noise.family import Family
from ...smoother.trend import TRENDS
from ...tuning import METHODS
from ...validation import PRECISIONS, SMALLEST
from .archive import FormatError
from .kernels import kernel_from, kernel_node
from .nodes import Node, Reader, Writer, as_plain, choice, entries, integer, number
from .noise import family_from, family_node, noise_from, noise_node

if TYPE_CHECKING:
    from ...regressor import WienerKernelRegressor

__all__ = ["parameters_from", "parameters_node"]


def parameters_node(model: WienerKernelRegressor, writer: Writer) -> Node:
    """Describe the parameters of a fitted model."""
    given = model.get_params(deep=False)
    kernel, noise = given.pop("kernel"), given.pop("noise")
    if not isinstance(given["random_state"], int | np.integer | None):
        given["random_state"] = None
    return {
        "kernel": kernel if isinstance(kernel, str | None) else kernel_node(as_kernel(kernel)),
        "noise": _noise_node(noise, model.noise_, writer),
        **{name: PARAMETERS[name](as_plain(value, name)) for name, value in given.items()},
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


def parameters_from(node: Node, fitted: Noise, reader: Reader) -> dict[str, Any]:
    """The parameters that a node describes, ``fitted`` being the law of the fitted model."""
    kernel, noise, *rest = entries(node, "kernel", "noise", *PARAMETERS)
    if not isinstance(kernel, dict | str | None) or not isinstance(noise, dict | str | None):
        raise FormatError("model.json: kernel and noise must be a name, entries or null")
    return {
        "kernel": kernel_from(kernel) if isinstance(kernel, dict) else kernel,
        "noise": _noise_from(noise, fitted, reader) if isinstance(noise, dict) else noise,
        **{name: check(value) for (name, check), value in zip(PARAMETERS.items(), rest, strict=True)},
    }


def _noise_from(node: dict[str, Node], fitted: Noise, reader: Reader) -> Noise | Family:
    if node.get("kind") == "fitted":
        return fitted
    return family_from(node) if node.get("kind") == "family" else noise_from(node, reader)


PARAMETERS: dict[str, Callable[[Node], Any]] = {
    "ridge": lambda node: None if node is None else number(node, low=SMALLEST**2),
    "trend": lambda node: choice(node, *TRENDS),
    "tuning": lambda node: choice(node, None, *METHODS),
    "n_restarts": lambda node: integer(node, 0, 2**31),
    "random_state": lambda node: None if node is None else integer(node, 0, 2**128),
    "dtype": lambda node: choice(node, *PRECISIONS),
}
"""How the parameters other than kernel and noise are checked, on both sides."""
