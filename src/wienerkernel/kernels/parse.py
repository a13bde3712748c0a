"""Kernels given as text, such as ``"2.0 * rbf(length_scale=0.5) + linear"``: parsed, never evaluated."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from inspect import signature
from typing import Any, NoReturn

from ..text import number
from .base import Constant, Kernel
from .dot import Linear, Polynomial
from .parameters import DEFAULT_BOUNDS, Bounds, Scale
from .periodic import Periodic
from .stationary import RBF, Exponential, Matern, RationalQuadratic

__all__ = ["KERNEL_NAMES", "parse_kernel"]


def _matern32(length_scale: Scale = 1.0, length_scale_bounds: Bounds = DEFAULT_BOUNDS) -> Kernel:
    return Matern(length_scale, length_scale_bounds, nu=1.5)


def _matern52(length_scale: Scale = 1.0, length_scale_bounds: Bounds = DEFAULT_BOUNDS) -> Kernel:
    return Matern(length_scale, length_scale_bounds, nu=2.5)


KERNELS: dict[str, Callable[..., Kernel]] = {
    "constant": Constant,
    "exponential": Exponential,
    "linear": Linear,
    "matern": Matern,
    "matern12": Exponential,
    "matern32": _matern32,
    "matern52": _matern52,
    "periodic": Periodic,
    "polynomial": Polynomial,
    "rational_quadratic": RationalQuadratic,
    "rbf": RBF,
}
KERNEL_NAMES = tuple(KERNELS)
"""Names that a text may use; capitals and underscores do not matter."""

PLAIN = {name.replace("_", ""): maker for name, maker in KERNELS.items()}
TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf\b)|(?P<name>[A-Za-z_]\w*)|(?P<text>'\w*'|\"\w*\")"
    r"|(?P<sign>\*\*|[-+*=,()\[\]])|(?P<end>$)|(?P<other>.))",
    re.ASCII,
)
DEEPEST = 50


def parse_kernel(text: str) -> Kernel:
    """Kernel from its formula: names, numbers, ``+``, ``*``, ``**`` and brackets.

    Parameters
    ----------
    text : str
        A name stands for the kernel with its default hyperparameters; others are given as in Python, ``rbf(0.5)`` or
        ``rbf(length_scale=[0.5, 2])``. A number stands for `Constant`. What a kernel prints is such a text.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> parse_kernel("2.0 * rbf(length_scale=0.5) + linear")
    Constant(value=2.0) * RBF(length_scale=0.5) + Linear()
    >>> parse_kernel("matern52 * periodic(period=7)")
    Matern(nu=2.5) * Periodic(period=7.0)
    """
    return _Parser(text).whole()


class _Parser:
    """Recursive descent: a sum of products of powers of names, numbers and brackets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [
            (m.lastgroup or "", m[m.lastgroup or 0], m.start(m.lastgroup or 0)) for m in TOKEN.finditer(text)
        ]
        self.at = self.depth = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    @property
    def token(self) -> str:
        return self.tokens[self.at][1]

    def fail(self, what: str) -> NoReturn:
        column = self.tokens[self.at][2] + 1
        raise ValueError(
            f"kernel {self.text!r}, column {column}: {what}, for example '2.0 * rbf(length_scale=0.5) + linear'"
        )

    def accept(self, *signs: str) -> str:
        """The next token if it is one of these signs, and step over it; else nothing."""
        if self.kind != "sign" or self.token not in signs:
            return ""
        self.at += 1
        return self.tokens[self.at - 1][1]

    def require(self, sign: str) -> None:
        if not self.accept(sign):
            self.fail(f"expected {sign!r}")

    def whole(self) -> Kernel:
        kernel = self.sum()
        if self.kind != "end":
            self.fail("expected '+', '*', '**' or the end")
        return kernel

    def sum(self) -> Kernel:
        kernel = self.product()
        while self.accept("+"):
            kernel = kernel + self.product()
        return kernel

    def product(self) -> Kernel:
        kernel = self.power()
        while self.accept("*"):
            kernel = kernel * self.power()
        return kernel

    def power(self) -> Kernel:
        kernel = self.atom()
        if self.accept("**"):
            if (
                self.kind != "number"
                or not self.token.isdigit()
                or not 0 < len(self.token) < 7
                or int(self.token) < 1
            ):
                self.fail("expected a positive integer")
            self.at += 1
            kernel = kernel ** int(self.tokens[self.at - 1][1])
        return kernel

    def atom(self) -> Kernel:
        start = self.at
        if self.kind == "number":
            return self.made(start, Constant, [self.value()], {})
        if self.accept("("):
            self.depth += 1
            if self.depth > DEEPEST:
                self.fail(f"brackets are nested more than {DEEPEST} deep")
            kernel = self.sum()
            self.depth -= 1
            self.require(")")
            return kernel
        if self.kind != "name":
            self.fail("expected a kernel")
        name = self.token.lower().replace("_", "")
        if name not in PLAIN:
            close = difflib.get_close_matches(self.token.lower(), KERNELS, n=2)
            known = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(KERNELS)}"
            raise ValueError(f"kernel: unknown kernel {self.token!r}; {known}")
        self.at += 1
        return self.made(start, PLAIN[name], *(self.arguments() if self.accept("(") else ([], {})))

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        while not self.accept(")"):
            if self.kind == "name":
                key = self.token
                if key in named:
                    self.fail(f"{key} is given twice")
                self.at += 1
                self.require("=")
                named[key] = self.value()
            elif named:
                self.fail("a value without a name cannot follow one with a name")
            else:
                positional.append(self.value())
            if not self.accept(","):
                self.require(")")
                break
        return positional, named

    def value(self) -> Any:
        """A number, a text in quotes, or a sequence of values."""
        if self.kind in ("number", "text"):
            kind, token, _ = self.tokens[self.at]
            self.at += 1
            if kind == "text":
                return token[1:-1]
            return int(token) if token.isdigit() and len(token) < 10 else number(token, special=True)
        opening = self.accept("(", "[")
        if not opening:
            self.fail("expected a number, a list of numbers or 'fixed'")
        closing, values = {"(": ")", "[": "]"}[opening], []
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"brackets are nested more than {DEEPEST} deep")
        while not self.accept(closing):
            values.append(self.value())
            if not self.accept(","):
                self.require(closing)
                break
        self.depth -= 1
        return tuple(values)

    def made(
        self, start: int, maker: Callable[..., Kernel], positional: list[Any], named: dict[str, Any]
    ) -> Kernel:
        name, parameters = self.tokens[start][1], signature(maker)
        try:
            parameters.bind(*positional, **named)
        except TypeError:
            raise ValueError(
                f"kernel {self.text!r}: {name} takes the parameters ({', '.join(parameters.parameters)})"
            ) from None
        try:
            return maker(*positional, **named)
        except (TypeError, ValueError) as error:
            raise ValueError(f"kernel {self.text!r}: {name}: {error}") from None
