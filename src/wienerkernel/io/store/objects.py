"""Kernels and transforms as JSON: a name from a table, and the fields of the dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ...kernels import RBF, Constant, Kernel, Linear, Matern, Periodic, Power, Product, RationalQuadratic, Sum
from ...transform import BoxCox, Transform, YeoJohnson
from ...validation import SMALLEST, largest
from .nodes import Node, as_plain, choice, entries, from_plain, number, of_kind

__all__ = ["kernel_from", "kernel_node", "transform_from", "transform_node"]

KERNELS: dict[str, type[Kernel]] = {
    "constant": Constant,
    "linear": Linear,
    "matern": Matern,
    "periodic": Periodic,
    "power": Power,
    "product": Product,
    "rational_quadratic": RationalQuadratic,
    "rbf": RBF,
    "sum": Sum,
}
OPERANDS = ("k1", "k2", "kernel")
TRANSFORMS: dict[str, type[BoxCox | YeoJohnson]] = {"box_cox": BoxCox, "yeo_johnson": YeoJohnson}


def kernel_node(kernel: Kernel) -> Node:
    """Describe a kernel; TypeError for one that is code, such as a function or a feature map."""
    known = ", ".join(sorted(kind.__name__ for kind in KERNELS.values()))
    kind = _kind("kernel", kernel, KERNELS, f"a kernel made of {known}")
    values = ((entry.name, getattr(kernel, entry.name)) for entry in fields(kernel))
    return kind | {
        name: kernel_node(value) if name in OPERANDS else as_plain(value, name) for name, value in values
    }


def kernel_from(node: Node) -> Kernel:
    """The kernel that a node describes."""
    kind = of_kind(node, KERNELS, "kernel")
    names = [entry.name for entry in fields(kind)]
    _, *values = entries(node, "kind", *names)
    arguments: dict[str, Any] = {
        name: kernel_from(value) if name in OPERANDS else from_plain(value)
        for name, value in zip(names, values, strict=True)
    }
    return kind(**arguments)


def transform_node(transform: Transform | None) -> Node:
    """Describe a transform; TypeError for one that is made of functions."""
    kind = _kind("transform", transform, TRANSFORMS, "'log', 'box-cox' or 'yeo-johnson'")
    names = [entry.name for entry in fields(TRANSFORMS[kind["kind"]])]
    node = kind | {name: as_plain(getattr(transform, name), name) for name in names}
    transform_from(node)  # a transform that could not be loaded is not saved
    return node


def transform_from(node: Node) -> Transform:
    """The transform that a node describes."""
    kind = of_kind(node, TRANSFORMS, "transform")
    _, lam, unit, *free = entries(node, "kind", *(entry.name for entry in fields(kind)))
    exponent, unit = number(lam, *kind.bounds), number(unit, SMALLEST, largest())
    return kind(exponent, unit, *(choice(value, True, False) for value in free))


def _kind(what: str, value: Any, table: Mapping[str, type], instead: str) -> dict[str, Node]:
    """The name of a class in a table."""
    for name, kind in table.items():
        if type(value) is kind:
            return {"kind": name}
    raise TypeError(
        f"{what} {value!r} cannot be saved: it is code, and a saved model holds numbers only. Use {instead}, or keep the "
        "data and the code and fit again"
    )
