"""Numbers in texts for people."""

from __future__ import annotations

import re

__all__ = ["rounded"]


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
