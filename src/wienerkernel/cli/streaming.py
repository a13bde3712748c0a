"""Fits and predictions of tables that are read in parts: patterns of file names, large files, Dask workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

from .console import note, progress
from .model import NO_ROWS
from .options import UsageError, may_write
from .read import (
    NO_VALUES,
    SampleTable,
    check_number,
    input_columns,
    located,
    remedy,
    tell_columns,
    tell_groups,
)

if TYPE_CHECKING:
    from ..io.streams import PreparedFiles
    from ..regressor import WienerKernelRegressor

__all__ = ["fit_files", "is_streamed", "outputs", "prepared", "reading", "seen_by_workers"]

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
    from ..io.streams import expanded

    paths = expanded(data)
    return scheduler is not None or paths != [str(data)] or Path(paths[0]).stat().st_size > LARGE


@contextmanager
def reading(what: str) -> Iterator[Callable[..., None]]:
    """Show the progress bar of a pass over files."""
    from ..scale.stream import PROGRESS

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
    from ..io.streams import PreparedFiles, as_stream, expanded
    from ..io.survey import grouped, surveyed
    from ..io.tables import open_table

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
    from ..evaluation.report.slices import observations

    with reading("reading"), remedy():
        model.fit(files, targets if len(targets) > 1 else targets[0], noise_scale)
    posterior = model.posterior_
    X, y = observations(posterior)
    y = y if posterior.transform is None else posterior.transform.inverse(y)
    return SampleTable(list(files.columns), targets, X, y[:, 0] if len(targets) == 1 else y, None)


def outputs(data: Path, output: Path, force: bool) -> list[tuple[Path, Path]]:
    """Pairs of an input and the output for it: one file, or files of the same names in a folder."""
    from ..io.streams import expanded

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
