"""Tables, durations and sizes as text."""

import pytest

from fedsampling.base.progress import align, format_bytes, format_duration


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
