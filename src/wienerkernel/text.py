"""Numbers in texts."""

from __future__ import annotations

import re

__all__ = ["number", "rounded"]

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
SPECIAL = re.compile(r"[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE)


def number(text: str, *, special: bool = False) -> float:
    """A number from its decimal or scientific notation, and from nothing else that Python would take for one.

    Parameters
    ----------
    text : str
    special : bool, default False
        Whether infinity and NaN are numbers, too.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For any other text: digits in groups or of other scripts, surrounding blanks.

    Examples
    --------
    >>> number("-2.5e-3"), number("inf", special=True)
    (-0.0025, inf)
    """
    if NUMBER.fullmatch(text) or (special and SPECIAL.fullmatch(text)):
        return float(text)
    raise ValueError(f"{text!r} is not a number")


def rounded(text: str) -> str:
    """A text with its decimal numbers to four significant digits.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> rounded("RBF(length_scale=3.9776343624838235)")
    'RBF(length_scale=3.978)'
    """
    return re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)
