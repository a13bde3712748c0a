"""Variance of a simulated state by cause, from a factorial design.

Each group of rollouts has two independent copies of every cause (noise in the data, prior function, process noise, and
initial state if it is random) and one rollout for each combination of copies. The contrast C_S of a group is the mean of
its rollouts, with the sign -1 for each cause in S whose second copy is used. With the variances s_T of the effects of
the causes T together, beyond those of fewer of them (Efron and Stein 1981),

    E C_S^2 = sum_{T includes S} 2^-|T| s_T,    s_S = 2^|S| sum_{T includes S} (-1)^(|T| - |S|) E C_T^2.

A cause that only adds to the state is in no contrast of the others, so a small effect is seen beside a large one. Sums of
s_T over the subsets of S are closed(S) = Var E[x | S], which give the Shapley shares (Owen, Sobol' indices and Shapley
value, SIAM/ASA J. Uncertainty Quantification 2, 2014).
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

    For a state whose model has a transform T they are variances of T(x), on which scale the causes add up.

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
    f, subsets = len(names), np.arange(vertices)
    common = subsets[:, None] & subsets
    size = np.array([int(subset).bit_count() for subset in subsets])
    signs = (-1.0) ** size[common] / vertices
    squares = (
        np.tensordot(outcomes - outcomes.mean(axis=(0, 1)), signs, (1, 0)) ** 2
    )  # (n, steps + 1, n_x, 2^f)
    draws = np.ones((REPLICATES + 1, n)) / n
    draws[1:] = generator.multinomial(n, np.full(n, 1 / n), size=REPLICATES) / n
    means = (draws @ squares.reshape(n, -1)).reshape(-1, *shape, vertices)
    includes = common == subsets[:, None]  # S, T: whether T includes S
    includes[0] = False
    effects = means @ (includes * 2.0 ** size[:, None] * (-1.0) ** (size - size[:, None])).T
    closed = np.moveaxis(effects @ includes, -1, 1)
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
            share += weight * (closed[sum(chosen) + bit[name]] - closed[sum(chosen)])
    return share
