"""Result objects of a fitted model: the variances by cause, leave-one-out predictions, gradients."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar

import numpy as np

from .._typing import FloatArray

__all__ = ["LeaveOneOut", "PredictionGradient", "Uncertainty"]


@dataclass(frozen=True, repr=False)
class Uncertainty:
    """Variances at the query points, by cause; for several outputs of shape (m, n_y), each in its units.

    Attributes
    ----------
    noise : ndarray of shape (m,)
        V = s2 |a|^2, caused by noise in the data (sigma_WK^2, eq. 14). More samples at x reduce it.
    model : ndarray of shape (m,)
        P2, caused by unexplored inputs. Samples near x reduce it. It is a difference of terms as large as k(x, x), so its
        rounding error is about 1e-16 k(x, x), or 6e-8 k(x, x) in single precision.
    aleatoric : ndarray of shape (m,)
        s2, the noise of the observation: noise, or the effect of inputs that were not measured. No sample reduces it.
    input : ndarray of shape (m,)
        Caused by the noise on the inputs of the data, and on x itself if that is a ``RandomInput``; 0 for exact
        inputs.
    computational : ndarray of shape (m,)
        Caused by an ``approximation`` of the weights: an estimate, while the sum with ``model`` is P2 of these weights;
        0 for the exact model. More neighbors or features reduce it.
    standard_error : ndarray of shape (m,)
        Of ``model + computational``, where these are estimated from random frequencies (:class:`Features`); else 0.

    Examples
    --------
    >>> u = Uncertainty(np.array([0.5]), np.array([0.25]), np.array([1.0]))
    >>> u.epistemic.tolist(), u.total.tolist()
    ([0.75], [1.75])
    """

    noise: FloatArray
    model: FloatArray
    aleatoric: FloatArray
    input: FloatArray = field(default_factory=lambda: np.empty(0), kw_only=True)
    computational: FloatArray = field(default_factory=lambda: np.empty(0), kw_only=True)
    standard_error: FloatArray = field(default_factory=lambda: np.empty(0), kw_only=True)

    _optional: ClassVar = ("input", "computational", "standard_error")
    """Parts that most models lack: 0 by default, and shown only if given."""

    def __post_init__(self) -> None:
        for name in self._optional:
            if not len(getattr(self, name)):
                object.__setattr__(self, name, 0 * self.noise)

    def __repr__(self) -> str:
        parts = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        shown = (
            f"{name}={part!r}"
            for name, part in parts.items()
            if name not in self._optional or bool((part != 0).any())
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def estimate(self) -> FloatArray:
        """Variance of the estimate of f(x): V, and the part of the noise on the inputs."""
        return self.noise + self.input

    @property
    def epistemic(self) -> FloatArray:
        """Variance of f(x) given the data, V + P2; sigma_GP^2 (eq. 2b) when the ridge is the noise variance."""
        return self.noise + self.input + self.model + self.computational

    @property
    def total(self) -> FloatArray:
        """Variance of a new observation at x (eq. 3)."""
        return self.epistemic + self.aleatoric


@dataclass(frozen=True, repr=False)
class LeaveOneOut(Uncertainty):
    """Predictions of each sample i by the model fitted without it.

    Attributes
    ----------
    mean : ndarray of shape (n,) or (n, n_y)
        Prediction of f(x_i).
    residual : ndarray of shape (n,) or (n, n_y)
        y_i minus the mean of its noise, minus ``mean``.
    noise, model, aleatoric : ndarray of shape (n,) or (n, n_y)
        Variances, as in :class:`Uncertainty`; ``total`` is the variance of ``residual``. The noise on the input of
        sample i itself is part of ``aleatoric``.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), trend=None, tuning=None).fit([[0.0], [0.0]], [0.0, 1.0])
    >>> left_out = model.loo()
    >>> left_out.mean.round(9).tolist(), left_out.residual.round(9).tolist()
    ([0.5, 0.0], [-0.5, 1.0])
    """

    mean: FloatArray
    residual: FloatArray


@dataclass(frozen=True)
class PredictionGradient:
    """Gradients with respect to the query point.

    Attributes
    ----------
    mean, noise, model : ndarray of shape (m, d) or (m, n_y, d)
        Of the mean and of the variances V and P2. ``noise`` includes the part of the noise on the inputs.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> model = WienerKernelRegressor(RBF(1.0), trend=None, tuning=None).fit([[0.0]], [2.0])
    >>> model.predict_gradient([[1.0]]).mean.round(4).tolist()   # -x exp(-x^2 / 2)
    [[-0.6065]]
    """

    mean: FloatArray
    noise: FloatArray
    model: FloatArray
