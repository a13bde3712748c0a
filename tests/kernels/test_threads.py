"""Tiles are shared by threads: the same numbers, errors and warnings as without."""

import threading
import time
import warnings

import numpy as np
import pytest

from wienerkernel.kernels import (
    RBF,
    FeatureMap,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    as_kernel,
    gram,
    operations,
    tiles,
)

KERNELS = [
    RBF((0.7, 1.3, 2.1, 0.9)),
    Matern(0.8, nu=0.5) + 0.5 * Matern(1.4, nu=2.5),
    RationalQuadratic(1.4, 0.6) * Periodic(1.4, 2.5),
    (Linear(2.0) + 0.5) ** 2,
    FeatureMap(np.sin, scale=1.5),
]


@pytest.fixture
def shared_tiles(monkeypatch):
    """Small tiles; call the fixture to share them among three threads from then on."""
    monkeypatch.setattr(tiles, "TILE", 8)
    monkeypatch.setattr(operations, "_threads", lambda: 1)

    def start():
        monkeypatch.setattr(operations, "_threads", lambda: 3)
        monkeypatch.setattr(operations, "MANY_TILES", 2)

    return start


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_and_pullbacks_are_those_of_one_thread(kernel, dtype, shared_tiles):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(50, 4)).astype(dtype), rng.normal(size=(30, 4)).astype(dtype)
    W = rng.normal(size=(50, 50))

    def results():
        pulled = kernel.pullback(X, W), kernel.pullback(X, W + W.T, symmetric=True)
        return np.tril(gram(kernel, X)), kernel(X, Z), kernel(X), *pulled

    expected = results()
    shared_tiles()
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    for got, one in zip(results(), expected, strict=True):
        assert got.dtype == one.dtype
        np.testing.assert_allclose(got, one, rtol=tolerance, atol=tolerance)
    again = results()
    for got, one in zip(results(), again, strict=True):
        np.testing.assert_array_equal(got, one)  # the order of the sums does not depend on the threads


def test_functions_of_the_user_are_called_by_one_thread_at_a_time(shared_tiles):
    inside, callers = threading.Lock(), set()

    def function(X, Z):
        assert inside.acquire(blocking=False)
        callers.add(threading.get_ident())
        time.sleep(1e-3)
        inside.release()
        return X @ Z.T

    X = np.random.default_rng(0).normal(size=(50, 2))
    shared_tiles()
    np.testing.assert_allclose(as_kernel(function)(X), X @ X.T)
    assert len(callers) > 2  # they were indeed shared


def test_errors_reach_the_caller(shared_tiles):
    def broken(X, Z):
        raise FloatingPointError("no kernel")

    shared_tiles()
    with pytest.raises(FloatingPointError, match="no kernel"):
        gram(as_kernel(broken), np.zeros((50, 1)))


def test_the_error_state_of_the_caller_holds_in_all_threads(shared_tiles):
    X = np.full((50, 4), 1e200)
    shared_tiles()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        gram(Linear(1e-100), X)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        gram(as_kernel(lambda A, B: np.multiply.outer(A[:, 0], B[:, 0])), X)
