"""The 255 writers of LEAF's FEMNIST, from the real file where it is here."""

import numpy as np

from .loading import load

BY_WRITER = {"name": "by_writer"}


def test_the_stand_in_has_the_shapes_of_the_file():
    data = load("femnist_255", partition=BY_WRITER)
    assert data.x.shape[1:] == (28, 28)
    assert (len(data.p), data.classes) == (25, 62)
    assert load("femnist_255", partition=BY_WRITER, digits=True).classes == 10


def test_the_file_has_255_writers_and_leafs_tests(mirror, tmp_path):
    data = load("femnist_255", "official", 0, tmp_path, mirror, partition=BY_WRITER)
    sizes = np.diff(data.start)
    assert (len(sizes), sizes.sum(), len(data.x_test)) == (255, 37_684, 4_318)
    assert (sizes.min(), sizes.max()) == (37, 320)
    assert data.unverified
    digits = load("femnist_255", "official", 0, tmp_path, mirror, partition=BY_WRITER, digits=True)
    assert len(digits.y) + len(digits.y_test) == 29_577
    assert digits.y.max() == 9
    assert np.median(digits.x) == 255  # the background
