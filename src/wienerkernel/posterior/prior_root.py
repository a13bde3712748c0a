"""One triangular solve for the covariance of r(x) = f0(x) - a(x)'f0(X), instead of two.

Without a trend it is C(x, x') = k(x, x') - k(x)'(A + A R A) k(x') with A = (K + R)^-1. If K + R = L L', then

    A + A R A = L^-T S L^-1,   S = I + L^-1 R L^-T,

and with S = T T', T upper triangular, C = k - v'v' where P v = k(x) and P = L T^-T is lower triangular. All eigenvalues of
S are between 1 and 2, since R <= K + R. A trend adds terms with its mismatch d = h(x) - H'A k(x).
"""

from __future__ import annotations

from .._typing import Array
from ..backend import arrays
from ..backend.linalg import cholesky, matmul, solve_lower, solve_lower_transposed
from ..smoother import Smoother, times_covariance

__all__ = ["PriorRoot"]

WORTH = 4
"""Points per place from which on the root, which takes as long as 4 solves for each place, is worth it."""


class PriorRoot:
    """The factor P at the places, and what a trend needs."""

    def __init__(self, smoother: Smoother) -> None:
        factor, R = smoother.factor, smoother.regularizer
        xp = arrays.namespace(factor)
        lower = xp.tril(factor)
        inverse = solve_lower(factor, arrays.eye(lower))  # L^-T
        S = arrays.eye(lower) + matmul(times_covariance(arrays.contiguous(inverse.T), R), inverse)
        flipped = xp.tril(cholesky(arrays.contiguous(xp.flip(S))))
        rows = solve_lower(flipped, arrays.contiguous(xp.flip(lower, axis=1)))
        self.root = arrays.contiguous(xp.flip(rows, axis=1))
        self.trend = bool(smoother.trend.kind)
        if self.trend:
            self.information = smoother.trend_information  # H'AH
            AH = solve_lower_transposed(factor, arrays.copy(smoother.whitened_trend))
            Q = xp.linalg.solve(self.information, AH)  # (H'AH)^-1 H'A as rows
            RQ = times_covariance(Q, R)
            ARQ = solve_lower_transposed(factor, solve_lower(factor, arrays.copy(RQ)))
            self.AH, self.ARQ = AH.T, ARQ.T
            self.between = xp.linalg.inv(self.information) - RQ @ Q.T

    @staticmethod
    def if_worth(smoother: Smoother, points: int) -> PriorRoot | None:
        """The root, or None for few points."""
        return PriorRoot(smoother) if points > WORTH * smoother.samples.n_places else None

    def factors(self, cross: Array, basis: Array, prior: Array) -> tuple[Array, Array, Array]:
        """left, right with C(x, x') = k(x, x') - left(x)'right(x'), and C(x, x); see `VisitedResidual`."""
        if not self.trend:
            v = solve_lower(self.root, cross)
            return v, v, arrays.positive_part(prior - arrays.row_dots(v, v))
        xp = arrays.namespace(cross)
        e, d = cross @ self.ARQ, basis - cross @ self.AH
        v, rest = solve_lower(self.root, cross), e - d @ self.between
        left, right = xp.concat([v, e, d], axis=1), xp.concat([v, d, rest], axis=1)
        return left, right, arrays.positive_part(prior - arrays.row_dots(left, right))
