"""How the columns of a table become inputs, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from ..columns import KINDS, UNITS, Column
from .archive import FormatError
from .nodes import Node, choice, entries

__all__ = ["columns_from", "columns_node"]


def columns_node(columns: list[Column]) -> Node:
    """Describe columns."""
    return [asdict(column) for column in columns]


def columns_from(node: Node, n_features: int) -> list[Column]:
    """The columns that a node describes, which must make ``n_features`` inputs."""
    if not isinstance(node, list):
        raise FormatError("columns must be a list")
    columns = [_column_from(item) for item in node]
    if sum(len(column.features) for column in columns) != n_features:
        raise FormatError(f"columns must make {n_features} inputs")
    return columns


def _column_from(node: Node) -> Column:
    name, kind, levels, origin, unit = entries(node, "name", "kind", "levels", "origin", "unit")
    right = isinstance(levels, list | tuple) and all(
        isinstance(text, str) for text in (name, origin, *levels)
    )
    kind = choice(kind, *KINDS)
    dated, listed = kind == "date", kind == "category"
    unit = choice(unit, *(UNITS if dated else ("",)))
    if not right or listed != bool(levels) or len(set(levels)) != len(levels) or dated != bool(origin):
        raise FormatError(f"model.json: {str(name)[:80]!r} is not a column of the kind {kind}")
    if dated:
        try:
            datetime.fromisoformat(origin)
        except ValueError:
            raise FormatError(f"model.json: {origin[:80]!r} is not a date") from None
    return Column(name, kind, tuple(levels), origin, unit)
