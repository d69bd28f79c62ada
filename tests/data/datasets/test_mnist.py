"""Files of MNIST's format, and the writers that QMNIST adds."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from fedsampling.data.datasets import idx, mnist
from fedsampling.data.samples import Samples


def test_bytes_written_by_hand_are_read_as_written(tmp_path):
    content = bytes.fromhex("00000c02 00000002 00000003 00000001 00000002 ffffffff")
    content += bytes.fromhex("80000000 7fffffff 00000000")
    (tmp_path / "small.gz").write_bytes(gzip.compress(content))
    values = idx.read_idx(tmp_path / "small.gz")
    assert values.dtype == np.int32
    assert values.tolist() == [[1, 2, -1], [-(2**31), 2**31 - 1, 0]]


@pytest.mark.parametrize(
    ("name", "train", "test", "mean"),
    [
        ("fashion_mnist", [6000] * 10, [1000] * 10, 0.2860),
        (
            "mnist",
            [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
            [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
            0.1307,
        ),
    ],
)
def test_samples_per_class_and_mean_pixels_are_the_published_ones(name, train, test, mean, mirror):
    samples = idx.read(name, Path(mirror, name))
    assert np.bincount(samples.y).tolist() == train
    assert np.bincount(samples.y_test).tolist() == test
    assert samples.x.shape == (60_000, 28, 28)
    assert samples.x.mean() / 255 == pytest.approx(mean, abs=5e-5)


def with_writers(path, labels, writers):
    """Add QMNIST's table of labels and writers to three images of MNIST."""
    table = np.zeros((len(labels), 8), ">i4")
    table[:, 0], table[:, 2] = labels, writers
    header = bytes([0, 0, 0x0C, 2]) + np.array(table.shape, ">i4").tobytes()
    path.write_bytes(gzip.compress(header + table.tobytes()))
    x, y = np.zeros((3, 28, 28), np.uint8), np.array([5, 0, 4])
    samples = Samples(name="mnist", x=x, y=y, x_test=x, y_test=y, classes=10)
    return mnist.add_writers(samples, path, path)


def test_label_and_writer_columns_are_not_confused(tmp_path):
    samples = with_writers(tmp_path / "labels", [5, 0, 4, 9], [2154, 7, 2154, 1])
    assert samples.writer.tolist() == [2154, 7, 2154]  # the fourth row is no image of MNIST


def test_labels_of_other_images_are_rejected(tmp_path):
    with pytest.raises(ValueError, match="its labels are not those of MNIST"):
        with_writers(tmp_path / "labels", [5, 0, 3], [1, 2, 3])


def test_real_writers_have_19_to_131_training_images_mostly_of_all_digits(mirror):
    digits = idx.read("mnist", Path(mirror, "mnist"))
    parts = (f"qmnist-{part}-labels-idx2-int.gz" for part in ("train", "test"))
    samples = mnist.add_writers(digits, *(Path(mirror, "qmnist", file) for file in parts))
    sizes = np.unique_counts(samples.writer).counts
    assert (sizes.min(), np.median(sizes), sizes.max()) == (19, 116, 131)
    pairs = np.unique(np.stack([samples.writer, samples.y]), axis=1)
    assert np.sum(np.unique_counts(pairs[0]).counts == 10) == 536
    train, test = {*samples.writer.tolist()}, {*samples.writer_test.tolist()}
    assert (len(train), len(test), train & test) == (539, 297, set())
