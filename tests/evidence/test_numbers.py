"""How numbers are written: three digits, a real minus sign, a dash for nothing."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedsampling.evidence.numbers import show, show_alike, show_estimate
from fedsampling.evidence.statistics import Estimate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5.3149, "5.31"),
        (5.0, "5.00"),
        (-23.06, "−23.1"),
        (9.996, "10.0"),
        (99.95, "100"),
        (1234.5, "1,230"),
        (0.0122, "0.0122"),
        (0.000123456, "0.000123"),
        (0.0000123456, "1.23e−05"),
        (123456.7, "123,000"),
        (1234567.0, "1.23e+06"),
        (0.0, "0"),
        (-0.0, "0"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
    ],
)
def test_three_significant_digits(value, text):
    assert show(value) == text


def test_digits_can_be_chosen():
    assert show(3.14159, 1) == "3"
    assert show(3.14159, 5) == "3.1416"


def test_a_censored_value_is_more_than_the_end():
    assert show(float("inf"), last=2500) == ">2,500"
    assert show(40.0, last=2500) == "40.0"
    assert show(float("nan"), last=2500) == "–"


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 8))
@example(950.0, 1)  # 1,000
def test_what_is_written_is_the_number_to_its_digits(value, digits):
    text = show(value, digits)
    assert "-" not in text
    assert float(text.replace("−", "-").replace(",", "")) == float(f"{value:.{digits - 1}e}")


def test_an_estimate_shows_interval_and_runs():
    assert show_estimate(Estimate(5.31, 5.1, 5.52, 100), "dB") == "5.31 dB [5.10, 5.52] (100 seeds)"
    assert show_estimate(Estimate(-1.0, -2.0, 0.5, 3)) == "−1.00 [−2.00, 0.500] (3 seeds)"


def test_an_estimate_without_interval_shows_none():
    assert show_estimate(Estimate(5.0, np.nan, np.nan, 1), "%") == "5.00 % (1 seed)"


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
