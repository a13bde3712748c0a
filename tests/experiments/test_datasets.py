"""Data sets that ship with the package."""

import numpy as np
import pytest

from wienerkernel.experiments.datasets import SERIES, load_mcycle, load_series


@pytest.mark.parametrize(
    ("name", "n", "first", "last", "total"),
    [
        ("lake_huron", 98, 1875, 1972, 56742.42),
        ("lynx", 114, 1821, 1934, 175334.0),
        ("nile", 100, 1871, 1970, 91935.0),
        ("sunspots", 289, 1700, 1988, 14049.0),
    ],
)
def test_series(name, n, first, last, total):
    X, y = load_series(name)
    assert X.shape == (n, 1)
    np.testing.assert_array_equal(X[:, 0], np.arange(first, last + 1))
    assert y.sum() == pytest.approx(total, abs=1.0)
    assert name in SERIES


def test_others():
    assert load_mcycle().X.shape == (133, 1)
    with pytest.raises(ValueError, match="name must be one of lake_huron"):
        load_series("co2")
