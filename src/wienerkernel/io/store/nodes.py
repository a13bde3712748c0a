"""Objects as nodes of ``model.json`` and back, by one description for both directions.

A `Record` describes a type of objects: the entries of its node, and what each must be. Arrays are separate members of
the file, named after their place in the tree.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Any, TypeAlias

import numpy as np

from ..._typing import Array as AnyArray
from ..._typing import FloatArray
from ...backend.arrays import as_numpy
from ...validation import check_size
from .archive import Archive, FormatError

__all__ = ["COUNT", "FLAG", "REAL", "Array", "Node", "Positive", "Reader", "Record", "Writer"]
__all__ += ["check_shape", "choice", "each", "number", "packed", "unpacked", "wrong"]

Node: TypeAlias = Any
"""What JSON has: None, bool, int, float, str, list, dict."""
Check: TypeAlias = Callable[[Any, str], None]
"""Raises FormatError for a value that is not right, in the entry of this name."""

LARGEST = sys.float_info.max
DEEPEST = 16
"""Levels of laws made of laws."""


def wrong(name: str, what: str) -> FormatError:
    """An error in the entry ``name`` of the tree."""
    return FormatError(": ".join(filter(None, ("model.json", name[:200], what))))


def _within(name: str, entry: str | int) -> str:
    return f"{name}.{entry}".removeprefix(".")


# ---- what an entry must be


def number(
    low: float = -LARGEST, high: float = LARGEST, kind: Any = int | float, optional: bool = False
) -> Check:
    """A number in [low, high], infinite only where a bound is; perhaps an integer, or None."""
    expected = f"an integer from {low} to {high}" if kind is int else f"a number from {low:.2g} to {high:.2g}"

    def check(value: Any, name: str) -> None:
        right = isinstance(value, kind) and not isinstance(value, bool) and low <= value <= high
        if not right and not (optional and value is None):
            raise wrong(name, f"expected {expected}, got {str(value)[:80]}")

    return check


def choice(*allowed: Node, types: Any = ()) -> Check:
    """One of some strings, None, true and false, or an object of some types."""

    def check(value: Any, name: str) -> None:
        same = (type(value) is type(known) and value == known for known in allowed)
        if not isinstance(value, types) and not any(same):
            raise wrong(name, f"expected one of {list(allowed)}, got {str(value)[:80]!r}")

    return check


def each(of: Any, least: int = 0, most: int = 2**20, kind: Any = list | tuple) -> Check:
    """So many values, in a list or, if ``kind`` is dict, by name; or None if it is one of the kinds."""

    def check(value: Any, name: str) -> None:
        if value is None and isinstance(value, kind):
            return
        if not isinstance(value, kind) or not least <= len(value) <= most:
            raise wrong(
                name, f"must be a list of at least {least} and at most {most} entries, got {str(value)[:80]}"
            )
        for part in value.values() if isinstance(value, dict) else value:
            _as_check(of)(part, name)

    return check


def _as_check(of: Any) -> Any:
    """A check; for a type, that a value is of it; for a text, an array with extents of these names."""
    if isinstance(of, str):
        return Array(of)
    if not isinstance(of, type | UnionType):
        return of

    def check(value: Any, name: str) -> None:
        if not isinstance(value, of):
            raise wrong(name, f"cannot be {str(value)[:80]!r}")

    return check


FLAG, COUNT, REAL = choice(True, False), number(1, 2**53, int), number(-math.inf, math.inf)


class Array:
    """Finite numbers of type "f" or "i"; ``shape`` names the extents, of which those of one name are equal, "_" is any.

    The numbers can be squared if they are ``bounded``; an extent is zero only if the array may be ``empty``, and there is
    an array unless it is ``optional``.
    """

    def __init__(
        self, shape: str, dtype: str = "f", bounded: bool = True, empty: bool = False, optional: bool = False
    ) -> None:
        self.shape, self.dtype, self.optional = shape.split(), dtype, optional
        self.bounded, self.empty = bounded, empty

    def node(self, value: Any, writer: Writer, name: str) -> Node:
        """Hand an array to the writer; the node that stands for it."""
        if value is None and self.optional:
            return None
        name, numbers = name.lower(), as_numpy(value)
        if not np.all(np.isfinite(numbers)):
            raise ValueError(f"the model cannot be saved: {name} has entries that are not finite")
        single = numbers.dtype == np.float32
        numbers = numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64, copy=False)
        # The last bits of a sum depend on the memory order, so the order is part of the model.
        transposed = (
            numbers.ndim == 2 and 0 < numbers.strides[0] < numbers.strides[1] and 1 not in numbers.shape
        )
        writer.arrays[name] = numbers.T if transposed else numbers
        flags = {"transposed": transposed, "single": single}
        return {"array": name, **{flag: True for flag, is_set in flags.items() if is_set}}

    def value(self, node: Node, reader: Reader, name: str) -> Any:
        """The array that a node stands for."""
        if node is None and self.optional:
            return None
        flags = [flag for flag in ("transposed", "single") if isinstance(node, dict) and flag in node]
        member, *_ = _entries(node, ["array", *flags], name)
        values = reader.archive.array(str(member))
        values = values.T if "transposed" in flags else values
        if values.dtype.kind != self.dtype or not np.all(np.isfinite(values)):
            raise FormatError(
                f"{name} has entries that are not finite, or the wrong data type, {values.dtype}"
            )
        if 0 in values.shape and not self.empty:
            raise FormatError(f"{name} has shape {values.shape} and no entries")
        if self.dtype == "i":
            values = values.astype(np.intp, copy=False)
        elif "single" in flags:
            values = values.astype(np.float32)
        self.check(values, reader.extents, name)
        return values

    def check(self, values: AnyArray, extents: dict[str, int], name: str) -> None:
        """Raise FormatError for numbers of another shape or size; extents of new names become known."""
        check_shape(name, values, *(extents.get(extent, extent) for extent in self.shape))
        extents.update((key, n) for key, n in zip(self.shape, values.shape, strict=True) if key != "_")
        if self.bounded:
            check_size(name, values)


class Positive(Array):
    """Numbers (n,) from ``smallest`` to its reciprocal, or perhaps a matrix (n, n) with such a number in each row."""

    def __init__(self, extent: str, smallest: float, matrix: bool = False) -> None:
        super().__init__(extent, bounded=False)
        self.smallest, self.matrix = smallest, matrix

    def check(self, values: AnyArray, extents: dict[str, int], name: str) -> None:
        """Raise FormatError for numbers of another shape or size."""
        if self.matrix and values.ndim == 2:
            check_shape(name, values, *(extents[self.shape[0]],) * 2)
            sizes = np.max(np.abs(values), axis=1)
        else:
            super().check(values, extents, name)
            sizes = values
        if not np.all((sizes >= self.smallest) & (sizes <= 1 / self.smallest)):
            raise FormatError(f"{name} must be positive, from {self.smallest:g} to {1 / self.smallest:g}")


def check_shape(name: str, values: AnyArray, *expected: str | int) -> None:
    """Raise FormatError for an array of another shape; a string stands for any extent."""
    pairs = zip(values.shape, expected, strict=False)
    if values.ndim != len(expected) or any(isinstance(n, int) and n != here for here, n in pairs):
        raise FormatError(f"{name} has shape {values.shape}, expected ({', '.join(map(str, expected))})")


def packed(factor: AnyArray) -> FloatArray:
    """Lower triangle of a matrix (n, n), row by row, (n (n + 1) / 2,)."""
    # row by row: a mask of the triangle takes longer
    return np.concatenate([np.empty(0, factor.dtype), *(row[: k + 1] for k, row in enumerate(factor))])


def unpacked(triangle: FloatArray, n: int, width: int | None = None, name: str = "factor") -> FloatArray:
    """The matrix of a packed lower triangle, zero elsewhere, in a square of ``width`` rows."""
    check_shape(name, triangle, n * (n + 1) // 2)
    memory = np.zeros((width or n,) * 2, dtype=triangle.dtype)
    for row in range(n):
        start = row * (row + 1) // 2
        memory[row, : row + 1] = triangle[start : start + row + 1]
    return memory


# ---- objects


@dataclass(frozen=True)
class Writer:
    """Makes nodes of objects, and collects their arrays; inside of ``depth`` noise laws."""

    records: Iterable[Record]
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    depth: int = 0

    def node(self, value: Any, name: str) -> Node:
        """Describe an object, a number, a string, None, or several of them."""
        if value is None or isinstance(value, str | bool):
            return value
        for record in self.records:
            if type(value) is record.type:
                return record.node(value, self, name)
        if isinstance(value, tuple | list):
            return [self.node(part, _within(name, k)) for k, part in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.node(part, _within(name, key)) for key, part in value.items()}
        value = _plain(value)
        if not isinstance(value, int | float) or math.isnan(value):
            raise _cannot_be_saved(value, name)
        return value if math.isfinite(value) else {"infinite": value > 0}


def _plain(value: Any) -> Any:
    """Scalars of NumPy, also as arrays, as numbers of Python."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.size == 1 else value


ADVICE = {
    "kernel": "a kernel made of Constant, Linear, Matern, Periodic, Power, Product, RBF, RationalQuadratic, Sum",
    "transform": "'log', 'box-cox' or 'yeo-johnson'",
    "noise_level": "noise_level='input'",
    "noise": "a frozen law of scipy.stats, residuals, a Mixture or an Expansion",
}
"""What users can replace code by."""


def _cannot_be_saved(value: Any, name: str) -> TypeError:
    if name.endswith("smoother"):
        return TypeError("this model cannot be saved: fit it with dtype='float64' or 'float32'")
    what = next((what for what in ADVICE if what.removeprefix("noise_") in name), None)
    if what is None or isinstance(value, int | float | np.ndarray):
        return TypeError(f"{name} cannot be saved: expected a number, got {value!r}")
    return TypeError(
        f"{what} {value!r} cannot be saved: it is code ({type(value).__name__}), and a saved model holds numbers only. Use "
        f"{ADVICE[what]}, or keep the data and the code and fit again"
    )


@dataclass(frozen=True)
class Reader:
    """Makes objects of nodes; ``extents`` are those of arrays by name, ``depth`` is the number of laws around."""

    records: Iterable[Record]
    archive: Archive
    extents: dict[str, int] = field(default_factory=dict)
    depth: int = 0

    def value(self, node: Node, name: str) -> Any:
        """What `Writer.node` has described; lists become tuples, of which each part has its own extents."""
        if isinstance(node, list):
            return tuple(
                replace(self, extents={}).value(part, _within(name, k)) for k, part in enumerate(node)
            )
        if isinstance(node, int | float) and not abs(node) <= LARGEST:
            raise wrong(name, "a number is out of range")
        if not isinstance(node, dict):
            return node
        if "infinite" in node:
            return math.inf if _entries(node, ["infinite"], name)[0] else -math.inf
        if "kind" not in node:
            return {key: self.value(part, _within(name, key)) for key, part in node.items()}
        for record in self.records:
            if record.kind == node["kind"]:
                return record.value(node, self, name)
        raise wrong(name, f"cannot be of the kind {str(node['kind'])[:80]!r}")


class Record:
    """A type of objects, with what the entries of its node must be.

    Each of the ``entries`` has a check, a type, or the extents of an array. They are the attributes of these names, unless
    ``take`` gives others, and the arguments of the type, unless ``make`` makes the object, whose parts ``check`` compares.
    A ``law`` must not be nested too deeply in others.
    """

    def __init__(
        self,
        type_: type,
        entries: Mapping[str, Any],
        *,
        take: Callable[[Any], Mapping[str, Any]] = lambda _: {},
        make: Callable[..., Any] | None = None,
        check: Callable[[Any], None] = lambda _: None,
        law: bool = False,
    ) -> None:
        self.type, self.take, self.make, self.check = type_, take, make or type_, check
        self.kind = type_.__name__
        self.entries = {name: _as_check(of) for name, of in entries.items()}
        self.law = law

    def node(self, value: Any, writer: Writer, name: str) -> dict[str, Node]:
        """Describe an object; what could not be loaded is not saved."""
        if writer.depth > DEEPEST:
            raise ValueError(f"the noise cannot be saved: it is nested more than {DEEPEST} deep")
        writer = replace(writer, depth=writer.depth + self.law)
        taken, node = self.take(value), {"kind": self.kind}
        for entry, expected in self.entries.items():
            part, where = taken[entry] if entry in taken else getattr(value, entry), _within(name, entry)
            if isinstance(expected, Array):
                node[entry] = expected.node(part, writer, where)
            else:
                node[entry] = writer.node(part, where)
                expected(_plain(part), where)
        return node

    def value(self, node: Node, reader: Reader, name: str) -> Any:
        """The object that a node describes."""
        if reader.depth > DEEPEST:
            raise FormatError(f"the noise is nested more than {DEEPEST} deep")
        if self.law:
            reader = replace(reader, extents={}, depth=reader.depth + 1)
        _, *parts = _entries(node, ["kind", *self.entries], name)
        values = {}
        for (entry, expected), part in zip(self.entries.items(), parts, strict=True):
            where = _within(name, entry)
            if isinstance(expected, Array):
                values[entry] = expected.value(part, reader, where)
            else:
                values[entry] = reader.value(part, where)
                expected(values[entry], where)
        made = self.make(**values)
        self.check(made)
        return made


def _entries(node: Node, names: Iterable[str], where: str) -> list[Node]:
    """The values of a JSON object that must have these names and no others, in this order."""
    names = list(names)
    if not isinstance(node, dict) or set(node) != set(names):
        got = sorted(node)[:12] if isinstance(node, dict) else type(node).__name__
        raise wrong(where, f"expected the entries {names}, got {got}")
    return [node[name] for name in names]
