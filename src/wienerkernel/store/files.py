"""A file that is written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["check_writable", "written_whole"]


def check_writable(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Say early what would make writing a file fail.

    Parameters
    ----------
    path : path-like
    overwrite : bool
        Whether a file of that name may exist.

    Returns
    -------
    Path
        With links resolved, so that the file they lead to is replaced and not the link.

    Examples
    --------
    >>> check_writable("/no/such/folder/model.wk", overwrite=True)
    Traceback (most recent call last):
    FileNotFoundError: cannot write /no/such/folder/model.wk: there is no folder /no/such/folder
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise ValueError(f"cannot write {path}: it exists and is not a regular file")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already")
    return target


@contextmanager
def written_whole(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its name only when everything is in it and on the disk.

    Parameters
    ----------
    path : path-like
    overwrite : bool, default=True
        Whether a file of that name may exist; it stays as it is until the new one is complete.

    Yields
    ------
    binary file

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder) / "a.txt") as file:
    ...         _ = file.write(b"whole")
    ...     [entry.name for entry in Path(folder).iterdir()]
    ['a.txt']
    """
    target = check_writable(path, overwrite=overwrite)
    # In the same folder, because only within one file system is a rename a single step.
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_writable(target, overwrite=overwrite)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
