"""NIST's archives, joined and reduced as LEAF does."""

import io

import numpy as np
import pytest
from PIL import Image
from tests.data.packing import pack

from fedsampling.base.errors import InputError
from fedsampling.data.datasets import nist

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
