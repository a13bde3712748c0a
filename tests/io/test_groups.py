"""Inputs by group: parts of the rows add up to all of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wienerkernel.io.groups import Groups

ROWS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-50, 50)), min_size=1, max_size=30)


@given(ROWS, st.data())
def test_groups_of_parts_add_up(rows, data):
    cut = data.draw(st.integers(0, len(rows)))
    names, X = [name for name, _ in rows], np.array([[value / 8, -value] for _, value in rows], dtype=float)
    whole, parts = Groups.of(names, X), Groups.of(names[:cut], X[:cut]) + Groups.of(names[cut:], X[cut:])
    for found in (whole, parts):
        expected = [np.mean(X[[n == name for n in names]], axis=0) for name in names]
        np.testing.assert_allclose(found.inputs(names), expected, atol=1e-12)
        np.testing.assert_allclose(found.apart, np.abs(X - expected).max(axis=0), atol=1e-12)
    np.testing.assert_array_equal(parts.names, whole.names)
