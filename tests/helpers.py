"""Data and comparisons that several tests share."""

import numpy as np
import pytest

from wienerkernel import RBF, Matern, WienerKernelRegressor
from wienerkernel.backend import arrays
from wienerkernel.smoother import Smoother
from wienerkernel.smoother.samples import Samples

STRUCTURES = ["distinct", "replicated", "scaled", "correlated", "other ridge", "other ridges"]
every_structure = pytest.mark.parametrize("structure", STRUCTURES)
every_trend = pytest.mark.parametrize("trend", [None, "constant", "linear"])


def sample(n, d, seed=0):
    """Standard normal inputs, of shape (n, d)."""
    return np.random.default_rng(seed).normal(size=(n, d))


def untuned(X, y, kernel=None, *, noise_scale=None, input_noise=None, **options):
    """A model whose parameters are those given, or the defaults."""
    return WienerKernelRegressor(kernel, tuning=None, **options).fit(X, y, noise_scale, input_noise)


def central_differences(function, X, step=1e-5):
    """Gradient of a function of the rows of X, row by row: (n, d) or (n, ..., d)."""
    moves = step * np.eye(X.shape[1])
    return np.stack([(function(X + h) - function(X - h)) / (2 * step) for h in moves], axis=-1)


def assert_same_array(theirs, ours, xp, rtol=1e-12):
    """An array of the library xp has the shape, dtype and values of a NumPy array."""
    assert type(theirs) is type(xp.asarray([1.0]))
    assert tuple(theirs.shape) == ours.shape
    theirs = arrays.as_numpy(theirs)
    assert theirs.dtype == ours.dtype
    np.testing.assert_allclose(theirs, ours, rtol=rtol, atol=rtol * np.abs(ours).max(initial=0))


def structured_data(structure, n_outputs=1, d=2, seed=0):
    """X, Y, regularizer and noise scale of one of `STRUCTURES`, and nine queries.

    Ridges are 0.3 times the variance of the noise, except in the structures called "other".
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, d))
    if structure != "distinct":
        X = X[rng.integers(0, 7, size=25)]
    n = len(X)
    scale = np.ones(n)
    if structure == "scaled":
        scale = rng.uniform(0.5, 2.0, size=n)
    if structure == "correlated":
        scale = np.eye(n) + 0.2 * np.tril(rng.normal(size=(n, n)))
    regularizer = 0.3 * (scale**2 if scale.ndim == 1 else scale @ scale.T)
    if structure == "other ridge":
        regularizer = np.full(n, 0.8)
    if structure == "other ridges":
        regularizer, scale = rng.uniform(0.5, 2.0, size=n), rng.uniform(0.5, 2.0, size=n)
    return X, rng.normal(size=(n, n_outputs)), regularizer, scale, rng.normal(size=(9, d))


def two_kernels(d=2, unit=1.0):
    """A sum of kernels with a length scale per input and a common one, for inputs of size ``unit``."""
    return 1.7 * RBF(unit * np.linspace(0.9, 1.4, d)) + 0.2 * Matern(1.1 * unit, nu=2.5)


def problem(structure="distinct", trend=None, n_outputs=1, kernel=None, d=2, unit=1.0, shift=0.0):
    """A smoother of `structured_data`, with inputs unit * X + shift, and nine queries."""
    X, Y, regularizer, scale, queries = structured_data(structure, n_outputs, d)
    samples = Samples.collapse(unit * X + shift, regularizer, scale)
    return Smoother(kernel or two_kernels(d, unit), samples, Y, trend), unit * queries + shift
