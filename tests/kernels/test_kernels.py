"""Properties of every kernel: one suite for all classes and a few compositions."""

import copy
import pickle

import numpy as np
import pytest
from helpers import sample
from kernels.members import ARD, every_kernel, waves
from sklearn.gaussian_process import kernels as sk

from wienerkernel.io.store.model import RECORDS
from wienerkernel.io.store.nodes import Reader, Writer
from wienerkernel.kernels import (
    RBF,
    Constant,
    Exponential,
    FeatureMap,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Power,
    Product,
    RationalQuadratic,
    Sum,
    as_kernel,
    gram,
)
from wienerkernel.kernels.base import MAX_DEPTH
from wienerkernel.kernels.parse import parse_kernel
from wienerkernel.kernels.tiles import TILE

NAMESPACE = {
    k.__name__: k for k in (RBF, Constant, Linear, Matern, Periodic, Power, Product, RationalQuadratic, Sum)
}


def objective(kernel, X, W):
    return float(np.sum(W * kernel(X, X)))


def finite_differences(kernel, X, W, step=1e-3):
    """Central differences of fourth order."""
    theta = kernel.theta
    at = lambda k, h: objective(kernel.with_theta(theta + h * np.eye(len(theta))[k]), X, W)
    return np.array(
        [
            (8 * (at(k, step) - at(k, -step)) - (at(k, 2 * step) - at(k, -2 * step))) / (12 * step)
            for k in range(len(theta))
        ]
    )


@every_kernel
def test_matrix_is_exactly_symmetric_and_its_diagonal_is_diag(kernel, d):
    X = sample(30, d)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    assert np.array_equal(np.diag(K), kernel.diag(X))
    np.testing.assert_allclose(K, kernel(X, X), rtol=1e-12, atol=1e-13)


@every_kernel
def test_matrix_is_positive_semi_definite(kernel, d):
    K = kernel(sample(40, d))
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -1e-13 * len(K) * eigenvalues[-1]


@every_kernel
def test_cross_matrix_is_a_block_of_the_joint_matrix(kernel, d):
    X, Z = sample(13, d), 1.0 + sample(7, d, seed=1)
    K = kernel(X, Z)
    assert K.shape == (13, 7)
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, kernel(np.vstack([X, Z]))[:13, 13:], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(K, kernel(Z, X).T, rtol=1e-12, atol=1e-13)


@every_kernel
def test_theta_round_trip(kernel, d):
    p = len(kernel.names)
    assert kernel.theta.shape == (p,)
    assert kernel.bounds.shape == (p, 2)
    assert len(set(kernel.names)) == p
    assert np.all(kernel.bounds[:, 0] < kernel.bounds[:, 1])
    moved = kernel.with_theta(kernel.theta + 0.1)
    assert type(moved) is type(kernel)
    assert moved.names == kernel.names
    np.testing.assert_allclose(moved.theta, kernel.theta + 0.1, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(moved.bounds, kernel.bounds)
    X = sample(4, d)
    np.testing.assert_allclose(kernel.with_theta(kernel.theta)(X), kernel(X), rtol=1e-12, atol=1e-13)
    with pytest.raises(ValueError, match="theta must have shape"):
        kernel.with_theta(np.zeros(p + 1))


@every_kernel
def test_pullback_equals_finite_differences(kernel, d):
    X, W = sample(17, d), sample(17, 17, seed=1)
    gradient = kernel.pullback(X, W)
    assert gradient.shape == kernel.theta.shape
    expected = finite_differences(kernel, X, W)
    scale = np.sum(np.abs(W) * np.abs(kernel(X)))
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-9 * scale)


@every_kernel(dimensions=(2, 5))
def test_symmetric_pullback_reads_the_lower_triangle_only(kernel, d):
    n = TILE + 5
    X, W = sample(n, d), sample(n, n, seed=1)
    W = W + W.T
    broken = np.tril(W) + np.triu(np.full((n, n), np.nan), 1)
    before = broken.copy()
    gradient = kernel.pullback(X, W)
    np.testing.assert_allclose(
        kernel.pullback(X, broken, symmetric=True),
        gradient,
        rtol=1e-9,
        atol=1e-10 * np.abs(W * kernel(X)).sum(),
    )
    np.testing.assert_array_equal(broken, before)


@every_kernel(dimensions=(2, 5))
def test_gram_fills_the_lower_triangle(kernel, d):
    n = TILE + 5
    X = sample(n, d)
    K, expected = gram(kernel, X), kernel(X, X)
    np.testing.assert_allclose(np.tril(K), np.tril(expected), rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(np.diag(K), kernel.diag(X))
    assert K.flags.c_contiguous


@every_kernel
def test_single_precision_stays_single(kernel, d):
    X, Z = sample(9, d), sample(6, d, seed=1)
    x, z = X.astype(np.float32), Z.astype(np.float32)
    for small, large in (
        (kernel(x), kernel(X)),
        (kernel(x, z), kernel(X, Z)),
        (kernel.diag(x), kernel.diag(X)),
    ):
        assert small.dtype == np.float32
        np.testing.assert_allclose(small, large, rtol=1e-4, atol=1e-4 * np.abs(large).max())
    assert gram(kernel, x).dtype == np.float32
    assert kernel(x, Z).dtype == np.float64
    W = sample(9, 9, seed=2)
    assert kernel.pullback(x, W).dtype == np.float64
    np.testing.assert_allclose(
        kernel.pullback(x, W.astype(np.float32)),
        kernel.pullback(X, W),
        rtol=1e-3,
        atol=1e-4 * kernel.diag(X).sum(),
    )


@every_kernel
def test_kernels_are_values(kernel, d):
    for twin in (copy.deepcopy(kernel), copy.copy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert twin == kernel
        assert hash(twin) == hash(kernel)
        assert repr(twin) == repr(kernel)
    assert kernel != kernel + 1.0
    if "FeatureMap" not in repr(kernel):
        assert eval(repr(kernel), NAMESPACE) == kernel
    if kernel.names:
        assert kernel != kernel.with_theta(kernel.theta + 0.1)


@every_kernel
def test_inputs_are_not_modified(kernel, d):
    X, W = sample(8, d), sample(8, 8)
    X.flags.writeable = W.flags.writeable = False
    kernel(X)
    kernel(X, X)
    kernel.diag(X)
    kernel.pullback(X, W)
    kernel.pullback(X, W, symmetric=True)


@every_kernel
def test_one_row_duplicates_lists_and_no_rows(kernel, d):
    X = sample(1, d)
    np.testing.assert_allclose(kernel(X), kernel.diag(X)[:, None])
    np.testing.assert_allclose(kernel(X.tolist()), kernel(X))
    twice = np.vstack([X, X, X])
    np.testing.assert_allclose(kernel(twice, X), np.full((3, 1), kernel(X)[0, 0]), rtol=1e-12)
    W = sample(3, 3)
    gradient = kernel.pullback(twice, W)
    assert np.all(np.isfinite(gradient))
    np.testing.assert_allclose(
        gradient, finite_differences(kernel, twice, W), rtol=1e-6, atol=1e-7 * kernel(X)[0, 0]
    )
    none = np.empty((0, d))
    assert kernel(none).shape == (0, 0)
    assert kernel(none, X).shape == (0, 1)
    assert kernel.diag(none).shape == (0,)
    assert np.array_equal(kernel.pullback(none, np.empty((0, 0))), np.zeros(len(kernel.names)))


@every_kernel
def test_memory_order_and_integers_do_not_matter(kernel, d):
    X = np.round(3 * sample(12, d))
    for other in (np.asfortranarray(X), X.astype(int), np.repeat(X, 2, axis=0)[::2]):
        np.testing.assert_allclose(kernel(other), kernel(X), rtol=1e-13, atol=1e-14)
    W = sample(12, 12)
    np.testing.assert_allclose(
        kernel.pullback(X, np.asfortranarray(W)), kernel.pullback(X, W), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    "kernel",
    [RBF(ARD), Exponential(ARD), Matern(ARD, nu=2.5), RationalQuadratic(ARD), Periodic(ARD), Linear(ARD)],
)
def test_permutation_of_columns_permutes_the_length_scales(kernel):
    X, W, order = sample(20, 5), sample(20, 20, seed=1), [3, 0, 4, 1, 2]
    permuted = type(kernel)(**{**vars(kernel), "length_scale": tuple(np.array(ARD)[order])})
    np.testing.assert_allclose(permuted(X[:, order]), kernel(X), rtol=1e-12)
    gradient, expected = permuted.pullback(X[:, order], W), kernel.pullback(X, W)
    np.testing.assert_allclose(gradient[:5], expected[:5][order], rtol=1e-9)
    np.testing.assert_allclose(gradient[5:], expected[5:], rtol=1e-9)


def test_common_length_scale_is_the_sum_over_inputs():
    X, W = sample(20, 5), sample(20, 20, seed=1)
    for kernel in (RBF, Exponential, Matern, RationalQuadratic, Periodic, Linear):
        common, each = kernel(1.3), kernel((1.3,) * 5)
        np.testing.assert_allclose(common(X), each(X), rtol=1e-13)
        np.testing.assert_allclose(common.pullback(X, W)[0], each.pullback(X, W)[:5].sum(), rtol=1e-9)


def test_names_of_compositions_say_where_the_hyperparameter_is():
    kernel = 2.0 * RBF([1.0, 2.0]) + Linear(length_scale_bounds="fixed") + (Periodic() + 1.0) ** 2
    assert kernel.names == (
        "k1.k1.k1.value",
        "k1.k1.k2.length_scale[0]",
        "k1.k1.k2.length_scale[1]",
        "k2.kernel.k1.length_scale",
        "k2.kernel.k1.period",
        "k2.kernel.k2.value",
    )


@pytest.mark.parametrize("join", [Sum, Product, lambda k, _: Power(k, 1)], ids=["sum", "product", "power"])
def test_kernels_nested_too_deeply_are_refused_when_they_are_composed(join):
    kernel = RBF()
    for _ in range(MAX_DEPTH - 1):
        kernel = join(kernel, RBF())
    X = np.linspace(0, 1, 3)[:, None]
    for use in (
        lambda: kernel(X),
        lambda: kernel.diag(X),
        lambda: kernel.pullback(X, np.eye(3)),
        lambda: kernel.input_pullback(X, X, np.eye(3)),
        lambda: kernel.diag_gradient(X),
        lambda: kernel.with_theta(kernel.theta) == kernel,
        lambda: (kernel.names, kernel.bounds, repr(kernel), hash(kernel)),
        lambda: pickle.loads(pickle.dumps(kernel)),
        lambda: copy.deepcopy(kernel),
        lambda: Reader(RECORDS, None).value(Writer(RECORDS).node(kernel, "kernel"), "kernel"),
    ):
        use()
    with pytest.raises(ValueError, match=f"more than {MAX_DEPTH} deep"):
        join(kernel, RBF())
    assert join(RBF(), RBF())._depth == 2


def test_twenty_thousand_terms_are_refused_in_one_line():
    with pytest.raises(ValueError, match="nested more than"):
        sum([RBF()] * 20_000)
    with pytest.raises(ValueError, match="nested too deeply") as refusal:
        parse_kernel(" * ".join(["rbf"] * 20_000))
    assert len(str(refusal.value)) < 250
    theirs = sk.RBF()
    for _ in range(20_000):
        theirs = sk.Sum(theirs, sk.RBF())
    with pytest.raises(ValueError, match="nested more than"):
        as_kernel(theirs)


def test_many_terms_are_fine_where_they_are_added_in_pairs():
    kernels = [RBF(1.0 + k) for k in range(256)]
    while len(kernels) > 1:
        kernels = [a + b for a, b in zip(kernels[::2], kernels[1::2], strict=True)]
    assert kernels[0].diag([[0.0]]).tolist() == [256.0]
    assert len(pickle.loads(pickle.dumps(kernels[0])).names) == 256


def test_the_sum_of_a_list_of_kernels_starts_with_its_first():
    assert sum([RBF(), Linear(), Constant(2.0)]) == RBF() + Linear() + 2.0


def test_numbers_in_compositions_are_constants():
    assert 3 * RBF() == RBF().__rmul__(3) == Product(Constant(3.0), RBF())
    assert RBF() * np.float64(3.0) == Product(RBF(), Constant(3.0))
    assert np.float64(3.0) * RBF() == 3 * RBF()
    assert 3 + RBF() == Sum(Constant(3.0), RBF())
    assert RBF() + 3 == Sum(RBF(), Constant(3.0))
    assert RBF() ** np.int64(2) == Power(RBF(), 2)
    for operation in (
        lambda: RBF() + "x",
        lambda: [1.0] * RBF(),
        lambda: RBF() * np.ones(2),
        lambda: np.zeros(2) + RBF(),
    ):
        with pytest.raises(TypeError):
            operation()
    for operation in (lambda: 0.0 * RBF(), lambda: -1 * RBF(), lambda: RBF() + np.inf):
        with pytest.raises(ValueError, match="value must be a positive finite number"):
            operation()


def test_exponent_is_a_positive_integer():
    for exponent in (0, -1, 0.5, 2.5, "2", True):
        with pytest.raises(ValueError, match=rf"exponent must be a positive integer .* got {exponent!r}"):
            RBF() ** exponent


@pytest.mark.parametrize("kernel", [RBF, Matern, RationalQuadratic, Periodic, Linear, Exponential])
def test_length_scales_are_positive_and_finite(kernel):
    for value in (0.0, -1.0, np.nan, np.inf, [1.0, -2.0], [], [[1.0]]):
        with pytest.raises(ValueError, match="length_scale must be a positive finite number"):
            kernel(value)


def test_other_parameters_are_checked_by_name():
    with pytest.raises(ValueError, match="alpha must be"):
        RationalQuadratic(1.0, [1.0, 2.0])
    with pytest.raises(ValueError, match="period must be"):
        Periodic(1.0, 0.0)
    with pytest.raises(ValueError, match="scale must be"):
        FeatureMap(waves, -1.0)
    with pytest.raises(ValueError, match=r"nu must be 0\.5, 1\.5 or 2\.5"):
        Matern(nu=1.0)
    with pytest.raises(TypeError, match="length_scale must be"):
        RBF("long")
    with pytest.raises(TypeError, match="phi must be callable"):
        FeatureMap(3.0)
    with pytest.raises(TypeError, match="k2 must be a Kernel"):
        Sum(RBF(), 1.0)
    with pytest.raises(ValueError, match="length_scale must be"):
        RBF().with_theta([1000.0])
    for bounds in ("free", (1.0,), (2.0, 1.0), (0.0, 1.0), [(1.0, 2.0)] * 3):
        with pytest.raises(ValueError, match="length_scale_bounds must be"):
            RBF((1.0, 2.0), bounds)


def test_shapes_are_checked_with_both_numbers():
    with pytest.raises(ValueError, match="length_scale has 3 entries, but X has 2 columns"):
        RBF([1.0, 2.0, 3.0])(np.ones((4, 2)))
    with pytest.raises(ValueError, match="period has 3 entries, but X has 2 columns"):
        Periodic(1.0, [1.0, 2.0, 3.0])(np.ones((4, 2)))
    with pytest.raises(ValueError, match="same number of columns; got 2 and 3"):
        RBF()(np.ones((4, 2)), np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"X must have shape \(n, d\); got \(4,\)"):
        RBF()(np.ones(4))
    with pytest.raises(ValueError, match=r"W must have shape \(4, 4\)"):
        RBF().pullback(np.ones((4, 1)), np.ones((4, 3)))
    with pytest.raises(TypeError, match="real numbers"):
        RBF()(np.ones((4, 1), dtype=complex))
    with pytest.raises(ValueError, match=r"phi must return an array of shape \(4, n_phi\)"):
        FeatureMap(lambda X: X[:, 0])(np.ones((4, 1)))


def test_fixed_hyperparameters_are_not_in_theta():
    kernel = RationalQuadratic(1.0, 2.0, length_scale_bounds="fixed", alpha_bounds="fixed")
    assert kernel.theta.shape == (0,)
    assert kernel.bounds.shape == (0, 2)
    assert kernel.names == ()
    assert kernel.pullback(np.ones((3, 1)), np.ones((3, 3))).shape == (0,)
    assert kernel.with_theta([]) == kernel


def test_pullback_does_not_evaluate_what_has_no_hyperparameters():
    def refuse(X, Z):
        raise AssertionError

    other = as_kernel(refuse)
    X, W = sample(5, 1), sample(5, 5)
    np.testing.assert_array_equal((RBF() + other).pullback(X, W), RBF().pullback(X, W))
    assert other.pullback(X, W).shape == (0,)
    assert isinstance(other, Kernel)


def test_features_come_without_the_scale():
    X = sample(5, 2)
    kernel = FeatureMap(waves, 3.0)
    np.testing.assert_array_equal(kernel.features(X), waves(X))
    np.testing.assert_allclose(kernel(X), 9.0 * waves(X) @ waves(X).T)


def test_polynomial_is_a_power_of_linear_and_constant():
    X, Z = sample(5, 2), sample(4, 2, seed=1)
    np.testing.assert_allclose(Polynomial(2, 0.5, 2.0)(X, Z), (X @ Z.T / 4 + 0.5) ** 2, rtol=1e-13)


@pytest.mark.parametrize("kernel", [RBF((1.0, 2.0)), Linear((1.0, 2.0)), Periodic(1.0, (1.0, 2.0))], ids=str)
def test_a_kernel_for_another_number_of_inputs_says_so(kernel):
    for X in (np.ones((1, 3)), np.ones((2, 3))):
        for ask in (lambda X=X: kernel(X), lambda X=X: kernel(X, X), lambda X=X: gram(kernel, X)):
            with pytest.raises(ValueError, match="has 2 entries, but X has 3 columns"):
                ask()
