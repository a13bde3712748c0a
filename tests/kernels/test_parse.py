"""Kernels from text: what a kernel prints is read back, and nothing is ever evaluated."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wienerkernel import (
    RBF,
    Constant,
    Exponential,
    Kernel,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
)
from wienerkernel.kernels.parse import KERNEL_NAMES, parse_kernel

positive = st.floats(min_value=1e-300, max_value=1e300)
scales = positive | st.lists(positive, min_size=1, max_size=3).map(tuple)
bounds = st.just("fixed") | st.sampled_from([(0.5, 2.0), (1e-9, np.inf)])
leaves = st.one_of(
    st.builds(RBF, scales, bounds),
    st.builds(Matern, scales, bounds, nu=st.sampled_from([0.5, 1.5, 2.5])),
    st.builds(RationalQuadratic, scales, positive, bounds, bounds),
    st.builds(Periodic, positive, scales),
    st.builds(Constant, positive, bounds),
    st.builds(Linear, scales),
)
kernels = st.recursive(
    leaves,
    lambda k: st.one_of(
        st.tuples(k, k).map(lambda pair: pair[0] + pair[1]),
        st.tuples(k, k).map(lambda pair: pair[0] * pair[1]),
        st.tuples(k, st.integers(1, 9)).map(lambda pair: pair[0] ** pair[1]),
    ),
    max_leaves=6,
)


@given(kernels)
def test_what_a_kernel_prints_is_read_back(kernel):
    assert parse_kernel(repr(kernel)) == kernel


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("rbf", RBF()),
        ("matern52*periodic", Matern(nu=2.5) * Periodic()),
        ("matern32(2) + matern12", Matern(2.0, nu=1.5) + Exponential()),
        ("2.0*rbf(length_scale=0.5) + linear", 2.0 * RBF(0.5) + Linear()),
        ("rbf + linear * rbf ** 2", RBF() + Linear() * RBF() ** 2),
        ("(rbf + linear) * 3", (RBF() + Linear()) * 3),
        ("rbf + rbf(2) + rbf(3)", (RBF() + RBF(2.0)) + RBF(3.0)),
        ("polynomial(degree=2, offset=.5)", Polynomial(2, 0.5)),
        ("Rational_Quadratic(1e-1, alpha=2.)", RationalQuadratic(0.1, 2.0)),
        ("rbf([1, 2,], length_scale_bounds='fixed')", RBF([1.0, 2.0], "fixed")),
        (' rbf ( 3 , "fixed" ) ', RBF(3.0, "fixed")),
        ("4", Constant(4.0)),
    ],
)
def test_formulas_mean_what_they_mean_in_python(text, kernel):
    assert parse_kernel(text) == kernel


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_every_name_alone_is_a_kernel(name):
    assert parse_kernel(name) == parse_kernel(f"{name}()")


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("rbf", 1.0 * RBF([1.0, 1.0])),
        ("rbf()", 1.0 * RBF(1.0)),
        ("2 * rbf + linear(3)", 2.0 * RBF([1.0, 1.0]) + Linear(3.0)),
        ("matern52 + periodic", 1.0 * (Matern([1.0, 1.0], nu=2.5) + Periodic([1.0, 1.0]))),
    ],
)
def test_names_without_parameters_have_a_length_scale_per_input_and_a_variance_if_they_are_tuned(
    text, kernel
):
    assert parse_kernel(text, n_inputs=2) == kernel
    assert parse_kernel("rbf", n_inputs=1) == 1.0 * RBF(1.0)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "column 1: unexpected end"),
        ("rbf +", "column 6: unexpected end"),
        ("rbf(1", "column 4: .* never closed"),
        ("rbf)", r"column 4: unmatched '\)'"),
        ("rbf linear", "column 5: invalid syntax"),
        ("gauss", "unknown kernel 'gauss'; known are"),
        ("mattern52", "did you mean matern52"),
        ("rbf ** 0", "positive integer"),
        ("rbf ** 2.5", "positive integer"),
        ("rbf ** 99999999999", "positive integer"),
        ("rbf(period=3)", r"rbf takes the parameters \(length_scale, length_scale_bounds\)"),
        ("matern52(nu=0.5)", "matern52 takes the parameters"),
        ("rbf(length_scale=1, length_scale=2)", "given twice"),
        ("rbf(length_scale=1, 2)", "column 22: positional argument follows keyword argument"),
        ("rbf(0)", "length_scale must be a positive"),
        ("rbf(-1)", "length_scale must be a positive"),
        ("rbf(- 1)", "column 5: expected a number"),
        ("-1 * rbf", "column 1: expected a kernel"),
        ("1e999 * rbf", "positive finite"),
        ("rbf('a b')", "length_scale must be a positive .* got 'a b'"),
        ("'rbf'", "column 1: expected a number"),
        ("rbf(True)", "column 5: expected a number"),
        ("rbf(*[1])", "column 5: expected a number"),
        ("rbf(**2)", "column 5: expected name=value"),
        ("rbf  # a comment", "column 6: unexpected character '#'"),
        ("(" * 300 + "rbf" + ")" * 300, "nested"),
        ("rbf" + " + rbf" * 3000, "nested too deeply"),
        ("-" * 100_000 + "1", "nested too deeply"),
        ("rbf(" + "[" * 200 + "]" * 200 + ")", "nested"),
        ("__import__('os').system('true')", "column 1: expected a kernel"),
        ("__import__('os')", "unknown kernel '__import__'"),
        ("rbf.__class__", "column 1: expected a kernel"),
        ("lambda: 0", "column 7: unexpected character ':'"),
        ("rbf\nimport os", "column 5"),
        ("1_000 * rbf", "column 1: expected a number"),
        ("\u0661\u0662 * rbf", "column 1: unexpected character"),
        ("rbf(\uff11)", "column 5: unexpected character"),
        ("rbf ** \u0662", "column 8: unexpected character"),
    ],
)
def test_mistakes_are_named_with_their_place(text, match):
    with pytest.raises(ValueError, match=match):
        parse_kernel(text)


@given(st.text(alphabet="rbflinear2.*+()[],='\" \n\\\x00é", max_size=30))
def test_any_text_is_a_kernel_or_an_error(text):
    with suppress(ValueError):
        assert isinstance(parse_kernel(text), Kernel)
