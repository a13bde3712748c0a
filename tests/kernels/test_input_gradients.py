"""Gradients of the kernels with respect to their inputs, and their values at one point."""

from itertools import product

import mpmath
import numpy as np
import pytest
from helpers import central_differences, sample
from kernels import members

from wienerkernel.kernels import (
    RBF,
    Exponential,
    FeatureMap,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    as_kernel,
)
from wienerkernel.kernels.tiles import TILE

every_kernel = members.every_kernel(without=["FeatureMap"])
every_kernel_in_tiles = members.every_kernel(dimensions=(2, 5), without=["FeatureMap"])


@every_kernel
def test_input_pullback_equals_finite_differences(kernel, d):
    X, Z, W = sample(9, d), sample(7, d, seed=1), sample(9, 7, seed=2)
    expected = central_differences(lambda x: np.sum(W * kernel(x, Z), axis=1), X)
    scale = np.abs(kernel(X, Z)).max()
    np.testing.assert_allclose(kernel.input_pullback(X, Z, W), expected, rtol=1e-6, atol=1e-7 * scale)


@every_kernel
def test_diag_gradient_equals_finite_differences(kernel, d):
    X = sample(9, d)
    gradient = kernel.diag_gradient(X)
    assert gradient.shape == X.shape
    expected = central_differences(kernel.diag, X)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8 * np.abs(kernel.diag(X)).max())


@every_kernel
def test_diag_gradient_is_that_of_both_arguments(kernel, d):
    """The derivative of k(x, x) is twice that of k(x, z) in x at z = x."""
    X = sample(6, d)
    twice = 2 * kernel.input_pullback(X, X, np.eye(6))
    np.testing.assert_allclose(kernel.diag_gradient(X), twice, rtol=1e-12, atol=1e-12 * kernel.diag(X).max())


@every_kernel_in_tiles
def test_several_weights_equal_one_after_the_other(kernel, d):
    n, m = TILE + 3, 2 * TILE + 1
    X, Z = sample(n, d), sample(m, d, seed=1)
    W = np.random.default_rng(2).normal(size=(2, n, m))
    both = kernel.input_pullback(X, Z, W)
    assert both.shape == (2, n, d)
    for layer, weights in zip(both, W, strict=True):
        np.testing.assert_array_equal(layer, kernel.input_pullback(X, Z, weights))
    rows, first, rest = [0, TILE - 1, TILE, n - 1], np.s_[:TILE], np.s_[TILE:]
    parts = sum(kernel.input_pullback(X[rows], Z[b], W[0][rows, b]) for b in (first, rest))
    scale = np.abs(W[0][rows] * kernel(X[rows], Z)).sum()
    np.testing.assert_allclose(both[0, rows], parts, rtol=1e-9, atol=1e-12 * scale)


@every_kernel
def test_inputs_are_not_modified_and_may_be_single_precision(kernel, d):
    X, Z, W = sample(4, d), sample(3, d, seed=1), sample(4, 3, seed=2)
    for array in (X, Z, W):
        array.flags.writeable = False
    gradient = kernel.input_pullback(X, Z, W)
    kernel.diag_gradient(X)
    single = kernel.input_pullback(*(array.astype(np.float32) for array in (X, Z, W)))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, gradient, rtol=1e-4, atol=1e-5 * np.abs(gradient).max())
    assert kernel.diag_gradient(X.astype(np.float32)).dtype == np.float32


@every_kernel
def test_a_point_has_the_values_of_its_row(kernel, d):
    X = sample(20, d)
    point = kernel._point(X)
    for x in (*sample(5, d, seed=1), X[3], 40 * sample(1, d)[0]):
        before = x.copy()
        k = point(x)
        np.testing.assert_allclose(k, kernel(x[None], X)[0], rtol=1e-12, atol=1e-13 * np.abs(k).max())
        np.testing.assert_array_equal(x, before)
    first, second = point(X[0]), point(X[1])
    first[:] = np.nan  # the caller may overwrite what it received
    np.testing.assert_array_equal(second, point(X[1]))


@every_kernel
def test_a_constant_diagonal_is_known(kernel, d):
    X = sample(6, d)
    if kernel._prior is None:
        assert np.ptp(kernel.diag(X)) > 0
    else:
        np.testing.assert_allclose(kernel.diag(X), kernel._prior, rtol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize(
    "kernel",
    [RBF(0.7), Exponential(0.7), Matern(0.7), Matern(0.7, nu=2.5), RationalQuadratic(0.7), Periodic(0.7)],
)
def test_input_gradient_equals_the_derivative_in_many_digits(kernel, d):
    """mpmath differentiates the formula of the kernel along each input."""
    formula = {
        "RBF": lambda r: mpmath.exp(-(r**2) / 2),
        "RationalQuadratic": lambda r: 1 / (1 + r**2 / 2),
        0.5: lambda r: mpmath.exp(-r),
        1.5: lambda r: (1 + mpmath.sqrt(3) * r) * mpmath.exp(-mpmath.sqrt(3) * r),
        2.5: lambda r: (1 + mpmath.sqrt(5) * r + 5 * r**2 / 3) * mpmath.exp(-mpmath.sqrt(5) * r),
    }
    x, z = sample(2, d)
    gradient = kernel.input_pullback(x[None], z[None], [[1.0]])[0]

    def value(moved, k):
        point = [moved if i == k else mpmath.mpf(float(v)) for i, v in enumerate(x)]
        if isinstance(kernel, Periodic):
            turns = [
                mpmath.sin(mpmath.pi * (a - float(b))) / kernel.length_scale
                for a, b in zip(point, z, strict=True)
            ]
            return mpmath.exp(-2 * sum(t**2 for t in turns))
        r = mpmath.sqrt(
            sum(((a - float(b)) / kernel.length_scale) ** 2 for a, b in zip(point, z, strict=True))
        )
        return formula[getattr(kernel, "nu", type(kernel).__name__)](r)

    with mpmath.workdps(40):
        expected = [float(mpmath.diff(lambda t, k=k: value(t, k), mpmath.mpf(float(x[k])))) for k in range(d)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-14)


def test_matern_one_half_has_gradient_zero_where_it_has_no_derivative():
    for d in (1, 6):
        x = sample(1, d)
        assert np.array_equal(Exponential().input_pullback(x, x, [[1.0]]), np.zeros((1, d)))
        close = x + 1e-9
        gradient = Exponential().input_pullback(x, close, [[1.0]])
        np.testing.assert_allclose(gradient, 1 / np.sqrt(d), rtol=1e-6)  # unit slope, towards z


@pytest.mark.parametrize("kernel", [RBF, Exponential, Matern, RationalQuadratic])
def test_units_of_the_inputs_scale_the_gradient(kernel):
    for d, factor in product((1, 6), (1e-200, 1e-8, 1e8, 1e200)):
        X, Z, W = sample(8, d), sample(6, d, seed=1), sample(8, 6, seed=2)
        scaled = kernel(1.3 * factor).input_pullback(factor * X, factor * Z, W)
        np.testing.assert_allclose(
            scaled * factor, kernel(1.3).input_pullback(X, Z, W), rtol=1e-9, atol=1e-12
        )
        point = kernel(1.3 * factor)._point(factor * Z)
        np.testing.assert_allclose(point(factor * X[0]), kernel(1.3)(X[:1], Z)[0], rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [RBF(0.3), Exponential(0.3), Matern(0.3), Periodic(0.3), RationalQuadratic(0.3)]
)
def test_far_from_the_origin_nothing_is_lost(kernel):
    for d in (1, 6):
        X, Z, W = sample(8, d) + 1e6, sample(6, d, seed=1) + 1e6, sample(8, 6, seed=2)
        near = kernel.input_pullback(X - 1e6, Z - 1e6, W)
        np.testing.assert_allclose(kernel.input_pullback(X, Z, W), near, rtol=1e-8, atol=1e-10)
        point = kernel._point(Z)
        np.testing.assert_allclose(point(X[0]), kernel(X[:1], Z)[0], rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize(
    "kernel", [RBF(), Exponential(), Matern(nu=2.5), RationalQuadratic(), 2.0 * RBF() + Matern()]
)
def test_data_much_wider_than_the_length_scale(kernel):
    for d in (2, 6):
        X = sample(10, d)
        X[5:] += 1e7
        x = X[7] + 0.1
        np.testing.assert_allclose(kernel._point(X)(x), kernel(x[None], X)[0], rtol=1e-7, atol=1e-300)
        W = sample(1, 10, seed=2)
        gradient = kernel.input_pullback(x[None], X, W)
        cluster = kernel.input_pullback(x[None], X[5:], W[:, 5:])
        np.testing.assert_allclose(gradient, cluster, rtol=1e-7, atol=1e-13)


def test_matern_points_close_to_a_row_have_no_square_root_of_rounding():
    X = sample(30, 4) * 5
    for nu in (0.5, 1.5, 2.5):
        point = Matern(nu=nu)._point(X)
        np.testing.assert_allclose([point(x)[i] for i, x in enumerate(X)], 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [FeatureMap(lambda X: X**2), as_kernel(lambda X, Z: X @ Z.T), RBF() + 2.0 * FeatureMap(np.sin)]
)
def test_kernels_without_an_analytic_gradient_say_so(kernel):
    X = sample(3, 2)
    with pytest.raises(TypeError, match="has no analytic gradient with respect to x"):
        kernel.input_pullback(X, X, np.eye(3))
    with pytest.raises(TypeError, match="has no analytic gradient with respect to x"):
        kernel.diag_gradient(X)
    np.testing.assert_allclose(kernel._point(X)(X[1]), kernel(X)[1], rtol=1e-12)


def test_a_wrapped_scikit_learn_kernel_has_no_gradient_but_a_point():
    from sklearn.gaussian_process.kernels import ExpSineSquared

    kernel, X = as_kernel(ExpSineSquared()), sample(3, 2)
    with pytest.raises(TypeError, match="ScikitLearnKernel has no analytic gradient"):
        kernel.input_pullback(X, X, np.eye(3))
    np.testing.assert_allclose(kernel._point(X)(X[1]), kernel(X)[1], rtol=1e-12)


def test_empty_sets_and_wrong_shapes():
    X = sample(3, 2)
    assert RBF().input_pullback(X[:0], X, np.empty((0, 3))).shape == (0, 2)
    assert np.array_equal(RBF().input_pullback(X, X[:0], np.empty((3, 0))), np.zeros((3, 2)))
    assert RBF().input_pullback(X, X, np.empty((0, 3, 3))).shape == (0, 3, 2)
    assert Linear().diag_gradient(X[:0]).shape == (0, 2)
    with pytest.raises(ValueError, match=r"W must have shape \(3, 2\) or \(q, 3, 2\).*got \(2, 3\)"):
        RBF().input_pullback(X, X[:2], np.ones((2, 3)))
    with pytest.raises(ValueError, match="same number of columns; got 2 and 1"):
        RBF().input_pullback(X, X[:, :1], np.ones((3, 3)))
    with pytest.raises(ValueError, match="length_scale has 3 entries, but X has 2 columns"):
        RBF([1.0, 2.0, 3.0]).input_pullback(X, X, np.eye(3))
