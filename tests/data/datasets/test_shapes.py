"""Clients, samples, features and labels of the real files, and of their stand-ins."""

import numpy as np
import pytest

from .loading import load

SHARED_OUT = {"name": "all_by_dirichlet", "clients": 5, "alpha": 1.0}
BY_DIGIT, BY_OWNER = {"name": "by_digit"}, {"name": "by_writer"}
COPIES = ("femnist_255", "uci_har")  # not from their publishers


@pytest.mark.parametrize(
    ("name", "partition", "clients", "samples", "shape", "classes"),
    [
        ("letter", SHARED_OUT, 5, 20_000, (16,), 26),
        ("shuttle", SHARED_OUT, 5, 58_000, (9,), 7),
        ("satellite", SHARED_OUT, 5, 6_435, (36,), 6),
        ("dna", SHARED_OUT, 5, 3_186, (180,), 3),
        ("spam", SHARED_OUT, 5, 4_601, (57,), 2),
        ("vowel", BY_OWNER, 15, 990, (9,), 11),
        ("uci_har", BY_OWNER, 30, 10_299, (45,), 6),
        ("femnist_255", BY_OWNER, 255, 37_684 + 4_318, (28, 28), 62),
        ("mnist", BY_DIGIT, 100, 50_000 + 9_786, (28, 28), 10),  # some digits lack 1,000 tests
    ],
)
class TestShapes:
    def test_of_the_real_files_are_as_published(
        self, name, partition, clients, samples, shape, classes, mirror, tmp_path
    ):
        data = load(name, "official", 0, tmp_path, mirror, partition=partition)
        assert (data.n_clients, len(data.y) + len(data.y_test)) == (clients, samples)
        assert (data.x.shape[1:], data.classes) == (shape, classes)
        assert data.unverified == (name in COPIES)
        if len(shape) == 1:  # standardised and cut
            assert np.abs(data.x).max() <= 5

    def test_of_a_stand_in_are_the_same(self, name, partition, clients, samples, shape, classes):
        data = load(name, partition=partition)
        assert (data.inputs, data.x.shape[1:], data.classes) == ({}, shape, classes)
        if len(shape) == 1:  # few samples of an image set need not have all labels
            assert (data.name, len(np.unique(data.y))) == (f"{name}-like", classes)


def test_every_vowel_of_each_speaker_is_split_alike(mirror, tmp_path):
    data = load("vowel", "official", 0, tmp_path, mirror, partition=BY_OWNER)
    assert (data.label_counts().sum(0) == 72).all()  # four fifths of 90
    assert (data.label_counts() > 0).all()


def test_digits_of_255_writers_are_a_part_of_the_file(mirror, tmp_path):
    data = load("femnist_255", "official", 0, tmp_path, mirror, partition=BY_OWNER, digits=True)
    assert (len(data.y) + len(data.y_test), data.classes, data.y.max()) == (29_577, 10, 9)
    assert np.median(data.x) == 255  # the background
