"""Files of MNIST's format, and the writers that QMNIST adds."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from fedsampling.data.datasets import mnist as mnist
from fedsampling.data.federated import Samples

from .loading import IDX_FILES


def test_bytes_written_by_hand_are_read_as_written(tmp_path):
    content = bytes.fromhex("00000c02 00000002 00000003 00000001 00000002 ffffffff")
    content += bytes.fromhex("80000000 7fffffff 00000000")
    (tmp_path / "small.gz").write_bytes(gzip.compress(content))
    values = mnist.read_idx(tmp_path / "small.gz")
    assert values.dtype == np.int32
    assert values.tolist() == [[1, 2, -1], [-(2**31), 2**31 - 1, 0]]


def test_samples_per_class_are_the_published_ones(digits, mirror):
    train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    test = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    fashion = mnist.read("fashion_mnist", Path(mirror, "fashion_mnist"))
    for samples, sizes in ((digits, (train, test)), (fashion, ([6000] * 10, [1000] * 10))):
        assert np.bincount(samples.y).tolist() == sizes[0]
        assert np.bincount(samples.y_test).tolist() == sizes[1]
        assert samples.x.shape == (60_000, 28, 28)


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


def tables(folder, labels, writers):
    table = np.zeros((len(labels), 8), ">i4")
    table[:, 0], table[:, 2] = labels, writers
    header = bytes([0, 0, 0x0C, 2]) + np.array(table.shape, ">i4").tobytes()
    path = folder / "labels"
    path.write_bytes(gzip.compress(header + table.tobytes()))
    return path


@pytest.fixture
def three():
    x, y = np.zeros((3, 28, 28), np.uint8), np.array([5, 0, 4])
    return Samples(name="mnist", x=x, y=y, x_test=x, y_test=y, classes=10)


def test_label_and_writer_columns_are_not_confused(three, tmp_path):
    path = tables(tmp_path, [5, 0, 4, 9], [2154, 7, 2154, 1])
    samples = mnist.add_writers(three, path, path)
    assert samples.writer.tolist() == [2154, 7, 2154]  # the fourth row is no image of MNIST


def test_labels_of_other_images_are_rejected(three, tmp_path):
    path = tables(tmp_path, [5, 0, 3], [1, 2, 3])
    with pytest.raises(ValueError, match="its labels are not those of MNIST"):
        mnist.add_writers(three, path, path)


class TestReal:
    def test_training_writers_have_19_to_131_images_mostly_of_all_digits(self, written):
        sizes = np.unique_counts(written.writer).counts
        assert (sizes.min(), np.median(sizes), sizes.max()) == (19, 116, 131)
        pairs = np.unique(np.stack([written.writer, written.y]), axis=1)
        assert np.sum(np.unique_counts(pairs[0]).counts == 10) == 536

    def test_writers_of_training_and_test_images_differ(self, written):
        train, test = {*written.writer.tolist()}, {*written.writer_test.tolist()}
        assert (len(train), len(test), train & test) == (539, 297, set())
