import gzip
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fedsampling.base.errors import InputError
from fedsampling.data.formats import idx as mnist

from .loading import IDX_FILES

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx(values):
    code = CODES[values.dtype.str[1:]]
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, code, values.ndim, *values.shape)
    return header + values.astype(values.dtype.newbyteorder(">")).tobytes()


class TestIdx:
    def test_bytes_written_by_hand_are_read_as_written(self):
        content = bytes.fromhex("00000b02 00000002 00000003 0001 0002 ffff 8000 7fff 0000")
        values = mnist.parse_idx(content)
        assert values.dtype == np.int16
        assert values.tolist() == [[1, 2, -1], [-32768, 32767, 0]]

    @given(
        st.sampled_from(sorted(CODES)).flatmap(
            lambda code: arrays.arrays(code, arrays.array_shapes(min_dims=0, min_side=0))
        )
    )
    def test_every_type_and_rank_comes_back(self, values):
        parsed = mnist.parse_idx(idx(values))
        assert parsed.dtype == values.dtype
        assert np.array_equal(parsed, values, equal_nan=values.dtype.kind == "f")

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            (b"", "begins with nothing"),
            (b"\x89PNG", "begins with 89504e47"),
            (bytes([0, 0, 0x0A, 1, 0, 0, 0, 0]), "begins with 00000a01"),
            (bytes([0, 0, 8, 2, 0, 0, 0, 1]), "ends within the sizes"),
            (bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2]), "2 bytes of numbers, .* needs 3"),
            (bytes([0, 0, 8, 1, 0, 0, 0, 1, 1, 2]), "2 bytes of numbers, .* needs 1"),
            (bytes([0, 0, 8, 3]) + b"\xff" * 12, "0 bytes of numbers"),
        ],
    )
    def test_other_content_is_rejected(self, content, fault):
        with pytest.raises(ValueError, match=fault):
            mnist.parse_idx(content)

    def test_plain_and_gzipped_files_are_the_same(self, tmp_path):
        values = np.arange(6, dtype=np.int32).reshape(2, 3)
        (tmp_path / "plain").write_bytes(idx(values))
        (tmp_path / "packed.gz").write_bytes(gzip.compress(idx(values)))
        assert np.array_equal(mnist.read_idx(tmp_path / "plain"), values)
        assert np.array_equal(mnist.read_idx(tmp_path / "packed.gz"), values)

    def test_error_names_the_file(self, tmp_path):
        (tmp_path / "labels").write_bytes(b"<html>")
        with pytest.raises(ValueError, match="labels: not an IDX file"):
            mnist.read_idx(tmp_path / "labels")


def test_one_wrong_label_is_detected(mirror):
    samples = mnist.read("mnist", *(Path(mirror, "mnist", file) for file in IDX_FILES))
    y = samples.y.copy()
    y[0] = (y[0] + 1) % 10
    with pytest.raises(InputError, match="training samples per class"):
        mnist.verify(replace(samples, y=y))


def test_mean_pixels_are_the_well_known_ones(mirror):
    means = {"mnist": 0.1307, "fashion_mnist": 0.2860}
    for name, mean in means.items():
        x = mnist.read_idx(Path(mirror, name, IDX_FILES[0]))
        assert x.mean() / 255 == pytest.approx(mean, abs=5e-5)
