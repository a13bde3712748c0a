"""Numbers in texts: those that people write, by one rule, and those that people read."""

from __future__ import annotations

import re

__all__ = ["number", "rounded"]

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
SPECIAL = re.compile(r"[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE)


def number(text: str, *, special: bool = False) -> float:
    """The number that a text is, by one strict rule: ASCII digits, a point, an exponent; blanks around it.

    Python's own rule takes ``1_000`` and the digits of other scripts as well, which in data are mistakes.

    Parameters
    ----------
    text : str
    special : bool, default=False
        Whether infinities and NaN are numbers, too.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For any other text.
    """
    plain = text.strip()
    if NUMBER.fullmatch(plain) or (special and SPECIAL.fullmatch(plain)):
        return float(plain)
    raise ValueError(f"{text[:60]!r} is not a number")


def rounded(text: str) -> str:
    """A text with its decimal numbers to four significant digits.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    return re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)
