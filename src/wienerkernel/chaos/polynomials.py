"""Orthogonal polynomials of any law: three-term recurrence, bases, Gauss rules.

The recurrence coefficients of the monic polynomials

    pi_{k+1}(x) = (x - alpha_k) pi_k(x) - beta_k pi_{k-1}(x),    pi_0 = 1,

are the single source of truth. They are known in closed form for the classical laws, and come by Lanczos' method from
the atoms of a finite law, or from an adaptive discretization of any other law.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh_tridiagonal

from .._typing import FloatArray
from ..noise import Noise, ScipyNoise, as_noise
from .discretize import Functions, Rule, discretize, standardize

__all__ = ["OrthogonalBasis", "exact_rule", "finite_atoms", "max_degree", "recurrence"]

Coefficients = tuple[FloatArray, FloatArray]


def recurrence(law: Any, n: int) -> Coefficients:
    """First n recurrence coefficients alpha, beta of a law with moments up to order 2 n, or n atoms; beta_0 is 1."""
    noise = as_noise(law)
    _check_degree(noise, n, n if finite_atoms(noise) is None else n - 1)
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
        _check_degree(self.law, size, size - 1)
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
    if finite is not None:
        return len(finite[0]) - 1
    index = noise.tail_index()
    return np.inf if np.isinf(index) else int(np.ceil(index * (1 - 1e-6) / 2)) - 1


def exact_rule(law: Noise, degree: int) -> Rule:
    """Rule that is exact for polynomials up to ``degree``; the moments up to the next even number must exist."""
    finite = finite_atoms(law)
    if finite is not None:
        return finite
    half = max((degree + 1) // 2, 1)
    _check_degree(law, half, half)
    alpha, beta = coefficients(law, half)
    # The last diagonal entry affects moments of order 2 half + 1 and higher only, so that it may be any number.
    return golub_welsch(np.append(alpha, alpha[-1]), beta)


def finite_atoms(law: Noise) -> Rule | None:
    """Atoms and probabilities of a law that has finitely many, else None."""
    return law.atoms() if law.discrete and np.all(np.isfinite(law.support())) else None


def _check_degree(law: Noise, count: int, degree: int) -> None:
    if count < 1:
        raise ValueError(f"the number of polynomials must be at least 1, got {count}")
    if degree > 1 and degree > max_degree(law):  # degree 1 needs a variance only
        why = "atoms" if law.discrete else "finite moments"
        raise ValueError(
            f"{law!r} has {why} for polynomials up to degree {max_degree(law)} only, but degree {degree} is needed"
        )


def _hermite(k: FloatArray) -> Coefficients:
    return 0 * k, k


def _laguerre(k: FloatArray, a: float) -> Coefficients:
    return 2 * k + a, k * (k + a - 1)


def _jacobi(k: FloatArray, a: float, b: float) -> Coefficients:
    """On [0, 1] with the weight x^(a-1) (1-x)^(b-1)."""
    s = 2 * k + a + b
    with np.errstate(all="ignore"):
        alpha = 0.5 + (a - b) * (a + b - 2) / (2 * s * (s - 2))
        beta = k * (k + a - 1) * (k + b - 1) * (k + a + b - 2) / ((s - 1) * (s - 2) ** 2 * (s - 3))
    alpha[0] = a / (a + b)
    beta[1:2] = a * b / ((a + b) ** 2 * (a + b + 1))  # 0/0 in the formula where a + b = 1
    return alpha, beta


CLASSICAL: dict[str, Callable[..., tuple[Coefficients, float]]] = {
    "norm": lambda k: (_hermite(k), 1.0),
    "gamma": lambda k, a: (_laguerre(k, a), 1.0),
    "erlang": lambda k, a: (_laguerre(k, a), 1.0),
    "expon": lambda k: (_laguerre(k, 1.0), 1.0),
    "chi2": lambda k, df: (_laguerre(k, df / 2), 2.0),
    "uniform": lambda k: (_jacobi(k, 1.0, 1.0), 1.0),
    "beta": lambda k, a, b: (_jacobi(k, a, b), 1.0),
}
"""Name in ``scipy.stats`` -> coefficients of the classical polynomials, and the scale of the law they belong to."""


@lru_cache(maxsize=256)
def coefficients(law: Noise, degree: int) -> Coefficients:
    """alpha_0..alpha_{degree-1} and beta_0..beta_degree: what the polynomials up to ``degree`` and their norms need."""
    if degree <= 1:
        alpha, beta = np.array([law.mean()])[:degree], np.array([1.0, law.var()])[: degree + 1]
    elif isinstance(law, ScipyNoise) and law.name in CLASSICAL:
        k = np.arange(degree + 1.0)
        (alpha, beta), unit = CLASSICAL[law.name](k, *law.shapes)
        alpha, beta = affine(alpha[:degree], beta, law.loc, law.scale * unit)
    else:
        standard, loc, scale = standardize(law)
        finite = finite_atoms(law)
        rule = polynomial_rule(standard, degree) if finite is None else finite
        alpha, beta = affine(*lanczos(*rule, degree), loc, scale)
    beta[0] = 1.0
    alpha.flags.writeable = beta.flags.writeable = False
    return alpha, beta


def affine(alpha: FloatArray, beta: FloatArray, loc: float, scale: float) -> Coefficients:
    """Coefficients of loc + scale M from those of M."""
    return loc + scale * alpha, scale**2 * beta


def lanczos(x: FloatArray, w: FloatArray, degree: int) -> Coefficients:
    """Lanczos' method with full reorthogonalization, so that the degree may reach the number of atoms."""
    w = w / w.sum()
    center = float(w @ x)
    scale = float(np.sqrt(w @ (x - center) ** 2))
    z = (x - center) / scale
    alpha, beta = np.zeros(degree), np.ones(degree + 1)
    q = np.zeros((degree + 1, len(z)))
    q[0] = np.sqrt(w)
    for k in range(degree):
        v = z * q[k]
        alpha[k] = q[k] @ v
        for _ in range(2):
            v -= q[: k + 1].T @ (q[: k + 1] @ v)
        beta[k + 1] = v @ v if k + 1 < len(z) else 0.0
        q[k + 1] = v / np.sqrt(beta[k + 1]) if beta[k + 1] > 0 else 0.0
    return affine(alpha, beta, center, scale)


def polynomial_rule(law: Noise, degree: int) -> Rule:
    """Rule for the squares of the law's own polynomials up to ``degree`` and the products of neighbors."""

    def tests(x: FloatArray, w: FloatArray) -> Functions:
        alpha, beta = lanczos(x, w, degree)

        def products(x: FloatArray) -> FloatArray:
            phi = orthonormal(x, alpha, beta)
            return np.concatenate([phi**2, phi[..., 1:] * phi[..., :-1]], axis=-1)

        return products

    return discretize(law, tests)


def orthonormal(x: FloatArray, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Orthonormal polynomials at x, along a new last axis."""
    root = np.sqrt(beta)
    phi = np.ones((*x.shape, len(beta)))
    for k in range(len(beta) - 1):
        step = (x - alpha[k]) * phi[..., k]
        phi[..., k + 1] = (step - root[k] * phi[..., k - 1] if k else step) / root[k + 1]
    return phi


def golub_welsch(alpha: FloatArray, beta: FloatArray) -> Rule:
    """Nodes are eigenvalues of the Jacobi matrix; the weights 1 / sum_k phi_k^2 keep their digits in the tails."""
    nodes = eigvalsh_tridiagonal(alpha, np.sqrt(beta[1:]))
    with np.errstate(over="ignore"):
        weights = 1 / np.sum(orthonormal(nodes, alpha[:-1], beta) ** 2, axis=-1)
    return nodes, weights
