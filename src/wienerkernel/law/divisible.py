"""Counts that are not whole: the law with characteristic function phi^n, for any real n > 0.

It exists for every n if M is infinitely divisible. So two things must be known about a law: that it is, and that its
``logcf`` is the continuous logarithm of phi. A logarithm up to multiples of 2 pi i is good enough for whole counts only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .._typing import FloatArray
from ..noise import Noise, ScipyNoise, as_noise

__all__ = ["check_counts", "is_whole", "power", "with_whole_counts"]

MAX_LAWS = 8
"""Fractional counts of a continuous law that become separate laws; only this few terms may be convolved."""

Family = Callable[..., tuple[str, tuple[float, ...], float]]
FAMILIES: dict[str, Family] = {
    "norm": lambda n: ("norm", (), n**0.5),
    "gamma": lambda n, a: ("gamma", (n * a,), 1.0),
    "erlang": lambda n, a: ("gamma", (n * a,), 1.0),
    "expon": lambda n: ("gamma", (n,), 1.0),
    "chi2": lambda n, df: ("chi2", (n * df,), 1.0),
    "pearson3": lambda n, skew: ("pearson3", (skew / n**0.5,), n**0.5),
    "invgauss": lambda n, mu: ("invgauss", (mu / n,), n * n),
    "wald": lambda n: ("invgauss", (1 / n,), n * n),
    "norminvgauss": lambda n, a, b: ("norminvgauss", (n * a, n * b), n),
    "poisson": lambda n, mu: ("poisson", (n * mu,), 1.0),
    "nbinom": lambda n, k, p: ("nbinom", (n * k, p), 1.0),
    "geom": lambda n, p: ("nbinom", (n, p), 1.0),
    "binom": lambda n, k, p: ("binom", (n * k, p), 1.0),
}
"""Family -> name, shapes and factor of the scale of the law with n times the cumulants; loc is n times as large."""

FORMULAS = frozenset(
    [
        "laplace",
        "laplace_asymmetric",
        "exponnorm",
        "logistic",
        "hypsecant",
        "genlogistic",
        "loggamma",
        "gumbel_r",
        "gumbel_l",
        "moyal",
    ]
)
"""Infinitely divisible laws with a continuous formula for log phi, but without a family that is closed."""

MONOTONE: dict[str, Callable[..., bool]] = {
    "lomax": lambda c: True,  # noqa: ARG005
    "pareto": lambda b: True,  # noqa: ARG005
    "genpareto": lambda c: c >= 0,
    "weibull_min": lambda c: c <= 1,
    "weibull_max": lambda c: c <= 1,
    "dweibull": lambda c: c <= 1,
    "gennorm": lambda beta: beta <= 1,
    "halfgennorm": lambda beta: beta <= 1,
    "dgamma": lambda a: a <= 1,
    "gengamma": lambda a, c: 0 < c <= 1 and a * c <= 1,
    "betaprime": lambda a, b: a <= 1,  # noqa: ARG005
    "f": lambda dfn, dfd: dfn <= 2,  # noqa: ARG005
    "burr12": lambda c, d: c <= 1,  # noqa: ARG005
}
"""Laws whose density is completely monotone, on one side or on both, if the shapes are such.

A mixture of exponential laws is infinitely divisible, and phi = E 1/(1 - it/rate) stays off the negative real axis, so
that the principal logarithm is the continuous one. (Steutel and van Harn, Infinite divisibility of probability
distributions on the real line, 2004, chapter VI.)
"""


def is_whole(counts: FloatArray) -> NDArray[np.bool_]:
    """Whether counts are whole numbers, elementwise."""
    return np.asarray(counts == np.rint(counts))


def power(law: Noise, n: float) -> Noise | None:
    """The law of the sum of n copies, n any positive real, if it has a name; else None."""
    if not isinstance(law, ScipyNoise) or law.name not in FAMILIES:
        return None
    name, shapes, factor = FAMILIES[law.name](n, *law.shapes)
    loc = n * law.loc + (n if law.name == "geom" else 0.0)  # which starts at 1
    if name == "binom" and shapes[0] != round(shapes[0]):
        return None  # a number of trials must be whole
    return as_noise(getattr(stats, name)(*shapes, loc, *(() if law.discrete else (factor * law.scale,))))


def check_counts(law: Noise, counts: FloatArray) -> None:
    """Raise ValueError if a count is not whole and the law is not known to have such powers."""
    broken = counts[~is_whole(counts)]
    if not len(broken) or _is_divisible(law):
        return
    unknown = [count for count in np.unique(broken) if power(law, float(count)) is None]
    if not unknown:
        return
    bounded = np.all(np.isfinite(law.support()))
    msg = (
        f"counts of {law!r} must be whole numbers, got {unknown[0]:g}: other counts need an infinitely divisible law, such "
        f"as gamma, norm, poisson or laplace, and {'a bounded law never is' if bounded else 'this one is not known to be'}"
    )
    raise ValueError(msg)


def _is_divisible(law: Noise) -> bool:
    if not isinstance(law, ScipyNoise):
        return False
    if law.name in MONOTONE:
        return MONOTONE[law.name](*law.shapes)
    return law.name in FORMULAS or (law.name in FAMILIES and law.name != "binom")


def with_whole_counts(
    law: Noise, weights: FloatArray, counts: FloatArray
) -> list[tuple[Noise, FloatArray, FloatArray]]:
    """The same terms, with laws of their own for counts that are not whole, where those have a name.

    Atoms and convolutions need whole counts. Characteristic functions do not, and there the terms of a continuous law
    share their tables if they stay together. Of an unbounded discrete law, all counts but 1 become laws of their own, which
    have fewer atoms than the sums of many such laws.
    """
    lattice = law.discrete and np.isinf(law.support()[1])
    values = np.unique(counts[counts != 1 if lattice else ~is_whole(counts)])
    if not len(values) or (not law.discrete and len(values) > MAX_LAWS):
        return [(law, weights, counts)]
    named = [(part, counts == n) for n in values if (part := power(law, float(n))) is not None]
    rest = ~np.any([np.zeros(len(counts), dtype=bool), *(chosen for _, chosen in named)], axis=0)
    parts = [(law, weights[:, rest], counts[rest])] if rest.any() else []
    return parts + [(part, weights[:, chosen], np.ones(int(chosen.sum()))) for part, chosen in named]
