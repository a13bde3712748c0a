"""WienerKernelRegressor: the scikit-learn estimator, and the main entry point of the package."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from . import fitting
from ._typing import Array, FloatArray, RandomState
from .backend import arrays
from .chaos import ChaosForm
from .decisions.bounds import bound
from .decisions.design import NextSample, SamplesNeeded, next_sample, samples_needed
from .noise.level import checked_level, observation_scale
from .notebook import FittedHTML
from .posterior import (
    LeaveOneOut,
    Posterior,
    PredictionGradient,
    PredictiveDistribution,
    SamplePaths,
    Uncertainty,
)
from .posterior.random_input import AtRandomInputs, RandomInput
from .posterior.separate import each
from .smoother.fast_predictor import FastPredictor
from .smoother.ridge_path import RidgePath
from .streams import Files, is_dask, is_stream
from .text import check_probability
from .tuning.progress import verbosely
from .validation import check_data, check_noise_scale, check_query, check_query_scale

if TYPE_CHECKING:
    from .evaluation.diagnostics import ScoreReport

__all__ = ["WienerKernelRegressor"]


class WienerKernelRegressor(FittedHTML, MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression under noise of any law, with predictions as random variables.

    Samples are y_i = f(x_i) + M_i with independent noise M_i of the law ``noise``. The estimate of f is linear in y,
    so its law is that of a linear combination of noise variables, and its uncertainty splits by cause.

    Parameters
    ----------
    kernel : Kernel, str, scikit-learn kernel or callable, default=None
        The kernel k, or a formula such as ``"matern52"``. A callable takes (n, d) and (m, d) arrays and returns (n, m).
        None is a variance times an :class:`RBF` with one length scale per input, or ``RBF(1.0)`` if ``tuning=None``. A
        kernel named in a formula also has one length scale per input, unless they are given.
    noise : frozen scipy.stats law, Family, str, array-like of shape (n,), Mixture, Expansion or None, default=None
        The law of M: a law, its name with parameters such as ``"gamma(0.25, scale=2)"``, recorded residuals, a
        mixture or a chaos expansion. Unknown parameters are tuned: None is normal noise of unknown variance (the
        standard normal law if ``tuning=None``), a :class:`Family` or a bare name such as ``"gamma"`` has free scale and
        shapes, and ``"residuals"`` takes the shape from replicates or leave-one-out residuals. ``"auto"`` learns a
        noise level and, for positive y, a transform as well, and the shape of the noise where it is clearly not normal.
    ridge : float, default=None
        The ridge rho^2, on the scale of ``transform``. None is the noise (co)variance, for which the mean is that of a
        Gaussian process. A number changes the estimate, not the likelihood: kernel, noise and level are tuned as without it.
    trend : {None, "constant", "linear"}, default="constant"
        Basis functions that are estimated without penalty (universal kriging). With None, the estimate tends to 0 far
        from the data, as in the paper.
    noise_level : None, "input", "mean" or callable, default=None
        The level s(x) of the noise s(x) M: constant, learned as a smooth function of x or of the fitted mean, or given
        as a function that takes an array (m, d) and returns positive values (m,).
    transform : None, "log", "box-cox", "yeo-johnson" or tuple of three callables, default=None
        The scale on which the model holds, T(y) = f(x) + s(x) M; the exponent is learned. The callables are T, its
        inverse and its derivative. ``predict``, distributions and scores are on the scale of y, where moments are
        approximate unless the noise is normal; ``uncertainty`` and everything else about f are on the transformed scale.
    tuning : {"likelihood", "loo", None}, default="likelihood"
        How the hyperparameters of the kernel and the unknown parameters of the noise are found: by the Gaussian
        quasi-likelihood with the variance of the noise, by the leave-one-out log score under the exact law of the
        noise, or not at all. For another ``loss``, "loo" then tunes the kernel by the leave-one-out error of the loss.
    n_restarts : int, default=0
        Number of further searches from random starting points.
    random_state : int, numpy Generator or RandomState, or None, default=None
        Seed of those points, of the draws for ``inference="bayes"``, and of the bootstrap for other losses.
    dtype : {"float64", "float32", "mixed"}, default="float64"
        Precision of the kernel matrices. Single precision halves the memory and suits large, noisy data: results have
        about six digits unless the ridge is small, and none if it is below 1e-6 of the kernel's variance. ``"mixed"``
        keeps the factor in single precision and refines every solve to ten digits, which takes several times as long.
    loss : "squared", "absolute", "efficient", Huber, Pinball, EpsilonInsensitive or NegativeLogDensity, default="squared"
        The loss that the estimate minimizes. "efficient" is the Huber or pinball loss with the smallest asymptotic
        variance for the noise. Losses other than "squared" use the noise for the constant that they add to f, for the
        ridge, and for the law of the estimate.
    inference : {None, "ep", "bayes"}, default=None
        None is the estimate that minimizes the loss. "ep" is the posterior of f under a Gaussian process prior and the
        density of the noise, by expectation propagation; "bayes" corrects it by sampling. ``tuning="likelihood"`` then
        maximizes the evidence. These answers are not linear in y, so methods that need the weights a(x) refuse them.
    approximation : None, Neighbors, Features, Actions, {"neighbors", "features", "auto"}, default=None
        How the weights of the estimate are computed: None solves the equations of all data; :class:`Neighbors` and
        :class:`Features` are for data that are too large for that, and "auto" chooses one of them if X has more than
        25,000 distinct rows. The variances are those of the approximate weights, and ``uncertainty`` shows what the
        approximation adds to them.
    verbose : bool, default=False
        Show the progress of the search for parameters on stderr, every few seconds.

    Attributes
    ----------
    kernel_ : Kernel
    noise_ : Noise
    ridge_ : float
        With several outputs and ``noise="auto"``, ``noise_level``, ``transform``, ``loss`` or ``inference``, each output has
        a model of its own; ``kernel_``, ``noise_``, ``ridge_`` and ``tuning_result_`` have one entry for each output.
    output_scale_ : ndarray of shape (n_y,)
        Output k has the kernel ``output_scale_[k]**2 * kernel_`` and ``output_scale_[k]`` times noise of the law
        ``noise_``. The scales are tuned, with product 1, if there are several outputs and both the amplitude of the
        kernel and the standard deviation of the noise are tuned; otherwise they are 1.
    tuning_result_ : TuningResult or None
        The tuned parameters by name, and the value of the objective.
    approximation_ : Neighbors or Features
        If there is one.
    posterior_ : Posterior, or another object with its methods if the estimate is not linear in y
        The fitted model, which all methods evaluate.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the columns of X have names.

    Examples
    --------
    >>> from scipy import stats
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> X = np.linspace(-5, 5, 5)[:, None]
    >>> y = 0.01 * X[:, 0] ** 3 - 0.2 * X[:, 0] ** 2 + 0.2 * X[:, 0]
    >>> kernel, noise = 4.21**2 * RBF(3.59), stats.gamma(0.25, scale=2)
    >>> model = WienerKernelRegressor(kernel, noise=noise, trend=None, tuning=None).fit(X, y + 0.5)
    >>> u = model.uncertainty([[0.0]])
    >>> round(float(u.noise[0]), 4), round(float(u.model[0]), 4), float(u.aleatoric[0])
    (0.5344, 0.0906, 1.0)
    """

    kernel_: Any
    noise_: Any
    ridge_: Any
    tuning_result_: Any
    posterior_: Any

    def __init__(
        self,
        kernel: Any = None,
        *,
        noise: Any = None,
        ridge: float | None = None,
        trend: str | None = "constant",
        noise_level: Any = None,
        transform: Any = None,
        tuning: str | None = "likelihood",
        n_restarts: int = 0,
        random_state: RandomState = None,
        dtype: str = "float64",
        loss: Any = "squared",
        inference: str | None = None,
        approximation: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.ridge = ridge
        self.trend = trend
        self.noise_level = noise_level
        self.transform = transform
        self.tuning = tuning
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.dtype = dtype
        self.loss = loss
        self.inference = inference
        self.approximation = approximation
        self.verbose = verbose

    @property
    def transform(self) -> Any:
        """The parameter; absent if it is None, since scikit-learn treats objects with a ``transform`` as transformers."""
        if self.__dict__["transform"] is None:
            raise AttributeError("transform=None: the model holds on the scale of y")
        return self.__dict__["transform"]

    @transform.setter
    def transform(self, transform: Any) -> None:
        self.__dict__["transform"] = transform

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the estimator by name; with ``deep``, those of a scikit-learn kernel, too."""
        params = {name: self.__dict__[name] for name in self._get_param_names()}
        if deep and hasattr(self.kernel, "get_params"):
            params.update((f"kernel__{name}", value) for name, value in self.kernel.get_params().items())
        return params

    def fit(
        self,
        X: ArrayLike | Files,
        y: ArrayLike,
        noise_scale: ArrayLike | None = None,
        input_noise: Any = None,
    ) -> WienerKernelRegressor:
        """Tune the unknown parameters of kernel and noise, and condition on the data.

        Parameters
        ----------
        X : array-like of shape (n, d), Dask DataFrame or Array, or Files
            Dask collections and :class:`Files` are read in parts, in bounded memory. A string is a pattern of file
            names, such as ``"data/*.parquet"``.
        y : array-like of shape (n,) or (n, n_y), or str
            Several outputs have independent noise of the same law, up to the scales ``output_scale_``. With
            ``noise="auto"``, ``noise_level``, ``transform``, ``loss``, ``inference`` or ``input_noise``, each has a model of
            its own. For files, ``y`` and ``noise_scale`` are names of columns, and ``y`` may be a list of names.
        noise_scale : array-like of shape (n,) or (n, n), default=None
            Sample i has the noise ``noise_scale[i] * M_i``, with a positive scale. With a matrix L, the noise is
            correlated: L times the vector of independent M_i. Its rows must be linearly independent unless ``ridge``
            is given.
        input_noise : law, list of d laws, ndarray of shape (d, d) or None, default=None
            The law of the noise E on the inputs: row i of X is the true input plus E_i. One law describes independent
            noise on all columns, a list has one law for each column (None where it is exact), and a matrix is the
            covariance of normal noise. It is taken into account to first order, which is accurate up to about 0.15
            length scales. Needs NumPy arrays and a differentiable kernel.

        Returns
        -------
        WienerKernelRegressor
            The fitted model itself.

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.kernel_, model.ridge_
        (RBF(), 1.0)
        """
        if is_stream(X):
            return self._fit_stream(X, y, noise_scale, input_noise)
        with self._restored_on_failure(), verbosely(self.verbose):
            inputs, outputs = check_data(self, X, y, reset=True)
            fitting.fit(self, inputs, outputs, noise_scale, input_noise)
        return self

    def _fit_stream(self, X: Any, y: Any, noise_scale: Any, input_noise: Any) -> WienerKernelRegressor:
        """Fit to files or Dask collections."""
        from .io.streams import as_stream

        if input_noise is not None:
            raise ValueError("input_noise needs arrays in memory")
        stream = as_stream(X, y, noise_scale)
        with self._restored_on_failure(), verbosely(self.verbose):
            self.__dict__.pop("feature_names_in_", None)
            fitting.fit_stream(self, stream)
        self.n_features_in_ = stream.n_features
        if stream.names is not None:
            self.feature_names_in_ = np.array(stream.names, dtype=object)
        return self

    @contextmanager
    def _restored_on_failure(self) -> Iterator[None]:
        """Restore all attributes if fitting fails; without the factor if that had to make room, as it is large."""
        before = {name: value for name, value in self.__dict__.items() if name != "posterior_"}
        try:
            yield
        except BaseException:
            kept = {name: value for name, value in self.__dict__.items() if name == "posterior_"}
            self.__dict__.clear()
            self.__dict__.update(before | kept)
            raise

    def __sklearn_is_fitted__(self) -> bool:
        return "posterior_" in self.__dict__

    @property
    def output_scale_(self) -> FloatArray:
        """Scales of the outputs, (n_y,)."""
        return np.asarray(self.posterior_.output_scale)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, noise_scale: ArrayLike | None = None
    ) -> WienerKernelRegressor:
        """Add samples, by updating the Cholesky factor instead of computing a new one.

        Kernel and noise do not change. The matrix is refactorized where that is cheaper, where the rounding errors of
        many updates have grown, and for arrays of libraries other than NumPy.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, n_y)
        noise_scale : array-like of shape (n,), default=None

        Returns
        -------
        WienerKernelRegressor
            The model itself, which is fitted first if necessary.

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.partial_fit([[2.0]], [1.0]).predict([[2.0]]).round(4).tolist()
        [0.8667]
        """
        if not hasattr(self, "posterior_"):
            return self.fit(X, y, noise_scale)
        inputs, outputs = check_data(self, X, y, reset=False)
        scale = check_noise_scale(noise_scale, inputs.shape[0])
        fitting.add(self, inputs, outputs, scale)
        return self

    def forget(self, rows: ArrayLike) -> WienerKernelRegressor:
        """Drop samples.

        Parameters
        ----------
        rows : array-like of int
            Indices of the samples, in the order in which they were given; later ones shift down.

        Returns
        -------
        WienerKernelRegressor
            The model itself.

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.forget([1]).predict([[1.0]]).tolist()
        [0.0]
        """
        fitting.drop(self, self._fitted, rows)
        return self

    @property
    def _fitted(self) -> Any:
        """The posterior, or NotFittedError."""
        if "posterior_" not in self.__dict__:  # the check itself takes as long as a prediction
            check_is_fitted(self)
        return self.posterior_

    def _query(self, X: Any) -> Array:
        """Queries (m, d) in their own library, checked."""
        self._fitted  # noqa: B018  # or NotFittedError
        query = check_query(self, X)
        return arrays.as_numpy(query) if hasattr(self, "approximation_") else query

    def _view(self, X: Any) -> tuple[Callable[[Posterior], Any], Array, int]:
        """A view of a posterior, at exact inputs or at the nodes of random ones; the checked queries, and their number."""
        if not isinstance(X, RandomInput):
            query = self._query(X)
            return lambda posterior: posterior, query, query.shape[0]
        query = self._query(X.X)
        nodes, probabilities = X.nodes(query)
        return lambda posterior: AtRandomInputs(posterior, probabilities), nodes, len(query)

    def predict(
        self,
        X: ArrayLike | RandomInput,
        return_std: bool = False,
        return_cov: bool = False,
        return_uncertainty: bool = False,
    ) -> Any:
        """Estimate f.

        A new observation has the mean ``predict(X) + output_scale_ * noise_.mean()``.

        Parameters
        ----------
        X : array-like of shape (m, d), RandomInput, or Dask DataFrame or Array
            Predictions for a Dask collection are a Dask collection.
        return_std : bool, default=False
            Also return the standard deviation of f(x): sigma_GP when the ridge is the noise variance.
        return_cov : bool, default=False
            Also return the covariance of the function values.
        return_uncertainty : bool, default=False
            Also return the variances by cause, from the same evaluation of the kernel.

        Returns
        -------
        mean : ndarray of shape (m,) or (m, n_y)
        std : ndarray of shape (m,) or (m, n_y), with ``return_std``
        cov : ndarray of shape (m, m) or (m, m, n_y), with ``return_cov``
        uncertainty : Uncertainty, with ``return_uncertainty``

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> mean, std = model.predict([[0.5]], return_std=True)
        >>> mean.round(4).tolist(), std.round(4).tolist()
        ([0.5], [0.7337])
        """
        if return_std + return_cov + return_uncertainty > 1:
            raise ValueError("at most one of return_std, return_cov and return_uncertainty can be True")
        if is_dask(X):
            from .io.streams import predicted

            self._fitted  # noqa: B018  # or NotFittedError
            return predicted(self, X, return_std, return_cov or return_uncertainty)
        view, query, _ = self._view(X)
        requested = return_std, return_cov, return_uncertainty
        return each(
            self._fitted,
            lambda p: (_predict if p.transform is None else _predict_transformed)(view(p), query, *requested),
        )

    def predict_noise_scale(self, X: ArrayLike) -> FloatArray:
        """Level s(x) of the noise s(x) M of a new observation, relative to the law ``noise_``.

        Parameters
        ----------
        X : array-like of shape (m, d)

        Returns
        -------
        ndarray of shape (m,), or (m, n_y) if each output has its own level
            1 without a ``noise_level``.

        Examples
        --------
        >>> model = WienerKernelRegressor(noise_level=lambda X: 1 + X[:, 0], tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.predict_noise_scale([[2.0]]).tolist()
        [3.0]
        """
        query = arrays.as_numpy(self._query(X))
        one = np.ones(len(query))
        level = each(
            self._fitted, lambda p: one if p.level is None else checked_level(p.level(query), len(one))
        )
        return np.asarray(level)

    def uncertainty(self, X: ArrayLike | RandomInput, noise_scale: ArrayLike | None = None) -> Uncertainty:
        """Split the variance at the rows of X by cause.

        With a ``transform``, these are variances on the transformed scale, where they add up. The model part has a
        rounding error of about 1e-16 k(x, x), less at rows of X that have samples.

        Parameters
        ----------
        X : array-like of shape (m, d) or RandomInput
        noise_scale : array-like of shape (m,), default=None
            Factors of the noise of new observations, beside the level of the model.

        Returns
        -------
        Uncertainty
            Variances ``noise``, ``input``, ``model``, ``aleatoric``, ``epistemic`` and ``total``, each of shape (m,) or
            (m, n_y).

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> parts = model.uncertainty([[0.5], [9.0]])
        >>> parts.noise.round(4).tolist(), parts.model.round(4).tolist(), parts.aleatoric.tolist()
        ([0.5, 0.5], [0.0383, 1.8033], [1.0, 1.0])
        """
        view, query, m = self._view(X)
        scale = check_query_scale(noise_scale, m)
        return each(self._fitted, lambda p: view(p).uncertainty(query, scale))  # type: ignore[no-any-return]

    def predict_distribution(
        self,
        X: ArrayLike | RandomInput,
        of: str | None = None,
        verbose: bool = False,
        noise_scale: ArrayLike | None = None,
    ) -> PredictiveDistribution:
        """Prediction at the rows of X as a random variable.

        Parameters
        ----------
        X : array-like of shape (m, d) or RandomInput
        of : {"estimate", "function", "observation"}, default=None
            The estimate (its variance is the noise part), the value f(x) (noise and model part) or a new
            observation (all three). None is the estimate, or the function with ``inference``.
        verbose : bool, default=False
            Show progress on stderr if a computation takes more than a few seconds.
        noise_scale : array-like of shape (m,), default=None
            Factors of the noise of new observations, beside the level of the model.

        Returns
        -------
        PredictiveDistribution
            On the scale of y, also for a model with a ``transform``.

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> Y = model.predict_distribution([[0.5]], of="observation")
        >>> Y.mean().round(4).tolist(), Y.ppf(0.95).round(4).tolist()
        ([0.5], [2.5401])
        """
        view, query, m = self._view(X)
        scale = check_query_scale(noise_scale, m)
        return each(  # type: ignore[no-any-return]
            self._fitted, lambda p: view(p).distribution(query, of or p.laws[0], verbose, scale)
        )

    def predict_quantiles(
        self,
        X: ArrayLike | RandomInput,
        quantiles: ArrayLike,
        of: str = "observation",
        verbose: bool = False,
        noise_scale: ArrayLike | None = None,
    ) -> FloatArray:
        """Quantiles of the prediction.

        Parameters
        ----------
        X : array-like of shape (m, d) or RandomInput
        quantiles : array-like of shape (k,)
            Levels between 0 and 1.
        of : {"estimate", "function", "observation"}, default="observation"
        verbose : bool, default=False
        noise_scale : array-like of shape (m,), default=None

        Returns
        -------
        ndarray of shape (m, k) or (m, n_y, k)

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.predict_quantiles([[0.5]], [0.05, 0.5, 0.95]).round(4).tolist()
        [[-1.5401, 0.5, 2.5401]]
        """
        levels = np.asarray(quantiles, dtype=float)
        if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
            msg = f"quantiles must be a one-dimensional sequence of levels between 0 and 1, got {quantiles!r}"
            raise ValueError(msg)
        distribution = self.predict_distribution(X, of, verbose, noise_scale)
        curves = distribution.ppf(levels.reshape(-1, *[1] * len(distribution.shape)))
        return np.moveaxis(curves, 0, -1)

    def predict_interval(
        self,
        X: ArrayLike | RandomInput,
        coverage: float = 0.9,
        of: str = "observation",
        verbose: bool = False,
        noise_scale: ArrayLike | None = None,
    ) -> FloatArray:
        """Equal-tailed interval of the prediction.

        Parameters
        ----------
        X : array-like of shape (m, d) or RandomInput
        coverage : float, default=0.9
        of : {"estimate", "function", "observation"}, default="observation"
        verbose : bool, default=False
        noise_scale : array-like of shape (m,), default=None

        Returns
        -------
        ndarray of shape (m, 2) or (m, n_y, 2)
            Lower and upper end.

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.predict_interval([[0.5]], 0.9, of="function").round(4).tolist()
        [[-0.7068, 1.7068]]
        """
        check_probability("coverage", coverage)
        return self.predict_quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2], of, verbose, noise_scale)

    def sample_y(
        self,
        X: ArrayLike | RandomInput,
        n_samples: int = 1,
        random_state: RandomState = 0,
        of: str = "function",
        noise_scale: ArrayLike | None = None,
    ) -> FloatArray:
        """Draw functions, like ``sample_y`` of scikit-learn's ``GaussianProcessRegressor``.

        Parameters
        ----------
        X : array-like of shape (m, d) or RandomInput
        n_samples : int, default=1
        random_state : int, numpy Generator or RandomState, or None, default=0
        of : {"estimate", "function", "observation"}, default="function"
        noise_scale : array-like of shape (m,), default=None

        Returns
        -------
        ndarray of shape (m, n_samples) or (m, n_y, n_samples)

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.sample_y([[0.0], [0.5]], n_samples=3).shape
        (2, 3)
        """
        number: Any = n_samples
        if not isinstance(number, Integral) or number < 0:
            raise ValueError(f"n_samples must be an integer of at least 0, got {n_samples!r}")
        draws = self.predict_distribution(X, of, noise_scale=noise_scale).rvs(
            n_samples, random_state=random_state
        )
        return np.moveaxis(draws, 0, -1)

    def sample_paths(
        self, n: int = 1, of: str = "function", features: Any = "auto", random_state: RandomState = None
    ) -> SamplePaths:
        """Draw functions that can be evaluated anywhere, any number of times.

        Parameters
        ----------
        n : int, default=1
        of : {"estimate", "function"}, default="function"
        features : "auto", None or int, default="auto"
            How prior functions are drawn; see :class:`SamplePaths`. Only a number is an approximation.
        random_state : int, numpy Generator or RandomState, or None

        Returns
        -------
        SamplePaths
            ``paths(X)`` has shape (n, m) or (n, m, n_y); on the scale of y, also for a model with a ``transform``.

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> paths = model.sample_paths(100, random_state=0)
        >>> paths([[0.5], [2.0]]).shape, paths.gradient([[0.5]]).shape
        ((100, 2), (100, 1, 1))
        """
        return SamplePaths(self._fitted, n, of, features, random_state)

    def predict_gradient(self, X: ArrayLike) -> PredictionGradient:
        """Gradients with respect to x of the mean and of both parts of the variance.

        Parameters
        ----------
        X : array-like of shape (m, d)

        Returns
        -------
        PredictionGradient
            ``mean``, ``noise`` and ``model``, each of shape (m, d) or (m, n_y, d).

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.predict_gradient([[0.5]]).mean.round(4).tolist()
        [[0.3167]]
        """
        query = self._query(X)
        return each(self._fitted, lambda p: p.gradient(query), axis=1)  # type: ignore[no-any-return]

    def predictor(self) -> FastPredictor:
        """A fast callable for control loops: mean, V and P2 at one point or a few, without checks.

        Returns
        -------
        FastPredictor
            ``p(x)`` for an array of shape (d,) or (m, d).

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> predict = model.predictor()
        >>> [round(float(value), 4) for value in predict(np.array([0.5]))]
        [0.5, 0.5, 0.0383]
        """
        posterior = self._fitted
        smoother, scale = posterior.smoother, posterior.output_scale
        return FastPredictor(smoother, posterior.noise.var(), scale, *posterior.input_covariance())

    def to_casadi(
        self,
        name: str = "model",
        outputs: Sequence[str] = ("mean", "noise", "model"),
        callback: bool | str = "auto",
    ) -> Any:
        """The estimate of f and its variances as a function of CasADi, for optimal control; needs the extra ``casadi``.

        Parameters
        ----------
        name : str, default="model"
        outputs : sequence of {"mean", "noise", "model"}
            Mean, variance V of the noise in the data, variance P2 of unexplored inputs.
        callback : {"auto", True, False}, default="auto"
            Whether CasADi calls the model instead of evaluating an expression; "auto" does so for more than 300
            different inputs. A callback must be kept alive while CasADi uses it, and has no second derivatives.

        Returns
        -------
        casadi.Function
            Of x, of shape (d,), with outputs of shape (n_y,).

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.to_casadi()   # doctest: +SKIP
        Function(model:(x)->(mean,noise,model) MXFunction)
        """
        from .dynamics.casadi_export import model_to_casadi

        return model_to_casadi(self._fitted, name, outputs, callback)

    def ridge_path(self, ridges: ArrayLike) -> RidgePath:
        """The same model for a grid of ridges, from one eigendecomposition; it needs noise of one scale.

        Parameters
        ----------
        ridges : array-like of shape (r,)

        Returns
        -------
        RidgePath

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.ridge_path([0.1, 1.0]).mean([[1.0]]).round(4).tolist()
        [[[0.8987]], [[0.6412]]]
        """
        return RidgePath.from_smoother(self._fitted.smoother, ridges, self.output_scale_)

    def bound(
        self,
        X: ArrayLike,
        *,
        norm: float,
        confidence: float = 0.95,
        method: str = "exact",
        simultaneous: bool = False,
        subgaussian_constant: float | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Interval that contains f(x) with a given probability, for every f of RKHS norm at most ``norm``.

        Parameters
        ----------
        X : array-like of shape (m, d)
        norm : float
            B with ||f|| <= B in the space of the kernel, for several outputs ``output_scale_[k]**2 * kernel_``.
        confidence : float, default=0.95
        method : str, default="exact"
            How the noise is bounded; see :func:`wienerkernel.decisions.bounds.bound` for the assumptions.
        simultaneous : bool, default=False
            Whether the interval holds for all rows of X at once (union bound).
        subgaussian_constant : float, default=None
            The sub-Gaussian constant of the noise, for the methods that need it.

        Returns
        -------
        lower, upper : ndarray of shape (m,) or (m, n_y)

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> lower, upper = model.bound([[0.5]], norm=2.0)
        >>> lower.round(4).tolist(), upper.round(4).tolist()
        ([-1.2772], [2.2772])
        """
        return bound(
            self._fitted,
            self._query(X),
            norm=norm,
            confidence=confidence,
            method=method,
            simultaneous=simultaneous,
            subgaussian_constant=subgaussian_constant,
        )

    def samples_needed(self, X: ArrayLike, *, std: ArrayLike, of: str = "function") -> SamplesNeeded:
        """Smallest number of repeated samples at each row of X that reduces the standard deviation there to a target.

        Parameters
        ----------
        X : array-like of shape (m, d)
        std : float or array-like of shape (m,)
        of : {"function", "estimate"}, default="function"
            Standard deviation of f(x) (noise and model part) or of the estimate (noise part).

        Returns
        -------
        SamplesNeeded

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.samples_needed([[0.5]], std=0.2).number.tolist()
        [24]
        """
        return samples_needed(self._fitted, self._query(X), std=std, of=of)

    def next_sample(
        self,
        candidates: ArrayLike,
        *,
        goal: str = "average",
        n_samples: int = 1,
        reference: ArrayLike | None = None,
    ) -> NextSample:
        """Propose inputs at which new samples reduce the epistemic variance most, and whether they act as repeats.

        Parameters
        ----------
        candidates : array-like of shape (m, d)
        goal : {"average", "worst"}, default="average"
        n_samples : int, default=1
            Chosen greedily, each with exact updates.
        reference : array-like of shape (r, d), default=None
            Inputs at which the variance is reduced; by default the candidates.

        Returns
        -------
        NextSample

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.next_sample([[0.0], [0.5], [3.0]]).points.tolist()
        [[3.0]]
        """
        posterior, query = self._fitted, self._query(candidates)
        at = None if reference is None else self._query(reference)
        return next_sample(posterior, query, goal=goal, n_samples=n_samples, reference=at)

    def log_likelihood(self, eval_gradient: bool = False) -> Any:
        """Gaussian (quasi-)log-likelihood of the data, with the regularizer as noise covariance.

        Several outputs are summed.

        Parameters
        ----------
        eval_gradient : bool, default=False
            Also return the gradient with respect to ``kernel_.theta``.

        Returns
        -------
        value : float
        gradient : ndarray of shape (p,), with ``eval_gradient``

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> round(model.log_likelihood(), 4)
        -2.6622
        """
        posterior = self._fitted
        value = float(np.sum(each(posterior, lambda p: p.smoother.log_likelihood())))
        return (value, posterior.smoother.log_likelihood_gradient()) if eval_gradient else value

    def loo(self) -> LeaveOneOut:
        """Leave-one-out predictions, without refitting.

        Returns
        -------
        LeaveOneOut

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.loo().residual.round(4).tolist()
        [-1.0, 1.0]
        """
        return each(self._fitted, lambda p: p.leave_one_out())  # type: ignore[no-any-return]

    def score_report(
        self,
        X: ArrayLike | RandomInput | None = None,
        y: ArrayLike | None = None,
        noise_scale: ArrayLike | None = None,
    ) -> ScoreReport:
        """How well calibrated the model is: on its own samples, each left out in turn, or on new ones.

        Parameters
        ----------
        X : array-like of shape (m, d) or RandomInput, default=None
        y : array-like of shape (m,) or (m, n_y), default=None
        noise_scale : array-like of shape (m,), default=None
            Factors of the noise of the new observations.

        Returns
        -------
        ScoreReport
            Probability integral transforms, log score, CRPS and coverage; ``print`` or ``plot()`` it.

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> round(model.score_report().summary()["log_score"], 4)
        -1.6108
        """
        check_is_fitted(self)
        from .evaluation.diagnostics import score_report

        return score_report(self, X, y, noise_scale)

    def feature_weights(self) -> ChaosForm:
        """Chaos form of the weights W in f(x) = W'phi(x) (Lemma 1), for ``kernel=FeatureMap(...)``.

        A trend is not part of W, but what phi and the trend have in common is in the trend.

        Returns
        -------
        ChaosForm
            Coefficients of shape (n_phi, 1 + n (L - 1)).

        Examples
        --------
        >>> from wienerkernel import FeatureMap
        >>> line = FeatureMap(lambda x: np.hstack([np.ones_like(x), x]))
        >>> model = WienerKernelRegressor(line, trend=None, tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> model.feature_weights().mean().round(4).tolist()
        [0.2, 0.4]
        """
        return self._fitted.feature_weights()  # type: ignore[no-any-return]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file for :func:`wienerkernel.load`: numbers and names, no code.

        Parameters
        ----------
        path : path-like
            Conventionally ending in ``.wk``. An existing file is replaced.

        Examples
        --------
        >>> import tempfile
        >>> import wienerkernel
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.wk")
        ...     wienerkernel.load(f"{folder}/model.wk").predict([[0.5]]).tolist() == model.predict([[0.5]]).tolist()
        True
        """
        from .io.store import save

        save(self, path)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination of the mean of a new observation.

        Parameters
        ----------
        X : array-like of shape (m, d)
        y : array-like of shape (m,) or (m, n_y)
        sample_weight : array-like of shape (m,), default=None

        Returns
        -------
        float

        Examples
        --------
        >>> model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
        >>> round(model.score([[0.0], [1.0]], [0.0, 1.0]), 4)
        0.485
        """
        query = self._query(X)
        mean = each(self._fitted, lambda p: _observation_mean(p, query))
        return float(r2_score(y, mean, sample_weight=sample_weight))


def _predict(posterior: Posterior, query: Array, std: bool, cov: bool, uncertainty: bool) -> Any:
    """Estimate of f, and the other results requested."""
    if uncertainty:
        return posterior.mean_and_uncertainty(query)
    if std:
        mean, variance = posterior.mean_and_epistemic(query)
        return mean, variance**0.5
    return posterior.mean_and_covariance(query) if cov else posterior.mean(query)


def _predict_transformed(posterior: Posterior, query: Array, std: bool, cov: bool, uncertainty: bool) -> Any:
    """Mean of a new observation on the scale of y, and the other results requested."""
    if cov:
        raise ValueError("return_cov is not available with a transform: draw functions with sample_y instead")
    mean = posterior.distribution(query, "observation").mean()
    if std:
        return mean, posterior.distribution(query, "function").std()
    return (mean, posterior.uncertainty(query)) if uncertainty else mean


def _observation_mean(posterior: Posterior, query: Array) -> Array:
    """Mean of a new observation on the scale of y."""
    if posterior.transform is not None:
        return posterior.distribution(query, "observation").mean()
    mean = posterior.mean(query)
    scale, probabilities = observation_scale(posterior.level, query)
    level = (probabilities @ scale).reshape(-1, *[1] * (mean.ndim - 1))
    return mean + arrays.like(posterior.output_scale * posterior.noise.mean() * level, mean)
