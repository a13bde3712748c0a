"""Models inside pipelines and searches of scikit-learn: scores for ``scoring=``, predictions as columns, and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from ..posterior.separate import causes
from ..text import check_probability
from .crps import crps

__all__ = ["IntervalRegressor", "coverage", "log_score", "neg_crps", "prediction_table", "unwrapped"]


def unwrapped(estimator: Any, X: Any = None) -> tuple[Any, Any]:
    """The fitted model inside pipelines, searches and wrappers, and X as that model sees it."""
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


def prediction_table(
    estimator: Any,
    X: Any,
    *,
    coverage: float = 0.95,
    of: str = "observation",
    noise_scale: ArrayLike | None = None,
) -> Any:
    """Mean, interval and standard deviations by cause at the rows of X, as columns.

    Parameters
    ----------
    estimator : WienerKernelRegressor or Pipeline
        Fitted. Standard deviations of a model with a ``transform`` are on the transformed scale.
    X : array-like of shape (m, d) or DataFrame
    coverage : float, default=0.95
        Probability of the equal-tailed interval from ``lower`` to ``upper``.
    of : {"estimate", "function", "observation"}, default="observation"
    noise_scale : array-like of shape (m,), default=None

    Returns
    -------
    DataFrame or dict of str to ndarray of shape (m,)
        ``mean``, ``lower``, ``upper``, ``std_noise``, ``std_model``, ``std_aleatoric``, and what other parts the model has.
        A DataFrame with the index of X if X is one. Of several outputs, names end in ``_`` and the name of the output.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor, prediction_table
    >>> model = WienerKernelRegressor(RBF(1.0), tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> table = prediction_table(model, [[0.5]])
    >>> {name: round(float(values[0]), 2) for name, values in table.items()}
    {'mean': 0.5, 'lower': -1.93, 'upper': 2.93, 'std_noise': 0.71, 'std_model': 0.2, 'std_aleatoric': 1.0}
    """
    model, query = unwrapped(estimator, X)
    check_probability("coverage", coverage)
    law = model.predict_distribution(query, of, noise_scale=noise_scale)
    parts = model.uncertainty(query, noise_scale)
    ends = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
    lower, upper = law.ppf(ends.reshape(-1, *[1] * len(law.shape)))
    stds = {f"std_{name}": np.sqrt(getattr(parts, name)) for name in causes(model.posterior_)}
    columns: dict[str, FloatArray] = {}
    for name, values in {"mean": law.mean(), "lower": lower, "upper": upper, **stds}.items():
        if values.ndim == 1:
            columns[name] = values
        else:
            outputs = getattr(model, "target_names_in_", range(1, values.shape[1] + 1))
            columns |= {f"{name}_{output}": column for output, column in zip(outputs, values.T, strict=True)}
    if hasattr(X, "columns") and hasattr(X, "index"):
        return type(X)(columns, index=X.index)
    return columns


class IntervalRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A model or pipeline whose ``predict`` returns intervals, for ``cross_val_predict`` and the like.

    Parameters
    ----------
    estimator : WienerKernelRegressor or Pipeline
    coverage : float, default=0.9
        Probability of the equal-tailed interval.
    of : {"estimate", "function", "observation"}, default="observation"

    Attributes
    ----------
    estimator_ : WienerKernelRegressor or Pipeline
        Fitted.
    n_features_in_ : int
        Inputs; ``feature_names_in_`` has their names if X had them.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_predict
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from wienerkernel import IntervalRegressor, RBF, WienerKernelRegressor
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)", tuning=None)
    >>> intervals = IntervalRegressor(make_pipeline(StandardScaler(), model), coverage=0.8)
    >>> cross_val_predict(intervals, X, np.sin(X[:, 0]), cv=5).shape
    (20, 2)
    """

    def __init__(self, estimator: Any, *, coverage: float = 0.9, of: str = "observation") -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.of = of

    def fit(self, X: Any, y: ArrayLike, **options: Any) -> IntervalRegressor:
        """Fit a clone of the estimator.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, n_y)
        **options : dict
            Passed to ``estimator.fit``; if scikit-learn routes metadata, where they were requested.

        Returns
        -------
        IntervalRegressor
        """
        if options and get_config()["enable_metadata_routing"]:
            options = process_routing(self, "fit", **options).estimator.fit
        self.estimator_ = clone(self.estimator).fit(X, y, **options)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """What the estimator requests in ``fit``.

        Returns
        -------
        MetadataRouter
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=to_fit)

    def predict(self, X: Any) -> FloatArray:
        """Lower and upper end of the interval.

        Parameters
        ----------
        X : array-like of shape (m, d)

        Returns
        -------
        ndarray of shape (m, 2) or (m, n_y, 2)
        """
        model, X = unwrapped(self, X)
        return np.asarray(model.predict_interval(X, self.coverage, self.of))

    def score(self, X: Any, y: ArrayLike, sample_weight: Any = None) -> float:
        """Score of the estimator itself, the coefficient of determination.

        Parameters
        ----------
        X : array-like of shape (m, d)
        y : array-like of shape (m,) or (m, n_y)
        sample_weight : array-like of shape (m,), default=None

        Returns
        -------
        float
        """
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.estimator_.score(X, y, **options))
