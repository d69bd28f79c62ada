"""FEMNIST by writer, as LEAF samples, filters and splits it."""

from functools import partial

import numpy as np
from tests.data.datasets.loading import load
from tests.data.datasets.test_nist import by_class, by_write
from tests.data.datasets.tff_files import unchecked

from fedsampling.data.datasets import dataset, femnist

loaded = partial(load, "femnist")


def sizes(data):
    return data.n_samples + np.diff(data.start_test)


def test_each_writer_has_training_and_test_images_of_its_own():
    data = loaded()
    assert (data.x.dtype, data.x.shape[1:], data.classes) == (np.uint8, (28, 28), 62)
    assert data.n_clients == femnist.WRITERS
    assert sizes(data).sum() == femnist.IMAGES
    assert data.n_samples.tolist() == (sizes(data) * 9 // 10).tolist()
    assert np.median(data.x[:, 0, 0]) == 255
    assert sizes(data).max() > 4 * sizes(data).min()
    images = np.concatenate([data.x, data.x_test])
    assert len(np.unique(images.reshape(len(images), -1), axis=0)) == len(images)


def test_fractions_and_numbers_of_writers_are_prefixes_of_one_draw():
    data, fraction, five_writers = loaded(), loaded(fraction=0.3), loaded(clients=5)
    assert sizes(fraction).sum() == 0.3 * femnist.IMAGES
    assert sizes(fraction)[:-1].tolist() == sizes(data)[: fraction.n_clients - 1].tolist()
    assert sizes(five_writers).tolist() == sizes(data)[:5].tolist()


def test_few_images_can_be_left_out_and_first_ones_repeated():
    minimum = int(np.sort(sizes(loaded()))[20])
    data = loaded(min_samples=minimum)
    assert sizes(data).min() == minimum
    # LEAF's repetition: one more image for each of the other writers.
    assert sizes(loaded(repeat_first=True)).sum() == femnist.IMAGES + femnist.WRITERS - 1


def test_nists_archives_are_converted_once(tmp_path, monkeypatch):
    dataset._samples.cache_clear()
    for archive in (by_class, by_write):
        archive(tmp_path / "mirror" / "nist_sd19")
    unchecked(monkeypatch, "nist_sd19/by_class.zip", "nist_sd19/by_write.zip")
    folders = {"cache": tmp_path / "cache", "mirror": str(tmp_path / "mirror")}
    data = loaded("official", train=0.5, **folders)
    # f0000_14 and f2100_06 have two images each; f0001_41 has one and so no test.
    assert data.n_samples.tolist() == [1, 1]
    shades = {data.x[k, 0, 0] + data.x_test[k, 0, 0] for k in range(2)}
    assert shades == {10 + 20, 40 + 50}
    assert sorted(data.inputs) == ["by_class.zip", "by_write.zip"]
    assert data.unverified
    dataset._samples.cache_clear()
    monkeypatch.setattr(femnist, "convert", None)
    reread = loaded("official", train=0.5, **folders)
    np.testing.assert_array_equal(reread.x, data.x)
    dataset._samples.cache_clear()
