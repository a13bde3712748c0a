"""Kernels as JSON: a name from a table, and the hyperparameters with their bounds."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ...kernels import RBF, Constant, Kernel, Linear, Matern, Periodic, Power, Product, RationalQuadratic, Sum
from .nodes import Node, as_plain, entries, from_plain, of_kind

__all__ = ["kernel_from", "kernel_node"]

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
NAMES = {kind: name for name, kind in KERNELS.items()}
OPERANDS = ("k1", "k2", "kernel")


def kernel_node(kernel: Kernel) -> Node:
    """Describe a kernel; TypeError for one that is code, such as a function or a feature map."""
    if type(kernel) not in NAMES:
        known = ", ".join(sorted(kind.__name__ for kind in NAMES))
        raise TypeError(
            f"kernel {kernel!r} cannot be saved: it is code, and a saved model holds numbers only. Use a kernel made of "
            f"{known}, or keep the data and the code and fit again"
        )
    node: dict[str, Node] = {"kind": NAMES[type(kernel)]}
    for entry in fields(kernel):
        value = getattr(kernel, entry.name)
        node[entry.name] = kernel_node(value) if entry.name in OPERANDS else as_plain(value, entry.name)
    return node


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
