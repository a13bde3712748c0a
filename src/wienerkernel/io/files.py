"""Files that are written atomically."""

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
except ImportError:  # Windows, where an open file cannot be removed
    LOCKS = False
else:
    LOCKS = True

__all__ = ["atomic_write", "check_writable"]


def check_writable(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Raise early what would make writing a file fail; the path with links resolved, so that no link is replaced."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise ValueError(f"cannot write {path}: it exists and is not a regular file")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: new files are not permitted in {target.parent}")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already")
    return target


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[IO[bytes]]:
    """Open a binary file that gets its name only when it is complete and on the disk.

    An existing file, which ``overwrite`` must allow, stays as it is until then. Temporary files that a killed process
    left behind for the same name are removed.
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
            if LOCKS:  # while the lock is held
                temporary.replace(target)
        if not LOCKS:
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(target: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside the target, because a rename is atomic only within one file system.

    It is locked while this process has it open; however the process ends, the lock goes with it.
    """
    while True:
        temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
        try:
            file = temporary.open("xb")
        except OSError as error:  # name the file that was asked for
            raise type(error)(error.errno, error.strerror, str(target)) from None
        # Before it was locked, another process may have removed the file as left over.
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
