"""Tables in files, chunk by chunk: CSV by the standard library, Parquet where ``pyarrow`` is installed.

A cell that should be a number and is not is an error that names file, row and column. Rows of a CSV file are counted
as a spreadsheet counts them, the names of the columns being row 1; rows of a Parquet file from 1.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np

from ..._typing import FloatArray
from ..files import atomic_write
from .base import Chunk, Table, TableWriter, shortened
from .csv_file import CsvTable, CsvWriter
from .parquet_file import ParquetTable, ParquetWriter

__all__ = ["Chunk", "Table", "TableWriter", "open_table", "read_numbers", "shortened", "table_writer"]

PARQUET = (".parquet", ".pq")


@contextmanager
def open_table(path: str | os.PathLike[str]) -> Iterator[Table]:
    r"""Open a table for reading.

    Parameters
    ----------
    path : path-like
        ``.parquet`` and ``.pq`` are Parquet, anything else is CSV with the names of the columns in the first row,
        separated by commas, semicolons or tabs. ``-`` is standard input.

    Yields
    ------
    Table
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
    r"""All rows of some columns.

    Parameters
    ----------
    table : Table
    names : sequence of str
    largest : float, default=inf
        Numbers of greater magnitude are refused.

    Returns
    -------
    ndarray of shape (n, k)
    """
    parts = [chunk.numbers(names, largest) for chunk in table.chunks()]
    if not parts:
        raise ValueError(f"{table.file}: there are no rows below the names of the columns")
    return np.concatenate(parts)


@contextmanager
def table_writer(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[TableWriter]:
    """Open a table for writing; a file appears whole or not at all.

    Parameters
    ----------
    path : path-like
        ``.parquet`` and ``.pq`` are Parquet, anything else is CSV; ``-`` is standard output.
    overwrite : bool, default=True
        Whether a file of that name may be replaced.

    Yields
    ------
    TableWriter
    """
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
