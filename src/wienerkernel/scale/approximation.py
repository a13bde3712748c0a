"""The argument ``approximation``: `Neighbors`, `Features`, or a string."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["EXACT_PLACES", "Actions", "Approximation", "Features", "Neighbors", "as_approximation"]

EXACT_PLACES = 25_000
"""Distinct inputs up to which ``approximation="auto"`` solves exactly: a factor of 5 GB."""


@dataclass(frozen=True)
class Neighbors:
    """Predict from the nearest samples of each query point only.

    The weights solve the exact equations for the ``n_neighbors`` samples that are nearest in units of the length
    scales (Gramacy and Apley 2015 review such local designs). The variances and the law of the prediction hold exactly
    for these weights.

    Parameters
    ----------
    n_neighbors : int, default=256

    Examples
    --------
    >>> Neighbors(64)
    Neighbors(n_neighbors=64)
    """

    n_neighbors: int = 256

    def __post_init__(self) -> None:
        _check("n_neighbors", self.n_neighbors, 2)


@dataclass(frozen=True)
class Features:
    """Predict from features of the kernel at inducing points (Nystroem), with one pass over the data.

    Parameters
    ----------
    n_features : int, default=2000
        Largest number of inducing points, which are chosen among the inputs one by one, each where the variance given
        the previous ones is largest.
    n_audits : int, default=256
        Frequencies that estimate the variance outside the span of the features, with a standard error.
    reservoir : int, default=4096
        Rows, sampled at random, whose weights represent the law of the noise in the data.
    random_state : int, default=0

    Examples
    --------
    >>> Features(500)
    Features(n_features=500, n_audits=256, reservoir=4096, random_state=0)
    """

    n_features: int = 2000
    n_audits: int = 256
    reservoir: int = 4096
    random_state: int = 0

    def __post_init__(self) -> None:
        _check("n_features", self.n_features, 1)
        _check("n_audits", self.n_audits, 2)
        _check("reservoir", self.reservoir, 1)


@dataclass(frozen=True, eq=False)
class Actions:
    """Predict with weights in the span of given actions, to study the cost of an approximation on few data.

    The ``computational`` part of the variance is exact here, which takes the factorization that an approximation avoids.

    Parameters
    ----------
    kind : {"subset", "cholesky"} or array-like of shape (n, m), default="cholesky"
        A random subset of the samples, the samples that a partial Cholesky factorization takes, or the actions S as
        columns. They must not depend on y.
    number : int, default=None
        The first so many actions; None is all of them.
    random_state : int, default=0
        Seed of the subset.

    Examples
    --------
    >>> Actions("subset", 20)
    Actions(kind='subset', number=20, random_state=0)
    """

    kind: Any = "cholesky"
    number: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.kind, str) and self.kind not in ("subset", "cholesky"):
            raise ValueError(f"kind must be 'subset', 'cholesky' or a matrix, got {self.kind!r}")
        if not isinstance(self.kind, str) and np.ndim(self.kind) != 2:
            raise ValueError(f"the actions must be a matrix of shape (n, m), got shape {np.shape(self.kind)}")
        if self.number is not None:
            _check("number", self.number, 1)


Approximation = Neighbors | Features | Actions

NAMES: dict[str, type[Neighbors | Features]] = {"neighbors": Neighbors, "features": Features}


def as_approximation(given: Any) -> Approximation | str | None:
    """Check the argument; ``"auto"`` is decided when the kernel is known, None is exact."""
    if given is None or isinstance(given, Neighbors | Features | Actions):
        return given
    if isinstance(given, str) and given in ("auto", *NAMES):
        return NAMES[given]() if given in NAMES else given
    msg = f"approximation must be None, 'auto', 'neighbors', 'features', Neighbors(...), Features(...) or Actions(...), got {given!r}"
    raise ValueError(msg)


def _check(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
