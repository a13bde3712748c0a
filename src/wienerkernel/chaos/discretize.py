"""Any law as nodes and weights: the atoms of a discrete law, adaptive quadrature of a continuous one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from .._typing import FloatArray
from ..noise import Mixture, Noise, ScipyNoise

__all__ = ["Functions", "Pushforward", "Rule", "discretize", "standardize"]

Rule = tuple[FloatArray, FloatArray]
Functions = Callable[[FloatArray], FloatArray]
Tests = Callable[[FloatArray, FloatArray], Functions]

ORDER = 16  # nodes per panel
PANELS = 32  # initial panels
DEPTH = 60  # maximum bisections of a panel
MAX_PANELS = 2**14


class Pushforward(Noise):
    """The law of a function of a germ: its nodes are those of the germ, mapped by the function."""

    @property
    @abstractmethod
    def germ(self) -> Noise:
        """Law of the germ xi."""

    @abstractmethod
    def __call__(self, xi: ArrayLike) -> FloatArray:
        """Values of the function at xi."""


def discretize(law: Noise, tests: Tests) -> Rule:
    """Nodes and weights that integrate ``tests(nodes, weights)``, functions (n,) -> (n, F), to 1e-14 of their absolute means.

    Panels of Gauss-Legendre nodes in a double-exponential variable are bisected until each agrees with its halves: kinks,
    singular ends and long tails cost panels, not accuracy.
    """
    if law.discrete:
        return law.atoms()
    if isinstance(law, Mixture):
        rules = [discretize(component, tests) for component in law.components]
        nodes = np.concatenate([x for x, _ in rules])
        return nodes, np.concatenate([p * w for p, (_, w) in zip(law.weights, rules, strict=True)])
    if isinstance(law, Pushforward):

        def on_germ(x: FloatArray, w: FloatArray) -> Functions:
            functions = tests(law(x), w)
            return lambda xi: functions(law(xi))

        nodes, weights = discretize(law.germ, on_germ)
        return law(nodes), weights
    standard, loc, scale = standardize(law)
    for variable in (_density_variable, _quantile_variable):
        with np.errstate(all="ignore"):
            rule = _adapt(variable(standard), loc, scale, tests)
        # At a singular end other than 0 the density suffers from rounding of x, the quantile function does not.
        if rule is not None and abs(rule[1].sum() - 1) < 1e-12:
            return rule
    msg = (
        f"the quadrature of {law!r} did not converge: its density and its quantile function are too irregular"
    )
    raise ValueError(msg)


def standardize(law: Noise) -> tuple[Noise, float, float]:
    """The law with loc 0 and scale 1, whose singular end at 0 is exact; and its loc and scale."""
    if isinstance(law, ScipyNoise) and not law.discrete:
        return law.standard, law.loc, law.scale
    return law, 0.0, 1.0


def _stretched(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Double-exponential variable s from t on [-1, 1], and its derivative."""
    return np.pi * np.sinh(6 * t), 6 * np.pi * np.cosh(6 * t)


def _density_variable(law: Noise) -> Callable[[FloatArray], Rule]:
    """Double-exponential variable t on [-1, 1] -> x on the support, and the density of t."""
    lower, upper = law.support()
    middle, quartiles = float(law.ppf(0.5)), float(law.ppf(0.75) - law.ppf(0.25))

    def transform(t: FloatArray) -> Rule:
        s, ds = _stretched(t)
        if np.isfinite(lower) and np.isfinite(upper):
            tail, width = expit(-np.abs(s)), upper - lower
            x = np.where(t < 0, lower + width * tail, upper - width * tail)
            dx = width * tail * (1 - tail)
        elif np.isfinite(lower):
            dx = (middle - lower) * np.exp(s)
            x = lower + dx
        elif np.isfinite(upper):
            dx = (upper - middle) * np.exp(-s)
            x = upper - dx
        else:
            x, dx = middle + quartiles * np.sinh(s), quartiles * np.cosh(s)
        return _usable(x, np.asarray(law.pdf(x)) * dx * ds, middle)

    return transform


def _quantile_variable(law: Noise) -> Callable[[FloatArray], Rule]:
    """Double-exponential variable t on [-1, 1] -> probability -> x, from the nearer tail."""
    middle = float(law.ppf(0.5))

    def transform(t: FloatArray) -> Rule:
        s, ds = _stretched(t)
        tail = expit(-np.abs(s))
        x = np.where(t < 0, law.ppf(tail), law.isf(tail))
        return _usable(x, tail * (1 - tail) * ds, middle)

    return transform


def _usable(x: FloatArray, w: FloatArray, middle: float) -> Rule:
    kept = np.isfinite(x) & np.isfinite(w) & (w > 0)
    return np.where(kept, x, middle), np.where(kept, w, 0.0)


def _adapt(transform: Callable[[FloatArray], Rule], loc: float, scale: float, tests: Tests) -> Rule | None:
    """Bisect panels on [-1, 1] until each agrees with its halves; None if they do not converge."""
    points, gauss = np.polynomial.legendre.leggauss(ORDER)

    def evaluate(edges: FloatArray) -> Rule:
        half = np.diff(edges, axis=-1) / 2
        x, w = transform(edges.mean(axis=-1, keepdims=True) + half * points)
        return loc + scale * x, w * half * gauss

    grid = np.linspace(-1, 1, PANELS + 1)
    edges = np.stack([grid[:-1], grid[1:]], axis=-1)
    x, w = evaluate(edges)
    settled_x, settled_w = np.empty(0), np.empty(0)
    lost = np.inf
    for depth in range(DEPTH):
        middle = edges.mean(axis=-1)
        halves = np.stack([edges[:, 0], middle, middle, edges[:, 1]], axis=-1).reshape(-1, 2)
        x_halves, w_halves = evaluate(halves)
        nodes = np.concatenate([settled_x, x_halves.ravel()])
        weights = np.concatenate([settled_w, w_halves.ravel()])
        lost, lost_before = abs(weights.sum() - 1), lost
        # Mass that more nodes do not recover is lost to rounding, or lies between the nodes.
        if not weights.any() or (depth >= 4 and lost > 1e-10 and abs(lost - lost_before) < 0.05 * lost):
            return None
        nodes, weights = nodes[weights > 0], weights[weights > 0]
        functions = tests(nodes, weights)
        size = weights @ np.abs(functions(nodes))
        whole = _panel_sums(functions, x, w)
        parts = _panel_sums(functions, x_halves, w_halves).reshape(len(edges), 2, -1).sum(axis=1)
        # written so that NaN counts as not converged
        open_ = ~np.all(np.abs(whole - parts) <= 1e-15 * size + 1e-14 * np.abs(parts), axis=-1)
        if not open_.any():
            return nodes, weights
        again = np.repeat(open_, 2)
        settled_x = np.concatenate([settled_x, x_halves[~again].ravel()])
        settled_w = np.concatenate([settled_w, w_halves[~again].ravel()])
        edges, x, w = halves[again], x_halves[again], w_halves[again]
        if len(settled_x) // ORDER + len(edges) > MAX_PANELS:
            return None
    return None


def _panel_sums(functions: Functions, x: FloatArray, w: FloatArray) -> FloatArray:
    values = functions(x.ravel()).reshape(*x.shape, -1)
    return np.asarray(np.einsum("pi,pif->pf", w, values))
