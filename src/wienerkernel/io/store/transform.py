"""Transforms of the response as JSON: a name from a table, and their numbers."""

from __future__ import annotations

from dataclasses import fields

from ...transform import BoxCox, Transform, YeoJohnson
from ...validation import SMALLEST, largest
from .nodes import Node, as_plain, choice, entries, number, of_kind

__all__ = ["transform_from", "transform_node"]

TRANSFORMS: dict[str, type[BoxCox | YeoJohnson]] = {"box_cox": BoxCox, "yeo_johnson": YeoJohnson}


def transform_node(transform: Transform | None) -> Node:
    """Describe a transform; TypeError for one that is made of functions."""
    kind = next((name for name, kind in TRANSFORMS.items() if kind is type(transform)), None)
    if kind is None:
        raise TypeError(
            f"transform {transform!r} cannot be saved: it is code, and a saved model holds numbers only. Use 'log', "
            "'box-cox' or 'yeo-johnson', or keep the data and the code and fit again"
        )
    names = [entry.name for entry in fields(TRANSFORMS[kind])]
    node = {"kind": kind, **{name: as_plain(getattr(transform, name), name) for name in names}}
    transform_from(node)  # a transform that could not be loaded is not saved
    return node


def transform_from(node: Node) -> Transform:
    """The transform that a node describes."""
    kind = of_kind(node, TRANSFORMS, "transform")
    _, lam, unit, *free = entries(node, "kind", *(entry.name for entry in fields(kind)))
    exponent, unit = number(lam, *kind.bounds), number(unit, SMALLEST, largest())
    return kind(exponent, unit, *(choice(value, True, False) for value in free))
