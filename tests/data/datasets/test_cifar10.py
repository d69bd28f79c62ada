import numpy as np
import pytest
from PIL import Image

from fedsampling.data.datasets import cifar10


def records(batch, first_label):
    """As the publisher's page has it: label, 1024 red, 1024 green, 1024 blue, row-major."""
    return b"".join(
        bytes([first_label + k]) + b"".join(image[:, :, c].tobytes() for c in range(3))
        for k, image in enumerate(batch)
    )


def test_binary_images_come_in_order_with_colours_last(tmp_path):
    images = np.random.default_rng(0).integers(256, size=(6, 2, 32, 32, 3), dtype=np.uint8)
    for k, name in enumerate([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]):
        (tmp_path / f"{name}.bin").write_bytes(records(images[k], k))
    samples = cifar10.read_binary(tmp_path)
    assert np.array_equal(samples.x, images[:5].reshape(10, 32, 32, 3))
    assert np.array_equal(samples.x_test, images[5])
    assert samples.y.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert samples.y_test.tolist() == [5, 6]


def test_counts_colours_and_labels_of_the_real_sheets(mirror, tmp_path):
    dataset = cifar10.Cifar10(partition={"name": "by_digit"})
    official = dataset.samples("official", tmp_path, mirror)
    assert np.bincount(official.y).tolist() == [5000] * 10
    assert np.bincount(official.y_test).tolist() == [1000] * 10
    assert official.x.shape == (50_000, 32, 32, 3)
    assert (official.unverified, len(official.inputs)) == (True, 25)
    mean = official.x.mean((0, 1, 2)) / 255
    assert mean == pytest.approx([0.49139968, 0.48215841, 0.44653091], abs=2e-6)
    # Aeroplanes and ships are before the sky and the sea, the others are not.
    blue = np.array([official.x[official.y == c][:500, :8, :, 2].mean() for c in range(10)])
    assert set(np.argsort(blue)[-2:]) == {0, 8}


def test_tiles_of_a_sheet_are_cut_row_after_row(tmp_path):
    row, column = np.mgrid[:1600, :1600] // 32
    sheet = np.stack([row, column, 0 * row], axis=2).astype(np.uint8)
    Image.fromarray(sheet).save(tmp_path / "one.webp", lossless=True)
    cut = cifar10._sheet(tmp_path / "one.webp")
    assert cut.shape == (2500, 32, 32, 3)
    assert (cut == cut[:, :1, :1]).all()
    assert cut[:, 0, 0, 0].tolist() == np.repeat(np.arange(50), 50).tolist()
    assert cut[:, 0, 0, 1].tolist() == np.tile(np.arange(50), 50).tolist()
