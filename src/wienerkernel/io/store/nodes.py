"""The leaves of ``model.json``: numbers, names, and arrays that are members of their own."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..._typing import Array
from ...backend import arrays
from .archive import Archive, FormatError

__all__ = ["Node", "Reader", "Writer", "as_plain", "choice", "entries", "from_plain", "integer", "number"]

Node: TypeAlias = Any
"""What JSON has: None, bool, int, float, str, list, dict."""

LARGEST = sys.float_info.max


def as_plain(value: Any, what: str) -> Node:
    """A number, a text, None, or a sequence of them, as JSON has them; infinities as texts.

    Parameters
    ----------
    value : object
    what : str
        Its name in the message if it is something else.

    Returns
    -------
    Node
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, tuple | list):
        return [as_plain(entry, what) for entry in value]
    number = np.asarray(value).item() if np.size(value) == 1 else value
    if not isinstance(number, int | float) or math.isnan(number):
        raise TypeError(f"{what} cannot be saved: expected a number, got {value!r}")
    return number if math.isfinite(number) else "inf" if number > 0 else "-inf"


def from_plain(node: Node) -> Any:
    """The value that `as_plain` made a node of; sequences become tuples.

    Parameters
    ----------
    node : Node

    Returns
    -------
    None, bool, int, float, str or tuple
    """
    if isinstance(node, list):
        return tuple(from_plain(entry) for entry in node)
    if isinstance(node, dict):
        raise FormatError(f"expected a number, a text or a list, got the entries {sorted(node)[:8]}")
    if isinstance(node, int | float) and not abs(node) <= LARGEST:
        raise FormatError("model.json: a number is out of range")
    return {"inf": math.inf, "-inf": -math.inf}.get(node, node) if isinstance(node, str) else node


def entries(node: Node, *names: str) -> tuple[Any, ...]:
    """The entries of a JSON object that must have these and no others.

    Parameters
    ----------
    node : Node
    *names : str

    Returns
    -------
    tuple
        In the order of the names.
    """
    if not isinstance(node, dict) or set(node) != set(names):
        got = sorted(node)[:12] if isinstance(node, dict) else type(node).__name__
        raise FormatError(f"model.json: expected the entries {list(names)}, got {got}")
    return tuple(node[name] for name in names)


def number(node: Node, low: float = -LARGEST, high: float = LARGEST) -> float:
    """A number between two bounds.

    Parameters
    ----------
    node : Node
    low, high : float
        Included; they are finite, so that infinities are numbers only where a bound is.

    Returns
    -------
    float
    """
    value = from_plain(node)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise FormatError(f"model.json: expected a number from {low:.2g} to {high:.2g}, got {str(node)[:80]}")
    return float(value)


def integer(node: Node, low: int, high: int) -> int:
    """An integer between two bounds, which are included.

    Parameters
    ----------
    node : Node
    low, high : int

    Returns
    -------
    int
    """
    if isinstance(node, bool) or not isinstance(node, int) or not low <= node <= high:
        raise FormatError(f"model.json: expected an integer from {low} to {high}, got {str(node)[:80]}")
    return node


def choice(node: Node, *allowed: Node) -> Any:
    """One of some texts, or of None, true and false.

    Parameters
    ----------
    node : Node
    *allowed : str, bool or None

    Returns
    -------
    str, bool or None
    """
    if not any(type(node) is type(value) and node == value for value in allowed):
        raise FormatError(f"model.json: expected one of {list(allowed)}, got {str(node)[:80]!r}")
    return node


class Writer:
    """Collects the arrays of a model while its tree of nodes is made.

    Attributes
    ----------
    arrays : dict of str to ndarray
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def array(self, name: str, values: Array) -> Node:
        """Keep an array of finite numbers under a name; the node that stands for it."""
        numbers = arrays.as_numpy(values)
        if not np.all(np.isfinite(numbers)):
            raise ValueError(
                f"the model cannot be saved: {name} has entries that are not finite, so its predictions are not either"
            )
        single = numbers.dtype == np.float32
        numbers = numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64, copy=False)
        # Sums depend on the order of memory in their last bits, so the order is part of the model.
        transposed = (
            numbers.ndim == 2 and 0 < numbers.strides[0] < numbers.strides[1] and 1 not in numbers.shape
        )
        self.arrays[name] = numbers.T if transposed else numbers
        flags = {"transposed": transposed, "single": single}
        return {"array": name, **{flag: True for flag, is_set in flags.items() if is_set}}


class Reader:
    """Turns nodes back into arrays, checking kind, shape and values.

    Parameters
    ----------
    archive : Archive
    """

    def __init__(self, archive: Archive) -> None:
        self.archive = archive

    def array(self, node: Node, shape: Sequence[int | None] | None, kind: str = "f") -> Array:
        """The array that a node stands for.

        Parameters
        ----------
        node : Node
        shape : sequence of int or None, or None
            None where any extent is fine, or any shape.
        kind : {"f", "i"}, default="f"

        Returns
        -------
        ndarray
        """
        flags = [flag for flag in ("transposed", "single") if isinstance(node, dict) and flag in node]
        name, *_ = entries(node, "array", *flags)
        if not isinstance(name, str):
            raise FormatError(f"model.json: {str(name)[:80]!r} is not the name of an array")
        values = self.archive.array(name)
        values = values.T if "transposed" in flags else values
        if shape is not None and not _fits(values.shape, shape):
            expected = ", ".join("any" if extent is None else str(extent) for extent in shape)
            raise FormatError(f"{name} has shape {values.shape}, expected ({expected})")
        if values.dtype.kind != kind:
            raise FormatError(f"{name} holds numbers of the wrong kind, {values.dtype}")
        if not np.all(np.isfinite(values)):
            raise FormatError(f"{name} has entries that are not finite")
        return values.astype(np.float32) if "single" in flags else values


def _fits(actual: tuple[int, ...], expected: Sequence[int | None]) -> bool:
    pairs = zip(actual, expected, strict=False)
    return len(actual) == len(expected) and all(there in (None, here) for here, there in pairs)
