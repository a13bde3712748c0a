"""From a table to the samples that ``fit`` needs: which columns are inputs, what they are, and rows without values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import warn

from .console import UsageError, check_positive, listed, working

if TYPE_CHECKING:
    from .._typing import FloatArray
    from ..io.columns import Column
    from ..io.tables import Chunk, Table
    from ..regressor import WienerKernelRegressor

__all__ = ["NO_ROWS", "NO_VALUES", "SampleTable", "query", "read_samples"]

REMEDY = "; --missing drop skips rows without a value"
NO_ROWS = "there are no rows below the column names"
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
    target: str,
    inputs: str | None = None,
    noise_scale: str | None = None,
    group: str | None = None,
    drop: bool = False,
) -> SampleTable:
    """Read the samples; ``drop`` leaves out rows without a value in a column that is used."""
    import numpy as np

    from ..io.columns import ColumnReader
    from ..io.tables import MissingValueError, check_names, open_table
    from ..validation import largest

    with working(f"reading {data}"), open_table(data) as table:
        targets = listed(target, table.names)
        others = [name for name in (noise_scale, group) if name is not None]
        names = _inputs(table, targets, others, inputs)
        numeric = [*targets, *([noise_scale] if noise_scale else [])]
        used = [*names, *targets, *others]
        check_names(table.file, used, table.names)
        reader, numbers, groups, read = ColumnReader(names, largest() ** 0.5), [], [], 0
        try:
            for chunk in table.chunks():
                read += len(chunk)
                rows = chunk.complete(used) if drop else chunk
                if len(rows):
                    numbers.append(rows.numbers(numeric, largest() ** 0.5))
                    reader.add(rows)
                    groups += rows.texts(group) if group is not None else []
            if not numbers:
                raise ValueError(f"{table.file}: {NO_VALUES if read else NO_ROWS}")
            columns, X = reader.result()
        except MissingValueError as error:
            raise ValueError(f"{error}{REMEDY}") from None
        except ValueError as error:
            where = "" if table.file in str(error) else f"{table.file}: "
            chosen = inputs is not None or len(names) == 1
            wrong = chosen or any(f"column {name!r}: " in str(error) for name in numeric)
            hint = "" if wrong else "; choose the input columns with --inputs"
            raise ValueError(f"{where}{error}{hint}") from None
    values, n_y = np.concatenate(numbers), len(targets)
    if read > len(values):
        warn(f"{read - len(values)} of {read} rows are not used: a value is missing", stacklevel=2)
    if len(values) < 2:
        raise ValueError(f"{data}: at least two samples are needed to fit a model, got one")
    _tell(columns, X, inputs is None)
    if group is not None:
        X = _averaged(X, groups, group, columns)
    y, scale = values[:, :n_y].copy(), None
    if noise_scale is not None:
        scale = values[:, n_y].copy()
        check_positive(scale, noise_scale, "--noise-scale", data)
    return SampleTable(columns, targets, X, y[:, 0] if n_y == 1 else y, scale)


def query(model: WienerKernelRegressor, columns: list[Column], rows: Chunk) -> FloatArray:
    """Inputs (n, d) of a model in some rows of a table."""
    import numpy as np

    from ..io.tables import MissingValueError
    from ..validation import largest, precision

    try:
        return np.concatenate([column.encode(rows, largest(precision(model))) for column in columns], axis=1)
    except MissingValueError as error:
        raise ValueError(f"{error}{REMEDY}") from None


def _inputs(table: Table, targets: list[str], others: Sequence[str], inputs: str | None) -> list[str]:
    """Names of the input columns."""
    if not targets or len(set(targets)) < len(targets):
        raise UsageError(f"--target must name different columns, got {', '.join(targets) or 'none'}")
    if twice := [name for name in others if name in targets]:
        raise UsageError(f"--noise-scale and --group must be other columns than the target, got {twice[0]!r}")
    if inputs is not None:
        names = listed(inputs, table.names)
        if both := [name for name in names if name in targets]:
            raise UsageError(f"the target {both[0]!r} is also among the inputs: remove it from --inputs")
        if len(set(names)) < len(names):
            raise UsageError(f"--inputs names a column twice: {inputs}")
    else:
        from ..io.tables import NAMELESS

        nameless = [name for name in table.names if NAMELESS.fullmatch(name)]
        if nameless:
            what = f"column {nameless[0]!r}" if nameless[0] else "the column without a name"
            warn(f"{what} is not used as an input: name it in the file to use it", stacklevel=3)
        names = [name for name in table.names if name not in (*targets, *others, *nameless)]
    if not names:
        known = ", ".join(map(repr, [*targets, *others]))
        raise ValueError(f"{table.file}: there is no column besides {known} to use as input")
    return names


def _tell(columns: list[Column], X: FloatArray, chosen: bool) -> None:
    """Note what became of columns that are not numbers, and row numbers that have a name."""
    import numpy as np

    from ..io.tables import shortened

    at = 0
    for column in columns:
        if column.kind == "category":
            count = (
                f"{len(column.levels)} values, {len(column.features)} input{'s' * (len(column.features) > 1)}"
            )
            what = f"text, one-hot ({count}): {shortened(list(column.levels))}"
        elif column.kind == "date":
            what = f"dates, as {column.features[0].partition(' (')[2].removesuffix(')')}"
        elif (
            chosen
            and len(columns) > 1
            and len(X) > 2
            and np.all(np.diff(X[:, at]) == 1)
            and X[0, at] in (0, 1)
        ):
            what = "row numbers? Leave it out with --inputs unless it was measured"
        else:
            what = ""
        if what:
            warn(f"column {column.name!r}: {what}", stacklevel=3)
        at += len(column.features)


def _averaged(X: FloatArray, groups: list[str], name: str, columns: list[Column]) -> FloatArray:
    """Inputs averaged in each group."""
    import numpy as np

    _, index, counts = np.unique(groups, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(index, column) / counts for column in X.T], axis=1)[index]
    apart = np.max(np.abs(X - means), axis=0)
    at = 0
    for column in columns:
        k = len(column.features)
        if column.kind == "category" and apart[at : at + k].any():
            raise ValueError(f"column {column.name!r} has several values in one group of {name!r}")
        at += k
    features = [feature for column in columns for feature in column.features]
    furthest = int(np.argmax(apart / np.maximum(np.ptp(X, axis=0), 1e-300)))
    change = f"averaged in each, by at most {apart[furthest]:.3g} in {features[furthest]}"
    warn(
        f"{len(counts)} groups of replicates: inputs are {change if apart.any() else 'equal in each'}",
        stacklevel=3,
    )
    return np.where(apart > 0, means, X)
