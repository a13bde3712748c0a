"""First passes over files, in bounded memory: what their columns are, how many rows have values, and groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ..scale.stream import PROGRESS
from ..validation import largest
from .columns import Column, Finding, encoded, found_in
from .groups import Groups
from .streams import BATCH, PreparedFiles, as_stream, mapped
from .tables import open_table

__all__ = ["MOST_GROUPS", "Survey", "grouped", "surveyed"]

MOST_GROUPS = 100_000
"""Groups of rows whose inputs are kept in memory."""


@dataclass(frozen=True)
class Survey:
    """What a file has: rows that were read, those of them that are kept, and findings about the inputs.

    A file of numbers is not read to its end unless rows are dropped.
    """

    path: str
    read: int
    kept: int
    found: Sequence[Finding]


def surveyed(files: PreparedFiles, targets: list[str], noise_scale: str | None) -> list[Survey]:
    """Look at each of the files; ``files.columns`` need not be known."""
    stream = as_stream(files, targets, noise_scale)
    files = replace(files, columns=tuple(map(Column, stream.names or ())))
    return list(mapped(_survey, stream.parts, (files, files.used(targets, noise_scale))))


def _survey(path: str, shared: tuple[PreparedFiles, list[str]]) -> Survey:
    files, used = shared
    names, report = [column.name for column in files.columns], PROGRESS.get()
    read, kept, found = 0, 0, list[Finding]()
    with open_table(path) as table:
        for chunk in table.chunks(names=used):
            rows = chunk.complete(used) if files.drop else chunk
            read, kept = read + len(chunk), kept + len(rows)
            if len(rows):
                found = found_in(rows, names, found)
            if not files.drop and all(finding.kind == "number" for finding in found):
                break
            if report is not None:
                report(table.fraction)
    return Survey(path, read, kept, found)


def grouped(files: PreparedFiles, targets: list[str], noise_scale: str | None) -> Groups:
    """Inputs by group; ``files.columns`` must be known."""
    paths = as_stream(files, targets, noise_scale).parts
    found: Groups = reduce(_joined, mapped(_grouped, paths, (files, files.used(targets, noise_scale))))
    return found


def _grouped(path: str, shared: tuple[PreparedFiles, list[str]]) -> Groups:
    files, used = shared
    found = Groups.of([], np.empty((0, len(files.features))))
    with open_table(path) as table:
        for chunk in table.chunks(BATCH, used):
            rows = chunk.complete(used) if files.drop else chunk
            X = encoded(files.columns, rows, largest() ** 0.5)
            found = _joined(found, Groups.of(rows.texts(str(files.group)), X))
    return found


def _joined(a: Groups, b: Groups) -> Groups:
    groups = a + b
    if len(groups.names) > MOST_GROUPS:
        raise ValueError(
            f"there are more than {MOST_GROUPS:,} groups, too many for files that are read in parts"
        )
    return groups
