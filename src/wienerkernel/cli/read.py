"""From a table to the samples that ``fit`` needs: which columns are inputs, what they are, and rows without values."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np

from .._typing import FloatArray
from ..io.columns import Column, ColumnReader
from ..io.groups import Groups
from ..io.tables import NAMELESS, SHOWN, MissingValueError, Table, check_names, open_table, shortened
from ..validation import largest
from .console import note, working
from .model import NO_ROWS
from .options import UsageError, listed

__all__ = [
    "NO_VALUES",
    "SampleTable",
    "check_number",
    "check_positive",
    "input_columns",
    "located",
    "read_samples",
    "remedy",
    "spans",
    "tell_columns",
    "tell_groups",
]

REMEDY = "; --missing drop skips rows without a value"
COPIES = 0.2
"""Share of rows that are equal to others from which it is told."""
NO_VALUES = "no row has a value in all columns that are used"


@dataclass(frozen=True)
class SampleTable:
    """Samples of a table: X (n, d), y (n,) or (n, n_y), factors of the noise (n,) or None."""

    columns: list[Column]
    targets: list[str]
    X: FloatArray
    y: FloatArray
    scale: FloatArray | None

    @property
    def features(self) -> list[str]:
        """Names of the inputs."""
        return [name for column in self.columns for name in column.features]


def read_samples(
    data: Path,
    target: Sequence[str],
    inputs: Sequence[str] | None,
    noise_scale: str | None,
    group: str | None,
    drop: bool,
) -> SampleTable:
    """Read the samples; ``drop`` leaves out rows without a value in a column that is used."""
    with working(f"reading {data}"), open_table(data) as table:
        targets, others, names = input_columns(table, target, inputs, noise_scale, group)
        numeric = [*targets, *([noise_scale] if noise_scale else [])]
        check_names(table.file, [*names, *targets, *others], table.names)
        chunks = table.chunks()
        first = list(islice(chunks, 1))
        if inputs is None:
            empty = (name for chunk in first for name in names if not chunk.present(name))
            leave_out(names, {name: f"it has no value in {len(first[0])} rows" for name in empty})
        used = [*names, *targets, *others]
        reader, numbers, labels, read = ColumnReader(names, largest() ** 0.5), [], [], 0
        with located(table.file, [] if inputs else names, numeric), remedy():
            for chunk in chain(first, chunks):
                read += len(chunk)
                rows = chunk.complete(used) if drop else chunk
                if len(rows):
                    numbers.append(rows.numbers(numeric, largest() ** 0.5))
                    reader.add(rows)
                    labels += rows.texts(group) if group is not None else []
            check_number(table.file, read, sum(map(len, numbers)))
            if inputs is None:
                leave_out(names, reader.useless())
            columns, X = reader.result(names)
    values, n_y = np.concatenate(numbers), len(targets)
    tell_columns(columns, X, inputs is None)
    copies = len(X) - len(np.unique(np.column_stack([X, values]), axis=0))
    if copies > COPIES * len(X):
        note(
            f"{copies} of {len(X)} rows are copies of others: remove those that are not separate measurements, because "
            "they make the scores too good"
        )
    if group is not None:
        groups = Groups.of(labels, X)
        tell_groups(groups, group, columns)
        X = groups.inputs(labels)
    y, scale = values[:, :n_y].copy(), None
    if noise_scale is not None:
        scale = values[:, n_y].copy()
        check_positive(scale, noise_scale, "--noise-scale", data)
    return SampleTable(columns, targets, X, y[:, 0] if n_y == 1 else y, scale)


@contextmanager
def remedy() -> Iterator[None]:
    """Errors about missing values say what to do about them."""
    try:
        yield
    except MissingValueError as error:
        raise MissingValueError(f"{error}{REMEDY}") from None


@contextmanager
def located(file: str, names: Sequence[str], numeric: Sequence[str]) -> Iterator[None]:
    """Errors name the file, and how to leave out an input if they are about one of several that nobody chose."""
    try:
        yield
    except MissingValueError:
        raise
    except ValueError as error:
        where = "" if file in str(error) else f"{file}: "
        about = [name for name in (*numeric, *names) if f"column {name!r}" in str(error)]
        others, hint = [name for name in names if name not in about], ""
        if about and others and about[0] not in numeric:
            given = (
                f", --inputs {shlex.quote(shortened(others))}" if len(others) <= SHOWN else " with --inputs"
            )
            hint = f"; choose the input columns{given}"
        raise ValueError(f"{where}{error}{hint}") from None


def check_number(file: str, read: int, kept: int) -> None:
    """Tell how many rows are not used, and raise if there are too few others."""
    if not kept:
        raise ValueError(f"{file}: {NO_VALUES if read else NO_ROWS}")
    if read > kept:
        note(f"{read - kept} of {read} rows are not used: a value is missing")
    if kept < 2:
        raise ValueError(f"{file}: at least two samples are needed to fit a model, got one")


def check_positive(values: FloatArray, column: str, option: str, file: Path | str) -> None:
    """Raise if a column has values that are not positive, which an option needs."""
    if not (values > 0).all():
        raise ValueError(
            f"{file}: {option} needs positive numbers, but column {column!r} has {float(values.min()):g}"
        )


def input_columns(
    table: Table,
    target: Sequence[str],
    inputs: Sequence[str] | None,
    noise_scale: str | None,
    group: str | None,
) -> tuple[list[str], list[str], list[str]]:
    """Names of the columns of the targets, of the noise scale and the group, and of the inputs."""
    targets = listed(target, table.names)
    others = [name for name in (noise_scale, group) if name is not None]
    if not targets or len(set(targets)) < len(targets):
        raise UsageError(f"--target must name different columns, got {', '.join(targets) or 'none'}")
    if twice := [name for name in others if name in targets]:
        raise UsageError(f"--noise-scale and --group must be other columns than the target, got {twice[0]!r}")
    if inputs is not None:
        names = listed(inputs, table.names)
        if both := [name for name in names if name in targets]:
            raise UsageError(f"the target {both[0]!r} is also among the inputs: remove it from --inputs")
        if len(set(names)) < len(names):
            raise UsageError(f"--inputs names a column twice: {', '.join(names)}")
    else:
        nameless = [name for name in table.names if NAMELESS.fullmatch(name)]
        if len(nameless) > 1:
            note("columns without a name are not used as inputs: name them in the file to use them")
        elif nameless:
            what = f"column {nameless[0]!r}" if nameless[0] else "the column without a name"
            note(f"{what} is not used as an input: name it in the file to use it")
        names = [name for name in table.names if name not in (*targets, *others, *nameless)]
    if not names:
        known = ", ".join(map(repr, [*targets, *others]))
        raise ValueError(f"{table.file}: there is no column besides {known} to use as input")
    return targets, others, names


def leave_out(names: list[str], reasons: Mapping[str, str]) -> None:
    """Remove columns from the inputs, with a note, unless there are no others."""
    if len(reasons) < len(names):
        for name, reason in reasons.items():
            names.remove(name)
            note(f"column {name!r} is not used as an input: {reason}")


def spans(columns: Iterable[Column]) -> Iterator[tuple[Column, slice]]:
    """Each column, and where its inputs are among those of all columns."""
    end = 0
    for column in columns:
        start, end = end, end + len(column.features)
        yield column, slice(start, end)


def tell_columns(columns: Sequence[Column], X: FloatArray, chosen: bool) -> None:
    """Note what became of columns that are not numbers, and row numbers that have a name; X are the first rows."""
    for column, span in spans(columns):
        x, what = X[:, span.start], ""
        if column.kind == "category":
            count = len(column.features)
            inputs = f"{len(column.levels)} values, {count} input{'s' * (count > 1)}"
            what = f"text, one-hot ({inputs}): {shortened(list(column.levels))}"
        elif column.kind == "date":
            what = f"dates, as {column.features[0].partition(' (')[2].removesuffix(')')}"
        elif chosen and len(columns) > 1 and len(x) > 2 and np.all(np.diff(x) == 1) and x[0] in (0, 1):
            what = "these look like row numbers; unless they were measured, leave them out with --inputs"
        elif np.abs(x).max() >= 2.0**53 and np.all(x == np.round(x)):
            what = "huge integers, rounded to 16 digits. Leave out identifiers with --inputs"
        if what:
            note(f"column {column.name!r}: {what}")


def tell_groups(groups: Groups, name: str, columns: Sequence[Column]) -> None:
    """Note how far inputs are averaged in groups; raise if a category would be."""
    apart, change = groups.apart, "equal in each"
    for column, span in spans(columns):
        if column.kind == "category" and apart[span].any():
            raise ValueError(f"column {column.name!r} has several values in one group of {name!r}")
    if apart.any():
        features = [feature for column in columns for feature in column.features]
        extent = groups.high.max(axis=0) - groups.low.min(axis=0)
        furthest = int(np.argmax(apart / np.maximum(extent, 1e-300)))
        change = f"averaged in each, which changes {features[furthest]} by at most {apart[furthest]:.3g}"
    note(f"{len(groups.names)} groups of replicates: inputs are {change}")
