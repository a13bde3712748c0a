"""A file that is written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows, where nobody can remove a file that somebody has open
    LOCKS = False
else:
    LOCKS = True

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

    What a process that was killed has left of earlier attempts at the same name is removed.

    Parameters
    ----------
    path : path-like
    overwrite : bool, default=True
        Whether a file of that name may exist; it stays as it is until the new one is complete.

    Yields
    ------
    binary file
    """
    target = check_writable(path, overwrite=overwrite)
    _remove_left_over(target)
    temporary, file = _temporary(target)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            check_writable(target, overwrite=overwrite)
            if LOCKS:  # before the lock is given up
                temporary.replace(target)
        if not LOCKS:
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(target: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside the target: only within one file system is a rename a single step.

    It is locked as long as this process has it open, which the end of the process, whatever its kind, undoes.
    """
    while True:
        temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
        file = temporary.open("xb")
        # Between these two lines somebody may have taken the file for left over.
        if _lock(file) is not False and os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()


def _remove_left_over(target: Path) -> None:
    """Remove temporary files of a target that no process has open."""
    name = re.compile(re.escape(f".{target.name[:100]}.") + r"[0-9a-f]{12}\.tmp")
    for found in target.parent.iterdir():
        if name.fullmatch(found.name):
            with suppress(OSError):  # gone already, or not ours
                if not LOCKS:
                    found.unlink()
                    continue
                with found.open("r+b") as file:
                    if _lock(file):
                        found.unlink()


def _lock(file: IO[bytes]) -> bool | None:
    """Whether a file could be locked; None where there are no locks."""
    if not LOCKS:
        return None
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # of some network file systems
        return None
    return True
