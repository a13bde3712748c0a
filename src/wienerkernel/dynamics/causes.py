"""Variance of a simulated state by cause, from a factorial design.

Each group of rollouts has two independent copies of every cause (noise in the data, prior function, process noise, and
initial state if it is random) and one rollout for each combination of copies. Rollouts that share exactly the causes S
have the covariance closed(S) = Var E[x | S]; its values for all S give first-order effects and Shapley shares. Owen,
Sobol' indices and Shapley value, SIAM/ASA J. Uncertainty Quantification 2 (2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np

from .._typing import FloatArray

__all__ = ["Causes", "split_by_cause"]

REPLICATES = 200
"""Bootstrap samples for the standard errors."""


@dataclass(frozen=True)
class Causes:
    """Variances of the states by cause, each of shape (steps + 1, n_x), with standard errors.

    Attributes
    ----------
    noise : ndarray
        Variance that the noise in the data causes on its own: Var E[x_k | noise in the data].
    model : ndarray
        Caused by unexplored inputs.
    process : ndarray
        Caused by the process noise.
    initial : ndarray
        Caused by the initial state; 0 for a given one.
    interaction : ndarray
        The rest: what the causes do together. A linear system has none.
    total : ndarray
    shares : dict of str to ndarray
        Shapley shares, variances that add up to the total: the interaction is divided among the causes.
    errors : dict of str to ndarray
        Bootstrap standard errors of ``noise``, ``model``, ``process``, ``initial``, ``interaction`` and ``total``.

    Examples
    --------
    >>> from wienerkernel import Dynamics, RBF, WienerKernelRegressor
    >>> X = np.linspace(-2, 2, 9)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, 0.8 * np.sin(X[:, 0]))
    >>> causes = Dynamics(model).rollout([1.0], steps=2, n_paths=2000, random_state=0).causes
    >>> bool(abs(causes.process[1, 0] - 0.01) < 3 * causes.errors["process"][1, 0])
    True
    """

    noise: FloatArray
    model: FloatArray
    process: FloatArray
    initial: FloatArray
    interaction: FloatArray
    total: FloatArray
    shares: dict[str, FloatArray]
    errors: dict[str, FloatArray]

    def __repr__(self) -> str:
        rows = []
        for name in ("noise", "model", "process", "initial", "interaction", "total"):
            value, error = getattr(self, name)[-1], self.errors[name][-1]
            if np.any(value != 0):
                rows.append(
                    f"{name} {', '.join(f'{v:.3g} +- {e:.1g}' for v, e in zip(value, error, strict=True))}"
                )
        return f"<Causes of the variance at step {len(self.total) - 1}: {'; '.join(rows)}>"


def split_by_cause(outcomes: FloatArray, names: tuple[str, ...], generator: Any) -> Causes:
    """Variances by cause from states (n, 2^f, steps + 1, n_x) of n groups, one for each combination of copies.

    The copy of cause i is bit f - 1 - i of the index of the combination.
    """
    n, vertices, *shape = outcomes.shape
    f = len(names)
    away = outcomes - outcomes.mean(axis=(0, 1))
    products = np.empty(
        (n, vertices + 1, *shape)
    )  # one for each set of shared causes, and the mean of the group
    for shared in range(vertices):
        other = np.arange(vertices) ^ (vertices - 1 - shared)
        products[:, shared] = np.mean(away * away[:, other], axis=1)
    products[:, vertices] = away.mean(axis=1)
    draws = np.ones((REPLICATES + 1, n)) / n
    draws[1:] = generator.multinomial(n, np.full(n, 1 / n), size=REPLICATES) / n
    means = (draws @ products.reshape(n, -1)).reshape(-1, vertices + 1, *shape)
    closed = means[:, :vertices] - means[:, vertices:] ** 2
    bit = {name: 1 << (f - 1 - i) for i, name in enumerate(names)}
    zero = np.zeros_like(closed[:, 0])
    found = {
        name: closed[:, bit[name]] if name in bit else zero
        for name in ("noise", "model", "process", "initial")
    }
    found["total"] = closed[:, -1]
    found["interaction"] = found["total"] - sum(found[name] for name in names)
    return Causes(
        **{name: values[0] for name, values in found.items()},
        shares={name: _shapley(closed[0], bit, name) for name in names},
        errors={name: values[1:].std(axis=0, ddof=1) for name, values in found.items()},
    )


def _shapley(closed: FloatArray, bit: dict[str, int], name: str) -> FloatArray:
    """Mean over all orders of the causes of what a cause adds to the explained variance."""
    others, f = [b for other, b in bit.items() if other != name], len(bit)
    share: FloatArray = np.zeros_like(closed[0])
    for size in range(f):
        weight = factorial(size) * factorial(f - 1 - size) / factorial(f)
        for chosen in combinations(others, size):
            # with no shared cause the covariance is 0, not its estimate
            below = closed[sum(chosen)] if chosen else 0.0
            share += weight * (closed[sum(chosen) + bit[name]] - below)
    return share
