"""Noise given as text, such as ``"gamma(0.25, scale=2)"``: parsed, never evaluated."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from typing import Any

import numpy as np

from ..text import number

__all__ = ["parse_noise"]

NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*")
VALUE = re.compile(r"\s*([^\s,()=]*)\s*")
EXAMPLE = "for example 'gamma(0.25, scale=2)'"


@lru_cache(maxsize=64)  # scipy.stats takes a millisecond to freeze a law
def parse_noise(text: str) -> Any:
    """Frozen ``scipy.stats`` law from its name and numbers.

    Parameters
    ----------
    text : str
        ``name(number, ..., key=number, ...)``.

    Returns
    -------
    frozen scipy.stats distribution
    """
    name = NAME.match(text)
    if name is None:
        raise _error(text, 0, "expected the name of a law")
    family = _family(name[1])
    position = name.end()
    if text[position : position + 1] != "(":
        raise _error(text, position, "expected '(' and the parameters of the law")
    args, kwds, position = _arguments(text, position + 1)
    if text[position:].strip():
        raise _error(text, position, "expected nothing after ')'")
    return _freeze(text, family, args, kwds)


def _family(name: str) -> Any:
    from scipy import stats

    family = getattr(stats, name, None)
    if isinstance(family, (stats.rv_continuous, stats.rv_discrete)):
        return family
    known = [
        key for key, law in vars(stats).items() if isinstance(law, (stats.rv_continuous, stats.rv_discrete))
    ]
    close = difflib.get_close_matches(name, known, n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else "; the names are those of scipy.stats"
    msg = f"noise: unknown law {name!r}{hint}"
    raise ValueError(msg)


def _arguments(text: str, position: int) -> tuple[list[float], dict[str, float], int]:
    """Numbers and key=number pairs up to the closing bracket, and the position after it."""
    args: list[float] = []
    kwds: dict[str, float] = {}
    if closing := re.compile(r"\s*\)").match(text, position):
        return args, kwds, closing.end()
    while True:
        key = re.compile(NAME.pattern + "=").match(text, position)
        if key:
            if key[1] in kwds:
                raise _error(text, position, f"{key[1]} is given twice")
            position = key.end()
        token: Any = VALUE.match(text, position)  # which may be empty
        try:
            value = number(token[1])
        except ValueError:
            raise _error(text, position, "expected a number") from None
        if key:
            kwds[key[1]] = value
        elif kwds:
            raise _error(text, position, "a number without a name cannot follow one with a name")
        else:
            args.append(value)
        position = token.end()
        separator = text[position : position + 1]
        if separator == ")":
            return args, kwds, position + 1
        if separator != ",":
            raise _error(text, position, "expected ',' or ')'")
        position += 1


def _freeze(text: str, family: Any, args: list[float], kwds: dict[str, float]) -> Any:
    try:
        frozen = family(*args, **kwds)
    except TypeError as error:
        shapes = [*(family.shapes or "").split(", ")] if family.shapes else []
        accepted = ", ".join([*shapes, "loc", "scale"])
        msg = f"noise {text!r}: {family.name} takes the parameters ({accepted})"
        raise ValueError(msg) from error
    if np.isnan(frozen.support()).any():
        msg = f"noise {text!r}: the parameters are outside the domain of {family.name}"
        raise ValueError(msg)
    return frozen


def _error(text: str, position: int, what: str) -> ValueError:
    return ValueError(f"noise {text!r}, column {position + 1}: {what}, {EXAMPLE}")
