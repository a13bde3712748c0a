"""A report of a fitted model: one HTML file with pictures to point at, tables and words, that needs no network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...io.files import written_whole
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
    """Write what a fitted model says, and how far it can be trusted, as one self-contained HTML file.

    The file shows the fitted curve with its three tubes (slices, for several inputs), the densities at a chosen x,
    the causes of the uncertainty and leave-one-out diagnostics. Without JavaScript and in print the numbers remain.

    Parameters
    ----------
    model : WienerKernelRegressor
        Fitted.
    path : path-like
        Replaced if it exists; written whole or not at all.
    title : str, default=None
    input_names : sequence of str, default=None
        One for each column of X; None takes ``feature_names_in_`` where the model has them.
    target_name : str or sequence of str, default=None
        One for each output.

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
    told = contents(model, input_names=input_names, target_name=target_name)
    text = page(told, title=title)
    with written_whole(target) as file:
        file.write(text.encode())
    return target
