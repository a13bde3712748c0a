"""Parquet, by ``pyarrow``, which is loaded when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import IO, Any

import numpy as np

from ..._typing import FloatArray
from .base import CHUNK, Chunk, distinct

__all__ = ["ParquetTable", "ParquetWriter"]


class _ParquetChunk(Chunk):
    def __init__(self, file: str, batch: Any, start: int) -> None:
        super().__init__(file, dict(zip(batch.schema.names, batch.columns, strict=True)))
        self._start = start

    def _row(self, index: int) -> int:
        return self._start + index + 1

    def _column(self, name: str) -> FloatArray:
        values = self.columns[name]
        types = _pyarrow("pyarrow.types")
        if not (
            types.is_integer(values.type) or types.is_floating(values.type) or types.is_decimal(values.type)
        ):
            raise ValueError(f"{self.file}, column {name!r}: {values.type} is not a numeric type")
        if values.null_count:
            index = values.is_null().to_pylist().index(True)
            raise self._error(index, name, "the cell is empty; every row needs a number here")
        return np.asarray(values.cast("float64", safe=False).to_numpy(zero_copy_only=False))


class ParquetTable:
    """A Parquet file, read by row groups; ``name`` is for messages."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.file, self._read = name, 0
        invalid = _pyarrow("pyarrow").ArrowException
        try:
            self._parquet = _pyarrow("pyarrow.parquet").ParquetFile(file)
        except (invalid, OSError) as error:
            raise ValueError(f"{name} is not a Parquet file: {error}") from None
        self.names = distinct(name, list(self._parquet.schema_arrow.names))

    def chunks(self, size: int = CHUNK) -> Iterator[Chunk]:
        """The rows, at most ``size`` at a time."""
        for batch in self._parquet.iter_batches(batch_size=size):
            chunk = _ParquetChunk(self.file, batch, self._read)
            self._read += len(batch)
            if len(batch):
                yield chunk

    @property
    def fraction(self) -> float | None:
        """Fraction that has been read."""
        return float(self._read) / max(1, int(self._parquet.metadata.num_rows))


class ParquetWriter:
    """Writes Parquet to a binary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._arrow, self._parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
        self._writer: Any = None

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows, given by the same columns each time."""
        table = self._arrow.table(
            {name: values if _is_array(values) else list(values) for name, values in columns.items()}
        )
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()


def _pyarrow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ValueError("Parquet files need pyarrow: pip install 'wienerkernel[parquet]'") from None


def _is_array(values: Any) -> bool:
    return isinstance(values, np.ndarray) or hasattr(values, "type")
