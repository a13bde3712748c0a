"""Expansions M = sum_j m_j phi_j(xi) of one random variable: noise laws that can be added and multiplied."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property, wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray, RandomState
from ..noise import Noise, Residuals, as_noise
from ..noise.identity import digest
from .discretize import Pushforward, discretize
from .polynomial_law import Affine, PolynomialLaw
from .polynomials import OrthogonalBasis, exact_rule, max_degree

__all__ = ["Expansion", "project", "two_term"]


def _of_law(name: str) -> Any:
    """A method of the object that computes the law."""

    def method(self: Expansion, *arguments: Any) -> Any:
        return getattr(self._law, name)(*arguments)

    return wraps(getattr(Noise, name), updated=())(method)


class Expansion(Pushforward):
    """The law of M = sum_j m_j phi_j(xi).

    Parameters
    ----------
    basis : OrthogonalBasis
        Polynomials phi_0, ..., phi_{L-1} of the germ xi.
    coefficients : array-like of shape (L,)
        m_0, ..., m_{L-1}; m_0 is the mean.
    truncation_error : float, default 0
        L^2 norm of the part of the variable that the expansion omits.

    Notes
    -----
    Expansions of the same germ are functions of the *same* random variable: ``e + e`` is ``2 * e``. The product of
    truncated expansions has an infinite ``truncation_error``, because the L^2 errors of the factors do not bound the
    error of the product.

    Examples
    --------
    >>> square = Expansion(OrthogonalBasis("norm(0, 1)", 3), [1.0, 0.0, 2**0.5])   # xi^2, chi2 with one degree
    >>> square.mean(), round(square.var(), 12), round(float(square.cdf(1.0)), 6)
    (1.0, 2.0, 0.682689)
    >>> (square * square).coefficients.size
    5
    """

    __array_ufunc__ = None  # so that `number * expansion` with a numpy number calls __rmul__

    def __init__(
        self, basis: OrthogonalBasis, coefficients: ArrayLike, truncation_error: float = 0.0
    ) -> None:
        m = np.array(coefficients, dtype=float)
        if m.shape != (basis.size,) or not np.all(np.isfinite(m)):
            msg = f"coefficients must be {basis.size} finite numbers, one per polynomial, got shape {m.shape}"
            raise ValueError(msg)
        m.flags.writeable = False
        self.basis = basis
        self.coefficients: FloatArray = m
        self.truncation_error = float(truncation_error)
        self.discrete = self.germ.discrete
        self.gaussian = self.germ.gaussian and self._degree == 1
        self.costly = self.germ.costly or self._degree > 1

    @property
    def germ(self) -> Noise:
        """Law of the germ xi."""
        return self.basis.law

    def _made_of(self) -> tuple[Hashable, ...]:
        basis = self.basis
        numbers = digest(basis.alpha, basis.beta, basis.norms, self.coefficients, self.truncation_error)
        return self.germ, numbers

    @property
    def rounding(self) -> float:  # type: ignore[override]
        """Rounding error of the sum of polynomials near its smallest values."""
        return float(2 * np.finfo(float).eps * np.sum(np.abs(self.coefficients)))

    def __repr__(self) -> str:
        return f"Expansion({self.basis!r}, {self.coefficients.tolist()!r})"

    def __call__(self, xi: ArrayLike) -> FloatArray:
        """Values of M at values of the germ, any shape."""
        return np.asarray(self.basis(xi) @ self.coefficients)

    @property
    def _degree(self) -> int:
        return int(np.flatnonzero(np.append(1.0, self.coefficients[1:]))[-1])

    @property
    def _orthonormal(self) -> FloatArray:
        """Coefficients in the orthonormal basis."""
        return np.asarray(self.coefficients * np.sqrt(self.basis.norms))

    @cached_property
    def _law(self) -> Noise:
        """The same law as an object of the class that computes it."""
        if self._degree == 0:
            raise ValueError(f"{self!r} is a constant and has no law with positive variance")
        alpha, beta = self.basis.alpha, self.basis.beta
        slope = self._orthonormal[1] / np.sqrt(beta[1])
        if self._degree == 1 and (slope > 0 or not self.discrete):
            return Affine(self.germ, self.coefficients[0] - slope * alpha[0], slope)
        if self.discrete:
            return Residuals(*self.atoms())
        d = self._degree
        return PolynomialLaw(self.germ, self._orthonormal[: d + 1], alpha[:d], beta[: d + 1])

    def atoms(self) -> tuple[FloatArray, FloatArray]:
        values, probabilities = self.germ.atoms()
        return Residuals(self(values), probabilities).atoms()

    def mean(self) -> float:
        """Mean m_0, eq. (4)."""
        return float(self.coefficients[0])

    def var(self) -> float:
        """Variance sum_j m_j^2 |phi_j|^2 over j >= 1, eq. (4)."""
        return float(np.sum(self._orthonormal[1:] ** 2))

    def cumulants(self, order: int = 8) -> FloatArray:
        kappa = self._law.cumulants(order)
        kappa[:2] = (self.mean(), self.var())[:order]
        return kappa

    def rvs(self, size: int | tuple[int, ...] = 1, random_state: RandomState = None) -> FloatArray:
        return self(self.germ.rvs(size, random_state))

    logcf, pdf, cdf, sf, ppf, isf = map(_of_law, ("logcf", "pdf", "cdf", "sf", "ppf", "isf"))
    pdf_near, singular_points, support = map(_of_law, ("pdf_near", "singular_points", "support"))
    strip, sector = map(_of_law, ("strip", "sector"))

    def truncate(self, size: int) -> Expansion:
        """The first ``size`` terms; the omitted terms add to the truncation error."""
        if not 1 <= size <= self.basis.size:
            raise ValueError(f"size must be between 1 and {self.basis.size}, got {size}")
        error = np.hypot(self.truncation_error, np.linalg.norm(self._orthonormal[size:]))
        return Expansion(self.basis.resize(size), self.coefficients[:size], error)

    def __add__(self, other: Any) -> Expansion:
        if _is_number(other):
            shift = np.eye(1, self.basis.size)[0] * other
            return Expansion(self.basis, self.coefficients + shift, self.truncation_error)
        if not isinstance(other, Expansion):
            return NotImplemented
        self._check_germ(other)
        basis = self.basis.resize(max(self.basis.size, other.basis.size))
        total = np.zeros(basis.size)
        for term in (self, other):
            total[: term.basis.size] += term._orthonormal
        error = self.truncation_error + other.truncation_error
        return Expansion(basis, total / np.sqrt(basis.norms), error)

    def __mul__(self, other: Any) -> Expansion:
        if _is_number(other):
            return Expansion(self.basis, self.coefficients * other, self.truncation_error * abs(other))
        if not isinstance(other, Expansion):
            return NotImplemented
        self._check_germ(other)
        degree = self.basis.size + other.basis.size - 2
        if self.discrete:  # a function on n atoms is a polynomial of degree below n
            degree = int(min(degree, max_degree(self.germ)))
        basis = self.basis.resize(degree + 1)
        nodes, weights = exact_rule(self.germ, 2 * degree)
        coefficients = (weights * self(nodes) * other(nodes)) @ basis(nodes) / basis.norms
        exact = self.truncation_error == 0 == other.truncation_error
        return Expansion(basis, coefficients, 0.0 if exact else np.inf)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Expansion:
        return self * -1.0

    def __sub__(self, other: Any) -> Expansion:
        total: Expansion = self + -other
        return total

    def __rsub__(self, other: Any) -> Expansion:
        total: Expansion = -self + other
        return total

    def _check_germ(self, other: Expansion) -> None:
        if self.germ is not other.germ and self.germ != other.germ:
            raise ValueError(f"the expansions must have the same germ, got {self.germ!r} and {other.germ!r}")


def two_term(law: Any) -> Expansion:
    """The exact expansion of any variable in two terms: m_0 = mean, m_1 = standard deviation.

    The germ is the variable itself, with the basis {1, (xi - mean) / std}.

    Parameters
    ----------
    law : frozen scipy.stats law, str, array of residuals or Noise

    Returns
    -------
    Expansion

    Examples
    --------
    >>> two_term("gamma(0.25, scale=2)").coefficients.tolist()   # the paper's example
    [0.5, 1.0]
    """
    noise = as_noise(law)
    return Expansion(OrthogonalBasis(noise, 2), [noise.mean(), noise.std()])


def project(
    func: Callable[[FloatArray], ArrayLike], basis: OrthogonalBasis, n_quad: int | None = None
) -> Expansion:
    """Expansion of func(xi): coefficients <func, phi_j> / |phi_j|^2, with the truncation error.

    Parameters
    ----------
    func : callable
        Vectorized; func(xi) must have finite variance.
    basis : OrthogonalBasis
    n_quad : int, optional
        Number of Gauss nodes; by default the germ is discretized until the integrals converge.

    Returns
    -------
    Expansion

    Examples
    --------
    >>> lognormal = project(np.exp, OrthogonalBasis("norm(0, 1)", 8))
    >>> round(lognormal.mean(), 12), round(lognormal.truncation_error, 6)   # exp(1/2), and the error of 8 terms
    (1.6487212707, 0.008702)
    """

    def values(x: FloatArray) -> FloatArray:
        return np.broadcast_to(np.asarray(func(x), dtype=float), x.shape)

    def products(x: FloatArray) -> FloatArray:
        both = np.concatenate([values(x)[:, None], basis(x)], axis=-1)
        return np.concatenate([both**2, both[:, :1] * both[:, 1:]], axis=-1)

    if n_quad is None:
        nodes, weights = discretize(basis.law, lambda _x, _w: products)
    else:
        nodes, weights = basis.quadrature(n_quad)
    phi, f = basis(nodes), values(nodes)
    m = (weights * f) @ phi / basis.norms
    # The norm of the remainder, which is sqrt(E func^2 - sum_j m_j^2 |phi_j|^2) without the cancellation.
    return Expansion(basis, m, float(np.sqrt(weights @ (f - phi @ m) ** 2)))


def _is_number(obj: Any) -> bool:
    return isinstance(obj, int | float | np.integer | np.floating)
