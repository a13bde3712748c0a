"""Trend functions, estimated without penalty: none, a constant, or a linear function of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import qr

from .._typing import Array, BoolArray, FloatArray, IntArray
from ..backend import arrays
from ..backend.linalg import NotPositiveDefiniteError

__all__ = [
    "TRENDS",
    "Trend",
    "check_determined",
    "check_others_determine",
    "determining_rows",
    "is_determined",
]

TRENDS = (None, "constant", "linear")
LOST = 1e-10  # Q_ii relative to A_ii, where sample i alone determines a coefficient of the trend


@dataclass(frozen=True)
class Trend:
    """Basis functions h of the trend: none, the constant, or the constant and the inputs.

    The places (U, d) center and scale the inputs, which only changes the conditioning.
    """

    kind: str | None
    places: Array

    def __post_init__(self) -> None:
        if self.kind not in TRENDS:
            raise ValueError(f"trend must be None, 'constant' or 'linear', got {self.kind!r}")

    @cached_property
    def _center_and_spread(self) -> tuple[Array, Array]:
        xp = arrays.namespace(self.places)
        spread = xp.std(self.places, axis=0)
        return xp.mean(self.places, axis=0), xp.where(spread == 0, xp.ones_like(spread), spread)

    def __call__(self, X: Array) -> Array:
        """Values h(x) at the rows of X, (m, q)."""
        xp = arrays.namespace(X)
        if self.kind == "linear":
            center, spread = self._center_and_spread
            return xp.concat([xp.ones_like(X[:, :1]), (X - center) / spread], axis=1)
        return xp.ones_like(X[:, :1]) if self.kind == "constant" else X[:, :0]

    @property
    def gradient(self) -> Array:
        """Gradient dh/dx of the basis functions, which are affine, (q, d)."""
        constant = arrays.filled((int(self.kind is not None), self.places.shape[1]), 0.0, self.places)
        if self.kind != "linear":
            return constant
        slopes = 1 / self._center_and_spread[1]
        diagonal = arrays.set_diagonal(arrays.filled((slopes.shape[0],) * 2, 0.0, slopes), slopes)
        return arrays.namespace(constant).concat([constant, diagonal])


def check_determined(information: Array, number: int, what: str = "different rows of X") -> None:
    """Raise NotPositiveDefiniteError if the data do not determine the coefficients; ``information`` is H'AH."""
    largest = 2e-4 / float(arrays.namespace(information).finfo(information.dtype).eps)
    if 0 not in information.shape and np.linalg.cond(arrays.as_numpy(information)) > largest:
        raise NotPositiveDefiniteError(
            f"the trend has {len(information)} coefficients, which {number} {what} do not determine: use "
            "trend='constant' or trend=None, or add rows"
        )


def check_others_determine(trend: Trend, diagonal: FloatArray, own: FloatArray) -> None:
    """Refuse to leave out a sample without which the trend is not determined; ``diagonal`` is Q_ii, ``own`` A_ii."""
    if trend.kind and (lost := np.flatnonzero(~(diagonal > LOST * own))).size:
        msg = f"sample {lost[0]} cannot be left out: the others do not determine the trend {trend.kind!r}"
        raise ValueError(msg)


def is_determined(basis: FloatArray, near_basis: FloatArray) -> BoolArray:
    """Whether the rows ``near_basis`` (m, N, q) of H determine the trend h(x)'b at x, for ``basis`` h(x) (m, q)."""
    values, vectors = np.linalg.eigh(near_basis.mT @ near_basis)
    lost = np.where(values < 1e-12 * values[:, -1:], np.einsum("mqk,mq->mk", vectors, basis), 0.0)
    return np.asarray(np.abs(lost).max(axis=1, initial=0.0) <= 1e-5 * np.linalg.norm(basis, axis=1))


def determining_rows(basis: FloatArray, number: int) -> IntArray:
    """At most ``number`` rows of H (n, q) that determine the coefficients well, (k q,): QR with pivoting, k times."""
    n, q = basis.shape
    left, found = np.arange(n), np.empty(0, dtype=int)
    for _ in range(min(max(number // q, 1), n // q)):
        pivots = qr(basis[left].T, mode="r", pivoting=True)[1][:q]
        found, left = np.append(found, left[pivots]), np.delete(left, pivots)
    return found
