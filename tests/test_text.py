"""Numbers in texts: one rule for all of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wienerkernel.text import number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_prints_is_read_back(value):
    assert number(repr(value)) == value


@pytest.mark.parametrize("text", ["1", "+1", "-1.", ".5", "1e3", "-2.5E-3", "007", "1.e+05", " 1\t"])
def test_decimal_and_scientific_notation_are_numbers(text):
    assert number(text) == float(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1_000",
        "\u0661\u0662",
        "\uff11",
        "1\u0660",
        "1 000",
        "1,5",
        "0x10",
        "1e",
        ".",
        "e5",
        "--1",
        "1e5.0",
        "one",
    ],
)
def test_nothing_else_is_a_number(text):
    for special in (False, True):
        with pytest.raises(ValueError, match="is not a number"):
            number(text, special=special)


@pytest.mark.parametrize("text", ["inf", "-Infinity", "+INF", "nan", "-NaN"])
def test_infinity_and_nan_are_numbers_where_they_are_allowed(text):
    got, expected = number(text, special=True), float(text)
    assert got == expected or (math.isnan(got) and math.isnan(expected))
    with pytest.raises(ValueError, match="is not a number"):
        number(text)


@given(st.text(max_size=12))
def test_a_text_is_a_number_of_python_or_no_number(text):
    try:
        value = number(text, special=True)
    except ValueError:
        return
    assert value == float(text) or math.isnan(value)
