"""Tables and figures that the experiments write."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .._typing import FloatArray

__all__ = ["new_figure", "save_figure", "table_rows", "write_csv"]


def table_rows(columns: Mapping[str, FloatArray], **common: Any) -> Iterator[dict[str, Any]]:
    """The rows of a table given by its columns of numbers, each row with the same ``common`` entries first."""
    for values in zip(*columns.values(), strict=True):
        yield {**common, **dict(zip(columns, map(float, values), strict=True))}


def write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write rows with the same keys as CSV."""
    rows = list(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def new_figure(**options: Any) -> Any:
    """A figure without a window or global state."""
    from matplotlib.figure import Figure

    return Figure(layout="constrained", **options)


def save_figure(what: str, figure: Any, path: Path) -> Iterator[tuple[str, Path]]:
    """Write a figure as PNG and SVG, and yield what it is with each path."""
    for suffix in (".png", ".svg"):
        file = path.with_suffix(suffix)
        # without the date, so that equal figures are equal files
        figure.savefig(file, dpi=150, metadata={"Date": None} if suffix == ".svg" else None)
        yield what, file
