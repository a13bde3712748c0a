"""Fits and predictions of tables that are read in parts: patterns of file names, large files, Dask workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..text import rounded
from .console import UsageError, listed, may_write, progress, show
from .read import SampleTable

if TYPE_CHECKING:
    from ..regressor import WienerKernelRegressor
    from ..streams import Files

__all__ = ["files_of", "fit_files", "is_streamed", "outputs", "show_collapsed"]

LARGE = 2**28
"""Bytes from which a file is read in parts."""


def is_streamed(data: Path, scheduler: str | None) -> bool:
    """Whether data are read in parts: several files, a large one, or by the workers of a scheduler."""
    if str(data) == "-":
        if scheduler is not None:
            raise UsageError("--scheduler needs files, not standard input")
        return False
    from ..io.streams import expanded

    paths = expanded(data)
    return scheduler is not None or paths != [str(data)] or Path(paths[0]).stat().st_size > LARGE


def files_of(
    data: Path, target: str, inputs: str | None, noise_scale: str | None
) -> tuple[Files, list[str], list[str]]:
    """The files with their inputs, the names of these, and those of the targets."""
    from ..io.streams import as_stream
    from ..streams import Files

    targets = listed(target)
    files = Files(str(data), None if inputs is None else tuple(listed(inputs)))
    names = list(as_stream(files, targets, noise_scale).names or ())
    return Files(str(data), tuple(names)), names, targets


def fit_files(
    model: WienerKernelRegressor,
    files: Files,
    targets: list[str],
    noise_scale: str | None,
    scheduler: str | None,
) -> SampleTable:
    """Fit the model with a progress bar; the samples that it keeps, or their means at each input."""
    from ..evaluation.report.slices import observations
    from ..io.columns import Column
    from ..io.streams import workers
    from ..scale.stream import PROGRESS

    with workers(scheduler), progress() as bar:
        task = bar.add_task("reading", total=None)
        token = PROGRESS.set(
            lambda done: bar.update(task, total=None if done is None else 1.0, completed=done or 0.0)
        )
        try:
            model.fit(files, targets if len(targets) > 1 else targets[0], noise_scale)
        finally:
            PROGRESS.reset(token)
    posterior = model.posterior_
    X, y = observations(posterior)
    y = y if posterior.transform is None else posterior.transform.inverse(y)
    columns = [Column(name) for name in files.inputs or ()]
    return SampleTable(columns, targets, X, y[:, 0] if len(targets) == 1 else y, None)


def show_collapsed(model: WienerKernelRegressor, samples: SampleTable) -> None:
    """Show what is known of an exact model without single rows: no leave-one-out scores."""
    import numpy as np

    from ..io.tables import shortened
    from ..palette import CAUSES
    from ..posterior.separate import causes

    posterior = model.posterior_
    show(
        f"{posterior.n_samples} samples of {', '.join(samples.targets)} at {len(samples.X)} inputs, against "
        f"{shortened(samples.features)}"
    )
    show("fitted model", style="bold")
    show(f"  kernel     {rounded(repr(model.kernel_))}")
    show(f"  noise      {rounded(repr(model.noise_))}")
    show("standard deviation of a new observation by cause, averaged over the inputs", style="bold")
    parts = model.uncertainty(samples.X)
    for cause in causes(posterior):
        show(f"  {cause:<13} {np.sqrt(np.mean(getattr(parts, cause))):<9.4g} {CAUSES[cause]}")
    show("scores need held-out data: means and variances at the inputs are kept, not the rows")


def outputs(data: Path, output: Path, force: bool) -> list[tuple[Path, Path]]:
    """Pairs of an input and the output for it: one file, or files of the same names in a folder."""
    if str(data) == "-":
        if str(output) != "-":
            may_write(output, force)
        return [(data, output)]
    from ..io.streams import expanded

    paths = [Path(path) for path in expanded(data)]
    if not output.is_dir() and paths == [data]:
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
