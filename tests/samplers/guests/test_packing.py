"""Attributes of a sampler are packed into a checkpoint's arrays and unpacked."""

from collections import deque

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.samplers.protocol.guest import pack, unpack

PLAIN = {
    "number": 3,
    "share": 0.1 + 0.2,
    "nothing": None,
    "name": "ω",
    "far": float("inf"),
    "nested": {"a": [1, (2, 3)], 4: {5, 6}, (7, 8): frozenset({9})},
    "last": deque([1, 2], maxlen=2),
    "scalar": np.float32(0.1),
}


def test_plain_data_and_arrays_survive_packing(tmp_path):
    arrays = {"x": np.arange(6).reshape(2, 3), "few": [np.zeros((0, 4), np.float32), None]}
    np.savez(
        tmp_path / "kept.npz", allow_pickle=False, **pack(PLAIN | arrays, "sampler mine: self")
    )
    with np.load(tmp_path / "kept.npz", allow_pickle=False) as file:
        unpacked = unpack({name: file[name] for name in file.files})
    np.testing.assert_array_equal(unpacked.pop("x"), arrays["x"])
    few = unpacked.pop("few")[0]
    assert (few.shape, few.dtype) == ((0, 4), np.float32)
    assert unpacked == PLAIN
    assert [type(unpacked[name]) for name in PLAIN] == [type(value) for value in PLAIN.values()]
    assert unpacked["last"].maxlen == 2


def test_an_attribute_that_cannot_be_stored_is_an_error_that_names_it():
    line = r"sampler mine: self\.rng holds a value of type Generator"
    with pytest.raises(InputError, match=line):
        pack({"rng": np.random.default_rng(0)}, "sampler mine: self")
