"""Text written by users: names from a list, numbers by one strict rule, and formulas, which are never evaluated."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

__all__ = ["Formula", "check_choice", "check_probability", "number", "rounded"]

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
SPECIAL = re.compile(r"[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE)
UNEXPECTED = re.compile(r"[^\w\s.+\-*=,()\[\]'\"]", re.ASCII)
"""Characters that no formula needs, which excludes comments, escapes, other scripts and most operators."""


def number(text: str, *, special: bool = False) -> float:
    """Convert a text to a number by one strict rule: ASCII digits, a point, an exponent; blanks around it are allowed.

    Python's own rule also accepts ``1_000`` and digits of other scripts, which in data are mistakes. Any other text
    raises ValueError; infinities and NaN do so unless ``special`` is true.
    """
    plain = text.strip()
    if NUMBER.fullmatch(plain) or (special and SPECIAL.fullmatch(plain)):
        return float(plain)
    raise ValueError(f"{text[:60]!r} is not a number")


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise ValueError if the argument ``name`` is not one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_probability(name: str, value: Any) -> float:
    """The argument ``name`` as a number strictly between 0 and 1; ValueError otherwise."""
    if isinstance(value, Sequence) or getattr(value, "ndim", False) or not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return value  # type: ignore[no-any-return]


def rounded(text: str) -> str:
    """A text with its decimal numbers rounded to four significant digits."""
    return re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)


class Formula:
    """A text parsed as one Python expression, which is never evaluated: callers accept the nodes of ``tree`` they know.

    Parameters
    ----------
    kind : str
        What the text describes, named in messages.
    text : str
    example : str
        A correct formula, shown in messages.
    """

    def __init__(self, kind: str, text: str, example: str) -> None:
        self.kind, self.text, self.example = kind, text, example
        # one line without leading blanks, which Python would read as an indentation
        self._line = re.sub(r"\s", " ", text).lstrip()
        self._start = len(text) - len(self._line)
        if unexpected := UNEXPECTED.search(self._line):
            raise self.error(unexpected.start(), f"unexpected character {unexpected[0]!r}")
        try:
            self.tree: ast.expr = ast.parse(self._line, mode="eval").body
        except SyntaxError as error:
            if 1 <= (offset := error.offset or 0) <= len(self._line):
                raise self.error(offset - 1, error.msg) from None
            raise self.error(len(self._line), "unexpected end of the formula") from None
        except (MemoryError, RecursionError):
            raise self.error(0, "the formula is nested too deeply") from None

    def error(self, at: ast.expr | ast.keyword | int, what: str) -> ValueError:
        """An error that points at a node, or at an offset in the text without leading blanks."""
        column = (at if isinstance(at, int) else at.col_offset) + self._start + 1
        shown = self.text if len(self.text) <= 80 else self.text[:77] + "..."
        return ValueError(f"{self.kind} {shown!r}, column {column}: {what}, for example {self.example!r}")

    def source(self, node: ast.expr) -> str:
        """The text of a node."""
        return self._line[node.col_offset : node.end_col_offset]

    def number(self, node: ast.expr, *, special: bool = False) -> float:
        """The value of a node that is a number by the rule of :func:`number`."""
        try:
            return number(self.source(node), special=special)
        except ValueError:
            raise self.error(node, "expected a number") from None

    def call(self, node: ast.Call, value: Callable[[ast.expr], Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named arguments of a call, each read by ``value``."""
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error(keyword, "expected name=value")
            if keyword.arg in named:
                raise self.error(keyword, f"{keyword.arg} is given twice")
            named[keyword.arg] = value(keyword.value)
        return [value(argument) for argument in node.args], named
