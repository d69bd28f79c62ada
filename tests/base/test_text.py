"""Tables, durations, sizes and numbers as text."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedsampling.base.text import (
    align,
    format_bytes,
    format_duration,
    grouped,
    listed,
    show,
    show_alike,
    show_interval,
)


def test_cells_are_aligned_to_the_left_and_numbers_to_the_right():
    rows = [("experiment", "jobs", "runs"), ("mnist", "7", "12000")]
    assert align(rows, "  ") == ["  experiment  jobs  runs", "  mnist       7     12000"]
    assert align(rows, numbers_from=1) == ["experiment  jobs   runs", "mnist          7  12000"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.84, "0.8 s"), (9.96, "10 s"), (200, "3 min"), (4e6, "1,111.1 h")]
)
def test_durations_have_two_or_three_digits(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(1500, "2 kB"), (1.5e9, "1.5 GB")])
def test_sizes_have_a_unit(count, text):
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-23.06, "−23.1"),
        (9.996, "10.0"),
        (1234.5, "1,230"),
        (0.000123456, "0.000123"),
        (0.0000123456, "1.23e−05"),
        (1234567.0, "1.23e+06"),
        (-0.0, "0"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
    ],
)
def test_three_significant_digits(value, text):
    assert show(value) == text


def test_an_exact_number_and_one_without_an_interval_have_none():
    assert show_interval(5.312, 5.1, 5.52) == "5.31 [5.10, 5.52]"
    assert show_interval(5.312, 5.312, 5.312) == "5.31"
    assert show_interval(5.312, np.nan, np.nan) == "5.31"


def test_thousands_are_grouped_but_not_in_names_or_fractions():
    text = "3131 s, 1663370 of c1000, 0.12345 and 4,500 or 2.5"
    assert grouped(text) == "3,131 s, 1,663,370 of c1000, 0.12345 and 4,500 or 2.5"


def test_a_censored_value_is_more_than_the_end():
    shown = [show(value, last=2500) for value in (np.inf, 40.0, np.nan)]
    assert shown == [">2,500", "40.0", "–"]


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 8))
@example(950.0, 1)  # 1,000
def test_what_is_written_is_the_number_to_its_digits(value, digits):
    text = show(value, digits)
    assert "-" not in text
    assert float(text.replace("−", "-").replace(",", "")) == float(f"{value:.{digits - 1}e}")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.00742, 0.0140], ["0.0074", "0.0140"]),
        ([0.81, 0.7954, np.nan, 0.0], ["0.810", "0.795", "–", "0"]),
        ([-1.5, 12.25], ["−1.5", "12.2"]),
        ([0.001, 12.0], ["0.00100", "12.0"]),  # it would be 0.0
        ([1e-9, 0.5], ["1.00e−09", "0.500"]),
        ([9.999, 1.0], ["10.0", "1.0"]),
    ],
)
def test_numbers_of_a_column_have_the_decimals_of_the_largest(values, texts):
    assert show_alike(values) == texts


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c"], "a, b and c"),
        (["a, b", "c", "d"], "a, b; c and d"),
    ],
)
def test_a_list_ends_with_and(words, text):
    assert listed(words) == text
