"""Data that do not come as arrays in memory: files and Dask collections."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Files", "is_dask", "is_stream"]


@dataclass(frozen=True)
class Files:
    """Tables in files, CSV or Parquet, as the data of a fit.

    Parameters
    ----------
    pattern : str or path-like
        One file, or several with the wildcards ``*``, ``?`` and ``[...]``, in the order of their names.
    inputs : sequence of str, default=None
        Columns that are inputs; None is all columns with a name that are neither target nor noise scale.

    Examples
    --------
    >>> Files("data/*.parquet", inputs=("temperature", "pressure"))
    Files(pattern='data/*.parquet', inputs=('temperature', 'pressure'))
    """

    pattern: str | os.PathLike[str]
    inputs: Sequence[str] | None = None


def is_dask(X: Any) -> bool:
    """Whether X is a Dask DataFrame, Series or Array."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def is_stream(X: Any) -> bool:
    """Whether X is read in parts: files or a Dask collection."""
    return isinstance(X, str | os.PathLike | Files) or is_dask(X)
