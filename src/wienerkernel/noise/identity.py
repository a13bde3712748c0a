"""Identity of laws: equality, hashes and caches depend on parameters and data, never on a name alone."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from hashlib import blake2b
from math import isnan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["digest", "family_name", "generator_key", "law_key", "of_scipy", "untouched"]

LABELS = {"name", "longname", "extradoc", "seed"}  # parameters of a generator that do not change its law


def digest(*arrays: ArrayLike) -> bytes:
    """Fingerprint of arrays of numbers. Equal arrays have equal ones, where 0 equals -0 and NaN equals NaN."""
    result = blake2b(digest_size=24)
    for array in arrays:
        numbers = np.asarray(array, dtype=float) + 0.0  # -0.0 + 0.0 is 0.0
        result.update(repr(numbers.shape).encode())
        result.update(np.where(np.isnan(numbers), np.nan, numbers).tobytes())
    return result.digest()


def family_name(dist: Any) -> str:
    """Name of a generator that ``scipy.stats`` has by that name, else "", as for a subclass or a replaced method."""
    name = str(getattr(dist, "name", ""))
    known = _known(name)
    if known is None or known[0] is not type(dist) or not untouched(dist):
        return ""
    return name if known[1] == _parameters(dist) else ""


def generator_key(dist: Any) -> Hashable:
    """What identifies the law of a generator, apart from its shapes, loc and scale.

    A name in ``scipy.stats``, or the class and its parameters (such as the counts of a histogram), or the generator itself.
    """
    if name := family_name(dist):
        return name
    return (type(dist), _parameters(dist)) if of_scipy(dist) and untouched(dist) else dist


def law_key(frozen: Any) -> Hashable:
    """What identifies a frozen law, apart from its shapes, loc and scale."""
    return generator_key(frozen.dist) if of_scipy(frozen) and untouched(frozen) else frozen


def of_scipy(obj: object) -> bool:
    """Whether the class of an object belongs to ``scipy.stats``."""
    return type(obj).__module__.startswith("scipy.stats.")


def untouched(obj: object) -> bool:
    """Whether no method of the class has been replaced on the object."""
    return not any(callable(getattr(type(obj), key, None)) for key in vars(obj))


@lru_cache(maxsize=256)
def _known(name: str) -> tuple[type, Hashable] | None:
    """Class and parameters of the generator that ``scipy.stats`` has under this name."""
    from scipy import stats

    generator = getattr(stats, name, None)
    if not isinstance(generator, stats.rv_continuous | stats.rv_discrete):
        return None
    # as constructed, ignoring attributes assigned later
    kind: Any = type(generator)
    return kind, _parameters(kind(**vars(generator)["_ctor_param"]))


def _parameters(dist: Any) -> Hashable:
    """Constructor parameters of a generator, as used to freeze it."""
    given = dist._updated_ctor_param()
    return tuple((key, _plain(given[key])) for key in sorted(given) if key not in LABELS)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Real):
        return "nan" if isnan(value) else float(value)
    try:
        return digest(value)
    except (TypeError, ValueError):  # not an array of numbers
        return tuple(map(_plain, value)) if isinstance(value, tuple | list) else value
