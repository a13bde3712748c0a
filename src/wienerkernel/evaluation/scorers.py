"""Scores of predictive distributions for scikit-learn's model selection: callables for ``scoring=``.

They take a fitted model, or a pipeline that ends in one, and held-out data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..text import check_probability
from .crps import crps
from .unwrap import unwrapped

__all__ = ["coverage", "log_score", "neg_crps"]


def _law(estimator: Any, X: Any, y: ArrayLike) -> tuple[Any, Any]:
    """The law of new observations, and their values in its shape."""
    model, X = unwrapped(estimator, X)
    law = model.predict_distribution(X, of="observation")
    return law, np.asarray(y, dtype=float).reshape(law.shape)


def log_score(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Mean log density of held-out observations; higher is better.

    Parameters
    ----------
    estimator : WienerKernelRegressor or Pipeline
        Fitted.
    X : array-like of shape (m, d)
    y : array-like of shape (m,) or (m, n_y)

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from wienerkernel import RBF, WienerKernelRegressor, log_score
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None)
    >>> cross_val_score(model, X, np.sin(X[:, 0]), scoring=log_score, cv=2).shape
    (2,)
    """
    law, values = _law(estimator, X, y)
    return float(np.mean(law.logpdf(values)))


def neg_crps(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Minus the mean continuous ranked probability score, in units of y; higher is better.

    Parameters
    ----------
    estimator : WienerKernelRegressor or Pipeline
        Fitted.
    X : array-like of shape (m, d)
    y : array-like of shape (m,) or (m, n_y)

    Returns
    -------
    float

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor, neg_crps
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None).fit(X, np.sin(X[:, 0]))
    >>> round(neg_crps(model, [[1.0]], [0.9]), 3)
    -0.038
    """
    law, values = _law(estimator, X, y)
    return -float(np.mean(crps(law, values)))


def coverage(estimator: Any, X: Any, y: ArrayLike, probability: float = 0.9) -> float:
    """Fraction of held-out observations in their equal-tailed intervals; it should be ``probability``.

    It is no objective for a search, since it can be right for laws that are wrong. Another probability is set with
    ``functools.partial(coverage, probability=0.5)``.

    Parameters
    ----------
    estimator : WienerKernelRegressor or Pipeline
        Fitted.
    X : array-like of shape (m, d)
    y : array-like of shape (m,) or (m, n_y)
    probability : float, default=0.9

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.model_selection import cross_validate
    >>> from wienerkernel import RBF, WienerKernelRegressor, coverage, neg_crps
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None)
    >>> scores = cross_validate(model, X, np.sin(X[:, 0]), scoring={"crps": neg_crps, "coverage": coverage}, cv=2)
    >>> sorted(scores)[-2:]
    ['test_coverage', 'test_crps']
    """
    check_probability("probability", probability)
    law, values = _law(estimator, X, y)
    return float(np.mean(np.abs(law.cdf(values) - 0.5) <= probability / 2))
