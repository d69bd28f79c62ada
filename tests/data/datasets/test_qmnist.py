from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.formats import idx as mnist
from fedsampling.data.samples import Samples

from .loading import IDX_FILES

LABELS = ("qmnist-train-labels-idx2-int.gz", "qmnist-test-labels-idx2-int.gz")


@pytest.fixture(scope="module")
def digits(mirror):
    return mnist.read("mnist", *(Path(mirror, "mnist", file) for file in IDX_FILES))


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


def test_labels_of_other_images_are_rejected(three, tmp_path):
    path = tables(tmp_path, [5, 0, 3], [1, 2, 3])
    with pytest.raises(ValueError, match="its labels are not those of MNIST"):
        mnist.add_writers(three, path, path)


@pytest.mark.parametrize(("labels", "columns"), [([5, 0], 8), ([5, 0, 4], 7)])
def test_tables_of_other_shape_are_rejected(three, tmp_path, labels, columns):
    path = tables(tmp_path, labels, labels, columns)
    with pytest.raises(ValueError, match=r"is not \(3 or more, 8\)"):
        mnist.add_writers(three, path, path)


class TestReal:
    def test_training_writers_have_19_to_131_images_mostly_of_all_digits(self, written):
        sizes = np.unique_counts(written.writer).counts
        assert (sizes.min(), np.median(sizes), sizes.max()) == (19, 116, 131)
        pairs = np.unique(np.stack([written.writer, written.y]), axis=1)
        assert np.sum(np.unique_counts(pairs[0]).counts == 10) == 536

    def test_images_and_labels_stay_those_of_mnist(self, digits, written):
        assert written.x is digits.x
        assert written.y is digits.y
        assert set(written.inputs) == {*IDX_FILES, *LABELS}

    def test_swapped_writers_are_detected(self, written):
        with pytest.raises(InputError, match="539 writers"):
            mnist.verify_writers(replace(written, writer=written.writer % 500))
