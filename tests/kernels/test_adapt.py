"""Kernels of scikit-learn and plain functions: the same values, gradients, hyperparameters and bounds."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from helpers import sample
from sklearn.gaussian_process import kernels as theirs

from wienerkernel.kernels import (
    RBF,
    Constant,
    FunctionKernel,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    ScikitLearnKernel,
    as_kernel,
)
from wienerkernel.kernels.tiles import TILE

SCALES = (0.7, 1.3, 2.1, 0.9)

TRANSLATED = [
    theirs.RBF(1.4, (1e-2, 1e2)),
    theirs.RBF(SCALES),
    theirs.RBF(SCALES, [(0.1, 10.0), (0.2, 20.0), (0.3, 30.0), (0.4, 40.0)]),
    theirs.RBF([1.4]),
    theirs.Matern(1.4, nu=0.5),
    theirs.Matern(SCALES, nu=0.5),
    theirs.Matern(1.4, nu=1.5),
    theirs.Matern(SCALES, nu=1.5),
    theirs.Matern(SCALES, nu=2.5),
    theirs.Matern(SCALES, nu=np.inf),
    theirs.ConstantKernel(3.0, (0.5, 5.0)) * theirs.RBF(1.4, "fixed"),
    theirs.ConstantKernel(3.0, "fixed") * theirs.Matern(SCALES, nu=2.5) + theirs.RBF(0.5),
    2.0 * theirs.RBF(1.4) ** 2 + 1.0,
    (theirs.RBF(1.4) + theirs.Matern(2.0)) * theirs.RBF(SCALES),
]

WRAPPED = [
    theirs.ExpSineSquared(1.4, 2.5),
    theirs.Matern(1.4, nu=0.8),
    theirs.RBF(1.4) ** 1.5,
    theirs.PairwiseKernel(gamma=0.3, metric="rbf", gamma_bounds="fixed"),
    theirs.ExpSineSquared(1.4, 2.5, periodicity_bounds="fixed"),
]


def theirs_pulled_back(kernel, X, W):
    return np.einsum("ij,ijk->k", W, kernel(X, eval_gradient=True)[1])


@pytest.mark.parametrize("kernel", TRANSLATED, ids=repr)
def test_translation_has_the_same_values_gradients_and_bounds(kernel):
    ours = as_kernel(kernel)
    assert "ScikitLearn" not in repr(ours)
    X, Z, W = sample(30, 4), sample(20, 4, seed=1), sample(30, 30, seed=2)
    np.testing.assert_allclose(ours(X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(ours(X, Z), kernel(X, Z), rtol=1e-12)
    np.testing.assert_allclose(ours.diag(X), kernel.diag(X), rtol=1e-12)
    np.testing.assert_allclose(ours.theta, kernel.theta, rtol=1e-14)
    np.testing.assert_allclose(ours.bounds, kernel.bounds, rtol=1e-14)
    scale = np.abs(W * kernel(X)).sum()
    np.testing.assert_allclose(
        ours.pullback(X, W), theirs_pulled_back(kernel, X, W), rtol=1e-12, atol=1e-13 * scale
    )


def test_rational_quadratic_differs_in_the_order_of_theta_only():
    kernel = theirs.RationalQuadratic(1.4, 0.6, (0.1, 10.0), (0.2, 20.0))
    ours = as_kernel(kernel)
    assert ours == RationalQuadratic(1.4, 0.6, (0.1, 10.0), (0.2, 20.0))
    X, W = sample(30, 4), sample(30, 30, seed=1)
    np.testing.assert_allclose(ours(X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(ours.pullback(X, W)[::-1], theirs_pulled_back(kernel, X, W), rtol=1e-11)
    np.testing.assert_allclose(ours.bounds[::-1], kernel.bounds)


def test_dot_product_keeps_its_bounds_as_squares():
    kernel = theirs.DotProduct(1.5, (0.1, 10.0))
    ours = as_kernel(kernel)
    assert ours == Linear(1.0, "fixed") + Constant(2.25, (0.1**2, 100.0))
    X, W = sample(30, 4), sample(30, 30, seed=1)
    np.testing.assert_allclose(ours(X), kernel(X), rtol=1e-12, atol=1e-13)
    # theta is log sigma_0 there and log sigma_0^2 here
    np.testing.assert_allclose(2 * ours.pullback(X, W), theirs_pulled_back(kernel, X, W), rtol=1e-12)
    assert as_kernel(theirs.DotProduct(1.5, "fixed")).names == ()
    assert as_kernel(theirs.DotProduct(0.0, "fixed")) == Linear(1.0, "fixed")
    assert as_kernel(theirs.DotProduct(1.0) ** 2) == as_kernel(theirs.DotProduct(1.0)) ** 2


def test_periodic_is_exp_sine_squared_in_one_dimension():
    kernel = theirs.ExpSineSquared(1.4, 2.5)
    X, W = 3 * sample(30, 1), sample(30, 30, seed=1)
    ours = Periodic(1.4, 2.5)
    np.testing.assert_allclose(ours(X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(ours.pullback(X, W), theirs_pulled_back(kernel, X, W), rtol=1e-11)


@pytest.mark.parametrize("kernel", WRAPPED, ids=repr)
def test_what_has_no_counterpart_is_wrapped(kernel):
    ours = as_kernel(kernel)
    assert isinstance(ours, ScikitLearnKernel)
    n = 2 * TILE
    X, Z, W = sample(n, 4), sample(20, 4, seed=1), sample(n, n, seed=2)
    np.testing.assert_allclose(ours(X), kernel(X), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours(X, Z), kernel(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours.theta, kernel.theta)
    np.testing.assert_allclose(ours.bounds, np.reshape(kernel.bounds, (-1, 2)))
    assert len(ours.names) == len(kernel.theta)
    if ours.names:
        np.testing.assert_allclose(ours.pullback(X, W), theirs_pulled_back(kernel, X, W), rtol=1e-9)
        W = W + W.T
        np.testing.assert_allclose(ours.pullback(X, W, symmetric=True), ours.pullback(X, W), rtol=1e-8)
        np.testing.assert_allclose(ours.with_theta(ours.theta + 0.1).theta, kernel.theta + 0.1)
    assert ours(X.astype(np.float32)).dtype == np.float32


def test_wrapped_kernels_are_values_and_leave_the_original_alone():
    original = theirs.ExpSineSquared(1.4, 2.5)
    ours = as_kernel(original)
    ours.with_theta(ours.theta + 1.0)
    assert original == theirs.ExpSineSquared(1.4, 2.5)
    original.length_scale = 7.0
    assert ours.kernel.length_scale == 1.4
    for twin in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert twin == ours
        assert hash(twin) == hash(ours)
    assert ours != as_kernel(original)
    assert ours != RBF()
    assert repr(ours) == "ScikitLearnKernel(ExpSineSquared(length_scale=1.4, periodicity=2.5))"


def test_compositions_translate_what_they_can():
    kernel = 2.0 * theirs.ExpSineSquared(1.4, 2.5) + theirs.RBF(3.0)
    ours = as_kernel(kernel)
    assert ours.names == ("k1.k1.value", "k1.k2.length_scale", "k1.k2.periodicity", "k2.length_scale")
    assert ours.k2 == RBF(3.0)
    X, W = sample(30, 4), sample(30, 30, seed=1)
    np.testing.assert_allclose(ours(X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(ours.pullback(X, W), theirs_pulled_back(kernel, X, W), rtol=1e-10)


def test_subclasses_may_do_anything_and_are_wrapped():
    class Twice(theirs.RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return 2 * super().__call__(X, Y)

    X = sample(5, 4)
    np.testing.assert_allclose(as_kernel(Twice())(X, X), 2 * RBF()(X), rtol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        theirs.WhiteKernel(),
        theirs.RBF() + theirs.WhiteKernel(),
        (2.0 * (theirs.RBF() + theirs.WhiteKernel())) ** 2 + theirs.ExpSineSquared(),
    ],
    ids=repr,
)
def test_white_noise_is_not_part_of_the_kernel(kernel):
    with pytest.raises(ValueError, match="noise="):
        as_kernel(kernel)


def test_kernels_and_none_pass():
    kernel = Matern(2.0)
    assert as_kernel(kernel) is kernel
    assert as_kernel(None) == RBF(1.0)
    assert as_kernel("rbf") == RBF(1.0)
    assert as_kernel("rbf", 2) == 1.0 * RBF([1.0, 1.0])


@pytest.mark.parametrize("thing", [3.0, b"rbf", [RBF()], RBF, theirs.RBF])
def test_other_things_are_refused(thing):
    with pytest.raises(TypeError, match="kernel must be"):
        as_kernel(thing)
    with pytest.raises(ValueError, match="CompoundKernel"):
        as_kernel(theirs.CompoundKernel([theirs.RBF()]))


def test_functions_are_kernels_without_hyperparameters():
    ours = as_kernel(lambda X, Z: np.exp(-np.abs(X - Z.T)))
    assert isinstance(ours, FunctionKernel)
    X = sample(300, 1)
    np.testing.assert_allclose(ours(X), Matern(nu=0.5)(X), rtol=1e-13)
    np.testing.assert_allclose(ours.diag(X), np.ones(300))
    assert ours.theta.shape == (0,)
    assert ours.with_theta([]) == ours
    assert ours.pullback(X, np.ones((300, 300))).shape == (0,)
    np.testing.assert_allclose(
        (2.0 * ours * RBF()).pullback(X, np.ones((300, 300))),
        (2.0 * Matern(nu=0.5, length_scale_bounds="fixed") * RBF()).pullback(X, np.ones((300, 300))),
    )
    with pytest.raises(ValueError, match=r"must return shape \(2, 3\); got \(2, 1\)"):
        as_kernel(lambda X, Z: X)(np.ones((2, 1)), np.ones((3, 1)))


def test_a_function_may_return_an_array_that_it_keeps():
    kept = np.ones((3, 3))
    ours = 2.0 * as_kernel(lambda X, Z: kept)
    ours(np.ones((3, 1)), np.ones((3, 1)))
    assert np.all(kept == 1)


def test_importing_kernels_does_not_import_scikit_learn():
    program = "import sys, wienerkernel.kernels as k; k.as_kernel(None); print('sklearn' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )
