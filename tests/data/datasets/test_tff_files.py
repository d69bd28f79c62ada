"""Records of examples: known bytes, everything that can be written, and nothing that cannot."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.datasets.tff_files import example, message, varint

from fedsampling.data.datasets.tff_files import parse_example

INT64 = st.integers(-(2**63), 2**63 - 1)


def test_bytes_written_by_hand():
    # Protocol buffers' own page writes 150 as 96 01.
    record = bytes.fromhex("0a 0e 0a 0c 0a 03 616263 12 05 1a 03 0a 01 07")
    record_150 = bytes.fromhex("0a 0f 0a 0d 0a 03 616263 12 06 1a 04 0a 02 9601")
    assert parse_example(record)["abc"].tolist() == [7]
    assert parse_example(record_150)["abc"].tolist() == [150]


@given(
    st.lists(INT64, max_size=40),
    st.lists(st.floats(width=32, allow_nan=False), max_size=40),
    st.lists(st.binary(max_size=300), max_size=5),
)
def test_any_record_is_read_back(numbers, floats, lines):
    settings = {
        "numbers": np.array(numbers, np.int64),
        "floats": np.array(floats, np.float32),
        "lines": lines,
    }
    assert_same(parse_example(example(settings)), settings)


def assert_same(features, expected):
    assert features.keys() == expected.keys()
    for name, feature in expected.items():
        assert type(features[name]) is type(feature)
        np.testing.assert_array_equal(features[name], feature)
        assert getattr(features[name], "dtype", None) == getattr(feature, "dtype", None)


@given(st.lists(INT64, min_size=1, max_size=9))
def test_numbers_may_come_one_by_one(numbers):
    entries = b"".join(varint(1 << 3) + varint(number) for number in numbers)
    record = message(1, message(1, message(1, b"y") + message(2, message(3, entries))))
    assert parse_example(record)["y"].tolist() == numbers


def reads_as_features(content):
    """Whether the content is a record; then it has to survive being written again."""
    try:
        result = parse_example(content)
    except ValueError:
        return False
    assert_same(parse_example(example(result)), result)
    return True


def test_a_record_with_one_flipped_bit_is_rejected_or_read_as_features():
    record = example({"pixels": np.arange(3, dtype=np.float32), "label": np.array([3])})
    accepted = [
        reads_as_features(record[:at] + bytes([record[at] ^ 1 << bit]) + record[at + 1 :])
        for at, bit in product(range(len(record)), range(8))
    ]
    assert 0.1 < np.mean(accepted) < 0.9


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (message(1, b"abc")[:-1], "ends too early"),
        (b"\x0a" + b"\xff" * 11, "does not end"),
        (varint(1 << 3 | 3), "wire type 3"),
        (varint(1 << 3) + varint(5), "a number where a message is due"),
        (message(1, message(1, message(1, b"y"))), "has no values"),
    ],
)
def test_corruption_is_named(content, fault):
    with pytest.raises(ValueError, match=fault):
        parse_example(content)


def test_every_truncation_of_a_record_is_rejected_or_has_no_wrong_values():
    record = example({"pixels": np.arange(5, dtype=np.float32), "label": np.array([3])})
    for end in range(1, len(record)):
        with pytest.raises(ValueError, match="not a record of examples"):
            parse_example(record[:end])
