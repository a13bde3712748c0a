"""A report of a fitted model: one HTML file with interactive figures, tables and text, that needs no network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...io.files import atomic_write
from .layout import page
from .numbers import contents

__all__ = ["contents", "page", "write_report"]


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    input_names: Sequence[str] | None = None,
    target_name: str | Sequence[str] | None = None,
) -> Path:
    """Write the predictions of a fitted model and its diagnostics as one self-contained HTML file.

    The file shows the fitted curve with its three tubes (slices, for several inputs), the densities at a chosen input,
    the causes of uncertainty and leave-one-out diagnostics. Tables show the numbers without JavaScript and in print.

    Parameters
    ----------
    model : WienerKernelRegressor
        Fitted.
    path : path-like
        Replaced if it exists; written atomically.
    title : str, default=None
    input_names : sequence of str, default=None
        One per column of X; by default ``feature_names_in_`` if the model has them.
    target_name : str or sequence of str, default=None
        One per output.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 1)", tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with TemporaryDirectory() as folder:
    ...     file = write_report(model, Path(folder) / "report.html", title="Two samples")
    ...     "<title>Two samples</title>" in file.read_text(encoding="utf-8")
    True
    """
    target = Path(path)
    text = page(contents(model, input_names=input_names, target_name=target_name), title=title)
    with atomic_write(target) as file:
        file.write(text.encode())
    return target
