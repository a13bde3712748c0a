"""Progress of a long computation on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TypeVar

__all__ = ["shown"]

Item = TypeVar("Item")
PATIENCE = 2.0
"""Seconds before the first message."""


def shown(
    parts: Iterator[tuple[slice, Item]], total: int, verbose: bool, what: str = "rows"
) -> Iterator[tuple[slice, Item]]:
    """Pass on parts of ``total`` rows; if ``verbose``, show how many are done once it takes more than two seconds."""
    start, told = time.monotonic(), False
    for part, item in parts:
        yield part, item
        if verbose and (told or time.monotonic() - start > PATIENCE):
            told = True
            print(
                f"\rwienerkernel: {min(part.stop or total, total)} of {total} {what}", end="", file=sys.stderr
            )
    if told:
        print(file=sys.stderr)
