"""Durations and sizes as text."""

import pytest

from fedsampling.base.quantities import format_bytes, format_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.84, "0.8 s"),
        (9.96, "10 s"),
        (75, "75 s"),
        (200, "3 min"),
        (7500, "2.1 h"),
        (4e6, "1,111.1 h"),
        (float("nan"), "–"),
    ],
)
def test_durations_have_two_or_three_digits(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(999, "999 B"), (1500, "2 kB"), (1.5e9, "1.5 GB"), (8e12, "8,000 GB")]
)
def test_sizes_have_a_unit(count, text):
    assert format_bytes(count) == text
