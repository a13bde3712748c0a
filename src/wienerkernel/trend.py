"""Basis functions that are estimated without penalty: none, a constant, or a linear function of the inputs."""

from __future__ import annotations

from dataclasses import dataclass

from . import arrays
from ._typing import Array

__all__ = ["Trend"]


@dataclass(frozen=True)
class Trend:
    """Basis functions h of the trend: none, the constant, or the constant and the inputs.

    Parameters
    ----------
    kind : {None, "constant", "linear"}
    places : ndarray of shape (U, d)
        The inputs are centred and scaled by them, which changes the conditioning and nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [2.0]])
    >>> Trend("linear", X)(X).tolist()
    [[1.0, -1.0], [1.0, 1.0]]
    """

    kind: str | None
    places: Array

    def __post_init__(self) -> None:
        if self.kind not in (None, "constant", "linear"):
            msg = f"trend must be None, 'constant' or 'linear', got {self.kind!r}"
            raise ValueError(msg)

    def __call__(self, X: Array) -> Array:
        """Values h(x) at the rows of X, (m, q)."""
        xp = arrays.namespace(X)
        if self.kind == "linear":
            spread = xp.std(self.places, axis=0)
            spread = xp.where(spread == 0, xp.ones_like(spread), spread)
            return xp.concat([xp.ones_like(X[:, :1]), (X - xp.mean(self.places, axis=0)) / spread], axis=1)
        return xp.ones_like(X[:, :1]) if self.kind == "constant" else X[:, :0]
