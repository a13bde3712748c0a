"""Arrays of other libraries: the same numbers as with NumPy, in arrays of the library that was given."""

import importlib
from functools import partial

import numpy as np
import pytest
from helpers import assert_same_array

from wienerkernel import (
    RBF,
    Constant,
    Exponential,
    FeatureMap,
    Linear,
    Matern,
    NotPositiveDefiniteError,
    Periodic,
    RationalQuadratic,
    WienerKernelRegressor,
)
from wienerkernel.backend import arrays
from wienerkernel.backend import linalg as la
from wienerkernel.kernels import gram

KERNELS = [
    2.0 * RBF([0.7, 1.3, 1.0, 2.0]),
    RBF(1.1) + 0.5 * Exponential(0.9),
    Matern(0.9, nu=1.5) * Matern([1.0, 2.0, 1.0, 1.5], nu=2.5),
    RationalQuadratic(1.2, alpha=0.7) + Periodic(1.0, 3.0),
    (Linear(2.0) + Constant(0.5)) ** 2,
]

some_kernels = pytest.mark.parametrize(
    "kernel", [KERNELS[0], KERNELS[-1]], ids=str
)  # tests/kernels has the others

same = partial(assert_same_array, rtol=1e-9)


@pytest.fixture(params=["torch", "array_api_strict", "jax.numpy", "cupy"])
def xp(request):
    module = pytest.importorskip(request.param)
    if request.param == "jax.numpy":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    if request.param == "cupy" and not module.cuda.is_available():
        pytest.skip("CuPy needs a GPU")
    return module


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    X[20:] = X[5:15]  # replicates
    return X, rng.normal(size=30), rng.normal(size=(9, 4))


@some_kernels
@pytest.mark.parametrize("trend", [None, "linear"])
def test_results_equal_those_of_numpy_in_the_library_of_the_input(xp, data, kernel, trend):
    X, y, Z = data
    model = WienerKernelRegressor(kernel, noise="gamma(0.25, scale=2)", trend=trend, tuning=None)
    ours = model.fit(X, y)
    expected = ours.predict(Z, return_std=True), ours.uncertainty(Z), ours.loo(), ours.log_likelihood(True)
    quantiles = ours.predict_quantiles(Z, [0.1, 0.9])
    theirs = model.fit(xp.asarray(X), xp.asarray(y))
    query = xp.asarray(Z)
    for one, other in zip(theirs.predict(query, return_std=True), expected[0], strict=True):
        same(one, other, xp)
    same(theirs.predict(query), expected[0][0], xp)
    for name in ("noise", "model", "aleatoric", "epistemic", "total"):
        same(getattr(theirs.uncertainty(query), name), getattr(expected[1], name), xp)
    for name in ("mean", "residual", "noise", "model"):
        same(getattr(theirs.loo(), name), getattr(expected[2], name), xp)
    value, gradient = theirs.log_likelihood(True)
    assert value == pytest.approx(expected[3][0], rel=1e-10)
    np.testing.assert_allclose(gradient, expected[3][1], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(theirs.predict_quantiles(query, [0.1, 0.9]), quantiles, rtol=1e-8)
    same(theirs.predict(query, return_cov=True)[1], ours.fit(X, y).predict(Z, return_cov=True)[1], xp)


def test_linear_algebra_equals_that_of_numpy(xp, monkeypatch):
    monkeypatch.setattr(arrays, "TORCH_BLOCK", 32)
    rng = np.random.default_rng(0)
    a = rng.normal(size=(100, 100))
    matrix, rows = a @ a.T + np.eye(100), rng.normal(size=(3, 100))
    inverse = np.linalg.inv(matrix)
    factor = la.cholesky(xp.asarray(matrix.copy()))
    lower = np.tril(arrays.as_numpy(factor))
    np.testing.assert_allclose(lower, np.linalg.cholesky(matrix), atol=1e-11)
    np.testing.assert_allclose(
        arrays.as_numpy(la.solve_lower(factor, xp.asarray(rows.copy()))) @ lower.T, rows, atol=1e-11
    )
    np.testing.assert_allclose(
        arrays.as_numpy(la.solve_lower_transposed(factor, xp.asarray(rows.copy()))) @ lower, rows, atol=1e-11
    )
    np.testing.assert_allclose(
        np.tril(arrays.as_numpy(la.inverse_from_cholesky(factor))), np.tril(inverse), atol=1e-11
    )
    changed = la.add_outer(xp.asarray(matrix.copy()), xp.asarray(rows), 0.5, -2.0)
    np.testing.assert_allclose(
        np.tril(arrays.as_numpy(changed)), np.tril(0.5 * rows.T @ rows - 2 * matrix), atol=1e-10
    )
    matrix[7, 7] = -1.0
    with pytest.raises(NotPositiveDefiniteError, match="raise the ridge"):
        la.cholesky(xp.asarray(matrix))


@pytest.fixture
def matrices(monkeypatch):
    """A context that collects the addresses of all torch storages that could hold an (n, n) matrix of doubles."""
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    class Matrices(TorchDispatchMode):
        def __init__(self, n):
            super().__init__()
            self.n, self.addresses = n, set()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for tensor in result if isinstance(result, tuple | list) else (result,):
                if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().nbytes() >= 8 * self.n**2:
                    self.addresses.add(tensor.untyped_storage().data_ptr())
            return result

    monkeypatch.setattr(arrays, "TORCH_BLOCK", 16)
    return Matrices


def address(tensor):
    return tensor.untyped_storage().data_ptr()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_torch_makes_one_matrix_for_the_gram_matrix_and_none_for_its_pullback(matrices, kernel):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, W = torch.asarray(rng.normal(size=(100, 4))), torch.asarray(rng.normal(size=(100, 100)))
    with matrices(100) as made:
        K = gram(kernel, X)
    assert made.addresses == {address(K)}
    with matrices(100) as made:
        K = kernel(X)
    assert made.addresses == {address(K)}
    with matrices(100) as made:
        kernel.pullback(X, W, symmetric=True)
    assert made.addresses == {address(W)}


def test_torch_fits_and_predicts_within_one_matrix_and_needs_a_second_for_the_gradient(matrices):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, y, Z = (torch.asarray(rng.normal(size=shape)) for shape in ((100, 4), (100,), (5, 4)))
    model = WienerKernelRegressor(KERNELS[0], noise="gamma(2)", trend="linear", tuning=None)
    with matrices(100) as made:
        model.fit(X, y)
        model.predict(Z, return_std=True)
        model.uncertainty(Z)
    assert made.addresses == {address(model.posterior_.smoother.factor)}
    with matrices(100) as made:
        model.log_likelihood(eval_gradient=True)
    assert len(made.addresses) == 2


@pytest.mark.parametrize("xp", ["torch", "array_api_strict"], indirect=True)
def test_results_do_not_depend_on_blocks_and_chunks(xp, monkeypatch):
    rng = np.random.default_rng(0)
    X, y, Z = (xp.asarray(rng.normal(size=shape)) for shape in ((50, 4), (50,), (7, 4)))
    model = WienerKernelRegressor(KERNELS[0], noise="gamma(2)", trend="linear", tuning=None)

    def results():
        model.fit(X, y)
        parts = model.uncertainty(Z)
        mean, std = model.predict(Z, return_std=True)
        loo, (value, gradient) = model.loo(), model.log_likelihood(eval_gradient=True)
        return [*map(arrays.as_numpy, (mean, std, parts.noise, parts.model, loo.model)), [value], gradient]

    expected = results()
    for block in (1, 16, 49):
        monkeypatch.setattr(arrays, "TORCH_BLOCK", block)
        monkeypatch.setattr(arrays, "TORCH_CHUNK", 50 * 3)
        monkeypatch.setattr("wienerkernel.smoother.smoother.CHUNK_ROWS", 1)
        for one, other in zip(results(), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("trend", [None, "constant", "linear"])
@some_kernels
def test_gradients_equal_those_of_numpy(xp, data, kernel, trend):
    X, y, Z = data
    Y = np.column_stack([y, -y])
    model = WienerKernelRegressor(kernel, noise="gamma(2)", trend=trend, tuning=None)
    expected = model.fit(X, Y).predict_gradient(Z)
    theirs = model.fit(xp.asarray(X), xp.asarray(Y)).predict_gradient(xp.asarray(Z))
    for name in ("mean", "noise", "model"):
        same(getattr(theirs, name), getattr(expected, name), xp)


def test_the_path_of_ridges_equals_that_of_numpy(xp, data):
    X, y, Z = data
    ridges = [0.1, 1.0, 5.0]
    model = WienerKernelRegressor(KERNELS[0], noise="gamma(2)", tuning=None)
    ours = model.fit(X, y).ridge_path(ridges)
    theirs = model.fit(xp.asarray(X), xp.asarray(y)).ridge_path(ridges)
    query = xp.asarray(Z)
    same(theirs.mean(query), ours.mean(Z), xp)
    for one, other in zip(
        (*theirs.variances(query), *theirs.leave_one_out()),
        (*ours.variances(Z), *ours.leave_one_out()),
        strict=True,
    ):
        same(one, other, xp)
    np.testing.assert_allclose(theirs.log_likelihood(), ours.log_likelihood(), rtol=1e-10)


@pytest.mark.parametrize("rows", [1, 12])
def test_samples_come_and_go_as_with_numpy(xp, data, rows):
    X, y, Z = data
    start = len(X) - rows
    model = WienerKernelRegressor(KERNELS[0], noise="gamma(2)", trend="linear", tuning=None)
    expected = [model.fit(X, y).predict(Z)]
    expected.append(model.forget([0, 7, 22]).predict(Z))
    model.fit(xp.asarray(X[:start]), xp.asarray(y[:start]))
    model.partial_fit(xp.asarray(X[start:]), xp.asarray(y[start:]))
    same(model.predict(xp.asarray(Z)), expected[0], xp)
    same(model.forget([0, 7, 22]).predict(xp.asarray(Z)), expected[1], xp)
    with pytest.raises(TypeError, match="that the model was fitted with"):
        model.partial_fit(X, y)


def test_what_needs_numpy_says_so(xp, data):
    X, y, _ = data
    model = WienerKernelRegressor(tuning=None).fit(xp.asarray(X), xp.asarray(y))
    with pytest.raises(TypeError, match="fast predictor works on NumPy arrays"):
        model.predictor()
    with pytest.raises(TypeError, match="that the model was fitted with"):
        WienerKernelRegressor(tuning=None).fit(X, y).partial_fit(xp.asarray(X), xp.asarray(y))


def test_several_outputs_and_a_feature_map(xp, data):
    X, y, Z = data
    Y = np.column_stack([y, -y])
    model = WienerKernelRegressor(FeatureMap(lambda x: x**2), noise="gamma(2)", trend=None, tuning=None)
    expected = model.fit(X, Y).predict(Z), model.feature_weights().coefficients
    model.fit(xp.asarray(X), xp.asarray(Y))
    same(model.predict(xp.asarray(Z)), expected[0], xp)
    np.testing.assert_allclose(model.feature_weights().coefficients, expected[1], atol=1e-9)


def test_bad_arrays_are_refused(xp, data):
    X, y, _ = data
    model = WienerKernelRegressor(tuning=None)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(xp.asarray(np.where(X > 1, np.nan, X)), xp.asarray(y))
    with pytest.raises(ValueError, match="shape"):
        model.fit(xp.asarray(y), xp.asarray(y))
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(xp.asarray(X), xp.asarray(y[:-1]))
    model.fit(xp.asarray(X), xp.asarray(y))
    with pytest.raises(ValueError, match="features"):
        model.predict(xp.asarray(X[:, :2]))
