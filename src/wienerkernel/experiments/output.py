"""Files that the experiments write: tables and figures."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["new_figure", "save_figure", "write_csv"]


def write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write rows with the same keys as CSV."""
    rows = list(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def new_figure(**options: Any) -> Any:
    """A figure that belongs to no window system and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained", **options)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: Path) -> Path:
    """Write a figure, without the date, so that equal figures are equal files."""
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    return path
