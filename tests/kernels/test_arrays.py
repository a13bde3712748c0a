"""Kernels of arrays of other libraries: the numbers of NumPy, in arrays of the library, device and dtype of X."""

import importlib

import numpy as np
import pytest
from helpers import assert_same_array as same
from helpers import sample
from kernels.members import ARD, every_kernel, members
from sklearn.gaussian_process.kernels import ExpSineSquared

from wienerkernel.backend import arrays
from wienerkernel.kernels import (
    RBF,
    Exponential,
    FeatureMap,
    FunctionKernel,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    as_kernel,
    gram,
)


def families(d):
    """The families of `members`, and kernels from elsewhere."""
    functions = [
        FunctionKernel(lambda x, z: (1.0 + x @ z.T) ** 2),
        as_kernel(ExpSineSquared(1.2, 2.0)),
        FunctionKernel(lambda x, z: x @ z.T) * Periodic() + Exponential(),
    ]
    return {**members(d), "functions": functions}


every_kernel = every_kernel(families=families, dimensions=(1, 5))


@pytest.fixture(params=["torch", "array_api_strict", "jax.numpy"])
def xp(request, monkeypatch):
    module = pytest.importorskip(request.param)
    if request.param == "jax.numpy":
        config = importlib.import_module("jax").config
        config.update("jax_enable_x64", True)
        config.update("jax_default_matmul_precision", "highest")  # on GPUs, the default has three digits
    monkeypatch.setattr(arrays, "TORCH_BLOCK", 8)  # several tiles, the last one smaller
    return module


@pytest.fixture
def torch(monkeypatch):
    monkeypatch.setattr(arrays, "TORCH_BLOCK", 16)
    return pytest.importorskip("torch")


def assert_lower_triangle(K, kernel, X, xp):
    """K is the Gram matrix on and below the diagonal, which is exactly that of `Kernel.diag`."""
    assert type(K) is type(xp.asarray([1.0]))
    expected, K = np.tril(gram(kernel, X)), arrays.as_numpy(K)
    np.testing.assert_allclose(np.tril(K), expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_array_equal(np.diagonal(K), arrays.as_numpy(kernel.diag(xp.asarray(X))))


@every_kernel
def test_values_and_diagonal_equal_those_of_numpy(xp, kernel, d):
    X, Z = sample(20, d), sample(11, d, seed=1)
    X[15:] = X[:5]
    x, z = xp.asarray(X), xp.asarray(Z)
    same(kernel(x, z), kernel(X, Z), xp)
    same(kernel.diag(x), kernel.diag(X), xp)
    K = kernel(x)
    same(K, kernel(X), xp)
    np.testing.assert_array_equal(arrays.as_numpy(K), arrays.as_numpy(K).T)
    assert_lower_triangle(gram(kernel, x), kernel, X, xp)


def test_one_row_and_one_whole_tile_equal_those_of_numpy(xp):
    kernel, Z = 2.0 * RBF(ARD) + Linear(), sample(11, 5, seed=1)
    same(kernel(xp.asarray(Z[:1]), xp.asarray(Z)), kernel(Z[:1], Z), xp)
    for n in (1, 8):
        assert_lower_triangle(gram(kernel, xp.asarray(Z[:n])), kernel, Z[:n], xp)


@every_kernel
def test_pullback_equals_that_of_numpy(xp, kernel, d):
    X, W = sample(20, d), sample(20, 20, seed=2)
    for symmetric in (False, True):
        if symmetric:
            W[np.triu_indices(20, 1)] = np.nan  # not read
        expected = kernel.pullback(X, W, symmetric=symmetric)
        before = W.copy()
        gradient = kernel.pullback(xp.asarray(X), xp.asarray(W), symmetric=symmetric)
        assert isinstance(gradient, np.ndarray)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-11)
        np.testing.assert_array_equal(W, before)


@pytest.mark.parametrize(
    "kernel", [RBF(1.0), RBF([0.7] * 5), Exponential([0.7] * 5), Matern(nu=2.5)], ids=repr
)
def test_points_that_are_far_or_near_or_off_the_origin(xp, kernel):
    for scale, offset in ((1e4, 0.0), (1e-9, 0.0), (1.0, 1e7), (1e200, 0.0)):
        X = offset + scale * sample(20, 5)
        same(kernel(xp.asarray(X)), kernel(X), xp)
        W = sample(20, 20, seed=1)
        theirs = kernel.pullback(xp.asarray(X), xp.asarray(W))
        np.testing.assert_allclose(theirs, kernel.pullback(X, W), rtol=1e-10, atol=1e-12)


def test_single_precision_stays_and_everything_else_becomes_double(xp):
    X = sample(20, 5)
    kernel = 2.0 * RBF(ARD) + Matern(nu=2.5) + Periodic()
    single = xp.asarray(X.astype(np.float32))
    for values in (kernel(single), kernel(single, single), gram(kernel, single), kernel.diag(single)):
        assert values.dtype == xp.float32
    np.testing.assert_allclose(arrays.as_numpy(kernel(single)), kernel(X), atol=1e-5)
    assert kernel(single, xp.asarray(X)).dtype == xp.float64
    assert kernel(xp.asarray(np.ones((20, 5), dtype=np.int64))).dtype == xp.float64
    gradient = kernel.pullback(single, xp.asarray(np.eye(20, dtype=np.float32)))
    assert gradient.dtype == np.float64


def test_no_rows_give_empty_matrices(xp):
    kernel, none, some = RBF(ARD), xp.asarray(np.empty((0, 5))), xp.asarray(sample(3, 5))
    assert tuple(kernel(none).shape) == (0, 0)
    assert tuple(kernel(none, some).shape) == (0, 3)
    assert tuple(kernel(some, none).shape) == (3, 0)
    np.testing.assert_array_equal(kernel.pullback(none, xp.asarray(np.empty((0, 0)))), np.zeros(5))


def test_libraries_are_not_mixed(xp):
    X = sample(4, 2)
    with pytest.raises(TypeError, match=r"X and Z must be arrays of one library; got .* and numpy"):
        RBF()(xp.asarray(X), X)
    with pytest.raises(TypeError, match=r"X and W must be arrays of one library; got .* and numpy"):
        RBF().pullback(xp.asarray(X), np.eye(4))


def test_bad_arrays_are_refused_as_those_of_numpy(xp):
    with pytest.raises(TypeError, match="real numbers"):
        RBF()(xp.asarray(np.ones((4, 1), dtype=complex)))
    with pytest.raises(ValueError, match=r"X must have shape \(n, d\); got \(4,\)"):
        RBF()(xp.asarray(np.ones(4)))
    with pytest.raises(ValueError, match="same number of columns; got 2 and 3"):
        RBF()(xp.asarray(np.ones((4, 2))), xp.asarray(np.ones((4, 3))))
    with pytest.raises(ValueError, match=r"W must have shape \(4, 4\), .* got \(4, 3\)"):
        RBF().pullback(xp.asarray(np.ones((4, 1))), xp.asarray(np.ones((4, 3))))
    with pytest.raises(ValueError, match=r"kernel function must return shape \(4, 4\); got \(4, 1\)"):
        FunctionKernel(lambda x, z: x)(xp.asarray(np.ones((4, 1))))
    with pytest.raises(ValueError, match=r"phi must return an array of shape \(4, n_phi\); got \(4,\)"):
        FeatureMap(lambda x: x[:, 0])(xp.asarray(np.ones((4, 1))))


def test_functions_that_return_numpy_arrays_are_understood(xp):
    X = sample(6, 2)
    cosines = FeatureMap(lambda x: np.cos(arrays.as_numpy(x)))
    same(cosines(xp.asarray(X)), cosines(X), xp)
    products = FunctionKernel(lambda x, z: arrays.as_numpy(x) @ arrays.as_numpy(z).T)
    same(products(xp.asarray(X)), products(X), xp)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(ARD) + Linear(ARD),
        2.0 * Matern(1.3, nu=0.5),
        Matern(nu=1.5) * RationalQuadratic(alpha=0.7),
        (Periodic(ARD, 3.0) + 0.5) ** 2,
    ],
    ids=str,
)
def test_gradients_with_respect_to_the_inputs_equal_those_of_numpy(xp, kernel, monkeypatch):
    for block in (8, 1000):
        monkeypatch.setattr(arrays, "TORCH_BLOCK", block)
        X, Z, W = sample(20, 5), sample(11, 5, seed=1), sample(40, 11, seed=2).reshape(2, 20, 11)
        same(kernel.input_pullback(*map(xp.asarray, (X, Z, W))), kernel.input_pullback(X, Z, W), xp)
        same(kernel.input_pullback(*map(xp.asarray, (X, Z, W[1]))), kernel.input_pullback(X, Z, W[1]), xp)
        same(kernel.diag_gradient(xp.asarray(X)), kernel.diag_gradient(X), xp)
        with pytest.raises(TypeError, match="one library"):
            kernel.input_pullback(xp.asarray(X), xp.asarray(Z), W)


def test_torch_keeps_no_record_of_what_was_computed(torch):
    X = torch.asarray(sample(20, 5)).requires_grad_()
    kernel = RBF(ARD) + Matern(nu=2.5)
    for values in (kernel(X), kernel(X, X), gram(kernel, X), kernel.diag(X)):
        assert not values.requires_grad
    assert kernel.pullback(X, torch.eye(20, dtype=torch.float64)).shape == (6,)
