"""Characteristic functions of the laws in ``scipy.stats``: in closed form where one exists, else by quadrature.

Each is that of the standard law (loc 0, scale 1), as a function of complex t, with the strip of real s on which
E exp(s M) is finite and the sector around the real axis into which it continues analytically. Every logarithm
keeps its relative accuracy as t -> 0, since thousands of such small terms are summed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from .._typing import FloatArray
from .breaks import breaks
from .closed_forms import CLOSED_FORMS, CONTOURS
from .panels import numerical
from .quadrature import summed
from .transform import Characteristic, affine

__all__ = ["Characteristic", "characteristic", "is_formula", "standard_breaks"]

T = TypeVar("T")
_Key: TypeAlias = tuple[str, tuple[float, ...]]

_cache: dict[_Key, Characteristic] = {}
_breaks: dict[_Key, FloatArray] = {}
_CACHED = 256


def characteristic(name: str, shapes: tuple[float, ...], frozen_standard: Any) -> Characteristic:
    """Characteristic function of a standard law: closed form, rotated contour, or quadrature of its density.

    Parameters
    ----------
    name : str
        Name of the family in ``scipy.stats``.
    shapes : tuple of float
        Shape parameters.
    frozen_standard : frozen scipy.stats law
        The law itself, with loc 0 and scale 1; asked only where nothing better is known.

    Returns
    -------
    Characteristic
        The same object for the same name and shapes.

    Examples
    --------
    >>> from scipy import stats
    >>> law = characteristic("gamma", (0.25,), stats.gamma(0.25))
    >>> law.strip
    (-inf, 1.0)
    """
    return _kept(_cache, (name, shapes), lambda: _choose(name, shapes, frozen_standard))


def standard_breaks(name: str, shapes: tuple[float, ...], frozen_standard: Any) -> FloatArray:
    """Points where the density of a standard law (loc 0, scale 1) is not smooth, looked for once.

    Parameters
    ----------
    name : str
        Name of the family in ``scipy.stats``.
    shapes : tuple of float
        Shape parameters.
    frozen_standard : frozen scipy.stats law

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from scipy import stats
    >>> standard_breaks("arcsine", (), stats.arcsine()).tolist()
    [0.0, 1.0]
    """
    return _kept(_breaks, (name, shapes), lambda: breaks(frozen_standard))


def _kept(cache: dict[_Key, T], key: _Key, make: Callable[[], T]) -> T:
    """What is made once for a key, and kept until many others have come."""
    if key not in cache:
        while len(cache) >= _CACHED:
            cache.pop(next(iter(cache)))
        cache[key] = make()
    return cache[key]


def _choose(name: str, shapes: tuple[float, ...], frozen: Any) -> Characteristic:
    if name == "beta" and sum(shapes) > 500:
        return numerical(frozen)
    if name in CLOSED_FORMS:
        return CLOSED_FORMS[name](*shapes)
    known = CONTOURS[name](*shapes) if name in CONTOURS else None
    # A law that is nearly a point leaves no room to rotate.
    if known is not None and known[0].opening > 0.04:
        contour, scale, loc = known
        return affine(contour.characteristic(), scale, loc)
    return numerical(frozen) if hasattr(frozen, "pdf") else summed(frozen)


def is_formula(name: str) -> bool:
    """Whether the characteristic function of a family needs no more than a formula or a smooth contour.

    Parameters
    ----------
    name : str
        Name in ``scipy.stats``.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_formula("gamma"), is_formula("johnsonsu")
    (True, False)
    """
    return name in CLOSED_FORMS or name in CONTOURS
