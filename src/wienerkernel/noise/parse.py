"""Noise given as text, such as ``"gamma(0.25, scale=2)"``: parsed, never evaluated."""

from __future__ import annotations

import ast
import difflib
from functools import lru_cache
from typing import Any

import numpy as np

from ..text import Formula

__all__ = ["parse_noise", "scipy_family"]


@lru_cache(maxsize=64)  # scipy.stats takes a millisecond to freeze a law
def parse_noise(text: str) -> Any:
    """Frozen ``scipy.stats`` law from ``name(number, ..., key=number, ...)``."""
    formula = Formula("noise", text, "gamma(0.25, scale=2)")
    tree = formula.tree
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)):
        raise formula.error(tree, "expected the name of a law and its parameters in parentheses")
    family = scipy_family(tree.func.id)
    args, kwds = formula.call(tree, formula.number)
    try:
        frozen = family(*args, **kwds)
    except TypeError as error:
        accepted = ", ".join(filter(None, [family.shapes, "loc", "scale"]))
        raise ValueError(f"noise {text!r}: {family.name} takes the parameters ({accepted})") from error
    if np.isnan(frozen.support()).any():
        raise ValueError(f"noise {text!r}: the parameters are outside the domain of {family.name}")
    return frozen


def scipy_family(name: str) -> Any:
    """The family of ``scipy.stats`` with this name."""
    from scipy import stats

    families = {
        key: law
        for key, law in vars(stats).items()
        if isinstance(law, stats.rv_continuous | stats.rv_discrete)
    }
    if name in families:
        return families[name]
    close = difflib.get_close_matches(name, families, n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else "; the names are those of scipy.stats"
    raise ValueError(f"noise: unknown law {name!r}{hint}")
