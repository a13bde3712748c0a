"""Kernels of every class and a few compositions, by family, and tests that hold for all of them."""

import functools
import inspect

import pytest

from wienerkernel.backend import arrays
from wienerkernel.kernels import (
    RBF,
    Constant,
    Exponential,
    FeatureMap,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
)

ARD = (0.7, 1.3, 2.1, 0.9, 1.7)


def waves(X):
    """Features sin(x) and x^2, in any array library."""
    xp = arrays.namespace(X)
    return xp.concat([xp.sin(X), X**2], axis=1)


def members(d):
    """Kernels on d inputs, by family; all free hyperparameters differ."""
    ard = ARD[:d]
    periods = tuple(2 + x for x in ard)
    return {
        "RBF": [
            RBF(1.4),
            RBF(ard),
            RBF(ard, [(0.1, 2.0 + k) for k in range(d)]),
            RBF(0.8, "fixed"),
        ],
        "Exponential": [Exponential(1.4), Exponential(ard)],
        "Matern": [Matern(1.4, nu=1.5), Matern(ard, nu=1.5), Matern(1.4, nu=2.5), Matern(ard, nu=2.5)],
        "RationalQuadratic": [
            RationalQuadratic(1.4, 0.6),
            RationalQuadratic(ard, 2.3),
            RationalQuadratic(ard, 2.3, alpha_bounds="fixed"),
            RationalQuadratic(ard, 2.3, length_scale_bounds="fixed"),
        ],
        "Periodic": [
            Periodic(1.4, 2.5),
            Periodic(ard, 2.5),
            Periodic(1.4, periods),
            Periodic(ard, periods),
            Periodic(ard, 2.5, length_scale_bounds="fixed"),
            Periodic(ard, 2.5, period_bounds="fixed"),
        ],
        "Linear": [Linear(1.4), Linear(ard), Polynomial(3, 0.5, ard)],
        "Constant": [
            Constant(2.5),
            4.21**2 * RBF(3.59),
            RBF(ard) * 2.0,
            Constant(3.0, "fixed") * Matern(ard),
            3.0 * (2.0 * Matern(ard)),
            Constant(2.0) * Constant(3.0) + Linear(),
        ],
        "compositions": [
            RBF(1.1) + Linear(2.0) * Periodic(1.2, 3.0),
            RBF(1.1, "fixed") * Linear(ard) + Constant(0.3),
            RBF(1.1) * (Matern(2.0) + 0.5) ** 2,
            (RBF(1.1, "fixed") + 2.0 * Linear(1.2)) ** 3 * Exponential(ard),
            (Matern(ard) + Linear()) * RationalQuadratic() ** 2,
        ],
        "FeatureMap": [
            FeatureMap(waves, 0.7),
            RBF(2.0) + (Matern(1.0) + Constant(2.0)) + FeatureMap(waves),
        ],
    }


def every_kernel(test=None, *, dimensions=(1, 2, 5), families=members, without=()):
    """Run a test of a kernel and its number of inputs d for all kernels of each family, one item per family.

    An error says which kernel it belongs to.
    """
    if test is None:
        return functools.partial(every_kernel, dimensions=dimensions, families=families, without=without)

    @functools.wraps(test)
    def run(family, **fixtures):
        for d in dimensions:
            for kernel in families(d)[family]:
                try:
                    test(kernel=kernel, d=d, **fixtures)
                except Exception as error:
                    error.add_note(f"kernel {kernel!r} with d = {d}")
                    raise

    others = [p for p in inspect.signature(test).parameters.values() if p.name not in ("kernel", "d")]
    family = inspect.Parameter("family", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([family, *others])
    return pytest.mark.parametrize("family", [name for name in families(1) if name not in without])(run)
