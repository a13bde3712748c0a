"""Data that are read in parts, as often as needed and in a fixed order: a fold over all rows in bounded memory.

The values of the parts are combined in a tree of fan-in 4, here one part after the other, or by the workers of a Dask
cluster. The order of the combinations is the same, so the result is, too.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import reduce
from importlib import import_module
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from .._typing import FloatArray
from .sums import CHUNK, Chunk, Rows, keys

__all__ = ["PROGRESS", "Batch", "Stream", "active_client", "tree"]

T = TypeVar("T")

Batch = tuple[FloatArray, FloatArray, FloatArray]
"""X (c, d), y (c, n_y) and noise scales (c,)."""

PROGRESS: ContextVar[Callable[[float | None], None] | None] = ContextVar("PROGRESS", default=None)
"""Called with the fraction of the parts that a pass has read; None if it is unknown."""

FAN_IN = 4
PART_ROWS = 2**40
"""Numbers of the rows of a part begin at its number times this."""


@dataclass(frozen=True)
class Stream:
    """Rows in parts.

    Parameters
    ----------
    parts : sequence
        What the parts are read from: file names, slices, or delayed values of Dask.
    read : callable
        From a part to an iterator of batches, which are checked.
    n_features, n_outputs : int
    single_output : bool
        Whether y is a column, not a table of one column.
    names : tuple of str, optional
        Of the inputs.
    steps : tuple of callables
        Functions of a batch that are applied to each, one after the other.
    in_memory : bool
        Whether there is one part, a batch, which is not sent to workers.
    """

    parts: Sequence[Any]
    read: Callable[[Any], Iterator[Batch]]
    n_features: int
    n_outputs: int
    single_output: bool = True
    names: tuple[str, ...] | None = None
    steps: tuple[Callable[[Batch], Batch], ...] = ()
    in_memory: bool = False

    @classmethod
    def of_arrays(cls, X: FloatArray, y: FloatArray, scale: FloatArray) -> Stream:
        """One part, in memory: X (n, d), y (n, n_y) and noise scales (n,)."""
        return cls([(X, y, scale)], iter_one, X.shape[1], y.shape[1], in_memory=True)

    def then(self, step: Callable[[Batch], Batch]) -> Stream:
        """The stream with one more step."""
        return replace(self, steps=(*self.steps, step))

    def fold(self, function: Callable[[Iterator[Chunk]], T], combine: Callable[[T, T], T]) -> T:
        """Apply a function to the chunks of each part, and combine the values in a tree; parts without rows are left out."""
        client = None if self.in_memory else active_client()
        task = _Task(function, self.read, self.steps)
        if client is None:
            found: T | None = tree(self._values(task), combine)
        else:
            found = _by_workers(client, task, combine, self.parts)
        if found is None:
            raise ValueError("the data have no rows")
        return found

    def _values(self, task: Callable[[int, Any], T]) -> Iterator[T]:
        for k, part in enumerate(self.parts):
            yield task(k, part if not _is_delayed(part) else _computed(part))
            if (progress := PROGRESS.get()) is not None:
                progress((k + 1) / len(self.parts))

    def sample(self, number: int, seed: int) -> Rows:
        """A uniform sample of the rows, of at most this number; the same one however the rows are chunked."""
        some = _Sample(number, seed)
        return self.fold(some, some.joined).smallest(number)

    def gather(self) -> Batch:
        """All rows, in memory."""
        if self.in_memory:
            batch: Batch = self.parts[0]
            return reduce(lambda found, step: step(found), self.steps, batch)
        found = self.fold(_gather, operator.add)
        X, y, scale = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return X, y, scale


def iter_one(batch: Batch) -> Iterator[Batch]:
    """The batch itself."""
    yield batch


@dataclass(frozen=True)
class _Task(Generic[T]):
    """What is done with one part; None if it has no rows."""

    function: Callable[[Iterator[Chunk]], T]
    read: Callable[[Any], Iterator[Batch]]
    steps: tuple[Callable[[Batch], Batch], ...]

    def __call__(self, k: int, part: Any) -> T | None:
        chunks = self._chunks(k, part)
        first = next(chunks, None)
        return None if first is None else self.function(chain([first], chunks))

    def _chunks(self, k: int, part: Any) -> Iterator[Chunk]:
        row = k * PART_ROWS
        for batch in self.read(part):
            for start in range(0, len(batch[0]), CHUNK):
                X, y, scale = (values[start : start + CHUNK] for values in batch)
                for step in self.steps:
                    X, y, scale = step((X, y, scale))
                yield row + start, X, y, scale
            row += len(batch[0])


@dataclass(frozen=True)
class _Sample:
    number: int
    seed: int

    def __call__(self, chunks: Iterator[Chunk]) -> Rows:
        return reduce(
            self.joined,
            (Rows(keys(first, len(X), self.seed), X, y, scale) for first, X, y, scale in chunks),
        )

    def joined(self, a: Rows, b: Rows) -> Rows:
        return (a + b).smallest(self.number)


def _gather(chunks: Iterator[Chunk]) -> list[Batch]:
    return [(X, y, scale) for _, X, y, scale in chunks]


def tree(values: Iterator[T | None], combine: Callable[[T, T], T]) -> T | None:
    """Combine values in a tree of fan-in 4, with one pending value on each level; None stands for no value."""
    levels: list[list[Any]] = []  # pairs of a value and how many of the level below it has
    for value in values:
        depth = 0
        while True:
            if depth == len(levels):
                levels.append([None, 0])
            pending = levels[depth]
            value = _both(combine, pending[0], value)
            if pending[1] < FAN_IN - 1:
                pending[:] = value, pending[1] + 1
                break
            pending[:] = None, 0
            depth += 1
    found: T | None = None
    for pending, _ in levels:
        found = _both(combine, pending, found)
    return found


def _both(combine: Callable[[T, T], T], a: T | None, b: T | None) -> T | None:
    if a is None or b is None:
        return b if a is None else a
    return combine(a, b)


def active_client() -> Any:
    """The Dask client of this process, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    return client if client.status == "running" else None


def _is_delayed(part: Any) -> bool:
    return isinstance(part, tuple) and any(hasattr(item, "__dask_graph__") for item in part)


def _computed(part: Any) -> Any:
    return import_module("dask").compute(*part)


def _by_workers(
    client: Any,
    task: _Task[T],
    combine: Callable[[T, T], T],
    parts: Sequence[Any],
) -> T | None:
    """The same tree by the workers of a Dask cluster, each with one thread for linear algebra."""
    dask = import_module("dask")
    single, group = dask.delayed(_single_threaded), dask.delayed(_combined)
    values = [single(task, k, part) for k, part in enumerate(parts)]
    while len(values) > 1:
        groups = [values[i : i + FAN_IN] for i in range(0, len(values), FAN_IN)]
        values = [group(combine, items) if len(items) > 1 else items[0] for items in groups]
    if (progress := PROGRESS.get()) is not None:
        progress(None)
    future = client.compute(values[0])
    try:
        found: T | None = future.result()
    finally:
        future.cancel()  # the result is here, or nobody waits for it
    return found


def _single_threaded(task: Callable[[int, Any], T], k: int, part: Any) -> T:
    with threadpool_limits(1):
        return task(k, part)


def _combined(combine: Callable[[T, T], T], values: list[T | None]) -> T | None:
    found: T | None = None
    for value in values:
        found = _both(combine, found, value)
    return found
