"""Orthogonal polynomials of any law: three-term recurrence, bases, Gauss rules.

The recurrence coefficients of the monic polynomials

    pi_{k+1}(x) = (x - alpha_k) pi_k(x) - beta_k pi_{k-1}(x),    pi_0 = 1,

are the single source of truth. They are known in closed form for the classical laws, come from the atoms of a
finite law by Lanczos' method, and from an adaptive discretization of any other law by Stieltjes' method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..noise import Mixture, Noise, ScipyNoise, as_noise
from .discretize import Rule
from .recurrence import CLASSICAL, Coefficients, coefficients, finite_atoms, golub_welsch, orthonormal

__all__ = ["OrthogonalBasis", "exact_rule", "max_degree", "recurrence"]


def recurrence(law: Any, n: int) -> Coefficients:
    """First n recurrence coefficients alpha, beta of a law with moments up to order 2 n, or n atoms; beta_0 is 1."""
    noise = as_noise(law)
    finite = finite_atoms(noise)
    if n < 1 or n > (max_degree(noise) if finite is None else len(finite[0])):
        raise _degree_error(noise, n, n if finite is None else n - 1)
    alpha, beta = coefficients(noise, n)
    return alpha.copy(), beta[:n].copy()


class OrthogonalBasis:
    """The orthogonal polynomials phi_0, ..., phi_{L-1} of a germ xi. Immutable.

    Parameters
    ----------
    law : frozen scipy.stats law, str, array of residuals or Noise
        Law of the germ xi, with finite moments up to order 2 (L - 1).
    size : int
        Number L of polynomials, of the degrees 0 to L - 1.
    normalized : bool, default True
        Orthonormal polynomials; else monic ones.

    Attributes
    ----------
    law : Noise
    alpha : ndarray of shape (L - 1,)
    beta : ndarray of shape (L,)
        Recurrence coefficients of the monic polynomials.
    norms : ndarray of shape (L,)
        Squared norms E phi_j(xi)^2.

    Notes
    -----
    The polynomials of a law span its L^2 space only if its moments determine it. Those of the lognormal law do not:
    expand a function of a normal germ instead, ``project(np.exp, OrthogonalBasis("norm(0, 1)", 8))``.

    Examples
    --------
    >>> basis = OrthogonalBasis("uniform(-1, 2)", 3, normalized=False)   # monic Legendre polynomials
    >>> basis(0.5).round(12).tolist()
    [1.0, 0.5, -0.083333333333]
    >>> nodes, weights = basis.quadrature(2)
    >>> weights.round(12).tolist()
    [0.5, 0.5]
    """

    def __init__(self, law: Any, size: int, normalized: bool = True) -> None:
        self.law = as_noise(law)
        # degree 1 needs a variance only
        if size < 1 or (size > 2 and size - 1 > max_degree(self.law)):
            raise _degree_error(self.law, size, size - 1)
        self.normalized = bool(normalized)
        self.alpha, self.beta = coefficients(self.law, int(size) - 1)
        self.norms: FloatArray = np.ones(size) if normalized else np.cumprod(self.beta)
        self.norms.flags.writeable = False

    @property
    def size(self) -> int:
        """Number L of polynomials."""
        return len(self.beta)

    def __repr__(self) -> str:
        monic = "" if self.normalized else ", normalized=False"
        return f"OrthogonalBasis({self.law!r}, {self.size}{monic})"

    def __call__(self, xi: ArrayLike) -> FloatArray:
        """Values phi_j(xi), shape (..., L)."""
        phi = orthonormal(np.asarray(xi, dtype=float), self.alpha, self.beta)
        return phi if self.normalized else phi * np.sqrt(self.norms)

    def resize(self, size: int) -> OrthogonalBasis:
        """The basis of the same germ and scaling with ``size`` polynomials."""
        return OrthogonalBasis(self.law, size, self.normalized)

    def quadrature(self, n: int) -> Rule:
        """Gauss rule of the germ, exact for polynomials up to degree 2 n - 1.

        Parameters
        ----------
        n : int

        Returns
        -------
        nodes, weights : ndarrays of shape (n,)
        """
        return golub_welsch(*recurrence(self.law, n))


def max_degree(law: Any) -> float:
    """Largest degree of a polynomial with finite second moment and positive norm under a law, inf if all moments exist."""
    noise = as_noise(law)
    finite = finite_atoms(noise)
    return _moment_degree(noise) if finite is None else len(finite[0]) - 1


def exact_rule(law: Noise, degree: int) -> Rule:
    """Rule that is exact for polynomials up to ``degree``; the moments up to the next even number must exist."""
    finite = finite_atoms(law)
    if finite is not None:
        return finite
    half = (degree + 1) // 2
    if half > _moment_degree(law):
        raise _degree_error(law, half, half)
    alpha, beta = coefficients(law, max(half, 1))
    # The last diagonal entry affects moments of order 2 half + 1 and higher only, so that it may be any number.
    return golub_welsch(np.append(alpha, alpha[-1]), beta)


def _degree_error(law: Noise, got: int, degree: int) -> ValueError:
    if got < 1:
        return ValueError(f"the number of polynomials must be at least 1, got {got}")
    why = "atoms" if law.discrete else "finite moments"
    return ValueError(
        f"{law!r} has {why} for polynomials up to degree {max_degree(law)} only, but degree {degree} is needed"
    )


def _moment_degree(law: Noise) -> float:
    """Largest degree whose square has a finite mean."""
    index = _tail_index(law)
    return np.inf if np.isinf(index) else int(np.ceil(index * (1 - 1e-6) / 2)) - 1


def _tail_index(law: Noise) -> float:
    """Exponent a of a tail P(|M| > x) ~ x^-a from the slope of the log density far out; inf for lighter tails."""
    if law.discrete or (isinstance(law, ScipyNoise) and law.name in CLASSICAL):
        return np.inf
    if isinstance(law, Mixture):
        return min(_tail_index(component) for component in law.components)
    lower, upper = law.support()
    index = np.inf
    for sign, end in ((-1, lower), (1, upper)):
        if np.isfinite(end):
            continue
        with np.errstate(all="ignore"):
            density = np.asarray(law.pdf(law.mean() + sign * law.std() * 2.0 ** np.arange(1, 900)))
        far = int(np.argmin(density > 1e-290))
        if far < 6:
            continue
        slope = -np.diff(np.log2(density[:far]))
        if slope[-1] < 1.1 * slope[len(slope) // 2]:  # the slope of every lighter tail keeps growing
            index = min(index, float(slope[-1]) - 1)
    return index
