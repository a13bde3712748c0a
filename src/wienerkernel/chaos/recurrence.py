"""Recurrence coefficients of orthogonal polynomials, and the Gauss rules that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from .._typing import FloatArray
from ..noise import Noise, ScipyNoise
from .discretize import Functions, Rule, discretize, standardize

__all__ = [
    "CLASSICAL",
    "Coefficients",
    "affine",
    "coefficients",
    "finite_atoms",
    "golub_welsch",
    "lanczos",
    "orthonormal",
    "polynomial_rule",
    "stieltjes",
]

Coefficients = tuple[FloatArray, FloatArray]


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
    elif (finite := finite_atoms(law)) is not None:
        alpha, beta = lanczos(*finite, degree)
    else:
        standard, loc, scale = standardize(law)
        alpha, beta = affine(*stieltjes(*polynomial_rule(standard, degree), degree), loc, scale)
    beta[0] = 1.0
    alpha.flags.writeable = beta.flags.writeable = False
    return alpha, beta


def affine(alpha: FloatArray, beta: FloatArray, loc: float, scale: float) -> Coefficients:
    """Coefficients of loc + scale M from those of M."""
    return loc + scale * alpha, scale**2 * beta


def stieltjes(x: FloatArray, w: FloatArray, degree: int) -> Coefficients:
    """Stieltjes' method: values at different nodes do not mix, so that distant nodes of tiny weight are harmless."""
    alpha, beta = np.zeros(degree), np.ones(degree + 1)
    w = w / w.sum()
    before, phi = np.zeros_like(x), np.ones_like(x)
    for k in range(degree):
        alpha[k] = np.sum(w * phi**2 * x)
        after = (x - alpha[k]) * phi - np.sqrt(beta[k] if k else 0.0) * before
        beta[k + 1] = np.sum(w * after**2)
        before, phi = phi, after / np.sqrt(beta[k + 1])
    return alpha, beta


def lanczos(x: FloatArray, w: FloatArray, degree: int) -> Coefficients:
    """Lanczos' method with full reorthogonalization, so that the degree may reach the number of atoms."""
    center = float(w @ x)
    scale = float(np.sqrt(w @ (x - center) ** 2))
    z = (x - center) / scale
    alpha, beta = np.zeros(degree), np.ones(degree + 1)
    q = np.zeros((degree + 1, len(z)))
    q[0] = np.sqrt(w / w.sum())
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
        alpha, beta = stieltjes(x, w, degree)

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


def finite_atoms(law: Noise) -> Rule | None:
    """Atoms and probabilities of a law that has finitely many, else None."""
    if law.discrete and np.all(np.isfinite(law.support())):
        return law.atoms()
    return None
