"""Predictions at random inputs: mixtures of the laws at the nodes of a Gauss rule for the input.

P(Y <= y) = sum_q w_q F_q(y) with the law F_q at node q. The mean is E mu(X*), and by the law of total variance the
variance is the mean of that at the nodes plus Var mu(X*), the part that the random input causes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..backend import arrays
from ..chaos import ChaosForm
from ..chaos.polynomials import OrthogonalBasis, finite_atoms, max_degree
from ..law import LinearCombination
from ..law.mixed import MixedLaw
from ..noise import Noise
from .distribution import PredictiveDistribution, combination
from .input_noise import as_input_noise
from .parts import Uncertainty
from .posterior import Posterior, PosteriorMethods

__all__ = ["AtRandomInputs", "RandomInput", "RandomPrediction"]

NODES = {1: 21, 2: 9, 3: 5}
"""Default number of nodes along each random direction, by the number of directions; 3 for more of them."""
MOST_NODES = 5000
GAP = 2.0
"""Distance of the means at neighboring nodes, in standard deviations, above which the mixture is too coarse."""
UNLIKELY = 1e-3


class RandomInput:
    """Inputs that are not known exactly: X* = x + E at each row x of X, with a known law of E.

    ``predict``, ``uncertainty``, ``predict_distribution``, ``predict_quantiles``, ``predict_interval``, ``sample_y`` and
    ``score_report`` of a :class:`WienerKernelRegressor` accept it in place of X.

    Parameters
    ----------
    X : array-like of shape (m, d)
    noise : law, list of d laws, or ndarray of shape (d, d)
        The law of E: one law of independent noise on all columns, one for each column (None where it is exact), or the
        covariance of normal noise.
    n_nodes : int, default=None
        Nodes of the Gauss rule along each random direction; by default 21 for one direction, 9 for two, 5 for three and 3
        for more. A law with few moments has 41 nodes at its quantiles instead.

    Examples
    --------
    >>> from wienerkernel import RBF, RandomInput, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> at = RandomInput([[0.5]], "norm(0, 0.2)")
    >>> parts = model.uncertainty(at)
    >>> parts.input.round(4).tolist(), model.uncertainty([[0.5]]).input.tolist()
    ([0.043], [0.0])
    >>> Y = model.predict_distribution(at, of="function")
    >>> bool(np.allclose(Y.var(), parts.epistemic))
    True
    """

    def __init__(self, X: ArrayLike, noise: Any, *, n_nodes: int | None = None) -> None:
        if noise is None:
            raise ValueError(
                "noise must be a law, a list of laws or a covariance: exact inputs need no RandomInput"
            )
        if n_nodes is not None and (n_nodes != int(n_nodes) or n_nodes < 2):
            raise ValueError(f"n_nodes must be an integer of at least 2, got {n_nodes!r}")
        self.X, self.noise, self.n_nodes = X, noise, n_nodes

    def nodes(self, X: FloatArray) -> tuple[FloatArray, tuple[FloatArray, ...]]:
        """Nodes for the checked rows of X: (n_1, ..., n_k, m, d), and the probabilities along each direction."""
        noise = as_input_noise(self.noise, X.shape[1])
        if noise is None:
            raise ValueError("noise has no law for any column: exact inputs need no RandomInput")
        n = self.n_nodes or NODES.get(len(noise.laws), 3)
        rules = [_rule(law, n) for law in noise.laws]
        if (number := int(np.prod([len(values) for values, _ in rules]))) > MOST_NODES:
            raise ValueError(
                f"{len(noise.laws)} random directions have {number} nodes in all, more than {MOST_NODES}: lower n_nodes, or "
                "give None for columns that are exact"
            )
        shift = np.array([np.array(point) @ noise.directions for point in product(*(v for v, _ in rules))])
        shape = tuple(len(values) for values, _ in rules)
        return (X + shift[:, None]).reshape(*shape, *X.shape), tuple(weights for _, weights in rules)


def _rule(law: Noise, n: int) -> tuple[FloatArray, FloatArray]:
    """Values and probabilities with the moments of a law: its atoms, a Gauss rule, or quantiles for heavy tails."""
    atoms = finite_atoms(law)
    if atoms is not None and len(atoms[0]) <= n:
        return atoms
    if atoms is not None or max_degree(law) >= n:
        return OrthogonalBasis(law, 2).quadrature(n)
    level, weights = np.polynomial.legendre.leggauss(max(n, 41))
    weights = weights / 2
    values = law.ppf((level + 1) / 2)
    centered = values - weights @ values
    return law.mean() + centered * law.std() / np.sqrt(weights @ centered**2), weights


@dataclass(frozen=True)
class AtRandomInputs(PosteriorMethods):
    """A posterior of a single output at :meth:`RandomInput.nodes`, with the methods that the estimator needs."""

    posterior: Posterior
    probabilities: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        if not arrays.is_numpy(self.posterior.smoother.places):
            raise TypeError("random inputs need a model that was fitted to NumPy arrays")
        if not self.posterior.single_output:
            raise ValueError("random inputs need a single output: fit one model for each column of y")

    @property
    def transform(self) -> Any:  # type: ignore[override]
        return self.posterior.transform

    @property
    def weights(self) -> FloatArray:
        """Probabilities of the nodes, (q,)."""
        weights: FloatArray = np.ones(1)
        for along in self.probabilities:
            weights = np.outer(weights, along).ravel()
        return weights

    def _rows(self, X: FloatArray) -> FloatArray:
        """All nodes as rows, (q m, d)."""
        return np.ascontiguousarray(X.reshape(-1, X.shape[-1]))

    def _tiled(self, noise_scale: FloatArray | None) -> FloatArray | None:
        """Noise scales of the nodes, (q m,)."""
        return None if noise_scale is None else np.tile(noise_scale, len(self.weights))

    def mean(self, X: FloatArray) -> FloatArray:
        """E mu(X*), (m,)."""
        return np.asarray(self.weights @ self.posterior.mean(self._rows(X)).reshape(-1, X.shape[-2]))

    def mean_and_uncertainty(
        self, X: FloatArray, noise_scale: FloatArray | None = None
    ) -> tuple[FloatArray, Uncertainty]:
        """Mean and variances by cause; the random input adds Var mu(X*) to ``input``."""
        means, parts = self.posterior.mean_and_uncertainty(self._rows(X), self._tiled(noise_scale))
        shape, weights = (-1, X.shape[-2]), self.weights
        means = means.reshape(shape)
        mean = weights @ means
        averages = {
            name: weights @ getattr(parts, name).reshape(shape)
            for name in ("noise", "model", "aleatoric", "input")
        }
        averages["input"] = averages["input"] + weights @ (means - mean) ** 2
        return mean, Uncertainty(**averages)

    def mean_and_covariance(self, _: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Refuse: the joint law of the random inputs is not known."""
        raise ValueError("return_cov is not available at random inputs, since their joint law is not known")

    def _law(
        self, X: FloatArray, of: str, verbose: bool, noise_scale: FloatArray | None
    ) -> PredictiveDistribution:
        nodes = PredictiveDistribution(self.posterior, self._rows(X), of, verbose, self._tiled(noise_scale))
        law = RandomPrediction(nodes, self.weights)
        if _is_coarse(law.at_nodes, self.probabilities):
            warnings.warn(
                "the law at the random inputs is a coarse mixture, since the mean changes by more than its standard deviation "
                "between nodes: raise n_nodes of RandomInput for probabilities and quantiles (mean and variance are accurate)",
                UserWarning,
                stacklevel=4,
            )
        return law


class RandomPrediction(PredictiveDistribution):
    """The law of a prediction at m random inputs, from that at their nodes, of shape (q m,), with probabilities (q,)."""

    def __init__(self, nodes: PredictiveDistribution, probabilities: FloatArray) -> None:
        q = len(probabilities)
        self._nodes, self._probabilities = nodes, probabilities
        self.of, self.scale = nodes.of, nodes.scale
        means = nodes.mu.reshape(q, -1)
        self.mu = probabilities @ means
        self._X = nodes._X[: means.shape[1]]
        # an uncertain noise level is a mixture itself, whose parts come first
        law: Any = nodes.law
        levels: FloatArray = np.ones(1)
        if isinstance(law, MixedLaw):
            law, levels = law.law, law.probabilities
        shape = len(levels) * q, means.shape[1]
        self.at_nodes = combination(
            [(noise, weights.reshape(*shape, -1), counts) for noise, weights, counts in law.terms],
            loc=law.loc.reshape(shape) + np.tile(means - self.mu, (len(levels), 1)),
            normal_std=law.normal_std.reshape(shape),
        )
        self.law = MixedLaw(self.at_nodes, np.outer(levels, probabilities).ravel())

    def _draw(self, size: int, generator: Any) -> FloatArray:
        """Each input is one of its nodes, independently of the others; the functions are common to all."""
        draws = self._nodes._draw(size, generator) + self._nodes.mu
        draws = draws.reshape(size, len(self._probabilities), -1)
        chosen = generator.choice(
            len(self._probabilities), size=(size, 1, draws.shape[2]), p=self._probabilities
        )
        return np.asarray(np.take_along_axis(draws, chosen, axis=1)[:, 0] - self.mu)

    def chaos(self) -> ChaosForm:
        """Refuse: the prediction is not linear in the input."""
        raise ValueError(
            "at a random input there is no chaos form (12): the estimate is not linear in the input"
        )


def _is_coarse(law: LinearCombination, probabilities: tuple[FloatArray, ...]) -> bool:
    """Whether likely neighbors among the nodes have means that are far apart."""
    shape = (-1, *(len(along) for along in probabilities), law.shape[-1])
    mean, std = law.mean().reshape(shape), law.std().reshape(shape)
    for axis, along in enumerate(probabilities, start=1):
        gap, width = np.abs(np.diff(mean, axis=axis)), std.take(range(1, len(along)), axis=axis)
        width = (width + std.take(range(len(along) - 1), axis=axis)) / 2
        likely = np.flatnonzero(np.minimum(along[1:], along[:-1]) > UNLIKELY)
        if np.any(gap.take(likely, axis=axis) > GAP * width.take(likely, axis=axis)):
            return True
    return False
