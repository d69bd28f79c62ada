"""FEMNIST by writer, as LEAF samples, filters and splits it."""

import io
from functools import partial

import numpy as np
import pytest
from PIL import Image
from tests.data.datasets.loading import load
from tests.data.datasets.tff_files import unchecked
from tests.data.packing import pack

from fedsampling.base.errors import InputError
from fedsampling.data.datasets import dataset, femnist, nist

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


def test_a_fraction_of_the_images_and_a_number_of_writers_are_prefixes_of_one_draw():
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


# Where each image lies in either archive; the shade tells the images apart.
IMAGES = {
    10: ("37/hsf_0/hsf_0_00000", "hsf_0/f0000_14/d0000_14/d0000_14_00000"),
    20: ("4b/hsf_0/hsf_0_00000", "hsf_0/f0000_14/u0000_14/u0000_14_00000"),
    30: ("7a/hsf_0/hsf_0_00000", "hsf_0/f0001_41/l0001_41/l0001_41_00000"),
    40: ("30/hsf_4/hsf_4_00000", "hsf_4/f2100_06/d2100_06/d2100_06_00000"),
    50: ("30/hsf_4/hsf_4_00001", "hsf_4/f2100_06/d2100_06/d2100_06_00001"),
}


def png(shades):
    picture = np.broadcast_to(shades, (128, 128)).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(picture).convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()


def by_class(folder):
    members = {f"by_class/{place}.png": png(shade) for shade, (place, _) in IMAGES.items()}
    members["by_class/37/hsf_0.mit"] = b"d0000_14_00000 hsf_0_00000"
    members["by_class/31/train_31/train_31_00000.png"] = png(10)  # repeats an image: no label
    return pack(folder / "by_class.zip", members)


def by_write(folder, additional=None):
    members = {f"by_write/{place}.png": png(shade) for shade, (_, place) in IMAGES.items()}
    return pack(folder / "by_write.zip", members | (additional or {}))


def test_images_are_matched_by_content_and_grouped_by_writer(tmp_path):
    target = tmp_path / "femnist.npz"
    nist.convert(by_class(tmp_path), by_write(tmp_path), target)
    samples = nist.read(target)
    assert samples.x[:, 0, 0].tolist() == [10, 20, 30, 40, 50]
    assert samples.y.tolist() == [7, 20, 61, 0, 0]  # LEAF's numbers
    assert "".join(nist.CLASSES[label] for label in samples.y) == "7Kz00"
    assert samples.writer.tolist() == [0, 0, 1, 2, 2]
    repeated = nist.first_repeated(samples)  # of every writer but the first, as LEAF does
    assert repeated.x[:, 0, 0].tolist() == [10, 20, 30, 30, 40, 40, 50]
    assert samples.classes == 62
    with np.load(target) as arrays:
        assert arrays["writers"].tolist() == ["f0000_14", "f0001_41", "f2100_06"]


def test_an_image_in_only_one_archive_is_rejected(tmp_path):
    writers = by_write(tmp_path, {f"by_write/{IMAGES[50][1][:-1]}2.png": png(60)})
    with pytest.raises(InputError, match=r"is not in by_class\.zip"):
        nist.convert(by_class(tmp_path), writers, tmp_path / "femnist.npz")
    assert not (tmp_path / "femnist.npz").exists()


def test_shrunk_images_have_the_weights_of_the_lanczos_window():
    # One white column of 128: its weight in each of the 28 columns is the window's value.
    column, scale = 50, 128 / 28
    result = nist.shrink(png(255 * (np.arange(128) == column)))[14].astype(float)
    centre = (np.arange(28) + 0.5) * scale
    distance = (np.arange(128)[:, None] + 0.5 - centre) / scale
    window = np.where(abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0)
    expected = np.clip(255 * window[column] / window.sum(0), 0, 255)
    assert result == pytest.approx(expected, abs=1)
