"""Data that are read in parts, as often as needed and in a fixed order: a fold over all rows in bounded memory.

The values of the parts are combined in a tree of fan-in 4, here one part after the other, or by the workers of a Dask
cluster. The order of the combinations is the same, so the result is, too.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial, reduce
from importlib import import_module
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from .._typing import FloatArray
from .sums import CHUNK, Chunk, Rows

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
    """Rows in parts, which are file names, slices or delayed values of Dask, and from which ``read`` makes checked batches.

    The ``steps`` are applied to each batch, one after the other. ``single_output`` says whether y is a column, not a table
    of one column; ``names`` are those of the inputs. One part that is a batch ``in_memory`` is not sent to workers.
    """

    parts: Sequence[Any]
    read: Callable[[Any], Iterator[Batch]]
    n_features: int
    single_output: bool = True
    names: tuple[str, ...] | None = None
    steps: tuple[Callable[[Batch], Batch], ...] = ()
    in_memory: bool = False

    @classmethod
    def of_arrays(cls, X: FloatArray, y: FloatArray, scale: FloatArray) -> Stream:
        """One part, in memory: X (n, d), y (n, n_y) and noise scales (n,)."""
        return cls([(X, y, scale)], lambda batch: iter((batch,)), X.shape[1], in_memory=True)

    def then(self, step: Callable[[Batch], Batch]) -> Stream:
        """The stream with one more step."""
        return replace(self, steps=(*self.steps, step))

    def fold(self, function: Callable[[Iterator[Chunk]], T], combine: Callable[[T, T], T]) -> T:
        """Apply a function to the chunks of each part, and combine the values in a tree; parts without rows are left out."""
        task = partial(_of_part, function, self.read, self.steps)
        group = partial(_combined, combine)
        client = None if self.in_memory else active_client()
        found: T | None
        if client is None:
            found = tree(self._values(task), len(self.parts), group)
        else:
            found = _by_workers(client, task, group, self.parts)
        if found is None:
            raise ValueError("the data have no rows")
        return found

    def _values(self, task: Callable[[int, Any], T]) -> Iterator[T]:
        for k, part in enumerate(self.parts):
            yield task(k, import_module("dask").compute(*part) if _is_delayed(part) else part)
            if (progress := PROGRESS.get()) is not None:
                progress((k + 1) / len(self.parts))

    def sample(self, number: int, seed: int) -> Rows:
        """A uniform sample of the rows, of at most this number; the same one however the rows are chunked."""

        def of_part(chunks: Iterator[Chunk]) -> Rows:
            return reduce(Rows.__add__, (Rows.of(chunk, number, seed) for chunk in chunks))

        return self.fold(of_part, Rows.__add__)

    def gather(self) -> Batch:
        """All rows, in memory."""
        if self.in_memory:
            batch: Batch = self.parts[0]
            return reduce(lambda found, step: step(found), self.steps, batch)
        found = self.fold(lambda chunks: [batch for _, *batch in chunks], operator.add)
        X, y, scale = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return X, y, scale


def _of_part(
    function: Callable[[Iterator[Chunk]], T],
    read: Callable[[Any], Iterator[Batch]],
    steps: tuple[Callable[[Batch], Batch], ...],
    k: int,
    part: Any,
) -> T | None:
    """The function of the chunks of part k; None if it has no rows."""

    def chunks() -> Iterator[Chunk]:
        row = k * PART_ROWS
        for batch in read(part):
            for start in range(0, len(batch[0]), CHUNK):
                X, y, scale = (values[start : start + CHUNK] for values in batch)
                for step in steps:
                    X, y, scale = step((X, y, scale))
                yield row + start, X, y, scale
            row += len(batch[0])

    found = chunks()
    first = next(found, None)
    return None if first is None else function(chain([first], found))


def tree(values: Iterator[T], number: int, group: Callable[[Iterator[T]], T]) -> T:
    """Combine ``number`` values in a tree of fan-in 4, in which each level takes those of the level below as they come."""
    while number > 1:
        number = -(-number // FAN_IN)
        values = _grouped(values, number, group)
    return next(values)


def _grouped(values: Iterator[T], number: int, group: Callable[[Iterator[T]], T]) -> Iterator[T]:
    for _ in range(number):
        yield group(islice(values, FAN_IN))


def _combined(combine: Callable[[T, T], T], values: Iterable[T | None]) -> T | None:
    """The values one after the other; None stands for no value."""
    found: T | None = None
    for value in values:
        if value is not None:
            found = value if found is None else combine(found, value)
        del value  # it is large, and the next one is computed now
    return found


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


def _by_workers(
    client: Any,
    task: Callable[[int, Any], T | None],
    group: Callable[[Iterable[T | None]], T | None],
    parts: Sequence[Any],
) -> T | None:
    """The same tree by the workers of a Dask cluster, each with one thread for linear algebra."""
    dask = import_module("dask")
    single, of_group = dask.delayed(_single_threaded), dask.delayed(group)
    values = (single(task, k, part) for k, part in enumerate(parts))
    value = tree(values, len(parts), lambda items: of_group(list(items)))
    if (progress := PROGRESS.get()) is not None:
        progress(None)
    future = client.compute(value)
    try:
        found: T | None = future.result()
    finally:
        future.cancel()  # the result is here, or nobody waits for it
    return found


def _single_threaded(task: Callable[[int, Any], T], k: int, part: Any) -> T:
    with threadpool_limits(1):
        return task(k, part)
