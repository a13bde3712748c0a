"""Values and gradients of the kernels in double precision, against many digits and against explicit differences."""

import pickle
from itertools import product

import mpmath
import numpy as np
import pytest

from wienerkernel.kernels import RBF, Exponential, Matern, Periodic, RationalQuadratic
from wienerkernel.kernels.tiles import TILE, CrossKernel

MATERN = {
    0.5: lambda s: mpmath.exp(-s),
    1.5: lambda s: (1 + s) * mpmath.exp(-s),
    2.5: lambda s: (1 + s + s**2 / 3) * mpmath.exp(-s),
}


def exact(kernel, x, z):
    """The kernel's formula at two points, in 40 digits."""
    with mpmath.workdps(40):
        pairs = [(mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(x, z, strict=True)]
        lengths = [mpmath.mpf(length) for length in np.broadcast_to(kernel.length_scale, len(x)).tolist()]
        if isinstance(kernel, Periodic):
            turns = [mpmath.sin(mpmath.pi * (a - b) / mpmath.mpf(kernel.period)) for a, b in pairs]
            return float(
                mpmath.exp(-2 * sum((t / length) ** 2 for t, length in zip(turns, lengths, strict=True)))
            )
        r2 = sum(((a - b) / length) ** 2 for (a, b), length in zip(pairs, lengths, strict=True))
        if isinstance(kernel, RBF):
            return float(mpmath.exp(-r2 / 2))
        if isinstance(kernel, Matern):
            return float(MATERN[kernel.nu](mpmath.sqrt(2 * mpmath.mpf(kernel.nu) * r2)))
        alpha = mpmath.mpf(kernel.alpha)
        return float((1 + r2 / (2 * alpha)) ** -alpha)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.7),
        Exponential(0.7),
        Matern(0.7, nu=1.5),
        Matern(0.7, nu=2.5),
        RationalQuadratic(0.7, 0.3),
        RationalQuadratic(0.7, 1e5),
        Periodic(0.7, 1.9),
    ],
)
def test_values_equal_the_formula_in_many_digits(kernel):
    for d in (1, 3, 6):
        rng = np.random.default_rng(0)
        X, Z = rng.normal(size=(6, d)), rng.normal(size=(5, d))
        expected = [[exact(kernel, x, z) for z in Z] for x in X]
        np.testing.assert_allclose(kernel(X, Z), expected, rtol=2e-13, atol=1e-300)


@pytest.mark.parametrize(
    "kernel", [RBF(0.3), Exponential(0.3), Matern(0.3), RationalQuadratic(0.3), Periodic(0.3)]
)
def test_far_from_the_origin_nothing_is_lost(kernel):
    X = np.linspace(0, 3, 50)[:, None]
    np.testing.assert_allclose(kernel(X + 1e6), kernel(X), atol=1e-9)
    moved = (X + 1e6) - 1e6  # what the addition left of X; from here on nothing more may go
    np.testing.assert_allclose(kernel(X + 1e6), kernel(moved), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_duplicates_and_close_points_have_no_square_root_of_rounding(nu):
    for d in (1, 6):
        x = np.random.default_rng(0).normal(size=(1, d))
        z = x + 1e-9 / np.sqrt(d)
        expected = exact(Matern(nu=nu), x[0], z[0])
        K = Matern(nu=nu)(np.vstack([x, x, z]), x)
        np.testing.assert_allclose(K[:2], 1.0, rtol=1e-15)
        np.testing.assert_allclose(K[2], expected, rtol=1e-14)


@pytest.mark.parametrize("kernel", [RBF, Exponential, Matern, RationalQuadratic])
def test_units_do_not_matter(kernel):
    for d, factor in product((1, 6), (1e-200, 1e-8, 1e8, 1e200)):
        rng = np.random.default_rng(0)
        X, W = rng.normal(size=(20, d)), rng.normal(size=(20, 20))
        length = tuple(rng.uniform(1, 2, size=d))
        scaled = kernel(tuple(factor * np.array(length)))
        np.testing.assert_allclose(scaled(factor * X), kernel(length)(X), rtol=1e-12)
        np.testing.assert_allclose(
            scaled.pullback(factor * X, W), kernel(length).pullback(X, W), rtol=1e-9, atol=1e-10
        )


@pytest.mark.parametrize("kernel", [RBF, Exponential, Matern, lambda x: Matern(x, nu=2.5), RationalQuadratic])
def test_tiny_and_huge_length_scales_have_their_limits(kernel):
    for d, length in product((1, 6), (1e-180, 1e-5, 1e5, 1e180)):
        rng = np.random.default_rng(0)
        X, W = rng.normal(size=(10, d)), rng.normal(size=(10, 10))
        X[3] = X[0]
        same = np.all(X[:, None] == X, axis=2)
        limit = same if length < 1 else np.ones((10, 10))
        for k in (kernel(length), kernel((length,) * d)):
            np.testing.assert_allclose(k(X), limit, atol=1e-3)
            np.testing.assert_allclose(k(X, X), limit, atol=1e-3)
            assert np.all(np.abs(k.pullback(X, W)) < 1e-2)


@pytest.mark.parametrize("d", [1, 3])
def test_few_columns_keep_every_digit_of_small_distances(d):
    rng = np.random.default_rng(0)
    X = np.linspace(0, 900, 10)[:, None] + rng.normal(size=(10, d))
    Z = X + 0.1 * rng.normal(size=(10, d))
    expected = [exact(RBF(), x, z) for x, z in zip(X, Z, strict=True)]
    np.testing.assert_allclose(np.diag(RBF()(X, Z)), expected, rtol=1e-14)


@pytest.mark.parametrize("d", [4, 8])
def test_distances_far_beyond_the_length_scale_are_explicit(d):
    """Two clusters 1e7 length scales apart: the product of coordinates would leave no correct digit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, d))
    X[10:] += 1e7
    K = RBF()(X)
    expected = [[exact(RBF(), x, z) for z in X[:10]] for x in X[:10]]
    np.testing.assert_allclose(K[:10, :10], expected, rtol=1e-7)
    assert np.all(K[:10, 10:] == 0)


@pytest.mark.parametrize("kernel", [RBF, Exponential, Matern, Periodic])
def test_many_tiles_equal_one_explicit_matrix(kernel):
    for d in (2, 6):
        rng = np.random.default_rng(0)
        n, m = 2 * TILE + 3, TILE + 1
        X, Z, W = rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=(n, n))
        k = kernel(tuple(rng.uniform(1, 2, size=d)))
        rows, columns = [0, TILE - 1, TILE, n - 1], [0, TILE - 1, TILE]
        np.testing.assert_allclose(
            k(X, Z)[np.ix_(rows, columns)], k(X[rows], Z[columns]), rtol=1e-11, atol=1e-13
        )
        first, rest = np.s_[:TILE], np.s_[TILE:]
        W[first, rest] = W[rest, first] = 0
        parts = k.pullback(X[first], W[first, first]) + k.pullback(X[rest], W[rest, rest])
        np.testing.assert_allclose(k.pullback(X, W), parts, rtol=1e-9)


def test_pullback_of_identity_is_zero_for_stationary_kernels():
    X = np.random.default_rng(0).normal(size=(50, 5))
    for kernel in (RBF((1.0,) * 5), Exponential(), Matern(), RationalQuadratic(), Periodic()):
        np.testing.assert_allclose(kernel.pullback(X, np.eye(50), symmetric=True), 0, atol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(), Exponential(), Matern(nu=2.5), RationalQuadratic(), Periodic()])
def test_a_row_that_is_not_a_number_affects_its_own_values_only(kernel):
    for d in (1, 6):
        X = np.random.default_rng(0).normal(size=(5, d))
        broken = X.copy()
        broken[2, 0] = np.nan
        K, others = kernel(broken, X), [0, 1, 3, 4]
        assert np.all(np.isnan(K[2]))
        np.testing.assert_allclose(K[others], kernel(X[others], X), rtol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [RBF(0.7), Matern(1.3, nu=0.5), 2.0 * Matern(1.3, nu=2.5), RationalQuadratic(0.9) + Periodic(1.2, 3.0)],
    ids=str,
)
def test_one_row_equals_that_row_among_many(kernel):
    for dtype, shift in product((np.float64, np.float32), (0.0, 1e6, 1e30, 1e200)):
        rng = np.random.default_rng(0)
        with np.errstate(over="ignore"):
            Z = rng.normal(size=(300, 5)).astype(dtype)
            Z[150:] += dtype(min(shift, 1e-3 * float(np.finfo(dtype).max)))
        X = Z[::29].copy()
        K = kernel(X, Z)
        assert np.all(np.isfinite(K))
        tolerance = 1e-9 if dtype == np.float64 else 1e-3
        for i in range(len(X)):
            row = kernel(X[i : i + 1], Z)
            assert row.dtype == dtype
            if shift * float(np.finfo(dtype).eps) < 1e-3:  # beyond, to center the rows takes their digits
                np.testing.assert_allclose(row[0, :150], K[i, :150], atol=tolerance)
            assert np.all(np.isfinite(row))


def test_what_is_prepared_for_many_queries_can_be_pickled():
    Z = np.random.default_rng(0).normal(size=(9, 2))
    cross = CrossKernel(RBF(), Z)
    expected = cross(Z), cross(Z[:1])
    again = pickle.loads(pickle.dumps(cross))
    np.testing.assert_array_equal(again(Z), expected[0])
    np.testing.assert_array_equal(again(Z[:1]), expected[1])
