"""The leaves of ``model.json``: numbers, names, and arrays, which are separate members."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..._typing import Array
from ...backend import arrays
from .archive import Archive, FormatError

__all__ = [
    "Node",
    "Reader",
    "Writer",
    "as_plain",
    "choice",
    "entries",
    "from_plain",
    "integer",
    "items",
    "number",
    "of_kind",
]

Node: TypeAlias = Any
"""What JSON has: None, bool, int, float, str, list, dict."""

LARGEST = sys.float_info.max
T = TypeVar("T")


def as_plain(value: Any, what: str) -> Node:
    """A number, a string, None, or a sequence of them as JSON; ``what`` names the value in the error message."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, tuple | list):
        return [as_plain(entry, what) for entry in value]
    number = np.asarray(value).item() if np.size(value) == 1 else value
    if not isinstance(number, int | float) or math.isnan(number):
        raise TypeError(f"{what} cannot be saved: expected a number, got {value!r}")
    return number if math.isfinite(number) else "inf" if number > 0 else "-inf"


def from_plain(node: Node) -> Any:
    """The inverse of `as_plain`; sequences become tuples."""
    if isinstance(node, list):
        return tuple(from_plain(entry) for entry in node)
    if isinstance(node, dict):
        raise FormatError(f"expected a number, a string or a list, got the entries {sorted(node)[:8]}")
    if isinstance(node, int | float) and not abs(node) <= LARGEST:
        raise FormatError("model.json: a number is out of range")
    return {"inf": math.inf, "-inf": -math.inf}.get(node, node) if isinstance(node, str) else node


def entries(node: Node, *names: str) -> tuple[Any, ...]:
    """The values of a JSON object that must have these names and no others, in this order."""
    if not isinstance(node, dict) or set(node) != set(names):
        got = sorted(node)[:12] if isinstance(node, dict) else type(node).__name__
        raise FormatError(f"model.json: expected the entries {list(names)}, got {got}")
    return tuple(node[name] for name in names)


def items(node: Node) -> list[tuple[str, Node]]:
    """Names and values of a JSON object with any names."""
    if not isinstance(node, dict):
        raise FormatError(f"model.json: expected named entries, got {type(node).__name__}")
    return list(node.items())


def of_kind(node: Node, table: Mapping[str, T], what: str) -> T:
    """The entry of a table that the ``kind`` of a JSON object names."""
    kind = str(node.get("kind") if isinstance(node, dict) else node)
    if kind not in table:
        raise FormatError(f"model.json: {kind[:80]!r} is not a {what} that can be saved")
    return table[kind]


def number(node: Node, low: float = -LARGEST, high: float = LARGEST) -> float:
    """A number in [low, high]; infinite only where a bound is."""
    value = from_plain(node)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise FormatError(f"model.json: expected a number from {low:.2g} to {high:.2g}, got {str(node)[:80]}")
    return float(value)


def integer(node: Node, low: int, high: int) -> int:
    """An integer in [low, high]."""
    if isinstance(node, bool) or not isinstance(node, int) or not low <= node <= high:
        raise FormatError(f"model.json: expected an integer from {low} to {high}, got {str(node)[:80]}")
    return node


def choice(node: Node, *allowed: Node) -> Any:
    """One of some strings, or of None, true and false."""
    if not any(type(node) is type(value) and node == value for value in allowed):
        raise FormatError(f"model.json: expected one of {list(allowed)}, got {str(node)[:80]!r}")
    return node


class Writer:
    """Collects the arrays of a model while its tree of nodes is made."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.prefix = ""

    def array(self, name: str, values: Array) -> Node:
        """Keep an array of finite numbers under a name, after the prefix; the node that stands for it."""
        name = self.prefix + name
        numbers = arrays.as_numpy(values)
        if not np.all(np.isfinite(numbers)):
            raise ValueError(f"the model cannot be saved: {name} has entries that are not finite")
        single = numbers.dtype == np.float32
        numbers = numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64, copy=False)
        # The last bits of a sum depend on the memory order, so the order is part of the model.
        transposed = (
            numbers.ndim == 2 and 0 < numbers.strides[0] < numbers.strides[1] and 1 not in numbers.shape
        )
        self.arrays[name] = numbers.T if transposed else numbers
        flags = {"transposed": transposed, "single": single}
        return {"array": name, **{flag: True for flag, is_set in flags.items() if is_set}}


class Reader:
    """Turns nodes back into arrays and checks their type, shape and values."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive

    def array(self, node: Node, shape: Sequence[int | None] | None, kind: str = "f") -> Array:
        """The array of a node, of kind "f" or "i"; None stands for any extent or any shape."""
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
            raise FormatError(f"{name} has the wrong data type, {values.dtype}")
        if not np.all(np.isfinite(values)):
            raise FormatError(f"{name} has entries that are not finite")
        return values.astype(np.float32) if "single" in flags else values


def _fits(actual: tuple[int, ...], expected: Sequence[int | None]) -> bool:
    pairs = zip(actual, expected, strict=False)
    return len(actual) == len(expected) and all(there in (None, here) for here, there in pairs)
