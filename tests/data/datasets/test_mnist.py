"""Files of MNIST's format, and the writers that QMNIST adds."""

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
from fedsampling.data.datasets import mnist as mnist
from fedsampling.data.federated import Samples

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
            (b"\x89PNG", "begins with 89504e47"),
            (bytes([0, 0, 0x0A, 1, 0, 0, 0, 0]), "begins with 00000a01"),
            (bytes([0, 0, 8, 2, 0, 0, 0, 1]), "ends within the sizes"),
            (bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2]), "2 bytes of numbers, .* needs 3"),
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


def test_one_wrong_label_is_detected(digits):
    y = digits.y.copy()
    y[0] = (y[0] + 1) % 10
    with pytest.raises(InputError, match="training samples per class"):
        mnist.verify(replace(digits, y=y))


def test_mean_pixels_are_the_well_known_ones(mirror):
    means = {"mnist": 0.1307, "fashion_mnist": 0.2860}
    for name, mean in means.items():
        x = mnist.read_idx(Path(mirror, name, IDX_FILES[0]))
        assert x.mean() / 255 == pytest.approx(mean, abs=5e-5)


LABELS = ("qmnist-train-labels-idx2-int.gz", "qmnist-test-labels-idx2-int.gz")


@pytest.fixture(scope="module")
def digits(mirror):
    return mnist.read("mnist", Path(mirror, "mnist"))


@pytest.fixture(scope="module")
def written(digits, mirror):
    return mnist.add_writers(digits, *(Path(mirror, "qmnist", file) for file in LABELS))


def tables(folder, labels, writers, columns=8):
    table = np.zeros((len(labels), columns), ">i4")
    table[:, 0], table[:, 2] = labels, writers
    path = folder / "labels"
    path.write_bytes(bytes([0, 0, 0x0C, 2]) + np.array(table.shape, ">i4").tobytes())
    with path.open("ab") as file:
        file.write(table.tobytes())
    return path


@pytest.fixture
def three():
    x, y = np.zeros((3, 28, 28), np.uint8), np.array([5, 0, 4])
    return Samples(name="mnist", x=x, y=y, x_test=x, y_test=y, classes=10)


def test_label_and_writer_columns_are_not_confused(three, tmp_path):
    path = tables(tmp_path, [5, 0, 4, 9], [2154, 7, 2154, 1])
    samples = mnist.add_writers(three, path, path)
    assert samples.writer.tolist() == [2154, 7, 2154]  # the fourth row is no image of MNIST


@pytest.mark.parametrize(
    ("labels", "columns", "reason"),
    [
        ([5, 0, 3], 8, "its labels are not those of MNIST"),
        ([5, 0], 8, r"is not \(3 or more, 8\)"),
        ([5, 0, 4], 7, r"is not \(3 or more, 8\)"),
    ],
)
def test_labels_of_other_images_or_another_shape_are_rejected(
    three, tmp_path, labels, columns, reason
):
    path = tables(tmp_path, labels, labels, columns)
    with pytest.raises(ValueError, match=reason):
        mnist.add_writers(three, path, path)


class TestReal:
    def test_training_writers_have_19_to_131_images_mostly_of_all_digits(self, written):
        sizes = np.unique_counts(written.writer).counts
        assert (sizes.min(), np.median(sizes), sizes.max()) == (19, 116, 131)
        pairs = np.unique(np.stack([written.writer, written.y]), axis=1)
        assert np.sum(np.unique_counts(pairs[0]).counts == 10) == 536

    def test_swapped_writers_are_detected(self, written):
        with pytest.raises(InputError, match="539 writers"):
            mnist.verify_writers(replace(written, writer=written.writer % 500))
