"""Convex losses rho of a residual, given by the curve of their derivative psi: a polyline that saturates at both ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._typing import FloatArray
from ..noise import Noise
from ..text import check_choice, check_probability
from .density import NoiseDensity

__all__ = ["Curve", "EpsilonInsensitive", "Huber", "Loss", "NegativeLogDensity", "Pinball"]

LAWS = ("bootstrap", "influence", "lifted")
TABLE = 4001
STEEP = 1e8
"""Slope of psi, times the spread of the noise, that stands for a wall at the end of the noise's support."""


class Curve(NamedTuple):
    """Vertices of psi: residuals r and values u, both non-decreasing, (k,). Steps are two vertices with the same r.

    Beyond the first and the last vertex, psi is constant.
    """

    r: FloatArray
    u: FloatArray

    @property
    def is_step(self) -> bool:
        """Whether psi takes two values: the loss of a quantile."""
        return len(self.r) == 2 and bool(self.r[0] == self.r[1])


class Loss(ABC):
    """A convex loss; the estimate minimizes sum_i rho((y_i - f(x_i)) / scale_i - c) + (lam / 2) ||f||^2.

    The constant c, which centers psi(M - c), is removed from the estimate, so that f is estimated.

    Its ``law`` and ``n_draws`` are explained at :class:`Huber`.
    """

    law: str
    n_draws: int

    def __post_init__(self) -> None:
        check_choice("law", self.law, LAWS)
        if self.n_draws < 50:
            raise ValueError(f"n_draws must be at least 50, got {self.n_draws!r}")

    @abstractmethod
    def curve(self, noise: Noise) -> Curve:
        """The derivative psi of the loss."""


@dataclass(frozen=True)
class Huber(Loss):
    """Quadratic up to ``delta``, linear beyond.

    Parameters
    ----------
    delta : float, default=1.0
        In units of y, or of ``noise_scale`` where it is given.
    law : {"bootstrap", "influence", "lifted"}, default="bootstrap"
        Law of the estimate: of fits to new noise around the fit, reflected; of the first-order expansion in the noise, an
        approximation with a closed form; or of fits to y - M, the paper's problem (9).
    n_draws : int, default=1000
        Number of fits for "bootstrap" and "lifted".

    Examples
    --------
    >>> from wienerkernel import Huber, WienerKernelRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 0.1, 0.0, 50.0]
    >>> model = WienerKernelRegressor(noise="t(3)", loss=Huber(0.5), tuning=None, random_state=0).fit(X, y)
    >>> bool(model.predict([[1.0]])[0] < 1)   # hardly moved by the outlier
    True
    """

    delta: float = 1.0
    law: str = "bootstrap"
    n_draws: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.delta < np.inf:
            raise ValueError(f"delta must be positive, got {self.delta!r}")

    def curve(self, noise: Noise) -> Curve:  # noqa: ARG002
        ends = self.delta * np.array([-1.0, 1.0])
        return Curve(ends, ends)


@dataclass(frozen=True)
class Pinball(Loss):
    """The loss of the quantile of level ``tau``: psi is tau - 1 below 0 and tau above.

    Parameters
    ----------
    tau : float, default=0.5
    law, n_draws
        As for :class:`Huber`.

    Examples
    --------
    >>> Pinball(0.1).curve(None).u.tolist()
    [-0.9, 0.1]
    """

    tau: float = 0.5
    law: str = "bootstrap"
    n_draws: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_probability("tau", self.tau)

    def curve(self, noise: Noise) -> Curve:  # noqa: ARG002
        return Curve(np.zeros(2), np.array([self.tau - 1, self.tau]))


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """The loss of support vector regression: no cost up to ``epsilon``, linear beyond.

    Parameters
    ----------
    epsilon : float, default=0.1
    law, n_draws
        As for :class:`Huber`.

    Examples
    --------
    >>> EpsilonInsensitive(0.5).curve(None).r.tolist()
    [-0.5, -0.5, 0.5, 0.5]
    """

    epsilon: float = 0.1
    law: str = "bootstrap"
    n_draws: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.epsilon < np.inf:
            raise ValueError(f"epsilon must be at least 0, got {self.epsilon!r}")

    def curve(self, noise: Noise) -> Curve:  # noqa: ARG002
        e = self.epsilon
        return Curve(np.array([-e, -e, e, e]), np.array([-1.0, 0.0, 0.0, 1.0]))


@dataclass(frozen=True)
class NegativeLogDensity(Loss):
    """Minus the log density of the noise, for laws with a log-concave density; the estimate is the posterior mode.

    Its derivative is tabulated at 4001 points between the extreme quantiles of the noise.

    Parameters
    ----------
    law, n_draws
        As for :class:`Huber`.

    Examples
    --------
    >>> from wienerkernel import as_noise
    >>> curve = NegativeLogDensity().curve(as_noise("logistic()"))
    >>> bool(abs(np.interp(1.0, curve.r, curve.u) - np.tanh(0.5)) < 1e-4)
    True
    """

    law: str = "bootstrap"
    n_draws: int = 1000

    def curve(self, noise: Noise) -> Curve:
        density = NoiseDensity.of(noise)
        low, high = noise.support()
        for end in (low, high):
            if np.isfinite(end) and np.any(
                noise.pdf(end + 1e-9 * noise.std() * np.array([-1, 1])) * noise.std() > 1e-3
            ):
                msg = f"the density of {noise!r} ends abruptly at {end:g}, so that minus its logarithm has no minimum inside: "
                raise ValueError(msg + "use inference='ep'")
        reach = 20 * noise.std()
        ends = max(low, noise.mean() - reach), min(high, noise.mean() + reach)
        kinks = density.loc + density.scale * density.points
        kinks = kinks[(kinks > ends[0]) & (kinks < ends[1])]
        cells = np.unique(np.concatenate([np.linspace(*ends, TABLE), kinks]))
        # psi at the middle of each cell, from differences of the log density over a small part of it
        middle, step = (cells[1:] + cells[:-1]) / 2, np.diff(cells) / 2 * 0.02
        values = density.logpdf((np.stack([middle - step, middle + step]) - density.loc) / density.scale)
        psi = -(values[1] - values[0]) / (2 * step)
        if density.pole or np.any(np.diff(psi) < -1e-6 * np.ptp(psi[np.isfinite(psi)])):
            raise ValueError(
                f"minus the log density of {noise!r} is not convex: use loss='efficient' or inference='ep'"
            )
        r, u = [middle], [psi]
        for kink in kinks:  # a step between the limits from both sides
            at = int(np.searchsorted(middle, kink))
            r.append(np.array([kink, kink]))
            u.append(np.array([1.5 * psi[at - 1] - 0.5 * psi[at - 2], 1.5 * psi[at] - 0.5 * psi[at + 1]]))
        order = np.argsort(np.concatenate(r), kind="stable")
        curve = Curve(np.concatenate(r)[order], np.maximum.accumulate(np.concatenate(u)[order]))
        return _with_walls(curve, low, high, noise.std())


def _with_walls(curve: Curve, low: float, high: float, std: float) -> Curve:
    """The curve with steep ends where the support of the noise ends: residuals cannot lie beyond."""
    r, u = curve
    wall = STEEP / std
    if np.isfinite(low):
        r, u = np.concatenate([[low, low], r]), np.concatenate([[min(u[0], 0.0) - wall, u[0]], u])
    if np.isfinite(high):
        r, u = np.concatenate([r, [high, high]]), np.concatenate([u, [u[-1], max(u[-1], 0.0) + wall]])
    return Curve(r, u)
