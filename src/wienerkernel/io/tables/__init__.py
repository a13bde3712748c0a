"""Tables in files, chunk by chunk: CSV by the standard library, Parquet if ``pyarrow`` is installed.

An error in a cell names file, row and column. Rows of a CSV file are counted as in a spreadsheet, where the header is
row 1; rows of a Parquet file from 1.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TextIO, TypeAlias

import numpy as np

from ..._typing import FloatArray
from ..files import atomic_write
from .base import NAMELESS, SHOWN, Chunk, MissingValueError, check_names, shortened
from .csv_file import CsvTable, CsvWriter
from .parquet_file import ParquetTable, ParquetWriter

__all__ = [
    "NAMELESS",
    "SHOWN",
    "Chunk",
    "MissingValueError",
    "Table",
    "TableWriter",
    "check_names",
    "open_table",
    "read_numbers",
    "shortened",
    "table_writer",
]

Table: TypeAlias = CsvTable | ParquetTable
"""A file of named columns: ``file``, ``names``, ``chunks()`` and ``fraction``."""
TableWriter: TypeAlias = CsvWriter | ParquetWriter
"""A table that is being written, chunk by chunk: ``write(columns)``."""
PARQUET = (".parquet", ".pq")


@contextmanager
def open_table(path: str | os.PathLike[str]) -> Iterator[Table]:
    """Open a table for reading.

    ``.parquet`` and ``.pq`` are Parquet; anything else is CSV with a header row, separated by commas, semicolons or
    tabs. ``-`` is standard input.
    """
    name = os.fspath(path)
    if name == "-":
        stream = _open_stream("standard input", sys.stdin)
        if isinstance(stream, io.TextIOWrapper):  # read it like a file, whatever the locale
            stream.reconfigure(encoding="utf-8-sig", errors="strict", newline="")
        yield CsvTable("standard input", stream)
    elif Path(name).suffix.lower() in PARQUET:
        with Path(name).open("rb") as file:
            yield ParquetTable(name, file)
    else:
        with Path(name).open("rb") as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            yield CsvTable(name, text, os.fstat(file.fileno()).st_size)


def _open_stream(name: str, stream: TextIO | None) -> TextIO:
    if stream is None:
        raise ValueError(f"{name} is closed")
    return stream


def read_numbers(table: Table, names: Sequence[str], largest: float = np.inf) -> FloatArray:
    """All rows of some columns as finite numbers (n, k) of at most this magnitude."""
    parts = [chunk.numbers(names, largest) for chunk in table.chunks()]
    if not parts:
        raise ValueError(f"{table.file}: there are no rows below the column names")
    return np.concatenate(parts)


@contextmanager
def table_writer(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[TableWriter]:
    """Open a table for writing, atomically; the format follows the name as in `open_table`, ``-`` is standard output."""
    name = os.fspath(path)
    if name == "-":
        stream = _open_stream("standard output", sys.stdout)
        yield CsvWriter(stream)
        stream.flush()
        return
    with atomic_write(name, overwrite=overwrite) as file:
        if Path(name).suffix.lower() in PARQUET:
            with closing(ParquetWriter(file)) as writer:
                yield writer
        else:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
            try:
                yield CsvWriter(text)
            finally:
                text.detach()
