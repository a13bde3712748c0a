"""Parquet, by ``pyarrow``, which is loaded when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from .base import CHUNK, EMPTY, Chunk, MissingValueError, distinct

__all__ = ["ParquetTable", "ParquetWriter"]


class _ParquetChunk(Chunk):
    def is_numeric(self, name: str) -> bool:
        """Whether the column has a numeric type."""
        types, kind = _pyarrow("pyarrow.types"), self.columns[name].type
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))

    def _column(self, name: str) -> FloatArray:
        values = self.columns[name]
        if not self.is_numeric(name):
            raise ValueError(f"{self.file}, column {name!r}: {values.type} is not a numeric type")
        if values.null_count:
            index = values.is_null().to_pylist().index(True)
            raise self.error(index, name, EMPTY, MissingValueError)
        return np.asarray(values.cast("float64", safe=False).to_numpy(zero_copy_only=False))

    def _texts(self, name: str) -> list[str | None]:
        cells = self.columns[name].to_pylist()
        return [None if cell is None else cell if isinstance(cell, str) else str(cell) for cell in cells]

    def _missing(self, name: str) -> NDArray[np.bool_]:
        return np.asarray(self.columns[name].is_null(nan_is_null=True).to_numpy(zero_copy_only=False))

    def _kept(self, values: Any, kept: NDArray[np.bool_]) -> Any:
        return values.filter(_pyarrow("pyarrow").array(kept))


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

    def chunks(self, size: int = CHUNK, names: Sequence[str] | None = None) -> Iterator[Chunk]:
        """The rows, at most ``size`` at a time; columns other than ``names`` may be missing."""
        wanted = None if names is None else list(names)
        for batch in self._parquet.iter_batches(batch_size=size, columns=wanted):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            first, self._read = self._read + 1, self._read + len(batch)
            chunk = _ParquetChunk(self.file, columns, range(first, self._read + 1))
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
