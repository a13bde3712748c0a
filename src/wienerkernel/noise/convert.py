"""Conversion of scipy.stats laws, recorded residuals and text to noise laws; text is parsed, never evaluated."""

from __future__ import annotations

import ast
import difflib
from functools import lru_cache
from typing import Any

import numpy as np

from ..text import Formula
from .base import Noise
from .identity import of_scipy
from .residuals import Residuals
from .scipy_law import ScipyNoise

__all__ = ["as_noise", "scipy_family"]


def as_noise(obj: Any) -> Noise:
    """Convert a description of the noise to a :class:`Noise`.

    Parameters
    ----------
    obj : frozen scipy.stats law, str, array-like of shape (n,), Noise or None
        A law, its name and parameters such as ``"gamma(0.25, scale=2)"``, recorded residuals,
        a :class:`Mixture` or an :class:`~wienerkernel.Expansion`. None is the standard normal law.

    Returns
    -------
    Noise
        With positive, finite variance.

    Examples
    --------
    >>> as_noise("gamma(0.25, scale=2)").var()
    1.0
    >>> as_noise([-0.1, 0.0, 0.2]).support()
    (-0.1, 0.2)
    """
    noise = _convert(obj)
    variance = noise.var()
    if not (np.isfinite(variance) and variance > 0):
        msg = f"noise {noise!r} has variance {variance}; a law with positive, finite variance is needed"
        raise ValueError(msg)
    return noise


def _convert(obj: Any) -> Noise:
    if isinstance(obj, Noise):
        return obj
    if obj is None:
        obj = "norm(0, 1)"
    if isinstance(obj, str):
        obj = _parsed(obj)
    if hasattr(obj, "dist") and hasattr(obj, "kwds"):
        noise = ScipyNoise(obj)
        if (
            noise.discrete and of_scipy(obj.dist) and hasattr(obj.dist, "xk")
        ):  # values and their probabilities
            return Residuals(obj.dist.xk + noise.loc, obj.dist.pk)
        return noise
    if hasattr(obj, "freeze"):
        msg = f"noise={obj.name} has no parameters: freeze it first, for example stats.gamma(0.25, scale=2)"
        raise TypeError(msg)
    if np.ndim(obj) == 1:
        return Residuals(obj)
    raise TypeError(
        f"noise must be a frozen scipy.stats law, a string such as 'gamma(0.25, scale=2)', a one-dimensional array "
        f"of residuals, a Mixture or an Expansion, got {type(obj).__name__}"
    )


@lru_cache(maxsize=64)  # scipy.stats takes a millisecond to freeze a law
def _parsed(text: str) -> Any:
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
