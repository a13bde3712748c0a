"""A report of a fitted model: one HTML file with interactive figures, tables and text, that needs no network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ...dynamics import Dynamics
from ...io.files import atomic_write
from .layout import page
from .numbers import contents, single_models, target_names
from .rollout import forecast_section, model_names

__all__ = ["contents", "page", "single_models", "write_report"]


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    input_names: Sequence[str] | None = None,
    target_name: str | Sequence[str] | None = None,
    source: str = "",
) -> Path:
    """Write the predictions of a fitted model or system and its diagnostics as one self-contained HTML file.

    The file shows the fitted curve with its three tubes (slices, for several inputs; a surface, for two), the densities
    at a chosen input, the causes of uncertainty, the noise level, the relevance of the inputs, what was learned from the
    data, leave-one-out diagnostics and residuals. Tables show the numbers without JavaScript and in print. For a system
    that was fitted to trajectories, it begins with a forecast and its uncertainty by cause over time.

    Parameters
    ----------
    model : WienerKernelRegressor or Dynamics
        Fitted.
    path : path-like
        Replaced if it exists; written atomically.
    title : str, default=None
    input_names : sequence of str, default=None
        One per column of X; by default ``feature_names_in_`` if the model has them. A unit may stand in brackets at the
        end of a name, as in ``"time [ms]"``.
    target_name : str or sequence of str, default=None
        One per output. The names of the inputs and outputs of a system are those of its states.
    source : str, default=""
        Where the model comes from, such as the name of its file; shown in the head beside date and version.

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
    target, first = Path(path), ""
    names: Sequence[Any]
    if isinstance(model, Dynamics):
        models, first = model.models, forecast_section(model)
        input_names, names = model_names(model)
    else:
        check_is_fitted(model)
        models = single_models(model)
        names = [target_name] if len(models) == 1 else target_names(target_name, len(models))
    reports = [
        contents(one, input_names=input_names, target_name=name)
        for one, name in zip(models, names, strict=True)
    ]
    text = page(reports, title=title, source=source, first=first)
    with atomic_write(target) as file:
        file.write(text.encode())
    return target
