"""Fits and predictions of tables that are read in parts: patterns of file names, large files, Dask workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import add
from pathlib import Path

from .._typing import FloatArray
from ..evaluation.pipelines import prediction_table
from ..evaluation.report.slices import observations
from ..io.columns import Column
from ..io.streams import PreparedFiles, as_stream, expanded
from ..io.survey import grouped, surveyed
from ..io.tables import Chunk, Table, open_table, shortened, table_writer
from ..regressor import WienerKernelRegressor
from ..scale.stream import PROGRESS
from ..validation import largest
from .console import note, progress
from .model import NO_ROWS, model_columns, query
from .options import UsageError, listed, may_write
from .read import (
    NO_VALUES,
    SampleTable,
    check_number,
    check_positive,
    input_columns,
    located,
    remedy,
    tell_columns,
    tell_groups,
)

__all__ = ["fit_files", "is_streamed", "outputs", "predict_file", "prepared", "reading", "seen_by_workers"]

LARGE = 2**28
"""Bytes from which a file is read in parts."""


def seen_by_workers(path: Path, scheduler: str | None) -> Path:
    """A path, in full if it is for the workers of a scheduler, who have working directories of their own."""
    if scheduler is None:
        return path
    if str(path) == "-":
        raise UsageError("--scheduler needs files, not standard input or output")
    return path.absolute()


def is_streamed(data: Path, scheduler: str | None) -> bool:
    """Whether data are read in parts: several files, a large one, or by the workers of a scheduler."""
    if str(data) == "-":
        return False
    paths = expanded(data)
    return scheduler is not None or paths != [str(data)] or Path(paths[0]).stat().st_size > LARGE


@contextmanager
def reading(what: str) -> Iterator[Callable[..., None]]:
    """Show the progress bar of a pass over files."""
    with progress(what) as update:
        token = PROGRESS.set(lambda done: update(total=None if done is None else 1.0, completed=done or 0.0))
        try:
            yield update
        finally:
            PROGRESS.reset(token)


def prepared(
    data: Path,
    target: Sequence[str],
    inputs: Sequence[str] | None,
    noise_scale: str | None,
    group: str | None,
    drop: bool,
) -> tuple[PreparedFiles, list[str]]:
    """Look at the files, and tell what is found there: how their columns become inputs, and the names of the targets."""
    with open_table(expanded(data)[0]) as table:
        targets, _, names = input_columns(table, target, inputs, noise_scale, group)
    files = PreparedFiles(str(data), None if inputs is None else tuple(names), drop=drop, group=group)
    with reading("looking at the files"), remedy():
        surveys = surveyed(files, targets, noise_scale)
    for survey in surveys:
        if not survey.kept:
            note(f"{survey.path}: {NO_VALUES if survey.read else NO_ROWS}")
    check_number(str(data), sum(survey.read for survey in surveys), sum(survey.kept for survey in surveys))
    with located(str(data), [] if inputs else names, ()):
        found = [survey.found for survey in surveys if survey.kept]
        columns = tuple(reduce(add, findings).column() for findings in zip(*found, strict=True))
    files = replace(files, inputs=tuple(column.name for column in columns), columns=columns)
    stream = as_stream(files, targets, noise_scale)
    with remedy():
        batches = chain.from_iterable(map(stream.read, stream.parts))
        tell_columns(columns, next(X for X, _, _ in batches if len(X)), inputs is None)
        if group is not None:
            with reading("averaging groups"):
                groups = grouped(files, targets, noise_scale)
            tell_groups(groups, group, columns)
            files = replace(files, groups=groups)
    return files, targets


def fit_files(
    model: WienerKernelRegressor, files: PreparedFiles, targets: list[str], noise_scale: str | None
) -> SampleTable:
    """Fit the model with a progress bar; the samples that it keeps, or their means at each input."""
    with reading("reading"), remedy():
        model.fit(files, targets if len(targets) > 1 else targets[0], noise_scale)
    posterior = model.posterior_
    X, y = observations(posterior)
    y = y if posterior.transform is None else posterior.transform.inverse(y)
    return SampleTable(list(files.columns), targets, X, y[:, 0] if len(targets) == 1 else y, None)


def outputs(data: Path, output: Path, force: bool) -> list[tuple[Path, Path]]:
    """Pairs of an input and the output for it: one file, or files of the same names in a folder."""
    paths = [data] if str(data) == "-" else [Path(path) for path in expanded(data)]
    if str(data) == "-" or (not output.is_dir() and paths == [data]):
        if str(output) != "-":
            may_write(output, force)
        return [(data, output)]
    if str(output) == "-" or output.is_file():
        raise UsageError(f"{data} is a pattern, so the predictions need a folder: --output FOLDER")
    if len({path.name for path in paths}) < len(paths):
        raise ValueError(f"{data}: two files in different folders have the same name")
    output.mkdir(parents=True, exist_ok=True)
    for path in paths:
        if (output / path.name).resolve() == path.resolve():
            raise UsageError(f"--output {output} is the folder of the data: choose another one")
        may_write(output / path.name, force)
    return [(path, output / path.name) for path in paths]


class _NoRowsError(ValueError):
    """A table has no rows to predict."""


def predict_file(
    pair: tuple[Path, Path],
    model: WienerKernelRegressor,
    *,
    inputs: Sequence[str] | None,
    noise_scale: str | None,
    drop: bool,
    interval: float,
    of: str,
    prefix: str,
    overwrite: bool,
) -> tuple[int, int, str]:
    """Predict one file and write another: rows that were read and written, and why none are."""
    read, written, report = 0, 0, PROGRESS.get()
    try:
        with open_table(pair[0]) as table, table_writer(pair[1], overwrite=overwrite) as writer:
            columns = _columns(model, table, inputs)
            used = [column.name for column in columns] + ([noise_scale] if noise_scale else [])
            for chunk in table.chunks():
                rows = chunk.complete(used) if drop else chunk
                read, written = read + len(chunk), written + len(rows)
                if len(rows):
                    with remedy():
                        X, scale = query(model, columns, rows), _scale(rows, noise_scale)
                    new = prediction_table(model, X, coverage=interval, of=of, noise_scale=scale)
                    new = {f"{prefix}{name}": values for name, values in new.items()}
                    if taken := [name for name in new if name in table.names]:
                        what = f"{table.file} already has a column {taken[0]!r}"
                        raise ValueError(f"{what}: choose another name with --prefix")
                    writer.write({**rows.columns, **new})
                if report is not None:
                    report(table.fraction)
            if not written:  # leaves no file
                raise _NoRowsError(f"{table.file}: {NO_VALUES if read else NO_ROWS}")
    except _NoRowsError as error:
        return read, 0, str(error)
    return read, written, ""


def _columns(model: WienerKernelRegressor, table: Table, inputs: Sequence[str] | None) -> list[Column]:
    """The columns of a table that hold the model's inputs."""
    columns = model_columns(model)
    known = [column.name for column in columns]
    names = known if inputs is None else listed(inputs, table.names)
    if len(names) != len(columns):
        raise ValueError(
            f"--inputs must name {len(columns)} columns ({shortened(known)}), got {shortened(names)}"
        )
    for name in names:
        if name not in table.names:
            raise ValueError(
                f"{table.file}: there is no column {name!r}, an input of the model; the columns are "
                f"{shortened(table.names)}; choose others with --inputs"
            )
    return [replace(column, name=name) for column, name in zip(columns, names, strict=True)]


def _scale(rows: Chunk, name: str | None) -> FloatArray | None:
    """Noise scales (n,) of some rows."""
    if name is None:
        return None
    scale = rows.numbers([name], largest())[:, 0]
    check_positive(scale, name, "--noise-scale", rows.file)
    return scale
