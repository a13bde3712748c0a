"""Kernels given as text, such as ``"2.0 * rbf(length_scale=0.5) + linear"``: parsed, never evaluated."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from ..text import Formula
from .base import Constant, Kernel
from .dot import Linear, Polynomial
from .parameters import DEFAULT_BOUNDS, Bounds, Scale
from .stationary import RBF, Exponential, Matern, Periodic, RationalQuadratic

__all__ = ["KERNEL_NAMES", "parse_kernel"]


def _matern(nu: float) -> Callable[..., Kernel]:
    def maker(length_scale: Scale = 1.0, length_scale_bounds: Bounds = DEFAULT_BOUNDS) -> Kernel:
        return Matern(length_scale, length_scale_bounds, nu)

    return maker


KERNELS: dict[str, Callable[..., Kernel]] = {
    "constant": Constant,
    "exponential": Exponential,
    "linear": Linear,
    "matern": Matern,
    "matern12": Exponential,
    "matern32": _matern(1.5),
    "matern52": _matern(2.5),
    "periodic": Periodic,
    "polynomial": Polynomial,
    "rational_quadratic": RationalQuadratic,
    "rbf": RBF,
}
KERNEL_NAMES = tuple(KERNELS)  # names that a formula may use; capitals and underscores do not matter

PLAIN = {name.replace("_", ""): maker for name, maker in KERNELS.items()}


def parse_kernel(text: str, n_inputs: int | None = None) -> Kernel:
    """Kernel from its formula, such as its ``repr``: names, numbers, ``+``, ``*``, ``**`` and parentheses.

    A name stands for the kernel with its defaults, a number for `Constant`. With ``n_inputs``, for a kernel to be tuned, a
    name without parameters gets one length scale per input, and a formula without a `Constant` is multiplied by one.
    """
    formula = Formula("kernel", text, "2.0 * rbf(length_scale=0.5) + linear")
    try:
        kernel = _kernel(formula, formula.tree, n_inputs or 1)
    except RecursionError:
        raise formula.error(0, "the formula is nested too deeply") from None
    scaled = n_inputs is None or any(name.split(".")[-1] == "value" for name in kernel.names)
    return kernel if scaled else Constant() * kernel


def _kernel(formula: Formula, node: ast.expr, n_inputs: int) -> Kernel:
    """The kernel of a part of the formula."""
    match node:
        case ast.BinOp(left, ast.Add(), right):
            return _kernel(formula, left, n_inputs) + _kernel(formula, right, n_inputs)
        case ast.BinOp(left, ast.Mult(), right):
            return _kernel(formula, left, n_inputs) * _kernel(formula, right, n_inputs)
        case ast.BinOp(left, ast.Pow(), right):
            exponent = formula.source(right)
            if not (exponent.isdigit() and len(exponent) < 7 and int(exponent) >= 1):
                raise formula.error(right, "expected a positive integer")
            return _kernel(formula, left, n_inputs) ** int(exponent)
        case ast.Constant():
            return _made(formula, formula.source(node), Constant, [formula.number(node)], {})
        case ast.Name(name):
            maker = _maker(name)
            several = n_inputs > 1 and "length_scale" in signature(maker).parameters
            return maker(length_scale=(1.0,) * n_inputs) if several else maker()
        case ast.Call(ast.Name(name)):
            return _made(formula, name, _maker(name), *formula.call(node, partial(_value, formula)))
    raise formula.error(node, "expected a kernel")


def _value(formula: Formula, node: ast.expr) -> Any:
    """A number, a text in quotes, or a sequence of values."""
    match node:
        case ast.List(items) | ast.Tuple(items):
            return tuple(_value(formula, item) for item in items)
        case ast.Constant(str(text)):
            return text
    source = formula.source(node)
    # small integers may be degrees; larger ones are lengths and read as floats
    return int(source) if source.isdigit() and len(source) < 10 else formula.number(node, special=True)


def _maker(name: str) -> Callable[..., Kernel]:
    plain = name.lower().replace("_", "")
    if plain not in PLAIN:
        close = difflib.get_close_matches(name.lower(), KERNELS, n=2)
        known = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(KERNELS)}"
        raise ValueError(f"kernel: unknown kernel {name!r}; {known}")
    return PLAIN[plain]


def _made(
    formula: Formula, name: str, maker: Callable[..., Kernel], positional: list[Any], named: dict[str, Any]
) -> Kernel:
    parameters = signature(maker)
    try:
        parameters.bind(*positional, **named)
    except TypeError:
        raise ValueError(
            f"kernel {formula.text!r}: {name} takes the parameters ({', '.join(parameters.parameters)})"
        ) from None
    try:
        return maker(*positional, **named)
    except (TypeError, ValueError) as error:
        raise ValueError(f"kernel {formula.text!r}: {name}: {error}") from None
