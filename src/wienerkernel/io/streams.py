"""Streams from files and from Dask collections, and predictions of Dask collections."""

from __future__ import annotations

import glob
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .._typing import FloatArray
from ..scale.stream import PROGRESS, Batch, Stream, active_client
from ..streams import Files, is_dask
from ..validation import largest
from .columns import Column, encoded
from .groups import Groups
from .tables import NAMELESS, check_names, open_table

__all__ = ["BATCH", "PreparedFiles", "as_stream", "expanded", "mapped", "predicted", "workers"]

BATCH = 2**16
"""Rows that are read from a file at a time."""


@dataclass(frozen=True)
class PreparedFiles(Files):
    """Files with what a first pass over them has found.

    Parameters
    ----------
    columns : tuple of Column
        How the columns become inputs; by default, all are numbers.
    drop : bool
        Whether rows without a value in a column that is used are left out.
    group : str, optional
        Column that is equal for replicates.
    groups : Groups, optional
        The inputs of each group.
    """

    columns: tuple[Column, ...] = ()
    drop: bool = False
    group: str | None = None
    groups: Groups | None = None

    @property
    def features(self) -> list[str]:
        """Names of the inputs."""
        return [name for column in self.columns for name in column.features]

    def used(self, targets: Sequence[str], scale: str | None) -> list[str]:
        """Columns that are read."""
        names = [*(column.name for column in self.columns), *targets, scale, self.group]
        return list(dict.fromkeys(name for name in names if name is not None))


def as_stream(X: Any, y: Any, noise_scale: Any = None) -> Stream:
    """A stream of X and y: columns of files given by name, or Dask collections with the same partitions."""
    if is_dask(X):
        return _dask_stream(X, y, noise_scale)
    if not isinstance(X, PreparedFiles):
        X = PreparedFiles(X.pattern, X.inputs) if isinstance(X, Files) else PreparedFiles(X)
    return _file_stream(X, y, noise_scale)


@contextmanager
def workers(address: str | None, timeout: float = 10.0) -> Iterator[None]:
    """Streams are read by the workers of the Dask scheduler at this address; without one, by this process."""
    if address is None:
        yield
        return
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise ImportError("a scheduler needs Dask: pip install 'wienerkernel[dask]'") from None
    try:
        # Dask would try again where no connection is accepted, and wait forever where nothing answers
        place = distributed.comm.get_address_host_port(address)
        with socket.create_connection(place, timeout) as connection:
            connection.settimeout(timeout)
            # a scheduler speaks first, unless the connection is encrypted
            if "://" not in address or address.startswith("tcp://"):
                connection.recv(1)
        client = distributed.Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(f"no Dask scheduler answers at {address}: {error}") from None
    with client, client.as_current():
        try:
            yield
        except (CancelledError, distributed.KilledWorker) as error:
            raise ValueError(f"the workers of the Dask scheduler at {address} were lost: {error}") from None


def mapped(function: Callable[[Any, Any], Any], parts: Sequence[Any], shared: Any) -> Iterator[Any]:
    """Values of a function of each part and of an object that all share, in order.

    Each part is a task for the workers of the Dask client that is active. Their warnings are repeated here.
    """
    report = PROGRESS.get() or (lambda _: None)
    client = active_client()
    if client is None:
        for k, part in enumerate(parts):
            token = PROGRESS.set(lambda done, k=k: report((k + (done or 0.0)) / len(parts)))  # type: ignore[misc]
            try:
                value = function(part, shared)
            finally:
                PROGRESS.reset(token)
            report((k + 1) / len(parts))
            yield value
        return
    everywhere = client.scatter(shared, broadcast=True, hash=False)
    futures = client.map(partial(_by_worker, function), parts, shared=everywhere, pure=False)
    try:
        for k, future in enumerate(futures):
            value, warned = future.result()
            for category, message in warned:
                warnings.warn(message, category, stacklevel=2)
            report((k + 1) / len(parts))
            yield value
    finally:
        client.cancel(futures)


def _by_worker(
    function: Callable[[Any, Any], Any], part: Any, shared: Any
) -> tuple[Any, list[tuple[type[Warning], str]]]:
    """The value, and the warnings, with one thread for linear algebra."""
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = function(part, shared)
    return value, list(dict.fromkeys((found.category, str(found.message)) for found in caught))


def expanded(pattern: str | os.PathLike[str]) -> list[str]:
    """The files that a pattern stands for, sorted by name."""
    text = os.fspath(pattern)
    if Path(text).is_dir():
        raise ValueError(f"{text} is a directory: use a pattern such as {os.path.join(text, '*.parquet')!r}")  # noqa: PTH118
    if Path(text).exists() or not glob.has_magic(text):
        return [text]
    if found := sorted(name for name in glob.glob(text, recursive=True) if Path(name).is_file()):  # noqa: PTH207
        return found
    raise FileNotFoundError(f"no file matches {text!r}")


def _file_stream(files: PreparedFiles, target: Any, noise_scale: Any) -> Stream:
    single = isinstance(target, str)
    targets = [target] if single else target
    if not (isinstance(targets, list | tuple) and targets and all(isinstance(name, str) for name in targets)):
        raise ValueError(
            f"y must be the name of a column of the files, or a list of names, got {type(target)}"
        )
    if noise_scale is not None and not isinstance(noise_scale, str):
        raise ValueError(f"noise_scale must be the name of a column of the files, got {type(noise_scale)}")
    paths = expanded(files.pattern)
    further = [*targets, *(name for name in (noise_scale, files.group) if name is not None)]
    if isinstance(files.inputs, str):
        raise TypeError(f"inputs must be a list of names of columns, got {files.inputs!r}")
    names = None if files.inputs is None else list(files.inputs)
    for used in (further, [*targets, *(names or ())]):
        if twice := [name for name in used if used.count(name) > 1]:
            raise ValueError(f"column {twice[0]!r} is used twice: as y, as noise_scale or as an input")
    first: list[str] = []
    for path in paths:
        with open_table(path) as table:
            named = [name for name in table.names if not NAMELESS.fullmatch(name)]
            first = first or named
            check_names(path, further + (first if names is None else names), table.names)
            extra = [name for name in named if name not in first] if names is None else []
        if extra:
            raise ValueError(f"{path} has a column {extra[0]!r}, which {paths[0]} has not: choose the inputs")
    names = [name for name in first if name not in further] if names is None else names
    if not names:
        raise ValueError(f"{paths[0]}: there is no column besides {', '.join(further)} to use as input")
    files = replace(files, columns=files.columns or tuple(map(Column, names)))
    read = partial(_read_file, files=files, targets=list(targets), scale=noise_scale)
    return Stream(paths, read, len(files.features), single, tuple(files.features))


def _read_file(path: str, files: PreparedFiles, targets: list[str], scale: str | None) -> Iterator[Batch]:
    used = files.used(targets, scale)
    with open_table(path) as table:
        for chunk in table.chunks(BATCH, used):
            rows, most = chunk.complete(used) if files.drop else chunk, largest() ** 0.5
            if files.group is None or files.groups is None:
                X = encoded(files.columns, rows, most)
            else:
                X = files.groups.inputs(rows.texts(files.group))
            y = rows.numbers(targets, most)
            yield X, y, np.ones(len(y)) if scale is None else rows.positive(scale, most)


def _dask_stream(X: Any, y: Any, noise_scale: Any) -> Stream:
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(f"X must be a Dask DataFrame or an Array of shape (n, d), got {X!r}")
    names = tuple(getattr(X, "columns", ()))
    n_features, single = int(X.shape[1]), getattr(y, "ndim", 0) == 1
    columns = {"X": X, "y": y} | ({} if noise_scale is None else {"noise_scale": noise_scale})
    for name, collection in columns.items():
        if not is_dask(collection):
            raise ValueError(f"{name} must be a Dask collection like X, got {type(collection)}")
    lengths = {name: _lengths(collection) for name, collection in columns.items()}
    for name, collection in columns.items():
        # never where lengths are unknown, NaN
        if lengths[name] != lengths["X"] and lengths[name] and sum(lengths[name]) == sum(lengths["X"]):
            columns[name] = collection.rechunk({0: lengths["X"]})
    delayed = [_delayed(name, collection) for name, collection in columns.items()]
    for name, parts in zip(columns, delayed, strict=True):
        if len(parts) != len(delayed[0]):
            raise ValueError(
                f"X has {len(delayed[0])} partitions and {name} has {len(parts)}: take both from one Dask collection, or "
                "call compute_chunk_sizes() on arrays with unknown chunk sizes"
            )
    parts = [(k, names or None, *values) for k, values in enumerate(zip(*delayed, strict=True))]
    known = bool(names) and all(
        isinstance(name, str) for name in names
    )  # others count as none, as in scikit-learn
    return Stream(parts, _read_partition, n_features, single, names if known else None)


def _lengths(collection: Any) -> tuple[float, ...]:
    """Rows of each chunk of a Dask array; empty for frames, which do not know them."""
    return tuple(collection.chunks[0]) if hasattr(collection, "chunks") else ()


def _delayed(name: str, collection: Any) -> list[Any]:
    """The partitions of a collection, each with all columns."""
    if not hasattr(collection, "chunks"):
        return list(collection.to_delayed())
    if collection.ndim == 2 and len(collection.chunks[1]) > 1:
        if np.isnan(collection.shape[0]):
            raise ValueError(f"{name} has unknown chunk sizes: call {name}.compute_chunk_sizes() first")
        collection = collection.rechunk({1: -1})
    return list(collection.to_delayed().ravel())


def _read_partition(part: Any) -> Iterator[Batch]:
    k, names, X, y, *more = part
    inputs = _numbers(f"X, partition {k}", X, names)
    outputs = _numbers(f"y, partition {k}", y, None)
    scale = _numbers(f"noise_scale, partition {k}", more[0], None) if more else np.ones((len(inputs), 1))
    for name, values in (("y", outputs), ("noise_scale", scale)):
        if len(values) != len(inputs):
            raise ValueError(
                f"partition {k} has {len(inputs)} rows of X and {len(values)} of {name}: take both from one Dask collection"
            )
    if not np.all(scale > 0):
        row = int(np.argmin(scale[:, 0]))
        raise ValueError(f"noise_scale, partition {k}, row {row}: {scale[row, 0]:g} is not positive")
    if len(inputs):
        yield inputs, outputs, scale[:, 0]


def _numbers(where: str, values: Any, names: Sequence[str] | None) -> FloatArray:
    """A pandas object or an array as finite numbers (n, k)."""
    table = np.asarray(values)
    table = table if table.ndim == 2 else table[:, None]
    if table.dtype.kind in "biuf":
        numbers = table.astype(np.float64)
        good = np.isfinite(numbers) & (np.abs(numbers) <= largest() ** 0.5)
    else:
        numbers = table
        good = np.array([[_is_number(cell) for cell in row] for row in table], dtype=bool).reshape(
            table.shape
        )
    if not good.all():
        row, column = np.argwhere(~good)[0]
        name = column if names is None else repr(names[column])
        cell = table[row, column] if table.dtype.kind != "f" else float(table[row, column])
        raise ValueError(
            f"{where}, row {row}, column {name}: {cell!r} is not a finite number that can be squared"
        )
    return np.asarray(numbers, dtype=np.float64)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, Real) and abs(float(cell)) <= largest() ** 0.5


def predicted(model: Any, X: Any, return_std: bool, other: bool) -> Any:
    """Predictions of a Dask collection, as a lazy one: a DataFrame gives Series with its index, or DataFrames."""
    if other:
        raise ValueError(
            "predictions of a Dask collection are the mean, or with return_std=True mean and deviation"
        )
    n_outputs = 0 if model.posterior_.single_output else len(model.output_scale_)
    number = (1 + return_std) * max(1, n_outputs)
    found = _mapped(partial(_prediction, model, return_std, number), X, number)

    def part(first: int) -> Any:
        columns = list(range(first * n_outputs, (first + 1) * n_outputs)) if n_outputs else first
        return found[:, columns] if hasattr(X, "chunks") else found[columns]

    return (part(0), part(1)) if return_std else part(0)


def _prediction(model: Any, return_std: bool, n_columns: int, X: Any) -> FloatArray:
    """Mean, and standard deviation if asked for, as columns (m, k)."""
    if not len(X):
        return np.empty((0, n_columns))
    found = model.predict(X, return_std=return_std)
    return np.concatenate([part.reshape(len(X), -1) for part in (found if return_std else (found,))], axis=1)


def _mapped(function: Any, X: Any, n_columns: int) -> Any:
    """Apply a function from (m, d) to (m, k) to each partition of a Dask collection, when it is computed."""
    if hasattr(X, "chunks"):
        X = X if len(X.chunks[1]) == 1 else X.rechunk({1: -1})
        chunks = X.chunks[0], (n_columns,)
        return X.map_blocks(function, chunks=chunks, dtype=np.float64, meta=np.empty((0, 0)))
    pandas = import_module("pandas")

    def of_frame(frame: Any) -> Any:
        return pandas.DataFrame(function(frame), index=frame.index)

    return X.map_partitions(of_frame, meta=of_frame(X._meta))
