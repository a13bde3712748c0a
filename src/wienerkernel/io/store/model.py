"""A fitted model as one file, and back."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import __version__
from ..files import atomic_write
from . import estimator, level, noise, objects, posterior, smoother
from .archive import Archive, FormatError, write_archive
from .nodes import Node, Reader, Record, Writer

if TYPE_CHECKING:
    from ...dynamics import Dynamics
    from ...regressor import WienerKernelRegressor

__all__ = ["load", "load_any", "load_system", "save"]

FORMAT, VERSION = "wienerkernel model", 5
PARTS = (objects, noise, level, smoother, posterior, estimator)
RECORDS: list[Record] = [record for part in PARTS for record in part.RECORDS]
LONGEST_TEXT, LONGEST_MESSAGE = 2**22, 600


def save(
    model: WienerKernelRegressor | Dynamics, path: str | os.PathLike[str], *, overwrite: bool = True
) -> None:
    """Write a fitted model or a system to a file, atomically.

    Parameters
    ----------
    model : WienerKernelRegressor or Dynamics
        Fitted. Arrays of other libraries are saved as NumPy arrays. A ``random_state`` that is a generator is not
        kept: the model is fitted already. Column names are kept if there are attributes ``feature_names_in_`` and
        ``target_names_in_``, and how columns of a table became inputs if there is an attribute ``columns_``.
    path : path-like
        Conventionally ending in ``.wk``.
    overwrite : bool, default=True
        Whether a file of that name may be replaced.

    Raises
    ------
    TypeError
        If the kernel, the noise law, the noise level or the transform is code, which a file of numbers cannot hold.
    """
    writer = Writer(RECORDS)
    try:
        if not hasattr(model, "models"):
            check_is_fitted(model)
        content = writer.node(model, "")
        tree = {"format": FORMAT, "version": VERSION, "library": __version__, **content}
        text = json.dumps(tree, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise ValueError("the model cannot be saved: its kernel or noise is nested too deeply") from None
    if len(text) > LONGEST_TEXT:
        raise ValueError(
            f"the model cannot be saved: names and parameters take more than {LONGEST_TEXT} bytes"
        )
    with atomic_write(path, overwrite=overwrite) as file:
        write_archive(file, text, writer.arrays)


def load(path: str | os.PathLike[str]) -> WienerKernelRegressor:
    """Read a model that `save` has written. Nothing is refitted, and no code is loaded from the file.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    WienerKernelRegressor
        Its predictions equal those of the saved model bit for bit on the same machine.

    Raises
    ------
    FormatError
        A ValueError: the file is not a saved model, is damaged, or was written by another version of the format.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     load(file.name)
    Traceback (most recent call last):
    wienerkernel.io.store.archive.FormatError: ...: the file is not a saved model, or it is truncated
    """
    from ...regressor import WienerKernelRegressor

    found = load_any(path)
    if not isinstance(found, WienerKernelRegressor):
        raise FormatError(
            f"{os.fspath(path)}: this is a dynamic system: read it with Dynamics.load, or report it"
        )
    return found


def load_system(path: str | os.PathLike[str]) -> Dynamics:
    """Read a system that `save` has written, as `load` does models."""
    from ...dynamics import Dynamics

    found = load_any(path)
    if not isinstance(found, Dynamics):
        raise FormatError(f"{os.fspath(path)}: this is a model, not a dynamic system; read it with load")
    return found


def load_any(path: str | os.PathLike[str]) -> WienerKernelRegressor | Dynamics:
    """Read what `save` has written, a model or a system."""
    try:
        with Archive(path) as archive, np.errstate(all="ignore"):
            tree = _parsed(archive.text(LONGEST_TEXT))
            if tree.get("kind") not in ("WienerKernelRegressor", "Dynamics"):
                raise FormatError("model.json: expected the entries of a model or a system")
            model = Reader(RECORDS, archive).value(tree, "")
            if archive.unread:
                raise FormatError(f"{archive.unread[0]} belongs to no part of the model")
            return model  # type: ignore[no-any-return]
    except RecursionError:
        raise FormatError(f"{os.fspath(path)}: model.json is nested too deeply") from None
    except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as error:
        # What constructors raise for invalid arguments is an error in the file here.
        raise FormatError(f"{os.fspath(path)}: {str(error)[:LONGEST_MESSAGE]}") from error


def _parsed(text: bytes) -> dict[str, Node]:
    """The tree in ``model.json``, after a check of its format and version."""

    def refuse(word: str) -> None:
        raise FormatError(f"model.json: {word} is not a number")

    tree = json.loads(text.decode(), parse_constant=refuse)
    if not isinstance(tree, dict) or tree.pop("format", None) != FORMAT:
        raise FormatError(f"the file is not a {FORMAT}")
    version, library = tree.pop("version", None), str(tree.pop("library", None))[:20]
    if not isinstance(version, int) or version < 1:
        raise FormatError(f"model.json: {str(version)[:80]!r} is not a version of the format")
    if version != VERSION:
        age, remedy = (
            ("newer", "upgrade to read it") if version > VERSION else ("older", "fit the model again")
        )
        raise FormatError(
            f"written by a{'n' * (age == 'older')} {age} version of wienerkernel ({library}, this is {__version__}): {remedy}"
        )
    return tree
