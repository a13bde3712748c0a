"""The type of a characteristic function, and the functions that all of them are built from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy import special

from ..._typing import ComplexArray, FloatArray

__all__ = [
    "CHUNK",
    "HALF_PI",
    "INF",
    "CharacteristicFunction",
    "LogCF",
    "affine",
    "by_chunks",
    "expm1",
    "log1p",
    "piecewise",
]

INF = np.inf
HALF_PI = np.pi / 2
LogCF = Callable[[ComplexArray], ComplexArray]
Array = TypeVar("Array", FloatArray, ComplexArray)

# complex, with relative accuracy near 0, which numpy's log1p lacks
log1p: LogCF = special.log1p
expm1: LogCF = np.expm1

CHUNK = 1 << 18
"""Maximum number of elements of a (points, nodes) array in memory."""


@dataclass(frozen=True)
class CharacteristicFunction:
    """Log characteristic function of a standard law, and where it is available.

    ``logcf`` is log E exp(i t M) for complex t of any shape, up to multiples of 2 pi i; off the real axis the error of
    exp(logcf) is relative to E exp(-Im(t) M). It holds for t = -i s with s in the open interval ``strip``, and for
    abs(arg t) and abs(arg -t) below ``sector``, where 0 means real t only. The law is that of ``loc`` + M: where its end
    moves to 0, i t loc must not be added and subtracted again.
    """

    logcf: LogCF
    strip: tuple[float, float]
    sector: float
    loc: float = 0.0


def piecewise(near: float, small: LogCF, large: LogCF) -> LogCF:
    """Function that is ``small`` where abs(t) < ``near`` and ``large`` elsewhere."""

    def logcf(t: ComplexArray) -> ComplexArray:
        t = np.asarray(t, dtype=complex)
        inside = np.abs(t) < near
        if inside.all():
            return small(t)
        if not inside.any():
            return large(t)
        out = np.empty(t.shape, dtype=complex)
        out[inside] = small(t[inside])
        out[~inside] = large(t[~inside])
        return out

    return logcf


def by_chunks(function: Callable[[Any], Any], nodes: int, x: Array) -> Array:
    """Evaluate ``function`` of a flat array in pieces, so that (points, nodes) arrays stay small."""
    step = max(1, CHUNK // nodes)
    flat = x.ravel()
    out = np.empty_like(flat)
    for start in range(0, flat.size, step):
        out[start : start + step] = function(flat[start : start + step])
    return out.reshape(x.shape)


def affine(law: CharacteristicFunction, scale: float, loc: float = 0.0) -> CharacteristicFunction:
    """Characteristic function of loc + scale M; a negative scale reflects the law."""
    strip = sorted((law.strip[0] / scale, law.strip[1] / scale))
    return CharacteristicFunction(
        lambda t: law.logcf(scale * t), (strip[0] or 0.0, strip[1] or 0.0), law.sector, loc
    )
