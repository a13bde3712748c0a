"""Models inside pipelines and searches of scikit-learn."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

__all__ = ["unwrapped"]


def unwrapped(estimator: Any, X: Any = None) -> tuple[Any, Any]:
    """The fitted model inside pipelines, searches and wrappers, and X as that model sees it.

    Parameters
    ----------
    estimator : WienerKernelRegressor, Pipeline that ends in one, or a fitted search such as GridSearchCV
    X : array-like or None

    Returns
    -------
    model : WienerKernelRegressor
    X : array-like or None

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from wienerkernel import WienerKernelRegressor
    >>> pipeline = make_pipeline(StandardScaler(), WienerKernelRegressor(tuning=None)).fit([[0.0], [2.0]], [0.0, 1.0])
    >>> unwrapped(pipeline, [[3.0]])
    (WienerKernelRegressor(tuning=None), array([[2.]]))
    """
    check_is_fitted(estimator)
    while not hasattr(estimator, "predict_distribution"):
        if isinstance(estimator, Pipeline):
            if X is not None and len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "estimator_"):
            estimator = estimator.estimator_
        elif hasattr(estimator, "estimator"):  # FrozenEstimator
            estimator = estimator.estimator
        else:
            msg = f"this needs a WienerKernelRegressor, or a pipeline that ends in one, got {type(estimator).__name__}"
            raise TypeError(msg)
    return estimator, X
