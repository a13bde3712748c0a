"""The chaos form of predictions and weights: expansions over the germs of all samples at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from .expansion import Expansion
from .polynomials import OrthogonalBasis

__all__ = ["ChaosForm", "JointBasis", "lift"]


class JointBasis:
    """The basis psi over the germs xi_0, ..., xi_{D-1} of all samples.

    psi^0 = 1 and psi^j = phi^degree(xi_sample) with j = 1 + sample (L - 1) + degree - 1: all degrees of the first
    sample, then all of the second. Samples count from 0 (from 1 in the paper).

    Parameters
    ----------
    basis : OrthogonalBasis
        Polynomials phi_0, ..., phi_{L-1} of one germ.
    n_samples : int
        Number D of independent copies of the germ.

    Examples
    --------
    >>> joint = JointBasis(OrthogonalBasis("norm(0, 1)", 4), 3)
    >>> joint.size, joint.index(5), joint.position(1, 2)
    (10, (1, 2), 5)
    """

    def __init__(self, basis: OrthogonalBasis, n_samples: int) -> None:
        if n_samples < 0:
            raise ValueError(f"n_samples must not be negative, got {n_samples}")
        self.basis = basis
        self.n_samples = int(n_samples)

    @property
    def size(self) -> int:
        """Number of functions, 1 + D (L - 1)."""
        return 1 + self.n_samples * (self.basis.size - 1)

    @property
    def norms(self) -> FloatArray:
        """Squared norms E psi_j^2, shape (size,)."""
        return np.append(1.0, np.tile(self.basis.norms[1:], self.n_samples))

    def __repr__(self) -> str:
        return f"JointBasis({self.basis!r}, {self.n_samples})"

    def index(self, j: int) -> tuple[int, int]:
        """Sample and degree of psi^j; psi^0 = 1 counts as degree 0 of sample 0."""
        if not 0 <= j < self.size:
            raise IndexError(f"j must be between 0 and {self.size - 1}, got {j}")
        if j == 0:
            return 0, 0
        sample, before = divmod(j - 1, self.basis.size - 1)
        return sample, before + 1

    def position(self, sample: int, degree: int) -> int:
        """The j of psi^j = phi^degree(xi_sample); 0 for degree 0 of any sample."""
        if not (0 <= sample < self.n_samples and 0 <= degree < self.basis.size):
            raise IndexError(
                f"sample must be between 0 and {self.n_samples - 1} and degree between 0 and {self.basis.size - 1}, "
                f"got {sample} and {degree}"
            )
        return 1 + sample * (self.basis.size - 1) + degree - 1 if degree else 0

    def __call__(self, xi: ArrayLike) -> FloatArray:
        """Values psi^j at germs of shape (..., D), shape (..., size)."""
        x = np.asarray(xi, dtype=float)
        if x.ndim == 0 or x.shape[-1] != self.n_samples:
            raise ValueError(f"xi must have the shape (..., {self.n_samples}), got {x.shape}")
        phi = self.basis(x)[..., 1:].reshape(*x.shape[:-1], self.size - 1)
        return np.concatenate([np.ones((*x.shape[:-1], 1)), phi], axis=-1)


class ChaosForm:
    """An array of random variables, each expanded in the same joint basis psi.

    Parameters
    ----------
    basis : JointBasis
    coefficients : array-like of shape (..., basis.size)

    Examples
    --------
    >>> joint = JointBasis(OrthogonalBasis("norm(0, 1)", 2), 2)
    >>> form = ChaosForm(joint, [[1.0, 3.0, 4.0], [0.0, 1.0, 0.0]])
    >>> form.mean().tolist(), form.var().tolist(), form.cov()[0, 1].tolist()
    ([1.0, 0.0], [25.0, 1.0], 3.0)
    """

    def __init__(self, basis: JointBasis, coefficients: ArrayLike) -> None:
        c = np.array(coefficients, dtype=float)
        if c.ndim == 0 or c.shape[-1] != basis.size:
            raise ValueError(f"coefficients must have the shape (..., {basis.size}), got {c.shape}")
        c.flags.writeable = False
        self.basis = basis
        self.coefficients: FloatArray = c

    def __repr__(self) -> str:
        return f"<ChaosForm of shape {self.coefficients.shape[:-1]} over {self.basis!r}>"

    def mean(self) -> FloatArray:
        """Means, eq. (4), shape (...)."""
        return self.coefficients[..., 0].copy()

    def var(self) -> FloatArray:
        """Variances, eq. (4), shape (...)."""
        return np.asarray(self.coefficients[..., 1:] ** 2 @ self.basis.norms[1:])

    def cov(self) -> FloatArray:
        """Covariances, eq. (4): shape (m, m) for m variables, (..., ...) in general."""
        c = self.coefficients[..., 1:]
        return np.asarray(np.tensordot(c * self.basis.norms[1:], c, axes=(-1, -1)))

    def __call__(self, xi: ArrayLike) -> FloatArray:
        """Realizations at germs of shape (s..., D), shape (s..., ...)."""
        return np.asarray(np.tensordot(self.basis(xi), self.coefficients, axes=(-1, -1)))

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        """Joint draws, shape (size, ...): one draw of all germs is one realization of all variables."""
        shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
        return self(self.basis.basis.law.rvs((*shape, self.basis.n_samples), random_state))


def lift(expansion: Expansion, weights: ArrayLike, mean: ArrayLike) -> ChaosForm:
    """The predictions mu - sum_i a_i (M_i - m_0) in chaos form, eq. (12), from weights (..., D) and means mu (...)."""
    a = np.asarray(weights, dtype=float)
    mu = np.asarray(mean, dtype=float)
    if a.ndim == 0 or a.shape[:-1] != mu.shape:
        msg = f"weights must have the shape (..., D) for a mean of shape (...), got {a.shape} and {mu.shape}"
        raise ValueError(msg)
    joint = JointBasis(expansion.basis, a.shape[-1])
    rest = (-a[..., None] * expansion.coefficients[1:]).reshape(*mu.shape, joint.size - 1)
    return ChaosForm(joint, np.concatenate([mu[..., None], rest], axis=-1))
